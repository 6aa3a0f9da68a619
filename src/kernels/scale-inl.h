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
#include "kernels/rows-inl.h"

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

// Floats times floats: rounded once, as any product is.
template <class DT>
struct FloatProduct {
  using Tag = DT;
  static HWY_INLINE hn::Vec<DT> Of(hn::Vec<DT> x, hn::Vec<DT> f) { return hn::Mul(x, f); }
};

// Elements for a product, and products of elements.
template <class P, class T>
HWY_INLINE auto LoadFor(const T *x) {
  if constexpr (std::is_same_v<Factor<P>, double>) {
    return Load(x);
  } else {
    return hn::LoadU(typename P::Tag(), x);
  }
}
template <class P, class VT, class T>
HWY_INLINE void StoreFor(VT product, T *y) {
  if constexpr (std::is_same_v<Factor<P>, double>) {
    Store(product, y);
  } else {
    hn::StoreU(product, typename P::Tag(), y);
  }
}

// A contiguous row of at least a register, times one factor.
template <class T, class P>
HWY_INLINE void ScaleRun(const T *x, T *y, int64_t n, Factor<P> factor, int64_t ahead) {
  const typename P::Tag d;
  const auto f = hn::Set(d, factor);
  const auto alive = hn::Not(hn::Eq(f, hn::Zero(d)));
  const auto scaled = [&](const T *from) HWY_ATTR {
    return hn::IfThenElseZero(alive, P::Of(LoadFor<P>(from), f));
  };
  if (n % kLineOf<T> == 0) {
    for (int64_t i = 0; i < n; i += kLineOf<T>) {
      PrefetchAhead(x + i, ahead);
      for (int64_t k = i; k < i + kLineOf<T>; k += kFactors<P>) StoreFor<P>(scaled(x + k), y + k);
    }
    return;
  }
  // The last register overlaps the one before, so it is read before anything is written.
  const auto last = scaled(x + n - kFactors<P>);
  PrefetchAhead(x + n - kFactors<P>, ahead);
  if (n <= 2 * kFactors<P>) {
    StoreFor<P>(scaled(x), y);
    return StoreFor<P>(last, y + n - kFactors<P>);
  }
  for (int64_t i = 0; i + kFactors<P> < n; i += kFactors<P>) {
    PrefetchAhead(x + i, ahead);
    StoreFor<P>(scaled(x + i), y + i);
  }
  StoreFor<P>(last, y + n - kFactors<P>);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
