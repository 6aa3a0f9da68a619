// Rows of 16-bit numbers times one factor each, in floats.
#if defined(SPK_KERNELS_SCALE_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_SCALE_NARROW_INL_H_
#undef SPK_KERNELS_SCALE_NARROW_INL_H_
#else
#define SPK_KERNELS_SCALE_NARROW_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/rows-inl.h"
#include "kernels/scale-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// 16-bit numbers are multiplied as floats, twice as many at once, where that gives the same bits: a
// number times a factor f = high + low, where `high` is f cut short enough for its product to be
// exact. The sum of both products, whose low one is off by less than 2^-35 of it, is then good to the
// last bit of a float and rounds as the exact one does, unless it lies in the middle of two 16-bit
// numbers.
//
// `kCut` bits of a float have no room in the 16; below `kLeast` more have none, or products of low
// parts leave the range of normal floats.
template <class T>
struct Narrow {
  static constexpr bool kInFloats = false;
};
using DN = hn::ScalableTag<float>;
using VN = hn::Vec<DN>;
using DNBits = hn::RebindToUnsigned<DN>;
inline constexpr int64_t kNarrow = static_cast<int64_t>(hn::MaxLanes(DN()));

template <>
struct Narrow<Bf16> {
  static constexpr bool kInFloats = true;
  static constexpr int kCut = 16;
  static constexpr uint32_t kLeast = 27u << 23;  // 2^-100
  static constexpr bool kCutsNan = true;         // as every conversion to bf16 does

  static HWY_INLINE VN Load(const Bf16 *p) {
    const auto words = hn::LoadU(hn::Rebind<uint16_t, DN>(), reinterpret_cast<const uint16_t *>(p));
    return hn::BitCast(DN(), hn::ShiftLeft<16>(hn::PromoteTo(DNBits(), words)));
  }
  // Of numbers that are not in the middle of two.
  static HWY_INLINE void Store(VN v, Bf16 *p) {
    const DNBits du;
    const hn::Rebind<uint16_t, DN> d16;
    const auto upper = hn::ShiftRight<16>(hn::Add(hn::BitCast(du, v), hn::Set(du, 0x8000u)));
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<DN>(), upper)), d16,
               reinterpret_cast<uint16_t *>(p));
  }
};

#if SPK_NATIVE_F16
template <>
struct Narrow<F16> {
  static constexpr bool kInFloats = true;
  static constexpr int kCut = 13;
  static constexpr uint32_t kLeast = 113u << 23;  // 2^-14
  static constexpr bool kCutsNan = false;         // all become the same one
  using D16 = hn::Rebind<hwy::float16_t, DN>;

  static HWY_INLINE VN Load(const F16 *p) {
    return hn::PromoteTo(DN(), hn::LoadU(D16(), reinterpret_cast<const hwy::float16_t *>(p)));
  }
  static HWY_INLINE void Store(VN v, F16 *p) {
    hn::StoreU(hn::DemoteTo(D16(), v), D16(), reinterpret_cast<hwy::float16_t *>(p));
  }
};
#endif

// A factor for 16-bit numbers.
template <class T>
struct NarrowFactor {
  float high, low;
  uint32_t alive;  // all bits, or none if the factor is 0
  bool is_usual;   // 0, or not 1 and of normal floats, whose products mostly are normal, too

  NarrowFactor() = default;
  explicit HWY_INLINE NarrowFactor(double factor) {
    constexpr uint64_t kHighPart = ~((uint64_t{1} << (53 - Narrow<T>::kCut)) - 1);
    uint64_t bits = 0;
    std::memcpy(&bits, &factor, sizeof bits);
    bits &= kHighPart;
    double cut = 0.0;
    std::memcpy(&cut, &bits, sizeof cut);
    high = static_cast<float>(cut);
    // Never 0, because an infinity times it would be no number; too small to matter.
    low = static_cast<float>((factor - cut) + factor * 0x1p-60);
    alive = factor == 0.0 ? 0u : ~0u;
    const double magnitude = std::fabs(factor);
    const bool in_range = magnitude >= 0x1p-60 && magnitude <= 0x1p60;
    is_usual = (in_range && factor != 1.0) || factor == 0.0;
  }

  HWY_INLINE VN Times(VN x) const {
    const DN d;
    const VN product = hn::Add(hn::Mul(x, hn::Set(d, high)), hn::Mul(x, hn::Set(d, low)));
    return hn::And(hn::BitCast(d, hn::Set(DNBits(), alive)), product);
  }
};

// Do all of these products round to the numbers that the exact ones round to?
template <class T>
HWY_INLINE bool RoundAsExact(VN a, VN b) {
  constexpr uint32_t kHalf = 1u << (Narrow<T>::kCut - 1);
  const DNBits du;
  const auto half = hn::Set(du, kHalf);
  const auto cut = hn::Set(du, 2 * kHalf - 1);
  const auto from_middle = [&](VN v)
                               HWY_ATTR { return hn::And(hn::Xor(hn::BitCast(du, v), half), cut); };
  const auto middle = hn::Eq(hn::Min(from_middle(a), from_middle(b)), hn::Zero(du));
  // 0 becomes the largest.
  const auto one = hn::Set(du, 1);
  const auto less_one = [&](VN v) HWY_ATTR { return hn::Sub(hn::BitCast(du, hn::Abs(v)), one); };
  const auto small = hn::Lt(hn::Min(less_one(a), less_one(b)), hn::Set(du, Narrow<T>::kLeast - 1));
  if constexpr (Narrow<T>::kCutsNan) return hn::AllFalse(du, hn::Or(middle, small));
  // Opposite infinities look the same, and are then merely scaled the other way.
  const auto nan = hn::RebindMask(du, hn::IsNaN(hn::Add(a, b)));
  return hn::AllFalse(du, hn::Or(nan, hn::Or(middle, small)));
}

// A contiguous row of at least kNarrow elements, times a usual factor. The last register overlaps
// the one before, so it is read before anything is written.
template <class T, class P>
HWY_INLINE void ScaleNarrowRow(const T *x, T *y, int64_t n, const NarrowFactor<T> &f, double factor,
                               int64_t ahead) {
  using N = Narrow<T>;
  const VN first = f.Times(N::Load(x));
  const VN last = n == kNarrow ? first : f.Times(N::Load(x + n - kNarrow));
  PrefetchAhead(x + n - kNarrow, ahead);
  if (HWY_UNLIKELY(!RoundAsExact<T>(first, last))) return ScaleRun<T, P>(x, y, n, factor, 0);
  N::Store(first, y);
  for (int64_t i = kNarrow; i + kNarrow < n; i += 2 * kNarrow) {
    const bool two = i + 2 * kNarrow < n;
    PrefetchAhead(x + i, ahead);
    const VN a = f.Times(N::Load(x + i));
    const VN b = two ? f.Times(N::Load(x + i + kNarrow)) : a;
    if (HWY_LIKELY(RoundAsExact<T>(a, b))) {
      N::Store(a, y + i);
      if (two) N::Store(b, y + i + kNarrow);
    } else {
      ScaleRun<T, P>(x + i, y + i, two ? 2 * kNarrow : kNarrow, factor, 0);
    }
  }
  N::Store(last, y + n - kNarrow);
}

// A short row of 16-bit numbers, of at least kNarrow.
template <class T, class P>
HWY_INLINE void ScaleShortRow(const T *x, T *y, int64_t n, const NarrowFactor<T> &narrow,
                              double factor, int64_t ahead) {
  if (HWY_LIKELY(narrow.is_usual)) return ScaleNarrowRow<T, P>(x, y, n, narrow, factor, ahead);
  if (factor == 1.0) return CopyRow(x, 1, y, 1, n);
  ScaleRun<T, P>(x, y, n, factor, ahead);
}

// Two rows of a register each.
template <class T, class P>
HWY_INLINE void ScaleTwoRegisters(const std::byte *x, std::byte *y, const ScaleArgs &args,
                                  const NarrowFactor<T> *narrow, const double *factor) {
  using N = Narrow<T>;
  const T *x0 = reinterpret_cast<const T *>(x);
  const T *x1 = reinterpret_cast<const T *>(x + args.x_row);
  T *y0 = reinterpret_cast<T *>(y);
  T *y1 = reinterpret_cast<T *>(y + args.y_row);
  PrefetchAhead(x0, args.ahead);
  PrefetchAhead(x1, args.ahead);
  const VN a = narrow[0].Times(N::Load(x0));
  const VN b = narrow[1].Times(N::Load(x1));
  const bool usual = narrow[0].is_usual && narrow[1].is_usual;
  if (HWY_LIKELY(usual && RoundAsExact<T>(a, b))) {
    N::Store(a, y0);
    N::Store(b, y1);
    return;
  }
  ScaleShortRow<T, P>(x0, y0, kNarrow, narrow[0], factor[0], 0);
  ScaleShortRow<T, P>(x1, y1, kNarrow, narrow[1], factor[args.factor_row], 0);
}

// Short rows of 16-bit numbers: their factors are prepared once for all groups that share them.
template <class T, class P>
HWY_NOINLINE void ScaleNarrowRows(const ScaleArgs &given) {
  const ScaleArgs args = given;  // a copy that no store can change, as far as compilers know
  constexpr int64_t kAtOnce = 64;
  NarrowFactor<T> narrow[kAtOnce];
  for (int64_t begin = 0; begin < args.rows; begin += kAtOnce) {
    const int64_t count = HWY_MIN(args.rows - begin, kAtOnce);
    for (int64_t group = 0; group < args.groups; ++group) {
      const double *factor = static_cast<const double *>(args.factor) + group * args.factor_group +
                             begin * args.factor_row;
      if (group == 0 || args.factor_group != 0) {
        for (int64_t r = 0; r < count; ++r) {
          narrow[r] = NarrowFactor<T>(factor[r * args.factor_row]);
        }
      }
      const std::byte *x = args.x + group * args.x_group + begin * args.x_row;
      std::byte *y = args.y + group * args.y_group + begin * args.y_row;
      int64_t r = 0;
      if (args.n == kNarrow) {
        for (; r + 2 <= count; r += 2) {
          ScaleTwoRegisters<T, P>(x + r * args.x_row, y + r * args.y_row, args, narrow + r,
                                  factor + r * args.factor_row);
        }
      }
      for (; r < count; ++r) {
        ScaleShortRow<T, P>(reinterpret_cast<const T *>(x + r * args.x_row),
                            reinterpret_cast<T *>(y + r * args.y_row), args.n, narrow[r],
                            factor[r * args.factor_row], args.ahead);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
