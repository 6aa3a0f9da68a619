// Factors of Euclidean soft thresholding, from norms and thresholds.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/shrink.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// (d - t) / d for d = norm + eps, rather than 1 - t / d: exact where the two nearly cancel. Halved
// where d overflows. 0 for a norm of at most t; 1 for an infinite or NaN norm.
HWY_INLINE V ShrinkFactor(V norm, V threshold, V eps) {
  const D d;
  const V one = hn::Set(d, 1.0);
  const V sum = hn::Add(norm, eps);
  const V half = hn::Set(d, 0.5);
  const auto overflows = hn::Eq(sum, hn::Inf(d));
  const V halves = hn::Add(hn::Mul(norm, half), hn::Mul(eps, half));
  const V denominator = hn::IfThenElse(overflows, halves, sum);
  const V limit = hn::IfThenElse(overflows, hn::Mul(threshold, half), threshold);
  const V factor = hn::Div(hn::Sub(denominator, limit), denominator);
  const auto finite = hn::Lt(norm, hn::Inf(d));  // false for NaN
  const V kept = hn::IfThenElse(finite, factor, one);
  return hn::IfThenZeroElse(hn::Le(norm, threshold), kept);
}

void Shrink(const double *norms, int64_t n, double threshold_scale, double eps, double *factors) {
  const D d;
  const V scale = hn::Set(d, threshold_scale);
  const V veps = hn::Set(d, eps);
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    const V threshold = hn::Mul(hn::LoadU(d, factors + i), scale);
    hn::StoreU(ShrinkFactor(hn::LoadU(d, norms + i), threshold, veps), d, factors + i);
  }
  if (i == n) return;
  HWY_ALIGN double norm[kN] = {};
  HWY_ALIGN double factor[kN] = {};
  for (int64_t k = i; k < n; ++k) norm[k - i] = norms[k];
  for (int64_t k = i; k < n; ++k) factor[k - i] = factors[k];
  const V threshold = hn::Mul(hn::Load(d, factor), scale);
  hn::Store(ShrinkFactor(hn::Load(d, norm), threshold, veps), d, factor);
  for (int64_t k = i; k < n; ++k) factors[k] = factor[k - i];
}

void FillShrink(Kernels *table) {
  table->shrink = Shrink;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillShrink);
void fill_shrink(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillShrink)(table);
}
}  // namespace spk
#endif
