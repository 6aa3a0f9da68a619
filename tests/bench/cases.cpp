#include "case.hpp"

namespace bench {

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto *cases : {limit_cases, block_cases, select_cases, conditioned_cases, coupling_cases,
                      small_cases, scaling_cases}) {
    for (Case &made : cases()) all.push_back(std::move(made));
  }
  return all;
}

Trial against_sweep(const Setting &setting, int64_t bytes, bool reads_conditioners) {
  Pool &pool = setting.pool;
  const Sweep &sweep = setting.sweeps.fastest(pool, setting.execution, bytes, reads_conditioners);
  Trial trial;
  trial.bytes = bytes;
  trial.restore = [&pool, bytes, execution = setting.execution] { pool.restore(execution, bytes); };
  trial.yardstick = [&pool, &sweep] { sweep.run(pool); };
  trial.yardstick_name = sweep.name();
  return trial;
}

spk_buffer leaf_buffer(const Pool &pool, int64_t first, int64_t numel) {
  auto *data = static_cast<std::byte *>(pool.work()) + first * pool.dtype().size;
  return {data, numel, pool.dtype().code, SPK_LAYOUT_VIEW, nullptr};
}

spk_buffer array_buffer(void *data, int64_t numel, int32_t dtype) {
  return {data, numel, dtype, SPK_LAYOUT_VIEW, nullptr};
}

}  // namespace bench
