// Keys that somebody has made, all of them in memory in the order of positions: what a selection
// needs to know of them (see KeyStream).
#pragma once

#include <algorithm>

#include "core/select.h"

namespace spk {

class KeyArray {
 public:
  struct Chunk {
    int64_t first;
    int64_t count;
  };

  KeyArray(const Kernels &kernels, KeyWidth width, const std::byte *keys, int64_t count)
      : kernels_(kernels), form_(KeyForm::of_keys(width)), keys_(keys), count_(count) {}

  int64_t count() const { return count_; }
  const KeyForm &form() const { return form_; }
  int64_t data_bytes() const { return count_ * form_.bytes(); }
  int64_t chunks() const { return (count_ + kChunk - 1) / kChunk; }
  Chunk chunk(int64_t number) const {
    const int64_t first = number * kChunk;
    return {first, std::min(kChunk, count_ - first)};
  }
  static int64_t size(const Chunk &chunk) { return chunk.count; }
  static int64_t first_position(const Chunk &chunk) { return chunk.first; }

  ScopeWords words(Scratch &, const Chunk &chunk) const {
    return {kernels_, form_, keys_ + chunk.first * form_.bytes(), chunk.count};
  }
  int64_t sample(Scratch &, int64_t number, int64_t rate, int64_t room, std::byte *out) const {
    const Chunk some = chunk(number);
    return sample_lines(keys_ + some.first * form_.bytes(), some.count, form_.bytes(),
                        static_cast<uint64_t>(number), rate, room, out);
  }

  static bool in_order() { return true; }
  template <typename Fn>
  static void for_each_run(const Chunk &chunk, Fn &&fn) {
    fn(0, chunk.count, chunk.first);
  }

 private:
  static constexpr int64_t kChunk = int64_t{1} << 14;

  const Kernels &kernels_;
  KeyForm form_;
  const std::byte *keys_;
  int64_t count_;
};

}  // namespace spk
