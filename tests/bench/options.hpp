// What a run measures, from the command line.
#ifndef SPARSEKIT_TESTS_BENCH_OPTIONS_HPP_
#define SPARSEKIT_TESTS_BENCH_OPTIONS_HPP_

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "case.hpp"
#include "runner.hpp"

namespace bench {

// One table: these dtypes, each with these executions.
struct Plan {
  std::vector<Dtype> dtypes;
  std::vector<Execution> executions;
};

struct Options {
  std::vector<Plan> plans;
  std::vector<int64_t> sizes;  // bytes
  bool size_sweep = false;     // only cases that say something at every size
  CacheState cache = CacheState::kBySize;
  Budget budget = {15, 2.0};
  std::optional<std::regex> filter;
  bool list = false;
  std::string text_path;
  std::string json_path;

  bool wants(const Case &made) const;
};

// Ends the process after --help, and with a message on wrong arguments.
Options parse_options(int argc, char **argv);

// "operation / layout", which filters match.
std::string title_of(const Case &made);

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_OPTIONS_HPP_
