// Times a trial, interleaved with its yardstick.
#ifndef SPARSEKIT_TESTS_BENCH_RUNNER_HPP_
#define SPARSEKIT_TESTS_BENCH_RUNNER_HPP_

#include <vector>

#include "case.hpp"

namespace bench {

struct Budget {
  int repetitions;  // wanted
  double seconds;   // a row that takes longer stops early, but not before kFewestRepetitions
};

constexpr int kFewestRepetitions = 3;

// Seconds of each repetition, restored data and the warm-up left out.
struct Timings {
  std::vector<double> operation;
  std::vector<double> yardstick;
};

Timings measure(const Trial &trial, const Budget &budget);

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_RUNNER_HPP_
