/* Couplings of more than a near cache holds, whose leaves lie in different orders: one may be read or
 * written after the other. */
#include <stdlib.h>

#include "support.h"

enum { kRows = 521, kColumns = 1024, kBlock = 64, kGrid = 16, kLeaves = 3 };
enum { kNumel = kRows * kColumns, kBlocks = kRows * kGrid };

/* Rows; the same by columns; and rows from the last to the first, of f16. */
typedef struct {
  int32_t dtypes[kLeaves];
} leaf_types;
static const leaf_types kFloats = {{SPK_F32, SPK_F32, SPK_F16}};
static const leaf_types kDoubles = {{SPK_F64, SPK_F32, SPK_F16}};
static const leaf_types kMostlyDoubles = {{SPK_F32, SPK_F64, SPK_F16}};
static const leaf_types kShort = {{SPK_BF16, SPK_F16, SPK_F16}};

static double memory[kLeaves][kNumel];
static double other_memory[kLeaves][kNumel];

static int64_t place_of(int64_t row, int64_t column, int leaf) {
  if (leaf == 0) return row * kColumns + column;
  return leaf == 1 ? column * kRows + row : (kRows - 1 - row) * kColumns + column;
}

/* Of an element, by row, column and leaf. */
typedef double (*Number)(int64_t row, int64_t column, int leaf);

static void fill_leaf(int leaf, int32_t dtype, Number number) {
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const double value = number(r, c, leaf);
      uint8_t *to = (uint8_t *)memory[leaf] + place_of(r, c, leaf) * size_of(dtype);
      store_numbers(&value, 1, dtype, to);
    }
  }
}

static void fill(const leaf_types *types, Number number) {
  for (int leaf = 0; leaf < kLeaves; ++leaf) fill_leaf(leaf, types->dtypes[leaf], number);
}

/* Some rows, with the leaf that is stored by columns first, or second. */
typedef struct {
  const leaf_types *types;
  int64_t first_row, rows;
  bool columns_first;
} part;

static int place_in(const part *of, int leaf) {
  return of->columns_first && leaf < 2 ? 1 - leaf : leaf;
}

static spk_block *blocks_of_leaf(const part *of, int leaf) {
  const int rows = (int)of->rows;
  const int first = (int)of->first_row;
  const int32_t dtype = of->types->dtypes[leaf];
  char text[64];
  if (leaf == 1) {
    snprintf(text, sizeof text, "(%d,%d):(%d,1)+%d", kColumns, rows, kRows, first);
    return blocks_of(dtype, text, DIMS(kBlock, 1));
  }
  const int sign = leaf == 0 ? 1 : -1;
  snprintf(text, sizeof text, "(%d,%d):(%d,1)+%d", rows, kColumns, sign * kColumns,
           (int)place_of(first, 0, leaf));
  return blocks_of(dtype, text, DIMS(1, kBlock));
}

static spk_block *coupling_of(const part *of) {
  spk_block *members[kLeaves];
  for (int leaf = 0; leaf < kLeaves; ++leaf) {
    members[place_in(of, leaf)] = blocks_of_leaf(of, leaf);
  }
  /* In the order of the first: the other of both has its axes exchanged. */
  const bool last_exchanged = of->columns_first;
  const int32_t orders[] = {0, 1, 1, 0, last_exchanged, !last_exchanged};
  spk_block *coupling = NULL;
  assert_ok(spk_block_couple(members, kLeaves, orders, NULL, &coupling));
  for (int i = 0; i < kLeaves; ++i) spk_block_release(members[i]);
  return coupling;
}

static void put_leaves(const part *of, double data[kLeaves][kNumel], spk_buffer *leaves) {
  for (int leaf = 0; leaf < kLeaves; ++leaf) {
    const spk_buffer whole = {data[leaf], kNumel, of->types->dtypes[leaf], SPK_LAYOUT_VIEW, NULL};
    leaves[place_in(of, leaf)] = whole;
  }
}

/* Number of a block in a coupling's grid, whose rows are those of its first leaf's. */
static int64_t number_of(const part *of, int64_t row, int64_t column) {
  const int64_t beside = column / kBlock;
  return of->columns_first ? beside * of->rows + row : row * kGrid + beside;
}

/* --- norms --------------------------------------------------------------------------------- */

/* Norms as doubles, in rows. */
static void norms_of(const part *of, double p, double *to) {
  spk_buffer leaves[kLeaves];
  put_leaves(of, memory, leaves);
  spk_block *block = coupling_of(of);
  const int64_t count = spk_block_numblk(block);
  const bool are_doubles = spk_block_score_dtype(block) == SPK_F64;
  double *got = malloc(sizeof(double) * (size_t)count); /* or floats */
  const spk_buffer out = {got, count, are_doubles ? SPK_F64 : SPK_F32, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_norms(NULL, block, leaves, kLeaves, p, &out));
  for (int64_t row = 0; row < of->rows; ++row) {
    for (int64_t b = 0; b < kGrid; ++b) {
      const int64_t number = number_of(of, row, b * kBlock);
      to[row * kGrid + b] = are_doubles ? got[number] : (double)((const float *)got)[number];
    }
  }
  free(got);
  spk_block_release(block);
}

/* A multiple of a number of its block, in every third block not 0. */
static double whole_number(int64_t row, int64_t column, int leaf) {
  const int64_t block = row * kGrid + column / kBlock;
  const uint64_t seed = (uint64_t)((row * kColumns + column) * 3 + leaf);
  const int64_t small = (int64_t)(seed * 2654435761u >> 7 & 7) - 4;
  return (double)((small == 0 && block % 3 == 0 ? 1 : small) * (1 + block % 61));
}

/* Of elements that are whole. */
typedef struct {
  double nonzeros, sum, squares, largest, smallest;
} exact;

static exact exact_norms(int64_t block) {
  exact norms = {0, 0, 0, 0, INFINITY};
  for (int i = 0; i < kLeaves * kBlock; ++i) {
    const int64_t column = block % kGrid * kBlock + i / kLeaves;
    const double magnitude = fabs(whole_number(block / kGrid, column, i % kLeaves));
    norms.nonzeros += magnitude != 0;
    norms.sum += magnitude;
    norms.squares += magnitude * magnitude;
    norms.largest = fmax(norms.largest, magnitude);
    norms.smallest = fmin(norms.smallest, magnitude);
  }
  return norms;
}

static void check_exact_norms(const leaf_types *types, bool columns_first) {
  static double got[kBlocks];
  const double p[] = {0, 1, 2, INFINITY, -INFINITY};
  const part all = {types, 0, kRows, columns_first};
  const bool are_doubles = types->dtypes[0] == SPK_F64;
  fill(types, whole_number);
  for (int64_t k = 0; k < COUNT(p); ++k) {
    norms_of(&all, p[k], got);
    for (int64_t i = 0; i < kBlocks; ++i) {
      const exact of = exact_norms(i);
      const double want[] = {of.nonzeros, of.sum, sqrt(of.squares), of.largest, of.smallest};
      const double rounded = are_doubles ? want[k] : (double)(float)want[k];
      if (got[i] == rounded) continue;
      fail_msg("p %g, block %d: got %.17g, expected %.17g", p[k], (int)i, got[i], rounded);
    }
  }
}

static void norms_in_any_order(void **state) {
  (void)state;
  for (int columns_first = 0; columns_first < 2; ++columns_first) {
    check_exact_norms(&kFloats, columns_first);
    check_exact_norms(&kDoubles, columns_first);
  }
}

/* Of many magnitudes, and one NaN. */
static double any_number(int64_t row, int64_t column, int leaf) {
  if (row == 77 && column == 500 && leaf == 2) return NAN;
  const uint64_t seed = (uint64_t)((row * kColumns + column) * 3 + leaf) * 2654435761u;
  return ldexp(1 + (double)(seed >> 8 & 1023) / 1024, (int)(seed >> 20 & 15) - 8);
}

/* Some rows of the first leaf have squares beyond the range of double; sums are inexact. */
static double far_number(int64_t row, int64_t column, int leaf) {
  const int exponent = row % 50 == 3 ? 900 : row % 50 == 4 ? -900 : 0;
  return leaf == 0 ? ldexp(any_number(row, column, leaf) / 3, exponent)
                   : any_number(row, column, leaf) * (row % 50 != 4);
}

/* A few rows are less than a near cache holds, and read in tiles of all leaves. */
static void check_parts(const leaf_types *types, bool columns_first, double p) {
  enum { kFewRows = 40 };
  static double all[kBlocks];
  double few[kFewRows * kGrid];
  const part whole = {types, 0, kRows, columns_first};
  norms_of(&whole, p, all);
  for (int64_t row = 0; row + kFewRows <= kRows; row += kFewRows) {
    const part some = {types, row, kFewRows, columns_first};
    norms_of(&some, p, few);
    for (int64_t b = 0; b < kFewRows * kGrid; ++b) {
      const double other = all[row * kGrid + b];
      if (few[b] == other || (isnan(few[b]) && isnan(other))) continue;
      fail_msg("p %g, row %d: got %.17g, in a part %.17g", p, (int)row, other, few[b]);
    }
  }
  assert_true(isnan(all[77 * kGrid + 500 / kBlock]));
}

static void norms_are_those_of_parts(void **state) {
  (void)state;
  for (int k = 0; k < 4; ++k) {
    fill(&kFloats, any_number);
    check_parts(&kFloats, k % 2, k / 2 ? 1 : 2);
    fill(&kDoubles, any_number);
    check_parts(&kDoubles, k % 2, k / 2 ? 1 : 2);
    fill(&kDoubles, far_number);
    check_parts(&kDoubles, k % 2, k / 2 ? 1 : 2);
  }
}

/* --- masks and multipliers ----------------------------------------------------------------- */

static bool is_dead(int64_t row, int64_t column) {
  return (row * kGrid + column / kBlock) * 2654435761 / 128 % 3 == 0;
}

/* A small power of two times a sign, or 0. */
static double factor_of(int64_t row, int64_t column) {
  const int64_t b = row * kGrid + column / kBlock;
  return is_dead(row, column) ? 0 : ldexp(b % 5 < 2 ? -1 : 1, (int)(b % 7) - 3);
}

static double masked(int64_t row, int64_t column, int leaf) {
  return is_dead(row, column) ? 0 : whole_number(row, column, leaf);
}

/* Zero is positive, but where 0 is multiplied by a negative number. */
static double multiplied(int64_t row, int64_t column, int leaf) {
  const double factor = factor_of(row, column);
  return factor == 0 ? 0 : factor * whole_number(row, column, leaf);
}

static void expect_leaves(const leaf_types *types, double data[kLeaves][kNumel], Number number) {
  int64_t wrong = 0;
  for (int leaf = 0; leaf < kLeaves; ++leaf) {
    const int32_t dtype = types->dtypes[leaf];
    const int64_t size = size_of(dtype);
    const uint8_t *got = (const uint8_t *)data[leaf];
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < kColumns; ++c) {
        uint64_t want;
        const double value = number(r, c, leaf);
        store_numbers(&value, 1, dtype, &want);
        wrong += memcmp(got + place_of(r, c, leaf) * size, &want, (size_t)size) != 0;
      }
    }
  }
  assert_int_equal(wrong, 0);
}

/* Bytes of a mask, or factors of a dtype, in the order of a coupling's grid. */
static void put_values(const part *of, int32_t dtype, bool keeps, uint8_t *to) {
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t b = 0; b < kGrid; ++b) {
      const int64_t number = number_of(of, row, b * kBlock);
      const double factor = factor_of(row, b * kBlock);
      if (dtype == SPK_U8) {
        to[number] = is_dead(row, b * kBlock) == keeps ? 0 : (uint8_t)(1 + number % 255);
      } else {
        store_numbers(&factor, 1, dtype, to + number * size_of(dtype));
      }
    }
  }
}

static spk_status write_by(spk_context *context, const part *of, int32_t dtype, bool keeps,
                           bool in_place) {
  static double values[kBlocks];
  put_values(of, dtype, keeps, (uint8_t *)values);
  const spk_buffer given = {values, kBlocks, dtype, SPK_LAYOUT_VIEW, NULL};
  spk_buffer leaves[kLeaves], others[kLeaves];
  put_leaves(of, memory, leaves);
  put_leaves(of, other_memory, others);
  const spk_buffer *into = in_place ? NULL : others;
  spk_block *block = coupling_of(of);
  spk_status status;
  if (dtype != SPK_U8) {
    status = spk_block_apply_multiplier(context, block, leaves, into, kLeaves, &given);
  } else if (keeps) {
    status = spk_block_apply_keep_mask(context, block, leaves, into, kLeaves, &given);
  } else {
    status = spk_block_apply_mask(context, block, leaves, into, kLeaves, &given);
  }
  spk_block_release(block);
  return status;
}

/* Into other memory, which leaves the leaves as they are, and then in place. */
static void check_writing(const part *of, int32_t dtype, bool keeps, Number want) {
  assert_ok(write_by(NULL, of, dtype, keeps, false));
  expect_leaves(of->types, memory, whole_number);
  expect_leaves(of->types, other_memory, want);
  assert_ok(write_by(NULL, of, dtype, keeps, true));
  expect_leaves(of->types, memory, want);
}

static void masks_and_multipliers_in_any_order(void **state) {
  (void)state;
  const leaf_types *types[] = {&kFloats, &kDoubles, &kMostlyDoubles, &kShort};
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
  for (int64_t i = 0; i < COUNT(types); ++i) {
    const part all = {types[i], 0, kRows, i % 2 == 0};
    for (int keeps = 0; keeps < 2; ++keeps) {
      fill(types[i], whole_number);
      check_writing(&all, SPK_U8, keeps, masked);
    }
    for (int64_t d = 0; d < COUNT(dtypes); ++d) {
      fill(types[i], whole_number);
      check_writing(&all, dtypes[d], false, multiplied);
    }
  }
}

/* Asked for the n-th time, a callback cancels. */
static int32_t cancel(void *user, int64_t done, int64_t total) {
  (void)done;
  (void)total;
  return --*(int *)user == 0;
}

static bool holds(int64_t row, int64_t column, int leaf, double value) {
  const int32_t dtype = kFloats.dtypes[leaf];
  const int64_t size = size_of(dtype);
  uint64_t want;
  store_numbers(&value, 1, dtype, &want);
  const uint8_t *at = (const uint8_t *)memory[leaf] + place_of(row, column, leaf) * size;
  return memcmp(at, &want, (size_t)size) == 0;
}

/* Of a block whose elements are to be multiplied by its factor: all of them or none. */
static void expect_all_or_none(int64_t row, int64_t b, double factor, int64_t *done) {
  int64_t before = 0;
  int64_t after = 0;
  for (int leaf = 0; leaf < kLeaves; ++leaf) {
    for (int64_t c = b * kBlock; c < (b + 1) * kBlock; ++c) {
      const double was = any_number(row, c, leaf);
      const double product = factor == 0 ? 0 : factor * was;
      before += isnan(was) || holds(row, c, leaf, was);
      after += isnan(was) || holds(row, c, leaf, product);
    }
  }
  assert_true(before == kLeaves * kBlock || after == kLeaves * kBlock);
  *done += before < kLeaves * kBlock;
}

/* By a mask, or by multipliers. */
static void check_cancelling(int32_t dtype) {
  const part all = {&kFloats, 0, kRows, false};
  int64_t last = -1;
  for (int calls = 1; calls <= 3; ++calls) {
    int left = calls;
    const spk_context_options options = {
        .struct_size = sizeof options, .threads = 1, .progress = cancel, .progress_user = &left};
    spk_context *context = NULL;
    assert_ok(spk_context_create(&options, &context));
    fill(&kFloats, any_number);
    assert_int_equal(write_by(context, &all, dtype, false, true), SPK_CANCELLED);
    int64_t done = 0;
    int64_t to_do = 0;
    for (int64_t i = 0; i < kBlocks; ++i) {
      const int64_t row = i / kGrid;
      const double given = factor_of(row, i % kGrid * kBlock);
      const double factor = dtype == SPK_U8 && given != 0 ? 1 : given;
      to_do += factor != 1;
      expect_all_or_none(row, i % kGrid, factor, &done);
    }
    assert_true(done > last && done < to_do);
    last = done;
    spk_context_release(context);
  }
}

static void cancelled_calls_leave_no_block_half_done(void **state) {
  (void)state;
  check_cancelling(SPK_U8);
  check_cancelling(SPK_F32);
}

/* --- grids of three dimensions ------------------------------------------------------------- */

enum { kGroups = 9, kMiddle = 70, kLong = 640, kBlocksLong = kLong / kBlock };
enum { kCubeNumel = kGroups * kMiddle * kLong };
static float cube[kCubeNumel], turned_cube[kCubeNumel];

static int64_t block_in_cube(int64_t g, int64_t m, int64_t l) {
  return (g * kMiddle + m) * kBlocksLong + l / kBlock;
}

/* Blocks die whose number is a multiple of three; others have elements of 3 and of -4. */
static void expect_cubes(double dead, double alive) {
  int64_t wrong = 0;
  for (int64_t g = 0; g < kGroups; ++g) {
    for (int64_t m = 0; m < kMiddle; ++m) {
      for (int64_t l = 0; l < kLong; ++l) {
        const double times = block_in_cube(g, m, l) % 3 == 0 ? dead : alive;
        wrong += cube[(g * kMiddle + m) * kLong + l] != (float)(3 * times);
        wrong += turned_cube[(l * kGroups + g) * kMiddle + m] != (float)(-4 * times);
      }
    }
  }
  assert_int_equal(wrong, 0);
}

static void leaves_of_three_dimensions(void **state) {
  (void)state;
  enum { kInCube = kGroups * kMiddle * kBlocksLong };
  static float norms[kInCube], factors[kInCube];
  static uint8_t mask[kInCube];
  for (int64_t i = 0; i < kCubeNumel; ++i) cube[i] = 3, turned_cube[i] = -4;
  for (int64_t b = 0; b < kInCube; ++b) {
    mask[b] = b % 3 == 0;
    factors[b] = b % 3 == 0 ? 2 : 0.5F;
  }
  const int32_t orders[] = {0, 1, 2, 1, 2, 0};
  spk_block *block = coupled_blocks(blocks_of(SPK_F32, "(9,70,640)", DIMS(1, 1, kBlock)),
                                    blocks_of(SPK_F32, "(640,9,70)", DIMS(kBlock, 1, 1)), orders);
  const spk_buffer leaves[] = {F32(cube), F32(turned_cube)};
  assert_ok(spk_block_norms(NULL, block, leaves, 2, 2, &F32(norms)));
  for (int64_t b = 0; b < kInCube; ++b) assert_f32(norms + b, 40); /* 5 times the root of 64 */
  assert_ok(spk_block_apply_multiplier(NULL, block, leaves, NULL, 2, &F32(factors)));
  expect_cubes(2, 0.5);
  assert_ok(spk_block_apply_mask(NULL, block, leaves, NULL, 2, &U8(mask)));
  expect_cubes(0, 0.5);
  spk_block_release(block);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(norms_in_any_order),
      TEST(norms_are_those_of_parts),
      TEST(masks_and_multipliers_in_any_order),
      TEST(cancelled_calls_leave_no_block_half_done),
      TEST(leaves_of_three_dimensions),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
