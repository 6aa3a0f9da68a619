/* Scopes of few blocks: every size, layout and dtype against a plain oracle, bit by bit, with the
 * elements around the view. */
#include "support.h"

enum { kCapacity = 1 << 14, kGuard = 40, kMostBlocks = 260 };

static const int32_t kDtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};

/* --- elements as bits ---------------------------------------------------------------------- */

static uint64_t load_bits(const unsigned char *memory, int64_t index, int32_t dtype) {
  uint64_t bits = 0;
  memcpy(&bits, memory + index * size_of(dtype), (size_t)size_of(dtype)); /* little endian */
  return bits;
}

static void store_bits(unsigned char *memory, int64_t index, int32_t dtype, uint64_t bits) {
  memcpy(memory + index * size_of(dtype), &bits, (size_t)size_of(dtype));
}

/* Bits of the mantissa and exponent of a dtype. */
static int mantissa_of(int32_t dtype) {
  return dtype == SPK_F64 ? 52 : dtype == SPK_F32 ? 23 : dtype == SPK_F16 ? 10 : 7;
}
static int exponent_of(int32_t dtype) {
  return dtype == SPK_F64 ? 11 : dtype == SPK_F16 ? 5 : 8;
}

static double value_of(uint64_t bits, int32_t dtype) {
  const int m = mantissa_of(dtype);
  const int e = exponent_of(dtype);
  const int64_t exponent = (int64_t)(bits >> m & ((1u << e) - 1));
  const double mantissa = (double)(bits & ((UINT64_C(1) << m) - 1));
  const int bias = (1 << (e - 1)) - 1;
  if (exponent == (1 << e) - 1) return mantissa != 0 ? NAN : INFINITY;
  if (exponent == 0) return ldexp(mantissa, 1 - bias - m);
  return ldexp(mantissa + ldexp(1, m), (int)exponent - bias - m);
}

static double score_of(const uint64_t *elements, int64_t numel, int32_t dtype) {
  double sum = 0;
  for (int64_t i = 0; i < numel; ++i) sum += pow(value_of(elements[i], dtype), 2);
  if (numel == 1) return fabs(value_of(elements[0], dtype));
  return dtype == SPK_F64 ? sqrt(sum) : (float)sqrt(sum);
}

/* Scores as integers of the same order, NaN highest: bits order as numbers that are not negative do,
 * and compilers compare many at once. */
static uint64_t rank_of(double score) {
  uint64_t bits = 0;
  if (isnan(score)) return UINT64_MAX;
  memcpy(&bits, &score, sizeof bits);
  return bits;
}

/* --- data ---------------------------------------------------------------------------------- */

static uint64_t random_state = 1;

static uint64_t next_random(void) {
  random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return random_state >> 33;
}

typedef enum {
  kDistinct,
  kRareTies,
  kFewValues,
  kNearTies, /* magnitudes of 1 and the next three numbers */
  kSpecials,
  kRareNans, /* one in sixty: most small scopes have none */
  kZeros,
  kMostlyZeros, /* nine in ten, so that blocks are; of f32 and bf16 also numbers whose squares are */
  kDataKinds
} DataKind;

static uint64_t random_element(int32_t dtype, DataKind kind) {
  const int m = mantissa_of(dtype);
  const int e = exponent_of(dtype);
  const uint64_t sign = (next_random() & 1) << (m + e);
  const uint64_t one = ((UINT64_C(1) << (e - 1)) - 1) << m;
  const uint64_t infinity = ((UINT64_C(1) << e) - 1) << m;
  const uint64_t mantissa = (next_random() << 31 | next_random()) & ((UINT64_C(1) << m) - 1);
  if (kind == kRareNans && next_random() % 60 == 0) return sign | infinity | mantissa | 1;
  /* Some scopes with a tie, among others without. */
  if (kind == kRareTies && next_random() % 3 == 0) return sign | (one + (UINT64_C(2) << m));
  if (kind == kDistinct || kind == kRareTies || kind == kRareNans) {
    return sign | (one + ((next_random() % 4) << m)) | mantissa;
  }
  if (kind == kFewValues) return sign | (one + (next_random() % 3 << (m - 1)));
  if (kind == kNearTies) return sign | one | (mantissa & 3);
  if (kind == kZeros) return next_random() % 3 ? sign : sign | one | mantissa;
  if (kind == kMostlyZeros && next_random() % 10 != 0) return sign;
  if (kind == kMostlyZeros) return sign | (mantissa & 1 && dtype != SPK_F64 ? 1 : one | mantissa);
  const uint64_t specials[] = {0,
                               1,
                               one,
                               infinity,
                               infinity - 1,
                               infinity + 1 + mantissa / 2,
                               infinity | (one >> 1 & ((UINT64_C(1) << m) - 1)) | 1};
  return sign | specials[next_random() % (uint64_t)COUNT(specials)];
}

/* --- a case -------------------------------------------------------------------------------- */

typedef struct {
  int64_t shape[2], stride[2], offset;
  int64_t block[2], scope[2];
} Layout;

typedef struct {
  int32_t dtype;
  DataKind data;
  int32_t ties;
  bool counts_each;
  bool into;
} Options;

static unsigned char given[kCapacity * 8], expected[kCapacity * 8], got[kCapacity * 8];

typedef struct {
  int64_t at[kMostBlocks * 16];
  uint64_t rank[kMostBlocks];
} ScopeData;

static void gather_scope(const Layout *l, int64_t row, int64_t col, int32_t dtype, ScopeData *out) {
  int64_t b = 0;
  int64_t e = 0;
  for (int64_t i = 0; i < l->scope[0]; ++i) {
    for (int64_t j = 0; j < l->scope[1]; ++j, ++b) {
      uint64_t elements[16];
      int64_t numel = 0;
      for (int64_t x = 0; x < l->block[0]; ++x) {
        for (int64_t y = 0; y < l->block[1]; ++y) {
          const int64_t r = (row * l->scope[0] + i) * l->block[0] + x;
          const int64_t c = (col * l->scope[1] + j) * l->block[1] + y;
          out->at[e] = l->offset + r * l->stride[0] + c * l->stride[1];
          elements[numel++] = load_bits(given, out->at[e++], dtype);
        }
      }
      out->rank[b] = rank_of(score_of(elements, numel, dtype));
    }
  }
}

/* Prunes one scope in `expected` and adds to the report. */
static void prune_scope(const ScopeData *scope, int64_t n, int64_t numel, int64_t k,
                        const Options *options, spk_report *report) {
  uint64_t last_in = 0;
  uint64_t first_out = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t above = 0;
    int64_t before = 0;
    for (int64_t j = 0; j < n; ++j) {
      above += scope->rank[j] > scope->rank[i];
      before += (scope->rank[j] == scope->rank[i]) & (j < i);
    }
    if (above + before == k - 1) last_in = scope->rank[i];
    if (above + before == k) first_out = scope->rank[i];
    const bool stays = options->ties == SPK_TIES_KEEP_ALL ? above < k : above + before < k;
    report->achieved += stays;
    for (int64_t e = 0; e < numel; ++e) {
      const int64_t at = scope->at[i * numel + e];
      store_bits(expected, at, options->dtype, stays ? load_bits(given, at, options->dtype) : 0);
    }
  }
  report->total += n;
  report->requested += k;
  if (k == 0 || k == n || last_in != first_out) return;
  for (int64_t i = 0; i < n; ++i) report->ties += scope->rank[i] == last_in;
}

/* Up to where a case uses memory: no stride is negative but those whose offset is the far end. */
static int64_t used_by(const Layout *l) {
  int64_t last = l->offset;
  for (int d = 0; d < 2; ++d) {
    if (l->stride[d] > 0) last += (l->shape[d] - 1) * l->stride[d];
  }
  return last + 1 + kGuard;
}

static void check(const Layout *l, const Options *options) {
  const int64_t n = l->scope[0] * l->scope[1];
  const int64_t rows = l->shape[0] / l->block[0] / l->scope[0];
  const int64_t cols = l->shape[1] / l->block[1] / l->scope[1];
  const int32_t dtype = options->dtype;
  const int64_t used = used_by(l);
  assert_true(used <= kCapacity);
  for (int64_t i = 0; i < used; ++i) {
    store_bits(given, i, dtype, random_element(dtype, options->data));
  }
  /* What `into` holds is overwritten inside the view, and only there. */
  const size_t bytes = (size_t)(used * size_of(dtype));
  memcpy(got, given, bytes);
  if (options->into) {
    for (size_t i = 0; i < bytes; ++i) got[i] ^= 0x55;
  }
  memcpy(expected, got, bytes);

  static int64_t counts[kCapacity];
  spk_report want = {sizeof(spk_report), 0, 0, 0, 0, 0};
  spk_report report = {sizeof(spk_report), -7, -7, -7, -7, -7};
  const int64_t common = (int64_t)(next_random() % (uint64_t)(n + 1));
  for (int64_t s = 0; s < rows * cols; ++s) {
    counts[s] = options->counts_each ? (int64_t)(next_random() % (uint64_t)(n + 1)) : common;
    ScopeData scope;
    gather_scope(l, s / cols, s % cols, dtype, &scope);
    prune_scope(&scope, n, l->block[0] * l->block[1], counts[s], options, &want);
  }

  spk_view *view = NULL;
  spk_block *block = NULL;
  spk_scope *scope = NULL;
  assert_ok(spk_view_create(dtype, 2, l->shape, l->stride, l->offset, &view));
  assert_ok(spk_block_create(view, 2, l->block, NULL, &block));
  assert_ok(spk_scope_create(block, 2, l->scope, NULL, &scope));
  const spk_buffer from = {options->into ? given : got, kCapacity, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer into = {got, kCapacity, dtype, SPK_LAYOUT_VIEW, NULL};
  spk_select_options select = {0};
  select.struct_size = sizeof select;
  select.ties = options->ties;
  assert_ok(spk_scope_keep_top(NULL, scope, &from, options->into ? &into : NULL, 1, counts,
                               options->counts_each ? rows * cols : 1, &select, &report));
  spk_scope_release(scope);
  spk_block_release(block);
  spk_view_release(view);

  for (int64_t i = 0; i < used; ++i) {
    if (load_bits(got, i, dtype) == load_bits(expected, i, dtype)) continue;
    print_error("dtype %d, %lld x %lld blocks of %lld x %lld, element %lld: got %llx, want %llx\n",
                dtype, (long long)l->scope[0], (long long)l->scope[1], (long long)l->block[0],
                (long long)l->block[1], (long long)i, (unsigned long long)load_bits(got, i, dtype),
                (unsigned long long)load_bits(expected, i, dtype));
    fail();
  }
  assert_i64(&report.total, want.total, want.requested, want.achieved, want.ties);
}

static void check_all(const Layout *l) {
  for (int64_t d = 0; d < COUNT(kDtypes); ++d) {
    for (int data = 0; data < kDataKinds; ++data) {
      /* The oracle's squares of doubles would overflow, and those of near ones are rounded. */
      const bool blocks = l->block[0] * l->block[1] > 1;
      const bool beyond_doubles = data == kSpecials || data == kNearTies;
      if (blocks && kDtypes[d] == SPK_F64 && beyond_doubles) continue;
      const int32_t ties[] = {SPK_TIES_BY_POSITION, SPK_TIES_KEEP_ALL};
      for (int64_t t = 0; t < COUNT(ties); ++t) {
        const Options options = {kDtypes[d], (DataKind)data, ties[t], next_random() % 2 == 0,
                                 next_random() % 2 == 0};
        check(l, &options);
      }
    }
  }
}

/* --- layouts ------------------------------------------------------------------------------- */

static void contiguous_scopes_of_every_size(void **state) {
  (void)state;
  for (int64_t m = 1; m <= 33; ++m) {
    /* As many scopes as give whole registers and every kind of rest. */
    const int64_t scopes = 67 + m % 5;
    const Layout l = {{1, scopes * m}, {scopes * m, 1}, kGuard, {1, 1}, {1, m}};
    check_all(&l);
  }
}

static void rows_that_do_not_touch(void **state) {
  (void)state;
  for (int64_t m = 1; m <= 33; ++m) {
    /* Rows of one scope, of some, and so long that they are selected where they lie. */
    const int64_t scopes[] = {1, 2, 21, 1024 / m + 3};
    for (int64_t i = 0; i < COUNT(scopes); ++i) {
      const int64_t cols = scopes[i] * m;
      const int64_t rows = i < 2 ? 37 : 3;
      const Layout l = {{rows, cols}, {cols + 1 + i, 1}, kGuard, {1, 1}, {1, m}};
      check_all(&l);
    }
  }
}

static void scopes_along_a_strided_axis(void **state) {
  (void)state;
  for (int64_t m = 1; m <= 33; ++m) {
    const Layout l = {{2 * m, 101}, {103, 1}, kGuard, {1, 1}, {m, 1}};
    check_all(&l);
  }
  /* Several times as many as are selected together, and a rest. */
  const int64_t sizes[] = {3, 17, 31, 32};
  for (int64_t i = 0; i < COUNT(sizes); ++i) {
    const Layout wide = {{sizes[i], 461}, {467, 1}, kGuard, {1, 1}, {sizes[i], 1}};
    check_all(&wide);
  }
}

/* As many side by side as a register has lanes, fewer, or some more, as along channels of
 * convolutions; with nothing between rows, and with what is not of the view. */
static void scopes_in_short_rows(void **state) {
  (void)state;
  const int64_t widths[] = {8, 9, 16, 25, 49};
  for (int64_t m = 2; m <= 17; ++m) {
    for (int64_t i = 0; i < COUNT(widths); ++i) {
      const int64_t width = widths[i];
      const Layout dense = {{5 * m, width}, {width, 1}, kGuard, {1, 1}, {m, 1}};
      check_all(&dense);
      const Layout apart = {{3 * m, width}, {width + 3, 1}, kGuard, {1, 1}, {m, 1}};
      check_all(&apart);
      const Layout up = {{2 * m, width}, {-width, 1}, kGuard + (2 * m - 1) * width, {1, 1}, {m, 1}};
      check_all(&up);
    }
  }
}

/* 2:4 along the channels of a convolution, a slice of a larger one, that several threads share: of
 * magnitudes that all differ. */
static void convolutions_along_channels(void **state) {
  (void)state;
  enum { kOutputs = 130, kChannels = 64, kPlace = 9, kGap = 2, kAcross = kPlace + kGap };
  enum { kOutput = kChannels * kAcross + 5, kNumel = kOutputs * kOutput };
  static double x[kNumel], kept[kNumel];
  for (int64_t i = 0; i < kNumel; ++i) {
    x[i] = (double)(i * 7919 % 1000003 + 1) * (i % 2 ? 1 : -1);
    kept[i] = x[i];
  }
  char text[64];
  snprintf(text, sizeof text, "(%d,%d,3,3):(%d,%d,3,1)", kOutputs, kChannels, kOutput, kAcross);
  spk_scope *scope = scopes_over(blocks_of(SPK_F64, text, DIMS(1, 1, 1, 1)), DIMS(1, 4, 1, 1));
  const spk_buffer leaf = {kept, kNumel, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  const int64_t count = 2;
  assert_ok(spk_scope_keep_top(NULL, scope, &leaf, NULL, 1, &count, 1, NULL, NULL));
  spk_scope_release(scope);
  for (int64_t i = 0; i < kNumel; ++i) {
    const int64_t in_output = i % kOutput;
    const int64_t channel = in_output / kAcross;
    bool stays = true;
    if (channel < kChannels && in_output % kAcross < kPlace) {
      int64_t above = 0;
      for (int64_t c = 0; c < 4; ++c) {
        above += fabs(x[i + (c - channel % 4) * kAcross]) > fabs(x[i]);
      }
      stays = above < count;
    }
    assert_true(kept[i] == (stays ? x[i] : 0));
  }
}

static void scopes_that_run_backwards(void **state) {
  (void)state;
  for (int64_t m = 2; m <= 32; m += 5) {
    const Layout l = {{2, 70 * m}, {70 * m, -1}, kGuard + 70 * m - 1, {1, 1}, {1, m}};
    check_all(&l);
    const Layout up = {{2 * m, 70}, {-70, 1}, kGuard + (2 * m - 1) * 70, {1, 1}, {m, 1}};
    check_all(&up);
    const Layout left = {{2 * m, 70}, {70, -1}, kGuard + 69, {1, 1}, {m, 1}};
    check_all(&left);
  }
}

static void scopes_of_two_dimensions(void **state) {
  (void)state;
  const int64_t shapes[][2] = {{2, 2}, {3, 5}, {4, 8}, {8, 4}, {16, 2}, {2, 16}};
  for (int64_t i = 0; i < COUNT(shapes); ++i) {
    const int64_t a = shapes[i][0];
    const int64_t b = shapes[i][1];
    const Layout l = {{3 * a, 17 * b}, {17 * b + 2, 1}, kGuard, {1, 1}, {a, b}};
    check_all(&l);
    const Layout transposed = {{3 * a, 17 * b}, {1, 3 * a}, kGuard, {1, 1}, {a, b}};
    check_all(&transposed);
  }
}

/* Lines of scopes are cut together, up to 256 elements; fewer than a line, some and a rest. */
static void scopes_of_dozens(void **state) {
  (void)state;
  const int64_t sizes[] = {34, 47, 64, 100, 200, 256, 257};
  for (int64_t i = 0; i < COUNT(sizes); ++i) {
    const int64_t m = sizes[i];
    const Layout along = {{1, 41 * m}, {41 * m, 1}, kGuard, {1, 1}, {1, m}};
    check_all(&along);
    const Layout rows = {{2, 5 * m}, {5 * m + 3, 1}, kGuard, {1, 1}, {1, m}};
    check_all(&rows);
    const Layout back = {{1, 9 * m}, {9 * m, -1}, kGuard + 9 * m - 1, {1, 1}, {1, m}};
    check_all(&back);
    const int64_t width = m < 200 ? 73 : m < 240 ? 70 : 37;
    const Layout across = {{m, width}, {width + 2, 1}, kGuard, {1, 1}, {m, 1}};
    check_all(&across);
  }
  /* Rows of several lines and a rest. */
  const Layout apart = {{2, 73 * 64}, {73 * 64 + 3, 1}, kGuard, {1, 1}, {1, 64}};
  check_all(&apart);
  const Layout square = {{16, 72}, {75, 1}, kGuard, {1, 1}, {8, 8}};
  check_all(&square);
  const Layout turned = {{15, 72}, {1, 15}, kGuard, {1, 1}, {5, 9}};
  check_all(&turned);
}

/* Read in one layout, written in another; that they are what in place gives is enough here. */
static void scopes_are_kept_elsewhere(void **state) {
  (void)state;
  enum { kGap = 5, kMost = 1 << 14 };
  const struct {
    int64_t rows, cols, scope[2];
  } all[] = {{64, 192, {1, 64}},
             {64, 192, {64, 1}},
             {64, 192, {8, 8}},
             {2, 4160, {1, 65}},
             {36, 9, {4, 1}}};
  for (int64_t i = 0; i < COUNT(all); ++i) {
    const int64_t rows = all[i].rows;
    const int64_t cols = all[i].cols;
    const int64_t numel = rows * cols;
    static float apart[kMost], dense[kMost], into[kMost];
    for (int64_t k = 0; k < numel; ++k) {
      dense[k] = (float)((int64_t)(next_random() % 2001) - 1000);
      apart[k / cols * (cols + kGap) + k % cols] = dense[k];
      into[k] = -7;
    }
    char text[64];
    snprintf(text, sizeof text, "(%d,%d):(%d,1)", (int)rows, (int)cols, (int)(cols + kGap));
    spk_scope *scope = scopes_over(blocks_of(SPK_F32, text, DIMS(1, 1)), 2, all[i].scope);
    const int64_t count = all[i].scope[0] * all[i].scope[1] / 2;
    const spk_buffer to = {into, numel, SPK_F32, SPK_LAYOUT_CONTIGUOUS, NULL};
    const spk_buffer in_place = {dense, numel, SPK_F32, SPK_LAYOUT_CONTIGUOUS, NULL};
    assert_ok(spk_scope_keep_top(NULL, scope, &F32(apart), &to, 1, &count, 1, NULL, NULL));
    assert_ok(spk_scope_keep_top(NULL, scope, &in_place, NULL, 1, &count, 1, NULL, NULL));
    assert_memory_equal(into, dense, (size_t)numel * sizeof(float));
    spk_scope_release(scope);
  }
}

static void scopes_of_small_blocks(void **state) {
  (void)state;
  const int64_t blocks[][2] = {{1, 2}, {1, 4}, {1, 8}, {1, 16}, {2, 1},
                               {2, 2}, {1, 3}, {4, 1}, {16, 1}, {1, 15}};
  const int64_t sizes[] = {2, 4, 7, 8, 16, 32, 33};
  for (int64_t i = 0; i < COUNT(blocks); ++i) {
    for (int64_t k = 0; k < COUNT(sizes); ++k) {
      const int64_t m = sizes[k];
      const int64_t rows = blocks[i][0] * 2;
      const int64_t cols = blocks[i][1] * m * 8;
      const Layout l = {
          {rows, cols}, {cols + (k & 1), 1}, kGuard, {blocks[i][0], blocks[i][1]}, {1, m}};
      check_all(&l);
      const Layout down = {{blocks[i][0] * m, blocks[i][1] * 24},
                           {blocks[i][1] * 24, 1},
                           kGuard,
                           {blocks[i][0], blocks[i][1]},
                           {m, 1}};
      if (m * blocks[i][0] * blocks[i][1] * 24 + kGuard < kCapacity) check_all(&down);
    }
  }
}

/* As many scopes in a row as registers have lanes, and a rest, of whole registers each. */
static void scopes_of_many_neighbouring_small_blocks(void **state) {
  (void)state;
  for (int64_t numel = 2; numel <= 16; numel *= 2) {
    for (int64_t m = 2; m <= 32; ++m) {
      const int64_t cols = numel * m * (numel * m > 256 ? 21 : 37);
      if (numel * m % 8 != 0) continue;
      const int64_t rows = 2 * cols + 2 * kGuard < kCapacity ? 2 : 1;
      const Layout l = {{rows, cols}, {cols + (m & 1), 1}, kGuard, {1, numel}, {1, m}};
      check_all(&l);
    }
  }
}

/* Results in other places than what they are of, their rows in other steps. */
static void small_blocks_are_selected_into_other_steps(void **state) {
  (void)state;
  enum { kBlocks = 16, kCols = 2 * kBlocks * 18, kStep = kCols + 6, kRows = 3 };
  static float x[kRows * kStep], in_place[kRows * kStep], into[kRows * kCols];
  for (int64_t i = 0; i < COUNT(x); ++i) x[i] = (float)(next_random() % 100000);
  memcpy(in_place, x, sizeof x);
  const int64_t count = 5;
  char text[64];
  snprintf(text, sizeof text, "(%d,%d):(%d,1)", kRows, kCols, kStep);
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, text, DIMS(1, 2)), DIMS(1, kBlocks));
  const spk_buffer from = F32(x);
  const spk_buffer to = {into, COUNT(into), SPK_F32, SPK_LAYOUT_CONTIGUOUS, NULL};
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(in_place), NULL, 1, &count, 1, NULL, NULL));
  assert_ok(spk_scope_keep_top(NULL, scope, &from, &to, 1, &count, 1, NULL, NULL));
  spk_scope_release(scope);
  int64_t kept = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kCols; ++c) {
      assert_true(into[r * kCols + c] == in_place[r * kStep + c]);
      kept += into[r * kCols + c] != 0;
    }
  }
  assert_in_range(kept, 1, kRows * kCols * count / kBlocks);
}

/* Scopes of `blocks` pairs of zeros but for one pair, whose square is 0 in doubles. */
static void check_small_block(int blocks) {
  enum { kScopes = 21, kMostElements = 32 };
  const int64_t count = 1;
  const int elements = 2 * blocks;
  for (int at = 0; at < elements; ++at) {
    double x[kScopes * kMostElements] = {0};
    x[5 * elements + at] = -0x1p-600;
    char text[64];
    snprintf(text, sizeof text, "(%d,%d)", kScopes, elements);
    spk_scope *scope = scopes_over(blocks_of(SPK_F64, text, DIMS(1, 2)), DIMS(1, blocks));
    const spk_buffer leaf = {x, kScopes * elements, SPK_F64, SPK_LAYOUT_VIEW, NULL};
    spk_report report = {sizeof(spk_report), -7, -7, -7, -7, -7};
    assert_ok(spk_scope_keep_top(NULL, scope, &leaf, NULL, 1, &count, 1, NULL, &report));
    spk_scope_release(scope);
    for (int i = 0; i < kScopes * elements; ++i) {
      assert_true(x[i] == (i == 5 * elements + at ? -0x1p-600 : 0));
    }
    assert_i64(&report.total, blocks * kScopes, kScopes, kScopes, blocks * (kScopes - 1));
  }
}

static void a_small_block_stays_before_zeros(void **state) {
  (void)state;
  check_small_block(4);
  check_small_block(8);
  check_small_block(16);
}

/* So many that a doubt divides them. */
static void many_scopes_of_small_blocks(void **state) {
  (void)state;
  const int64_t sizes[][2] = {{2, 4}, {2, 8}, {4, 4}, {2, 6}}; /* elements, and blocks of a scope */
  for (int64_t i = 0; i < COUNT(sizes); ++i) {
    const int64_t scope = sizes[i][0] * sizes[i][1];
    const Layout l = {
        {2, 300 * scope}, {300 * scope, 1}, kGuard, {1, sizes[i][0]}, {1, sizes[i][1]}};
    check_all(&l);
    const Layout down = {{sizes[i][0], 600 * sizes[i][1]},
                         {600 * sizes[i][1], 1},
                         kGuard,
                         {sizes[i][0], 1},
                         {1, sizes[i][1]}};
    check_all(&down);
  }
}

static void scopes_of_blocks_in_rows_of_eight(void **state) {
  (void)state;
  for (int64_t high = 2; high <= 4; ++high) {
    for (int64_t m = 2; m <= 8; m *= 2) {
      const Layout l = {{high * 37, 8}, {11, 1}, kGuard, {high, 1}, {1, m}};
      check_all(&l);
    }
  }
}

/* Norms that differ by less than floats can tell are tied, however their squares differ. */
static void scores_that_round_to_the_same_float_are_tied(void **state) {
  (void)state;
  float x[32];
  for (int64_t i = 0; i < COUNT(x); i += 4) {
    x[i] = 1;
    x[i + 1] = 0x1p-13f;
    x[i + 2] = 1;
    x[i + 3] = 0x1p-12f;
  }
  const int64_t count = 1;
  spk_report report = {sizeof(spk_report), -7, -7, -7, -7, -7};
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(32)", DIMS(2)), DIMS(2));
  assert_ok(spk_scope_keep_top(NULL, scope, &F32(x), NULL, 1, &count, 1, NULL, &report));
  spk_scope_release(scope);
  for (int64_t i = 0; i < COUNT(x); i += 4) assert_f32(x + i, 1, 0x1p-13f, 0, 0);
  assert_i64(&report.total, 16, 8, 8, 16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(contiguous_scopes_of_every_size),
      TEST(rows_that_do_not_touch),
      TEST(scopes_along_a_strided_axis),
      TEST(scopes_in_short_rows),
      TEST(convolutions_along_channels),
      TEST(scopes_that_run_backwards),
      TEST(scopes_of_two_dimensions),
      TEST(scopes_of_dozens),
      TEST(scopes_are_kept_elsewhere),
      TEST(scopes_of_small_blocks),
      TEST(scopes_of_many_neighbouring_small_blocks),
      TEST(small_blocks_are_selected_into_other_steps),
      TEST(a_small_block_stays_before_zeros),
      TEST(many_scopes_of_small_blocks),
      TEST(scopes_of_blocks_in_rows_of_eight),
      TEST(scores_that_round_to_the_same_float_are_tied),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
