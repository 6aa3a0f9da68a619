// Files of kernels fill their parts of the table, for the target in use.
#pragma once

#include "kernels/kernels.h"

namespace spk {

// What the processor supports and no host has disabled. Asking Highway makes it choose among all
// that the processor supports; this makes it choose among these.
int64_t supported_targets();

void fill_reduce_across(Kernels *table);
void fill_reduce_along(Kernels *table);
void fill_mask(Kernels *table);
void fill_scale(Kernels *table);
void fill_scores(Kernels *table);
void fill_convert(Kernels *table);
void fill_conditioned(Kernels *table);
void fill_conditioned_elements(Kernels *table);
void fill_conditioned_panel(Kernels *table);
void fill_masked(Kernels *table);
void fill_panel(Kernels *table);
void fill_select(Kernels *table);
void fill_select_across(Kernels *table);
void fill_select_along(Kernels *table);
void fill_block_keys(Kernels *table);
void fill_blocks_in_lanes(Kernels *table);
void fill_select_halving(Kernels *table);
void fill_select_many(Kernels *table);
void fill_select_short_rows(Kernels *table);
void fill_shrink(Kernels *table);
void fill_threshold_across(Kernels *table);
void fill_threshold_along(Kernels *table);
void fill_threshold_elements(Kernels *table);
void fill_threshold_rows(Kernels *table);
void fill_threshold_tiles(Kernels *table);
void fill_transpose(Kernels *table);

}  // namespace spk
