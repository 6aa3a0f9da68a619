/* 16-bit numbers: every one of them times many factors, against products in long double, which
 * holds them exactly (11 + 53 bits). */
#include <float.h>
#include <stdlib.h>

#include "support.h"

enum { kWords = 1 << 16, kMostBlocks = kWords };

typedef struct {
  int32_t dtype;
  int mantissa; /* stored bits */
  int bias;
} format;

static const format kFormats[] = {{SPK_F16, 10, 15}, {SPK_BF16, 7, 127}};

static int exponent_field(const format *f, uint16_t word) {
  return (word & 0x7fff) >> f->mantissa;
}

static int highest_exponent(const format *f) {
  return (1 << (15 - f->mantissa)) - 1;
}

/* From a table: the oracle would spend most of its time in ldexpl. */
static long double power_of_two(int exponent) {
  enum { kMost = 1200 };
  static long double powers[2 * kMost + 1];
  if (abs(exponent) > kMost) return ldexpl(1, exponent);
  long double *power = &powers[kMost + exponent];
  if (*power == 0) *power = ldexpl(1, exponent);
  return *power;
}

/* Of words that are no NaN. */
static long double value_of(const format *f, uint16_t word) {
  const int exponent = exponent_field(f, word);
  const int mantissa = word & ((1 << f->mantissa) - 1);
  const int hidden = exponent > 0 ? 1 << f->mantissa : 0;
  const int scale = (exponent > 0 ? exponent : 1) - f->bias - f->mantissa;
  long double value = (mantissa + hidden) * power_of_two(scale);
  if (exponent == highest_exponent(f)) value = INFINITY;
  return word >> 15 ? -value : value;
}

static bool is_nan_word(const format *f, uint16_t word) {
  const int infinity = highest_exponent(f) << f->mantissa;
  return (word & 0x7fff) > infinity;
}

/* The nearest number, ties to even. */
static uint16_t word_of(const format *f, long double value) {
  const int infinity = highest_exponent(f) << f->mantissa;
  const int sign = signbit(value) ? 0x8000 : 0;
  const long double magnitude = fabsl(value);
  if (magnitude == 0.0L) return (uint16_t)sign;
  if (isinf(magnitude)) return (uint16_t)(sign | infinity);
  int exponent = 0;
  frexpl(magnitude, &exponent); /* magnitude = m 2^exponent, m in [1/2, 1) */
  const int least = 2 - f->bias;
  if (exponent < least) exponent = least;
  const int scale = exponent - 1 - f->mantissa;
  const long units = lrintl(magnitude * power_of_two(-scale));
  /* A subnormal's field is 0; what rounds up to the next power of two carries into the field. */
  const long word = ((long)(exponent - least) << f->mantissa) + units;
  return (uint16_t)(sign | (word < infinity ? word : infinity));
}

static void numbers_and_words_belong_together(void **state) {
  (void)state;
  for (int64_t i = 0; i < COUNT(kFormats); ++i) {
    const format *f = &kFormats[i];
    for (int word = 0; word < kWords; ++word) {
      if (is_nan_word(f, (uint16_t)word)) continue;
      assert_int_equal(word_of(f, value_of(f, (uint16_t)word)), word);
    }
  }
  assert_true(value_of(&kFormats[0], 0x7bff) == 65504.0L);
  assert_true(value_of(&kFormats[0], 0x0001) == 0x1p-24L);
  assert_true(value_of(&kFormats[1], 0x3f81) == 1.0078125L);
}

/* All words, in rows of some, in blocks of so many rows of so many elements, which are neighbours
 * or each second word. A width that does not divide those of a row leaves its last ones alone. */
typedef struct {
  int rows, width;
  bool apart;
  int columns; /* that are in blocks; 0: as many as can be */
  int row;     /* words of a row; 0: 64 */
} shape;

static const shape kShapes[] = {
    {1, 64, false, 0, 0},     {1, 8, false, 0, 0},      {1, 16, false, 0, 0},
    {1, 32, false, 0, 0},     {1, 40, false, 0, 0},     {1, 13, false, 0, 0},
    {1, 28, false, 0, 0},     {1, 56, false, 0, 0},     {1, 1, false, 0, 0},
    {1, 2, false, 0, 0},      {1, 4, false, 0, 0},      {4, 4, false, 0, 0},
    {8, 8, false, 0, 0},      {4, 2, false, 0, 0},      {16, 1, false, 0, 0},
    {2, 1, false, 0, 0},      {4, 1, false, 0, 0},      {2, 1, false, 24, 0},
    {2, 1, false, 0, 8},      {4, 1, false, 0, 8},      {1, 480, false, 480, 512},
    {1, 512, false, 0, 512},  {2, 16, false, 0, 0},     {4, 64, false, 0, 0},
    {8, 64, false, 0, 0},     {1, 15, false, 0, 0},     {1024, 1, false, 0, 0},
    {1, 1, true, 0, 0},       {1, 32, true, 0, 0},      {1, 13, true, 0, 0},
    {4, 8, true, 0, 0},       {2, 16, false, 48, 0},    {2, 8, false, 40, 0},
    {2, 4, false, 12, 0},     {1, 3, false, 255, 256},  {1, 6, false, 252, 256},
    {1, 9, false, 252, 256},  {1, 10, false, 250, 256}, {1, 12, false, 252, 256},
    {1, 13, false, 247, 256}, {1, 15, false, 255, 256}, {2, 6, false, 252, 256},
    {4, 7, false, 252, 256},  {2, 16, false, 0, 512}};

static int row_of(shape of) {
  return of.row > 0 ? of.row : 64;
}

static int step_of(shape of) {
  return of.apart ? 2 : 1;
}

static int columns_of(shape of) {
  if (of.columns > 0) return of.columns;
  const int all = row_of(of) / step_of(of);
  return all % of.width == 0 ? all : of.width;
}

static bool is_in_a_block(shape of, int i) {
  return i % step_of(of) == 0 && i % row_of(of) / step_of(of) < columns_of(of);
}

/* The block of an element that lies in one. */
static int block_of(shape of, int i) {
  const int column = i % row_of(of) / step_of(of);
  return i / row_of(of) / of.rows * (columns_of(of) / of.width) + column / of.width;
}

static spk_block *blocks_of_shape(const format *f, shape of) {
  char text[64];
  snprintf(text, sizeof text, "(%d,%d):(%d,%d)", kWords / row_of(of), columns_of(of), row_of(of),
           step_of(of));
  return blocks_of(f->dtype, text, DIMS(of.rows, of.width));
}

static void check_word(const format *f, int i, double factor, uint16_t got) {
  if (factor == 1.0) {
    assert_int_equal(got, i); /* every bit, of NaN too */
    return;
  }
  const bool is_nan = is_nan_word(f, (uint16_t)i);
  const long double product = factor == 0.0 ? 0.0L
                              : is_nan      ? (long double)NAN
                                            : value_of(f, (uint16_t)i) * factor;
  if (isnan(product)) {
    assert_true(is_nan_word(f, got));
    return;
  }
  const uint16_t want = word_of(f, product);
  if (got == want) return;
  print_error("%s word 0x%04x times %a: got 0x%04x, expected 0x%04x\n",
              f->dtype == SPK_F16 ? "f16" : "bf16", i, factor, got, want);
  fail();
}

/* Every block times a factor of its own, in place or elsewhere. */
static void check_products(const format *f, shape of, spk_buffer factors, const double *as_double,
                           bool in_place) {
  static uint16_t words[kWords];
  static uint16_t others[kWords]; /* none of which is left where one is written */
  for (int i = 0; i < kWords; ++i) {
    words[i] = (uint16_t)i;
    others[i] = (uint16_t)~i;
  }
  spk_block *block = blocks_of_shape(f, of);
  const spk_buffer leaf = {words, kWords, f->dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer into = {others, kWords, f->dtype, SPK_LAYOUT_VIEW, NULL};
  factors.numel = spk_block_numblk(block);
  assert_ok(spk_block_apply_multiplier(NULL, block, &leaf, in_place ? NULL : &into, 1, &factors));
  spk_block_release(block);
  const uint16_t *got = in_place ? words : others;
  for (int i = 0; i < kWords; ++i) {
    if (!in_place) assert_int_equal(words[i], i);
    if (is_in_a_block(of, i)) {
      check_word(f, i, as_double[block_of(of, i)], got[i]);
    } else {
      assert_int_equal(got[i], in_place ? i : (uint16_t)~i);
    }
  }
}

/* Between 2^-12 and 2^12, of either sign; some are special. */
static double factor_of(uint64_t *random) {
  *random = *random * 6364136223846793005u + 1442695040888963407u;
  const double fraction = (double)(*random >> 11) * 0x1p-53;
  const int kind = (int)((*random >> 5) % 64);
  /* Among them are those next to where floats no longer stand for factors, and some whose products
   * are subnormal, or overflow. */
  const double least = 0x1p-120;
  const double most = 0x1p120;
  const double specials[] = {0.0,
                             -0.0,
                             1.0,
                             -1.0,
                             0.5,
                             1.5,
                             NAN,
                             1 + 0x1p-52,
                             0x1p-130,
                             1e-300,
                             1e300,
                             INFINITY,
                             least,
                             nextafter(least, 0),
                             most,
                             nextafter(most, INFINITY),
                             -2 * least * (1 - 0x1p-50),
                             0x1.8p-100,
                             -0x1p100};
  if (kind < COUNT(specials)) return specials[kind];
  return ldexp(1 + fraction, kind % 25 - 12) * (kind & 1 ? -1 : 1);
}

static void products_are_rounded_once(void **state) {
  (void)state;
  static double f64[kMostBlocks];
  static double of_f32[kMostBlocks];
  static float f32[kMostBlocks];
  /* A NaN with all bits set: rounded to fewer as a number is, it would become -0. */
  const uint32_t all_bits = 0x7fffffff;
  uint64_t random = 1;
  for (int round = 0; round < 2 * COUNT(kShapes); ++round) {
    const shape of = kShapes[round % COUNT(kShapes)];
    for (int b = 0; b < kMostBlocks; ++b) {
      f64[b] = factor_of(&random);
      f32[b] = (float)f64[b];
      if (isnan(f32[b])) memcpy(&f32[b], &all_bits, sizeof all_bits);
      of_f32[b] = f32[b];
    }
    for (int64_t i = 0; i < COUNT(kFormats); ++i) {
      const bool in_place = round < COUNT(kShapes);
      check_products(&kFormats[i], of, F32(f32), of_f32, in_place);
      check_products(&kFormats[i], of, F64(f64), f64, in_place);
    }
  }
}

/* 16-bit factors of 16-bit numbers. */
static void products_with_narrow_factors_are_rounded_once(void **state) {
  (void)state;
  static uint16_t factors[kMostBlocks];
  static double as_double[kMostBlocks];
  uint64_t random = 3;
  for (int64_t of_factors = 0; of_factors < COUNT(kFormats); ++of_factors) {
    const format *g = &kFormats[of_factors];
    for (int b = 0; b < kMostBlocks; ++b) {
      factor_of(&random);
      factors[b] = (uint16_t)(random >> 40);
      as_double[b] = is_nan_word(g, factors[b]) ? NAN : (double)value_of(g, factors[b]);
    }
    const spk_buffer given = {factors, kMostBlocks, g->dtype, SPK_LAYOUT_VIEW, NULL};
    for (int64_t i = 0; i < COUNT(kFormats); ++i) {
      for (int64_t s = 0; s < COUNT(kShapes); ++s) {
        check_products(&kFormats[i], kShapes[s], given, as_double, (s + of_factors) % 2 == 0);
      }
    }
  }
}

/* The double before a factor, itself, the next, or one up to some bits of a float away. */
static double near_double(double factor, uint64_t random) {
  const int kind = (int)(random >> 58) % 32;
  const double others[] = {nextafter(factor, -INFINITY), factor, nextafter(factor, INFINITY)};
  return kind < COUNT(others) ? others[kind] : factor * (1 + (kind - 17) * 0x1p-26);
}

/* The float before a factor, itself, the next, or the nearest of 16 or 13 bits, whose products with
 * bf16 or f16 are floats unless they are below normal ones, or of 17 or 14. */
static float near_float(float factor, uint64_t random) {
  int exponent = 0;
  const float fraction = frexpf(factor, &exponent);
  const float others[] = {nextafterf(factor, -INFINITY),
                          factor,
                          nextafterf(factor, INFINITY),
                          ldexpf(rintf(fraction * 0x1p16F), exponent - 16),
                          ldexpf(rintf(fraction * 0x1p13F), exponent - 13),
                          ldexpf(rintf(fraction * 0x1p17F), exponent - 17),
                          ldexpf(rintf(fraction * 0x1p14F), exponent - 14)};
  return others[(random >> 58) % COUNT(others)];
}

/* Factors that bring a number next to the middle of two others. */
static void products_near_ties_are_rounded_once(void **state) {
  (void)state;
  static double f64[kMostBlocks];
  static double of_f32[kMostBlocks];
  static float f32[kMostBlocks];
  uint64_t random = 2;
  for (int64_t i = 0; i < COUNT(kFormats); ++i) {
    const format *f = &kFormats[i];
    for (int round = 0; round < 2 * COUNT(kShapes); ++round) {
      const shape of = kShapes[round % COUNT(kShapes)];
      for (int word = 0; word < kWords; ++word) {
        if (!is_in_a_block(of, word)) continue;
        const int b = block_of(of, word); /* its last element decides its factor */
        const long double number = value_of(f, (uint16_t)word);
        factor_of(&random);
        const uint16_t below = (uint16_t)((random >> 20) & 0x3fff);
        const long double middle = (value_of(f, below) + value_of(f, (uint16_t)(below + 1))) / 2;
        const double factor = (double)(middle / number);
        f64[b] = near_double(isfinite(factor) ? factor : 1.5, random);
        of_f32[b] = f32[b] = near_float(isfinite(factor) ? (float)factor : 1.5F, random);
      }
      const bool in_place = round < COUNT(kShapes);
      check_products(f, of, F64(f64), f64, in_place);
      check_products(f, of, F32(f32), of_f32, in_place);
    }
  }
}

/* w max(0, 1 - t / (|w| + eps)) as doubles, rounded once; NaN as it is. */
static uint16_t shrunk(const format *f, uint16_t word, double threshold, double eps) {
  if (is_nan_word(f, word)) return word;
  const double w = (double)value_of(f, word);
  if (fabs(w) <= threshold) return 0;
  const double sum = fabs(w) + eps;
  return isinf(w) ? word : word_of(f, (long double)(w * ((sum - threshold) / sum)));
}

/* Every word by a threshold of its own, below, at and above it, or by one for all. */
static void soft_thresholds_of_elements_are_rounded_once(void **state) {
  (void)state;
  static uint16_t words[kWords];
  static float thresholds[kWords];
  static double doubles[kWords];
  static const double parts[] = {0, 0x1p-30, 0.25, 1.0 / 3, 0.5, 0.999, 1, 1.001};
  static const double eps[] = {-1, 0, 0x1p-12, 3};
  for (int64_t c = 0; c < COUNT(kFormats) * COUNT(parts) * COUNT(eps) * 2; ++c) {
    const format *f = &kFormats[c % 2];
    const double part = parts[c / 2 % COUNT(parts)];
    const bool one_for_all = c / 2 / COUNT(parts) / COUNT(eps) == 1;
    spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
    options.eps = eps[c / 2 / COUNT(parts) % COUNT(eps)];
    for (int i = 0; i < kWords; ++i) {
      const double own = is_nan_word(f, (uint16_t)i) ? 1.0 : fabs((double)value_of(f, (uint16_t)i));
      words[i] = (uint16_t)i;
      thresholds[i] = (float)((one_for_all ? 1.5 : own) * part);
      if (isnan(thresholds[i])) thresholds[i] = INFINITY; /* infinity times 0 */
    }
    const int64_t count = kWords;
    spk_view *view = NULL;
    spk_block *block = NULL;
    assert_ok(spk_view_create(f->dtype, 1, &count, NULL, 0, &view));
    assert_ok(spk_block_create(view, 0, NULL, NULL, &block));
    double one[] = {thresholds[0] / 3}; /* no float */
    for (int i = 0; one_for_all && i < kWords; ++i) doubles[i] = one[0];
    for (int i = 0; !one_for_all && i < kWords; ++i) doubles[i] = thresholds[i];
    const spk_buffer each = {thresholds, kWords, SPK_F32, SPK_LAYOUT_VIEW, NULL};
    const spk_buffer limits = one_for_all ? F64(one) : each;
    spk_report report = {.struct_size = sizeof report};
    assert_ok(spk_block_soft_threshold(NULL, block, &BUFFER(words, f->dtype, SPK_LAYOUT_VIEW, NULL),
                                       NULL, 1, &limits, &options, &report));
    int64_t alive = 0;
    for (int i = 0; i < kWords; ++i) {
      const double used_eps = options.eps < 0 ? FLT_EPSILON : options.eps;
      const uint16_t want = shrunk(f, (uint16_t)i, doubles[i], used_eps);
      alive += is_nan_word(f, (uint16_t)i) || fabsl(value_of(f, (uint16_t)i)) > doubles[i];
      if (words[i] == want) continue;
      print_error("%s word 0x%04x by %a, eps %a: got 0x%04x, expected 0x%04x\n",
                  f->dtype == SPK_F16 ? "f16" : "bf16", i, doubles[i], options.eps, words[i], want);
      fail();
    }
    assert_int_equal(report.achieved, alive);
    spk_block_release(block);
    spk_view_release(view);
  }
}

/* What a soft threshold leaves of blocks, in a metric of equal conditioners or in none: `left` of
 * every element, up to an error far below that of a float. Blocks that are not finite stay. */
static void check_left(const format *f, shape of, const long double *left, const uint16_t *words) {
  const long double error = 0x1p-40L;
  for (int i = 0; i < kWords; ++i) {
    const uint16_t word = (uint16_t)i;
    if (!is_in_a_block(of, i) || isnan(left[block_of(of, i)])) {
      assert_int_equal(words[i], word);
      continue;
    }
    const long double share = left[block_of(of, i)];
    const long double exact = share == 0 ? 0 : value_of(f, word) * share; /* dead: +0 */
    const uint16_t least = word_of(f, exact * (1 - error));
    if (words[i] == least || words[i] == word_of(f, exact * (1 + error))) continue;
    print_error("%s word 0x%04x, of which %La is left: got 0x%04x, expected 0x%04x\n",
                f->dtype == SPK_F16 ? "f16" : "bf16", i, share, words[i], least);
    fail();
  }
}

/* Thresholds that leave `share` of each block, in a metric or not; their norms are in `norms`. */
static void check_share(const format *f, shape of, double share, const long double *norms,
                        bool in_a_metric) {
  static uint16_t words[kWords];
  static uint16_t metric[kWords];
  static double thresholds[kMostBlocks];
  static long double left[kMostBlocks];
  const double h = in_a_metric ? 1.5 : 1;
  for (int i = 0; i < kWords; ++i) {
    words[i] = (uint16_t)i;
    metric[i] = word_of(f, h);
  }
  spk_block *block = blocks_of_shape(f, of);
  const int64_t blocks = spk_block_numblk(block);
  for (int64_t b = 0; b < blocks; ++b) {
    const bool finite = isfinite(norms[b]);
    thresholds[b] = finite ? (double)(h * norms[b] * (1 - (long double)share)) : 1.0;
    const long double of_zeros = in_a_metric ? 1 : 0;
    left[b] = !finite         ? (long double)NAN
              : norms[b] == 0 ? of_zeros
                              : 1 - thresholds[b] / (h * norms[b]);
  }
  const spk_buffer conditioners = {metric, kWords, f->dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer limits = {thresholds, blocks, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = 0;
  if (in_a_metric) options.conditioners = &conditioners;
  options.atol = 0;
  options.max_iter = 64;
  const spk_buffer leaf = {words, kWords, f->dtype, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_soft_threshold(NULL, block, &leaf, NULL, 1, &limits, &options, NULL));
  spk_block_release(block);
  check_left(f, of, left, words);
}

/* Shares that bring elements near the middle of two numbers: a float between would lie in it. */
static void check_shares(bool in_a_metric) {
  static long double norms[kMostBlocks];
  static const double shares[] = {0.5,
                                  0.75,
                                  0.75 + 0x1p-31,
                                  0.75 - 0x1p-31,
                                  0.75 + 0x1p-24,
                                  0.75 - 0x3p-25,
                                  0.75 + 0x1p-23,
                                  0.625 + 0x1p-30,
                                  0.9};
  for (int64_t c = 0; c < COUNT(kFormats) * COUNT(kShapes); ++c) {
    const format *f = &kFormats[c % COUNT(kFormats)];
    const shape of = kShapes[c / COUNT(kFormats)];
    for (int b = 0; b < kMostBlocks; ++b) norms[b] = 0;
    for (int i = 0; i < kWords; ++i) {
      if (!is_in_a_block(of, i)) continue;
      const bool is_nan = is_nan_word(f, (uint16_t)i);
      const long double w = is_nan ? (long double)NAN : value_of(f, (uint16_t)i);
      norms[block_of(of, i)] += w * w;
    }
    for (int b = 0; b < kMostBlocks; ++b) norms[b] = sqrtl(norms[b]);
    for (int64_t s = 0; s < COUNT(shares); ++s) {
      check_share(f, of, shares[s], norms, in_a_metric);
    }
  }
}

static void thresholds_are_rounded_once(void **state) {
  (void)state;
  check_shares(false);
}

static void thresholds_in_a_metric_are_rounded_once(void **state) {
  (void)state;
  check_shares(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(numbers_and_words_belong_together),
      TEST(products_are_rounded_once),
      TEST(products_with_narrow_factors_are_rounded_once),
      TEST(products_near_ties_are_rounded_once),
      TEST(soft_thresholds_of_elements_are_rounded_once),
      TEST(thresholds_are_rounded_once),
      TEST(thresholds_in_a_metric_are_rounded_once),
  };
  return exit_code(cmocka_run_group_tests_name("narrow", tests, NULL, NULL));
}
