/* Single elements in any order of memory, beside arrays with an entry for each of them: every result
 * has a closed form, or that of the same elements in one piece; around the view nothing changes. */
#include "support.h"

enum { kCapacity = 1 << 17, kMostElements = 1 << 16 };

typedef struct {
  int64_t shape[3], stride[3], offset;
} Layout;

/* Rows that are whole boxes, longer, shorter, and too short for one; other dimensions alike. */
static const Layout kLayouts[] = {
    {{1, 130, 70}, {0, 70, 1}, 0},         /* one piece */
    {{1, 130, 71}, {0, 75, 1}, 3},         /* rows apart */
    {{1, 3, 20011}, {0, 20013, 1}, 1},     /* rows longer than a box */
    {{1, 130, 70}, {0, -73, 1}, 129 * 73}, /* last row first */
    {{1, 130, 70}, {0, 70, -1}, 69},       /* rows backwards */
    {{1, 130, 70}, {0, 1, 130}, 0},        /* columns */
    {{1, 130, 70}, {0, 1, 131}, 5},        /* columns apart */
    {{1, 130, 70}, {0, 1, -131}, 69 * 131}, {{1, 130, 70}, {0, -1, 131}, 129},
    {{1, 300, 200}, {0, 1, 300}, 0}, /* more than one box either way */
    {{1, 17, 16}, {0, 1, 18}, 0},           {{1, 15, 300}, {0, 1, 16}, 0}, /* columns of few */
    {{1, 300, 15}, {0, 1, 301}, 0},         {{1, 300, 15}, {0, 16, 1}, 0},
    {{9, 40, 33}, {33, 297, 1}, 0},         {{9, 40, 33}, {1, 9, 360}, 0},
    {{40, 33, 9}, {33, 1, 1320}, 0},        {{40, 3, 33}, {1, 40, 120}, 2},
    {{33, 40, 9}, {400, 10, 1}, 0},         {{1, 1, 1}, {1, 1, 1}, 7},
};

static const int32_t kDtypes[] = {SPK_F32, SPK_F64, SPK_BF16, SPK_F16};

static int64_t numel_of(const Layout *l) {
  return l->shape[0] * l->shape[1] * l->shape[2];
}

static int64_t place_of(const Layout *l, int64_t i) {
  const int64_t plane = l->shape[1] * l->shape[2];
  return l->offset + i / plane * l->stride[0] + i % plane / l->shape[2] * l->stride[1] +
         i % l->shape[2] * l->stride[2];
}

/* --- data ---------------------------------------------------------------------------------- */

/* Numbers of few bits, so that every dtype holds them, among them -0. */
static double weight_of(int64_t i) {
  const int64_t r = (i * 7919 + i / 5) % 41 - 20;
  return r == 0 ? (i % 2 ? -0.0 : 0.0) : (double)r / 8;
}
static double threshold_of(int64_t i) {
  return (double)((i * 104729 + 7) % 23) / 8;
}
static double factor_of(int64_t i) {
  return (double)(i * 31 % 9 - 4) / 2;
}
static bool stays(int64_t i) {
  return i * 2654435761 % 3 != 0;
}

static double weights[kMostElements], thresholds[kMostElements], factors[kMostElements];
static uint8_t keep[kMostElements];

/* --- memory -------------------------------------------------------------------------------- */

static unsigned char memory[kCapacity * 8], expected[kCapacity * 8];
static unsigned char other[kCapacity * 8], before[kCapacity * 8];
static unsigned char entries[kMostElements * 8];

/* Fills memory with what no result is, and the view with numbers. */
static void place_all(const Layout *l, int32_t dtype, const double *numbers, unsigned char *to) {
  memset(to, 0x5a, (size_t)(kCapacity * size_of(dtype)));
  for (int64_t i = 0; i < numel_of(l); ++i) {
    store_numbers(&numbers[i], 1, dtype, to + place_of(l, i) * size_of(dtype));
  }
}

static int32_t score_of(int32_t dtype) {
  return dtype == SPK_F64 ? SPK_F64 : SPK_F32;
}

static spk_buffer buffer_of(unsigned char *data, int32_t dtype) {
  return (spk_buffer){data, kCapacity, dtype, SPK_LAYOUT_VIEW, NULL};
}
static spk_buffer entries_of(int64_t count, int32_t dtype, const double *numbers) {
  store_numbers(numbers, count, dtype, entries);
  return (spk_buffer){entries, count, dtype, SPK_LAYOUT_CONTIGUOUS, NULL};
}

/* --- what is checked ----------------------------------------------------------------------- */

/* In place; or from one memory to another, where nothing has been: either in the view's layout, or in
 * one piece. */
typedef enum { kInPlace, kToView, kToOnePiece, kFromOnePiece, kPlaces } Places;

typedef struct {
  int number;      /* of the layout */
  Layout from, to; /* where elements are read and written */
  Places places;
  int32_t dtype;
  spk_block *block;
} Case;

typedef struct {
  spk_buffer from, into;
} Operands;

static spk_buffer elements_in(unsigned char *data, const Case *c, bool one_piece) {
  spk_buffer buffer = buffer_of(data, c->dtype);
  if (!one_piece) return buffer;
  buffer.layout = SPK_LAYOUT_CONTIGUOUS;
  buffer.numel = numel_of(&c->from);
  return buffer;
}

static Operands operands_of(const Case *c) {
  memset(memory, 0x5a, sizeof memory);
  unsigned char *read = c->places == kInPlace ? memory : other;
  place_all(&c->from, c->dtype, weights, read);
  memcpy(before, other, sizeof other);
  return (Operands){elements_in(read, c, c->places == kFromOnePiece),
                    elements_in(memory, c, c->places == kToOnePiece)};
}

static const spk_buffer *into_of(const Case *c, const Operands *operands) {
  return c->places == kInPlace ? NULL : &operands->into;
}

static void assert_memory(const Case *c, const char *what) {
  const int64_t size = size_of(c->dtype);
  assert_memory_equal(other, before, sizeof other);
  if (memcmp(memory, expected, (size_t)(kCapacity * size)) == 0) return;
  for (int64_t i = 0; i < kCapacity; ++i) {
    if (memcmp(memory + i * size, expected + i * size, (size_t)size) == 0) continue;
    print_error("%s: layout %d, places %d, dtype %d: element %lld of memory\n", what, c->number,
                (int)c->places, c->dtype, (long long)i);
    fail();
  }
}

static void check_norms(const Case *c) {
  const int64_t count = numel_of(&c->from);
  const int32_t score = score_of(c->dtype);
  const double p[] = {2, 1, INFINITY, -INFINITY};
  for (int64_t i = 0; i < COUNT(p); ++i) {
    const Operands operands = operands_of(c);
    static double magnitudes[kMostElements];
    for (int64_t k = 0; k < count; ++k) magnitudes[k] = fabs(weights[k]);
    static unsigned char want[kMostElements * 8];
    memset(want, 0x5a, sizeof want);
    memset(entries, 0x5a, sizeof entries);
    store_numbers(magnitudes, count, score, want);
    const spk_buffer out = {entries, count, score, SPK_LAYOUT_CONTIGUOUS, NULL};
    assert_ok(spk_block_norms(NULL, c->block, &operands.from, 1, p[i], &out));
    assert_memory_equal(entries, want, sizeof want);
  }
}

/* One threshold, which as a double is no float. */
static double one_of(int32_t dtype) {
  return dtype == SPK_F64 ? 0.875 + 0x1p-40 : 0.875;
}

static void check_hard(const Case *c, int32_t given_dtype, bool one_for_all) {
  const double one = one_of(given_dtype);
  const int64_t count = numel_of(&c->from);
  static double kept[kMostElements];
  int64_t achieved = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bool stay = !(fabs(weights[i]) < (one_for_all ? one : thresholds[i]));
    kept[i] = stay ? weights[i] : 0.0;
    achieved += stay;
  }
  const Operands operands = operands_of(c);
  place_all(&c->to, c->dtype, kept, expected);
  const spk_buffer given =
      entries_of(one_for_all ? 1 : count, given_dtype, one_for_all ? &one : thresholds);
  spk_report report = {.struct_size = sizeof report};
  assert_ok(spk_block_hard_threshold(NULL, c->block, &operands.from, into_of(c, &operands), 1,
                                     &given, NULL, &report));
  assert_memory(c, "hard_threshold");
  assert_int_equal(report.achieved, achieved);
}

/* By what the same elements in one piece become. */
static void check_soft(const Case *c, int32_t given_dtype, bool one_for_all) {
  const double one = one_of(given_dtype);
  const int64_t count = numel_of(&c->from);
  const int64_t size = size_of(c->dtype);
  const spk_buffer given =
      entries_of(one_for_all ? 1 : count, given_dtype, one_for_all ? &one : thresholds);
  static unsigned char dense[kMostElements * 8];
  store_numbers(weights, count, c->dtype, dense);
  const spk_buffer in_one_piece = {dense, count, c->dtype, SPK_LAYOUT_CONTIGUOUS, NULL};
  spk_report want = {.struct_size = sizeof want};
  assert_ok(spk_block_soft_threshold(NULL, c->block, &in_one_piece, NULL, 1, &given, NULL, &want));
  const Operands operands = operands_of(c);
  memset(expected, 0x5a, (size_t)(kCapacity * size));
  for (int64_t i = 0; i < count; ++i) {
    memcpy(expected + place_of(&c->to, i) * size, dense + i * size, (size_t)size);
  }
  spk_report report = {.struct_size = sizeof report};
  assert_ok(spk_block_soft_threshold(NULL, c->block, &operands.from, into_of(c, &operands), 1,
                                     &given, NULL, &report));
  assert_memory(c, "soft_threshold");
  assert_int_equal(report.achieved, want.achieved);
}

static void check_mask(const Case *c) {
  const int64_t count = numel_of(&c->from);
  static double kept[kMostElements];
  for (int64_t i = 0; i < count; ++i) kept[i] = keep[i] ? weights[i] : 0.0;
  const Operands operands = operands_of(c);
  place_all(&c->to, c->dtype, kept, expected);
  const spk_buffer mask = {keep, count, SPK_U8, SPK_LAYOUT_CONTIGUOUS, NULL};
  assert_ok(
      spk_block_apply_keep_mask(NULL, c->block, &operands.from, into_of(c, &operands), 1, &mask));
  assert_memory(c, "apply_keep_mask");
}

/* Products of so few bits are exact; one by zero is +0. */
static void check_multiplier(const Case *c) {
  const int64_t count = numel_of(&c->from);
  static double products[kMostElements];
  for (int64_t i = 0; i < count; ++i) products[i] = factors[i] == 0 ? 0.0 : weights[i] * factors[i];
  const Operands operands = operands_of(c);
  place_all(&c->to, c->dtype, products, expected);
  const spk_buffer multiplier = entries_of(count, c->dtype, factors);
  assert_ok(spk_block_apply_multiplier(NULL, c->block, &operands.from, into_of(c, &operands), 1,
                                       &multiplier));
  assert_memory(c, "apply_multiplier");
}

static void fill_numbers(void) {
  for (int64_t i = 0; i < kMostElements; ++i) {
    weights[i] = weight_of(i);
    thresholds[i] = threshold_of(i);
    factors[i] = factor_of(i);
    keep[i] = stays(i);
  }
}

static void for_each_case(void (*check)(const Case *c)) {
  fill_numbers();
  for (int l = 0; l < COUNT(kLayouts); ++l) {
    for (int64_t d = 0; d < COUNT(kDtypes); ++d) {
      const Layout *layout = &kLayouts[l];
      spk_view *view = NULL;
      spk_block *block = NULL;
      assert_ok(
          spk_view_create(kDtypes[d], 3, layout->shape, layout->stride, layout->offset, &view));
      assert_ok(spk_block_create(view, DIMS(1, 1, 1), NULL, &block));
      const int64_t *shape = layout->shape;
      const Layout dense = {{shape[0], shape[1], shape[2]}, {shape[1] * shape[2], shape[2], 1}, 0};
      for (int places = 0; places < kPlaces; ++places) {
        check(&(Case){l, places == kFromOnePiece ? dense : *layout,
                      places == kToOnePiece ? dense : *layout, (Places)places, kDtypes[d], block});
      }
      spk_block_release(block);
      spk_view_release(view);
    }
  }
}

static void check_hard_with_each(const Case *c) {
  for (int one = 0; one < 2; ++one) {
    check_hard(c, score_of(c->dtype), one);
    check_hard(c, SPK_F64, one);
  }
}
static void check_soft_with_each(const Case *c) {
  for (int one = 0; one < 2; ++one) {
    check_soft(c, score_of(c->dtype), one);
    check_soft(c, SPK_F64, one);
  }
}

/* --- one threshold for a scope ------------------------------------------------------------- */

typedef struct {
  int64_t rows, cols, scope_rows, scope_cols;
} Scopes;

static int64_t scope_of(const Scopes *s, int64_t i) {
  return i / s->cols / s->scope_rows * (s->cols / s->scope_cols) + i % s->cols / s->scope_cols;
}

static void check_scopes(const Scopes *s, bool column_major) {
  const int64_t count = s->rows * s->cols;
  const int64_t scopes = count / (s->scope_rows * s->scope_cols);
  const Layout row_major = {{1, s->rows, s->cols}, {0, s->cols, 1}, 0};
  const Layout turned = {{1, s->rows, s->cols}, {0, 1, s->rows}, 0};
  const Layout *l = column_major ? &turned : &row_major;
  spk_view *view = NULL;
  spk_block *block = NULL;
  spk_scope *scope = NULL;
  assert_ok(spk_view_create(SPK_F32, 3, l->shape, l->stride, 0, &view));
  assert_ok(spk_block_create(view, DIMS(1, 1, 1), NULL, &block));
  assert_ok(spk_scope_create(block, DIMS(1, s->scope_rows, s->scope_cols), NULL, &scope));
  const spk_buffer leaf = buffer_of(memory, SPK_F32);

  static double spread[kMostElements], kept[kMostElements];
  for (int64_t i = 0; i < count; ++i) {
    spread[i] = thresholds[scope_of(s, i)];
    kept[i] = fabs(weights[i]) < spread[i] ? 0.0 : weights[i];
  }
  spk_buffer given = entries_of(scopes, SPK_F32, thresholds);
  place_all(l, SPK_F32, weights, memory);
  place_all(l, SPK_F32, kept, expected);
  assert_ok(spk_scope_hard_threshold(NULL, scope, &leaf, NULL, 1, &given, NULL, NULL));
  assert_memory_equal(memory, expected, kCapacity * sizeof(float));

  /* As one for each element. */
  place_all(l, SPK_F32, weights, memory);
  assert_ok(spk_scope_soft_threshold(NULL, scope, &leaf, NULL, 1, &given, NULL, NULL));
  memcpy(expected, memory, kCapacity * sizeof(float));
  given = entries_of(count, SPK_F32, spread);
  place_all(l, SPK_F32, weights, memory);
  assert_ok(spk_block_soft_threshold(NULL, block, &leaf, NULL, 1, &given, NULL, NULL));
  assert_memory_equal(memory, expected, kCapacity * sizeof(float));
  spk_scope_release(scope);
  spk_block_release(block);
  spk_view_release(view);
}

static void thresholds_of_scopes(void **state) {
  (void)state;
  fill_numbers();
  const Scopes all[] = {{130, 70, 1, 35},  {130, 70, 1, 70},  {130, 70, 130, 1},   {130, 70, 65, 7},
                        {300, 200, 1, 50}, {300, 200, 20, 1}, {300, 200, 300, 200}};
  for (int64_t i = 0; i < COUNT(all); ++i) {
    check_scopes(&all[i], false);
    check_scopes(&all[i], true);
  }
}

static void norms_of_elements_in_any_order(void **state) {
  (void)state;
  for_each_case(check_norms);
}
static void hard_thresholds_in_any_order(void **state) {
  (void)state;
  for_each_case(check_hard_with_each);
}
static void soft_thresholds_in_any_order(void **state) {
  (void)state;
  for_each_case(check_soft_with_each);
}
static void masks_in_any_order(void **state) {
  (void)state;
  for_each_case(check_mask);
}
static void multipliers_in_any_order(void **state) {
  (void)state;
  for_each_case(check_multiplier);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(norms_of_elements_in_any_order), TEST(hard_thresholds_in_any_order),
      TEST(soft_thresholds_in_any_order),   TEST(masks_in_any_order),
      TEST(multipliers_in_any_order),       TEST(thresholds_of_scopes),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
