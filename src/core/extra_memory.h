// How much memory a call may take besides the data.
#pragma once

#include <algorithm>
#include <cstdint>

namespace spk {

// What threads need in any case: boxes of elements, and what is kept of their blocks.
inline constexpr int64_t kBytesOfThread = int64_t{288} << 10;

// What is left besides that of 1 % of the data or 1 MiB for each thread, whichever is more.
inline int64_t extra_bytes(int64_t data_bytes, int64_t threads) {
  constexpr int64_t kMostOfThread = int64_t{1} << 20;
  return std::max(data_bytes / 100, threads * kMostOfThread) - threads * kBytesOfThread;
}

}  // namespace spk
