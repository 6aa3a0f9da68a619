// How the core refuses: a status and one sentence that names the argument, what was given and what
// was expected. The C boundary turns it into a return value.
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/extents.h"
#include "sparsekit/sparsekit.h"

namespace spk {

struct Error {
  spk_status status;
  std::string message;
};

namespace text {

inline void append(std::string &out, std::string_view part) {
  out += part;
}
inline void append(std::string &out, const char *part) {
  out += part;
}
inline void append(std::string &out, const std::string &part) {
  out += part;
}

// to_chars, because printf and streams follow the host's locale.
template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
void append(std::string &out, T number) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(number)) {
      out += "NaN";
      return;
    }
  }
  char digits[40];
  auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

inline void append(std::string &out, const Extents &shape) {
  out += '(';
  for (int d = 0; d < shape.size(); ++d) {
    if (d > 0) out += ',';
    append(out, shape[d]);
  }
  out += ')';
}

}  // namespace text

template <typename... Parts>
std::string cat(const Parts &...parts) {
  std::string out;
  (text::append(out, parts), ...);
  return out;
}

// A caller's text in a message: long ones would push the cause out of its fixed size.
inline std::string shortened(const std::string &given, size_t shown = 60) {
  return given.size() <= shown ? given : given.substr(0, shown) + "...";
}

template <typename... Parts>
[[noreturn]] void fail(spk_status status, const Parts &...parts) {
  throw Error{status, cat(parts...)};
}

}  // namespace spk
