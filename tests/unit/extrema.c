/* Smallest and largest elements, counts of non-zeros, and callers' reductions. */
#include "support.h"

/* --- min and max --------------------------------------------------------------------------- */

static void extremes_are_signed(void **state) {
  (void)state;
  float x[] = {1, -5, 3, 2, -2, -1};
  float out[2];
  spk_block *block = blocks_of(SPK_F32, "(2,3)", DIMS(1, 3));
  assert_ok(spk_block_min(NULL, block, &F32(x), 1, &F32(out)));
  assert_f32(out, -5, -2);
  assert_ok(spk_block_max(NULL, block, &F32(x), 1, &F32(out)));
  assert_f32(out, 3, 2);
  spk_block_release(block);
}

static void zeros_come_out_as_plus_zero(void **state) {
  (void)state;
  float x[] = {-0.0f, -0.0f, -0.0f, -1, 1, -0.0f};
  float out[3];
  spk_block *block = blocks_of(SPK_F32, "(6)", DIMS(2));
  assert_ok(spk_block_min(NULL, block, &F32(x), 1, &F32(out)));
  assert_f32(out, 0, -1, 0);
  assert_ok(spk_block_max(NULL, block, &F32(x), 1, &F32(out)));
  assert_f32(out, 0, 0, 1);
  spk_block_release(block);
}

static void nan_in_a_block_wins(void **state) {
  (void)state;
  double x[] = {INFINITY, NAN, 1, -INFINITY, 2, 3};
  double out[3];
  spk_block *block = blocks_of(SPK_F64, "(3,2)", DIMS(1, 2));
  assert_ok(spk_block_min(NULL, block, &F64(x), 1, &F64(out)));
  assert_f64(out, NAN, -INFINITY, 2);
  assert_ok(spk_block_max(NULL, block, &F64(x), 1, &F64(out)));
  assert_f64(out, NAN, 1, 3);
  spk_block_release(block);
}

static void single_elements_are_their_own_extremes(void **state) {
  (void)state;
  uint16_t x[] = {0x8001, 0x7bff, 0x8000, 0xfc00, 0x7e00}; /* -2^-24, 65504, -0, -inf, NaN */
  float out[5];
  spk_block *block = blocks_of(SPK_F16, "(5)", NO_DIMS);
  assert_ok(spk_block_min(NULL, block, &F16(x), 1, &F32(out)));
  assert_f32(out, -0x1p-24f, 65504, 0, -INFINITY, NAN);
  assert_ok(spk_block_max(NULL, block, &F16(x), 1, &F32(out)));
  assert_f32(out, -0x1p-24f, 65504, 0, -INFINITY, NAN);
  spk_block_release(block);
}

static void extremes_of_a_coupling_run_over_all_members(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4};
  uint16_t y[] = {0xc000, 0x4100, 0x40e0, 0x3f80}; /* -2, 8, 7, 1 as bf16 */
  float out[2];
  const spk_buffer leaves[] = {F32(x), BF16(y)};
  spk_block *block =
      coupled_blocks(blocks_of(SPK_F32, "(4)", DIMS(2)), blocks_of(SPK_BF16, "(4)", DIMS(2)), NULL);
  assert_ok(spk_block_min(NULL, block, leaves, 2, &F32(out)));
  assert_f32(out, -2, 1);
  assert_ok(spk_block_max(NULL, block, leaves, 2, &F32(out)));
  assert_f32(out, 8, 7);
  spk_block_release(block);
}

static void extremes_of_large_blocks(void **state) {
  (void)state;
  static float x[2][100000];
  float out[2];
  x[0][99999] = -3;
  x[0][70000] = 4;
  x[1][0] = 5;
  x[1][65536] = -6;
  const spk_buffer leaf = {x, 200000, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  spk_block *block = blocks_of(SPK_F32, "(2,100000)", DIMS(1, 0));
  assert_ok(spk_block_min(NULL, block, &leaf, 1, &F32(out)));
  assert_f32(out, -3, -6);
  assert_ok(spk_block_max(NULL, block, &leaf, 1, &F32(out)));
  assert_f32(out, 4, 5);
  int64_t counts[2];
  assert_ok(spk_block_nnz(NULL, block, &leaf, 1, 4, &I64(counts), NULL));
  assert_i64(counts, 0, 2);
  spk_block_release(block);
}

/* --- nnz ----------------------------------------------------------------------------------- */

static void nnz_counts_what_is_larger_than_eps(void **state) {
  (void)state;
  float x[] = {1e-8f, -1e-7f, 0, 2, -0.5f, NAN, INFINITY, -0.0f};
  int64_t counts[4];
  int64_t total = -1;
  spk_block *block = blocks_of(SPK_F32, "(8)", DIMS(2));
  /* 1e-8 as a float lies below 1e-8 as a double. */
  assert_ok(spk_block_nnz(NULL, block, &F32(x), 1, SPK_NNZ_EPS, &I64(counts), &total));
  assert_i64(counts, 1, 1, 2, 1);
  assert_int_equal(total, 5);
  assert_ok(spk_block_nnz(NULL, block, &F32(x), 1, 0, &I64(counts), &total));
  assert_i64(counts, 2, 1, 2, 1);
  assert_int_equal(total, 6);
  /* Strictly larger. */
  assert_ok(spk_block_nnz(NULL, block, &F32(x), 1, 0.5, &I64(counts), &total));
  assert_i64(counts, 0, 1, 1, 1);
  assert_ok(spk_block_nnz(NULL, block, &F32(x), 1, INFINITY, &I64(counts), &total));
  assert_i64(counts, 0, 0, 1, 0);
  spk_block_release(block);
}

static void nnz_tells_either_or_both(void **state) {
  (void)state;
  double x[] = {1, 0, 0x1p-1074, -3};
  int64_t counts[2] = {-1, -1};
  int64_t total = -1;
  spk_block *block = blocks_of(SPK_F64, "(4)", DIMS(2));
  assert_ok(spk_block_nnz(NULL, block, &F64(x), 1, 0, NULL, &total));
  assert_int_equal(total, 3);
  assert_ok(spk_block_nnz(NULL, block, &F64(x), 1, 0, &I64(counts), NULL));
  assert_i64(counts, 1, 2);
  spk_block_release(block);
}

static void nnz_of_a_coupling_counts_all_members(void **state) {
  (void)state;
  float x[] = {1, 0};
  uint16_t y[] = {0x0001, 0x8000}; /* 2^-24 and -0 as f16 */
  int64_t counts[2];
  const spk_buffer leaves[] = {F32(x), F16(y)};
  spk_block *block =
      coupled_blocks(blocks_of(SPK_F32, "(2)", NO_DIMS), blocks_of(SPK_F16, "(2)", NO_DIMS), NULL);
  assert_ok(spk_block_nnz(NULL, block, leaves, 2, 0, &I64(counts), NULL));
  assert_i64(counts, 2, 0);
  spk_block_release(block);
}

/* --- reduce -------------------------------------------------------------------------------- */

/* The elements as decimal digits, first one first. */
static int32_t digits(void *user, int64_t block, const double *elements, int64_t count,
                      double *result) {
  int64_t *calls = user;
  assert_int_equal(block, (*calls)++);
  double number = 0;
  for (int64_t i = 0; i < count; ++i) number = 10 * number + elements[i];
  *result = number;
  return 0;
}

static void elements_come_row_major_inside_the_block(void **state) {
  (void)state;
  /* Stored column by column: the view turns it into rows. */
  float x[] = {1, 5, 2, 6, 3, 7, 4, 8};
  float out[2];
  int64_t calls = 0;
  spk_block *block = blocks_of(SPK_F32, "(2,4):(1,2)", DIMS(2, 2));
  assert_ok(spk_block_reduce(NULL, block, &F32(x), 1, digits, &calls, &F32(out)));
  assert_f32(out, 1256, 3478);
  assert_int_equal(calls, 2);
  spk_block_release(block);
}

static void elements_of_members_follow_each_other(void **state) {
  (void)state;
  uint16_t x[] = {0x3c00, 0x4000, 0x4200, 0x4400}; /* 1, 2, 3, 4 as f16 */
  double y[] = {5, 6, 7, 8};
  double out[2];
  int64_t calls = 0;
  const spk_buffer leaves[] = {F16(x), F64(y)};
  spk_block *block = coupled_blocks(blocks_of(SPK_F16, "(4):(-1)+3", DIMS(2)),
                                    blocks_of(SPK_F64, "(4)", DIMS(2)), NULL);
  assert_ok(spk_block_reduce(NULL, block, leaves, 2, digits, &calls, &F64(out)));
  assert_f64(out, 4356, 2178);
  spk_block_release(block);
}

static int32_t one_third(void *user, int64_t block, const double *elements, int64_t count,
                         double *result) {
  (void)user;
  (void)block;
  (void)elements;
  (void)count;
  *result = 1.0 / 3.0;
  return 0;
}

static void results_are_rounded_to_the_score_dtype(void **state) {
  (void)state;
  float x[] = {0};
  double y[] = {0};
  float single[1];
  double full[1];
  spk_block *block = blocks_of(SPK_F32, "(1)", NO_DIMS);
  assert_ok(spk_block_reduce(NULL, block, &F32(x), 1, one_third, NULL, &F32(single)));
  assert_f32(single, 1.0f / 3.0f);
  spk_block_release(block);
  block = blocks_of(SPK_F64, "(1)", NO_DIMS);
  assert_ok(spk_block_reduce(NULL, block, &F64(y), 1, one_third, NULL, &F64(full)));
  assert_f64(full, 1.0 / 3.0);
  spk_block_release(block);
}

static int32_t stop_at_two(void *user, int64_t block, const double *elements, int64_t count,
                           double *result) {
  (void)user;
  (void)count;
  *result = 2 * elements[0];
  return block == 2 ? 42 : 0;
}

static void a_callback_cancels(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4};
  float out[] = {-1, -1, -1, -1};
  spk_block *block = blocks_of(SPK_F32, "(4)", NO_DIMS);
  assert_fails(SPK_CANCELLED, "reduce callback: returned 42 for block 2, which cancels the call",
               spk_block_reduce(NULL, block, &F32(x), 1, stop_at_two, NULL, &F32(out)));
  /* The results so far. */
  assert_f32(out, 2, 4, -1, -1);
  spk_block_release(block);
}

/* What a callback asks of the library. */
struct inner_call {
  spk_context *context;
  spk_status status;
  float norm;
};

static int32_t measure_inside(void *user, int64_t block, const double *elements, int64_t count,
                              double *result) {
  (void)block;
  struct inner_call *call = user;
  float copy[2];
  for (int64_t i = 0; i < count; ++i) copy[i] = (float)elements[i];
  const spk_buffer out = {&call->norm, 1, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  spk_block *inner = blocks_of(SPK_F32, "(2)", DIMS(2));
  call->status = spk_block_norms(call->context, inner, &F32(copy), 1, 2, &out);
  spk_block_release(inner);
  *result = call->norm;
  return 0;
}

static void a_callback_may_use_another_context(void **state) {
  (void)state;
  float x[] = {3, 4};
  float out[1];
  spk_context *other = context_with(SPK_EXECUTOR_SERIAL, 1);
  struct inner_call call = {.context = other};
  spk_block *block = blocks_of(SPK_F32, "(2)", DIMS(2));
  assert_ok(spk_block_reduce(NULL, block, &F32(x), 1, measure_inside, &call, &F32(out)));
  assert_int_equal(call.status, SPK_OK);
  assert_f32(out, 5);
  spk_block_release(block);
  spk_context_release(other);
}

static void a_callback_may_not_use_its_own_context(void **state) {
  (void)state;
  float x[] = {3, 4};
  float out[1];
  spk_context *contexts[] = {NULL, context_with(SPK_EXECUTOR_SERIAL, 1)};
  spk_block *block = blocks_of(SPK_F32, "(2)", DIMS(2));
  for (int64_t i = 0; i < COUNT(contexts); ++i) {
    struct inner_call call = {.context = contexts[i], .norm = -1};
    assert_ok(spk_block_reduce(contexts[i], block, &F32(x), 1, measure_inside, &call, &F32(out)));
    assert_f32(out, -1);
    assert_fails(SPK_INVALID_ARGUMENT,
                 "context: in use by the call whose callback this is; expected another context "
                 "inside a callback",
                 call.status);
  }
  spk_block_release(block);
  spk_context_release(contexts[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(extremes_are_signed),
      TEST(zeros_come_out_as_plus_zero),
      TEST(nan_in_a_block_wins),
      TEST(single_elements_are_their_own_extremes),
      TEST(extremes_of_a_coupling_run_over_all_members),
      TEST(extremes_of_large_blocks),
      TEST(nnz_counts_what_is_larger_than_eps),
      TEST(nnz_tells_either_or_both),
      TEST(nnz_of_a_coupling_counts_all_members),
      TEST(elements_come_row_major_inside_the_block),
      TEST(elements_of_members_follow_each_other),
      TEST(results_are_rounded_to_the_score_dtype),
      TEST(a_callback_cancels),
      TEST(a_callback_may_use_another_context),
      TEST(a_callback_may_not_use_its_own_context),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
