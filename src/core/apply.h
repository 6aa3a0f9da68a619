// Multipliers and masks given by the caller.
#pragma once

#include "core/write_blocks.h"

namespace spk {

void apply_mask(Call &call, const Grid &grid, MaskSense sense, const GridArray &mask);
void apply_multiplier(Call &call, const Grid &grid, const GridArray &multiplier);

}  // namespace spk
