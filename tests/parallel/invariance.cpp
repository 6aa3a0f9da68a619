// The same bits for every thread count, executor and instruction set.
#include <hwy/targets.h>

#include <cfenv>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#include "workload.h"

namespace {

// A host's pool that does everything in the awkward order: last index first, a thread each.
int32_t host_concurrency(void *user) {
  return *static_cast<int32_t *>(user);
}

int32_t host_parallel_for(void *, int64_t count, spk_task_fn task, void *data) {
  std::vector<std::thread> threads;
  for (int64_t i = count - 1; i >= 0; --i) threads.emplace_back(task, data, i);
  for (std::thread &thread : threads) thread.join();
  return 0;
}

std::vector<Fingerprint> run(int32_t executor, int32_t threads, int rounding_mode = FE_TONEAREST) {
  int32_t width = threads;
  spk_host_executor host = {sizeof host, &width, host_concurrency, host_parallel_for};
  spk_context_options options = {};
  options.struct_size = sizeof options;
  options.executor = executor;
  options.threads = threads;
  options.host = executor == SPK_EXECUTOR_HOST ? &host : nullptr;
  spk_context *context = nullptr;
  assert_int_equal(spk_context_create(&options, &context), SPK_OK);
  std::vector<Fingerprint> result = run_workload(context, rounding_mode);
  spk_context_release(context);
  return result;
}

void assert_same(const std::vector<Fingerprint> &reference, const std::vector<Fingerprint> &got,
                 const char *how) {
  assert_int_equal(reference.size(), got.size());
  int differences = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (reference[i].hash == got[i].hash) continue;
    if (++differences <= 20) print_error("%s: %s differs\n", how, got[i].what.c_str());
  }
  assert_int_equal(differences, 0);
}

const std::vector<Fingerprint> &reference() {
  static const std::vector<Fingerprint> result = run(SPK_EXECUTOR_SERIAL, 1);
  return result;
}

void threads_and_executors(void **) {
  const std::pair<int32_t, const char *> executors[] = {{SPK_EXECUTOR_SERIAL, "serial"},
                                                        {SPK_EXECUTOR_TBB, "TBB"},
                                                        {SPK_EXECUTOR_OPENMP, "OpenMP"},
                                                        {SPK_EXECUTOR_HOST, "host"}};
  for (const auto &[executor, name] : executors) {
    if (!spk_executor_available(executor)) {
      print_message("%s is not in this build\n", name);
      continue;
    }
    // Serial is one thread, whatever it is told; one thread of any other executor is as serial. With
    // two, other rounding modes are tried below.
    const bool serial = executor == SPK_EXECUTOR_SERIAL;
    for (int32_t threads : serial ? std::vector{8} : std::vector{3, 8}) {
      char how[64];
      std::snprintf(how, sizeof how, "%s, %d threads", name, threads);
      assert_same(reference(), run(executor, threads), how);
    }
  }
}

void instruction_sets(void **) {
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  assert_int_not_equal(supported, 0);
  reference();
  for (int64_t rest = supported; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    if (!std::strstr(spk_build_info(), hwy::TargetName(target))) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    print_message("%s\n", hwy::TargetName(target));
    assert_same(reference(), run(SPK_EXECUTOR_SERIAL, 1), hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

// Highway chooses among all instruction sets when it is asked for them; the library, which asks,
// among those that the host has left. The first test: later ones are not asked again.
void disabled_instruction_sets(void **) {
  const bool has_avx512 = (hwy::SupportedTargets() & HWY_AVX3) != 0;
  hwy::DisableTargets(has_avx512 ? HWY_AVX3 | HWY_AVX3_DL : HWY_AVX2);
  hwy::ChosenTarget &chosen = hwy::GetChosenTarget();
  chosen.Update(hwy::SupportedTargets());
  const size_t next_best = chosen.GetIndex();
  chosen.DeInit();
  run(SPK_EXECUTOR_SERIAL, 1);
  assert_int_equal(chosen.GetIndex(), next_best);
  assert_non_null(spk_build_info());
  assert_int_equal(chosen.GetIndex(), next_best);
  hwy::DisableTargets(0);
  chosen.DeInit();
}

// The host may have set any rounding mode; calls work as ever, and leave it.
void floating_point_mode(void **) {
  reference();
  for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    assert_same(reference(), run(SPK_EXECUTOR_DEFAULT, 2, mode), "another rounding mode");
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(disabled_instruction_sets),
      cmocka_unit_test(threads_and_executors),
      cmocka_unit_test(instruction_sets),
      cmocka_unit_test(floating_point_mode),
  };
  return cmocka_run_group_tests_name("invariance", tests, nullptr, nullptr);
}
