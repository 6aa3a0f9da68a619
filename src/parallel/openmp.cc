// OpenMP behind the executor table. The regions live here alone, so that no other path touches the
// OpenMP runtime, which starts threads on first use and ends the process if it cannot have one.
#include <omp.h>

#include "parallel/executor.h"

namespace spk {
namespace {

// Inside a region of the host its threads are busy already: run serially there.
int32_t openmp_concurrency(void *) {
  return omp_in_parallel() ? 1 : omp_get_thread_limit();
}

int32_t openmp_parallel_for(void *, int64_t count, spk_task_fn task, void *task_data) {
  // num_threads holds for this region only; the host's settings stay as they are.
#pragma omp parallel for num_threads(static_cast <int>(count)) schedule(static, 1)
  for (int64_t i = 0; i < count; ++i) task(task_data, i);
  return 0;
}

}  // namespace

const Executor *openmp_executor() {
  static constexpr Executor kOpenmp = {sizeof(Executor), nullptr, openmp_concurrency,
                                       openmp_parallel_for};
  return &kOpenmp;
}

}  // namespace spk
