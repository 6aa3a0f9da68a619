// Scopes of few elements, pruned in one sweep of memory: no scores, no masks.
#pragma once

#include "core/keep_top.h"

namespace spk {

// Are the scopes such that select_few takes them?
bool are_few_elements(const Scope &scope, const Grids &grids);

// Zeroes all but the largest magnitudes of each scope. To what was kept `tally` adds only what goes
// beyond the counts.
void select_few(Call &call, const Scope &scope, const Grid &grid, const Counts &counts,
                int32_t ties, Tally *tally);

struct FewOptions {
  int64_t margin;  // SelectFewArgs::margin
  bool keep_ties;
};
struct FewTotals {
  int64_t ties = 0;
  int64_t beyond = 0;  // kept beyond what was wanted
};

// The same for a box of scopes whose keys lie in an array of their own, on this thread.
FewTotals select_few(const Kernels &kernels, Scratch &scratch, const Scope &scope,
                     const Rect &scopes, const GridLeaf &keys, const Counts &counts,
                     const FewOptions &options);

}  // namespace spk
