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
  ReadRow(reinterpret_cast<const T *>(from), n, step, out, out_step);
}

template <class T>
void ToFloats(const std::byte *from, int64_t n, int64_t step, float *out) {
  ReadRow(reinterpret_cast<const T *>(from), n, step, out, 1);
}

template <class T>
HWY_INLINE auto Rounded(V v) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return ToFloat(v);
  } else {
    return v;
  }
}

template <class T>
void FromDouble(const double *in, int64_t n, int64_t in_step, std::byte *to, int64_t step) {
  WriteRow(in, n, in_step, reinterpret_cast<T *>(to), step);
}

// Contiguous numbers, past the caches.
template <class T>
void StreamDoubles(const double *in, int64_t n, std::byte *to) {
  using DT = hn::Rebind<T, D>;
  T *y = reinterpret_cast<T *>(to);
  int64_t i = BeforeVector(y, kN, n);
  WriteRow(in, i, 1, y, 1);
  for (; i + kN <= n; i += kN) {
    StorePastCaches(Rounded<T>(hn::LoadU(D(), in + i)), DT(), y + i);
  }
  WriteRow(in + i, n - i, 1, y + i, 1);
  hwy::FlushStream();
}

void FillConvert(Kernels *table) {
  table->to_double[kF32] = ToDouble<float>;
  table->to_double[kF64] = ToDouble<double>;
  table->to_double[kF16] = ToDouble<F16>;
  table->to_double[kBf16] = ToDouble<Bf16>;
  table->to_float[kF32] = ToFloats<float>;
  table->to_float[kF16] = ToFloats<F16>;
  table->to_float[kBf16] = ToFloats<Bf16>;
  table->from_double[kF32] = FromDouble<float>;
  table->from_double[kF64] = FromDouble<double>;
  table->from_double[kF16] = FromDouble<F16>;
  table->from_double[kBf16] = FromDouble<Bf16>;
  table->stream_doubles[0] = StreamDoubles<float>;
  table->stream_doubles[1] = StreamDoubles<double>;
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
