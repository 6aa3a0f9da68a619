// From sums to scores: roots, magnitudes, rounding.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/scores.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/convert-inl.h"
#include "kernels/exact_norms-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

template <class Fn>
HWY_INLINE void ForEachRegister(double *values, int64_t n, Fn fn) {
  int64_t i = 0;
  for (; i + kN <= n; i += kN) hn::StoreU(fn(hn::LoadU(D(), values + i)), D(), values + i);
  if (i < n) StoreDoubles(fn(LoadDoubles(values + i, n - i)), values + i, n - i);
}

// Magnitudes from memory to memory.
template <bool kStream, class T>
void Magnitudes(const std::byte *from, int64_t n, std::byte *to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T *x = reinterpret_cast<const T *>(from);
  T *y = reinterpret_cast<T *>(to);
  const int64_t first = kStream ? BeforeVector(y, lanes, n) : 0;
  int64_t i = 0;
  for (; i < first; ++i) y[i] = std::fabs(x[i]);
  for (; i + lanes <= n; i += lanes) {
    if constexpr (kStream) {
      StorePastCaches(hn::Abs(hn::LoadU(d, x + i)), d, y + i);
    } else {
      hn::StoreU(hn::Abs(hn::LoadU(d, x + i)), d, y + i);
    }
  }
  for (; i < n; ++i) y[i] = std::fabs(x[i]);
  if (kStream) hwy::FlushStream();
}

// Fewer than kN.
template <class T>
HWY_INLINE void MagnitudesOfSome(const T *x, int64_t n, float *y) {
  HWY_ALIGN float magnitudes[kN];
  Store(hn::Abs(LoadSome(x, 1, n)), magnitudes);
  std::copy_n(magnitudes, n, y);
}

// The same of 16-bit numbers, as floats.
template <bool kStream, class T>
void MagnitudesAsFloats(const std::byte *from, int64_t n, std::byte *to) {
  const T *x = reinterpret_cast<const T *>(from);
  float *y = reinterpret_cast<float *>(to);
  int64_t i = kStream ? BeforeVector(y, kN, n) : 0;
  if (i > 0) MagnitudesOfSome(x, i, y);
  for (; i + kN <= n; i += kN) {
    const V magnitude = hn::Abs(Load(x + i));
    if constexpr (kStream) {
      StorePastCaches(ToFloat(magnitude), DF(), y + i);
    } else {
      Store(magnitude, y + i);
    }
  }
  if (i < n) MagnitudesOfSome(x + i, n - i, y + i);
  if (kStream) hwy::FlushStream();
}

bool ExactRoots(double *sums, const double *errors, int64_t n) {
  const D d;
  auto inexact = hn::MaskFromVec(hn::Zero(d));
  for (int64_t i = 0; i < n; i += kN) {
    const int64_t count = HWY_MIN(n - i, kN);
    const V roots = ExactRoot(LoadDoubles(sums + i, count), LoadDoubles(errors + i, count));
    const auto inside = hn::FirstN(d, static_cast<size_t>(count));
    inexact = hn::Or(inexact, hn::AndNot(AreExactRoots(roots), inside));
    StoreDoubles(roots, sums + i, count);
  }
  return hn::AllFalse(d, inexact);
}

void Roots(double *values, int64_t n) {
  ForEachRegister(values, n, [](V v) { return hn::Sqrt(v); });
}

void RoundToFloat(double *values, int64_t n) {
  ForEachRegister(values, n, [](V v) { return hn::PromoteTo(D(), ToFloat(v)); });
}

void FillScores(Kernels *table) {
  table->magnitudes[kF32][0] = Magnitudes<false, float>;
  table->magnitudes[kF32][1] = Magnitudes<true, float>;
  table->magnitudes[kF64][0] = Magnitudes<false, double>;
  table->magnitudes[kF64][1] = Magnitudes<true, double>;
  table->magnitudes[kF16][0] = MagnitudesAsFloats<false, F16>;
  table->magnitudes[kF16][1] = MagnitudesAsFloats<true, F16>;
  table->magnitudes[kBf16][0] = MagnitudesAsFloats<false, Bf16>;
  table->magnitudes[kBf16][1] = MagnitudesAsFloats<true, Bf16>;
  table->exact_roots = ExactRoots;
  table->roots = Roots;
  table->round_to_float = RoundToFloat;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillScores);
void fill_scores(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillScores)(table);
}
}  // namespace spk
#endif
