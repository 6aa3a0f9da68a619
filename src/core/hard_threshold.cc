#include "core/hard_threshold.h"

#include "core/norms.h"

namespace spk {
namespace {

// Blocks of one element that are their own values, and whose thresholds are of their type and lie
// in the same order.
bool are_plain_elements(const Grid &grid, const Grid &values, const GridArray &thresholds) {
  return &grid == &values && grid.leaves[0].dtype == thresholds.dtype &&
         lie_alike(grid, thresholds);
}

}  // namespace

void hard_threshold(Call &call, const Grid &grid, const Grid &values, const GridArray &thresholds,
                    Tally *tally) {
  if (are_plain_elements(grid, values, thresholds)) {
    const auto drop = call.kernels().drop_elements[thresholds.dtype == SPK_F64];
    for_each_element_run(call, grid, thresholds,
                         [&](const ElementArgs &args) { tally->achieved += drop(args); });
    return;
  }
  for_each_norms(call, values, 2.0, [&](Scratch &scratch, const Rect &rect, double *norms) {
    const int64_t count = rect.count();
    round_scores(values, count, norms);
    double *threshold = scratch.take<double>(count);
    uint8_t *keep = scratch.take<uint8_t>(count);
    load(call.kernels(), rect, thresholds, threshold);
    tally->achieved += call.kernels().keep_at_least(norms, threshold, count, keep);
    if (values.is_deep()) {
      mask_all(call, grid, keep);
    } else {
      mask_rect(call.kernels(), grid, rect, keep);
    }
  });
}

}  // namespace spk
