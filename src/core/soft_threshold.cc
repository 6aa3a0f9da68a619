#include "core/soft_threshold.h"

#include <cmath>

#include "core/norms.h"

namespace spk {
namespace {

// What a block of this norm is multiplied by.
double shrinkage(double norm, double threshold, double eps) {
  if (std::isnan(norm)) return 1.0;
  if (norm <= threshold) return 0.0;
  if (std::isinf(norm)) return 1.0;
  const double denominator = norm + eps;
  // (d - t) / d rather than 1 - t / d: exact where the two nearly cancel.
  return (denominator - threshold) / denominator;
}

}  // namespace

void soft_threshold(Call &call, const Grid &grid, const GridArray &thresholds,
                    const SoftOptions &options, Tally *tally) {
  for_each_norms(call, grid, 2.0, [&](Scratch &scratch, const Rect &rect, double *norms) {
    const int64_t count = rect.count();
    double *factor = scratch.take<double>(count);
    load(call.kernels(), rect, thresholds, factor);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
      factor[i] = shrinkage(norms[i], factor[i] * options.threshold_scale, options.eps);
      kept += factor[i] != 0.0;
    }
    tally->achieved += kept;
    if (grid.is_large()) {
      scale_large(call, grid, factor);
    } else {
      scale_rect(call.kernels(), grid, rect, factor);
    }
  });
}

}  // namespace spk
