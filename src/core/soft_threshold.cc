#include "core/soft_threshold.h"

#include "core/norms.h"

namespace spk {
namespace {

// Blocks of one element, where weights and thresholds lie in the same order.
void soft_threshold_elements(Call &call, const Grid &grid, const GridArray &thresholds,
                             const SoftOptions &options, Tally *tally) {
  const auto shrink =
      call.kernels()
          .shrink_elements[index_of_dtype(grid.leaves[0].dtype)][thresholds.dtype == SPK_F64];
  for_each_element_run(call, grid, thresholds, [&](const ElementArgs &args) {
    tally->achieved += shrink(args, options.threshold_scale, options.eps);
  });
}

}  // namespace

void soft_threshold(Call &call, const Grid &grid, const GridArray &thresholds,
                    const SoftOptions &options, Tally *tally) {
  if (lie_alike(grid, thresholds)) {
    return soft_threshold_elements(call, grid, thresholds, options, tally);
  }
  for_each_norms(call, grid, 2.0, [&](Scratch &scratch, const Rect &rect, double *norms) {
    const int64_t count = rect.count();
    double *factor = scratch.take<double>(count);
    load(call.kernels(), rect, thresholds, factor);
    tally->achieved +=
        call.kernels().shrink(norms, count, options.threshold_scale, options.eps, factor);
    if (grid.is_deep()) {
      scale_all(call, grid, factor);
    } else {
      scale_rect(call.kernels(), grid, rect, factor);
    }
  });
}

}  // namespace spk
