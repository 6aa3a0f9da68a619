/* Selection in scopes of more blocks than are ranked at once: against a plain sort, for every dtype,
 * for data that is easy to guess from a sample and data that is not, in views of all kinds. */
#include <stdlib.h>

#include "support.h"

/* --- data ---------------------------------------------------------------------------------- */

enum data {
  kAnyBits,    /* NaN and infinities, zeros of either sign, subnormals */
  kSpecial,    /* few of these */
  kThree,      /* three magnitudes */
  kClusters,   /* a few neighbours at each of seven far apart */
  kHalfZero,   /* as if pruned before */
  kEqual,      /* all the same */
  kRising,     /* sorted */
  kPeak,       /* rising, then falling */
  kStretches,  /* runs of equal elements as long as a line of the cache */
  kKindsOfData /* how many */
};

static uint64_t random_state = 1;

static uint64_t random_bits(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state * 0x2545f4914f6cdd1d;
}

static uint64_t infinity_of(int32_t dtype) {
  if (dtype == SPK_F64) return 0x7ff0000000000000;
  if (dtype == SPK_F32) return 0x7f800000;
  return dtype == SPK_F16 ? 0x7c00 : 0x7f80;
}

static uint64_t word_at(const void *data, int32_t dtype, int64_t i) {
  uint64_t word = 0;
  memcpy(&word, (const char *)data + i * size_of(dtype), (size_t)size_of(dtype));
  return word;
}
static void put_word(void *data, int32_t dtype, int64_t i, uint64_t word) {
  memcpy((char *)data + i * size_of(dtype), &word, (size_t)size_of(dtype));
}

static double magnitude_of(int32_t dtype, uint64_t word) {
  double number;
  if (dtype == SPK_F64) {
    memcpy(&number, &word, sizeof number);
    return fabs(number);
  }
  if (dtype != SPK_F16) {
    return fabs((double)float_of((uint32_t)(dtype == SPK_BF16 ? word << 16 : word)));
  }
  const int exponent = (int)(word >> 10 & 31);
  const double mantissa = (double)(word & 1023);
  if (exponent == 31) return mantissa != 0 ? (double)NAN : (double)INFINITY;
  return exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
}

static uint64_t special_word(int32_t dtype) {
  const uint64_t infinity = infinity_of(dtype);
  const uint64_t words[] = {0, 1, infinity - 1, infinity, infinity + 1, infinity + 5};
  return words[random_bits() % 6];
}

/* About i / n of a number. */
static uint64_t share_of(uint64_t number, int64_t i, int64_t n) {
  return number < UINT32_MAX ? number * (uint64_t)i / (uint64_t)n
                             : number / (uint64_t)n * (uint64_t)i;
}

/* The magnitude of element `i` of `n`; the sign is drawn. */
static uint64_t magnitude_bits(enum data kind, int32_t dtype, int64_t i, int64_t n) {
  const uint64_t infinity = infinity_of(dtype);
  switch (kind) {
    case kAnyBits:
      return random_bits() >> (64 - 8 * size_of(dtype)) &
             ~((uint64_t)1 << (8 * size_of(dtype) - 1));
    case kSpecial:
      return special_word(dtype);
    case kThree:
      return infinity / 3 + random_bits() % 3;
    case kClusters:
      return random_bits() % 7 * (infinity / 7) + random_bits() % 4;
    case kHalfZero:
      return random_bits() % 2 ? infinity / 2 + random_bits() % (infinity / 8) : 0;
    case kEqual:
      return infinity / 2;
    case kRising:
      return share_of(infinity, i, n);
    case kPeak:
      return share_of(infinity, i < n / 2 ? i : n - i, n);
    default:
      return share_of(infinity, i / 16 * 7919 % n, n);
  }
}

static void fill(void *data, int32_t dtype, enum data kind, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t sign = (random_bits() >> 40 & 1) << (8 * size_of(dtype) - 1);
    put_word(data, dtype, i, magnitude_bits(kind, dtype, i, n) | sign);
  }
}

/* --- what is right ------------------------------------------------------------------------- */

struct ranked {
  double score;
  int64_t position;
};

static int compare_scores(double a, double b) {
  if (isnan(a) || isnan(b)) return (isnan(b) != 0) - (isnan(a) != 0);
  return (b > a) - (b < a);
}
static int compare_ranked(const void *a, const void *b) {
  const struct ranked *x = a;
  const struct ranked *y = b;
  const int by_score = compare_scores(x->score, y->score);
  return by_score != 0 ? by_score : (x->position > y->position) - (x->position < y->position);
}

/* A scope, ranked. */
struct order {
  struct ranked *ranked;
  int64_t n;
};

static struct order order_of(const double *scores, int64_t n) {
  struct order order = {malloc((size_t)n * sizeof(struct ranked)), n};
  for (int64_t i = 0; i < n; ++i) order.ranked[i] = (struct ranked){scores[i], i};
  qsort(order.ranked, (size_t)n, sizeof *order.ranked, compare_ranked);
  return order;
}

static bool cut_is_tied(const struct order *order, int64_t k) {
  return k > 0 && k < order->n &&
         compare_scores(order->ranked[k - 1].score, order->ranked[k].score) == 0;
}

/* Keep bytes by position; adds to the counts. */
static void expect_top(const struct order *order, int64_t k, int32_t ties, uint8_t *keep,
                       spk_report *report) {
  const bool tied = cut_is_tied(order, k);
  int64_t equal = 0;
  report->total += order->n;
  report->requested += k;
  for (int64_t i = 0; i < order->n; ++i) {
    const bool is_tied =
        tied && compare_scores(order->ranked[i].score, order->ranked[k - 1].score) == 0;
    const bool kept = i < k || (is_tied && ties == SPK_TIES_KEEP_ALL);
    keep[order->ranked[i].position] = kept;
    report->achieved += kept;
    equal += is_tied;
  }
  report->ties += equal;
}

/* --- views --------------------------------------------------------------------------------- */

/* A view of a buffer of `span` elements, and how scopes cut it. */
struct shape {
  int32_t ndim;
  int64_t shape[3];
  int64_t stride[3];
  int64_t offset;
  int64_t span;
  int64_t scope[3];
};

struct subject {
  int32_t dtype;
  struct shape shape;
  spk_scope *scope;
  int64_t scopes, n, bytes;
  int64_t *element; /* [scope][position] */
  char *original, *data, *into;
};

static int64_t product(const int64_t *values, int32_t n) {
  int64_t result = 1;
  for (int32_t d = 0; d < n; ++d) result *= values[d];
  return result;
}

/* Where element `position` of scope `number` lies. */
static int64_t place_of(const struct shape *s, int64_t number, int64_t position) {
  int64_t place = s->offset;
  for (int32_t d = s->ndim - 1; d >= 0; --d) {
    const int64_t scopes = s->shape[d] / s->scope[d];
    place += (number % scopes * s->scope[d] + position % s->scope[d]) * s->stride[d];
    number /= scopes;
    position /= s->scope[d];
  }
  return place;
}

static struct subject new_subject(int32_t dtype, struct shape shape) {
  struct subject s = {.dtype = dtype, .shape = shape};
  spk_view *view = NULL;
  spk_block *block = NULL;
  assert_ok(spk_view_create(dtype, shape.ndim, shape.shape, shape.stride, shape.offset, &view));
  assert_ok(spk_block_create(view, NO_DIMS, NULL, &block));
  spk_view_release(view);
  s.scope = scopes_over(block, shape.ndim, shape.scope);
  s.n = product(shape.scope, shape.ndim);
  s.scopes = product(shape.shape, shape.ndim) / s.n;
  s.bytes = shape.span * size_of(dtype);
  s.element = malloc((size_t)(s.scopes * s.n) * sizeof *s.element);
  for (int64_t i = 0; i < s.scopes * s.n; ++i) s.element[i] = place_of(&shape, i / s.n, i % s.n);
  s.original = malloc((size_t)s.bytes);
  s.data = malloc((size_t)s.bytes);
  s.into = malloc((size_t)s.bytes);
  return s;
}

static void free_subject(struct subject *s) {
  spk_scope_release(s->scope);
  free(s->element);
  free(s->original);
  free(s->data);
  free(s->into);
}

static spk_buffer buffer_of(const struct subject *s, char *data) {
  return (spk_buffer){data, s->shape.span, s->dtype, SPK_LAYOUT_VIEW, NULL};
}

static spk_report no_report(void) {
  return (spk_report){sizeof(spk_report), 0, 0, 0, 0, 0};
}

static void assert_report(const spk_report *got, const spk_report *want) {
  assert_i64(&got->total, want->total, want->requested, want->achieved, want->ties, 0);
}

/* The bytes that pruning should leave in a buffer that held `before`. */
static char *pruned(const struct subject *s, const uint8_t *keep, const char *before) {
  char *want = malloc((size_t)s->bytes);
  memcpy(want, before, (size_t)s->bytes);
  for (int64_t i = 0; i < s->scopes * s->n; ++i) {
    const uint64_t word = word_at(s->original, s->dtype, s->element[i]);
    put_word(want, s->dtype, s->element[i], keep[i] ? word : 0);
  }
  return want;
}

/* NULL is the default: the more threads, the more is collected, and the less is sampled. */
static spk_context *context;

static void check_keep_top(const struct subject *s, const struct order *orders, int64_t k,
                           int32_t ties, bool elsewhere) {
  const spk_select_options options = {.struct_size = sizeof options, .ties = ties};
  uint8_t *keep = malloc((size_t)(s->scopes * s->n));
  spk_report want = no_report();
  for (int64_t i = 0; i < s->scopes; ++i) expect_top(orders + i, k, ties, keep + i * s->n, &want);
  memcpy(s->data, s->original, (size_t)s->bytes);
  memset(s->into, 0x5a, (size_t)s->bytes);
  char *result = elsewhere ? s->into : s->data;
  char *expected = pruned(s, keep, result);
  const spk_buffer leaf = buffer_of(s, s->data);
  const spk_buffer into = buffer_of(s, s->into);
  spk_report report = no_report();
  assert_ok(spk_scope_keep_top(context, s->scope, &leaf, elsewhere ? &into : NULL, 1, &k, 1,
                               &options, &report));
  assert_report(&report, &want);
  assert_memory_equal(result, expected, s->bytes);
  if (elsewhere) assert_memory_equal(s->data, s->original, s->bytes);
  free(expected);
  free(keep);
}

static double scalar_of(const void *score, int32_t dtype, int64_t i) {
  return dtype == SPK_F64 ? ((const double *)score)[i] : (double)((const float *)score)[i];
}

static void check_kth(const struct subject *s, const struct order *orders, int64_t k) {
  const int32_t dtype = spk_scope_score_dtype(s->scope);
  const spk_buffer leaf = buffer_of(s, s->original);
  const spk_score_source source = {.struct_size = sizeof source, .values = &leaf};
  double *scores = malloc((size_t)s->scopes * sizeof(double));
  const spk_buffer out = {scores, s->scopes, dtype, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_scope_kth_largest(NULL, s->scope, &source, 1, &k, 1, &out));
  for (int64_t i = 0; i < s->scopes; ++i) {
    assert_int_equal(compare_scores(scalar_of(scores, dtype, i), orders[i].ranked[k - 1].score), 0);
  }
  if (k < s->n) {
    assert_ok(spk_scope_kth_mid(NULL, s->scope, &source, 1, &k, 1, 1, &out));
    for (int64_t i = 0; i < s->scopes; ++i) {
      const double mid = scalar_of(scores, dtype, i);
      const double high = orders[i].ranked[k - 1].score;
      const double low = orders[i].ranked[k].score;
      if (cut_is_tied(orders + i, k)) {
        assert_int_equal(compare_scores(mid, high), 0);
      } else if (isnan(high)) {
        assert_true(isinf(mid) && mid > 0);
      } else {
        assert_true(compare_scores(high, mid) <= 0 && compare_scores(mid, low) < 0);
      }
    }
  }
  free(scores);
}

static void check_masks(const struct subject *s, const struct order *orders, int64_t k) {
  const spk_buffer leaf = buffer_of(s, s->original);
  const spk_score_source source = {.struct_size = sizeof source, .values = &leaf};
  uint8_t *keep = malloc((size_t)(s->scopes * s->n));
  uint8_t *masks = malloc((size_t)(s->scopes * s->n));
  const spk_buffer mask = {masks, s->scopes * s->n, SPK_U8, SPK_LAYOUT_VIEW, NULL};
  spk_report want = no_report();
  spk_report report = no_report();
  for (int64_t i = 0; i < s->scopes; ++i) {
    expect_top(orders + i, k, SPK_TIES_BY_POSITION, keep + i * s->n, &want);
  }
  assert_ok(
      spk_scope_get_masks(NULL, s->scope, &source, &k, 1, SPK_TIES_BY_POSITION, &mask, 1, &report));
  assert_report(&report, &want);
  /* Masks lie as the view's shape does. */
  struct shape flat = s->shape;
  flat.offset = 0;
  int64_t stride = 1;
  for (int32_t d = flat.ndim - 1; d >= 0; stride *= flat.shape[d--]) flat.stride[d] = stride;
  for (int64_t i = 0; i < s->scopes * s->n; ++i) {
    if (masks[place_of(&flat, i / s->n, i % s->n)] != keep[i]) fail();
  }
  free(masks);
  free(keep);
}

static struct order *orders_of(const struct subject *s) {
  struct order *orders = malloc((size_t)s->scopes * sizeof *orders);
  double *scores = malloc((size_t)s->n * sizeof(double));
  for (int64_t i = 0; i < s->scopes; ++i) {
    for (int64_t p = 0; p < s->n; ++p) {
      scores[p] = magnitude_of(s->dtype, word_at(s->original, s->dtype, s->element[i * s->n + p]));
    }
    orders[i] = order_of(scores, s->n);
  }
  free(scores);
  return orders;
}

static void check_data(struct subject *s, enum data kind) {
  fill(s->original, s->dtype, kind, s->shape.span);
  struct order *orders = orders_of(s);
  const int64_t n = s->n;
  const int64_t counts[] = {n / 10, n / 2, n - 1, 0, 1, n / 2 + 1, n};
  const int64_t tried = n > 100000 ? 3 : COUNT(counts);
  for (int64_t i = 0; i < tried; ++i) {
    check_keep_top(s, orders, counts[i], SPK_TIES_BY_POSITION, i % 2);
    if (i % 3 == 0) check_keep_top(s, orders, counts[i], SPK_TIES_KEEP_ALL, i % 2 == 0);
    if (counts[i] > 0) check_kth(s, orders, counts[i]);
  }
  check_masks(s, orders, n / 3);
  for (int64_t i = 0; i < s->scopes; ++i) free(orders[i].ranked);
  free(orders);
}

static void check_shape(struct shape shape, int32_t dtype) {
  struct subject s = new_subject(dtype, shape);
  for (int kind = 0; kind < kKindsOfData; ++kind) check_data(&s, (enum data)kind);
  free_subject(&s);
}

static const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};

static void check_all_dtypes(struct shape shape) {
  for (int64_t i = 0; i < COUNT(dtypes); ++i) check_shape(shape, dtypes[i]);
}

/* `scopes` rows of `n` elements, with some that are not the view's around and between. */
static struct shape rows(int64_t scopes, int64_t n) {
  return (struct shape){2, {scopes, n}, {n + 5, 1}, 3, 3 + scopes * (n + 5) + 9, {1, n}};
}

static void rows_of_few_dozen(void **state) {
  (void)state;
  for (int64_t n = 33; n < 140; n += 7) check_all_dtypes(rows(3, n));
}
static void rows_around_where_guesses_begin(void **state) {
  (void)state;
  for (int64_t n = 510; n < 515; ++n) check_all_dtypes(rows(3, n));
}
static void rows_of_some_thousand(void **state) {
  (void)state;
  check_all_dtypes(rows(5, 1000));
  check_all_dtypes(rows(3, 4096));
  check_all_dtypes(rows(2, 4099));
}
static void rows_of_65536(void **state) {
  (void)state;
  check_all_dtypes(rows(1, 65536));
}

static void columns(void **state) {
  (void)state;
  check_all_dtypes((struct shape){2, {300, 70}, {70, 1}, 0, 300 * 70, {300, 1}});
  check_all_dtypes((struct shape){2, {300, 70}, {-71, 1}, 299 * 71 + 2, 300 * 71 + 2, {150, 2}});
  /* Fewer than fill registers, and a rest of rows. */
  for (int64_t n = 1; n <= 18; ++n) {
    check_all_dtypes((struct shape){2, {67, n}, {n + 3, 1}, 2, 67 * (n + 3) + 4, {67, 1}});
  }
}
static void rows_read_backwards(void **state) {
  (void)state;
  check_all_dtypes((struct shape){2, {4, 500}, {500, -1}, 499, 2000, {1, 500}});
}
static void permuted_boxes(void **state) {
  (void)state;
  check_all_dtypes((struct shape){3, {12, 30, 20}, {1, 240, 12}, 0, 7200, {6, 15, 4}});
}

/* Scopes that are too large to be one thread's: they are read in chunks. */
static void a_tensor_in_chunks(void **state) {
  (void)state;
  check_all_dtypes((struct shape){1, {70001}, {1}, 2, 70009, {70001}});
}
/* More than is collected: the cut is guessed from a sample. */
static void a_tensor_that_is_sampled(void **state) {
  (void)state;
  const struct shape shape = {2, {700, 801}, {803, 1}, 5, 700 * 803 + 11, {700, 801}};
  check_shape(shape, SPK_F32);
  check_shape(shape, SPK_F16);
  check_shape((struct shape){1, {560001}, {1}, 0, 560001, {560001}}, SPK_F64);
  check_shape((struct shape){1, {560001}, {1}, 0, 560001, {560001}}, SPK_BF16);
}
/* Neighbours in memory are equal: a sample by lines tells less than it seems to, and misleads. */
static void a_tensor_of_which_samples_mislead(void **state) {
  (void)state;
  const int64_t n = 1200000;
  context = context_with(SPK_EXECUTOR_SERIAL, 1);
  for (int64_t i = 0; i < COUNT(dtypes); ++i) {
    struct subject s = new_subject(dtypes[i], (struct shape){1, {n}, {1}, 0, n, {n}});
    fill(s.original, s.dtype, kStretches, n);
    struct order *orders = orders_of(&s);
    for (int64_t k = n / 20; k < n; k += n / 5 + 1) {
      check_keep_top(&s, orders, k, SPK_TIES_BY_POSITION, false);
    }
    free(orders->ranked);
    free(orders);
    free_subject(&s);
  }
  spk_context_release(context);
  context = NULL;
}
static void a_permuted_tensor(void **state) {
  (void)state;
  const struct shape shape = {2, {500, 600}, {1, -501}, 599 * 501 + 7, 600 * 501 + 20, {500, 600}};
  for (int64_t i = 0; i < COUNT(dtypes); ++i) {
    struct subject s = new_subject(dtypes[i], shape);
    check_data(&s, kThree);
    check_data(&s, kAnyBits);
    check_data(&s, kHalfZero);
    free_subject(&s);
  }
}

/* --- scores of other kinds ----------------------------------------------------------------- */

/* Checks masks of the only scope against scores that are known; `at` tells where the mask of each
 * position is. */
static void check_masks_of(const spk_scope *scope, const spk_score_source *source, int32_t nleaves,
                           const double *scores, const spk_buffer *masks,
                           const uint8_t *const *at) {
  const int64_t n = spk_scope_numblk_per_scope(scope);
  const struct order order = order_of(scores, n);
  const int64_t counts[] = {1, n / 7, n / 2, n - 1};
  uint8_t *keep = malloc((size_t)n);
  for (int64_t i = 0; i < COUNT(counts); ++i) {
    const int32_t ties = i % 2 ? SPK_TIES_BY_POSITION : SPK_TIES_KEEP_ALL;
    spk_report want = no_report();
    spk_report report = no_report();
    expect_top(&order, counts[i], ties, keep, &want);
    assert_ok(
        spk_scope_get_masks(NULL, scope, source, counts + i, 1, ties, masks, nleaves, &report));
    assert_report(&report, &want);
    for (int64_t p = 0; p < n; ++p) {
      if (*at[p] != keep[p]) fail();
    }
  }
  free(keep);
  free(order.ranked);
}

static double *random_numbers(int64_t n, int64_t distinct) {
  double *numbers = malloc((size_t)n * sizeof *numbers);
  for (int64_t i = 0; i < n; ++i) {
    numbers[i] = (double)(random_bits() % (uint64_t)distinct) - (double)(distinct / 3);
    if (random_bits() % 1000 == 0) numbers[i] = NAN;
    if (random_bits() % 1000 == 1) numbers[i] = -0.0;
    if (random_bits() % 1000 == 2) numbers[i] = -INFINITY;
  }
  return numbers;
}

static const uint8_t **places_in(const uint8_t *masks, int64_t n) {
  const uint8_t **at = malloc((size_t)n * sizeof *at);
  for (int64_t i = 0; i < n; ++i) at[i] = masks + i;
  return at;
}

static void check_scores(int32_t dtype, int64_t n, int64_t distinct) {
  double *scores = random_numbers(n, distinct);
  float *rounded = malloc((size_t)n * sizeof *rounded);
  for (int64_t i = 0; i < n; ++i) rounded[i] = (float)scores[i];
  uint8_t *masks = malloc((size_t)n);
  const uint8_t **at = places_in(masks, n);
  const spk_buffer mask = {masks, n, SPK_U8, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer array = {dtype == SPK_F64 ? (void *)scores : (void *)rounded, n, dtype,
                            SPK_LAYOUT_VIEW, NULL};
  const spk_score_source source = {.struct_size = sizeof source, .scores = &array};
  spk_view *view = NULL;
  spk_block *block = NULL;
  assert_ok(spk_view_create(dtype, DIMS(n), NULL, 0, &view));
  assert_ok(spk_block_create(view, NO_DIMS, NULL, &block));
  spk_view_release(view);
  spk_scope *scope = scopes_over(block, NO_DIMS);
  check_masks_of(scope, &source, 1, scores, &mask, at);
  spk_scope_release(scope);
  free(at);
  free(masks);
  free(rounded);
  free(scores);
}

static void scores_of_either_sign(void **state) {
  (void)state;
  const int64_t sizes[] = {33, 2000, 65537, 300000};
  for (int64_t i = 0; i < COUNT(sizes); ++i) {
    check_scores(SPK_F32, sizes[i], 1 << 24);
    check_scores(SPK_F32, sizes[i], 9);
    check_scores(SPK_F64, sizes[i], 1 << 30);
    check_scores(SPK_F64, sizes[i], 9);
  }
}

/* Doubles that are different, but not as floats, which is what they are ranked as. */
static void values_are_rounded_to_scores(void **state) {
  (void)state;
  const int64_t sizes[] = {100, 80000};
  for (int64_t i = 0; i < COUNT(sizes); ++i) {
    const int64_t n = sizes[i];
    double *values = malloc((size_t)n * sizeof *values);
    double *scores = malloc((size_t)n * sizeof *scores);
    uint8_t *masks = malloc((size_t)n);
    const uint8_t **at = places_in(masks, n);
    for (int64_t p = 0; p < n; ++p) {
      values[p] = -1 - (double)(random_bits() % 1024) * 0x1p-26;
      scores[p] = fabs((double)(float)values[p]);
    }
    const spk_buffer mask = {masks, n, SPK_U8, SPK_LAYOUT_VIEW, NULL};
    const spk_buffer buffer = {values, n, SPK_F64, SPK_LAYOUT_VIEW, NULL};
    const spk_score_source source = {.struct_size = sizeof source, .values = &buffer};
    spk_view *view = NULL;
    spk_block *block = NULL;
    assert_ok(spk_view_create(SPK_F32, DIMS(n), NULL, 0, &view));
    assert_ok(spk_block_create(view, NO_DIMS, NULL, &block));
    spk_view_release(view);
    spk_scope *scope = scopes_over(block, NO_DIMS);
    check_masks_of(scope, &source, 1, scores, &mask, at);
    spk_scope_release(scope);
    free(at);
    free(masks);
    free(scores);
    free(values);
  }
}

/* Blocks of a matrix, by norms as spk_block_norms gives them. */
static void check_norms(int64_t height, int64_t width, int64_t block_rows, int64_t block_cols) {
  const int64_t numel = height * width;
  const int64_t n = numel / (block_rows * block_cols);
  const int64_t across = width / block_cols;
  float *x = malloc((size_t)numel * sizeof *x);
  float *norms = malloc((size_t)n * sizeof *norms);
  double *scores = malloc((size_t)n * sizeof *scores);
  uint8_t *masks = malloc((size_t)numel);
  const uint8_t **at = malloc((size_t)n * sizeof *at);
  for (int64_t i = 0; i < numel; ++i) x[i] = (float)(random_bits() % 5);
  const spk_buffer leaf = {x, numel, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer out = {norms, n, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer mask = {masks, numel, SPK_U8, SPK_LAYOUT_VIEW, NULL};
  const spk_score_source source = {.struct_size = sizeof source, .values = &leaf};
  spk_view *view = NULL;
  spk_block *block = NULL;
  assert_ok(spk_view_create(SPK_F32, DIMS(height, width), NULL, 0, &view));
  assert_ok(spk_block_create(view, DIMS(block_rows, block_cols), NULL, &block));
  spk_view_release(view);
  assert_ok(spk_block_norms(NULL, block, &leaf, 1, 2, &out));
  for (int64_t i = 0; i < n; ++i) {
    scores[i] = (double)norms[i];
    at[i] = masks + i / across * block_rows * width + i % across * block_cols;
  }
  spk_scope *scope = scopes_over(block, NO_DIMS);
  check_masks_of(scope, &source, 1, scores, &mask, at);
  spk_scope_release(scope);
  free(at);
  free(masks);
  free(scores);
  free(norms);
  free(x);
}

static void norms_of_blocks(void **state) {
  (void)state;
  check_norms(64, 64, 4, 4);
  check_norms(800, 640, 8, 16); /* kept from pass to pass */
  check_norms(1000, 600, 2, 1); /* computed again, of tiles that interleave */
  check_norms(900, 700, 1, 2);  /* and sampled */
}

/* Prunes two leaves, in place, of all that masks of the same count leave out. */
static void check_pruned(const spk_scope *scope, const spk_buffer *leaves,
                         const spk_buffer *masks) {
  const spk_score_source source = {.struct_size = sizeof source, .values = leaves};
  const int64_t k = spk_scope_numblk_per_scope(scope) / 2;
  void *given[2];
  for (int i = 0; i < 2; ++i) {
    const size_t bytes = (size_t)(leaves[i].numel * size_of(leaves[i].dtype));
    given[i] = malloc(bytes);
    memcpy(given[i], leaves[i].data, bytes);
  }
  assert_ok(spk_scope_get_masks(NULL, scope, &source, &k, 1, SPK_TIES_BY_POSITION, masks, 2, NULL));
  assert_ok(spk_scope_keep_top(NULL, scope, leaves, NULL, 2, &k, 1, NULL, NULL));
  for (int i = 0; i < 2; ++i) {
    const uint8_t *stays = masks[i].data;
    for (int64_t e = 0; e < leaves[i].numel; ++e) {
      const uint64_t want = stays[e] ? word_at(given[i], leaves[i].dtype, e) : 0;
      if (word_at(leaves[i].data, leaves[i].dtype, e) != want) fail();
    }
    free(given[i]);
  }
}

/* Two leaves in one scope, of one dtype or of two. */
static void check_coupling(int32_t first, int32_t second, int64_t m, int64_t n) {
  const int32_t two[] = {first, second};
  const int64_t sizes[] = {m, n};
  spk_scope *members[2];
  spk_buffer leaves[2];
  spk_buffer masks[2];
  double *scores = malloc((size_t)(m + n) * sizeof *scores);
  const uint8_t **at = malloc((size_t)(m + n) * sizeof *at);
  int64_t p = 0;
  for (int i = 0; i < 2; ++i) {
    spk_view *view = NULL;
    spk_block *block = NULL;
    assert_ok(spk_view_create(two[i], DIMS(sizes[i]), NULL, 0, &view));
    assert_ok(spk_block_create(view, NO_DIMS, NULL, &block));
    spk_view_release(view);
    members[i] = scopes_over(block, NO_DIMS);
    void *x = malloc((size_t)(sizes[i] * size_of(two[i])));
    uint8_t *mask = malloc((size_t)sizes[i]);
    fill(x, two[i], kSpecial, sizes[i]);
    leaves[i] = (spk_buffer){x, sizes[i], two[i], SPK_LAYOUT_VIEW, NULL};
    masks[i] = (spk_buffer){mask, sizes[i], SPK_U8, SPK_LAYOUT_VIEW, NULL};
    for (int64_t e = 0; e < sizes[i]; ++e, ++p) {
      scores[p] = magnitude_of(two[i], word_at(x, two[i], e));
      at[p] = mask + e;
    }
  }
  const spk_score_source source = {.struct_size = sizeof source, .values = leaves};
  spk_scope *scope = coupled_scopes(members[0], members[1], NULL);
  check_masks_of(scope, &source, 2, scores, masks, at);
  check_pruned(scope, leaves, masks);
  spk_scope_release(scope);
  for (int i = 0; i < 2; ++i) {
    free(leaves[i].data);
    free(masks[i].data);
  }
  free(at);
  free(scores);
}

static void members_of_couplings_compete(void **state) {
  (void)state;
  for (int64_t a = 0; a < COUNT(dtypes); ++a) {
    for (int64_t b = 0; b < COUNT(dtypes); ++b) {
      check_coupling(dtypes[a], dtypes[b], 40, 77);
      check_coupling(dtypes[a], dtypes[b], 70000, 33000);
    }
  }
  check_coupling(SPK_F32, SPK_F32, 200000, 100001);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(rows_of_few_dozen),
      TEST(rows_around_where_guesses_begin),
      TEST(rows_of_some_thousand),
      TEST(rows_of_65536),
      TEST(columns),
      TEST(rows_read_backwards),
      TEST(permuted_boxes),
      TEST(a_tensor_in_chunks),
      TEST(a_tensor_that_is_sampled),
      TEST(a_tensor_of_which_samples_mislead),
      TEST(a_permuted_tensor),
      TEST(scores_of_either_sign),
      TEST(values_are_rounded_to_scores),
      TEST(norms_of_blocks),
      TEST(members_of_couplings_compete),
  };
  return exit_code(cmocka_run_group_tests_name("select_many", tests, NULL, NULL));
}
