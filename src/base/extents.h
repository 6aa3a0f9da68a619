// A fixed-capacity vector of int64: shapes, strides and permutations. Never allocates.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

namespace spk {

// A block view of a view of 16 dimensions has 32; a grid of scopes over it (scope grid and the
// blocks inside) no more.
inline constexpr int kMaxDims = 32;

class Extents {
 public:
  // Written out: a defaulted one would zero the whole array, as copies would copy it. Calls make so
  // many that this would be half of the time of a small one.
  Extents() {}  // NOLINT(modernize-use-equals-default)
  Extents(const Extents &other) : Extents(other.data(), other.size()) {}
  Extents &operator=(const Extents &other) {
    if (this == &other) return *this;
    size_ = other.size_;
    for (int d = 0; d < size_; ++d) values_[d] = other.values_[d];
    return *this;
  }
  Extents(int size, int64_t value) : size_(size) {
    for (int d = 0; d < size; ++d) values_[d] = value;
  }
  Extents(const int64_t *values, int size) : size_(size) {
    for (int d = 0; d < size; ++d) values_[d] = values[d];
  }
  Extents(std::initializer_list<int64_t> values) {
    for (int64_t value : values) push_back(value);
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t operator[](int d) const { return values_[d]; }
  int64_t &operator[](int d) { return values_[d]; }
  const int64_t *data() const { return values_.data(); }
  const int64_t *begin() const { return values_.data(); }
  const int64_t *end() const { return values_.data() + size_; }
  void push_back(int64_t value) { values_[size_++] = value; }
  bool operator==(const Extents &other) const {
    if (size_ != other.size_) return false;
    for (int d = 0; d < size_; ++d) {
      if (values_[d] != other.values_[d]) return false;
    }
    return true;
  }

  int64_t product() const {
    int64_t result = 1;
    for (int d = 0; d < size_; ++d) result *= values_[d];
    return result;
  }

  // Every entry times a factor: elements to bytes.
  Extents times(int64_t factor) const {
    Extents result = *this;
    for (int d = 0; d < size_; ++d) result[d] *= factor;
    return result;
  }

  // Strides of the contiguous row-major array of this shape.
  Extents row_major() const {
    Extents stride(size_, 1);
    for (int d = size_ - 2; d >= 0; --d) stride[d] = stride[d + 1] * values_[d + 1];
    return stride;
  }

  static Extents identity(int size) {
    Extents order(size, 0);
    for (int d = 0; d < size; ++d) order[d] = d;
    return order;
  }

 private:
  std::array<int64_t, kMaxDims> values_;  // the first `size_` of them
  int size_ = 0;
};

// Index of entry `number`, row-major in a shape.
inline Extents index_at(const Extents &shape, int64_t number) {
  Extents index(shape.size(), 0);
  for (int d = shape.size() - 1; d >= 0; --d) {
    index[d] = number % shape[d];
    number /= shape[d];
  }
  return index;
}

inline Extents plus(const Extents &a, const Extents &b) {
  Extents sum = a;
  for (int d = 0; d < a.size(); ++d) sum[d] += b[d];
  return sum;
}

inline Extents concat(const Extents &a, const Extents &b) {
  Extents result = a;
  for (int64_t value : b) result.push_back(value);
  return result;
}

}  // namespace spk
