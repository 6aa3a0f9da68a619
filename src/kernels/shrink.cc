// Hard and soft thresholding: what blocks of given norms are multiplied by, or whether they stay.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/shrink.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/shrink-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

int64_t Shrink(const double *norms, int64_t n, double threshold_scale, double eps,
               double *factors) {
  const D d;
  const V scale = hn::Set(d, threshold_scale);
  const V veps = hn::Set(d, eps);
  int64_t alive = 0;
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    const V threshold = hn::Mul(hn::LoadU(d, factors + i), scale);
    const V factor = ShrinkFactor(hn::LoadU(d, norms + i), threshold, veps);
    alive += CountAlive(factor);
    hn::StoreU(factor, d, factors + i);
  }
  if (i == n) return alive;
  HWY_ALIGN double norm[kN] = {};
  HWY_ALIGN double factor[kN] = {};
  for (int64_t k = i; k < n; ++k) norm[k - i] = norms[k];
  for (int64_t k = i; k < n; ++k) factor[k - i] = factors[k];
  const V threshold = hn::Mul(hn::Load(d, factor), scale);
  hn::Store(ShrinkFactor(hn::Load(d, norm), threshold, veps), d, factor);
  for (int64_t k = i; k < n; ++k) {
    factors[k] = factor[k - i];
    alive += factors[k] != 0.0;
  }
  return alive;
}

int64_t KeepAtLeast(const double *norms, const double *thresholds, int64_t n, uint8_t *keep) {
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    keep[i] = !(norms[i] < thresholds[i]);  // NaN survives
    kept += keep[i];
  }
  return kept;
}

void KeepBytes(const uint8_t *mask, int64_t n, uint8_t *keep) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Min(hn::LoadU(d, mask + i), one), d, keep + i);
  }
  for (; i < n; ++i) keep[i] = mask[i] != 0;
}

// Reads a line at several places in turn: memory gives more to several streams than to one.
template <class T>
bool AllAtLeast(const void *numbers, int64_t n, double least) {
  constexpr int64_t kPlaces = 4;
  constexpr int64_t kLine = kLineOf<T>;
  const hn::CappedTag<T, kLine> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto *number = static_cast<const T *>(numbers);
  const auto limit = hn::Set(d, static_cast<T>(least));
  auto refused = hn::MaskFromVec(hn::Zero(d));  // without a branch: they may be as many as weights
  const auto check = [&](int64_t at) HWY_ATTR {
    refused = hn::Or(refused, hn::Not(hn::Ge(hn::LoadU(d, number + at), limit)));
  };
  const int64_t at_place = n / (kPlaces * kLine) * kLine;
  for (int64_t line = 0; line < at_place; line += kLine) {
    for (int64_t at = line; at < kPlaces * at_place; at += at_place) {
      for (int64_t k = 0; k < kLine; k += lanes) check(at + k);
    }
  }
  int64_t i = kPlaces * at_place;
  for (; i + lanes <= n; i += lanes) check(i);
  bool rest = false;
  for (; i < n; ++i) rest |= !(number[i] >= static_cast<T>(least));
  return hn::AllFalse(d, refused) && !rest;
}

void FillShrink(Kernels *table) {
  table->shrink = Shrink;
  table->keep_at_least = KeepAtLeast;
  table->keep_bytes = KeepBytes;
  table->all_at_least[0] = AllAtLeast<float>;
  table->all_at_least[1] = AllAtLeast<double>;
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
