/* Views: facts, offsets, the text form, the exact overlap tests, DLPack. */
#include "support.h"

/* --- facts --------------------------------------------------------------------------------- */

static void a_view_without_strides_is_row_major(void **state) {
  (void)state;
  spk_view *view = NULL;
  assert_ok(spk_view_create(SPK_BF16, DIMS(2, 3, 4), NULL, 0, &view));
  assert_int_equal(spk_view_dtype(view), SPK_BF16);
  assert_int_equal(spk_view_ndim(view), 3);
  assert_i64(spk_view_shape(view), 2, 3, 4);
  assert_i64(spk_view_stride(view), 12, 4, 1);
  assert_int_equal(spk_view_offset(view), 0);
  assert_int_equal(spk_view_numel(view), 24);
  assert_int_equal(spk_view_cosize(view), 24);
  spk_view_release(view);
}

static void cosize_spans_the_layout_without_the_offset(void **state) {
  (void)state;
  const int64_t stride[] = {-8, 2};
  spk_view *view = NULL;
  assert_ok(spk_view_create(SPK_F64, DIMS(3, 4), stride, 20, &view));
  assert_i64(spk_view_stride(view), -8, 2);
  assert_int_equal(spk_view_offset(view), 20);
  assert_int_equal(spk_view_numel(view), 12);
  assert_int_equal(spk_view_cosize(view), 1 + 2 * 8 + 3 * 2);
  spk_view_release(view);
}

static void facts_of_no_view_are_minus_one_or_null(void **state) {
  (void)state;
  assert_int_equal(spk_view_dtype(NULL), -1);
  assert_int_equal(spk_view_ndim(NULL), -1);
  assert_null(spk_view_shape(NULL));
  assert_null(spk_view_stride(NULL));
  assert_int_equal(spk_view_offset(NULL), -1);
  assert_int_equal(spk_view_numel(NULL), -1);
  assert_int_equal(spk_view_cosize(NULL), -1);
}

static void a_view_has_up_to_16_dims(void **state) {
  (void)state;
  int64_t ones[SPK_MAX_NDIM];
  for (int d = 0; d < SPK_MAX_NDIM; ++d) ones[d] = 1;
  spk_view *view = NULL;
  assert_ok(spk_view_create(SPK_F32, SPK_MAX_NDIM, ones, NULL, 7, &view));
  assert_int_equal(spk_view_ndim(view), SPK_MAX_NDIM);
  assert_int_equal(spk_view_cosize(view), 1);
  spk_view_release(view);
}

/* --- offsets ------------------------------------------------------------------------------- */

static void linear_offset_adds_offset_and_strides(void **state) {
  (void)state;
  spk_view *view = view_of(SPK_F32, "(3,4):(-8,2)+20");
  const int64_t index[] = {0, 0, 2, 0, 1, 3, 2, 3};
  int64_t offset[4];
  assert_ok(spk_view_linear_offset(view, index, 4, offset));
  assert_i64(offset, 20, 4, 18, 10);
  assert_ok(spk_view_linear_offset(view, NULL, 0, NULL));
  spk_view_release(view);
}

static void param_rc_places_elements_in_the_owning_matrix(void **state) {
  (void)state;
  spk_view *view = view_of(SPK_F32, "(3,4):(-8,2)+20");
  const int64_t index[] = {0, 0, 2, 0, 1, 3, 2, 3};
  int64_t rows[4];
  int64_t cols[4];
  assert_ok(spk_view_to_param_rc(view, index, 4, 7, rows, cols));
  assert_i64(rows, 2, 0, 2, 1);
  assert_i64(cols, 6, 4, 4, 3);
  assert_ok(spk_view_to_param_rc(view, index, 1, 1, rows, cols));
  assert_i64(rows, 20);
  assert_i64(cols, 0);
  assert_ok(spk_view_to_param_rc(view, NULL, 0, 7, NULL, NULL));
  spk_view_release(view);
}

/* --- text form ----------------------------------------------------------------------------- */

static void text_form_is_read(void **state) {
  (void)state;
  assert_view(view_of(SPK_F32, "(64,128):(128,1)"), "(64,128):(128,1)");
  assert_view(view_of(SPK_F32, "(64,128):(128,1)+32"), "(64,128):(128,1)+32");
  assert_view(view_of(SPK_F32, "(64,128)"), "(64,128):(128,1)");
  assert_view(view_of(SPK_F32, "(64,128)+5"), "(64,128):(128,1)+5");
  assert_view(view_of(SPK_F32, "(7)"), "(7):(1)");
  assert_view(view_of(SPK_F32, "(4):(-1)+3"), "(4):(-1)+3");
  assert_view(view_of(SPK_F32, " ( 2 ,\t3 ) : ( -3 , 1 ) + 8 "), "(2,3):(-3,1)+8");

  spk_view *view = view_of(SPK_F16, "(2560,608,8,2):(9728,16,1,8)");
  assert_int_equal(spk_view_dtype(view), SPK_F16);
  assert_i64(spk_view_shape(view), 2560, 608, 8, 2);
  assert_i64(spk_view_stride(view), 9728, 16, 1, 8);
  assert_int_equal(spk_view_numel(view), 24903680);
  assert_int_equal(spk_view_cosize(view), 24903680);
  assert_view(view, "(2560,608,8,2):(9728,16,1,8)");
}

static void text_form_tells_its_length(void **state) {
  (void)state;
  spk_view *view = view_of(SPK_F32, "(2,3)+4");
  char text[] = "###############";
  size_t length = 0;
  assert_ok(spk_view_format(view, NULL, 0, &length));
  assert_int_equal(length, strlen("(2,3):(3,1)+4"));
  assert_ok(spk_view_format(view, text, length + 1, NULL));
  assert_string_equal(text, "(2,3):(3,1)+4");
  assert_int_equal(text[length + 1], '#');
  spk_view_release(view);
}

static void text_form_of_a_block_view_has_32_dims(void **state) {
  (void)state;
  int64_t ones[SPK_MAX_NDIM];
  for (int d = 0; d < SPK_MAX_NDIM; ++d) ones[d] = 1;
  spk_view *view = NULL;
  spk_view *blocks = NULL;
  assert_ok(spk_view_create(SPK_F32, SPK_MAX_NDIM, ones, NULL, 0, &view));
  assert_ok(spk_view_block_view_of(view, NO_DIMS, 1, &blocks));
  assert_int_equal(spk_view_ndim(blocks), 2 * SPK_MAX_NDIM);
  size_t length = 0;
  assert_ok(spk_view_format(blocks, NULL, 0, &length));
  /* 32 ones and 31 commas, twice, two pairs of parentheses and a colon. */
  assert_int_equal(length, 2 * (32 + 31) + 5);
  spk_view_release(blocks);
  spk_view_release(view);
}

/* --- overlap inside a view ----------------------------------------------------------------- */

static bool is_accepted(const char *text) {
  spk_view *view = NULL;
  const spk_status status = spk_view_parse(SPK_F32, text, &view);
  spk_view_release(view);
  if (status != SPK_OK) assert_int_equal(status, SPK_OVERLAP);
  return status == SPK_OK;
}

static void overlap_test_is_exact_where_strides_interleave(void **state) {
  (void)state;
  assert_true(is_accepted("(4,4):(4,1)"));
  assert_true(is_accepted("(4,4):(1,4)"));
  assert_true(is_accepted("(1,4):(0,1)"));
  assert_false(is_accepted("(2,2):(0,1)"));
  assert_false(is_accepted("(4,4):(3,1)"));
  assert_false(is_accepted("(4,4):(1,1)"));
  assert_false(is_accepted("(2,2):(1,-1)+1"));
  /* 2i + 3j: 0 2 4 3 5 7. */
  assert_true(is_accepted("(3,2):(2,3)"));
  /* 3i + 4j meets itself where i grows by 4 and j falls by 3. */
  assert_true(is_accepted("(4,4):(3,4)"));
  assert_true(is_accepted("(9,3):(3,4)"));
  assert_false(is_accepted("(5,4):(3,4)"));
  assert_false(is_accepted("(5,4):(3,-4)+12"));
  /* 1001 and 1003 have no common factor. */
  assert_true(is_accepted("(1003,1001):(1001,1003)"));
  assert_true(is_accepted("(1004,1001):(1001,1003)"));
  assert_false(is_accepted("(1004,1002):(1001,1003)"));
  /* Powers of three: a difference of digits in -1, 0, 1 is never 0; with digits up to 3 it is. */
  assert_true(is_accepted("(3,3,3,3,3):(1,3,9,27,81)"));
  assert_true(is_accepted("(2,2,2,2,2):(16,81,27,9,3)"));
  assert_false(is_accepted("(4,2,2,2,2):(3,81,27,9,1)"));
}

enum { kMaxRank = 6, kMaxSpan = 4096 };

struct layout {
  int32_t ndim;
  int64_t shape[kMaxRank];
  int64_t stride[kMaxRank];
  int64_t offset;
};

/* Knuth's MMIX generator; its upper bits are the better ones. */
static int64_t random_in(uint64_t *seed, int64_t low, int64_t high) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return low + (int64_t)((*seed >> 33) % (uint64_t)(high - low + 1));
}

/* Shuffled, padded or bent row-major layouts: some reach elements twice, some do not. */
static struct layout random_layout(uint64_t *seed, int32_t ndim) {
  struct layout layout = {.ndim = ndim};
  int32_t order[kMaxRank];
  for (int32_t d = 0; d < ndim; ++d) {
    const int32_t at = (int32_t)random_in(seed, 0, d);
    order[d] = order[at];
    order[at] = d;
    layout.shape[d] = random_in(seed, 1, ndim <= 3 ? 6 : 3);
  }
  int64_t step = random_in(seed, 1, 3);
  for (int32_t d = 0; d < ndim; ++d) {
    const int32_t at = order[d];
    layout.stride[at] = (step + random_in(seed, -2, 2)) * (random_in(seed, 0, 3) == 0 ? -1 : 1);
    const int64_t below = (layout.shape[at] - 1) * layout.stride[at];
    if (below < 0) layout.offset -= below;
    step *= layout.shape[at];
  }
  layout.offset += random_in(seed, 0, 5);
  return layout;
}

/* Calls visit(data, offset) for each element. */
static void for_each_element(const struct layout *layout, void (*visit)(void *, int64_t),
                             void *data) {
  int64_t index[kMaxRank] = {0};
  for (;;) {
    int64_t offset = layout->offset;
    for (int32_t d = 0; d < layout->ndim; ++d) offset += index[d] * layout->stride[d];
    visit(data, offset);
    int32_t d = layout->ndim - 1;
    while (d >= 0 && ++index[d] == layout->shape[d]) index[d--] = 0;
    if (d < 0) return;
  }
}

struct census {
  uint8_t seen[kMaxSpan];
  bool twice;
};

static void count_element(void *data, int64_t offset) {
  struct census *census = data;
  assert_in_range(offset, 0, kMaxSpan - 1);
  if (census->seen[offset]++) census->twice = true;
}

static bool reaches_an_element_twice(const struct layout *layout) {
  struct census census = {.twice = false};
  for_each_element(layout, count_element, &census);
  return census.twice;
}

static spk_status create(int32_t dtype, const struct layout *layout, spk_view **out) {
  return spk_view_create(dtype, layout->ndim, layout->shape, layout->stride, layout->offset, out);
}

static void print_layout(const char *name, const struct layout *layout) {
  print_error("%s:", name);
  for (int32_t d = 0; d < layout->ndim; ++d) {
    print_error(" %lld:%lld", (long long)layout->shape[d], (long long)layout->stride[d]);
  }
  print_error(" + %lld\n", (long long)layout->offset);
}

static void overlap_test_agrees_with_counting(void **state) {
  (void)state;
  uint64_t seed = 1;
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < 60000; ++i) {
    const struct layout layout = random_layout(&seed, 1 + i % kMaxRank);
    const bool twice = reaches_an_element_twice(&layout);
    spk_view *view = NULL;
    const spk_status status = create(SPK_F32, &layout, &view);
    spk_view_release(view);
    if (status != (twice ? SPK_OVERLAP : SPK_OK)) {
      print_layout("layout", &layout);
      fail_msg("got %s", spk_status_string(status));
    }
    ++*(twice ? &refused : &accepted);
  }
  assert_true(accepted > 10000);
  assert_true(refused > 10000);
}

/* --- overlap between leaves of one buffer -------------------------------------------------- */

static const int32_t kDtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};

/* A leaf somewhere in one piece of memory. */
struct leaf {
  struct layout layout;
  int32_t dtype;
  int64_t first_byte;
};

static struct leaf random_leaf(uint64_t *seed, int32_t ndim) {
  struct leaf leaf;
  do {
    leaf.layout = random_layout(seed, ndim);
  } while (reaches_an_element_twice(&leaf.layout));
  leaf.dtype = kDtypes[random_in(seed, 0, COUNT(kDtypes) - 1)];
  leaf.first_byte = random_in(seed, 0, 12) * size_of(leaf.dtype);
  return leaf;
}

static _Alignas(8) unsigned char memory[8 * (kMaxSpan + 16)];

static spk_buffer buffer_of(const struct leaf *leaf) {
  const int64_t bytes = (int64_t)sizeof memory - leaf->first_byte;
  return (spk_buffer){memory + leaf->first_byte, bytes / size_of(leaf->dtype), leaf->dtype,
                      SPK_LAYOUT_VIEW, NULL};
}

/* Who reaches each byte: a set of leaves. */
struct byte_census {
  uint8_t users[sizeof memory];
  const struct leaf *leaf;
  uint8_t user;
  bool shared;
};

static void count_bytes(void *data, int64_t offset) {
  struct byte_census *census = data;
  const int64_t size = size_of(census->leaf->dtype);
  for (int64_t b = 0; b < size; ++b) {
    uint8_t *users = &census->users[census->leaf->first_byte + offset * size + b];
    *users |= census->user;
    if (*users == 3) census->shared = true;
  }
}

static bool share_a_byte(const struct leaf *a, const struct leaf *b) {
  static struct byte_census census;
  memset(&census, 0, sizeof census);
  census.leaf = a;
  census.user = 1;
  for_each_element(&a->layout, count_bytes, &census);
  census.leaf = b;
  census.user = 2;
  for_each_element(&b->layout, count_bytes, &census);
  return census.shared;
}

/* One block over all of a leaf. */
static spk_block *whole(const struct leaf *leaf) {
  const int64_t span[kMaxRank] = {0};
  spk_view *view = NULL;
  spk_block *block = NULL;
  assert_ok(create(leaf->dtype, &leaf->layout, &view));
  assert_ok(spk_block_create(view, leaf->layout.ndim, span, NULL, &block));
  spk_view_release(view);
  return block;
}

static void check_decision(const struct leaf leaves[2], spk_status status, bool expected) {
  if (status == (expected ? SPK_OVERLAP : SPK_OK)) return;
  for (int i = 0; i < 2; ++i) {
    print_layout("leaf", &leaves[i].layout);
    print_error("  dtype %d, from byte %d\n", (int)leaves[i].dtype, (int)leaves[i].first_byte);
  }
  fail_msg("got %s", spk_status_string(status));
}

static void leaves_of_one_buffer_may_interleave_but_not_meet(void **state) {
  (void)state;
  uint64_t seed = 2;
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const int32_t ndim = 1 + i % 4;
    const struct leaf leaves[] = {random_leaf(&seed, ndim), random_leaf(&seed, ndim)};
    const bool shared = share_a_byte(&leaves[0], &leaves[1]);
    const spk_buffer buffers[] = {buffer_of(&leaves[0]), buffer_of(&leaves[1])};
    spk_block *pair = coupled_blocks(whole(&leaves[0]), whole(&leaves[1]), NULL);
    double norm[1];
    spk_buffer out = BUFFER(norm, spk_block_score_dtype(pair), SPK_LAYOUT_VIEW, NULL);
    check_decision(leaves, spk_block_norms(NULL, pair, buffers, 2, 1.0, &out), shared);
    spk_block_release(pair);
    ++*(shared ? &refused : &accepted);
  }
  assert_true(accepted > 3000);
  assert_true(refused > 3000);
}

static void what_is_written_may_interleave_with_what_is_read(void **state) {
  (void)state;
  uint64_t seed = 3;
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    /* One layout in two places; the second is what is read. */
    struct leaf leaves[] = {random_leaf(&seed, 1 + i % 4), {.dtype = 0}};
    leaves[1] = leaves[0];
    leaves[1].dtype = kDtypes[random_in(&seed, 0, COUNT(kDtypes) - 1)];
    leaves[1].first_byte = random_in(&seed, 0, 60) * size_of(leaves[1].dtype);
    spk_view *own = NULL;
    assert_ok(create(leaves[1].dtype, &leaves[1].layout, &own));
    spk_buffer source = buffer_of(&leaves[1]);
    source.layout = SPK_LAYOUT_OWN;
    source.view = own;
    const spk_buffer target = buffer_of(&leaves[0]);
    const bool one_and_the_same =
        source.data == target.data && size_of(source.dtype) == size_of(target.dtype);
    const bool shared = !one_and_the_same && share_a_byte(&leaves[0], &leaves[1]);
    spk_block *block = whole(&leaves[0]);
    check_decision(leaves, spk_block_set_data(NULL, block, &target, 1, &source), shared);
    spk_block_release(block);
    spk_view_release(own);
    ++*(shared ? &refused : &accepted);
  }
  assert_true(accepted > 3000);
  assert_true(refused > 3000);
}

/* --- DLPack -------------------------------------------------------------------------------- */

/* As dlpack.h fixes them. */
struct dl_tensor {
  void *data;
  struct {
    int32_t type;
    int32_t id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
};

struct DLManagedTensor {
  struct dl_tensor tensor;
  void *manager;
  void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void *manager;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  struct dl_tensor tensor;
};

enum { kCpu = 1, kCuda = 2, kCudaHost = 3, kRocmHost = 11 };
enum { kInt = 0, kFloat = 2, kBfloat = 4 };

static void must_not_delete(struct DLManagedTensor *self) {
  (void)self;
  fail();
}
static void must_not_delete_versioned(struct DLManagedTensorVersioned *self) {
  (void)self;
  fail();
}

/* A tensor of f32 in CPU memory. */
static struct dl_tensor tensor_of(void *data, int32_t ndim, int64_t *shape, int64_t *strides) {
  return (struct dl_tensor){.data = data,
                            .device = {kCpu, 0},
                            .ndim = ndim,
                            .dtype = {kFloat, 32, 1},
                            .shape = shape,
                            .strides = strides};
}

static spk_status from_dlpack(struct dl_tensor tensor, spk_view **view, spk_buffer *buffer) {
  const struct DLManagedTensor managed = {.tensor = tensor, .deleter = must_not_delete};
  return spk_view_from_dlpack(&managed, view, buffer);
}

static spk_status from_dlpack_versioned(uint32_t major, uint64_t flags, int32_t writable,
                                        struct dl_tensor tensor, spk_view **view,
                                        spk_buffer *buffer) {
  const struct DLManagedTensorVersioned managed = {
      .major = major, .flags = flags, .deleter = must_not_delete_versioned, .tensor = tensor};
  return spk_view_from_dlpack_versioned(&managed, writable, view, buffer);
}

static float floats[64];

static void dlpack_without_strides_is_row_major(void **state) {
  (void)state;
  int64_t shape[] = {2, 3};
  struct dl_tensor tensor = tensor_of(floats, 2, shape, NULL);
  tensor.byte_offset = 8;
  spk_view *view = NULL;
  spk_buffer buffer;
  assert_ok(from_dlpack(tensor, &view, &buffer));
  assert_int_equal(spk_view_dtype(view), SPK_F32);
  assert_ptr_equal(buffer.data, floats + 2);
  assert_int_equal(buffer.numel, 6);
  assert_int_equal(buffer.dtype, SPK_F32);
  assert_int_equal(buffer.layout, SPK_LAYOUT_VIEW);
  assert_null(buffer.view);
  assert_view(view, "(2,3):(3,1)");
}

static void dlpack_negative_strides_count_from_the_lowest_element(void **state) {
  (void)state;
  /* Rows of 8 floats, turned upside down and read backwards every second element. */
  int64_t shape[] = {3, 4};
  int64_t strides[] = {-8, -2};
  spk_view *view = NULL;
  spk_buffer buffer;
  assert_ok(from_dlpack(tensor_of(floats + 2 * 8 + 7, 2, shape, strides), &view, &buffer));
  assert_ptr_equal(buffer.data, floats + 1);
  assert_int_equal(buffer.numel, 2 * 8 + 3 * 2 + 1);
  assert_view(view, "(3,4):(-8,-2)+22");
}

static void dlpack_mixed_strides_and_single_extents(void **state) {
  (void)state;
  int64_t shape[] = {2, 1, 3};
  int64_t strides[] = {10, -1000, -3};
  spk_view *view = NULL;
  spk_buffer buffer;
  assert_ok(from_dlpack(tensor_of(floats + 6, 3, shape, strides), &view, &buffer));
  assert_ptr_equal(buffer.data, floats);
  assert_int_equal(buffer.numel, 17);
  assert_view(view, "(2,1,3):(10,-1000,-3)+6");
}

static void dlpack_buffer_and_view_work_together(void **state) {
  (void)state;
  float row[] = {1, 2, 3, 4};
  int64_t shape[] = {4};
  int64_t strides[] = {-1};
  spk_view *view = NULL;
  spk_block *block = NULL;
  spk_buffer buffer;
  float gathered[4];
  assert_ok(from_dlpack(tensor_of(row + 3, 1, shape, strides), &view, &buffer));
  assert_ok(spk_block_create(view, NO_DIMS, NULL, &block));
  assert_ok(spk_block_block_view_merged(NULL, block, &buffer, 1, &F32(gathered)));
  assert_f32(gathered, 4, 3, 2, 1);
  spk_block_release(block);
  spk_view_release(view);
}

static void dlpack_knows_the_four_dtypes(void **state) {
  (void)state;
  static const struct {
    uint8_t code;
    uint8_t bits;
    int32_t dtype;
  } kinds[] = {
      {kFloat, 32, SPK_F32}, {kFloat, 64, SPK_F64}, {kFloat, 16, SPK_F16}, {kBfloat, 16, SPK_BF16}};
  int64_t shape[] = {4};
  for (int64_t i = 0; i < COUNT(kinds); ++i) {
    struct dl_tensor tensor = tensor_of(memory, 1, shape, NULL);
    tensor.dtype.code = kinds[i].code;
    tensor.dtype.bits = kinds[i].bits;
    spk_view *view = NULL;
    assert_ok(from_dlpack(tensor, &view, NULL));
    assert_int_equal(spk_view_dtype(view), kinds[i].dtype);
    spk_view_release(view);
  }
}

static void dlpack_takes_memory_that_the_cpu_reaches(void **state) {
  (void)state;
  const int32_t devices[] = {kCpu, kCudaHost, kRocmHost};
  int64_t shape[] = {4};
  for (int64_t i = 0; i < COUNT(devices); ++i) {
    struct dl_tensor tensor = tensor_of(floats, 1, shape, NULL);
    tensor.device.type = devices[i];
    spk_view *view = NULL;
    assert_ok(from_dlpack(tensor, &view, NULL));
    spk_view_release(view);
  }
}

static void dlpack_read_only_tensors_may_be_read(void **state) {
  (void)state;
  int64_t shape[] = {4};
  const struct dl_tensor tensor = tensor_of(floats, 1, shape, NULL);
  spk_view *view = NULL;
  spk_buffer buffer;
  assert_ok(from_dlpack_versioned(1, 1, 0, tensor, &view, &buffer));
  assert_ptr_equal(buffer.data, floats);
  assert_view(view, "(4):(1)");
  assert_ok(from_dlpack_versioned(1, 0, 1, tensor, &view, NULL));
  spk_view_release(view);
  /* The other flag says that the tensor is a copy. */
  assert_ok(from_dlpack_versioned(1, 2, 1, tensor, &view, NULL));
  spk_view_release(view);
}

/* A refusal that leaves view and buffer as they were. */
static void refuse_dlpack(spk_status status, const char *message, struct dl_tensor tensor) {
  spk_view *view = NULL;
  spk_buffer buffer = {floats, 7, 8, 9, NULL};
  assert_fails(status, message, from_dlpack(tensor, &view, &buffer));
  assert_fails(status, message, from_dlpack_versioned(1, 0, 1, tensor, &view, &buffer));
  assert_null(view);
  assert_ptr_equal(buffer.data, floats);
  assert_int_equal(buffer.numel, 7);
  assert_int_equal(buffer.dtype, 8);
  assert_int_equal(buffer.layout, 9);
}

static void dlpack_refusals(void **state) {
  (void)state;
  int64_t shape[] = {4, 2};
  const struct dl_tensor good = tensor_of(floats, 2, shape, NULL);

  struct dl_tensor bad = good;
  bad.device.type = kCuda;
  refuse_dlpack(SPK_UNAVAILABLE, "dlpack device: got type 2, expected CPU memory (1, 3 or 11)",
                bad);

  bad = good;
  bad.dtype.code = kInt;
  refuse_dlpack(SPK_UNSUPPORTED_DTYPE,
                "dlpack dtype: got code 0 of 32 bits and 1 lanes, expected f32, f64, f16 or bf16 "
                "of 1 lane",
                bad);
  bad = good;
  bad.dtype.lanes = 4;
  refuse_dlpack(SPK_UNSUPPORTED_DTYPE,
                "dlpack dtype: got code 2 of 32 bits and 4 lanes, expected f32, f64, f16 or bf16 "
                "of 1 lane",
                bad);

  bad = good;
  bad.ndim = 0;
  refuse_dlpack(SPK_INVALID_ARGUMENT, "dlpack ndim: got 0, expected 1 to 16", bad);
  bad.ndim = 17;
  refuse_dlpack(SPK_INVALID_ARGUMENT, "dlpack ndim: got 17, expected 1 to 16", bad);
  bad.ndim = -1;
  refuse_dlpack(SPK_INVALID_ARGUMENT, "dlpack ndim: got -1, expected 1 to 16", bad);

  bad = good;
  bad.data = NULL;
  refuse_dlpack(SPK_INVALID_ARGUMENT, "dlpack data: got NULL", bad);
  bad = good;
  bad.shape = NULL;
  refuse_dlpack(SPK_INVALID_ARGUMENT, "dlpack shape: got NULL", bad);

  bad = good;
  bad.byte_offset = 2;
  refuse_dlpack(SPK_INVALID_ARGUMENT,
                "dlpack data: got an address that is 2 past a multiple of 4, expected one aligned "
                "to the element size of f32",
                bad);

  int64_t huge[] = {INT64_MIN / 2, 1};
  bad = good;
  bad.strides = huge;
  refuse_dlpack(SPK_INVALID_ARGUMENT,
                "dlpack strides: dim 0: extent 4 times stride -4611686018427387904 overflows 64 "
                "bits",
                bad);

  int64_t overlapping[] = {1, 1};
  bad.strides = overlapping;
  refuse_dlpack(SPK_OVERLAP, "view stride: (4,2):(1,1) maps two indices to one element", bad);

  int64_t empty[] = {4, 0};
  bad = good;
  bad.shape = empty;
  refuse_dlpack(SPK_INVALID_ARGUMENT, "view shape: dim 1: got 0, expected >= 1", bad);
}

static void dlpack_versioned_refusals(void **state) {
  (void)state;
  int64_t shape[] = {4};
  const struct dl_tensor tensor = tensor_of(floats, 1, shape, NULL);
  spk_view *view = NULL;
  assert_fails(SPK_INVALID_ARGUMENT, "dlpack version: got 2.0, expected 1.x",
               from_dlpack_versioned(2, 0, 0, tensor, &view, NULL));
  assert_fails(SPK_INVALID_ARGUMENT,
               "dlpack flags: got a read-only tensor, expected a writable one",
               from_dlpack_versioned(1, 1, 1, tensor, &view, NULL));
  assert_null(view);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_view_without_strides_is_row_major),
      TEST(cosize_spans_the_layout_without_the_offset),
      TEST(facts_of_no_view_are_minus_one_or_null),
      TEST(a_view_has_up_to_16_dims),
      TEST(linear_offset_adds_offset_and_strides),
      TEST(param_rc_places_elements_in_the_owning_matrix),
      TEST(text_form_is_read),
      TEST(text_form_tells_its_length),
      TEST(text_form_of_a_block_view_has_32_dims),
      TEST(overlap_test_is_exact_where_strides_interleave),
      TEST(overlap_test_agrees_with_counting),
      TEST(leaves_of_one_buffer_may_interleave_but_not_meet),
      TEST(what_is_written_may_interleave_with_what_is_read),
      TEST(dlpack_without_strides_is_row_major),
      TEST(dlpack_negative_strides_count_from_the_lowest_element),
      TEST(dlpack_mixed_strides_and_single_extents),
      TEST(dlpack_buffer_and_view_work_together),
      TEST(dlpack_knows_the_four_dtypes),
      TEST(dlpack_takes_memory_that_the_cpu_reaches),
      TEST(dlpack_read_only_tensors_may_be_read),
      TEST(dlpack_refusals),
      TEST(dlpack_versioned_refusals),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
