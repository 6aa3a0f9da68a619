/* Blocks that are thresholded while they are near: small ones whose elements lie in different rows,
 * neighbours side by side, those that are one row each, and tiles of short rows. Their norms are
 * integers, so that all results are known exactly. */
#include <stdlib.h>

#include "support.h"

enum {
  kMostStacked = 6,
  kMostElements = 17,
  kMostShort = 31,   /* elements of short rows */
  kMostTinyRows = 8, /* of 2 or 4 elements that are taken together */
  kMostScattered = 8,
  kMostColumn = 8,  /* elements of blocks that are columns, taken together */
  kMostWide = 1003, /* more than are thresholded together */
  kLongest = 1001,
  kMostLong = 44, /* blocks of longer rows, side by side */
  kHigh = 41,     /* blocks of longer rows, with gaps between them */
  kTwice = 2,
  kGap = 5, /* elements between rows of blocks, unless blocks are columns */
  kTallest = 60,
  kNumel = kTwice * (kLongest * kMostLong + kTallest * kGap)
};

/* sum kUnit[size - 1][i]^2 = kNorm[size - 1]^2. */
static const int kUnit[kMostStacked][kMostStacked] = {
    {5}, {3, 4}, {1, 2, 2}, {2, 4, 5, 6}, {1, 1, 1, 2, 3}, {1, 1, 1, 2, 3, 3}};
static const int kNorm[kMostStacked] = {5, 5, 3, 9, 4, 5};

/* Larger ones are 1, but for the last, k, and maybe the one before, so that (norm - k)(norm + k) is
 * the sum of the others' squares. */
static int unit_of(int size, int i, int *norm) {
  if (size <= kMostStacked) {
    *norm = kNorm[size - 1];
    return kUnit[size - 1][i];
  }
  const int before = size % 4 == 3 ? 2 : 1;
  const int others = size - 2 + before * before;
  const int difference = others % 2 ? 1 : 2;
  const int last = (others / difference - difference) / 2;
  *norm = last + difference;
  if (i == size - 2) return before;
  return i == size - 1 ? last : 1;
}

/* `high` rows of `wide` blocks of `size` elements in `rows` rows. What is done to block c goes by
 * c. */
typedef struct {
  int size, rows, high, wide;
  int32_t dtype;
  double x[kNumel];
  double thresholds[kTwice * kMostWide];
} problem;

typedef enum { kHalf, kQuarter, kFree, kAtThreshold, kBelow, kNan, kInfinite, kAllGone } what;

/* Of the groups of 8, which kernels take together, some are usual, and each has another order. */
static what what_of(int c) {
  const int group = c / 8;
  const int kinds = group % 3 == 1 ? kAllGone + 1 : kNan;
  return (what)((c + group) % kinds);
}

static double share_of(what w) {
  const double shares[] = {0.5, 0.75, 0, 1, 1.25, 0.5, 0.5};
  return w == kAllGone ? INFINITY : shares[w];
}

static int in_row(const problem *p) {
  return p->size / p->rows;
}

static int row_length(const problem *p) {
  return p->wide * in_row(p) + (in_row(p) == 1 ? 0 : kGap);
}

static int count_of(const problem *p) {
  return row_length(p) * p->rows * p->high;
}

static double *element(double *x, const problem *p, int block, int i) {
  const int row = block / p->wide * p->rows + i / in_row(p);
  const int column = block % p->wide * in_row(p) + i % in_row(p);
  return x + row * row_length(p) + column;
}

/* Elements of longer rows have no bits left. */
static double scale_of(const problem *p, int block) {
  const int scale = p->size > kMostElements ? 1 << block % 3 : block % 5 + 1;
  return scale * (block % 3 ? 1 : -1);
}

static void fill(double *x, int count, double number) {
  for (int i = 0; i < count; ++i) x[i] = number;
}

static void make_problem(problem *p) {
  fill(p->x, count_of(p), 7); /* what no block reaches */
  for (int b = 0; b < p->high * p->wide; ++b) {
    const what w = what_of(b);
    int norm = 0;
    for (int i = 0; i < p->size; ++i) {
      *element(p->x, p, b, i) = unit_of(p->size, i, &norm) * scale_of(p, b);
    }
    if (w == kNan) *element(p->x, p, b, b % p->size) = NAN;
    if (w == kInfinite || w == kAllGone) *element(p->x, p, b, b % p->size) = -INFINITY;
    const double share = share_of(w);
    p->thresholds[b] = isinf(share) ? share : norm * fabs(scale_of(p, b)) * share;
  }
}

/* Soft: what is left of the norm. Hard: what is not below its threshold. */
static double left_of(what w, bool soft) {
  switch (w) {
    case kHalf:
      return soft ? 0.5 : 1;
    case kQuarter:
      return soft ? 0.25 : 1;
    case kFree:
    case kNan:
    case kInfinite:
      return 1;
    case kAtThreshold:
      return soft ? 0 : 1;
    case kBelow:
      return 0;
    default:
      return soft ? 0 : 1; /* infinity against infinity */
  }
}

/* All elements after thresholding, written among those in `expected`; returns how many blocks are
 * alive. */
static int64_t expect(const problem *p, bool soft, double *expected) {
  int64_t alive = 0;
  for (int b = 0; b < p->high * p->wide; ++b) {
    const double left = left_of(what_of(b), soft);
    alive += left > 0;
    for (int i = 0; i < p->size; ++i) {
      const ptrdiff_t at = element(expected, p, b, i) - expected;
      expected[at] = left == 0 ? 0 : p->x[at] * left;
    }
  }
  return alive;
}

static spk_block *blocks_for(const problem *p) {
  char text[64];
  snprintf(text, sizeof text, "(%d,%d):(%d,1)", p->high * p->rows, p->wide * in_row(p),
           row_length(p));
  return blocks_of(p->dtype, text, DIMS(p->rows, in_row(p)));
}

/* In place unless `to` is given, without eps; returns how many blocks are alive. */
static int64_t threshold_blocks(const spk_block *block, const spk_buffer *leaf,
                                const spk_buffer *to, const spk_buffer *thresholds, bool soft) {
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.eps = 0;
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  if (soft) {
    assert_ok(spk_block_soft_threshold(NULL, block, leaf, to, 1, thresholds, &options, &report));
  } else {
    assert_ok(spk_block_hard_threshold(NULL, block, leaf, to, 1, thresholds, NULL, &report));
  }
  return report.achieved;
}

/* Thresholds as they were computed, or as floats. */
static void check(const problem *p, bool soft, bool in_place, bool as_floats) {
  static double expected[kNumel];
  static uint64_t x[kNumel], y[kNumel], before[kNumel], want[kNumel];
  static float floats[kTwice * kMostWide];
  const int count = count_of(p);
  store_numbers(p->x, count, p->dtype, x);
  store_numbers(p->x, count, p->dtype, before);
  fill(expected, count, 9);
  store_numbers(expected, count, p->dtype, y);
  if (in_place) memcpy(expected, p->x, (size_t)count * sizeof *expected);
  const int64_t alive = expect(p, soft, expected);
  store_numbers(expected, count, p->dtype, want);
  for (int b = 0; b < p->high * p->wide; ++b) floats[b] = (float)p->thresholds[b];
  spk_block *block = blocks_for(p);
  const spk_buffer leaf = {x, count, p->dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer into = {y, count, p->dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer thresholds = {as_floats ? (void *)floats : (void *)p->thresholds,
                                 p->high * p->wide, as_floats ? SPK_F32 : SPK_F64, SPK_LAYOUT_VIEW,
                                 NULL};
  const spk_buffer *to = in_place ? NULL : &into;
  const int64_t found = threshold_blocks(block, &leaf, to, &thresholds, soft);
  spk_block_release(block); /* first: what a failed test leaves is an error of its own */
  assert_int_equal(found, alive);
  const size_t bytes = (size_t)count * (size_t)(p->dtype & 0xff) / 8;
  assert_memory_equal(in_place ? x : y, want, bytes);
  if (!in_place) assert_memory_equal(x, before, bytes);
}

static void check_size(int size, int rows, int high, int wide, bool soft) {
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
  for (int d = 0; d < COUNT(dtypes); ++d) {
    static problem p;
    p.size = size;
    p.rows = rows;
    p.high = high;
    p.wide = wide;
    p.dtype = dtypes[d];
    make_problem(&p);
    check(&p, soft, true, false);
    check(&p, soft, true, true);
    check(&p, soft, false, true);
    check(&p, soft, false, false);
  }
}

static void check_sizes(int first, int last, bool stacked, bool soft) {
  const int wides[] = {8, 16, 40, 44, 3, kMostWide}; /* whole groups of 8, and not */
  for (int size = first; size <= last; ++size) {
    const int rows = stacked ? size : 1;
    for (int w = 0; w < COUNT(wides); ++w) check_size(size, rows, kTwice, wides[w], soft);
  }
}

/* Whole steps of 32 elements and not; groups of rows, and those that are taken one by one. */
static void check_longer_rows(bool soft) {
  const int sizes[] = {32, 33, 47, 48, 63, 64, 100, 128, 161, 256, 257, 300, 480, kLongest};
  const int wides[] = {1, 3, 8, 21, kMostLong};
  for (int s = 0; s < COUNT(sizes); ++s) {
    for (int w = 0; w < COUNT(wides); ++w) check_size(sizes[s], 1, kTwice, wides[w], soft);
    check_size(sizes[s], 1, kHigh, 1, soft);
  }
}

/* Lengths of rows that are taken together and one by one, whole steps of 32 elements and not. Norms
 * of up to 514 elements have no more bits than a bf16. */
static void check_tiles(bool soft) {
  const int rows[] = {2, 5, kTallest, 4, 2, 16, 30, 5, 2, 15, 7, 9, 7, 2, 5, 2, 3, 3, 2, 2};
  const int lengths[] = {8,  8,  8,  12, 16,  16,  16,  24,  32,  32,
                         33, 36, 64, 96, 100, 128, 128, 129, 256, 257};
  const int wides[] = {1, 3, 8, 21, kMostLong};
  for (int t = 0; t < COUNT(rows); ++t) {
    for (int w = 0; w < COUNT(wides); ++w) {
      check_size(rows[t] * lengths[t], rows[t], kTwice, wides[w], soft);
    }
  }
}

/* Rows of 2 and 4 elements, up to one more than are taken together. */
static void check_tiny_rows(bool soft) {
  const int wides[] = {8, 16, 44, 3, kMostWide};
  for (int rows = 2; rows <= kMostTinyRows + 1; ++rows) {
    for (int w = 0; w < COUNT(wides); ++w) {
      check_size(2 * rows, rows, kTwice, wides[w], soft);
      check_size(4 * rows, rows, kTwice, wides[w], soft);
    }
  }
}

static void soft_thresholds_of_stacked_blocks(void **state) {
  (void)state;
  check_sizes(1, kMostColumn + 1, true, true);
}

static void hard_thresholds_of_stacked_blocks(void **state) {
  (void)state;
  check_sizes(1, kMostColumn + 1, true, false);
}

static void soft_thresholds_of_tiny_rows(void **state) {
  (void)state;
  check_tiny_rows(true);
}

static void hard_thresholds_of_tiny_rows(void **state) {
  (void)state;
  check_tiny_rows(false);
}

static void soft_thresholds_of_short_rows(void **state) {
  (void)state;
  check_sizes(2, kMostShort, false, true);
}

static void hard_thresholds_of_short_rows(void **state) {
  (void)state;
  check_sizes(2, kMostShort, false, false);
}

/* Blocks of a few elements far apart, whose neighbours are as far from each other as they would be
 * if blocks were contiguous: elements between them are not theirs. */
static void check_scattered(int size, bool soft) {
  enum { kColumns = 16, kDistance = 128, kCount = kMostScattered * kDistance };
  float x[kCount];
  float was[kCount];
  float thresholds[kColumns];
  int norm = 0;
  for (int i = 0; i < kCount; ++i) {
    x[i] = was[i] = (float)unit_of(size, i / kDistance < size ? i / kDistance : 0, &norm);
  }
  for (int c = 0; c < kColumns; ++c) thresholds[c] = (float)(norm * (c % 3));
  char text[64];
  snprintf(text, sizeof text, "(%d,%d):(%d,%d)", size, kColumns, kDistance, size);
  spk_block *block = blocks_of(SPK_F32, text, DIMS(size, 1));
  threshold_blocks(block, &F32(x), NULL, &F32(thresholds), soft);
  spk_block_release(block);
  for (int i = 0; i < kCount; ++i) {
    const int column = i % kDistance / size;
    const bool inside = i / kDistance < size && i % kDistance % size == 0 && column < kColumns;
    const bool dies = inside && column % 3 >= (soft ? 1 : 2);
    assert_true(x[i] == (dies ? 0 : was[i]));
  }
}

static void elements_between_those_of_blocks_are_left(void **state) {
  (void)state;
  for (int size = 2; size <= kMostScattered; ++size) {
    check_scattered(size, true);
    check_scattered(size, false);
  }
}

/* Elements of blocks whose rows are shorter than eight are added up from the first to the last, in
 * double: a block dies by the root of that sum, and lives by the number before. */
static void check_order(int rows, int columns, int wide) {
  enum { kHigher = 3, kWidest = 24, kMost = 64 };
  float x[kHigher * kWidest * kMost];
  double thresholds[kHigher * kWidest] = {0};
  uint32_t random = (uint32_t)(rows * 100 + columns);
  for (int i = 0; i < COUNT(x); ++i) {
    random = random * 1664525u + 1013904223u;
    x[i] = (float)((random >> 8) + 1) / 16777216.0f;
  }
  const int row = wide * columns;
  for (int b = 0; b < kHigher * wide; ++b) {
    double sum = 0;
    for (int i = 0; i < rows * columns; ++i) {
      const int first = b / wide * rows * row + b % wide * columns;
      const double w = x[first + i / columns * row + i % columns];
      sum += w * w;
    }
    thresholds[b] = b % 2 ? sqrt(sum) : nextafter(sqrt(sum), 0);
  }
  char text[32];
  snprintf(text, sizeof text, "(%d,%d)", kHigher * rows, row);
  spk_block *block = blocks_of(SPK_F32, text, DIMS(rows, columns));
  const spk_buffer leaf = {x, kHigher * rows * row, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer limits = {thresholds, kHigher * wide, SPK_F64, SPK_LAYOUT_VIEW, NULL};
  threshold_blocks(block, &leaf, NULL, &limits, true);
  spk_block_release(block);
  for (int i = 0; i < kHigher * rows * row; ++i) {
    const int b = i / (rows * row) * wide + i % row / columns;
    assert_true((x[i] == 0) == (b % 2 == 1));
  }
}

static void elements_are_added_up_in_order(void **state) {
  (void)state;
  for (int columns = 1; columns < 8; ++columns) {
    for (int rows = 1; rows <= 9; ++rows) {
      check_order(rows, columns, 21);
      check_order(rows, columns, 24); /* whole groups of eight */
    }
  }
}

/* Nothing beyond the last block is read: sanitizers see it. */
static void check_end(int32_t dtype, int size, int blocks, bool soft) {
  double numbers[kMostShort * kMostLong];
  float thresholds[kMostLong];
  int norm = 0;
  for (int i = 0; i < blocks * size; ++i) numbers[i] = unit_of(size, i % size, &norm);
  for (int b = 0; b < blocks; ++b) thresholds[b] = (float)norm / 2;
  const size_t bytes = (size_t)(blocks * size) * (size_t)(dtype & 0xff) / 8;
  void *x = malloc(bytes);
  void *want = malloc(bytes);
  assert_non_null(x);
  assert_non_null(want);
  store_numbers(numbers, blocks * size, dtype, x);
  for (int i = 0; soft && i < blocks * size; ++i) numbers[i] /= 2;
  store_numbers(numbers, blocks * size, dtype, want);
  char text[32];
  snprintf(text, sizeof text, "(%d,%d)", blocks, size);
  spk_block *block = blocks_of(dtype, text, DIMS(1, size));
  const spk_buffer leaf = {x, blocks * size, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer limits = {thresholds, blocks, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  const int64_t alive = threshold_blocks(block, &leaf, NULL, &limits, soft);
  spk_block_release(block);
  const bool are_same = memcmp(x, want, bytes) == 0;
  free(x);
  free(want);
  assert_int_equal(alive, blocks);
  assert_true(are_same);
}

static void no_row_is_read_beyond_the_last(void **state) {
  (void)state;
  const int32_t dtypes[] = {SPK_F32, SPK_F16, SPK_BF16};
  const int counts[] = {8, 16, 19};
  for (int size = 2; size <= kMostShort; ++size) {
    for (int i = 0; i < COUNT(dtypes) * COUNT(counts); ++i) {
      check_end(dtypes[i % 3], size, counts[i / 3], true);
      check_end(dtypes[i % 3], size, counts[i / 3], false);
    }
  }
}

/* Boxes are larger in large tensors. */
static void more_rows_than_one_box_holds(void **state) {
  (void)state;
  enum { kRows = 2100, kRow = 256 }; /* a norm of 16 for each unit */
  static float x[kRows][kRow];
  static float thresholds[kRows];
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kRow; ++i) x[r][i] = (i % 2) ? -4.0f : 4.0f;
    thresholds[r] = (float)(16 * (r % 5));
  }
  spk_block *block = blocks_of(SPK_F32, "(2100,256)", DIMS(1, kRow));
  const spk_buffer leaf = {x, kRows * kRow, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  threshold_blocks(block, &leaf, NULL, &F32(thresholds), true);
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kRow; ++i) {
      assert_true(x[r][i] == (float)(4 - r % 5) * ((i % 2) ? -1.0f : 1.0f));
    }
  }
  spk_block_release(block);
}

/* Blocks of legs 3 k and 4 k, whose norms are 5 k, by one threshold for all of them. */
static void check_one_threshold(int high, spk_buffer threshold, bool soft) {
  enum { kBlocks = 203, kPair = 2, kAlive = 4 };
  float x[kPair * kBlocks];
  float want[kPair * kBlocks];
  for (int b = 0; b < kBlocks; ++b) {
    const int k = b % 7 + 1;
    const bool dies = k < kAlive || (soft && k == kAlive);
    const double share = soft ? (5.0 * k - 5.0 * kAlive) / (5.0 * k) : 1;
    for (int i = 0; i < kPair; ++i) {
      const int at = high == 1 ? kPair * b + i : i * kBlocks + b;
      x[at] = (float)((3 + i) * (b % 2 ? -k : k));
      want[at] = dies ? 0 : (float)(x[at] * share);
    }
  }
  char text[32];
  snprintf(text, sizeof text, high == 1 ? "(%d,2)" : "(2,%d)", kBlocks);
  spk_block *block = blocks_of(SPK_F32, text, DIMS(high, kPair / high));
  threshold_blocks(block, &F32(x), NULL, &threshold, soft);
  for (int i = 0; i < kPair * kBlocks; ++i) assert_f32(x + i, want[i]);
  spk_block_release(block);
}

static void one_threshold_for_all_pairs(void **state) {
  (void)state;
  float as_float[] = {20};
  double as_double[] = {20};
  for (int high = 1; high <= 2; ++high) {
    for (int soft = 0; soft < 2; ++soft) {
      check_one_threshold(high, F32(as_float), soft);
      check_one_threshold(high, F64(as_double), soft);
    }
  }
}

/* Each eight neighbours have a number, whose bits say which of them stay: all choices occur. */
static bool is_chosen(int block) {
  return block / 8 >> block % 8 & 1;
}

/* All elements of a block; those of its neighbours differ. */
static double element_of(int block) {
  return (block % 3 == 0 ? -1 : 1) * (1 << block % 4);
}

static void check_choices(int rows, int in_row, int32_t dtype, bool soft, bool in_place,
                          bool as_floats) {
  enum { kChoices = 256 * 8, kBlocks = kChoices + 5, kMost = 256, kRoom = kBlocks * kMost };
  static double numbers[kRoom], expected[kRoom], thresholds[kBlocks];
  static float floats[kBlocks];
  static uint64_t x[kRoom], y[kRoom], before[kRoom], want[kRoom];
  const int count = kBlocks * rows * in_row;
  const double norm = sqrt(rows * in_row);
  for (int b = 0; b < kBlocks; ++b) {
    const double share = is_chosen(b) ? (b % 5 ? 0.5 : 0.75) : 2;
    thresholds[b] = norm * fabs(element_of(b)) * share;
    floats[b] = (float)thresholds[b];
  }
  for (int i = 0; i < count; ++i) {
    const int b = i % (kBlocks * in_row) / in_row;
    const double left = !is_chosen(b) ? 0 : !soft ? 1 : b % 5 ? 0.5 : 0.25;
    numbers[i] = element_of(b);
    expected[i] = left == 0 ? 0 : element_of(b) * left; /* not -0 */
  }
  store_numbers(numbers, count, dtype, x);
  store_numbers(numbers, count, dtype, before);
  store_numbers(expected, count, dtype, want);
  fill(expected, count, 9);
  store_numbers(expected, count, dtype, y);
  char text[32];
  snprintf(text, sizeof text, "(%d,%d)", rows, kBlocks * in_row);
  spk_block *block = blocks_of(dtype, text, DIMS(rows, in_row));
  const spk_buffer leaf = {x, count, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer into = {y, count, dtype, SPK_LAYOUT_VIEW, NULL};
  const spk_buffer limits = as_floats ? F32(floats) : F64(thresholds);
  const int64_t alive = threshold_blocks(block, &leaf, in_place ? NULL : &into, &limits, soft);
  spk_block_release(block);
  assert_int_equal(alive, kChoices / 2); /* none of the last five */
  const size_t bytes = (size_t)count * (size_t)(dtype & 0xff) / 8;
  assert_memory_equal(in_place ? x : y, want, bytes);
  if (!in_place) assert_memory_equal(x, before, bytes);
}

/* Rows of whole steps of 32 elements and not; tiles. */
static void every_choice_of_eight_neighbours(void **state) {
  (void)state;
  const int rows[] = {1, 1, 1, 1, 1, 8, 4, 2, 4, 1};
  const int in_row[] = {16, 25, 64, 36, 100, 8, 16, 32, 64, 256};
  const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
  for (int b = 0; b < COUNT(rows); ++b) {
    for (int d = 0; d < COUNT(dtypes); ++d) {
      for (int how = 0; how < 8; ++how) {
        check_choices(rows[b], in_row[b], dtypes[d], how & 1, how & 2, how & 4);
      }
    }
  }
}

static void soft_thresholds_of_longer_rows(void **state) {
  (void)state;
  check_longer_rows(true);
}

static void soft_thresholds_of_tiles(void **state) {
  (void)state;
  check_tiles(true);
}

static void hard_thresholds_of_tiles(void **state) {
  (void)state;
  check_tiles(false);
}

static void hard_thresholds_of_longer_rows(void **state) {
  (void)state;
  check_longer_rows(false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(soft_thresholds_of_stacked_blocks),
      TEST(hard_thresholds_of_stacked_blocks),
      TEST(soft_thresholds_of_short_rows),
      TEST(hard_thresholds_of_short_rows),
      TEST(soft_thresholds_of_tiny_rows),
      TEST(hard_thresholds_of_tiny_rows),
      TEST(elements_are_added_up_in_order),
      TEST(no_row_is_read_beyond_the_last),
      TEST(elements_between_those_of_blocks_are_left),
      TEST(more_rows_than_one_box_holds),
      TEST(one_threshold_for_all_pairs),
      TEST(every_choice_of_eight_neighbours),
      TEST(soft_thresholds_of_longer_rows),
      TEST(hard_thresholds_of_longer_rows),
      TEST(soft_thresholds_of_tiles),
      TEST(hard_thresholds_of_tiles),
  };
  return exit_code(cmocka_run_group_tests_name("small_blocks", tests, NULL, NULL));
}
