/* Masks and multipliers: exact zeros, one rounding a product, in place and into other buffers. */
#include <float.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "support.h"

/* --- masks --------------------------------------------------------------------------------- */

static void masked_blocks_become_plus_zero(void **state) {
  (void)state;
  float x[] = {NAN, -INFINITY, -1, -0.0f, -2, NAN, 3, -0.0f};
  uint8_t mask[] = {1, 255, 0, 0};
  spk_block *block = blocks_of(SPK_F32, "(8)", DIMS(2));
  assert_ok(spk_block_apply_mask(NULL, block, &F32(x), NULL, 1, &U8(mask)));
  assert_f32(x, 0, 0, 0, 0, -2, NAN, 3, -0.0f);
  spk_block_release(block);
}

static void keep_masks_say_what_survives(void **state) {
  (void)state;
  float x[] = {NAN, -INFINITY, -1, -0.0f, -2, NAN, 3, -0.0f};
  uint8_t mask[] = {0, 0, 1, 255};
  spk_block *block = blocks_of(SPK_F32, "(8)", DIMS(2));
  assert_ok(spk_block_apply_keep_mask(NULL, block, &F32(x), NULL, 1, &U8(mask)));
  assert_f32(x, 0, 0, 0, 0, -2, NAN, 3, -0.0f);
  spk_block_release(block);
}

static void masks_leave_what_the_view_does_not_reach(void **state) {
  (void)state;
  double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  uint8_t mask[] = {1, 0, 0, 1};
  spk_block *block = blocks_of(SPK_F64, "(2,2):(5,2)+1", NO_DIMS);
  assert_ok(spk_block_apply_mask(NULL, block, &F64(x), NULL, 1, &U8(mask)));
  assert_f64(x, 1, 0, 3, 4, 5, 6, 7, 8, 0, 10);
  spk_block_release(block);
}

static void into_receives_the_result_and_leaves_are_only_read(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4, 5, 6};
  float y[] = {-1, -2, -3, -4, -5, -6};
  uint8_t mask[] = {0, 1};
  spk_block *block = blocks_of(SPK_F32, "(2,2):(3,1)+1", DIMS(1, 2));
  assert_ok(spk_block_apply_mask(NULL, block, &F32(x), &F32(y), 1, &U8(mask)));
  assert_f32(x, 1, 2, 3, 4, 5, 6);
  assert_f32(y, -1, 2, 3, -4, 0, 0);
  /* The same, with a layout of its own for the result. */
  float z[] = {-1, -2, -3, -4};
  assert_ok(spk_block_apply_mask(NULL, block, &F32(x), &CONTIGUOUS(z, SPK_F32), 1, &U8(mask)));
  assert_f32(z, 2, 3, 0, 0);
  spk_block_release(block);
}

static void into_may_be_the_leaves_themselves(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4};
  uint8_t mask[] = {0, 1, 1, 0};
  spk_block *block = blocks_of(SPK_F32, "(4)", NO_DIMS);
  assert_ok(spk_block_apply_mask(NULL, block, &F32(x), &F32(x), 1, &U8(mask)));
  assert_f32(x, 1, 0, 0, 4);
  spk_block_release(block);
}

static void masks_of_16_bit_floats_and_couplings(void **state) {
  (void)state;
  uint16_t x[] = {0x7e01, 0x3c00, 0x8000, 0x7d01};
  uint16_t y[] = {0xff81, 0x3f80};
  uint8_t mask[] = {1, 0};
  const spk_buffer leaves[] = {F16(x), BF16(y)};
  spk_block *block =
      coupled_blocks(blocks_of(SPK_F16, "(4)", DIMS(2)), blocks_of(SPK_BF16, "(2)", DIMS(1)), NULL);
  assert_ok(spk_block_apply_mask(NULL, block, leaves, NULL, 2, &U8(mask)));
  assert_words(x, 0, 0, 0x8000, 0x7d01);
  assert_words(y, 0, 0x3f80);
  spk_block_release(block);
}

static uint8_t is_dead(int64_t block) {
  return (block * 2654435761u >> 7) % 3 == 0;
}

/* Any byte but 0 names a block. */
static uint8_t byte_of(int64_t block) {
  static const uint8_t kSet[] = {1, 2, 64, 128, 254, 255, 3};
  return is_dead(block) ? kSet[block % COUNT(kSet)] : 0;
}

static spk_status apply_either(bool keeps, const spk_block *block, const spk_buffer *leaf,
                               const spk_buffer *into, const spk_buffer *masks) {
  return keeps ? spk_block_apply_keep_mask(NULL, block, leaf, into, 1, masks)
               : spk_block_apply_mask(NULL, block, leaf, into, 1, masks);
}

enum { kGappedBlocks = 700, kGappedRows = 3, kGappedRow = 8, kGappedPitch = 10 };

/* Blocks of rows with gaps between them, and between the blocks: their own rows are neighbours, not
 * those of other blocks. There are more of them than are masked in one go. */
static void masks_of_blocks_with_gaps(void **state) {
  (void)state;
  enum { kPitch = kGappedPitch * kGappedRows + 2, kNumel = kGappedBlocks * kPitch };
  static double x[kNumel];
  uint8_t mask[kGappedBlocks];
  for (int i = 0; i < kNumel; ++i) x[i] = i + 1;
  for (int b = 0; b < kGappedBlocks; ++b) mask[b] = is_dead(b);
  char text[64];
  snprintf(text, sizeof text, "(%d,%d,%d):(%d,%d,1)", kGappedBlocks, kGappedRows, kGappedRow,
           kPitch, kGappedPitch);
  spk_block *block = blocks_of(SPK_F64, text, DIMS(1, kGappedRows, kGappedRow));
  assert_ok(spk_block_apply_mask(NULL, block, &F64(x), NULL, 1, &U8(mask)));
  for (int i = 0; i < kNumel; ++i) {
    const int in_block = i % kPitch;
    const bool inside =
        in_block / kGappedPitch < kGappedRows && in_block % kGappedPitch < kGappedRow;
    assert_true(x[i] == (inside && is_dead(i / kPitch) ? 0 : i + 1));
  }
  spk_block_release(block);
}

/* Tensors of more than caches hold, whose blocks are whole cache lines or begin elsewhere. */
enum { kBigRows = 4096, kBigColumns = 2080 };

enum { kShortRows = 45, kMostShort = 40, kShortGroups = 2 };

/* Rows of `n` elements of `size` bytes, two groups with a gap between. */
static void check_short_rows(int32_t dtype, int64_t size, int64_t n, bool keeps) {
  _Alignas(8) uint8_t x[kShortGroups * (kShortRows + 1) * kMostShort * 8];
  _Alignas(8) uint8_t y[sizeof x];
  uint8_t was[sizeof x];
  uint8_t mask[kShortGroups * kShortRows];
  for (size_t i = 0; i < sizeof x; ++i) was[i] = x[i] = (uint8_t)(i % 251 + 1);
  for (int64_t b = 0; b < COUNT(mask); ++b) mask[b] = byte_of(b);
  char text[64];
  const int64_t group = (kShortRows + 1) * n;
  snprintf(text, sizeof text, "(%d,%d):(%d,1)", kShortGroups, (int)(kShortRows * n), (int)group);
  spk_block *block = blocks_of(dtype, text, DIMS(1, n));
  const spk_buffer leaf = {x, kShortGroups * group, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer into = {y, kShortGroups * group, dtype, SPK_LAYOUT_VIEW, NULL};
  memset(y, 0xff, sizeof y);
  assert_ok(apply_either(keeps, block, &leaf, &into, &U8(mask)));
  assert_memory_equal(x, was, sizeof x);
  assert_ok(apply_either(keeps, block, &leaf, NULL, &U8(mask)));
  for (int64_t i = 0; i < (int64_t)sizeof x; ++i) {
    const int64_t element = i / size;
    const int64_t row = element % group / n;
    const bool inside = element < kShortGroups * group && row < kShortRows;
    const bool dead = inside && is_dead(element / group * kShortRows + row) != keeps;
    assert_int_equal(x[i], dead ? 0 : was[i]);
    assert_int_equal(y[i], inside ? x[i] : 0xff);
  }
  spk_block_release(block);
}

/* Blocks of some rows of one element, eight of them side by side. */
enum { kStackedGroups = 37, kMostStacked = 6, kBeside = 8 };

static spk_block *stacked_blocks(int32_t dtype, int high) {
  char text[32];
  snprintf(text, sizeof text, "(%d,%d)", kStackedGroups * high, kBeside);
  return blocks_of(dtype, text, DIMS(high, 1));
}

static int block_of_stacked(int64_t i, int high) {
  return (int)(i / (high * kBeside) * kBeside + i % kBeside);
}

static void check_masks_of_stacked(int32_t dtype, int64_t size, int high, bool keeps) {
  enum { kBlocks = kStackedGroups * kBeside, kMost = kBlocks * kMostStacked };
  _Alignas(8) uint8_t x[kMost * 8], y[kMost * 8], was[kMost * 8];
  uint8_t mask[kBlocks];
  const int64_t numel = (int64_t)kBlocks * high;
  for (int64_t i = 0; i < numel * size; ++i) was[i] = x[i] = (uint8_t)(i % 251 + 1);
  for (int b = 0; b < kBlocks; ++b) mask[b] = byte_of(b);
  spk_block *block = stacked_blocks(dtype, high);
  const spk_buffer leaf = {x, numel, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer into = {y, numel, dtype, SPK_LAYOUT_VIEW, NULL};
  assert_ok(apply_either(keeps, block, &leaf, &into, &U8(mask)));
  assert_memory_equal(x, was, (size_t)(numel * size));
  assert_ok(apply_either(keeps, block, &leaf, NULL, &U8(mask)));
  assert_memory_equal(x, y, (size_t)(numel * size));
  for (int64_t i = 0; i < numel * size; ++i) {
    const bool is_named = mask[block_of_stacked(i / size, high)] != 0;
    assert_int_equal(x[i], is_named == keeps ? was[i] : 0);
  }
  spk_block_release(block);
}

static void masks_of_stacked_elements(void **state) {
  (void)state;
  for (int high = 2; high <= kMostStacked; ++high) {
    for (int keeps = 0; keeps < 2; ++keeps) {
      check_masks_of_stacked(SPK_F32, 4, high, keeps == 1);
      check_masks_of_stacked(SPK_F64, 8, high, keeps == 1);
      check_masks_of_stacked(SPK_F16, 2, high, keeps == 1);
    }
  }
}

static void masks_of_rows_of_a_few_elements(void **state) {
  (void)state;
  for (int64_t n = 2; n <= kMostShort; ++n) {
    for (int keeps = 0; keeps < 2; ++keeps) {
      check_short_rows(SPK_F32, 4, n, keeps == 1);
      check_short_rows(SPK_F64, 8, n, keeps == 1);
      check_short_rows(SPK_BF16, 2, n, keeps == 1);
    }
  }
}

/* Blocks of a matrix, by a mask in either sense, in place and not. */
typedef struct {
  int rows, columns;
  int64_t height, width; /* of a block */
} masked_matrix;
enum { kMostMasked = 256 * 320 };

static void check_any_byte(int32_t dtype, int64_t size, const masked_matrix *of, bool keeps) {
  static _Alignas(64) uint8_t x[kMostMasked * 8], y[kMostMasked * 8], was[kMostMasked * 8];
  static uint8_t mask[kMostMasked];
  const int64_t numel = (int64_t)of->rows * of->columns;
  const int64_t wide = of->columns / of->width;
  const int64_t numblk = of->rows / of->height * wide;
  for (int64_t b = 0; b < numblk; ++b) mask[b] = byte_of(b);
  for (int64_t i = 0; i < numel * size; ++i) was[i] = x[i] = (uint8_t)(i % 251 + 1);
  char text[32];
  snprintf(text, sizeof text, "(%d,%d)", of->rows, of->columns);
  spk_block *block = blocks_of(dtype, text, DIMS(of->height, of->width));
  const spk_buffer leaf = {x, numel, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer into = {y, numel, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer masks = {mask, numblk, SPK_U8, SPK_LAYOUT_CONTIGUOUS, NULL};
  assert_ok(apply_either(keeps, block, &leaf, &into, &masks));
  assert_memory_equal(x, was, (size_t)(numel * size));
  assert_ok(apply_either(keeps, block, &leaf, NULL, &masks));
  assert_memory_equal(x, y, (size_t)(numel * size));
  int64_t wrong = 0;
  for (int64_t i = 0; i < numel * size; ++i) {
    const int64_t row = i / size / of->columns;
    const int64_t column = i / size % of->columns;
    const bool is_named = is_dead(row / of->height * wide + column / of->width);
    wrong += x[i] != (is_named == keeps ? was[i] : 0);
  }
  assert_int_equal(wrong, 0);
  spk_block_release(block);
}

static void any_byte_but_0_names_a_block(void **state) {
  (void)state;
  static const masked_matrix kMatrices[] = {
      {256, 320, 1, 1},  {256, 320, 1, 2},   {256, 320, 1, 5},   {256, 320, 1, 8},
      {256, 320, 1, 16}, {256, 320, 1, 64},  {256, 320, 1, 320}, {256, 320, 2, 1},
      {256, 320, 4, 8},  {256, 320, 16, 16}, {256, 320, 256, 1}, {256, 320, 256, 320},
      {255, 317, 1, 1},  {255, 321, 1, 3},   {255, 321, 5, 1},   {255, 321, 3, 107},
  };
  for (int64_t m = 0; m < COUNT(kMatrices); ++m) {
    for (int keeps = 0; keeps < 2; ++keeps) {
      check_any_byte(SPK_F32, 4, &kMatrices[m], keeps == 1);
      check_any_byte(SPK_F64, 8, &kMatrices[m], keeps == 1);
      check_any_byte(SPK_F16, 2, &kMatrices[m], keeps == 1);
    }
  }
}

static void check_large_tensor(float *x, int64_t height, int64_t width) {
  const int64_t wide = kBigColumns / width;
  const int64_t numblk = kBigRows / height * wide;
  uint8_t *mask = malloc((size_t)numblk);
  assert_non_null(mask);
  for (int64_t b = 0; b < numblk; ++b) mask[b] = is_dead(b);
  for (int64_t i = 0; i < (int64_t)kBigRows * kBigColumns; ++i) x[i] = (float)(i % 1000 + 1);
  spk_block *block = blocks_of(SPK_F32, "(4096,2080)", DIMS(height, width));
  const spk_buffer leaf = {x, (int64_t)kBigRows * kBigColumns, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer masks = {mask, numblk, SPK_U8, SPK_LAYOUT_CONTIGUOUS, NULL};
  assert_ok(spk_block_apply_mask(NULL, block, &leaf, NULL, 1, &masks));
  int64_t wrong = 0;
  for (int64_t i = 0; i < (int64_t)kBigRows * kBigColumns; ++i) {
    const int64_t b = i / kBigColumns / height * wide + i % kBigColumns / width;
    wrong += x[i] != (is_dead(b) ? 0.0f : (float)(i % 1000 + 1));
  }
  assert_int_equal(wrong, 0);
  spk_block_release(block);
  free(mask);
}

static void tensors_of_more_than_caches_hold(void **state) {
  (void)state;
  const size_t bytes = sizeof(float) * kBigRows * kBigColumns;
  float *x = aligned_alloc(64, bytes + 64);
  assert_non_null(x);
  check_large_tensor(x, 16, 16);
  check_large_tensor(x, 1, 32);
  check_large_tensor(x, 1, kBigColumns);
  check_large_tensor(x, 8, 8);
  check_large_tensor(x + 3, 16, 16);
  free(x);
}

static void large_blocks_are_masked_whole(void **state) {
  (void)state;
  static float x[3][70000];
  uint8_t mask[] = {0, 1, 0};
  for (int b = 0; b < 3; ++b) {
    for (int i = 0; i < 70000; ++i) x[b][i] = (float)(b + 1);
  }
  const spk_buffer leaf = {x, 210000, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  spk_block *block = blocks_of(SPK_F32, "(3,70000)", DIMS(1, 0));
  assert_ok(spk_block_apply_mask(NULL, block, &leaf, NULL, 1, &U8(mask)));
  for (int i = 0; i < 70000; ++i) {
    assert_f32(&x[0][i], 1);
    assert_f32(&x[1][i], 0);
    assert_f32(&x[2][i], 3);
  }
  spk_block_release(block);
}

/* --- multipliers --------------------------------------------------------------------------- */

static void multipliers_may_have_any_float_dtype(void **state) {
  (void)state;
  float f32[] = {2, -0.5f};
  double f64[] = {2, -0.5};
  uint16_t f16[] = {0x4000, 0xb800};
  uint16_t bf16[] = {0x4000, 0xbf00};
  const spk_buffer multipliers[] = {F32(f32), F64(f64), F16(f16), BF16(bf16)};
  spk_block *block = blocks_of(SPK_F32, "(4)", DIMS(2));
  for (int64_t i = 0; i < COUNT(multipliers); ++i) {
    float x[] = {1, 2, 3, 4};
    assert_ok(spk_block_apply_multiplier(NULL, block, &F32(x), NULL, 1, &multipliers[i]));
    assert_f32(x, 2, 4, -1.5f, -2);
  }
  spk_block_release(block);
}

static void multiplied_by_zero_is_plus_zero(void **state) {
  (void)state;
  float factors[] = {0.0f, -0.0f};
  const int64_t lengths[] = {1, 3, 9};
  for (int64_t i = 0; i < COUNT(lengths); ++i) {
    float x[2 * 9];
    const float values[] = {NAN, INFINITY, -INFINITY, -1, 1, -0.0f, NAN, -NAN, FLT_MAX};
    const int64_t numel = 2 * lengths[i];
    for (int64_t e = 0; e < numel; ++e) x[e] = values[e % lengths[i]];
    spk_view *view = NULL;
    spk_block *block = NULL;
    assert_ok(spk_view_create(SPK_F32, DIMS(numel), NULL, 0, &view));
    assert_ok(spk_block_create(view, DIMS(lengths[i]), NULL, &block));
    assert_ok(spk_block_apply_multiplier(NULL, block, &F32(x), NULL, 1, &F32(factors)));
    for (int64_t e = 0; e < numel; ++e) assert_f32(x + e, 0);
    spk_block_release(block);
    spk_view_release(view);
  }
}

static void multiplied_by_one_is_untouched(void **state) {
  (void)state;
  /* Signalling NaN, quiet NaN with payload, -0, a denormal. */
  const uint32_t words[] = {0x7f800001, 0xffc12345, 0x80000000, 0x00000001};
  const int64_t lengths[] = {1, 2, 4};
  for (int64_t i = 0; i < COUNT(lengths); ++i) {
    float x[4];
    float y[4] = {0};
    float ones[4] = {1, 1, 1, 1};
    memcpy(x, words, sizeof x);
    spk_view *view = view_of(SPK_F32, "(4)");
    spk_block *block = NULL;
    assert_ok(spk_block_create(view, DIMS(lengths[i]), NULL, &block));
    spk_buffer factors = F32(ones);
    factors.numel = 4 / lengths[i];
    assert_ok(spk_block_apply_multiplier(NULL, block, &F32(x), &F32(y), 1, &factors));
    assert_memory_equal(y, words, sizeof y);
    assert_ok(spk_block_apply_multiplier(NULL, block, &F32(x), NULL, 1, &factors));
    assert_memory_equal(x, words, sizeof x);
    spk_block_release(block);
    spk_view_release(view);
  }
}

/* Blocks of 4 rows of `n` elements, some of them times 1; in some of those, one element is a
 * signalling NaN. */
static void check_ones(int32_t dtype, int n, int every) {
  enum { kBlocks = 43, kHigh = 4, kMostInRow = 16 };
  const float factors_of[] = {1, 0.5f, 2, 1, -0.25f};
  double x[kHigh * kBlocks * kMostInRow];
  double products[kHigh * kBlocks * kMostInRow];
  float factors[kBlocks];
  for (int b = 0; b < kBlocks; ++b) factors[b] = factors_of[b % COUNT(factors_of)];
  const int numel = kHigh * kBlocks * n;
  for (int i = 0; i < numel; ++i) {
    const int block = i % (kBlocks * n) / n;
    const bool is_chosen = i / (kBlocks * n) == block % kHigh && i % n == block % n;
    const bool is_nan = factors[block] == 1 && block % every == every - 1 && is_chosen;
    x[i] = is_nan ? NAN : i % 61 + 1;
    products[i] = is_nan ? NAN : x[i] * factors[block];
  }
  uint32_t words[COUNT(x)];
  uint32_t want[COUNT(x)];
  store_numbers(x, numel, dtype, words); /* with a signalling NaN */
  store_numbers(products, numel, dtype, want);
  char view[32];
  snprintf(view, sizeof view, "(%d,%d)", kHigh, kBlocks * n);
  spk_block *block = blocks_of(dtype, view, DIMS(kHigh, n));
  const spk_buffer leaf = {words, numel, dtype, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_apply_multiplier(NULL, block, &leaf, NULL, 1, &F32(factors)));
  assert_memory_equal(words, want, (size_t)numel * (size_t)(dtype & 0xff) / 8);
  spk_block_release(block);
}

static void ones_among_other_multipliers(void **state) {
  (void)state;
  const int32_t dtypes[] = {SPK_F32, SPK_F16, SPK_BF16};
  for (int d = 0; d < COUNT(dtypes); ++d) {
    for (int n = 1; n <= 16; ++n) {
      for (int every = 1; every <= 43; every += 6) check_ones(dtypes[d], n, every);
    }
  }
}

/* 9 copies of a number times a factor: in blocks of one, in one block, and with gaps between. The
 * four are one number, or the test fails. */
enum { kCopies = 9 };

static uint16_t product16(int32_t dtype, uint16_t x, spk_buffer factor) {
  const char *views[] = {"(9)", "(9)", "(9):(2)", "(9):(-2)+16"};
  const int64_t blocks[] = {1, kCopies, 1, kCopies};
  uint16_t result[4];
  for (int i = 0; i < 4; ++i) {
    uint16_t copies[2 * kCopies];
    double factors[kCopies];
    for (int c = 0; c < 2 * kCopies; ++c) copies[c] = x;
    const size_t size = (size_t)(factor.dtype & 0xff) / 8;
    char *next = (char *)factors;
    for (int c = 0; c < kCopies; ++c) memcpy(next + (size_t)c * size, factor.data, size);
    const spk_buffer multiplier = {factors, kCopies / blocks[i], factor.dtype, SPK_LAYOUT_VIEW,
                                   NULL};
    spk_block *block = blocks_of(dtype, views[i], DIMS(blocks[i]));
    assert_ok(spk_block_apply_multiplier(NULL, block, &BUFFER(copies, dtype, SPK_LAYOUT_VIEW, NULL),
                                         NULL, 1, &multiplier));
    spk_block_release(block);
    const int gap = i < 2 ? 1 : 2;
    result[i] = copies[0];
    for (int c = 0; c < kCopies; ++c) assert_int_equal(copies[c * gap], result[i]);
  }
  for (int i = 1; i < 4; ++i) assert_int_equal(result[i], result[0]);
  return result[0];
}

#define assert_product(dtype, x, factor, want)                       \
  do {                                                               \
    float factor_[] = {(factor)};                                    \
    assert_int_equal(product16((dtype), (x), F32(factor_)), (want)); \
  } while (0)

static void f16_products_are_rounded_once_to_even(void **state) {
  (void)state;
  assert_product(SPK_F16, 0x3c01, 1 + 0x1p-10f, 0x3c02); /* 1 + 2^-9 + 2^-20 */
  /* Ties: 1.5 + 1.5 units, 1.5 + 4.5 units. */
  assert_product(SPK_F16, 0x3c01, 1.5f, 0x3e02);
  assert_product(SPK_F16, 0x3c03, 1.5f, 0x3e04);
  assert_product(SPK_F16, 0x3c03, -1.5f, 0xbe04);
  /* 65504 times less and more than 65520 / 65504; 65520 itself is a tie. */
  assert_product(SPK_F16, 0x7bff, 1 + 0x1p-12f, 0x7bff);
  assert_product(SPK_F16, 0x7bff, 1 + 0x1p-11f, 0x7c00);
  assert_product(SPK_F16, 0x7800, 2 - 0x1p-11f, 0x7c00);
  assert_product(SPK_F16, 0x7bff, -1e30f, 0xfc00);
  /* Subnormals: half a unit, one and a half, and the smallest normal number. */
  assert_product(SPK_F16, 0x0001, 0.5f, 0x0000);
  assert_product(SPK_F16, 0x0001, 0.75f, 0x0001);
  assert_product(SPK_F16, 0x0003, 0.5f, 0x0002);
  assert_product(SPK_F16, 0x8003, 0.5f, 0x8002);
  assert_product(SPK_F16, 0x07ff, 0.5f, 0x0400);
  assert_product(SPK_F16, 0x7c00, -2.0f, 0xfc00);
  /* 1 + 2^-11 + 3 * 2^-26: as a float it is the tie 1 + 2^-11. */
  assert_product(SPK_F16, 0x4500, 13428327 * 0x1p-26f, 0x3c01);
  assert_product(SPK_F16, 0xc500, 13428327 * 0x1p-26f, 0xbc01);
}

static void bf16_products_are_rounded_once_to_even(void **state) {
  (void)state;
  assert_product(SPK_BF16, 0x3f81, 1 + 0x1p-7f, 0x3f82); /* 1 + 2^-6 + 2^-14 */
  assert_product(SPK_BF16, 0x3f81, 1.5f, 0x3fc2);
  assert_product(SPK_BF16, 0x3f83, 1.5f, 0x3fc4);
  assert_product(SPK_BF16, 0xbf83, 1.5f, 0xbfc4);
  assert_product(SPK_BF16, 0x7f7f, 2.0f, 0x7f80);
  assert_product(SPK_BF16, 0x7f7f, 1 + 0x1p-9f, 0x7f7f);
  assert_product(SPK_BF16, 0x7f00, 2 - 0x1p-8f, 0x7f80); /* the tie below 2^128 */
  assert_product(SPK_BF16, 0x0001, 0.5f, 0x0000);
  assert_product(SPK_BF16, 0x0003, 0.5f, 0x0002);
  assert_product(SPK_BF16, 0x00ff, 0.5f, 0x0080);
  assert_product(SPK_BF16, 0xff80, 2.0f, 0xff80);
  /* 1 + 2^-8 + 2^-25: as a float it is the tie 1 + 2^-8. */
  assert_product(SPK_BF16, 0x40a0, 13474202 * 0x1p-26f, 0x3f81);
}

static void nan_times_a_number_stays_nan(void **state) {
  (void)state;
  float factor[] = {2};
  const uint16_t half = product16(SPK_F16, 0x7c01, F32(factor));
  assert_true((half & 0x7c00) == 0x7c00 && (half & 0x03ff) != 0);
  const uint16_t brain = product16(SPK_BF16, 0x7f81, F32(factor));
  assert_true((brain & 0x7f80) == 0x7f80 && (brain & 0x007f) != 0);
  factor[0] = NAN;
  const uint16_t one = product16(SPK_F16, 0x3c00, F32(factor));
  assert_true((one & 0x7c00) == 0x7c00 && (one & 0x03ff) != 0);
  factor[0] = 1;
  assert_int_equal(product16(SPK_F16, 0x7c01, F32(factor)), 0x7c01);
  assert_int_equal(product16(SPK_BF16, 0xff81, F32(factor)), 0xff81);
}

static float product32(float x, spk_buffer factor) {
  spk_block *block = blocks_of(SPK_F32, "(1)", NO_DIMS);
  float result[] = {x};
  assert_ok(spk_block_apply_multiplier(NULL, block, &F32(result), NULL, 1, &factor));
  spk_block_release(block);
  return result[0];
}

static void f32_products_are_rounded_once_to_even(void **state) {
  (void)state;
  float factor[] = {1 + 0x1p-23f};
  assert_int_equal(bits_of(product32(1 + 0x1p-23f, F32(factor))), 0x3f800002);
  factor[0] = 1.5f;
  assert_int_equal(bits_of(product32(1 + 0x1p-23f, F32(factor))), 0x3fc00002);
  factor[0] = 0.5f;
  assert_int_equal(bits_of(product32(float_of(3), F32(factor))), 2);
  assert_int_equal(bits_of(product32(float_of(0x80000001), F32(factor))), 0x80000000);
  factor[0] = 2;
  assert_int_equal(bits_of(product32(-FLT_MAX, F32(factor))), 0xff800000);
}

static void products_with_double_multipliers_are_rounded_once(void **state) {
  (void)state;
  /* 1 + 2^-24 + 2^-54: as a double it is the tie 1 + 2^-24. */
  double factor[] = {6004799861074603 * 0x1p-54};
  assert_int_equal(bits_of(product32(3, F64(factor))), 0x3f800001);
  /* 1 + 2^-11 + 2^-55. */
  factor[0] = 7209277841001677 * 0x1p-55;
  assert_int_equal(product16(SPK_F16, 0x4500, F64(factor)), 0x3c01);
  /* 1 + 2^-8 + 2^-53. */
  factor[0] = 7233906901463860 * 0x1p-55;
  assert_int_equal(product16(SPK_BF16, 0x40a0, F64(factor)), 0x3f81);
}

/* Floats against the processor's product, whose NaN may have other bits. */
enum { kScaledRows = 21, kMostScaled = 35, kScaledPitch = kMostScaled + 2 };

static float multiplier_of(int64_t block) {
  const float some[] = {1, 0.1f, 0, -3, 1, -0.0f, 0x1p-20f, 7, INFINITY, 0.7f, NAN};
  return some[block % COUNT(some)];
}

static uint32_t element_bits(int64_t i) {
  const uint32_t some[] = {0x3f9d70a4, 0xc0490fdb, 0x7f800001, 0x00000003, 0x80000000,
                           0x7f800000, 0xffc12345, 0x00800001, 0x7f7fffff, 0x2edbe6ff,
                           0xbdcccccd, 0x40400000, 0x42f6e979};
  return some[i * 5 % COUNT(some)];
}

static void check_product(float got, float x, float factor) {
  const volatile float product = x * factor;
  if (factor == 0) {
    assert_int_equal(bits_of(got), 0);
  } else if (factor == 1) {
    assert_int_equal(bits_of(got), bits_of(x));
  } else if (isnan(product)) {
    assert_true(isnan(got));
  } else {
    assert_int_equal(bits_of(got), bits_of(product));
  }
}

/* Rows `pitch` apart. */
static void check_scaled_rows(int64_t n, int64_t pitch, bool as_doubles) {
  float was[kScaledRows * kScaledPitch], x[kScaledRows * kScaledPitch];
  float floats[kScaledRows];
  double doubles[kScaledRows];
  for (int64_t i = 0; i < COUNT(x); ++i) was[i] = x[i] = float_of(element_bits(i));
  for (int64_t b = 0; b < kScaledRows; ++b) doubles[b] = floats[b] = multiplier_of(b);
  char text[64];
  snprintf(text, sizeof text, "(%d,%d):(%d,1)", kScaledRows, (int)n, (int)pitch);
  spk_block *block = blocks_of(SPK_F32, text, DIMS(1, n));
  const spk_buffer multiplier = as_doubles ? F64(doubles) : F32(floats);
  assert_ok(spk_block_apply_multiplier(NULL, block, &F32(x), NULL, 1, &multiplier));
  spk_block_release(block);
  for (int64_t i = 0; i < COUNT(x); ++i) {
    const bool inside = i / pitch < kScaledRows && i % pitch < n;
    const float factor = inside ? floats[i / pitch] : 1;
    check_product(x[i], was[i], factor);
  }
}

static void rows_of_floats_of_any_length(void **state) {
  (void)state;
  for (int64_t n = 1; n <= kMostScaled; ++n) {
    for (int as_doubles = 0; as_doubles < 2; ++as_doubles) {
      check_scaled_rows(n, n, as_doubles);
      check_scaled_rows(n, kScaledPitch, as_doubles);
    }
  }
}

static void multipliers_of_stacked_elements(void **state) {
  (void)state;
  float was[kStackedGroups * kMostStacked * kBeside], x[COUNT(was)];
  float factors[kStackedGroups * kBeside];
  for (int64_t b = 0; b < COUNT(factors); ++b) factors[b] = multiplier_of(b);
  for (int high = 2; high <= kMostStacked; ++high) {
    const int64_t numel = COUNT(factors) * high;
    /* In some groups NaN and infinity are missing. */
    for (int64_t i = 0; i < numel; ++i) {
      const bool is_tame = i / (high * kBeside) % 3 != 0;
      was[i] = x[i] = is_tame ? (float)(i % 89) / 7 : float_of(element_bits(i));
    }
    spk_block *block = stacked_blocks(SPK_F32, high);
    const spk_buffer leaf = {x, numel, SPK_F32, SPK_LAYOUT_VIEW, NULL};
    assert_ok(spk_block_apply_multiplier(NULL, block, &leaf, NULL, 1, &F32(factors)));
    spk_block_release(block);
    for (int64_t i = 0; i < numel; ++i) {
      check_product(x[i], was[i], factors[block_of_stacked(i, high)]);
    }
  }
}

/* A multiplier for each element of a matrix, or of its transpose: elements that are neighbours in
 * memory then have multipliers that are not. */
static void check_elements(int64_t rows, int64_t columns, bool transposed) {
  enum { kMost = 36000 };
  static float was[kMost], x[kMost], factors[kMost];
  const int64_t count = rows * columns;
  for (int64_t i = 0; i < count; ++i) {
    was[i] = x[i] = float_of(element_bits(i));
    factors[i] = multiplier_of(i);
  }
  char text[64];
  if (transposed) {
    snprintf(text, sizeof text, "(%d,%d):(1,%d)", (int)columns, (int)rows, (int)columns);
  } else {
    snprintf(text, sizeof text, "(%d,%d)", (int)rows, (int)columns);
  }
  spk_block *block = blocks_of(SPK_F32, text, NO_DIMS);
  const spk_buffer leaf = {x, count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer multiplier = {factors, count, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_apply_multiplier(NULL, block, &leaf, NULL, 1, &multiplier));
  spk_block_release(block);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = transposed ? i % columns * rows + i / columns : i;
    check_product(x[i], was[i], factors[at]);
  }
}

/* In one box, and in several, of one row of memory each or of more. */
static void floats_with_a_multiplier_each(void **state) {
  (void)state;
  for (int transposed = 0; transposed < 2; ++transposed) {
    check_elements(5, 53, transposed);
    check_elements(9, 4000, transposed);
    check_elements(5, 7000, transposed);
  }
}

static void multipliers_of_floats_and_doubles_coupled(void **state) {
  (void)state;
  float x[] = {3, 5};
  double y[] = {3, 5};
  float factors[] = {0.1f, 0};
  spk_block *block =
      coupled_blocks(blocks_of(SPK_F32, "(2)", NO_DIMS), blocks_of(SPK_F64, "(2)", NO_DIMS), NULL);
  const spk_buffer leaves[] = {F32(x), F64(y)};
  assert_ok(spk_block_apply_multiplier(NULL, block, leaves, NULL, 2, &F32(factors)));
  assert_f32(x, 3 * 0.1f, 0);
  assert_f64(y, 3 * (double)0.1f, 0);
  spk_block_release(block);
}

static void f64_products(void **state) {
  (void)state;
  double x[] = {3, DBL_MAX, 0x1p-1074, NAN};
  double factors[] = {1.0 / 3.0, 2, 0.5, 0};
  spk_block *block = blocks_of(SPK_F64, "(4)", NO_DIMS);
  assert_ok(spk_block_apply_multiplier(NULL, block, &F64(x), NULL, 1, &F64(factors)));
  assert_f64(x, 1, INFINITY, 0, 0);
  spk_block_release(block);
}

static void multipliers_of_couplings_go_into_other_buffers(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4};
  uint16_t y[] = {0x3c00, 0x4000}; /* 1, 2 as f16 */
  float x_into[] = {9, 9, 9, 9};
  uint16_t y_into[] = {9, 9};
  float factors[] = {2, 0};
  const int32_t orders[] = {0, 1, 1, 0};
  spk_block *block = coupled_blocks(blocks_of(SPK_F32, "(2,2)", DIMS(1, 2)),
                                    blocks_of(SPK_F16, "(1,2)", NO_DIMS), orders);
  const spk_buffer leaves[] = {F32(x), F16(y)};
  const spk_buffer into[] = {F32(x_into), F16(y_into)};
  assert_ok(spk_block_apply_multiplier(NULL, block, leaves, into, 2, &F32(factors)));
  assert_f32(x_into, 2, 4, 0, 0);
  assert_words(y_into, 0x4000, 0);
  assert_f32(x, 1, 2, 3, 4);
  assert_words(y, 0x3c00, 0x4000);
  spk_block_release(block);
}

static void large_blocks_are_scaled_whole(void **state) {
  (void)state;
  static float x[2][70000];
  float factors[] = {-2, 0};
  for (int i = 0; i < 70000; ++i) x[0][i] = x[1][i] = (float)i;
  const spk_buffer leaf = {x, 140000, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  spk_block *block = blocks_of(SPK_F32, "(2,70000)", DIMS(1, 0));
  assert_ok(spk_block_apply_multiplier(NULL, block, &leaf, NULL, 1, &F32(factors)));
  for (int i = 0; i < 70000; ++i) {
    assert_f32(&x[0][i], -2 * (float)i);
    assert_f32(&x[1][i], 0);
  }
  spk_block_release(block);
}

/* --- a view alone -------------------------------------------------------------------------- */

static void views_take_masks_and_multipliers(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4, 5, 6, 7, 8};
  float y[8];
  uint8_t mask[] = {0, 1, 1, 0};
  float factors[] = {1, 10};
  spk_view *view = view_of(SPK_F32, "(2,4)");
  assert_ok(spk_view_apply_mask(NULL, view, &F32(x), &F32(y), DIMS(1, 2), &U8(mask)));
  assert_f32(y, 1, 2, 0, 0, 0, 0, 7, 8);
  assert_ok(spk_view_apply_keep_mask(NULL, view, &F32(x), &F32(y), DIMS(1, 2), &U8(mask)));
  assert_f32(y, 0, 0, 3, 4, 5, 6, 0, 0);
  assert_ok(spk_view_apply_multiplier(NULL, view, &F32(x), NULL, DIMS(1, 0), &F32(factors)));
  assert_f32(x, 1, 2, 3, 4, 50, 60, 70, 80);
  uint8_t each[] = {0, 1, 0, 1, 0, 1, 0, 1};
  assert_ok(spk_view_apply_mask(NULL, view, &F32(x), NULL, NO_DIMS, &U8(each)));
  assert_f32(x, 1, 0, 3, 0, 50, 0, 70, 0);
  spk_view_release(view);
}

/* Blocks whose factors lie in another order than the blocks do. */
static void check_order(const char *text, int step_i, int step_j, int offset) {
  enum { kI = 40, kJ = 3 };
  float x[kI * kJ], y[kI * kJ], factors[kI * kJ];
  uint8_t mask[kI * kJ];
  for (int k = 0; k < kI * kJ; ++k) {
    x[k] = y[k] = (float)(k + 1);
    factors[k] = (float)(k % 11);
    mask[k] = byte_of(k);
  }
  spk_block *block = blocks_of(SPK_F32, text, DIMS(1, 1));
  assert_ok(spk_block_apply_multiplier(NULL, block, &F32(x), NULL, 1, &F32(factors)));
  assert_ok(spk_block_apply_mask(NULL, block, &F32(y), NULL, 1, &U8(mask)));
  spk_block_release(block);
  for (int i = 0; i < kI; ++i) {
    for (int j = 0; j < kJ; ++j) {
      const int at = offset + i * step_i + j * step_j;
      assert_true(x[at] == (float)(at + 1) * factors[i * kJ + j]);
      assert_true(y[at] == (mask[i * kJ + j] ? 0 : (float)(at + 1)));
    }
  }
}

static void factors_may_lie_in_another_order(void **state) {
  (void)state;
  check_order("(40,3):(1,40)", 1, 40, 0);
  check_order("(40,3):(-1,40)+39", -1, 40, 39);
  check_order("(40,3):(1,-40)+80", 1, -40, 80);
  check_order("(40,3):(-1,-40)+119", -1, -40, 119);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(masked_blocks_become_plus_zero),
      TEST(keep_masks_say_what_survives),
      TEST(masks_leave_what_the_view_does_not_reach),
      TEST(into_receives_the_result_and_leaves_are_only_read),
      TEST(into_may_be_the_leaves_themselves),
      TEST(masks_of_16_bit_floats_and_couplings),
      TEST(masks_of_rows_of_a_few_elements),
      TEST(masks_of_stacked_elements),
      TEST(any_byte_but_0_names_a_block),
      TEST(large_blocks_are_masked_whole),
      TEST(masks_of_blocks_with_gaps),
      TEST(tensors_of_more_than_caches_hold),
      TEST(multipliers_may_have_any_float_dtype),
      TEST(multiplied_by_zero_is_plus_zero),
      TEST(multiplied_by_one_is_untouched),
      TEST(ones_among_other_multipliers),
      TEST(f16_products_are_rounded_once_to_even),
      TEST(bf16_products_are_rounded_once_to_even),
      TEST(nan_times_a_number_stays_nan),
      TEST(f32_products_are_rounded_once_to_even),
      TEST(products_with_double_multipliers_are_rounded_once),
      TEST(rows_of_floats_of_any_length),
      TEST(multipliers_of_stacked_elements),
      TEST(floats_with_a_multiplier_each),
      TEST(multipliers_of_floats_and_doubles_coupled),
      TEST(f64_products),
      TEST(multipliers_of_couplings_go_into_other_buffers),
      TEST(large_blocks_are_scaled_whole),
      TEST(views_take_masks_and_multipliers),
      TEST(factors_may_lie_in_another_order),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
