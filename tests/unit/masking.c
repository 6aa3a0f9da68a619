/* Maskings: the caller's modes, what they may do and how they end an update; buffers and options
 * that are refused; states that are saved and restored. */
#include <sparsekit/training.h>

#include "support.h"

enum { kNumel = 36 };

/* One layer of (2,2,3,3) with all it may bring. */
struct fixture {
  spk_masking *masking;
  float weight[kNumel];
  float gradient[kNumel];
  uint8_t mask[kNumel];
  spk_layer layer;
};

static spk_masking *masking_with(spk_masking_options options) {
  options.struct_size = sizeof options;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_linear(0.25, 1000, &schedule));
  spk_masking *masking = NULL;
  assert_ok(spk_masking_create(schedule, &options, &masking));
  spk_schedule_release(schedule);
  return masking;
}

static void fill(struct fixture *f) {
  for (int i = 0; i < kNumel; ++i) {
    f->weight[i] = (float)(i + 1);
    f->gradient[i] = (float)(kNumel - i);
    f->mask[i] = i < 20;
  }
}

static void set_up(struct fixture *f, spk_masking_options options) {
  f->masking = masking_with(options);
  spk_view *view = view_of(SPK_F32, "(2,2,3,3)");
  int32_t id = -1;
  assert_ok(spk_masking_add(f->masking, "conv1", view, &id));
  assert_int_equal(id, 0);
  spk_view_release(view);
  f->layer = (spk_layer){.struct_size = sizeof f->layer};
  f->layer.weight = F32(f->weight);
  f->layer.gradient = F32(f->gradient);
  f->layer.mask = U8(f->mask);
  fill(f);
  const spk_init_options init = {.struct_size = sizeof init, .mode = SPK_INIT_LOTTERY_TICKET};
  assert_ok(spk_masking_initialise(NULL, f->masking, &f->layer, 1, &init));
  assert_int_equal(spk_masking_baseline(f->masking), 20);
}

static int64_t nonzeros(const spk_masking *masking) {
  spk_layer_stats stats = {.struct_size = sizeof stats};
  assert_ok(spk_masking_stats(masking, &stats));
  return stats.nonzeros;
}

/* --- the caller's modes -------------------------------------------------------------------- */

struct caller {
  spk_masking *masking;
  int32_t stop;
};

static const char *const kInUse =
    "masking: in use by the call whose callback this is; a callback may read the masking, but not "
    "change it";

static void expect_read_only(const struct caller *caller, const spk_layer *layers) {
  assert_fails(SPK_INVALID_ARGUMENT, kInUse, spk_masking_step(NULL, caller->masking, layers, 1));
  assert_fails(SPK_INVALID_ARGUMENT, kInUse, spk_masking_remove(caller->masking, "conv1"));
  assert_int_equal(nonzeros(caller->masking), 20);
}

static int32_t clear_first(void *user, const spk_masking *masking, const spk_layer *layers,
                           int32_t layer, double rate, int64_t requested) {
  const struct caller *caller = user;
  assert_ptr_equal(masking, caller->masking);
  assert_near(rate, 0.25, 0);
  assert_int_equal(requested, 5);
  expect_read_only(caller, layers);
  uint8_t *mask = layers[layer].mask.data;
  for (int64_t i = 0; i < requested; ++i) mask[i] = 0;
  return caller->stop;
}

static int32_t set_last(void *user, const spk_masking *masking, const spk_layer *layers,
                        int32_t layer, int64_t requested) {
  const struct caller *caller = user;
  assert_ptr_equal(masking, caller->masking);
  expect_read_only(caller, layers);
  uint8_t *mask = layers[layer].mask.data;
  float *weight = layers[layer].weight.data;
  assert_true(weight[0] == 0);
  for (int64_t i = kNumel - requested; i < kNumel; ++i) {
    mask[i] = 1;
    weight[i] = 0.5F;
  }
  return 0;
}

static void callers_prune_and_grow(void **state) {
  (void)state;
  struct caller caller = {0};
  struct fixture f;
  set_up(&f, (spk_masking_options){.prune = SPK_PRUNE_CALLBACK,
                                   .grow = SPK_GROW_CALLBACK,
                                   .prune_fn = clear_first,
                                   .prune_user = &caller,
                                   .grow_fn = set_last,
                                   .grow_user = &caller});
  caller.masking = f.masking;
  spk_update_report report = {.struct_size = sizeof report};
  assert_ok(spk_masking_update(NULL, f.masking, &f.layer, 1, &report));
  assert_int_equal(report.removed, 5);
  assert_int_equal(report.grown, 5);
  assert_int_equal(report.residual, 0);
  for (int i = 0; i < kNumel; ++i) {
    assert_int_equal(f.mask[i], (i >= 5 && i < 20) || i >= 31);
    assert_true(f.weight[i] == (i >= 31 ? 0.5F : f.mask[i] ? (float)(i + 1) : 0));
  }
  spk_masking_release(f.masking);
}

static void a_cancelled_update_is_counted(void **state) {
  (void)state;
  struct caller caller = {.stop = 3};
  struct fixture f;
  set_up(&f, (spk_masking_options){
                 .prune = SPK_PRUNE_CALLBACK, .prune_fn = clear_first, .prune_user = &caller});
  caller.masking = f.masking;
  assert_fails(SPK_CANCELLED,
               "layers[0] \"conv1\": prune callback: returned 3, which cancels the update",
               spk_masking_update(NULL, f.masking, &f.layer, 1, NULL));
  assert_int_equal(nonzeros(f.masking), 15);
  assert_near(spk_masking_adjusted_growth(f.masking), 0, 0);
  spk_layer_stats stats = {.struct_size = sizeof stats};
  assert_ok(spk_masking_layer_stats(f.masking, 0, &stats));
  assert_int_equal(stats.removed, 0);
  spk_masking_release(f.masking);
}

static int32_t minus_one(void *user, const spk_masking *masking, const spk_layer *layers,
                         int32_t layer, double *statistic) {
  (void)user;
  (void)masking;
  (void)layers;
  (void)layer;
  *statistic = -1;
  return 0;
}

static void statistics_are_checked(void **state) {
  (void)state;
  struct fixture f;
  set_up(&f, (spk_masking_options){.redistribute = SPK_REDISTRIBUTE_CALLBACK,
                                   .statistic_fn = minus_one});
  assert_fails(SPK_INVALID_ARGUMENT,
               "layers[0] \"conv1\": statistic callback: got -1, expected a finite number >= 0",
               spk_masking_update(NULL, f.masking, &f.layer, 1, NULL));
  assert_int_equal(nonzeros(f.masking), 20);
  spk_masking_release(f.masking);
}

/* --- kernels ------------------------------------------------------------------------------- */

static int32_t first_element(void *user, int64_t block_index, const double *elements, int64_t count,
                             double *result) {
  (void)user;
  (void)block_index;
  assert_int_equal(count, 9);
  *result = elements[0];
  return 0;
}

/* Kernels 0 and 1 are whole, 2 partly active, 3 empty. */
static void whole_kernels_leave_and_grow(void **state) {
  (void)state;
  struct fixture f;
  set_up(&f, (spk_masking_options){.prune = SPK_PRUNE_STRUCT_MAGNITUDE_MEAN,
                                   .grow = SPK_GROW_STRUCT_CRITERION,
                                   .grow_criterion = first_element});
  spk_update_report report = {.struct_size = sizeof report};
  assert_ok(spk_masking_update(NULL, f.masking, &f.layer, 1, &report));
  /* The mean of kernel 2 is 39 / 9, that of kernel 0 is 5: the partly active one leaves. */
  assert_int_equal(report.requested_removed, 9);
  assert_int_equal(report.removed, 2);
  assert_int_equal(report.requested_grown, 0);
  assert_int_equal(nonzeros(f.masking), 18);
  /* Kernel 0 leaves, and has the largest gradient when it comes to growing. */
  assert_ok(spk_masking_update(NULL, f.masking, &f.layer, 1, &report));
  assert_int_equal(report.removed, 9);
  assert_int_equal(report.grown, 9);
  assert_int_equal(nonzeros(f.masking), 18);
  spk_masking_release(f.masking);
}

/* --- refusals ------------------------------------------------------------------------------ */

static void options_must_fit(void **state) {
  (void)state;
  spk_schedule *schedule = NULL;
  spk_masking *masking = NULL;
  assert_ok(spk_schedule_create_linear(0.25, 1000, &schedule));
  spk_masking_options o = {.struct_size = sizeof o, .grow = SPK_GROW_MOMENTUM};
  assert_fails(SPK_INVALID_ARGUMENT,
               "options: grow: got SPK_GROW_MOMENTUM without dense_gradients, expected "
               "dense_gradients 1: masked momentum is zero wherever it would grow",
               spk_masking_create(schedule, &o, &masking));
  o = (spk_masking_options){.struct_size = sizeof o, .prune = SPK_PRUNE_CALLBACK};
  assert_fails(SPK_INVALID_ARGUMENT,
               "options: prune_fn: got NULL, expected a function (prune mode SPK_PRUNE_CALLBACK)",
               spk_masking_create(schedule, &o, &masking));
  o = (spk_masking_options){.struct_size = sizeof o, .grow_fn = set_last};
  assert_fails(SPK_INVALID_ARGUMENT,
               "options: grow_fn: got a function with grow mode 0, expected NULL unless it is "
               "SPK_GROW_CALLBACK (8)",
               spk_masking_create(schedule, &o, &masking));
  o = (spk_masking_options){.struct_size = sizeof o, .prune = 7};
  assert_fails(SPK_INVALID_ARGUMENT, "options: prune: got 7, expected 0 to 6",
               spk_masking_create(schedule, &o, &masking));
  assert_null(masking);
  spk_schedule_release(schedule);
}

static void buffers_must_fit(void **state) {
  (void)state;
  struct fixture f;
  set_up(&f, (spk_masking_options){.grow = SPK_GROW_GRADIENT});
  const spk_layer whole = f.layer;
  f.layer.gradient.data = NULL;
  assert_fails(SPK_INVALID_ARGUMENT,
               "layers[0] \"conv1\": gradient: got NULL, expected a buffer (grow mode "
               "SPK_GROW_GRADIENT)",
               spk_masking_update(NULL, f.masking, &f.layer, 1, NULL));
  f.layer = whole;
  f.layer.mask.numel = 35;
  assert_fails(SPK_SHAPE_MISMATCH, "layers[0] \"conv1\": mask: numel: got 35, expected 36",
               spk_masking_update(NULL, f.masking, &f.layer, 1, NULL));
  f.layer = whole;
  f.layer.gradient = f.layer.weight;
  assert_fails(SPK_OVERLAP,
               "layers[0] \"conv1\": weight and layers[0] \"conv1\": gradient share bytes; "
               "expected buffers that do not overlap",
               spk_masking_update(NULL, f.masking, &f.layer, 1, NULL));
  f.layer = whole;
  assert_fails(SPK_SHAPE_MISMATCH, "layers: got 0, expected 1, one per layer that was added",
               spk_masking_update(NULL, f.masking, &f.layer, 0, NULL));
  for (int i = 0; i < kNumel; ++i) assert_int_equal(f.mask[i], i < 20);
  spk_masking_release(f.masking);
}

/* --- states -------------------------------------------------------------------------------- */

static void a_restored_masking_goes_on(void **state) {
  (void)state;
  const spk_masking_options options = {.seed = 5, .grow = SPK_GROW_RANDOM};
  struct fixture f;
  struct fixture g;
  set_up(&f, options);
  set_up(&g, options);
  assert_ok(spk_masking_update(NULL, f.masking, &f.layer, 1, NULL));
  assert_ok(spk_masking_step(NULL, f.masking, &f.layer, 1));
  unsigned char blob[1024];
  size_t length = 0;
  assert_ok(spk_masking_save(f.masking, NULL, 0, &length));
  assert_in_range(length, 1, sizeof blob);
  assert_ok(spk_masking_save(f.masking, blob, sizeof blob, NULL));
  for (size_t i = 0; i < length; ++i) {
    blob[i] ^= 0x10;
    assert_int_equal(spk_masking_restore(g.masking, blob, length), SPK_INVALID_ARGUMENT);
    blob[i] ^= 0x10;
    assert_int_equal(spk_masking_restore(g.masking, blob, i), SPK_INVALID_ARGUMENT);
  }
  assert_ok(spk_masking_restore(g.masking, blob, length));
  memcpy(g.weight, f.weight, sizeof f.weight);
  memcpy(g.mask, f.mask, sizeof f.mask);
  for (int round = 0; round < 5; ++round) {
    assert_ok(spk_masking_update(NULL, f.masking, &f.layer, 1, NULL));
    assert_ok(spk_masking_update(NULL, g.masking, &g.layer, 1, NULL));
    assert_memory_equal(g.mask, f.mask, sizeof f.mask);
    assert_memory_equal(g.weight, f.weight, sizeof f.weight);
  }
  assert_int_equal(spk_schedule_position(spk_masking_schedule(g.masking)), 1);
  spk_masking_release(f.masking);
  spk_masking_release(g.masking);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(callers_prune_and_grow),     TEST(a_cancelled_update_is_counted),
      TEST(statistics_are_checked),     TEST(whole_kernels_leave_and_grow),
      TEST(options_must_fit),           TEST(buffers_must_fit),
      TEST(a_restored_masking_goes_on),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
