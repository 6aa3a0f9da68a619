/* Lp norms: all p, special values, the whole range of each dtype, couplings, scopes. */
#include <fenv.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "support.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* The norm of all elements of a buffer, as one block. */
static double norm_of(double p, spk_buffer buffer) {
  const int64_t span = 0;
  spk_view *view = NULL;
  spk_block *block = NULL;
  assert_ok(spk_view_create(buffer.dtype, 1, &buffer.numel, NULL, 0, &view));
  assert_ok(spk_block_create(view, 1, &span, NULL, &block));
  double result[1] = {-1};
  float rounded[1] = {-1};
  const bool is_double = spk_block_score_dtype(block) == SPK_F64;
  const spk_buffer out = is_double ? F64(result) : F32(rounded);
  assert_ok(spk_block_norms(NULL, block, &buffer, 1, p, &out));
  spk_block_release(block);
  spk_view_release(view);
  return is_double ? result[0] : (double)rounded[0];
}

#define assert_norm(p, buffer, want) assert_f64(((double[]){norm_of(p, buffer)}), want)
/* Relative error. */
#define assert_norm_near(p, buffer, want, error) \
  assert_near(norm_of(p, buffer), want, (error) * (want))

static double two_to(int exponent) {
  return ldexp(1.0, exponent);
}

/* --- p ------------------------------------------------------------------------------------- */

static void norms_with_every_kind_of_p(void **state) {
  (void)state;
  float x[] = {3, -4, 0, -0.0f, 12};
  assert_norm(0, F32(x), 3);
  assert_norm(1, F32(x), 19);
  assert_norm(2, F32(x), 13);
  assert_norm(INFINITY, F32(x), 12);
  assert_norm(-INFINITY, F32(x), 0);
  double y[] = {-3, 4, 12};
  assert_norm(0, F64(y), 3);
  assert_norm(1, F64(y), 19);
  assert_norm(2, F64(y), 13);
  assert_norm(INFINITY, F64(y), 12);
  assert_norm(-INFINITY, F64(y), 3);
}

static void other_p_keep_their_error_bound(void **state) {
  (void)state;
  double x[] = {1, -2, 3, -4};
  assert_norm_near(3, F64(x), 4.6415888336127789, (8 + 16 / 3.0) * DBL_EPSILON / 2);
  /* (1 + sqrt(2) + sqrt(3) + 2)^2 */
  assert_norm_near(0.5, F64(x), 37.776565705218190, (8 + 16 / 0.5) * DBL_EPSILON / 2);
  double ones[] = {1, 1};
  assert_norm_near(1000, F64(ones), 1.0006933874625806, (8 + 16 / 1000.0) * DBL_EPSILON / 2);
  assert_norm_near(0.01, F64(ones), two_to(100), (8 + 16 / 0.01) * DBL_EPSILON / 2);
  float sixteen[16];
  for (int i = 0; i < 16; ++i) sixteen[i] = -2.0f;
  assert_norm(4, F32(sixteen), 4);
  assert_norm_near(2.5, F32(sixteen), 2 * 3.0314331330207962, FLT_EPSILON / 2);
}

static void a_single_element_has_its_magnitude_as_norm(void **state) {
  (void)state;
  const double p[] = {0.01, 0.5, 1, 2, 3, 1000, INFINITY, -INFINITY};
  float x[] = {-0.7f};
  for (int64_t i = 0; i < COUNT(p); ++i) assert_norm(p[i], F32(x), 0.7f);
  assert_norm(0, F32(x), 1);
}

static void zero_blocks_have_norm_plus_zero(void **state) {
  (void)state;
  const double p[] = {0, 0.5, 1, 2, 3, INFINITY, -INFINITY};
  float x[] = {-0.0f, 0.0f, -0.0f};
  double y[] = {-0.0, -0.0};
  for (int64_t i = 0; i < COUNT(p); ++i) {
    assert_norm(p[i], F32(x), 0.0);
    assert_norm(p[i], F64(y), 0.0);
  }
}

/* --- special values ------------------------------------------------------------------------ */

static void nan_is_a_nonzero_and_else_propagates(void **state) {
  (void)state;
  const double p[] = {0.5, 1, 2, 3, INFINITY, -INFINITY};
  float x[] = {1, NAN, 0};
  float y[] = {INFINITY, 1, NAN};
  double z[] = {NAN, -INFINITY, 0};
  for (int64_t i = 0; i < COUNT(p); ++i) {
    assert_norm(p[i], F32(x), NAN);
    assert_norm(p[i], F32(y), NAN);
    assert_norm(p[i], F64(z), NAN);
  }
  assert_norm(0, F32(x), 2);
  assert_norm(0, F32(y), 3);
  assert_norm(0, F64(z), 2);
}

static void infinity_is_a_number(void **state) {
  (void)state;
  const double p[] = {0.5, 1, 2, 3, INFINITY};
  float x[] = {1, -INFINITY, 0.5f};
  double y[] = {1, -INFINITY, 0.5};
  for (int64_t i = 0; i < COUNT(p); ++i) {
    assert_norm(p[i], F32(x), INFINITY);
    assert_norm(p[i], F64(y), INFINITY);
  }
  assert_norm(-INFINITY, F32(x), 0.5);
  assert_norm(-INFINITY, F64(y), 0.5);
  assert_norm(0, F32(x), 3);
  float infinities[] = {-INFINITY, INFINITY};
  assert_norm(-INFINITY, F32(infinities), INFINITY);
}

/* --- range --------------------------------------------------------------------------------- */

static void f32_neither_overflows_nor_underflows_on_the_way(void **state) {
  (void)state;
  const int exponents[] = {100, 124, -100, -149};
  for (int64_t i = 0; i < COUNT(exponents); ++i) {
    const double unit = two_to(exponents[i]);
    float x[] = {(float)(3 * unit), (float)(-4 * unit)};
    assert_norm(2, F32(x), 5 * unit);
    assert_norm(1, F32(x), 7 * unit);
    assert_norm(INFINITY, F32(x), 4 * unit);
    assert_norm(-INFINITY, F32(x), 3 * unit);
    assert_norm(0, F32(x), 2);
  }
  float huge[] = {3e30f, 4e30f};
  assert_norm_near(2, F32(huge), 5e30, FLT_EPSILON);
  /* The result alone is too large for a float. */
  float largest[] = {FLT_MAX, FLT_MAX};
  assert_norm(2, F32(largest), INFINITY);
  assert_norm(1, F32(largest), INFINITY);
  assert_norm(INFINITY, F32(largest), FLT_MAX);
}

static void f64_neither_overflows_nor_underflows_on_the_way(void **state) {
  (void)state;
  const int exponents[] = {1000, 1020, -1000, -1074};
  for (int64_t i = 0; i < COUNT(exponents); ++i) {
    const double unit = two_to(exponents[i]);
    double x[] = {3 * unit, -4 * unit};
    assert_norm(2, F64(x), 5 * unit);
    assert_norm(1, F64(x), 7 * unit);
    assert_norm(INFINITY, F64(x), 4 * unit);
  }
  double huge[] = {3e300, 4e300};
  assert_norm_near(2, F64(huge), 5e300, 2 * DBL_EPSILON);
  assert_norm_near(3, F64(huge), 4e300 * cbrt(1 + 27.0 / 64), 40 * DBL_EPSILON);
  double tiny[] = {3e-300, 4e-300};
  assert_norm_near(2, F64(tiny), 5e-300, 2 * DBL_EPSILON);
  assert_norm_near(3, F64(tiny), 4e-300 * cbrt(1 + 27.0 / 64), 40 * DBL_EPSILON);
  double mixed[] = {1e300, two_to(-1074)};
  assert_norm(2, F64(mixed), 1e300);
  assert_norm(-INFINITY, F64(mixed), two_to(-1074));
}

static void f16_and_bf16_are_read_exactly(void **state) {
  (void)state;
  uint16_t half[] = {0x4200, 0xc400}; /* 3, -4 */
  assert_norm(2, F16(half), 5);
  assert_norm(1, F16(half), 7);
  uint16_t half_subnormals[] = {0x0003, 0x8004}; /* 3 and -4 times 2^-24 */
  assert_norm(2, F16(half_subnormals), 5 * two_to(-24));
  uint16_t half_largest[] = {0x7bff, 0x7bff}; /* 65504 */
  assert_norm(1, F16(half_largest), 131008);
  uint16_t half_special[] = {0xfc00, 0x3c00}; /* -inf, 1 */
  assert_norm(2, F16(half_special), INFINITY);
  assert_norm(-INFINITY, F16(half_special), 1);
  uint16_t half_nan[] = {0x7e00, 0x3c00};
  assert_norm(2, F16(half_nan), NAN);
  assert_norm(0, F16(half_nan), 2);

  uint16_t brain[] = {0x4040, 0xc080}; /* 3, -4 */
  assert_norm(2, BF16(brain), 5);
  uint16_t brain_subnormals[] = {0x0003, 0x8004}; /* 3 and -4 times 2^-133 */
  assert_norm(2, BF16(brain_subnormals), 5 * two_to(-133));
  uint16_t brain_special[] = {0x7f80, 0x7fc0}; /* inf, NaN */
  assert_norm(INFINITY, BF16(brain_special), NAN);
}

static void small_terms_are_not_lost(void **state) {
  (void)state;
  /* Each 1 alone would vanish beside 2^24 in float. */
  static float x[1001];
  x[0] = 16777216.0f;
  for (int i = 1; i <= 1000; ++i) x[i] = -1.0f;
  assert_norm(1, F32(x), 16778216.0);
  /* Each 2^-53 alone would vanish beside 1 in double. */
  static double y[4097];
  y[0] = 1.0;
  for (int i = 1; i <= 4096; ++i) y[i] = two_to(-53);
  assert_norm_near(1, F64(y), 1 + two_to(-41), 2 * DBL_EPSILON);
  /* So would its square: 1 + 4096 * 2^-54 = (1 + 2^-43)^2 but for 2^-86. */
  for (int i = 1; i <= 4096; ++i) y[i] = two_to(-27);
  assert_norm_near(2, F64(y), 1 + two_to(-43), 2 * DBL_EPSILON);
}

/* The same of blocks that are summed some rows at a time: what has been lost is carried on. */
static void small_terms_of_tall_blocks_are_not_lost(void **state) {
  (void)state;
  enum { kHigh = 100, kWide = 4, kBlocks = 9 };
  static double x[kHigh * kWide * kBlocks];
  for (int i = 0; i < COUNT(x); ++i) x[i] = i < kWide * kBlocks ? 1.0 : two_to(-53);
  const double sum = kWide + (kHigh - 1) * kWide * two_to(-53);
  double norms[kBlocks];
  spk_block *block = blocks_of(SPK_F64, "(100,36)", DIMS(kHigh, kWide));
  assert_ok(spk_block_norms(NULL, block, &F64(x), 1, 1.0, &F64(norms)));
  for (int b = 0; b < kBlocks; ++b) {
    assert_true(norms[b] > kWide + 90 * kWide * two_to(-53));
    assert_true(fabs(norms[b] - sum) <= 2 * DBL_EPSILON * kWide);
  }
  spk_block_release(block);
}

/* --- layouts ------------------------------------------------------------------------------- */

static void blocks_of_strided_views(void **state) {
  (void)state;
  /* Rows of 5 of which 4 are seen, read from the last row up; blocks of 1 x 2. */
  float x[] = {1, 2, 3, 4, NAN, 5, 6, 7, 8, NAN, 9, 10, 11, 12, NAN};
  float norms[6];
  spk_block *block = blocks_of(SPK_F32, "(3,4):(-5,1)+10", DIMS(1, 2));
  assert_ok(spk_block_norms(NULL, block, &F32(x), 1, 1.0, &F32(norms)));
  assert_f32(norms, 19, 23, 11, 15, 3, 7);
  spk_block_release(block);
  /* The same buffer column by column. */
  block = blocks_of(SPK_F32, "(4,3):(1,5)", DIMS(4, 1));
  float columns[3];
  assert_ok(spk_block_norms(NULL, block, &F32(x), 1, INFINITY, &F32(columns)));
  assert_f32(columns, 4, 8, 12);
  spk_block_release(block);
}

static void strides_of_extent_one_do_not_matter(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4};
  float norms[2];
  spk_block *block =
      blocks_of(SPK_F32, "(1,4,1):(9223372036854775807,1,-9223372036854775807)", DIMS(1, 2, 1));
  assert_ok(spk_block_norms(NULL, block, &F32(x), 1, 1.0, &F32(norms)));
  assert_f32(norms, 3, 7);
  spk_block_release(block);
}

static void layout_of_the_buffer_may_differ_from_the_view(void **state) {
  (void)state;
  float contiguous[] = {1, 2, 3, 4};
  float own[] = {0, 4, 3, 2, 1};
  float norms[2];
  spk_view *backwards = view_of(SPK_F32, "(2,2):(-2,-1)+4");
  spk_block *block = blocks_of(SPK_F32, "(2,2):(100,7)+50", DIMS(1, 2));
  assert_ok(spk_block_norms(NULL, block, &CONTIGUOUS(contiguous, SPK_F32), 1, 1.0, &F32(norms)));
  assert_f32(norms, 3, 7);
  assert_ok(spk_block_norms(NULL, block, &OWN(own, SPK_F32, backwards), 1, 1.0, &F32(norms)));
  assert_f32(norms, 3, 7);
  spk_block_release(block);
  spk_view_release(backwards);
}

static void large_blocks_and_many_blocks(void **state) {
  (void)state;
  static float x[1 << 18];
  static double y[1 << 18];
  static float norms[1 << 17];
  for (int64_t i = 0; i < COUNT(x); ++i) x[i] = (float)(y[i] = i % 2 ? 1 : -1);
  assert_norm(0, F32(x), 262144);
  assert_norm(1, F32(x), 262144);
  assert_norm(2, F32(x), 512);
  assert_norm(2, F64(y), 512);
  assert_norm(INFINITY, F32(x), 1);
  assert_norm(-INFINITY, F64(y), 1);
  assert_norm_near(0.5, F64(y), two_to(36), (8 + 32) * DBL_EPSILON / 2);

  for (int64_t i = 0; i < COUNT(x); ++i) x[i] = (float)(i / 2);
  spk_block *block = blocks_of(SPK_F32, "(262144)", DIMS(2));
  assert_ok(spk_block_norms(NULL, block, &F32(x), 1, 1.0, &F32(norms)));
  for (int64_t b = 0; b < COUNT(norms); ++b) assert_f32(norms + b, (float)(2 * b));
  spk_block_release(block);
}

/* Boxes of blocks are larger in large tensors; here the last ones of either side are cut. */
static void more_blocks_than_one_box_holds(void **state) {
  (void)state;
  enum { kHigh = 101, kWide = 97, kSide = 10, kRow = kWide * kSide };
  static float x[kHigh * kSide * kRow];
  static float norms[kHigh * kWide];
  for (int i = 0; i < COUNT(x); ++i) {
    const int block = i / (kRow * kSide) * kWide + i % kRow / kSide;
    x[i] = (float)(block % 61 * (i % 2 ? 1 : -1));
  }
  spk_block *block = blocks_of(SPK_F32, "(1010,970)", DIMS(kSide, kSide));
  assert_ok(spk_block_norms(NULL, block, &F32(x), 1, 2.0, &F32(norms)));
  for (int b = 0; b < COUNT(norms); ++b) assert_f32(norms + b, (float)(b % 61 * kSide));
  assert_ok(spk_block_norms(NULL, block, &F32(x), 1, 1.0, &F32(norms)));
  for (int b = 0; b < COUNT(norms); ++b) assert_f32(norms + b, (float)(b % 61 * kSide * kSide));
  spk_block_release(block);
}

/* Norms of two elements, the first and the last of rows that are else 0: most sums of their squares
 * leave the range of double. */
static void check_scales(int wide) {
  enum { kBlocks = 2098, kMostWide = 1000 };
  assert_true(wide <= kMostWide);
  static double x[kBlocks * kMostWide];
  static double norms[kBlocks];
  memset(x, 0, sizeof x);
  for (int64_t b = 0; b < kBlocks; ++b) {
    const double unit = two_to((int)b - 1074);
    x[b * wide] = b == 11 ? -INFINITY : 3 * unit;
    x[b * wide + wide - 1] = b == 7 ? NAN : b < kBlocks - 3 ? -4 * unit : 0;
  }
  const spk_buffer leaf = {x, (int64_t)kBlocks * wide, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  char text[32];
  snprintf(text, sizeof text, "(%d,%d)", kBlocks, wide);
  spk_block *block = blocks_of(SPK_F64, text, DIMS(1, wide));
  assert_ok(spk_block_norms(NULL, block, &leaf, 1, 2.0, &F64(norms)));
  for (int b = 0; b < kBlocks; ++b) {
    const double unit = two_to(b - 1074);
    double want = b < kBlocks - 3 ? 5 * unit : 3 * unit;
    if (b == 7) want = NAN;
    if (b == 11) want = INFINITY;
    assert_f64(norms + b, want);
  }
  spk_block_release(block);
}

static void each_f64_block_has_its_own_scale(void **state) {
  (void)state;
  check_scales(2);
  check_scales(16);
  check_scales(100);
  check_scales(1000);
}

/* Blocks whose rows of a few elements lie beside those of the next block, with a gap after each row
 * of the view or without. Elements are integers that all dtypes have. */
enum { kTinyGap = 3, kMostTiny = 48000 };

static int tiny_element(int64_t i) {
  return (int)(i * 37 % 127) - 63;
}

static double tiny_norm(double p, int high, int wide, int64_t first, int64_t pitch) {
  double sum = 0;
  double least = INFINITY;
  double most = 0;
  for (int i = 0; i < high * wide; ++i) {
    const double x = abs(tiny_element(first + i / wide * pitch + i % wide));
    sum += p == 0 ? x != 0 : p == 1 ? x : x * x;
    least = fmin(least, x);
    most = fmax(most, x);
  }
  if (isinf(p)) return p > 0 ? most : least;
  return p == 2 ? sqrt(sum) : sum;
}

static void check_tiny(int32_t dtype, int high, int wide, int down, int across, int gap) {
  static uint64_t x[kMostTiny];
  static double doubles[kMostTiny];
  static float floats[kMostTiny];
  const int64_t pitch = (int64_t)across * wide + gap;
  const int64_t count = pitch * down * high;
  assert_true(count <= kMostTiny);
  for (int64_t i = 0; i < count; ++i) doubles[i] = tiny_element(i);
  store_numbers(doubles, count, dtype, x);
  char text[64];
  snprintf(text, sizeof text, "(%d,%d):(%d,1)", down * high, across * wide, (int)pitch);
  spk_block *block = blocks_of(dtype, text, DIMS(high, wide));
  const spk_buffer leaf = {x, count, dtype, SPK_LAYOUT_VIEW, NULL};
  const bool is_double = dtype == SPK_F64;
  const spk_buffer out = {is_double ? (void *)doubles : (void *)floats, (int64_t)down * across,
                          is_double ? SPK_F64 : SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const double ps[] = {0, 1, 2, INFINITY, -INFINITY};
  for (int i = 0; i < COUNT(ps); ++i) {
    assert_ok(spk_block_norms(NULL, block, &leaf, 1, ps[i], &out));
    for (int b = 0; b < down * across; ++b) {
      const int64_t first = b / across * high * pitch + (int64_t)(b % across) * wide;
      const double want = tiny_norm(ps[i], high, wide, first, pitch);
      if (is_double) {
        assert_true(fabs(doubles[b] - want) <= 2 * DBL_EPSILON * want);
      } else {
        assert_f32(floats + b, (float)want);
      }
    }
  }
  spk_block_release(block);
}

static void blocks_with_rows_of_a_few_elements(void **state) {
  (void)state;
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
  const int heights[] = {1, 2, 3, 4, 8, 9, 17};
  const int counts[] = {1, 7, 8, 45, 300};
  for (int d = 0; d < COUNT(dtypes); ++d) {
    for (int h = 0; h < COUNT(heights); ++h) {
      for (int wide = 2; wide <= 7; ++wide) {
        for (int c = 0; c < COUNT(counts); ++c) {
          check_tiny(dtypes[d], heights[h], wide, 1, counts[c], kTinyGap);
          check_tiny(dtypes[d], heights[h], wide, 3, counts[c] / 3 + 1, kTinyGap);
        }
      }
    }
  }
}

/* The norms of the legs m * m - n * n and 2 * m * n are m * m + n * n: where those, or three times
 * as much, have 25 bits, they lie in the middle of two floats, of which the even one, a multiple of
 * 4, is the norm: the lower one for the former, the upper one for the latter. */
static void norms_in_the_middle_of_two_floats_are_even(void **state) {
  (void)state;
  enum { kNorms = 4096 };
  static float apart[2 * kNorms], beside[2 * kNorms], want[kNorms], norms[kNorms];
  int count = 0;
  for (int64_t times = 1; times <= 3; times += 2) {
    const int end = times == 1 ? kNorms / 2 : kNorms;
    for (int64_t m = 1673; count < end; ++m) {
      for (int64_t n = 1 + m % 2; n < m && count < end; n += 26) {
        const int64_t legs[] = {times * (m * m - n * n), times * 2 * m * n};
        const int64_t norm = times * (m * m + n * n);
        if (norm <= 1 << 24 || norm >= 1 << 25 || legs[0] >= 1 << 24) continue;
        assert_int_equal(norm % 4, times);
        const int exponent = count % 200 - 120;
        beside[2 * count] = apart[count] = ldexpf((float)legs[0], exponent);
        beside[2 * count + 1] = apart[kNorms + count] = ldexpf((float)-legs[1], exponent);
        want[count++] = ldexpf((float)(times == 1 ? norm - 1 : norm + 1), exponent);
      }
    }
  }
  spk_block *columns = blocks_of(SPK_F32, "(2,4096)", DIMS(2, 1));
  assert_ok(spk_block_norms(NULL, columns, &F32(apart), 1, 2, &F32(norms)));
  for (int i = 0; i < kNorms; ++i) assert_f32(norms + i, want[i]);
  spk_block *rows = blocks_of(SPK_F32, "(4096,2)", DIMS(1, 2));
  assert_ok(spk_block_norms(NULL, rows, &F32(beside), 1, 2, &F32(norms)));
  for (int i = 0; i < kNorms; ++i) assert_f32(norms + i, want[i]);
  /* Of eight and eight in turn. */
  for (int i = 0; i < 2 * kNorms; ++i) {
    beside[i] = apart[i / 8 % 2 * kNorms + i / 16 * 8 + i % 8];
  }
  spk_block *strided = blocks_of(SPK_F32, "(512,8,2):(16,1,8)", DIMS(1, 1, 2));
  assert_ok(spk_block_norms(NULL, strided, &F32(beside), 1, 2, &F32(norms)));
  for (int i = 0; i < kNorms; ++i) assert_f32(norms + i, want[i]);
  spk_block_release(columns);
  spk_block_release(rows);
  spk_block_release(strided);
}

/* Blocks of two elements that lie together, in two rows, or eight and eight in turn. */
enum { kTogether, kInRows, kInLanes, kPairLayouts };

static int64_t place_in_pairs(int layout, int64_t pairs, int64_t i, int which) {
  if (layout == kTogether) return 2 * i + which;
  if (layout == kInRows) return i + which * pairs;
  return i / 8 * 16 + 8 * which + i % 8;
}

static spk_block *pairs_of(int32_t dtype, int layout, int64_t pairs) {
  char text[64];
  if (layout == kTogether) {
    snprintf(text, sizeof text, "(%d,2)", (int)pairs);
    return blocks_of(dtype, text, DIMS(1, 2));
  }
  if (layout == kInRows) {
    snprintf(text, sizeof text, "(2,%d)", (int)pairs);
    return blocks_of(dtype, text, DIMS(2, 1));
  }
  snprintf(text, sizeof text, "(%d,8,2):(16,1,8)", (int)(pairs / 8));
  return blocks_of(dtype, text, DIMS(1, 1, 2));
}

/* Pairs in all layouts against the same by way of doubles, whose roots IEEE 754 rounds. */
enum { kMostPairs = 1 << 15 };

static float norm_of_pair(double p, double a, double b) {
  const double x = fabs(a);
  const double y = fabs(b);
  if (isnan(x) || isnan(y)) return NAN;
  if (isinf(p)) return (float)fmax(x, y);
  return (float)(p == 1 ? x + y : sqrt(x * x + y * y));
}

static void check_pairs(int32_t dtype, const double (*pair)[2], int64_t pairs) {
  static double elements[2 * kMostPairs];
  static float x[2 * kMostPairs], norms[kMostPairs];
  const double ps[] = {1, 2, INFINITY};
  for (int layout = 0; layout < kPairLayouts; ++layout) {
    const int64_t count = layout == kInLanes ? pairs / 8 * 8 : pairs;
    for (int64_t i = 0; i < count; ++i) {
      for (int k = 0; k < 2; ++k) elements[place_in_pairs(layout, count, i, k)] = pair[i][k];
    }
    store_numbers(elements, 2 * count, dtype, x);
    spk_block *block = pairs_of(dtype, layout, count);
    const spk_buffer leaf = {x, 2 * count, dtype, SPK_LAYOUT_VIEW, NULL};
    const spk_buffer out = {norms, count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
    for (int j = 0; j < COUNT(ps); ++j) {
      assert_ok(spk_block_norms(NULL, block, &leaf, 1, ps[j], &out));
      for (int64_t i = 0; i < count; ++i) {
        const float want = norm_of_pair(ps[j], pair[i][0], pair[i][1]);
        if (SAME_FLOAT(norms[i], want)) continue;
        fail_msg("layout %d, p %g: norm of %a and %a: got %a, expected %a", layout, ps[j],
                 pair[i][0], pair[i][1], norms[i], want);
      }
    }
    spk_block_release(block);
  }
}

/* Each one where floats become subnormal, lose bits of squares, or overflow when squared or at all;
 * some of the others. */
static int next_exponent(int e) {
  const bool is_edge = e < -130 || (e >= -44 && e <= -33) || (e >= 56 && e <= 67) || e > 118;
  return e + (is_edge ? 1 : 11);
}

/* All pairs of numbers from the ends and the middle of the range of floats; one is not a number. */
static void norms_of_pairs_of_all_sizes(void **state) {
  (void)state;
  static double pair[kMostPairs][2];
  double number[180] = {0, -0.0, INFINITY, -INFINITY, NAN, FLT_MAX, -FLT_MAX, FLT_MIN};
  int numbers = 8;
  for (int e = -149; e < 128; e = next_exponent(e)) {
    number[numbers++] = two_to(e);
    number[numbers++] = -(double)(float)(1.7 * two_to(e));
  }
  assert_true(numbers <= COUNT(number) && numbers * numbers <= kMostPairs);
  int64_t pairs = 0;
  for (int i = 0; i < numbers; ++i) {
    for (int j = 0; j < numbers; ++j) {
      pair[pairs][0] = number[i];
      pair[pairs++][1] = number[j];
    }
  }
  check_pairs(SPK_F32, pair, pairs);
}

/* A leg that makes the norm as much longer than the other as half of that one's last bit: its
 * neighbours lead to either side of the middle of two floats, from 2^-47 of the norm on. */
static void norms_of_pairs_near_the_middle_of_two_floats(void **state) {
  (void)state;
  static double pair[kMostPairs][2];
  int64_t pairs = 0;
  for (int start = 0; start < 400; ++start) {
    const int exponent = start % 150 - 60;
    const float longer = ldexpf((float)((1 << 23) + start * 20963), exponent - 23);
    const double last = two_to(exponent - 23);
    const float shorter = (float)sqrt(longer * last + last * last / 4);
    for (int away = 0; away < 16; ++away) {
      for (int side = -1; side <= 1; side += 2) {
        const double off = side * ldexp(shorter, away - 24);
        pair[pairs][start % 2] = side * (double)longer;
        pair[pairs++][(start + 1) % 2] = (float)(shorter + off);
      }
    }
  }
  check_pairs(SPK_F32, pair, pairs - 3);
}

static void norms_of_few_pairs_and_of_narrow_ones(void **state) {
  (void)state;
  static double pair[300][2];
  for (int i = 0; i < 300; ++i) {
    pair[i][0] = ldexp(tiny_element(2 * i), i % 17 - 8);
    pair[i][1] = ldexp(tiny_element(2 * i + 1), i % 13 - 6);
  }
  for (int64_t pairs = 8; pairs < 300; pairs += pairs < 50 ? 1 : 49) {
    check_pairs(SPK_F32, pair, pairs);
    check_pairs(SPK_F16, pair, pairs);
    check_pairs(SPK_BF16, pair, pairs);
  }
}

/* Along such rows sums run in lanes, of which the last elements fill some. */
static void blocks_with_rows_of_a_few_lanes(void **state) {
  (void)state;
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
  const int wides[] = {8, 9, 10, 13, 15, 16, 17, 24, 31, 32, 33, 64};
  const int counts[] = {1, 3, 4, 5, 7, 8, 9, 13, 45};
  for (int d = 0; d < COUNT(dtypes); ++d) {
    check_tiny(dtypes[d], 17, 9, 1, 45, 0); /* more rows of nine than are added at once */
    for (int high = 1; high <= 2; ++high) {
      for (int w = 0; w < COUNT(wides); ++w) {
        for (int c = 0; c < COUNT(counts); ++c) {
          check_tiny(dtypes[d], high, wides[w], 1, counts[c], 0);
          check_tiny(dtypes[d], high, wides[w], 3, counts[c], 0);
          check_tiny(dtypes[d], high, wides[w], 3, counts[c], kTinyGap);
        }
      }
    }
  }
}

/* Rows of about as many blocks as lanes: each is over when it has begun. */
static void blocks_across_short_rows(void **state) {
  (void)state;
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
  for (int d = 0; d < COUNT(dtypes); ++d) {
    for (int high = 1; high <= 3; ++high) {
      for (int across = 6; across <= 17; ++across) {
        check_tiny(dtypes[d], high, 1, 25, across, kTinyGap);
      }
    }
  }
}

/* A row of tiles beside each other, of whole numbers. */
static void check_tiles(int32_t dtype, int high, int wide, int count) {
  enum { kMost = 20 * 130 * 11 };
  static float x[kMost];
  static uint16_t words[kMost];
  static const uint16_t bf16_of[] = {0, 0x3f80, 0x4000, 0x4040, 0x4080}; /* 0 to 4 */
  float norms[3][11];
  double sums[11] = {0};
  double squares[11] = {0};
  double largest[11] = {0};
  const int64_t numel = (int64_t)high * wide * count;
  for (int i = 0; i < numel; ++i) {
    const int tile = i % (wide * count) / wide;
    const int number = (i * 7 + i / 13) % 5;
    x[i] = (float)(i % 3 ? number : -number);
    words[i] = (uint16_t)(bf16_of[number] | (i % 3 ? 0 : 0x8000));
    sums[tile] += number;
    squares[tile] += number * number;
    largest[tile] = fmax(largest[tile], number);
  }
  char view[32];
  snprintf(view, sizeof view, "(%d,%d)", high, wide * count);
  spk_block *block = blocks_of(dtype, view, DIMS(high, wide));
  void *const data = dtype == SPK_F32 ? (void *)x : words;
  const spk_buffer leaf = {data, numel, dtype, SPK_LAYOUT_VIEW, NULL};
  const double kinds[] = {1, 2, INFINITY};
  for (int k = 0; k < 3; ++k) {
    const spk_buffer out = {norms[k], count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
    assert_ok(spk_block_norms(NULL, block, &leaf, 1, kinds[k], &out));
  }
  for (int t = 0; t < count; ++t) {
    assert_f32(&norms[0][t], (float)sums[t]);
    assert_f32(&norms[1][t], (float)sqrt(squares[t]));
    assert_f32(&norms[2][t], (float)largest[t]);
  }
  spk_block_release(block);
}

static void tiles_of_any_width_and_number(void **state) {
  (void)state;
  const int wides[] = {16, 17, 24, 32, 33, 40, 64, 100, 128, 130};
  const int highs[] = {2, 8, 20};
  for (int64_t w = 0; w < COUNT(wides); ++w) {
    for (int64_t h = 0; h < COUNT(highs); ++h) {
      for (int count = 1; count <= 11; ++count) {
        check_tiles(SPK_F32, highs[h], wides[w], count);
        check_tiles(SPK_BF16, highs[h], wides[w], count);
      }
    }
  }
}

/* Blocks beside each other, one for each of their places, which holds a multiple of `number` among
 * smaller ones. They begin where an element may, not a register. */
static void check_places(int32_t dtype, int high, int wide, double number, double others) {
  enum { kMost = 2 * 2 * 300 * 300 };
  static double doubles[kMost];
  static uint64_t x[kMost + 1];
  static double norms[2 * 300];
  const int64_t pitch = (int64_t)high * wide * wide;
  for (int64_t i = 0; i < high * pitch; ++i) doubles[i] = i % 2 ? others : -others;
  for (int place = 0; place < high * wide; ++place) {
    const int64_t first = (int64_t)place * wide;
    doubles[place / wide * pitch + first + place % wide] = number * (1 + place % 7);
  }
  char *const data = (char *)x + size_of(dtype);
  store_numbers(doubles, high * pitch, dtype, data);
  char text[32];
  snprintf(text, sizeof text, "(%d,%d)", high, (int)pitch);
  spk_block *block = blocks_of(dtype, text, DIMS(high, wide));
  const spk_buffer leaf = {data, high * pitch, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer out = {norms, (int64_t)high * wide, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer rounded = {norms, (int64_t)high * wide, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_norms(NULL, block, &leaf, 1, INFINITY, dtype == SPK_F64 ? &out : &rounded));
  for (int b = 0; b < high * wide; ++b) {
    const double got = dtype == SPK_F64 ? norms[b] : (double)((const float *)norms)[b];
    assert_f64(&got, fabs(number) * (1 + b % 7));
  }
  spk_block_release(block);
}

static void the_largest_magnitude_may_be_anywhere(void **state) {
  (void)state;
  const struct {
    int32_t dtype;
    double least; /* of f16 the least normal one */
  } kinds[] = {{SPK_F32, 0x1p-149}, {SPK_F64, 0x1p-1074}, {SPK_F16, 0x1p-14}, {SPK_BF16, 0x1p-133}};
  const int wides[] = {1, 2, 3, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 64, 100, 256, 300};
  for (int k = 0; k < COUNT(kinds); ++k) {
    for (int w = 0; w < COUNT(wides); ++w) {
      for (int high = 1; high <= 2; ++high) {
        check_places(kinds[k].dtype, high, wides[w], -3, 0.125);
        check_places(kinds[k].dtype, high, wides[w], -INFINITY, 2);
        check_places(kinds[k].dtype, high, wides[w], NAN, INFINITY);
        check_places(kinds[k].dtype, high, wides[w], -kinds[k].least, 0);
      }
    }
  }
}

/* So many that boxes are as large as they get, in which rows are read at several places in turn. */
enum { kManyElements = 2200000 };
static uint64_t many_elements[kManyElements];

/* An eighth of them is 0; the others have either sign, and all bits that a float has. */
static void fill_many(int32_t dtype) {
  static double doubles[kManyElements];
  for (int64_t i = 0; i < kManyElements; ++i) {
    const uint64_t seed = (uint64_t)i * 0x9e3779b97f4a7c15u;
    const double magnitude = (double)(0x800000 + (seed >> 40 >> 1)) * 0x1p-23;
    const double sign = seed >> 21 & 1 ? -1 : 1;
    doubles[i] = (seed >> 36 & 7) == 0 ? 0 : sign * ldexp(magnitude, (int)(seed >> 30 & 15) - 8);
  }
  store_numbers(doubles, kManyElements, dtype, many_elements);
}

/* The norms of `rows` rows from element `first` on, `pitch` elements from one to the next. */
static void norms_of_rows(int32_t dtype, int64_t first, int64_t rows, int wide, int64_t pitch,
                          double p, void *norms) {
  char text[64];
  snprintf(text, sizeof text, "(%d,%d):(%d,1)+%d", (int)rows, wide, (int)pitch, (int)first);
  spk_block *block = blocks_of(dtype, text, DIMS(1, wide));
  const spk_buffer leaf = {many_elements, kManyElements, dtype, SPK_LAYOUT_VIEW, NULL};
  const int32_t of_norms = dtype == SPK_F64 ? SPK_F64 : SPK_F32;
  const spk_buffer out = {norms, rows, of_norms, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_norms(NULL, block, &leaf, 1, p, &out));
  spk_block_release(block);
}

/* The norms of `wide` columns of `high` elements from element `first` on, `pitch` from row to row. */
static void norms_of_columns(int32_t dtype, int64_t first, int high, int wide, int pitch, double p,
                             void *norms) {
  char text[64];
  snprintf(text, sizeof text, "(%d,%d):(%d,1)+%d", high, wide, pitch, (int)first);
  spk_block *block = blocks_of(dtype, text, DIMS(high, 1));
  const spk_buffer leaf = {many_elements, kManyElements, dtype, SPK_LAYOUT_VIEW, NULL};
  const int32_t of_norms = dtype == SPK_F64 ? SPK_F64 : SPK_F32;
  const spk_buffer out = {norms, wide, of_norms, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_norms(NULL, block, &leaf, 1, p, &out));
  spk_block_release(block);
}

/* Many columns side by side have the norms that five of them have. */
static void check_columns(int32_t dtype, int high, int wide, double p) {
  enum { kFew = 5, kMost = 9000, kApart = 97 };
  static uint64_t all[kMost];
  const int64_t size = size_of(dtype == SPK_F64 ? SPK_F64 : SPK_F32);
  memset(all, 0xff, sizeof all); /* what is left out is no norm */
  norms_of_columns(dtype, 0, high, wide, wide, p, all);
  for (int column = 0; column < wide; column += kApart) {
    uint64_t few[kFew];
    const int first = column + kApart < wide ? column : wide - kFew;
    norms_of_columns(dtype, first, high, kFew, wide, p, few);
    if (memcmp(few, (const char *)all + first * size, (size_t)(kFew * size)) == 0) continue;
    fail_msg("dtype %d, %d columns of %d, p %g: those from %d on have other norms", dtype, wide,
             high, p, first);
  }
}

static void norms_of_many_columns_are_those_of_few(void **state) {
  (void)state;
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
  const int highs[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 100};
  const int wides[] = {511, 1031, 2053, 4096, 8707};
  const double norms[] = {0, 1, 2, INFINITY, -INFINITY};
  for (int d = 0; d < COUNT(dtypes); ++d) {
    fill_many(dtypes[d]);
    for (int h = 0; h < COUNT(highs); ++h) {
      for (int w = 0; w < COUNT(wides); ++w) {
        for (int p = 0; p < COUNT(norms); ++p) {
          check_columns(dtypes[d], highs[h], wides[w], norms[p]);
        }
      }
    }
  }
}

/* Many rows, `gap` elements apart, have the norms that three of them have, forwards and back. */
static void check_rows(int32_t dtype, int wide, int gap, double p) {
  enum { kFew = 3, kWindows = 200 };
  static uint64_t all[kManyElements / 8];
  static uint64_t back[kManyElements / 8];
  const int64_t size = size_of(dtype == SPK_F64 ? SPK_F64 : SPK_F32);
  const int64_t pitch = wide + gap;
  const int64_t rows = (kManyElements - wide) / pitch + 1;
  memset(all, 0xff, sizeof all); /* what is left out both ways differs */
  memset(back, 0xfe, sizeof back);
  norms_of_rows(dtype, 0, rows, wide, pitch, p, all);
  norms_of_rows(dtype, (rows - 1) * pitch, rows, wide, -pitch, p, back);
  const char *const norms = (const char *)all;
  for (int64_t row = 0; row < rows; ++row) {
    const int differ =
        memcmp(norms + row * size, (const char *)back + (rows - 1 - row) * size, (size_t)size);
    if (differ) fail_msg("rows of %d, p %g: row %d has another norm backwards", wide, p, (int)row);
  }
  for (int64_t row = 0; row <= rows - kFew; row += 1 + rows / kWindows) {
    uint64_t few[kFew];
    const int64_t first = row + rows / kWindows < rows - kFew ? row : rows - kFew;
    norms_of_rows(dtype, first * pitch, kFew, wide, pitch, p, few);
    if (memcmp(few, norms + first * size, (size_t)(kFew * size)) == 0) continue;
    fail_msg("dtype %d, rows of %d, p %g: those from %d on have other norms", dtype, wide, p,
             (int)first);
  }
}

static void norms_of_many_rows_are_those_of_few(void **state) {
  (void)state;
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
  const int wides[] = {8, 9, 12, 16, 24, 32, 64, 100, 256, 300, 512, 1000, 3000};
  const double p[] = {1, 2, INFINITY, 0};
  for (int d = 0; d < COUNT(dtypes); ++d) {
    fill_many(dtypes[d]);
    for (int w = 0; w < COUNT(wides); ++w) {
      for (int gap = 0; gap <= 5; gap += 5) {
        for (int k = 0; k < COUNT(p); ++k) {
          if (dtypes[d] == SPK_F32 || k == (d + w) % 4) check_rows(dtypes[d], wides[w], gap, p[k]);
        }
      }
    }
  }
}

/* One block of elements that are not neighbours, more than lanes and not a multiple of them. */
static void the_largest_magnitude_of_elements_apart(void **state) {
  (void)state;
  enum { kCount = 21, kApart = 2, kSpan = kCount * kApart };
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
  for (int d = 0; d < COUNT(dtypes); ++d) {
    spk_block *block = blocks_of(dtypes[d], "(21):(2)", DIMS(kCount));
    for (int place = 0; place < kCount; ++place) {
      double doubles[kSpan];
      uint64_t x[kSpan];
      for (int i = 0; i < kSpan; ++i) doubles[i] = i % kApart ? 100 : 1;
      doubles[kApart * place] = -2 - place;
      store_numbers(doubles, kSpan, dtypes[d], x);
      const spk_buffer leaf = {x, kSpan, dtypes[d], SPK_LAYOUT_VIEW, NULL};
      double norm[1];
      float rounded[1];
      const bool is_double = dtypes[d] == SPK_F64;
      assert_ok(
          spk_block_norms(NULL, block, &leaf, 1, INFINITY, is_double ? &F64(norm) : &F32(rounded)));
      if (!is_double) norm[0] = (double)rounded[0];
      assert_f64(norm, 2 + place);
    }
    spk_block_release(block);
  }
}

static void the_largest_magnitude_may_be_subnormal(void **state) {
  (void)state;
  uint16_t x[19] = {0};
  x[1] = 1;
  x[17] = 0x8003;
  assert_norm(INFINITY, F16(x), 3 * two_to(-24));
  assert_norm(INFINITY, BF16(x), 3 * two_to(-133));
}

/* Blocks of a few elements far apart, whose neighbours are as far from each other as they would be
 * if blocks were contiguous. */
static void norms_of_scattered_blocks(void **state) {
  (void)state;
  enum { kColumns = 16, kDistance = 100 };
  float x[4 * kDistance];
  float norms[kColumns];
  for (int i = 0; i < COUNT(x); ++i) x[i] = (float)tiny_element(i);
  for (int size = 2; size <= 4; ++size) {
    char text[64];
    snprintf(text, sizeof text, "(%d,%d):(%d,%d)", size, kColumns, kDistance, size);
    spk_block *block = blocks_of(SPK_F32, text, DIMS(size, 1));
    assert_ok(spk_block_norms(NULL, block, &F32(x), 1, 1, &F32(norms)));
    spk_block_release(block);
    for (int c = 0; c < kColumns; ++c) {
      double want = 0;
      for (int i = 0; i < size; ++i) want += fabs(x[i * kDistance + c * size]);
      assert_f32(norms + c, (float)want);
    }
  }
}

/* The sum of four that is exact before it is rounded only if they are added one after the other. */
static void few_elements_are_added_in_order(void **state) {
  (void)state;
  enum { kBlocks = 24 };
  float x[kBlocks][4];
  float norms[kBlocks];
  for (int b = 0; b < kBlocks; ++b) {
    x[b][0] = x[b][1] = 0x1p-53f;
    x[b][2] = 1;
    x[b][3] = 0x1p-24f;
  }
  const spk_buffer leaf = {x, 4 * kBlocks, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  spk_block *block = blocks_of(SPK_F32, "(24,4)", DIMS(1, 4));
  assert_ok(spk_block_norms(NULL, block, &leaf, 1, 1, &F32(norms)));
  spk_block_release(block);
  for (int b = 0; b < kBlocks; ++b) assert_f32(norms + b, 1 + 0x1p-23f);
}

/* The same down columns, of rows short and long: in another order the small ones are lost. */
static void rows_are_added_in_order(void **state) {
  (void)state;
  enum { kHigh = 4, kWide = 2053 };
  static float x[kHigh][kWide];
  static float norms[kWide];
  const float column[kHigh] = {0x1p-53f, 0x1p-53f, 1, 0x1p-24f};
  for (int r = 0; r < kHigh; ++r) {
    for (int c = 0; c < kWide; ++c) x[r][c] = column[r];
  }
  const spk_buffer leaf = {x, kHigh * kWide, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const char *const views[] = {"(4,21):(2053,1)", "(4,2053)"};
  for (int v = 0; v < COUNT(views); ++v) {
    spk_block *block = blocks_of(SPK_F32, views[v], DIMS(kHigh, 1));
    const int64_t wide = spk_block_numblk(block);
    const spk_buffer out = {norms, wide, SPK_F32, SPK_LAYOUT_VIEW, NULL};
    assert_ok(spk_block_norms(NULL, block, &leaf, 1, 1, &out));
    spk_block_release(block);
    for (int64_t c = 0; c < wide; ++c) assert_f32(norms + c, 1 + 0x1p-23f);
  }
}

/* --- couplings and scopes ------------------------------------------------------------------ */

static void norms_of_a_coupling_run_over_all_members(void **state) {
  (void)state;
  float x[] = {3, 0, 0, 1};
  uint16_t y[] = {0xc400, 0x3c00, 0x0000, 0x4400}; /* -4, 1, 0, 4 as f16 */
  const spk_buffer leaves[] = {F32(x), F16(y)};
  spk_block *block = coupled_blocks(blocks_of(SPK_F32, "(2,2)", DIMS(1, 2)),
                                    blocks_of(SPK_F16, "(2,2)", DIMS(1, 2)), NULL);
  float norms[2];
  assert_ok(spk_block_norms(NULL, block, leaves, 2, 0, &F32(norms)));
  assert_f32(norms, 3, 2);
  assert_ok(spk_block_norms(NULL, block, leaves, 2, 1, &F32(norms)));
  assert_f32(norms, 8, 5);
  assert_ok(spk_block_norms(NULL, block, leaves, 2, INFINITY, &F32(norms)));
  assert_f32(norms, 4, 4);
  assert_ok(spk_block_norms(NULL, block, leaves, 2, -INFINITY, &F32(norms)));
  assert_f32(norms, 0, 0);
  /* (sqrt(3) + 2 + 1)^2 and (1 + 2)^2 */
  assert_ok(spk_block_norms(NULL, block, leaves, 2, 0.5, &F32(norms)));
  assert_near(norms[0], 12 + 6 * sqrt(3.0), 1e-6 * 22);
  assert_f32(norms + 1, 9);
  x[0] = 0;
  x[1] = 3;
  y[1] = 0;
  assert_ok(spk_block_norms(NULL, block, leaves, 2, 2, &F32(norms)));
  assert_f32(norms, 5);
  spk_block_release(block);
}

static void a_double_member_makes_double_norms(void **state) {
  (void)state;
  float x[] = {3e30f};
  double y[] = {1e200};
  double norms[1];
  const spk_buffer leaves[] = {F32(x), F64(y)};
  spk_block *block =
      coupled_blocks(blocks_of(SPK_F32, "(1)", NO_DIMS), blocks_of(SPK_F64, "(1)", NO_DIMS), NULL);
  assert_ok(spk_block_norms(NULL, block, leaves, 2, 2, &F64(norms)));
  assert_f64(norms, 1e200);
  assert_ok(spk_block_norms(NULL, block, leaves, 2, -INFINITY, &F64(norms)));
  assert_f64(norms, 3e30f);
  spk_block_release(block);
}

static void scopes_arrange_the_norms_of_their_blocks(void **state) {
  (void)state;
  /* Block (r, c) of a 4 x 2 grid holds 10 r + c and a smaller number. */
  float x[4][2][2];
  float norms[8];
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 2; ++c) {
      x[r][c][0] = -1;
      x[r][c][1] = (float)(10 * r + c + 2);
    }
  }
  const spk_buffer leaf = {x, 16, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(4,4)", DIMS(1, 2)), DIMS(2, 1));
  assert_ok(spk_scope_block_norms(NULL, scope, &leaf, 1, INFINITY, &F32(norms)));
  assert_f32(norms, 2, 12, 3, 13, 22, 32, 23, 33);
  spk_scope_release(scope);
}

static void scope_couplings_concatenate_norms_in_member_order(void **state) {
  (void)state;
  /* Two scopes of 2 blocks of one element, and two of 1 block of two elements. */
  float x[] = {1, -2, 3, -4};
  double y[] = {5, 6, 7, 8};
  double norms[6];
  const spk_buffer leaves[] = {F32(x), F64(y)};
  spk_scope *scope = coupled_scopes(scopes_over(blocks_of(SPK_F32, "(4)", NO_DIMS), DIMS(2)),
                                    scopes_over(blocks_of(SPK_F64, "(4)", DIMS(2)), DIMS(1)), NULL);
  assert_ok(spk_scope_block_norms(NULL, scope, leaves, 2, 1.0, &F64(norms)));
  assert_f64(norms, 1, 2, 11, 3, 4, 15);
  spk_scope_release(scope);
}

/* --- the host's floating-point mode -------------------------------------------------------- */

static void the_rounding_mode_of_the_host_does_not_matter(void **state) {
  (void)state;
  float x[] = {1, 1, 1};
  const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  for (int64_t i = 0; i < COUNT(modes); ++i) {
    assert_int_equal(fesetround(modes[i]), 0);
    const double norm = norm_of(2, F32(x));
    const int mode = fegetround();
    fesetround(FE_TONEAREST);
    assert_int_equal(mode, modes[i]);
    assert_f64(&norm, 1.73205077648162842); /* sqrt(3) as a float */
  }
}

static void denormals_count_whatever_the_host_flushes(void **state) {
  (void)state;
#if defined(__x86_64__)
  float x[] = {(float)(3 * two_to(-149)), (float)(4 * two_to(-149))};
  float norms[1];
  spk_block *block = blocks_of(SPK_F32, "(2)", DIMS(2));
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040); /* flush to zero, denormals are zero */
  const spk_status status = spk_block_norms(NULL, block, &F32(x), 1, 2, &F32(norms));
  const unsigned after = _mm_getcsr();
  _mm_setcsr(mode);
  assert_ok(status);
  assert_int_equal(after & 0x8040, 0x8040);
  assert_f32(norms, (float)(5 * two_to(-149)));
  spk_block_release(block);
#else
  skip();
#endif
}

/* More norms than caches hold are written past them, from wherever the array begins: `before` floats
 * behind the beginning of a cache line. */
enum { kMany = (1 << 23) + 5, kLine = 16 };

static void check_many(int32_t dtype, int64_t size, const char *text, int rows, double p,
                       int before) {
  uint8_t *x = malloc((size_t)(rows * kMany * size));
  float *lines = aligned_alloc(64, (kMany / kLine + 3) * 64);
  assert_true(x && lines);
  float *norms = lines + before;
  norms[-1] = norms[kMany] = -1; /* around the array */
  for (int64_t i = 0; i < (int64_t)rows * kMany; ++i) {
    const float value = (float)(i % 127 - 63);
    const uint16_t half = (uint16_t)(bits_of(value) >> 16);
    memcpy(x + i * size, size == 2 ? (const void *)&half : &value, (size_t)size);
  }
  spk_block *block = blocks_of(dtype, text, DIMS(rows, 1));
  const spk_buffer leaf = {x, (int64_t)rows * kMany, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer out = {norms, kMany, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_norms(NULL, block, &leaf, 1, p, &out));
  spk_block_release(block);
  for (int64_t i = 0; i < kMany; ++i) {
    double want = 0;
    for (int r = 0; r < rows; ++r) want += fabs((double)((i + r * (int64_t)kMany) % 127 - 63));
    if (norms[i] != want) fail_msg("norm %d: got %g, expected %g", (int)i, norms[i], want);
  }
  assert_true(norms[-1] == -1 && norms[kMany] == -1);
  free(lines);
  free(x);
}

/* Pairs as many, from where allocators' arrays begin, too. */
static void check_many_pairs(int layout, double p, int before) {
  const int64_t pairs = kMany / 8 * 8 + 8;
  float *x = malloc((size_t)(2 * pairs) * sizeof *x);
  float *lines = aligned_alloc(64, (kMany / kLine + 3) * 64);
  assert_true(x && lines);
  float *norms = lines + before;
  norms[-1] = norms[pairs] = -1; /* around the array */
  for (int64_t i = 0; i < 2 * pairs; ++i) x[i] = (float)(i % 127 - 63);
  spk_block *block = pairs_of(SPK_F32, layout, pairs);
  const spk_buffer leaf = {x, 2 * pairs, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer out = {norms, pairs, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_norms(NULL, block, &leaf, 1, p, &out));
  spk_block_release(block);
  for (int64_t i = 0; i < pairs; ++i) {
    const float want = norm_of_pair(p, x[place_in_pairs(layout, pairs, i, 0)],
                                    x[place_in_pairs(layout, pairs, i, 1)]);
    if (norms[i] != want) fail_msg("norm %d: got %g, expected %g", (int)i, norms[i], want);
  }
  assert_true(norms[-1] == -1 && norms[pairs] == -1);
  free(lines);
  free(x);
}

/* Rows of them with gaps between, whose norms do not end with a register. */
static void check_many_rows_of_pairs(double p) {
  enum { kRows = 8400, kInRow = 1001, kPitch = 2 * kInRow + 2 };
  float *x = malloc(sizeof *x * kRows * kPitch);
  float *norms = aligned_alloc(64, sizeof *norms * kRows * kInRow);
  assert_true(x && norms);
  for (int64_t i = 0; i < kRows * (int64_t)kPitch; ++i) x[i] = (float)(i % 127 - 63);
  spk_block *block = blocks_of(SPK_F32, "(8400,1001,2):(2004,2,1)", DIMS(1, 1, 2));
  const spk_buffer leaf = {x, kRows * (int64_t)kPitch, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer out = {norms, kRows * (int64_t)kInRow, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_norms(NULL, block, &leaf, 1, p, &out));
  spk_block_release(block);
  for (int64_t i = 0; i < kRows * (int64_t)kInRow; ++i) {
    const float *pair = x + i / kInRow * kPitch + i % kInRow * 2;
    const float want = norm_of_pair(p, pair[0], pair[1]);
    if (norms[i] != want) fail_msg("norm %d: got %g, expected %g", (int)i, norms[i], want);
  }
  free(norms);
  free(x);
}

static void many_norms(void **state) {
  (void)state;
  check_many(SPK_F32, 4, "(1,8388613)", 1, 2, 1);
  check_many(SPK_BF16, 2, "(1,8388613)", 1, 2, 1);
  check_many(SPK_F32, 4, "(2,8388613)", 2, 1, 1);
  check_many(SPK_F32, 4, "(2,8388613)", 2, 1, kLine);
  check_many_rows_of_pairs(1);
  check_many_rows_of_pairs(2);
  const int before[] = {1, 4, 8, kLine};
  for (int i = 0; i < COUNT(before); ++i) {
    check_many_pairs(i % kPairLayouts, 2, before[i]);
    check_many_pairs(kInLanes, 1, before[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(norms_with_every_kind_of_p),
      TEST(other_p_keep_their_error_bound),
      TEST(a_single_element_has_its_magnitude_as_norm),
      TEST(zero_blocks_have_norm_plus_zero),
      TEST(nan_is_a_nonzero_and_else_propagates),
      TEST(infinity_is_a_number),
      TEST(f32_neither_overflows_nor_underflows_on_the_way),
      TEST(f64_neither_overflows_nor_underflows_on_the_way),
      TEST(f16_and_bf16_are_read_exactly),
      TEST(small_terms_are_not_lost),
      TEST(small_terms_of_tall_blocks_are_not_lost),
      TEST(blocks_of_strided_views),
      TEST(layout_of_the_buffer_may_differ_from_the_view),
      TEST(each_f64_block_has_its_own_scale),
      TEST(large_blocks_and_many_blocks),
      TEST(blocks_with_rows_of_a_few_elements),
      TEST(norms_in_the_middle_of_two_floats_are_even),
      TEST(norms_of_pairs_of_all_sizes),
      TEST(norms_of_pairs_near_the_middle_of_two_floats),
      TEST(norms_of_few_pairs_and_of_narrow_ones),
      TEST(blocks_with_rows_of_a_few_lanes),
      TEST(blocks_across_short_rows),
      TEST(norms_of_scattered_blocks),
      TEST(few_elements_are_added_in_order),
      TEST(rows_are_added_in_order),
      TEST(more_blocks_than_one_box_holds),
      TEST(tiles_of_any_width_and_number),
      TEST(norms_of_many_rows_are_those_of_few),
      TEST(norms_of_many_columns_are_those_of_few),
      TEST(the_largest_magnitude_may_be_anywhere),
      TEST(the_largest_magnitude_of_elements_apart),
      TEST(the_largest_magnitude_may_be_subnormal),
      TEST(norms_of_a_coupling_run_over_all_members),
      TEST(a_double_member_makes_double_norms),
      TEST(scopes_arrange_the_norms_of_their_blocks),
      TEST(scope_couplings_concatenate_norms_in_member_order),
      TEST(the_rounding_mode_of_the_host_does_not_matter),
      TEST(denormals_count_whatever_the_host_flushes),
      TEST(strides_of_extent_one_do_not_matter),
      TEST(many_norms),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
