// The yardstick: x *= a over the same bytes with the same threads.
#ifndef SPARSEKIT_TESTS_BENCH_SWEEP_HPP_
#define SPARSEKIT_TESTS_BENCH_SWEEP_HPP_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "execution.hpp"
#include "pool.hpp"
#include "sweep_kernels.hpp"

namespace bench {

// One way to write the sweep, and the shortest of its timings.
struct SweepWay {
  std::string name;
  SweepLoop loop;
  Execution execution;
  double seconds;
};

class Sweep {
 public:
  Sweep(const Dtype &dtype, const Execution &execution, int64_t bytes, bool reads_conditioners);

  // Times each way, interleaved, and keeps the fastest.
  void choose(Pool &pool, int repetitions);
  // The fastest way.
  void run(Pool &pool) const { run(pool, ways_.front()); }

  bool is(const Dtype &dtype, const Execution &execution, int64_t bytes,
          bool reads_conditioners) const;
  const Dtype &dtype() const { return dtype_; }
  const Execution &execution() const { return execution_; }
  int64_t bytes() const { return bytes_; }
  // "sweep", or "sweep, h" if it reads conditioners too.
  std::string name() const { return reads_conditioners_ ? "sweep, h" : "sweep"; }
  // Fastest first.
  const std::vector<SweepWay> &ways() const { return ways_; }
  // Counts what is read and what is written.
  double gigabytes_per_second(const SweepWay &way) const;

 private:
  void run(Pool &pool, const SweepWay &way) const;

  Dtype dtype_;
  Execution execution_;
  int64_t bytes_;
  bool reads_conditioners_;
  std::vector<SweepWay> ways_;
};

// The sweeps of a run, each chosen when it is first asked for.
class SweepBook {
 public:
  explicit SweepBook(int repetitions) : repetitions_(repetitions) {}

  const Sweep &fastest(Pool &pool, const Execution &execution, int64_t bytes,
                       bool reads_conditioners);
  const std::deque<Sweep> &all() const { return sweeps_; }

 private:
  int repetitions_;
  std::deque<Sweep> sweeps_;  // references to its members stay valid
};

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_SWEEP_HPP_
