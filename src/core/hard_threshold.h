// Hard thresholding of blocks by thresholds.
#pragma once

#include "core/thresholds.h"

namespace spk {

// Zeroes the blocks of `grid` whose norm in `values` is below the threshold. `values` has the same
// blocks, and may be `grid` itself.
void hard_threshold(Call &call, const Grid &grid, const Grid &values, const GridArray &thresholds,
                    Tally *tally);

}  // namespace spk
