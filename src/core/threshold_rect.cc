#include "core/threshold_rect.h"

#include "base/dtype.h"

namespace spk {
namespace {

bool is_suitable(const Grid &grid) {
  if (grid.leaves.size() != 1 || grid.is_deep() || grid.numel_per_block > kMostRowsAcross) {
    return false;
  }
  // Norms of doubles, and of what is coupled with doubles, are told more exactly.
  const GridLeaf &leaf = grid.leaves[0];
  return grid.score_dtype != SPK_F64 && !leaf.along && leaf.grid_x == leaf.grid_y &&
         leaf.block_x == leaf.block_y;
}

bool is_suitable(const GridLeaf &leaf, const ReducePlan &plan) {
  const NestDim &inner = plan.blocks[0];
  return has_dense_results(plan) && inner.extent % kLanes == 0 &&
         inner.step[0] == size_of(leaf.dtype);
}

int64_t run(const GridLeaf &leaf, const ReducePlan &plan, const Extents &low, int64_t ahead,
            const RectThresholds &thresholds) {
  ThresholdArgs args{};
  args.blocks = reduce_args(plan);
  args.to_y = leaf.y - leaf.x;
  args.blocks.ahead = ahead;
  args.threshold_scale = thresholds.scale;
  args.eps = thresholds.eps;
  const std::byte *x = leaf.x + dot(low, leaf.grid_x);
  int64_t alive = 0;
  plan.blocks.for_each_outer(2, [&](const int64_t *offset) {
    args.blocks.x = x + offset[0];
    args.threshold = thresholds.threshold + offset[1];
    alive += thresholds.kernel[index_of_dtype(leaf.dtype)](args);
  });
  return alive;
}

}  // namespace

bool threshold_rect(Scratch &scratch, const Grid &grid, const Rect &rect,
                    const RectThresholds &thresholds, int64_t *alive) {
  if (!is_suitable(grid)) return false;
  const GridLeaf &leaf = grid.leaves[0];
  if (rect.extent == grid.tile) {
    if (!is_suitable(leaf, leaf.reduce)) return false;
    *alive = run(leaf, leaf.reduce, rect.low, leaf.ahead, thresholds);
    return true;
  }
  const Scratch::Frame frame(scratch);
  ScratchMemory memory(&scratch);
  const ReducePlan plan =
      plan_reduction(leaf, rect.extent, rect.extent.row_major(), Rect::whole(leaf.block), &memory);
  if (!is_suitable(leaf, plan)) return false;
  *alive = run(leaf, plan, rect.low, 0, thresholds);
  return true;
}

}  // namespace spk
