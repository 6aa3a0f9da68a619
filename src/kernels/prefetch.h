// Asking for memory before it is read, in two stages: far ahead into the second level of cache,
// because the first is full of what is being worked on; then, shortly before it is read, into the
// first. Processors see streams themselves, but only up to the end of a page; and a loop with much
// arithmetic does not run so far ahead of itself that even the second level is hidden.
//
// What is here is inlined always: GCC sees no effect in what does nothing but ask, and leaves calls
// of it out. A lambda that only asks has to be inlined always, too.
#pragma once

#include <hwy/base.h>

#include <cstddef>
#include <cstdint>

namespace spk {

// How far ahead a stream is asked for, in bytes: a page and a bit. It is further away in time than
// main memory, and no more than one page is opened before its turn.
inline constexpr int64_t kFar = 4608;
inline constexpr int64_t kNear = 1024;

HWY_INLINE void prefetch_far(const void *x, int64_t ahead) {
  __builtin_prefetch(static_cast<const std::byte *>(x) + ahead, 0, 2);
}
HWY_INLINE void prefetch_near(const void *x, int64_t ahead) {
  __builtin_prefetch(static_cast<const std::byte *>(x) + ahead, 0, 3);
}

// The second stage of what is `soon` bytes ahead in the first: kNear in a stream, else none.
constexpr int64_t near_of(int64_t soon) {
  return soon == kFar ? kNear : 0;
}

// The second stage of rows of `bytes` that are `step` bytes apart: kNear if there is nothing between
// them, else some rows ahead.
constexpr int64_t near_in_rows(int64_t bytes, int64_t step) {
  if (bytes == step || step <= 0) return kNear;
  return step * HWY_MAX(1, kNear / step);
}

}  // namespace spk
