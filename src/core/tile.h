// The pieces that operations are made of, on one thread and one box of a grid. Arrays called
// `local` hold one entry per block of the box, row-major.
#pragma once

#include "core/call.h"
#include "core/grid.h"

namespace spk {

// A local array from a caller's array, converted to double; and back, rounded once, if told so past
// the caches (floats and doubles only).
void load(const Kernels &kernels, const Rect &rect, const GridArray &array, double *local);
void store(const Kernels &kernels, const Rect &rect, const double *local, const GridArray &array,
           bool past_caches = false);
// A local array as floats, of any dtype but f64; where they lie, if that is how a local array does.
const float *load_floats(const Kernels &kernels, Scratch &scratch, const Rect &rect,
                         const GridArray &array);
// Does a caller's array hold the entries of a box as a local array does, but for the dtype?
bool is_row_major(const Rect &rect, const GridArray &array);
// The leaf of a grid whose blocks are single elements, as an array of them.
GridArray elements_of(const GridLeaf &leaf);
// A mask, as bytes of 0 or 1; or what it is not.
void load_mask(const Kernels &kernels, const Rect &rect, const GridArray &array, bool invert,
               uint8_t *local);
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

// Multiplies, or masks with keep bytes, the blocks of a box.
// Products are doubles, rounded to the dtype, or rounded once if `exact` (see ScaleArgs).
void scale_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                const double *factor, bool exact = false);
// The same by floats, if no leaf is f64: every product is rounded once.
void scale_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                const float *factor);
// `is_cached`: the box has just been read, as the next one will be.
void mask_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
               const uint8_t *keep, bool is_cached);
// Writes each block's keep byte to every element of the block; leaves are masks.
void spread_rect(const Grid &masks, const Rect &rect, const uint8_t *keep);
// The same for all blocks of a grid, in parallel; factors are row-major in its shape.
void scale_all(Call &call, const Grid &grid, const double *factor, bool exact = false);
void scale_all(Call &call, const Grid &grid, const float *factor);
void mask_all(Call &call, const Grid &grid, const uint8_t *keep);
void spread_all(Call &call, const Grid &masks, const uint8_t *keep);

// One block, or a part of it, of one leaf as doubles, row-major inside the part; and back.
// `block` is the block's index in the grid.
void gather(const Kernels &kernels, const GridLeaf &leaf, const Extents &block, const Rect &part,
            double *out);
void scatter(const Kernels &kernels, const GridLeaf &leaf, const Extents &block, const Rect &part,
             const double *in);
// All leaves of a block, one after the other.
void gather_block(const Kernels &kernels, const Grid &grid, const Extents &block, double *out);

// Is it one entry for all blocks of a grid?
bool is_one_for_all(const Grid &grid, const GridArray &array);

// The parts that a large block of a leaf is cut into.
Tiling parts_of(const GridLeaf &leaf);

// Visits the blocks of a box: fn(local number, index in the grid).
template <typename Fn>
void for_each_block(const Rect &rect, Fn &&fn) {
  for_each_index(rect.extent, [&](int64_t number, const Extents &offset) {
    fn(number, plus(rect.low, offset));
  });
}

}  // namespace spk
