// Several threads against one, for operations of other groups and for the sweep itself.
#include "case.hpp"
#include "skip.hpp"

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
  return cases;
}

}  // namespace bench
