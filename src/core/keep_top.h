// Selection by counts: the blocks of each scope that stay, pruned or as masks, and
// the scores at the edge.
#pragma once

#include "core/scope_scores.h"
#include "core/thresholds.h"

namespace spk {

// One count for all scopes, or one per scope.
struct Counts {
  const int64_t *counts = nullptr;
  int64_t count = 0;

  int64_t operator[](int64_t scope) const { return counts[count == 1 ? 0 : scope]; }
};

// Refuses counts that are not in [low, high]; `name` is the argument's.
void check_counts(const char *name, const Counts &counts, int64_t scopes, int64_t low,
                  int64_t high);

// Zeroes all but the top blocks, by the norms of the blocks themselves or by scores; `grids` has one
// grid per member.
void keep_top(Call &call, const Scope &scope, const Grids &grids, const Counts &counts,
              int32_t ties, Tally *tally);
void keep_top(Call &call, const Scope &scope, const Grids &grids, const ScopeScores &scores,
              const Counts &counts, int32_t ties, Tally *tally);
// Writes element keep masks; the leaves of `masks` are the mask arrays.
void top_masks(Call &call, const Scope &scope, const Grids &masks, const ScopeScores &scores,
               const Counts &counts, int32_t ties, Tally *tally);

// The k-th largest score of each scope, or a threshold between it and the next.
void kth_largest(Call &call, const Scope &scope, const ScopeScores &scores, const Counts &k,
                 const ArrayData &out);
void kth_mid(Call &call, const Scope &scope, const ScopeScores &scores, const Counts &k,
             double k_weight, const ArrayData &out);

// Element masks of the leaves from one mask byte per block, as 0 or 1.
void spread_masks(Call &call, const Grid &masks, const GridArray &block_mask);

}  // namespace spk
