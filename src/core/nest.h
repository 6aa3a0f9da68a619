// Loop nests over strided operands: how every operation walks memory. A nest is built from
// dimensions in any order, then compiled: sorted by the first operand's stride, so that memory is
// read in order, and merged where neighbours continue each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/extents.h"
#include "sparsekit/sparsekit.h"

namespace spk {

inline constexpr int kOperands = 3;
// A leaf's block dimensions and its grid dimensions, the latter split once more by scopes; one more
// for a dimension of extent 1.
inline constexpr int kMaxNestDims = 3 * SPK_MAX_NDIM + 1;

struct NestDim {
  int64_t extent;
  int64_t step[kOperands];  // bytes between neighbours, per operand
};

class Nest {
 public:
  Nest() = default;
  // Copies are of what is set.
  Nest(const Nest &other) { *this = other; }
  Nest &operator=(const Nest &other) {
    if (this == &other) return *this;
    count_ = other.count_;
    for (int d = 0; d < count_; ++d) dims_[d] = other.dims_[d];
    for (int k = 0; k < kOperands; ++k) start_[k] = other.start_[k];
    return *this;
  }

  void add(int64_t extent, int64_t step0, int64_t step1 = 0, int64_t step2 = 0) {
    if (extent > 1) dims_[count_++] = {extent, {step0, step1, step2}};
  }

  // Sorts, makes the first operand's steps positive (which moves the start of each operand, see
  // `start`), and merges.
  void compile();

  int count() const { return count_; }
  const NestDim &operator[](int i) const { return dims_[i]; }  // innermost first
  // Bytes from an operand's origin to where the compiled nest begins.
  int64_t start(int operand) const { return start_[operand]; }

  void set_start(int operand, int64_t start) { start_[operand] = start; }

  // Moves dimension `from` to position `to`, keeping the order of the others.
  void move(int from, int to);
  // Sorts the dimensions from `first` on by an operand's stride, whatever its sign.
  void sort_by(int operand, int first);
  // Appends a dimension of extent 1 until there are `count`.
  void pad_to(int count) {
    while (count_ < count) dims_[count_++] = {1, {}};
  }

  // Calls fn(offset) for each combination of the dimensions from `first` on, outermost slowest;
  // offset[k] are bytes from operand k's origin.
  template <typename Fn>
  void for_each_outer(int first, Fn &&fn) const {
    int64_t index[kMaxNestDims];
    for (int d = first; d < count_; ++d) index[d] = 0;
    int64_t offset[kOperands] = {start_[0], start_[1], start_[2]};
    for (;;) {
      fn(std::as_const(offset));
      int d = first;
      for (; d < count_; ++d) {
        for (int k = 0; k < kOperands; ++k) offset[k] += dims_[d].step[k];
        if (++index[d] < dims_[d].extent) break;
        for (int k = 0; k < kOperands; ++k) offset[k] -= dims_[d].extent * dims_[d].step[k];
        index[d] = 0;
      }
      if (d >= count_) return;
    }
  }

 private:
  NestDim dims_[kMaxNestDims];  // the first count_ are set
  int count_ = 0;
  int64_t start_[kOperands] = {};
};

// Copies elements of `size` bytes (1, 2, 4 or 8) from operand 1 to operand 0, which share no memory.
void copy_nest(const Nest &nest, int64_t size, const std::byte *from, std::byte *to);
// The same of a box of elements, in steps of bytes.
void copy_box(const Extents &extent, int64_t size, const std::byte *from, const Extents &from_step,
              std::byte *to, const Extents &to_step);
// The same to memory in cache: short rows are copied in the order in which they are read.
void read_box(const Extents &extent, int64_t size, const std::byte *from, const Extents &from_step,
              std::byte *to, const Extents &to_step);

}  // namespace spk
