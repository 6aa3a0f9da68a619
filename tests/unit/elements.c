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
  return (double)(i * 104729 % 23) / 8;
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

static unsigned char memory[kCapacity * 8], expected[kCapacity * 8], other[kCapacity * 8];
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

typedef struct {
  const Layout *layout, *to; /* where elements are read and written */
  int32_t dtype;
  int32_t given; /* of thresholds */
  spk_block *block;
  bool into;
} Case;

/* In place, or from other memory into this, where nothing has been and elements lie in one piece. */
typedef struct {
  spk_buffer from, into;
} Operands;

static Operands operands_of(const Case *c) {
  Operands operands = {buffer_of(c->into ? other : memory, c->dtype), buffer_of(memory, c->dtype)};
  operands.into.layout = SPK_LAYOUT_CONTIGUOUS;
  operands.into.numel = numel_of(c->layout);
  place_all(c->layout, c->dtype, weights, memory);
  if (c->into) {
    memcpy(other, memory, sizeof memory);
    memset(memory, 0x5a, sizeof memory);
  }
  return operands;
}

static void assert_memory(const Case *c, const char *what) {
  const int64_t size = size_of(c->dtype);
  for (int64_t i = 0; i < kCapacity; ++i) {
    if (memcmp(memory + i * size, expected + i * size, (size_t)size) == 0) continue;
    print_error("%s: layout %d, dtype %d: element %lld of memory\n", what,
                (int)(c->layout - kLayouts), c->dtype, (long long)i);
    fail();
  }
}

static void check_norms(const Case *c) {
  const int64_t count = numel_of(c->layout);
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

static void check_hard(const Case *c, bool one_for_all) {
  const int64_t count = numel_of(c->layout);
  static double kept[kMostElements];
  int64_t achieved = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bool stay = !(fabs(weights[i]) < thresholds[one_for_all ? 0 : i]);
    kept[i] = stay ? weights[i] : 0.0;
    achieved += stay;
  }
  const Operands operands = operands_of(c);
  place_all(c->to, c->dtype, kept, expected);
  const spk_buffer given = entries_of(one_for_all ? 1 : count, c->given, thresholds);
  spk_report report = {.struct_size = sizeof report};
  assert_ok(spk_block_hard_threshold(NULL, c->block, &operands.from,
                                     c->into ? &operands.into : NULL, 1, &given, NULL, &report));
  assert_memory(c, "hard_threshold");
  assert_int_equal(report.achieved, achieved);
}

/* By what the same elements in one piece become. */
static void check_soft(const Case *c, bool one_for_all) {
  const int64_t count = numel_of(c->layout);
  const int64_t size = size_of(c->dtype);
  const spk_buffer given = entries_of(one_for_all ? 1 : count, c->given, thresholds);
  static unsigned char dense[kMostElements * 8];
  store_numbers(weights, count, c->dtype, dense);
  const spk_buffer in_one_piece = {dense, count, c->dtype, SPK_LAYOUT_CONTIGUOUS, NULL};
  spk_report want = {.struct_size = sizeof want};
  assert_ok(spk_block_soft_threshold(NULL, c->block, &in_one_piece, NULL, 1, &given, NULL, &want));
  const Operands operands = operands_of(c);
  memset(expected, 0x5a, (size_t)(kCapacity * size));
  for (int64_t i = 0; i < count; ++i) {
    memcpy(expected + place_of(c->to, i) * size, dense + i * size, (size_t)size);
  }
  spk_report report = {.struct_size = sizeof report};
  assert_ok(spk_block_soft_threshold(NULL, c->block, &operands.from,
                                     c->into ? &operands.into : NULL, 1, &given, NULL, &report));
  assert_memory(c, "soft_threshold");
  assert_int_equal(report.achieved, want.achieved);
}

static void check_mask(const Case *c) {
  const int64_t count = numel_of(c->layout);
  static double kept[kMostElements];
  for (int64_t i = 0; i < count; ++i) kept[i] = keep[i] ? weights[i] : 0.0;
  const Operands operands = operands_of(c);
  place_all(c->to, c->dtype, kept, expected);
  const spk_buffer mask = {keep, count, SPK_U8, SPK_LAYOUT_CONTIGUOUS, NULL};
  assert_ok(spk_block_apply_keep_mask(NULL, c->block, &operands.from,
                                      c->into ? &operands.into : NULL, 1, &mask));
  assert_memory(c, "apply_keep_mask");
}

/* Products of so few bits are exact; one by zero is +0. */
static void check_multiplier(const Case *c) {
  const int64_t count = numel_of(c->layout);
  static double products[kMostElements];
  for (int64_t i = 0; i < count; ++i) products[i] = factors[i] == 0 ? 0.0 : weights[i] * factors[i];
  const Operands operands = operands_of(c);
  place_all(c->to, c->dtype, products, expected);
  const spk_buffer multiplier = entries_of(count, c->dtype, factors);
  assert_ok(spk_block_apply_multiplier(NULL, c->block, &operands.from,
                                       c->into ? &operands.into : NULL, 1, &multiplier));
  assert_memory(c, "apply_multiplier");
}

static void for_each_case(void (*check)(const Case *c)) {
  for (int64_t i = 0; i < kMostElements; ++i) {
    weights[i] = weight_of(i);
    thresholds[i] = threshold_of(i);
    factors[i] = factor_of(i);
    keep[i] = stays(i);
  }
  for (int64_t l = 0; l < COUNT(kLayouts); ++l) {
    for (int64_t d = 0; d < COUNT(kDtypes); ++d) {
      const Layout *layout = &kLayouts[l];
      spk_view *view = NULL;
      spk_block *block = NULL;
      assert_ok(
          spk_view_create(kDtypes[d], 3, layout->shape, layout->stride, layout->offset, &view));
      assert_ok(spk_block_create(view, DIMS(1, 1, 1), NULL, &block));
      const int64_t *shape = layout->shape;
      const Layout dense = {{shape[0], shape[1], shape[2]}, {shape[1] * shape[2], shape[2], 1}, 0};
      for (int variant = 0; variant < 4; ++variant) {
        const bool into = (variant & 1) != 0;
        const int32_t given = variant & 2 ? SPK_F64 : score_of(kDtypes[d]);
        check(&(Case){layout, into ? &dense : layout, kDtypes[d], given, block, into});
      }
      spk_block_release(block);
      spk_view_release(view);
    }
  }
}

static void check_hard_with_each(const Case *c) {
  check_hard(c, false);
  check_hard(c, true);
}
static void check_soft_with_each(const Case *c) {
  check_soft(c, false);
  check_soft(c, true);
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
      TEST(multipliers_in_any_order),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
