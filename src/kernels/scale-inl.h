// Products of elements and factors, and rows of a register or more times one factor.
#if defined(SPK_KERNELS_SCALE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_SCALE_INL_H_
#undef SPK_KERNELS_SCALE_INL_H_
#else
#define SPK_KERNELS_SCALE_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/convert-inl.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// x * f as a double.
struct Product {
  static HWY_INLINE V Of(V x, V f) { return hn::Mul(x, f); }
};

// x * f rounded to odd, which a later rounding to fewer bits cannot tell from the exact product.
// For x of at most 24 bits: the low half of Dekker's product tells whether the double is inexact.
struct ExactProduct {
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

// A contiguous row of at least kN elements, times one factor.
template <class T, class P>
HWY_INLINE void ScaleRun(const T *x, T *y, int64_t n, double factor, int64_t ahead) {
  const D d;
  const V f = hn::Set(d, factor);
  const M alive = hn::Not(hn::Eq(f, hn::Zero(d)));
  const auto scaled = [&](const T *from)
                          HWY_ATTR { return hn::IfThenElseZero(alive, P::Of(Load(from), f)); };
  if (n % kLineOf<T> == 0) {
    for (int64_t i = 0; i < n; i += kLineOf<T>) {
      PrefetchAhead(x + i, ahead);
      for (int64_t k = i; k < i + kLineOf<T>; k += kN) Store(scaled(x + k), y + k);
    }
    return;
  }
  // The last register overlaps the one before, so it is read before anything is written.
  const V last = scaled(x + n - kN);
  PrefetchAhead(x + n - kN, ahead);
  if (n <= 2 * kN) {
    Store(scaled(x), y);
    return Store(last, y + n - kN);
  }
  for (int64_t i = 0; i + kN < n; i += kN) {
    PrefetchAhead(x + i, ahead);
    Store(scaled(x + i), y + i);
  }
  Store(last, y + n - kN);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
