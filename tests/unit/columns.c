/* Blocks of many short rows, such as columns: more elements than a near cache holds lines. The
 * numbers are small integers, so that sums are exact in whatever order. */
#include <stdlib.h>

#include "support.h"

enum { kLong = 1500, kWide = 13, kNumel = kLong * kWide };

/* A matrix (kLong, kWide) and what its columns measure. */
typedef struct {
  float x[kNumel];
  double y[kNumel];
  float transposed[kNumel];
  double sum[kWide], squares[kWide], most[kWide], least[kWide], max[kWide], min[kWide];
  int64_t nonzeros[kWide];
} matrix;

static matrix m;

static void measure_column(int c) {
  m.least[c] = m.min[c] = INFINITY;
  m.max[c] = -INFINITY;
  for (int r = 0; r < kLong; ++r) {
    const double x = m.y[r * kWide + c];
    m.sum[c] += fabs(x);
    m.squares[c] += x * x;
    m.nonzeros[c] += x != 0.0;
    m.most[c] = fmax(m.most[c], fabs(x));
    m.least[c] = fmin(m.least[c], fabs(x));
    m.max[c] = fmax(m.max[c], x);
    m.min[c] = fmin(m.min[c], x);
  }
}

static void fill(void) {
  memset(&m, 0, sizeof m);
  for (int r = 0; r < kLong; ++r) {
    for (int c = 0; c < kWide; ++c) {
      /* Column c has numbers up to c + 1, column 0 zeros among them. */
      const int value = (r * 7 + c * 3) % (c + 2) * (r % 3 ? 1 : -1) + (c % 2 ? 0 : r % 2);
      m.x[r * kWide + c] = m.transposed[c * kLong + r] = (float)value;
      m.y[r * kWide + c] = value;
    }
  }
  for (int c = 0; c < kWide; ++c) measure_column(c);
}

static spk_block *columns(int32_t dtype) {
  return blocks_of(dtype, "(1500,13)", DIMS(0, 1));
}

static void check_norms(double p, const double *want, bool squares) {
  float norms[kWide];
  double exact[kWide];
  spk_block *f32 = columns(SPK_F32);
  spk_block *f64 = columns(SPK_F64);
  assert_ok(spk_block_norms(NULL, f32, &F32(m.x), 1, p, &F32(norms)));
  assert_ok(spk_block_norms(NULL, f64, &F64(m.y), 1, p, &F64(exact)));
  for (int c = 0; c < kWide; ++c) {
    const double norm = squares ? sqrt(want[c]) : want[c];
    assert_near(norms[c], norm, norm * 0x1p-23);
    assert_near(exact[c], norm, norm * 0x1p-51);
  }
  spk_block_release(f32);
  spk_block_release(f64);
}

static void columns_are_measured(void **state) {
  (void)state;
  fill();
  check_norms(1, m.sum, false);
  check_norms(2, m.squares, true);
  check_norms(INFINITY, m.most, false);
  check_norms(-INFINITY, m.least, false);
  float result[kWide];
  int64_t nonzeros[kWide];
  spk_block *block = columns(SPK_F32);
  assert_ok(spk_block_max(NULL, block, &F32(m.x), 1, &F32(result)));
  for (int c = 0; c < kWide; ++c) assert_true((double)result[c] == m.max[c]);
  assert_ok(spk_block_min(NULL, block, &F32(m.x), 1, &F32(result)));
  for (int c = 0; c < kWide; ++c) assert_true((double)result[c] == m.min[c]);
  assert_ok(spk_block_nnz(NULL, block, &F32(m.x), 1, 0.0, &I64(nonzeros), NULL));
  for (int c = 0; c < kWide; ++c) assert_int_equal(nonzeros[c], m.nonzeros[c]);
  spk_block_release(block);
}

/* Column c of x times factor[c]. */
static void assert_scaled(const float *x, const double *factor) {
  for (int i = 0; i < kNumel; ++i) {
    const double f = factor[i % kWide];
    assert_f32(x + i, f == 0.0 ? 0.0f : (float)(m.y[i] * f));
  }
}

static void columns_are_masked_and_scaled(void **state) {
  (void)state;
  fill();
  uint8_t prune[kWide];
  float multiplier[kWide];
  double kept[kWide];
  double factor[kWide];
  for (int c = 0; c < kWide; ++c) {
    prune[c] = c % 3 == 1;
    kept[c] = !prune[c];
    factor[c] = multiplier[c] = (float)(c % 4) / 3;
  }
  spk_block *block = columns(SPK_F32);
  assert_ok(spk_block_apply_mask(NULL, block, &F32(m.x), NULL, 1, &U8(prune)));
  assert_scaled(m.x, kept);
  fill();
  assert_ok(spk_block_apply_multiplier(NULL, block, &F32(m.x), NULL, 1, &F32(multiplier)));
  assert_scaled(m.x, factor);
  spk_block_release(block);
}

/* More columns than are written together, in two matrices of different heights. */
static void many_coupled_columns_are_masked_and_scaled(void **state) {
  (void)state;
  enum { kColumns = 5000, kTall = 600, kShort = 520 };
  static float tall[kTall * kColumns];
  static float low[kShort * kColumns];
  static float multiplier[kColumns];
  static uint8_t prune[kColumns];
  for (int c = 0; c < kColumns; ++c) {
    multiplier[c] = (float)(c % 7) / 4;
    prune[c] = c % 5 == 2;
  }
  for (int i = 0; i < kTall * kColumns; ++i) tall[i] = (float)(i % 1013);
  for (int i = 0; i < kShort * kColumns; ++i) low[i] = (float)(i % 1009);
  spk_block *members[] = {blocks_of(SPK_F32, "(600,5000)", DIMS(0, 1)),
                          blocks_of(SPK_F32, "(520,5000)", DIMS(0, 1))};
  spk_block *block = NULL;
  assert_ok(spk_block_couple(members, 2, NULL, NULL, &block));
  const spk_buffer leaves[] = {F32(tall), F32(low)};
  assert_ok(spk_block_apply_multiplier(NULL, block, leaves, NULL, 2, &F32(multiplier)));
  assert_ok(spk_block_apply_mask(NULL, block, leaves, NULL, 2, &U8(prune)));
  for (int i = 0; i < kTall * kColumns; ++i) {
    const int c = i % kColumns;
    assert_f32(tall + i, prune[c] ? 0.0f : (float)(i % 1013) * multiplier[c]);
  }
  for (int i = 0; i < kShort * kColumns; ++i) {
    const int c = i % kColumns;
    assert_f32(low + i, prune[c] ? 0.0f : (float)(i % 1009) * multiplier[c]);
  }
  spk_block_release(block);
  for (int i = 0; i < 2; ++i) spk_block_release(members[i]);
}

static void columns_live_and_die_by_thresholds(void **state) {
  (void)state;
  fill();
  const double limit = sqrt(m.squares[5]);
  double thresholds[] = {limit};
  double hard[kWide];
  double soft[kWide];
  for (int c = 0; c < kWide; ++c) {
    const double norm = sqrt(m.squares[c]);
    hard[c] = (float)norm >= limit;
    soft[c] = norm <= limit ? 0.0 : 1.0 - limit / norm;
  }
  hard[5] = (double)(float)limit >= limit;
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = 0.0;
  spk_block *block = columns(SPK_F32);
  assert_ok(
      spk_block_hard_threshold(NULL, block, &F32(m.x), NULL, 1, &F64(thresholds), NULL, NULL));
  assert_scaled(m.x, hard);
  fill();
  assert_ok(
      spk_block_soft_threshold(NULL, block, &F32(m.x), NULL, 1, &F64(thresholds), &options, NULL));
  for (int i = 0; i < kNumel; ++i) {
    assert_near(m.x[i], m.y[i] * soft[i % kWide], fabs(m.y[i]) * 0x1p-23);
  }
  spk_block_release(block);
}

/* Values lie otherwise than the weights: their columns are contiguous. */
static void values_of_another_layout_decide(void **state) {
  (void)state;
  fill();
  spk_view *own = view_of(SPK_F32, "(1500,13):(1,1500)");
  const spk_buffer values = OWN(m.transposed, SPK_F32, own);
  const spk_hard_options options = {sizeof options, &values};
  float thresholds[] = {(float)sqrt(m.squares[5])};
  double kept[kWide];
  for (int c = 0; c < kWide; ++c) kept[c] = (float)sqrt(m.squares[c]) >= thresholds[0];
  spk_block *block = columns(SPK_F32);
  assert_ok(
      spk_block_hard_threshold(NULL, block, &F32(m.x), NULL, 1, &F32(thresholds), &options, NULL));
  assert_scaled(m.x, kept);
  spk_block_release(block);
  spk_view_release(own);
}

/* Weights of a convolution, and what its input channels measure: rows of nine elements, far apart,
 * of more channels than are reduced together. */
enum { kOut = 300, kIn = 150, kTaps = 9, kWeights = kOut * kIn * kTaps };
static float taps[kWeights];
static double exact_taps[kWeights];
static double sums[kIn], squares[kIn], cubes[kIn], least[kIn];

static int channel_of(int weight) {
  return weight / kTaps % kIn;
}

static void fill_taps(void) {
  for (int i = 0; i < kIn; ++i) {
    sums[i] = squares[i] = cubes[i] = 0.0;
    least[i] = INFINITY;
  }
  for (int w = 0; w < kWeights; ++w) {
    const int i = channel_of(w);
    const double x = (w * 5 + w / 7) % (i % 11 + 2) + (i % 3 == 0);
    taps[w] = (float)x;
    exact_taps[w] = x;
    sums[i] += x;
    squares[i] += x * x;
    cubes[i] += x * x * x;
    least[i] = fmin(least[i], x);
  }
}

static spk_block *input_channels(int32_t dtype) {
  return blocks_of(dtype, "(300,150,3,3)", DIMS(0, 1, 0, 0));
}

/* `powers` are norms to the power `root`; those of f64 are promised to within `units` of 2^-53. */
static void assert_channel_norms(double p, const double *powers, double root, double units) {
  float norms[kIn];
  double exact[kIn];
  spk_block *f32 = input_channels(SPK_F32);
  spk_block *f64 = input_channels(SPK_F64);
  assert_ok(spk_block_norms(NULL, f32, &F32(taps), 1, p, &F32(norms)));
  assert_ok(spk_block_norms(NULL, f64, &F64(exact_taps), 1, p, &F64(exact)));
  for (int i = 0; i < kIn; ++i) {
    const double norm = pow(powers[i], 1.0 / root);
    assert_near(norms[i], norm, norm * 0x1p-23);
    assert_near(exact[i], norm, norm * units * 0x1p-53);
  }
  spk_block_release(f32);
  spk_block_release(f64);
}

static void input_channels_are_measured(void **state) {
  (void)state;
  fill_taps();
  assert_channel_norms(1, sums, 1, 4);
  assert_channel_norms(2, squares, 2, 4);
  assert_channel_norms(3, cubes, 3, 8 + 16.0 / 3);
  assert_channel_norms(-INFINITY, least, 1, 4);
}

static void input_channels_live_and_die_by_thresholds(void **state) {
  (void)state;
  float thresholds[kIn];
  for (int i = 0; i < kIn; ++i) thresholds[i] = i % 2 ? 1e6f : 0.0f;
  spk_block *block = input_channels(SPK_F32);
  fill_taps();
  assert_ok(
      spk_block_hard_threshold(NULL, block, &F32(taps), NULL, 1, &F32(thresholds), NULL, NULL));
  for (int w = 0; w < kWeights; ++w) {
    assert_f32(taps + w, channel_of(w) % 2 ? 0.0f : (float)exact_taps[w]);
  }
  fill_taps();
  for (int i = 0; i < kIn; ++i) thresholds[i] = (float)(i % 5);
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = 0.0;
  assert_ok(
      spk_block_soft_threshold(NULL, block, &F32(taps), NULL, 1, &F32(thresholds), &options, NULL));
  for (int w = 0; w < kWeights; ++w) {
    const int i = channel_of(w);
    const double factor = 1.0 - thresholds[i] / sqrt(squares[i]);
    assert_near(taps[w], exact_taps[w] * factor, exact_taps[w] * 0x1p-23);
  }
  spk_block_release(block);
}

/* Of two neighbours, the channel of the larger norm stays, or else the first. */
static void input_channels_compete(void **state) {
  (void)state;
  fill_taps();
  spk_scope *pairs = scopes_over(input_channels(SPK_F32), DIMS(1, 2, 1, 1));
  const int64_t one = 1;
  assert_ok(spk_scope_keep_top(NULL, pairs, &F32(taps), NULL, 1, &one, 1, NULL, NULL));
  for (int w = 0; w < kWeights; ++w) {
    const int i = channel_of(w);
    const bool stays = i % 2 ? squares[i] > squares[i - 1] : squares[i] >= squares[i + 1];
    assert_f32(taps + w, stays ? (float)exact_taps[w] : 0.0f);
  }
  spk_scope_release(pairs);
}

/* Blocks of many rows of 32 elements, as of attention heads stored by columns, in two bands. */
enum { kHeight = 700, kWidth = 32, kHeads = 5, kTall = 2 * kHeight * kHeads * kWidth };
static float tall[kTall];
static double exact_tall[kTall];
static double tall_sums[2 * kHeads], tall_squares[2 * kHeads], tall_most[2 * kHeads];

static int head_of(int i) {
  const int row = i / (kHeads * kWidth);
  return row / kHeight * kHeads + i % (kHeads * kWidth) / kWidth;
}

static void fill_heads(void) {
  memset(tall_sums, 0, sizeof tall_sums);
  memset(tall_squares, 0, sizeof tall_squares);
  memset(tall_most, 0, sizeof tall_most);
  for (int i = 0; i < kTall; ++i) {
    const int h = head_of(i);
    const double x = (i * 11 + i / 13) % (3 * h + 5) - h;
    tall[i] = (float)x;
    exact_tall[i] = x;
    tall_sums[h] += fabs(x);
    tall_squares[h] += x * x;
    tall_most[h] = fmax(tall_most[h], fabs(x));
  }
}

static spk_block *heads(int32_t dtype) {
  return blocks_of(dtype, "(1400,160)", DIMS(700, 32));
}

static void assert_head_norms(double p, const double *want, bool rooted) {
  float norms[2 * kHeads];
  double exact[2 * kHeads];
  spk_block *f32 = heads(SPK_F32);
  spk_block *f64 = heads(SPK_F64);
  assert_ok(spk_block_norms(NULL, f32, &F32(tall), 1, p, &F32(norms)));
  assert_ok(spk_block_norms(NULL, f64, &F64(exact_tall), 1, p, &F64(exact)));
  for (int h = 0; h < 2 * kHeads; ++h) {
    const double norm = rooted ? sqrt(want[h]) : want[h];
    assert_near(norms[h], norm, norm * 0x1p-23);
    assert_near(exact[h], norm, norm * 0x1p-51);
  }
  spk_block_release(f32);
  spk_block_release(f64);
}

static void assert_heads_scaled(const double *factor) {
  for (int i = 0; i < kTall; ++i) {
    const double want = exact_tall[i] * factor[head_of(i)];
    assert_near(tall[i], want, fabs(want) * 0x1p-23);
  }
}

static void heads_are_measured(void **state) {
  (void)state;
  fill_heads();
  assert_head_norms(1, tall_sums, false);
  assert_head_norms(2, tall_squares, true);
  assert_head_norms(INFINITY, tall_most, false);
}

static void heads_live_and_die(void **state) {
  (void)state;
  uint8_t prune[2 * kHeads];
  double kept[2 * kHeads], hard[2 * kHeads], soft[2 * kHeads];
  fill_heads();
  double limit[] = {sqrt(tall_squares[3])};
  for (int h = 0; h < 2 * kHeads; ++h) {
    const double norm = sqrt(tall_squares[h]);
    prune[h] = h % 3 == 1;
    kept[h] = !prune[h];
    hard[h] = (float)norm >= limit[0];
    soft[h] = norm <= limit[0] ? 0.0 : 1.0 - limit[0] / norm;
  }
  spk_block *block = heads(SPK_F32);
  assert_ok(spk_block_apply_mask(NULL, block, &F32(tall), NULL, 1, &U8(prune)));
  assert_heads_scaled(kept);
  fill_heads();
  assert_ok(spk_block_hard_threshold(NULL, block, &F32(tall), NULL, 1, &F64(limit), NULL, NULL));
  assert_heads_scaled(hard);
  fill_heads();
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = 0.0;
  assert_ok(
      spk_block_soft_threshold(NULL, block, &F32(tall), NULL, 1, &F64(limit), &options, NULL));
  assert_heads_scaled(soft);
  spk_block_release(block);
}

/* Masks of more data than caches hold write past them: here blocks in parts, whole rows of them. */
static void many_large_blocks_are_masked(void **state) {
  (void)state;
  enum { kSide = 3072, kBlock = 1024 };
  float *x = aligned_alloc(64, (size_t)kSide * kSide * sizeof *x);
  assert_non_null(x);
  for (int i = 0; i < kSide * kSide; ++i) x[i] = (float)(i % 997 + 1);
  const uint8_t prune[9] = {1, 0, 0, 0, 1, 1, 0, 1, 0};
  spk_block *block = blocks_of(SPK_F32, "(3072,3072)", DIMS(1024, 1024));
  const spk_buffer weights = {x, (int64_t)kSide * kSide, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer mask = {(void *)prune, 9, SPK_U8, SPK_LAYOUT_CONTIGUOUS, NULL};
  assert_ok(spk_block_apply_mask(NULL, block, &weights, NULL, 1, &mask));
  for (int i = 0; i < kSide * kSide; ++i) {
    const int number = i / kSide / kBlock * 3 + i % kSide / kBlock;
    assert_f32(x + i, prune[number] ? 0.0f : (float)(i % 997 + 1));
  }
  spk_block_release(block);
  free(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(columns_are_measured),
      TEST(columns_are_masked_and_scaled),
      TEST(many_coupled_columns_are_masked_and_scaled),
      TEST(columns_live_and_die_by_thresholds),
      TEST(values_of_another_layout_decide),
      TEST(input_channels_are_measured),
      TEST(input_channels_live_and_die_by_thresholds),
      TEST(input_channels_compete),
      TEST(heads_are_measured),
      TEST(heads_live_and_die),
      TEST(many_large_blocks_are_masked),
  };
  return exit_code(cmocka_run_group_tests_name("columns", tests, NULL, NULL));
}
