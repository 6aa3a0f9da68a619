#include "core/soft_threshold.h"

#include <algorithm>
#include <cassert>

#include "core/elements.h"
#include "core/norms.h"
#include "core/slabs.h"
#include "core/threshold_rect.h"
#include "core/write_blocks.h"

namespace spk {
namespace {

// Blocks of one element, in rows.
void soft_threshold_elements(Call &call, const Grid &grid, const ElementRows &rows,
                             const GridArray &thresholds, const SoftOptions &options,
                             Tally *tally) {
  assert(options.threshold_scale == 1.0);  // the root of the block size
  const auto shrink =
      call.kernels()
          .shrink_elements[index_of_dtype(grid.leaves[0].dtype)][thresholds.dtype == SPK_F64];
  rows.for_each(call, Entries::kRead,
                [&](const ElementArgs &args) { tally->achieved += shrink(args, options.eps); });
}

// Blocks that are cut into parts.
void soft_threshold_deep(Call &call, const Grid &grid, const GridArray &thresholds,
                         const SoftOptions &options, Tally *tally) {
  const Kernels &kernels = call.kernels();
  const int64_t count = grid.numblk();
  double *norms = call.scratch().take<double>(count);
  double *factor = call.scratch().take<double>(count);
  norms_deep(call, grid, 2.0, norms);
  load(kernels, Rect::whole(grid.shape), thresholds, factor);
  tally->achieved += kernels.shrink(norms, count, options.threshold_scale, options.eps, factor);
  scale_all(call, grid, factor);
}

// Do blocks stay in the caches of a processor, and are there enough to keep threads busy with one
// each? Short rows are read across blocks; each block has its own copy of the grid's leaves, which
// should be little beside them.
bool is_done_by_block(const Grid &grid, int64_t threads) {
  constexpr int64_t kCached = int64_t{4} << 20;
  constexpr int64_t kBlocksOfThread = 4;
  constexpr int64_t kLeastLeaf = int64_t{64} << 10;
  const int64_t bytes = grid.bytes_per_block();
  const auto leaves = static_cast<int64_t>(grid.leaves.size());
  return grid.numblk() >= kBlocksOfThread * threads && bytes <= kCached &&
         bytes >= kLeastLeaf * leaves &&
         std::all_of(grid.leaves.begin(), grid.leaves.end(),
                     [](const GridLeaf &leaf) { return leaf.has_long_rows(); });
}

// Blocks that are cut into parts, each on one thread, which rescales it before it leaves the
// caches.
void soft_threshold_by_block(Call &call, const Grid &grid, const GridArray &thresholds,
                             const SoftOptions &options, Tally *tally) {
  const Tiling blocks(grid.shape, grid.leaves[0].grid_x, 1, 1, Extents(grid.shape.size(), 1));
  call.for_each(blocks.count(), [&](Scratch &scratch, int64_t i) {
    Call part(call, scratch);
    soft_threshold_deep(part, blocks_in(blocks[i], grid, part.memory()),
                        entries_in(blocks[i], thresholds), options, tally);
  });
}

// Returns how many blocks stay alive.
int64_t soft_threshold_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid,
                            const Rect &rect, const RectThresholds &how) {
  int64_t alive = 0;
  if (threshold_rect(kernels, scratch, grid, rect, how, &alive)) return alive;
  const int64_t count = rect.count();
  double *factor = scratch.take<double>(count);
  double *norms = scratch.take<double>(count);
  load(kernels, rect, how.array, factor);
  norms_rect(kernels, scratch, grid, rect, 2.0, norms);
  alive = kernels.shrink(norms, count, how.scale, how.eps, factor);
  scale_rect(kernels, scratch, grid, rect, factor, true);
  return alive;
}

}  // namespace

void soft_threshold(Call &call, const Grid &grid, const GridArray &thresholds,
                    const SoftOptions &options, Tally *tally) {
  if (const ElementRows rows(grid, thresholds); rows.exist()) {
    return soft_threshold_elements(call, grid, rows, thresholds, options, tally);
  }
  if (grid.is_deep()) {
    if (is_done_by_block(grid, call.threads())) {
      return soft_threshold_by_block(call, grid, thresholds, options, tally);
    }
    return for_each_slab(
        call, grid, kept_by_norms(grid), [&](const Grid &blocks, const Rect &slab) {
          soft_threshold_deep(call, blocks, entries_in(slab, thresholds), options, tally);
        });
  }
  const Kernels &kernels = call.kernels();
  RectThresholds how = {
      kernels.shrink_across,    kernels.shrink_along, kernels.shrink_rows,     kernels.shrink_tiles,
      kernels.holds_rows_ahead, thresholds,           options.threshold_scale, options.eps};
  const Tiling boxes = threshold_boxes(grid, &how);
  call.for_each(boxes.count(), [&](Scratch &scratch, int64_t i) {
    tally->achieved += soft_threshold_rect(kernels, scratch, grid, boxes[i], how);
  });
}

}  // namespace spk
