// Where a rate meets a count: rounding that forgives the last bits of a decimal rate, so that
// floor(0.29 * 100) is 29 and ceil(0.07 * 100) is 7.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace spk {

inline int64_t floor_of_rate(double rate, int64_t count) {
  const double product = rate * static_cast<double>(count) * (1.0 + 0x1p-50);
  return std::min(static_cast<int64_t>(std::floor(product)), count);
}

inline int64_t ceil_of_rate(double rate, int64_t count) {
  const double product = rate * static_cast<double>(count) * (1.0 - 0x1p-50);
  return std::min(static_cast<int64_t>(std::ceil(product)), count);
}

// The nearest whole number, of two the higher; |x| < 2^63.
inline int64_t round_half_up(double x) {
  return static_cast<int64_t>(std::floor(x + 0.5));
}

}  // namespace spk
