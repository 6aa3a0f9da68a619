// Products of elements and factors, and rows of a register or more times one factor.
#if defined(SPK_KERNELS_SCALE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_SCALE_INL_H_
#undef SPK_KERNELS_SCALE_INL_H_
#else
#define SPK_KERNELS_SCALE_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "kernels/convert-inl.h"
#include "kernels/narrow-inl.h"
#include "kernels/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// The registers that products are computed in; factors are numbers of the same kind.
template <class P>
using Factor = hn::TFromD<typename P::Tag>;
template <class P>
inline constexpr auto kFactors = static_cast<int64_t>(hn::MaxLanes(typename P::Tag()));

// x * f as a double.
struct Product {
  using Tag = D;
  static HWY_INLINE V Of(V x, V f) { return hn::Mul(x, f); }
};

// x * f rounded to odd, which a later rounding to fewer bits cannot tell from the exact product.
// For x of at most 24 bits: the low half of Dekker's product tells whether the double is inexact.
struct ExactProduct {
  using Tag = D;
  static HWY_INLINE V Of(V x, V f) {
    const D d;
    const hn::RebindToUnsigned<D> du;
    const V product = hn::Mul(x, f);
    const V spread = hn::Mul(f, hn::Set(d, 134217729.0));  // 2^27 + 1
    const V high = hn::Sub(spread, hn::Sub(spread, f));
    const V low = hn::Sub(f, high);
    const V lost = hn::Add(hn::Sub(hn::Mul(x, high), product), hn::Mul(x, low));
    // Where the splitting overflows, `lost` is NaN and the product beyond the narrow dtypes anyway.
    const auto more = hn::Gt(hn::Abs(lost), hn::Zero(d));
    const auto away = hn::Gt(hn::CopySign(hn::Set(d, 1.0), hn::Xor(lost, product)), hn::Zero(d));
    const auto bits = hn::BitCast(du, product);
    const auto even = hn::AndNot(bits, hn::Set(du, 1));
    const auto up = hn::BitCast(du, hn::Add(bits, even));
    const auto down = hn::BitCast(du, hn::Sub(bits, even));
    const auto odd = hn::IfThenElse(hn::RebindMask(du, away), up, down);
    return hn::BitCast(d, hn::IfThenElse(hn::RebindMask(du, more), odd, bits));
  }
};

// Numbers of up to 24 bits times floats. A float's product is rounded once, as any is; those of
// 16-bit numbers are stored so that they are, too (StoreProduct).
template <class DT>
struct FloatProduct {
  using Tag = DT;
  static HWY_INLINE hn::Vec<DT> Of(hn::Vec<DT> x, hn::Vec<DT> f) { return hn::Mul(x, f); }
};

// +0 where the factor is 0, else the product; that of NaN is NaN. With AVX-512 one instruction does
// both, given the lanes that stay: those are inverted here, because Highway's Ne is false for NaN,
// and compilers do not see through its Not.
template <class DT>
HWY_INLINE hn::Vec<DT> UnlessByZero(DT d, hn::Vec<DT> product, hn::Vec<DT> f) {
  const auto by_zero = hn::Eq(f, hn::Zero(d));
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  using Mask = hn::Mask<DT>;
  using Bits = decltype(Mask::raw);
  return hn::IfThenElseZero(Mask{static_cast<Bits>(~by_zero.raw)}, product);
#else
  return hn::IfThenZeroElse(by_zero, product);
#endif
}

template <class P>
inline constexpr bool kByDoubles = std::is_same_v<Factor<P>, double>;
// Are products of 16-bit numbers taken as Narrow has them?
template <class P, class T>
inline constexpr bool kAsNarrow = std::is_same_v<typename P::Tag, DN> &&Narrow<T>::kInFloats;

template <class P, class T>
HWY_INLINE auto LoadFor(const T *x) {
  if constexpr (kAsNarrow<P, T>) {
    return Narrow<T>::Load(x);
  } else if constexpr (std::is_same_v<T, float> && !kByDoubles<P>) {
    return hn::LoadU(typename P::Tag(), x);
  } else {
    return Load(x);
  }
}

// Rounds the products of floats, which are exact as doubles, once.
template <class T>
HWY_INLINE void StoreByDoubles(V x, VF f, T *y) {
  const V factor = hn::PromoteTo(D(), f);
  Store(UnlessByZero(D(), hn::Mul(x, factor), factor), y);
}

template <class T>
HWY_NOINLINE void StoreRegisterByDoubles(VN x, VN f, T *y) {
  HWY_ALIGN float elements[kNarrow];
  HWY_ALIGN float factors[kNarrow];
  hn::Store(x, DN(), elements);
  hn::Store(f, DN(), factors);
  for (int64_t i = 0; i < kNarrow; i += kN) {
    const V of_x = hn::PromoteTo(D(), hn::Load(DF(), elements + i));
    StoreByDoubles(of_x, hn::Load(DF(), factors + i), y + i);
  }
}

// Bits that are 0 in factors so short that floats hold their products with T, as 0.75 and 16-bit
// numbers are. Those may well be in the middle of two of T, where rounding is not told.
template <class T>
inline constexpr uint32_t kBeyondShort = (uint32_t{1} << (std::is_same_v<T, Bf16> ? 8 : 11)) - 1;

// Are all of a register of factors short?
template <class T>
HWY_INLINE bool AreShort(VN f) {
  const DNBits du;
  const auto beyond = hn::And(hn::BitCast(du, f), hn::Set(du, kBeyondShort<T>));
  return hn::AllTrue(du, hn::Eq(beyond, hn::Zero(du)));
}

// Stores products with such factors, none of them NaN, which are exact unless they are below normal
// floats. What became 0 there is 0 in fewer bits, too.
template <class T>
HWY_INLINE void StoreShortProduct(VN product, VN x, VN f, T *y) {
  const DN d;
  const auto is_tiny = hn::Lt(hn::Abs(product), hn::Set(d, 0x1p-126F));
  const auto may_be_inexact = hn::AndNot(hn::Eq(product, hn::Zero(d)), is_tiny);
  if (HWY_LIKELY(hn::AllFalse(d, may_be_inexact))) return StoreFloats(d, product, y);
  StoreRegisterByDoubles(x, f, y);
}

// `product` of x and f, rounded to floats, rounds on as the exact one does where Narrow tells so. A
// factor's NaN may have bits that rounding would carry away. Whether factors are short is asked
// first, because it is the same of most: what is told is not, and would be guessed wrong.
template <class T>
HWY_INLINE void StoreNarrowProduct(VN product, VN x, VN f, T *y) {
  const bool is_number = hn::AllFalse(DN(), hn::IsNaN(f));
  if (is_number && AreShort<T>(f)) return StoreShortProduct(product, x, f, y);
  if (HWY_LIKELY(is_number && Narrow<T>::StoreTold(product, y))) return;
  StoreRegisterByDoubles(x, f, y);
}

// x * f, but +0 where f is 0.
template <class P, class VX, class VFactor, class T>
HWY_INLINE void StoreProduct(VX x, VFactor f, T *y) {
  const typename P::Tag d;
  if constexpr (!kByDoubles<P> && sizeof(T) < sizeof(float) && !kAsNarrow<P, T>) {
    StoreByDoubles(x, f, y);
  } else {
    const auto product = UnlessByZero(d, P::Of(x, f), f);
    if constexpr (kByDoubles<P>) {
      Store(product, y);
    } else if constexpr (std::is_same_v<T, float>) {
      hn::StoreU(product, d, y);
    } else {
      StoreNarrowProduct(product, x, f, y);
    }
  }
}

// A contiguous row of at least a register, times one factor.
template <class T, class P>
HWY_INLINE void ScaleRun(const T *x, T *y, int64_t n, Factor<P> factor, int64_t soon) {
  const auto f = hn::Set(typename P::Tag(), factor);
  if (n % kLineOf<T> == 0) {
    for (int64_t i = 0; i < n; i += kLineOf<T>) {
      prefetch_far(x + i, soon);
      for (int64_t k = i; k < i + kLineOf<T>; k += kFactors<P>) {
        StoreProduct<P>(LoadFor<P>(x + k), f, y + k);
      }
    }
    return;
  }
  // The last register overlaps the one before, so it is read before anything is written.
  const auto last = LoadFor<P>(x + n - kFactors<P>);
  prefetch_far(x + n - kFactors<P>, soon);
  if (n <= 2 * kFactors<P>) {
    StoreProduct<P>(LoadFor<P>(x), f, y);
    return StoreProduct<P>(last, f, y + n - kFactors<P>);
  }
  for (int64_t i = 0; i + kFactors<P> < n; i += kFactors<P>) {
    prefetch_far(x + i, soon);
    StoreProduct<P>(LoadFor<P>(x + i), f, y + i);
  }
  StoreProduct<P>(last, f, y + n - kFactors<P>);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
