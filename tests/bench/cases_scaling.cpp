// Several threads against one, for operations of other groups, for the sweep itself, and for
// arithmetic that needs no memory: where that is no faster, threads share a core.
#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "case.hpp"
#include "memory.hpp"
#include "skip.hpp"
#include "sweep_kernels.hpp"

namespace bench {
namespace {

constexpr Execution kOneThread = {SPK_EXECUTOR_SERIAL, 1};

void require_threads(const Setting &setting) {
  if (setting.execution.threads == 1) throw Skip("one thread against itself");
}

Trial against_one_thread(Trial many, const Trial &one) {
  many.yardstick = one.operation;
  many.yardstick_name = "one thread";
  return many;
}

Trial make_operation_trial(const Setting &setting, const Case &operation) {
  require_threads(setting);
  const Setting serial = {setting.pool, setting.sweeps, kOneThread};
  return against_one_thread(operation.make(setting), operation.make(serial));
}

// A sweep in the place of the operation.
Trial sweep_trial(const Setting &setting) {
  Trial trial = against_sweep(setting, setting.pool.bytes());
  trial.traffic = 2 * static_cast<double>(trial.bytes);
  trial.operation = trial.yardstick;
  trial.peak_bytes = [] { return int64_t{0}; };
  return trial;
}

Trial make_sweep_trial(const Setting &setting) {
  require_threads(setting);
  const Setting serial = {setting.pool, setting.sweeps, kOneThread};
  return against_one_thread(sweep_trial(setting), sweep_trial(serial));
}

// Squares of the same few floats again and again, which stay in the nearest cache.
Trial arithmetic_trial(const Setting &setting) {
  constexpr int64_t kFloats = 1024;
  constexpr int64_t kTimes = 16384;
  constexpr int64_t kAskedFor = 2048;  // behind them
  auto floats =
      std::make_shared<Memory>((kFloats + kAskedFor) * static_cast<int64_t>(sizeof(float)));
  std::fill_n(floats->as<float>(), kFloats, 1.0F);
  Trial trial = against_sweep(setting, setting.pool.bytes());
  trial.traffic = 0;
  trial.operation = [execution = setting.execution, floats] {
    static std::atomic<int64_t> seen;
    const auto *x = floats->as<const float>();
    for_pieces(execution, kTimes * kFloats, [&](int64_t begin, int64_t end) {
      double sum = 0;
      for (int64_t at = begin; at < end; at += kFloats) sum += sum_squares_in_doubles(x, kFloats);
      seen += sum > 0;
    });
  };
  trial.peak_bytes = [] { return int64_t{0}; };
  return trial;
}

Trial make_arithmetic_trial(const Setting &setting) {
  require_threads(setting);
  const Setting serial = {setting.pool, setting.sweeps, kOneThread};
  return against_one_thread(arithmetic_trial(setting), arithmetic_trial(serial));
}

}  // namespace

std::vector<Case> scaling_cases() {
  std::vector<Case> cases;
  for (auto *others : {block_cases, select_cases}) {
    for (Case &other : others()) {
      if (!other.any_size) continue;
      cases.push_back(
          {"threads", other.operation, other.layout, Figure::kSpeedUp, std::nullopt, false,
           [other](const Setting &setting) { return make_operation_trial(setting, other); }});
    }
  }
  cases.push_back({"threads", "the sweep itself", "contiguous", Figure::kSpeedUp, std::nullopt,
                   false, make_sweep_trial});
  cases.push_back({"threads", "arithmetic alone", "in a near cache", Figure::kSpeedUp, std::nullopt,
                   false, make_arithmetic_trial});
  return cases;
}

}  // namespace bench
