#include "core/keep_top.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/dtype.h"
#include "base/error.h"
#include "core/select_few.h"
#include "core/select_small.h"
#include "core/select_stream.h"
#include "core/write_blocks.h"

namespace spk {
namespace {

// Number of the scope at `index` of the scope grid.
int64_t number_of(const Scope &scope, const Extents &index) {
  return dot(index, scope.grid_shape.row_major());
}

// Parallel loops over the scopes that are streamed, about. Only the progress callback's share of
// work depends on it.
int loops_of_streams(const Scope &scope) {
  constexpr int64_t kMost = 1 << 20;
  const auto loops = kSelectLoops + static_cast<int64_t>(scope.members.size());
  return static_cast<int>(std::min(scope.numscope * loops, kMost));
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

void add(const Selected &selected, Tally *tally) {
  tally->achieved += selected.kept;
  tally->ties += selected.ties;
}

// Hands the keep bytes [scopes][n] of a box of scopes to `apply`, member by member.
template <typename Apply>
void apply_members(Scratch &scratch, const Scope &scope, const Rect &scopes, const uint8_t *keep,
                   const Apply &apply) {
  if (scope.members.size() == 1)
    return apply(scratch, 0, member_rect(scope.members[0], scopes), keep);
  for (size_t m = 0; m < scope.members.size(); ++m) {
    const Scratch::Frame frame(scratch);
    const ScopeMember &member = scope.members[m];
    uint8_t *local = scratch.take<uint8_t>(scopes.count() * member.numblk);
    take_member(scope, member, scopes.count(), keep, local);
    apply(scratch, m, member_rect(member, scopes), local);
  }
}

// Each scope of few blocks: selects, then hands each member's keep bytes to `apply` (scratch, member,
// box of its grid, keep).
template <typename Apply>
void select_in_registers(Call &call, const Scope &scope, const ScopeScores &scores,
                         const Counts &counts, int32_t ties, Tally *tally, const Apply &apply) {
  const int64_t n = scope.numblk_per_scope;
  scores.for_each_scopes(call, [&](Scratch &scratch, const Rect &scopes, const double *all) {
    uint8_t *keep = scratch.take<uint8_t>(scopes.count() * n);
    const int64_t *wanted = local_counts(scope, scopes, counts, scratch);
    const Selected selected = rank_few(call.kernels(), all, scopes.count(), n, wanted, ties, keep);
    add(selected, tally);
    apply_members(scratch, scope, scopes, keep, apply);
  });
}

// Visits the scopes of a box: fn(number in the box, offset in it, number of the scope).
template <typename Fn>
void for_each_scope(const Scope &scope, const Rect &scopes, Fn &&fn) {
  const Extents stride = scope.grid_shape.row_major();
  const int64_t first = dot(scopes.low, stride);
  for_each_index(scopes.extent, [&](int64_t i, const Extents &offset) {
    fn(i, offset, first + dot(offset, stride));
  });
}

// Each scope whose words are in memory.
template <typename Apply>
void select_in_memory(Call &call, const Scope &scope, const ScopeScores &scores,
                      const Counts &counts, int32_t ties, Tally *tally, const Apply &apply) {
  const int64_t n = scope.numblk_per_scope;
  scores.for_each_words(call, [&](Scratch &scratch, const Rect &scopes, const BoxWords &box) {
    const bool in_place = apply.can_prune(scope, box);
    const bool in_copies = apply.can_put_back(box);
    uint8_t *keep = in_place || in_copies ? nullptr : scratch.take<uint8_t>(scopes.count() * n);
    for_each_scope(scope, scopes, [&](int64_t i, const Extents &offset, int64_t s) {
      const ScopeWords words = box.of(i, offset);
      const Selection selection = words.select_top(counts[s], ties, scratch);
      add(selection.selected, tally);
      if (in_place) {
        apply.prune(scopes, offset, words, selection);
      } else if (in_copies) {
        words.prune(selection, 0, box.own() + i * box.pitch());
      } else {
        words.keep(selection, 0, keep + i * n);
      }
    });
    if (in_copies) apply.put_back(scopes, box);
    if (keep) apply_members(scratch, scope, scopes, keep, apply);
  });
}

// Keep bytes of some positions of a scope.
const uint8_t *keep_of(Scratch &scratch, const KeyStream &stream, const KeyStream::Chunk &chunk,
                       const ScopeWords &words, const Selection &selection) {
  uint8_t *keep = scratch.take<uint8_t>(chunk.positions.count());
  stream.keep(chunk, words, selection, keep);
  return keep;
}

// One scope, by its stream: selects, then applies in parallel.
template <typename Apply>
void select_in_stream(Call &call, const Scope &scope, const Grids &grids, const ScopeScores &scores,
                      const Extents &index, int64_t k, int32_t ties, Tally *tally,
                      const Apply &apply) {
  const Scratch::Frame frame(call.scratch());
  const KeyStream stream = scores.stream(call, index);
  const Selection selection = select_top(call, stream, k, ties);
  add(selection.selected, tally);
  for (size_t m = 0; m < scope.members.size(); ++m) {
    const Tiling tiles = position_tiles(grids[m], scope.members[m]);
    call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
      const KeyStream::Chunk chunk{m, tiles[i]};
      const Rect rect = position_rect(index, chunk.positions);
      const ScopeWords words = stream.words(scratch, chunk);
      if (apply.prune_box(m, rect, words, selection, stream.first_position(chunk))) return;
      apply(scratch, m, rect, keep_of(scratch, stream, chunk, words, selection));
    });
  }
}

template <typename Apply>
void select_blocks(Call &call, const Scope &scope, const Grids &grids, const ScopeScores &scores,
                   const Counts &counts, int32_t ties, Tally *tally, const Apply &apply) {
  tally->requested = requested_in_all(scope, counts);
  if (!scores.fit_in_memory()) {
    call.expect_loops(loops_of_streams(scope));
    for_each_block(Rect::whole(scope.grid_shape), [&](int64_t s, const Extents &index) {
      select_in_stream(call, scope, grids, scores, index, counts[s], ties, tally, apply);
    });
  } else if (scope.numblk_per_scope <= kFewBlocks) {
    select_in_registers(call, scope, scores, counts, ties, tally, apply);
  } else {
    select_in_memory(call, scope, scores, counts, ties, tally, apply);
  }
}

// What pruning does with a selection.
class Pruning {
 public:
  Pruning(Call &call, const Grids &grids, const ScopeScores &scores)
      : call_(call), grids_(grids), scores_(scores) {}

  // Where the elements of a leaf are the words, one after the other, it is pruned in one go.
  bool can_prune(const Scope &scope, const BoxWords &box) const {
    const GridLeaf &leaf = grids_[0].leaves[0];
    const Extents &shape = scope.members[0].shape;
    return box.leaf() == &leaf &&
           is_run(shape, last_of(leaf.grid_y, shape.size()), size_of(leaf.dtype));
  }
  // Prunes the scope at `offset` in a box of scopes.
  void prune(const Rect &scopes, const Extents &offset, const ScopeWords &words,
             const Selection &selection) const {
    const GridLeaf &leaf = grids_[0].leaves[0];
    words.prune(selection, 0, leaf.y + dot(scopes.low, leaf.grid_y) + dot(offset, leaf.grid_y));
  }
  // Where they are copied to memory of their own, they are pruned there, and put back together.
  bool can_put_back(const BoxWords &box) const {
    return box.own() && scores_.are_elements_of(grids_);
  }
  void put_back(const Rect &scopes, const BoxWords &box) const {
    scores_.put_elements(scopes, box);
  }
  // Prunes a box of a member's grid, if it can be done so; its first position is `first`.
  bool prune_box(size_t member, const Rect &rect, const ScopeWords &words,
                 const Selection &selection, int64_t first) const {
    const GridLeaf &leaf = grids_[member].leaves[0];
    const bool are_elements = words.words().data == leaf.x + dot(rect.low, leaf.grid_x);
    if (!are_elements || !is_run(rect.extent, leaf.grid_y, size_of(leaf.dtype))) return false;
    words.prune(selection, first, leaf.y + dot(rect.low, leaf.grid_y));
    return true;
  }
  void operator()(Scratch &scratch, size_t member, const Rect &rect, const uint8_t *keep) const {
    // Deep blocks come all at once, on the calling thread.
    if (scores_.has_deep_blocks()) {
      mask_all(call_, grids_[member], keep);
    } else {
      const bool is_cached = scores_.fit_in_memory() && scores_.are_norms_of(grids_);
      mask_rect(call_.kernels(), scratch, grids_[member], rect, keep, is_cached);
    }
  }

 private:
  Call &call_;
  const Grids &grids_;
  const ScopeScores &scores_;
};

// What making masks does with it.
class Marking {
 public:
  Marking(Call &call, const Grids &masks, const ScopeScores &scores)
      : call_(call), masks_(masks), scores_(scores) {}

  bool can_prune(const Scope &, const BoxWords &) const { return false; }
  void prune(const Rect &, const Extents &, const ScopeWords &, const Selection &) const {}
  bool can_put_back(const BoxWords &) const { return false; }
  void put_back(const Rect &, const BoxWords &) const {}
  bool prune_box(size_t, const Rect &, const ScopeWords &, const Selection &, int64_t) const {
    return false;
  }
  void operator()(Scratch &, size_t member, const Rect &rect, const uint8_t *keep) const {
    if (scores_.has_deep_blocks()) {
      spread_all(call_, masks_[member], keep);
    } else {
      spread_rect(masks_[member], rect, keep);
    }
  }

 private:
  Call &call_;
  const Grids &masks_;
  const ScopeScores &scores_;
};

// Calls each(scope number, k-th score, next) for all scopes; in parallel.
template <typename Fn>
void for_each_kth(Call &call, const Scope &scope, const ScopeScores &scores, const Counts &k,
                  bool with_next, Fn &&each) {
  const auto tell = [&](int64_t s, uint64_t kth, uint64_t next) {
    each(s, scores.form().score_of(call.kernels(), kth),
         with_next ? scores.form().score_of(call.kernels(), next) : 0.0);
  };
  if (scores.fit_in_memory()) {
    scores.for_each_words(call, [&](Scratch &scratch, const Rect &scopes, const BoxWords &box) {
      for_each_scope(scope, scopes, [&](int64_t i, const Extents &offset, int64_t s) {
        uint64_t next = 0;
        const ScopeWords words = box.of(i, offset);
        const uint64_t kth = words.kth_largest(k[s], scratch, with_next ? &next : nullptr);
        tell(s, kth, next);
      });
    });
    return;
  }
  call.expect_loops(loops_of_streams(scope));
  for_each_block(Rect::whole(scope.grid_shape), [&](int64_t s, const Extents &index) {
    const Scratch::Frame frame(call.scratch());
    const KeyStream stream = scores.stream(call, index);
    uint64_t next = 0;
    const uint64_t kth = kth_largest(call, stream, k[s], with_next ? &next : nullptr);
    tell(s, kth, next);
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
  select_blocks(call, scope, grids, scores, counts, ties, tally, Pruning(call, grids, scores));
}

void top_masks(Call &call, const Scope &scope, const Grids &masks, const ScopeScores &scores,
               const Counts &counts, int32_t ties, Tally *tally) {
  select_blocks(call, scope, masks, scores, counts, ties, tally, Marking(call, masks, scores));
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
  if (masks.is_deep() || masks.is_thin()) {
    uint8_t *keep = call.scratch().take<uint8_t>(masks.numblk());
    load_mask(call.kernels(), Rect::whole(masks.shape), block_mask, keep);
    return spread_all(call, masks, keep);
  }
  const Tiling tiles = masks.tiles();
  call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
    const Rect rect = tiles[i];
    uint8_t *keep = scratch.take<uint8_t>(rect.count());
    load_mask(call.kernels(), rect, block_mask, keep);
    spread_rect(masks, rect, keep);
  });
}

}  // namespace spk
