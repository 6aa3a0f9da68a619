// Thresholding of a box of blocks in one go: small ones, those that are one row, and tiles of short
// rows are judged and written while neighbours are read.
#pragma once

#include "core/tile.h"

namespace spk {

// What thresholds of a box need, besides the box.
struct RectThresholds {
  const ThresholdKernel (*across)[2];  // Kernels::shrink_across, drop_across
  const ThresholdKernel (*along)[2];   // Kernels::shrink_along, drop_along
  const ThresholdKernel (*rows)[2];    // Kernels::shrink_rows, drop_rows
  const ThresholdKernel (*tiles)[2];   // Kernels::shrink_tiles, drop_tiles
  bool holds_rows_ahead;               // Kernels::holds_rows_ahead
  const GridArray &array;
  double scale = 1.0;  // of soft thresholding
  double eps = 0.0;    // of soft thresholding
  int64_t ahead = 0;   // bytes from a box to the next, as threshold_boxes has them
};

// The boxes that a grid is thresholded in. Those of long rows and of tiles hold more of them than
// Grid::tiles: only within a box is one read while another one is written.
// Sets how->ahead.
Tiling threshold_boxes(const Grid &grid, RectThresholds *how);

// Sets `alive` to how many blocks stay alive. Returns false, and does nothing, where the layout or
// the score dtype wants norms first.
bool threshold_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                    const RectThresholds &how, int64_t *alive);

}  // namespace spk
