/* Block specs and couplings: grid facts, leaves, permuted orders. */
#include "support.h"

static void a_block_spec_cuts_its_view_into_a_grid(void **state) {
  (void)state;
  spk_block *block = blocks_of(SPK_F16, "(4,6):(10,1)+3", DIMS(2, 3));
  assert_string_equal(spk_block_name(block), "block");
  assert_int_equal(spk_block_grid_ndim(block), 2);
  assert_i64(spk_block_grid_shape(block), 2, 2);
  assert_int_equal(spk_block_numblk(block), 4);
  assert_int_equal(spk_block_numel_per_block(block), 6);
  assert_int_equal(spk_block_numel(block), 24);
  assert_int_equal(spk_block_score_dtype(block), SPK_F32);
  assert_int_equal(spk_block_leaf_count(block), 1);
  assert_i64(spk_block_leaf_shape(block, 0), 2, 3);
  assert_i64(spk_view_stride(spk_block_leaf_view(block, 0)), 10, 1);
  assert_int_equal(spk_view_offset(spk_block_leaf_view(block, 0)), 3);
  spk_block_release(block);
}

static void no_dims_make_every_element_a_block(void **state) {
  (void)state;
  spk_block *block = blocks_of(SPK_F32, "(4,6)", NO_DIMS);
  assert_i64(spk_block_grid_shape(block), 4, 6);
  assert_i64(spk_block_leaf_shape(block, 0), 1, 1);
  assert_int_equal(spk_block_numblk(block), 24);
  assert_int_equal(spk_block_numel_per_block(block), 1);
  spk_block_release(block);
}

static void extents_up_to_zero_span_the_dimension(void **state) {
  (void)state;
  spk_block *block = blocks_of(SPK_F32, "(4,6,5)", DIMS(0, 2, -7));
  assert_i64(spk_block_leaf_shape(block, 0), 4, 2, 5);
  assert_i64(spk_block_grid_shape(block), 1, 3, 1);
  assert_int_equal(spk_block_numel_per_block(block), 40);
  spk_block_release(block);
}

static void scores_are_double_where_a_leaf_is(void **state) {
  (void)state;
  const int32_t dtypes[] = {SPK_F32, SPK_F16, SPK_BF16};
  for (int64_t i = 0; i < COUNT(dtypes); ++i) {
    spk_block *block = blocks_of(dtypes[i], "(4)", NO_DIMS);
    assert_int_equal(spk_block_score_dtype(block), SPK_F32);
    block = coupled_blocks(block, blocks_of(SPK_F64, "(4)", NO_DIMS), NULL);
    assert_int_equal(spk_block_score_dtype(block), SPK_F64);
    spk_block_release(block);
  }
}

static void names_are_copied(void **state) {
  (void)state;
  char name[] = "rows of w1";
  spk_view *view = view_of(SPK_F32, "(4)");
  spk_block *block = NULL;
  assert_ok(spk_block_create(view, NO_DIMS, name, &block));
  name[0] = '#';
  assert_string_equal(spk_block_name(block), "rows of w1");
  spk_block_release(block);
  spk_view_release(view);
}

static void facts_of_no_block_are_minus_one_or_null(void **state) {
  (void)state;
  assert_null(spk_block_name(NULL));
  assert_int_equal(spk_block_grid_ndim(NULL), -1);
  assert_null(spk_block_grid_shape(NULL));
  assert_int_equal(spk_block_numblk(NULL), -1);
  assert_int_equal(spk_block_numel_per_block(NULL), -1);
  assert_int_equal(spk_block_numel(NULL), -1);
  assert_int_equal(spk_block_score_dtype(NULL), -1);
  assert_int_equal(spk_block_leaf_count(NULL), -1);
  assert_null(spk_block_leaf_view(NULL, 0));
  assert_null(spk_block_leaf_shape(NULL, 0));
}

static void leaves_out_of_range_are_null(void **state) {
  (void)state;
  spk_block *block = blocks_of(SPK_F32, "(4)", NO_DIMS);
  assert_null(spk_block_leaf_view(block, -1));
  assert_null(spk_block_leaf_view(block, 1));
  assert_null(spk_block_leaf_shape(block, -1));
  assert_null(spk_block_leaf_shape(block, 1));
  spk_block_release(block);
}

/* Row j of a 6 x 4 matrix with column j of a 3 x 6 matrix. */
static spk_block *rows_with_columns(void) {
  const int32_t orders[] = {0, 1, 1, 0};
  return coupled_blocks(blocks_of(SPK_F32, "(6,4)", DIMS(1, -1)),
                        blocks_of(SPK_BF16, "(3,6)", DIMS(-1, 1)), orders);
}

static void a_coupling_adds_up_its_members(void **state) {
  (void)state;
  spk_block *block = rows_with_columns();
  assert_string_equal(spk_block_name(block), "coupling");
  assert_int_equal(spk_block_grid_ndim(block), 2);
  assert_i64(spk_block_grid_shape(block), 6, 1);
  assert_int_equal(spk_block_numblk(block), 6);
  assert_int_equal(spk_block_numel_per_block(block), 4 + 3);
  assert_int_equal(spk_block_numel(block), 42);
  assert_int_equal(spk_block_leaf_count(block), 2);
  assert_int_equal(spk_view_dtype(spk_block_leaf_view(block, 0)), SPK_F32);
  assert_int_equal(spk_view_dtype(spk_block_leaf_view(block, 1)), SPK_BF16);
  assert_i64(spk_block_leaf_shape(block, 0), 1, 4);
  assert_i64(spk_block_leaf_shape(block, 1), 3, 1);
  spk_block_release(block);
}

static void a_coupled_norm_runs_over_rows_and_columns(void **state) {
  (void)state;
  float rows[6 * 4] = {0};
  uint16_t columns[3 * 6] = {0};
  float norms[6];
  rows[2 * 4 + 1] = 3.0f;      /* row 2 */
  columns[1 * 6 + 2] = 0x4080; /* column 2: 4 as bf16 */
  columns[2 * 6 + 5] = 0xbf80; /* column 5: -1 */
  rows[0] = -7.0f;
  spk_block *block = rows_with_columns();
  const spk_buffer leaves[] = {F32(rows), BF16(columns)};
  assert_ok(spk_block_norms(NULL, block, leaves, 2, 2.0, &F32(norms)));
  assert_f32(norms, 7, 0, 5, 0, 0, 1);
  spk_block_release(block);
}

static void a_leaf_is_the_spec_that_it_was_created_as(void **state) {
  (void)state;
  spk_view *view = view_of(SPK_F32, "(3,6)");
  spk_block *columns = NULL;
  spk_block *leaf = NULL;
  assert_ok(spk_block_create(view, DIMS(-1, 1), "columns", &columns));
  spk_view_release(view);
  const int32_t orders[] = {0, 1, 1, 0};
  spk_block *block = coupled_blocks(blocks_of(SPK_F32, "(6,4)", DIMS(1, -1)), columns, orders);
  assert_ok(spk_block_leaf(block, 1, &leaf));
  spk_block_release(block);
  assert_string_equal(spk_block_name(leaf), "columns");
  assert_i64(spk_block_grid_shape(leaf), 1, 6);
  assert_i64(spk_block_leaf_shape(leaf, 0), 3, 1);
  assert_int_equal(spk_block_numel_per_block(leaf), 3);
  spk_block_release(leaf);
}

/* --- three axes, turned around ------------------------------------------------------------- */

/* The number that stands for element (i, j, k). */
static float code_of(int i, int j, int k) {
  return (float)(100 * i + 10 * j + k);
}

/* Leaf a has the grid (i, j, k) of 2 x 3 x 4, leaves b and c have (k, i, j); each tells itself. */
static float leaf_a[2][3][4];
static float leaf_b[4][2][3];
static double leaf_c[4][2][3];

static void fill_leaves(void) {
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) {
        leaf_a[i][j][k] = code_of(i, j, k);
        leaf_b[k][i][j] = code_of(i, j, k) + 0.5f;
        leaf_c[k][i][j] = code_of(i, j, k) + 0.25;
      }
    }
  }
}

static spk_buffer buffer_of(void *data, int32_t dtype) {
  return (spk_buffer){data, 24, dtype, SPK_LAYOUT_VIEW, NULL};
}

/* Axis d of the coupling's grid is axis orders[d] of the member's. */
static spk_block *a_with_b(void) {
  const int32_t orders[] = {0, 1, 2, 1, 2, 0};
  return coupled_blocks(blocks_of(SPK_F32, "(2,3,4)", NO_DIMS),
                        blocks_of(SPK_F32, "(4,2,3)", NO_DIMS), orders);
}

/* Collects the elements of all blocks. */
struct capture {
  double elements[24][3];
  int64_t blocks;
};

static int32_t capture_block(void *user, int64_t block, const double *elements, int64_t count,
                             double *result) {
  struct capture *capture = user;
  assert_int_equal(block, capture->blocks);
  memcpy(capture->elements[capture->blocks++], elements, (size_t)count * sizeof *elements);
  *result = (double)block;
  return 0;
}

static void permuted_members_meet_block_by_block(void **state) {
  (void)state;
  fill_leaves();
  spk_block *block = a_with_b();
  assert_i64(spk_block_grid_shape(block), 2, 3, 4);
  struct capture capture = {.blocks = 0};
  float out[24];
  const spk_buffer leaves[] = {buffer_of(leaf_a, SPK_F32), buffer_of(leaf_b, SPK_F32)};
  assert_ok(spk_block_reduce(NULL, block, leaves, 2, capture_block, &capture, &F32(out)));
  assert_int_equal(capture.blocks, 24);
  for (int b = 0; b < 24; ++b) {
    const double code = code_of(b / 12, b / 4 % 3, b % 4);
    assert_f64(capture.elements[b], code, code + 0.5);
  }
  spk_block_release(block);
}

static void couplings_nest_and_orders_compose(void **state) {
  (void)state;
  fill_leaves();
  const int32_t orders[] = {2, 0, 1, 0, 1, 2};
  spk_block *block = coupled_blocks(a_with_b(), blocks_of(SPK_F64, "(4,2,3)", NO_DIMS), orders);
  assert_int_equal(spk_block_leaf_count(block), 3);
  assert_i64(spk_block_grid_shape(block), 4, 2, 3);
  assert_int_equal(spk_block_numel_per_block(block), 3);
  struct capture capture = {.blocks = 0};
  double out[24];
  const spk_buffer leaves[] = {buffer_of(leaf_a, SPK_F32), buffer_of(leaf_b, SPK_F32),
                               buffer_of(leaf_c, SPK_F64)};
  assert_ok(spk_block_reduce(NULL, block, leaves, 3, capture_block, &capture, &F64(out)));
  for (int b = 0; b < 24; ++b) {
    const double code = code_of(b / 3 % 2, b % 3, b / 6);
    assert_f64(capture.elements[b], code, code + 0.5, code + 0.25);
  }
  spk_block_release(block);
}

static void masks_reach_every_member_through_its_order(void **state) {
  (void)state;
  fill_leaves();
  uint8_t mask[24] = {0};
  mask[1 * 12 + 2 * 4 + 3] = 1;
  spk_block *block = a_with_b();
  const spk_buffer leaves[] = {buffer_of(leaf_a, SPK_F32), buffer_of(leaf_b, SPK_F32)};
  assert_ok(spk_block_apply_mask(NULL, block, leaves, NULL, 2, &U8(mask)));
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) {
        const bool masked = i == 1 && j == 2 && k == 3;
        assert_f32(&leaf_a[i][j][k], masked ? 0 : code_of(i, j, k));
        assert_f32(&leaf_b[k][i][j], masked ? 0 : code_of(i, j, k) + 0.5f);
      }
    }
  }
  spk_block_release(block);
}

static void one_member_may_be_turned_alone(void **state) {
  (void)state;
  float matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
  float maxima[6];
  const int32_t order[] = {1, 0};
  spk_block *elements = blocks_of(SPK_F32, "(2,3)", NO_DIMS);
  spk_block *members[] = {elements};
  spk_block *turned = NULL;
  assert_ok(spk_block_couple(members, 1, order, "turned", &turned));
  spk_block_release(elements);
  assert_string_equal(spk_block_name(turned), "turned");
  assert_i64(spk_block_grid_shape(turned), 3, 2);
  const spk_buffer leaf = {matrix, 6, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  assert_ok(spk_block_max(NULL, turned, &leaf, 1, &F32(maxima)));
  assert_f32(maxima, 1, 4, 2, 5, 3, 6);
  spk_block_release(turned);
}

static void members_may_differ_in_dtype_and_strides(void **state) {
  (void)state;
  /* Both are 2 blocks of 2 elements; the second lies backwards, and its blocks are pairs of rows.
   */
  float first[] = {1, 2, 3, 4};
  double second[] = {10, 20, 30, 40};
  double norms[2];
  spk_block *block = coupled_blocks(blocks_of(SPK_F32, "(2,2)", DIMS(1, 2)),
                                    blocks_of(SPK_F64, "(4,1):(-1,1)+3", DIMS(2, 1)), NULL);
  const spk_buffer leaves[] = {F32(first), F64(second)};
  assert_ok(spk_block_norms(NULL, block, leaves, 2, 1.0, &F64(norms)));
  assert_f64(norms, 1 + 2 + 40 + 30, 3 + 4 + 20 + 10);
  spk_block_release(block);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_block_spec_cuts_its_view_into_a_grid),
      TEST(no_dims_make_every_element_a_block),
      TEST(extents_up_to_zero_span_the_dimension),
      TEST(scores_are_double_where_a_leaf_is),
      TEST(names_are_copied),
      TEST(facts_of_no_block_are_minus_one_or_null),
      TEST(leaves_out_of_range_are_null),
      TEST(a_coupling_adds_up_its_members),
      TEST(a_coupled_norm_runs_over_rows_and_columns),
      TEST(a_leaf_is_the_spec_that_it_was_created_as),
      TEST(permuted_members_meet_block_by_block),
      TEST(couplings_nest_and_orders_compose),
      TEST(masks_reach_every_member_through_its_order),
      TEST(one_member_may_be_turned_alone),
      TEST(members_may_differ_in_dtype_and_strides),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
