/* Lifetimes: reference counts, any order of release, any thread, contexts. */
#include <pthread.h>
#include <stdlib.h>

#include "support.h"

static int64_t live;

/* Checks how many handles there are more than when the test began. */
#define assert_live(more) assert_int_equal(spk_live_handles() - live, more)

static int note_live(void **state) {
  live = spk_live_handles();
  return note_handles(state);
}

#define LIVE_TEST(name) cmocka_unit_test_setup_teardown(name, note_live, check_handles)

static void every_kind_of_handle_is_counted(void **state) {
  (void)state;
  spk_view *view = view_of(SPK_F32, "(4)");
  assert_live(1);
  spk_block *block = NULL;
  assert_ok(spk_block_create(view, NO_DIMS, NULL, &block));
  assert_live(2);
  spk_scope *scope = NULL;
  assert_ok(spk_scope_create(block, NO_DIMS, NULL, &scope));
  assert_live(3);
  spk_context *context = NULL;
  assert_ok(spk_context_create(NULL, &context));
  assert_live(4);
  spk_context_release(context);
  spk_scope_release(scope);
  spk_block_release(block);
  spk_view_release(view);
  assert_live(0);
}

static void null_is_ignored(void **state) {
  (void)state;
  spk_view_retain(NULL);
  spk_view_release(NULL);
  spk_block_retain(NULL);
  spk_block_release(NULL);
  spk_scope_retain(NULL);
  spk_scope_release(NULL);
  spk_context_retain(NULL);
  spk_context_release(NULL);
  assert_live(0);
}

static void every_retain_is_paired_with_one_release(void **state) {
  (void)state;
  spk_view *view = view_of(SPK_F32, "(4)");
  spk_view_retain(view);
  spk_view_retain(view);
  assert_live(1);
  spk_view_release(view);
  spk_view_release(view);
  assert_int_equal(spk_view_numel(view), 4);
  spk_view_release(view);
  assert_live(0);

  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(4)", NO_DIMS), NO_DIMS);
  spk_scope_retain(scope);
  spk_scope_release(scope);
  assert_int_equal(spk_scope_numscope(scope), 1);
  spk_scope_release(scope);

  spk_block *block = blocks_of(SPK_F32, "(4)", NO_DIMS);
  spk_block_retain(block);
  spk_block_release(block);
  assert_int_equal(spk_block_numblk(block), 4);
  spk_block_release(block);

  spk_context *context = context_with(SPK_EXECUTOR_SERIAL, 1);
  spk_context_retain(context);
  spk_context_release(context);
  assert_int_equal(spk_context_threads(context), 1);
  spk_context_release(context);
}

/* --- parents before children --------------------------------------------------------------- */

static void children_keep_alive_what_they_are_made_of(void **state) {
  (void)state;
  float x[] = {1, 4, 3, 2};
  float y[] = {5, 1, 1, 5};
  const int64_t count = 1;
  spk_view *view = view_of(SPK_F32, "(2,2)");
  spk_block *block = NULL;
  assert_ok(spk_block_create(view, NO_DIMS, "elements", &block));
  spk_view_release(view);
  assert_live(2);
  spk_scope *row = NULL;
  assert_ok(spk_scope_create(block, DIMS(1, 2), "rows", &row));
  spk_block_release(block);
  assert_live(3);
  /* The scopes of one handle, twice: leaves are told apart by their buffers. */
  spk_scope *members[] = {row, row};
  spk_scope *coupling = NULL;
  assert_ok(spk_scope_couple(members, 2, NULL, "pair", &coupling));
  spk_scope_release(row);

  const spk_buffer leaves[] = {F32(x), F32(y)};
  assert_ok(spk_scope_keep_top(NULL, coupling, leaves, NULL, 2, &count, 1, NULL, NULL));
  assert_f32(x, 0, 0, 0, 0);
  assert_f32(y, 5, 0, 0, 5);
  assert_i64(spk_view_shape(spk_scope_leaf_view(coupling, 1)), 2, 2);
  spk_scope_release(coupling);
  assert_live(0);
}

static void block_couplings_outlive_their_members(void **state) {
  (void)state;
  float x[] = {3};
  float y[] = {4};
  float norm[1];
  spk_block *coupling =
      coupled_blocks(blocks_of(SPK_F32, "(1)", NO_DIMS), blocks_of(SPK_F32, "(1)", NO_DIMS), NULL);
  const spk_buffer leaves[] = {F32(x), F32(y)};
  assert_ok(spk_block_norms(NULL, coupling, leaves, 2, 2, &F32(norm)));
  assert_f32(norm, 5);
  spk_block *leaf = NULL;
  assert_ok(spk_block_leaf(coupling, 1, &leaf));
  spk_block_release(coupling);
  assert_i64(spk_view_shape(spk_block_leaf_view(leaf, 0)), 1);
  spk_block_release(leaf);
  assert_live(0);
}

static void borrowed_views_live_as_long_as_their_owner(void **state) {
  (void)state;
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(4,6)", DIMS(2, 2)), NO_DIMS);
  const spk_block *block = spk_scope_member_block(scope, 0);
  const spk_view *view = spk_block_leaf_view(block, 0);
  assert_i64(spk_view_shape(view), 4, 6);
  assert_ptr_equal(view, spk_scope_leaf_view(scope, 0));
  spk_scope_release(scope);
}

static void described_views_are_handles_of_their_own(void **state) {
  (void)state;
  spk_block *block = blocks_of(SPK_F32, "(4,6)", DIMS(2, 2));
  spk_view *view = NULL;
  assert_ok(spk_block_block_view(block, 1, &view));
  spk_block_release(block);
  assert_live(1);
  assert_i64(spk_view_shape(view), 2, 3, 2, 2);
  spk_view_release(view);
}

static void refused_handles_are_not_counted(void **state) {
  (void)state;
  spk_view *view = view_of(SPK_F32, "(4)");
  spk_view *blocks = NULL;
  spk_block *block = NULL;
  assert_int_equal(spk_block_create(view, DIMS(3), NULL, &block), SPK_SHAPE_MISMATCH);
  assert_int_equal(spk_view_block_view_of(view, DIMS(3), 1, &blocks), SPK_SHAPE_MISMATCH);
  assert_live(1);
  spk_view_release(view);
}

static void one_call_conveniences_leave_no_handles(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4};
  spk_view *view = view_of(SPK_F32, "(4)");
  assert_ok(spk_prune_nm(NULL, view, &F32(x), NULL, 0, 1, 2, NULL));
  assert_ok(spk_prune_unstructured(NULL, view, &F32(x), NULL, 0.5, NULL));
  assert_ok(spk_soft_threshold_blocks(NULL, view, &F32(x), NULL, NO_DIMS, 0, NULL));
  /* Nor is the default context one of them. */
  assert_live(1);
  spk_view_release(view);
}

/* --- threads ------------------------------------------------------------------------------- */

static void *release_view(void *view) {
  spk_view_release(view);
  return NULL;
}

static void a_handle_is_released_on_another_thread(void **state) {
  (void)state;
  pthread_t thread;
  spk_view *view = view_of(SPK_F32, "(4)");
  spk_view_retain(view);
  assert_int_equal(pthread_create(&thread, NULL, release_view, view), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(spk_view_numel(view), 4);
  assert_int_equal(pthread_create(&thread, NULL, release_view, view), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_live(0);
}

/* What all threads of a test share. */
struct shared {
  spk_context *context;
  spk_scope *scope;
};

/* Takes and gives back references, and works with the handles; NULL if all went well. */
static void *use_shared(void *data) {
  const struct shared *shared = data;
  for (int i = 0; i < 200; ++i) {
    float x[] = {1, 4, 2, 3};
    const float want[] = {0, 4, 0, 3};
    const int64_t count = 1;
    spk_scope_retain(shared->scope);
    const spk_status status =
        spk_scope_keep_top(shared->context, shared->scope, &F32(x), NULL, 1, &count, 1, NULL, NULL);
    spk_scope_release(shared->scope);
    if (status != SPK_OK || memcmp(x, want, sizeof x) != 0) return data;
  }
  spk_scope_release(shared->scope);
  spk_context_release(shared->context);
  return NULL;
}

static void threads_share_handles_and_contexts(void **state) {
  (void)state;
  enum { kThreads = 4 };
  struct shared shared = {
      context_with(SPK_EXECUTOR_DEFAULT, 2),
      scopes_over(blocks_of(SPK_F32, "(2,2)", NO_DIMS), DIMS(1, 2)),
  };
  pthread_t threads[kThreads];
  for (int t = 0; t < kThreads; ++t) {
    spk_scope_retain(shared.scope);
    spk_context_retain(shared.context);
    assert_int_equal(pthread_create(&threads[t], NULL, use_shared, &shared), 0);
  }
  for (int t = 0; t < kThreads; ++t) {
    void *trouble = &shared;
    assert_int_equal(pthread_join(threads[t], &trouble), 0);
    assert_null(trouble);
  }
  spk_scope_release(shared.scope);
  spk_context_release(shared.context);
  assert_live(0);
}

/* --- the library ------------------------------------------------------------------------- */

static void the_library_tells_what_it_is(void **state) {
  (void)state;
  assert_int_equal(spk_version(), SPK_VERSION);
  char start[64];
  snprintf(start, sizeof start, "sparsekit %d.%d.%d; executors: serial", SPK_VERSION_MAJOR,
           SPK_VERSION_MINOR, SPK_VERSION_PATCH);
  const char *info = spk_build_info();
  assert_memory_equal(info, start, strlen(start));
  assert_int_equal(spk_executor_available(SPK_EXECUTOR_TBB), strstr(info, " tbb") != NULL);
  assert_int_equal(spk_executor_available(SPK_EXECUTOR_OPENMP), strstr(info, " openmp") != NULL);
  assert_non_null(strstr(info, "; simd: "));
  assert_non_null(strstr(info, "; using "));
  assert_int_equal(spk_executor_available(SPK_EXECUTOR_DEFAULT), 1);
  assert_int_equal(spk_executor_available(SPK_EXECUTOR_SERIAL), 1);
  assert_int_equal(spk_executor_available(SPK_EXECUTOR_HOST), 1);
  assert_int_equal(spk_executor_available(-1), 0);
  assert_int_equal(spk_executor_available(5), 0);
}

/* --- contexts ------------------------------------------------------------------------------ */

static void contexts_tell_how_they_run(void **state) {
  (void)state;
  spk_context *context = context_with(SPK_EXECUTOR_SERIAL, 0);
  assert_int_equal(spk_context_executor(context), SPK_EXECUTOR_SERIAL);
  assert_int_equal(spk_context_threads(context), 1);
  spk_context_release(context);
  const int32_t executors[] = {SPK_EXECUTOR_SERIAL, SPK_EXECUTOR_TBB, SPK_EXECUTOR_OPENMP};
  for (int64_t i = 0; i < COUNT(executors); ++i) {
    if (!spk_executor_available(executors[i])) continue;
    context = context_with(executors[i], 3);
    assert_int_equal(spk_context_executor(context), executors[i]);
    assert_int_equal(spk_context_threads(context), 3);
    spk_context_release(context);
  }
}

static void the_default_context_is_a_built_in_executor(void **state) {
  (void)state;
  spk_context *context = NULL;
  assert_ok(spk_context_create(NULL, &context));
  assert_int_equal(spk_context_executor(context), spk_context_executor(NULL));
  assert_int_equal(spk_context_threads(context), spk_context_threads(NULL));
  spk_context_release(context);
  int32_t expected = SPK_EXECUTOR_SERIAL;
  if (spk_executor_available(SPK_EXECUTOR_OPENMP)) expected = SPK_EXECUTOR_OPENMP;
  if (spk_executor_available(SPK_EXECUTOR_TBB)) expected = SPK_EXECUTOR_TBB;
  assert_int_equal(spk_context_executor(NULL), expected);
  assert_true(spk_context_threads(NULL) >= 1);
}

static int32_t three_at_a_time(void *user) {
  (void)user;
  return 3;
}

/* Runs the tasks in reverse, and counts them. */
static int32_t run_in_reverse(void *user, int64_t count, spk_task_fn task, void *task_data) {
  int64_t *tasks = user;
  for (int64_t i = count - 1; i >= 0; --i) task(task_data, i);
  *tasks += count;
  return 0;
}

static void a_host_lends_its_pool(void **state) {
  (void)state;
  static float x[100000];
  for (int64_t i = 0; i < COUNT(x); ++i) x[i] = 1;
  int64_t tasks = 0;
  const spk_host_executor host = {sizeof host, &tasks, three_at_a_time, run_in_reverse};
  const spk_context_options options = {
      .struct_size = sizeof options, .executor = SPK_EXECUTOR_HOST, .host = &host};
  spk_context *context = NULL;
  assert_ok(spk_context_create(&options, &context));
  assert_int_equal(spk_context_executor(context), SPK_EXECUTOR_HOST);
  assert_int_equal(spk_context_threads(context), 3);
  spk_block *block = blocks_of(SPK_F32, "(100000)", NO_DIMS);
  int64_t total = 0;
  assert_ok(spk_block_nnz(context, block, &F32(x), 1, 0, NULL, &total));
  assert_int_equal(total, 100000);
  assert_true(tasks > 0);
  spk_block_release(block);
  spk_context_release(context);
}

/* An allocator that counts what is out, aligned as it was asked to. */
struct bookkeeping {
  int64_t pieces;
  int64_t ever;
};

static void *allocate(void *user, size_t bytes, size_t alignment) {
  struct bookkeeping *books = user;
  if (alignment < 64 || (alignment & (alignment - 1)) != 0) return NULL;
  ++books->pieces;
  ++books->ever;
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void deallocate(void *user, void *memory, size_t bytes, size_t alignment) {
  struct bookkeeping *books = user;
  (void)bytes;
  (void)alignment;
  --books->pieces;
  free(memory);
}

static void scratch_comes_from_the_allocator_and_goes_back(void **state) {
  (void)state;
  struct bookkeeping books = {0, 0};
  const spk_allocator allocator = {sizeof allocator, &books, allocate, deallocate};
  const spk_context_options options = {
      .struct_size = sizeof options, .executor = SPK_EXECUTOR_SERIAL, .allocator = &allocator};
  spk_context *context = NULL;
  assert_ok(spk_context_create(&options, &context));
  spk_block *block = blocks_of(SPK_F32, "(4)", NO_DIMS);
  float x[] = {1, 2, 3, 4};
  float norms[4];
  assert_ok(spk_block_norms(context, block, &F32(x), 1, 2, &F32(norms)));
  assert_true(books.ever > 0);
  assert_ok(spk_context_trim(context));
  assert_int_equal(books.pieces, 0);
  assert_ok(spk_block_norms(context, block, &F32(x), 1, 2, &F32(norms)));
  spk_context_release(context);
  assert_int_equal(books.pieces, 0);
  assert_ok(spk_context_trim(NULL));
  spk_block_release(block);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      LIVE_TEST(every_kind_of_handle_is_counted),
      LIVE_TEST(null_is_ignored),
      LIVE_TEST(every_retain_is_paired_with_one_release),
      LIVE_TEST(children_keep_alive_what_they_are_made_of),
      LIVE_TEST(block_couplings_outlive_their_members),
      LIVE_TEST(borrowed_views_live_as_long_as_their_owner),
      LIVE_TEST(described_views_are_handles_of_their_own),
      LIVE_TEST(refused_handles_are_not_counted),
      LIVE_TEST(one_call_conveniences_leave_no_handles),
      LIVE_TEST(a_handle_is_released_on_another_thread),
      LIVE_TEST(threads_share_handles_and_contexts),
      LIVE_TEST(the_library_tells_what_it_is),
      LIVE_TEST(contexts_tell_how_they_run),
      LIVE_TEST(the_default_context_is_a_built_in_executor),
      LIVE_TEST(a_host_lends_its_pool),
      LIVE_TEST(scratch_comes_from_the_allocator_and_goes_back),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
