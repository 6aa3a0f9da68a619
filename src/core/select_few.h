// Scopes of few blocks, one element each, pruned in one sweep of memory: no scores, no masks.
#pragma once

#include "core/keep_top.h"

namespace spk {

// Are the scopes such that select_few takes them?
bool are_few_elements(const Scope &scope, const Grids &grids);

// Zeroes all but the largest magnitudes of each scope.
void select_few(Call &call, const Scope &scope, const Grid &grid, const Counts &counts,
                int32_t ties, Tally *tally);

}  // namespace spk
