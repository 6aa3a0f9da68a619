/* Exact selection: k-th scores, thresholds between them, the top blocks, masks. */
#include <float.h>

#include "support.h"

static spk_scope *one_scope(int32_t dtype, int64_t blocks) {
  spk_view *view = NULL;
  spk_block *block = NULL;
  assert_ok(spk_view_create(dtype, DIMS(blocks), NULL, 0, &view));
  assert_ok(spk_block_create(view, NO_DIMS, NULL, &block));
  spk_view_release(view);
  return scopes_over(block, NO_DIMS);
}

static spk_score_source from_values(const spk_buffer *values) {
  return (spk_score_source){.struct_size = sizeof(spk_score_source), .values = values};
}
static spk_score_source from_scores(const spk_buffer *scores) {
  return (spk_score_source){.struct_size = sizeof(spk_score_source), .scores = scores};
}
static spk_score_source from_mask(const spk_buffer *mask) {
  return (spk_score_source){.struct_size = sizeof(spk_score_source), .block_mask = mask};
}

static spk_report new_report(void) {
  return (spk_report){sizeof(spk_report), -7, -7, -7, -7, -7};
}

/* --- kth_largest --------------------------------------------------------------------------- */

static void the_kth_largest_counts_from_one(void **state) {
  (void)state;
  float x[] = {-3, 1, 4, -1, 5};
  const float want[] = {5, 4, 3, 1, 1};
  const spk_buffer values = F32(x);
  const spk_score_source source = from_values(&values);
  spk_scope *scope = one_scope(SPK_F32, 5);
  for (int64_t k = 1; k <= 5; ++k) {
    float kth[1];
    assert_ok(spk_scope_kth_largest(NULL, scope, &source, 1, &k, 1, &F32(kth)));
    assert_f32(kth, want[k - 1]);
  }
  spk_scope_release(scope);
}

static void nan_ranks_above_infinity(void **state) {
  (void)state;
  double scores[] = {5, -INFINITY, NAN, INFINITY, -0.0, 0, -2};
  const double want[] = {NAN, INFINITY, 5, 0, 0, -2, -INFINITY};
  const spk_buffer array = F64(scores);
  const spk_score_source source = from_scores(&array);
  spk_scope *scope = one_scope(SPK_F64, 7);
  for (int64_t k = 1; k <= 7; ++k) {
    double kth[1];
    assert_ok(spk_scope_kth_largest(NULL, scope, &source, 1, &k, 1, &F64(kth)));
    /* Zeros are equal, whatever their sign. */
    if (want[k - 1] == 0) kth[0] = fabs(kth[0]);
    assert_f64(kth, want[k - 1]);
  }
  spk_scope_release(scope);
}

static void scopes_may_have_ranks_of_their_own(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 6, 5, 4};
  float kth[2];
  const int64_t one = 2;
  const int64_t each[] = {3, 1};
  const spk_buffer values = F32(x);
  const spk_score_source source = from_values(&values);
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(2,3)", NO_DIMS), DIMS(1, 3));
  assert_ok(spk_scope_kth_largest(NULL, scope, &source, 1, &one, 1, &F32(kth)));
  assert_f32(kth, 2, 5);
  assert_ok(spk_scope_kth_largest(NULL, scope, &source, 1, each, 2, &F32(kth)));
  assert_f32(kth, 1, 6);
  spk_scope_release(scope);
}

static void values_may_have_another_dtype_than_the_leaves(void **state) {
  (void)state;
  double x[] = {3, 4, 1, 1};
  float kth[1];
  const int64_t k = 1;
  const spk_buffer values = F64(x);
  const spk_score_source source = from_values(&values);
  spk_scope *scope = scopes_over(blocks_of(SPK_F16, "(4)", DIMS(2)), NO_DIMS);
  assert_ok(spk_scope_kth_largest(NULL, scope, &source, 1, &k, 1, &F32(kth)));
  assert_f32(kth, 5);
  spk_scope_release(scope);
}

/* --- kth_mid ------------------------------------------------------------------------------- */

/* The mid of two doubles, which are scores. */
static double mid_of(double high, double low, double k_weight) {
  double scores[] = {low, high};
  double mid[1];
  const int64_t k = 1;
  const spk_buffer array = F64(scores);
  const spk_score_source source = from_scores(&array);
  spk_scope *scope = one_scope(SPK_F64, 2);
  assert_ok(spk_scope_kth_mid(NULL, scope, &source, 1, &k, 1, k_weight, &F64(mid)));
  spk_scope_release(scope);
  return mid[0];
}

#define assert_mid(high, low, k_weight, want) \
  assert_f64(((double[]){mid_of(high, low, k_weight)}), want)

static void the_mid_lies_between_two_scores(void **state) {
  (void)state;
  assert_mid(4, 2, 1, 3);
  assert_mid(4, 2, 3, 3.5);
  assert_mid(4, 0, 0.25, 0.8);
  assert_mid(3, 3, 7, 3);
  assert_mid(-2, -4, 1, -3);
}

static void the_mid_does_not_overflow(void **state) {
  (void)state;
  assert_mid(DBL_MAX, DBL_MAX / 2, 1, DBL_MAX / 4 * 3);
  assert_mid(DBL_MAX, -DBL_MAX, 1, 0);
  assert_mid(DBL_MAX, DBL_MAX, 1e300, DBL_MAX);
  assert_near(mid_of(8, 4, DBL_MAX), 8, 4 * DBL_EPSILON);
  assert_mid(INFINITY, 1, 1, INFINITY);
  assert_mid(INFINITY, INFINITY, 1, INFINITY);
}

static void the_mid_is_above_the_lower_and_not_above_the_higher(void **state) {
  (void)state;
  const double weights[] = {0x1p-1074, 1e-300, 1e-17, 0.5, 1, 3, 1e17, DBL_MAX};
  const double pairs[][2] = {
      {1, 1 - 0x1p-53},   {0x1p-1074, 0},        {0x1p-1074, -0x1p-1074},
      {-1, -1 - 0x1p-52}, {DBL_MAX, -DBL_MAX},   {1, 0x1p-1074},
      {1, -INFINITY},     {-DBL_MAX, -INFINITY}, {0x1p-1022, 0x1p-1022 - 0x1p-1074}};
  for (int64_t w = 0; w < COUNT(weights); ++w) {
    for (int64_t p = 0; p < COUNT(pairs); ++p) {
      const double mid = mid_of(pairs[p][0], pairs[p][1], weights[w]);
      assert_true(pairs[p][1] < mid && mid <= pairs[p][0]);
    }
  }
}

static void the_mid_below_nan(void **state) {
  (void)state;
  assert_mid(NAN, 1, 1, INFINITY);
  assert_mid(NAN, INFINITY, 1, INFINITY);
  assert_mid(NAN, NAN, 1, NAN);
}

static void the_mid_as_a_threshold_keeps_exactly_k(void **state) {
  (void)state;
  enum { kBlocks = 16 };
  const double weights[] = {1e-300, 0.1, 1, 2, 1e9, 1e300};
  spk_scope *scope = one_scope(SPK_F32, kBlocks);
  for (int i = 0; i < 3000; ++i) {
    /* Neighbours among the floats from 1 on, or from 0 on, in a scrambled order. */
    float x[kBlocks];
    for (uint32_t b = 0; b < kBlocks; ++b) {
      x[b * 7 % kBlocks] = float_of((i % 2 ? 0x3f800000u : 0u) + b * (1 + (uint32_t)i % 3));
    }
    const int64_t k = 1 + i % (kBlocks - 1);
    float mid[1];
    const spk_buffer values = F32(x);
    const spk_score_source source = from_values(&values);
    assert_ok(
        spk_scope_kth_mid(NULL, scope, &source, 1, &k, 1, weights[i % COUNT(weights)], &F32(mid)));
    spk_report report = new_report();
    assert_ok(spk_scope_hard_threshold(NULL, scope, &values, NULL, 1, &F32(mid), NULL, &report));
    assert_int_equal(report.achieved, k);
  }
  spk_scope_release(scope);
}

static void every_scope_has_its_mid(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 7, 5, 4};
  float mids[2];
  const int64_t k[] = {1, 2};
  const spk_buffer values = F32(x);
  const spk_score_source source = from_values(&values);
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(2,3)", NO_DIMS), DIMS(1, 3));
  assert_ok(spk_scope_kth_mid(NULL, scope, &source, 1, k, 2, 1, &F32(mids)));
  assert_f32(mids, 2.5f, 4.5f);
  spk_scope_release(scope);
}

/* --- keep_top ------------------------------------------------------------------------------ */

static void the_largest_blocks_stay(void **state) {
  (void)state;
  /* Norms 5, 1, 13, 2. */
  float x[] = {3, 4, 1, 0, -12, 5, 0, -2};
  const int64_t count = 2;
  spk_report report = new_report();
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(8)", DIMS(2)), NO_DIMS);
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), NULL, 1, &count, 1, NULL, &report));
  assert_f32(x, 3, 4, 0, 0, -12, 5, 0, 0);
  assert_i64(&report.total, 4, 2, 2, 0, 0);
  spk_scope_release(scope);
}

static void ties_are_decided_by_position(void **state) {
  (void)state;
  float x[] = {1, -2, 2, 3, -2, 2};
  float into[6];
  spk_report report = new_report();
  spk_scope *scope = one_scope(SPK_F32, 6);
  int64_t count = 3;
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), &F32(into), 1, &count, 1, NULL, &report));
  assert_f32(into, 0, -2, 2, 3, 0, 0);
  assert_i64(&report.total, 6, 3, 3, 4, 0);
  /* The cut falls between different scores: nothing was tied. */
  count = 5;
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), &F32(into), 1, &count, 1, NULL, &report));
  assert_f32(into, 0, -2, 2, 3, -2, 2);
  assert_i64(&report.total, 6, 5, 5, 0, 0);
  assert_f32(x, 1, -2, 2, 3, -2, 2);
  spk_scope_release(scope);
}

static void position_is_row_major_in_the_scope_not_in_memory(void **state) {
  (void)state;
  /* The view is the transpose: position 1 is the second element of its first row. */
  float x[] = {1, 1, 1, 1, 1, 1};
  const int64_t count = 2;
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(2,3):(1,2)", NO_DIMS), NO_DIMS);
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), NULL, 1, &count, 1, NULL, NULL));
  assert_f32(x, 1, 0, 1, 0, 0, 0);
  spk_scope_release(scope);
}

static void ties_may_all_be_kept(void **state) {
  (void)state;
  float x[] = {1, -2, 2, 3, -2, 2};
  float into[6];
  const spk_select_options options = {.struct_size = sizeof options, .ties = SPK_TIES_KEEP_ALL};
  spk_report report = new_report();
  spk_scope *scope = one_scope(SPK_F32, 6);
  int64_t count = 2;
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), &F32(into), 1, &count, 1, &options, &report));
  assert_f32(into, 0, -2, 2, 3, -2, 2);
  assert_i64(&report.total, 6, 2, 5, 4, 0);
  count = 0;
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), &F32(into), 1, &count, 1, &options, &report));
  assert_f32(into, 0, 0, 0, 0, 0, 0);
  assert_i64(&report.total, 6, 0, 0, 0, 0);
  spk_scope_release(scope);
}

static void nan_is_kept_before_infinity(void **state) {
  (void)state;
  float x[] = {INFINITY, 1, NAN, -INFINITY};
  float into[4];
  spk_scope *scope = one_scope(SPK_F32, 4);
  int64_t count = 1;
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), &F32(into), 1, &count, 1, NULL, NULL));
  assert_f32(into, 0, 0, NAN, 0);
  count = 2;
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), &F32(into), 1, &count, 1, NULL, NULL));
  assert_f32(into, INFINITY, 0, NAN, 0);
  spk_scope_release(scope);
}

static void nothing_and_everything(void **state) {
  (void)state;
  float x[] = {float_of(0x7f800001), -0.0f, 1, INFINITY};
  float before[4];
  memcpy(before, x, sizeof x);
  spk_scope *scope = one_scope(SPK_F32, 4);
  int64_t count = 4;
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), NULL, 1, &count, 1, NULL, NULL));
  assert_memory_equal(x, before, sizeof x);
  count = 0;
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), NULL, 1, &count, 1, NULL, NULL));
  assert_f32(x, 0, 0, 0, 0);
  spk_scope_release(scope);
}

static void scopes_may_have_counts_of_their_own(void **state) {
  (void)state;
  double x[] = {1, 2, 3, 3, 2, 1, 1, 3, 2};
  const int64_t counts[] = {0, 2, 3};
  spk_report report = new_report();
  spk_scope *scope = scopes_over(blocks_of(SPK_F64, "(3,3)", NO_DIMS), DIMS(1, 3));
  assert_ok(spk_scope_keep_top(NULL, scope, &F64(x), NULL, 1, counts, 3, NULL, &report));
  assert_f64(x, 0, 0, 0, 3, 2, 0, 1, 3, 2);
  assert_i64(&report.total, 9, 5, 5, 0, 0);
  spk_scope_release(scope);
}

static void scores_may_come_from_elsewhere(void **state) {
  (void)state;
  const int64_t count = 2;
  float values[] = {9, -8, 7, 6};
  float scores[] = {-1, -3, NAN, -2};
  const spk_buffer value_buffer = F32(values);
  const spk_buffer score_buffer = F32(scores);
  spk_select_options options = {.struct_size = sizeof options, .values = &value_buffer};
  spk_scope *scope = one_scope(SPK_F32, 4);
  float x[] = {1, 2, 3, 4};
  float into[4];
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), &F32(into), 1, &count, 1, &options, NULL));
  assert_f32(into, 1, 2, 0, 0);
  /* Scores are ranked as they are, not by magnitude. */
  options = (spk_select_options){.struct_size = sizeof options, .scores = &score_buffer};
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), &F32(into), 1, &count, 1, &options, NULL));
  assert_f32(into, 1, 0, 3, 0);
  /* An older struct that ends before `ties`. */
  options.struct_size = offsetof(spk_select_options, ties);
  options.ties = 77;
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), &F32(into), 1, &count, 1, &options, NULL));
  assert_f32(into, 1, 0, 3, 0);
  spk_scope_release(scope);
}

/* Two scopes of two elements of a first leaf and one pair of a second one. */
static spk_scope *elements_against_pairs(void) {
  return coupled_scopes(scopes_over(blocks_of(SPK_F32, "(4)", NO_DIMS), DIMS(2)),
                        scopes_over(blocks_of(SPK_F16, "(4)", DIMS(2)), DIMS(1)), NULL);
}

static void members_of_a_coupling_compete(void **state) {
  (void)state;
  float x[] = {1, 6, 6, 5};
  uint16_t y[] = {0x4200, 0x4400, 0x4200, 0x4400}; /* 3, 4, 3, 4: norms 5, 5 */
  const int64_t count = 2;
  const spk_buffer leaves[] = {F32(x), F16(y)};
  spk_report report = new_report();
  spk_scope *scope = elements_against_pairs();
  assert_ok(spk_scope_keep_top(NULL, scope, leaves, NULL, 2, &count, 1, NULL, &report));
  /* In the second scope 5 ties with 5: the first member comes first. */
  assert_f32(x, 0, 6, 6, 5);
  assert_words(y, 0x4200, 0x4400, 0, 0);
  assert_i64(&report.total, 6, 4, 4, 2, 0);
  spk_scope_release(scope);
}

static void coupled_blocks_are_kept_whole(void **state) {
  (void)state;
  float rows[] = {3, 0, 1, 1, 0, 6};
  float columns[] = {4, 1, 0};
  const int32_t orders[] = {0, 1, 1, 0};
  const int64_t count = 1;
  const spk_buffer leaves[] = {F32(rows), F32(columns)};
  spk_scope *scope = scopes_over(coupled_blocks(blocks_of(SPK_F32, "(3,2)", DIMS(1, 2)),
                                                blocks_of(SPK_F32, "(1,3)", NO_DIMS), orders),
                                 NO_DIMS);
  /* Norms 5, sqrt(3), 6. */
  assert_ok(spk_scope_keep_top(NULL, scope, leaves, NULL, 2, &count, 1, NULL, NULL));
  assert_f32(rows, 0, 0, 0, 0, 0, 6);
  assert_f32(columns, 0, 0, 0);
  spk_scope_release(scope);
}

/* --- scopes of very many blocks ------------------------------------------------------------ */

enum { kRows = 300, kColumns = 400, kMany = kRows * kColumns };

static void many_distinct_scores(void **state) {
  (void)state;
  static float x[kMany];
  /* A permutation of 0 to kMany - 1, since 7919 and kMany have no common factor. */
  for (int64_t i = 0; i < kMany; ++i) x[i] = (float)(i * 7919 % kMany);
  const int64_t count = 30000;
  const spk_buffer values = F32(x);
  const spk_score_source source = from_values(&values);
  float kth[1];
  float mid[1];
  spk_report report = new_report();
  spk_scope *scope = one_scope(SPK_F32, kMany);
  assert_ok(spk_scope_kth_largest(NULL, scope, &source, 1, &count, 1, &F32(kth)));
  assert_f32(kth, kMany - 30000);
  assert_ok(spk_scope_kth_mid(NULL, scope, &source, 1, &count, 1, 1, &F32(mid)));
  assert_f32(mid, kMany - 30000.5f);
  assert_ok(spk_scope_keep_top(NULL, scope, &values, NULL, 1, &count, 1, NULL, &report));
  assert_i64(&report.total, kMany, 30000, 30000, 0, 0);
  for (int64_t i = 0; i < kMany; ++i) {
    const int64_t value = i * 7919 % kMany;
    assert_f32(x + i, value >= kMany - 30000 ? (float)value : 0);
  }
  spk_scope_release(scope);
}

static void many_ties_are_decided_by_position(void **state) {
  (void)state;
  static float x[kMany];
  static uint8_t masks[kMany];
  /* The transpose of what lies in memory: twos on a diagonal of its view, ones elsewhere. */
  for (int64_t i = 0; i < kMany; ++i) x[i] = 1;
  for (int64_t r = 0; r < kRows; ++r) x[r * kRows + r] = 2;
  const int64_t count = kRows + 12345;
  const spk_buffer values = F32(x);
  const spk_score_source source = from_values(&values);
  spk_report report = new_report();
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(300,400):(1,300)", NO_DIMS), NO_DIMS);
  assert_ok(spk_scope_get_masks(NULL, scope, &source, &count, 1, SPK_TIES_BY_POSITION, &U8(masks),
                                1, &report));
  assert_i64(&report.total, kMany, count, count, kMany - kRows, 0);
  int64_t ones = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const bool kept = r == c || ones++ < 12345;
      assert_int_equal(masks[r * kColumns + c], kept);
    }
  }
  assert_ok(spk_scope_get_masks(NULL, scope, &source, &count, 1, SPK_TIES_KEEP_ALL, &U8(masks), 1,
                                &report));
  assert_int_equal(report.achieved, kMany);
  spk_scope_release(scope);
}

static void many_scores_come_from_an_array(void **state) {
  (void)state;
  static float scores[kMany];
  static uint8_t masks[kMany];
  for (int64_t i = 0; i < kMany; ++i) scores[i] = -(float)(i * 7919 % kMany);
  const int64_t count = 70000;
  const spk_buffer array = F32(scores);
  const spk_score_source source = from_scores(&array);
  float kth[1];
  spk_scope *scope = one_scope(SPK_BF16, kMany);
  assert_ok(spk_scope_kth_largest(NULL, scope, &source, 1, &count, 1, &F32(kth)));
  assert_f32(kth, -69999);
  assert_ok(spk_scope_get_masks(NULL, scope, &source, &count, 1, SPK_TIES_BY_POSITION, &U8(masks),
                                1, NULL));
  for (int64_t i = 0; i < kMany; ++i) assert_int_equal(masks[i], i * 7919 % kMany < 70000);
  spk_scope_release(scope);
}

static void many_long_rows_compete(void **state) {
  (void)state;
  enum { kLong = 4096, kWidth = 128 };
  static float x[kLong][kWidth];
  /* A permutation of 0 to 4095: odd numbers have no factor in common with 4096. */
  for (int r = 0; r < kLong; ++r) {
    for (int c = 0; c < kWidth; ++c) x[r][c] = (float)(r * 1001 % kLong);
  }
  const int64_t count = 1000;
  const spk_buffer leaf = {x, kLong * kWidth, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(4096,128)", DIMS(1, 0)), NO_DIMS);
  assert_ok(spk_scope_keep_top(NULL, scope, &leaf, NULL, 1, &count, 1, NULL, NULL));
  for (int r = 0; r < kLong; ++r) {
    const int rank = r * 1001 % kLong;
    for (int c = 0; c < kWidth; ++c) assert_f32(&x[r][c], rank >= kLong - 1000 ? (float)rank : 0);
  }
  spk_scope_release(scope);
}

static void large_blocks_compete(void **state) {
  (void)state;
  enum { kLarge = 70000 };
  static float x[3][kLarge];
  for (int i = 0; i < kLarge; ++i) {
    x[0][i] = 2;
    x[1][i] = 1;
    x[2][i] = -3;
  }
  const int64_t count = 2;
  const spk_buffer leaf = {x, 3 * kLarge, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(3,70000)", DIMS(1, 0)), NO_DIMS);
  assert_ok(spk_scope_keep_top(NULL, scope, &leaf, NULL, 1, &count, 1, NULL, NULL));
  for (int i = 0; i < kLarge; ++i) {
    assert_f32(&x[0][i], 2);
    assert_f32(&x[1][i], 0);
    assert_f32(&x[2][i], -3);
  }
  spk_scope_release(scope);
}

/* --- masks --------------------------------------------------------------------------------- */

static void masks_of_the_three_sources_agree(void **state) {
  (void)state;
  float x[] = {1, 6, 6, 5};
  uint16_t y[] = {0x4200, 0x4400, 0x4200, 0x4400};
  float scores[] = {1, 6, 5, 6, 5, 5};
  uint8_t keep[] = {0, 1, 200, 1, 1, 0};
  const spk_buffer values[] = {F32(x), F16(y)};
  const spk_buffer score_buffer = F32(scores);
  const spk_buffer mask_buffer = U8(keep);
  const spk_score_source sources[] = {from_values(values), from_scores(&score_buffer),
                                      from_mask(&mask_buffer)};
  const int64_t count = 2;
  spk_scope *scope = elements_against_pairs();
  for (int64_t i = 0; i < COUNT(sources); ++i) {
    const bool counted = sources[i].block_mask == NULL;
    uint8_t x_mask[4];
    uint8_t y_mask[4];
    const spk_buffer masks[] = {U8(x_mask), U8(y_mask)};
    spk_report report = new_report();
    assert_ok(spk_scope_get_masks(NULL, scope, &sources[i], counted ? &count : NULL, counted,
                                  SPK_TIES_BY_POSITION, masks, 2, &report));
    assert_bytes(x_mask, 0, 1, 1, 1);
    assert_bytes(y_mask, 1, 1, 0, 0);
    assert_i64(&report.total, 6, 4, 4, counted ? 2 : 0, 0);
  }
  /* Nothing was pruned. */
  assert_f32(x, 1, 6, 6, 5);
  spk_scope_release(scope);
}

static void masks_are_contiguous_whatever_the_view(void **state) {
  (void)state;
  double x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  uint8_t masks[4];
  const int64_t counts[] = {1, 1};
  const spk_buffer values = F64(x);
  const spk_score_source source = from_values(&values);
  /* Rows 8 6 and 4 2. */
  spk_scope *scope = scopes_over(blocks_of(SPK_F64, "(2,2):(-4,-2)+8", NO_DIMS), DIMS(2, 1));
  assert_ok(spk_scope_get_masks(NULL, scope, &source, counts, 2, SPK_TIES_BY_POSITION, &U8(masks),
                                1, NULL));
  assert_bytes(masks, 1, 1, 0, 0);
  spk_scope_release(scope);
}

static void masks_may_keep_all_ties(void **state) {
  (void)state;
  float scores[] = {2, 1, 2, 2, 0};
  uint8_t masks[5];
  const int64_t count = 1;
  const spk_buffer array = F32(scores);
  const spk_score_source source = from_scores(&array);
  spk_report report = new_report();
  spk_scope *scope = one_scope(SPK_F32, 5);
  assert_ok(spk_scope_get_masks(NULL, scope, &source, &count, 1, SPK_TIES_KEEP_ALL, &U8(masks), 1,
                                &report));
  assert_bytes(masks, 1, 0, 1, 1, 0);
  assert_i64(&report.total, 5, 1, 3, 3, 0);
  assert_ok(spk_scope_get_masks(NULL, scope, &source, &count, 1, SPK_TIES_BY_POSITION, &U8(masks),
                                1, &report));
  assert_bytes(masks, 1, 0, 0, 0, 0);
  assert_i64(&report.total, 5, 1, 1, 3, 0);
  spk_scope_release(scope);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_kth_largest_counts_from_one),
      TEST(nan_ranks_above_infinity),
      TEST(scopes_may_have_ranks_of_their_own),
      TEST(values_may_have_another_dtype_than_the_leaves),
      TEST(the_mid_lies_between_two_scores),
      TEST(the_mid_does_not_overflow),
      TEST(the_mid_is_above_the_lower_and_not_above_the_higher),
      TEST(the_mid_below_nan),
      TEST(the_mid_as_a_threshold_keeps_exactly_k),
      TEST(every_scope_has_its_mid),
      TEST(the_largest_blocks_stay),
      TEST(ties_are_decided_by_position),
      TEST(position_is_row_major_in_the_scope_not_in_memory),
      TEST(ties_may_all_be_kept),
      TEST(nan_is_kept_before_infinity),
      TEST(nothing_and_everything),
      TEST(scopes_may_have_counts_of_their_own),
      TEST(scores_may_come_from_elsewhere),
      TEST(members_of_a_coupling_compete),
      TEST(coupled_blocks_are_kept_whole),
      TEST(many_distinct_scores),
      TEST(many_ties_are_decided_by_position),
      TEST(many_scores_come_from_an_array),
      TEST(many_long_rows_compete),
      TEST(large_blocks_compete),
      TEST(masks_of_the_three_sources_agree),
      TEST(masks_are_contiguous_whatever_the_view),
      TEST(masks_may_keep_all_ties),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
