/* First masks: published densities, exact counts, layers that leave, and refusals. */
#include "net.h"

/* --- densities of a network ------------------------------------------------------------------- */

enum { NETWORK = 6 };
static const char *const kNetwork[NETWORK] = {"(16,3,3,3)",  "(32,16,3,3)",  "(32,32,3,3)",
                                              "(64,32,3,3)", "(128,64,1,1)", "(10,128)"};
static const char *const kNetworkNames[NETWORK] = {"conv1", "b1", "b2", "b3", "b4", "fc"};

static spk_masking *network(void) {
  spk_schedule *schedule = falling_rate();
  spk_masking *masking = NULL;
  assert_ok(spk_masking_create(schedule, NULL, &masking));
  spk_schedule_release(schedule);
  for (int l = 0; l < NETWORK; ++l) {
    spk_view *view = view_of(SPK_F32, kNetwork[l]);
    assert_ok(spk_masking_add(masking, kNetworkNames[l], view, NULL));
    spk_view_release(view);
  }
  return masking;
}

static void expect_densities(int32_t mode, double density, const double *expected) {
  spk_masking *masking = network();
  const spk_init_options init = init_of(mode, density);
  double got[NETWORK];
  assert_ok(spk_masking_densities(masking, &init, got, NETWORK));
  for (int l = 0; l < NETWORK; ++l) assert_near(got[l], expected[l], 5.1e-7);
  spk_masking_release(masking);
}
#define assert_densities(mode, density, ...) \
  expect_densities(mode, density, (const double[NETWORK]){__VA_ARGS__})

static void erdos_renyi_densities(void **state) {
  (void)state;
  assert_densities(SPK_INIT_ERDOS_RENYI_KERNEL, 0.1, 0.418295, 0.084705, 0.054901, 0.039999,
                   0.171174, 0.779283);
  assert_densities(SPK_INIT_ERDOS_RENYI_KERNEL, 0.2, 0.929827, 0.188290, 0.122040, 0.088915,
                   0.380503, 1);
  assert_densities(SPK_INIT_ERDOS_RENYI_KERNEL, 0.5, 1, 0.579508, 0.375607, 0.273656, 1, 1);
  assert_densities(SPK_INIT_ERDOS_RENYI, 0.2, 1, 0.340557, 0.227038, 0.170278, 0.085139, 0.391640);
  assert_densities(SPK_INIT_ERDOS_RENYI, 1, 1, 1, 1, 1, 1, 1);
  assert_densities(SPK_INIT_ERDOS_RENYI_KERNEL, 0, 0, 0, 0, 0, 0, 0);
}

static void uniform_densities(void **state) {
  (void)state;
  assert_densities(SPK_INIT_RANDOM, 0.3, 1, 0.3, 0.3, 0.3, 0.3, 0.3);
}

/* The fully connected layer leaves; the convolutions make up for its 1280 weights. */
static void structured_densities(void **state) {
  (void)state;
  const double conv = 16 * 27 + 32 * 144 + 32 * 288 + 64 * 288 + 128 * 64;
  const double d = (0.3 * (conv + 1280) - 1280) / conv;
  assert_densities(SPK_INIT_STRUCT_RANDOM, 0.3, d, d, d, d, d, 1);
}

static void layers_that_left_have_no_density(void **state) {
  (void)state;
  spk_masking *masking = network();
  assert_ok(spk_masking_remove(masking, "b4"));
  const spk_init_options init = init_of(SPK_INIT_RANDOM, 0.25);
  double got[NETWORK];
  assert_ok(spk_masking_densities(masking, &init, got, NETWORK));
  assert_f64(got, 1, 0.25, 0.25, 0.25, 0, 0.25);
  spk_masking_release(masking);
}

/* --- masks ------------------------------------------------------------------------------------ */

static void create(struct net *net) {
  create_net(net, kStrided, falling_rate(), NULL);
}

/* Weights are zero where the mask is, untouched where it is not. */
static void expect_applied(const struct net *net, const struct arrays *before) {
  for (int l = 0; l < LAYERS; ++l) {
    for (int64_t i = 0; i < numel_of(net, l); ++i) {
      const int64_t place = place_of(net, l, i);
      const float kept = net->a.mask[l][i] ? before->weight[l][place] : 0;
      assert_int_equal(bits_of(net->a.weight[l][place]), bits_of(kept));
      assert_true(net->a.mask[l][i] <= 1);
    }
  }
  assert_memory_equal(net->a.gradient, before->gradient, sizeof before->gradient);
  assert_memory_equal(net->a.momentum, before->momentum, sizeof before->momentum);
}

static void random_leaves_the_first_layer_dense(void **state) {
  (void)state;
  struct net net;
  create(&net);
  const struct arrays before = net.a;
  initialise(&net, SPK_INIT_RANDOM, 0.3);
  assert_int_equal(spk_masking_has_layer(net.masking, 0), 0);
  assert_int_equal(spk_masking_has_layer(net.masking, 1), 1);
  assert_int_equal(spk_masking_layer_count(net.masking), LAYERS);
  assert_int_equal(ones_of(&net, 0), 48);
  assert_int_equal(ones_of(&net, 1), 14); /* 14.4 */
  assert_int_equal(ones_of(&net, 2), 22); /* 21.6 */
  assert_int_equal(spk_masking_baseline(net.masking), 36);
  expect_applied(&net, &before);
  /* It stays dense, and may be zeroed from now on. */
  net.layers[0] = (spk_layer){0};
  update(&net);
  step(&net);
  assert_int_equal(ones_of(&net, 0), 48);
  assert_memory_equal(net.a.weight[0], before.weight[0], sizeof before.weight[0]);
  release_net(&net);
}

static void counts_are_rounded_half_up(void **state) {
  (void)state;
  struct net net;
  create(&net);
  /* 1.5 of 48, 2.25 of 72. */
  initialise(&net, SPK_INIT_RANDOM, 0.03125);
  assert_int_equal(ones_of(&net, 1), 2);
  assert_int_equal(ones_of(&net, 2), 2);
  release_net(&net);
}

static void structured_modes_keep_whole_kernels(void **state) {
  (void)state;
  for (int32_t mode = SPK_INIT_STRUCT_RANDOM; mode <= SPK_INIT_STRUCT_ERDOS_RENYI_KERNEL; ++mode) {
    struct net net;
    create(&net);
    const struct arrays before = net.a;
    initialise(&net, mode, 0.6);
    assert_int_equal(spk_masking_has_layer(net.masking, 1), 0);
    assert_int_equal(spk_masking_has_layer(net.masking, 0), 1);
    assert_int_equal(ones_of(&net, 1), 48);
    for (int64_t i = 0; i < 48; ++i) assert_int_equal(net.a.mask[0][i], net.a.mask[0][i / 4 * 4]);
    for (int64_t i = 0; i < 72; ++i) assert_int_equal(net.a.mask[2][i], net.a.mask[2][i / 3 * 3]);
    expect_applied(&net, &before);
    release_net(&net);
  }
}

/* (0.6 * 168 - 48) / 120 = 0.44: 5.28 of 12 kernels, 10.56 of 24. */
static void structured_counts_are_exact(void **state) {
  (void)state;
  struct net net;
  create(&net);
  initialise(&net, SPK_INIT_STRUCT_RANDOM, 0.6);
  assert_int_equal(ones_of(&net, 0), 5 * 4);
  assert_int_equal(ones_of(&net, 2), 11 * 3);
  assert_near(stats_of(&net, 0).requested_density, 0.44, 1e-12);
  release_net(&net);
}

static void resume_takes_what_is_not_zero(void **state) {
  (void)state;
  struct net net;
  create(&net);
  net.a.weight[1][place_of(&net, 1, 5)] = -0.0f;
  net.a.weight[1][place_of(&net, 1, 7)] = 0;
  net.a.weight[2][place_of(&net, 2, 71)] = NAN;
  net.a.weight[2][place_of(&net, 2, 0)] = 0x1p-149f;
  net.a.weight[2][place_of(&net, 2, 1)] = 0;
  const struct arrays before = net.a;
  initialise(&net, SPK_INIT_RESUME, 0);
  assert_int_equal(spk_masking_baseline(net.masking), 48 + 46 + 71);
  assert_int_equal(net.a.mask[1][5], 0);
  assert_int_equal(net.a.mask[1][7], 0);
  assert_int_equal(net.a.mask[2][71], 1);
  assert_int_equal(net.a.mask[2][0], 1);
  assert_int_equal(bits_of(net.a.weight[1][place_of(&net, 1, 5)]), 0);
  net.a.weight[1][place_of(&net, 1, 5)] = -0.0f;
  assert_memory_equal(net.a.weight, before.weight, sizeof before.weight);
  release_net(&net);
}

static void lottery_tickets_keep_their_masks(void **state) {
  (void)state;
  struct net net;
  create(&net);
  for (int l = 0; l < LAYERS; ++l) {
    for (int64_t i = 0; i < numel_of(&net, l); ++i) net.a.mask[l][i] = i % 3 == 0;
  }
  const struct arrays before = net.a;
  initialise(&net, SPK_INIT_LOTTERY_TICKET, 0);
  assert_memory_equal(net.a.mask, before.mask, sizeof before.mask);
  assert_int_equal(spk_masking_baseline(net.masking), 16 + 16 + 24);
  expect_applied(&net, &before);
  release_net(&net);
}

/* Bytes other than 0 read as 1. */
static void any_byte_that_is_not_zero_keeps(void **state) {
  (void)state;
  struct net net;
  create(&net);
  memset(net.a.mask, 255, sizeof net.a.mask);
  net.a.mask[0][3] = 0;
  const struct arrays before = net.a;
  initialise(&net, SPK_INIT_LOTTERY_TICKET, 0);
  assert_int_equal(spk_masking_baseline(net.masking), 167);
  const int64_t place = place_of(&net, 0, 3);
  assert_int_equal(bits_of(net.a.weight[0][place]), 0);
  net.a.weight[0][place] = before.weight[0][place];
  assert_memory_equal(net.a.weight, before.weight, sizeof before.weight);
  release_net(&net);
}

static void lottery_ticket_counts_are_exact(void **state) {
  (void)state;
  struct net net;
  create(&net);
  const struct arrays before = net.a;
  const int64_t counts[LAYERS] = {0, 48, 17};
  spk_init_options init = init_of(SPK_INIT_LOTTERY_TICKET_DIST, 0);
  init.counts = counts;
  init.ncounts = LAYERS;
  assert_ok(spk_masking_initialise(NULL, net.masking, net.layers, LAYERS, &init));
  for (int l = 0; l < LAYERS; ++l) assert_int_equal(ones_of(&net, l), counts[l]);
  assert_int_equal(spk_masking_baseline(net.masking), 65);
  expect_applied(&net, &before);
  release_net(&net);
}

static void initialising_again_draws_afresh(void **state) {
  (void)state;
  struct net net;
  create(&net);
  initialise(&net, SPK_INIT_ERDOS_RENYI_KERNEL, 0.5);
  const struct arrays first = net.a;
  update(&net);
  initialise(&net, SPK_INIT_ERDOS_RENYI_KERNEL, 0.5);
  assert_memory_not_equal(net.a.mask, first.mask, sizeof first.mask);
  for (int l = 0; l < LAYERS; ++l) {
    int64_t ones = 0;
    for (int64_t i = 0; i < numel_of(&net, l); ++i) ones += first.mask[l][i];
    assert_int_equal(ones_of(&net, l), ones);
  }
  assert_int_equal(spk_masking_baseline(net.masking), all_ones(&net));
  release_net(&net);
}

/* Layers that left stay out, and count as if they left now. */
static void initialising_again_keeps_out_who_left(void **state) {
  (void)state;
  const int32_t modes[] = {SPK_INIT_RANDOM, SPK_INIT_STRUCT_RANDOM,
                           SPK_INIT_STRUCT_ERDOS_RENYI_KERNEL};
  for (int64_t m = 0; m < COUNT(modes); ++m) {
    struct net net;
    create(&net);
    initialise(&net, modes[m], 0.6);
    const struct arrays first = net.a;
    const int64_t baseline = spk_masking_baseline(net.masking);
    refill(&net, 1);
    initialise(&net, modes[m], 0.6);
    assert_int_equal(spk_masking_baseline(net.masking), baseline);
    assert_memory_not_equal(net.a.mask, first.mask, sizeof first.mask);
    const int leaver = m == 0 ? 0 : 1;
    for (int l = 0; l < LAYERS; ++l) {
      assert_int_equal(spk_masking_has_layer(net.masking, l), l != leaver);
    }
    release_net(&net);
  }
}

static void facts_before_initialisation(void **state) {
  (void)state;
  struct net net;
  create(&net);
  assert_near(stats_of(&net, 1).requested_density, 1, 0);
  assert_int_equal(stats_of(&net, 1).numel, 48);
  assert_int_equal(stats_of(&net, 1).nonzeros, 48);
  assert_int_equal(spk_masking_layer_count(net.masking), LAYERS);
  assert_int_equal(spk_masking_find(net.masking, "fc.weight"), 1);
  assert_int_equal(spk_masking_find(net.masking, "fc"), -1);
  assert_string_equal(spk_masking_layer_name(net.masking, 2), "conv2.weight");
  assert_null(spk_masking_layer_name(net.masking, 3));
  assert_null(spk_masking_layer_name(net.masking, -1));
  assert_ptr_equal(spk_masking_layer_view(net.masking, 0), net.views[0]);
  assert_null(spk_masking_layer_view(net.masking, 3));
  assert_int_equal(spk_masking_has_layer(net.masking, 3), 0);
  assert_ptr_equal(spk_masking_schedule(net.masking), net.schedule);
  assert_int_equal(spk_masking_layer_count(NULL), -1);
  assert_int_equal(spk_masking_find(NULL, "x"), -1);
  assert_int_equal(spk_masking_find(net.masking, NULL), -1);
  assert_null(spk_masking_layer_name(NULL, 0));
  assert_null(spk_masking_layer_view(NULL, 0));
  assert_null(spk_masking_schedule(NULL));
  assert_true(isnan(spk_masking_adjusted_growth(NULL)));
  release_net(&net);
}

/* --- refusals ---------------------------------------------------------------------------------- */

static spk_status initialise_with(struct net *net, const spk_init_options *init) {
  return spk_masking_initialise(NULL, net->masking, net->layers, LAYERS, init);
}

static void refuses_options(void **state) {
  (void)state;
  struct net net;
  create(&net);
  const spk_status bad = SPK_INVALID_ARGUMENT;
  spk_init_options init = init_of(SPK_INIT_ERDOS_RENYI, 1.5);
  assert_refused(&net, bad, "density|1.5|0 to 1", initialise_with(&net, &init));
  init.density = -0.5;
  assert_refused(&net, bad, "density|-0.5|0 to 1", initialise_with(&net, &init));
  init.density = NAN;
  assert_refused(&net, bad, "density|0 to 1", initialise_with(&net, &init));
  init = init_of(9, 0.5);
  assert_refused(&net, bad, "mode|9", initialise_with(&net, &init));
  init = init_of(-1, 0.5);
  assert_refused(&net, bad, "mode|-1", initialise_with(&net, &init));
  init = init_of(SPK_INIT_RANDOM, 0.5);
  init.draw = 2;
  assert_refused(&net, bad, "draw|2", initialise_with(&net, &init));
  init = init_of(SPK_INIT_RANDOM, 0.5);
  init.struct_size = 5;
  assert_refused(&net, bad, "struct_size|5", initialise_with(&net, &init));
  assert_refused(&net, bad, "options|NULL", initialise_with(&net, NULL));
  release_net(&net);
}

static void refuses_counts(void **state) {
  (void)state;
  struct net net;
  create(&net);
  const spk_status bad = SPK_INVALID_ARGUMENT;
  int64_t counts[LAYERS] = {1, 49, 3};
  spk_init_options init = init_of(SPK_INIT_LOTTERY_TICKET_DIST, 0);
  assert_refused(&net, bad, "counts|NULL", initialise_with(&net, &init));
  init.counts = counts;
  init.ncounts = 2;
  assert_refused(&net, SPK_SHAPE_MISMATCH, "counts|2|3", initialise_with(&net, &init));
  init.ncounts = LAYERS;
  assert_refused(&net, bad, "counts|49|48", initialise_with(&net, &init));
  counts[1] = -1;
  assert_refused(&net, bad, "counts|-1", initialise_with(&net, &init));
  release_net(&net);
}

static void refuses_densities_out_of_reach(void **state) {
  (void)state;
  struct net net;
  create(&net);
  /* 48 of 168 weights are dense already. */
  for (int32_t mode = SPK_INIT_STRUCT_RANDOM; mode <= SPK_INIT_STRUCT_ERDOS_RENYI_KERNEL; ++mode) {
    const spk_init_options init = init_of(mode, 0.25);
    double out[LAYERS] = {-1, -1, -1};
    assert_refused(&net, SPK_INVALID_ARGUMENT, "density|0.25", initialise_with(&net, &init));
    assert_refused(&net, SPK_INVALID_ARGUMENT, "density|0.25",
                   spk_masking_densities(net.masking, &init, out, LAYERS));
    assert_f64(out, -1, -1, -1);
  }
  release_net(&net);
}

static void refuses_layers_of_rank_one(void **state) {
  (void)state;
  struct net net;
  create(&net);
  spk_view *bias = view_of(SPK_F32, "(10)");
  float data[10] = {0};
  uint8_t mask[10] = {0};
  assert_ok(spk_masking_add(net.masking, "fc.bias", bias, NULL));
  spk_layer layers[LAYERS + 1];
  memcpy(layers, net.layers, sizeof net.layers);
  layers[LAYERS] =
      (spk_layer){.struct_size = sizeof(spk_layer), .weight = F32(data), .mask = U8(mask)};
  const int32_t modes[] = {SPK_INIT_ERDOS_RENYI, SPK_INIT_ERDOS_RENYI_KERNEL,
                           SPK_INIT_STRUCT_RANDOM, SPK_INIT_STRUCT_ERDOS_RENYI,
                           SPK_INIT_STRUCT_ERDOS_RENYI_KERNEL};
  for (int64_t m = 0; m < COUNT(modes); ++m) {
    const spk_init_options init = init_of(modes[m], 0.5);
    assert_refused(&net, SPK_INVALID_ARGUMENT, "fc.bias|rank|1",
                   spk_masking_initialise(NULL, net.masking, layers, LAYERS + 1, &init));
  }
  spk_view_release(bias);
  release_net(&net);
}

static void densities_refuse(void **state) {
  (void)state;
  struct net net;
  create(&net);
  double out[LAYERS] = {-1, -1, -1};
  const spk_status bad = SPK_INVALID_ARGUMENT;
  spk_init_options init = init_of(SPK_INIT_RANDOM, 0.5);
  assert_refused(&net, bad, "masking|NULL", spk_masking_densities(NULL, &init, out, LAYERS));
  assert_refused(&net, bad, "options|NULL", spk_masking_densities(net.masking, NULL, out, LAYERS));
  assert_refused(&net, bad, "densities|NULL",
                 spk_masking_densities(net.masking, &init, NULL, LAYERS));
  assert_refused(&net, SPK_SHAPE_MISMATCH, "densities|2|3",
                 spk_masking_densities(net.masking, &init, out, 2));
  for (int32_t mode = SPK_INIT_RESUME; mode <= SPK_INIT_LOTTERY_TICKET_DIST; ++mode) {
    const int64_t counts[LAYERS] = {1, 2, 3};
    init = init_of(mode, 0.5);
    if (mode == SPK_INIT_LOTTERY_TICKET_DIST) init.counts = counts;
    if (mode == SPK_INIT_LOTTERY_TICKET_DIST) init.ncounts = LAYERS;
    assert_refused(&net, bad, "mode", spk_masking_densities(net.masking, &init, out, LAYERS));
  }
  assert_f64(out, -1, -1, -1);
  release_net(&net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(erdos_renyi_densities),
      TEST(uniform_densities),
      TEST(structured_densities),
      TEST(layers_that_left_have_no_density),
      TEST(random_leaves_the_first_layer_dense),
      TEST(counts_are_rounded_half_up),
      TEST(structured_modes_keep_whole_kernels),
      TEST(structured_counts_are_exact),
      TEST(resume_takes_what_is_not_zero),
      TEST(lottery_tickets_keep_their_masks),
      TEST(any_byte_that_is_not_zero_keeps),
      TEST(lottery_ticket_counts_are_exact),
      TEST(initialising_again_draws_afresh),
      TEST(initialising_again_keeps_out_who_left),
      TEST(facts_before_initialisation),
      TEST(refuses_options),
      TEST(refuses_counts),
      TEST(refuses_densities_out_of_reach),
      TEST(refuses_layers_of_rank_one),
      TEST(densities_refuse),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
