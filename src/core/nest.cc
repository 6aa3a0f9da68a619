#include "core/nest.h"

#include <algorithm>
#include <cstring>

namespace spk {

void Nest::compile() {
  for (int d = 0; d < count_; ++d) {
    if (dims_[d].step[0] >= 0) continue;
    for (int k = 0; k < kOperands; ++k) {
      start_[k] += (dims_[d].extent - 1) * dims_[d].step[k];
      dims_[d].step[k] = -dims_[d].step[k];
    }
  }
  // Few dimensions, mostly in order; std::stable_sort would allocate.
  for (int d = 1; d < count_; ++d) {
    int to = d;
    while (to > 0 && dims_[to - 1].step[0] > dims_[d].step[0]) --to;
    move(d, to);
  }
  int merged = 0;
  for (int d = 0; d < count_; ++d) {
    NestDim *below = merged > 0 ? &dims_[merged - 1] : nullptr;
    bool continues = below != nullptr;
    for (int k = 0; continues && k < kOperands; ++k) {
      continues = below->step[k] * below->extent == dims_[d].step[k];
    }
    if (continues) {
      below->extent *= dims_[d].extent;
    } else {
      dims_[merged++] = dims_[d];
    }
  }
  count_ = merged;
}

void Nest::move(int from, int to) {
  if (from < to) std::rotate(dims_ + from, dims_ + from + 1, dims_ + to + 1);
  if (from > to) std::rotate(dims_ + to, dims_ + from, dims_ + from + 1);
}

namespace {

template <typename T>
void copy_elements(const Nest &nest, const std::byte *from, std::byte *to) {
  const NestDim inner = nest[0];
  if (inner.step[0] == sizeof(T) && inner.step[1] == sizeof(T)) {
    const size_t bytes = static_cast<size_t>(inner.extent) * sizeof(T);
    return nest.for_each_outer(
        1, [&](const int64_t *offset) { std::memmove(to + offset[0], from + offset[1], bytes); });
  }
  nest.for_each_outer(1, [&](const int64_t *offset) {
    const std::byte *x = from + offset[1];
    std::byte *y = to + offset[0];
    for (int64_t i = 0; i < inner.extent; ++i) {
      *reinterpret_cast<T *>(y + i * inner.step[0]) =
          *reinterpret_cast<const T *>(x + i * inner.step[1]);
    }
  });
}

}  // namespace

void copy_nest(const Nest &nest, int64_t size, const std::byte *from, std::byte *to) {
  switch (size) {
    case 1:
      return copy_elements<uint8_t>(nest, from, to);
    case 2:
      return copy_elements<uint16_t>(nest, from, to);
    case 4:
      return copy_elements<uint32_t>(nest, from, to);
    default:
      return copy_elements<uint64_t>(nest, from, to);
  }
}

}  // namespace spk
