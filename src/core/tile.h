// The entries of callers' arrays for one box of blocks, and the elements of a block, in and out of
// arrays of one thread's. Arrays called `local` hold one entry per block of the box, row-major.
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
// A local array of a mask's bytes, each 0 or 1.
void load_mask(const Kernels &kernels, const Rect &rect, const GridArray &array, uint8_t *local);
// The same of bytes that are 0 or not: where they lie, if that is how a local array does, else a
// copy.
const uint8_t *load_mask_bytes(const Kernels &kernels, Scratch &scratch, const Rect &rect,
                               const GridArray &array);

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
