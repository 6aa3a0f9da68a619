// Multipliers and masks given by the caller.
#pragma once

#include "core/tile.h"

namespace spk {

// Which blocks a mask names: those that survive, or those that are zeroed.
enum class MaskSense { kKeep, kPrune };

void apply_mask(Call &call, const Grid &grid, MaskSense sense, const GridArray &mask);
void apply_multiplier(Call &call, const Grid &grid, const GridArray &multiplier);

}  // namespace spk
