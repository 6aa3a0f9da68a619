// Multipliers and masks, a factor or a byte for each block, written to the blocks of a box, or to
// all.
#pragma once

#include "core/tile.h"

namespace spk {

// Which blocks a mask names: those that survive, or those that are zeroed.
enum class MaskSense { kKeep, kPrune };

// Multiplies, or masks, the blocks of a box. `is_cached`: the box has just been read, as the next
// one will be. Bytes of a mask that are not 0 name blocks.
// Products are doubles, rounded to the dtype, or rounded once if `exact` (see ScaleArgs).
void scale_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                const double *factor, bool is_cached, bool exact = false);
// The same by floats, if no leaf is f64: every product is rounded once. Nothing is cached.
void scale_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                const float *factor);
void mask_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
               const uint8_t *mask, bool is_cached, MaskSense sense = MaskSense::kKeep);
// Writes each block's keep byte to every element of the block; leaves are masks.
void spread_rect(const Grid &masks, const Rect &rect, const uint8_t *keep);
// The same for all blocks of a grid, in parallel; factors are row-major in its shape.
void scale_all(Call &call, const Grid &grid, const double *factor, bool exact = false);
void scale_all(Call &call, const Grid &grid, const float *factor);
void mask_all(Call &call, const Grid &grid, const uint8_t *mask,
              MaskSense sense = MaskSense::kKeep);
void spread_all(Call &call, const Grid &masks, const uint8_t *keep);

}  // namespace spk
