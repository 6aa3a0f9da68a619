// Masks of whole kernels: one byte per kernel, and what becomes of the bytes of its elements.
#pragma once

#include "core/call.h"

namespace spk {

// The mask of a layer, kernel by kernel.
struct KernelMask {
  uint8_t *mask;
  int64_t kernels;
  int64_t kernel;  // elements of one
};

// Which kernels have active elements: a partly active kernel is active.
void find_active(Call &call, const KernelMask &mask, uint8_t *active);
// Each kernel's byte to all of its elements.
void spread_kernels(Call &call, const KernelMask &mask, const uint8_t *keep);
// Clears the kernels that are not to be kept, and leaves the others alone.
void clear_others(Call &call, const KernelMask &mask, const uint8_t *keep);
// Sets the elements of those kernels to be kept that have none.
void fill_empty(Call &call, const KernelMask &mask, const uint8_t *keep);

}  // namespace spk
