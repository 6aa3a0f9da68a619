/* Refusals of buffers: every leaf and every array of every function. */
#include "refusals.h"

/* --- leaves: the same refusals from every function ------------------------------------------ */

/* A function of two leaves, called with buffers for one of its leaf arguments. */
struct leaf_argument {
  const char *name;
  spk_status (*call)(const spk_buffer *buffers, int32_t count);
};

static spk_status min_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_block_min(NULL, h.pair, leaves, count, SCORES);
}
static spk_status max_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_block_max(NULL, h.pair, leaves, count, SCORES);
}
static spk_status nnz_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_block_nnz(NULL, h.pair, leaves, count, 0, NULL, &w.total);
}
static spk_status reduce_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_block_reduce(NULL, h.pair, leaves, count, stop, NULL, SCORES);
}
static spk_status merged_leaves(const spk_buffer *leaves, int32_t count) {
  float out[32];
  return spk_block_block_view_merged(NULL, h.pair, leaves, count, &F32(out));
}
static spk_status mask_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_block_apply_mask(NULL, h.pair, leaves, NULL, count, MASK);
}
static spk_status mask_into(const spk_buffer *into, int32_t count) {
  return spk_block_apply_mask(NULL, h.pair, LEAVES, into, count, MASK);
}
static spk_status keep_mask_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_block_apply_keep_mask(NULL, h.pair, leaves, NULL, count, MASK);
}
static spk_status keep_mask_into(const spk_buffer *into, int32_t count) {
  return spk_block_apply_keep_mask(NULL, h.pair, LEAVES, into, count, MASK);
}
static spk_status multiplier_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_block_apply_multiplier(NULL, h.pair, leaves, NULL, count, SCORES);
}
static spk_status multiplier_into(const spk_buffer *into, int32_t count) {
  return spk_block_apply_multiplier(NULL, h.pair, LEAVES, into, count, SCORES);
}
static spk_status hard_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_block_hard_threshold(NULL, h.pair, leaves, NULL, count, ONE_THRESHOLD, NULL,
                                  &w.report);
}
static spk_status hard_into(const spk_buffer *into, int32_t count) {
  return spk_block_hard_threshold(NULL, h.pair, LEAVES, into, count, ONE_THRESHOLD, NULL,
                                  &w.report);
}
static spk_status soft_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_block_soft_threshold(NULL, h.pair, leaves, NULL, count, ONE_THRESHOLD, NULL,
                                  &w.report);
}
static spk_status soft_into(const spk_buffer *into, int32_t count) {
  return spk_block_soft_threshold(NULL, h.pair, LEAVES, into, count, ONE_THRESHOLD, NULL,
                                  &w.report);
}
static spk_status set_data_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_block_set_data(NULL, h.pair, leaves, count, INTO);
}
static spk_status scope_norms_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_scope_block_norms(NULL, h.both, leaves, count, 2, &F32(w.scores));
}
static spk_status scope_hard_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_scope_hard_threshold(NULL, h.both, leaves, NULL, count, ONE_THRESHOLD, NULL,
                                  &w.report);
}
static spk_status scope_hard_into(const spk_buffer *into, int32_t count) {
  return spk_scope_hard_threshold(NULL, h.both, LEAVES, into, count, ONE_THRESHOLD, NULL,
                                  &w.report);
}
static spk_status scope_soft_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_scope_soft_threshold(NULL, h.both, leaves, NULL, count, ONE_THRESHOLD, NULL,
                                  &w.report);
}
static spk_status scope_soft_into(const spk_buffer *into, int32_t count) {
  return spk_scope_soft_threshold(NULL, h.both, LEAVES, into, count, ONE_THRESHOLD, NULL,
                                  &w.report);
}
static spk_status keep_top_into(const spk_buffer *into, int32_t count) {
  return spk_scope_keep_top(NULL, h.both, LEAVES, into, count, w.counts, 1, NULL, &w.report);
}

static const struct leaf_argument kLeafArguments[] = {
    {"leaves", norms_leaves},      {"leaves", min_leaves},        {"leaves", max_leaves},
    {"leaves", nnz_leaves},        {"leaves", reduce_leaves},     {"leaves", merged_leaves},
    {"leaves", mask_leaves},       {"into", mask_into},           {"leaves", keep_mask_leaves},
    {"into", keep_mask_into},      {"leaves", multiplier_leaves}, {"into", multiplier_into},
    {"leaves", hard_leaves},       {"into", hard_into},           {"leaves", soft_leaves},
    {"into", soft_into},           {"leaves", set_data_leaves},   {"leaves", scope_norms_leaves},
    {"leaves", scope_hard_leaves}, {"into", scope_hard_into},     {"leaves", scope_soft_leaves},
    {"into", scope_soft_into},     {"leaves", keep_top_leaves},   {"into", keep_top_into},
};

/* The second leaf is `bad`: expects "name[1]: message". */
static void refuse_leaf(const struct leaf_argument *argument, spk_buffer bad, spk_status status,
                        const char *message) {
  const spk_buffer good = strcmp(argument->name, "into") == 0 ? INTO[0] : LEAVES[0];
  const spk_buffer buffers[] = {good, bad};
  char whole[SPK_MESSAGE_SIZE];
  snprintf(whole, sizeof whole, "%s[1]: %s", argument->name, message);
  assert_refused(status, whole, argument->call(buffers, 2));
}

static void every_leaf_is_checked(void **state) {
  (void)state;
  spk_view *other_shape = view_of(SPK_F32, "(2,8)");
  spk_view *other_dtype = view_of(SPK_F16, "(4,4)");
  spk_view *spread = view_of(SPK_F32, "(4,4):(5,1)");
  for (int64_t i = 0; i < COUNT(kLeafArguments); ++i) {
    const struct leaf_argument *argument = &kLeafArguments[i];
    const spk_buffer good = strcmp(argument->name, "into") == 0 ? INTO[1] : LEAVES[1];
    spk_buffer bad = good;
    bad.dtype = SPK_F64;
    refuse_leaf(argument, bad, SPK_UNSUPPORTED_DTYPE, "dtype: got f64 (code 576), expected f32");
    bad.dtype = 0;
    refuse_leaf(argument, bad, SPK_UNSUPPORTED_DTYPE, "dtype: got unknown (code 0), expected f32");
    bad = good;
    bad.data = NULL;
    refuse_leaf(argument, bad, SPK_INVALID_ARGUMENT, "data: got NULL");
    bad.data = (char *)good.data + 2;
    refuse_leaf(argument, bad, SPK_INVALID_ARGUMENT,
                "data: got an address that is 2 past a multiple of 4, expected one aligned to the "
                "element size of f32");
    bad = good;
    bad.numel = 15;
    refuse_leaf(argument, bad, SPK_OUT_OF_BOUNDS, "numel: got 15, expected at least 16");
    bad.numel = -1;
    refuse_leaf(argument, bad, SPK_OUT_OF_BOUNDS, "numel: got -1, expected at least 16");
    bad.layout = SPK_LAYOUT_CONTIGUOUS;
    refuse_leaf(argument, bad, SPK_OUT_OF_BOUNDS, "numel: got -1, expected at least 16");
    bad = good;
    bad.layout = 3;
    refuse_leaf(argument, bad, SPK_INVALID_ARGUMENT,
                "layout: got 3, expected SPK_LAYOUT_VIEW, _CONTIGUOUS or _OWN");
    bad.layout = -1;
    refuse_leaf(argument, bad, SPK_INVALID_ARGUMENT,
                "layout: got -1, expected SPK_LAYOUT_VIEW, _CONTIGUOUS or _OWN");
    bad.layout = SPK_LAYOUT_OWN;
    refuse_leaf(argument, bad, SPK_INVALID_ARGUMENT, "view: got NULL with SPK_LAYOUT_OWN");
    bad.view = other_shape;
    refuse_leaf(argument, bad, SPK_SHAPE_MISMATCH,
                "view: got shape (2,8), expected (4,4) as the leaf's view");
    bad.view = other_dtype;
    refuse_leaf(argument, bad, SPK_UNSUPPORTED_DTYPE,
                "view: got dtype f16, expected f32 as the buffer's");
    bad.view = spread;
    refuse_leaf(argument, bad, SPK_OUT_OF_BOUNDS, "numel: got 16, expected at least 19");
  }
  spk_view_release(other_shape);
  spk_view_release(other_dtype);
  spk_view_release(spread);
}

static void leaves_are_counted(void **state) {
  (void)state;
  char message[SPK_MESSAGE_SIZE];
  for (int64_t i = 0; i < COUNT(kLeafArguments); ++i) {
    const struct leaf_argument *argument = &kLeafArguments[i];
    /* Both arguments have one count, and the leaves are looked at first. */
    for (int32_t count = -1; count <= 3; ++count) {
      if (count == 2) continue;
      snprintf(message, sizeof message, "leaves: got %d buffers, expected 2, one per leaf",
               (int)count);
      const spk_buffer three[] = {LEAVES[0], LEAVES[1], LEAVES[1]};
      assert_refused(SPK_SHAPE_MISMATCH, message, argument->call(three, count));
    }
    if (strcmp(argument->name, "into") == 0) continue;
    assert_refused(SPK_INVALID_ARGUMENT, "leaves: got NULL, expected 2 buffers",
                   argument->call(NULL, 2));
  }
}

static void leaves_may_not_overlap(void **state) {
  (void)state;
  for (int64_t i = 0; i < COUNT(kLeafArguments); ++i) {
    const struct leaf_argument *argument = &kLeafArguments[i];
    char message[SPK_MESSAGE_SIZE];
    snprintf(message, sizeof message,
             "%s[0] and %s[1] share bytes; expected buffers that do not overlap", argument->name,
             argument->name);
    float *data = strcmp(argument->name, "into") == 0 ? w.into_x : w.x;
    /* One element in common, all in common. */
    const spk_buffer one[] = {part(data, 16, SPK_F32), part(data + 8, 16, SPK_F32)};
    assert_refused(SPK_OVERLAP, message, argument->call(one, 2));
    const spk_buffer all[] = {part(data, 16, SPK_F32), part(data, 16, SPK_F32)};
    assert_refused(SPK_OVERLAP, message, argument->call(all, 2));
    if (strcmp(argument->name, "leaves") == 0) continue;
    /* Some of what is read. */
    const spk_buffer read[] = {part(w.x + 4, 16, SPK_F32), part(w.into_y, 16, SPK_F32)};
    assert_refused(SPK_OVERLAP,
                   "leaves[0] and into[0] share bytes; expected buffers that do not overlap",
                   argument->call(read, 2));
    const spk_buffer crossed[] = {part(w.y, 16, SPK_F32), part(w.into_y, 16, SPK_F32)};
    assert_refused(SPK_OVERLAP,
                   "leaves[1] and into[0] share bytes; expected buffers that do not overlap",
                   argument->call(crossed, 2));
    /* The same memory in another layout. */
    spk_view *turned = view_of(SPK_F32, "(4,4):(1,4)");
    spk_buffer own[] = {part(w.into_x, 16, SPK_F32), part(w.y, 16, SPK_F32)};
    own[1].layout = SPK_LAYOUT_OWN;
    own[1].view = turned;
    assert_int_equal(argument->call(own, 2), SPK_OVERLAP);
    spk_view_release(turned);
  }
}

/* --- leaves of any float dtype -------------------------------------------------------------- */

static spk_status set_data_source(const spk_buffer *source, int32_t count) {
  return spk_block_set_data(NULL, h.pair, LEAVES, count, source);
}
static spk_status hard_values(const spk_buffer *values, int32_t count) {
  const spk_hard_options options = {sizeof options, values};
  return spk_block_hard_threshold(NULL, h.pair, LEAVES, NULL, count, ONE_THRESHOLD, &options,
                                  &w.report);
}
static spk_status scope_hard_values(const spk_buffer *values, int32_t count) {
  const spk_hard_options options = {sizeof options, values};
  return spk_scope_hard_threshold(NULL, h.both, LEAVES, NULL, count, ONE_THRESHOLD, &options,
                                  &w.report);
}
static spk_status scope_soft_conditioners(const spk_buffer *conditioners, int32_t count) {
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.conditioners = conditioners;
  return spk_scope_soft_threshold(NULL, h.both, LEAVES, NULL, count, ONE_THRESHOLD, &options,
                                  &w.report);
}
static spk_status keep_top_values(const spk_buffer *values, int32_t count) {
  const spk_select_options options = {.struct_size = sizeof options, .values = values};
  return spk_scope_keep_top(NULL, h.both, LEAVES, NULL, count, w.counts, 1, &options, &w.report);
}
static spk_status kth_largest_values(const spk_buffer *values, int32_t count) {
  const spk_score_source source = {.struct_size = sizeof source, .values = values};
  const spk_buffer out = part(w.scores, 2, SPK_F32);
  return spk_scope_kth_largest(NULL, h.both, &source, count, w.counts, 1, &out);
}
static spk_status kth_mid_values(const spk_buffer *values, int32_t count) {
  const spk_score_source source = {.struct_size = sizeof source, .values = values};
  const spk_buffer out = part(w.scores, 2, SPK_F32);
  return spk_scope_kth_mid(NULL, h.both, &source, count, w.counts, 1, 1, &out);
}
static spk_status get_masks_values(const spk_buffer *values, int32_t count) {
  const spk_score_source source = {.struct_size = sizeof source, .values = values};
  const spk_buffer masks[] = {U8(w.bytes), U8(w.more_bytes)};
  return spk_scope_get_masks(NULL, h.both, &source, w.counts, 1, SPK_TIES_BY_POSITION, masks, count,
                             &w.report);
}

static const struct leaf_argument kFloatArguments[] = {
    {"source", set_data_source},
    {"values", hard_values},
    {"values", scope_hard_values},
    {"conditioners", soft_conditioners},
    {"conditioners", scope_soft_conditioners},
    {"values", keep_top_values},
    {"values", kth_largest_values},
    {"values", kth_mid_values},
    {"values", get_masks_values},
};

static void every_value_is_checked(void **state) {
  (void)state;
  spk_view *other_shape = view_of(SPK_F64, "(8,2)");
  for (int64_t i = 0; i < COUNT(kFloatArguments); ++i) {
    const struct leaf_argument *argument = &kFloatArguments[i];
    const spk_buffer good = part(w.wide_y, 16, SPK_F64);
    struct {
      spk_buffer buffer;
      spk_status status;
      const char *message;
    } bad[] = {
        {good, SPK_UNSUPPORTED_DTYPE, "dtype: got u8 (code 264), expected f32, f64, f16 or bf16"},
        {good, SPK_INVALID_ARGUMENT, "data: got NULL"},
        {good, SPK_INVALID_ARGUMENT,
         "data: got an address that is 4 past a multiple of 8, expected one aligned to the element "
         "size of f64"},
        {good, SPK_OUT_OF_BOUNDS, "numel: got 15, expected at least 16"},
        {good, SPK_INVALID_ARGUMENT,
         "layout: got 4, expected SPK_LAYOUT_VIEW, _CONTIGUOUS or _OWN"},
        {good, SPK_SHAPE_MISMATCH, "view: got shape (8,2), expected (4,4) as the leaf's view"},
    };
    bad[0].buffer.dtype = SPK_U8;
    bad[1].buffer.data = NULL;
    bad[2].buffer.data = (char *)w.wide_y + 4;
    bad[3].buffer.numel = 15;
    bad[4].buffer.layout = 4;
    bad[5].buffer.layout = SPK_LAYOUT_OWN;
    bad[5].buffer.view = other_shape;
    for (int64_t b = 0; b < COUNT(bad); ++b) {
      const spk_buffer buffers[] = {part(w.wide_x, 16, SPK_F64), bad[b].buffer};
      char message[SPK_MESSAGE_SIZE];
      snprintf(message, sizeof message, "%s[1]: %s", argument->name, bad[b].message);
      assert_refused(bad[b].status, message, argument->call(buffers, 2));
    }
  }
  spk_view_release(other_shape);
}

static void values_are_counted(void **state) {
  (void)state;
  const spk_buffer good[] = {F64(w.wide_x), F64(w.wide_y)};
  for (int64_t i = 0; i < COUNT(kFloatArguments); ++i) {
    const struct leaf_argument *argument = &kFloatArguments[i];
    const bool has_leaves = i < 6;
    char message[SPK_MESSAGE_SIZE];
    snprintf(message, sizeof message, "%s: got 1 buffers, expected 2, one per leaf",
             has_leaves ? "leaves" : argument->name);
    assert_refused(SPK_SHAPE_MISMATCH, message, argument->call(good, 1));
  }
  assert_refused(SPK_INVALID_ARGUMENT, "source: got NULL, expected 2 buffers",
                 set_data_source(NULL, 2));
}

static void values_may_not_overlap_what_is_written(void **state) {
  (void)state;
  /* The first leaf lies before what overlaps it. */
  const spk_buffer shifted[] = {part(w.x + 4, 16, SPK_F32), part(w.into_y, 16, SPK_F32)};
  const spk_buffer crossed[] = {part(w.y, 16, SPK_F32), part(w.into_y, 16, SPK_F32)};
  for (int64_t i = 0; i < 6; ++i) {
    const struct leaf_argument *argument = &kFloatArguments[i];
    char message[SPK_MESSAGE_SIZE];
    snprintf(message, sizeof message,
             "leaves[0] and %s[0] share bytes; expected buffers that do not overlap",
             argument->name);
    assert_refused(SPK_OVERLAP, message, argument->call(shifted, 2));
    snprintf(message, sizeof message,
             "leaves[1] and %s[0] share bytes; expected buffers that do not overlap",
             argument->name);
    assert_refused(SPK_OVERLAP, message, argument->call(crossed, 2));
  }
}

/* --- arrays: the same refusals from every function ------------------------------------------ */

/* A function called with one array of `numel` elements of one of `dtypes`. */
struct array_argument {
  const char *name;
  spk_status (*call)(const spk_buffer *array);
  const char *dtypes;
  int32_t dtype;
  int64_t numel;
  bool or_one; /* may also be one number */
};

static spk_status min_out(const spk_buffer *out) {
  return spk_block_min(NULL, h.pair, LEAVES, 2, out);
}
static spk_status max_out(const spk_buffer *out) {
  return spk_block_max(NULL, h.pair, LEAVES, 2, out);
}
static spk_status reduce_out(const spk_buffer *out) {
  return spk_block_reduce(NULL, h.pair, LEAVES, 2, stop, NULL, out);
}
static spk_status mask_array(const spk_buffer *mask) {
  return spk_block_apply_mask(NULL, h.pair, LEAVES, NULL, 2, mask);
}
static spk_status keep_mask_array(const spk_buffer *mask) {
  return spk_block_apply_keep_mask(NULL, h.pair, LEAVES, NULL, 2, mask);
}
static spk_status multiplier_array(const spk_buffer *multiplier) {
  return spk_block_apply_multiplier(NULL, h.pair, LEAVES, NULL, 2, multiplier);
}
static spk_status get_masks_array(const spk_buffer *mask) {
  const spk_buffer masks[] = {U8(w.more_bytes), U8(w.more_bytes)};
  return spk_block_get_masks(NULL, h.pair, mask, masks, 2);
}
static spk_status merged_out(const spk_buffer *out) {
  return spk_block_block_view_merged(NULL, h.block, LEAVES, 1, out);
}
static spk_status broadcast_values(const spk_buffer *values) {
  return spk_block_broadcast_block_to_element(NULL, h.pair, values, LEAVES, 2);
}
static spk_status scope_norms_out(const spk_buffer *out) {
  return spk_scope_block_norms(NULL, h.both, LEAVES, 2, 2, out);
}
static spk_status block_to_scope_out(const spk_buffer *out) {
  const spk_buffer values[] = {part(w.scores, 4, SPK_F32), part(w.scores + 4, 4, SPK_F32)};
  return spk_scope_block_to_scope(NULL, h.both, values, 2, out);
}
static spk_status block_to_scope_values(const spk_buffer *values) {
  const spk_buffer out = part(w.into_x, 8, SPK_F32);
  if (!values) return spk_scope_block_to_scope(NULL, h.both, NULL, 2, &out);
  const spk_buffer both[] = {*values, part(w.y, 4, SPK_F32)};
  return spk_scope_block_to_scope(NULL, h.both, both, 2, &out);
}
static spk_status scope_to_block_values(const spk_buffer *values) {
  return spk_scope_scope_to_block(NULL, h.both, values, LEAVES, 2);
}
static spk_status scope_to_block_out(const spk_buffer *out) {
  const spk_buffer values = part(w.scores, 2, SPK_F32);
  if (!out) return spk_scope_scope_to_block(NULL, h.both, &values, NULL, 2);
  const spk_buffer both[] = {*out, part(w.y, 4, SPK_F32)};
  return spk_scope_scope_to_block(NULL, h.both, &values, both, 2);
}
static spk_status kth_largest_out(const spk_buffer *out) {
  const spk_score_source source = {.struct_size = sizeof source, .values = LEAVES};
  return spk_scope_kth_largest(NULL, h.both, &source, 2, w.counts, 1, out);
}
static spk_status kth_mid_out(const spk_buffer *out) {
  const spk_score_source source = {.struct_size = sizeof source, .values = LEAVES};
  return spk_scope_kth_mid(NULL, h.both, &source, 2, w.counts, 1, 1, out);
}
static spk_status kth_largest_scores(const spk_buffer *scores) {
  const spk_score_source source = {.struct_size = sizeof source, .scores = scores};
  const spk_buffer out = part(w.into_x, 2, SPK_F32);
  return spk_scope_kth_largest(NULL, h.both, &source, 2, w.counts, 1, &out);
}
static spk_status kth_mid_scores(const spk_buffer *scores) {
  const spk_score_source source = {.struct_size = sizeof source, .scores = scores};
  const spk_buffer out = part(w.into_x, 2, SPK_F32);
  return spk_scope_kth_mid(NULL, h.both, &source, 2, w.counts, 1, 1, &out);
}
static spk_status keep_top_scores(const spk_buffer *scores) {
  const spk_select_options options = {.struct_size = sizeof options, .scores = scores};
  return spk_scope_keep_top(NULL, h.both, LEAVES, NULL, 2, w.counts, 1, &options, &w.report);
}
static spk_status scope_masks_scores(const spk_buffer *scores) {
  const spk_score_source source = {.struct_size = sizeof source, .scores = scores};
  const spk_buffer masks[] = {U8(w.bytes), U8(w.more_bytes)};
  return spk_scope_get_masks(NULL, h.both, &source, w.counts, 1, SPK_TIES_BY_POSITION, masks, 2,
                             &w.report);
}
static spk_status scope_masks_mask(const spk_buffer *mask) {
  const spk_score_source source = {.struct_size = sizeof source, .block_mask = mask};
  const spk_buffer masks[] = {U8(w.bytes), U8(w.more_bytes)};
  return spk_scope_get_masks(NULL, h.both, &source, NULL, 0, SPK_TIES_BY_POSITION, masks, 2,
                             &w.report);
}

static spk_status nnz_per_block(const spk_buffer *counts) {
  return spk_block_nnz(NULL, h.pair, LEAVES, 2, 0, counts, &w.total);
}

#define ANY_DTYPE "f32 or f64 or f16 or bf16 or u8 or i64"

static const struct array_argument kArrayArguments[] = {
    {"out", norms_out, "f32", SPK_F32, 4, false},
    {"out", min_out, "f32", SPK_F32, 4, false},
    {"out", max_out, "f32", SPK_F32, 4, false},
    {"out", reduce_out, "f32", SPK_F32, 4, false},
    {"per_block", nnz_per_block, "i64", SPK_I64, 4, false},
    {"prune_mask", mask_array, "u8", SPK_U8, 4, false},
    {"keep_mask", keep_mask_array, "u8", SPK_U8, 4, false},
    {"multiplier", multiplier_array, "f32 or f64 or f16 or bf16", SPK_F64, 4, false},
    {"thresholds", hard_array, "f32 or f64", SPK_F64, 4, true},
    {"thresholds", soft_array, "f32 or f64", SPK_F32, 4, true},
    {"block_mask", get_masks_array, "u8", SPK_U8, 4, false},
    {"out", merged_out, "f32", SPK_F32, 16, false},
    {"values", broadcast_values, ANY_DTYPE, SPK_F32, 4, false},
    {"out", scope_norms_out, "f32", SPK_F32, 8, false},
    {"out", block_to_scope_out, ANY_DTYPE, SPK_F32, 8, false},
    {"values[0]", block_to_scope_values, "f32", SPK_F32, 4, false},
    {"values", scope_to_block_values, ANY_DTYPE, SPK_F32, 2, false},
    {"out[0]", scope_to_block_out, "f32", SPK_F32, 4, false},
    {"out", kth_largest_out, "f32", SPK_F32, 2, false},
    {"out", kth_mid_out, "f32", SPK_F32, 2, false},
    {"scores", kth_largest_scores, "f32", SPK_F32, 8, false},
    {"scores", kth_mid_scores, "f32", SPK_F32, 8, false},
    {"scores", keep_top_scores, "f32", SPK_F32, 8, false},
    {"scores", scope_masks_scores, "f32", SPK_F32, 8, false},
    {"block_mask", scope_masks_mask, "u8", SPK_U8, 8, false},
    {"thresholds", scope_hard_array, "f32 or f64", SPK_F32, 2, true},
    {"thresholds", scope_soft_array, "f32 or f64", SPK_F64, 2, true},
};

static const char *name_of(int32_t dtype) {
  switch (dtype) {
    case SPK_F32:
      return "f32";
    case SPK_F64:
      return "f64";
    case SPK_U8:
      return "u8";
    default:
      return "i64";
  }
}

static void every_array_is_checked(void **state) {
  (void)state;
  char message[SPK_MESSAGE_SIZE];
  for (int64_t i = 0; i < COUNT(kArrayArguments); ++i) {
    const struct array_argument *argument = &kArrayArguments[i];
    const int64_t numel = argument->numel;
    const spk_buffer good = part(w.values, numel, argument->dtype);
    const char *name = argument->name;

    spk_buffer bad = good;
    bad.dtype = 0x321;
    snprintf(message, sizeof message, "%s: dtype: got unknown (code 801), expected %s", name,
             argument->dtypes);
    assert_refused(SPK_UNSUPPORTED_DTYPE, message, argument->call(&bad));

    bad = good;
    bad.layout = SPK_LAYOUT_OWN;
    snprintf(message, sizeof message, "%s: layout: got 2, expected SPK_LAYOUT_CONTIGUOUS", name);
    assert_refused(SPK_INVALID_ARGUMENT, message, argument->call(&bad));

    const int64_t wrong[] = {numel + 1, numel - 1, 0, -1};
    for (int64_t n = 0; n < COUNT(wrong); ++n) {
      if (argument->or_one && wrong[n] == 1) continue;
      bad = good;
      bad.numel = wrong[n];
      snprintf(message, sizeof message, "%s: numel: got %lld, expected %lld%s", name,
               (long long)wrong[n], (long long)numel, argument->or_one ? " or 1" : "");
      assert_refused(SPK_SHAPE_MISMATCH, message, argument->call(&bad));
    }

    bad = good;
    bad.data = NULL;
    snprintf(message, sizeof message, "%s: data: got NULL", name);
    assert_refused(SPK_INVALID_ARGUMENT, message, argument->call(&bad));

    const int size = (argument->dtype & 0xff) / 8;
    if (size == 1) continue;
    bad.data = (char *)good.data + 1;
    snprintf(message, sizeof message,
             "%s: data: got an address that is 1 past a multiple of %d, expected one aligned to "
             "the element size of %s",
             name, size, name_of(argument->dtype));
    assert_refused(SPK_INVALID_ARGUMENT, message, argument->call(&bad));
  }
}

static void missing_arrays_are_refused(void **state) {
  (void)state;
  for (int64_t i = 0; i < COUNT(kArrayArguments); ++i) {
    const struct array_argument *argument = &kArrayArguments[i];
    /* Counts and score sources may be missing. */
    if (argument->call == nnz_per_block || strcmp(argument->name, "scores") == 0 ||
        argument->call == scope_masks_mask) {
      continue;
    }
    char message[SPK_MESSAGE_SIZE];
    const char *bracket = strchr(argument->name, '[');
    if (bracket) {
      /* An array of arrays. */
      snprintf(message, sizeof message, "%.*s: got NULL", (int)(bracket - argument->name),
               argument->name);
    } else {
      snprintf(message, sizeof message, "%s: got NULL, expected a buffer", argument->name);
    }
    assert_refused(SPK_INVALID_ARGUMENT, message, argument->call(NULL));
  }
}

static void arrays_may_not_overlap_what_is_written(void **state) {
  (void)state;
  /* Leaves that are written, and what is read beside them. */
  spk_buffer array = part(w.x + 15, 4, SPK_F32);
  assert_refused(SPK_OVERLAP,
                 "leaves[0] and multiplier share bytes; expected buffers that do not overlap",
                 multiplier_array(&array));
  array = part(w.x, 1, SPK_F64);
  assert_refused(SPK_OVERLAP,
                 "leaves[0] and thresholds share bytes; expected buffers that do not overlap",
                 hard_array(&array));
  array = part(w.y, 4, SPK_U8);
  assert_refused(SPK_OVERLAP,
                 "leaves[1] and prune_mask share bytes; expected buffers that do not overlap",
                 mask_array(&array));
  array = part(w.y + 2, 1, SPK_F32);
  assert_refused(SPK_OVERLAP,
                 "leaves[1] and thresholds share bytes; expected buffers that do not overlap",
                 scope_soft_array(&array));
  array = part(w.x + 8, 8, SPK_F32);
  assert_refused(SPK_OVERLAP,
                 "leaves[0] and scores share bytes; expected buffers that do not overlap",
                 keep_top_scores(&array));
  /* Results, and what is read. */
  array = part(w.y + 12, 4, SPK_F32);
  assert_refused(SPK_OVERLAP, "leaves[1] and out share bytes; expected buffers that do not overlap",
                 norms_out(&array));
  assert_refused(SPK_OVERLAP, "leaves[1] and out share bytes; expected buffers that do not overlap",
                 min_out(&array));
  assert_refused(SPK_OVERLAP, "leaves[1] and out share bytes; expected buffers that do not overlap",
                 reduce_out(&array));
  array = part(w.x, 4, SPK_I64);
  assert_refused(SPK_OVERLAP,
                 "leaves[0] and per_block share bytes; expected buffers that do not overlap",
                 nnz_per_block(&array));
  array = part(w.x + 15, 16, SPK_F32);
  assert_refused(SPK_OVERLAP, "leaves[0] and out share bytes; expected buffers that do not overlap",
                 merged_out(&array));
  array = part(w.x, 8, SPK_F32);
  assert_refused(SPK_OVERLAP, "leaves[0] and out share bytes; expected buffers that do not overlap",
                 scope_norms_out(&array));
  array = part(w.x, 2, SPK_F32);
  assert_refused(SPK_OVERLAP, "values[0] and out share bytes; expected buffers that do not overlap",
                 kth_largest_out(&array));
  assert_refused(SPK_OVERLAP, "values[0] and out share bytes; expected buffers that do not overlap",
                 kth_mid_out(&array));
  array = part(w.into_x + 1, 8, SPK_F32);
  assert_refused(SPK_OVERLAP, "scores and out share bytes; expected buffers that do not overlap",
                 kth_largest_scores(&array));
  array = part(w.into_x + 7, 4, SPK_F32);
  assert_refused(SPK_OVERLAP, "out and values[0] share bytes; expected buffers that do not overlap",
                 block_to_scope_values(&array));
  array = part(w.scores, 4, SPK_F32);
  assert_refused(SPK_OVERLAP, "values and out[0] share bytes; expected buffers that do not overlap",
                 scope_to_block_out(&array));
}

static void members_are_counted(void **state) {
  (void)state;
  const spk_buffer values[] = {part(w.x, 4, SPK_F32), part(w.y, 4, SPK_F32)};
  const spk_buffer out = part(w.scores, 8, SPK_F32);
  const spk_buffer each = part(w.scores, 2, SPK_F32);
  assert_refused(SPK_SHAPE_MISMATCH, "values: got 1 buffers, expected 2, one per member",
                 spk_scope_block_to_scope(NULL, h.both, values, 1, &out));
  assert_refused(SPK_SHAPE_MISMATCH, "out: got 3 buffers, expected 2, one per member",
                 spk_scope_scope_to_block(NULL, h.both, &each, values, 3));
  /* All of one dtype. */
  const spk_buffer mixed[] = {part(w.x, 4, SPK_F32), part(w.wide_y, 4, SPK_F64)};
  assert_refused(SPK_UNSUPPORTED_DTYPE, "values[1]: dtype: got f64 (code 576), expected f32",
                 spk_scope_block_to_scope(NULL, h.both, mixed, 2, &out));
  assert_refused(SPK_UNSUPPORTED_DTYPE, "out[1]: dtype: got f64 (code 576), expected f32",
                 spk_scope_scope_to_block(NULL, h.both, &each, mixed, 2));
}

/* --- arrays in the shape of the leaves ------------------------------------------------------ */

static spk_status block_masks(const spk_buffer *masks, int32_t count) {
  return spk_block_get_masks(NULL, h.pair, &(const spk_buffer){w.text, 4, SPK_U8, 0, NULL}, masks,
                             count);
}
static spk_status scope_masks(const spk_buffer *masks, int32_t count) {
  const spk_buffer scores = part(w.scores, 8, SPK_F32);
  const spk_score_source source = {.struct_size = sizeof source, .scores = &scores};
  return spk_scope_get_masks(NULL, h.both, &source, w.counts, 1, SPK_TIES_KEEP_ALL, masks, count,
                             &w.report);
}
static spk_status scope_masks_of_mask(const spk_buffer *masks, int32_t count) {
  const spk_buffer mask = part(w.text, 8, SPK_U8);
  const spk_score_source source = {.struct_size = sizeof source, .block_mask = &mask};
  return spk_scope_get_masks(NULL, h.both, &source, NULL, 0, SPK_TIES_BY_POSITION, masks, count,
                             &w.report);
}
static spk_status broadcast_out(const spk_buffer *out, int32_t count) {
  return spk_block_broadcast_block_to_element(
      NULL, h.pair, &(const spk_buffer){w.text, 4, SPK_U8, 0, NULL}, out, count);
}

static const struct leaf_argument kElementArguments[] = {
    {"masks", block_masks},
    {"masks", scope_masks},
    {"masks", scope_masks_of_mask},
    {"out", broadcast_out},
};

static void every_element_array_is_checked(void **state) {
  (void)state;
  char message[SPK_MESSAGE_SIZE];
  for (int64_t i = 0; i < COUNT(kElementArguments); ++i) {
    const struct leaf_argument *argument = &kElementArguments[i];
    const char *name = argument->name;
    spk_buffer masks[] = {U8(w.bytes), U8(w.more_bytes)};
    snprintf(message, sizeof message, "%s: got NULL, expected 2 buffers", name);
    assert_refused(SPK_INVALID_ARGUMENT, message, argument->call(NULL, 2));
    snprintf(message, sizeof message, "%s: got 1 buffers, expected 2, one per leaf", name);
    assert_refused(SPK_SHAPE_MISMATCH, message, argument->call(masks, 1));

    masks[1].dtype = SPK_F32;
    snprintf(message, sizeof message, "%s[1]: dtype: got f32 (code 544), expected u8", name);
    assert_refused(SPK_UNSUPPORTED_DTYPE, message, argument->call(masks, 2));
    masks[1] = OWN(w.more_bytes, SPK_U8, h.view);
    snprintf(message, sizeof message, "%s[1]: layout: got 2, expected SPK_LAYOUT_CONTIGUOUS", name);
    assert_refused(SPK_INVALID_ARGUMENT, message, argument->call(masks, 2));
    masks[1] = part(w.more_bytes, 15, SPK_U8);
    snprintf(message, sizeof message, "%s[1]: numel: got 15, expected at least 16", name);
    assert_refused(SPK_OUT_OF_BOUNDS, message, argument->call(masks, 2));
    masks[1] = part(NULL, 16, SPK_U8);
    snprintf(message, sizeof message, "%s[1]: data: got NULL", name);
    assert_refused(SPK_INVALID_ARGUMENT, message, argument->call(masks, 2));
    masks[1] = part(w.bytes + 8, 16, SPK_U8);
    snprintf(message, sizeof message,
             "%s[0] and %s[1] share bytes; expected buffers that do not overlap", name, name);
    assert_refused(SPK_OVERLAP, message, argument->call(masks, 2));
  }
  /* What is read may not be written. */
  const spk_buffer over_mask[] = {U8(w.bytes), part(w.text, 16, SPK_U8)};
  assert_refused(SPK_OVERLAP,
                 "block_mask and masks[1] share bytes; expected buffers that do not overlap",
                 block_masks(over_mask, 2));
  assert_refused(SPK_OVERLAP, "values and out[1] share bytes; expected buffers that do not overlap",
                 broadcast_out(over_mask, 2));
  const spk_buffer over_scores[] = {part(w.scores, 16, SPK_U8), U8(w.bytes)};
  assert_refused(SPK_OVERLAP,
                 "scores and masks[0] share bytes; expected buffers that do not overlap",
                 scope_masks(over_scores, 2));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      REFUSAL_TEST(every_leaf_is_checked),
      REFUSAL_TEST(leaves_are_counted),
      REFUSAL_TEST(leaves_may_not_overlap),
      REFUSAL_TEST(every_value_is_checked),
      REFUSAL_TEST(values_are_counted),
      REFUSAL_TEST(values_may_not_overlap_what_is_written),
      REFUSAL_TEST(every_array_is_checked),
      REFUSAL_TEST(missing_arrays_are_refused),
      REFUSAL_TEST(arrays_may_not_overlap_what_is_written),
      REFUSAL_TEST(members_are_counted),
      REFUSAL_TEST(every_element_array_is_checked),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
