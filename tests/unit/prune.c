/* The one-call conveniences. */
#include <float.h>

#include "support.h"

static spk_report new_report(void) {
  return (spk_report){sizeof(spk_report), -7, -7, -7, -7, -7};
}

/* --- N:M ----------------------------------------------------------------------------------- */

static void two_of_four_stay_in_each_row(void **state) {
  (void)state;
  float x[] = {1, -2, 3, 0.5f, 4, 4, 4, 4, 8, 7, 6, 5, -1, 0, 0, 1};
  spk_report report = new_report();
  spk_view *view = view_of(SPK_F32, "(2,8)");
  assert_ok(spk_prune_nm(NULL, view, &F32(x), NULL, 1, 2, 4, &report));
  assert_f32(x, 0, -2, 3, 0, 4, 4, 0, 0, 8, 7, 0, 0, -1, 0, 0, 1);
  assert_i64(&report.total, 16, 8, 8, 4, 0);
  spk_view_release(view);
}

/* Prunes a 2 x 4 x 2 tensor of which element (i, j, k) has the value 1 + j + 4 ((i + k) mod 2), in
 * a view with strides of its own. */
enum { kSpan = 40 };

static void prune_along(int32_t axis, int64_t n, int64_t m, const float *want) {
  const int64_t stride[] = {-1, 5, 20};
  const int64_t offset = 3;
  float x[kSpan];
  for (int i = 0; i < kSpan; ++i) x[i] = -9;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 2; ++k) x[offset - i + 5 * j + 20 * k] = (float)(1 + j + 4 * (i ^ k));
    }
  }
  spk_view *view = NULL;
  assert_ok(spk_view_create(SPK_F32, DIMS(2, 4, 2), stride, offset, &view));
  assert_ok(spk_prune_nm(NULL, view, &F32(x), NULL, axis, n, m, NULL));
  int reached = 0;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 2; ++k) {
        float *element = &x[offset - i + 5 * j + 20 * k];
        assert_f32(element, *want++);
        *element = -9;
        ++reached;
      }
    }
  }
  assert_int_equal(reached, 16);
  /* The rest was not touched. */
  for (int i = 0; i < kSpan; ++i) assert_f32(x + i, -9);
  spk_view_release(view);
}

static void any_axis_of_a_strided_tensor(void **state) {
  (void)state;
  /* Along j, one of two: the second of each pair is larger. */
  const float along_j[] = {0, 0, 2, 6, 0, 0, 4, 8, 0, 0, 6, 2, 0, 0, 8, 4};
  prune_along(1, 1, 2, along_j);
  prune_along(-2, 1, 2, along_j);
  /* Along j, three of four. */
  const float three[] = {0, 0, 2, 6, 3, 7, 4, 8, 0, 0, 6, 2, 7, 3, 8, 4};
  prune_along(1, 3, 4, three);
  /* Along k and along i, one of two: the larger one has i ^ k = 1. */
  const float larger[] = {0, 5, 0, 6, 0, 7, 0, 8, 5, 0, 6, 0, 7, 0, 8, 0};
  prune_along(2, 1, 2, larger);
  prune_along(-1, 1, 2, larger);
  prune_along(0, 1, 2, larger);
  prune_along(-3, 1, 2, larger);
}

static void many_groups_each_keep_their_share(void **state) {
  (void)state;
  enum { kGroups = 5000, kM = 8 };
  static float x[kGroups][kM];
  spk_report report = new_report();
  /* Each group holds 1 to 8, turned by its number. */
  for (int g = 0; g < kGroups; ++g) {
    for (int i = 0; i < kM; ++i) x[g][i] = (float)(1 + (3 * i + g) % kM);
  }
  const spk_buffer leaf = {x, kGroups * kM, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  spk_view *view = view_of(SPK_F32, "(100,400)");
  assert_ok(spk_prune_nm(NULL, view, &leaf, NULL, 1, 3, kM, &report));
  assert_i64(&report.total, kGroups * kM, 3 * kGroups, 3 * kGroups, 0, 0);
  for (int g = 0; g < kGroups; ++g) {
    for (int i = 0; i < kM; ++i) {
      const int value = 1 + (3 * i + g) % kM;
      assert_f32(&x[g][i], value > kM - 3 ? (float)value : 0);
    }
  }
  spk_view_release(view);
}

/* Rows of a slice are short, and lie apart; `into` has none of what is between them. */
static void rows_of_a_slice_each_keep_their_share(void **state) {
  (void)state;
  enum { kRows = 5000, kM = 8, kStep = 11, kOffset = 2 };
  static float x[kRows][kStep];
  static float into[kRows][kM];
  spk_view *view = view_of(SPK_F32, "(5000,8):(11,1)+2");
  for (int in_place = 0; in_place < 2; ++in_place) {
    spk_report report = new_report();
    for (int r = 0; r < kRows; ++r) {
      for (int i = 0; i < kStep; ++i) x[r][i] = (float)(1 + (3 * (i - kOffset + kM) + r) % kM);
    }
    const spk_buffer leaf = {x, kRows * kStep, SPK_F32, SPK_LAYOUT_VIEW, NULL};
    const spk_buffer dense = {into, kRows * kM, SPK_F32, SPK_LAYOUT_CONTIGUOUS, NULL};
    assert_ok(spk_prune_nm(NULL, view, &leaf, in_place ? NULL : &dense, 1, 3, kM, &report));
    assert_i64(&report.total, kRows * kM, 3 * kRows, 3 * kRows, 0, 0);
    for (int r = 0; r < kRows; ++r) {
      for (int i = 0; i < kStep; ++i) {
        const int value = 1 + (3 * (i - kOffset + kM) + r) % kM;
        const int column = i - kOffset;
        const bool inside = column >= 0 && column < kM;
        const float kept = !inside || value > kM - 3 ? (float)value : 0;
        assert_f32(&x[r][i], in_place ? kept : (float)value);
        if (inside && !in_place) assert_f32(&into[r][column], kept);
      }
    }
  }
  spk_view_release(view);
}

static void none_of_m_and_all_of_m(void **state) {
  (void)state;
  float x[] = {1, NAN, -0.0f, 2};
  spk_view *view = view_of(SPK_F32, "(4)");
  assert_ok(spk_prune_nm(NULL, view, &F32(x), NULL, 0, 2, 2, NULL));
  assert_f32(x, 1, NAN, -0.0f, 2);
  assert_ok(spk_prune_nm(NULL, view, &F32(x), NULL, 0, 1, 1, NULL));
  assert_f32(x, 1, NAN, -0.0f, 2);
  assert_ok(spk_prune_nm(NULL, view, &F32(x), NULL, 0, 0, 4, NULL));
  assert_f32(x, 0, 0, 0, 0);
  spk_view_release(view);
}

static void n_of_m_into_another_buffer(void **state) {
  (void)state;
  uint16_t x[] = {0x3c00, 0x4000, 0xc200, 0x3c00}; /* 1, 2, -3, 1 as f16 */
  uint16_t into[] = {9, 9, 9, 9};
  spk_view *view = view_of(SPK_F16, "(4)");
  assert_ok(spk_prune_nm(NULL, view, &F16(x), &F16(into), 0, 1, 2, NULL));
  assert_words(into, 0, 0x4000, 0xc200, 0);
  assert_words(x, 0x3c00, 0x4000, 0xc200, 0x3c00);
  spk_view_release(view);
}

/* --- unstructured -------------------------------------------------------------------------- */

static void a_sparsity_removes_the_smallest(void **state) {
  (void)state;
  double x[] = {-5, 1, 4, -2, 3, 6, 0};
  spk_report report = new_report();
  spk_view *view = view_of(SPK_F64, "(7)");
  /* floor(0.5 * 7) = 3 become zero. */
  assert_ok(spk_prune_unstructured(NULL, view, &F64(x), NULL, 0.5, &report));
  assert_f64(x, -5, 0, 4, 0, 3, 6, 0);
  assert_i64(&report.total, 7, 4, 4, 0, 0);
  spk_view_release(view);
}

static void equal_magnitudes_go_from_the_end(void **state) {
  (void)state;
  float x[] = {1, -1, 1, -1, 1};
  spk_report report = new_report();
  spk_view *view = view_of(SPK_F32, "(5)");
  assert_ok(spk_prune_unstructured(NULL, view, &F32(x), NULL, 0.4, &report));
  assert_f32(x, 1, -1, 1, 0, 0);
  assert_i64(&report.total, 5, 3, 3, 5, 0);
  spk_view_release(view);
}

static void the_whole_view_is_one_scope(void **state) {
  (void)state;
  float x[] = {9, 1, 8, 2, 3, 4, 5, 6};
  float into[] = {-1, -1, -1, -1, -1, -1, -1, -1};
  spk_view *view = view_of(SPK_F32, "(2,3):(4,1)+1");
  /* Of 1 8 2 / 4 5 6, two thirds become zero. */
  assert_ok(spk_prune_unstructured(NULL, view, &F32(x), &F32(into), 2.0 / 3.0, NULL));
  assert_f32(into, -1, 0, 8, 0, -1, 0, 0, 6);
  assert_f32(x, 9, 1, 8, 2, 3, 4, 5, 6);
  spk_view_release(view);
}

static void sparsities_of_zero_and_one(void **state) {
  (void)state;
  float x[] = {NAN, -0.0f, INFINITY};
  spk_view *view = view_of(SPK_F32, "(3)");
  assert_ok(spk_prune_unstructured(NULL, view, &F32(x), NULL, 0, NULL));
  assert_f32(x, NAN, -0.0f, INFINITY);
  assert_ok(spk_prune_unstructured(NULL, view, &F32(x), NULL, 1, NULL));
  assert_f32(x, 0, 0, 0);
  spk_view_release(view);
}

static void decimal_sparsities_are_met_exactly(void **state) {
  (void)state;
  enum { kNumel = 100 };
  spk_view *view = view_of(SPK_F32, "(100)");
  for (int percent = 0; percent <= 100; ++percent) {
    float x[kNumel];
    for (int i = 0; i < kNumel; ++i) x[i] = (float)(1 + i * 37 % kNumel);
    assert_ok(spk_prune_unstructured(NULL, view, &F32(x), NULL, percent / 100.0, NULL));
    for (int i = 0; i < kNumel; ++i) {
      const int rank = i * 37 % kNumel;
      assert_f32(x + i, rank < percent ? 0 : (float)(1 + rank));
    }
  }
  spk_view_release(view);
}

static void a_large_view_loses_exactly_its_share(void **state) {
  (void)state;
  enum { kNumel = 200000 };
  static float x[kNumel];
  for (int i = 0; i < kNumel; ++i) x[i] = (float)(1 + i % 4);
  spk_report report = new_report();
  spk_view *view = view_of(SPK_F32, "(200000)");
  /* All ones and the second half of the twos. */
  assert_ok(spk_prune_unstructured(NULL, view, &F32(x), NULL, 0.375, &report));
  assert_i64(&report.total, kNumel, 125000, 125000, 50000, 0);
  for (int i = 0; i < kNumel; ++i) {
    const int value = 1 + i % 4;
    const bool kept = value > 2 || (value == 2 && i < kNumel / 2);
    assert_f32(x + i, kept ? (float)value : 0);
  }
  spk_view_release(view);
}

/* --- soft thresholding --------------------------------------------------------------------- */

static void blocks_shrink_by_one_threshold(void **state) {
  (void)state;
  float x[] = {3, 4, 6, 8, 0.5f, -0.5f};
  float into[6];
  spk_report report = new_report();
  spk_view *view = view_of(SPK_F32, "(3,2)");
  assert_ok(spk_soft_threshold_blocks(NULL, view, &F32(x), &F32(into), DIMS(1, 2), 2.5, &report));
  /* Factors 1 - 2.5 / 5, 1 - 2.5 / 10, 0. */
  assert_f32(into, 1.5f, 2, 4.5f, 6, 0, 0);
  assert_f32(x, 3, 4, 6, 8, 0.5f, -0.5f);
  assert_i64(&report.total, 3, -1, 2, 0, 0);
  assert_ok(spk_soft_threshold_blocks(NULL, view, &F32(x), NULL, NO_DIMS, 3.5, NULL));
  /* The machine epsilon of the score dtype shows where little is left. */
  const double want[] = {0, 0.5, 2.5, 4.5, 0, 0};
  for (int i = 0; i < 6; ++i) assert_near(x[i], want[i], FLT_EPSILON);
  spk_view_release(view);
}

static void columns_of_a_strided_view_shrink(void **state) {
  (void)state;
  double x[] = {-1, 3, 30, -1, 4, 40, -1};
  spk_view *view = view_of(SPK_F64, "(2,2):(3,1)+1");
  assert_ok(spk_soft_threshold_blocks(NULL, view, &F64(x), NULL, DIMS(0, 1), 10, NULL));
  assert_f64(x, -1, 0);
  assert_near(x[2], 24, 1e-14);
  assert_f64(x + 3, -1, 0);
  assert_near(x[5], 32, 1e-14);
  assert_f64(x + 6, -1);
  spk_view_release(view);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(two_of_four_stay_in_each_row),          TEST(any_axis_of_a_strided_tensor),
      TEST(many_groups_each_keep_their_share),     TEST(none_of_m_and_all_of_m),
      TEST(rows_of_a_slice_each_keep_their_share), TEST(n_of_m_into_another_buffer),
      TEST(a_sparsity_removes_the_smallest),       TEST(equal_magnitudes_go_from_the_end),
      TEST(the_whole_view_is_one_scope),           TEST(sparsities_of_zero_and_one),
      TEST(decimal_sparsities_are_met_exactly),    TEST(a_large_view_loses_exactly_its_share),
      TEST(blocks_shrink_by_one_threshold),        TEST(columns_of_a_strided_view_shrink),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
