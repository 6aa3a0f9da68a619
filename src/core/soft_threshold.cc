#include "core/soft_threshold.h"

#include <algorithm>

#include "core/norms.h"

namespace spk {
void soft_threshold(Call &call, const Grid &grid, const GridArray &thresholds,
                    const SoftOptions &options, Tally *tally) {
  for_each_norms(call, grid, 2.0, [&](Scratch &scratch, const Rect &rect, double *norms) {
    const int64_t count = rect.count();
    double *factor = scratch.take<double>(count);
    load(call.kernels(), rect, thresholds, factor);
    call.kernels().shrink(norms, count, options.threshold_scale, options.eps, factor);
    tally->achieved += count - std::count(factor, factor + count, 0.0);
    if (grid.is_large()) {
      scale_large(call, grid, factor);
    } else {
      scale_rect(call.kernels(), grid, rect, factor);
    }
  });
}

}  // namespace spk
