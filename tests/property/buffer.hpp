// Memory as the cases bring it to the library, with a picture of what it must hold afterwards.
#ifndef SPARSEKIT_TESTS_PROPERTY_BUFFER_HPP_
#define SPARSEKIT_TESTS_PROPERTY_BUFFER_HPP_

#include <cstdint>
#include <string>
#include <vector>

#include "handles.hpp"
#include "model.hpp"
#include "numbers.hpp"
#include "random.hpp"

namespace prop {

// One allocation. `live` is what the library sees; `before` and `expect` are copies made when the
// case is armed, and `expect` then learns what the call has to write. In the end `live` and
// `expect` must agree in every byte, so whatever no view reaches works as a guard.
class Memory {
 public:
  Memory(Random &random, size_t bytes);

  void arm();
  std::vector<unsigned char> live;
  std::vector<unsigned char> before;
  std::vector<unsigned char> expect;
};

// A buffer of the API: elements in row-major order of a shape, wherever they lie.
class Buffer {
 public:
  // `first` is the byte at which the buffer's data pointer points; `reach` its number of elements.
  Buffer(std::string label, Memory &memory, size_t first, int dtype, int api_layout,
         const Layout &layout, int64_t reach);

  spk_buffer api() const;
  const std::string &label() const { return label_; }
  int dtype() const { return dtype_; }
  const Layout &layout() const { return layout_; }
  int64_t numel() const { return static_cast<int64_t>(address_.size()); }
  // The layout, and what the first elements held before the call.
  std::string text() const;

  // Raw elements: as the library sees them, before the call, and as they should become.
  uint64_t live_bits(int64_t index) const { return bits_in(memory_->live, index); }
  uint64_t before_bits(int64_t index) const { return bits_in(memory_->before, index); }
  void set_bits(int64_t index, uint64_t bits) { store(memory_->live, index, bits); }
  void expect_bits(int64_t index, uint64_t bits) { store(memory_->expect, index, bits); }
  // The element was judged by other means: whatever it holds is right.
  void accept(int64_t index) { expect_bits(index, live_bits(index)); }

  double live(int64_t index) const { return decode(dtype_, live_bits(index)); }
  double before(int64_t index) const { return decode(dtype_, before_bits(index)); }
  void set(int64_t index, quad value) { set_bits(index, encode(dtype_, value)); }

  // The element in one of the pictures of the buffer's memory.
  uint64_t bits_in(const std::vector<unsigned char> &bytes, int64_t index) const;

  // Row-major index of the element that covers a byte of `memory`; -1 if there is none.
  int64_t element_at(const Memory &memory, size_t byte) const;

  void own(ViewHandle view) { own_view_ = std::move(view); }

 private:
  size_t byte_of(int64_t index) const;
  void store(std::vector<unsigned char> &bytes, int64_t index, uint64_t bits) const;

  std::string label_;
  Memory *memory_;
  size_t first_;
  int dtype_;
  int api_layout_;
  Layout layout_;
  int64_t reach_;
  Dims address_;
  ViewHandle own_view_;
};

}  // namespace prop

#endif  // SPARSEKIT_TESTS_PROPERTY_BUFFER_HPP_
