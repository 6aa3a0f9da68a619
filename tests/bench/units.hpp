// Sizes as people write them.
#ifndef SPARSEKIT_TESTS_BENCH_UNITS_HPP_
#define SPARSEKIT_TESTS_BENCH_UNITS_HPP_

#include <cstdint>
#include <cstdio>
#include <string>

namespace bench {

inline std::string bytes_text(int64_t bytes) {
  static constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 3; ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g %s", value, kUnits[unit]);
  return text;
}

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_UNITS_HPP_
