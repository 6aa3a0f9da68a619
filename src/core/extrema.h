// Signed extremes per block, counts of non-zeros, and reductions by a caller's function.
#pragma once

#include "core/tile.h"

namespace spk {

// `which` is kMin or kMax.
void extremes(Call &call, const Grid &grid, Reduction which, const GridArray &out);

// Counts elements with !(|x| <= eps); per block into `per_block` unless its data is NULL. Returns
// the total.
int64_t count_nonzeros(Call &call, const Grid &grid, double eps, const GridArray &per_block);

// Calls fn for each block, row-major, on the calling thread.
void reduce_by_callback(Call &call, const Grid &grid, spk_reduce_fn fn, void *user,
                        const GridArray &out);

}  // namespace spk
