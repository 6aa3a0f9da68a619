#include "core/slabs.h"

#include <algorithm>

#include "base/dtype.h"
#include "core/extra_memory.h"
#include "core/tile.h"

namespace spk {
namespace {

// Rows of so many bytes are read fast in any order.
constexpr int64_t kRowOfSlab = int64_t{1} << 10;

int64_t most_blocks(const Grid &grid, int64_t kept, int64_t threads) {
  return std::max<int64_t>(extra_bytes(grid.bytes(), threads) / kept, 1);
}

}  // namespace

Tiling slabs_of(const Grid &grid, int64_t kept, int64_t threads) {
  const int64_t blocks = most_blocks(grid, kept, threads);
  if (blocks >= grid.numblk()) return Tiling(grid.shape);
  const Extents &step = grid.leaves[0].grid_x;
  if (!slabs_have_long_rows(grid, kept, threads)) return Tiling(grid.shape, step, 1, blocks);
  return Tiling(grid.shape, step, 1, blocks, grid.least_with_rows(kRowOfSlab));
}

bool slabs_have_long_rows(const Grid &grid, int64_t kept, int64_t threads) {
  return grid.least_with_rows(kRowOfSlab).product() <= most_blocks(grid, kept, threads);
}

int64_t kept_by_norms(const Grid &grid) {
  int64_t parts = 0;
  for (const GridLeaf &leaf : grid.leaves) parts += parts_of(leaf).count();
  // A sum for each part; the norm, a threshold or factor, a keep byte. Doubles have errors beside
  // their sums, and norms near the ends of their range a magnitude, a scale, another sum and error.
  const bool has_doubles = grid.score_dtype == SPK_F64;
  return kDoubleBytes * (has_doubles ? 2 * parts + 8 : parts + 3);
}

Grid blocks_in(const Rect &box, const Grid &grid, Memory *memory) {
  Grid part{.shape = box.extent,
            .numel_per_block = grid.numel_per_block,
            .score_dtype = grid.score_dtype,
            .leaves = std::pmr::vector<GridLeaf>(grid.leaves, memory),
            .tile = {}};
  for (GridLeaf &leaf : part.leaves) {
    leaf.x += dot(box.low, leaf.grid_x);
    leaf.y += dot(box.low, leaf.grid_y);
  }
  return part;
}

GridArray entries_in(const Rect &box, const GridArray &array) {
  GridArray part = array;
  part.data += dot(box.low, array.step);
  return part;
}

}  // namespace spk
