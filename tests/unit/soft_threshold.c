/* Soft thresholding, Euclidean and conditioned, of blocks and of scopes. */
#include <float.h>
#include <stdlib.h>

#include "support.h"

static spk_soft_options without_eps(void) {
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = 0;
  return options;
}

/* As exact as it gets, in the metric of `conditioners`. */
static spk_soft_options exact_in(const spk_buffer *conditioners) {
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.conditioners = conditioners;
  options.atol = 0;
  return options;
}

/* Shrinks one block that is all of a buffer. */
static spk_status shrink(spk_buffer weights, double threshold, const spk_soft_options *options,
                         spk_report *report) {
  const int64_t span = 0;
  spk_view *view = NULL;
  spk_block *block = NULL;
  assert_ok(spk_view_create(weights.dtype, 1, &weights.numel, NULL, 0, &view));
  assert_ok(spk_block_create(view, 1, &span, NULL, &block));
  double thresholds[] = {threshold};
  const spk_status status =
      spk_block_soft_threshold(NULL, block, &weights, NULL, 1, &F64(thresholds), options, report);
  spk_block_release(block);
  spk_view_release(view);
  return status;
}

/* --- Euclidean ----------------------------------------------------------------------------- */

static void blocks_shrink_towards_zero(void **state) {
  (void)state;
  const spk_soft_options options = without_eps();
  double x[] = {3, -4};
  assert_ok(shrink(F64(x), 2.5, &options, NULL));
  assert_f64(x, 1.5, -2);
  float y[] = {3, -4};
  assert_ok(shrink(F32(y), 1, &options, NULL));
  assert_f32(y, 2.4f, -3.2f);
  float single[] = {-3};
  assert_ok(shrink(F32(single), 0.5, &options, NULL));
  assert_f32(single, -2.5f);
}

static void blocks_up_to_the_threshold_become_plus_zero(void **state) {
  (void)state;
  const spk_soft_options options = without_eps();
  float equal[] = {3, -4, -0.0f};
  assert_ok(shrink(F32(equal), 5, &options, NULL));
  assert_f32(equal, 0, 0, 0);
  float below[] = {3, -4};
  assert_ok(shrink(F32(below), 5.5, NULL, NULL));
  assert_f32(below, 0, 0);
  float zero[] = {-0.0f, 0};
  assert_ok(shrink(F32(zero), 0, NULL, NULL));
  assert_f32(zero, 0, 0);
}

static void eps_widens_the_denominator(void **state) {
  (void)state;
  spk_soft_options options = without_eps();
  options.eps = 5;
  double x[] = {3, -4};
  assert_ok(shrink(F64(x), 2.5, &options, NULL));
  assert_f64(x, 2.25, -3);
}

/* norm + eps leaves the range of double; the factor is 1 all the same. */
static void a_huge_eps_shrinks_nothing(void **state) {
  (void)state;
  spk_soft_options options = without_eps();
  options.eps = DBL_MAX;
  double x[] = {3, -4, 0};
  assert_ok(shrink(F64(x), 1, &options, NULL));
  assert_f64(x, 3, -4, 0);
  double dead[] = {3, -4};
  assert_ok(shrink(F64(dead), 5, &options, NULL));
  assert_f64(dead, 0, 0);
  /* 1 - t / (norm + eps) = 1 - 1 / 4 with all of them near the end of the range. */
  double huge[] = {DBL_MAX, 0};
  assert_ok(shrink(F64(huge), DBL_MAX / 2, &options, NULL));
  assert_f64(huge, DBL_MAX / 4 * 3, 0);
}

static void eps_is_the_machine_epsilon_of_the_score_dtype(void **state) {
  (void)state;
  /* t = eps = |x| / 2: x (1 - t / (|x| + eps)) = 2/3 x. */
  float x[] = {0x1p-22f};
  assert_ok(shrink(F32(x), 0x1p-23, NULL, NULL));
  assert_f32(x, (float)(0x1p-22 * 2 / 3));
  double y[] = {0x1p-51};
  assert_ok(shrink(F64(y), 0x1p-52, NULL, NULL));
  assert_near(y[0], 0x1p-51 * 2 / 3, 0x1p-103);
  uint16_t half[] = {0x0002}; /* 2^-23: t = 2^-24 and eps = 2^-23 give 3/4 of it, a tie */
  assert_ok(shrink(F16(half), 0x1p-24, NULL, NULL));
  assert_words(half, 0x0002);
}

static void results_are_rounded_once_to_16_bits(void **state) {
  (void)state;
  const spk_soft_options options = without_eps();
  uint16_t half[] = {0x4200, 0xc400}; /* 3, -4 become 2.4 and -3.2 */
  assert_ok(shrink(F16(half), 1, &options, NULL));
  assert_words(half, 0x40cd, 0xc266);
  uint16_t brain[] = {0x4040, 0xc080};
  assert_ok(shrink(BF16(brain), 1, &options, NULL));
  assert_words(brain, 0x401a, 0xc04d);
}

static void nan_and_infinite_norms(void **state) {
  (void)state;
  const double thresholds[] = {0, 1, INFINITY};
  for (int64_t i = 0; i < COUNT(thresholds); ++i) {
    /* A payload that must survive. */
    float x[] = {float_of(0x7f800123), -1};
    assert_ok(shrink(F32(x), thresholds[i], NULL, NULL));
    assert_int_equal(bits_of(x[0]), 0x7f800123);
    assert_f32(x + 1, -1);
  }
  float infinite[] = {-INFINITY, 1};
  assert_ok(shrink(F32(infinite), 1e30, NULL, NULL));
  assert_f32(infinite, -INFINITY, 1);
  assert_ok(shrink(F32(infinite), INFINITY, NULL, NULL));
  assert_f32(infinite, 0, 0);
  double overflowing[] = {DBL_MAX, -DBL_MAX};
  assert_ok(shrink(F64(overflowing), DBL_MAX, NULL, NULL));
  assert_f64(overflowing, DBL_MAX, -DBL_MAX);
  float x[] = {3, 4};
  assert_ok(shrink(F32(x), INFINITY, NULL, NULL));
  assert_f32(x, 0, 0);
}

/* What is rare is done elsewhere, together with its usual neighbours. */
static void unusual_elements_among_usual_ones(void **state) {
  (void)state;
  const spk_soft_options options = without_eps();
  enum { kMany = 41 };
  for (int at = 0; at < kMany; ++at) {
    float x[kMany];
    float thresholds[kMany];
    for (int i = 0; i < kMany; ++i) x[i] = i % 2 ? -8 : 4;
    for (int i = 0; i < kMany; ++i) thresholds[i] = i % 3 ? 1 : 5;
    const uint32_t unusual[] = {0x7f800123, 0xff800000, 0x80000000}; /* NaN, -infinity, -0 */
    x[at] = float_of(unusual[at % 3]);
    spk_block *block = blocks_of(SPK_F32, "(41)", NO_DIMS);
    assert_ok(
        spk_block_soft_threshold(NULL, block, &F32(x), NULL, 1, &F32(thresholds), &options, NULL));
    for (int i = 0; i < kMany; ++i) {
      const float large = i % 3 ? -7 : -3;
      const float small = i % 3 ? 3 : 0;
      if (i != at) assert_f32(x + i, i % 2 ? large : small);
    }
    assert_int_equal(bits_of(x[at]), at % 3 == 2 ? 0 : unusual[at % 3]);
    spk_block_release(block);
  }
}

static void unusual_pairs_among_usual_ones(void **state) {
  (void)state;
  const spk_soft_options options = without_eps();
  enum { kPairs = 32 };
  const uint32_t unusual[] = {0x7f800123, 0xff800000};
  for (int at = 0; at < kPairs; ++at) {
    /* Pairs are 8 elements apart; (3, -4) times 1/2, times 0, and so on. */
    float x[2 * kPairs];
    float thresholds[kPairs];
    for (int i = 0; i < 2 * kPairs; ++i) x[i] = i % 16 < 8 ? 3 : -4;
    for (int i = 0; i < kPairs; ++i) thresholds[i] = i % 2 ? 2.5f : 5;
    const int first = at / 8 * 16 + at % 8;
    x[first] = float_of(unusual[at % 2]);
    spk_block *block = blocks_of(SPK_F32, "(4,8,2):(16,1,8)", DIMS(1, 1, 2));
    spk_report report = {sizeof report, 0, 0, 0, 0, 0};
    assert_ok(spk_block_soft_threshold(NULL, block, &F32(x), NULL, 1, &F32(thresholds), &options,
                                       &report));
    for (int i = 0; i < kPairs; ++i) {
      const int element = i / 8 * 16 + i % 8;
      if (i == at) continue;
      assert_f32(x + element, i % 2 ? 1.5f : 0);
      assert_f32(x + element + 8, i % 2 ? -2 : 0);
    }
    assert_int_equal(bits_of(x[first]), unusual[at % 2]);
    assert_f32(x + first + 8, -4);
    assert_int_equal(report.achieved, kPairs / 2 + (at % 2 == 0)); /* and the unusual one */
    spk_block_release(block);
  }
}

/* --- roots of pairs ------------------------------------------------------------------------ */

/* Two floats, the sum of whose squares, as a double, has a root very near the middle of two
 * doubles, where roots are hardest to round. With m the middle in halves of the last place, an odd
 * number, m * m differs from the sum by some c of its last bit, where m * m = c modulo 2^54 (or 2^55);
 * these have the least c, from 1 to 281, of those that are sums of squares of floats. */
static const float kHardest[][2] = {
    {0x1p0f, 0x1p-26f},
    {0x1.a58afap0f, 0x1.03f988p-4f},
    {0x1p0f, 0x1.bb67aep-26f},
    {0x1.1489ecp0f, 0x1.12ab7ep-5f},
    {0x1.fffffep0f, 0x1.6a09e6p-11f},
    {0x1p0f, 0x1.1e377ap-25f},
    {0x1p0f, 0x1.52a7fap-25f},
    {0x1.784094p0f, 0x1.c60f34p-3f},
    {0x1.39d0b6p0f, 0x1.5784c2p-9f},
    {0x1p0f, 0x1.8p-25f},
    {0x1p0f, 0x1.a8872ap-25f},
    {0x1.a1a48cp0f, 0x1.838258p-7f},
    {0x1p0f, 0x1.cd82b4p-25f},
    {0x1.3d3eecp0f, 0x1.283656p-6f},
    {0x1.95ff68p0f, 0x1.3ad96p-15f},
    {0x1.722dfcp0f, 0x1.6acc9cp-11f},
};

enum { kRoots = 4096, kHardRoots = 1024 };

/* Numbers from 0 to 1, of 24 bits. */
static float next_number(uint32_t *random) {
  *random = *random * 1664525u + 1013904223u;
  return (float)(*random >> 8) * 0x1p-24f;
}

/* The hardest pairs, times powers of two, and any others, zeros among them. */
static void fill_pair(int b, uint32_t *random, float *first, float *second) {
  if (b < kHardRoots) {
    const float *pair = kHardest[b % COUNT(kHardest)];
    const int exponent = (b / (int)COUNT(kHardest) * 3 - 96) / 2;
    *first = ldexpf(pair[0], exponent);
    *second = -ldexpf(pair[1], exponent);
  } else if (b % 100 == 0) {
    *first = *second = 0;
  } else {
    *first = next_number(random);
    *second = ldexpf(next_number(random), -(b % 16));
  }
}

/* Pairs, `run` of which lie `apart` from each other, then the next ones `step` further on. */
typedef struct {
  const char *view;
  int32_t ndim;
  int64_t block[3];
  int run, apart, step, second;
} pairs;

static const pairs kPairLayouts[] = {
    {"(512,8,2):(16,1,8)", 3, {1, 1, 2}, 8, 1, 16, 8},
    {"(2,4096)", 2, {2, 1}, kRoots, 1, 0, kRoots},
    {"(4096,2)", 2, {1, 2}, kRoots, 2, 0, 1},
};

/* A block dies at the very root of its sum of squares, as a double, and lives just below it. The
 * oracle is sqrt: IEEE 754 says which double that is. */
static void blocks_die_at_the_root_of_their_squares(void **state) {
  (void)state;
  static float x[2 * kRoots];
  static double thresholds[kRoots];
  static bool lives[kRoots];
  const spk_soft_options options = without_eps();
  for (int64_t l = 0; l < COUNT(kPairLayouts); ++l) {
    const pairs *layout = &kPairLayouts[l];
    uint32_t random = 1;
    int64_t count = 0;
    for (int b = 0; b < kRoots; ++b) {
      float *first = x + b / layout->run * layout->step + b % layout->run * layout->apart;
      fill_pair(b, &random, first, first + layout->second);
      const double squares[] = {(double)first[0] * first[0],
                                (double)first[layout->second] * first[layout->second]};
      const double root = sqrt(squares[0] + squares[1]);
      /* Either one for each of the hardest pairs, which come round after an even number. */
      const bool at_root = (b + b / COUNT(kHardest)) % 2 == 0;
      thresholds[b] = at_root ? root : nextafter(root, 0);
      lives[b] = thresholds[b] < root;
      count += lives[b];
    }
    spk_block *block = blocks_of(SPK_F32, layout->view, layout->ndim, layout->block);
    spk_report report = {sizeof report, 0, 0, 0, 0, 0};
    assert_ok(spk_block_soft_threshold(NULL, block, &F32(x), NULL, 1, &F64(thresholds), &options,
                                       &report));
    assert_int_equal(report.achieved, count);
    for (int b = 0; b < kRoots; ++b) {
      const float *first = x + b / layout->run * layout->step + b % layout->run * layout->apart;
      assert_true((first[0] != 0) == lives[b]);
    }
    spk_block_release(block);
  }
}

/* Rows of doubles, the norm of each of which is 5 times 2^exponent, unless it is 0, infinite or
 * NaN. */
static void check_rows_of_doubles(int numel, int exponent, bool in_place) {
  enum { kRows = 42, kMost = kRows * 300 };
  static double x[kMost];
  static double was[kMost];
  static double into[kMost];
  double thresholds[kRows];
  double factors[kRows];
  const spk_soft_options options = without_eps();
  const double norm = ldexp(5, exponent);
  memset(x, 0, sizeof x);
  for (int r = 0; r < kRows; ++r) {
    const double large = ldexp(-4, exponent);
    const double elements[] = {large, large, large, 0, -INFINITY, large, NAN};
    const double shares[] = {0.5, 0.25, 1, 0};
    thresholds[r] = shares[r % 4] * norm;
    const double factor = 1 - shares[r % 4];
    const double by_kind[] = {factor, factor, factor, 0, 1, factor, 1};
    factors[r] = by_kind[r % 7];
    x[r * numel + numel - 1] = elements[r % 7];
    if (r % 7 != 3) x[r * numel + r] = ldexp(3, exponent);
  }
  memcpy(was, x, sizeof x);
  char view[32];
  snprintf(view, sizeof view, "(%d,%d)", kRows, numel);
  spk_block *block = blocks_of(SPK_F64, view, DIMS(1, numel));
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  assert_ok(spk_block_soft_threshold(NULL, block, &F64(x), in_place ? NULL : &F64(into), 1,
                                     &F64(thresholds), &options, &report));
  int alive = 0;
  for (int r = 0; r < kRows; ++r) {
    alive += factors[r] != 0;
    for (int i = r * numel; i < (r + 1) * numel; ++i) {
      const double got[] = {in_place ? x[i] : into[i]};
      assert_f64(got, factors[r] == 0 ? 0 : was[i] * factors[r]);
    }
  }
  assert_int_equal(report.achieved, alive);
  spk_block_release(block);
}

static void rows_of_doubles(void **state) {
  (void)state;
  const int numels[] = {44, 64, 100, 128, 256, 300};
  /* From the least numbers of which quarters are numbers, too, to the largest norm; their squares
   * are in the range of double, or beyond it. */
  const int exponents[] = {-1072, -1022, -512, -451, -449, -400, 0, 400, 447, 451, 511, 1020};
  for (int64_t n = 0; n < COUNT(numels); ++n) {
    for (int64_t e = 0; e < COUNT(exponents); ++e) {
      check_rows_of_doubles(numels[n], exponents[e], true);
      check_rows_of_doubles(numels[n], exponents[e], false);
    }
  }
}

/* Rows of doubles of any bits, the norms of which lie around 2^exponent, in place and into rows at
 * another distance, where norms are computed as spk_block_norms does. */
static void rows_of_doubles_by_another_way(void **state) {
  (void)state;
  enum { kRows = 40, kNumel = 96, kFar = 100 };
  static double x[kRows * kNumel];
  static double apart[kRows * kFar];
  double norms[kRows];
  double thresholds[kRows];
  const spk_soft_options options = without_eps();
  spk_block *block = blocks_of(SPK_F64, "(40,96)", DIMS(1, kNumel));
  const int64_t shape[] = {kRows, kNumel};
  const int64_t stride[] = {kFar, 1};
  spk_view *view = NULL;
  assert_ok(spk_view_create(SPK_F64, 2, shape, stride, 0, &view));
  const spk_buffer into = OWN(apart, SPK_F64, view);
  uint32_t random = 1;
  for (int exponent = -1030; exponent <= 1010; exponent += 10) {
    for (int i = 0; i < kRows * kNumel; ++i) {
      random = random * 1664525u + 1013904223u;
      /* Neighbours on either side of where squares are safe. */
      x[i] = ldexp(1 + random * 0x1p-32, exponent + i / kNumel % 2 * 8);
    }
    assert_ok(spk_block_norms(NULL, block, &F64(x), 1, 2, &F64(norms)));
    for (int r = 0; r < kRows; ++r) thresholds[r] = norms[r] * (r % 3 ? 0.3 : 1);
    assert_ok(
        spk_block_soft_threshold(NULL, block, &F64(x), &into, 1, &F64(thresholds), &options, NULL));
    assert_ok(
        spk_block_soft_threshold(NULL, block, &F64(x), NULL, 1, &F64(thresholds), &options, NULL));
    for (int r = 0; r < kRows; ++r) {
      assert_memory_equal(x + r * kNumel, apart + r * kFar, kNumel * sizeof *x);
      assert_true((x[r * kNumel] == 0) == (r % 3 == 0));
    }
  }
  spk_view_release(view);
  spk_block_release(block);
}

static void a_threshold_of_zero_leaves_blocks_as_they_are(void **state) {
  (void)state;
  float x[] = {0.1f, -0.0f, 1e-45f};
  assert_ok(shrink(F32(x), 0, NULL, NULL));
  assert_f32(x, 0.1f, -0.0f, 1e-45f);
}

static void scale_multiplies_thresholds_by_the_root_of_the_block_size(void **state) {
  (void)state;
  spk_soft_options options = without_eps();
  options.scale = 1;
  float x[] = {1, -1, 1, 1};
  assert_ok(shrink(F32(x), 0.5, &options, NULL));
  assert_f32(x, 0.5f, -0.5f, 0.5f, 0.5f);
}

static void every_block_has_its_threshold_and_into_its_result(void **state) {
  (void)state;
  const spk_soft_options options = without_eps();
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  float x[] = {3, 4, 6, 8, NAN, 1};
  float into[] = {-1, -1, -1, -1, -1, -1};
  float thresholds[] = {2.5f, 10, 1};
  spk_block *block = blocks_of(SPK_F32, "(6)", DIMS(2));
  assert_ok(spk_block_soft_threshold(NULL, block, &F32(x), &F32(into), 1, &F32(thresholds),
                                     &options, &report));
  assert_f32(x, 3, 4, 6, 8, NAN, 1);
  assert_f32(into, 1.5f, 2, 0, 0, NAN, 1);
  assert_i64(&report.total, 3, -1, 2, 0, 0);
  spk_block_release(block);
}

static void couplings_shrink_by_their_common_norm(void **state) {
  (void)state;
  const spk_soft_options options = without_eps();
  float x[] = {3};
  double y[] = {4};
  float thresholds[] = {2.5f};
  const spk_buffer leaves[] = {F32(x), F64(y)};
  spk_block *block =
      coupled_blocks(blocks_of(SPK_F32, "(1)", NO_DIMS), blocks_of(SPK_F64, "(1)", NO_DIMS), NULL);
  assert_ok(
      spk_block_soft_threshold(NULL, block, leaves, NULL, 2, &F32(thresholds), &options, NULL));
  assert_f32(x, 1.5f);
  assert_f64(y, 2);
  spk_block_release(block);
}

static void large_blocks_shrink(void **state) {
  (void)state;
  const spk_soft_options options = without_eps();
  static float x[70000];
  for (int i = 0; i < 70000; ++i) x[i] = i % 2 ? 1 : -1;
  assert_ok(shrink(F32(x), sqrt(70000.0) / 2, &options, NULL));
  for (int i = 0; i < 70000; ++i) assert_f32(x + i, i % 2 ? 0.5f : -0.5f);
}

/* A matrix of 4 x 4 blocks of 512 x 512. Elements of one are 1, 2 or 4, so that its norm is 512
 * times as much; thresholds are 512 times 1 or 2. */
enum { kSide = 512, kAcross = 4, kRow = kAcross * kSide, kLargeBlocks = kAcross * kAcross };

static float sign_at(int r, int c) {
  return (r + c) % 2 ? -1.0f : 1.0f;
}
static int value_of_block(int b) {
  return 1 << b % 3;
}
static int cut_of_block(int b) {
  return 1 + b / 5 % 2;
}
static float left_of_block(int b) {
  return fmaxf((float)(value_of_block(b) - cut_of_block(b)), 0);
}

static void fill_blocks(float *x) {
  for (int r = 0; r < kRow; ++r) {
    for (int c = 0; c < kRow; ++c) {
      const int b = r / kSide * kAcross + c / kSide;
      x[r * kRow + c] = sign_at(r, c) * (float)value_of_block(b);
    }
  }
}

static void assert_blocks_shrunk(const float *x) {
  for (int r = 0; r < kRow; ++r) {
    for (int c = 0; c < kRow; ++c) {
      const int b = r / kSide * kAcross + c / kSide;
      if (x[r * kRow + c] != sign_at(r, c) * left_of_block(b)) fail();
    }
  }
}

static void many_large_blocks_shrink_by_their_own_thresholds(void **state) {
  (void)state;
  const spk_soft_options options = without_eps();
  float *x = malloc(sizeof(float) * kRow * kRow);
  float *y = malloc(sizeof(float) * kRow * kRow);
  const spk_buffer leaf = {x, kRow * kRow, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer into = {y, kRow * kRow, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  float thresholds[kLargeBlocks];
  int alive = 0;
  for (int b = 0; b < kLargeBlocks; ++b) {
    thresholds[b] = (float)(kSide * cut_of_block(b));
    alive += left_of_block(b) > 0;
  }
  spk_block *block = blocks_of(SPK_F32, "(2048,2048)", DIMS(kSide, kSide));
  for (int threads = 1; threads <= 5; threads += 2) {
    const spk_context_options of_context = {.struct_size = sizeof of_context, .threads = threads};
    spk_context *context = NULL;
    assert_ok(spk_context_create(&of_context, &context));
    fill_blocks(x);
    spk_report report = {sizeof report, 0, 0, 0, 0, 0};
    const bool elsewhere = threads == 1;
    assert_ok(spk_block_soft_threshold(context, block, &leaf, elsewhere ? &into : NULL, 1,
                                       &F32(thresholds), &options, &report));
    assert_blocks_shrunk(elsewhere ? y : x);
    assert_i64(&report.total, kLargeBlocks, -1, alive, 0, 0);
    spk_context_release(context);
  }
  spk_block_release(block);
  free(x);
  free(y);
}

/* --- scopes -------------------------------------------------------------------------------- */

/* Two scopes of one block each per member: blocks of 4 and of 16 ones. */
static spk_scope *fours_and_sixteens(void) {
  return coupled_scopes(scopes_over(blocks_of(SPK_F32, "(8)", DIMS(4)), DIMS(1)),
                        scopes_over(blocks_of(SPK_F32, "(32)", DIMS(16)), DIMS(1)), NULL);
}

static void scopes_scale_by_the_block_size_of_each_member(void **state) {
  (void)state;
  float x[8];
  float y[32];
  for (int i = 0; i < 8; ++i) x[i] = 1;
  for (int i = 0; i < 32; ++i) y[i] = 1;
  float thresholds[] = {0.25f, INFINITY};
  const spk_buffer leaves[] = {F32(x), F32(y)};
  spk_soft_options options = without_eps();
  options.scale = 1;
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  spk_scope *scope = fours_and_sixteens();
  /* 1 - 0.25 * 2 / 2 = 1 - 0.25 * 4 / 4. */
  assert_ok(
      spk_scope_soft_threshold(NULL, scope, leaves, NULL, 2, &F32(thresholds), &options, &report));
  assert_f32(x, 0.75f, 0.75f, 0.75f, 0.75f, 0, 0, 0, 0);
  for (int i = 0; i < 32; ++i) assert_f32(y + i, i < 16 ? 0.75f : 0);
  assert_i64(&report.total, 4, -1, 2, 0, 0);
  spk_scope_release(scope);
}

static void scopes_without_scale_use_thresholds_as_they_are(void **state) {
  (void)state;
  float x[8];
  float y[32];
  for (int i = 0; i < 8; ++i) x[i] = 1;
  for (int i = 0; i < 32; ++i) y[i] = 1;
  double thresholds[] = {0.25};
  const spk_buffer leaves[] = {F32(x), F32(y)};
  const spk_soft_options options = without_eps();
  spk_scope *scope = fours_and_sixteens();
  assert_ok(
      spk_scope_soft_threshold(NULL, scope, leaves, NULL, 2, &F64(thresholds), &options, NULL));
  for (int i = 0; i < 8; ++i) assert_f32(x + i, 1 - 0.25f / 2);
  for (int i = 0; i < 32; ++i) assert_f32(y + i, 1 - 0.25f / 4);
  spk_scope_release(scope);
}

/* --- conditioned --------------------------------------------------------------------------- */

/* x = h w / (h + mu) has the root mu in every element; w is 1. */
static void check_root(const double *x, const double *h, int64_t count, double mu, double error) {
  for (int64_t i = 0; i < count; ++i) assert_near(h[i] / x[i] - h[i], mu, error);
}

static void published_roots(void **state) {
  (void)state;
  double h1[] = {0.25, 0.5, 1, 2};
  const spk_buffer conditioners1 = F64(h1);
  spk_soft_options options = exact_in(&conditioners1);
  double x[] = {1, 1, 1, 1};
  assert_ok(shrink(F64(x), 1, &options, NULL));
  check_root(x, h1, 4, 1.1691705341, 6e-11);

  /* Published as 0.49671415, 0.1382643, 0.64768854, 1.52302986, which has the root 1.6383774167. */
  double h2[] = {0.4967141530112327, 0.13826430117118466, 0.6476885381006925, 1.5230298564080254};
  const spk_buffer conditioners2 = F64(h2);
  options = exact_in(&conditioners2);
  double y[] = {1, 1, 1, 1};
  assert_ok(shrink(F64(y), 1, &options, NULL));
  check_root(y, h2, 4, 1.6383774184, 6e-11);
}

static void the_default_tolerance_finds_the_published_root(void **state) {
  (void)state;
  double h[] = {0.25, 0.5, 1, 2};
  const spk_buffer conditioners = F64(h);
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.conditioners = &conditioners;
  double x[] = {1, 1, 1, 1};
  assert_ok(shrink(F64(x), 1, &options, NULL));
  check_root(x, h, 4, 1.1691705341, 4e-8);
}

static void a_constant_metric_has_a_closed_form(void **state) {
  (void)state;
  /* x = w (1 - t / (h |w|)). */
  double h[] = {2, 2};
  const spk_buffer conditioners = F64(h);
  const spk_soft_options options = exact_in(&conditioners);
  double x[] = {3, -4};
  assert_ok(shrink(F64(x), 5, &options, NULL));
  assert_near(x[0], 1.5, 4 * DBL_EPSILON);
  assert_near(x[1], -2, 8 * DBL_EPSILON);
}

static void single_elements_shrink_by_t_over_h(void **state) {
  (void)state;
  double w[] = {3, -3, 0.5, -0.5, -0.0, 1e300, INFINITY, NAN};
  double h[] = {2, 2, 2, 1.5, 1, 1e-5, 1, 1};
  float thresholds[] = {1};
  const spk_buffer conditioners = F64(h);
  const spk_soft_options options = exact_in(&conditioners);
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  spk_block *block = blocks_of(SPK_F64, "(8)", NO_DIMS);
  assert_ok(
      spk_block_soft_threshold(NULL, block, &F64(w), NULL, 1, &F32(thresholds), &options, &report));
  assert_f64(w, 2.5, -2.5, 0, 0, 0, 1e300, INFINITY, NAN);
  assert_i64(&report.total, 8, -1, 5, 0, 0);
  spk_block_release(block);
}

static void blocks_up_to_the_threshold_in_their_metric_die(void **state) {
  (void)state;
  /* |h w| = 5. */
  float h[] = {0.5f, 4};
  const spk_buffer conditioners = F32(h);
  const spk_soft_options options = exact_in(&conditioners);
  float equal[] = {6, -1};
  assert_ok(shrink(F32(equal), 5, &options, NULL));
  assert_f32(equal, 0, 0);
  float above[] = {6, -1};
  assert_ok(shrink(F32(above), 4.99, &options, NULL));
  assert_true(above[0] > 0 && above[1] < 0);
  float zero[] = {-0.0f, 0};
  assert_ok(shrink(F32(zero), 1, &options, NULL));
  assert_f32(zero, 0, 0);
}

static void special_values_in_a_metric(void **state) {
  (void)state;
  float h[] = {1, 2};
  const spk_buffer conditioners = F32(h);
  const spk_soft_options options = exact_in(&conditioners);
  const double thresholds[] = {0, 1, INFINITY};
  for (int64_t i = 0; i < COUNT(thresholds); ++i) {
    float x[] = {float_of(0x7f800123), INFINITY};
    assert_ok(shrink(F32(x), thresholds[i], &options, NULL));
    assert_int_equal(bits_of(x[0]), 0x7f800123);
    assert_f32(x + 1, INFINITY);
  }
  float infinite[] = {-INFINITY, 1};
  assert_ok(shrink(F32(infinite), 1e30, &options, NULL));
  assert_f32(infinite, -INFINITY, 1);
  assert_ok(shrink(F32(infinite), INFINITY, &options, NULL));
  assert_f32(infinite, 0, 0);
  /* A threshold of zero changes nothing, not even the sign of zeros. */
  float x[] = {-0.0f, 1e-45f};
  assert_ok(shrink(F32(x), 0, &options, NULL));
  assert_f32(x, -0.0f, 1e-45f);
  float zeros[] = {-0.0f, -0.0f};
  assert_ok(shrink(F32(zeros), 0, &options, NULL));
  assert_f32(zeros, -0.0f, -0.0f);
}

static void eps_plays_no_part_in_a_metric(void **state) {
  (void)state;
  double h[] = {1, 1};
  const spk_buffer conditioners = F64(h);
  spk_soft_options options = exact_in(&conditioners);
  options.eps = 1000;
  double x[] = {3, 4};
  assert_ok(shrink(F64(x), 2.5, &options, NULL));
  assert_near(x[0], 1.5, 4 * DBL_EPSILON);
  assert_near(x[1], 2, 4 * DBL_EPSILON);
}

static void metrics_may_have_any_dtype_and_layout(void **state) {
  (void)state;
  uint16_t half[] = {0x4000, 0x4000}; /* 2, 2 */
  const spk_buffer conditioners[] = {F16(half), CONTIGUOUS(half, SPK_BF16)};
  for (int64_t i = 0; i < COUNT(conditioners); ++i) {
    const spk_soft_options options = exact_in(&conditioners[i]);
    float x[] = {3, -4};
    assert_ok(shrink(F32(x), 5, &options, NULL));
    assert_f32(x, 1.5f, -2);
  }
}

static void results_in_a_metric_are_rounded_once(void **state) {
  (void)state;
  float h[] = {1, 1};
  const spk_buffer conditioners = F32(h);
  const spk_soft_options options = exact_in(&conditioners);
  uint16_t half[] = {0x4200, 0xc400};
  assert_ok(shrink(F16(half), 1, &options, NULL));
  assert_words(half, 0x40cd, 0xc266);
  uint16_t brain[] = {0x4040, 0xc080};
  assert_ok(shrink(BF16(brain), 1, &options, NULL));
  assert_words(brain, 0x401a, 0xc04d);
}

static void a_coupled_block_has_one_root(void **state) {
  (void)state;
  float h1[] = {0.25f, 0.5f};
  double h2[] = {1, 2};
  double x1[] = {1, 1};
  double x2[] = {1, 1};
  double thresholds[] = {1};
  const spk_buffer conditioners[] = {F32(h1), F64(h2)};
  const spk_buffer leaves[] = {F64(x1), F64(x2)};
  const spk_soft_options options = exact_in(conditioners);
  spk_block *block =
      coupled_blocks(blocks_of(SPK_F64, "(2)", DIMS(2)), blocks_of(SPK_F64, "(2)", DIMS(2)), NULL);
  assert_ok(
      spk_block_soft_threshold(NULL, block, leaves, NULL, 2, &F64(thresholds), &options, NULL));
  const double h[] = {0.25, 0.5, 1, 2};
  check_root(x1, h, 2, 1.1691705341, 6e-11);
  check_root(x2, h + 2, 2, 1.1691705341, 6e-11);
  spk_block_release(block);
}

static void scopes_shrink_in_a_metric(void **state) {
  (void)state;
  double h[] = {2, 2, 1, 1};
  double x[] = {3, 4, 3, 4};
  double thresholds[] = {5, 5};
  const spk_buffer conditioners = F64(h);
  const spk_soft_options options = exact_in(&conditioners);
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  spk_scope *scope = scopes_over(blocks_of(SPK_F64, "(2,2)", DIMS(1, 2)), DIMS(1, 1));
  assert_ok(
      spk_scope_soft_threshold(NULL, scope, &F64(x), NULL, 1, &F64(thresholds), &options, &report));
  assert_near(x[0], 1.5, 4 * DBL_EPSILON);
  assert_near(x[1], 2, 4 * DBL_EPSILON);
  assert_f64(x + 2, 0, 0);
  assert_i64(&report.total, 2, -1, 1, 0, 0);
  spk_scope_release(scope);
}

static void large_blocks_in_a_metric(void **state) {
  (void)state;
  /* 25000 copies of the published block: the norm and so the threshold grow by the root of it. */
  enum { kTimes = 25000 };
  static double h[4 * kTimes];
  static double x[4 * kTimes];
  for (int i = 0; i < 4 * kTimes; ++i) {
    h[i] = ldexp(0.25, i % 4);
    x[i] = 1;
  }
  const spk_buffer conditioners = F64(h);
  const spk_soft_options options = exact_in(&conditioners);
  assert_ok(shrink(F64(x), sqrt(kTimes), &options, NULL));
  check_root(x, h, COUNT(x), 1.1691705341, 6e-11);
}

static void steps_that_run_out_are_told(void **state) {
  (void)state;
  double h[] = {0.25, 0.5, 1, 2, 1, 1, 1, 1};
  double x[] = {1, 1, 1, 1, 1, 1, 1, 1};
  double thresholds[] = {1, 2};
  const spk_buffer conditioners = F64(h);
  spk_soft_options options = exact_in(&conditioners);
  options.max_iter = 1;
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  spk_block *block = blocks_of(SPK_F64, "(8)", DIMS(4));
  assert_fails(
      SPK_NOT_CONVERGED, "soft threshold: 1 of 2 blocks did not reach atol 0 in 1 steps",
      spk_block_soft_threshold(NULL, block, &F64(x), NULL, 1, &F64(thresholds), &options, &report));
  /* All was written: a near miss, and a dead block. */
  check_root(x, h, 4, 1.1691705341, 0.1);
  assert_true(fabs(h[0] / x[0] - h[0] - 1.1691705341) > 1e-10);
  assert_f64(x + 4, 0, 0, 0, 0);
  assert_i64(&report.total, 2, -1, 1, 0, 1);
  spk_block_release(block);
}

static void into_receives_what_a_metric_leaves(void **state) {
  (void)state;
  float h[] = {1, 1, 1, 1, 1, 1};
  float x[] = {3, 4, NAN, 1, 0.5f, 0};
  float into[] = {9, 9, 9, 9, 9, 9};
  float thresholds[] = {2.5f, 1, 1};
  const spk_buffer conditioners = F32(h);
  const spk_soft_options options = exact_in(&conditioners);
  spk_block *block = blocks_of(SPK_F32, "(6)", DIMS(2));
  assert_ok(spk_block_soft_threshold(NULL, block, &F32(x), &F32(into), 1, &F32(thresholds),
                                     &options, NULL));
  assert_f32(x, 3, 4, NAN, 1, 0.5f, 0);
  assert_f32(into, 1.5f, 2, NAN, 1, 0, 0);
  spk_block_release(block);
}

/* --- options ------------------------------------------------------------------------------- */

static void options_of_other_versions_are_read(void **state) {
  (void)state;
  /* A struct that ends before `eps` has the default: 2/3 of x, as above. */
  spk_soft_options older = without_eps();
  older.struct_size = offsetof(spk_soft_options, eps);
  float x[] = {0x1p-22f};
  assert_ok(shrink(F32(x), 0x1p-23, &older, NULL));
  assert_f32(x, (float)(0x1p-22 * 2 / 3));
  const struct {
    spk_soft_options options;
    int64_t further[2];
  } newer = {{sizeof newer, NULL, 0, -1, 0, 0}, {0, 0}};
  float y[] = {0x1p-22f};
  assert_ok(shrink(F32(y), 0x1p-23, &newer.options, NULL));
  assert_f32(y, 0x1p-23f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(blocks_shrink_towards_zero),
      TEST(blocks_up_to_the_threshold_become_plus_zero),
      TEST(eps_widens_the_denominator),
      TEST(a_huge_eps_shrinks_nothing),
      TEST(eps_is_the_machine_epsilon_of_the_score_dtype),
      TEST(results_are_rounded_once_to_16_bits),
      TEST(nan_and_infinite_norms),
      TEST(unusual_elements_among_usual_ones),
      TEST(unusual_pairs_among_usual_ones),
      TEST(blocks_die_at_the_root_of_their_squares),
      TEST(rows_of_doubles),
      TEST(rows_of_doubles_by_another_way),
      TEST(a_threshold_of_zero_leaves_blocks_as_they_are),
      TEST(scale_multiplies_thresholds_by_the_root_of_the_block_size),
      TEST(every_block_has_its_threshold_and_into_its_result),
      TEST(couplings_shrink_by_their_common_norm),
      TEST(large_blocks_shrink),
      TEST(many_large_blocks_shrink_by_their_own_thresholds),
      TEST(scopes_scale_by_the_block_size_of_each_member),
      TEST(scopes_without_scale_use_thresholds_as_they_are),
      TEST(published_roots),
      TEST(the_default_tolerance_finds_the_published_root),
      TEST(a_constant_metric_has_a_closed_form),
      TEST(single_elements_shrink_by_t_over_h),
      TEST(blocks_up_to_the_threshold_in_their_metric_die),
      TEST(special_values_in_a_metric),
      TEST(eps_plays_no_part_in_a_metric),
      TEST(metrics_may_have_any_dtype_and_layout),
      TEST(results_in_a_metric_are_rounded_once),
      TEST(a_coupled_block_has_one_root),
      TEST(scopes_shrink_in_a_metric),
      TEST(large_blocks_in_a_metric),
      TEST(steps_that_run_out_are_told),
      TEST(into_receives_what_a_metric_leaves),
      TEST(options_of_other_versions_are_read),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
