// Handing out a number of places among layers, exactly.
#pragma once

#include <cstdint>
#include <span>

namespace spk {

// What one layer is to have.
struct Share {
  double weight;      // of the total; all together 1
  int64_t cap;        // a multiple of `unit`
  int64_t unit = 1;   // it takes whole ones
  int64_t given = 0;  // the result
};

// Gives each its weight of the total, but no more than its cap; what is over goes in equal parts to
// those below their cap. Fractions of units are settled by largest remainder, lower ones first.
void hand_out(int64_t total, std::span<Share> shares);

}  // namespace spk
