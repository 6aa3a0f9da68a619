// Moving values between arrangements: block arrays, scope arrays, elements. Nothing is computed but
// conversions of dtype.
#pragma once

#include "core/tile.h"

namespace spk {

// Copies into the leaves of `grid` from the leaves of `source`, which has the same shapes and any
// float dtypes.
void set_data(Call &call, const Grid &grid, const Grid &source);

// Every block in one piece: out is (grid..., numel_per_block).
void gather_blocks(Call &call, const Grid &grid, const ArrayData &out);

// Each block's entry to every element of the block. The leaves of `elements` have the dtype of
// `values`.
void broadcast_to_elements(Call &call, const Grid &elements, const GridArray &values);

// Copies entries, one per block of a grid of this shape, between two arrays of one dtype.
void copy_entries(Call &call, const Extents &shape, const GridArray &from, const GridArray &to);

}  // namespace spk
