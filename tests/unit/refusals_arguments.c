/* Refusals of numbers, options and sources. */
#include "refusals.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* --- handles and plain numbers -------------------------------------------------------------- */

static void no_handle_is_refused(void **state) {
  (void)state;
  const spk_score_source source = {.struct_size = sizeof source, .scores = SCORES};
  const int64_t shape[] = {2, 2};
  const char *block = "block: got NULL";
  const char *scope = "scope: got NULL";
  const char *view = "view: got NULL";
  const spk_status bad = SPK_INVALID_ARGUMENT;
  assert_refused(bad, block, spk_block_norms(NULL, NULL, LEAVES, 2, 2, SCORES));
  assert_refused(bad, block, spk_block_min(NULL, NULL, LEAVES, 2, SCORES));
  assert_refused(bad, block, spk_block_max(NULL, NULL, LEAVES, 2, SCORES));
  assert_refused(bad, block, spk_block_nnz(NULL, NULL, LEAVES, 2, 0, NULL, &w.total));
  assert_refused(bad, block, spk_block_reduce(NULL, NULL, LEAVES, 2, stop, NULL, SCORES));
  assert_refused(bad, block, spk_block_apply_mask(NULL, NULL, LEAVES, NULL, 2, MASK));
  assert_refused(bad, block, spk_block_apply_keep_mask(NULL, NULL, LEAVES, NULL, 2, MASK));
  assert_refused(bad, block, spk_block_apply_multiplier(NULL, NULL, LEAVES, NULL, 2, SCORES));
  assert_refused(bad, block,
                 spk_block_hard_threshold(NULL, NULL, LEAVES, NULL, 2, SCORES, NULL, &w.report));
  assert_refused(bad, block,
                 spk_block_soft_threshold(NULL, NULL, LEAVES, NULL, 2, SCORES, NULL, &w.report));
  assert_refused(bad, block, spk_block_set_data(NULL, NULL, LEAVES, 2, INTO));
  assert_refused(bad, block, spk_block_get_masks(NULL, NULL, MASK, LEAVES, 2));
  assert_refused(bad, block, spk_block_block_view_merged(NULL, NULL, LEAVES, 2, SCORES));
  assert_refused(bad, block, spk_block_broadcast_block_to_element(NULL, NULL, SCORES, LEAVES, 2));
  assert_refused(bad, scope, spk_scope_block_norms(NULL, NULL, LEAVES, 2, 2, SCORES));
  assert_refused(bad, scope, spk_scope_block_to_scope(NULL, NULL, LEAVES, 2, SCORES));
  assert_refused(bad, scope, spk_scope_scope_to_block(NULL, NULL, SCORES, LEAVES, 2));
  assert_refused(bad, scope, spk_scope_kth_largest(NULL, NULL, &source, 2, w.counts, 1, SCORES));
  assert_refused(bad, scope, spk_scope_kth_mid(NULL, NULL, &source, 2, w.counts, 1, 1, SCORES));
  assert_refused(bad, scope,
                 spk_scope_hard_threshold(NULL, NULL, LEAVES, NULL, 2, SCORES, NULL, &w.report));
  assert_refused(bad, scope,
                 spk_scope_keep_top(NULL, NULL, LEAVES, NULL, 2, w.counts, 1, NULL, &w.report));
  assert_refused(bad, scope,
                 spk_scope_get_masks(NULL, NULL, &source, w.counts, 1, 0, LEAVES, 2, &w.report));
  assert_refused(bad, scope,
                 spk_scope_soft_threshold(NULL, NULL, LEAVES, NULL, 2, SCORES, NULL, &w.report));
  assert_refused(bad, view, spk_view_apply_mask(NULL, NULL, LEAVES, NULL, 2, shape, MASK));
  assert_refused(bad, view, spk_view_apply_keep_mask(NULL, NULL, LEAVES, NULL, 2, shape, MASK));
  assert_refused(bad, view, spk_view_apply_multiplier(NULL, NULL, LEAVES, NULL, 2, shape, SCORES));
  assert_refused(bad, view, spk_view_block_view_merged(NULL, NULL, LEAVES, 2, shape, SCORES));
  assert_refused(bad, view,
                 spk_view_broadcast_block_to_element(NULL, NULL, 2, shape, SCORES, LEAVES));
  assert_refused(bad, view, spk_prune_nm(NULL, NULL, LEAVES, NULL, 0, 1, 2, &w.report));
  assert_refused(bad, view, spk_prune_unstructured(NULL, NULL, LEAVES, NULL, 0.5, &w.report));
  assert_refused(bad, view,
                 spk_soft_threshold_blocks(NULL, NULL, LEAVES, NULL, 2, shape, 1, &w.report));
}

static void p_out_of_range_is_refused(void **state) {
  (void)state;
  static const struct {
    double p;
    const char *message;
  } bad[] = {
      {NAN, "p: got NaN, expected 0, 1, 2, inf, -inf or 0.01 to 1000"},
      {-1, "p: got -1, expected 0, 1, 2, inf, -inf or 0.01 to 1000"},
      {0.009, "p: got 0.009, expected 0, 1, 2, inf, -inf or 0.01 to 1000"},
      {1000.5, "p: got 1000.5, expected 0, 1, 2, inf, -inf or 0.01 to 1000"},
  };
  for (int64_t i = 0; i < COUNT(bad); ++i) {
    assert_refused(SPK_INVALID_ARGUMENT, bad[i].message,
                   spk_block_norms(NULL, h.pair, LEAVES, 2, bad[i].p, SCORES));
    assert_refused(SPK_INVALID_ARGUMENT, bad[i].message,
                   spk_scope_block_norms(NULL, h.both, LEAVES, 2, bad[i].p, &F32(w.scores)));
  }
}

static void nnz_refuses(void **state) {
  (void)state;
  assert_refused(SPK_INVALID_ARGUMENT, "eps: got -1e-08, expected >= 0",
                 spk_block_nnz(NULL, h.pair, LEAVES, 2, -1e-8, NULL, &w.total));
  assert_refused(SPK_INVALID_ARGUMENT, "eps: got NaN, expected >= 0",
                 spk_block_nnz(NULL, h.pair, LEAVES, 2, NAN, NULL, &w.total));
  assert_refused(SPK_INVALID_ARGUMENT, "total: got NULL",
                 spk_block_nnz(NULL, h.pair, LEAVES, 2, 0, NULL, NULL));
}

static void reduce_refuses(void **state) {
  (void)state;
  assert_refused(SPK_INVALID_ARGUMENT, "fn: got NULL",
                 spk_block_reduce(NULL, h.pair, LEAVES, 2, NULL, NULL, SCORES));
  assert_refused(SPK_CANCELLED, "reduce callback: returned 1 for block 0, which cancels the call",
                 spk_block_reduce(NULL, h.pair, LEAVES, 2, stop, NULL, SCORES));
}

/* --- thresholds and options ----------------------------------------------------------------- */

static void thresholds_must_be_numbers(void **state) {
  (void)state;
  float single[] = {1, 2, NAN, 3};
  double full[] = {NAN};
  const spk_buffer four = F32(single);
  const spk_buffer one = F64(full);
  const spk_buffer two = part(single + 1, 2, SPK_F32);
  const char *third = "thresholds[2]: got NaN, expected a number";
  const char *first = "thresholds[0]: got NaN, expected a number";
  assert_refused(SPK_INVALID_ARGUMENT, third, hard_array(&four));
  assert_refused(SPK_INVALID_ARGUMENT, third, soft_array(&four));
  assert_refused(SPK_INVALID_ARGUMENT, first, hard_array(&one));
  assert_refused(SPK_INVALID_ARGUMENT, first, soft_array(&one));
  assert_refused(SPK_INVALID_ARGUMENT, first, scope_hard_array(&one));
  assert_refused(SPK_INVALID_ARGUMENT, first, scope_soft_array(&one));
  const char *second = "thresholds[1]: got NaN, expected a number";
  assert_refused(SPK_INVALID_ARGUMENT, second, scope_hard_array(&two));
  assert_refused(SPK_INVALID_ARGUMENT, second, scope_soft_array(&two));
}

static void soft_thresholds_may_not_be_negative(void **state) {
  (void)state;
  float single[] = {1, -0.5f, 2, 3};
  double full[] = {-INFINITY};
  const spk_buffer four = F32(single);
  const spk_buffer two = part(single, 2, SPK_F32);
  const spk_buffer one = F64(full);
  assert_refused(SPK_INVALID_ARGUMENT, "thresholds[1]: got -0.5, expected >= 0", soft_array(&four));
  assert_refused(SPK_INVALID_ARGUMENT, "thresholds[1]: got -0.5, expected >= 0",
                 scope_soft_array(&two));
  assert_refused(SPK_INVALID_ARGUMENT, "thresholds[0]: got -inf, expected >= 0", soft_array(&one));
  assert_refused(SPK_INVALID_ARGUMENT, "thresholds[0]: got -inf, expected >= 0",
                 scope_soft_array(&one));
}

/* One entry among others that may stay, at each place of an array that is read in several. */
static void check_places(int32_t dtype, int count) {
  enum { kMost = 259 };
  uint64_t data[kMost];
  double numbers[kMost];
  float weights[kMost];
  for (int i = 0; i < count; ++i) numbers[i] = i % 3;
  for (int i = 0; i < count; ++i) weights[i] = 1;
  char text[16];
  snprintf(text, sizeof text, "(%d)", count);
  spk_block *block = blocks_of(SPK_F32, text, DIMS(1));
  const spk_buffer leaf = part(weights, count, SPK_F32);
  const spk_buffer thresholds = part(data, count, dtype);
  for (int i = 0; i < count; ++i) {
    char message[64];
    numbers[i] = i % 2 ? (double)NAN : -0.5;
    snprintf(message, sizeof message, "thresholds[%d]: got %s, expected %s", i,
             i % 2 ? "NaN" : "-0.5", i % 2 ? "a number" : ">= 0");
    store_numbers(numbers, count, dtype, data);
    assert_refused(SPK_INVALID_ARGUMENT, message,
                   spk_block_soft_threshold(NULL, block, &leaf, NULL, 1, &thresholds, NULL, NULL));
    for (int k = 0; k < count; ++k) assert_true(weights[k] == 1);
    numbers[i] = i % 3;
  }
  store_numbers(numbers, count, dtype, data);
  assert_ok(spk_block_soft_threshold(NULL, block, &leaf, NULL, 1, &thresholds, NULL, NULL));
  spk_block_release(block);
}

static void a_refused_threshold_is_found_anywhere(void **state) {
  (void)state;
  const int counts[] = {63, 64, 65, 127, 200, 259};
  for (int64_t i = 0; i < COUNT(counts); ++i) {
    check_places(SPK_F32, counts[i]);
    check_places(SPK_F64, counts[i]);
  }
}

static spk_status soft_with(const spk_soft_options *options) {
  return spk_block_soft_threshold(NULL, h.pair, LEAVES, NULL, 2, ONE_THRESHOLD, options, &w.report);
}
static spk_status scope_soft_with(const spk_soft_options *options) {
  return spk_scope_soft_threshold(NULL, h.both, LEAVES, NULL, 2, ONE_THRESHOLD, options, &w.report);
}

static void soft_options_are_checked(void **state) {
  (void)state;
  spk_status (*const calls[])(const spk_soft_options *) = {soft_with, scope_soft_with};
  for (int64_t i = 0; i < COUNT(calls); ++i) {
    spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
    options.eps = NAN;
    assert_refused(SPK_INVALID_ARGUMENT, "eps: got NaN, expected a number", calls[i](&options));
    options = (spk_soft_options)SPK_SOFT_OPTIONS_INIT;
    options.atol = NAN;
    assert_refused(SPK_INVALID_ARGUMENT, "atol: got NaN, expected a number", calls[i](&options));
    options = (spk_soft_options)SPK_SOFT_OPTIONS_INIT;
    options.max_iter = 65;
    assert_refused(SPK_INVALID_ARGUMENT, "max_iter: got 65, expected 0 to 64", calls[i](&options));
    options.max_iter = -1;
    assert_refused(SPK_INVALID_ARGUMENT, "max_iter: got -1, expected 0 to 64", calls[i](&options));
  }
}

static void conditioners_must_be_positive_and_finite(void **state) {
  (void)state;
  static const struct {
    double value;
    const char *shown;
  } bad[] = {{0, "0"}, {-1, "-1"}, {NAN, "NaN"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}};
  for (int64_t i = 0; i < COUNT(bad); ++i) {
    const spk_buffer conditioners[] = {part(w.wide_x, 16, SPK_F64), part(w.wide_y, 16, SPK_F64)};
    /* Element (2, 3) lies in block (1, 1). */
    w.wide_y[2 * 4 + 3] = bad[i].value;
    char message[SPK_MESSAGE_SIZE];
    snprintf(message, sizeof message,
             "conditioners[1]: got %s in block (1,1), expected numbers > 0 and finite",
             bad[i].shown);
    assert_refused(SPK_INVALID_ARGUMENT, message, soft_conditioners(conditioners, 2));
  }
}

static void conditioners_of_scopes_must_be_positive_and_finite(void **state) {
  (void)state;
  const spk_buffer conditioners[] = {part(w.wide_x, 16, SPK_F64), part(w.wide_y, 16, SPK_F64)};
  w.wide_y[2 * 4 + 3] = -2;
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.conditioners = conditioners;
  /* Scope (1, 0), block (0, 1) of it. */
  assert_refused(SPK_INVALID_ARGUMENT,
                 "conditioners[1]: got -2 in block (1,0,0,1), expected numbers > 0 and finite",
                 scope_soft_with(&options));
}

/* Struct sizes, as any function with such an argument checks them. */
static void struct_sizes_are_checked(void **state) {
  (void)state;
  struct {
    spk_soft_options options;
    int64_t further;
  } soft = {SPK_SOFT_OPTIONS_INIT, 1};
  soft.options.struct_size = 0;
  assert_refused(SPK_INVALID_ARGUMENT, "options: struct_size: got 0, expected 40",
                 soft_with(&soft.options));
  assert_refused(SPK_INVALID_ARGUMENT, "options: struct_size: got 0, expected 40",
                 scope_soft_with(&soft.options));
  soft.options.struct_size = 5000;
  assert_refused(SPK_INVALID_ARGUMENT, "options: struct_size: got 5000, expected 40",
                 soft_with(&soft.options));
  soft.options.struct_size = sizeof soft;
  assert_refused(SPK_INVALID_ARGUMENT,
                 "options: struct_size: got 48 with fields that this version, which knows 40 "
                 "bytes, cannot honour",
                 soft_with(&soft.options));

  struct {
    spk_hard_options options;
    int64_t further;
  } hard = {{7, NULL}, -1};
  assert_refused(SPK_INVALID_ARGUMENT, "options: struct_size: got 7, expected 16",
                 spk_block_hard_threshold(NULL, h.pair, LEAVES, NULL, 2, ONE_THRESHOLD,
                                          &hard.options, &w.report));
  hard.options.struct_size = sizeof hard;
  const char *unknown =
      "options: struct_size: got 24 with fields that this version, which knows 16 bytes, cannot "
      "honour";
  assert_refused(SPK_INVALID_ARGUMENT, unknown,
                 spk_block_hard_threshold(NULL, h.pair, LEAVES, NULL, 2, ONE_THRESHOLD,
                                          &hard.options, &w.report));
  assert_refused(SPK_INVALID_ARGUMENT, unknown,
                 spk_scope_hard_threshold(NULL, h.both, LEAVES, NULL, 2, ONE_THRESHOLD,
                                          &hard.options, &w.report));

  struct {
    spk_select_options options;
    int64_t further;
  } select = {{0, NULL, NULL, 0, 0}, 1};
  assert_refused(
      SPK_INVALID_ARGUMENT, "options: struct_size: got 0, expected 32",
      spk_scope_keep_top(NULL, h.both, LEAVES, NULL, 2, w.counts, 1, &select.options, &w.report));
  select.options.struct_size = sizeof select;
  assert_refused(
      SPK_INVALID_ARGUMENT,
      "options: struct_size: got 40 with fields that this version, which knows 32 "
      "bytes, cannot honour",
      spk_scope_keep_top(NULL, h.both, LEAVES, NULL, 2, w.counts, 1, &select.options, &w.report));

  struct {
    spk_score_source source;
    int64_t further;
  } source = {{0, NULL, SCORES, NULL}, 1};
  const spk_buffer masks[] = {U8(w.bytes), U8(w.more_bytes)};
  const spk_buffer kth = part(w.into_x, 2, SPK_F32);
  const char *none = "source: struct_size: got 0, expected 32";
  assert_refused(SPK_INVALID_ARGUMENT, none,
                 spk_scope_kth_largest(NULL, h.both, &source.source, 2, w.counts, 1, &kth));
  assert_refused(SPK_INVALID_ARGUMENT, none,
                 spk_scope_kth_mid(NULL, h.both, &source.source, 2, w.counts, 1, 1, &kth));
  assert_refused(
      SPK_INVALID_ARGUMENT, none,
      spk_scope_get_masks(NULL, h.both, &source.source, w.counts, 1, 0, masks, 2, &w.report));
  source.source.struct_size = sizeof source;
  assert_refused(SPK_INVALID_ARGUMENT,
                 "source: struct_size: got 40 with fields that this version, which knows 32 bytes, "
                 "cannot honour",
                 spk_scope_kth_largest(NULL, h.both, &source.source, 2, w.counts, 1, &kth));
}

static void reports_must_have_a_size(void **state) {
  (void)state;
  const char *message = "report: struct_size: got 0, expected 48";
  const spk_status bad = SPK_INVALID_ARGUMENT;
  const spk_buffer scores = F32(w.scores);
  const spk_score_source source = {.struct_size = sizeof source, .scores = &scores};
  const spk_buffer masks[] = {U8(w.bytes), U8(w.more_bytes)};
  w.report.struct_size = 0;
  assert_refused(bad, message, hard_array(ONE_THRESHOLD));
  assert_refused(bad, message, soft_array(ONE_THRESHOLD));
  assert_refused(bad, message, scope_hard_array(ONE_THRESHOLD));
  assert_refused(bad, message, scope_soft_array(ONE_THRESHOLD));
  assert_refused(bad, message, keep_top_leaves(LEAVES, 2));
  assert_refused(bad, message,
                 spk_scope_get_masks(NULL, h.both, &source, w.counts, 1, 0, masks, 2, &w.report));
  assert_refused(bad, message, spk_prune_nm(NULL, h.view, LEAVES, NULL, 0, 1, 2, &w.report));
  assert_refused(bad, message, spk_prune_unstructured(NULL, h.view, LEAVES, NULL, 0, &w.report));
  assert_refused(bad, message,
                 spk_soft_threshold_blocks(NULL, h.view, LEAVES, NULL, NO_DIMS, 1, &w.report));
  w.report.struct_size = 7;
  assert_refused(bad, "report: struct_size: got 7, expected 48", hard_array(ONE_THRESHOLD));
}

/* --- selection ------------------------------------------------------------------------------ */

static spk_status kth_largest_counts(const int64_t *k, int64_t nk) {
  const spk_score_source source = {.struct_size = sizeof source, .values = LEAVES};
  const spk_buffer out = part(w.scores, 2, SPK_F32);
  return spk_scope_kth_largest(NULL, h.both, &source, 2, k, nk, &out);
}
static spk_status kth_mid_counts(const int64_t *k, int64_t nk) {
  const spk_score_source source = {.struct_size = sizeof source, .values = LEAVES};
  const spk_buffer out = part(w.scores, 2, SPK_F32);
  return spk_scope_kth_mid(NULL, h.both, &source, 2, k, nk, 1, &out);
}
static spk_status keep_top_counts(const int64_t *counts, int64_t ncounts) {
  return spk_scope_keep_top(NULL, h.both, LEAVES, NULL, 2, counts, ncounts, NULL, &w.report);
}
static spk_status get_masks_counts(const int64_t *counts, int64_t ncounts) {
  const spk_score_source source = {.struct_size = sizeof source, .values = LEAVES};
  const spk_buffer masks[] = {U8(w.bytes), U8(w.more_bytes)};
  return spk_scope_get_masks(NULL, h.both, &source, counts, ncounts, 0, masks, 2, &w.report);
}

static void counts_are_checked(void **state) {
  (void)state;
  static const struct {
    const char *name;
    spk_status (*call)(const int64_t *counts, int64_t ncounts);
    int low;
    int high;
  } arguments[] = {{"k", kth_largest_counts, 1, 4},
                   {"k", kth_mid_counts, 1, 3},
                   {"counts", keep_top_counts, 0, 4},
                   {"counts", get_masks_counts, 0, 4}};
  char message[SPK_MESSAGE_SIZE];
  for (int64_t i = 0; i < COUNT(arguments); ++i) {
    const char *name = arguments[i].name;
    snprintf(message, sizeof message, "%s: got NULL, expected counts", name);
    assert_refused(SPK_INVALID_ARGUMENT, message, arguments[i].call(NULL, 1));
    const int64_t lengths[] = {-1, 0, 3};
    for (int64_t n = 0; n < COUNT(lengths); ++n) {
      snprintf(message, sizeof message, "%s: got %d numbers, expected 1 or 2, one per scope", name,
               (int)lengths[n]);
      assert_refused(SPK_SHAPE_MISMATCH, message, arguments[i].call(w.counts, lengths[n]));
    }
    const int64_t outside[] = {arguments[i].low - 1, arguments[i].high + 1};
    for (int64_t n = 0; n < COUNT(outside); ++n) {
      const int64_t counts[] = {1, outside[n]};
      snprintf(message, sizeof message, "%s[1]: got %d, expected %d to %d", name, (int)outside[n],
               arguments[i].low, arguments[i].high);
      assert_refused(SPK_INVALID_ARGUMENT, message, arguments[i].call(counts, 2));
    }
  }
}

static void exactly_one_source_is_needed(void **state) {
  (void)state;
  const spk_buffer scores = F32(w.scores);
  const spk_buffer mask = part(w.text, 8, SPK_U8);
  const spk_buffer masks[] = {U8(w.bytes), U8(w.more_bytes)};
  const spk_buffer out = part(w.into_x, 2, SPK_F32);
  const spk_score_source none = {.struct_size = sizeof none};
  const spk_score_source two = {.struct_size = sizeof two, .values = LEAVES, .scores = &scores};
  const spk_score_source masked = {.struct_size = sizeof masked, .block_mask = &mask};
  const char *zero = "source: got 0 sources, expected exactly one of values and scores";
  const char *both = "source: got 2 sources, expected exactly one of values and scores";
  const char *no_mask = "source: got a block_mask, expected values or scores";
  const spk_status bad = SPK_INVALID_ARGUMENT;
  assert_refused(bad, zero, spk_scope_kth_largest(NULL, h.both, NULL, 2, w.counts, 1, &out));
  assert_refused(bad, zero, spk_scope_kth_largest(NULL, h.both, &none, 2, w.counts, 1, &out));
  assert_refused(bad, both, spk_scope_kth_largest(NULL, h.both, &two, 2, w.counts, 1, &out));
  assert_refused(bad, no_mask, spk_scope_kth_largest(NULL, h.both, &masked, 2, w.counts, 1, &out));
  assert_refused(bad, zero, spk_scope_kth_mid(NULL, h.both, &none, 2, w.counts, 1, 1, &out));
  assert_refused(bad, both, spk_scope_kth_mid(NULL, h.both, &two, 2, w.counts, 1, 1, &out));
  assert_refused(bad, no_mask, spk_scope_kth_mid(NULL, h.both, &masked, 2, w.counts, 1, 1, &out));

  const char *zero_of_three =
      "source: got 0 sources, expected exactly one of values, scores and block_mask";
  const char *two_of_three =
      "source: got 2 sources, expected exactly one of values, scores and block_mask";
  assert_refused(bad, zero_of_three,
                 spk_scope_get_masks(NULL, h.both, NULL, w.counts, 1, 0, masks, 2, &w.report));
  assert_refused(bad, two_of_three,
                 spk_scope_get_masks(NULL, h.both, &two, w.counts, 1, 0, masks, 2, &w.report));
  assert_refused(bad, "counts: got a pointer and 2 numbers with a block mask, expected NULL and 0",
                 spk_scope_get_masks(NULL, h.both, &masked, w.counts, 2, 0, masks, 2, &w.report));
  assert_refused(bad, "counts: got NULL and 3 numbers with a block mask, expected NULL and 0",
                 spk_scope_get_masks(NULL, h.both, &masked, NULL, 3, 0, masks, 2, &w.report));

  const spk_select_options options = {
      .struct_size = sizeof options, .values = LEAVES, .scores = &scores};
  assert_refused(
      bad, "options: got values and scores, expected at most one of them",
      spk_scope_keep_top(NULL, h.both, LEAVES, NULL, 2, w.counts, 1, &options, &w.report));
}

static void unknown_tie_policies_are_refused(void **state) {
  (void)state;
  const char *message = "ties: got 2, expected SPK_TIES_BY_POSITION (0) or SPK_TIES_KEEP_ALL (1)";
  const spk_select_options options = {.struct_size = sizeof options, .ties = 2};
  const spk_score_source source = {.struct_size = sizeof source, .values = LEAVES};
  const spk_buffer masks[] = {U8(w.bytes), U8(w.more_bytes)};
  assert_refused(
      SPK_INVALID_ARGUMENT, message,
      spk_scope_keep_top(NULL, h.both, LEAVES, NULL, 2, w.counts, 1, &options, &w.report));
  assert_refused(SPK_INVALID_ARGUMENT, message,
                 spk_scope_get_masks(NULL, h.both, &source, w.counts, 1, 2, masks, 2, &w.report));
  const spk_select_options reserved = {.struct_size = sizeof reserved, .reserved = 3};
  assert_refused(
      SPK_INVALID_ARGUMENT, "options: reserved: got 3, expected 0",
      spk_scope_keep_top(NULL, h.both, LEAVES, NULL, 2, w.counts, 1, &reserved, &w.report));
}

static void kth_mid_refuses(void **state) {
  (void)state;
  const spk_score_source source = {.struct_size = sizeof source, .values = LEAVES};
  const spk_buffer out = part(w.scores, 2, SPK_F32);
  static const struct {
    double weight;
    const char *message;
  } bad[] = {{0, "k_weight: got 0, expected > 0 and finite"},
             {-1, "k_weight: got -1, expected > 0 and finite"},
             {NAN, "k_weight: got NaN, expected > 0 and finite"},
             {INFINITY, "k_weight: got inf, expected > 0 and finite"}};
  for (int64_t i = 0; i < COUNT(bad); ++i) {
    assert_refused(SPK_INVALID_ARGUMENT, bad[i].message,
                   spk_scope_kth_mid(NULL, h.both, &source, 2, w.counts, 1, bad[i].weight, &out));
  }
  spk_scope *single = scopes_over(new_block(), DIMS(1, 1));
  assert_refused(SPK_SHAPE_MISMATCH, "scope: got 1 block per scope, expected at least 2",
                 spk_scope_kth_mid(NULL, single, &source, 1, w.counts, 1, 1, SCORES));
  spk_scope_release(single);
}

/* --- a view alone, and one call ------------------------------------------------------------- */

static void view_helpers_refuse_block_shapes(void **state) {
  (void)state;
  const char *divisible = "block shape: dim 0: size 4 is not divisible by 3";
  const int64_t *null = NULL;
  assert_refused(SPK_SHAPE_MISMATCH, divisible,
                 spk_view_apply_mask(NULL, h.view, LEAVES, NULL, DIMS(3, 1), MASK));
  assert_refused(SPK_SHAPE_MISMATCH, divisible,
                 spk_view_apply_keep_mask(NULL, h.view, LEAVES, NULL, DIMS(3, 1), MASK));
  assert_refused(SPK_SHAPE_MISMATCH, divisible,
                 spk_view_apply_multiplier(NULL, h.view, LEAVES, NULL, DIMS(3, 1), SCORES));
  assert_refused(SPK_SHAPE_MISMATCH, divisible,
                 spk_view_block_view_merged(NULL, h.view, LEAVES, DIMS(3, 1), SCORES));
  assert_refused(SPK_SHAPE_MISMATCH, divisible,
                 spk_view_broadcast_block_to_element(NULL, h.view, DIMS(3, 1), SCORES, LEAVES));
  assert_refused(SPK_SHAPE_MISMATCH, divisible,
                 spk_soft_threshold_blocks(NULL, h.view, LEAVES, NULL, DIMS(3, 1), 1, &w.report));
  assert_refused(SPK_INVALID_ARGUMENT, "block shape: got NULL",
                 spk_view_apply_mask(NULL, h.view, LEAVES, NULL, 2, null, MASK));
  assert_refused(SPK_INVALID_ARGUMENT, "block shape ndim: got 17, expected 0 to 16",
                 spk_view_apply_multiplier(NULL, h.view, LEAVES, NULL, 17, null, SCORES));
  assert_refused(SPK_SHAPE_MISMATCH, "prune_mask: numel: got 4, expected 8",
                 spk_view_apply_mask(NULL, h.view, LEAVES, NULL, DIMS(2, 1), MASK));
  assert_refused(SPK_SHAPE_MISMATCH, "keep_mask: numel: got 4, expected 8",
                 spk_view_apply_keep_mask(NULL, h.view, LEAVES, NULL, DIMS(2, 1), MASK));
  assert_refused(SPK_SHAPE_MISMATCH, "multiplier: numel: got 4, expected 8",
                 spk_view_apply_multiplier(NULL, h.view, LEAVES, NULL, DIMS(2, 1), SCORES));
  assert_refused(SPK_SHAPE_MISMATCH, "out: numel: got 4, expected 16",
                 spk_view_block_view_merged(NULL, h.view, LEAVES, DIMS(2, 2), SCORES));
  assert_refused(SPK_SHAPE_MISMATCH, "values: numel: got 4, expected 8",
                 spk_view_broadcast_block_to_element(NULL, h.view, DIMS(2, 1), SCORES, LEAVES));
}

static void prune_nm_refuses(void **state) {
  (void)state;
  const spk_status bad = SPK_INVALID_ARGUMENT;
  assert_refused(bad, "axis: got 2, expected -2 to 1",
                 spk_prune_nm(NULL, h.view, LEAVES, NULL, 2, 1, 2, &w.report));
  assert_refused(bad, "axis: got -3, expected -2 to 1",
                 spk_prune_nm(NULL, h.view, LEAVES, NULL, -3, 1, 2, &w.report));
  assert_refused(bad, "m: got 0, expected >= 1",
                 spk_prune_nm(NULL, h.view, LEAVES, NULL, 1, 0, 0, &w.report));
  assert_refused(bad, "n: got -1, expected 0 to m = 2",
                 spk_prune_nm(NULL, h.view, LEAVES, NULL, 1, -1, 2, &w.report));
  assert_refused(bad, "n: got 3, expected 0 to m = 2",
                 spk_prune_nm(NULL, h.view, LEAVES, NULL, 1, 3, 2, &w.report));
  assert_refused(SPK_SHAPE_MISMATCH, "m: axis 0: size 4 is not divisible by 3",
                 spk_prune_nm(NULL, h.view, LEAVES, NULL, -2, 2, 3, &w.report));
}

static void prune_unstructured_refuses(void **state) {
  (void)state;
  assert_refused(SPK_INVALID_ARGUMENT, "sparsity: got 1.5, expected 0 to 1",
                 spk_prune_unstructured(NULL, h.view, LEAVES, NULL, 1.5, &w.report));
  assert_refused(SPK_INVALID_ARGUMENT, "sparsity: got NaN, expected 0 to 1",
                 spk_prune_unstructured(NULL, h.view, LEAVES, NULL, NAN, &w.report));
}

static void view_helpers_refuse_their_leaf(void **state) {
  (void)state;
  const char *missing = "leaf: got NULL, expected 1 buffer";
  const char *small = "leaf[0]: numel: got 15, expected at least 16";
  const char *into = "into[0]: numel: got 15, expected at least 16";
  const spk_buffer bad = part(w.x, 15, SPK_F32);
  const spk_buffer out = part(w.y, 16, SPK_F32);
  assert_refused(SPK_INVALID_ARGUMENT, missing,
                 spk_view_apply_mask(NULL, h.view, NULL, NULL, DIMS(2, 2), MASK));
  assert_refused(SPK_OUT_OF_BOUNDS, small,
                 spk_view_apply_mask(NULL, h.view, &bad, NULL, DIMS(2, 2), MASK));
  assert_refused(SPK_OUT_OF_BOUNDS, into,
                 spk_view_apply_mask(NULL, h.view, INTO, &bad, DIMS(2, 2), MASK));
  assert_refused(SPK_INVALID_ARGUMENT, missing,
                 spk_view_apply_keep_mask(NULL, h.view, NULL, NULL, DIMS(2, 2), MASK));
  assert_refused(SPK_OUT_OF_BOUNDS, small,
                 spk_view_apply_keep_mask(NULL, h.view, &bad, NULL, DIMS(2, 2), MASK));
  assert_refused(SPK_OUT_OF_BOUNDS, into,
                 spk_view_apply_keep_mask(NULL, h.view, INTO, &bad, DIMS(2, 2), MASK));
  assert_refused(SPK_INVALID_ARGUMENT, missing,
                 spk_view_apply_multiplier(NULL, h.view, NULL, NULL, DIMS(2, 2), SCORES));
  assert_refused(SPK_OUT_OF_BOUNDS, small,
                 spk_view_apply_multiplier(NULL, h.view, &bad, NULL, DIMS(2, 2), SCORES));
  assert_refused(SPK_OUT_OF_BOUNDS, into,
                 spk_view_apply_multiplier(NULL, h.view, INTO, &bad, DIMS(2, 2), SCORES));
  assert_refused(SPK_INVALID_ARGUMENT, missing,
                 spk_view_block_view_merged(NULL, h.view, NULL, DIMS(2, 2), &out));
  assert_refused(SPK_OUT_OF_BOUNDS, small,
                 spk_view_block_view_merged(NULL, h.view, &bad, DIMS(2, 2), &out));
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL, expected 1 buffer",
                 spk_view_broadcast_block_to_element(NULL, h.view, DIMS(2, 2), SCORES, NULL));
  assert_refused(SPK_OUT_OF_BOUNDS, "out[0]: numel: got 15, expected at least 16",
                 spk_view_broadcast_block_to_element(NULL, h.view, DIMS(2, 2), SCORES, &bad));
}

static void one_call_conveniences_refuse_their_weights(void **state) {
  (void)state;
  const char *missing = "weights: got NULL, expected 1 buffer";
  const char *dtype = "weights[0]: dtype: got f64 (code 576), expected f32";
  const char *into = "into[0]: numel: got 15, expected at least 16";
  const spk_buffer wide = part(w.wide_x, 16, SPK_F64);
  const spk_buffer bad = part(w.into_x, 15, SPK_F32);
  assert_refused(SPK_INVALID_ARGUMENT, missing,
                 spk_prune_nm(NULL, h.view, NULL, NULL, 0, 1, 2, &w.report));
  assert_refused(SPK_UNSUPPORTED_DTYPE, dtype,
                 spk_prune_nm(NULL, h.view, &wide, NULL, 0, 1, 2, &w.report));
  assert_refused(SPK_OUT_OF_BOUNDS, into,
                 spk_prune_nm(NULL, h.view, LEAVES, &bad, 0, 1, 2, &w.report));
  assert_refused(SPK_INVALID_ARGUMENT, missing,
                 spk_prune_unstructured(NULL, h.view, NULL, NULL, 0.5, &w.report));
  assert_refused(SPK_UNSUPPORTED_DTYPE, dtype,
                 spk_prune_unstructured(NULL, h.view, &wide, NULL, 0.5, &w.report));
  assert_refused(SPK_OUT_OF_BOUNDS, into,
                 spk_prune_unstructured(NULL, h.view, LEAVES, &bad, 0.5, &w.report));
  assert_refused(SPK_INVALID_ARGUMENT, missing,
                 spk_soft_threshold_blocks(NULL, h.view, NULL, NULL, NO_DIMS, 1, &w.report));
  assert_refused(SPK_UNSUPPORTED_DTYPE, dtype,
                 spk_soft_threshold_blocks(NULL, h.view, &wide, NULL, NO_DIMS, 1, &w.report));
  assert_refused(SPK_OUT_OF_BOUNDS, into,
                 spk_soft_threshold_blocks(NULL, h.view, LEAVES, &bad, NO_DIMS, 1, &w.report));
}

static void soft_threshold_blocks_refuses_its_threshold(void **state) {
  (void)state;
  assert_refused(SPK_INVALID_ARGUMENT, "threshold: got -1, expected >= 0",
                 spk_soft_threshold_blocks(NULL, h.view, LEAVES, NULL, NO_DIMS, -1, &w.report));
  assert_refused(SPK_INVALID_ARGUMENT, "threshold: got NaN, expected a number",
                 spk_soft_threshold_blocks(NULL, h.view, LEAVES, NULL, NO_DIMS, NAN, &w.report));
}

/* --- the host's floating-point mode --------------------------------------------------------- */

static void arguments_are_judged_with_denormals_on(void **state) {
  (void)state;
#if defined(__x86_64__)
  float thresholds[] = {-1e-40f};
  const spk_buffer array = F32(thresholds);
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040); /* flush to zero, denormals are zero */
  const spk_status soft = soft_array(&array);
  const spk_status nnz = spk_block_nnz(NULL, h.pair, LEAVES, 2, -1e-310, NULL, &w.total);
  const spk_status sparsity = spk_scope_sparsity_to_nnz(h.both, -1e-310, &w.total);
  _mm_setcsr(mode);
  assert_int_equal(soft, SPK_INVALID_ARGUMENT);
  assert_int_equal(nnz, SPK_INVALID_ARGUMENT);
  assert_int_equal(sparsity, SPK_INVALID_ARGUMENT);
#else
  skip();
#endif
}

/* --- contradictions ------------------------------------------------------------------------- */

/* The header allows a view only with SPK_LAYOUT_OWN. */
static void a_view_beside_another_layout_is_refused(void **state) {
  (void)state;
  spk_buffer leaves[] = {LEAVES[0], LEAVES[1]};
  leaves[1].view = h.view;
  assert_int_equal(norms_leaves(leaves, 2), SPK_INVALID_ARGUMENT);
  leaves[1].layout = SPK_LAYOUT_CONTIGUOUS;
  assert_int_equal(norms_leaves(leaves, 2), SPK_INVALID_ARGUMENT);
  spk_buffer array = part(w.scores, 4, SPK_F32);
  array.view = h.view;
  assert_int_equal(norms_out(&array), SPK_INVALID_ARGUMENT);
}

/* A size that ends inside a field is no version of the struct. */
static void struct_sizes_inside_a_field_are_refused(void **state) {
  (void)state;
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.struct_size = offsetof(spk_soft_options, eps) + 1;
  assert_int_equal(soft_with(&options), SPK_INVALID_ARGUMENT);
  w.report.struct_size = offsetof(spk_report, total) + 1;
  assert_int_equal(hard_array(ONE_THRESHOLD), SPK_INVALID_ARGUMENT);
}

/* The header knows 0 and 1. */
static void other_values_of_scale_are_refused(void **state) {
  (void)state;
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.scale = 2;
  assert_int_equal(soft_with(&options), SPK_INVALID_ARGUMENT);
  options.scale = -1;
  assert_int_equal(soft_with(&options), SPK_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      REFUSAL_TEST(no_handle_is_refused),
      REFUSAL_TEST(p_out_of_range_is_refused),
      REFUSAL_TEST(nnz_refuses),
      REFUSAL_TEST(reduce_refuses),
      REFUSAL_TEST(thresholds_must_be_numbers),
      REFUSAL_TEST(soft_thresholds_may_not_be_negative),
      REFUSAL_TEST(a_refused_threshold_is_found_anywhere),
      REFUSAL_TEST(soft_options_are_checked),
      REFUSAL_TEST(conditioners_must_be_positive_and_finite),
      REFUSAL_TEST(conditioners_of_scopes_must_be_positive_and_finite),
      REFUSAL_TEST(struct_sizes_are_checked),
      REFUSAL_TEST(reports_must_have_a_size),
      REFUSAL_TEST(counts_are_checked),
      REFUSAL_TEST(exactly_one_source_is_needed),
      REFUSAL_TEST(unknown_tie_policies_are_refused),
      REFUSAL_TEST(kth_mid_refuses),
      REFUSAL_TEST(view_helpers_refuse_block_shapes),
      REFUSAL_TEST(prune_nm_refuses),
      REFUSAL_TEST(prune_unstructured_refuses),
      REFUSAL_TEST(view_helpers_refuse_their_leaf),
      REFUSAL_TEST(one_call_conveniences_refuse_their_weights),
      REFUSAL_TEST(soft_threshold_blocks_refuses_its_threshold),
      REFUSAL_TEST(arguments_are_judged_with_denormals_on),
      REFUSAL_TEST(a_view_beside_another_layout_is_refused),
      REFUSAL_TEST(struct_sizes_inside_a_field_are_refused),
      REFUSAL_TEST(other_values_of_scale_are_refused),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
