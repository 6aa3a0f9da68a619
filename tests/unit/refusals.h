/* What all tests of refusals share: a world that a refused call must leave alone, and good
 * arguments for the calls. */
#ifndef SPARSEKIT_TESTS_UNIT_REFUSALS_H_
#define SPARSEKIT_TESTS_UNIT_REFUSALS_H_

#include "support.h"

/* --- the world that a refused call must leave alone ----------------------------------------- */

/* Buffers, results and out parameters. Sizes fit the handles below. */
static struct world {
  float x[24];
  float y[24];
  float into_x[24];
  float into_y[24];
  double wide_x[24];
  double wide_y[24];
  float scores[8];
  double values[8];
  uint8_t bytes[16];
  uint8_t more_bytes[16];
  int64_t counts[8];
  int64_t more_counts[8];
  char text[64];
  size_t length;
  spk_view *view;
  spk_block *block;
  spk_scope *scope;
  spk_context *context;
  int64_t total;
  spk_report report;
} w, before;

/* Handles that the calls are given. */
static struct handles {
  spk_view *view;   /* 4 x 4 floats */
  spk_view *row;    /* 4 floats */
  spk_block *block; /* four blocks of 2 x 2 */
  spk_block *pair;  /* two of these coupled: four blocks of 8 elements, two leaves */
  spk_scope *scope; /* two scopes of 2 of the blocks */
  spk_scope *both;  /* two of these coupled: two scopes of 4 blocks, two leaves */
} h;

static inline spk_block *new_block(void) {
  return blocks_of(SPK_F32, "(4,4)", DIMS(2, 2));
}
static inline spk_scope *new_scope(void) {
  return scopes_over(new_block(), DIMS(1, 2));
}

static inline int create_world(void **state) {
  note_handles(state);
  memset(&w, 0, sizeof w);
  for (int i = 0; i < 24; ++i) {
    w.x[i] = w.into_x[i] = (float)i;
    w.y[i] = w.into_y[i] = (float)(2 * i);
    w.wide_x[i] = w.wide_y[i] = 1 + i;
  }
  for (int i = 0; i < 8; ++i) {
    w.scores[i] = (float)(10 + i);
    w.values[i] = 20 + i;
    w.counts[i] = 1;
  }
  memset(w.bytes, 1, sizeof w.bytes);
  w.report.struct_size = sizeof w.report;
  h.view = view_of(SPK_F32, "(4,4)");
  h.row = view_of(SPK_F32, "(4)");
  h.block = new_block();
  h.pair = coupled_blocks(new_block(), new_block(), NULL);
  h.scope = new_scope();
  h.both = coupled_scopes(new_scope(), new_scope(), NULL);
  return 0;
}

static inline int release_world(void **state) {
  spk_view_release(h.view);
  spk_view_release(h.row);
  spk_block_release(h.block);
  spk_block_release(h.pair);
  spk_scope_release(h.scope);
  spk_scope_release(h.both);
  return check_handles(state);
}

#define REFUSAL_TEST(name) cmocka_unit_test_setup_teardown(name, create_world, release_world)

#define assert_refused(status, message, call)   \
  do {                                          \
    memcpy(&before, &w, sizeof w);              \
    assert_fails(status, message, call);        \
    assert_memory_equal(&w, &before, sizeof w); \
  } while (0)

/* The first `count` elements of an array of the world. */
static inline spk_buffer part(void *data, int64_t count, int32_t dtype) {
  return (spk_buffer){data, count, dtype, SPK_LAYOUT_VIEW, NULL};
}

/* Good arguments. */
#define LEAVES ((const spk_buffer[]){part(w.x, 16, SPK_F32), part(w.y, 16, SPK_F32)})
#define INTO ((const spk_buffer[]){part(w.into_x, 16, SPK_F32), part(w.into_y, 16, SPK_F32)})
#define SCORES (&(const spk_buffer){w.scores, 4, SPK_F32, SPK_LAYOUT_VIEW, NULL})
#define ONE_THRESHOLD (&(const spk_buffer){w.values, 1, SPK_F64, SPK_LAYOUT_VIEW, NULL})
#define MASK (&(const spk_buffer){w.bytes, 4, SPK_U8, SPK_LAYOUT_VIEW, NULL})

static inline int32_t stop(void *user, int64_t block, const double *elements, int64_t count,
                           double *result) {
  (void)user;
  (void)block;
  (void)elements;
  (void)count;
  (void)result;
  return 1;
}

/* --- calls with one argument left open ------------------------------------------------------ */

static inline spk_status norms_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_block_norms(NULL, h.pair, leaves, count, 2, SCORES);
}
static inline spk_status keep_top_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_scope_keep_top(NULL, h.both, leaves, NULL, count, w.counts, 1, NULL, &w.report);
}
static inline spk_status soft_conditioners(const spk_buffer *conditioners, int32_t count) {
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.conditioners = conditioners;
  return spk_block_soft_threshold(NULL, h.pair, LEAVES, NULL, count, ONE_THRESHOLD, &options,
                                  &w.report);
}
static inline spk_status norms_out(const spk_buffer *out) {
  return spk_block_norms(NULL, h.pair, LEAVES, 2, 2, out);
}
static inline spk_status hard_array(const spk_buffer *thresholds) {
  return spk_block_hard_threshold(NULL, h.pair, LEAVES, NULL, 2, thresholds, NULL, &w.report);
}
static inline spk_status soft_array(const spk_buffer *thresholds) {
  return spk_block_soft_threshold(NULL, h.pair, LEAVES, NULL, 2, thresholds, NULL, &w.report);
}
static inline spk_status scope_hard_array(const spk_buffer *thresholds) {
  return spk_scope_hard_threshold(NULL, h.both, LEAVES, NULL, 2, thresholds, NULL, &w.report);
}
static inline spk_status scope_soft_array(const spk_buffer *thresholds) {
  return spk_scope_soft_threshold(NULL, h.both, LEAVES, NULL, 2, thresholds, NULL, &w.report);
}

#endif
