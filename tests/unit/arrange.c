/* Rearrangements: block views, gathered blocks, broadcasts, element masks, copies, scope order. */
#include "support.h"

/* --- block views --------------------------------------------------------------------------- */

static void block_views_describe_the_same_memory(void **state) {
  (void)state;
  spk_view *view = NULL;
  spk_block *block = blocks_of(SPK_F16, "(4,6):(7,-1)+5", DIMS(2, 3));
  assert_ok(spk_block_block_view(block, 0, &view));
  assert_int_equal(spk_view_dtype(view), SPK_F16);
  assert_view(view, "(2,2,2,3):(14,7,-3,-1)+5");
  assert_ok(spk_block_block_view(block, 1, &view));
  assert_view(view, "(2,2,2,3):(14,-3,7,-1)+5");
  spk_block_release(block);
}

static void block_views_of_a_view_alone(void **state) {
  (void)state;
  spk_view *view = view_of(SPK_F32, "(4,6)");
  spk_view *blocks = NULL;
  assert_ok(spk_view_block_view_of(view, DIMS(1, 2), 0, &blocks));
  assert_view(blocks, "(4,1,3,2):(6,6,2,1)");
  assert_ok(spk_view_block_view_of(view, DIMS(-1, 2), 1, &blocks));
  assert_view(blocks, "(1,3,4,2):(24,2,6,1)");
  assert_ok(spk_view_block_view_of(view, NO_DIMS, 1, &blocks));
  assert_view(blocks, "(4,6,1,1):(6,1,6,1)");
  spk_view_release(view);
}

static void gathered_blocks_lie_in_one_piece(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  float out[12];
  spk_block *block = blocks_of(SPK_F32, "(2,6)", DIMS(2, 3));
  assert_ok(spk_block_block_view_merged(NULL, block, &F32(x), 1, &F32(out)));
  assert_f32(out, 1, 2, 3, 7, 8, 9, 4, 5, 6, 10, 11, 12);
  spk_block_release(block);

  spk_view *view = view_of(SPK_F32, "(2,6)");
  assert_ok(spk_view_block_view_merged(NULL, view, &F32(x), DIMS(1, 2), &F32(out)));
  assert_f32(out, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
  assert_ok(spk_view_block_view_merged(NULL, view, &F32(x), DIMS(2, 1), &F32(out)));
  assert_f32(out, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11, 6, 12);
  spk_view_release(view);
}

static void gathered_words_keep_their_bits(void **state) {
  (void)state;
  uint16_t x[] = {0x7c01, 0x8000, 0xfe34, 0x0001};
  uint16_t out[4];
  spk_block *block = blocks_of(SPK_F16, "(4):(-1)+3", DIMS(2));
  assert_ok(spk_block_block_view_merged(NULL, block, &F16(x), 1, &F16(out)));
  assert_words(out, 0x0001, 0xfe34, 0x8000, 0x7c01);
  spk_block_release(block);
}

static void gathered_couplings_follow_member_order(void **state) {
  (void)state;
  float x[] = {1, 2, 3, 4};
  float y[] = {5, 6};
  float out[6];
  const int32_t orders[] = {0, 1, 1, 0};
  const spk_buffer leaves[] = {F32(x), F32(y)};
  spk_block *block = coupled_blocks(blocks_of(SPK_F32, "(2,2)", DIMS(1, 2)),
                                    blocks_of(SPK_F32, "(1,2)", DIMS(1, 1)), orders);
  assert_ok(spk_block_block_view_merged(NULL, block, leaves, 2, &F32(out)));
  assert_f32(out, 1, 2, 5, 3, 4, 6);
  spk_block_release(block);
}

static void gathered_leaves_of_mixed_dtype_come_in_the_score_dtype(void **state) {
  (void)state;
  uint16_t x[] = {0x3c00, 0x4000}; /* 1, 2 as f16 */
  uint16_t y[] = {0x4040, 0x4080}; /* 3, 4 as bf16 */
  double z[] = {5.5, 1.0 / 3.0};
  float out[4];
  const spk_buffer leaves[] = {F16(x), BF16(y), F64(z)};
  spk_block *block =
      coupled_blocks(blocks_of(SPK_F16, "(2)", NO_DIMS), blocks_of(SPK_BF16, "(2)", NO_DIMS), NULL);
  assert_ok(spk_block_block_view_merged(NULL, block, leaves, 2, &F32(out)));
  assert_f32(out, 1, 3, 2, 4);
  block = coupled_blocks(block, blocks_of(SPK_F64, "(2)", NO_DIMS), NULL);
  double full[6];
  assert_ok(spk_block_block_view_merged(NULL, block, leaves, 3, &F64(full)));
  assert_f64(full, 1, 3, 5.5, 2, 4, 1.0 / 3.0);
  spk_block_release(block);
}

/* --- broadcasts ---------------------------------------------------------------------------- */

static void values_are_repeated_over_their_blocks(void **state) {
  (void)state;
  float values[] = {1, NAN, 3, 4};
  float out[8];
  spk_block *block = blocks_of(SPK_F64, "(2,4):(1,2)", DIMS(1, 2));
  assert_ok(spk_block_broadcast_block_to_element(NULL, block, &F32(values), &F32(out), 1));
  assert_f32(out, 1, 1, NAN, NAN, 3, 3, 4, 4);
  int64_t counts[] = {INT64_MIN, 2, 3, INT64_MAX};
  int64_t spread[8];
  assert_ok(spk_block_broadcast_block_to_element(NULL, block, &I64(counts), &I64(spread), 1));
  assert_i64(spread, INT64_MIN, INT64_MIN, 2, 2, 3, 3, INT64_MAX, INT64_MAX);
  uint8_t bytes[] = {0, 7, 255, 1};
  uint8_t elements[8];
  assert_ok(spk_block_broadcast_block_to_element(NULL, block, &U8(bytes), &U8(elements), 1));
  assert_bytes(elements, 0, 0, 7, 7, 255, 255, 1, 1);
  uint16_t words[] = {0x7c01, 1, 2, 3};
  uint16_t halves[8];
  assert_ok(spk_block_broadcast_block_to_element(NULL, block, &F16(words), &F16(halves), 1));
  assert_words(halves, 0x7c01, 0x7c01, 1, 1, 2, 2, 3, 3);
  spk_block_release(block);
}

static void broadcasts_reach_every_member(void **state) {
  (void)state;
  double values[] = {1, 2};
  double x[4];
  double y[2];
  const int32_t orders[] = {0, 1, 1, 0};
  const spk_buffer out[] = {F64(x), F64(y)};
  spk_block *block = coupled_blocks(blocks_of(SPK_F32, "(2,2)", DIMS(1, 2)),
                                    blocks_of(SPK_F16, "(1,2)", NO_DIMS), orders);
  assert_ok(spk_block_broadcast_block_to_element(NULL, block, &F64(values), out, 2));
  assert_f64(x, 1, 1, 2, 2);
  assert_f64(y, 1, 2);
  spk_block_release(block);
}

static void broadcasts_over_a_view_alone(void **state) {
  (void)state;
  float values[] = {1, 2};
  float out[4];
  spk_view *view = view_of(SPK_F32, "(2,2):(2,1)+9");
  assert_ok(spk_view_broadcast_block_to_element(NULL, view, DIMS(2, 1), &F32(values), &F32(out)));
  assert_f32(out, 1, 2, 1, 2);
  spk_view_release(view);
}

static void the_fake_broadcast_and_the_grid_are_views(void **state) {
  (void)state;
  spk_view *view = NULL;
  spk_block *block = blocks_of(SPK_F32, "(4,6,5):(1,4,24)", DIMS(2, 2, 5));
  assert_ok(spk_block_broadcast_fake(block, SPK_BF16, &view));
  assert_int_equal(spk_view_dtype(view), SPK_BF16);
  assert_view(view, "(2,1,3,1,1,1):(3,3,1,1,1,1)");
  assert_ok(spk_block_expand_block_tensor(block, SPK_F64, &view));
  assert_int_equal(spk_view_dtype(view), SPK_F64);
  assert_view(view, "(2,3,1):(3,1,1)");
  spk_block_release(block);
}

/* --- element masks ------------------------------------------------------------------------- */

static void element_masks_are_zeros_and_ones(void **state) {
  (void)state;
  uint8_t keep[] = {1, 0, 255, 0};
  uint8_t masks[8];
  spk_block *block = blocks_of(SPK_F32, "(4,2):(1,4)", DIMS(2, 1));
  assert_ok(spk_block_get_masks(NULL, block, &U8(keep), &U8(masks), 1));
  assert_bytes(masks, 1, 0, 1, 0, 1, 0, 1, 0);
  keep[1] = 2;
  assert_ok(spk_block_get_masks(NULL, block, &U8(keep), &CONTIGUOUS(masks, SPK_U8), 1));
  assert_bytes(masks, 1, 1, 1, 1, 1, 0, 1, 0);
  spk_block_release(block);
}

static void element_masks_of_couplings(void **state) {
  (void)state;
  uint8_t keep[] = {0, 1, 0};
  uint8_t rows[6];
  uint8_t columns[6];
  const int32_t orders[] = {0, 1, 1, 0};
  const spk_buffer masks[] = {U8(rows), U8(columns)};
  spk_block *block = coupled_blocks(blocks_of(SPK_F32, "(3,2)", DIMS(1, 2)),
                                    blocks_of(SPK_F64, "(2,3)", DIMS(2, 1)), orders);
  assert_ok(spk_block_get_masks(NULL, block, &U8(keep), masks, 2));
  assert_bytes(rows, 0, 0, 1, 1, 0, 0);
  assert_bytes(columns, 0, 1, 0, 0, 1, 0);
  spk_block_release(block);
}

/* Rows of blocks from one byte to more than two registers. */
static void element_masks_of_blocks_of_any_width(void **state) {
  (void)state;
  enum { kRows = 6, kAcross = 3, kWidest = 130 };
  static uint8_t masks[kRows * kAcross * kWidest];
  for (int64_t width = 1; width <= kWidest; width += width < 70 ? 1 : 20) {
    const int64_t columns = kAcross * width;
    const int64_t shape[] = {kRows, columns};
    const int64_t block_shape[] = {2, width};
    spk_view *view = NULL;
    spk_block *block = NULL;
    assert_ok(spk_view_create(SPK_F32, 2, shape, NULL, 0, &view));
    assert_ok(spk_block_create(view, 2, block_shape, NULL, &block));
    spk_view_release(view);
    uint8_t keep[kRows / 2 * kAcross];
    for (int b = 0; b < kRows / 2 * kAcross; ++b) keep[b] = (b * 5 + width) % 3 == 0;
    memset(masks, 7, sizeof masks);
    const spk_buffer to = {masks, kRows * columns, SPK_U8, SPK_LAYOUT_CONTIGUOUS, NULL};
    assert_ok(spk_block_get_masks(NULL, block, &U8(keep), &to, 1));
    for (int64_t i = 0; i < kRows * columns; ++i) {
      assert_int_equal(masks[i], keep[i / columns / 2 * kAcross + i % columns / width]);
    }
    for (size_t i = (size_t)(kRows * columns); i < sizeof masks; ++i) assert_int_equal(masks[i], 7);
    spk_block_release(block);
  }
}

/* --- set_data ------------------------------------------------------------------------------ */

static void data_is_copied_through_the_view(void **state) {
  (void)state;
  float x[] = {-1, -2, -3, -4, -5, -6};
  float source[] = {1, 2, 3, 4, 5, 6};
  float row_major[] = {1, 2, 3, 4};
  spk_view *backwards = view_of(SPK_F32, "(2,2):(-2,-1)+3");
  spk_block *block = blocks_of(SPK_F32, "(2,2):(3,1)+1", DIMS(1, 2));
  /* As the leaf's view reads it, row-major, and as a view of its own does. */
  assert_ok(spk_block_set_data(NULL, block, &F32(x), 1, &F32(source)));
  assert_f32(x, -1, 2, 3, -4, 5, 6);
  assert_ok(spk_block_set_data(NULL, block, &F32(x), 1, &CONTIGUOUS(row_major, SPK_F32)));
  assert_f32(x, -1, 1, 2, -4, 3, 4);
  assert_ok(spk_block_set_data(NULL, block, &F32(x), 1, &OWN(row_major, SPK_F32, backwards)));
  assert_f32(x, -1, 4, 3, -4, 2, 1);
  spk_block_release(block);
  spk_view_release(backwards);
}

static void data_of_the_same_dtype_keeps_its_bits(void **state) {
  (void)state;
  float x[2];
  float source[] = {float_of(0x7f800001), -0.0f};
  spk_block *block = blocks_of(SPK_F32, "(2)", NO_DIMS);
  assert_ok(spk_block_set_data(NULL, block, &F32(x), 1, &F32(source)));
  assert_memory_equal(x, source, sizeof x);
  /* A copy onto itself. */
  assert_ok(spk_block_set_data(NULL, block, &F32(x), 1, &F32(x)));
  assert_memory_equal(x, source, sizeof x);
  spk_block_release(block);
}

static void wide_data_is_rounded_once(void **state) {
  (void)state;
  /* Just above a tie of 16 bits, by less than a float can hold; a tie to even; out of range; a
   * subnormal tie; a special value. */
  double source[] = {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, 65520, -65519.99, 0x1p-25, -INFINITY};
  uint16_t half[6];
  spk_block *block = blocks_of(SPK_F16, "(6)", NO_DIMS);
  assert_ok(spk_block_set_data(NULL, block, &F16(half), 1, &F64(source)));
  assert_words(half, 0x3c01, 0x3c00, 0x7c00, 0xfbff, 0x0000, 0xfc00);
  spk_block_release(block);

  double wide[] = {1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-8, 1 + 3 * 0x1p-8, 1e300, -0.0, 0x1p-134};
  uint16_t brain[6];
  block = blocks_of(SPK_BF16, "(6)", DIMS(3));
  assert_ok(spk_block_set_data(NULL, block, &BF16(brain), 1, &F64(wide)));
  assert_words(brain, 0x3f81, 0x3f80, 0x3f82, 0x7f80, 0x8000, 0x0000);
  spk_block_release(block);

  double full[] = {1 + 0x1p-24 + 0x1p-50, 1 + 0x1p-24};
  float single[2];
  block = blocks_of(SPK_F32, "(2)", DIMS(2));
  assert_ok(spk_block_set_data(NULL, block, &F32(single), 1, &F64(full)));
  assert_int_equal(bits_of(single[0]), 0x3f800001);
  assert_int_equal(bits_of(single[1]), 0x3f800000);
  spk_block_release(block);
}

static void narrow_data_is_widened_exactly(void **state) {
  (void)state;
  uint16_t half[] = {0x0001, 0x83ff, 0x7bff, 0xfc00, 0x7e00};
  uint16_t brain[] = {0x0001, 0x3f81, 0x7f7f, 0xff80, 0x8000};
  float single[5];
  double full[5];
  spk_block *block = blocks_of(SPK_F32, "(5)", NO_DIMS);
  assert_ok(spk_block_set_data(NULL, block, &F32(single), 1, &F16(half)));
  assert_f32(single, 0x1p-24f, -1023 * 0x1p-24f, 65504, -INFINITY, NAN);
  spk_block_release(block);
  block = blocks_of(SPK_F64, "(5)", NO_DIMS);
  assert_ok(spk_block_set_data(NULL, block, &F64(full), 1, &BF16(brain)));
  assert_f64(full, 0x1p-133, 1 + 0x1p-7, 255 * 0x1p120, -INFINITY, -0.0);
  spk_block_release(block);
}

static void data_of_couplings_comes_leaf_by_leaf(void **state) {
  (void)state;
  float x[2];
  uint16_t y[2];
  double source_x[] = {1, 2};
  float source_y[] = {3, 4};
  const spk_buffer leaves[] = {F32(x), F16(y)};
  const spk_buffer source[] = {F64(source_x), F32(source_y)};
  spk_block *block =
      coupled_blocks(blocks_of(SPK_F32, "(2)", NO_DIMS), blocks_of(SPK_F16, "(2)", NO_DIMS), NULL);
  assert_ok(spk_block_set_data(NULL, block, leaves, 2, source));
  assert_f32(x, 1, 2);
  assert_words(y, 0x4200, 0x4400);
  /* What is only read may be one buffer twice. */
  const spk_buffer twice[] = {F32(source_y), F32(source_y)};
  assert_ok(spk_block_set_data(NULL, block, leaves, 2, twice));
  assert_f32(x, 3, 4);
  spk_block_release(block);
}

/* --- scope order --------------------------------------------------------------------------- */

/* A grid of 2 x 6 blocks in scopes of 2 x 3: two scopes of six. */
static spk_scope *two_scopes_of_six(void) {
  return scopes_over(blocks_of(SPK_F32, "(2,6)", NO_DIMS), DIMS(2, 3));
}

static void block_arrays_are_arranged_by_scope_and_back(void **state) {
  (void)state;
  float grid[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  float out[12];
  spk_scope *scope = two_scopes_of_six();
  assert_ok(spk_scope_block_to_scope(NULL, scope, &F32(grid), 1, &F32(out)));
  assert_f32(out, 1, 2, 3, 7, 8, 9, 4, 5, 6, 10, 11, 12);
  uint8_t values[] = {5, 9};
  uint8_t blocks[12];
  assert_ok(spk_scope_scope_to_block(NULL, scope, &U8(values), &U8(blocks), 1));
  assert_bytes(blocks, 5, 5, 5, 9, 9, 9, 5, 5, 5, 9, 9, 9);
  spk_scope_release(scope);
}

static void block_arrays_of_couplings_are_concatenated(void **state) {
  (void)state;
  int64_t first[] = {1, 2, 3, 4};
  int64_t second[] = {10, 20};
  int64_t out[6];
  const int32_t orders[] = {0, 1, 1, 0};
  const spk_buffer members[] = {I64(first), I64(second)};
  /* Scopes: the rows of a 2 x 2 grid, and the columns of a 1 x 2 grid. */
  spk_scope *scope =
      coupled_scopes(scopes_over(blocks_of(SPK_F32, "(2,2)", NO_DIMS), DIMS(1, 2)),
                     scopes_over(blocks_of(SPK_F32, "(1,2)", NO_DIMS), DIMS(1, 1)), orders);
  assert_ok(spk_scope_block_to_scope(NULL, scope, members, 2, &I64(out)));
  assert_i64(out, 1, 2, 10, 3, 4, 20);
  double values[] = {0.5, 0.25};
  double to_first[4];
  double to_second[2];
  const spk_buffer to[] = {F64(to_first), F64(to_second)};
  assert_ok(spk_scope_scope_to_block(NULL, scope, &F64(values), to, 2));
  assert_f64(to_first, 0.5, 0.5, 0.25, 0.25);
  assert_f64(to_second, 0.5, 0.25);
  spk_scope_release(scope);
}

static void scope_views_describe_a_grid_array(void **state) {
  (void)state;
  spk_view *view = NULL;
  spk_scope *scope = two_scopes_of_six();
  assert_ok(spk_scope_block_to_scope_view(scope, SPK_F32, 0, &view));
  assert_view(view, "(1,2,2,3):(12,6,3,1)");
  assert_ok(spk_scope_block_to_scope_view(scope, SPK_F64, 1, &view));
  assert_int_equal(spk_view_dtype(view), SPK_F64);
  assert_view(view, "(1,2,2,3):(12,3,6,1)");
  spk_scope_release(scope);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(block_views_describe_the_same_memory),
      TEST(block_views_of_a_view_alone),
      TEST(gathered_blocks_lie_in_one_piece),
      TEST(gathered_words_keep_their_bits),
      TEST(gathered_couplings_follow_member_order),
      TEST(gathered_leaves_of_mixed_dtype_come_in_the_score_dtype),
      TEST(values_are_repeated_over_their_blocks),
      TEST(broadcasts_reach_every_member),
      TEST(broadcasts_over_a_view_alone),
      TEST(the_fake_broadcast_and_the_grid_are_views),
      TEST(element_masks_are_zeros_and_ones),
      TEST(element_masks_of_couplings),
      TEST(element_masks_of_blocks_of_any_width),
      TEST(data_is_copied_through_the_view),
      TEST(data_of_the_same_dtype_keeps_its_bits),
      TEST(wide_data_is_rounded_once),
      TEST(narrow_data_is_widened_exactly),
      TEST(data_of_couplings_comes_leaf_by_leaf),
      TEST(block_arrays_are_arranged_by_scope_and_back),
      TEST(block_arrays_of_couplings_are_concatenated),
      TEST(scope_views_describe_a_grid_array),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
