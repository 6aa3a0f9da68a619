/* Soft thresholding of single elements: floats of all magnitudes and near their thresholds, against
 * the definition in doubles. */
#include <float.h>
#include <stdlib.h>

#include "support.h"

/* Runs are longer than registers: one element that is hard to round must not hide others. */
enum { kCount = 4099, kRun = 64 };

/* SplitMix64 */
static uint64_t next_bits(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* w max(0, 1 - t / (|w| + eps)), every step a double, rounded once to a float. */
static float shrunk(float w, double threshold, double eps) {
  const double norm = fabs((double)w);
  if (isnan(w)) return w;
  if (norm <= threshold) return 0.0f;
  if (isinf(w)) return w;
  const double sum = norm + eps;
  return (float)(w * ((sum - threshold) / sum));
}

/* Elements that follow each other, or, if `apart`, each second one. */
static void check(const float *weights, int64_t count, spk_buffer thresholds, double eps,
                  bool apart) {
  const int64_t step = apart ? 2 : 1;
  spk_view *view = NULL;
  spk_block *block = NULL;
  assert_ok(spk_view_create(SPK_F32, 1, &count, &step, 0, &view));
  assert_ok(spk_block_create(view, 0, NULL, NULL, &block));
  static float x[2 * kCount];
  for (int64_t i = 0; i < count; ++i) x[i * step] = weights[i];
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = eps;
  spk_report report = {.struct_size = sizeof report};
  assert_ok(
      spk_block_soft_threshold(NULL, block, &F32(x), NULL, 1, &thresholds, &options, &report));
  const double used_eps = eps < 0 ? FLT_EPSILON : eps;
  int64_t alive = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = thresholds.numel == 1 ? 0 : i;
    const double threshold = thresholds.dtype == SPK_F64 ? ((const double *)thresholds.data)[at]
                                                         : ((const float *)thresholds.data)[at];
    const float want = shrunk(weights[i], threshold, used_eps);
    alive += !(fabs((double)weights[i]) <= threshold);
    if (bits_of(x[i * step]) == bits_of(want)) continue;
    print_error("%a by %a, eps %a: got %a, expected %a\n", weights[i], threshold, used_eps,
                x[i * step], want);
    fail();
  }
  assert_int_equal(report.achieved, alive);
  spk_block_release(block);
  spk_view_release(view);
}

/* 0x1p-80 and 0x1p80 are the ends of what floats are asked for. */
static const double kEps[] = {-1,      0,       0x1p-149, 0x1p-90, 0x1p-80, 0x1p-79, 1e-12,
                              0x1p-30, 0x1p-10, 1,        1e6,     0x1p80,  0x1p81,  DBL_MAX};

static void check_all(const float *weights, spk_buffer thresholds) {
  for (int64_t e = 0; e < COUNT(kEps); ++e) {
    check(weights, kCount, thresholds, kEps[e], false);
    check(weights, kCount, thresholds, kEps[e], true);
  }
}

static void floats_of_any_bits(void **state) {
  (void)state;
  uint64_t random = 1;
  static float weights[kCount];
  static float thresholds[kCount];
  for (int64_t i = 0; i < kCount; ++i) {
    weights[i] = float_of((uint32_t)next_bits(&random));
    thresholds[i] = fabsf(float_of((uint32_t)next_bits(&random)));
    if (isnan(thresholds[i])) thresholds[i] = INFINITY;
  }
  check_all(weights, F32(thresholds));
}

static double uniform(uint64_t *random) {
  return (double)(next_bits(random) >> 11) * 0x1p-53;
}

/* From a few units of the last place to a few powers of two away, at all exponents. */
static void floats_near_their_thresholds(void **state) {
  (void)state;
  enum { kInfinityBits = 0x7f800000 };
  uint64_t random = 2;
  static float weights[kCount];
  static float thresholds[kCount];
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t bits = (int64_t)(next_bits(&random) % kInfinityBits);
    const int64_t away = (int64_t)exp2(26 * uniform(&random)) - 4;
    const uint32_t sign = (uint32_t)(next_bits(&random) >> 63) << 31;
    const int64_t near = bits + away < 0 ? 0 : bits + away;
    thresholds[i] = float_of((uint32_t)bits);
    weights[i] = float_of((uint32_t)(near < kInfinityBits ? near : kInfinityBits) | sign);
  }
  check_all(weights, F32(thresholds));
}

/* Thresholds after which the exact result of one element lies in the middle of two floats, or as
 * near to it as doubles come. Its neighbours are no harder to round than any. */
static void results_in_the_middle_of_two_floats(void **state) {
  (void)state;
  static const double eps_of_size[] = {0, 0x1p-24, 0x1p-12, 1, 0x1p12};
  uint64_t random = 6;
  for (int i = 0; i < 50000; ++i) {
    float weights[16];
    const int exponent = (int)(next_bits(&random) % 60) - 30;
    for (int64_t k = 0; k < COUNT(weights); ++k) {
      weights[k] = (float)ldexp(1 + uniform(&random), exponent);
    }
    const double w = weights[5];
    const double eps = eps_of_size[i % COUNT(eps_of_size)] * ldexp(1, exponent);
    const float below = (float)(w * uniform(&random));
    const double middle = ((double)below + (double)nextafterf(below, INFINITY)) / 2;
    double threshold[] = {(w - middle) * (w + eps) / w};
    const int steps = (int)(next_bits(&random) % 9) - 4;
    for (int k = 0; k < abs(steps); ++k) {
      threshold[0] = nextafter(threshold[0], steps < 0 ? 0 : INFINITY);
    }
    if (threshold[0] >= 0) check(weights, COUNT(weights), F64(threshold), eps, false);
  }
}

/* Numbers of few bits: what lies between two floats is there often, and zeros of both signs. */
static void floats_of_few_bits(void **state) {
  (void)state;
  uint64_t random = 3;
  static float weights[kCount];
  static float thresholds[kCount];
  for (int64_t i = 0; i < kCount; ++i) {
    const int shift = (int)(next_bits(&random) % 30);
    weights[i] = ldexpf((float)(next_bits(&random) % 33) - 16, -(shift % 3));
    thresholds[i] = ldexpf((float)(next_bits(&random) % 5), -shift);
    if (next_bits(&random) % 8 == 0) weights[i] = -0.0f;
  }
  check_all(weights, F32(thresholds));
}

/* Half a unit of the last place away from a float, and a little more and less. */
static void one_double_for_all(void **state) {
  (void)state;
  uint64_t random = 4;
  static float weights[kCount];
  const double thresholds[] = {
      0,     -0.0,           0.02,         1 + 0x1p-24,  1 + 0x1p-24 - 0x1p-50,
      0.1,   1 - 0x1p-25,    0x1p-130 / 3, 0x1p-149 / 2, 0x1p-200,
      1e300, 0x1.ffffffp127, INFINITY,     0x1p-80 / 3,  0x1p100 / 3};
  for (int64_t t = 0; t < COUNT(thresholds); ++t) {
    const float nearest = (float)fmin(thresholds[t], FLT_MAX);
    for (int64_t i = 0; i < kCount; ++i) {
      const int64_t bits =
          (int64_t)bits_of(fabsf(nearest)) + (int64_t)(next_bits(&random) % 64) - 8;
      const uint32_t sign = (uint32_t)(next_bits(&random) >> 63) << 31;
      weights[i] = float_of((uint32_t)(bits < 0 ? 0 : bits) | sign);
      if (i / kRun % 3 == 0) weights[i] = (float)(2 * uniform(&random) - 1);
      if (i % 61 == 0) weights[i] = nearest; /* alone among them */
    }
    double one[] = {thresholds[t]};
    check_all(weights, F64(one));
    float one_float[] = {nearest};
    check_all(weights, F32(one_float));
  }
}

/* At magnitudes around 1, and around those at which floats begin and cease to tell. */
static void thresholds_of_the_magnitude_of_elements(void **state) {
  (void)state;
  uint64_t random = 5;
  static const int exponents[] = {0, -6, -20, -40, -79, -100, -130, 40, 79, 81, 126};
  static float weights[kCount];
  static float floats[kCount];
  static double doubles[kCount];
  for (int64_t e = 0; e < COUNT(exponents); ++e) {
    for (int64_t i = 0; i < kCount; ++i) {
      weights[i] = (float)ldexp(2 * uniform(&random) - 1, exponents[e]);
      doubles[i] = ldexp(uniform(&random) / 2, exponents[e]);
      floats[i] = (float)doubles[i];
    }
    check_all(weights, F32(floats));
    check_all(weights, F64(doubles));
  }
}

/* --- one threshold for elements in any order of memory --- */

enum { kRows = 4, kCols = 15, kElements = kRows * kCols, kMemory = 80 };

typedef struct {
  int64_t stride[2], offset;
} Order;

static int64_t place_of(const Order *order, int64_t element) {
  return order->offset + element / kCols * order->stride[0] + element % kCols * order->stride[1];
}

static float thresholded(float x, double threshold, bool soft) {
  if (soft) return shrunk(x, threshold, FLT_EPSILON);
  return fabs((double)x) < threshold ? 0.0f : x;
}

typedef enum { kInPlace, kIntoDense, kIntoAlike, kDestinations } Destination;

/* In place, or into an array in the order of the view, or one that lies as x does. */
static void check_order(const Order *order, bool soft, Destination to, uint64_t *random) {
  const int64_t shape[] = {kRows, kCols};
  double threshold[] = {0.4};
  float x[kMemory], want[kMemory], dense[kElements], want_dense[kElements];
  float alike[kMemory], want_alike[kMemory];
  for (int64_t i = 0; i < kMemory; ++i) {
    x[i] = want[i] = (float)(2 * uniform(random) - 1);
    alike[i] = want_alike[i] = 7;
  }
  int64_t alive = 0;
  for (int64_t i = 0; i < kElements; ++i) {
    const int64_t at = place_of(order, i);
    want_dense[i] = want_alike[at] = thresholded(x[at], threshold[0], soft);
    alive += want_dense[i] != 0;
    if (to == kInPlace) want[at] = want_dense[i];
  }
  spk_view *view = NULL;
  spk_block *block = NULL;
  spk_report report = {.struct_size = sizeof report};
  assert_ok(spk_view_create(SPK_F32, 2, shape, order->stride, order->offset, &view));
  assert_ok(spk_block_create(view, 0, NULL, NULL, &block));
  const spk_buffer *into = to == kIntoDense   ? &CONTIGUOUS(dense, SPK_F32)
                           : to == kIntoAlike ? &F32(alike)
                                              : NULL;
  assert_ok(
      soft ? spk_block_soft_threshold(NULL, block, &F32(x), into, 1, &F64(threshold), NULL, &report)
           : spk_block_hard_threshold(NULL, block, &F32(x), into, 1, &F64(threshold), NULL,
                                      &report));
  assert_int_equal(report.achieved, alive);
  assert_memory_equal(x, want, sizeof x);
  if (to == kIntoDense) assert_memory_equal(dense, want_dense, sizeof dense);
  if (to == kIntoAlike) assert_memory_equal(alike, want_alike, sizeof alike);
  spk_block_release(block);
  spk_view_release(view);
}

static void one_threshold_in_any_order_of_memory(void **state) {
  (void)state;
  static const Order orders[] = {{{15, 1}, 2},   {{1, 4}, 3},    {{-1, 4}, 10},  {{1, -4}, 58},
                                 {{15, -1}, 16}, {{-15, 1}, 47}, {{-1, -4}, 61}, {{16, 1}, 5},
                                 {{1, 5}, 1},    {{-16, 1}, 60}, {{19, 1}, 0}};
  uint64_t random = 6;
  for (int64_t i = 0; i < COUNT(orders); ++i) {
    for (int to = 0; to < kDestinations; ++to) {
      check_order(&orders[i], true, (Destination)to, &random);
      check_order(&orders[i], false, (Destination)to, &random);
    }
  }
}

/* So many that they are several runs: 1, 2, 3, ... in columns, from the end of memory on. */
static void many_elements_in_columns_backwards(void **state) {
  (void)state;
  enum { kMany = 300 * 200 };
  static float x[kMany];
  for (int i = 0; i < kMany; ++i) x[i] = (float)(kMany - i);
  double threshold[] = {1000};
  spk_block *block = blocks_of(SPK_F32, "(300,200):(-1,-300)+59999", NO_DIMS);
  spk_report report = {.struct_size = sizeof report};
  assert_ok(
      spk_block_hard_threshold(NULL, block, &F32(x), NULL, 1, &F64(threshold), NULL, &report));
  assert_int_equal(report.achieved, kMany - 999);
  for (int i = 0; i < kMany; ++i) {
    assert_true(x[i] == (kMany - i >= 1000 ? (float)(kMany - i) : 0.0f));
  }
  spk_block_release(block);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(one_threshold_in_any_order_of_memory),
      TEST(many_elements_in_columns_backwards),
      TEST(floats_of_any_bits),
      TEST(floats_near_their_thresholds),
      TEST(results_in_the_middle_of_two_floats),
      TEST(floats_of_few_bits),
      TEST(one_double_for_all),
      TEST(thresholds_of_the_magnitude_of_elements),
  };
  return exit_code(cmocka_run_group_tests_name("soft_elements", tests, NULL, NULL));
}
