/* Refusals of what describes: views, blocks and scopes, with the messages themselves. */
#include "refusals.h"

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

/* A name must not push the cause out of a message. */
static void long_names_are_shortened(void **state) {
  (void)state;
  char name[2 * SPK_MESSAGE_SIZE];
  memset(name, 'n', sizeof name);
  name[sizeof name - 1] = 0;
  spk_block *named = NULL;
  assert_ok(spk_block_create(h.row, NO_DIMS, name, &named));
  spk_block *members[] = {h.block, named};
  char message[SPK_MESSAGE_SIZE];
  snprintf(
      message, sizeof message,
      "block coupling: member 1 '%.60s...' has a grid of 1 dims (4), member 0 'block' one of 2 "
      "dims (2,2)",
      name);
  assert_refused(SPK_COUPLING, message, spk_block_couple(members, 2, NULL, NULL, &w.block));
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

static void view_create_tells_the_range_of_ndim(void **state) {
  (void)state;
  const int64_t ones[17] = {1};
  assert_refused(SPK_INVALID_ARGUMENT, "view ndim: got 17, expected 1 to 16",
                 spk_view_create(SPK_F32, 17, ones, NULL, 0, &w.view));
  assert_refused(SPK_INVALID_ARGUMENT, "view ndim: got -1, expected 1 to 16",
                 spk_view_create(SPK_F32, -1, ones, NULL, 0, &w.view));
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
  /* A product of exactly -2^63 cannot be negated. */
  assert_refused(SPK_INVALID_ARGUMENT,
                 "view stride: dim 0: extent 3 times stride -4611686018427387904 overflows 64 bits",
                 spk_view_create(SPK_F32, DIMS(3, 3), (const int64_t[]){-4611686018427387904, -1},
                                 0, &w.view));
  assert_refused(
      SPK_INVALID_ARGUMENT,
      "view stride: dim 0: extent 5 times stride -2305843009213693952 overflows 64 bits",
      spk_view_create(SPK_F64, DIMS(5), (const int64_t[]){-2305843009213693952}, 0, &w.view));
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
  spk_block *good[] = {h.block, h.block};
  spk_block *missing[] = {h.block, NULL};
  spk_block *unequal[] = {h.block, wide};
  spk_block *ranks[] = {wide, flat};
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
  spk_block *wides[] = {wide, wide};
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
  spk_scope *good[] = {h.scope, h.scope};
  spk_scope *missing[] = {NULL, h.scope};
  spk_scope *unequal[] = {h.scope, one};
  spk_scope *ranks[] = {one, flat};
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
  assert_refused(SPK_INVALID_ARGUMENT, "sparsity: got NaN, expected 0 to 1",
                 spk_scope_sparsity_to_nnz(h.scope, NAN, &w.total));
}

/* --- sizes that only a coupling can reach --------------------------------------------------- */

static void block_couplings_may_not_overflow(void **state) {
  (void)state;
  spk_block *whole = blocks_of(SPK_F16, "(2305843009213693952)", DIMS(0));
  spk_block *halves = blocks_of(SPK_F16, "(2305843009213693952)", DIMS(1152921504606846976));
  spk_block *four_wholes[] = {whole, whole, whole, whole};
  spk_block *four_halves[] = {halves, halves, halves, halves};
  /* 2 blocks of 4 * 2^60 elements, and 1 block of 4 * 2^61. */
  assert_refused(SPK_INVALID_ARGUMENT,
                 "block numel: the product of (2,4611686018427387904) overflows 64 bits",
                 spk_block_couple(four_halves, 4, NULL, NULL, &w.block));
  assert_int_equal(spk_block_couple(four_wholes, 4, NULL, NULL, &w.block), SPK_INVALID_ARGUMENT);
  spk_block_release(whole);
  spk_block_release(halves);
}

static void scope_couplings_may_not_overflow(void **state) {
  (void)state;
  spk_scope *scope = scopes_over(blocks_of(SPK_F16, "(2305843009213693952)", NO_DIMS), NO_DIMS);
  spk_scope *four[] = {scope, scope, scope, scope};
  assert_int_equal(spk_scope_couple(four, 4, NULL, NULL, &w.scope), SPK_INVALID_ARGUMENT);
  spk_scope_release(scope);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      REFUSAL_TEST(statuses_have_names),
      REFUSAL_TEST(the_last_message_stays_until_the_next),
      REFUSAL_TEST(long_names_are_shortened),
      REFUSAL_TEST(view_create_refuses),
      REFUSAL_TEST(view_create_tells_the_range_of_ndim),
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
      REFUSAL_TEST(block_couplings_may_not_overflow),
      REFUSAL_TEST(scope_couplings_may_not_overflow),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
