// Multipliers and masks: rows of elements times factors, rounded once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/scale.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

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

// One factor for the whole row.
template <class T>
HWY_INLINE void ScaleRow(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                         double factor) {
  if (factor == 1.0) return CopyRow(x, x_step, y, y_step, n);
  if (factor == 0.0) return ZeroRow(y, y_step, n);
  const V f = hn::Set(D(), factor);
  int64_t i = 0;
  if (x_step == 1 && y_step == 1) {
    for (; i + kN <= n; i += kN) Store(hn::Mul(Load(x + i), f), y + i);
  }
  for (; i < n; i += kN) {
    const int64_t left = HWY_MIN(n - i, kN);
    HWY_ALIGN T in[kN] = {};
    HWY_ALIGN T out[kN];
    for (int64_t k = 0; k < left; ++k) in[k] = x[(i + k) * x_step];
    Store(hn::Mul(Load(in), f), out);
    for (int64_t k = 0; k < left; ++k) y[(i + k) * y_step] = out[k];
  }
}

// A factor for each element of the row.
template <class T>
HWY_INLINE void ScaleElements(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                              const double *factor, int64_t factor_step) {
  for (int64_t i = 0; i < n; i += kN) {
    const int64_t left = HWY_MIN(n - i, kN);
    HWY_ALIGN T in[kN] = {};
    HWY_ALIGN double f[kN] = {};
    HWY_ALIGN T out[kN];
    for (int64_t k = 0; k < left; ++k) in[k] = x[(i + k) * x_step];
    for (int64_t k = 0; k < left; ++k) f[k] = factor[(i + k) * factor_step];
    Store(hn::Mul(Load(in), hn::Load(D(), f)), out);
    for (int64_t k = 0; k < left; ++k) {
      const T kept = f[k] == 1.0 ? in[k] : out[k];
      y[(i + k) * y_step] = f[k] == 0.0 ? T{} : kept;
    }
  }
}

template <class T>
HWY_NOINLINE void Scale(const ScaleArgs &args) {
  const auto *factors = static_cast<const double *>(args.factor);
  for (int64_t row = 0; row < args.rows; ++row) {
    const T *x = reinterpret_cast<const T *>(args.x + row * args.x_row);
    T *y = reinterpret_cast<T *>(args.y + row * args.y_row);
    const double *factor = factors + row * args.factor_row;
    if (args.factor_step == 0) {
      ScaleRow(x, args.x_step, y, args.y_step, args.n, *factor);
    } else {
      ScaleElements(x, args.x_step, y, args.y_step, args.n, factor, args.factor_step);
    }
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
