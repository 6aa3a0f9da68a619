// Rows of any float dtype to doubles and back.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert.cc"
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
void ToDouble(const std::byte *from, int64_t n, int64_t step, double *out, int64_t out_step) {
  const T *x = reinterpret_cast<const T *>(from);
  int64_t i = 0;
  if (step == 1 && out_step == 1) {
    for (; i + kN <= n; i += kN) hn::StoreU(Load(x + i), D(), out + i);
  }
  for (; i < n; i += kN) {
    const int64_t left = HWY_MIN(n - i, kN);
    HWY_ALIGN T in[kN] = {};
    HWY_ALIGN double values[kN];
    for (int64_t k = 0; k < left; ++k) in[k] = x[(i + k) * step];
    hn::Store(Load(in), D(), values);
    for (int64_t k = 0; k < left; ++k) out[(i + k) * out_step] = values[k];
  }
}

template <class T>
void FromDouble(const double *in, int64_t n, int64_t in_step, std::byte *to, int64_t step) {
  T *y = reinterpret_cast<T *>(to);
  int64_t i = 0;
  if (step == 1 && in_step == 1) {
    for (; i + kN <= n; i += kN) Store(hn::LoadU(D(), in + i), y + i);
  }
  for (; i < n; i += kN) {
    const int64_t left = HWY_MIN(n - i, kN);
    HWY_ALIGN double values[kN] = {};
    HWY_ALIGN T out[kN];
    for (int64_t k = 0; k < left; ++k) values[k] = in[(i + k) * in_step];
    Store(hn::Load(D(), values), out);
    for (int64_t k = 0; k < left; ++k) y[(i + k) * step] = out[k];
  }
}

void FillConvert(Kernels *table) {
  table->to_double[kF32] = ToDouble<float>;
  table->to_double[kF64] = ToDouble<double>;
  table->to_double[kF16] = ToDouble<F16>;
  table->to_double[kBf16] = ToDouble<Bf16>;
  table->from_double[kF32] = FromDouble<float>;
  table->from_double[kF64] = FromDouble<double>;
  table->from_double[kF16] = FromDouble<F16>;
  table->from_double[kBf16] = FromDouble<Bf16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillConvert);
void fill_convert(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillConvert)(table);
}
}  // namespace spk
#endif
