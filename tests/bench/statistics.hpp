// Medians and quartiles.
#ifndef SPARSEKIT_TESTS_BENCH_STATISTICS_HPP_
#define SPARSEKIT_TESTS_BENCH_STATISTICS_HPP_

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace bench {

// Linear interpolation between the two nearest; `samples` is not empty.
inline double quantile(std::vector<double> samples, double share) {
  std::sort(samples.begin(), samples.end());
  const double position = share * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, samples.size() - 1);
  return std::lerp(samples[below], samples[above], position - static_cast<double>(below));
}

inline double median(std::vector<double> samples) {
  return quantile(std::move(samples), 0.5);
}

// Seconds that `work` takes.
template <class Work>
double seconds_of(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_STATISTICS_HPP_
