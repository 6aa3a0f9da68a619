// Scopes of few small blocks, pruned tile by tile in cache: keys of the blocks decide where they can,
// norms only where two scores are too close to tell.
#pragma once

#include "core/keep_top.h"

namespace spk {

// Are the scopes and their blocks such that select_small takes them?
bool are_few_small_blocks(const Scope &scope, const Grids &grids);

// Zeroes all but the top blocks of each scope. To what was kept `tally` adds only what goes beyond
// the counts.
void select_small(Call &call, const Scope &scope, const Grid &grid, const Counts &counts,
                  int32_t ties, Tally *tally);

}  // namespace spk
