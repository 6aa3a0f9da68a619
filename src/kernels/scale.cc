// Multipliers and masks: rows of elements times factors, rounded once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/scale.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <cstring>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

template <class T>
HWY_INLINE void CopyRow(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n) {
  if (x == y && x_step == y_step) return;
  for (int64_t i = 0; i < n; ++i) y[i * y_step] = x[i * x_step];
}

template <class T>
HWY_INLINE void ZeroRow(T *y, int64_t y_step, int64_t n) {
  if (y_step == 1) {
    std::memset(y, 0, static_cast<size_t>(n) * sizeof(T));
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * y_step] = T{};
  }
}

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

// One factor for the whole row.
template <class T, class P>
HWY_INLINE void ScaleRow(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                         double factor) {
  if (factor == 1.0) return CopyRow(x, x_step, y, y_step, n);
  if (factor == 0.0) return ZeroRow(y, y_step, n);
  const V f = hn::Set(D(), factor);
  int64_t i = 0;
  if (x_step == 1 && y_step == 1) {
    for (; i + kN <= n; i += kN) Store(P::Of(Load(x + i), f), y + i);
  }
  for (; i < n; i += kN) {
    const int64_t left = HWY_MIN(n - i, kN);
    HWY_ALIGN T in[kN] = {};
    HWY_ALIGN T out[kN];
    for (int64_t k = 0; k < left; ++k) in[k] = x[(i + k) * x_step];
    Store(P::Of(Load(in), f), out);
    for (int64_t k = 0; k < left; ++k) y[(i + k) * y_step] = out[k];
  }
}

// A factor for each element of a contiguous row. Factor 1 is exact for all but NaN, whose bits it
// must keep; returns how far it came, which is up to the first NaN or the tail.
template <class T, class P>
HWY_INLINE int64_t ScaleContiguous(const T *x, T *y, int64_t n, const double *factor) {
  const V zero = hn::Zero(D());
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    const V in = Load(x + i);
    const V f = hn::LoadU(D(), factor + i);
    if (!hn::AllFalse(D(), hn::IsNaN(in))) break;
    Store(hn::IfThenZeroElse(hn::Eq(f, zero), P::Of(in, f)), y + i);
  }
  return i;
}

// A factor for each element of the row.
template <class T, class P>
HWY_INLINE void ScaleElements(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                              const double *factor, int64_t factor_step) {
  const bool contiguous = x_step == 1 && y_step == 1 && factor_step == 1;
  for (int64_t i = 0; i < n; i += kN) {
    if (contiguous) i += ScaleContiguous<T, P>(x + i, y + i, n - i, factor + i);
    const int64_t left = HWY_MIN(n - i, kN);
    HWY_ALIGN T in[kN] = {};
    HWY_ALIGN double f[kN] = {};
    HWY_ALIGN T out[kN];
    for (int64_t k = 0; k < left; ++k) in[k] = x[(i + k) * x_step];
    for (int64_t k = 0; k < left; ++k) f[k] = factor[(i + k) * factor_step];
    Store(P::Of(Load(in), hn::Load(D(), f)), out);
    for (int64_t k = 0; k < left; ++k) {
      const T kept = f[k] == 1.0 ? in[k] : out[k];
      y[(i + k) * y_step] = f[k] == 0.0 ? T{} : kept;
    }
  }
}

template <class T, class P>
HWY_NOINLINE void ScaleRows(const ScaleArgs &args) {
  const auto *factors = static_cast<const double *>(args.factor);
  for (int64_t row = 0; row < args.rows; ++row) {
    const T *x = reinterpret_cast<const T *>(args.x + row * args.x_row);
    T *y = reinterpret_cast<T *>(args.y + row * args.y_row);
    const double *factor = factors + row * args.factor_row;
    if (args.factor_step == 0) {
      ScaleRow<T, P>(x, args.x_step, y, args.y_step, args.n, *factor);
    } else {
      ScaleElements<T, P>(x, args.x_step, y, args.y_step, args.n, factor, args.factor_step);
    }
  }
}

template <class T>
void Scale(const ScaleArgs &args) {
  // The product of doubles is rounded once as it is.
  if (args.exact_product && sizeof(T) < sizeof(double)) {
    ScaleRows<T, ExactProduct>(args);
  } else {
    ScaleRows<T, Product>(args);
  }
}

template <class T>
HWY_NOINLINE void Mask(const ScaleArgs &args) {
  const auto *keeps = static_cast<const uint8_t *>(args.factor);
  for (int64_t row = 0; row < args.rows; ++row) {
    const T *x = reinterpret_cast<const T *>(args.x + row * args.x_row);
    T *y = reinterpret_cast<T *>(args.y + row * args.y_row);
    const uint8_t *keep = keeps + row * args.factor_row;
    if (args.factor_step == 0) {
      if (*keep) {
        CopyRow(x, args.x_step, y, args.y_step, args.n);
      } else {
        ZeroRow(y, args.y_step, args.n);
      }
    } else if (args.x_step == 1 && args.y_step == 1 && args.factor_step == 1) {
      for (int64_t i = 0; i < args.n; ++i) y[i] = keep[i] ? x[i] : T{};
    } else {
      for (int64_t i = 0; i < args.n; ++i) {
        y[i * args.y_step] = keep[i * args.factor_step] ? x[i * args.x_step] : T{};
      }
    }
  }
}

void FillScale(Kernels *table) {
  table->scale[kF32] = Scale<float>;
  table->scale[kF64] = Scale<double>;
  table->scale[kF16] = Scale<F16>;
  table->scale[kBf16] = Scale<Bf16>;
  // A mask moves words, whatever they mean.
  table->mask[kF32] = Mask<uint32_t>;
  table->mask[kF64] = Mask<uint64_t>;
  table->mask[kF16] = table->mask[kBf16] = Mask<uint16_t>;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillScale);
void fill_scale(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillScale)(table);
}
}  // namespace spk
#endif
