/* The caller's functions: what they are told, how they stop an update, and what they may not do. */
#include "net.h"

/* --- cancelling ------------------------------------------------------------------------------- */

/* Does as the callbacks of net.h, but stops at one layer. */
struct stop {
  int32_t at;
  int32_t calls;
};

static int32_t prune_and_stop(void *user, const spk_masking *masking, const spk_layer *layers,
                              int32_t layer, double rate, int64_t requested) {
  struct stop *stop = user;
  ++stop->calls;
  prune_first(NULL, masking, layers, layer, rate, requested);
  return layer == stop->at ? 5 : 0;
}
static int32_t grow_and_stop(void *user, const spk_masking *masking, const spk_layer *layers,
                             int32_t layer, int64_t requested) {
  struct stop *stop = user;
  ++stop->calls;
  grow_last(NULL, masking, layers, layer, requested);
  return layer == stop->at ? 6 : 0;
}
static int32_t measure_and_stop(void *user, const spk_masking *masking, const spk_layer *layers,
                                int32_t layer, double *statistic) {
  struct stop *stop = user;
  ++stop->calls;
  layer_number(NULL, masking, layers, layer, statistic);
  return layer == stop->at ? 7 : 0;
}
static int32_t judge_and_stop(void *user, int64_t block, const double *elements, int64_t count,
                              double *result) {
  struct stop *stop = user;
  (void)block;
  (void)count;
  *result = elements[0];
  return ++stop->calls == 3 ? 8 : 0;
}

/* Counts are those of the masks, and of the update nothing else is kept. */
static void expect_cancelled(struct net *net, const char *parts) {
  static struct picture before;
  take_picture(net, &before);
  const double growth = spk_masking_adjusted_growth(net->masking);
  spk_update_report report = {.struct_size = sizeof report};
  assert_told(SPK_CANCELLED, parts,
              spk_masking_update(NULL, net->masking, net->layers, LAYERS, &report));
  for (int l = 0; l < LAYERS; ++l) {
    const spk_layer_stats now = stats_of(net, l);
    assert_int_equal(now.nonzeros, ones_of(net, l));
    assert_int_equal(now.zeros, numel_of(net, l) - ones_of(net, l));
    assert_near(now.density, (double)now.nonzeros / (double)now.numel, 1e-15);
    assert_near(now.statistic, before.stats[l].statistic, 0);
    assert_near(now.rate, before.stats[l].rate, 0);
    assert_int_equal(now.removed, before.stats[l].removed);
    assert_int_equal(now.grown, before.stats[l].grown);
    assert_int_equal(now.requested_removed, before.stats[l].requested_removed);
    assert_int_equal(now.requested_grown, before.stats[l].requested_grown);
  }
  assert_int_equal(spk_masking_baseline(net->masking), before.baseline);
  assert_near(spk_masking_adjusted_growth(net->masking), growth, 0);
  assert_int_equal(spk_schedule_position(net->schedule), before.position);
}

static void cancelled_pruning(void **state) {
  (void)state;
  for (int32_t at = 0; at < LAYERS; ++at) {
    struct net net;
    struct stop stop = {-1, 0};
    spk_masking_options options =
        options_of(SPK_PRUNE_CALLBACK, SPK_REDISTRIBUTE_GRADIENT, SPK_GROW_GRADIENT);
    options.prune_fn = prune_and_stop;
    options.prune_user = &stop;
    create_ready(&net, kStrided, &options);
    update(&net);
    step(&net);
    refill(&net, 7);
    stop = (struct stop){at, 0};
    expect_cancelled(&net, "prune|5");
    assert_int_equal(stop.calls, at + 1);
    /* Training goes on from there. */
    stop.at = -1;
    const spk_update_report report = update(&net);
    assert_int_equal(report.nonzeros, all_ones(&net));
    release_net(&net);
  }
}

static void cancelled_growth(void **state) {
  (void)state;
  for (int32_t at = 0; at < LAYERS; ++at) {
    struct net net;
    struct stop stop = {-1, 0};
    spk_masking_options options =
        options_of(SPK_PRUNE_MAGNITUDE, SPK_REDISTRIBUTE_NONE, SPK_GROW_CALLBACK);
    options.grow_fn = grow_and_stop;
    options.grow_user = &stop;
    create_ready(&net, kStrided, &options);
    update(&net);
    step(&net);
    refill(&net, 7);
    stop = (struct stop){at, 0};
    expect_cancelled(&net, "grow|6");
    assert_int_equal(stop.calls, at + 1);
    release_net(&net);
  }
}

static void cancelled_statistics_change_nothing(void **state) {
  (void)state;
  for (int32_t at = 0; at < LAYERS; ++at) {
    struct net net;
    struct stop stop = {at, 0};
    spk_masking_options options =
        options_of(SPK_PRUNE_MAGNITUDE, SPK_REDISTRIBUTE_CALLBACK, SPK_GROW_GRADIENT);
    options.statistic_fn = measure_and_stop;
    options.statistic_user = &stop;
    create_ready(&net, kStrided, &options);
    const struct arrays before = net.a;
    expect_cancelled(&net, "statistic|7");
    assert_memory_equal(&net.a, &before, sizeof before);
    release_net(&net);
  }
}

static void cancelled_criteria(void **state) {
  (void)state;
  for (int grow = 0; grow < 2; ++grow) {
    struct net net;
    struct stop stop = {0, 0};
    spk_masking_options options =
        grow ? options_of(SPK_PRUNE_MAGNITUDE, 0, SPK_GROW_STRUCT_CRITERION)
             : options_of(SPK_PRUNE_STRUCT_CRITERION, 0, SPK_GROW_GRADIENT);
    if (grow) {
      options.grow_criterion = judge_and_stop;
      options.grow_criterion_user = &stop;
    } else {
      options.prune_criterion = judge_and_stop;
      options.prune_criterion_user = &stop;
    }
    create_ready(&net, kStrided, &options);
    expect_cancelled(&net, grow ? "grow_criterion|8" : "prune_criterion|8");
    assert_int_equal(stop.calls, 3);
    release_net(&net);
  }
}

static int32_t rate_or_stop(void *user, int64_t t, double *rate) {
  (void)t;
  *rate = *(const double *)user;
  return *rate == 0.125 ? 9 : 0;
}

/* A custom schedule that stops, or says what is no rate, before anything happened. */
static void schedules_may_refuse(void **state) {
  (void)state;
  static const double bad[] = {NAN, -0.5, 1.5, INFINITY};
  double rate = 0.125;
  struct net net;
  spk_schedule *schedule = NULL;
  const spk_masking_options options = options_of(0, SPK_REDISTRIBUTE_GRADIENT, SPK_GROW_GRADIENT);
  assert_ok(spk_schedule_create_custom(rate_or_stop, &rate, &schedule));
  create_net(&net, kStrided, schedule, &options);
  initialise(&net, SPK_INIT_ERDOS_RENYI, 0.4);
  assert_refused(&net, SPK_CANCELLED, "schedule|9",
                 spk_masking_update(NULL, net.masking, net.layers, LAYERS, NULL));
  for (int64_t i = 0; i < COUNT(bad); ++i) {
    rate = bad[i];
    assert_refused(&net, SPK_INVALID_ARGUMENT, "schedule|0 to 1",
                   spk_masking_update(NULL, net.masking, net.layers, LAYERS, NULL));
  }
  rate = 0.25;
  assert_near(update(&net).rate, 0.25, 0);
  release_net(&net);
}

static double told_statistic;
static int32_t tell(void *user, const spk_masking *masking, const spk_layer *layers, int32_t layer,
                    double *statistic) {
  (void)user;
  (void)masking;
  (void)layers;
  *statistic = layer == 1 ? told_statistic : 1;
  return 0;
}

static void statistics_must_be_finite(void **state) {
  (void)state;
  static const double bad[] = {NAN, -1e-300, INFINITY, -INFINITY};
  struct net net;
  spk_masking_options options =
      options_of(SPK_PRUNE_MAGNITUDE, SPK_REDISTRIBUTE_CALLBACK, SPK_GROW_GRADIENT);
  options.statistic_fn = tell;
  create_ready(&net, kStrided, &options);
  for (int64_t i = 0; i < COUNT(bad); ++i) {
    told_statistic = bad[i];
    assert_refused(&net, SPK_INVALID_ARGUMENT, "statistic|fc.weight",
                   spk_masking_update(NULL, net.masking, net.layers, LAYERS, NULL));
  }
  told_statistic = 0;
  update(&net);
  assert_near(stats_of(&net, 1).statistic, 0, 0);
  assert_near(stats_of(&net, 0).statistic, 0.5, 0);
  release_net(&net);
}

/* --- entering again --------------------------------------------------------------------------- */

/* Tries every call that would change the masking or its schedule; all are refused. */
struct intruder {
  struct net *net;
  spk_context *other;
  int32_t tried;
  int32_t refused;
};

static void note(struct intruder *intruder, spk_status status) {
  ++intruder->tried;
  if (status == SPK_INVALID_ARGUMENT) ++intruder->refused;
}

static void intrude(struct intruder *intruder) {
  struct net *net = intruder->net;
  spk_masking *masking = net->masking;
  const spk_init_options init = init_of(SPK_INIT_ERDOS_RENYI, 0.5);
  unsigned char blob[MOST_BLOB];
  size_t length = 0;
  note(intruder, spk_masking_update(intruder->other, masking, net->layers, LAYERS, NULL));
  note(intruder, spk_masking_step(intruder->other, masking, net->layers, LAYERS));
  note(intruder, spk_masking_initialise(intruder->other, masking, net->layers, LAYERS, &init));
  note(intruder, spk_masking_remove(masking, kNames[0]));
  note(intruder, spk_masking_remove_matching(masking, "conv", NULL));
  note(intruder, spk_masking_add(masking, "more", net->views[0], NULL));
  /* Reading is allowed. */
  assert_int_equal(spk_masking_layer_count(masking), LAYERS);
  assert_int_equal(stats_of(net, 0).numel, 48);
  if (spk_masking_save(masking, blob, sizeof blob, &length) == SPK_OK) {
    note(intruder, spk_masking_restore(masking, blob, length));
  }
}

static int32_t prune_and_intrude(void *user, const spk_masking *masking, const spk_layer *layers,
                                 int32_t layer, double rate, int64_t requested) {
  intrude(user);
  return prune_first(NULL, masking, layers, layer, rate, requested);
}
static int32_t grow_and_intrude(void *user, const spk_masking *masking, const spk_layer *layers,
                                int32_t layer, int64_t requested) {
  intrude(user);
  return grow_last(NULL, masking, layers, layer, requested);
}
static int32_t measure_and_intrude(void *user, const spk_masking *masking, const spk_layer *layers,
                                   int32_t layer, double *statistic) {
  intrude(user);
  return layer_number(NULL, masking, layers, layer, statistic);
}
static int32_t judge_and_intrude(void *user, int64_t block, const double *elements, int64_t count,
                                 double *result) {
  intrude(user);
  return first_of_kernel(NULL, block, elements, count, result);
}

static void callbacks_may_not_change_their_masking(void **state) {
  (void)state;
  struct net net, quiet;
  struct intruder intruder = {&net, context_with(SPK_EXECUTOR_SERIAL, 1), 0, 0};
  spk_masking_options options =
      options_of(SPK_PRUNE_CALLBACK, SPK_REDISTRIBUTE_CALLBACK, SPK_GROW_CALLBACK);
  create_ready(&quiet, kStrided, &options);
  options.prune_fn = prune_and_intrude;
  options.statistic_fn = measure_and_intrude;
  options.grow_fn = grow_and_intrude;
  options.prune_user = options.statistic_user = options.grow_user = &intruder;
  create_ready(&net, kStrided, &options);
  update(&net);
  update(&quiet);
  assert_true(intruder.tried >= 3 * 6 * LAYERS);
  assert_int_equal(intruder.refused, intruder.tried);
  assert_memory_equal(&net.a, &quiet.a, sizeof net.a);
  release_net(&net);
  release_net(&quiet);
  spk_context_release(intruder.other);
}

static void criteria_may_not_change_their_masking(void **state) {
  (void)state;
  struct net net;
  struct intruder intruder = {&net, context_with(SPK_EXECUTOR_SERIAL, 1), 0, 0};
  spk_masking_options options =
      options_of(SPK_PRUNE_STRUCT_CRITERION, SPK_REDISTRIBUTE_NONE, SPK_GROW_STRUCT_CRITERION);
  options.prune_criterion = options.grow_criterion = judge_and_intrude;
  options.prune_criterion_user = options.grow_criterion_user = &intruder;
  create_ready(&net, kStrided, &options);
  update(&net);
  assert_true(intruder.tried > 0);
  assert_int_equal(intruder.refused, intruder.tried);
  release_net(&net);
  spk_context_release(intruder.other);
}

/* --- what they are told ----------------------------------------------------------------------- */

struct told {
  const spk_layer *layers;
  int32_t calls;
  int64_t requested[LAYERS];
  double rate[LAYERS];
};

static int32_t listen(void *user, const spk_masking *masking, const spk_layer *layers,
                      int32_t layer, double rate, int64_t requested) {
  struct told *told = user;
  /* In the order of layers. */
  assert_int_equal(layer, told->calls++);
  assert_ptr_equal(layers, told->layers);
  assert_string_equal(spk_masking_layer_name(masking, layer), kNames[layer]);
  told->requested[layer] = requested;
  told->rate[layer] = rate;
  return 0;
}

static void pruning_is_told_rate_and_count(void **state) {
  (void)state;
  struct net net;
  struct told told = {.layers = net.layers};
  spk_masking_options options =
      options_of(SPK_PRUNE_CALLBACK, SPK_REDISTRIBUTE_NONE, SPK_GROW_NONE);
  options.prune_fn = listen;
  options.prune_user = &told;
  create_ready(&net, kStrided, &options);
  const spk_update_report report = update(&net);
  assert_i64(told.requested, 10, 10, 15);
  for (int l = 0; l < LAYERS; ++l) assert_near(told.rate[l], 0.4, 1e-15);
  /* It pruned nothing, which is its right. */
  assert_int_equal(report.requested_removed, 35);
  assert_int_equal(report.removed, 0);
  assert_int_equal(report.residual, 0);
  release_net(&net);
}

struct kernels {
  int64_t size;
  int64_t highest;
};

static int32_t watch_kernels(void *user, int64_t block, const double *elements, int64_t count,
                             double *result) {
  struct kernels *kernels = user;
  assert_true(count == 4 || count == 1 || count == 3);
  if (count == kernels->size && block > kernels->highest) kernels->highest = block;
  /* Layer 0 alone has kernels of 4: their elements, row-major. */
  if (count == 4 && block == 2) {
    for (int64_t i = 0; i < 4; ++i) {
      assert_near(elements[i], (double)number(1, 1, 0, 8 + i), 0);
    }
  }
  *result = elements[0];
  return 0;
}

static void criteria_see_kernels(void **state) {
  (void)state;
  struct net net;
  struct kernels kernels = {4, -1};
  spk_masking_options options = options_of(SPK_PRUNE_STRUCT_CRITERION, 0, SPK_GROW_NONE);
  options.prune_criterion = watch_kernels;
  options.prune_criterion_user = &kernels;
  create_ready(&net, kStrided, &options);
  update(&net);
  assert_in_range(kernels.highest, 10, 11);
  release_net(&net);
}

static int32_t grow_with_weight(void *user, const spk_masking *masking, const spk_layer *layers,
                                int32_t layer, int64_t requested) {
  struct net *net = user;
  (void)masking;
  uint8_t *mask = layers[layer].mask.data;
  for (int64_t i = 0; i < numel_of(net, layer) && requested > 0; ++i) {
    if (mask[i]) continue;
    float *weight = net->a.weight[layer] + place_of(net, layer, i);
    assert_int_equal(bits_of(*weight), 0);
    *weight = 2.5f;
    mask[i] = 1;
    --requested;
  }
  return 0;
}

static void growth_may_set_weights(void **state) {
  (void)state;
  struct net net;
  spk_masking_options options =
      options_of(SPK_PRUNE_MAGNITUDE, SPK_REDISTRIBUTE_NONE, SPK_GROW_CALLBACK);
  options.grow_fn = grow_with_weight;
  options.grow_user = &net;
  create_ready(&net, kStrided, &options);
  const spk_update_report report = update(&net);
  int64_t set = 0;
  for (int l = 0; l < LAYERS; ++l) {
    for (int64_t i = 0; i < numel_of(&net, l); ++i) {
      if (net.a.weight[l][place_of(&net, l, i)] == 2.5f) ++set;
    }
  }
  assert_int_equal(set, 35);
  assert_int_equal(report.grown, 35);
  release_net(&net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(cancelled_pruning),
      TEST(cancelled_growth),
      TEST(cancelled_statistics_change_nothing),
      TEST(cancelled_criteria),
      TEST(schedules_may_refuse),
      TEST(statistics_must_be_finite),
      TEST(callbacks_may_not_change_their_masking),
      TEST(criteria_may_not_change_their_masking),
      TEST(pruning_is_told_rate_and_count),
      TEST(criteria_see_kernels),
      TEST(growth_may_set_weights),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
