// Asking for memory before it is read, in two stages: far ahead into the second level of cache,
// because the first is full of what is being worked on; then, shortly before it is read, into the
// first. Processors see streams themselves, but only up to the end of a page; and a loop with much
// arithmetic does not run so far ahead of itself that even the second level is hidden.
//
// What is here is inlined always: GCC sees no effect in what does nothing but ask, and leaves calls
// of it out. A lambda that only asks has to be inlined always, too.
#pragma once

#include <hwy/base.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace spk {

// Into the second level of cache, and into the first.
HWY_INLINE void prefetch_far(const void *x, int64_t ahead) {
  __builtin_prefetch(static_cast<const std::byte *>(x) + ahead, 0, 2);
}
HWY_INLINE void prefetch_near(const void *x, int64_t ahead) {
  __builtin_prefetch(static_cast<const std::byte *>(x) + ahead, 0, 3);
}

// Who brings streams (ask_near-inl.h): loops, which ask for them and read several at a time, or the
// processor alone. Results are the same.
enum class Streams : uint8_t { kUndecided, kAskedFor, kLeft };
extern std::atomic<Streams> streams;
// By the processor, unless it is decided: those of other makers than Intel with AVX-512 are left
// alone.
void decide_streams();

// How many bytes ahead streams are asked for by loops that ask. Where they are left to the
// processor it has brought by itself what is nearer, and loops that compute much gain up to a third
// by asking for what is 8 to 32 KiB ahead (measured on AMD's, Zen 4).
inline constexpr int64_t kFurther = 16896;
HWY_INLINE int64_t far_in_stream() {
  return streams.load(std::memory_order_relaxed) == Streams::kLeft ? kFurther : kFar;
}
// How many bytes ahead to ask, where arguments say what is read `soon` after: kFar marks a stream.
HWY_INLINE int64_t bytes_ahead(int64_t soon) {
  return soon == kFar ? far_in_stream() : soon;
}

// Bytes from row o of the blocks of a box to the next, which after the last is in the box that
// follows; 0 if none is known.
HWY_INLINE int64_t bytes_to_next_row(const ReduceArgs &box, int64_t o) {
  if (o + 1 < box.outer.count) return box.outer.step;
  return box.ahead == 0 ? 0 : box.ahead - o * box.outer.step;
}

// How many bytes ahead either stage is. Without a far one nothing is asked for; a near one of 0 asks
// for what is about to be read, which costs little.
struct Stages {
  int64_t far, near;
};
inline constexpr int64_t kNear = 1024;
inline constexpr Stages kNothingAhead{0, 0};
HWY_INLINE Stages stages_in_stream() {
  return {far_in_stream(), kNear};
}

// Those of what is read `soon` after: only a stream has both.
HWY_INLINE Stages stages_of(int64_t soon) {
  return soon == kFar ? stages_in_stream() : Stages{soon, 0};
}

// The second stage of rows of `bytes` that are `step` bytes apart: some rows ahead, unless there is
// nothing between them.
constexpr int64_t near_in_rows(int64_t bytes, int64_t step) {
  if (bytes == step || step == 0) return kNear;
  return step * HWY_MAX(1, kNear / (step < 0 ? -step : step));
}

// Asks for what is ahead of some elements. Stages of the same length are one.
template <class T>
HWY_INLINE void ask_ahead(const T *x, int64_t elements, Stages stages) {
  if (stages.far == 0) return;
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
  for (int64_t i = 0; i < elements; i += kLine) {
    if (stages.far != stages.near) prefetch_far(x + i, stages.far);
    prefetch_near(x + i, stages.near);
  }
}

}  // namespace spk
