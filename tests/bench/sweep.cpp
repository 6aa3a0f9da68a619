#include "sweep.hpp"

#include <algorithm>

#include "statistics.hpp"

namespace bench {
namespace {

constexpr double kFactor = 0.999;
// Below this, waking a second thread may cost more than it brings.
constexpr int64_t kMaySuitOneThread = int64_t{4} << 20;

std::vector<SweepWay> ways_on(const SweepLoops &loops, const Execution &execution,
                              const std::string &suffix) {
  return {{"loop" + suffix, loops.compiler, execution, 0},
          {"vectors" + suffix, loops.vectors, execution, 0},
          {"streaming" + suffix, loops.streaming, execution, 0}};
}

std::vector<SweepWay> all_ways(const Dtype &dtype, const Execution &execution, int64_t bytes) {
  const SweepLoops loops = sweep_loops(dtype);
  std::vector<SweepWay> ways = ways_on(loops, execution, "");
  if (execution.threads > 1 && bytes <= kMaySuitOneThread) {
    for (SweepWay &way : ways_on(loops, {execution.executor, 1}, ", one thread")) {
      ways.push_back(way);
    }
  }
  return ways;
}

}  // namespace

Sweep::Sweep(const Dtype &dtype, const Execution &execution, int64_t bytes, bool reads_conditioners)
    : dtype_(dtype),
      execution_(execution),
      bytes_(bytes),
      reads_conditioners_(reads_conditioners),
      ways_(all_ways(dtype, execution, bytes)) {}

void Sweep::choose(Pool &pool, int repetitions) {
  std::vector<std::vector<double>> samples(ways_.size());
  for (int i = 0; i < repetitions + 1; ++i) {
    for (size_t way = 0; way < ways_.size(); ++way) {
      pool.restore(execution_, bytes_);
      const double seconds = seconds_of([&] { run(pool, ways_[way]); });
      const bool warm_up = i == 0;
      if (!warm_up) samples[way].push_back(seconds);
    }
  }
  // The shortest time: what else runs on the machine must not make a slow way the yardstick.
  for (size_t way = 0; way < ways_.size(); ++way) {
    ways_[way].seconds = *std::min_element(samples[way].begin(), samples[way].end());
  }
  std::stable_sort(ways_.begin(), ways_.end(),
                   [](const SweepWay &a, const SweepWay &b) { return a.seconds < b.seconds; });
}

void Sweep::run(Pool &pool, const SweepWay &way) const {
  auto *x = static_cast<std::byte *>(pool.work());
  const auto *h =
      reads_conditioners_ ? static_cast<const std::byte *>(pool.conditioners()) : nullptr;
  for_pieces(way.execution, bytes_ / dtype_.size, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * dtype_.size;
    way.loop(x + first, h ? h + first : nullptr, kFactor, end - begin);
  });
}

bool Sweep::is(const Dtype &dtype, const Execution &execution, int64_t bytes,
               bool reads_conditioners) const {
  return dtype_.code == dtype.code && execution_ == execution && bytes_ == bytes &&
         reads_conditioners_ == reads_conditioners;
}

double Sweep::gigabytes_per_second(const SweepWay &way) const {
  const int64_t traffic = (reads_conditioners_ ? 3 : 2) * bytes_;
  return static_cast<double>(traffic) / way.seconds * 1e-9;
}

const Sweep &SweepBook::fastest(Pool &pool, const Execution &execution, int64_t bytes,
                                bool reads_conditioners) {
  for (const Sweep &sweep : sweeps_) {
    if (sweep.is(pool.dtype(), execution, bytes, reads_conditioners)) return sweep;
  }
  if (reads_conditioners) pool.conditioners();  // not while it is timed
  Sweep &sweep = sweeps_.emplace_back(pool.dtype(), execution, bytes, reads_conditioners);
  sweep.choose(pool, repetitions_);
  return sweep;
}

}  // namespace bench
