// Element types: the codes of the public header, their sizes and names.
#pragma once

#include <cstdint>

#include "sparsekit/sparsekit.h"

namespace spk {

inline bool is_float(int32_t dtype) {
  return dtype == SPK_F32 || dtype == SPK_F64 || dtype == SPK_F16 || dtype == SPK_BF16;
}

// The low byte of a code is the width in bits.
inline int64_t size_of(int32_t dtype) {
  return (dtype & 0xff) / 8;
}

inline constexpr auto kDoubleBytes = static_cast<int64_t>(sizeof(double));

inline const char *name_of(int32_t dtype) {
  switch (dtype) {
    case SPK_F32:
      return "f32";
    case SPK_F64:
      return "f64";
    case SPK_F16:
      return "f16";
    case SPK_BF16:
      return "bf16";
    case SPK_U8:
      return "u8";
    case SPK_I64:
      return "i64";
    default:
      return "unknown";
  }
}

}  // namespace spk
