// Thresholding of a box of small blocks that lie across rows, in one go: neighbours are judged and
// written while they are in registers.
#pragma once

#include "core/tile.h"

namespace spk {

// What thresholds of a box need, besides the box; `threshold` is local.
struct RectThresholds {
  int64_t (*const *kernel)(const ThresholdArgs &args);  // Kernels::shrink_across, drop_across
  const double *threshold;
  double scale = 1.0;  // of soft thresholding
  double eps = 0.0;    // of soft thresholding
};

// Sets `alive` to how many blocks stay alive. Returns false, and does nothing, where the layout or
// the score dtype wants norms first.
bool threshold_rect(Scratch &scratch, const Grid &grid, const Rect &rect,
                    const RectThresholds &thresholds, int64_t *alive);

}  // namespace spk
