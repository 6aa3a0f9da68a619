// Thresholds of blocks, checked, and what a call did with them.
#pragma once

#include <atomic>

#include "core/tile.h"

namespace spk {

// Counts of one call; added to from many threads.
struct Tally {
  int64_t total = 0;
  int64_t requested = -1;
  std::atomic<int64_t> achieved{0};
  std::atomic<int64_t> ties{0};
  std::atomic<int64_t> not_converged{0};
};

// Refuses NaN, and negative numbers unless `allow_negative`. Names the entry.
void check_thresholds(Call &call, const ArrayData &array, int64_t count, bool allow_negative);

}  // namespace spk
