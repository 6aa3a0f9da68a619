// What a block of doubles is multiplied by so that no square of its elements over- or underflows
// where it matters.
#pragma once

#include <algorithm>
#include <cmath>

namespace spk {

// A power of two that brings a magnitude, positive and finite, near 1. Its reciprocal is finite,
// too: subnormal numbers are scaled by less than they could be.
inline double norm_scale(double largest) {
  const int exponent = std::ilogb(largest) + 1;
  return std::ldexp(1.0, -std::clamp(exponent, -1000, 1022));
}

}  // namespace spk
