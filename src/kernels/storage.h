// 16-bit floats as stored: words that only conversions look into.
#pragma once

#include <cstdint>

namespace spk {

struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};

}  // namespace spk
