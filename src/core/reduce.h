// Norms, extremes and counts of the blocks of a box, or of all: what kernels reduce, joined where
// blocks are cut into parts or coupled.
#pragma once

#include "core/tile.h"

namespace spk {

// What a reduction needs to know, besides which.
struct ReduceOptions {
  double eps = 0.0;               // kCount
  const double *scale = nullptr;  // kSumSquaresExact: local
  bool roots = false;             // kSumSquares: results are the roots of the sums
};

// The blocks of a plan, but for where data and results are.
ReduceArgs reduce_args(const ReducePlan &plan);
// Do results of neighbours belong side by side, as kernels write them?
bool has_dense_results(const ReducePlan &plan);

// Reduces the blocks of a box into local sums (and errors, where the reduction is compensated).
void reduce_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                 Reduction reduction, const ReduceOptions &options, double *sum, double *error);
// The same for a grid of deep blocks, all of it, in parallel over the parts of the blocks.
void reduce_deep(Call &call, const Grid &grid, Reduction reduction, const ReduceOptions &options,
                 double *sum, double *error);
// Reduces all blocks of a coupling, none of them deep, one leaf after the other; `sum` is row-major.
// Not for what is compensated.
void reduce_by_leaf(Call &call, const Grid &grid, Reduction reduction, double *sum);
// Reduces the blocks of a tile straight into floats, row-major in the box, where kernels can; else
// returns false and has done nothing. Not for what is compensated.
bool reduce_to_floats(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                      Reduction reduction, bool roots, bool past_caches, float *out);

}  // namespace spk
