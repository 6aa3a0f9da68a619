#include <memory>

#include "capi/operands.h"
#include "capi/selection.h"
#include "core/keep_top.h"
#include "core/rearrange.h"

using namespace spk;
using namespace spk::capi;

namespace {

constexpr std::initializer_list<int32_t> kAnyDtype = {SPK_F32,  SPK_F64, SPK_F16,
                                                      SPK_BF16, SPK_U8,  SPK_I64};

// One array per member in the grid shape of its block, all of the dtype of `array`.
std::vector<GridArray> member_arrays(Buffers &buffers, const Scope &scope, const char *name,
                                     const spk_buffer *given, int32_t nmembers, Access access,
                                     int32_t dtype) {
  if (nmembers != static_cast<int32_t>(scope.members.size())) {
    fail(SPK_SHAPE_MISMATCH, name, ": got ", nmembers, " buffers, expected ", scope.members.size(),
         ", one per member");
  }
  required(given, name);
  std::vector<GridArray> arrays;
  for (int m = 0; m < nmembers; ++m) {
    const int64_t numblk = scope.members[static_cast<size_t>(m)].block->numblk;
    const ArrayData array = buffers.array_at(name, given, m, numblk, {dtype}, access);
    arrays.push_back(per_block_of_member(scope, m, array));
  }
  return arrays;
}

Extents member_shape(const Scope &scope, size_t member) {
  return concat(scope.grid_shape, scope.members[member].shape);
}

// k-th scores: `each` is told the scores and where results go.
template <typename Fn>
void kth_by(spk_context *context, const spk_scope *scope, const spk_score_source *source,
            int32_t nleaves, const Counts &k, int64_t largest_k, const spk_buffer *out, Fn &&each) {
  required(scope, "scope");
  const auto chosen = read_struct(source, spk_score_source{}, "source");
  check_one_source(chosen, false);
  check_counts("k", k, scope->numscope, 1, largest_k);
  Buffers buffers;
  const Scores scores(buffers, *scope, chosen.values, chosen.scores, nleaves);
  const ArrayData result =
      buffers.array("out", out, scope->numscope, {scope->score_dtype}, Access::kWrite);
  buffers.check_overlap();
  Call call(context);
  const Grids measured = scores.grids(*scope, call.memory());
  each(call, scores.of(*scope, measured), result);
}

// Element masks from a block mask that the caller made.
void masks_from_mask(spk_context *context, const Scope &scope, const spk_buffer *block_mask,
                     const spk_buffer *masks, int32_t nleaves, spk_report *report) {
  Buffers buffers;
  const ArrayData keep =
      buffers.array("block_mask", block_mask, blocks_in_all(scope), {SPK_U8}, Access::kRead);
  const auto elements =
      buffers.contiguous_leaves("masks", masks, nleaves, scope.all_leaves, Access::kWrite, SPK_U8);
  buffers.check_overlap();
  Call call(context);
  const Grids grids = grids_of(scope, elements, {}, Visits::kOnce, call.memory());
  call.expect_loops(static_cast<int>(grids.size()));
  for (size_t m = 0; m < grids.size(); ++m) {
    spread_masks(call, grids[m], in_scope_order(scope, static_cast<int>(m), keep));
  }
  Tally tally;
  tally.total = blocks_in_all(scope);
  int64_t kept = 0;
  for (int64_t i = 0; i < tally.total; ++i) kept += keep.as<const uint8_t>()[i] != 0;
  tally.requested = kept;
  tally.achieved = kept;
  write_report(report, report_of(tally));
}

}  // namespace

extern "C" {

spk_status spk_scope_block_norms(spk_context *context, const spk_scope *scope,
                                 const spk_buffer *leaves, int32_t nleaves, double p,
                                 const spk_buffer *out) {
  return guarded([&] {
    required(scope, "scope");
    check_p(p);
    Buffers buffers;
    const auto x = buffers.leaves("leaves", leaves, nleaves, scope->all_leaves, Access::kLeaf);
    const ArrayData result =
        buffers.array("out", out, blocks_in_all(*scope), {scope->score_dtype}, Access::kWrite);
    buffers.check_overlap();
    Call call(context);
    const Grids grids = grids_of(*scope, x, {}, Visits::kOnce, call.memory());
    call.expect_loops(static_cast<int>(grids.size()));
    for (size_t m = 0; m < grids.size(); ++m) {
      norms(call, grids[m], p, in_scope_order(*scope, static_cast<int>(m), result));
    }
  });
}

spk_status spk_scope_block_to_scope(spk_context *context, const spk_scope *scope,
                                    const spk_buffer *values, int32_t nmembers,
                                    const spk_buffer *out) {
  return guarded([&] {
    required(scope, "scope");
    Buffers buffers;
    const ArrayData result =
        buffers.array("out", out, blocks_in_all(*scope), kAnyDtype, Access::kWrite);
    const auto from =
        member_arrays(buffers, *scope, "values", values, nmembers, Access::kRead, result.dtype);
    buffers.check_overlap();
    Call call(context);
    for (size_t m = 0; m < from.size(); ++m) {
      copy_entries(call, member_shape(*scope, m), from[m],
                   in_scope_order(*scope, static_cast<int>(m), result));
    }
  });
}

spk_status spk_scope_block_to_scope_view(const spk_scope *scope, int32_t dtype, int32_t reorder,
                                         spk_view **out) {
  return guarded([&] {
    required(out, "out");
    *out = block_to_scope_view(required(scope, "scope"), dtype, reorder != 0).detach();
  });
}

spk_status spk_scope_scope_to_block(spk_context *context, const spk_scope *scope,
                                    const spk_buffer *values, const spk_buffer *out,
                                    int32_t nmembers) {
  return guarded([&] {
    required(scope, "scope");
    Buffers buffers;
    const ArrayData entries =
        buffers.array("values", values, scope->numscope, kAnyDtype, Access::kRead);
    const auto to =
        member_arrays(buffers, *scope, "out", out, nmembers, Access::kWrite, entries.dtype);
    buffers.check_overlap();
    Call call(context);
    for (size_t m = 0; m < to.size(); ++m) {
      copy_entries(call, member_shape(*scope, m), per_scope(*scope, static_cast<int>(m), entries),
                   to[m]);
    }
  });
}

spk_status spk_scope_kth_largest(spk_context *context, const spk_scope *scope,
                                 const spk_score_source *source, int32_t nleaves, const int64_t *k,
                                 int64_t nk, const spk_buffer *out) {
  return guarded([&] {
    const Counts ranks{k, nk};
    kth_by(context, scope, source, nleaves, ranks, required(scope, "scope").numblk_per_scope, out,
           [&](Call &call, const ScopeScores &scores, const ArrayData &result) {
             kth_largest(call, *scope, scores, ranks, result);
           });
  });
}

spk_status spk_scope_kth_mid(spk_context *context, const spk_scope *scope,
                             const spk_score_source *source, int32_t nleaves, const int64_t *k,
                             int64_t nk, double k_weight, const spk_buffer *out) {
  return guarded([&] {
    if (!(k_weight > 0.0 && std::isfinite(k_weight))) {
      fail(SPK_INVALID_ARGUMENT, "k_weight: got ", k_weight, ", expected > 0 and finite");
    }
    if (required(scope, "scope").numblk_per_scope < 2) {
      fail(SPK_SHAPE_MISMATCH, "scope: got 1 block per scope, expected at least 2");
    }
    const Counts ranks{k, nk};
    kth_by(context, scope, source, nleaves, ranks, scope->numblk_per_scope - 1, out,
           [&](Call &call, const ScopeScores &scores, const ArrayData &result) {
             kth_mid(call, *scope, scores, ranks, k_weight, result);
           });
  });
}

spk_status spk_scope_hard_threshold(spk_context *context, const spk_scope *scope,
                                    const spk_buffer *leaves, const spk_buffer *into,
                                    int32_t nleaves, const spk_buffer *thresholds,
                                    const spk_hard_options *options, spk_report *report) {
  return guarded([&] {
    hard_threshold_by(context, scope, "scope", {leaves, into, nleaves}, thresholds, options,
                      report);
  });
}

spk_status spk_scope_keep_top(spk_context *context, const spk_scope *scope,
                              const spk_buffer *leaves, const spk_buffer *into, int32_t nleaves,
                              const int64_t *counts, int64_t ncounts,
                              const spk_select_options *options, spk_report *report) {
  return guarded([&] {
    keep_top_by(context, required(scope, "scope"), {leaves, into, nleaves}, {counts, ncounts},
                options, report);
  });
}

spk_status spk_scope_get_masks(spk_context *context, const spk_scope *scope,
                               const spk_score_source *source, const int64_t *counts,
                               int64_t ncounts, int32_t ties, const spk_buffer *masks,
                               int32_t nleaves, spk_report *report) {
  return guarded([&] {
    required(scope, "scope");
    check_report(report);
    check_ties(ties);
    const auto chosen = read_struct(source, spk_score_source{}, "source");
    check_one_source(chosen, true);
    if (chosen.block_mask) {
      if (counts || ncounts != 0) {
        fail(SPK_INVALID_ARGUMENT, "counts: got ", counts ? "a pointer" : "NULL", " and ", ncounts,
             " numbers with a block mask, expected NULL and 0");
      }
      masks_from_mask(context, *scope, chosen.block_mask, masks, nleaves, report);
      return;
    }
    const Counts wanted{counts, ncounts};
    check_counts("counts", wanted, scope->numscope, 0, scope->numblk_per_scope);
    Buffers buffers;
    const Scores scores(buffers, *scope, chosen.values, chosen.scores, nleaves);
    const auto elements = buffers.contiguous_leaves("masks", masks, nleaves, scope->all_leaves,
                                                    Access::kWrite, SPK_U8);
    buffers.check_overlap();
    Call call(context);
    Tally tally;
    tally.total = blocks_in_all(*scope);
    const Grids measured = scores.grids(*scope, call.memory());
    top_masks(call, *scope, grids_of(*scope, elements, {}, visits_of(*scope), call.memory()),
              scores.of(*scope, measured), wanted, ties, &tally);
    write_report(report, report_of(tally));
  });
}

spk_status spk_scope_soft_threshold(spk_context *context, const spk_scope *scope,
                                    const spk_buffer *leaves, const spk_buffer *into,
                                    int32_t nleaves, const spk_buffer *thresholds,
                                    const spk_soft_options *options, spk_report *report) {
  return guarded([&] {
    return soft_threshold_by(context, scope, "scope", {leaves, into, nleaves}, thresholds, options,
                             report);
  });
}

}  // extern "C"
