// Exact questions about strided layouts: does one reach an element twice, do two share a byte?
#pragma once

#include <cstdint>

#include "base/extents.h"

namespace spk {

enum class Decision { kNo, kYes, kUnknown };

// Do two different indices of the layout reach the same element? Strides may be negative.
// kUnknown after a bounded search; never for layouts of the usual kinds.
Decision maps_two_indices_to_one(const Extents &shape, const Extents &stride);

// Memory that a call uses: elements of `size` bytes at base + sum(i_d * stride_d), all in bytes.
struct Footprint {
  intptr_t base = 0;
  int64_t size = 0;
  Extents shape;
  Extents stride;
};

// Do the two share a byte?
Decision share_a_byte(const Footprint &a, const Footprint &b);

}  // namespace spk
