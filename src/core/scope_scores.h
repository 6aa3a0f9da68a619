// The scores of the blocks of scopes: computed from values, or brought by the caller.
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "core/norms.h"
#include "core/select.h"

namespace spk {

class ScopeScores {
 public:
  // Euclidean norms of the blocks of `grids`, one per member of the scope.
  ScopeScores(const Scope &scope, const Grids &grids) : scope_(scope), grids_(grids) {}
  // An array (grid_shape..., numblk_per_scope).
  ScopeScores(const Scope &scope, const ArrayData &scores) : scope_(scope), scores_(scores) {}

  // Are scopes small enough for for_each_scopes, or does each need a stream?
  bool fit_in_memory() const;

  // Calls each(scratch, box of the scope grid, scores) for boxes that cover the scope grid; scores
  // [scope][position]. Where blocks are large, the box is everything and `each` may use the call's
  // own loops.
  template <typename Fn>
  void for_each_scopes(Call &call, Fn &&each) const {
    const int64_t n = scope_.numblk_per_scope;
    if (has_large_blocks()) {
      const Rect all = Rect::whole(scope_.grid_shape);
      double *scores = call.scratch().take<double>(all.count() * n);
      load_all(call, scores);
      each(call.scratch(), all, scores);
      return;
    }
    const Tiling tiles = scope_tiles();
    call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
      const Rect scopes = tiles[i];
      double *scores = scratch.take<double>(scopes.count() * n);
      load_scopes(call.kernels(), scratch, scopes, scores);
      each(scratch, scopes, scores);
    });
  }

  // The scores of one scope as a stream, computed once and kept where that costs little memory.
  std::unique_ptr<ScoreStream> stream(Call &call, const Extents &scope_index) const;

  bool has_large_blocks() const;

 private:
  Tiling scope_tiles() const;
  void load_scopes(const Kernels &kernels, Scratch &scratch, const Rect &scopes,
                   double *scores) const;
  void load_all(Call &call, double *scores) const;

  const Scope &scope_;
  std::span<const Grid> grids_;  // empty: the scores are in `scores_`
  ArrayData scores_;
};

// The box of a member's grid that belongs to a box of scopes; or to some positions of one scope.
Rect member_rect(const ScopeMember &member, const Rect &scopes);
// How the positions of one member in one scope are cut into boxes.
Tiling position_tiles(const Grid &grid, const ScopeMember &member);
Rect position_rect(const Extents &scope_index, const Rect &positions);
// Copies a member's local array to or from its place in an array [scope][position].
template <typename T>
void put_member(const Scope &scope, const ScopeMember &member, int64_t scopes, const T *local,
                T *all) {
  for (int64_t s = 0; s < scopes; ++s) {
    std::copy_n(local + s * member.numblk, member.numblk,
                all + s * scope.numblk_per_scope + member.first_position);
  }
}
template <typename T>
void take_member(const Scope &scope, const ScopeMember &member, int64_t scopes, const T *all,
                 T *local) {
  for (int64_t s = 0; s < scopes; ++s) {
    std::copy_n(all + s * scope.numblk_per_scope + member.first_position, member.numblk,
                local + s * member.numblk);
  }
}

}  // namespace spk
