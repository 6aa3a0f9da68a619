/* Conditioned soft thresholding of many blocks at once: no block may tell who its neighbours are. */
#include <float.h>

#include "support.h"

enum { kKinds = 12, kMostBlocks = 37, kMostElements = 40 };

/* The same numbers on every machine, in [0, 1). */
static double uniform(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 11) * 0x1p-53;
}

/* Fills a block of one of kKinds: some are solved in a step, some in many, some not at all. */
static void fill_block(int kind, double *w, double *h, int64_t count, double *threshold,
                       uint64_t *state) {
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    w[i] = uniform(state) - 0.5;
    h[i] = uniform(state) + 0.1;
    if (kind == 1) h[i] = 3;
    if (kind == 2) h[i] = exp2(floor(uniform(state) * 60) - 30);
    if (kind == 3) h[i] = exp2(floor(uniform(state) * 40) - 20);
    if (kind == 3) w[i] = 1 / h[i];
    if (kind == 4) h[i] = exp2(floor(uniform(state) * 1000) - 500);
    if (kind == 5) w[i] *= 0x1p-1000;
    squares += h[i] * w[i] * h[i] * w[i];
  }
  const double part[kKinds] = {0.3, 0.3, 0.5, 1e-3, 0.5, 0.5, 1 - 0x1p-45, 1.5, 0, 0.5, 0.5, 0};
  *threshold = sqrt(squares) * part[kind];
  if (kind == 9) w[count / 2] = NAN;
  if (kind == 10) w[count - 1] = -INFINITY;
  if (kind == 11) *threshold = INFINITY;
}

static spk_soft_options options_in(const spk_buffer *conditioners, double atol, int max_iter) {
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.conditioners = conditioners;
  options.atol = atol;
  options.max_iter = max_iter;
  return options;
}

/* Shrinks blocks that follow each other. */
static spk_report shrink_blocks(spk_buffer weights, spk_buffer conditioners, spk_buffer thresholds,
                                int64_t numel_per_block, double atol, int max_iter) {
  spk_view *view = NULL;
  spk_block *block = NULL;
  assert_ok(spk_view_create(weights.dtype, 1, &weights.numel, NULL, 0, &view));
  assert_ok(spk_block_create(view, 1, &numel_per_block, NULL, &block));
  const spk_soft_options options = options_in(&conditioners, atol, max_iter);
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  const spk_status status =
      spk_block_soft_threshold(NULL, block, &weights, NULL, 1, &thresholds, &options, &report);
  assert_int_equal(status, report.not_converged ? SPK_NOT_CONVERGED : SPK_OK);
  spk_block_release(block);
  spk_view_release(view);
  return report;
}

/* Of these, exponents leave the range of floats. */
static bool is_beyond_floats(int kind) {
  return kind == 4 || kind == 5;
}

/* All blocks at once, and one by one: the same bits, and as many that ran out of steps. */
static void check_batch(int32_t dtype, int64_t blocks, int64_t n, double atol, int max_iter,
                        uint64_t seed) {
  enum { kMost = kMostBlocks * kMostElements };
  static double w[kMost], h[kMost], thresholds[kMostBlocks];
  static double together[kMost], alone[kMost], metric[kMost]; /* room for numbers of any type */
  const int32_t metric_dtype = dtype == SPK_F64 ? SPK_F64 : SPK_F32;
  for (int64_t b = 0; b < blocks; ++b) {
    int kind = (int)(uniform(&seed) * kKinds);
    if (dtype != SPK_F64 && is_beyond_floats(kind)) kind = 2;
    fill_block(kind, w + b * n, h + b * n, n, thresholds + b, &seed);
  }
  store_numbers(w, blocks * n, dtype, together);
  store_numbers(w, blocks * n, dtype, alone);
  store_numbers(h, blocks * n, metric_dtype, metric);
  int64_t unconverged = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    const spk_buffer one = {(char *)alone + b * n * size_of(dtype), n, dtype, SPK_LAYOUT_VIEW,
                            NULL};
    const spk_buffer own = {(char *)metric + b * n * size_of(metric_dtype), n, metric_dtype,
                            SPK_LAYOUT_VIEW, NULL};
    const spk_buffer threshold = {thresholds + b, 1, SPK_F64, SPK_LAYOUT_VIEW, NULL};
    unconverged += shrink_blocks(one, own, threshold, n, atol, max_iter).not_converged;
  }
  const spk_buffer all = {together, blocks * n, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer all_metric = {metric, blocks * n, metric_dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer given = {thresholds, blocks, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  const spk_report report = shrink_blocks(all, all_metric, given, n, atol, max_iter);
  assert_int_equal(report.not_converged, unconverged);
  if (memcmp(together, alone, (size_t)(blocks * n * size_of(dtype))) != 0) {
    fail_msg("%d blocks of %d elements differ from what each is alone", (int)blocks, (int)n);
  }
}

static void blocks_do_not_depend_on_their_neighbours(void **state) {
  (void)state;
  const int32_t dtypes[] = {SPK_F64, SPK_F32, SPK_BF16};
  for (int64_t d = 0; d < COUNT(dtypes); ++d) {
    for (int64_t n = 1; n <= kMostElements; ++n) {
      for (int64_t blocks = 2; blocks <= kMostBlocks; blocks += 5) {
        const uint64_t seed = (uint64_t)(1000 * n + blocks);
        check_batch(dtypes[d], blocks, n, 0, 64, seed);
        check_batch(dtypes[d], blocks, n, 1e-8, 20, seed + 1);
        check_batch(dtypes[d], blocks, n, 0, 2, seed + 2);
        check_batch(dtypes[d], blocks, n, 0, 1, seed + 3);
      }
    }
  }
}

/* Fills blocks of floats, in which no exponent leaves their range; none is of kind `but`. */
static void fill_floats(int64_t blocks, int64_t n, int but, float *w, float *h, double *thresholds,
                        uint64_t *state) {
  double weights[kMostElements];
  double metric[kMostElements];
  for (int64_t b = 0; b < blocks; ++b) {
    int kind = (int)(uniform(state) * kKinds);
    if (is_beyond_floats(kind) || kind == but) kind = 2;
    fill_block(kind, weights, metric, n, thresholds + b, state);
    for (int64_t i = 0; i < n; ++i) {
      w[b * n + i] = (float)weights[i];
      h[b * n + i] = (float)metric[i];
    }
  }
}

/* The results of floats, whose weights were every second of `apart`, are next to those of the same
 * numbers as doubles. */
static void check_against_doubles(const float *apart, const float *metric_apart, const float *got,
                                  spk_buffer thresholds, int64_t n) {
  static double w[kMostBlocks * kMostElements];
  static double h[kMostBlocks * kMostElements];
  const int64_t count = thresholds.numel * n;
  for (int64_t i = 0; i < count; ++i) {
    w[i] = (double)apart[2 * i + 1];
    h[i] = (double)metric_apart[2 * i];
  }
  const spk_buffer weights = {w, count, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer metric = {h, count, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  shrink_blocks(weights, metric, thresholds, n, 0, 64);
  for (int64_t i = 0; i < count; ++i) {
    const float want = (float)w[i];
    const bool same = isnan(want) ? isnan(got[i]) != 0 : got[i] == want;
    if (!same)
      assert_true(got[i] == nextafterf(want, -INFINITY) || got[i] == nextafterf(want, INFINITY));
  }
}

/* Columns that lie as in a panel, and such as do not: each is what it is as a row. */
static void check_float_columns(int64_t columns, int64_t n, uint64_t seed) {
  enum { kMost = kMostBlocks * kMostElements };
  static float w[kMost], h[kMost], turned[kMost], turned_h[kMost];
  static double thresholds[kMostBlocks];
  /* Next to the threshold, the order of sums would show. */
  fill_floats(columns, n, 6, w, h, thresholds, &seed);
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t i = 0; i < n; ++i) {
      turned[i * columns + c] = w[c * n + i];
      turned_h[i * columns + c] = h[c * n + i];
    }
  }
  char text[64];
  snprintf(text, sizeof text, "(%d,%d)", (int)n, (int)columns);
  spk_block *block = blocks_of(SPK_F32, text, DIMS(n, 1));
  const spk_buffer metric = {turned_h, columns * n, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_soft_options options = options_in(&metric, 0, 64);
  const spk_buffer leaf = {turned, columns * n, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer limits = {thresholds, columns, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_soft_threshold(NULL, block, &leaf, NULL, 1, &limits, &options, NULL));
  spk_block_release(block);
  const spk_buffer rows = {w, columns * n, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer rows_metric = {h, columns * n, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  shrink_blocks(rows, rows_metric, limits, n, 0, 64);
  for (int64_t i = 0; i < columns * n; ++i) {
    const float want = w[i];
    const float got = turned[i % n * columns + i / n];
    const bool same = isnan(want) ? isnan(got) != 0 : got == want;
    if (!same) assert_true(got == nextafterf(want, -INFINITY) || got == nextafterf(want, INFINITY));
  }
}

static void float_columns_are_what_rows_are(void **state) {
  (void)state;
  for (int64_t n = 2; n <= kMostElements; ++n) {
    check_float_columns(8, n, (uint64_t)n);
    check_float_columns(13, n, (uint64_t)(100 + n));
    check_float_columns(32, n, (uint64_t)(200 + n));
  }
}

/* Float blocks where they are, into other memory, from every second element, and alone: the same
 * bits. */
static void check_float_batch(int64_t blocks, int64_t n, uint64_t seed) {
  enum { kMost = kMostBlocks * kMostElements };
  static float w[kMost], h[kMost], into[kMost], apart[2 * kMost], metric_apart[2 * kMost];
  static double thresholds[kMostBlocks];
  fill_floats(blocks, n, -1, w, h, thresholds, &seed);
  const int64_t count = blocks * n;
  for (int64_t i = 0; i < 2 * count; ++i) {
    apart[i] = w[i / 2];
    metric_apart[i] = h[i / 2];
  }
  const spk_buffer limits = {thresholds, blocks, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  char text[64];
  snprintf(text, sizeof text, "(%d,%d):(%d,2)", (int)blocks, (int)n, (int)(2 * n));
  spk_block *strided = blocks_of(SPK_F32, text, DIMS(1, n));
  const spk_buffer wide_metric = {metric_apart, 2 * count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_soft_options wide = options_in(&wide_metric, 0, 64);
  const spk_buffer wide_leaf = {apart, 2 * count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_soft_threshold(NULL, strided, &wide_leaf, NULL, 1, &limits, &wide, NULL));
  spk_block_release(strided);

  snprintf(text, sizeof text, "(%d,%d)", (int)blocks, (int)n);
  spk_block *rows = blocks_of(SPK_F32, text, DIMS(1, n));
  const spk_buffer metric = {h, count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_soft_options options = options_in(&metric, 0, 64);
  const spk_buffer leaf = {w, count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer other = {into, count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_soft_threshold(NULL, rows, &leaf, &other, 1, &limits, &options, NULL));
  assert_ok(spk_block_soft_threshold(NULL, rows, &leaf, NULL, 1, &limits, &options, NULL));
  spk_block_release(rows);
  assert_memory_equal(w, into, (size_t)count * sizeof *w);
  check_against_doubles(apart, metric_apart, into, limits, n);
  for (int64_t i = 0; i < count; ++i) assert_memory_equal(w + i, apart + 2 * i, sizeof *w);

  const int64_t last = blocks - 1;
  for (int64_t i = 0; i < n; ++i) w[i] = apart[2 * (last * n + i) + 1]; /* as it was */
  const spk_buffer one = {w, n, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer one_metric = {h + last * n, n, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer limit = {thresholds + last, 1, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  shrink_blocks(one, one_metric, limit, n, 0, 64);
  assert_memory_equal(w, into + last * n, (size_t)n * sizeof *w);
}

static void float_blocks_do_not_depend_on_where_they_lie(void **state) {
  (void)state;
  for (int64_t n = 2; n <= kMostElements; ++n) {
    for (int64_t blocks = 2; blocks <= kMostBlocks; blocks += 5) {
      check_float_batch(blocks, n, (uint64_t)(1000 * n + blocks));
    }
  }
}

/* Results of floats are those of doubles, rounded: both are so exact that few of many numbers could
 * come to lie on either side of the middle of two floats. */
static void check_floats_round_what_doubles_give(int64_t n, double spread, double part) {
  enum { kCount = 1 << 18 };
  static float w[kCount], h[kCount];
  static double wide_w[kCount], wide_h[kCount], thresholds[kCount];
  const int64_t blocks = kCount / n;
  uint64_t random = (uint64_t)n;
  for (int64_t b = 0; b < blocks; ++b) {
    double squares = 0;
    for (int64_t i = b * n; i < (b + 1) * n; ++i) {
      wide_w[i] = w[i] = (float)(uniform(&random) - 0.5);
      wide_h[i] = h[i] = (float)exp2(spread * (uniform(&random) - 0.5));
      squares += wide_h[i] * wide_w[i] * wide_h[i] * wide_w[i];
    }
    thresholds[b] = sqrt(squares) * part * uniform(&random);
  }
  const int64_t count = blocks * n;
  const spk_buffer limits = {thresholds, blocks, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer floats = {w, count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer metric = {h, count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer doubles = {wide_w, count, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer wide_metric = {wide_h, count, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  shrink_blocks(floats, metric, limits, n, 0, 64);
  shrink_blocks(doubles, wide_metric, limits, n, 0, 64);
  int64_t differ = 0;
  for (int64_t i = 0; i < count; ++i) differ += w[i] != (float)wide_w[i];
  assert_in_range(differ, 0, 2);
}

static void floats_round_what_doubles_give(void **state) {
  (void)state;
  const int64_t numbers[] = {3, 9, 24, 64, 256, 1000, 5000};
  for (int64_t i = 0; i < COUNT(numbers); ++i) {
    for (double spread = 0.5; spread <= 32; spread *= 4) {
      check_floats_round_what_doubles_give(numbers[i], spread, 1);
      check_floats_round_what_doubles_give(numbers[i], spread, 0.01);
    }
  }
}

/* Norms that sums of floats cannot tell from the threshold. */
static void float_norms_next_to_the_threshold_are_told_apart(void **state) {
  (void)state;
  enum { kN = 64, kBlocks = 40 };
  static float w[kBlocks * kN];
  static float h[kBlocks * kN];
  double thresholds[kBlocks];
  uint64_t random = 13;
  int64_t alive = 0;
  for (int b = 0; b < kBlocks; ++b) {
    long double squares = 0;
    for (int i = b * kN; i < (b + 1) * kN; ++i) {
      w[i] = (float)(uniform(&random) - 0.5);
      h[i] = (float)exp2(4 * uniform(&random));
      const long double product = (long double)w[i] * h[i];
      squares += product * product;
    }
    const double apart = ldexp(b % 2 ? 1 : -1, -12 - b / 2 % 20 * 2);
    thresholds[b] = (double)(sqrtl(squares) * (1 + (long double)apart));
    if (apart < 0) ++alive;
  }
  const spk_report report = shrink_blocks(F32(w), F32(h), F64(thresholds), kN, 0, 64);
  assert_int_equal(report.achieved, alive);
  for (int i = 0; i < kBlocks * kN; ++i) assert_true((w[i] != 0) == (i / kN % 2 == 0));
}

/* A NaN's bits stay, whether its block is a row, where others are solved beside it, or a column,
 * which shares registers with others. */
static void blocks_with_nan_keep_every_bit(void **state) {
  (void)state;
  enum { kSide = 32, kCount = kSide * kSide };
  const uint32_t signaling = 0xff8c08bfu;
  static float w[kCount];
  static float h[kCount];
  double threshold[] = {2};
  for (int columns = 0; columns < 2; ++columns) {
    for (int i = 0; i < kCount; ++i) {
      w[i] = 1;
      h[i] = (float)(1 + i % 3);
    }
    memcpy(&w[5 * kSide + 7], &signaling, sizeof signaling);
    spk_block *block =
        blocks_of(SPK_F32, "(32,32)", DIMS(columns ? kSide : 1, columns ? 1 : kSide));
    const spk_buffer metric = F32(h);
    const spk_soft_options options = options_in(&metric, 0, 64);
    assert_ok(
        spk_block_soft_threshold(NULL, block, &F32(w), NULL, 1, &F64(threshold), &options, NULL));
    spk_block_release(block);
    assert_memory_equal(&w[5 * kSide + 7], &signaling, sizeof signaling);
    for (int i = 0; i < kCount; ++i) {
      const bool stays = columns ? i % kSide == 7 : i / kSide == 5;
      if (i != 5 * kSide + 7) assert_true(stays ? w[i] == 1 : w[i] < 1);
    }
  }
}

/* One element has the norm in the metric, another the norm without: their quotient is no guide to
 * the root, and the way back from it must not leave a trace. */
static void a_start_far_above_the_root_does_no_harm(void **state) {
  (void)state;
  double h[] = {0x1p48, 0x1.8p-72};
  double w[] = {-0x1p-7, 1};
  double thresholds[] = {0x1p29};
  shrink_blocks(F64(w), F64(h), F64(thresholds), 2, 0, 64);
  /* nu = (||h.w|| / t - 1) / h[0] */
  const double nu = 4095 * 0x1p-48;
  assert_near(w[0], -0x1p-7 * 4095 / 4096, 0x1p-58);
  assert_near(w[1], h[1] * nu, 20 * 0x1p-53 * h[1] * nu);
}

/* Powers of two on conditioners, weights and, for both, thresholds are powers of two on results. */
static void powers_of_two_pass_through(void **state) {
  (void)state;
  enum { kN = 40, kBlocks = 24 };
  static double h[kBlocks * kN], w[kBlocks * kN], given_h[kBlocks * kN], given_w[kBlocks * kN];
  double threshold[kBlocks], given_threshold[kBlocks];
  uint64_t random = 11;
  for (int b = 0; b < kBlocks; ++b) {
    for (int i = b * kN; i < (b + 1) * kN; ++i) {
      w[i] = uniform(&random) - 0.5;
      h[i] = exp2(4 * uniform(&random));
    }
    threshold[b] = 1e-3 + uniform(&random) * 5;
  }
  static double plain[kBlocks * kN];
  memcpy(plain, w, sizeof w);
  shrink_blocks(F64(plain), F64(h), F64(threshold), kN, 0, 64);
  const int powers[][2] = {{141, 0}, {-141, 0}, {140, -60}, {-100, 90}, {0, 140}, {17, -140}};
  for (int64_t p = 0; p < COUNT(powers); ++p) {
    for (int i = 0; i < kBlocks * kN; ++i) {
      given_h[i] = ldexp(h[i], powers[p][0]);
      given_w[i] = ldexp(w[i], powers[p][1]);
    }
    const int both = powers[p][0] + powers[p][1];
    for (int b = 0; b < kBlocks; ++b) given_threshold[b] = ldexp(threshold[b], both);
    shrink_blocks(F64(given_w), F64(given_h), F64(given_threshold), kN, 0, 64);
    for (int i = 0; i < kBlocks * kN; ++i) {
      assert_true(given_w[i] == ldexp(plain[i], powers[p][1]));
    }
  }
}

/* The same for floats. */
static void powers_of_two_pass_through_floats(void **state) {
  (void)state;
  enum { kN = 64, kBlocks = 24 };
  static float h[kBlocks * kN], w[kBlocks * kN], given_h[kBlocks * kN], given_w[kBlocks * kN];
  static float plain[kBlocks * kN];
  double threshold[kBlocks], given_threshold[kBlocks];
  uint64_t random = 12;
  for (int b = 0; b < kBlocks; ++b) {
    for (int i = b * kN; i < (b + 1) * kN; ++i) {
      w[i] = (float)(uniform(&random) - 0.5);
      h[i] = (float)exp2(4 * uniform(&random));
    }
    threshold[b] = 1e-3 + uniform(&random) * 8;
  }
  memcpy(plain, w, sizeof w);
  shrink_blocks(F32(plain), F32(h), F64(threshold), kN, 0, 64);
  const int powers[][2] = {{100, 0}, {-100, 0}, {60, -20}, {-60, 20}, {-30, -10}};
  for (int64_t p = 0; p < COUNT(powers); ++p) {
    for (int i = 0; i < kBlocks * kN; ++i) {
      given_h[i] = ldexpf(h[i], powers[p][0]);
      given_w[i] = ldexpf(w[i], powers[p][1]);
    }
    const int both = powers[p][0] + powers[p][1];
    for (int b = 0; b < kBlocks; ++b) given_threshold[b] = ldexp(threshold[b], both);
    shrink_blocks(F32(given_w), F32(given_h), F64(given_threshold), kN, 0, 64);
    for (int i = 0; i < kBlocks * kN; ++i) {
      assert_true(given_w[i] == ldexpf(plain[i], powers[p][1]));
    }
  }
}

/* nu is ||x|| / t: what it makes of the weights is x again. */
static void blocks_of_many_rows_solve_their_equation(void **state) {
  (void)state;
  enum { kN = 72, kBlocks = 40 };
  static double w[kBlocks * kN], h[kBlocks * kN], x[kBlocks * kN];
  double threshold[kBlocks];
  uint64_t random = 5;
  for (int b = 0; b < kBlocks; ++b) {
    long double products = 0;
    for (int i = b * kN; i < (b + 1) * kN; ++i) {
      w[i] = uniform(&random) - 0.5;
      h[i] = exp2(3 * uniform(&random));
      products += (long double)(h[i] * w[i]) * (h[i] * w[i]);
    }
    threshold[b] = (double)sqrtl(products) * (0.2 + 0.5 * uniform(&random));
  }
  memcpy(x, w, sizeof w);
  shrink_blocks(F64(x), F64(h), F64(threshold), kN, 0, 64);
  for (int b = 0; b < kBlocks; ++b) {
    long double squares = 0;
    for (int i = b * kN; i < (b + 1) * kN; ++i) squares += (long double)x[i] * x[i];
    const long double nu = sqrtl(squares) / threshold[b];
    for (int i = b * kN; i < (b + 1) * kN; ++i) {
      const long double want = w[i] * (h[i] * nu / (1 + h[i] * nu));
      assert_near(x[i], (double)want, 8 * 0x1p-53 * fabs(x[i]));
    }
  }
}

/* h nu is then beyond all floats. */
static void weights_stay_where_the_metric_is_enormous(void **state) {
  (void)state;
  enum { kN = 64 };
  float w[kN], h[kN];
  double wide_w[kN], wide_h[kN];
  double threshold[] = {0x1p-20};
  for (int i = 0; i < kN; ++i) {
    w[i] = (float)(i - 20) / 3;
    h[i] = 0x1p120F;
    wide_w[i] = w[i];
    wide_h[i] = 0x1p140;
  }
  shrink_blocks(F32(w), F32(h), F64(threshold), kN, 0, 64);
  shrink_blocks(F64(wide_w), F64(wide_h), F64(threshold), kN, 0, 64);
  for (int i = 0; i < kN; ++i) {
    assert_true(w[i] == (float)(i - 20) / 3);
    assert_near(wide_w[i], w[i], 4 * 0x1p-53 * fabs(w[i]));
  }
}

/* Columns are solved across registers; with equal conditioners the result is known. */
static void columns_and_permuted_views_shrink(void **state) {
  (void)state;
  const char *const views[] = {"(20,13)", "(20,13):(1,20)", "(20,13):(-13,-1)+259",
                               "(20,13):(26,2)"};
  static float x[520];
  static float h[520];
  float threshold[] = {20};
  for (int i = 0; i < 520; ++i) h[i] = 2;
  for (int64_t v = 0; v < COUNT(views); ++v) {
    for (int i = 0; i < 520; ++i) x[i] = i % 2 ? 5 : -5;
    spk_block *block = blocks_of(SPK_F32, views[v], DIMS(20, 1));
    const spk_buffer conditioners = F32(h);
    const spk_soft_options options = options_in(&conditioners, 0, 64);
    const spk_buffer one = {threshold, 1, SPK_F32, SPK_LAYOUT_VIEW, NULL};
    assert_ok(spk_block_soft_threshold(NULL, block, &F32(x), NULL, 1, &one, &options, NULL));
    /* |w| (1 - t / (h ||w||)) */
    const double left = 5 * (1 - 20 / (2 * 5 * sqrt(20)));
    for (int i = 0; i < 520; ++i) {
      const bool used = v < 3 ? i < 260 : i % 2 == 0;
      const double want = used ? left : 5;
      assert_near(x[i], i % 2 ? want : -want, used ? 3e-7 : 0);
    }
    spk_block_release(block);
  }
}

/* Elements are compared and shrunk as a plain loop would. */
static void elements_of_any_kind_stand_anywhere(void **state) {
  (void)state;
  const float special[] = {NAN, INFINITY, -INFINITY, 0, -0.0f, 0.75f, -0.75f, FLT_MIN, FLT_MAX};
  for (int64_t count = 1; count <= kMostElements; ++count) {
    for (int64_t at = 0; at < count; ++at) {
      float w[kMostElements];
      float h[kMostElements];
      float want[kMostElements];
      float thresholds[] = {1.5f};
      for (int64_t i = 0; i < count; ++i) {
        w[i] = (float)(i - 7) / 4;
        h[i] = (float)(1 + i % 3);
      }
      w[at] = special[at % COUNT(special)];
      h[at] = 2;
      for (int64_t i = 0; i < count; ++i) {
        const double left = fabs((double)w[i]) - 1.5 / (double)h[i];
        want[i] = isnan(w[i]) ? NAN : left <= 0 ? 0 : (float)copysign(left, w[i]);
      }
      const spk_buffer weights = {w, count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
      const spk_buffer metric = {h, count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
      shrink_blocks(weights, metric, F32(thresholds), 1, 0, 64);
      expect_f32(w, want, count, __FILE__, __LINE__);
    }
  }
}

/* |w| h is t but for the last bits of the exact product. */
static void products_next_to_the_threshold_are_told_apart(void **state) {
  (void)state;
  const double w = 1 + 0x1p-30;
  const double h = 1 + 0x1p-31;
  /* w h = 1 + 2^-30 + 2^-31 + 2^-61 */
  double x[] = {w, -w, w, w, w, w, w, w, w};
  double metric[] = {h, h, h, h, h, h, h, h, h};
  const double below = 1 + 0x1p-30 + 0x1p-31;
  double thresholds[] = {below, below + DBL_EPSILON, below, 2, below, 0.5, INFINITY, 0, below};
  const spk_report report = shrink_blocks(F64(x), F64(metric), F64(thresholds), 1, 0, 64);
  assert_i64(&report.total, 9, -1, 6, 0, 0);
  assert_f64(x + 1, 0);
  assert_f64(x + 3, 0);
  assert_true(x[5] > 0.49);
  assert_f64(x + 6, 0, w);
}

/* --- refusals ------------------------------------------------------------------------------ */

static void set_number(void *array, int32_t dtype, int64_t at, double value, uint16_t word) {
  if (dtype == SPK_F32) ((float *)array)[at] = (float)value;
  if (dtype == SPK_F64) ((double *)array)[at] = value;
  if (dtype == SPK_F16 || dtype == SPK_BF16) ((uint16_t *)array)[at] = word;
}

static void bad_conditioners_are_refused_wherever_they_are(void **state) {
  (void)state;
  enum { kCount = 75, kBlock = 5 };
  const struct {
    double value;
    const char *text;
    uint16_t half, brain;
  } bad[] = {{0, "0", 0, 0},
             {-0.0, "-0", 0x8000, 0x8000},
             {-1, "-1", 0xbc00, 0xbf80},
             {INFINITY, "inf", 0x7c00, 0x7f80},
             {NAN, "NaN", 0x7e00, 0x7fc0}};
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
  double h[kCount];
  float x[kCount];
  float thresholds[] = {1};
  spk_block *block = blocks_of(SPK_F32, "(75)", DIMS(kBlock));
  for (int64_t d = 0; d < COUNT(dtypes); ++d) {
    for (int64_t at = 0; at < kCount; ++at) {
      const int64_t b = at % COUNT(bad);
      for (int64_t i = 0; i < kCount; ++i) {
        x[i] = 2;
        set_number(h, dtypes[d], i, 1, dtypes[d] == SPK_F16 ? 0x3c00 : 0x3f80);
      }
      set_number(h, dtypes[d], at, bad[b].value, dtypes[d] == SPK_F16 ? bad[b].half : bad[b].brain);
      const spk_buffer metric = {h, kCount, dtypes[d], SPK_LAYOUT_CONTIGUOUS, NULL};
      const spk_soft_options options = options_in(&metric, 0, 64);
      char message[200];
      /* The least of zeros is told as +0. */
      snprintf(message, sizeof message,
               "conditioners[0]: got %s in block (%d), expected numbers > 0 and finite",
               bad[b].value == 0 ? "0" : bad[b].text, (int)(at / kBlock));
      assert_fails(SPK_INVALID_ARGUMENT, message,
                   spk_block_soft_threshold(NULL, block, &F32(x), NULL, 1, &F32(thresholds),
                                            &options, NULL));
      for (int64_t i = 0; i < kCount; ++i) assert_f32(x + i, 2);
    }
  }
  spk_block_release(block);
}

/* A view, its blocks, and how far from an element something lies that it does not reach, or 0. */
typedef struct Layout {
  const char *view;
  int64_t block[3];
  int64_t gap;
} Layout;

/* The status of a call whose conditioners are all 1, but that at `at` -1. */
static spk_status status_with_bad(spk_block *block, double *h, float *x, int64_t count,
                                  int64_t at) {
  float thresholds[] = {1};
  const spk_buffer metric = {h, count, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer weights = {x, count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_soft_options options = options_in(&metric, 0, 64);
  h[at] = -1;
  const spk_status status =
      spk_block_soft_threshold(NULL, block, &weights, NULL, 1, &F32(thresholds), &options, NULL);
  h[at] = 1;
  return status;
}

static void check_refusal(const int64_t *index, const int64_t *block, int32_t ndim) {
  char message[SPK_MESSAGE_SIZE], expected[100];
  int length = snprintf(expected, sizeof expected, "conditioners[0]: got -1 in block (");
  for (int32_t d = 0; d < ndim; ++d) {
    length += snprintf(expected + length, sizeof expected - (size_t)length, "%d%s",
                       (int)(index[d] / block[d]), d + 1 < ndim ? "," : ")");
  }
  spk_last_error_copy(message, sizeof message, NULL);
  assert_non_null(strstr(message, expected));
}

/* They are checked in the order of memory, whatever the blocks are; what lies between is not. */
static void bad_conditioners_are_refused_in_any_layout(void **state) {
  (void)state;
  enum { kMost = 400 * 200 };
  static double h[kMost];
  static float x[kMost];
  const Layout layouts[] = {
      {"(32,24)", {16, 8}, 0},
      {"(32,24):(28,1)", {8, 8}, 0},
      {"(24,32):(1,24)", {4, 16}, 0},
      {"(15,9):(18,2)", {5, 3}, 1},
      {"(12,10):(-10,1)+110", {3, 10}, 0},
      {"(12,10):(-10,-1)+119", {3, 2}, 0},
      {"(4,6,5):(80,12,2)", {2, 3, 5}, 1},
      {"(5,4,6):(1,50,7)", {1, 4, 2}, 45},
      {"(20000)", {16}, 0}, /* more elements in a row than in a piece */
      {"(20000):(2)", {4}, 1},
      {"(400,190):(200,1)", {16, 19}, 190},
      {"(400,190):(200,1)", {400, 190}, 190},
  };
  for (int64_t i = 0; i < kMost; ++i) h[i] = 1;
  for (int64_t l = 0; l < COUNT(layouts); ++l) {
    spk_view *view = view_of(SPK_F32, layouts[l].view);
    const int32_t ndim = spk_view_ndim(view);
    const int64_t numel = spk_view_numel(view);
    spk_block *block = NULL;
    assert_ok(spk_block_create(view, ndim, layouts[l].block, NULL, &block));
    /* Of many elements some. */
    const int64_t stride = numel > 1000 ? 97 : 1;
    for (int64_t i = 0; i < numel; i += stride) {
      int64_t index[3] = {0};
      int64_t rest = i;
      for (int32_t d = ndim - 1; d >= 0; --d) {
        index[d] = rest % spk_view_shape(view)[d];
        rest /= spk_view_shape(view)[d];
      }
      int64_t at = 0;
      assert_ok(spk_view_linear_offset(view, index, 1, &at));
      assert_int_equal(status_with_bad(block, h, x, kMost, at), SPK_INVALID_ARGUMENT);
      check_refusal(index, layouts[l].block, ndim);
      const bool has_gap = layouts[l].gap != 0 && index[ndim - 1] == 0;
      if (has_gap) {
        assert_int_equal(status_with_bad(block, h, x, kMost, at + layouts[l].gap), SPK_OK);
      }
    }
    spk_block_release(block);
    spk_view_release(view);
  }
}

/* Of a coupling, all leaves are checked, piece by piece. */
static void bad_conditioners_of_coupled_leaves_are_refused(void **state) {
  (void)state;
  enum { kCount = 20000, kBlock = 16 };
  static double h[2][kCount];
  static float x[2][kCount];
  float thresholds[] = {1};
  for (int64_t i = 0; i < kCount; ++i) h[0][i] = h[1][i] = 1;
  spk_block *leaf = blocks_of(SPK_F32, "(20000)", DIMS(kBlock));
  spk_block *coupled = NULL;
  assert_ok(spk_block_couple((spk_block *[]){leaf, leaf}, 2, NULL, NULL, &coupled));
  const spk_buffer metrics[] = {F64(h[0]), F64(h[1])};
  const spk_buffer weights[] = {F32(x[0]), F32(x[1])};
  const spk_soft_options options = options_in(metrics, 0, 64);
  for (int64_t l = 0; l < 2; ++l) {
    for (int64_t at = 0; at < kCount; at += 97) {
      char message[100];
      snprintf(message, sizeof message,
               "conditioners[%d]: got -1 in block (%d), expected numbers > 0 and finite", (int)l,
               (int)(at / kBlock));
      h[l][at] = -1;
      assert_fails(SPK_INVALID_ARGUMENT, message,
                   spk_block_soft_threshold(NULL, coupled, weights, NULL, 2, &F32(thresholds),
                                            &options, NULL));
      h[l][at] = 1;
    }
  }
  spk_block_release(coupled);
  spk_block_release(leaf);
}

/* The least and the largest that are allowed. */
static void conditioners_at_the_ends_of_the_range_are_accepted(void **state) {
  (void)state;
  uint16_t half[] = {0x0001, 0x7bff};
  float single[] = {0x1p-149f, FLT_MAX};
  double wide[] = {0x1p-1074, DBL_MAX};
  const spk_buffer metrics[] = {CONTIGUOUS(half, SPK_F16), CONTIGUOUS(half, SPK_BF16),
                                CONTIGUOUS(single, SPK_F32), CONTIGUOUS(wide, SPK_F64)};
  float thresholds[] = {1};
  for (int64_t i = 0; i < COUNT(metrics); ++i) {
    float x[] = {1, 1};
    shrink_blocks(F32(x), metrics[i], F32(thresholds), 2, 0, 64);
    assert_true(x[0] >= 0 && x[0] < 1e-4f && x[1] > 0.9f && x[1] <= 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(blocks_do_not_depend_on_their_neighbours),
      TEST(float_blocks_do_not_depend_on_where_they_lie),
      TEST(float_columns_are_what_rows_are),
      TEST(floats_round_what_doubles_give),
      TEST(float_norms_next_to_the_threshold_are_told_apart),
      TEST(blocks_with_nan_keep_every_bit),
      TEST(a_start_far_above_the_root_does_no_harm),
      TEST(powers_of_two_pass_through),
      TEST(powers_of_two_pass_through_floats),
      TEST(blocks_of_many_rows_solve_their_equation),
      TEST(weights_stay_where_the_metric_is_enormous),
      TEST(columns_and_permuted_views_shrink),
      TEST(elements_of_any_kind_stand_anywhere),
      TEST(products_next_to_the_threshold_are_told_apart),
      TEST(bad_conditioners_are_refused_wherever_they_are),
      TEST(bad_conditioners_are_refused_in_any_layout),
      TEST(bad_conditioners_of_coupled_leaves_are_refused),
      TEST(conditioners_at_the_ends_of_the_range_are_accepted),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
