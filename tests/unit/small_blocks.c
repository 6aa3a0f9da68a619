/* Small blocks, which are thresholded while they are in registers: those whose elements lie in
 * different rows, neighbours side by side, and those that are one short row each. Their norms are
 * integers, so that all results are known exactly. */
#include "support.h"

enum {
  kMostStacked = 6,
  kMostElements = 17,
  kMostWide = 44,
  kTwice = 2,
  kGap = 5, /* elements between the two rows of blocks, unless blocks are stacked */
  kNumel = kTwice * (kMostElements * kMostWide + kGap)
};

/* sum kUnit[size - 1][i]^2 = kNorm[size - 1]^2. */
static const int kUnit[kMostStacked][kMostStacked] = {
    {5}, {3, 4}, {1, 2, 2}, {2, 4, 5, 6}, {1, 1, 1, 2, 3}, {1, 1, 1, 2, 3, 3}};
static const int kNorm[kMostStacked] = {5, 5, 3, 9, 4, 5};

/* Larger ones are 1, but for the last, k, and maybe the one before, so that (norm - k)(norm + k) is
 * the sum of the others' squares. */
static int unit_of(int size, int i, int *norm) {
  if (size <= kMostStacked) {
    *norm = kNorm[size - 1];
    return kUnit[size - 1][i];
  }
  const int before = size % 4 == 3 ? 2 : 1;
  const int others = size - 2 + before * before;
  const int difference = others % 2 ? 1 : 2;
  const int last = (others / difference - difference) / 2;
  *norm = last + difference;
  if (i == size - 2) return before;
  return i == size - 1 ? last : 1;
}

/* Two rows of `wide` blocks of `size` elements. What block c does with its threshold goes by c. */
typedef struct {
  int size, wide;
  bool stacked;
  int32_t dtype;
  double x[kNumel];
  double thresholds[kTwice * kMostWide];
} problem;

typedef enum { kHalf, kQuarter, kFree, kAtThreshold, kBelow, kNan, kInfinite, kAllGone } what;

/* Another order in each group of 8, which kernels take together. */
static what what_of(int c) {
  return (what)((c + c / 8) % 8);
}

static double share_of(what w) {
  const double shares[] = {0.5, 0.75, 0, 1, 1.25, 0.5, 0.5};
  return w == kAllGone ? INFINITY : shares[w];
}

static int row_length(const problem *p) {
  return p->stacked ? p->wide : p->wide * p->size + kGap;
}

static int count_of(const problem *p) {
  return row_length(p) * kTwice * (p->stacked ? p->size : 1);
}

static double *element(double *x, const problem *p, int block, int i) {
  const int upper = block / p->wide;
  const int column = block % p->wide;
  if (p->stacked) return x + (upper * p->size + i) * p->wide + column;
  return x + upper * row_length(p) + column * p->size + i;
}

static double scale_of(int block) {
  return (block % 5 + 1) * (block % 3 ? 1 : -1);
}

static problem problem_of(int size, int wide, bool stacked, int32_t dtype) {
  problem p = {size, wide, stacked, dtype, {0}, {0}};
  for (int b = 0; b < kTwice * wide; ++b) {
    const what w = what_of(b);
    int norm = 0;
    for (int i = 0; i < size; ++i) *element(p.x, &p, b, i) = unit_of(size, i, &norm) * scale_of(b);
    if (w == kNan) *element(p.x, &p, b, b % size) = NAN;
    if (w == kInfinite || w == kAllGone) *element(p.x, &p, b, b % size) = -INFINITY;
    const double share = share_of(w);
    p.thresholds[b] = isinf(share) ? share : norm * fabs(scale_of(b)) * share;
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

/* All elements after thresholding; returns how many blocks are alive. */
static int64_t expected_of(const problem *p, bool soft, double *expected) {
  int64_t alive = 0;
  memcpy(expected, p->x, sizeof p->x);
  for (int b = 0; b < kTwice * p->wide; ++b) {
    const double left = left_of(what_of(b), soft);
    alive += left > 0;
    for (int i = 0; i < p->size; ++i) {
      double *e = element(expected, p, b, i);
      *e = left == 0 ? 0 : *e * left;
    }
  }
  return alive;
}

static spk_block *blocks_for(const problem *p) {
  char text[64];
  if (p->stacked) {
    snprintf(text, sizeof text, "(%d,%d)", kTwice * p->size, p->wide);
    return blocks_of(p->dtype, text, DIMS(p->size, 1));
  }
  snprintf(text, sizeof text, "(%d,%d):(%d,1)", kTwice, p->wide * p->size, row_length(p));
  return blocks_of(p->dtype, text, DIMS(1, p->size));
}

/* Thresholds as they were computed, or as floats. */
static void check(const problem *p, bool soft, bool in_place, bool as_floats) {
  const int64_t sizes[] = {[SPK_F32] = 4, [SPK_F64] = 8, [SPK_BF16] = 2};
  const int count = count_of(p);
  double expected[kNumel];
  const int64_t alive = expected_of(p, soft, expected);
  uint64_t x[kNumel], before[kNumel], want[kNumel];
  uint64_t y[kNumel] = {0};
  store(p->x, count, p->dtype, x);
  store(p->x, count, p->dtype, before);
  store(expected, count, p->dtype, want);
  float floats[kTwice * kMostWide];
  for (int b = 0; b < kTwice * p->wide; ++b) floats[b] = (float)p->thresholds[b];
  spk_block *block = blocks_for(p);
  const spk_buffer leaf = {x, count, p->dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer into = {y, count, p->dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer thresholds = {as_floats ? (void *)floats : (void *)p->thresholds,
                                 kTwice * p->wide, as_floats ? SPK_F32 : SPK_F64, SPK_LAYOUT_VIEW,
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
  const size_t bytes = (size_t)(count * sizes[p->dtype]);
  assert_memory_equal(in_place ? x : y, want, bytes);
  if (!in_place) assert_memory_equal(x, before, bytes);
}

static void check_sizes(int first, int last, bool stacked, bool soft) {
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_BF16};
  const int wides[] = {8, 16, 40, 44, 3}; /* whole groups of 8, and not */
  for (int size = first; size <= last; ++size) {
    for (int w = 0; w < COUNT(wides); ++w) {
      for (int d = 0; d < COUNT(dtypes); ++d) {
        const problem p = problem_of(size, wides[w], stacked, dtypes[d]);
        check(&p, soft, true, false);
        check(&p, soft, true, true);
        check(&p, soft, false, true);
      }
    }
  }
}

static void soft_thresholds_of_stacked_blocks(void **state) {
  (void)state;
  check_sizes(1, kMostStacked, true, true);
}

static void hard_thresholds_of_stacked_blocks(void **state) {
  (void)state;
  check_sizes(1, kMostStacked, true, false);
}

static void soft_thresholds_of_short_rows(void **state) {
  (void)state;
  check_sizes(kMostStacked + 1, kMostElements, false, true);
}

static void hard_thresholds_of_short_rows(void **state) {
  (void)state;
  check_sizes(kMostStacked + 1, kMostElements, false, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(soft_thresholds_of_stacked_blocks),
      TEST(hard_thresholds_of_stacked_blocks),
      TEST(soft_thresholds_of_short_rows),
      TEST(hard_thresholds_of_short_rows),
  };
  return exit_code(cmocka_run_group_tests_name("small_blocks", tests, NULL, NULL));
}
