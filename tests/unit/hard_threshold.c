/* Hard thresholding of blocks and scopes: strict comparison, values of their own, reports. */
#include <stdlib.h>

#include "support.h"

static void a_norm_equal_to_its_threshold_survives(void **state) {
  (void)state;
  const float norms_5_5_1[] = {3, -4, 0, 5, 1, 0};
  float thresholds[] = {5};
  float x[6];
  spk_block *block = blocks_of(SPK_F32, "(6)", DIMS(2));
  memcpy(x, norms_5_5_1, sizeof x);
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F32(thresholds), NULL, NULL));
  assert_f32(x, 3, -4, 0, 5, 0, 0);
  double above[] = {nextafter(5.0, 6.0)};
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F64(above), NULL, NULL));
  assert_f32(x, 0, 0, 0, 0, 0, 0);
  spk_block_release(block);
}

static void every_block_may_have_its_threshold(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4, 5, 6};
  double thresholds[] = {1.5, 2, 3.5, 3.5, INFINITY, -INFINITY};
  spk_block *block = blocks_of(SPK_F32, "(2,3)", NO_DIMS);
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F64(thresholds), NULL, NULL));
  assert_f32(x, 0, 2, 0, 4, 0, 6);
  spk_block_release(block);
}

static void norms_are_rounded_to_the_score_dtype_first(void **state) {
  (void)state;
  /* The norm of (1, 2^-13) is 1 + 2^-27, as a float 1. */
  float x[] = {1, 0x1p-13f};
  double y[] = {1, 0x1p-13};
  double thresholds[] = {1 + 0x1p-30};
  spk_block *block = blocks_of(SPK_F32, "(2)", DIMS(2));
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F64(thresholds), NULL, NULL));
  assert_f32(x, 0, 0);
  spk_block_release(block);
  block = blocks_of(SPK_F64, "(2)", DIMS(2));
  assert_ok(spk_block_hard_threshold(NULL, block, &F64(y), NULL, 1, &F64(thresholds), NULL, NULL));
  assert_f64(y, 1, 0x1p-13);
  spk_block_release(block);
}

static void special_norms(void **state) {
  (void)state;
  float x[] = {NAN, 1, -INFINITY, 1, 0, -0.0f, 1, 1};
  float infinity[] = {INFINITY};
  spk_block *block = blocks_of(SPK_F32, "(8)", DIMS(2));
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F32(infinity), NULL, NULL));
  assert_f32(x, NAN, 1, -INFINITY, 1, 0, 0, 0, 0);
  /* Zero and negative thresholds keep all. */
  float low[] = {0, -1, -INFINITY, 0};
  float y[] = {0, -0.0f, 0, 0, -0.0f, -0.0f, 1, NAN};
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(y), NULL, 1, &F32(low), NULL, NULL));
  assert_f32(y, 0, -0.0f, 0, 0, -0.0f, -0.0f, 1, NAN);
  spk_block_release(block);
}

static void values_decide_for_the_weights(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4};
  double values[] = {4, 3, NAN, 1};
  float thresholds[] = {3};
  const spk_buffer contiguous = CONTIGUOUS(values, SPK_F64);
  const spk_hard_options options = {sizeof options, &contiguous};
  spk_block *block = blocks_of(SPK_F32, "(4):(-1)+3", NO_DIMS);
  assert_ok(
      spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F32(thresholds), &options, NULL));
  /* Value i belongs to element i of the view, which is x[3 - i]. */
  assert_f32(x, 0, 2, 3, 4);
  spk_block_release(block);
}

/* Weights that nothing has read before they are written, more of them than caches hold. */
static void values_decide_for_large_weights(void **state) {
  (void)state;
  enum { kRows = 8200, kColumns = 1024, kHigh = 2, kWide = 64, kAcross = kColumns / kWide };
  const size_t numel = (size_t)kRows * kColumns;
  float *x = aligned_alloc(64, numel * sizeof *x);
  uint16_t *values = malloc(numel * sizeof *values);
  assert_non_null(x);
  assert_non_null(values);
  for (size_t i = 0; i < numel; ++i) {
    const size_t block = i / kColumns / kHigh * kAcross + i % kColumns / kWide;
    x[i] = (float)(i % 1000 + 1);
    values[i] = block % 3 ? 0x3f80 : 0x3f00; /* 1 or a half, in bf16 */
  }
  float threshold[] = {8}; /* norms are the root of 128 or half of it */
  const spk_buffer leaf = {x, (int64_t)numel, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer others = {values, (int64_t)numel, SPK_BF16, SPK_LAYOUT_VIEW, NULL};
  const spk_hard_options options = {sizeof options, &others};
  spk_block *block = blocks_of(SPK_F32, "(8200,1024)", DIMS(kHigh, kWide));
  assert_ok(spk_block_hard_threshold(NULL, block, &leaf, NULL, 1, &F32(threshold), &options, NULL));
  int64_t wrong = 0;
  for (size_t i = 0; i < numel; ++i) {
    const size_t b = i / kColumns / kHigh * kAcross + i % kColumns / kWide;
    wrong += x[i] != (b % 3 ? (float)(i % 1000 + 1) : 0.0f);
  }
  assert_int_equal(wrong, 0);
  spk_block_release(block);
  free(values);
  free(x);
}

static void values_may_be_the_weights_that_are_written(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4};
  float thresholds[] = {3};
  const spk_buffer leaf = F32(x);
  const spk_hard_options options = {sizeof options, &leaf};
  spk_block *block = blocks_of(SPK_F32, "(4)", NO_DIMS);
  assert_ok(
      spk_block_hard_threshold(NULL, block, &leaf, NULL, 1, &F32(thresholds), &options, NULL));
  assert_f32(x, 0, 0, 3, 4);
  spk_block_release(block);
}

static void the_report_counts_blocks(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4, NAN};
  float into[5];
  float thresholds[] = {3};
  spk_report report = {sizeof report, -7, -7, -7, -7, -7};
  spk_block *block = blocks_of(SPK_F32, "(5)", NO_DIMS);
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(x), &F32(into), 1, &F32(thresholds), NULL,
                                     &report));
  assert_f32(x, 1, 2, 3, 4, NAN);
  assert_f32(into, 0, 0, 3, 4, NAN);
  assert_int_equal(report.struct_size, sizeof report);
  assert_i64(&report.total, 5, -1, 3, 0, 0);
  spk_block_release(block);
}

static void an_older_report_receives_the_fields_it_has(void **state) {
  (void)state;
  float x[] = {1, 2};
  float thresholds[] = {2};
  spk_report report = {offsetof(spk_report, achieved), -7, -7, -7, -7, -7};
  spk_block *block = blocks_of(SPK_F32, "(2)", NO_DIMS);
  assert_ok(
      spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F32(thresholds), NULL, &report));
  assert_i64(&report.total, 2, -1, -7, -7, -7);
  spk_block_release(block);
}

static void a_newer_report_keeps_its_further_fields(void **state) {
  (void)state;
  struct {
    spk_report report;
    int64_t further;
  } newer = {{sizeof newer, 0, 0, 0, 0, 0}, 42};
  float x[] = {1, 2};
  float thresholds[] = {2};
  spk_block *block = blocks_of(SPK_F32, "(2)", NO_DIMS);
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F32(thresholds), NULL,
                                     &newer.report));
  assert_int_equal(newer.report.achieved, 1);
  assert_int_equal(newer.report.struct_size, sizeof newer);
  assert_int_equal(newer.further, 42);
  spk_block_release(block);
}

static void options_of_other_versions_are_read(void **state) {
  (void)state;
  float x[] = {1, 2};
  float values[] = {2, 1};
  float thresholds[] = {2};
  const spk_buffer buffer = F32(values);
  /* A struct that ends before `values`. */
  const spk_hard_options older = {offsetof(spk_hard_options, values), &buffer};
  spk_block *block = blocks_of(SPK_F32, "(2)", NO_DIMS);
  assert_ok(
      spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F32(thresholds), &older, NULL));
  assert_f32(x, 0, 2);
  /* One that goes on, with fields that ask for nothing. */
  const struct {
    spk_hard_options options;
    int64_t further[4];
  } newer = {{sizeof newer, &buffer}, {0}};
  float y[] = {1, 2};
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(y), NULL, 1, &F32(thresholds),
                                     &newer.options, NULL));
  assert_f32(y, 1, 0);
  spk_block_release(block);
}

static void couplings_live_or_die_together(void **state) {
  (void)state;
  float x[] = {3, 1, 0, 0};
  uint16_t y[] = {0x4080, 0x3f80, 0x4040, 0x4000}; /* 4, 1, 3, 2 as bf16 */
  float thresholds[] = {5, 1.5f, 3, 2.5f};
  const spk_buffer leaves[] = {F32(x), BF16(y)};
  spk_block *block =
      coupled_blocks(blocks_of(SPK_F32, "(4)", NO_DIMS), blocks_of(SPK_BF16, "(4)", NO_DIMS), NULL);
  /* Norms 5, sqrt(2), 3, 2. */
  assert_ok(spk_block_hard_threshold(NULL, block, leaves, NULL, 2, &F32(thresholds), NULL, NULL));
  assert_f32(x, 3, 0, 0, 0);
  assert_words(y, 0x4080, 0, 0x4040, 0);
  spk_block_release(block);
}

static void scopes_have_thresholds_of_their_own(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 1, 2, 3};
  float thresholds[] = {2, 3};
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(2,3)", NO_DIMS), DIMS(1, 3));
  assert_ok(
      spk_scope_hard_threshold(NULL, scope, &F32(x), NULL, 1, &F32(thresholds), NULL, &report));
  assert_f32(x, 0, 2, 3, 0, 0, 3);
  assert_i64(&report.total, 6, -1, 3, 0, 0);
  spk_scope_release(scope);
}

static void scope_couplings_take_one_threshold_for_all(void **state) {
  (void)state;
  float x[] = {1, 4, 2, 5};
  double y[] = {0, 3, 4, 4};
  double values_y[] = {9, 9, 0, 0};
  double thresholds[] = {3};
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  const spk_buffer leaves[] = {F32(x), F64(y)};
  const spk_buffer values[] = {F32(x), F64(values_y)};
  const spk_hard_options options = {sizeof options, values};
  spk_scope *scope = coupled_scopes(scopes_over(blocks_of(SPK_F32, "(4)", NO_DIMS), DIMS(2)),
                                    scopes_over(blocks_of(SPK_F64, "(4)", DIMS(2)), DIMS(1)), NULL);
  assert_ok(
      spk_scope_hard_threshold(NULL, scope, leaves, NULL, 2, &F64(thresholds), &options, &report));
  assert_f32(x, 0, 4, 0, 5);
  assert_f64(y, 0, 3, 0, 0);
  assert_i64(&report.total, 6, -1, 3, 0, 0);
  spk_scope_release(scope);
}

static void large_blocks(void **state) {
  (void)state;
  static float x[2 * 90000];
  for (int i = 0; i < 90000; ++i) x[i] = 1;
  x[90000] = 299;
  float thresholds[] = {300};
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  spk_block *block = blocks_of(SPK_F32, "(180000)", DIMS(90000));
  assert_ok(
      spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F32(thresholds), NULL, &report));
  for (int i = 0; i < 90000; ++i) assert_f32(x + i, 1);
  assert_f32(x + 90000, 0);
  assert_int_equal(report.achieved, 1);
  spk_block_release(block);
}

/* A double that is no float: elements are compared with the float above it. */
static void one_threshold_for_all_elements(void **state) {
  (void)state;
  enum { kNumel = 1000 };
  float x[kNumel];
  uint16_t words[kNumel];
  const double between[] = {1.0 + 0x1p-40};
  const double at[] = {1.0};
  const float near_one[] = {1.0f - 0x1p-24f, 1.0f, 1.0f + 0x1p-23f, -1.0f, -1.0f - 0x1p-23f};
  const double *const thresholds[] = {between, at};
  spk_block *f32 = blocks_of(SPK_F32, "(1000)", NO_DIMS);
  spk_block *bf16 = blocks_of(SPK_BF16, "(1000)", NO_DIMS);
  for (int i = 0; i < 2; ++i) {
    const spk_buffer limit = {(void *)(uintptr_t)thresholds[i], 1, SPK_F64, SPK_LAYOUT_VIEW, NULL};
    for (int e = 0; e < kNumel; ++e) x[e] = near_one[e % 5];
    for (int e = 0; e < kNumel; ++e) words[e] = (uint16_t)(0x3f7f + e % 3);
    assert_ok(spk_block_hard_threshold(NULL, f32, &F32(x), NULL, 1, &limit, NULL, NULL));
    assert_ok(spk_block_hard_threshold(NULL, bf16, &BF16(words), NULL, 1, &limit, NULL, NULL));
    for (int e = 0; e < kNumel; ++e) {
      const float was = near_one[e % 5];
      assert_f32(x + e, fabs((double)was) < *thresholds[i] ? 0.0f : was);
      const bool lives = e % 3 == 2 || (e % 3 == 1 && i == 1); /* 0x3f80 is 1 */
      assert_int_equal(words[e], lives ? 0x3f7f + e % 3 : 0);
    }
  }
  spk_block_release(f32);
  spk_block_release(bf16);
}

/* Where blocks and their second elements lie, in elements. */
typedef struct {
  const char *view;
  int64_t block[2];
  int64_t second, step;
} close_layout;

enum { kCloseBlocks = 32, kMostCloseNumel = kCloseBlocks * 300 };

/* Elements of 3 and 4 times 2^exponent, whose norm is 5 times that, and thresholds next to it. */
static void check_close(const close_layout *layout, int exponent, bool as_floats) {
  static float x[kMostCloseNumel];
  float as_float[kCloseBlocks];
  double as_double[kCloseBlocks];
  const double norm = ldexp(5, exponent);
  memset(x, 0, sizeof x);
  for (int b = 0; b < kCloseBlocks; ++b) {
    float *first = x + b * layout->step;
    first[0] = ldexpf(3, exponent);
    first[layout->second] = ldexpf(-4, exponent);
    const float up = nextafterf((float)norm, INFINITY);
    const float down = nextafterf((float)norm, 0);
    const double thresholds[] = {norm, up, down, 2 * norm, norm / 2, -2 * norm, 0, INFINITY};
    as_double[b] = thresholds[(b + b / 8) % 8];
    as_float[b] = (float)as_double[b];
  }
  spk_block *block = blocks_of(SPK_F32, layout->view, DIMS(layout->block[0], layout->block[1]));
  const spk_buffer limits = as_floats ? F32(as_float) : F64(as_double);
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &limits, NULL, NULL));
  for (int b = 0; b < kCloseBlocks; ++b) {
    const float *first = x + b * layout->step;
    const bool stays = norm >= (as_floats ? (double)as_float[b] : as_double[b]);
    assert_true(first[0] == (stays ? ldexpf(3, exponent) : 0));
    assert_true(first[layout->second] == (stays ? ldexpf(-4, exponent) : 0));
  }
  spk_block_release(block);
}

static void thresholds_close_to_norms(void **state) {
  (void)state;
  const close_layout layouts[] = {
      {"(2,32)", {2, 1}, 32, 1},   {"(3,32)", {3, 1}, 64, 1},   {"(4,32)", {4, 1}, 32, 1},
      {"(32,8)", {1, 8}, 7, 8},    {"(32,9)", {1, 9}, 1, 9},    {"(32,9)", {1, 9}, 8, 9},
      {"(32,11)", {1, 11}, 1, 11}, {"(32,64)", {1, 64}, 1, 64}, {"(32,300)", {1, 300}, 1, 300},
      {"(32,2)", {1, 2}, 1, 2},    {"(16,32)", {16, 1}, 32, 1},
  };
  /* From the least subnormal float to where a norm's double has no float. */
  const int exponents[] = {-149, -148, -130, -127, -126, -100, 0, 100, 124, 125};
  for (int64_t l = 0; l < COUNT(layouts); ++l) {
    for (int64_t e = 0; e < COUNT(exponents); ++e) {
      check_close(&layouts[l], exponents[e], false);
      check_close(&layouts[l], exponents[e], true);
    }
  }
}

/* Blocks of some elements, `apart` from each other; the next block begins `step` further on. */
typedef struct {
  const char *view;
  int64_t block[2];
  int elements, apart, step;
} inexact_layout;

enum { kInexact = 2048, kMostInBlock = 9 };

/* An element of a dtype, 1 to 2 times 2^exponent, of any bits. Returns it as a number. */
static double put_any(int32_t dtype, int exponent, uint32_t *random, void *x, int64_t i) {
  *random = *random * 1664525u + 1013904223u;
  const uint32_t bits = *random >> 9;
  if (dtype == SPK_F32) return ((float *)x)[i] = ldexpf(1 + (float)bits * 0x1p-23f, exponent);
  const int mantissa = dtype == SPK_F16 ? 10 : 7;
  const int bias = dtype == SPK_F16 ? 15 : 127;
  const uint32_t kept = bits >> (23 - mantissa);
  ((uint16_t *)x)[i] = (uint16_t)((uint32_t)(exponent + bias) << mantissa | kept);
  return ldexp((double)(kept | 1u << mantissa), exponent - mantissa);
}

/* Blocks of numbers of any bits. Of 16 blocks one has a threshold next to its norm, so that the
 * others that are judged with it tell nothing; or all have rather close ones. The sum of squares is
 * exact, as numbers have one exponent, and its root is computed as defined. */
static void check_inexact(const inexact_layout *layout, int32_t dtype, int exponent,
                          bool as_floats) {
  enum { kClose = 9, kNumel = kMostInBlock * kInexact };
  const double close[kClose] = {1,           1 + 0x1p-25, 1 - 0x1p-25, 1 + 0x1p-24, 1 - 0x1p-24,
                                1 + 0x1p-23, 1 - 0x1p-23, 1 + 0x1p-22, 1 - 0x1p-22};
  static float x[kNumel]; /* room for any dtype */
  static float was[kNumel];
  float as_float[kInexact];
  double as_double[kInexact];
  float norms[kInexact];
  uint32_t random = 1;
  for (int b = 0; b < kInexact; ++b) {
    double squares = 0;
    for (int e = 0; e < layout->elements; ++e) {
      const int64_t i = b * layout->step + e * layout->apart;
      const double element = put_any(dtype, exponent, &random, x, i);
      squares += element * element;
    }
    norms[b] = (float)sqrt(squares);
    const int group = b / 16;
    const double far = group % 2 ? 0.5 + b % 2 : 1 + (b % 2 - 0.5) * 0x1p-16;
    as_double[b] = norms[b] * (b % 16 ? far : close[group % kClose]);
    as_float[b] = (float)as_double[b];
  }
  memcpy(was, x, sizeof x);
  spk_block *block = blocks_of(dtype, layout->view, DIMS(layout->block[0], layout->block[1]));
  const spk_buffer weights = {x, layout->elements * kInexact, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer limits = as_floats ? F32(as_float) : F64(as_double);
  assert_ok(spk_block_hard_threshold(NULL, block, &weights, NULL, 1, &limits, NULL, NULL));
  const size_t size = dtype == SPK_F32 ? sizeof(float) : sizeof(uint16_t);
  const float zero = 0;
  for (int b = 0; b < kInexact; ++b) {
    const bool stays = norms[b] >= (as_floats ? (double)as_float[b] : as_double[b]);
    for (int e = 0; e < layout->elements; ++e) {
      const size_t at = (size_t)(b * layout->step + e * layout->apart) * size;
      assert_memory_equal((char *)x + at, stays ? (char *)was + at : (const char *)&zero, size);
    }
  }
  spk_block_release(block);
}

static void check_all_inexact(int32_t dtype, int first, int last) {
  const inexact_layout layouts[] = {
      {"(2,2048)", {2, 1}, 2, 2048, 1}, {"(3,2048)", {3, 1}, 3, 2048, 1},
      {"(4,2048)", {4, 1}, 4, 2048, 1}, {"(2048,2)", {1, 2}, 2, 1, 2},
      {"(2048,8)", {1, 8}, 8, 1, 8},    {"(2048,9)", {1, 9}, 9, 1, 9},
  };
  for (int64_t l = 0; l < COUNT(layouts); ++l) {
    for (int exponent = first; exponent <= last; ++exponent) {
      check_inexact(&layouts[l], dtype, exponent, false);
      check_inexact(&layouts[l], dtype, exponent, true);
    }
  }
}

/* Squares of the largest and least are at either end of the range of floats, or beyond. */
static void thresholds_close_to_inexact_norms(void **state) {
  (void)state;
  check_all_inexact(SPK_F32, -149, 126);
  check_all_inexact(SPK_BF16, -126, 126);
  check_all_inexact(SPK_F16, -14, 15);
}

/* A norm that is a double, but infinite as a float, is not below any threshold; one that as a float
 * is 2^64 is not below that, though its square is a float below the largest. */
static void norms_beyond_floats(void **state) {
  (void)state;
  float x[32];
  double thresholds[16];
  for (int i = 0; i < 32; ++i) x[i] = 0x1.8p127f;
  for (int b = 0; b < 16; ++b) thresholds[b] = b % 2 ? 1e39 : INFINITY;
  spk_block *block = blocks_of(SPK_F32, "(2,16)", DIMS(2, 1));
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F64(thresholds), NULL, NULL));
  for (int i = 0; i < 32; ++i) assert_true(x[i] == 0x1.8p127f);
  for (int i = 0; i < 16; ++i) x[i] = 0x1.fffffep63f;
  for (int i = 16; i < 32; ++i) x[i] = 0x1.1e3778p52f;
  for (int b = 0; b < 16; ++b) thresholds[b] = 0x1p64;
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F64(thresholds), NULL, NULL));
  for (int i = 0; i < 16; ++i) assert_true(x[i] == 0x1.fffffep63f);
  spk_block_release(block);
}

/* Blocks of doubles, the norm of each of which is 5 times 2^exponent, unless it is 0, infinite or
 * NaN; thresholds are that norm, its neighbours, and numbers far from it. */
static void check_blocks_of_doubles(int high, int wide, int exponent, bool in_place,
                                    bool by_floats) {
  enum { kBlocks = 42, kMost = kBlocks * 300 };
  static double x[kMost];
  static double was[kMost];
  static double into[kMost];
  double thresholds[kBlocks];
  float as_floats[kBlocks];
  double norms[kBlocks];
  const double norm = ldexp(5, exponent);
  const double above = by_floats ? nextafterf((float)norm, INFINITY) : nextafter(norm, INFINITY);
  const double below = by_floats ? nextafterf((float)norm, 0) : nextafter(norm, 0);
  const double near[] = {norm, above, below, 2 * norm, norm / 2, -2 * norm, 0, INFINITY};
  const int last = (high - 1) * kBlocks * wide + wide - 1; /* of the first block */
  memset(x, 0, sizeof x);
  for (int b = 0; b < kBlocks; ++b) {
    const double large = ldexp(-4, exponent);
    const double elements[] = {large, large, large, 0, INFINITY, large, NAN};
    const double block_norms[] = {norm, norm, norm, 0, INFINITY, norm, NAN};
    thresholds[b] = near[(b + b / 8) % 8];
    as_floats[b] = (float)thresholds[b];
    norms[b] = block_norms[b % 7];
    x[b * wide + last] = elements[b % 7];
    const int row = b % (high > 1 ? high - 1 : 1);
    if (norms[b] != 0) x[(row * kBlocks + b) * wide + b % (wide - 1)] = ldexp(3, exponent);
  }
  memcpy(was, x, sizeof x);
  char view[32];
  snprintf(view, sizeof view, "(%d,%d)", high, kBlocks * wide);
  spk_block *block = blocks_of(SPK_F64, view, DIMS(high, wide));
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  const spk_buffer limits = by_floats ? F32(as_floats) : F64(thresholds);
  assert_ok(spk_block_hard_threshold(NULL, block, &F64(x), in_place ? NULL : &F64(into), 1, &limits,
                                     NULL, &report));
  int kept = 0;
  for (int b = 0; b < kBlocks; ++b) kept += !(norms[b] < thresholds[b]);
  for (int i = 0; i < high * kBlocks * wide; ++i) {
    const int b = i / wide % kBlocks;
    const double got[] = {in_place ? x[i] : into[i]};
    assert_f64(got, norms[b] < thresholds[b] ? 0 : was[i]);
  }
  assert_int_equal(report.achieved, kept);
  spk_block_release(block);
}

static void blocks_of_doubles(void **state) {
  (void)state;
  const int shapes[][2] = {{1, 44},  {1, 64}, {1, 100}, {1, 128}, {1, 256}, {1, 300}, {8, 8},
                           {16, 16}, {5, 32}, {5, 44},  {7, 40},  {4, 64},  {3, 13}};
  /* From the least subnormal number to the largest norm; squares are in between, or beyond. */
  const int exponents[] = {-1074, -1073, -1022, -540, -536, -512, -500, -451,
                           -400,  0,     400,   451,  497,  500,  511,  1021};
  for (int64_t s = 0; s < COUNT(shapes); ++s) {
    for (int64_t e = 0; e < COUNT(exponents); ++e) {
      check_blocks_of_doubles(shapes[s][0], shapes[s][1], exponents[e], true, false);
      check_blocks_of_doubles(shapes[s][0], shapes[s][1], exponents[e], false, false);
    }
    check_blocks_of_doubles(shapes[s][0], shapes[s][1], 0, true, true);
  }
}

/* Doubles of any bits, and thresholds that are the norms of their blocks, as spk_block_norms tells
 * them, or next to those. */
static void check_close_to_inexact_norms(int high, int wide) {
  enum { kBlocks = 64, kMost = kBlocks * 256 };
  static double x[kMost];
  static double was[kMost];
  double norms[kBlocks];
  double thresholds[kBlocks];
  char view[32];
  snprintf(view, sizeof view, "(%d,%d)", high, kBlocks * wide);
  spk_block *block = blocks_of(SPK_F64, view, DIMS(high, wide));
  uint32_t random = 1;
  for (int exponent = -1040; exponent <= 1016; exponent += 8) {
    for (int i = 0; i < high * kBlocks * wide; ++i) {
      random = random * 1664525u + 1013904223u;
      x[i] = was[i] = ldexp(1 + random * 0x1p-32, exponent);
    }
    assert_ok(spk_block_norms(NULL, block, &F64(x), 1, 2, &F64(norms)));
    for (int b = 0; b < kBlocks; ++b) {
      const double near[] = {norms[b], nextafter(norms[b], INFINITY), nextafter(norms[b], 0)};
      thresholds[b] = near[b % 3];
    }
    assert_ok(
        spk_block_hard_threshold(NULL, block, &F64(x), NULL, 1, &F64(thresholds), NULL, NULL));
    for (int i = 0; i < high * kBlocks * wide; ++i) {
      const bool stays = i / wide % kBlocks % 3 != 1;
      assert_true(x[i] == (stays ? was[i] : 0));
    }
  }
  spk_block_release(block);
}

static void blocks_of_doubles_close_to_inexact_norms(void **state) {
  (void)state;
  const int shapes[][2] = {{1, 96}, {8, 8}, {4, 16}, {8, 32}, {6, 40}};
  for (int64_t s = 0; s < COUNT(shapes); ++s) {
    check_close_to_inexact_norms(shapes[s][0], shapes[s][1]);
  }
}

/* The longest rows that are read while others are written, and longer ones. */
static void long_rows_of_doubles(void **state) {
  (void)state;
  enum { kMost = 16385, kRows = 3 };
  static double x[kRows * kMost];
  double norms[kRows];
  const int numels[] = {16384, kMost};
  for (int64_t n = 0; n < COUNT(numels); ++n) {
    const int64_t numel = numels[n];
    for (int64_t i = 0; i < kRows * numel; ++i) x[i] = 1 + (double)(i % 1000) / 999;
    char text[32];
    snprintf(text, sizeof text, "(%d,%d)", kRows, numels[n]);
    spk_block *block = blocks_of(SPK_F64, text, DIMS(1, numel));
    const spk_buffer leaf = {x, kRows * numel, SPK_F64, SPK_LAYOUT_VIEW, NULL};
    assert_ok(spk_block_norms(NULL, block, &leaf, 1, 2, &F64(norms)));
    double thresholds[] = {norms[0], nextafter(norms[1], INFINITY), nextafter(norms[2], 0)};
    assert_ok(spk_block_hard_threshold(NULL, block, &leaf, NULL, 1, &F64(thresholds), NULL, NULL));
    for (int64_t i = 0; i < kRows * numel; ++i) {
      assert_true(x[i] == (i / numel == 1 ? 0 : 1 + (double)(i % 1000) / 999));
    }
    spk_block_release(block);
  }
}

/* A norm that rounds to 2^512, whose square is infinite, of squares whose sum is finite. */
static void a_norm_whose_square_overflows(void **state) {
  (void)state;
  double x[2 * 64] = {0x1.6a09e667f3bccp511, 0x1.6a09e667f3bccp511, 0x1.75p485};
  double norms[2];
  double thresholds[] = {0x1p512, 1};
  spk_block *block = blocks_of(SPK_F64, "(2,64)", DIMS(1, 64));
  assert_ok(spk_block_norms(NULL, block, &F64(x), 1, 2, &F64(norms)));
  assert_f64(norms, 0x1p512, 0);
  assert_ok(spk_block_hard_threshold(NULL, block, &F64(x), NULL, 1, &F64(thresholds), NULL, NULL));
  assert_f64(x, 0x1.6a09e667f3bccp511, 0x1.6a09e667f3bccp511, 0x1.75p485);
  spk_block_release(block);
}

static void scores_beside_doubles_are_doubles(void **state) {
  (void)state;
  /* Blocks of two rows, which are thresholded in registers where floats will do. */
  float x[16];
  double y[] = {1, 1};
  double thresholds[] = {1.4142135623730951};
  for (int i = 0; i < 16; ++i) x[i] = 1;
  spk_scope *scope =
      coupled_scopes(scopes_over(blocks_of(SPK_F32, "(2,8)", DIMS(2, 1)), NO_DIMS),
                     scopes_over(blocks_of(SPK_F64, "(2,1)", NO_DIMS), NO_DIMS), NULL);
  const spk_buffer leaves[] = {F32(x), F64(y)};
  assert_ok(spk_scope_hard_threshold(NULL, scope, leaves, NULL, 2, &F64(thresholds), NULL, NULL));
  for (int i = 0; i < 16; ++i) assert_true(x[i] == 1);
  thresholds[0] = 1.4142135623730954;
  assert_ok(spk_scope_hard_threshold(NULL, scope, leaves, NULL, 2, &F64(thresholds), NULL, NULL));
  for (int i = 0; i < 16; ++i) assert_true(x[i] == 0);
  spk_scope_release(scope);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_norm_equal_to_its_threshold_survives),
      TEST(every_block_may_have_its_threshold),
      TEST(norms_are_rounded_to_the_score_dtype_first),
      TEST(special_norms),
      TEST(values_decide_for_the_weights),
      TEST(values_decide_for_large_weights),
      TEST(values_may_be_the_weights_that_are_written),
      TEST(the_report_counts_blocks),
      TEST(an_older_report_receives_the_fields_it_has),
      TEST(a_newer_report_keeps_its_further_fields),
      TEST(options_of_other_versions_are_read),
      TEST(couplings_live_or_die_together),
      TEST(scopes_have_thresholds_of_their_own),
      TEST(scope_couplings_take_one_threshold_for_all),
      TEST(large_blocks),
      TEST(one_threshold_for_all_elements),
      TEST(thresholds_close_to_norms),
      TEST(thresholds_close_to_inexact_norms),
      TEST(norms_beyond_floats),
      TEST(blocks_of_doubles),
      TEST(blocks_of_doubles_close_to_inexact_norms),
      TEST(long_rows_of_doubles),
      TEST(a_norm_whose_square_overflows),
      TEST(scores_beside_doubles_are_doubles),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
