// What a context carries: allocator, progress, cancellation, scratch that is reused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// The headers above come before cmocka's.
#include <cmocka.h>

#include "sparsekit/sparsekit.h"

enum { kRows = 2048, kCols = 512, kNumel = kRows * kCols };

struct fixture {
  float *weights;
  spk_buffer buffer;
  spk_view *view;
  spk_block *rows; /* blocks of one row */
};

static int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  const int64_t shape[2] = {kRows, kCols};
  const int64_t row[2] = {1, kCols};
  f->weights = malloc(kNumel * sizeof(float));
  f->buffer = (spk_buffer){f->weights, kNumel, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  for (int i = 0; i < kNumel; ++i) f->weights[i] = 1.0F + (float)(i % 7);
  if (spk_view_create(SPK_F32, 2, shape, NULL, 0, &f->view) != SPK_OK) return -1;
  if (spk_block_create(f->view, 2, row, NULL, &f->rows) != SPK_OK) return -1;
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  spk_view_release(f->view); /* parents first: the block keeps it */
  spk_block_release(f->rows);
  free(f->weights);
  free(f);
  return spk_live_handles() == 0 ? 0 : -1;
}

/* --- allocator ---------------------------------------------------------------------------- */

struct counting {
  int64_t calls;
  int64_t live;
  int64_t fail_from; /* calls from this number on return NULL; 0 = never */
  int misaligned;
};

static void *counted_allocate(void *user, size_t bytes, size_t alignment) {
  struct counting *counts = user;
  const int64_t number = __atomic_add_fetch(&counts->calls, 1, __ATOMIC_RELAXED);
  if (counts->fail_from > 0 && number >= counts->fail_from) return NULL;
  if (alignment < 64 || bytes % alignment != 0) counts->misaligned = 1;
  __atomic_add_fetch(&counts->live, 1, __ATOMIC_RELAXED);
  return aligned_alloc(alignment, bytes);
}

static void counted_deallocate(void *user, void *memory, size_t bytes, size_t alignment) {
  struct counting *counts = user;
  (void)bytes;
  (void)alignment;
  __atomic_sub_fetch(&counts->live, 1, __ATOMIC_RELAXED);
  free(memory);
}

static spk_context *context_with_allocator(struct counting *counts, int32_t threads) {
  const spk_allocator allocator = {sizeof allocator, counts, counted_allocate, counted_deallocate};
  const spk_context_options options = {
      .struct_size = sizeof options, .threads = threads, .allocator = &allocator};
  spk_context *context = NULL;
  assert_int_equal(spk_context_create(&options, &context), SPK_OK);
  return context;
}

static spk_status halve(const struct fixture *f, spk_context *context) {
  float half = 0.5F;
  float *factors = malloc(kRows * sizeof(float));
  for (int i = 0; i < kRows; ++i) factors[i] = half;
  const spk_buffer multiplier = {factors, kRows, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_status status =
      spk_block_apply_multiplier(context, f->rows, &f->buffer, NULL, 1, &multiplier);
  free(factors);
  return status;
}

static void scratch_comes_from_the_allocator_and_goes_back(void **state) {
  struct counting counts = {0};
  spk_context *context = context_with_allocator(&counts, 2);
  assert_int_equal(halve(*state, context), SPK_OK);
  assert_true(counts.calls > 0);
  assert_false(counts.misaligned);
  spk_context_release(context);
  assert_int_equal(counts.live, 0);
}

static void a_steady_state_asks_for_no_more_memory(void **state) {
  struct counting counts = {0};
  spk_context *context = context_with_allocator(&counts, 1);
  for (int i = 0; i < 3; ++i) assert_int_equal(halve(*state, context), SPK_OK);
  const int64_t before = counts.calls;
  for (int i = 0; i < 10; ++i) assert_int_equal(halve(*state, context), SPK_OK);
  assert_int_equal(counts.calls, before);
  assert_true(counts.live > 0);
  assert_int_equal(spk_context_trim(context), SPK_OK);
  assert_int_equal(counts.live, 0);
  spk_context_release(context);
}

static void an_allocator_that_fails_ends_the_call_with_nothing_written(void **state) {
  struct fixture *f = *state;
  struct counting counts = {.fail_from = 1};
  spk_context *context = context_with_allocator(&counts, 2);
  assert_int_equal(halve(f, context), SPK_OUT_OF_MEMORY);
  char message[SPK_MESSAGE_SIZE];
  assert_int_equal(spk_last_error_copy(message, sizeof message, NULL), SPK_OUT_OF_MEMORY);
  assert_string_equal(message, "memory: an allocation failed");
  for (int i = 0; i < kNumel; ++i) assert_true(f->weights[i] == 1.0F + (float)(i % 7));
  counts.fail_from = 0;
  assert_int_equal(halve(f, context), SPK_OK);
  spk_context_release(context);
  assert_int_equal(counts.live, 0);
}

/* --- progress and cancellation ------------------------------------------------------------ */

struct watch {
  int calls;
  int cancel_at; /* the call that answers non-zero; 0 = none */
  int64_t last;
  int backwards;
  spk_context *own;
  const struct fixture *fixture;
  spk_status reentered; /* with the same context */
  spk_status elsewhere; /* with another */
};

static int32_t watched(void *user, int64_t done, int64_t total) {
  struct watch *w = user;
  ++w->calls;
  if (done < w->last || done < 0 || done > total) w->backwards = 1;
  w->last = done;
  if (w->fixture && w->calls == 1) {
    int64_t count = 0;
    w->reentered =
        spk_block_nnz(w->own, w->fixture->rows, &w->fixture->buffer, 1, 0.0, NULL, &count);
    w->elsewhere = spk_block_nnz(NULL, w->fixture->rows, &w->fixture->buffer, 1, 0.0, NULL, &count);
  }
  return w->calls == w->cancel_at ? 5 : 0;
}

static spk_context *watched_context(struct watch *w, int32_t threads) {
  const spk_context_options options = {
      .struct_size = sizeof options, .threads = threads, .progress = watched, .progress_user = w};
  assert_int_equal(spk_context_create(&options, &w->own), SPK_OK);
  return w->own;
}

static void progress_grows(void **state) {
  struct watch w = {0};
  spk_context *context = watched_context(&w, 2);
  assert_int_equal(halve(*state, context), SPK_OK);
  assert_true(w.calls >= 2);
  assert_false(w.backwards);
  spk_context_release(context);
}

static void a_cancelled_call_leaves_each_block_untouched_or_finished(void **state) {
  struct fixture *f = *state;
  struct watch w = {.cancel_at = 2};
  spk_context *context = watched_context(&w, 2);
  assert_int_equal(halve(f, context), SPK_CANCELLED);
  int finished = 0;
  for (int r = 0; r < kRows; ++r) {
    const float factor = f->weights[r * kCols] == 0.5F * (1.0F + (float)(r * kCols % 7)) ? 0.5F : 1;
    finished += factor == 0.5F;
    for (int c = 0; c < kCols; ++c) {
      const int i = r * kCols + c;
      assert_true(f->weights[i] == factor * (1.0F + (float)(i % 7)));
    }
  }
  assert_in_range(finished, 1, kRows - 1);
  spk_context_release(context);
}

/* Blocks so large that each is cut into parts: a cancel must not fall between the parts. */
static void a_cancelled_call_does_not_split_a_large_block(void **state) {
  struct fixture *f = *state;
  const int64_t half[2] = {kRows / 8, kCols};
  spk_block *large = NULL;
  assert_int_equal(spk_block_create(f->view, 2, half, NULL, &large), SPK_OK);
  float factors[8] = {.5F, .5F, .5F, .5F, .5F, .5F, .5F, .5F};
  const spk_buffer multiplier = {factors, 8, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  for (int cancel_at = 1; cancel_at <= 3; ++cancel_at) {
    for (int i = 0; i < kNumel; ++i) f->weights[i] = 1.0F;
    struct watch w = {.cancel_at = cancel_at};
    spk_context *context = watched_context(&w, 1);
    const spk_status status =
        spk_block_apply_multiplier(context, large, &f->buffer, NULL, 1, &multiplier);
    assert_true(status == SPK_CANCELLED || (status == SPK_OK && w.calls < cancel_at));
    for (int i = 0; i < kNumel; ++i) {
      assert_true(f->weights[i] == f->weights[i / (kNumel / 8) * (kNumel / 8)]);
    }
    spk_context_release(context);
  }
  spk_block_release(large);
}

/* So many that a cancel falls between them: some are finished, and none in part. */
static void a_cancelled_call_finishes_some_large_blocks(void **state) {
  (void)state;
  enum { kLarge = 1 << 17, kBlocks = 24 };
  const int64_t numel = (int64_t)kLarge * kBlocks;
  const int64_t size = kLarge;
  float *weights = malloc(sizeof *weights * (size_t)numel);
  float factors[kBlocks];
  for (int b = 0; b < kBlocks; ++b) factors[b] = .5F;
  const spk_buffer leaf = {weights, numel, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer multiplier = {factors, kBlocks, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  spk_view *view = NULL;
  spk_block *blocks = NULL;
  assert_int_equal(spk_view_create(SPK_F32, 1, &numel, NULL, 0, &view), SPK_OK);
  assert_int_equal(spk_block_create(view, 1, &size, NULL, &blocks), SPK_OK);
  for (int threads = 1; threads <= 2; ++threads) {
    for (int64_t i = 0; i < numel; ++i) weights[i] = 1.0F;
    struct watch w = {.cancel_at = 2};
    spk_context *context = watched_context(&w, threads);
    assert_int_equal(spk_block_apply_multiplier(context, blocks, &leaf, NULL, 1, &multiplier),
                     SPK_CANCELLED);
    int finished = 0;
    for (int b = 0; b < kBlocks; ++b) finished += weights[(int64_t)b * kLarge] == .5F;
    assert_in_range(finished, 1, kBlocks - 1);
    for (int64_t i = 0; i < numel; ++i) {
      assert_true(weights[i] == weights[i / kLarge * kLarge]);
    }
    spk_context_release(context);
  }
  spk_block_release(blocks);
  spk_view_release(view);
  free(weights);
}

static void a_callback_may_use_another_context_only(void **state) {
  struct watch w = {.fixture = *state, .reentered = -1, .elsewhere = -1};
  spk_context *context = watched_context(&w, 2);
  assert_int_equal(halve(*state, context), SPK_OK);
  assert_int_equal(w.reentered, SPK_INVALID_ARGUMENT);
  assert_int_equal(w.elsewhere, SPK_OK);
  spk_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(scratch_comes_from_the_allocator_and_goes_back, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(a_steady_state_asks_for_no_more_memory, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_allocator_that_fails_ends_the_call_with_nothing_written,
                                      set_up, tear_down),
      cmocka_unit_test_setup_teardown(progress_grows, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_cancelled_call_leaves_each_block_untouched_or_finished,
                                      set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_cancelled_call_does_not_split_a_large_block, set_up,
                                      tear_down),
      cmocka_unit_test(a_cancelled_call_finishes_some_large_blocks),
      cmocka_unit_test_setup_teardown(a_callback_may_use_another_context_only, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("context", tests, NULL, NULL);
}
