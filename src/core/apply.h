// Multipliers and masks given by the caller.
#pragma once

#include "core/tile.h"

namespace spk {

void apply_mask(Call &call, const Grid &grid, const GridArray &prune);
void apply_multiplier(Call &call, const Grid &grid, const GridArray &multiplier);

}  // namespace spk
