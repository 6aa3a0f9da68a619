#include "core/nest.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/kernels.h"

namespace spk {

void Nest::compile() {
  for (int d = 0; d < count_; ++d) {
    if (dims_[d].step[0] >= 0) continue;
    for (int k = 0; k < kOperands; ++k) {
      start_[k] += (dims_[d].extent - 1) * dims_[d].step[k];
      dims_[d].step[k] = -dims_[d].step[k];
    }
  }
  sort_by(0, 0);
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

void Nest::sort_by(int operand, int first) {
  // Few dimensions, mostly in order; std::stable_sort would allocate.
  for (int d = first + 1; d < count_; ++d) {
    int to = d;
    const int64_t step = std::abs(dims_[d].step[operand]);
    while (to > first && std::abs(dims_[to - 1].step[operand]) > step) --to;
    move(d, to);
  }
}

void Nest::move(int from, int to) {
  if (from < to) std::rotate(dims_ + from, dims_ + from + 1, dims_ + to + 1);
  if (from > to) std::rotate(dims_ + to, dims_ + from, dims_ + from + 1);
}

namespace {

// Rows that are copied, or filled with one byte each.
struct Copy {
  template <size_t kWord>
  static void word(std::byte *y, const std::byte *x, size_t at) {
    std::memcpy(y + at, x + at, kWord);
  }
  static void row(std::byte *y, const std::byte *x, size_t bytes) { std::memmove(y, x, bytes); }
};
struct Fill {
  template <size_t kWord>
  static void word(std::byte *y, const std::byte *x, size_t at) {
    std::memset(y + at, static_cast<int>(*x), kWord);
  }
  static void row(std::byte *y, const std::byte *x, size_t bytes) {
    std::memset(y, static_cast<int>(*x), bytes);
  }
};

// Rows of at least kWord bytes and at most two words, which may overlap: a call of memmove for each
// would take longer than to copy it.
template <size_t kWord, typename Row>
void write_short_rows(const Nest &nest, size_t bytes, const std::byte *from, std::byte *to) {
  Nest padded = nest;
  padded.pad_to(3);
  const NestDim rows = padded[1];
  const NestDim groups = padded[2];
  const size_t last = bytes - kWord;
  padded.for_each_outer(3, [&](const int64_t *offset) {
    for (int64_t g = 0; g < groups.extent; ++g) {
      const std::byte *x = from + offset[1] + g * groups.step[1];
      std::byte *y = to + offset[0] + g * groups.step[0];
      for (int64_t r = 0; r < rows.extent; ++r, x += rows.step[1], y += rows.step[0]) {
        Row::template word<kWord>(y, x, 0);
        Row::template word<kWord>(y, x, last);
      }
    }
  });
}

template <typename Row>
void write_rows(const Nest &nest, size_t bytes, const std::byte *from, std::byte *to) {
  if (bytes >= 4 && bytes <= 8) return write_short_rows<4, Row>(nest, bytes, from, to);
  if (bytes >= 8 && bytes <= 16) return write_short_rows<8, Row>(nest, bytes, from, to);
  if (bytes >= 16 && bytes <= 32) return write_short_rows<16, Row>(nest, bytes, from, to);
  if (bytes >= 32 && bytes <= 64) return write_short_rows<32, Row>(nest, bytes, from, to);
  nest.for_each_outer(
      1, [&](const int64_t *offset) { Row::row(to + offset[0], from + offset[1], bytes); });
}

template <typename T>
void copy_elements(const Nest &nest, const std::byte *from, std::byte *to) {
  const NestDim inner = nest[0];
  if (inner.step[0] == sizeof(T) && inner.step[1] == sizeof(T)) {
    return write_rows<Copy>(nest, static_cast<size_t>(inner.extent) * sizeof(T), from, to);
  }
  constexpr int64_t kLeastFilled = 4;  // fewer are stored as soon as a call is made
  const bool is_filled = sizeof(T) == 1 && inner.step[0] == 1 && inner.step[1] == 0;
  if (is_filled && inner.extent >= kLeastFilled) {
    return write_rows<Fill>(nest, static_cast<size_t>(inner.extent), from, to);
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

// Where what is read lies in other rows than what is written: the dimension of rows of the former,
// or 0.
int rows_read(const Nest &nest, int64_t size) {
  if (nest[0].step[0] != size || nest[0].step[1] == size) return 0;
  for (int d = 1; d < nest.count(); ++d) {
    if (nest[d].step[1] == size) return d;
  }
  return 0;
}

void transpose(const Nest &nest, int row, KeyWidth width, const std::byte *from, std::byte *to) {
  const auto kernel = kernels().transpose[width];
  Nest turned = nest;
  turned.move(row, 1);
  const NestDim &written = turned[0];
  const NestDim &read = turned[1];
  turned.for_each_outer(2, [&](const int64_t *offset) {
    kernel({from + offset[1], to + offset[0], written.extent, read.extent, written.step[1],
            read.step[0]});
  });
}

template <typename T>
void copy_words(const Nest &nest, KeyWidth width, const std::byte *from, std::byte *to) {
  if (const int row = rows_read(nest, sizeof(T))) return transpose(nest, row, width, from, to);
  copy_elements<T>(nest, from, to);
}

}  // namespace

void copy_nest(const Nest &nest, int64_t size, const std::byte *from, std::byte *to) {
  switch (size) {
    case 1:
      return copy_elements<uint8_t>(nest, from, to);
    case 2:
      return copy_words<uint16_t>(nest, kKeys16, from, to);
    case 4:
      return copy_words<uint32_t>(nest, kKeys32, from, to);
    default:
      return copy_words<uint64_t>(nest, kKeys64, from, to);
  }
}

namespace {

Nest box_nest(const Extents &extent, const Extents &to_step, const Extents &from_step) {
  Nest nest;
  for (int d = 0; d < extent.size(); ++d) nest.add(extent[d], to_step[d], from_step[d]);
  nest.compile();
  nest.pad_to(1);
  return nest;
}

}  // namespace

void copy_box(const Extents &extent, int64_t size, const std::byte *from, const Extents &from_step,
              std::byte *to, const Extents &to_step) {
  copy_nest(box_nest(extent, to_step, from_step), size, from, to);
}

void read_box(const Extents &extent, int64_t size, const std::byte *from, const Extents &from_step,
              std::byte *to, const Extents &to_step) {
  Nest nest = box_nest(extent, to_step, from_step);
  if (nest[0].step[0] == size && nest[0].step[1] == size) nest.sort_by(1, 1);
  copy_nest(nest, size, from, to);
}

}  // namespace spk
