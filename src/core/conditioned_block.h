// The conditioned proximal operator of one block, whatever its size and its numbers: what is too
// large or too extreme for a panel.
#pragma once

#include "core/soft_threshold.h"

namespace spk {

// `block` is the block's index in the grid.
void conditioned_block(const Kernels &kernels, Scratch &scratch, const Grid &grid,
                       const Grid &conditioners, const Extents &block, double threshold,
                       const SoftOptions &options, Tally *tally);

}  // namespace spk
