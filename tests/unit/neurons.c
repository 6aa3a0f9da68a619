/* Couplings of rows with columns: hidden neurons, and filters with the input channels that read them.
 * Each leaf is then read and written in an order of its own. The numbers are small integers, so that
 * sums are exact in whatever order. */
#include "support.h"

/* Neurons have a row of the first layer, a bias and a column of the second: so long that they are
 * read in parts, or short enough to be read whole. There are more than are written together; neither
 * they nor their parts are a multiple of what is. */
enum { kNeurons = 4202, kRow = 136, kColumn = 1030, kShortColumn = 300 };

typedef struct {
  int32_t column; /* elements of it */
  double squares[kNeurons];
  float w1[kNeurons * kRow], bias[kNeurons], w2[kColumn * kNeurons];
  float beyond[2 * kNeurons]; /* what no call may write */
} layers;

static layers l;

/* Element k of neuron n: of its row, its bias, its column. */
static float weight(int n, int k) {
  return (float)(((n * 31 + k * 17) % 7 - 3) * (1 + n % 5));
}
static float *at(int n, int k) {
  if (k < kRow) return l.w1 + n * kRow + k;
  return k == kRow ? l.bias + n : l.w2 + (k - kRow - 1) * kNeurons + n;
}

static void fill(int32_t column) {
  l.column = column;
  for (int i = 0; i < 2 * kNeurons; ++i) l.beyond[i] = 1;
  for (int n = 0; n < kNeurons; ++n) {
    l.squares[n] = 0.0;
    for (int k = 0; k < kRow + 1 + column; ++k) {
      *at(n, k) = weight(n, k);
      l.squares[n] += (double)weight(n, k) * weight(n, k);
    }
  }
}

/* The coupling, whose first leaf is number `first` of the three, and its leaves in order. */
static spk_block *neurons(int first, spk_buffer *leaves) {
  const spk_buffer buffers[] = {F32(l.w1), F32(l.bias), F32(l.w2)};
  spk_block *blocks[] = {
      blocks_of(SPK_F32, "(4202,136)", DIMS(1, 0)), blocks_of(SPK_F32, "(4202,1)", DIMS(1, 1)),
      blocks_of(SPK_F32, l.column == kColumn ? "(1030,4202)" : "(300,4202)", DIMS(0, 1))};
  spk_block *members[3];
  int32_t orders[6];
  for (int i = 0; i < 3; ++i) {
    const int leaf = (first + i) % 3;
    members[i] = blocks[leaf];
    leaves[i] = buffers[leaf];
    orders[2 * i] = leaf == 2;
    orders[2 * i + 1] = leaf != 2;
  }
  spk_block *coupling = NULL;
  assert_ok(spk_block_couple(members, 3, orders, NULL, &coupling));
  for (int i = 0; i < 3; ++i) spk_block_release(members[i]);
  return coupling;
}

/* Neuron n times factor[n], to within `error` of it. */
static void assert_scaled(const double *factor, double error) {
  for (int n = 0; n < kNeurons; ++n) {
    for (int k = 0; k < kRow + 1 + l.column; ++k) {
      const double want = weight(n, k) * factor[n];
      assert_near(*at(n, k), want, fabs(want) * error);
    }
  }
  for (int i = 0; i < 2 * kNeurons; ++i) assert_true(l.beyond[i] == 1);
}

static void check_writing(int first, int32_t column) {
  static uint8_t prune[kNeurons];
  static float multiplier[kNeurons];
  static double kept[kNeurons], factor[kNeurons];
  for (int n = 0; n < kNeurons; ++n) {
    prune[n] = n % 3 == 1;
    kept[n] = !prune[n];
    factor[n] = multiplier[n] = (float)(n % 4) / 2;
  }
  spk_buffer leaves[3];
  fill(column);
  spk_block *block = neurons(first, leaves);
  assert_ok(spk_block_apply_mask(NULL, block, leaves, NULL, 3, &U8(prune)));
  assert_scaled(kept, 0.0);
  fill(column);
  assert_ok(spk_block_apply_multiplier(NULL, block, leaves, NULL, 3, &F32(multiplier)));
  assert_scaled(factor, 0.0);
  spk_block_release(block);
}

static void check_thresholds(int first, int32_t column) {
  static float norms[kNeurons];
  static double hard[kNeurons], soft[kNeurons];
  spk_buffer leaves[3];
  fill(column);
  spk_block *block = neurons(first, leaves);
  assert_ok(spk_block_norms(NULL, block, leaves, 3, 2, &F32(norms)));
  const double limit = sqrt(l.squares[2]);
  for (int n = 0; n < kNeurons; ++n) {
    const double norm = sqrt(l.squares[n]);
    assert_near(norms[n], norm, norm * 0x1p-24);
    hard[n] = norms[n] >= (float)limit;
    soft[n] = norm <= limit ? 0.0 : 1.0 - limit / norm;
  }
  const float as_float = (float)limit;
  const spk_buffer rounded = {(void *)&as_float, 1, SPK_F32, SPK_LAYOUT_CONTIGUOUS, NULL};
  assert_ok(spk_block_hard_threshold(NULL, block, leaves, NULL, 3, &rounded, NULL, NULL));
  assert_scaled(hard, 0.0);
  fill(column);
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = 0.0;
  const spk_buffer exact = {(void *)&limit, 1, SPK_F64, SPK_LAYOUT_CONTIGUOUS, NULL};
  assert_ok(spk_block_soft_threshold(NULL, block, leaves, NULL, 3, &exact, &options, NULL));
  assert_scaled(soft, 0x1p-23);
  spk_block_release(block);
}

static void neurons_are_masked_and_scaled(void **state) {
  (void)state;
  for (int first = 0; first < 3; ++first) {
    check_writing(first, kColumn);
    check_writing(first, kShortColumn);
  }
}

/* Rows so long that they are read and written in three parts. */
static void long_neurons_are_scaled(void **state) {
  (void)state;
  enum { kFew = 3, kLongRow = 140000, kFewOutputs = 20 };
  static float rows[kFew * kLongRow];
  float columns[kFewOutputs * kFew];
  const float multiplier[kFew] = {2, 0, 0.5};
  for (int i = 0; i < kFew * kLongRow; ++i) rows[i] = (float)(i % 1013);
  for (int i = 0; i < kFewOutputs * kFew; ++i) columns[i] = (float)(i + 1);
  const int32_t orders[] = {0, 1, 1, 0};
  spk_block *block = coupled_blocks(blocks_of(SPK_F32, "(3,140000)", DIMS(1, 0)),
                                    blocks_of(SPK_F32, "(20,3)", DIMS(0, 1)), orders);
  const spk_buffer leaves[] = {F32(rows), F32(columns)};
  const spk_buffer factors = {(void *)multiplier, kFew, SPK_F32, SPK_LAYOUT_CONTIGUOUS, NULL};
  assert_ok(spk_block_apply_multiplier(NULL, block, leaves, NULL, 2, &factors));
  for (int i = 0; i < kFew * kLongRow; ++i) {
    assert_f32(rows + i, (float)(i % 1013) * multiplier[i / kLongRow]);
  }
  for (int i = 0; i < kFewOutputs * kFew; ++i) {
    assert_f32(columns + i, (float)(i + 1) * multiplier[i % kFew]);
  }
  spk_block_release(block);
}

static void neurons_live_and_die_by_thresholds(void **state) {
  (void)state;
  for (int first = 0; first < 3; ++first) {
    check_thresholds(first, kColumn);
    check_thresholds(first, kShortColumn);
  }
}

static struct { uint8_t rows[kNeurons * kRow], biases[kNeurons], columns[kColumn * kNeurons]; } m;

/* Leaf i of the coupling is number (first + i) % 3. */
static void clear_masks(int first, spk_buffer *masks) {
  memset(&m, 7, sizeof m);
  const spk_buffer buffers[] = {U8(m.rows), U8(m.biases), U8(m.columns)};
  for (int i = 0; i < 3; ++i) masks[i] = buffers[(first + i) % 3];
}

static void assert_masks(const uint8_t *keep) {
  for (int i = 0; i < kNeurons * kRow; ++i) assert_int_equal(m.rows[i], keep[i / kRow]);
  for (int n = 0; n < kNeurons; ++n) assert_int_equal(m.biases[n], keep[n]);
  for (int i = 0; i < kColumn * kNeurons; ++i) {
    assert_int_equal(m.columns[i], keep[i % kNeurons]);
  }
}

/* Element masks of one neuron in two, by norms and by a mask of neurons. */
static void check_masks(const spk_scope *pairs, int first, const spk_buffer *leaves,
                        const double *kept) {
  const int64_t one = 1;
  uint8_t keep[kNeurons];
  for (int n = 0; n < kNeurons; ++n) keep[n] = kept[n] != 0.0;
  spk_buffer masks[3];
  clear_masks(first, masks);
  const spk_score_source source = {.struct_size = sizeof source, .values = leaves};
  assert_ok(
      spk_scope_get_masks(NULL, pairs, &source, &one, 1, SPK_TIES_BY_POSITION, masks, 3, NULL));
  assert_masks(keep);
  spk_buffer unused[3];
  spk_block *block = neurons(first, unused);
  clear_masks(first, masks);
  assert_ok(spk_block_get_masks(NULL, block, &U8(keep), masks, 3));
  assert_masks(keep);
  spk_block_release(block);
}

/* Of each two neighbours, the neuron of the larger norm stays, or else the first. */
static void neurons_compete(void **state) {
  (void)state;
  static double kept[kNeurons];
  const int64_t one = 1;
  for (int first = 0; first < 3; ++first) {
    spk_buffer leaves[3];
    fill(kColumn);
    for (int n = 0; n < kNeurons; ++n) {
      kept[n] = n % 2 ? l.squares[n] > l.squares[n - 1] : l.squares[n] >= l.squares[n + 1];
    }
    spk_scope *pairs = scopes_over(neurons(first, leaves), DIMS(2, 1));
    check_masks(pairs, first, leaves, kept);
    assert_ok(spk_scope_keep_top(NULL, pairs, leaves, NULL, 3, &one, 1, NULL, NULL));
    assert_scaled(kept, 0.0);
    spk_scope_release(pairs);
  }
}

/* Filters of one convolution, with the input channels of the next: 90 rows of nine elements. */
enum { kFilters = 45, kInputs = 30, kOutputs = 90, kTaps = 9 };
static float filters[kFilters * kInputs * kTaps];
static float channels[kOutputs * kFilters * kTaps];

static int filter_of(int i) {
  return i / (kInputs * kTaps);
}
static int channel_of(int i) {
  return i / kTaps % kFilters;
}
static float tap(int i, int filter) {
  return (float)((i * 5 + i / 7) % 9 - 4 + filter % 3);
}

static spk_block *filters_with_channels(void) {
  const int32_t orders[] = {0, 1, 2, 3, 1, 0, 2, 3};
  return coupled_blocks(blocks_of(SPK_F32, "(45,30,3,3)", DIMS(1, 0, 0, 0)),
                        blocks_of(SPK_F32, "(90,45,3,3)", DIMS(0, 1, 0, 0)), orders);
}

static void fill_taps(double *squares) {
  for (int f = 0; f < kFilters; ++f) squares[f] = 0.0;
  for (int i = 0; i < kFilters * kInputs * kTaps; ++i) {
    filters[i] = tap(i, filter_of(i));
    squares[filter_of(i)] += (double)filters[i] * filters[i];
  }
  for (int i = 0; i < kOutputs * kFilters * kTaps; ++i) {
    channels[i] = tap(i, channel_of(i));
    squares[channel_of(i)] += (double)channels[i] * channels[i];
  }
}

static void filters_live_and_die_with_their_channels(void **state) {
  (void)state;
  double squares[kFilters];
  float norms[kFilters];
  fill_taps(squares);
  spk_block *block = filters_with_channels();
  const spk_buffer leaves[] = {F32(filters), F32(channels)};
  assert_ok(spk_block_norms(NULL, block, leaves, 2, 2, &F32(norms)));
  const double limit = sqrt(squares[1]);
  const spk_buffer threshold = {(void *)&limit, 1, SPK_F64, SPK_LAYOUT_CONTIGUOUS, NULL};
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = 0.0;
  assert_ok(spk_block_soft_threshold(NULL, block, leaves, NULL, 2, &threshold, &options, NULL));
  double factor[kFilters];
  for (int f = 0; f < kFilters; ++f) {
    const double norm = sqrt(squares[f]);
    assert_near(norms[f], norm, norm * 0x1p-24);
    factor[f] = norm <= limit ? 0.0 : 1.0 - limit / norm;
  }
  for (int i = 0; i < kFilters * kInputs * kTaps; ++i) {
    const double want = tap(i, filter_of(i)) * factor[filter_of(i)];
    assert_near(filters[i], want, fabs(want) * 0x1p-23);
  }
  for (int i = 0; i < kOutputs * kFilters * kTaps; ++i) {
    const double want = tap(i, channel_of(i)) * factor[channel_of(i)];
    assert_near(channels[i], want, fabs(want) * 0x1p-23);
  }
  spk_block_release(block);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(neurons_are_masked_and_scaled),
      TEST(long_neurons_are_scaled),
      TEST(neurons_live_and_die_by_thresholds),
      TEST(neurons_compete),
      TEST(filters_live_and_die_with_their_channels),
  };
  return exit_code(cmocka_run_group_tests_name("neurons", tests, NULL, NULL));
}
