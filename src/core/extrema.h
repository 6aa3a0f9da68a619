// Signed extremes per block, counts of non-zeros, and reductions by a caller's function.
#pragma once

#include "core/reduce.h"
#include "core/slabs.h"
#include "core/tile.h"

namespace spk {

// Reduces a grid box by box, in parallel: each(rect, local results).
template <typename Fn>
void for_each_reduced(Call &call, const Grid &grid, Reduction reduction, double eps, Fn &&each) {
  ReduceOptions options;
  options.eps = eps;
  if (grid.is_deep()) {
    return for_each_slab(call, grid, kept_by_norms(grid),
                         [&](const Grid &blocks, const Rect &slab) {
                           double *local = call.scratch().take<double>(slab.count());
                           reduce_deep(call, blocks, reduction, options, local, nullptr);
                           each(slab, local);
                         });
  }
  const Tiling tiles = grid.tiles();
  call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
    const Rect rect = tiles[i];
    double *local = scratch.take<double>(rect.count());
    reduce_rect(call.kernels(), scratch, grid, rect, reduction, options, local, nullptr);
    each(rect, local);
  });
}

// `which` is kMin or kMax.
void extremes(Call &call, const Grid &grid, Reduction which, const GridArray &out);

// Counts elements with !(|x| <= eps); per block into `per_block` unless its data is NULL. Returns
// the total.
int64_t count_nonzeros(Call &call, const Grid &grid, double eps, const GridArray &per_block);

// Calls fn for each block, row-major, on the calling thread; messages call it by `name`.
void reduce_by_callback(Call &call, const Grid &grid, const std::string &name, spk_reduce_fn fn,
                        void *user, const GridArray &out);

}  // namespace spk
