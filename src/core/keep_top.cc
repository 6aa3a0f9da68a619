#include "core/keep_top.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "core/select_few.h"
#include "core/select_small.h"

namespace spk {
namespace {

// Passes over a streamed scope, about: three to six that count digits, one that collects, one that
// applies. Only the progress callback's share of work depends on it.
constexpr int kStreamLoops = 8;

// Number of the scope at `index` of the scope grid.
int64_t number_of(const Scope &scope, const Extents &index) {
  return dot(index, scope.grid_shape.row_major());
}

int64_t requested_in_all(const Scope &scope, const Counts &counts) {
  if (counts.count == 1) return scope.numscope * counts[0];
  int64_t requested = 0;
  for (int64_t s = 0; s < scope.numscope; ++s) requested += counts[s];
  return requested;
}

// The counts of a box of scopes.
const int64_t *local_counts(const Scope &scope, const Rect &scopes, const Counts &counts,
                            Scratch &scratch) {
  int64_t *local = scratch.take<int64_t>(scopes.count());
  if (counts.count == 1) {
    std::fill_n(local, scopes.count(), counts[0]);
    return local;
  }
  for_each_block(
      scopes, [&](int64_t i, const Extents &index) { local[i] = counts[number_of(scope, index)]; });
  return local;
}

// Scopes [scopes][n] of few blocks, all at once.
Selected rank_few(const Kernels &kernels, const double *scores, int64_t scopes, int64_t n,
                  const int64_t *counts, int32_t ties, uint8_t *keep) {
  Selected selected;
  kernels.rank_few(
      {scores, scopes, n, counts, ties == SPK_TIES_KEEP_ALL, keep, &selected.kept, &selected.ties});
  return selected;
}

// Scopes [scopes][n] of more blocks, one by one.
Selected select_each(const Kernels &kernels, const double *scores, int64_t scopes, int64_t n,
                     const int64_t *counts, int32_t ties, Scratch &scratch, uint8_t *keep) {
  Selected all;
  for (int64_t s = 0; s < scopes; ++s) {
    const Scratch::Frame frame(scratch);
    const uint64_t *keys = rank_keys(kernels, scores + s * n, n, scratch);
    const Selected one = select_top(keys, n, counts[s], ties, scratch, keep + s * n);
    all.kept += one.kept;
    all.ties += one.ties;
  }
  return all;
}

// Each scope whose scores are in memory: selects, then hands each member's keep bytes to `apply`
// (scratch, member, box of its grid, keep).
template <typename Apply>
void select_in_memory(Call &call, const Scope &scope, const ScopeScores &scores,
                      const Counts &counts, int32_t ties, Tally *tally, Apply &&apply) {
  const int64_t n = scope.numblk_per_scope;
  scores.for_each_scopes(call, [&](Scratch &scratch, const Rect &scopes, const double *all) {
    uint8_t *keep = scratch.take<uint8_t>(scopes.count() * n);
    const int64_t *wanted = local_counts(scope, scopes, counts, scratch);
    const Selected selected =
        n <= kFewBlocks
            ? rank_few(call.kernels(), all, scopes.count(), n, wanted, ties, keep)
            : select_each(call.kernels(), all, scopes.count(), n, wanted, ties, scratch, keep);
    tally->achieved += selected.kept;
    tally->ties += selected.ties;
    for (size_t m = 0; m < scope.members.size(); ++m) {
      const Scratch::Frame frame(scratch);
      const ScopeMember &member = scope.members[m];
      uint8_t *local = scratch.take<uint8_t>(scopes.count() * member.numblk);
      take_member(scope, member, scopes.count(), keep, local);
      apply(scratch, m, member_rect(member, scopes), local);
    }
  });
}

// Each scope as a stream, one after the other; the work inside each is parallel.
template <typename Apply>
void select_in_streams(Call &call, const Scope &scope, const Grids &grids,
                       const ScopeScores &scores, const Counts &counts, int32_t ties, Tally *tally,
                       Apply &&apply) {
  for_each_block(Rect::whole(scope.grid_shape), [&](int64_t s, const Extents &index) {
    const Scratch::Frame frame(call.scratch());
    const auto stream = scores.stream(call, index);
    const StreamCut cut = select_top(call, *stream, counts[s], ties);
    tally->achieved += cut.selected.kept;
    tally->ties += cut.selected.ties;
    for (size_t m = 0; m < scope.members.size(); ++m) {
      const Tiling tiles = position_tiles(grids[m], scope.members[m]);
      call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
        const ScoreStream::Chunk box{m, tiles[i]};
        const int64_t count = box.positions.count();
        const uint64_t *keys = stream->keys(call.kernels(), scratch, box);
        uint8_t *keep = scratch.take<uint8_t>(count);
        for (int64_t b = 0; b < count; ++b) keep[b] = keys[b] > cut.key;
        if (std::find(keys, keys + count, cut.key) != keys + count) {
          const int64_t *position = stream->positions(scratch, box);
          for (int64_t b = 0; b < count; ++b) {
            keep[b] |= keys[b] == cut.key && position[b] < cut.position;
          }
        }
        apply(scratch, m, position_rect(index, box.positions), keep);
      });
    }
  });
}

template <typename Apply>
void select_blocks(Call &call, const Scope &scope, const Grids &grids, const ScopeScores &scores,
                   const Counts &counts, int32_t ties, Tally *tally, Apply &&apply) {
  tally->requested = requested_in_all(scope, counts);
  if (scores.fit_in_memory()) {
    select_in_memory(call, scope, scores, counts, ties, tally, apply);
  } else {
    call.expect_loops(kStreamLoops);
    select_in_streams(call, scope, grids, scores, counts, ties, tally, apply);
  }
}

// Calls each(scope number, k-th, next) for all scopes; in parallel.
template <typename Fn>
void for_each_kth(Call &call, const Scope &scope, const ScopeScores &scores, const Counts &k,
                  bool with_next, Fn &&each) {
  const int64_t n = scope.numblk_per_scope;
  if (scores.fit_in_memory()) {
    scores.for_each_scopes(call, [&](Scratch &scratch, const Rect &scopes, const double *all) {
      for_each_block(scopes, [&](int64_t i, const Extents &index) {
        const int64_t s = number_of(scope, index);
        double next = 0.0;
        const Scratch::Frame frame(scratch);
        const uint64_t *keys = rank_keys(call.kernels(), all + i * n, n, scratch);
        const double kth = kth_largest(keys, n, k[s], scratch, with_next ? &next : nullptr);
        each(s, kth, next);
      });
    });
    return;
  }
  for_each_block(Rect::whole(scope.grid_shape), [&](int64_t s, const Extents &index) {
    const Scratch::Frame frame(call.scratch());
    const auto stream = scores.stream(call, index);
    double next = 0.0;
    const double kth = kth_largest(call, *stream, k[s], with_next ? &next : nullptr);
    each(s, kth, next);
  });
}

void store_score(const ArrayData &out, int64_t index, double score) {
  if (out.dtype == SPK_F64) {
    out.as<double>()[index] = score;
  } else {
    out.as<float>()[index] = static_cast<float>(score);
  }
}

// (weight * high + low) / (weight + 1), rounded into (low, high] as T.
template <typename T>
T mid_between(T high, T low, double weight) {
  if (std::isnan(high)) return std::isnan(low) ? high : std::numeric_limits<T>::infinity();
  if (high == low || std::isinf(high)) return high;
  if (std::isinf(low)) return high;
  // Shares of at most one half each cannot overflow.
  const double share = 1.0 / (weight + 1.0);
  const double other = std::isinf(weight + 1.0) ? 1.0 : weight * share;
  const T mid =
      static_cast<T>(other * static_cast<double>(high) + share * static_cast<double>(low));
  if (mid > high || std::isnan(mid)) return high;
  return mid > low ? mid : std::nextafter(low, high);
}

}  // namespace

void check_counts(const char *name, const Counts &counts, int64_t scopes, int64_t low,
                  int64_t high) {
  if (!counts.counts) fail(SPK_INVALID_ARGUMENT, name, ": got NULL, expected counts");
  if (counts.count != 1 && counts.count != scopes) {
    fail(SPK_SHAPE_MISMATCH, name, ": got ", counts.count, " numbers, expected 1",
         scopes == 1 ? "" : cat(" or ", scopes, ", one per scope"));
  }
  for (int64_t i = 0; i < counts.count; ++i) {
    if (counts.counts[i] < low || counts.counts[i] > high) {
      fail(SPK_INVALID_ARGUMENT, name, "[", i, "]: got ", counts.counts[i], ", expected ", low,
           " to ", high);
    }
  }
}

void keep_top(Call &call, const Scope &scope, const Grids &grids, const Counts &counts,
              int32_t ties, Tally *tally) {
  const bool elements = are_few_elements(scope, grids);
  if (!elements && !are_few_small_blocks(scope, grids)) {
    return keep_top(call, scope, grids, ScopeScores(scope, grids), counts, ties, tally);
  }
  tally->requested = requested_in_all(scope, counts);
  tally->achieved += tally->requested;
  if (elements) {
    select_few(call, scope, grids[0], counts, ties, tally);
  } else {
    select_small(call, scope, grids[0], counts, ties, tally);
  }
}

void keep_top(Call &call, const Scope &scope, const Grids &grids, const ScopeScores &scores,
              const Counts &counts, int32_t ties, Tally *tally) {
  select_blocks(call, scope, grids, scores, counts, ties, tally,
                [&](Scratch &, size_t member, const Rect &rect, const uint8_t *keep) {
                  // Large blocks come all at once, on the calling thread.
                  if (scores.has_large_blocks()) {
                    mask_large(call, grids[member], keep);
                  } else {
                    mask_rect(call.kernels(), grids[member], rect, keep);
                  }
                });
}

void top_masks(Call &call, const Scope &scope, const Grids &masks, const ScopeScores &scores,
               const Counts &counts, int32_t ties, Tally *tally) {
  select_blocks(call, scope, masks, scores, counts, ties, tally,
                [&](Scratch &, size_t member, const Rect &rect, const uint8_t *keep) {
                  spread_rect(masks[member], rect, keep);
                });
}

void kth_largest(Call &call, const Scope &scope, const ScopeScores &scores, const Counts &k,
                 const ArrayData &out) {
  for_each_kth(call, scope, scores, k, false,
               [&](int64_t s, double kth, double) { store_score(out, s, kth); });
}

void kth_mid(Call &call, const Scope &scope, const ScopeScores &scores, const Counts &k,
             double k_weight, const ArrayData &out) {
  for_each_kth(call, scope, scores, k, true, [&](int64_t s, double kth, double next) {
    if (out.dtype == SPK_F64) {
      out.as<double>()[s] = mid_between(kth, next, k_weight);
    } else {
      out.as<float>()[s] = mid_between(static_cast<float>(kth), static_cast<float>(next), k_weight);
    }
  });
}

void spread_masks(Call &call, const Grid &masks, const GridArray &block_mask) {
  const Tiling tiles = masks.tiles();
  call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
    const Rect rect = tiles[i];
    uint8_t *keep = scratch.take<uint8_t>(rect.count());
    load_mask(rect, block_mask, keep);
    spread_rect(masks, rect, keep);
  });
}

}  // namespace spk
