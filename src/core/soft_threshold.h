// Group soft thresholding, the proximal operator of sum_b t_b ||w_b||.
#pragma once

#include "core/thresholds.h"

namespace spk {

struct SoftOptions {
  double eps = 0.0;    // Euclidean: added to the norm
  double atol = 1e-8;  // conditioned: relative tolerance of nu
  int max_iter = 20;   // conditioned: Newton steps
  double threshold_scale = 1.0;
};

// w <- w max(0, 1 - t / (||w|| + eps)).
void soft_threshold(Call &call, const Grid &grid, const GridArray &thresholds,
                    const SoftOptions &options, Tally *tally);

// The same in the metric of a diagonal H. `conditioners` has the blocks of `grid` and holds h.
void conditioned_soft_threshold(Call &call, const Grid &grid, const Grid &conditioners,
                                const GridArray &thresholds, const SoftOptions &options,
                                Tally *tally);

// Refuses conditioners that are not positive and finite. `first_leaf` numbers them in messages.
void check_conditioners(Call &call, const Grid &conditioners, int first_leaf);

}  // namespace spk
