// The four dtypes, and the C++ types of their elements.
#ifndef SPARSEKIT_TESTS_BENCH_DTYPE_HPP_
#define SPARSEKIT_TESTS_BENCH_DTYPE_HPP_

#include <sparsekit/sparsekit.h>

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

using F16 = _Float16;

// Rounds to nearest even; NaN does not occur here.
class BF16 {
 public:
  BF16() = default;
  explicit BF16(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    bits_ = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits_} << 16); }

 private:
  uint16_t bits_;
};

struct Dtype {
  int32_t code;
  const char *name;
  int64_t size;

  int32_t score_code() const { return code == SPK_F64 ? SPK_F64 : SPK_F32; }
  int64_t score_size() const { return code == SPK_F64 ? 8 : 4; }
};

inline const std::vector<Dtype> &dtypes() {
  static const std::vector<Dtype> all = {
      {SPK_F32, "f32", 4}, {SPK_F64, "f64", 8}, {SPK_F16, "f16", 2}, {SPK_BF16, "bf16", 2}};
  return all;
}

inline const Dtype &dtype_named(const std::string &name) {
  for (const Dtype &dtype : dtypes()) {
    if (name == dtype.name) return dtype;
  }
  throw std::invalid_argument("no dtype is called " + name);
}

// Calls visit(T{}) with the element type of a dtype.
template <class Visit>
auto with_element_type(int32_t code, Visit visit) {
  switch (code) {
    case SPK_F64:
      return visit(double{});
    case SPK_F16:
      return visit(F16{});
    case SPK_BF16:
      return visit(BF16{});
    default:
      return visit(float{});
  }
}

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_DTYPE_HPP_
