// The scores of the blocks of scopes, and their keys: computed from values, or brought by the
// caller.
#pragma once

#include <algorithm>
#include <span>

#include "core/norms.h"
#include "core/select.h"

namespace spk {

class KeyStream;

// The words of the scopes of a box.
class BoxWords {
 public:
  // They are in memory of their own, `pitch` bytes apart, in the order of the box.
  BoxWords(const Kernels &kernels, const KeyForm &form, int64_t count, std::byte *data,
           int64_t pitch)
      : kernels_(kernels), form_(form), count_(count), data_(data), own_(data), pitch_(pitch) {}
  // They are elements of a leaf, where it has them; those of the first scope are at `data`.
  BoxWords(const Kernels &kernels, const KeyForm &form, int64_t count, const std::byte *data,
           const GridLeaf &leaf)
      : kernels_(kernels), form_(form), count_(count), data_(data), leaf_(&leaf) {}

  // Those of the scope at `offset` in the box, which is number `i`.
  ScopeWords of(int64_t i, const Extents &offset) const {
    return {kernels_, form_, data_ + (leaf_ ? dot(offset, leaf_->grid_x) : i * pitch_), count_};
  }
  // The leaf whose elements they are, or NULL.
  const GridLeaf *leaf() const { return leaf_; }
  // Or the memory of their own; the words of scope number i begin i * pitch() bytes on.
  std::byte *own() const { return own_; }
  int64_t pitch() const { return pitch_; }

 private:
  const Kernels &kernels_;
  KeyForm form_;
  int64_t count_;
  const std::byte *data_;
  std::byte *own_ = nullptr;
  int64_t pitch_ = 0;
  const GridLeaf *leaf_ = nullptr;
};

class ScopeScores {
 public:
  // Euclidean norms of the blocks of `grids`, one per member of the scope.
  ScopeScores(const Scope &scope, const Grids &grids);
  // An array (grid_shape..., numblk_per_scope).
  ScopeScores(const Scope &scope, const ArrayData &scores);

  // Are scopes small enough for for_each_scopes and for_each_words, or does each need a stream?
  bool fit_in_memory() const;
  bool has_deep_blocks() const;
  // Or of others, or given?
  bool are_norms_of(const Grids &grids) const { return grids_.data() == grids.data(); }
  const KeyForm &form() const { return form_; }

  // Calls each(scratch, box of the scope grid, scores) for boxes that cover the scope grid; scores
  // [scope][position]. Where blocks are deep, the box is everything and `each` may use the call's
  // own loops.
  template <typename Fn>
  void for_each_scopes(Call &call, Fn &&each) const {
    const int64_t n = scope_.numblk_per_scope;
    if (has_deep_blocks()) {
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

  // The same as words: each(scratch, box, BoxWords).
  template <typename Fn>
  void for_each_words(Call &call, Fn &&each) const {
    if (!form_.magnitudes) {
      for_each_scopes(call, [&](Scratch &scratch, const Rect &scopes, const double *scores) {
        each(scratch, scopes, words_of_scores(call.kernels(), scratch, scopes, scores));
      });
      return;
    }
    const Tiling tiles = scope_tiles();
    call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
      const Rect scopes = tiles[i];
      each(scratch, scopes, words_of_elements(call.kernels(), scratch, scopes));
    });
  }

  // Are the words of for_each_words the elements of these grids, or copies of them?
  bool are_elements_of(const Grids &grids) const { return form_.magnitudes && are_norms_of(grids); }
  // Writes such copies, of a box of scopes, to where the elements are written.
  void put_elements(const Rect &scopes, const BoxWords &words) const;

  // The keys of one scope as a stream, computed once and kept where that costs little memory. Valid
  // as long as the call's scratch keeps what it has.
  KeyStream stream(Call &call, const Extents &scope_index) const;

 private:
  friend class KeyStream;

  bool are_elements() const;
  Tiling scope_tiles() const;
  void load_scopes(const Kernels &kernels, Scratch &scratch, const Rect &scopes,
                   double *scores) const;
  void load_all(Call &call, double *scores) const;
  // The scores of a box of positions of one member in one scope.
  const double *load_positions(const Kernels &kernels, Scratch &scratch, size_t member,
                               const Extents &scope_index, const Rect &positions) const;
  BoxWords words_of_scores(const Kernels &kernels, Scratch &scratch, const Rect &scopes,
                           const double *scores) const;
  BoxWords words_of_elements(const Kernels &kernels, Scratch &scratch, const Rect &scopes) const;
  // Bytes between the copied words of a member: those of the scopes of a box, then positions.
  Extents steps_of_copies(const ScopeMember &member, const Rect &scopes, int64_t pitch) const;

  const Scope &scope_;
  std::span<const Grid> grids_;  // empty: the scores are in `scores_`
  ArrayData scores_;
  KeyForm form_;
};

// The keys of a scope that are too many for for_each_words: they come in chunks, boxes of positions
// of one member, each as often as asked for.
class KeyStream {
 public:
  struct Chunk {
    size_t member;
    Rect positions;
  };

  int64_t count() const { return scores_.scope_.numblk_per_scope; }
  const KeyForm &form() const { return form_; }
  // Of all scopes.
  int64_t data_bytes() const;
  int64_t chunks() const { return chunks_; }
  Chunk chunk(int64_t number) const;
  static int64_t size(const Chunk &chunk) { return chunk.positions.count(); }

  // The words of a chunk, or of any other box of a member's positions, row-major: where they are, or
  // in `scratch`.
  ScopeWords words(Scratch &scratch, const Chunk &chunk) const;
  // Copies about one in `rate` of the words of a chunk to `out`, which has room for `room`; returns
  // how many. They are spread in a way that depends on nothing but `number`, the chunk's.
  int64_t sample(Scratch &scratch, int64_t number, int64_t rate, int64_t room,
                 std::byte *out) const;

  // Do the positions of each chunk follow those of the chunk before?
  bool in_order() const { return in_order_; }
  // Visits the runs of consecutive positions in a chunk: fn(first word, count, first position).
  template <typename Fn>
  void for_each_run(const Chunk &chunk, Fn &&fn) const {
    const Extents &shape = scores_.scope_.members[chunk.member].shape;
    const Extents stride = shape.row_major();
    const int64_t first = first_position(chunk);
    if (is_consecutive(chunk.positions, shape)) return fn(0, chunk.positions.count(), first);
    // Rows along the last axis.
    const int last = shape.size() - 1;
    Extents rows = chunk.positions.extent;
    rows[last] = 1;
    const int64_t length = chunk.positions.extent[last];
    for_each_index(rows, [&](int64_t row, const Extents &index) {
      fn(row * length, length, first + dot(index, stride));
    });
  }
  // The selected of a chunk.
  void keep(const Chunk &chunk, const ScopeWords &words, const Selection &selection,
            uint8_t *keep) const;
  int64_t first_position(const Chunk &chunk) const;

 private:
  friend class ScopeScores;

  KeyStream(Call &call, const ScopeScores &scores, const Extents &scope_index);
  // The keys of all positions, computed once.
  void store(Call &call);
  void tile_by(std::span<const Grid> grids);
  bool lies_in_memory() const { return form_.magnitudes || stored_; }
  // Where the words of a member in memory begin, and the bytes between them along its axes.
  GridArray place_of(size_t member) const;
  static bool is_consecutive(const Rect &positions, const Extents &shape);

  const ScopeScores &scores_;
  const Kernels &kernels_;
  Extents scope_index_;
  KeyForm form_;
  const std::byte *stored_ = nullptr;
  std::pmr::vector<Tiling> tiles_;  // per member
  int64_t chunks_ = 0;
  bool in_order_ = true;
};

// The box of a member's grid that belongs to a box of scopes; or to some positions of one scope.
Rect member_rect(const ScopeMember &member, const Rect &scopes);
// How often selecting by scores visits a tile of blocks: of one scope of everything once in each
// loop, unless norms are computed again before blocks are pruned.
Visits visits_of(const Scope &scope);
// How the positions of one member in one scope are cut into boxes.
Tiling position_tiles(const Grid &grid, const ScopeMember &member);
Rect position_rect(const Extents &scope_index, const Rect &positions);
// The last of some steps.
inline Extents last_of(const Extents &step, int count) {
  return {step.data() + (step.size() - count), count};
}
// Are words of `size` bytes in a box, row-major, neighbours in memory?
bool is_run(const Extents &extent, const Extents &step, int64_t size);
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
