#include "runner.hpp"

#include "statistics.hpp"

namespace bench {
namespace {

// Calls of microseconds are cheap to repeat, and need it.
constexpr double kShortest = 0.05;
constexpr size_t kMostRepetitions = 5000;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double time_restored(const Trial &trial, const std::function<void()> &work) {
  trial.restore();
  return seconds_of(work);
}

// Which of the two goes first alternates, so that neither gains by what the other leaves behind.
void repeat_once(const Trial &trial, Timings &timings) {
  const bool yardstick_first = timings.operation.size() % 2 == 1;
  const auto time_yardstick = [&] {
    if (trial.yardstick) timings.yardstick.push_back(time_restored(trial, trial.yardstick));
  };
  if (yardstick_first) time_yardstick();
  timings.operation.push_back(time_restored(trial, trial.operation));
  if (!yardstick_first) time_yardstick();
}

bool enough(size_t repetitions, double elapsed, const Budget &budget) {
  if (repetitions < kFewestRepetitions) return false;
  if (elapsed >= budget.seconds || repetitions >= kMostRepetitions) return true;
  return repetitions >= static_cast<size_t>(budget.repetitions) && elapsed >= kShortest;
}

}  // namespace

Timings measure(const Trial &trial, const Budget &budget) {
  const Clock::time_point start = Clock::now();
  Timings warm_up;
  repeat_once(trial, warm_up);
  Timings timings;
  while (!enough(timings.operation.size(), seconds_since(start), budget)) {
    repeat_once(trial, timings);
  }
  return timings;
}

}  // namespace bench
