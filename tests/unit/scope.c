/* Scope specs and couplings: facts, counts of a sparsity, members and their orders. */
#include <fenv.h>

#include "support.h"

static void a_scope_spec_cuts_a_grid_of_blocks(void **state) {
  (void)state;
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(8,12)", DIMS(2, 2)), DIMS(2, 3));
  assert_string_equal(spk_scope_name(scope), "scope");
  assert_int_equal(spk_scope_grid_ndim(scope), 2);
  assert_i64(spk_scope_grid_shape(scope), 2, 2);
  assert_int_equal(spk_scope_numscope(scope), 4);
  assert_int_equal(spk_scope_numblk_per_scope(scope), 6);
  assert_int_equal(spk_scope_numel_per_scope(scope), 24);
  assert_int_equal(spk_scope_score_dtype(scope), SPK_F32);
  assert_int_equal(spk_scope_member_count(scope), 1);
  assert_int_equal(spk_scope_member_numblk(scope, 0), 6);
  assert_int_equal(spk_block_numblk(spk_scope_member_block(scope, 0)), 24);
  assert_int_equal(spk_scope_leaf_count(scope), 1);
  assert_i64(spk_view_shape(spk_scope_leaf_view(scope, 0)), 8, 12);
  spk_scope_release(scope);
}

static void missing_dims_and_extents_up_to_zero_span(void **state) {
  (void)state;
  spk_scope *scope = scopes_over(blocks_of(SPK_F64, "(4,6,5)", NO_DIMS), NO_DIMS);
  assert_i64(spk_scope_grid_shape(scope), 1, 1, 1);
  assert_int_equal(spk_scope_numscope(scope), 1);
  assert_int_equal(spk_scope_numblk_per_scope(scope), 120);
  assert_int_equal(spk_scope_score_dtype(scope), SPK_F64);
  spk_scope_release(scope);
  scope = scopes_over(blocks_of(SPK_F32, "(4,6,5)", NO_DIMS), DIMS(2));
  assert_i64(spk_scope_grid_shape(scope), 2, 1, 1);
  assert_int_equal(spk_scope_numblk_per_scope(scope), 60);
  spk_scope_release(scope);
  scope = scopes_over(blocks_of(SPK_F32, "(4,6,5)", NO_DIMS), DIMS(-1, 3, 0));
  assert_i64(spk_scope_grid_shape(scope), 1, 2, 1);
  assert_int_equal(spk_scope_numblk_per_scope(scope), 60);
  spk_scope_release(scope);
}

static void facts_of_no_scope_are_minus_one_or_null(void **state) {
  (void)state;
  assert_null(spk_scope_name(NULL));
  assert_int_equal(spk_scope_grid_ndim(NULL), -1);
  assert_null(spk_scope_grid_shape(NULL));
  assert_int_equal(spk_scope_numscope(NULL), -1);
  assert_int_equal(spk_scope_numblk_per_scope(NULL), -1);
  assert_int_equal(spk_scope_numel_per_scope(NULL), -1);
  assert_int_equal(spk_scope_score_dtype(NULL), -1);
  assert_int_equal(spk_scope_member_count(NULL), -1);
  assert_null(spk_scope_member_block(NULL, 0));
  assert_int_equal(spk_scope_member_numblk(NULL, 0), -1);
  assert_int_equal(spk_scope_leaf_count(NULL), -1);
  assert_null(spk_scope_leaf_view(NULL, 0));
}

static void members_and_leaves_out_of_range(void **state) {
  (void)state;
  spk_scope *scope = scopes_over(blocks_of(SPK_F32, "(4)", NO_DIMS), NO_DIMS);
  const int32_t outside[] = {-1, 1};
  for (int64_t i = 0; i < COUNT(outside); ++i) {
    assert_null(spk_scope_member_block(scope, outside[i]));
    assert_int_equal(spk_scope_member_numblk(scope, outside[i]), -1);
    assert_null(spk_scope_leaf_view(scope, outside[i]));
  }
  spk_scope_release(scope);
}

static void names_are_copied(void **state) {
  (void)state;
  char name[] = "layer 1";
  spk_block *block = blocks_of(SPK_F32, "(4)", NO_DIMS);
  spk_scope *scope = NULL;
  assert_ok(spk_scope_create(block, NO_DIMS, name, &scope));
  name[0] = '#';
  assert_string_equal(spk_scope_name(scope), "layer 1");
  spk_scope_release(scope);
  spk_block_release(block);
}

/* --- sparsity ------------------------------------------------------------------------------ */

static int64_t kept_of(int64_t blocks, double sparsity) {
  spk_view *view = NULL;
  spk_block *block = NULL;
  int64_t kept = -1;
  assert_ok(spk_view_create(SPK_F32, DIMS(blocks), NULL, 0, &view));
  assert_ok(spk_block_create(view, NO_DIMS, NULL, &block));
  spk_scope *scope = scopes_over(block, NO_DIMS);
  spk_view_release(view);
  assert_ok(spk_scope_sparsity_to_nnz(scope, sparsity, &kept));
  spk_scope_release(scope);
  return kept;
}

static void a_sparsity_floors_what_it_removes(void **state) {
  (void)state;
  assert_int_equal(kept_of(7, 0), 7);
  assert_int_equal(kept_of(7, 1), 0);
  assert_int_equal(kept_of(7, 0.5), 4);
  assert_int_equal(kept_of(7, 0.99), 1);
  assert_int_equal(kept_of(7, 1e-300), 7);
  assert_int_equal(kept_of(1, 0.999999), 1);
  assert_int_equal(kept_of(1, 1), 0);
}

static void decimal_rates_meet_whole_numbers(void **state) {
  (void)state;
  /* In double, 0.29 * 100 is 28.999999999999996. */
  assert_int_equal(kept_of(100, 0.29), 71);
  for (int64_t percent = 0; percent <= 100; ++percent) {
    assert_int_equal(kept_of(100, (double)percent / 100), 100 - percent);
    assert_int_equal(kept_of(1000, (double)percent / 100), 1000 - 10 * percent);
  }
  assert_int_equal(kept_of(100, 0.2899999), 72);
}

static void counts_do_not_depend_on_the_rounding_mode_of_the_host(void **state) {
  (void)state;
  /* Five units below 1/3: three times it, times 1 + 2^-50, is above 1. */
  const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  int64_t kept[4];
  for (int64_t i = 0; i < COUNT(modes); ++i) {
    fesetround(modes[i]);
    kept[i] = kept_of(3, 0x1.555555555555p-2);
    fesetround(FE_TONEAREST);
  }
  assert_i64(kept, 2, 2, 2, 2);
}

/* --- couplings ----------------------------------------------------------------------------- */

static void a_coupling_joins_scopes_of_different_blocks(void **state) {
  (void)state;
  /* Per scope: 2 x 3 blocks of one element, and 1 block of 4 x 2 elements. */
  spk_scope *scope =
      coupled_scopes(scopes_over(blocks_of(SPK_F32, "(4,9)", NO_DIMS), DIMS(2, 3)),
                     scopes_over(blocks_of(SPK_F64, "(8,6)", DIMS(4, 2)), DIMS(1, 1)), NULL);
  assert_string_equal(spk_scope_name(scope), "coupling");
  assert_i64(spk_scope_grid_shape(scope), 2, 3);
  assert_int_equal(spk_scope_numscope(scope), 6);
  assert_int_equal(spk_scope_numblk_per_scope(scope), 7);
  assert_int_equal(spk_scope_numel_per_scope(scope), 6 + 8);
  assert_int_equal(spk_scope_score_dtype(scope), SPK_F64);
  assert_int_equal(spk_scope_member_count(scope), 2);
  assert_int_equal(spk_scope_member_numblk(scope, 0), 6);
  assert_int_equal(spk_scope_member_numblk(scope, 1), 1);
  assert_i64(spk_block_leaf_shape(spk_scope_member_block(scope, 1), 0), 4, 2);
  assert_int_equal(spk_scope_leaf_count(scope), 2);
  assert_int_equal(spk_view_dtype(spk_scope_leaf_view(scope, 1)), SPK_F64);
  int64_t kept = -1;
  assert_ok(spk_scope_sparsity_to_nnz(scope, 0.5, &kept));
  assert_int_equal(kept, 4);
  spk_scope_release(scope);
}

static void scopes_over_coupled_blocks(void **state) {
  (void)state;
  const int32_t orders[] = {0, 1, 1, 0};
  spk_block *neurons = coupled_blocks(blocks_of(SPK_F32, "(6,4)", DIMS(1, -1)),
                                      blocks_of(SPK_F32, "(3,6)", DIMS(-1, 1)), orders);
  spk_scope *scope = scopes_over(neurons, DIMS(3, 1));
  assert_i64(spk_scope_grid_shape(scope), 2, 1);
  assert_int_equal(spk_scope_numblk_per_scope(scope), 3);
  assert_int_equal(spk_scope_numel_per_scope(scope), 21);
  assert_int_equal(spk_scope_leaf_count(scope), 2);
  /* The coupled blocks compete with those of a third leaf. */
  scope =
      coupled_scopes(scope, scopes_over(blocks_of(SPK_BF16, "(1,4)", NO_DIMS), DIMS(1, 2)), orders);
  assert_i64(spk_scope_grid_shape(scope), 2, 1);
  assert_int_equal(spk_scope_numblk_per_scope(scope), 5);
  assert_int_equal(spk_scope_numel_per_scope(scope), 23);
  assert_int_equal(spk_scope_member_count(scope), 2);
  assert_int_equal(spk_scope_leaf_count(scope), 3);
  assert_int_equal(spk_view_dtype(spk_scope_leaf_view(scope, 2)), SPK_BF16);
  spk_scope_release(scope);
}

static void orders_of_scope_couplings_compose(void **state) {
  (void)state;
  /* Block (i, j, k) of `a` holds 100 i + 10 j + k; `b` has the axes (k, i, j). */
  float a[2][3][4];
  float b[4][2][3];
  float c[4][2][3];
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) {
        a[i][j][k] = (float)(100 * i + 10 * j + k);
        b[k][i][j] = a[i][j][k] + 0.5f;
        c[k][i][j] = a[i][j][k] + 0.25f;
      }
    }
  }
  const int32_t b_to_a[] = {0, 1, 2, 1, 2, 0};
  const int32_t a_to_c[] = {2, 0, 1, 0, 1, 2};
  spk_scope *scope =
      coupled_scopes(scopes_over(blocks_of(SPK_F32, "(2,3,4)", NO_DIMS), DIMS(1, 1, 1)),
                     scopes_over(blocks_of(SPK_F32, "(4,2,3)", NO_DIMS), DIMS(1, 1, 1)), b_to_a);
  assert_i64(spk_scope_grid_shape(scope), 2, 3, 4);
  scope = coupled_scopes(scope, scopes_over(blocks_of(SPK_F32, "(4,2,3)", NO_DIMS), DIMS(1, 1, 1)),
                         a_to_c);
  assert_i64(spk_scope_grid_shape(scope), 4, 2, 3);
  assert_int_equal(spk_scope_member_count(scope), 3);
  float norms[24 * 3];
  const spk_buffer leaves[] = {{a, 24, SPK_F32, SPK_LAYOUT_VIEW, NULL},
                               {b, 24, SPK_F32, SPK_LAYOUT_VIEW, NULL},
                               {c, 24, SPK_F32, SPK_LAYOUT_VIEW, NULL}};
  assert_ok(spk_scope_block_norms(NULL, scope, leaves, 3, 1, &F32(norms)));
  for (int s = 0; s < 24; ++s) {
    const float code = (float)(100 * (s / 3 % 2) + 10 * (s % 3) + s / 6);
    assert_f32(norms + s * 3, code, code + 0.5f, code + 0.25f);
  }
  spk_scope_release(scope);
}

static void coupled_block_orders_meet_scope_orders(void **state) {
  (void)state;
  /* Rows of x with columns of y: three blocks, one a scope; the scope grid is turned as well. */
  float x[] = {1, 1, 2, 2, 3, 3};
  float y[] = {10, 20, 30};
  float z[] = {100, 200, 300};
  float norms[6];
  const int32_t orders[] = {0, 1, 1, 0};
  const int32_t turned[] = {1, 0, 0, 1};
  spk_block *rows = coupled_blocks(blocks_of(SPK_F32, "(3,2)", DIMS(1, 2)),
                                   blocks_of(SPK_F32, "(1,3)", NO_DIMS), orders);
  spk_scope *scope =
      coupled_scopes(scopes_over(rows, DIMS(1, 1)),
                     scopes_over(blocks_of(SPK_F32, "(1,3)", NO_DIMS), DIMS(1, 1)), turned);
  assert_i64(spk_scope_grid_shape(scope), 1, 3);
  const spk_buffer leaves[] = {F32(x), F32(y), F32(z)};
  assert_ok(spk_scope_block_norms(NULL, scope, leaves, 3, 1, &F32(norms)));
  assert_f32(norms, 12, 100, 24, 200, 36, 300);
  spk_scope_release(scope);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_scope_spec_cuts_a_grid_of_blocks),
      TEST(missing_dims_and_extents_up_to_zero_span),
      TEST(facts_of_no_scope_are_minus_one_or_null),
      TEST(members_and_leaves_out_of_range),
      TEST(names_are_copied),
      TEST(a_sparsity_floors_what_it_removes),
      TEST(decimal_rates_meet_whole_numbers),
      TEST(counts_do_not_depend_on_the_rounding_mode_of_the_host),
      TEST(a_coupling_joins_scopes_of_different_blocks),
      TEST(scopes_over_coupled_blocks),
      TEST(orders_of_scope_couplings_compose),
      TEST(coupled_block_orders_meet_scope_orders),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
