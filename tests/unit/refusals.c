/* Every refusal: its status, its whole message, and that nothing was written. */
#include <stdlib.h>

#include "support.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

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

static spk_block *new_block(void) {
  return blocks_of(SPK_F32, "(4,4)", DIMS(2, 2));
}
static spk_scope *new_scope(void) {
  return scopes_over(new_block(), DIMS(1, 2));
}

static int create_world(void **state) {
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

static int release_world(void **state) {
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
static spk_buffer part(void *data, int64_t count, int32_t dtype) {
  return (spk_buffer){data, count, dtype, SPK_LAYOUT_VIEW, NULL};
}

/* Good arguments. */
#define LEAVES ((const spk_buffer[]){part(w.x, 16, SPK_F32), part(w.y, 16, SPK_F32)})
#define INTO ((const spk_buffer[]){part(w.into_x, 16, SPK_F32), part(w.into_y, 16, SPK_F32)})
#define SCORES (&(const spk_buffer){w.scores, 4, SPK_F32, SPK_LAYOUT_VIEW, NULL})
#define ONE_THRESHOLD (&(const spk_buffer){w.values, 1, SPK_F64, SPK_LAYOUT_VIEW, NULL})
#define MASK (&(const spk_buffer){w.bytes, 4, SPK_U8, SPK_LAYOUT_VIEW, NULL})

static int32_t stop(void *user, int64_t block, const double *elements, int64_t count,
                    double *result) {
  (void)user;
  (void)block;
  (void)elements;
  (void)count;
  (void)result;
  return 1;
}

/* --- messages ------------------------------------------------------------------------------ */

static void statuses_have_names(void **state) {
  (void)state;
  static const char *const names[] = {"SPK_OK",
                                      "SPK_INVALID_ARGUMENT",
                                      "SPK_SHAPE_MISMATCH",
                                      "SPK_COUPLING",
                                      "SPK_OVERLAP",
                                      "SPK_OUT_OF_BOUNDS",
                                      "SPK_UNSUPPORTED_DTYPE",
                                      "SPK_OUT_OF_MEMORY",
                                      "SPK_NOT_CONVERGED",
                                      "SPK_CANCELLED",
                                      "SPK_UNAVAILABLE",
                                      "SPK_INTERNAL"};
  for (int32_t s = 0; s < COUNT(names); ++s) assert_string_equal(spk_status_string(s), names[s]);
  assert_string_equal(spk_status_string(-1), "unknown status");
  assert_string_equal(spk_status_string(12), "unknown status");
}

static void the_last_message_stays_until_the_next(void **state) {
  (void)state;
  const char *message = "text: got NULL";
  char text[SPK_MESSAGE_SIZE];
  size_t length = 0;
  assert_refused(SPK_INVALID_ARGUMENT, message, spk_view_parse(SPK_F32, NULL, &w.view));
  /* Successful calls and releases leave it alone. */
  spk_view *view = view_of(SPK_F32, "(4)");
  spk_view_release(view);
  assert_int_equal(spk_last_error_copy(NULL, 0, &length), SPK_INVALID_ARGUMENT);
  assert_int_equal(length, strlen(message));
  assert_int_equal(spk_last_error_copy(text, length + 1, NULL), SPK_INVALID_ARGUMENT);
  assert_string_equal(text, message);
  /* Too small a text receives the beginning; none at all nothing. */
  memset(text, '#', sizeof text);
  assert_int_equal(spk_last_error_copy(text, 5, &length), SPK_INVALID_ARGUMENT);
  assert_string_equal(text, "text");
  assert_int_equal(text[5], '#');
  assert_int_equal(length, strlen(message));
  assert_int_equal(spk_last_error_copy(text, 0, NULL), SPK_INVALID_ARGUMENT);
  assert_string_equal(text, "text");
}

static void long_messages_are_cut(void **state) {
  (void)state;
  char name[2 * SPK_MESSAGE_SIZE];
  memset(name, 'n', sizeof name);
  name[sizeof name - 1] = 0;
  spk_block *named = NULL;
  assert_ok(spk_block_create(h.row, NO_DIMS, name, &named));
  const spk_block *members[] = {h.block, named};
  char message[SPK_MESSAGE_SIZE];
  memset(message, 'n', sizeof message);
  const char *start = "block coupling: member 1 '";
  memcpy(message, start, strlen(start));
  strcpy(message + sizeof message - 4, "...");
  assert_refused(SPK_COUPLING, message, spk_block_couple(members, 2, NULL, NULL, &w.block));
  size_t length = 0;
  spk_last_error_copy(NULL, 0, &length);
  assert_int_equal(length, SPK_MESSAGE_SIZE - 1);
  spk_block_release(named);
}

/* --- views --------------------------------------------------------------------------------- */

static void view_create_refuses(void **state) {
  (void)state;
  const int64_t ones[17] = {1, 1};
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL",
                 spk_view_create(SPK_F32, 1, ones, NULL, 0, NULL));
  assert_refused(SPK_INVALID_ARGUMENT, "view shape: got NULL",
                 spk_view_create(SPK_F32, 1, NULL, NULL, 0, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "view ndim: got 0, expected 1 to 16",
                 spk_view_create(SPK_F32, 0, ones, NULL, 0, &w.view));
  const char *dtype = "view dtype: got code 264, expected SPK_F32, SPK_F64, SPK_F16 or SPK_BF16";
  assert_refused(SPK_UNSUPPORTED_DTYPE, dtype, spk_view_create(SPK_U8, 1, ones, NULL, 0, &w.view));
  assert_refused(SPK_UNSUPPORTED_DTYPE, dtype, spk_view_create(SPK_U8, 1, ones, ones, 0, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "view shape: dim 1: got 0, expected >= 1",
                 spk_view_create(SPK_F32, DIMS(2, 0), NULL, 0, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "view shape: dim 0: got -3, expected >= 1",
                 spk_view_create(SPK_F32, DIMS(-3, 2), ones, 0, &w.view));
  assert_refused(SPK_OUT_OF_BOUNDS, "view offset: got -1, expected >= 0",
                 spk_view_create(SPK_F32, 1, ones, NULL, -1, &w.view));
}

static void view_create_refuses_overflow(void **state) {
  (void)state;
  const int64_t ones[] = {1, 1, 1};
  const char *product = "view shape: the product of (4294967296,2147483648) overflows 64 bits";
  assert_refused(SPK_INVALID_ARGUMENT, product,
                 spk_view_create(SPK_F32, DIMS(4294967296, 2147483648), NULL, 0, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, product,
                 spk_view_create(SPK_F32, DIMS(4294967296, 2147483648), ones, 0, &w.view));
  const int64_t steep[] = {1, INT64_MAX};
  assert_refused(SPK_INVALID_ARGUMENT,
                 "view stride: dim 1: extent 3 times stride 9223372036854775807 overflows 64 bits",
                 spk_view_create(SPK_F32, DIMS(2, 3), steep, 0, &w.view));
  /* Each span fits, their sum does not. */
  assert_refused(SPK_INVALID_ARGUMENT,
                 "view stride: dim 1: extent 2 times stride 9223372036854775807 overflows 64 bits",
                 spk_view_create(SPK_F32, DIMS(2, 2), steep, 0, &w.view));
  const int64_t falling[] = {INT64_MIN};
  assert_refused(SPK_INVALID_ARGUMENT,
                 "view stride: dim 0: extent 2 times stride -9223372036854775808 overflows 64 bits",
                 spk_view_create(SPK_F32, DIMS(2), falling, 0, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT,
                 "view offset: 9223372036854775807 plus the span of the layout overflows 64 bits",
                 spk_view_create(SPK_F32, DIMS(2), NULL, INT64_MAX, &w.view));
  /* 2^61 floats are 2^63 bytes. */
  assert_refused(SPK_INVALID_ARGUMENT,
                 "view offset: 2305843009213693951 plus the span of the layout overflows 64 bits",
                 spk_view_create(SPK_F32, DIMS(1), NULL, (INT64_C(1) << 61) - 1, &w.view));
}

static void view_create_refuses_bounds_and_overlap(void **state) {
  (void)state;
  const int64_t falling[] = {-1, -4};
  assert_refused(SPK_OUT_OF_BOUNDS,
                 "view stride: the view reaches element -2, below 0; offset is 8, expected >= 10",
                 spk_view_create(SPK_F32, DIMS(3, 3), falling, 8, &w.view));
  const int64_t meeting[] = {3, 4};
  assert_refused(SPK_OVERLAP, "view stride: (5,4):(3,4) maps two indices to one element",
                 spk_view_create(SPK_F32, DIMS(5, 4), meeting, 0, &w.view));
  const int64_t still[] = {0};
  assert_refused(SPK_OVERLAP, "view stride: (2):(0) maps two indices to one element",
                 spk_view_create(SPK_F32, DIMS(2), still, 0, &w.view));
  /* 16 numbers of which no two sums might be equal: too many to try them all. */
  const int64_t scattered[] = {1315280081, 1138914600, 1696643964, 1681186992,
                               1933200368, 1869536388, 1494889739, 1550303753,
                               1482594991, 1136249127, 1247573046, 1008305242,
                               1932285351, 1310341481, 1712641950, 1968221678};
  int64_t twos[16];
  for (int d = 0; d < 16; ++d) twos[d] = 2;
  assert_refused(SPK_OVERLAP,
                 "view stride: (2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2):(1315280081,1138914600,"
                 "1696643964,1681186992,1933200368,1869536388,1494889739,1550303753,1482594991,"
                 "1136249127,1247573046,1008305242,1932285351,1310341481,1712641950,1968221678) "
                 "cannot be shown to map every index to its own element",
                 spk_view_create(SPK_F32, 16, twos, scattered, 0, &w.view));
}

static void view_parse_refuses(void **state) {
  (void)state;
  static const struct {
    const char *text;
    const char *message;
  } texts[] = {
      {"", "view text: '': got the end at position 0, expected '(' of the shape"},
      {"4", "view text: '4': got '4' at position 0, expected '(' of the shape"},
      {"(", "view text: '(': got the end at position 1, expected a number of the shape"},
      {"()", "view text: '()': got ')' at position 1, expected a number of the shape"},
      {"(4,)", "view text: '(4,)': got ')' at position 3, expected a number of the shape"},
      {"(+4)", "view text: '(+4)': got '+' at position 1, expected a number of the shape"},
      {"(4 5)", "view text: '(4 5)': got '5' at position 3, expected ')' of the shape"},
      {"(4.5)", "view text: '(4.5)': got '.' at position 2, expected ')' of the shape"},
      {"(4", "view text: '(4': got the end at position 2, expected ')' of the shape"},
      {"(4):", "view text: '(4):': got the end at position 4, expected '(' of the stride"},
      {"(4):(x)", "view text: '(4):(x)': got 'x' at position 5, expected a number of the stride"},
      {"(4)+", "view text: '(4)+': got the end at position 4, expected a number of the offset"},
      {"(4)32", "view text: '(4)32': got '3' at position 3, expected the end of the text"},
      {"(4)+3 f", "view text: '(4)+3 f': got 'f' at position 6, expected the end of the text"},
      {"(99999999999999999999)",
       "view text: '(99999999999999999999)': a number of the shape does not fit 64 bits, at "
       "position 1"},
      {"(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)",
       "view text: '(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)': more than 16 dims in the shape"},
      {"(1):(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)",
       "view text: '(1):(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)': more than 16 dims in the stride"},
  };
  for (int64_t i = 0; i < COUNT(texts); ++i) {
    assert_refused(SPK_INVALID_ARGUMENT, texts[i].message,
                   spk_view_parse(SPK_F32, texts[i].text, &w.view));
  }
  assert_refused(SPK_SHAPE_MISMATCH, "view stride: got 1 strides for 2 dims",
                 spk_view_parse(SPK_F32, "(2,2):(1)", &w.view));
  assert_refused(SPK_OUT_OF_BOUNDS, "view offset: got -3, expected >= 0",
                 spk_view_parse(SPK_F32, "(4)+-3", &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL", spk_view_parse(SPK_F32, "(4)", NULL));
  assert_refused(SPK_INVALID_ARGUMENT, "text: got NULL", spk_view_parse(SPK_F32, NULL, &w.view));
}

static void view_parse_shows_the_beginning_of_a_long_text(void **state) {
  (void)state;
  char text[1000];
  memset(text, ' ', sizeof text);
  text[0] = '(';
  text[sizeof text - 2] = '!';
  text[sizeof text - 1] = 0;
  char message[SPK_MESSAGE_SIZE];
  snprintf(message, sizeof message,
           "view text: '%.120s...': got '!' at position 998, expected a number of the shape", text);
  assert_refused(SPK_INVALID_ARGUMENT, message, spk_view_parse(SPK_F32, text, &w.view));
}

static void view_format_refuses(void **state) {
  (void)state;
  assert_refused(SPK_INVALID_ARGUMENT, "view: got NULL",
                 spk_view_format(NULL, w.text, sizeof w.text, &w.length));
  assert_refused(SPK_OUT_OF_BOUNDS, "capacity: got 11, expected at least 12",
                 spk_view_format(h.view, w.text, strlen("(4,4):(4,1)"), &w.length));
  assert_refused(SPK_OUT_OF_BOUNDS, "capacity: got 0, expected at least 12",
                 spk_view_format(h.view, w.text, 0, &w.length));
}

static void dlpack_refuses_null(void **state) {
  (void)state;
  spk_buffer buffer = part(w.x, 1, SPK_F32);
  assert_refused(SPK_INVALID_ARGUMENT, "tensor: got NULL",
                 spk_view_from_dlpack(NULL, &w.view, &buffer));
  assert_refused(SPK_INVALID_ARGUMENT, "tensor: got NULL",
                 spk_view_from_dlpack_versioned(NULL, 0, &w.view, &buffer));
  /* A tensor that is not looked at. */
  const struct DLManagedTensor *tensor = (const void *)w.bytes;
  const struct DLManagedTensorVersioned *versioned = (const void *)w.bytes;
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL",
                 spk_view_from_dlpack(tensor, NULL, &buffer));
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL",
                 spk_view_from_dlpack_versioned(versioned, 0, NULL, &buffer));
  assert_ptr_equal(buffer.data, w.x);
}

static void offsets_refuse(void **state) {
  (void)state;
  const int64_t good[] = {3, 3, 0, 0};
  const int64_t high[] = {3, 3, 0, 4};
  const int64_t low[] = {-1, 0};
  int64_t *out = w.counts;
  int64_t *cols = w.more_counts;
  assert_refused(SPK_INVALID_ARGUMENT, "view: got NULL",
                 spk_view_linear_offset(NULL, good, 2, out));
  assert_refused(SPK_INVALID_ARGUMENT, "count: got -1, expected >= 0",
                 spk_view_linear_offset(h.view, good, -1, out));
  assert_refused(SPK_INVALID_ARGUMENT, "index: got NULL",
                 spk_view_linear_offset(h.view, NULL, 2, out));
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL",
                 spk_view_linear_offset(h.view, good, 2, NULL));
  assert_refused(SPK_OUT_OF_BOUNDS, "index[1]: dim 1: got 4, expected 0 to 3",
                 spk_view_linear_offset(h.view, high, 2, out));
  assert_refused(SPK_OUT_OF_BOUNDS, "index[0]: dim 0: got -1, expected 0 to 3",
                 spk_view_linear_offset(h.view, low, 1, out));

  assert_refused(SPK_INVALID_ARGUMENT, "view: got NULL",
                 spk_view_to_param_rc(NULL, good, 2, 4, out, cols));
  assert_refused(SPK_INVALID_ARGUMENT, "count: got -1, expected >= 0",
                 spk_view_to_param_rc(h.view, good, -1, 4, out, cols));
  assert_refused(SPK_INVALID_ARGUMENT, "index: got NULL",
                 spk_view_to_param_rc(h.view, NULL, 2, 4, out, cols));
  assert_refused(SPK_INVALID_ARGUMENT, "num_cols: got 0, expected >= 1",
                 spk_view_to_param_rc(h.view, good, 2, 0, out, cols));
  assert_refused(SPK_INVALID_ARGUMENT, "rows: got NULL",
                 spk_view_to_param_rc(h.view, good, 2, 4, NULL, cols));
  assert_refused(SPK_INVALID_ARGUMENT, "cols: got NULL",
                 spk_view_to_param_rc(h.view, good, 2, 4, out, NULL));
  assert_refused(SPK_OUT_OF_BOUNDS, "index[1]: dim 1: got 4, expected 0 to 3",
                 spk_view_to_param_rc(h.view, high, 2, 4, out, cols));
}

/* --- blocks -------------------------------------------------------------------------------- */

static void block_create_refuses(void **state) {
  (void)state;
  const int64_t shape[17] = {2, 2};
  assert_refused(SPK_INVALID_ARGUMENT, "view: got NULL",
                 spk_block_create(NULL, 2, shape, NULL, &w.block));
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL",
                 spk_block_create(h.view, 2, shape, NULL, NULL));
  assert_refused(SPK_INVALID_ARGUMENT, "block shape: got NULL",
                 spk_block_create(h.view, 2, NULL, NULL, &w.block));
  assert_refused(SPK_INVALID_ARGUMENT, "block shape ndim: got -1, expected 0 to 16",
                 spk_block_create(h.view, -1, shape, NULL, &w.block));
  assert_refused(SPK_INVALID_ARGUMENT, "block shape ndim: got 17, expected 0 to 16",
                 spk_block_create(h.view, 17, shape, NULL, &w.block));
  assert_refused(SPK_SHAPE_MISMATCH, "block shape: got 1 dims (4), expected 2 to cut (4,4)",
                 spk_block_create(h.view, DIMS(4), NULL, &w.block));
  assert_refused(SPK_SHAPE_MISMATCH, "block shape: dim 1: size 4 is not divisible by 3",
                 spk_block_create(h.view, DIMS(2, 3), NULL, &w.block));
  assert_refused(SPK_SHAPE_MISMATCH, "block shape: dim 0: size 4 is not divisible by 8",
                 spk_block_create(h.view, DIMS(8, -1), NULL, &w.block));
  spk_view *view = NULL;
  spk_view *many = NULL;
  int64_t ones[16];
  for (int d = 0; d < 16; ++d) ones[d] = 1;
  assert_ok(spk_view_create(SPK_F32, 16, ones, NULL, 0, &view));
  assert_ok(spk_view_block_view_of(view, NO_DIMS, 1, &many));
  assert_refused(SPK_INVALID_ARGUMENT, "block view: got a view of 32 dims, expected at most 16",
                 spk_block_create(many, NO_DIMS, NULL, &w.block));
  spk_view_release(many);
  spk_view_release(view);
}

static void block_couple_refuses(void **state) {
  (void)state;
  spk_block *wide = NULL;
  spk_block *flat = NULL;
  assert_ok(spk_block_create(h.view, DIMS(2, 1), "wide", &wide));
  assert_ok(spk_block_create(h.row, NO_DIMS, "flat", &flat));
  const spk_block *good[] = {h.block, h.block};
  const spk_block *missing[] = {h.block, NULL};
  const spk_block *unequal[] = {h.block, wide};
  const spk_block *ranks[] = {wide, flat};
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL",
                 spk_block_couple(good, 2, NULL, NULL, NULL));
  assert_refused(SPK_INVALID_ARGUMENT, "members: got NULL",
                 spk_block_couple(NULL, 2, NULL, NULL, &w.block));
  assert_refused(SPK_INVALID_ARGUMENT, "members[1]: got NULL",
                 spk_block_couple(missing, 2, NULL, NULL, &w.block));
  assert_refused(SPK_INVALID_ARGUMENT, "count: got 0 members, expected >= 1",
                 spk_block_couple(good, 0, NULL, NULL, &w.block));
  assert_refused(SPK_INVALID_ARGUMENT, "count: got -1 members, expected >= 1",
                 spk_block_couple(good, -1, NULL, NULL, &w.block));
  assert_refused(SPK_COUPLING,
                 "block coupling: member 1 'wide' has grid (2,4), permuted (2,4), expected (2,2) "
                 "as member 0 'block'",
                 spk_block_couple(unequal, 2, NULL, NULL, &w.block));
  assert_refused(SPK_COUPLING,
                 "block coupling: member 1 'flat' has a grid of 1 dims (4), member 0 'wide' one of "
                 "2 dims (2,4)",
                 spk_block_couple(ranks, 2, NULL, NULL, &w.block));
  const int32_t turned[] = {0, 1, 1, 0};
  const spk_block *wides[] = {wide, wide};
  assert_refused(SPK_COUPLING,
                 "block coupling: member 1 'wide' has grid (2,4), permuted (4,2), expected (2,4) "
                 "as member 0 'wide'",
                 spk_block_couple(wides, 2, turned, NULL, &w.block));
  const int32_t repeated[] = {0, 1, 1, 1};
  assert_refused(SPK_COUPLING,
                 "block coupling: order of member 1 'block': got (1,1), expected a permutation of "
                 "the 2 grid axes",
                 spk_block_couple(good, 2, repeated, NULL, &w.block));
  const int32_t outside[] = {0, 2, 0, 1};
  assert_refused(SPK_COUPLING,
                 "block coupling: order of member 0 'block': got (0,2), expected a permutation of "
                 "the 2 grid axes",
                 spk_block_couple(good, 2, outside, NULL, &w.block));
  const int32_t negative[] = {0, 1, -1, 0};
  assert_refused(SPK_COUPLING,
                 "block coupling: order of member 1 'block': got (-1,0), expected a permutation of "
                 "the 2 grid axes",
                 spk_block_couple(good, 2, negative, NULL, &w.block));
  spk_block_release(wide);
  spk_block_release(flat);
}

static void block_leaf_refuses(void **state) {
  (void)state;
  assert_refused(SPK_INVALID_ARGUMENT, "block: got NULL", spk_block_leaf(NULL, 0, &w.block));
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL", spk_block_leaf(h.pair, 0, NULL));
  assert_refused(SPK_OUT_OF_BOUNDS, "index: got 2, expected 0 to 1",
                 spk_block_leaf(h.pair, 2, &w.block));
  assert_refused(SPK_OUT_OF_BOUNDS, "index: got -1, expected 0 to 1",
                 spk_block_leaf(h.pair, -1, &w.block));
}

static void described_views_refuse(void **state) {
  (void)state;
  assert_refused(SPK_INVALID_ARGUMENT, "block: got NULL", spk_block_block_view(NULL, 0, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL", spk_block_block_view(h.block, 0, NULL));
  assert_refused(SPK_COUPLING,
                 "block: 'coupling' is a coupling of 2 leaves in different buffers; expected a "
                 "block spec (use the merged form)",
                 spk_block_block_view(h.pair, 1, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "view: got NULL",
                 spk_view_block_view_of(NULL, DIMS(2, 2), 0, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL",
                 spk_view_block_view_of(h.view, DIMS(2, 2), 0, NULL));
  assert_refused(SPK_SHAPE_MISMATCH, "block shape: dim 1: size 4 is not divisible by 3",
                 spk_view_block_view_of(h.view, DIMS(2, 3), 0, &w.view));
  const char *dtype = "view dtype: got code 264, expected SPK_F32, SPK_F64, SPK_F16 or SPK_BF16";
  assert_refused(SPK_INVALID_ARGUMENT, "block: got NULL",
                 spk_block_broadcast_fake(NULL, SPK_F32, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL",
                 spk_block_broadcast_fake(h.block, SPK_F32, NULL));
  assert_refused(SPK_UNSUPPORTED_DTYPE, dtype, spk_block_broadcast_fake(h.block, SPK_U8, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "block: got NULL",
                 spk_block_expand_block_tensor(NULL, SPK_F32, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL",
                 spk_block_expand_block_tensor(h.block, SPK_F32, NULL));
  assert_refused(SPK_UNSUPPORTED_DTYPE, dtype,
                 spk_block_expand_block_tensor(h.block, SPK_U8, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "scope: got NULL",
                 spk_scope_block_to_scope_view(NULL, SPK_F32, 0, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL",
                 spk_scope_block_to_scope_view(h.scope, SPK_F32, 0, NULL));
  assert_refused(SPK_UNSUPPORTED_DTYPE, dtype,
                 spk_scope_block_to_scope_view(h.scope, SPK_U8, 0, &w.view));
  assert_refused(SPK_COUPLING,
                 "scope: 'coupling' is a coupling of 2 members in different buffers; expected a "
                 "scope spec (use the merged form)",
                 spk_scope_block_to_scope_view(h.both, SPK_F32, 1, &w.view));
}

/* --- scopes -------------------------------------------------------------------------------- */

static void scope_create_refuses(void **state) {
  (void)state;
  const int64_t shape[17] = {1, 2};
  assert_refused(SPK_INVALID_ARGUMENT, "block: got NULL",
                 spk_scope_create(NULL, 2, shape, NULL, &w.scope));
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL",
                 spk_scope_create(h.block, 2, shape, NULL, NULL));
  assert_refused(SPK_INVALID_ARGUMENT, "scope shape: got NULL",
                 spk_scope_create(h.block, 1, NULL, NULL, &w.scope));
  assert_refused(SPK_INVALID_ARGUMENT, "scope shape ndim: got -1, expected 0 to 16",
                 spk_scope_create(h.block, -1, shape, NULL, &w.scope));
  assert_refused(SPK_INVALID_ARGUMENT, "scope shape ndim: got 17, expected 0 to 16",
                 spk_scope_create(h.block, 17, shape, NULL, &w.scope));
  assert_refused(SPK_SHAPE_MISMATCH,
                 "scope shape: got 3 dims (1,2,1), expected at most 2 to cut the block grid (2,2)",
                 spk_scope_create(h.block, DIMS(1, 2, 1), NULL, &w.scope));
  assert_refused(SPK_SHAPE_MISMATCH, "scope shape: dim 1: size 2 is not divisible by 4",
                 spk_scope_create(h.block, DIMS(1, 4), NULL, &w.scope));
}

static void scope_couple_refuses(void **state) {
  (void)state;
  spk_scope *one = NULL;
  spk_block *elements = NULL;
  spk_scope *flat = NULL;
  assert_ok(spk_scope_create(h.block, NO_DIMS, "one", &one));
  assert_ok(spk_block_create(h.row, NO_DIMS, NULL, &elements));
  assert_ok(spk_scope_create(elements, NO_DIMS, "flat", &flat));
  const spk_scope *good[] = {h.scope, h.scope};
  const spk_scope *missing[] = {NULL, h.scope};
  const spk_scope *unequal[] = {h.scope, one};
  const spk_scope *ranks[] = {one, flat};
  assert_refused(SPK_INVALID_ARGUMENT, "out: got NULL",
                 spk_scope_couple(good, 2, NULL, NULL, NULL));
  assert_refused(SPK_INVALID_ARGUMENT, "members: got NULL",
                 spk_scope_couple(NULL, 2, NULL, NULL, &w.scope));
  assert_refused(SPK_INVALID_ARGUMENT, "members[0]: got NULL",
                 spk_scope_couple(missing, 2, NULL, NULL, &w.scope));
  assert_refused(SPK_INVALID_ARGUMENT, "count: got 0 members, expected >= 1",
                 spk_scope_couple(good, 0, NULL, NULL, &w.scope));
  assert_refused(SPK_COUPLING,
                 "scope coupling: member 1 'one' has grid (1,1), permuted (1,1), expected (2,1) as "
                 "member 0 'scope'",
                 spk_scope_couple(unequal, 2, NULL, NULL, &w.scope));
  assert_refused(SPK_COUPLING,
                 "scope coupling: member 1 'flat' has a grid of 1 dims (1), member 0 'one' one of "
                 "2 dims (1,1)",
                 spk_scope_couple(ranks, 2, NULL, NULL, &w.scope));
  const int32_t turned[] = {0, 1, 1, 0};
  assert_refused(SPK_COUPLING,
                 "scope coupling: member 1 'scope' has grid (2,1), permuted (1,2), expected (2,1) "
                 "as member 0 'scope'",
                 spk_scope_couple(good, 2, turned, NULL, &w.scope));
  const int32_t repeated[] = {0, 0, 0, 1};
  assert_refused(SPK_COUPLING,
                 "scope coupling: order of member 0 'scope': got (0,0), expected a permutation of "
                 "the 2 grid axes",
                 spk_scope_couple(good, 2, repeated, NULL, &w.scope));
  spk_scope_release(one);
  spk_scope_release(flat);
  spk_block_release(elements);
}

static void sparsity_to_nnz_refuses(void **state) {
  (void)state;
  assert_refused(SPK_INVALID_ARGUMENT, "scope: got NULL",
                 spk_scope_sparsity_to_nnz(NULL, 0.5, &w.total));
  assert_refused(SPK_INVALID_ARGUMENT, "nnz: got NULL",
                 spk_scope_sparsity_to_nnz(h.scope, 0.5, NULL));
  assert_refused(SPK_INVALID_ARGUMENT, "sparsity: got 1.5, expected 0 to 1",
                 spk_scope_sparsity_to_nnz(h.scope, 1.5, &w.total));
  assert_refused(SPK_INVALID_ARGUMENT, "sparsity: got -0.25, expected 0 to 1",
                 spk_scope_sparsity_to_nnz(h.scope, -0.25, &w.total));
  assert_refused(SPK_INVALID_ARGUMENT, "sparsity: got nan, expected 0 to 1",
                 spk_scope_sparsity_to_nnz(h.scope, NAN, &w.total));
}

/* --- leaves: the same refusals from every function ------------------------------------------ */

/* A function of two leaves, called with buffers for one of its leaf arguments. */
struct leaf_argument {
  const char *name;
  spk_status (*call)(const spk_buffer *buffers, int32_t count);
};

static spk_status norms_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_block_norms(NULL, h.pair, leaves, count, 2, SCORES);
}
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
static spk_status keep_top_leaves(const spk_buffer *leaves, int32_t count) {
  return spk_scope_keep_top(NULL, h.both, leaves, NULL, count, w.counts, 1, NULL, &w.report);
}
static spk_status keep_top_into(const spk_buffer *into, int32_t count) {
  return spk_scope_keep_top(NULL, h.both, LEAVES, into, count, w.counts, 1, NULL, &w.report);
}

static const struct leaf_argument kLeafArguments[] = {
    {"leaves", norms_leaves},       {"leaves", min_leaves},        {"leaves", max_leaves},
    {"leaves", nnz_leaves},         {"leaves", reduce_leaves},     {"leaves", merged_leaves},
    {"leaves", mask_leaves},        {"into", mask_into},           {"leaves", multiplier_leaves},
    {"into", multiplier_into},      {"leaves", hard_leaves},       {"into", hard_into},
    {"leaves", soft_leaves},        {"into", soft_into},           {"leaves", set_data_leaves},
    {"leaves", scope_norms_leaves}, {"leaves", scope_hard_leaves}, {"into", scope_hard_into},
    {"leaves", scope_soft_leaves},  {"into", scope_soft_into},     {"leaves", keep_top_leaves},
    {"into", keep_top_into},
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
                   "into[0] and leaves[1] share bytes; expected buffers that do not overlap",
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
static spk_status soft_conditioners(const spk_buffer *conditioners, int32_t count) {
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.conditioners = conditioners;
  return spk_block_soft_threshold(NULL, h.pair, LEAVES, NULL, count, ONE_THRESHOLD, &options,
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
             "%s[0] and leaves[1] share bytes; expected buffers that do not overlap",
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

static spk_status norms_out(const spk_buffer *out) {
  return spk_block_norms(NULL, h.pair, LEAVES, 2, 2, out);
}
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
static spk_status multiplier_array(const spk_buffer *multiplier) {
  return spk_block_apply_multiplier(NULL, h.pair, LEAVES, NULL, 2, multiplier);
}
static spk_status hard_array(const spk_buffer *thresholds) {
  return spk_block_hard_threshold(NULL, h.pair, LEAVES, NULL, 2, thresholds, NULL, &w.report);
}
static spk_status soft_array(const spk_buffer *thresholds) {
  return spk_block_soft_threshold(NULL, h.pair, LEAVES, NULL, 2, thresholds, NULL, &w.report);
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
static spk_status scope_hard_array(const spk_buffer *thresholds) {
  return spk_scope_hard_threshold(NULL, h.both, LEAVES, NULL, 2, thresholds, NULL, &w.report);
}
static spk_status scope_soft_array(const spk_buffer *thresholds) {
  return spk_scope_soft_threshold(NULL, h.both, LEAVES, NULL, 2, thresholds, NULL, &w.report);
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
                 "multiplier and leaves[0] share bytes; expected buffers that do not overlap",
                 multiplier_array(&array));
  array = part(w.x, 1, SPK_F64);
  assert_refused(SPK_OVERLAP,
                 "thresholds and leaves[0] share bytes; expected buffers that do not overlap",
                 hard_array(&array));
  array = part(w.y, 4, SPK_U8);
  assert_refused(SPK_OVERLAP,
                 "prune_mask and leaves[1] share bytes; expected buffers that do not overlap",
                 mask_array(&array));
  array = part(w.y + 2, 1, SPK_F32);
  assert_refused(SPK_OVERLAP,
                 "thresholds and leaves[1] share bytes; expected buffers that do not overlap",
                 scope_soft_array(&array));
  array = part(w.x + 8, 8, SPK_F32);
  assert_refused(SPK_OVERLAP,
                 "scores and leaves[0] share bytes; expected buffers that do not overlap",
                 keep_top_scores(&array));
  /* Results, and what is read. */
  array = part(w.y + 12, 4, SPK_F32);
  assert_refused(SPK_OVERLAP, "out and leaves[1] share bytes; expected buffers that do not overlap",
                 norms_out(&array));
  assert_refused(SPK_OVERLAP, "out and leaves[1] share bytes; expected buffers that do not overlap",
                 min_out(&array));
  assert_refused(SPK_OVERLAP, "out and leaves[1] share bytes; expected buffers that do not overlap",
                 reduce_out(&array));
  array = part(w.x, 4, SPK_I64);
  assert_refused(SPK_OVERLAP,
                 "per_block and leaves[0] share bytes; expected buffers that do not overlap",
                 nnz_per_block(&array));
  array = part(w.x + 15, 16, SPK_F32);
  assert_refused(SPK_OVERLAP, "out and leaves[0] share bytes; expected buffers that do not overlap",
                 merged_out(&array));
  array = part(w.x, 8, SPK_F32);
  assert_refused(SPK_OVERLAP, "out and leaves[0] share bytes; expected buffers that do not overlap",
                 scope_norms_out(&array));
  array = part(w.x, 2, SPK_F32);
  assert_refused(SPK_OVERLAP, "out and values[0] share bytes; expected buffers that do not overlap",
                 kth_largest_out(&array));
  assert_refused(SPK_OVERLAP, "out and values[0] share bytes; expected buffers that do not overlap",
                 kth_mid_out(&array));
  array = part(w.into_x + 1, 8, SPK_F32);
  assert_refused(SPK_OVERLAP, "out and scores share bytes; expected buffers that do not overlap",
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
      {NAN, "p: got nan, expected 0, 1, 2, inf, -inf or 0.01 to 1000"},
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
  assert_refused(SPK_INVALID_ARGUMENT, "eps: got nan, expected >= 0",
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
  } bad[] = {{0, "0"}, {-1, "-1"}, {NAN, "nan"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}};
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
  } select = {{0, NULL, NULL, 0}, 1};
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
  assert_refused(bad, "counts: got 2 numbers with a block mask, expected NULL and 0",
                 spk_scope_get_masks(NULL, h.both, &masked, w.counts, 2, 0, masks, 2, &w.report));
  assert_refused(bad, "counts: got 3 numbers with a block mask, expected NULL and 0",
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
             {NAN, "k_weight: got nan, expected > 0 and finite"},
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
  assert_refused(SPK_INVALID_ARGUMENT, "sparsity: got nan, expected 0 to 1",
                 spk_prune_unstructured(NULL, h.view, LEAVES, NULL, NAN, &w.report));
}

/* A message names the argument as the function's declaration does. */
static void assert_names(const char *argument, spk_status status) {
  char message[SPK_MESSAGE_SIZE];
  assert_int_not_equal(status, SPK_OK);
  spk_last_error_copy(message, sizeof message, NULL);
  const size_t length = strlen(argument);
  if (strncmp(message, argument, length) == 0 && strchr(":[ ", message[length])) return;
  print_error("expected a message about '%s', got '%s'\n", argument, message);
  fail();
}

static void messages_name_the_leaf_of_a_view(void **state) {
  (void)state;
  assert_names("leaf", spk_view_apply_mask(NULL, h.view, NULL, NULL, DIMS(2, 2), MASK));
  assert_names("leaf", spk_view_apply_multiplier(NULL, h.view, NULL, NULL, DIMS(2, 2), SCORES));
  assert_names("leaf", spk_view_block_view_merged(NULL, h.view, NULL, DIMS(2, 2), SCORES));
}

static void messages_name_the_weights_and_the_threshold(void **state) {
  (void)state;
  assert_names("weights", spk_prune_nm(NULL, h.view, NULL, NULL, 0, 1, 2, NULL));
  assert_names("weights", spk_prune_unstructured(NULL, h.view, NULL, NULL, 0.5, NULL));
  assert_names("weights", spk_soft_threshold_blocks(NULL, h.view, NULL, NULL, NO_DIMS, 1, NULL));
  assert_names("threshold",
               spk_soft_threshold_blocks(NULL, h.view, LEAVES, NULL, NO_DIMS, -1, NULL));
  assert_names("threshold",
               spk_soft_threshold_blocks(NULL, h.view, LEAVES, NULL, NO_DIMS, NAN, NULL));
}

static void view_create_tells_the_range_of_ndim(void **state) {
  (void)state;
  const int64_t ones[17] = {1};
  assert_refused(SPK_INVALID_ARGUMENT, "view ndim: got 17, expected 1 to 16",
                 spk_view_create(SPK_F32, 17, ones, NULL, 0, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "view ndim: got -1, expected 1 to 16",
                 spk_view_create(SPK_F32, -1, ones, NULL, 0, &w.view));
}

/* --- contexts ------------------------------------------------------------------------------- */

static int32_t two_at_a_time(void *user) {
  (void)user;
  return 2;
}
static int32_t refuse_to_run(void *user, int64_t count, spk_task_fn task, void *task_data) {
  (void)user;
  (void)count;
  (void)task;
  (void)task_data;
  return 7;
}
static void *no_memory(void *user, size_t bytes, size_t alignment) {
  (void)user;
  (void)bytes;
  (void)alignment;
  return NULL;
}
static void nothing_to_free(void *user, void *memory, size_t bytes, size_t alignment) {
  (void)user;
  (void)memory;
  (void)bytes;
  (void)alignment;
}

static const spk_host_executor kHost = {sizeof kHost, NULL, two_at_a_time, refuse_to_run};
static const spk_allocator kNoMemory = {sizeof kNoMemory, NULL, no_memory, nothing_to_free};

static void context_create_refuses_executors(void **state) {
  (void)state;
  const spk_status bad = SPK_INVALID_ARGUMENT;
  assert_refused(bad, "out: got NULL", spk_context_create(NULL, NULL));
  spk_context_options options = {.struct_size = sizeof options, .executor = 5};
  const char *range = "executor: got 5, expected SPK_EXECUTOR_DEFAULT (0) to SPK_EXECUTOR_HOST (4)";
  assert_refused(bad, range, spk_context_create(&options, &w.context));
  options.executor = -1;
  assert_refused(bad,
                 "executor: got -1, expected SPK_EXECUTOR_DEFAULT (0) to SPK_EXECUTOR_HOST (4)",
                 spk_context_create(&options, &w.context));
  options.executor = SPK_EXECUTOR_HOST;
  assert_refused(bad, "host: got NULL", spk_context_create(&options, &w.context));
  options.executor = SPK_EXECUTOR_SERIAL;
  options.host = &kHost;
  assert_refused(bad,
                 "host: got a table with executor 1, expected NULL unless it is SPK_EXECUTOR_HOST",
                 spk_context_create(&options, &w.context));
  options.executor = SPK_EXECUTOR_HOST;
  spk_host_executor host = kHost;
  options.host = &host;
  host.concurrency = NULL;
  assert_refused(bad, "host: concurrency: got NULL", spk_context_create(&options, &w.context));
  host = kHost;
  host.parallel_for = NULL;
  assert_refused(bad, "host: parallel_for: got NULL", spk_context_create(&options, &w.context));
  host = kHost;
  host.struct_size = 3;
  assert_refused(bad, "host: struct_size: got 3, expected 32",
                 spk_context_create(&options, &w.context));
}

static void context_create_refuses_executors_that_are_not_built_in(void **state) {
  (void)state;
  static const struct {
    int32_t executor;
    const char *message;
  } optional[] = {
      {SPK_EXECUTOR_TBB, "executor: TBB is not in this build; spk_build_info() lists what is"},
      {SPK_EXECUTOR_OPENMP,
       "executor: OpenMP is not in this build; spk_build_info() lists what is"},
  };
  for (int64_t i = 0; i < COUNT(optional); ++i) {
    if (spk_executor_available(optional[i].executor)) continue;
    const spk_context_options options = {.struct_size = sizeof options,
                                         .executor = optional[i].executor};
    assert_refused(SPK_UNAVAILABLE, optional[i].message, spk_context_create(&options, &w.context));
  }
}

static void context_create_refuses_the_rest(void **state) {
  (void)state;
  const spk_status bad = SPK_INVALID_ARGUMENT;
  spk_context_options options = {.struct_size = sizeof options, .threads = -1};
  assert_refused(bad, "threads: got -1, expected 0 to 65536",
                 spk_context_create(&options, &w.context));
  options.threads = 65537;
  assert_refused(bad, "threads: got 65537, expected 0 to 65536",
                 spk_context_create(&options, &w.context));
  options.threads = 1;
  spk_allocator allocator = kNoMemory;
  options.allocator = &allocator;
  allocator.allocate = NULL;
  assert_refused(bad, "allocator: allocate: got NULL", spk_context_create(&options, &w.context));
  allocator = kNoMemory;
  allocator.deallocate = NULL;
  assert_refused(bad, "allocator: deallocate: got NULL", spk_context_create(&options, &w.context));
  allocator = kNoMemory;
  allocator.struct_size = 0;
  assert_refused(bad, "allocator: struct_size: got 0, expected 32",
                 spk_context_create(&options, &w.context));
  options.struct_size = 0;
  assert_refused(bad, "options: struct_size: got 0, expected 48",
                 spk_context_create(&options, &w.context));
  const struct {
    spk_context_options options;
    int64_t further;
  } newer = {{.struct_size = sizeof newer}, 1};
  assert_refused(bad,
                 "options: struct_size: got 56 with fields that this version, which knows 48 "
                 "bytes, cannot honour",
                 spk_context_create(&newer.options, &w.context));
}

static void a_failed_allocation_ends_the_call(void **state) {
  (void)state;
  const spk_context_options options = {
      .struct_size = sizeof options, .executor = SPK_EXECUTOR_SERIAL, .allocator = &kNoMemory};
  const spk_buffer scores = F32(w.scores);
  spk_context *context = NULL;
  assert_ok(spk_context_create(&options, &context));
  const char *message = "memory: an allocation failed";
  assert_refused(SPK_OUT_OF_MEMORY, message,
                 spk_block_norms(context, h.pair, LEAVES, 2, 2, SCORES));
  assert_refused(SPK_OUT_OF_MEMORY, message,
                 spk_block_reduce(context, h.pair, LEAVES, 2, stop, NULL, SCORES));
  assert_refused(SPK_OUT_OF_MEMORY, message,
                 spk_block_apply_multiplier(context, h.pair, LEAVES, NULL, 2, SCORES));
  assert_refused(
      SPK_OUT_OF_MEMORY, message,
      spk_block_soft_threshold(context, h.pair, LEAVES, NULL, 2, ONE_THRESHOLD, NULL, &w.report));
  assert_refused(
      SPK_OUT_OF_MEMORY, message,
      spk_scope_keep_top(context, h.both, LEAVES, NULL, 2, w.counts, 1, NULL, &w.report));
  assert_refused(SPK_OUT_OF_MEMORY, message,
                 spk_scope_block_norms(context, h.both, LEAVES, 2, 2, &scores));
  spk_context_release(context);
}

static void a_host_pool_that_refuses_ends_the_call(void **state) {
  (void)state;
  static float x[100000];
  const spk_context_options options = {
      .struct_size = sizeof options, .executor = SPK_EXECUTOR_HOST, .host = &kHost};
  spk_context *context = NULL;
  assert_ok(spk_context_create(&options, &context));
  spk_block *block = blocks_of(SPK_F32, "(100000)", NO_DIMS);
  assert_refused(SPK_INTERNAL, "host executor: parallel_for returned 7, expected 0",
                 spk_block_nnz(context, block, &F32(x), 1, 0, NULL, &w.total));
  spk_block_release(block);
  spk_context_release(context);
}

static int32_t stop_at_once(void *user, int64_t done, int64_t total) {
  (void)done;
  (void)total;
  ++*(int *)user;
  return -5;
}

static void a_progress_callback_cancels(void **state) {
  (void)state;
  int asked = 0;
  const spk_context_options options = {.struct_size = sizeof options,
                                       .executor = SPK_EXECUTOR_SERIAL,
                                       .progress = stop_at_once,
                                       .progress_user = &asked};
  spk_context *context = NULL;
  assert_ok(spk_context_create(&options, &context));
  const char *message = "progress callback: returned -5 at 0 of 1024, which cancels the call";
  assert_refused(SPK_CANCELLED, message,
                 spk_block_apply_mask(context, h.pair, LEAVES, NULL, 2, MASK));
  assert_refused(
      SPK_CANCELLED, message,
      spk_block_hard_threshold(context, h.pair, LEAVES, NULL, 2, ONE_THRESHOLD, NULL, &w.report));
  assert_refused(SPK_CANCELLED, message, spk_block_norms(context, h.pair, LEAVES, 2, 2, SCORES));
  assert_int_equal(asked, 3);
  spk_context_release(context);
}

/* Calls back into the context that is at work. */
struct reentry {
  spk_context *context;
  spk_status status;
};

static int32_t call_again(void *user, int64_t done, int64_t total) {
  (void)done;
  (void)total;
  struct reentry *reentry = user;
  reentry->status = spk_block_norms(reentry->context, h.pair, LEAVES, 2, 2, SCORES);
  return 0;
}

static void a_progress_callback_may_not_use_its_context(void **state) {
  (void)state;
  struct reentry reentry = {NULL, SPK_OK};
  const spk_context_options options = {.struct_size = sizeof options,
                                       .executor = SPK_EXECUTOR_SERIAL,
                                       .progress = call_again,
                                       .progress_user = &reentry};
  assert_ok(spk_context_create(&options, &reentry.context));
  assert_ok(spk_block_nnz(reentry.context, h.pair, LEAVES, 2, 0, NULL, &w.total));
  assert_fails(SPK_INVALID_ARGUMENT,
               "context: in use by the call whose callback this is; expected another context "
               "inside a callback",
               reentry.status);
  assert_f32(w.scores, 10, 11, 12, 13);
  spk_context_release(reentry.context);
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

/* --- sizes that only a coupling can reach --------------------------------------------------- */

static void couplings_may_not_overflow(void **state) {
  (void)state;
  spk_block *half = blocks_of(SPK_F16, "(2305843009213693952)", DIMS(0));
  spk_block *cut = blocks_of(SPK_F16, "(2305843009213693952)", DIMS(1152921504606846976));
  spk_scope *scope = NULL;
  const spk_block *halves[] = {half, half, half, half};
  const spk_block *cuts[] = {cut, cut, cut, cut};
  /* 2 blocks of 4 * 2^60 elements; 1 of 4 * 2^61. */
  assert_refused(SPK_INVALID_ARGUMENT,
                 "block numel: the product of (2,4611686018427387904) overflows 64 bits",
                 spk_block_couple(cuts, 4, NULL, NULL, &w.block));
  assert_int_equal(spk_block_couple(halves, 4, NULL, NULL, &w.block), SPK_INVALID_ARGUMENT);
  assert_null(w.block);
  assert_ok(spk_scope_create(half, NO_DIMS, NULL, &scope));
  const spk_scope *scopes[] = {scope, scope, scope, scope};
  assert_int_equal(spk_scope_couple(scopes, 4, NULL, NULL, &w.scope), SPK_INVALID_ARGUMENT);
  assert_null(w.scope);
  spk_scope_release(scope);
  spk_block_release(half);
  spk_block_release(cut);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      REFUSAL_TEST(statuses_have_names),
      REFUSAL_TEST(the_last_message_stays_until_the_next),
      REFUSAL_TEST(long_messages_are_cut),
      REFUSAL_TEST(view_create_refuses),
      REFUSAL_TEST(view_create_refuses_overflow),
      REFUSAL_TEST(view_create_refuses_bounds_and_overlap),
      REFUSAL_TEST(view_parse_refuses),
      REFUSAL_TEST(view_parse_shows_the_beginning_of_a_long_text),
      REFUSAL_TEST(view_format_refuses),
      REFUSAL_TEST(dlpack_refuses_null),
      REFUSAL_TEST(offsets_refuse),
      REFUSAL_TEST(block_create_refuses),
      REFUSAL_TEST(block_couple_refuses),
      REFUSAL_TEST(block_leaf_refuses),
      REFUSAL_TEST(described_views_refuse),
      REFUSAL_TEST(scope_create_refuses),
      REFUSAL_TEST(scope_couple_refuses),
      REFUSAL_TEST(sparsity_to_nnz_refuses),
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
      REFUSAL_TEST(no_handle_is_refused),
      REFUSAL_TEST(p_out_of_range_is_refused),
      REFUSAL_TEST(nnz_refuses),
      REFUSAL_TEST(reduce_refuses),
      REFUSAL_TEST(thresholds_must_be_numbers),
      REFUSAL_TEST(soft_thresholds_may_not_be_negative),
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
      REFUSAL_TEST(messages_name_the_leaf_of_a_view),
      REFUSAL_TEST(messages_name_the_weights_and_the_threshold),
      REFUSAL_TEST(view_create_tells_the_range_of_ndim),
      REFUSAL_TEST(context_create_refuses_executors),
      REFUSAL_TEST(context_create_refuses_executors_that_are_not_built_in),
      REFUSAL_TEST(context_create_refuses_the_rest),
      REFUSAL_TEST(a_failed_allocation_ends_the_call),
      REFUSAL_TEST(a_host_pool_that_refuses_ends_the_call),
      REFUSAL_TEST(a_progress_callback_cancels),
      REFUSAL_TEST(a_progress_callback_may_not_use_its_context),
      REFUSAL_TEST(arguments_are_judged_with_denormals_on),
      REFUSAL_TEST(a_view_beside_another_layout_is_refused),
      REFUSAL_TEST(struct_sizes_inside_a_field_are_refused),
      REFUSAL_TEST(other_values_of_scale_are_refused),
      REFUSAL_TEST(couplings_may_not_overflow),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
