// What selecting calls have in common: where scores come from, and pruning by counts, which the
// one-call conveniences use too.
#pragma once

#include <optional>

#include "capi/operands.h"
#include "core/keep_top.h"

namespace spk::capi {

// Scores that a call was brought: values whose norms they are, or the scores themselves.
class Scores {
 public:
  // `values` if it is not NULL, else `scores`.
  Scores(Buffers &buffers, const Scope &scope, const spk_buffer *values, const spk_buffer *scores,
         int32_t nleaves) {
    if (values) {
      values_ = buffers.leaves("values", values, nleaves, scope.all_leaves, Access::kRead,
                               Buffers::kAnyFloat);
    } else {
      scores_ = buffers.array("scores", scores, scope.numscope * scope.numblk_per_scope,
                              {scope.score_dtype}, Access::kRead);
    }
  }

  // What is measured: one grid per member, none where the scores themselves were brought.
  Grids grids(const Scope &scope, Memory *memory) const {
    return values_ ? grids_of(scope, *values_, {}, visits_of(scope), memory) : Grids(memory);
  }
  ScopeScores of(const Scope &scope, const Grids &measured) const {
    return values_ ? ScopeScores(scope, measured) : ScopeScores(scope, scores_);
  }

 private:
  std::optional<Buffers::Leaves> values_;
  ArrayData scores_;
};

inline void check_one_source(const spk_score_source &source, bool mask_allowed) {
  if (source.block_mask && !mask_allowed) {
    fail(SPK_INVALID_ARGUMENT, "source: got a block_mask, expected values or scores");
  }
  const int given =
      (source.values != nullptr) + (source.scores != nullptr) + (source.block_mask != nullptr);
  if (given != 1) {
    fail(SPK_INVALID_ARGUMENT, "source: got ", given, " sources, expected exactly one of values",
         mask_allowed ? ", scores and block_mask" : " and scores");
  }
}

inline void check_ties(int32_t ties) {
  if (ties != SPK_TIES_BY_POSITION && ties != SPK_TIES_KEEP_ALL) {
    fail(SPK_INVALID_ARGUMENT, "ties: got ", ties,
         ", expected SPK_TIES_BY_POSITION (0) or SPK_TIES_KEEP_ALL (1)");
  }
}

inline void keep_top_by(spk_context *context, const Scope &scope, const GivenWeights &given,
                        const Counts &counts, const spk_select_options *options,
                        spk_report *report) {
  check_report(report);
  const auto chosen = read_struct(options, spk_select_options{}, "options");
  check_ties(chosen.ties);
  if (chosen.reserved != 0) {
    fail(SPK_INVALID_ARGUMENT, "options: reserved: got ", chosen.reserved, ", expected 0");
  }
  if (chosen.values && chosen.scores) {
    fail(SPK_INVALID_ARGUMENT, "options: got values and scores, expected at most one of them");
  }
  check_counts("counts", counts, scope.numscope, 0, scope.numblk_per_scope);
  Buffers buffers;
  const Weights w = weights(buffers, scope, given);
  std::optional<Scores> scores;
  if (chosen.values || chosen.scores) {
    scores.emplace(buffers, scope, chosen.values, chosen.scores, given.count);
  }
  buffers.check_overlap();
  Call call(context);
  Tally tally;
  tally.total = blocks_in_all(scope);
  const Grids grids = grids_of(scope, w.x, w.into, visits_of(scope), call.memory());
  if (scores) {
    const Grids measured = scores->grids(scope, call.memory());
    keep_top(call, scope, grids, scores->of(scope, measured), counts, chosen.ties, &tally);
  } else {
    keep_top(call, scope, grids, counts, chosen.ties, &tally);
  }
  write_report(report, report_of(tally));
}

}  // namespace spk::capi
