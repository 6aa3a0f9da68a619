// How blocks in parts are read, and they and others are written: in pieces, in parallel. Each thread
// begins with the same pieces both times, unless progress is reported. Lines of memory that the cache
// of another thread holds are slow to write where threads do not share one: on some processors, ten
// times as slow.
#pragma once

#include "core/call.h"
#include "core/grid.h"

namespace spk {

// A strip of some blocks of a leaf.
struct Piece {
  const GridLeaf &leaf;
  int64_t part;  // its number, counted on from leaf to leaf
  Rect blocks;   // of the grid
  Rect strip;    // of each block: the part, or some of it
};

// The pieces of a grid, which has to outlive them. Leaves take turns, in step: a step has as great a
// share of one leaf as of another.
class Pieces {
 public:
  Pieces(Call &call, const Grid &grid);

  // Of a block, in all its leaves.
  int64_t parts() const { return parts_; }

  // Calls read(scratch, piece) for each part of all blocks.
  template <typename Fn>
  void for_each_part(Fn &&read) const {
    call_.for_each(boxes_.count() * steps_, [&](Scratch &scratch, int64_t i) {
      run(scratch, i / steps_, i % steps_, 0, 1, read);
    });
  }

  // Calls write(scratch, piece) for strips of each part of all blocks. Every box of blocks is one
  // group of the loop, so that a cancelled call leaves no block half done. Backwards, as norms may
  // have read them just before.
  template <typename Fn>
  void for_each_strip(Fn &&write) const {
    const int64_t group = steps_ * strips_;
    const LoopCuts cuts{.group = group, .unit = strips_, .direction = Direction::kBackwards};
    call_.for_each(
        boxes_.count() * group,
        [&](Scratch &scratch, int64_t i) {
          run(scratch, i / group, i / strips_ % steps_, i % strips_, strips_, write);
        },
        cuts);
  }

 private:
  // How a leaf is cut: boxes of blocks, one after the other, and each into parts.
  struct LeafCut {
    Tiling blocks;  // of a box
    Tiling parts;   // of a block
    Tiling strips;  // of a part
    int64_t first_part;

    int64_t count() const { return blocks.count() * parts.count(); }
  };

  LeafCut cut_of(const GridLeaf &leaf) const;
  // Piece `number` of a leaf's in a box; empty at some edges. And a strip of a part.
  Piece piece(size_t leaf, int64_t box, int64_t number) const;
  static Rect strip_of(const LeafCut &cut, const Rect &part, int64_t number);

  // Share `turn` of `turns` of a step's pieces, of each leaf: in strips, if there are several turns.
  template <typename Fn>
  void run(Scratch &scratch, int64_t box, int64_t step, int64_t turn, int64_t turns, Fn &fn) const {
    for (size_t l = 0; l < cuts_.size(); ++l) {
      const LeafCut &cut = cuts_[l];
      const int64_t strips = turns == 1 ? 1 : cut.strips.count();
      const int64_t first = step * cut.count() / steps_ * strips;
      const int64_t count = (step + 1) * cut.count() / steps_ * strips - first;
      for (int64_t i = turn * count / turns; i < (turn + 1) * count / turns; ++i) {
        const Scratch::Frame frame(scratch);
        Piece of_leaf = piece(l, box, (first + i) / strips);
        if (strips > 1) of_leaf.strip = strip_of(cut, of_leaf.strip, (first + i) % strips);
        if (of_leaf.blocks.count() * of_leaf.strip.count() > 0) fn(scratch, of_leaf);
      }
    }
  }

  Call &call_;
  const Grid &grid_;
  Tiling boxes_;  // of the grid
  std::pmr::vector<LeafCut> cuts_;
  int64_t parts_ = 0;
  int64_t steps_ = 1;   // of a box: as many as the leaf of most pieces has
  int64_t strips_ = 1;  // of a step: as many as the leaf of most strips has
};

}  // namespace spk
