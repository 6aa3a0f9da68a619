/* Refusals of contexts, and of the callbacks that they carry. */
#include "refusals.h"

/* --- contexts ------------------------------------------------------------------------------- */

static int32_t two_at_a_time(void *user) {
  (void)user;
  return 2;
}
static int32_t refuse_to_run(void *user, int64_t count, spk_task_fn task, void *task_data) {
  (void)user;
  (void)count;
  (void)task;
  (void)task_data;
  return 7;
}
static void *no_memory(void *user, size_t bytes, size_t alignment) {
  (void)user;
  (void)bytes;
  (void)alignment;
  return NULL;
}
static void nothing_to_free(void *user, void *memory, size_t bytes, size_t alignment) {
  (void)user;
  (void)memory;
  (void)bytes;
  (void)alignment;
}

static const spk_host_executor kHost = {sizeof kHost, NULL, two_at_a_time, refuse_to_run};
static const spk_allocator kNoMemory = {sizeof kNoMemory, NULL, no_memory, nothing_to_free};

static void context_create_refuses_executors(void **state) {
  (void)state;
  const spk_status bad = SPK_INVALID_ARGUMENT;
  assert_refused(bad, "out: got NULL", spk_context_create(NULL, NULL));
  spk_context_options options = {.struct_size = sizeof options, .executor = 5};
  const char *range = "executor: got 5, expected SPK_EXECUTOR_DEFAULT (0) to SPK_EXECUTOR_HOST (4)";
  assert_refused(bad, range, spk_context_create(&options, &w.context));
  options.executor = -1;
  assert_refused(bad,
                 "executor: got -1, expected SPK_EXECUTOR_DEFAULT (0) to SPK_EXECUTOR_HOST (4)",
                 spk_context_create(&options, &w.context));
  options.executor = SPK_EXECUTOR_HOST;
  assert_refused(bad, "host: got NULL", spk_context_create(&options, &w.context));
  options.executor = SPK_EXECUTOR_SERIAL;
  options.host = &kHost;
  assert_refused(
      bad, "host: got a table with executor 1, expected NULL unless it is SPK_EXECUTOR_HOST (4)",
      spk_context_create(&options, &w.context));
  options.executor = SPK_EXECUTOR_HOST;
  spk_host_executor host = kHost;
  options.host = &host;
  host.concurrency = NULL;
  assert_refused(bad, "host: concurrency: got NULL", spk_context_create(&options, &w.context));
  host = kHost;
  host.parallel_for = NULL;
  assert_refused(bad, "host: parallel_for: got NULL", spk_context_create(&options, &w.context));
  host = kHost;
  host.struct_size = 3;
  assert_refused(bad, "host: struct_size: got 3, expected 32",
                 spk_context_create(&options, &w.context));
}

static void context_create_refuses_executors_that_are_not_built_in(void **state) {
  (void)state;
  static const struct {
    int32_t executor;
    const char *message;
  } optional[] = {
      {SPK_EXECUTOR_TBB, "executor: TBB is not in this build; spk_build_info() lists what is"},
      {SPK_EXECUTOR_OPENMP,
       "executor: OpenMP is not in this build; spk_build_info() lists what is"},
  };
  for (int64_t i = 0; i < COUNT(optional); ++i) {
    if (spk_executor_available(optional[i].executor)) continue;
    const spk_context_options options = {.struct_size = sizeof options,
                                         .executor = optional[i].executor};
    assert_refused(SPK_UNAVAILABLE, optional[i].message, spk_context_create(&options, &w.context));
  }
}

static void context_create_refuses_the_rest(void **state) {
  (void)state;
  const spk_status bad = SPK_INVALID_ARGUMENT;
  spk_context_options options = {.struct_size = sizeof options, .threads = -1};
  assert_refused(bad, "threads: got -1, expected 0 to 65536",
                 spk_context_create(&options, &w.context));
  options.threads = 65537;
  assert_refused(bad, "threads: got 65537, expected 0 to 65536",
                 spk_context_create(&options, &w.context));
  options.threads = 1;
  spk_allocator allocator = kNoMemory;
  options.allocator = &allocator;
  allocator.allocate = NULL;
  assert_refused(bad, "allocator: allocate: got NULL", spk_context_create(&options, &w.context));
  allocator = kNoMemory;
  allocator.deallocate = NULL;
  assert_refused(bad, "allocator: deallocate: got NULL", spk_context_create(&options, &w.context));
  allocator = kNoMemory;
  allocator.struct_size = 0;
  assert_refused(bad, "allocator: struct_size: got 0, expected 32",
                 spk_context_create(&options, &w.context));
  options.struct_size = 0;
  assert_refused(bad, "options: struct_size: got 0, expected 48",
                 spk_context_create(&options, &w.context));
  const struct {
    spk_context_options options;
    int64_t further;
  } newer = {{.struct_size = sizeof newer}, 1};
  assert_refused(bad,
                 "options: struct_size: got 56 with fields that this version, which knows 48 "
                 "bytes, cannot honour",
                 spk_context_create(&newer.options, &w.context));
}

static void a_failed_allocation_ends_the_call(void **state) {
  (void)state;
  const spk_context_options options = {
      .struct_size = sizeof options, .executor = SPK_EXECUTOR_SERIAL, .allocator = &kNoMemory};
  const spk_buffer scores = F32(w.scores);
  spk_context *context = NULL;
  assert_ok(spk_context_create(&options, &context));
  const char *message = "memory: an allocation failed";
  assert_refused(SPK_OUT_OF_MEMORY, message,
                 spk_block_norms(context, h.pair, LEAVES, 2, 2, SCORES));
  assert_refused(SPK_OUT_OF_MEMORY, message,
                 spk_block_reduce(context, h.pair, LEAVES, 2, stop, NULL, SCORES));
  assert_refused(SPK_OUT_OF_MEMORY, message,
                 spk_block_apply_multiplier(context, h.pair, LEAVES, NULL, 2, SCORES));
  assert_refused(
      SPK_OUT_OF_MEMORY, message,
      spk_block_soft_threshold(context, h.pair, LEAVES, NULL, 2, ONE_THRESHOLD, NULL, &w.report));
  assert_refused(
      SPK_OUT_OF_MEMORY, message,
      spk_scope_keep_top(context, h.both, LEAVES, NULL, 2, w.counts, 1, NULL, &w.report));
  assert_refused(SPK_OUT_OF_MEMORY, message,
                 spk_scope_block_norms(context, h.both, LEAVES, 2, 2, &scores));
  spk_context_release(context);
}

static void a_host_pool_that_refuses_ends_the_call(void **state) {
  (void)state;
  static float x[100000];
  const spk_context_options options = {
      .struct_size = sizeof options, .executor = SPK_EXECUTOR_HOST, .host = &kHost};
  spk_context *context = NULL;
  assert_ok(spk_context_create(&options, &context));
  spk_block *block = blocks_of(SPK_F32, "(100000)", NO_DIMS);
  assert_refused(SPK_INTERNAL, "host executor: parallel_for returned 7, expected 0",
                 spk_block_nnz(context, block, &F32(x), 1, 0, NULL, &w.total));
  spk_block_release(block);
  spk_context_release(context);
}

static int32_t stop_at_once(void *user, int64_t done, int64_t total) {
  (void)done;
  (void)total;
  ++*(int *)user;
  return -5;
}

static void a_progress_callback_cancels(void **state) {
  (void)state;
  int asked = 0;
  const spk_context_options options = {.struct_size = sizeof options,
                                       .executor = SPK_EXECUTOR_SERIAL,
                                       .progress = stop_at_once,
                                       .progress_user = &asked};
  spk_context *context = NULL;
  assert_ok(spk_context_create(&options, &context));
  const char *message = "progress callback: returned -5 at 0 of 1024, which cancels the call";
  assert_refused(SPK_CANCELLED, message,
                 spk_block_apply_mask(context, h.pair, LEAVES, NULL, 2, MASK));
  assert_refused(
      SPK_CANCELLED, message,
      spk_block_hard_threshold(context, h.pair, LEAVES, NULL, 2, ONE_THRESHOLD, NULL, &w.report));
  assert_refused(SPK_CANCELLED, message, spk_block_norms(context, h.pair, LEAVES, 2, 2, SCORES));
  assert_int_equal(asked, 3);
  spk_context_release(context);
}

/* Calls back into the context that is at work. */
struct reentry {
  spk_context *context;
  spk_status status;
};

static int32_t call_again(void *user, int64_t done, int64_t total) {
  (void)done;
  (void)total;
  struct reentry *reentry = user;
  reentry->status = spk_block_norms(reentry->context, h.pair, LEAVES, 2, 2, SCORES);
  return 0;
}

static void a_progress_callback_may_not_use_its_context(void **state) {
  (void)state;
  struct reentry reentry = {NULL, SPK_OK};
  const spk_context_options options = {.struct_size = sizeof options,
                                       .executor = SPK_EXECUTOR_SERIAL,
                                       .progress = call_again,
                                       .progress_user = &reentry};
  assert_ok(spk_context_create(&options, &reentry.context));
  assert_ok(spk_block_nnz(reentry.context, h.pair, LEAVES, 2, 0, NULL, &w.total));
  assert_fails(SPK_INVALID_ARGUMENT,
               "context: in use by the call whose callback this is; expected another context "
               "inside a callback",
               reentry.status);
  assert_f32(w.scores, 10, 11, 12, 13);
  spk_context_release(reentry.context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      REFUSAL_TEST(context_create_refuses_executors),
      REFUSAL_TEST(context_create_refuses_executors_that_are_not_built_in),
      REFUSAL_TEST(context_create_refuses_the_rest),
      REFUSAL_TEST(a_failed_allocation_ends_the_call),
      REFUSAL_TEST(a_host_pool_that_refuses_ends_the_call),
      REFUSAL_TEST(a_progress_callback_cancels),
      REFUSAL_TEST(a_progress_callback_may_not_use_its_context),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
