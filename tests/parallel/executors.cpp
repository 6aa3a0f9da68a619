// Executors in someone else's process: inside a host's OpenMP region or TBB task, after fork(),
// with a host's own pool.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#ifdef TEST_WITH_OPENMP
#include <omp.h>
#endif
#ifdef TEST_WITH_TBB
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#endif

extern "C" {
#include <cmocka.h>
}

#include "sparsekit/sparsekit.h"

namespace {

constexpr int64_t kSize = 1 << 20;       // many tiles of work
constexpr int64_t kLargeSize = 1 << 22;  // more than a hundred

spk_context *make_context(int32_t executor, int32_t threads) {
  spk_context_options options = {};
  options.struct_size = sizeof options;
  options.executor = executor;
  options.threads = threads;
  spk_context *context = nullptr;
  assert_int_equal(spk_context_create(&options, &context), SPK_OK);
  return context;
}

// Prunes a vector of 1, 2, 3, 4, 1, 2, ... to 2:4; true if exactly the 3s and 4s are left.
bool prunes_rightly(spk_context *context) {
  std::vector<float> weights(kSize);
  for (int64_t i = 0; i < kSize; ++i)
    weights[static_cast<size_t>(i)] = static_cast<float>(i % 4 + 1);
  spk_view *view = nullptr;
  if (spk_view_create(SPK_F32, 1, &kSize, nullptr, 0, &view) != SPK_OK) return false;
  const spk_buffer buffer = {weights.data(), kSize, SPK_F32, SPK_LAYOUT_VIEW, nullptr};
  spk_report report = {};
  report.struct_size = sizeof report;
  bool right = spk_prune_nm(context, view, &buffer, nullptr, 0, 2, 4, &report) == SPK_OK &&
               report.achieved == kSize / 2;
  spk_view_release(view);
  for (int64_t i = 0; i < kSize; ++i) {
    const float expected = i % 4 >= 2 ? static_cast<float>(i % 4 + 1) : 0.0F;
    right = right && weights[static_cast<size_t>(i)] == expected;
  }
  return right;
}

// Doubles a vector of ones, in blocks of so many; true if each has been visited once.
bool doubles_once(spk_context *context, int64_t block_size) {
  std::vector<float> weights(static_cast<size_t>(kLargeSize), 1.0F);
  std::vector<float> multipliers(static_cast<size_t>(kLargeSize / block_size), 2.0F);
  spk_view *view = nullptr;
  spk_block *block = nullptr;
  if (spk_view_create(SPK_F32, 1, &kLargeSize, nullptr, 0, &view) != SPK_OK) return false;
  bool right = spk_block_create(view, 1, &block_size, nullptr, &block) == SPK_OK;
  const spk_buffer buffer = {weights.data(), kLargeSize, SPK_F32, SPK_LAYOUT_VIEW, nullptr};
  const spk_buffer factors = {multipliers.data(), kLargeSize / block_size, SPK_F32,
                              SPK_LAYOUT_CONTIGUOUS, nullptr};
  right =
      right && spk_block_apply_multiplier(context, block, &buffer, nullptr, 1, &factors) == SPK_OK;
  spk_block_release(block);
  spk_view_release(view);
  return right &&
         std::all_of(weights.begin(), weights.end(), [](float weight) { return weight == 2.0F; });
}

// Of blocks that are small, and of one that is cut into parts.
bool visits_each_once(spk_context *context) {
  return doubles_once(context, 64) && doubles_once(context, kLargeSize);
}

void every_executor_works(void **) {
  for (int32_t executor :
       {SPK_EXECUTOR_DEFAULT, SPK_EXECUTOR_SERIAL, SPK_EXECUTOR_TBB, SPK_EXECUTOR_OPENMP}) {
    if (!spk_executor_available(executor)) continue;
    spk_context *context = make_context(executor, 3);
    assert_int_equal(spk_context_threads(context), 3);
    assert_true(prunes_rightly(context));
    assert_true(visits_each_once(context));
    spk_context_release(context);
  }
  assert_true(prunes_rightly(nullptr));
}

void one_thread_works(void **) {
  spk_context *context = make_context(SPK_EXECUTOR_SERIAL, 1);
  assert_true(prunes_rightly(context));
  assert_true(visits_each_once(context));
  spk_context_release(context);
}

void an_executor_that_is_not_built_in_is_refused(void **) {
  for (int32_t executor : {SPK_EXECUTOR_TBB, SPK_EXECUTOR_OPENMP}) {
    spk_context_options options = {};
    options.struct_size = sizeof options;
    options.executor = executor;
    spk_context *context = nullptr;
    const spk_status expected = spk_executor_available(executor) ? SPK_OK : SPK_UNAVAILABLE;
    assert_int_equal(spk_context_create(&options, &context), expected);
    spk_context_release(context);
  }
}

void default_threads_are_the_affinity_mask_or_fewer(void **) {
  cpu_set_t old_mask;
  assert_int_equal(sched_getaffinity(0, sizeof old_mask, &old_mask), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &old_mask)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  spk_context *context = make_context(SPK_EXECUTOR_DEFAULT, 0);
  const int32_t threads = spk_context_threads(context);
  spk_context_release(context);
  assert_int_equal(sched_setaffinity(0, sizeof old_mask, &old_mask), 0);
  assert_int_equal(threads, 1);
}

// --- a host's pool --------------------------------------------------------------------------

struct HostPool {
  int32_t concurrency = 4;
  int32_t answer = 0;
  int64_t skipped = 0;  // tasks that are not run
  int calls = 0;
  int mode = -1;  // rounding mode in which parallel_for was called
};

int32_t pool_concurrency(void *user) {
  return static_cast<HostPool *>(user)->concurrency;
}

int32_t pool_parallel_for(void *user, int64_t count, spk_task_fn task, void *data) {
  auto *pool = static_cast<HostPool *>(user);
  ++pool->calls;
  pool->mode = std::fegetround();
  for (int64_t i = count - 1; i >= pool->skipped; --i) task(data, i);
  return pool->answer;
}

spk_context *make_host_context(HostPool *pool,
                               decltype(&pool_parallel_for) parallel_for = pool_parallel_for) {
  const spk_host_executor host = {sizeof host, pool, pool_concurrency, parallel_for};
  spk_context_options options = {};
  options.struct_size = sizeof options;
  options.executor = SPK_EXECUTOR_HOST;
  options.host = &host;
  spk_context *context = nullptr;
  assert_int_equal(spk_context_create(&options, &context), SPK_OK);
  return context;
}

void a_hosts_pool_does_the_work(void **) {
  HostPool pool;
  spk_context *context = make_host_context(&pool);
  assert_int_equal(spk_context_threads(context), 4);
  assert_true(prunes_rightly(context));
  assert_true(pool.calls > 0);
  spk_context_release(context);
}

void a_hosts_pool_runs_in_the_mode_of_the_host(void **) {
  HostPool pool;
  spk_context *context = make_host_context(&pool);
  std::fesetround(FE_UPWARD);
  const bool right = prunes_rightly(context);
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  assert_true(right);
  assert_int_equal(pool.mode, FE_UPWARD);
  assert_int_equal(after, FE_UPWARD);
  spk_context_release(context);
}

void a_hosts_pool_that_skips_tasks_does_no_harm(void **) {
  HostPool pool;
  pool.skipped = 4;
  spk_context *context = make_host_context(&pool);
  assert_true(prunes_rightly(context));
  assert_true(visits_each_once(context));
  spk_context_release(context);
}

// Threads that never ran a task before, each of which runs some of many.
int32_t short_lived_parallel_for(void *user, int64_t count, spk_task_fn task, void *data) {
  constexpr int64_t kThreads = 5;
  auto *pool = static_cast<HostPool *>(user);
  ++pool->calls;
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([=] {
      for (int64_t i = t; i < count; i += kThreads) task(data, i);
    });
  }
  for (std::thread &thread : threads) thread.join();
  return 0;
}

void a_hosts_pool_of_many_threads_that_come_and_go_does_the_work(void **) {
  HostPool pool;
  for (const int32_t concurrency : {2, 3, 100}) {
    pool.concurrency = concurrency;
    spk_context *context = make_host_context(&pool, short_lived_parallel_for);
    assert_int_equal(spk_context_threads(context), concurrency);
    for (int call = 0; call < 3; ++call) {
      assert_true(prunes_rightly(context));
      assert_true(visits_each_once(context));
    }
    spk_context_release(context);
  }
}

void a_hosts_pool_that_fails_ends_the_call(void **) {
  HostPool pool;
  pool.answer = 7;
  spk_context *context = make_host_context(&pool);
  std::vector<float> weights(kSize, 1.0F);
  spk_view *view = nullptr;
  assert_int_equal(spk_view_create(SPK_F32, 1, &kSize, nullptr, 0, &view), SPK_OK);
  const spk_buffer buffer = {weights.data(), kSize, SPK_F32, SPK_LAYOUT_VIEW, nullptr};
  assert_int_equal(spk_prune_nm(context, view, &buffer, nullptr, 0, 2, 4, nullptr), SPK_INTERNAL);
  char message[SPK_MESSAGE_SIZE];
  assert_int_equal(spk_last_error_copy(message, sizeof message, nullptr), SPK_INTERNAL);
  assert_string_equal(message, "host executor: parallel_for returned 7, expected 0");
  spk_view_release(view);
  spk_context_release(context);
}

// --- inside a host's parallel region --------------------------------------------------------

#ifdef TEST_WITH_OPENMP
void inside_an_openmp_region(void **) {
  const int host_threads = omp_get_max_threads();
  for (int32_t executor : {SPK_EXECUTOR_OPENMP, SPK_EXECUTOR_TBB}) {
    if (!spk_executor_available(executor)) continue;
    spk_context *context = make_context(executor, 2);
    int right = 0;
#pragma omp parallel num_threads(2) reduction(+ : right)
    right += prunes_rightly(context);
    assert_int_equal(right, 2);
    spk_context_release(context);
  }
  assert_int_equal(omp_get_max_threads(), host_threads);
}
#endif

#ifdef TEST_WITH_TBB
void inside_a_tbb_task(void **) {
  for (int32_t executor : {SPK_EXECUTOR_TBB, SPK_EXECUTOR_OPENMP}) {
    if (!spk_executor_available(executor)) continue;
    spk_context *context = make_context(executor, 2);
    std::vector<int> right(4);
    oneapi::tbb::task_arena arena(2);
    arena.execute([&] {
      oneapi::tbb::parallel_for(
          0, 4, [&](int i) { right[static_cast<size_t>(i)] = prunes_rightly(context); });
    });
    for (int r : right) assert_int_equal(r, 1);
    spk_context_release(context);
  }
}
#endif

// --- after fork() ---------------------------------------------------------------------------

// The child has two minutes, then the alarm ends it: a hang is a failure, not a hung test.
int status_of_child(spk_context *context) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    _exit(prunes_rightly(context) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

void a_forked_child_works(void **) {
  for (int32_t executor : {SPK_EXECUTOR_SERIAL, SPK_EXECUTOR_TBB, SPK_EXECUTOR_OPENMP}) {
    if (!spk_executor_available(executor)) continue;
    spk_context *context = make_context(executor, 2);
    assert_true(prunes_rightly(context));  // so that the pools have threads, which fork() loses
    assert_int_equal(status_of_child(context), 0);
    assert_int_equal(status_of_child(nullptr), 0);
    assert_true(prunes_rightly(context));  // the parent goes on in parallel
    spk_context_release(context);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(every_executor_works),
      cmocka_unit_test(one_thread_works),
      cmocka_unit_test(an_executor_that_is_not_built_in_is_refused),
      cmocka_unit_test(default_threads_are_the_affinity_mask_or_fewer),
      cmocka_unit_test(a_hosts_pool_does_the_work),
      cmocka_unit_test(a_hosts_pool_runs_in_the_mode_of_the_host),
      cmocka_unit_test(a_hosts_pool_that_skips_tasks_does_no_harm),
      cmocka_unit_test(a_hosts_pool_of_many_threads_that_come_and_go_does_the_work),
      cmocka_unit_test(a_hosts_pool_that_fails_ends_the_call),
#ifdef TEST_WITH_OPENMP
      cmocka_unit_test(inside_an_openmp_region),
#endif
#ifdef TEST_WITH_TBB
      cmocka_unit_test(inside_a_tbb_task),
#endif
      cmocka_unit_test(a_forked_child_works),
  };
  const int failures = cmocka_run_group_tests_name("executors", tests, nullptr, nullptr);
  return spk_live_handles() == 0 ? failures : 1;
}
