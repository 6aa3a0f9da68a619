#include "core/hard_threshold.h"

#include "core/norms.h"

namespace spk {

void hard_threshold(Call &call, const Grid &grid, const Grid &values, const GridArray &thresholds,
                    Tally *tally) {
  for_each_norms(call, values, 2.0, [&](Scratch &scratch, const Rect &rect, double *norms) {
    const int64_t count = rect.count();
    round_scores(values, count, norms);
    double *threshold = scratch.take<double>(count);
    uint8_t *keep = scratch.take<uint8_t>(count);
    load(call.kernels(), rect, thresholds, threshold);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
      keep[i] = !(norms[i] < threshold[i]);  // NaN survives
      kept += keep[i];
    }
    tally->achieved += kept;
    if (grid.is_large()) {
      mask_large(call, grid, keep);
    } else {
      mask_rect(call.kernels(), grid, rect, keep);
    }
  });
}

}  // namespace spk
