/* Blocks whose elements lie in different rows, those of neighbours side by side: small ones are
 * thresholded in registers. Their norms are integers, so that all results are known exactly. */
#include "support.h"

enum { kMostRows = 6, kMostWide = 44, kTwice = 2, kNumel = kTwice * kMostRows * kMostWide };

/* sum kUnit[rows - 1][i]^2 = kNorm[rows - 1]^2. */
static const int kUnit[kMostRows][kMostRows] = {{5},          {3, 4},          {1, 2, 2},
                                                {2, 4, 5, 6}, {1, 1, 1, 2, 3}, {1, 1, 1, 2, 3, 3}};
static const int kNorm[kMostRows] = {5, 5, 3, 9, 4, 5};

/* Two rows of `wide` blocks of `rows` elements. What block c does with its threshold goes by c. */
typedef struct {
  int rows, wide;
  int32_t dtype;
  double x[kNumel];
  double thresholds[kTwice * kMostWide];
} problem;

typedef enum { kHalf, kQuarter, kFree, kAtThreshold, kBelow, kNan, kInfinite, kAllGone } what;

static what what_of(int c) {
  return (what)(c % 8);
}

static double share_of(what w) {
  const double shares[] = {0.5, 0.75, 0, 1, 1.25, 0.5, 0.5};
  return w == kAllGone ? INFINITY : shares[w];
}

static double *element(double *x, const problem *p, int block, int row) {
  const int upper = block / p->wide;
  return x + (upper * p->rows + row) * p->wide + block % p->wide;
}

static double scale_of(int block) {
  return (block % 5 + 1) * (block % 3 ? 1 : -1);
}

static problem problem_of(int rows, int wide, int32_t dtype) {
  problem p = {rows, wide, dtype, {0}, {0}};
  for (int b = 0; b < kTwice * wide; ++b) {
    const what w = what_of(b);
    for (int r = 0; r < rows; ++r) *element(p.x, &p, b, r) = kUnit[rows - 1][r] * scale_of(b);
    if (w == kNan) *element(p.x, &p, b, rows - 1) = NAN;
    if (w == kInfinite || w == kAllGone) *element(p.x, &p, b, rows - 1) = -INFINITY;
    const double share = share_of(w);
    p.thresholds[b] = isinf(share) ? share : kNorm[rows - 1] * fabs(scale_of(b)) * share;
  }
  return p;
}

/* Soft: what is left of the norm. Hard: what is not below its threshold. */
static double left_of(what w, bool soft) {
  switch (w) {
    case kHalf:
      return soft ? 0.5 : 1;
    case kQuarter:
      return soft ? 0.25 : 1;
    case kFree:
    case kNan:
    case kInfinite:
      return 1;
    case kAtThreshold:
      return soft ? 0 : 1;
    case kBelow:
      return 0;
    default:
      return soft ? 0 : 1; /* infinity against infinity */
  }
}

/* Numbers of few bits, as they lie in memory. */
static void store(const double *x, int count, int32_t dtype, void *to) {
  for (int i = 0; i < count; ++i) {
    const float f = (float)x[i];
    const uint32_t bits = isnan(x[i]) ? 0x7fa5ffffu : bits_of(f); /* a NaN to be told from others */
    if (dtype == SPK_F64) ((double *)to)[i] = x[i];
    if (dtype == SPK_F32) ((uint32_t *)to)[i] = bits;
    if (dtype == SPK_BF16) ((uint16_t *)to)[i] = (uint16_t)(bits >> 16);
  }
}

static void check(int rows, int wide, int32_t dtype, bool soft, bool in_place) {
  const int64_t sizes[] = {[SPK_F32] = 4, [SPK_F64] = 8, [SPK_BF16] = 2};
  const problem p = problem_of(rows, wide, dtype);
  const int count = kTwice * rows * wide;
  double expected[kNumel];
  int64_t alive = 0;
  memcpy(expected, p.x, sizeof expected);
  for (int b = 0; b < kTwice * wide; ++b) {
    const double left = left_of(what_of(b), soft);
    alive += left > 0;
    for (int r = 0; r < rows; ++r) {
      double *e = element(expected, &p, b, r);
      *e = left == 0 ? 0 : *e * left;
    }
  }
  uint64_t x[kNumel], y[kNumel], before[kNumel], want[kNumel];
  store(p.x, count, dtype, x);
  store(p.x, count, dtype, before);
  store(expected, count, dtype, want);
  char text[64];
  snprintf(text, sizeof text, "(%d,%d)", kTwice * rows, wide);
  spk_block *block = blocks_of(dtype, text, DIMS(rows, 1));
  const spk_buffer leaf = {x, count, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer into = {y, count, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer thresholds = {(void *)p.thresholds, kTwice * wide, SPK_F64, SPK_LAYOUT_VIEW,
                                 NULL};
  const spk_buffer *to = in_place ? NULL : &into;
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = 0;
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  if (soft) {
    assert_ok(spk_block_soft_threshold(NULL, block, &leaf, to, 1, &thresholds, &options, &report));
  } else {
    assert_ok(spk_block_hard_threshold(NULL, block, &leaf, to, 1, &thresholds, NULL, &report));
  }
  spk_block_release(block);
  assert_int_equal(report.achieved, alive);
  const size_t bytes = (size_t)(count * sizes[dtype]);
  assert_memory_equal(in_place ? x : y, want, bytes);
  if (!in_place) assert_memory_equal(x, before, bytes);
}

static void check_all(bool soft) {
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_BF16};
  const int wides[] = {8, 40, 44, 3}; /* whole registers, and not */
  for (int rows = 1; rows <= kMostRows; ++rows) {
    for (int w = 0; w < COUNT(wides); ++w) {
      for (int d = 0; d < COUNT(dtypes); ++d) {
        check(rows, wides[w], dtypes[d], soft, true);
        check(rows, wides[w], dtypes[d], soft, false);
      }
    }
  }
}

static void soft_thresholds(void **state) {
  (void)state;
  check_all(true);
}

static void hard_thresholds(void **state) {
  (void)state;
  check_all(false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(soft_thresholds),
      TEST(hard_thresholds),
  };
  return exit_code(cmocka_run_group_tests_name("stacked", tests, NULL, NULL));
}
