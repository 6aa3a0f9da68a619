/* What calls need besides the data: at most 1 % of it, or 1 MiB a thread. Columns of 16-bit numbers
 * have the fewest bytes for what is kept of each block; the sizes are such that all of it at once
 * would be too much. Selection among all elements keeps those near the cut. */
#include <stdlib.h>

#include "support.h"

enum { kNumel = 40 * 1024 * 1024, kMost = 1 << 20 };

/* 1 to 8. */
static const uint16_t kWords[] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800};

/* Columns differ without a period that what is taken together could have. */
static uint64_t hash_of(int64_t column) {
  return (uint64_t)column * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}
static int value_of(int64_t column) {
  return (int)(hash_of(column) % COUNT(kWords)) + 1;
}
static bool is_gone(int64_t column) {
  return hash_of(column) / COUNT(kWords) % 3 == 0;
}

/* --- an allocator that counts -------------------------------------------------------------- */

struct bytes {
  size_t now, peak;
};

static void *allocate(void *user, size_t bytes, size_t alignment) {
  struct bytes *count = user;
  count->now += bytes;
  if (count->now > count->peak) count->peak = count->now;
  return aligned_alloc(alignment, bytes);
}

static void deallocate(void *user, void *memory, size_t bytes, size_t alignment) {
  struct bytes *count = user;
  (void)alignment;
  count->now -= bytes;
  free(memory);
}

/* Of one thread. */
static spk_context *context_of(struct bytes *bytes) {
  const spk_allocator allocator = {sizeof allocator, bytes, allocate, deallocate};
  const spk_context_options options = {
      .struct_size = sizeof options, .threads = 1, .allocator = &allocator};
  spk_context *context = NULL;
  assert_ok(spk_context_create(&options, &context));
  return context;
}

/* --- one matrix and what belongs to it ----------------------------------------------------- */

struct subject {
  int64_t rows, columns;
  uint16_t *words;
  spk_block *block;
  spk_context *context;
  struct bytes bytes;
};

static void fill(struct subject *s) {
  for (int64_t c = 0; c < s->columns; ++c) s->words[c] = kWords[value_of(c) - 1];
  const size_t row = (size_t)s->columns * sizeof *s->words;
  for (int64_t r = 1; r < s->rows; ++r) memcpy(s->words + r * s->columns, s->words, row);
}

static struct subject *new_subject(int64_t rows) {
  struct subject *s = calloc(1, sizeof *s);
  s->rows = rows;
  s->columns = kNumel / rows;
  s->words = malloc(kNumel * sizeof *s->words);
  char text[64];
  snprintf(text, sizeof text, "(%lld,%lld)", (long long)rows, (long long)s->columns);
  s->block = blocks_of(SPK_F16, text, DIMS(0, 1));
  s->context = context_of(&s->bytes);
  fill(s);
  return s;
}

static void free_subject(struct subject *s) {
  spk_context_release(s->context);
  spk_block_release(s->block);
  free(s->words);
  free(s);
}

static spk_buffer leaf_of(const struct subject *s) {
  return (spk_buffer){s->words, kNumel, SPK_F16, SPK_LAYOUT_VIEW, NULL};
}

static spk_buffer array_of(const struct subject *s, void *data, int32_t dtype) {
  return (spk_buffer){data, s->columns, dtype, SPK_LAYOUT_VIEW, NULL};
}

/* Gives back what the call has needed, and forgets it. */
static void assert_little_memory(struct subject *s) {
  assert_true(s->bytes.peak > 0);
  assert_true(s->bytes.peak <= kMost);
  assert_ok(spk_context_trim(s->context));
  assert_int_equal(s->bytes.now, 0);
  s->bytes.peak = 0;
}

/* Some columns are gone, the others are as they were, or halves of it. */
static void assert_some_are_gone(struct subject *s, bool halved) {
  const size_t row = (size_t)s->columns * sizeof *s->words;
  for (int64_t c = 0; c < s->columns; ++c) {
    const int exponent = halved ? 0x400 : 0;
    const uint16_t stays = (uint16_t)(kWords[value_of(c) - 1] - exponent);
    if (s->words[c] != (is_gone(c) ? 0 : stays)) fail();
  }
  for (int64_t r = 1; r < s->rows; ++r) {
    assert_memory_equal(s->words + r * s->columns, s->words, row);
  }
  fill(s);
  assert_little_memory(s);
}

/* --- operations ---------------------------------------------------------------------------- */

/* The norm of a column is its value times the root of its length, which is a power of two. */
static void check_norms(struct subject *s, double p, double length) {
  float *norms = malloc(s->columns * sizeof *norms);
  const spk_buffer leaf = leaf_of(s);
  const spk_buffer out = array_of(s, norms, SPK_F32);
  assert_ok(spk_block_norms(s->context, s->block, &leaf, 1, p, &out));
  for (int64_t c = 0; c < s->columns; ++c) assert_true(norms[c] == value_of(c) * length);
  free(norms);
  assert_little_memory(s);
}

static void check_counts(struct subject *s) {
  int64_t *counts = malloc(s->columns * sizeof *counts);
  const spk_buffer leaf = leaf_of(s);
  const spk_buffer out = array_of(s, counts, SPK_I64);
  int64_t total = 0;
  assert_ok(spk_block_nnz(s->context, s->block, &leaf, 1, 4.0, &out, &total));
  int64_t want = 0;
  for (int64_t c = 0; c < s->columns; ++c) {
    assert_int_equal(counts[c], value_of(c) > 4 ? s->rows : 0);
    want += counts[c];
  }
  assert_int_equal(total, want);
  free(counts);
  assert_little_memory(s);
}

/* Thresholds close to the norm of their own column. */
static void check_hard_threshold(struct subject *s, double root) {
  double *limits = malloc(s->columns * sizeof *limits);
  for (int64_t c = 0; c < s->columns; ++c) {
    limits[c] = (value_of(c) + (is_gone(c) ? 0.5 : -0.5)) * root;
  }
  const spk_buffer leaf = leaf_of(s);
  const spk_buffer thresholds = array_of(s, limits, SPK_F64);
  assert_ok(
      spk_block_hard_threshold(s->context, s->block, &leaf, NULL, 1, &thresholds, NULL, NULL));
  assert_some_are_gone(s, false);
  free(limits);
}

/* Soft thresholds that leave half of a column, or nothing. */
static void assert_halved(struct subject *s, double *limits, const spk_soft_options *options) {
  const spk_buffer leaf = leaf_of(s);
  const spk_buffer thresholds = array_of(s, limits, SPK_F64);
  assert_ok(
      spk_block_soft_threshold(s->context, s->block, &leaf, NULL, 1, &thresholds, options, NULL));
  assert_some_are_gone(s, true);
}

/* Half of the norm leaves half of a column, exactly. */
static void check_soft_threshold(struct subject *s, double root) {
  double *limits = malloc(s->columns * sizeof *limits);
  for (int64_t c = 0; c < s->columns; ++c) {
    limits[c] = value_of(c) * root / (is_gone(c) ? 1 : 2);
  }
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = 0;
  assert_halved(s, limits, &options);
  free(limits);
}

/* The same in the metric of ones. */
static void check_conditioned(struct subject *s, double root) {
  double *limits = malloc(s->columns * sizeof *limits);
  for (int64_t c = 0; c < s->columns; ++c) {
    limits[c] = value_of(c) * root * (is_gone(c) ? 1.5 : 0.5);
  }
  uint16_t *ones = malloc(kNumel * sizeof *ones);
  for (int64_t i = 0; i < kNumel; ++i) ones[i] = kWords[0];
  const spk_buffer conditioners = {ones, kNumel, SPK_F16, SPK_LAYOUT_VIEW, NULL};
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.conditioners = &conditioners;
  assert_halved(s, limits, &options);
  free(ones);
  free(limits);
}

static void check_mask(struct subject *s) {
  uint8_t *mask = malloc(s->columns);
  for (int64_t c = 0; c < s->columns; ++c) mask[c] = is_gone(c);
  const spk_buffer leaf = leaf_of(s);
  const spk_buffer given = array_of(s, mask, SPK_U8);
  assert_ok(spk_block_apply_mask(s->context, s->block, &leaf, NULL, 1, &given));
  assert_some_are_gone(s, false);
  free(mask);
}

static void check_factors(struct subject *s, void *factors, int32_t dtype) {
  const spk_buffer leaf = leaf_of(s);
  const spk_buffer given = array_of(s, factors, dtype);
  assert_ok(spk_block_apply_multiplier(s->context, s->block, &leaf, NULL, 1, &given));
  assert_some_are_gone(s, false);
}

static void check_multipliers(struct subject *s) {
  double *doubles = malloc(s->columns * sizeof *doubles);
  uint16_t *words = malloc(s->columns * sizeof *words);
  for (int64_t c = 0; c < s->columns; ++c) {
    doubles[c] = is_gone(c) ? 0.0 : 1.0;
    words[c] = is_gone(c) ? 0 : kWords[0];
  }
  check_factors(s, doubles, SPK_F64);
  check_factors(s, words, SPK_F16);
  free(words);
  free(doubles);
}

static void check_columns(int64_t rows, double root) {
  struct subject *s = new_subject(rows);
  check_norms(s, 2.0, root);
  check_norms(s, 1.0, root * root);
  check_norms(s, INFINITY, 1.0);
  check_counts(s);
  check_hard_threshold(s, root);
  check_soft_threshold(s, root);
  check_conditioned(s, root);
  check_mask(s);
  check_multipliers(s);
  free_subject(s);
}

static void columns_of_256(void **state) {
  (void)state;
  check_columns(256, 16.0);
}
static void columns_of_1024(void **state) {
  (void)state;
  check_columns(1024, 32.0);
}

/* --- a coupling ---------------------------------------------------------------------------- */

/* Rows, and the same by columns: a block has as many elements of one as of the other. */
enum { kCoupledRows = 5120, kCoupledColumns = 4096, kCoupledBlock = 128, kCoupledGrid = 32 };
enum { kLeafNumel = kCoupledRows * kCoupledColumns, kCoupledBlocks = kCoupledRows * kCoupledGrid };

/* Of 256 elements that are alike the norm is 16 times one. */
static void norms_of_coupled_rows_and_columns(void **state) {
  (void)state;
  const int32_t orders[] = {0, 1, 1, 0};
  uint16_t *rows = malloc(kLeafNumel * sizeof *rows);
  uint16_t *columns = malloc(kLeafNumel * sizeof *columns);
  for (int64_t i = 0; i < kLeafNumel; ++i) {
    const int64_t row = i / kCoupledColumns, column = i % kCoupledColumns;
    rows[i] = kWords[value_of(i / kCoupledBlock) - 1];
    columns[column * kCoupledRows + row] = rows[i];
  }
  spk_block *block =
      coupled_blocks(blocks_of(SPK_F16, "(5120,4096)", DIMS(1, kCoupledBlock)),
                     blocks_of(SPK_F16, "(4096,5120)", DIMS(kCoupledBlock, 1)), orders);
  const spk_buffer leaves[] = {{rows, kLeafNumel, SPK_F16, SPK_LAYOUT_VIEW, NULL},
                               {columns, kLeafNumel, SPK_F16, SPK_LAYOUT_VIEW, NULL}};
  static float norms[kCoupledBlocks];
  struct bytes bytes = {0, 0};
  spk_context *context = context_of(&bytes);
  assert_ok(spk_block_norms(context, block, leaves, 2, 2, &F32(norms)));
  for (int64_t b = 0; b < kCoupledBlocks; ++b) assert_true(norms[b] == 16 * (float)value_of(b));
  assert_true(bytes.peak > 0);
  assert_true(bytes.peak <= kMost);
  spk_context_release(context);
  spk_block_release(block);
  free(columns);
  free(rows);
}

/* Half of all elements, each k + 1/2 below 2^22 twice. */
static void check_elements(int32_t dtype) {
  enum { kElements = 1 << 23, kDistinct = 1 << 22 };
  struct bytes bytes = {0, 0};
  spk_context *context = context_of(&bytes);
  void *data = malloc((size_t)kElements * size_of(dtype));
  for (int64_t i = 0; i < kElements; ++i) {
    const double value = (double)(i * 2654435761 % kDistinct) + 0.5;
    if (dtype == SPK_F64) {
      ((double *)data)[i] = value;
    } else {
      ((float *)data)[i] = (float)value;
    }
  }
  spk_scope *scope = scopes_over(blocks_of(dtype, "(8388608)", NO_DIMS), NO_DIMS);
  const spk_buffer leaf = {data, kElements, dtype, SPK_LAYOUT_VIEW, NULL};
  const int64_t k = kElements / 2;
  assert_ok(spk_scope_keep_top(context, scope, &leaf, NULL, 1, &k, 1, NULL, NULL));
  for (int64_t i = 0; i < kElements; ++i) {
    const double got = dtype == SPK_F64 ? ((double *)data)[i] : (double)((float *)data)[i];
    const double value = (double)(i * 2654435761 % kDistinct) + 0.5;
    if (got != (value > kDistinct / 2 ? value : 0.0)) fail();
  }
  assert_true(bytes.peak > 0);
  assert_true(bytes.peak <= kMost);
  spk_scope_release(scope);
  spk_context_release(context);
  free(data);
}

static void half_of_all_elements(void **state) {
  (void)state;
  check_elements(SPK_F32);
  check_elements(SPK_F64);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(columns_of_256), TEST(columns_of_1024),
                                     TEST(norms_of_coupled_rows_and_columns),
                                     TEST(half_of_all_elements)};
  return exit_code(cmocka_run_group_tests_name("memory", tests, NULL, NULL));
}
