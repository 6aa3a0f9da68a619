/* Tensors of more than caches hold, which are read and written in ways of their own. All elements
 * of a block, of a square number, are 1, or 3 if it lives, and every other one or so is negative:
 * norms, and what thresholds leave, are exact. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* 33 MiB of f32. Rows of 2112 elements are 33 tiles of 64, 66 of 32 and 132 of 16; those of 4489
 * end anywhere in a cache line. Tiles are tiny, small and large, of few and many rows, and too large
 * to be read while others are written. */
enum { kNumel = 4096 * 2112 };
typedef struct {
  int64_t columns; /* of the tensor */
  int64_t tile[2]; /* rows, columns */
} layout;
static const layout kLayouts[] = {
    {2112, {16, 16}},  {2112, {64, 64}},  {2112, {32, 32}},   {2112, {8, 8}},    {2112, {64, 16}},
    {2112, {1024, 1}}, {4096, {1, 4096}}, {4489, {1, 4489}},  {2112, {1, 16}},   {2112, {4, 64}},
    {2112, {256, 64}}, {4096, {2, 128}},  {4096, {8, 512}},   {4096, {32, 512}}, {4096, {16, 1024}},
    {2112, {4, 16}},   {2112, {2, 32}},   {1024, {128, 512}}, {2112, {4, 4}},    {2112, {64, 1}}};

typedef struct {
  int32_t dtype;
  int64_t rows; /* about as many bytes in any dtype */
  int64_t columns;
  int64_t tile[2];
  void *x;
  spk_block *block;
} tensor;

static bool lives(int64_t row, int64_t column) {
  return (row * 5 + column * 3) % 7 < 3;
}

static double sign_of(int64_t i) {
  return (uint32_t)i * 2654435761U >> 31 ? -1 : 1;
}

/* `count` elements from number i on. */
static void put(const tensor *t, int64_t i, int64_t count, double magnitude) {
  const uint16_t half[] = {half_of(-magnitude), half_of(magnitude)};
  for (const int64_t end = i + count; i < end; ++i) {
    const double value = magnitude * sign_of(i);
    if (t->dtype == SPK_F32) ((float *)t->x)[i] = (float)value;
    if (t->dtype == SPK_F64) ((double *)t->x)[i] = value;
    if (t->dtype == SPK_F16) ((uint16_t *)t->x)[i] = half[value >= 0];
  }
}

static void expect(const tensor *t, int64_t i, int64_t count, double magnitude) {
  const uint16_t half[] = {half_of(-magnitude), half_of(magnitude)};
  bool all = true;
  for (const int64_t end = i + count; i < end; ++i) {
    const double value = magnitude * sign_of(i);
    if (t->dtype == SPK_F32) all &= ((const float *)t->x)[i] == (float)value;
    if (t->dtype == SPK_F64) all &= ((const double *)t->x)[i] == value;
    if (t->dtype == SPK_F16) all &= ((const uint16_t *)t->x)[i] == half[value >= 0];
  }
  if (all) return;
  fail_msg("one of %lld elements before number %lld is not +-%g", (long long)count, (long long)i,
           magnitude);
}

static spk_buffer leaf_of(const tensor *t) {
  const spk_buffer leaf = {t->x, t->rows * t->columns, t->dtype, SPK_LAYOUT_CONTIGUOUS, NULL};
  return leaf;
}

/* fn for each row of each block, whose elements are `dead` or `alive`. */
static void for_each_row(const tensor *t,
                         void (*fn)(const tensor *t, int64_t i, int64_t count, double value),
                         double dead, double alive) {
  const int64_t across = t->columns / t->tile[1];
  for (int64_t i = 0; i < t->rows * across; ++i) {
    const bool is_alive = lives(i / across / t->tile[0], i % across);
    fn(t, i * t->tile[1], t->tile[1], is_alive ? alive : dead);
  }
}

/* Dead blocks hold 1, living ones 3. */
static tensor filled(int32_t dtype, const layout *of) {
  tensor t = {dtype, kNumel / of->columns, of->columns, {of->tile[0], of->tile[1]}, NULL, NULL};
  if (dtype == SPK_F64) t.rows /= 2;
  if (dtype == SPK_F16) t.rows *= 2;
  t.x = malloc(sizeof(float) * kNumel);
  assert_non_null(t.x);
  const int64_t shape[] = {t.rows, t.columns};
  spk_view *view = NULL;
  assert_ok(spk_view_create(dtype, 2, shape, NULL, 0, &view));
  assert_ok(spk_block_create(view, 2, t.tile, NULL, &t.block));
  spk_view_release(view);
  for_each_row(&t, put, 1, 3);
  return t;
}

static void assert_holds(const tensor *t, double dead, double alive) {
  for_each_row(t, expect, dead, alive);
}

static void done_with(tensor *t) {
  spk_block_release(t->block);
  free(t->x);
}

static double root_of_size(const tensor *t) {
  return sqrt((double)(t->tile[0] * t->tile[1]));
}

static void for_each_tensor(void (*check)(tensor *t)) {
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16};
  for (int64_t d = 0; d < COUNT(dtypes); ++d) {
    for (int64_t i = 0; i < COUNT(kLayouts); ++i) {
      tensor t = filled(dtypes[d], &kLayouts[i]);
      check(&t);
      done_with(&t);
    }
  }
}

static void check_norms(tensor *t) {
  const int64_t blocks = spk_block_numblk(t->block);
  const int32_t dtype = t->dtype == SPK_F64 ? SPK_F64 : SPK_F32;
  double *norms = malloc(sizeof(double) * (size_t)blocks); /* or floats */
  assert_non_null(norms);
  const spk_buffer out = {norms, blocks, dtype, SPK_LAYOUT_CONTIGUOUS, NULL};
  const int64_t across = t->columns / t->tile[1];
  const double size = (double)(t->tile[0] * t->tile[1]);
  const double ps[] = {1, 2, INFINITY};
  const double of_ones[] = {size, sqrt(size), 1};
  for (int64_t k = 0; k < COUNT(ps); ++k) {
    const spk_buffer leaf = leaf_of(t);
    assert_ok(spk_block_norms(NULL, t->block, &leaf, 1, ps[k], &out));
    for (int64_t b = 0; b < blocks; ++b) {
      const double norm = dtype == SPK_F64 ? norms[b] : (double)((const float *)norms)[b];
      assert_true(norm == of_ones[k] * (lives(b / across, b % across) ? 3 : 1));
    }
  }
  free(norms);
}

static void norms_are_known(void **state) {
  (void)state;
  for_each_tensor(check_norms);
}

/* Half-way between the norms. */
static void check_hard(tensor *t) {
  double threshold[] = {2 * root_of_size(t)};
  const spk_buffer leaf = leaf_of(t);
  assert_ok(spk_block_hard_threshold(NULL, t->block, &leaf, NULL, 1, &F64(threshold), NULL, NULL));
  assert_holds(t, 0, 3);
}

static void blocks_live_or_die(void **state) {
  (void)state;
  for_each_tensor(check_hard);
}

static int64_t count_living(const tensor *t) {
  const int64_t across = t->columns / t->tile[1];
  int64_t living = 0;
  for (int64_t b = 0; b < spk_block_numblk(t->block); ++b) living += lives(b / across, b % across);
  return living;
}

/* 1.5 of 3, times the root of the size of a block: half of it is left. */
static void check_soft(tensor *t) {
  double threshold[] = {1.5 * root_of_size(t)};
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = 0;
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  const spk_buffer leaf = leaf_of(t);
  assert_ok(
      spk_block_soft_threshold(NULL, t->block, &leaf, NULL, 1, &F64(threshold), &options, &report));
  assert_holds(t, 0, 1.5);
  assert_int_equal(report.achieved, count_living(t));
}

static void blocks_shrink(void **state) {
  (void)state;
  for_each_tensor(check_soft);
}

static void check_multiplier(tensor *t) {
  const int64_t blocks = spk_block_numblk(t->block);
  const int64_t across = t->columns / t->tile[1];
  float *factors = malloc(sizeof(float) * (size_t)blocks);
  assert_non_null(factors);
  for (int64_t b = 0; b < blocks; ++b) factors[b] = lives(b / across, b % across) ? 0.5f : 2;
  const spk_buffer multiplier = {factors, blocks, SPK_F32, SPK_LAYOUT_CONTIGUOUS, NULL};
  const spk_buffer leaf = leaf_of(t);
  assert_ok(spk_block_apply_multiplier(NULL, t->block, &leaf, NULL, 1, &multiplier));
  assert_holds(t, 2, 1.5);
  free(factors);
}

static void blocks_are_multiplied(void **state) {
  (void)state;
  for_each_tensor(check_multiplier);
}

/* Both thresholds into another tensor, of which nothing is known; the first is left as it is. They
 * differ by block: those that do not live are copied, and hard ones are too high for the others. */
static void check_into(tensor *t) {
  const int64_t blocks = spk_block_numblk(t->block);
  const int64_t across = t->columns / t->tile[1];
  double *each = malloc(sizeof(double) * (size_t)blocks);
  assert_non_null(each);
  for (int64_t b = 0; b < blocks; ++b) {
    each[b] = lives(b / across, b % across) ? 1.5 * root_of_size(t) : 0;
  }
  const spk_buffer thresholds = {each, blocks, SPK_F64, SPK_LAYOUT_CONTIGUOUS, NULL};
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = 0;
  tensor into = *t;
  into.x = malloc(sizeof(float) * kNumel);
  assert_non_null(into.x);
  memset(into.x, 0x55, sizeof(float) * kNumel);
  const spk_buffer leaf = leaf_of(t);
  const spk_buffer to = leaf_of(&into);
  assert_ok(spk_block_soft_threshold(NULL, t->block, &leaf, &to, 1, &thresholds, &options, NULL));
  assert_holds(&into, 1, 1.5);
  for (int64_t b = 0; b < blocks; ++b) each[b] *= 3;
  memset(into.x, 0x55, sizeof(float) * kNumel);
  assert_ok(spk_block_hard_threshold(NULL, t->block, &leaf, &to, 1, &thresholds, NULL, NULL));
  assert_holds(&into, 1, 0);
  assert_holds(t, 1, 3);
  free(into.x);
  free(each);
}

static void results_go_elsewhere(void **state) {
  (void)state;
  for_each_tensor(check_into);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(norms_are_known),       TEST(blocks_live_or_die),   TEST(blocks_shrink),
      TEST(blocks_are_multiplied), TEST(results_go_elsewhere),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
