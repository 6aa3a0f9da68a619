#include "core/threshold_rect.h"

#include <optional>

#include "base/dtype.h"
#include "core/reduce.h"

namespace spk {
namespace {

bool is_suitable(const Grid &grid) {
  if (grid.leaves.size() != 1 || grid.is_deep() || grid.numel_per_block > kMostInOneGo)
    return false;
  const GridLeaf &leaf = grid.leaves[0];
  // Norms of what is coupled with doubles are told more exactly than those of its own dtype.
  const bool own_scores = grid.score_dtype != SPK_F64 || leaf.dtype == SPK_F64;
  return own_scores && leaf.grid_x == leaf.grid_y && leaf.block_x == leaf.block_y;
}

// Are blocks one row each, of as many elements as kernels for rows take?
bool are_single_rows(const GridLeaf &leaf) {
  return leaf.along && leaf.run == leaf.numel() && leaf.run >= kLeastInRow;
}

// Do blocks have one row of fewer than kLanes elements, or a few tiny ones? Their sums run across
// them.
bool have_rows_below_lanes(const GridLeaf &leaf, const ReducePlan &plan) {
  if (leaf.along || plan.n == 1) return false;
  return plan.rows <= plan.n * (is_tiny(plan.n) ? kMostTinyRows : 1);
}

// Do the rows of the next block of the grid begin where a block's own end? If those of another one
// do, results of neighbours are not dense.
bool has_neighbour_beside(const Grid &grid) {
  const GridLeaf &leaf = grid.leaves[0];
  int d = grid.shape.size() - 1;
  while (d >= 0 && grid.shape[d] == 1) --d;
  return d >= 0 && leaf.grid_x[d] == leaf.run * size_of(leaf.dtype);
}

// Are blocks tiles that kernels take?
bool are_tiles(const RectThresholds &how, const Grid &grid) {
  const GridLeaf &leaf = grid.leaves[0];
  const int64_t row_bytes = leaf.run * size_of(leaf.dtype);
  const bool has_length = leaf.run == kLanes || leaf.run == 2 * kLanes || leaf.run >= kLeastInRow;
  const bool are_ahead =
      how.holds_rows_ahead && leaf.past_caches && row_bytes >= kLeastInTileRowAhead;
  const TileSize most = are_ahead ? kMostInTileAhead : kMostInTile;
  return leaf.has_short_rows() && has_length && has_neighbour_beside(grid) &&
         row_bytes <= most.row_bytes && leaf.numel() <= most.numel;
}

ThresholdKernel kernel_for(const RectThresholds &how, const Grid &grid, const ReducePlan &plan,
                           bool doubles) {
  const GridLeaf &leaf = grid.leaves[0];
  const auto *along = are_single_rows(leaf)  ? how.rows
                      : are_tiles(how, grid) ? how.tiles
                                             : how.along;
  const bool is_row = leaf.along || have_rows_below_lanes(leaf, plan);
  return (is_row ? along : how.across)[index_of_dtype(leaf.dtype)][doubles];
}

// Do blocks lie as the kernels want them?
bool is_suitable(const RectThresholds &how, const Grid &grid, const ReducePlan &plan) {
  const GridLeaf &leaf = grid.leaves[0];
  const NestDim &inner = plan.blocks[0];
  if (!has_dense_results(plan)) return false;
  const int64_t size = size_of(leaf.dtype);
  if (have_rows_below_lanes(leaf, plan)) return inner.extent >= kLanes;
  if (!leaf.along) {
    const int64_t most = how.holds_rows_ahead ? kMostRowsAcross : kFewRowsAcross;
    return plan.rows <= most && inner.step[0] == size && inner.extent % kLanes == 0;
  }
  if (plan.step != 1) return false;
  if (are_tiles(how, grid)) {
    return plan.n == leaf.run && (inner.extent == 1 || inner.step[0] == plan.n * size);
  }
  if (plan.rows != 1) return false;
  if (are_single_rows(leaf)) return true;
  const bool is_short = plan.n >= kLanes && plan.n <= kMostAlong;
  return is_short && inner.step[0] == plan.n * size && inner.extent >= kLanes;
}

// Thresholds of a box, row-major: the caller's own where they lie so, else a copy.
struct LocalThresholds {
  const std::byte *data;
  int64_t size;  // bytes of one

  bool are_doubles() const { return size == size_of(SPK_F64); }
};

LocalThresholds local_thresholds(const Kernels &kernels, Scratch &scratch, const Rect &rect,
                                 const GridArray &array) {
  if (array.dtype == SPK_F32) {
    const float *floats = load_floats(kernels, scratch, rect, array);
    return {reinterpret_cast<const std::byte *>(floats), size_of(SPK_F32)};
  }
  if (is_row_major(rect, array)) {
    return {array.data + dot(rect.low, array.step), size_of(SPK_F64)};
  }
  double *copy = scratch.take<double>(rect.count());
  load(kernels, rect, array, copy);
  return {reinterpret_cast<const std::byte *>(copy), size_of(SPK_F64)};
}

int64_t run(const Grid &grid, const ReducePlan &plan, const Extents &low, int64_t soon,
            const RectThresholds &how, const LocalThresholds &thresholds) {
  const GridLeaf &leaf = grid.leaves[0];
  const ThresholdKernel kernel = kernel_for(how, grid, plan, thresholds.are_doubles());
  ThresholdArgs args{};
  args.blocks = reduce_args(plan);
  args.to_y = leaf.y - leaf.x;
  // Boxes of more dimensions are taken in pieces, of which the next follows another way.
  args.blocks.ahead = plan.blocks.count() == 2 ? how.ahead : 0;
  args.blocks.soon = soon;
  args.blocks.from_memory = leaf.past_caches;
  args.threshold_scale = how.scale;
  args.eps = how.eps;
  const std::byte *x = leaf.x + dot(low, leaf.grid_x);
  int64_t alive = 0;
  plan.blocks.for_each_outer(2, [&](const int64_t *offset) {
    args.blocks.x = x + offset[0];
    args.threshold = thresholds.data + offset[1] * thresholds.size;
    alive += kernel(args);
  });
  return alive;
}

}  // namespace

Tiling threshold_boxes(const Grid &grid, RectThresholds *how) {
  const GridLeaf &leaf = grid.leaves[0];
  const bool in_one_go = is_suitable(grid) && (are_single_rows(leaf) || are_tiles(*how, grid)) &&
                         kernel_for(*how, grid, leaf.reduce, false) &&
                         is_suitable(*how, grid, leaf.reduce);
  Tiling boxes =
      in_one_go ? Tiling(grid.shape, leaf.grid_x, grid.numel_per_block, grid.streamed_elements())
                : grid.tiles();
  how->ahead = boxes.stride(leaf.grid_x);
  return boxes;
}

bool threshold_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                    const RectThresholds &how, int64_t *alive) {
  if (!is_suitable(grid)) return false;
  const GridLeaf &leaf = grid.leaves[0];
  const Scratch::Frame frame(scratch);
  ScratchMemory memory(&scratch);
  std::optional<ReducePlan> own;  // of a box at the edge
  const bool is_tile = rect.extent == grid.tile;
  if (!is_tile) {
    own = plan_reduction(leaf, rect.extent, rect.extent.row_major(), Rect::whole(leaf.block),
                         &memory);
  }
  const ReducePlan &plan = is_tile ? leaf.reduce : *own;
  if (!is_suitable(how, grid, plan) || !kernel_for(how, grid, plan, false)) return false;
  const LocalThresholds thresholds = local_thresholds(kernels, scratch, rect, how.array);
  *alive = run(grid, plan, rect.low, is_tile ? leaf.soon : 0, how, thresholds);
  return true;
}

}  // namespace spk
