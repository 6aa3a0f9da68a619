// Lp norms of blocks, as doubles that are not yet rounded to the score dtype.
#pragma once

#include "core/tile.h"

namespace spk {

// Refuses what is not 0, 1, 2, +-inf or finite in [0.01, 1000].
void check_p(double p);

// One norm per block of a box; on one thread.
void norms_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                double p, double *local);
// One norm per block of a grid of deep blocks; in parallel.
void norms_deep(Call &call, const Grid &grid, double p, double *local);

// Rounds to the score dtype, which is how norms are returned, ranked and compared.
void round_scores(const Grid &grid, int64_t count, double *local);

// The operation: norms of every block of `grid` into `out`.
void norms(Call &call, const Grid &grid, double p, const GridArray &out);

}  // namespace spk
