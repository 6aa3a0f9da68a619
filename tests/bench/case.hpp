// What a row of the table measures.
#ifndef SPARSEKIT_TESTS_BENCH_CASE_HPP_
#define SPARSEKIT_TESTS_BENCH_CASE_HPP_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "execution.hpp"
#include "pool.hpp"
#include "sweep.hpp"

namespace bench {

// What the number of a row says.
enum class Figure {
  kRatio,     // time over that of the yardstick
  kSpeedUp,   // time of the yardstick over that of the operation
  kOverhead,  // microseconds of a call beyond its arithmetic; the yardstick does the work twice
  kTime,      // microseconds of a call
};

// What a case is made for.
struct Setting {
  Pool &pool;
  SweepBook &sweeps;
  Execution execution;
};

// One case, made and ready to run. The functions own what they work on.
struct Trial {
  int64_t bytes = 0;              // of the tensor
  double traffic = 0;             // bytes of the tensor that are read and written
  int64_t calls = 1;              // that one run of the operation makes
  std::function<void()> restore;  // before each timing; not timed
  std::function<void()> operation;
  std::function<void()> yardstick;  // empty for Figure::kTime
  std::string yardstick_name;
  std::function<int64_t()> peak_bytes;  // scratch memory so far
};

struct Case {
  std::string group;
  std::string operation;
  std::string layout;
  Figure figure;
  std::optional<double> goal;
  bool any_size;  // says something at every size: part of --size-sweep
  std::function<Trial(const Setting &)> make;
};

// Every row of the table, in its order.
std::vector<Case> all_cases();

std::vector<Case> limit_cases();
std::vector<Case> block_cases();
std::vector<Case> select_cases();
std::vector<Case> conditioned_cases();
std::vector<Case> coupling_cases();
std::vector<Case> small_cases();
std::vector<Case> scaling_cases();

// --- building blocks of cases -------------------------------------------------------------------

// A trial over the first `bytes` of the pool against the sweep over them.
Trial against_sweep(const Setting &setting, int64_t bytes, bool reads_conditioners = false);

// `numel` elements of the working copy, from element `first` on.
spk_buffer leaf_buffer(const Pool &pool, int64_t first, int64_t numel);
spk_buffer array_buffer(void *data, int64_t numel, int32_t dtype);

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_CASE_HPP_
