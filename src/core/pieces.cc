#include "core/pieces.h"

#include <algorithm>

#include "core/tile.h"

namespace spk {
namespace {

// About as many elements are read of long rows, and written, at once.
constexpr int64_t kElements = int64_t{1} << 17;

// How many blocks of a leaf with short rows are taken together: long rows of them are read fastest,
// but threads want some pieces each.
int64_t side_by_side(const Grid &grid, const GridLeaf &leaf, int64_t threads) {
  constexpr int64_t kLeast = int64_t{1} << 11;
  constexpr int64_t kMost = int64_t{1} << 13;
  constexpr int64_t kPiecesOfThread = 4;
  const int64_t shared = grid.numblk() * parts_of(leaf).count() / (kPiecesOfThread * threads);
  const int64_t most = std::clamp(shared, kLeast, kMost);
  const int64_t boxes = (grid.numblk() + most - 1) / most;
  return (grid.numblk() + boxes - 1) / boxes;
}

// Of the leaves with short rows, the one with the largest blocks; NULL if there is none.
const GridLeaf *largest_of_short_rows(const Grid &grid) {
  const GridLeaf *largest = nullptr;
  for (const GridLeaf &leaf : grid.leaves) {
    if (leaf.has_long_rows()) continue;
    if (!largest || leaf.numel() > largest->numel()) largest = &leaf;
  }
  return largest;
}

// Blocks that are read and written together: tiles; or, of blocks in parts, one, or as many as lie
// side by side where rows are short.
Tiling boxes_of(const Grid &grid, int64_t threads) {
  if (!grid.is_deep() && !grid.is_thin()) return grid.tiles();
  const GridLeaf *leaf = largest_of_short_rows(grid);
  if (!leaf) return Tiling(grid.shape, grid.leaves[0].grid_x, 1, 1);
  return Tiling(grid.shape, leaf->grid_x, 1, side_by_side(grid, *leaf, threads));
}

}  // namespace

Pieces::Pieces(Call &call, const Grid &grid)
    : call_(call), grid_(grid), boxes_(boxes_of(grid, call.threads())), cuts_(call.memory()) {
  cuts_.reserve(grid.leaves.size());
  for (const GridLeaf &leaf : grid.leaves) {
    const LeafCut &cut = cuts_.emplace_back(cut_of(leaf));
    parts_ += cut.parts.count();
    steps_ = std::max(steps_, cut.count());
    strips_ = std::max(strips_, cut.strips.count());
  }
}

// Long rows are taken block by block, short ones across all blocks of a box.
Pieces::LeafCut Pieces::cut_of(const GridLeaf &leaf) const {
  constexpr int64_t kLeast = 64;
  const Extents &box = boxes_.extent();
  const Tiling parts = parts_of(leaf);
  if (leaf.has_long_rows()) {
    const Tiling blocks(box, leaf.grid_x, leaf.numel(), kElements);
    return {blocks, parts, Tiling(parts.extent()), parts_};
  }
  const Tiling strips(parts.extent(), leaf.block_x, 1, std::max(kLeast, kElements / box.product()));
  return {Tiling(box), parts, strips, parts_};
}

Piece Pieces::piece(size_t leaf, int64_t box, int64_t number) const {
  const LeafCut &cut = cuts_[leaf];
  const Rect in_grid = boxes_[box];
  const int64_t part = number % cut.parts.count();
  Rect blocks = cut.blocks[number / cut.parts.count()];
  for (int d = 0; d < blocks.extent.size(); ++d) {
    blocks.extent[d] = std::clamp<int64_t>(in_grid.extent[d] - blocks.low[d], 0, blocks.extent[d]);
  }
  blocks.low = plus(blocks.low, in_grid.low);
  return {grid_.leaves[leaf], cut.first_part + part, blocks, cut.parts[part]};
}

Rect Pieces::strip_of(const LeafCut &cut, const Rect &part, int64_t number) {
  Rect strip = cut.strips[number];
  for (int d = 0; d < strip.extent.size(); ++d) {
    strip.extent[d] = std::clamp<int64_t>(part.extent[d] - strip.low[d], 0, strip.extent[d]);
  }
  strip.low = plus(strip.low, part.low);
  return strip;
}

}  // namespace spk
