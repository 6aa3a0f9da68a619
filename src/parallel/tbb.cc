// oneTBB behind the executor table.
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include "parallel/executor.h"

namespace spk {
namespace {

namespace tbb = oneapi::tbb;

// One arena for the life of the process: each destroyed arena leaks before oneTBB 2021.11, and
// stopping threads in a destructor can deadlock on the loader's lock. Made on first use.
tbb::task_arena &process_arena() {
  static auto *arena = new tbb::task_arena;
  return *arena;
}

bool inside_host_arena() {
  return tbb::this_task_arena::current_thread_index() != tbb::task_arena::not_initialized;
}

int32_t tbb_concurrency(void *) {
  return inside_host_arena() ? tbb::this_task_arena::max_concurrency()
                             : process_arena().max_concurrency();
}

int32_t tbb_parallel_for(void *, int64_t count, spk_task_fn task, void *task_data) {
  auto loop = [=] {
    tbb::parallel_for(
        tbb::blocked_range<int64_t>(0, count, 1),
        [=](const tbb::blocked_range<int64_t> &range) {
          for (int64_t i = range.begin(); i < range.end(); ++i) task(task_data, i);
        },
        tbb::simple_partitioner());
  };
  // While it waits, this thread must not pick up a task of the host that may hold the host's locks.
  if (inside_host_arena()) {
    tbb::this_task_arena::isolate(loop);
  } else {
    process_arena().execute(loop);
  }
  return 0;
}

}  // namespace

const Executor *tbb_executor() {
  static constexpr Executor kTbb = {sizeof(Executor), nullptr, tbb_concurrency, tbb_parallel_for};
  return &kTbb;
}

}  // namespace spk
