#include "buffer.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace prop {

Memory::Memory(Random &random, size_t bytes) : live(bytes) {
  for (unsigned char &byte : live) byte = static_cast<unsigned char>(random.bits());
}

void Memory::arm() {
  before = live;
  expect = live;
}

Buffer::Buffer(std::string label, Memory &memory, size_t first, int dtype, int api_layout,
               const Layout &layout, int64_t reach)
    : label_(std::move(label)),
      memory_(&memory),
      first_(first),
      dtype_(dtype),
      api_layout_(api_layout),
      layout_(layout),
      reach_(reach),
      address_(layout.addresses()) {}

spk_buffer Buffer::api() const {
  return {memory_->live.data() + first_, reach_, dtype_, api_layout_, own_view_.get()};
}

std::string Buffer::text() const {
  static const char *const kLayouts[] = {"view", "contiguous", "own"};
  constexpr int64_t kMostShown = 48;
  std::string text = label_ + " " + dtype_name(dtype_) + " " + layout_.text() + " (" +
                     kLayouts[api_layout_] + ", numel " + std::to_string(reach_) + ")";
  if (memory_->before.empty()) return text;
  text += " =";
  for (int64_t i = 0; i < std::min(numel(), kMostShown); ++i) {
    char number[40];
    if (is_float_dtype(dtype_)) {
      std::snprintf(number, sizeof number, " %a", before(i));
    } else {
      std::snprintf(number, sizeof number, " %lld", static_cast<long long>(before_bits(i)));
    }
    text += number;
  }
  return text + (numel() > kMostShown ? " ..." : "");
}

int64_t Buffer::element_at(const Memory &memory, size_t byte) const {
  if (&memory != memory_ || byte < first_) return -1;
  const int64_t wanted = static_cast<int64_t>(byte - first_) / element_size(dtype_);
  for (size_t i = 0; i < address_.size(); ++i) {
    if (address_[i] == wanted) return static_cast<int64_t>(i);
  }
  return -1;
}

size_t Buffer::byte_of(int64_t index) const {
  return first_ + static_cast<size_t>(address_[static_cast<size_t>(index)] * element_size(dtype_));
}

uint64_t Buffer::bits_in(const std::vector<unsigned char> &bytes, int64_t index) const {
  const unsigned char *from = bytes.data() + byte_of(index);
  switch (element_size(dtype_)) {
    case 1:
      return *from;
    case 2: {
      uint16_t bits;
      std::memcpy(&bits, from, sizeof bits);
      return bits;
    }
    case 4: {
      uint32_t bits;
      std::memcpy(&bits, from, sizeof bits);
      return bits;
    }
    default: {
      uint64_t bits;
      std::memcpy(&bits, from, sizeof bits);
      return bits;
    }
  }
}

void Buffer::store(std::vector<unsigned char> &bytes, int64_t index, uint64_t bits) const {
  unsigned char *to = bytes.data() + byte_of(index);
  switch (element_size(dtype_)) {
    case 1:
      *to = static_cast<unsigned char>(bits);
      break;
    case 2: {
      const uint16_t narrow = static_cast<uint16_t>(bits);
      std::memcpy(to, &narrow, sizeof narrow);
      break;
    }
    case 4: {
      const uint32_t narrow = static_cast<uint32_t>(bits);
      std::memcpy(to, &narrow, sizeof narrow);
      break;
    }
    default:
      std::memcpy(to, &bits, sizeof bits);
  }
}

}  // namespace prop
