/* Updates: what every combination of modes must do, and cases worked out by hand. */
#include "net.h"

#define FOR_ALL_MODES(prune, redistribute, grow)                                              \
  for (int32_t prune = 0; prune <= SPK_PRUNE_CALLBACK; ++prune)                               \
    for (int32_t redistribute = 0; redistribute <= SPK_REDISTRIBUTE_CALLBACK; ++redistribute) \
      for (int32_t grow = 0; grow <= SPK_GROW_CALLBACK; ++grow)

/* Whoever reads a failure wants to know the modes. */
static void expect_true(bool right, const char *what, int32_t prune, int32_t redistribute,
                        int32_t grow) {
  if (right) return;
  print_error("%s: prune %d, redistribute %d, grow %d\n", what, prune, redistribute, grow);
  fail();
}

static bool structured_growth(int32_t grow) {
  return grow >= SPK_GROW_STRUCT_GRADIENT_MEAN && grow <= SPK_GROW_STRUCT_CRITERION;
}

/* Three updates with steps between, on new numbers each. */
static void train(struct net *net, spk_update_report *report) {
  for (uint64_t t = 1; t <= 3; ++t) {
    refill(net, t);
    step(net);
    *report = update(net);
  }
}

/* --- all modes -------------------------------------------------------------------------------- */

static void the_layout_makes_no_difference(void **state) {
  (void)state;
  FOR_ALL_MODES(prune, redistribute, grow) {
    struct net plain, strided;
    spk_update_report first = {0}, second = {0};
    const spk_masking_options options = options_of(prune, redistribute, grow);
    create_ready(&plain, kPlain, &options);
    create_ready(&strided, kStrided, &options);
    train(&plain, &first);
    train(&strided, &second);
    const bool same = memcmp(plain.a.mask, strided.a.mask, sizeof plain.a.mask) == 0 &&
                      memcmp(&first, &second, sizeof first) == 0;
    expect_true(same, "masks depend on the layout", prune, redistribute, grow);
    release_net(&plain);
    release_net(&strided);
  }
}

/* What was grown is what the report says; with what was asked for nothing is lost. */
static void counts_add_up(void **state) {
  (void)state;
  FOR_ALL_MODES(prune, redistribute, grow) {
    struct net net;
    const spk_masking_options options = options_of(prune, redistribute, grow);
    create_ready(&net, kStrided, &options);
    for (uint64_t t = 1; t <= 4; ++t) {
      const int64_t before = all_ones(&net);
      refill(&net, t);
      step(&net);
      const spk_update_report report = update(&net);
      bool right = all_ones(&net) == report.nonzeros &&
                   report.nonzeros == before - report.removed + report.grown &&
                   report.residual == spk_masking_baseline(net.masking) - report.nonzeros &&
                   (report.removed > 0 || before == 0);
      if (grow == SPK_GROW_NONE) right = right && report.grown == 0;
      /* Nobody forbids anything: what was asked for came. */
      if (grow != SPK_GROW_NONE && !structured_growth(grow)) {
        right = right && report.grown == report.requested_grown;
      }
      expect_true(right, "counts do not add up", prune, redistribute, grow);
    }
    release_net(&net);
  }
}

static void growth_equals_loss(void **state) {
  (void)state;
  for (int32_t prune = 0; prune <= SPK_PRUNE_CALLBACK; ++prune) {
    for (int32_t redistribute = 0; redistribute <= SPK_REDISTRIBUTE_CALLBACK; ++redistribute) {
      for (int32_t grow = SPK_GROW_RANDOM; grow <= SPK_GROW_CALLBACK; ++grow) {
        if (structured_growth(grow)) continue;
        struct net net;
        const spk_masking_options options = options_of(prune, redistribute, grow);
        create_ready(&net, kStrided, &options);
        const int64_t before = all_ones(&net);
        spk_update_report report = {0};
        train(&net, &report);
        expect_true(all_ones(&net) == before && report.residual == 0,
                    "the number of nonzeros changed", prune, redistribute, grow);
        release_net(&net);
      }
    }
  }
}

/* Kernels that were whole stay whole if both sides work in kernels. */
static void structured_modes_leave_whole_kernels(void **state) {
  (void)state;
  for (int32_t prune = SPK_PRUNE_STRUCT_MAGNITUDE_MEAN; prune <= SPK_PRUNE_STRUCT_CRITERION;
       ++prune) {
    for (int32_t redistribute = 0; redistribute <= SPK_REDISTRIBUTE_CALLBACK; ++redistribute) {
      for (int32_t grow = SPK_GROW_STRUCT_GRADIENT_MEAN; grow <= SPK_GROW_STRUCT_CRITERION;
           ++grow) {
        struct net net;
        spk_update_report report = {0};
        const spk_masking_options options = options_of(prune, redistribute, grow);
        create_ready(&net, kStrided, &options);
        train(&net, &report);
        bool whole = true;
        for (int64_t i = 0; i < 48; ++i) {
          whole = whole && net.a.mask[0][i] == net.a.mask[0][i / 4 * 4];
        }
        for (int64_t i = 0; i < 72; ++i) {
          whole = whole && net.a.mask[2][i] == net.a.mask[2][i / 3 * 3];
        }
        expect_true(whole, "a kernel is torn", prune, redistribute, grow);
        release_net(&net);
      }
    }
  }
}

static void dense_gradients_are_left_alone(void **state) {
  (void)state;
  FOR_ALL_MODES(prune, redistribute, grow) {
    struct net net;
    spk_masking_options options = options_of(prune, redistribute, grow);
    options.dense_gradients = 1;
    create_ready(&net, kStrided, &options);
    spk_update_report report = {0};
    train(&net, &report);
    step(&net);
    struct net untouched = net;
    refill(&untouched, 3);
    const bool same = memcmp(net.a.gradient, untouched.a.gradient, sizeof net.a.gradient) == 0 &&
                      memcmp(net.a.momentum, untouched.a.momentum, sizeof net.a.momentum) == 0;
    expect_true(same, "momentum or gradients were masked", prune, redistribute, grow);
    release_net(&net);
  }
}

/* --- by hand ---------------------------------------------------------------------------------- */

/* One row of eight weights; half of the nonzeros go at first. */
struct row {
  float weight[8];
  float gradient[8];
  uint8_t mask[8];
  spk_view *view;
  spk_masking *masking;
  spk_layer layer;
};

static void create_row(struct row *row, const float *weight, const float *gradient,
                       const uint8_t *mask, int32_t prune, int32_t grow) {
  memset(row, 0, sizeof *row);
  memcpy(row->weight, weight, sizeof row->weight);
  memcpy(row->gradient, gradient, sizeof row->gradient);
  memcpy(row->mask, mask, sizeof row->mask);
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_linear(0.5, 4, &schedule));
  const spk_masking_options options = options_of(prune, SPK_REDISTRIBUTE_NONE, grow);
  assert_ok(spk_masking_create(schedule, &options, &row->masking));
  spk_schedule_release(schedule);
  row->view = view_of(SPK_F32, "(8)");
  assert_ok(spk_masking_add(row->masking, "row", row->view, NULL));
  row->layer = (spk_layer){.struct_size = sizeof(spk_layer),
                           .weight = F32(row->weight),
                           .mask = U8(row->mask),
                           .gradient = F32(row->gradient)};
  const spk_init_options init = init_of(SPK_INIT_LOTTERY_TICKET, 0);
  assert_ok(spk_masking_initialise(NULL, row->masking, &row->layer, 1, &init));
}

static void release_row(struct row *row) {
  spk_masking_release(row->masking);
  spk_view_release(row->view);
}

static void update_row(struct row *row) {
  assert_ok(spk_masking_update(NULL, row->masking, &row->layer, 1, NULL));
}

static const float kWeights[8] = {1, -1, 0, 3, 1, 9, 1, 0};
static const float kGradients[8] = {0, 5, 5, 1, 5, 2, 7, 5};
static const uint8_t kMask[8] = {1, 1, 0, 1, 1, 1, 1, 0};

/* Of four weights of size 1 the last three go; of five gradients of size 5 the first grow. */
static void ties_go_to_the_lower_place(void **state) {
  (void)state;
  struct row row;
  create_row(&row, kWeights, kGradients, kMask, SPK_PRUNE_MAGNITUDE, SPK_GROW_GRADIENT);
  update_row(&row);
  assert_bytes(row.mask, 1, 1, 1, 1, 0, 1, 1, 0);
  assert_f32(row.weight, 1, 0, 0, 3, 0, 9, 0, 0);
  assert_f32(row.gradient, 0, 5, 5, 1, 0, 2, 7, 0);
  release_row(&row);
}

static void nan_is_kept_and_never_grown(void **state) {
  (void)state;
  const float weights[8] = {NAN, 1, 0, NAN, 5, INFINITY, -INFINITY, 0};
  const float gradients[8] = {0, NAN, NAN, 0, NAN, 0, 0, 2};
  struct row row;
  create_row(&row, weights, gradients, kMask, SPK_PRUNE_MAGNITUDE, SPK_GROW_GRADIENT);
  update_row(&row);
  /* 1, 5 and the infinity of the higher place went; of three only two have a gradient. */
  assert_bytes(row.mask, 1, 0, 0, 1, 0, 1, 1, 1);
  assert_f32(row.weight, NAN, 0, 0, NAN, 0, INFINITY, 0, 0);
  const spk_layer_stats expected = {sizeof expected, 8, 5, 3, 0.625, 0.75, 0, 0.5, 3, 3, 3, 2};
  spk_layer_stats stats = {.struct_size = sizeof stats};
  assert_ok(spk_masking_layer_stats(row.masking, 0, &stats));
  assert_int_equal(stats.nonzeros, expected.nonzeros);
  assert_int_equal(stats.removed, expected.removed);
  assert_int_equal(stats.requested_grown, expected.requested_grown);
  assert_int_equal(stats.grown, expected.grown);
  assert_near(stats.rate, 0.5, 0);
  assert_near(stats.density, 0.625, 0);
  /* What is missing now comes with the next growth, where growth is shared. */
  assert_near(spk_masking_adjusted_growth(row.masking), 0.75 + 1, 1e-15);
  release_row(&row);
}

static void pruning_alone_is_the_default(void **state) {
  (void)state;
  struct net net;
  create_ready(&net, kPlain, NULL);
  const int64_t before = all_ones(&net);
  const spk_update_report report = update(&net);
  /* 40 % of 24, 24 and 36, rounded up. */
  assert_int_equal(report.removed, 10 + 10 + 15);
  assert_int_equal(report.requested_removed, 35);
  assert_int_equal(report.grown, 0);
  assert_int_equal(all_ones(&net), before - 35);
  assert_int_equal(report.residual, 35);
  assert_near(report.rate, 0.4, 1e-15);
  assert_near(spk_masking_adjusted_growth(net.masking), 0.75 * 35 + 35, 1e-12);
  update(&net);
  release_net(&net);
}

/* Layers below 20 % sparsity prune no more than that, if they matter more than the average. */
static void dense_layers_are_guarded(void **state) {
  (void)state;
  struct net net;
  const spk_masking_options options =
      options_of(SPK_PRUNE_MAGNITUDE, SPK_REDISTRIBUTE_CALLBACK, SPK_GROW_GRADIENT);
  create_net(&net, kPlain, falling_rate(), &options);
  /* Sparsities 1/12, 1/8 and 1/8; statistics 1/6, 1/3 and 1/2. */
  for (int64_t i = 0; i < 48; ++i) net.a.mask[0][i] = i >= 4;
  for (int64_t i = 0; i < 48; ++i) net.a.mask[1][i] = i >= 6;
  for (int64_t i = 0; i < 72; ++i) net.a.mask[2][i] = i >= 9;
  initialise(&net, SPK_INIT_LOTTERY_TICKET, 0);
  update(&net);
  assert_near(stats_of(&net, 0).statistic, 1.0 / 6, 1e-15);
  assert_near(stats_of(&net, 0).rate, 0.4, 1e-15);
  /* A third is not above a third. */
  assert_near(stats_of(&net, 1).rate, 0.4, 1e-15);
  assert_near(stats_of(&net, 2).rate, 0.125, 1e-15);
  assert_int_equal(stats_of(&net, 2).removed, 8); /* 63 / 8 = 7.875 */
  release_net(&net);
}

/* Caps: 99 % of what is inactive. A layer of little room gives to the others. */
static void caps_hold(void **state) {
  (void)state;
  struct net net;
  const spk_masking_options options =
      options_of(SPK_PRUNE_MAGNITUDE, SPK_REDISTRIBUTE_GRADIENT, SPK_GROW_GRADIENT);
  create_net(&net, kPlain, falling_rate(), &options);
  memset(net.a.mask, 1, sizeof net.a.mask);
  initialise(&net, SPK_INIT_LOTTERY_TICKET, 0);
  for (uint64_t t = 1; t < 6; ++t) {
    refill(&net, t);
    const spk_update_report report = update(&net);
    int64_t caps = 0;
    for (int l = 0; l < LAYERS; ++l) {
      const spk_layer_stats stats = stats_of(&net, l);
      const int64_t inactive = stats.numel - (stats.nonzeros - stats.grown);
      const int64_t cap = inactive * 99 / 100;
      assert_true(stats.requested_grown <= cap);
      caps += cap;
    }
    assert_true(report.requested_grown <= caps);
    assert_int_equal(report.residual, 168 - report.nonzeros);
  }
  release_net(&net);
}

/* --- gradual pruning -------------------------------------------------------------------------- */

static void expect_gradual(int32_t prune, double target, int64_t zeros) {
  struct net net;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_magnitude(0, target, 40, 3, 2, &schedule));
  const spk_masking_options options = options_of(prune, SPK_REDISTRIBUTE_NONE, SPK_GROW_NONE);
  create_net(&net, kStrided, schedule, &options);
  memset(net.a.mask, 1, sizeof net.a.mask);
  initialise(&net, SPK_INIT_LOTTERY_TICKET, 0);
  for (int64_t t = 0; t <= 42; ++t) {
    double sparsity = 0;
    assert_ok(spk_schedule_cumulative_sparsity(schedule, t, &sparsity));
    if (t % 2 == 0) {
      update(&net);
      assert_int_equal(168 - all_ones(&net), (int64_t)ceil(sparsity * 168 - 1e-9));
    }
    step(&net);
  }
  assert_int_equal(168 - all_ones(&net), zeros);
  release_net(&net);
}

static void gradual_pruning_meets_its_target(void **state) {
  (void)state;
  for (int32_t prune = SPK_PRUNE_MAGNITUDE; prune <= SPK_PRUNE_GLOBAL_MAGNITUDE; ++prune) {
    expect_gradual(prune, 0.5, 84);
    expect_gradual(prune, 0.75, 126);
    expect_gradual(prune, 0.8, 135); /* 134.4 */
    expect_gradual(prune, 1.0 / 3, 56);
    expect_gradual(prune, 1, 168);
    expect_gradual(prune, 0, 0);
  }
}

/* Each layer loses its share, by size: 48, 48 and 72 of 168. */
static void gradual_pruning_is_shared_by_size(void **state) {
  (void)state;
  struct net net;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_magnitude(0.25, 0.5, 40, 3, 2, &schedule));
  create_net(&net, kStrided, schedule, NULL);
  memset(net.a.mask, 1, sizeof net.a.mask);
  initialise(&net, SPK_INIT_LOTTERY_TICKET, 0);
  const spk_update_report report = update(&net);
  assert_near(report.rate, 0.25, 1e-15);
  assert_int_equal(ones_of(&net, 0), 36);
  assert_int_equal(ones_of(&net, 1), 36);
  assert_int_equal(ones_of(&net, 2), 54);
  release_net(&net);
}

/* --- executors -------------------------------------------------------------------------------- */

static void executors_agree(void **state) {
  (void)state;
  const int32_t executors[] = {SPK_EXECUTOR_SERIAL, SPK_EXECUTOR_TBB, SPK_EXECUTOR_OPENMP};
  FOR_ALL_MODES(prune, redistribute, grow) {
    struct net first = {0};
    bool started = false;
    for (int64_t e = 0; e < COUNT(executors); ++e) {
      const int32_t threads = 1 + (prune + redistribute + grow + (int32_t)e) % 3;
      if (!spk_executor_available(executors[e])) continue;
      spk_context *context = context_with(executors[e], threads);
      struct net net;
      const spk_masking_options options = options_of(prune, redistribute, grow);
      create_ready(&net, kStrided, &options);
      for (int t = 0; t < 2; ++t) {
        assert_ok(spk_masking_step(context, net.masking, net.layers, LAYERS));
        assert_ok(spk_masking_update(context, net.masking, net.layers, LAYERS, NULL));
      }
      if (started) {
        expect_true(memcmp(&net.a, &first.a, sizeof net.a) == 0, "executors differ", prune,
                    redistribute, grow);
      }
      first.a = net.a;
      started = true;
      release_net(&net);
      spk_context_release(context);
    }
  }
}

/* --- removal ---------------------------------------------------------------------------------- */

static void removal_changes_the_baseline(void **state) {
  (void)state;
  struct net net;
  int32_t removed = -1;
  create_ready(&net, kPlain, NULL);
  const struct arrays before = net.a;
  assert_int_equal(spk_masking_baseline(net.masking), 24 + 24 + 36);
  assert_ok(spk_masking_remove_matching(net.masking, "conv", &removed));
  assert_int_equal(removed, 2);
  assert_int_equal(spk_masking_baseline(net.masking), 24);
  assert_int_equal(spk_masking_has_layer(net.masking, 0), 0);
  assert_int_equal(spk_masking_layer_count(net.masking), LAYERS);
  update(&net);
  assert_memory_equal(net.a.mask[0], before.mask[0], sizeof before.mask[0]);
  assert_memory_equal(net.a.mask[2], before.mask[2], sizeof before.mask[2]);
  assert_int_equal(ones_of(&net, 1), 24 - 10);
  release_net(&net);
}

static void handles_go_in_any_order(void **state) {
  (void)state;
  const int64_t before = spk_live_handles();
  struct net net;
  create_ready(&net, kPlain, NULL);
  spk_schedule_release(net.schedule);
  for (int l = 0; l < LAYERS; ++l) spk_view_release(net.views[l]);
  update(&net);
  step(&net);
  assert_int_equal(spk_schedule_position(spk_masking_schedule(net.masking)), 1);
  spk_masking_retain(net.masking);
  spk_masking_release(net.masking);
  update(&net);
  spk_masking_release(net.masking);
  spk_masking_retain(NULL);
  spk_masking_release(NULL);
  assert_int_equal(spk_live_handles(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_layout_makes_no_difference),
      TEST(counts_add_up),
      TEST(growth_equals_loss),
      TEST(structured_modes_leave_whole_kernels),
      TEST(dense_gradients_are_left_alone),
      TEST(ties_go_to_the_lower_place),
      TEST(nan_is_kept_and_never_grown),
      TEST(pruning_alone_is_the_default),
      TEST(dense_layers_are_guarded),
      TEST(caps_hold),
      TEST(gradual_pruning_meets_its_target),
      TEST(gradual_pruning_is_shared_by_size),
      TEST(executors_agree),
      TEST(removal_changes_the_baseline),
      TEST(handles_go_in_any_order),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
