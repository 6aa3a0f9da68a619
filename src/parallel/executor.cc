#include "parallel/executor.h"

namespace spk {
namespace {

int32_t one(void *) {
  return 1;
}

int32_t run_in_order(void *, int64_t count, spk_task_fn task, void *task_data) {
  for (int64_t i = 0; i < count; ++i) task(task_data, i);
  return 0;
}

}  // namespace

const Executor *serial_executor() {
  static constexpr Executor kSerial = {sizeof(Executor), nullptr, one, run_in_order};
  return &kSerial;
}

#ifndef SPK_WITH_TBB
const Executor *tbb_executor() {
  return nullptr;
}
#endif
#ifndef SPK_WITH_OPENMP
const Executor *openmp_executor() {
  return nullptr;
}
#endif

const Executor *built_in_executor(int32_t code) {
  switch (code) {
    case SPK_EXECUTOR_SERIAL:
      return serial_executor();
    case SPK_EXECUTOR_TBB:
      return tbb_executor();
    case SPK_EXECUTOR_OPENMP:
      return openmp_executor();
    default:
      return nullptr;
  }
}

int32_t default_executor() {
  if (tbb_executor()) return SPK_EXECUTOR_TBB;
  if (openmp_executor()) return SPK_EXECUTOR_OPENMP;
  return SPK_EXECUTOR_SERIAL;
}

}  // namespace spk
