#include "numbers.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace prop {

namespace {

__extension__ typedef unsigned __int128 wide;

constexpr int kQuadMantissa = 112;
constexpr int kQuadBias = 16383;

// |value| = mantissa * 2^exponent; `top` is floor(log2(|value|)).
struct Parts {
  bool negative;
  bool finite;
  wide mantissa;
  int exponent;
  int top;
};

Parts take_apart(quad value) {
  wide bits;
  static_assert(sizeof bits == sizeof value, "quad is a 128-bit format");
  std::memcpy(&bits, &value, sizeof bits);
  Parts parts;
  parts.negative = (bits >> 127) != 0;
  const int field = static_cast<int>((bits >> kQuadMantissa) & 0x7fff);
  parts.finite = field != 0x7fff;
  parts.mantissa = bits & ((wide{1} << kQuadMantissa) - 1);
  if (field != 0) parts.mantissa |= wide{1} << kQuadMantissa;
  parts.exponent = (field == 0 ? 1 : field) - kQuadBias - kQuadMantissa;
  parts.top = parts.exponent - 1;
  for (wide rest = parts.mantissa; rest != 0; rest >>= 1) ++parts.top;
  return parts;
}

uint64_t infinity_bits(Format format) {
  const int mantissa = format.precision - 1;
  return static_cast<uint64_t>(2 * format.max_exponent + 1) << mantissa;
}

uint64_t sign_bit(int dtype) {
  return uint64_t{1} << (8 * element_size(dtype) - 1);
}

}  // namespace

bool is_float_dtype(int dtype) {
  return dtype == SPK_F32 || dtype == SPK_F64 || dtype == SPK_F16 || dtype == SPK_BF16;
}

int element_size(int dtype) {
  return (dtype & 0xff) / 8;
}

const char *dtype_name(int dtype) {
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
      return "?";
  }
}

Format format_of(int dtype) {
  switch (dtype) {
    case SPK_F32:
      return {24, -126, 127};
    case SPK_F64:
      return {53, -1022, 1023};
    case SPK_F16:
      return {11, -14, 15};
    case SPK_BF16:
      return {8, -126, 127};
    default:
      throw std::logic_error("not a float dtype");
  }
}

double decode(int dtype, uint64_t bits) {
  const Format format = format_of(dtype);
  const int mantissa_bits = format.precision - 1;
  const bool negative = (bits & sign_bit(dtype)) != 0;
  bits &= ~sign_bit(dtype);
  double value;
  if (bits > infinity_bits(format)) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (bits == infinity_bits(format)) {
    value = std::numeric_limits<double>::infinity();
  } else {
    const int field = static_cast<int>(bits >> mantissa_bits);
    uint64_t mantissa = bits & ((uint64_t{1} << mantissa_bits) - 1);
    if (field != 0) mantissa |= uint64_t{1} << mantissa_bits;
    const int exponent = (field == 0 ? 1 : field) - format.max_exponent - mantissa_bits;
    value = std::ldexp(static_cast<double>(mantissa), exponent);
  }
  return negative ? -value : value;
}

uint64_t encode(int dtype, quad value) {
  const Format format = format_of(dtype);
  const int mantissa_bits = format.precision - 1;
  if (is_nan(value)) return infinity_bits(format) | (uint64_t{1} << (mantissa_bits - 1));
  const Parts parts = take_apart(value);
  const uint64_t sign = parts.negative ? sign_bit(dtype) : 0;
  if (!parts.finite) return sign | infinity_bits(format);
  if (parts.mantissa == 0) return sign;
  // The result is a whole number of quanta: count them, then round the count to nearest even.
  const bool denormal = parts.top < format.min_exponent;
  const int quantum = (denormal ? format.min_exponent : parts.top) - mantissa_bits;
  const int shift = quantum - parts.exponent;
  uint64_t count = 0;
  if (shift < 120) {
    count = static_cast<uint64_t>(parts.mantissa >> shift);
    const wide rest = parts.mantissa & ((wide{1} << shift) - 1);
    const wide half = wide{1} << (shift - 1);
    if (rest > half || (rest == half && (count & 1) != 0)) ++count;
  }
  // A count that rounds up to the next binade carries into the exponent field by itself.
  uint64_t bits = count;
  if (!denormal) {
    const int64_t field = parts.top + format.max_exponent;
    if (field > 2 * format.max_exponent) return sign | infinity_bits(format);
    bits = (static_cast<uint64_t>(field) << mantissa_bits) + count - (uint64_t{1} << mantissa_bits);
  }
  return sign | (bits < infinity_bits(format) ? bits : infinity_bits(format));
}

double round_to(int dtype, quad value) {
  return decode(dtype, encode(dtype, value));
}

quad ulp_at(int dtype, quad value) {
  const Format format = format_of(dtype);
  const Parts parts = take_apart(value);
  int exponent = format.min_exponent;
  if (parts.mantissa != 0 && parts.top > exponent) exponent = parts.top;
  return power_of_two(exponent - (format.precision - 1));
}

quad finite_or_next(int dtype, double value) {
  if (!std::isinf(value)) return value;
  const quad beyond = power_of_two(format_of(dtype).max_exponent + 1);
  return value > 0 ? beyond : -beyond;
}

double largest_finite(int dtype) {
  return decode(dtype, infinity_bits(format_of(dtype)) - 1);
}

double smallest_normal(int dtype) {
  return std::ldexp(1.0, format_of(dtype).min_exponent);
}

quad power_of_two(int exponent) {
  const wide bits = static_cast<wide>(exponent + kQuadBias) << kQuadMantissa;
  quad value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

quad square_root(quad value) {
  if (is_nan(value) || is_infinite(value) || value == 0) return value;
  const Parts parts = take_apart(value);
  const int half = parts.top >= 0 ? parts.top / 2 : -((1 - parts.top) / 2);
  const quad scaled = value * power_of_two(-half) * power_of_two(-half);
  // Newton doubles the 53 good bits twice.
  quad root = std::sqrt(static_cast<double>(scaled));
  root = (root + scaled / root) / 2;
  root = (root + scaled / root) / 2;
  return root * power_of_two(half);
}

quad magnitude(quad value) {
  return value < 0 ? -value : value;
}

bool is_nan(quad value) {
  return value != value;
}

bool is_infinite(quad value) {
  const Parts parts = take_apart(value);
  return !parts.finite && !is_nan(value);
}

std::string show(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a (%.9g)", value, value);
  return text;
}

std::string show_bits(uint64_t bits) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(bits));
  return text;
}

}  // namespace prop
