#include "core/grid.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/dtype.h"
#include "kernels/kernels.h"

namespace spk {
namespace {

// Rows along a block are summed in whole registers if they are at least this long.
constexpr int64_t kAlongElements = 8;
// Bytes that a tile spans at least along its innermost dimension.
constexpr int64_t kLeastRow = 256;

// The dimension of more than one index where `step` is least; -1 if there is none.
int innermost_of(const Extents &shape, const Extents &step) {
  int innermost = -1;
  for (int d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    if (innermost < 0 || std::abs(step[d]) < std::abs(step[innermost])) innermost = d;
  }
  return innermost;
}

// The last dimension of more than one index; -1 if there is none.
int last_dim_of(const Extents &shape) {
  int d = shape.size() - 1;
  while (d >= 0 && shape[d] == 1) --d;
  return d;
}

// The dimension that continues a row of `bytes` bytes; -1 if there is none.
int continuing(const Extents &shape, const Extents &step, int64_t bytes) {
  for (int d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1 && std::abs(step[d]) == bytes) return d;
  }
  return -1;
}

// Indices that a row of `bytes` takes; whole groups of kLanes, which kernels take together.
int64_t least_row(int64_t step, int64_t bytes) {
  const int64_t row = bytes / std::max<int64_t>(step, 1);
  return row > kLanes / 2 ? (row + kLanes - 1) / kLanes * kLanes : row;
}

// A row of a few elements would waste most of each cache line: boxes have rows of at least so many
// bytes, along the innermost dimension and those that continue it.
Extents least_of(const Extents &shape, const Extents &step, int64_t bytes = kLeastRow) {
  Extents least(shape.size(), 1);
  int d = innermost_of(shape, step);
  const int64_t first = d < 0 ? 0 : std::abs(step[d]);
  const int64_t row = least_row(first, bytes);
  for (int64_t found = 1; d >= 0 && found < row;) {
    const int64_t group = row % kLanes == 0 ? kLanes / std::gcd(found, kLanes) : 1;
    const int64_t missing = (row + found - 1) / found;
    least[d] = std::min(shape[d], (missing + group - 1) / group * group);
    found *= least[d];
    d = least[d] == shape[d] ? continuing(shape, step, found * first) : -1;
  }
  return least;
}

// Bytes between neighbouring blocks along each axis of the block's grid.
Extents block_steps(const Leaf &leaf, const LeafData &data) {
  Extents steps;
  for (int64_t axis : leaf.order) {
    const int d = static_cast<int>(axis);
    // A single block has no neighbour, and its step could overflow.
    const bool single = leaf.block_shape[d] == leaf.view->shape[d];
    steps.push_back(single ? 0 : data.stride[d] * leaf.block_shape[d] * size_of(data.dtype));
  }
  return steps;
}

// Splits steps of a block grid into those between scopes and those inside a scope.
Extents split_steps(const ScopeMember &member, const Extents &step) {
  Extents result;
  for (int64_t axis : member.order) {
    const int a = static_cast<int>(axis);
    const bool single = member.shape[a] == member.block->grid_shape[a];
    result.push_back(single ? 0 : step[a] * member.shape[a]);
  }
  return concat(result, step);
}

// Elements of a block that are known to lie one after the other.
int64_t run_of(const GridLeaf &leaf) {
  int64_t run = 1;
  for (bool grown = true; grown;) {
    grown = false;
    for (int d = 0; d < leaf.block.size(); ++d) {
      if (leaf.block[d] > 1 && std::abs(leaf.block_x[d]) == run * size_of(leaf.dtype)) {
        run *= leaf.block[d];
        grown = true;
      }
    }
  }
  return run;
}

// Do the elements of a box of blocks lie with nothing between them, in any order but backwards?
bool is_gapless(const GridLeaf &leaf, const Extents &box) {
  int64_t last = 0;  // bytes to the last element
  for (int d = 0; d < box.size(); ++d) last += (box[d] - 1) * leaf.grid_x[d];
  for (int d = 0; d < leaf.block.size(); ++d) last += (leaf.block[d] - 1) * leaf.block_x[d];
  const int64_t size = size_of(leaf.dtype);
  return last + size == box.product() * leaf.numel() * size;
}

// Are its blocks such that kernels can keep them in registers between norm and rescaling?
bool is_small(const GridLeaf &leaf) {
  const bool in_same_places = leaf.grid_x == leaf.grid_y && leaf.block_x == leaf.block_y;
  const int64_t numel = leaf.numel();
  const bool is_row = leaf.run == numel && numel <= kMostAlong;
  const bool has_tiny_rows = is_tiny(leaf.run) && numel <= leaf.run * kMostTinyRows;
  const bool is_column = leaf.run == 1 && numel <= kMostRowsAcross;
  return in_same_places && (is_row || has_tiny_rows || is_column);
}

// Are elements of a tile visited once? Leaves of a coupling lie in different orders, and larger
// tiles would reach over more rows of each. No kernel thresholds small blocks of doubles in one go.
bool is_visited_once(const Grid &grid, Visits visits) {
  if (grid.leaves.size() > 1) return false;
  const bool in_one_go = grid.score_dtype != SPK_F64 && is_small(grid.leaves[0]);
  return visits == Visits::kOnce || (visits == Visits::kByThreshold && in_one_go);
}

void plan_tiles(Grid *grid, Memory *memory) {
  const Tiling tiles = grid->tiles();
  grid->tile = tiles.extent();
  for (GridLeaf &leaf : grid->leaves) {
    leaf.plan_boxes(tiles, grid->tile.row_major(), memory);
    leaf.write = plan_writing(leaf, grid->tile, grid->tile.row_major(), Rect::whole(leaf.block));
  }
}

Grid make_grid(const Extents &shape, const Block &block, const ScopeMember *member,
               int32_t score_dtype, const LeafSpan &x, const LeafSpan &into, Visits visits,
               Memory *memory) {
  Grid grid{.shape = shape,
            .numel_per_block = block.numel_per_block,
            .score_dtype = score_dtype,
            .leaves = std::pmr::vector<GridLeaf>(memory),
            .tile = {}};
  grid.leaves.reserve(block.leaves.size());
  const size_t first = member ? static_cast<size_t>(member->first_leaf) : 0;
  for (size_t i = 0; i < block.leaves.size(); ++i) {
    const Leaf &leaf = block.leaves[i];
    const LeafData &from = x[first + i];
    const LeafData &to = into.empty() ? from : into[first + i];
    GridLeaf &made = grid.leaves.emplace_back();
    made.dtype = from.dtype;
    made.x = from.origin;
    made.y = to.origin;
    made.grid_x = block_steps(leaf, from);
    made.grid_y = block_steps(leaf, to);
    if (member) {
      made.grid_x = split_steps(*member, made.grid_x);
      made.grid_y = split_steps(*member, made.grid_y);
    }
    made.block = leaf.block_shape;
    made.block_x = from.stride.times(size_of(from.dtype));
    made.block_y = to.stride.times(size_of(to.dtype));
    made.run = run_of(made);
    // This fixes the order of sums, so it depends on the layout of the leaf alone.
    made.along = block.numblk == 1 || made.run >= kAlongElements;
  }
  if (is_visited_once(grid, visits)) {
    // Blocks that kernels do not take after all, as they lie or for want of caches, will be visited
    // twice, while in caches.
    const int64_t elements = grid.streamed_elements();
    grid.tile_elements = visits == Visits::kOnce ? elements : std::min(elements, kMostStreamed);
  }
  const int64_t bytes = grid.bytes();
  for (GridLeaf &leaf : grid.leaves) leaf.past_caches = bytes >= kCacheBytes;
  if (!grid.is_deep()) plan_tiles(&grid, memory);
  return grid;
}

}  // namespace

int64_t streamed_elements(int64_t numel, int64_t at_most) {
  constexpr int64_t kLeastTiles = 64;  // there are threads to keep busy
  return std::clamp(numel / kLeastTiles, kTileElements, at_most);
}

Tiling::Tiling(const Extents &shape, const Extents &step, int64_t weight, int64_t budget)
    : Tiling(shape, step, weight, budget, least_of(shape, step)) {}

Tiling::Tiling(const Extents &shape, const Extents &step, int64_t weight, int64_t budget,
               const Extents &least)
    : shape_(shape), tile_(least), tiles_(shape.size(), 1) {
  int order[kMaxDims];
  for (int d = 0; d < shape.size(); ++d) order[d] = d;
  std::sort(order, order + shape.size(),
            [&](int a, int b) { return std::abs(step[a]) < std::abs(step[b]); });
  int64_t room = std::max<int64_t>(budget / std::max<int64_t>(weight, 1) / least.product(), 1);
  for (int i = 0; i < shape.size(); ++i) {
    const int d = order[i];
    const int64_t fitting = (shape[d] + tile_[d] - 1) / tile_[d];
    const int64_t times = std::min(room, fitting);
    tile_[d] = std::min(shape[d], tile_[d] * times);
    room /= times;
  }
  for (int d = 0; d < shape.size(); ++d) {
    tiles_[d] = (shape[d] + tile_[d] - 1) / tile_[d];
    count_ *= tiles_[d];
  }
}

Rect Tiling::operator[](int64_t index) const {
  Rect rect{index_at(tiles_, index), tile_};
  for (int d = 0; d < shape_.size(); ++d) {
    rect.low[d] *= tile_[d];
    rect.extent[d] = std::min(tile_[d], shape_[d] - rect.low[d]);
  }
  return rect;
}

int64_t Tiling::stride(const Extents &step) const {
  for (int d = shape_.size() - 1; d >= 0; --d) {
    if (tiles_[d] > 1) return tile_[d] * step[d];
  }
  return 0;
}

namespace {

// Kernels take kLanes blocks together: two or three would cost as much as half of them.
int64_t at_least_half(int64_t blocks) {
  return blocks > 1 ? std::max(blocks, kLanes / 2) : blocks;
}

// Each leaf has a dimension along which its memory is read in rows: of `bytes` at least, or of `across`
// if it is not the last of the grid.
Extents least_of_all(const Grid &grid, int64_t bytes, int64_t across) {
  Extents least(grid.shape.size(), 1);
  for (const GridLeaf &leaf : grid.leaves) {
    const bool is_last = innermost_of(grid.shape, leaf.grid_x) == last_dim_of(grid.shape);
    const Extents own = least_of(grid.shape, leaf.grid_x, is_last ? bytes : across);
    for (int d = 0; d < least.size(); ++d) least[d] = std::max(least[d], at_least_half(own[d]));
  }
  return least;
}

}  // namespace

Tiling Grid::tiles() const {
  constexpr int64_t kFewElements = 4;
  constexpr int64_t kScoreBytes = sizeof(float);
  constexpr int64_t kMostBlocks = int64_t{1} << 14;
  constexpr int64_t kMostCoupledBytes = int64_t{1} << 16;
  Extents least = least_of_all(*this, kLeastRow, kLeastRow);
  // Boxes follow each other along the last dimension. Leaves whose rows lie along another have only
  // those of a box to read in one go: longer ones, unless that takes too much memory. The box and the
  // one asked for ahead share the second level of cache, and lines of many rows compete for its sets.
  if (leaves.size() > 1) {
    const Extents longer = least_of_all(*this, kLeastRow, 2 * kLeastRow);
    if (longer.product() * bytes_per_block() <= kMostCoupledBytes) least = longer;
  }
  // Arrays with an entry for each block of a few elements are as much memory as a leaf; but rows for
  // all of them together may be too much for a box.
  if (numel_per_block <= kFewElements) {
    Extents both = least_of(shape, shape.row_major().times(kScoreBytes));
    for (int d = 0; d < shape.size(); ++d) both[d] = std::max(both[d], least[d]);
    if (both.product() <= kMostBlocks) least = both;
  }
  return Tiling(shape, leaves[0].grid_x, std::max(numel_per_block, kBlockWeight), tile_elements,
                least);
}

Extents Grid::least_with_rows(int64_t bytes) const {
  return least_of_all(*this, bytes, bytes);
}

int64_t Grid::streamed_elements() const {
  // So many blocks side by side make long rows of short ones, or of single elements.
  constexpr int64_t kOfShortRows = 128;
  constexpr int64_t kOfElements = 4096;
  const GridLeaf &leaf = leaves[0];
  // Norms of doubles may visit a box again, to scale its elements: they should still be in cache.
  const bool may_be_large = score_dtype != SPK_F64 && (!leaf.along || leaf.has_short_rows());
  const int64_t beside = leaf.along ? kOfShortRows : kOfElements;
  const int64_t at_most =
      may_be_large ? std::max(kMostStreamed, beside * numel_per_block) : kMostStreamed;
  return spk::streamed_elements(numblk() * numel_per_block, at_most);
}

void GridLeaf::plan_boxes(const Tiling &boxes, const Extents &local, Memory *memory) {
  reduce = plan_reduction(*this, boxes.extent(), local, Rect::whole(block), memory);
  ahead = boxes.stride(grid_x);
  soon = is_gapless(*this, boxes.extent()) ? kFar : not_in_stream(ahead);
}

bool GridLeaf::has_short_rows() const {
  return along && run < numel() && run * size_of(dtype) <= kShortRow;
}

bool GridLeaf::has_ragged_rows() const {
  constexpr int64_t kLine = 64;
  const int64_t bytes = run * size_of(dtype);
  return !has_long_rows() && bytes % kLine != 0 && kLine % bytes != 0;
}

bool GridLeaf::is_tall() const {
  return has_many_rows() && !has_long_rows() && numel() > kTallElements;
}

int64_t Grid::bytes() const {
  int64_t bytes = 0;
  for (const GridLeaf &leaf : leaves) bytes += numblk() * leaf.numel() * size_of(leaf.dtype);
  return bytes;
}

bool Grid::is_deep() const {
  if (is_large()) return true;
  if (numel_per_block < kDeepElements) return false;
  // Leaves of fewer elements, such as a bias, are read with others.
  constexpr int64_t kLeast = 64;
  return std::any_of(leaves.begin(), leaves.end(), [](const GridLeaf &leaf) {
    const bool is_scattered = !leaf.along || leaf.has_ragged_rows() || leaf.is_tall();
    return is_scattered && leaf.numel() >= kLeast;
  });
}

bool Grid::is_better_by_leaf(int64_t least_elements) const {
  constexpr int64_t kNearCache = int64_t{1} << 20;
  bool alike = true;
  bool are_large_enough = true;
  const int first = innermost_of(shape, leaves[0].grid_x);
  for (const GridLeaf &leaf : leaves) {
    const int row = innermost_of(shape, leaf.grid_x);
    alike &= row == first;
    are_large_enough &= leaf.numel() >= least_elements || row == last_dim_of(shape);
  }
  return !alike && are_large_enough && bytes() > kNearCache;
}

bool Grid::is_thin() const {
  constexpr int64_t kRowsOfThin = 256;
  return std::any_of(leaves.begin(), leaves.end(), [](const GridLeaf &leaf) {
    return !leaf.has_long_rows() && leaf.numel() / leaf.run >= kRowsOfThin;
  });
}

MemoryOrder::MemoryOrder(const GridLeaf &leaf) : ndim_(leaf.grid_x.size()) {
  const auto begin = dims_.begin();
  std::iota(begin, begin + ndim_, 0);
  std::sort(begin, begin + ndim_,
            [&](int a, int b) { return std::abs(leaf.grid_x[a]) > std::abs(leaf.grid_x[b]); });
}

Extents MemoryOrder::of(const Extents &per_dim) const {
  Extents result;
  for (int d = 0; d < ndim_; ++d) result.push_back(per_dim[dims_[static_cast<size_t>(d)]]);
  return result;
}

Grid leaf_alone(const Grid &grid, size_t leaf, const MemoryOrder &order, Memory *memory) {
  Grid alone{.shape = order.of(grid.shape),
             .numel_per_block = grid.leaves[leaf].numel(),
             .score_dtype = grid.score_dtype,
             .leaves = {1, grid.leaves[leaf], memory},
             .tile = {}};
  GridLeaf &own = alone.leaves[0];
  own.grid_x = order.of(own.grid_x);
  own.grid_y = order.of(own.grid_y);
  alone.tile_elements = alone.streamed_elements();
  plan_tiles(&alone, memory);
  return alone;
}

Grid block_grid(const Block &block, const LeafSpan &x, const LeafSpan &into, Visits visits,
                Memory *memory) {
  return make_grid(block.grid_shape, block, nullptr, block.score_dtype, x, into, visits, memory);
}

Grid member_grid(const Scope &scope, int member, const LeafSpan &x, const LeafSpan &into,
                 Visits visits, Memory *memory) {
  const ScopeMember &m = scope.members[static_cast<size_t>(member)];
  return make_grid(concat(scope.grid_shape, m.shape), *m.block, &m, scope.score_dtype, x, into,
                   visits, memory);
}

Grids grids_of(const Block &block, const LeafSpan &x, const LeafSpan &into, Visits visits,
               Memory *memory) {
  Grids grids(memory);
  grids.push_back(block_grid(block, x, into, visits, memory));
  return grids;
}

Grids grids_of(const Scope &scope, const LeafSpan &x, const LeafSpan &into, Visits visits,
               Memory *memory) {
  Grids grids(memory);
  grids.reserve(scope.members.size());
  for (int m = 0; m < static_cast<int>(scope.members.size()); ++m) {
    grids.push_back(member_grid(scope, m, x, into, visits, memory));
  }
  return grids;
}

GridArray per_block(const Block &block, const ArrayData &array) {
  return {array.data, array.dtype, block.grid_shape.row_major().times(size_of(array.dtype))};
}

GridArray per_block_of_member(const Scope &scope, int member, const ArrayData &array) {
  const ScopeMember &m = scope.members[static_cast<size_t>(member)];
  const Extents step = m.block->grid_shape.row_major().times(size_of(array.dtype));
  return {array.data, array.dtype, split_steps(m, step)};
}

GridArray per_scope(const Scope &scope, int member, const ArrayData &array) {
  const ScopeMember &m = scope.members[static_cast<size_t>(member)];
  const Extents step = scope.grid_shape.row_major().times(size_of(array.dtype));
  return {array.data, array.dtype, concat(step, Extents(m.shape.size(), 0))};
}

GridArray in_scope_order(const Scope &scope, int member, const ArrayData &array) {
  const ScopeMember &m = scope.members[static_cast<size_t>(member)];
  const int64_t size = size_of(array.dtype);
  const Extents scopes = scope.grid_shape.row_major().times(scope.numblk_per_scope * size);
  const Extents positions = m.shape.row_major().times(size);
  return {array.data + m.first_position * size, array.dtype, concat(scopes, positions)};
}

GridArray one_for_all(const Grid &grid, const ArrayData &array) {
  return {array.data, array.dtype, Extents(grid.shape.size(), 0)};
}

}  // namespace spk
