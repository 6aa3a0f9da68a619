/* What all unit tests share: buffers from arrays, handles from text, exact comparisons, and a main
 * that notices handles nobody released. */
#ifndef SPARSEKIT_TESTS_UNIT_SUPPORT_H_
#define SPARSEKIT_TESTS_UNIT_SUPPORT_H_

#include <math.h>
#include <setjmp.h>
#include <sparsekit/sparsekit.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* After the headers that it needs. */
#include <cmocka.h>

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof((array)[0])))

/* --- arguments ----------------------------------------------------------------------------- */

/* The arguments `ndim, shape`. */
#define DIMS(...) (int32_t) COUNT(((int64_t[]){__VA_ARGS__})), ((int64_t[]){__VA_ARGS__})
#define NO_DIMS 0, NULL

/* The buffer of a whole array. */
#define BUFFER(array, dtype, layout, view) \
  ((spk_buffer){(array), COUNT(array), (dtype), (layout), (view)})
#define F32(array) BUFFER(array, SPK_F32, SPK_LAYOUT_VIEW, NULL)
#define F64(array) BUFFER(array, SPK_F64, SPK_LAYOUT_VIEW, NULL)
#define F16(array) BUFFER(array, SPK_F16, SPK_LAYOUT_VIEW, NULL)
#define BF16(array) BUFFER(array, SPK_BF16, SPK_LAYOUT_VIEW, NULL)
#define U8(array) BUFFER(array, SPK_U8, SPK_LAYOUT_VIEW, NULL)
#define I64(array) BUFFER(array, SPK_I64, SPK_LAYOUT_VIEW, NULL)
#define CONTIGUOUS(array, dtype) BUFFER(array, dtype, SPK_LAYOUT_CONTIGUOUS, NULL)
#define OWN(array, dtype, view) BUFFER(array, dtype, SPK_LAYOUT_OWN, view)

/* --- statuses and messages ----------------------------------------------------------------- */

#define assert_ok(call) expect_ok((call), #call, __FILE__, __LINE__)

static inline void expect_ok(spk_status status, const char *call, const char *file, int line) {
  if (status == SPK_OK) return;
  char message[SPK_MESSAGE_SIZE];
  spk_last_error_copy(message, sizeof message, NULL);
  print_error("%s: %s: %s\n", call, spk_status_string(status), message);
  _fail(file, line);
}

#define assert_fails(status, message, call) \
  expect_failure((call), status, message, __FILE__, __LINE__)

static inline void expect_failure(spk_status got, spk_status status, const char *message,
                                  const char *file, int line) {
  char told[SPK_MESSAGE_SIZE] = "";
  const spk_status remembered = spk_last_error_copy(told, sizeof told, NULL);
  if (got == status && remembered == status && strcmp(told, message) == 0) return;
  print_error("got      %s: %s\nexpected %s: %s\n", spk_status_string(got),
              got == SPK_OK ? "" : told, spk_status_string(status), message);
  _fail(file, line);
}

/* --- comparisons --------------------------------------------------------------------------- */

/* assert_f32(array, 1, 2, 3) compares as many elements as are listed: bit by bit, but any NaN
 * equals any other. */
#define EXPECTED(type, ...) (const type[]){__VA_ARGS__}, COUNT(((const type[]){__VA_ARGS__}))
#define assert_f32(got, ...) expect_f32(got, EXPECTED(float, __VA_ARGS__), __FILE__, __LINE__)
#define assert_f64(got, ...) expect_f64(got, EXPECTED(double, __VA_ARGS__), __FILE__, __LINE__)
#define assert_i64(got, ...) expect_i64(got, EXPECTED(int64_t, __VA_ARGS__), __FILE__, __LINE__)
#define assert_words(got, ...) \
  expect_words(got, EXPECTED(uint16_t, __VA_ARGS__), __FILE__, __LINE__)
#define assert_bytes(got, ...) expect_bytes(got, EXPECTED(uint8_t, __VA_ARGS__), __FILE__, __LINE__)

#define DEFINE_EXPECT(name, type, same, format, shown)                                        \
  static inline void name(const type *got, const type *want, int64_t count, const char *file, \
                          int line) {                                                         \
    for (int64_t i = 0; i < count; ++i) {                                                     \
      if (same(got[i], want[i])) continue;                                                    \
      print_error("element %d: got " format ", expected " format "\n", (int)i, (shown)got[i], \
                  (shown)want[i]);                                                            \
      _fail(file, line);                                                                      \
    }                                                                                         \
  }

#define SAME_NUMBER(a, b) ((a) == (b))
#define SAME_FLOAT(a, b) ((isnan(a) && isnan(b)) || ((a) == (b) && !signbit(a) == !signbit(b)))

DEFINE_EXPECT(expect_f32, float, SAME_FLOAT, "%.9g", double)
DEFINE_EXPECT(expect_f64, double, SAME_FLOAT, "%.17g", double)
DEFINE_EXPECT(expect_i64, int64_t, SAME_NUMBER, "%lld", long long)
DEFINE_EXPECT(expect_words, uint16_t, SAME_NUMBER, "0x%04x", unsigned)
DEFINE_EXPECT(expect_bytes, uint8_t, SAME_NUMBER, "%u", unsigned)

/* |got - want| <= error. */
#define assert_near(got, want, error) expect_near(got, want, error, __FILE__, __LINE__)

static inline void expect_near(double got, double want, double error, const char *file, int line) {
  if (fabs(got - want) <= error) return;
  print_error("got %.17g, expected %.17g +- %g\n", got, want, error);
  _fail(file, line);
}

/* The bits of a float, for what a comparison of values cannot tell. */
static inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Of a number of few bits, which is normal in f16; a NaN is to be told from others. */
static inline uint16_t half_of(double x) {
  const int sign = signbit(x) ? 0x8000 : 0;
  if (isnan(x)) return 0x7d55;
  if (isinf(x)) return (uint16_t)(sign | 0x7c00);
  if (x == 0) return (uint16_t)sign;
  int exponent = 0;
  const double mantissa = frexp(fabs(x), &exponent);
  return (uint16_t)(sign | (exponent + 14) << 10 | (int)((2 * mantissa - 1) * 1024));
}

/* Bytes of an element. */
static inline int64_t size_of(int32_t dtype) {
  return (dtype & 0xff) / 8;
}

/* Numbers of few bits, as they lie in memory. */
static inline void store_numbers(const double *x, int64_t count, int32_t dtype, void *to) {
  for (int64_t i = 0; i < count; ++i) {
    const float f = (float)x[i];
    const uint32_t bits = isnan(x[i]) ? 0x7fa5ffffu : bits_of(f); /* a NaN to be told from others */
    if (dtype == SPK_F64) ((double *)to)[i] = x[i];
    if (dtype == SPK_F32) ((uint32_t *)to)[i] = bits;
    if (dtype == SPK_BF16) ((uint16_t *)to)[i] = (uint16_t)(bits >> 16);
    if (dtype == SPK_F16) ((uint16_t *)to)[i] = half_of(x[i]);
  }
}

/* --- handles ------------------------------------------------------------------------------- */

/* The view of a text form, such as "(2,3):(3,1)+4". */
static inline spk_view *view_of(int32_t dtype, const char *text) {
  spk_view *view = NULL;
  assert_ok(spk_view_parse(dtype, text, &view));
  return view;
}

/* Checks a view's text form; releases it. */
#define assert_view(view, text) expect_view(view, text, __FILE__, __LINE__)

static inline void expect_view(spk_view *view, const char *text, const char *file, int line) {
  char got[1024];
  expect_ok(spk_view_format(view, got, sizeof got, NULL), "spk_view_format", file, line);
  spk_view_release(view);
  if (strcmp(got, text) == 0) return;
  print_error("got view %s, expected %s\n", got, text);
  _fail(file, line);
}

/* Blocks of a shape over the view of a text form; owns its view. */
static inline spk_block *blocks_of(int32_t dtype, const char *text, int32_t ndim,
                                   const int64_t *shape) {
  spk_view *view = view_of(dtype, text);
  spk_block *block = NULL;
  assert_ok(spk_block_create(view, ndim, shape, NULL, &block));
  spk_view_release(view);
  return block;
}

/* Couples two blocks, which it takes over; `orders` as in spk_block_couple. */
static inline spk_block *coupled_blocks(spk_block *first, spk_block *second,
                                        const int32_t *orders) {
  spk_block *members[] = {first, second};
  spk_block *coupling = NULL;
  assert_ok(spk_block_couple(members, 2, orders, NULL, &coupling));
  spk_block_release(first);
  spk_block_release(second);
  return coupling;
}

/* Scopes of a shape over blocks, which it takes over. */
static inline spk_scope *scopes_over(spk_block *block, int32_t ndim, const int64_t *shape) {
  spk_scope *scope = NULL;
  assert_ok(spk_scope_create(block, ndim, shape, NULL, &scope));
  spk_block_release(block);
  return scope;
}

static inline spk_scope *coupled_scopes(spk_scope *first, spk_scope *second,
                                        const int32_t *orders) {
  spk_scope *members[] = {first, second};
  spk_scope *coupling = NULL;
  assert_ok(spk_scope_couple(members, 2, orders, NULL, &coupling));
  spk_scope_release(first);
  spk_scope_release(second);
  return coupling;
}

static inline spk_context *context_with(int32_t executor, int32_t threads) {
  const spk_context_options options = {
      .struct_size = sizeof options, .executor = executor, .threads = threads};
  spk_context *context = NULL;
  assert_ok(spk_context_create(&options, &context));
  return context;
}

/* --- running ------------------------------------------------------------------------------- */

static inline int note_handles(void **state) {
  *state = (void *)(intptr_t)spk_live_handles();
  return 0;
}

static inline int check_handles(void **state) {
  const int64_t before = (int64_t)(intptr_t)*state;
  if (spk_live_handles() == before) return 0;
  print_error("%lld handles were not released\n", (long long)(spk_live_handles() - before));
  return -1;
}

/* A test that has to release all it creates. */
#define TEST(name) cmocka_unit_test_setup_teardown(name, note_handles, check_handles)

/* The exit code of a test program. */
static inline int exit_code(int failed) {
  const long long live = spk_live_handles();
  if (live != 0) print_error("%lld handles are alive at the end of the program\n", live);
  return failed != 0 || live != 0;
}

#endif
