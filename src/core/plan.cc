#include "core/plan.h"

#include "base/dtype.h"
#include "core/grid.h"
#include "kernels/kernels.h"

namespace spk {
namespace {

// Sums across blocks vectorise over the innermost dimension of blocks that fills a register, else
// the longest. Moves it to the front.
void bring_long_inside(Nest *nest) {
  constexpr int64_t kRegister = 8;
  int best = 0;
  for (int d = 0; d < nest->count(); ++d) {
    if ((*nest)[d].extent > (*nest)[best].extent) best = d;
    if ((*nest)[best].extent >= kRegister) break;
  }
  if (nest->count() > 0) nest->move(best, 0);
}

void plan_blocks(const GridLeaf &leaf, const Extents &extent, const Extents &local,
                 ReducePlan *plan) {
  for (int d = 0; d < extent.size(); ++d) plan->blocks.add(extent[d], leaf.grid_x[d], local[d]);
  plan->blocks.compile();
  if (!leaf.along) bring_long_inside(&plan->blocks);
  plan->blocks.pad_to(2);
}

void plan_rows(const GridLeaf &leaf, const Rect &part, Memory *memory, ReducePlan *plan) {
  Nest nest;
  for (int d = 0; d < part.extent.size(); ++d) nest.add(part.extent[d], leaf.block_x[d]);
  nest.compile();
  nest.pad_to(1);
  plan->rows = part.count();
  if (leaf.along) {
    plan->n = nest[0].extent;
    plan->step = nest[0].step[0] / size_of(leaf.dtype);
    plan->rows /= plan->n;
  }
  const auto bytes = static_cast<size_t>(plan->rows) * sizeof(int64_t);
  auto *row = static_cast<int64_t *>(memory->allocate(bytes, alignof(int64_t)));
  plan->row = row;
  const int64_t first = dot(part.low, leaf.block_x);
  nest.for_each_outer(leaf.along ? 1 : 0,
                      [&](const int64_t *offset) { *row++ = first + offset[0]; });
}

// How many elements lie together and are followed by those of the next block, as kernels whose sums
// run across blocks want to know.
int64_t elements_together(const GridLeaf &leaf, const ReducePlan &plan) {
  const int64_t size = size_of(leaf.dtype);
  const int64_t n = plan.blocks[0].step[0] / size;
  if (n < 2 || n >= kLanes || plan.rows % n != 0) return 1;
  for (int64_t r = 0; r < plan.rows; ++r) {
    if (plan.row[r] != plan.row[r / n * n] + r % n * size) return 1;
  }
  return n;
}

}  // namespace

ReducePlan plan_reduction(const GridLeaf &leaf, const Extents &extent, const Extents &local,
                          const Rect &part, Memory *memory) {
  ReducePlan plan;
  plan_blocks(leaf, extent, local, &plan);
  plan_rows(leaf, part, memory, &plan);
  if (!leaf.along) plan.n = elements_together(leaf, plan);
  return plan;
}

WritePlan plan_writing(const GridLeaf &leaf, const Extents &extent, const Extents &local,
                       const Rect &part) {
  Nest nest;
  for (int d = 0; d < extent.size(); ++d) {
    nest.add(extent[d], leaf.grid_x[d], leaf.grid_y[d], local[d]);
  }
  for (int d = 0; d < part.extent.size(); ++d) {
    nest.add(part.extent[d], leaf.block_x[d], leaf.block_y[d], 0);
  }
  nest.compile();
  nest.pad_to(3);
  return nest;
}

}  // namespace spk
