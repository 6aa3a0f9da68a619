/* Refusals of everything that describes training, and of the buffers that calls bring. */
#include "net.h"

static const spk_status bad = SPK_INVALID_ARGUMENT;

/* --- creating --------------------------------------------------------------------------------- */

#define assert_no_masking(parts, call) \
  do {                                 \
    out = NULL;                        \
    assert_told(bad, parts, call);     \
    assert_null(out);                  \
  } while (0)

static void create_refuses_modes(void **state) {
  (void)state;
  spk_schedule *schedule = falling_rate();
  spk_masking *out = NULL;
  assert_no_masking("schedule|NULL", spk_masking_create(NULL, NULL, &out));
  assert_told(bad, "out|NULL", spk_masking_create(schedule, NULL, NULL));
  spk_masking_options options = options_of(7, 0, 0);
  assert_no_masking("prune|7", spk_masking_create(schedule, &options, &out));
  options = options_of(-1, 0, 0);
  assert_no_masking("prune|-1", spk_masking_create(schedule, &options, &out));
  options = options_of(0, 5, 0);
  assert_no_masking("redistribute|5", spk_masking_create(schedule, &options, &out));
  options = options_of(0, -1, 0);
  assert_no_masking("redistribute|-1", spk_masking_create(schedule, &options, &out));
  options = options_of(0, 0, 9);
  assert_no_masking("grow|9", spk_masking_create(schedule, &options, &out));
  options = options_of(0, 0, -1);
  assert_no_masking("grow|-1", spk_masking_create(schedule, &options, &out));
  options = options_of(0, 0, 0);
  options.dense_gradients = 2;
  assert_no_masking("dense_gradients|2", spk_masking_create(schedule, &options, &out));
  options = options_of(0, 0, 0);
  options.struct_size = 11;
  assert_no_masking("struct_size|11", spk_masking_create(schedule, &options, &out));
  /* Masked momentum is zero wherever it could grow. */
  options = options_of(0, 0, SPK_GROW_MOMENTUM);
  options.dense_gradients = 0;
  assert_no_masking("momentum|dense_gradients", spk_masking_create(schedule, &options, &out));
  spk_schedule_release(schedule);
}

static void create_refuses_missing_functions(void **state) {
  (void)state;
  spk_schedule *schedule = falling_rate();
  spk_masking *out = NULL;
  spk_masking_options options = options_of(SPK_PRUNE_CALLBACK, 0, 0);
  options.prune_fn = NULL;
  assert_no_masking("prune_fn|NULL", spk_masking_create(schedule, &options, &out));
  options = options_of(SPK_PRUNE_STRUCT_CRITERION, 0, 0);
  options.prune_criterion = NULL;
  assert_no_masking("prune_criterion|NULL", spk_masking_create(schedule, &options, &out));
  options = options_of(0, SPK_REDISTRIBUTE_CALLBACK, 0);
  options.statistic_fn = NULL;
  assert_no_masking("statistic_fn|NULL", spk_masking_create(schedule, &options, &out));
  options = options_of(0, 0, SPK_GROW_CALLBACK);
  options.grow_fn = NULL;
  assert_no_masking("grow_fn|NULL", spk_masking_create(schedule, &options, &out));
  options = options_of(0, 0, SPK_GROW_STRUCT_CRITERION);
  options.grow_criterion = NULL;
  assert_no_masking("grow_criterion|NULL", spk_masking_create(schedule, &options, &out));
  spk_schedule_release(schedule);
}

static void create_refuses_functions_of_other_modes(void **state) {
  (void)state;
  spk_schedule *schedule = falling_rate();
  spk_masking *out = NULL;
  for (int32_t mode = 0; mode <= SPK_GROW_CALLBACK; ++mode) {
    if (mode < SPK_PRUNE_CALLBACK) {
      spk_masking_options options = options_of(mode, 0, 0);
      options.prune_fn = prune_first;
      assert_no_masking("prune_fn", spk_masking_create(schedule, &options, &out));
    }
    if (mode <= SPK_PRUNE_CALLBACK && mode != SPK_PRUNE_STRUCT_CRITERION) {
      spk_masking_options options = options_of(mode, 0, 0);
      options.prune_criterion = first_of_kernel;
      assert_no_masking("prune_criterion", spk_masking_create(schedule, &options, &out));
    }
    if (mode < SPK_REDISTRIBUTE_CALLBACK) {
      spk_masking_options options = options_of(0, mode, 0);
      options.statistic_fn = layer_number;
      assert_no_masking("statistic_fn", spk_masking_create(schedule, &options, &out));
    }
    if (mode != SPK_GROW_CALLBACK) {
      spk_masking_options options = options_of(0, 0, mode);
      options.grow_fn = grow_last;
      assert_no_masking("grow_fn", spk_masking_create(schedule, &options, &out));
    }
    if (mode != SPK_GROW_STRUCT_CRITERION) {
      spk_masking_options options = options_of(0, 0, mode);
      options.grow_criterion = first_of_kernel;
      assert_no_masking("grow_criterion", spk_masking_create(schedule, &options, &out));
    }
  }
  spk_schedule_release(schedule);
}

/* --- layers ----------------------------------------------------------------------------------- */

static struct net n;

static int create(void **state) {
  note_handles(state);
  const spk_masking_options options =
      options_of(SPK_PRUNE_MAGNITUDE, SPK_REDISTRIBUTE_MOMENTUM, SPK_GROW_GRADIENT);
  create_ready(&n, kStrided, &options);
  return 0;
}

/* As created, but not initialised. */
static int create_early(void **state) {
  note_handles(state);
  create_net(&n, kStrided, falling_rate(), NULL);
  return 0;
}

static int destroy(void **state) {
  release_net(&n);
  return check_handles(state);
}

#define REFUSAL_TEST(name) cmocka_unit_test_setup_teardown(name, create, destroy)
#define EARLY_TEST(name) cmocka_unit_test_setup_teardown(name, create_early, destroy)

static void add_refuses(void **state) {
  (void)state;
  int32_t id = -7;
  spk_view *view = n.views[0];
  assert_refused(&n, bad, "masking|NULL", spk_masking_add(NULL, "x", view, &id));
  assert_refused(&n, bad, "name|NULL", spk_masking_add(n.masking, NULL, view, &id));
  assert_refused(&n, bad, "name|empty", spk_masking_add(n.masking, "", view, &id));
  assert_refused(&n, bad, "view|NULL", spk_masking_add(n.masking, "x", NULL, &id));
  assert_refused(&n, bad, "name|fc.weight", spk_masking_add(n.masking, "fc.weight", view, &id));
  assert_int_equal(id, -7);
  assert_ok(spk_masking_add(n.masking, "x", view, &id));
  assert_int_equal(id, 3);
  /* Names are unique among all ever added. */
  assert_ok(spk_masking_remove(n.masking, "fc.weight"));
  assert_told(bad, "name|fc.weight", spk_masking_add(n.masking, "fc.weight", view, NULL));
}

static void add_comes_too_late(void **state) {
  (void)state;
  int32_t id = -7;
  assert_refused(&n, bad, "initialis", spk_masking_add(n.masking, "x", n.views[0], &id));
  assert_int_equal(id, -7);
}

static void remove_refuses(void **state) {
  (void)state;
  int32_t removed = -7;
  spk_masking *masking = n.masking;
  assert_refused(&n, bad, "masking|NULL", spk_masking_remove(NULL, "x"));
  assert_refused(&n, bad, "name|NULL", spk_masking_remove(masking, NULL));
  assert_refused(&n, bad, "name|fc", spk_masking_remove(masking, "fc"));
  assert_refused(&n, bad, "masking|NULL", spk_masking_remove_matching(NULL, "x", &removed));
  assert_refused(&n, bad, "part|NULL", spk_masking_remove_matching(masking, NULL, &removed));
  assert_refused(&n, bad, "part|empty", spk_masking_remove_matching(masking, "", &removed));
  assert_refused(&n, bad, "part|bias", spk_masking_remove_matching(masking, "bias", &removed));
  assert_int_equal(removed, -7);
  assert_ok(spk_masking_remove(masking, "fc.weight"));
  assert_told(bad, "name|fc.weight", spk_masking_remove(masking, "fc.weight"));
}

/* --- calls that bring layers -------------------------------------------------------------------- */

/* Every function that takes layers, with all else right. */
struct call {
  const char *name;
  spk_status (*run)(spk_masking *masking, const spk_layer *layers, int32_t count);
};

static spk_status run_initialise(spk_masking *masking, const spk_layer *layers, int32_t count) {
  const spk_init_options init = init_of(SPK_INIT_ERDOS_RENYI, 0.5);
  return spk_masking_initialise(NULL, masking, layers, count, &init);
}
static spk_status run_apply(spk_masking *masking, const spk_layer *layers, int32_t count) {
  return spk_masking_apply(NULL, masking, layers, count, 7);
}
static spk_status run_step(spk_masking *masking, const spk_layer *layers, int32_t count) {
  return spk_masking_step(NULL, masking, layers, count);
}
static spk_status run_update(spk_masking *masking, const spk_layer *layers, int32_t count) {
  return spk_masking_update(NULL, masking, layers, count, NULL);
}

static const struct call kCalls[] = {{"initialise", run_initialise},
                                     {"apply", run_apply},
                                     {"step", run_step},
                                     {"update", run_update}};

#define FOR_CALLS(call) \
  for (const struct call *call = kCalls; call < kCalls + COUNT(kCalls); ++call)

static void calls_refuse_layers(void **state) {
  (void)state;
  FOR_CALLS(call) {
    assert_refused(&n, bad, "masking|NULL", call->run(NULL, n.layers, LAYERS));
    assert_refused(&n, bad, "layers|NULL", call->run(n.masking, NULL, LAYERS));
    assert_refused(&n, SPK_SHAPE_MISMATCH, "layers|2|3", call->run(n.masking, n.layers, 2));
    assert_refused(&n, SPK_SHAPE_MISMATCH, "layers|4|3", call->run(n.masking, n.layers, 4));
    assert_refused(&n, SPK_SHAPE_MISMATCH, "layers|-1|3", call->run(n.masking, n.layers, -1));
    spk_layer layers[LAYERS];
    memcpy(layers, n.layers, sizeof layers);
    layers[1].struct_size = 13;
    assert_refused(&n, bad, "fc.weight|struct_size|13", call->run(n.masking, layers, LAYERS));
  }
}

/* A field of layer 1, which is (8,6), and how it can be wrong. */
struct field {
  const char *name;
  size_t offset;
};

static const struct field kFields[] = {{"weight", offsetof(spk_layer, weight)},
                                       {"mask", offsetof(spk_layer, mask)},
                                       {"gradient", offsetof(spk_layer, gradient)},
                                       {"momentum", offsetof(spk_layer, momentum)}};

#define FOR_FIELDS(field) \
  for (const struct field *field = kFields; field < kFields + COUNT(kFields); ++field)

static spk_buffer *field_of(spk_layer *layer, const struct field *field) {
  return (spk_buffer *)((char *)layer + field->offset);
}

/* Calls that use no gradient need not look at it. */
static bool reads(const struct call *call, const struct field *field) {
  const bool always = strcmp(field->name, "weight") == 0 || strcmp(field->name, "mask") == 0;
  if (always || call->run == run_update || call->run == run_apply) return true;
  return call->run == run_step && strcmp(field->name, "momentum") == 0;
}

static void refuse_buffer(const struct call *call, const struct field *field, spk_status status,
                          const char *parts, const spk_buffer *buffer) {
  spk_layer layers[LAYERS];
  memcpy(layers, n.layers, sizeof layers);
  *field_of(&layers[1], field) = *buffer;
  char all[160];
  snprintf(all, sizeof all, "fc.weight|%s|%s", field->name, parts);
  print_message("%s: %s: %s\n", call->name, field->name, parts);
  assert_refused(&n, status, all, call->run(n.masking, layers, LAYERS));
}

static void calls_refuse_buffers(void **state) {
  (void)state;
  FOR_CALLS(call) {
    FOR_FIELDS(field) {
      if (!reads(call, field)) continue;
      const spk_buffer good = *field_of(&n.layers[1], field);
      spk_buffer buffer = good;
      buffer.numel = 47;
      const bool mask = strcmp(field->name, "mask") == 0;
      refuse_buffer(call, field, mask ? SPK_SHAPE_MISMATCH : SPK_OUT_OF_BOUNDS, "47|48", &buffer);
      if (mask) {
        buffer.numel = 49;
        refuse_buffer(call, field, SPK_SHAPE_MISMATCH, "49|48", &buffer);
      }
      buffer = good;
      buffer.dtype = mask ? SPK_F32 : SPK_U8;
      refuse_buffer(call, field, SPK_UNSUPPORTED_DTYPE, "", &buffer);
      buffer = good;
      buffer.layout = 3;
      refuse_buffer(call, field, bad, "layout|3", &buffer);
      buffer = good;
      buffer.layout = SPK_LAYOUT_OWN;
      refuse_buffer(call, field, bad, "", &buffer);
      buffer = good;
      buffer.view = n.views[1];
      refuse_buffer(call, field, bad, "view", &buffer);
    }
  }
}

static void calls_refuse_other_dtypes_of_weights(void **state) {
  (void)state;
  static double wide[MOST_MEMORY];
  FOR_CALLS(call) {
    const spk_buffer buffer = F64(wide);
    refuse_buffer(call, &kFields[0], SPK_UNSUPPORTED_DTYPE, "", &buffer);
  }
}

static void calls_refuse_misaligned_buffers(void **state) {
  (void)state;
  FOR_CALLS(call) {
    FOR_FIELDS(field) {
      if (!reads(call, field) || strcmp(field->name, "mask") == 0) continue;
      spk_buffer buffer = *field_of(&n.layers[1], field);
      buffer.data = (char *)buffer.data + 1;
      buffer.numel = 48;
      refuse_buffer(call, field, bad, "align", &buffer);
    }
  }
}

static void calls_refuse_missing_weights_and_masks(void **state) {
  (void)state;
  const spk_buffer none = {0};
  FOR_CALLS(call) {
    refuse_buffer(call, &kFields[0], bad, "", &none);
    refuse_buffer(call, &kFields[1], bad, "", &none);
  }
}

/* Two buffers of a call that share a byte. */
static void calls_refuse_overlap(void **state) {
  (void)state;
  FOR_CALLS(call) {
    FOR_FIELDS(field) {
      if (!reads(call, field)) continue;
      spk_buffer other = *field_of(&n.layers[0], field);
      if (strcmp(field->name, "mask") == 0) other.numel = 48;
      refuse_buffer(call, field, SPK_OVERLAP, "conv1.weight", &other);
    }
    /* Bytes of a mask inside weights. */
    spk_buffer inside = n.layers[1].mask;
    inside.data = n.a.weight[0];
    refuse_buffer(call, &kFields[1], SPK_OVERLAP, "conv1.weight", &inside);
  }
}

static void gradient_and_momentum_may_not_be_one(void **state) {
  (void)state;
  spk_layer layers[LAYERS];
  memcpy(layers, n.layers, sizeof layers);
  layers[1].momentum = layers[1].gradient;
  assert_refused(&n, SPK_OVERLAP, "fc.weight|gradient|momentum",
                 run_update(n.masking, layers, LAYERS));
}

static void moments_come_in_pairs(void **state) {
  (void)state;
  static float more[MOST_MEMORY];
  spk_layer layers[LAYERS];
  memcpy(layers, n.layers, sizeof layers);
  layers[1].momentum = (spk_buffer){0};
  layers[1].adam_m1 = F32(more);
  assert_refused(&n, bad, "fc.weight|adam_m2", run_update(n.masking, layers, LAYERS));
  layers[1].adam_m2 = layers[1].adam_m1;
  layers[1].adam_m1 = (spk_buffer){0};
  assert_refused(&n, bad, "fc.weight|adam_m1", run_update(n.masking, layers, LAYERS));
}

/* Where momentum is read, two of them would leave open which. */
static void momentum_comes_once(void **state) {
  (void)state;
  static float first[MOST_MEMORY], second[MOST_MEMORY];
  spk_layer layers[LAYERS];
  memcpy(layers, n.layers, sizeof layers);
  layers[1].adam_m1 = F32(first);
  layers[1].adam_m2 = F32(second);
  assert_refused(&n, bad, "fc.weight|momentum|adam_m1", run_update(n.masking, layers, LAYERS));
}

/* --- what modes need ---------------------------------------------------------------------------- */

static void expect_missing(int32_t prune, int32_t redistribute, int32_t grow, bool gradient,
                           const char *parts) {
  struct net net;
  const spk_masking_options options = options_of(prune, redistribute, grow);
  create_ready(&net, kStrided, &options);
  const spk_buffer given = gradient ? net.layers[1].gradient : net.layers[1].momentum;
  spk_buffer *field = gradient ? &net.layers[1].gradient : &net.layers[1].momentum;
  *field = (spk_buffer){0};
  assert_refused(&net, bad, parts, run_update(net.masking, net.layers, LAYERS));
  *field = given;
  update(&net);
  release_net(&net);
}

static void missing_gradients_are_named(void **state) {
  (void)state;
  expect_missing(0, SPK_REDISTRIBUTE_GRADIENT, SPK_GROW_NONE, true, "fc.weight|gradient");
  for (int32_t grow = SPK_GROW_GRADIENT; grow <= SPK_GROW_STRUCT_CRITERION; ++grow) {
    if (grow == SPK_GROW_MOMENTUM) continue;
    expect_missing(0, SPK_REDISTRIBUTE_NONE, grow, true, "fc.weight|gradient");
  }
}

static void missing_momentum_is_named(void **state) {
  (void)state;
  expect_missing(0, SPK_REDISTRIBUTE_MOMENTUM, SPK_GROW_NONE, false, "fc.weight|momentum");
  expect_missing(0, SPK_REDISTRIBUTE_NONE, SPK_GROW_MOMENTUM, false, "fc.weight|momentum");
}

static void what_no_mode_needs_may_be_missing(void **state) {
  (void)state;
  struct net net;
  const spk_masking_options options =
      options_of(SPK_PRUNE_MAGNITUDE, SPK_REDISTRIBUTE_NONZERO, SPK_GROW_RANDOM);
  create_ready(&net, kStrided, &options);
  for (int l = 0; l < LAYERS; ++l) {
    net.layers[l].gradient = net.layers[l].momentum = (spk_buffer){0};
  }
  update(&net);
  step(&net);
  assert_ok(run_apply(net.masking, net.layers, LAYERS));
  release_net(&net);
}

/* --- the rest ----------------------------------------------------------------------------------- */

static void apply_refuses_what_it_does_not_know(void **state) {
  (void)state;
  assert_refused(&n, bad, "what|8", spk_masking_apply(NULL, n.masking, n.layers, LAYERS, 8));
  assert_refused(&n, bad, "what|-1", spk_masking_apply(NULL, n.masking, n.layers, LAYERS, -1));
}

static void reports_need_their_size(void **state) {
  (void)state;
  spk_update_report report = {.struct_size = 9};
  assert_refused(&n, bad, "struct_size|9",
                 spk_masking_update(NULL, n.masking, n.layers, LAYERS, &report));
  assert_int_equal(report.removed, 0);
}

static void stats_refuse(void **state) {
  (void)state;
  spk_layer_stats stats = {.struct_size = sizeof stats, .numel = -7};
  const spk_masking *masking = n.masking;
  assert_refused(&n, bad, "masking|NULL", spk_masking_layer_stats(NULL, 0, &stats));
  assert_refused(&n, bad, "stats|NULL", spk_masking_layer_stats(masking, 0, NULL));
  assert_refused(&n, SPK_OUT_OF_BOUNDS, "layer|3", spk_masking_layer_stats(masking, 3, &stats));
  assert_refused(&n, SPK_OUT_OF_BOUNDS, "layer|-1", spk_masking_layer_stats(masking, -1, &stats));
  assert_refused(&n, bad, "masking|NULL", spk_masking_stats(NULL, &stats));
  assert_refused(&n, bad, "stats|NULL", spk_masking_stats(masking, NULL));
  stats.struct_size = 3;
  assert_refused(&n, bad, "struct_size|3", spk_masking_layer_stats(masking, 0, &stats));
  assert_refused(&n, bad, "struct_size|3", spk_masking_stats(masking, &stats));
  assert_int_equal(stats.numel, -7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(create_refuses_modes),
      TEST(create_refuses_missing_functions),
      TEST(create_refuses_functions_of_other_modes),
      EARLY_TEST(add_refuses),
      REFUSAL_TEST(add_comes_too_late),
      REFUSAL_TEST(remove_refuses),
      REFUSAL_TEST(calls_refuse_layers),
      REFUSAL_TEST(calls_refuse_buffers),
      REFUSAL_TEST(calls_refuse_other_dtypes_of_weights),
      REFUSAL_TEST(calls_refuse_misaligned_buffers),
      REFUSAL_TEST(calls_refuse_missing_weights_and_masks),
      REFUSAL_TEST(calls_refuse_overlap),
      REFUSAL_TEST(gradient_and_momentum_may_not_be_one),
      REFUSAL_TEST(moments_come_in_pairs),
      REFUSAL_TEST(momentum_comes_once),
      TEST(missing_gradients_are_named),
      TEST(missing_momentum_is_named),
      TEST(what_no_mode_needs_may_be_missing),
      REFUSAL_TEST(apply_refuses_what_it_does_not_know),
      REFUSAL_TEST(reports_need_their_size),
      REFUSAL_TEST(stats_refuse),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
