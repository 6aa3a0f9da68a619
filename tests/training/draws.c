/* Random places: how many, where they may be, and that no place is preferred. Which ones they are is
 * for the random runs to say, which have the generator. */
#include "net.h"

/* Sum of (observed - expected)^2 / expected when each of `trials` draws takes `drawn` of `count`
 * places without repetition; scaled, for that makes it smaller. About count - 1 if uniform. */
static double chi_square(const int64_t *observed, int64_t count, int64_t drawn, int64_t trials) {
  const double expected = (double)trials * (double)drawn / (double)count;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double difference = (double)observed[i] - expected;
    sum += difference * difference / expected;
  }
  return sum * (double)(count - 1) / (double)(count - drawn);
}

/* Eight standard deviations above the mean: once in a billion runs, and all seeds are fixed. */
static void expect_uniform(const int64_t *observed, int64_t count, int64_t drawn, int64_t trials) {
  const double mean = (double)(count - 1);
  const double value = chi_square(observed, count, drawn, trials);
  if (value < mean + 8 * sqrt(2 * mean) && value > mean - 8 * sqrt(2 * mean)) return;
  print_error("chi-square %g of %d places\n", value, (int)count);
  fail();
}

static void create_seeded(struct net *net, uint64_t seed, int32_t grow) {
  spk_masking_options options = options_of(SPK_PRUNE_MAGNITUDE, SPK_REDISTRIBUTE_NONE, grow);
  options.seed = seed;
  create_net(net, kPlain, falling_rate(), &options);
}

static void initialise_counts(struct net *net, const int64_t *counts) {
  spk_init_options init = init_of(SPK_INIT_LOTTERY_TICKET_DIST, 0);
  init.counts = counts;
  init.ncounts = LAYERS;
  assert_ok(spk_masking_initialise(NULL, net->masking, net->layers, LAYERS, &init));
}

static void count_ones(const struct net *net, int64_t observed[LAYERS][MOST_ELEMENTS]) {
  for (int l = 0; l < LAYERS; ++l) {
    for (int64_t i = 0; i < numel_of(net, l); ++i) observed[l][i] += net->a.mask[l][i];
  }
}

static void first_masks_prefer_no_place(void **state) {
  (void)state;
  enum { TRIALS = 1500 };
  const int64_t counts[LAYERS] = {7, 24, 60};
  int64_t observed[LAYERS][MOST_ELEMENTS] = {{0}};
  /* Seeds that differ in few bits, low and high. */
  for (uint64_t trial = 0; trial < TRIALS; ++trial) {
    struct net net;
    create_seeded(&net, trial % 2 == 0 ? trial : trial << 32, SPK_GROW_NONE);
    initialise_counts(&net, counts);
    count_ones(&net, observed);
    release_net(&net);
  }
  for (int l = 0; l < LAYERS; ++l) expect_uniform(observed[l], l == 2 ? 72 : 48, counts[l], TRIALS);
}

static void masks_of_one_seed_prefer_no_place(void **state) {
  (void)state;
  enum { TRIALS = 3000 };
  const int64_t counts[LAYERS] = {7, 24, 60};
  int64_t observed[LAYERS][MOST_ELEMENTS] = {{0}};
  struct net net;
  create_seeded(&net, 1, SPK_GROW_NONE);
  for (int trial = 0; trial < TRIALS; ++trial) {
    initialise_counts(&net, counts);
    count_ones(&net, observed);
  }
  release_net(&net);
  for (int l = 0; l < LAYERS; ++l) expect_uniform(observed[l], l == 2 ? 72 : 48, counts[l], TRIALS);
}

/* 5 of 12 kernels: 5.28 are asked for. */
static void whole_kernels_prefer_no_place(void **state) {
  (void)state;
  enum { TRIALS = 1000 };
  int64_t observed[LAYERS][MOST_ELEMENTS] = {{0}};
  int64_t kernels[12];
  for (uint64_t trial = 0; trial < TRIALS; ++trial) {
    struct net net;
    create_seeded(&net, 77 * trial, SPK_GROW_NONE);
    initialise(&net, SPK_INIT_STRUCT_RANDOM, 0.6);
    assert_int_equal(ones_of(&net, 0), 20);
    count_ones(&net, observed);
    release_net(&net);
  }
  for (int64_t k = 0; k < 12; ++k) kernels[k] = observed[0][4 * k];
  expect_uniform(kernels, 12, 5, TRIALS);
}

/* --- growth ------------------------------------------------------------------------------------- */

/* Layer 1 with places 0 to 23 active, of which the first 10 are weakest and go: places 0 to 9 and 24
 * to 47 may grow. */
static void prepare_growth(struct net *net) {
  for (int l = 0; l < LAYERS; ++l) {
    for (int64_t i = 0; i < numel_of(net, l); ++i) {
      net->a.mask[l][i] = i < numel_of(net, l) / 2;
      net->a.weight[l][i] = (float)(i + 1);
    }
  }
}

/* Notes the places of layer 1 that grew, counted among those that may. */
static void note_growth(const struct net *net, int64_t *observed) {
  int64_t grown = 0;
  for (int64_t i = 0; i < 48; ++i) {
    const bool free_place = i < 10 || i >= 24;
    if (!free_place) {
      assert_int_equal(net->a.mask[1][i], 1);
      assert_near(net->a.weight[1][i], (double)(i + 1), 0);
      continue;
    }
    assert_int_equal(bits_of(net->a.weight[1][i]), 0);
    grown += net->a.mask[1][i];
    observed[i < 10 ? i : i - 14] += net->a.mask[1][i];
  }
  assert_int_equal(grown, 10);
}

static void growth_prefers_no_place(void **state) {
  (void)state;
  enum { TRIALS = 1500 };
  int64_t observed[34] = {0};
  for (uint64_t trial = 0; trial < TRIALS; ++trial) {
    struct net net;
    create_seeded(&net, 1000 + trial, SPK_GROW_RANDOM);
    prepare_growth(&net);
    initialise(&net, SPK_INIT_LOTTERY_TICKET, 0);
    update(&net);
    note_growth(&net, observed);
    release_net(&net);
  }
  expect_uniform(observed, 34, 10, TRIALS);
}

static void every_update_draws_afresh(void **state) {
  (void)state;
  enum { TRIALS = 3000 };
  int64_t observed[34] = {0};
  int64_t repeated = 0;
  struct net net;
  struct arrays before;
  create_seeded(&net, 3, SPK_GROW_RANDOM);
  prepare_growth(&net);
  initialise(&net, SPK_INIT_LOTTERY_TICKET, 0);
  for (int trial = 0; trial < TRIALS; ++trial) {
    before = net.a;
    /* The same masks and weights again: only the draw can make a difference. */
    prepare_growth(&net);
    update(&net);
    note_growth(&net, observed);
    if (memcmp(net.a.mask, before.mask, sizeof before.mask) == 0) ++repeated;
  }
  release_net(&net);
  assert_int_equal(repeated, 0);
  expect_uniform(observed, 34, 10, TRIALS);
}

/* --- what differs, and what does not ------------------------------------------------------------ */

static void seeds_and_layers_differ(void **state) {
  (void)state;
  const int64_t counts[LAYERS] = {24, 24, 36};
  const uint64_t seeds[] = {0, 1, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX};
  static uint8_t masks[COUNT(seeds)][LAYERS][MOST_ELEMENTS];
  for (int64_t s = 0; s < COUNT(seeds); ++s) {
    struct net net;
    create_seeded(&net, seeds[s], SPK_GROW_NONE);
    initialise_counts(&net, counts);
    memcpy(masks[s], net.a.mask, sizeof masks[s]);
    assert_memory_not_equal(net.a.mask[0], net.a.mask[1], 48);
    for (int64_t other = 0; other < s; ++other) {
      for (int l = 0; l < LAYERS; ++l) assert_memory_not_equal(masks[s][l], masks[other][l], 48);
    }
    release_net(&net);
  }
}

/* A layer's places follow from its id, not from what other layers there are. */
static void removed_layers_change_nothing_for_others(void **state) {
  (void)state;
  const int64_t counts[LAYERS] = {24, 24, 36};
  struct net all, some;
  create_seeded(&all, 5, SPK_GROW_NONE);
  create_seeded(&some, 5, SPK_GROW_NONE);
  assert_ok(spk_masking_remove(some.masking, kNames[0]));
  initialise_counts(&all, counts);
  initialise_counts(&some, counts);
  assert_memory_equal(all.a.mask[1], some.a.mask[1], 48);
  assert_memory_equal(all.a.mask[2], some.a.mask[2], 72);
  release_net(&all);
  release_net(&some);
}

/* 168 places with probability 0.3, many times: within eight standard deviations. */
static void bernoulli_draws_have_their_share(void **state) {
  (void)state;
  enum { TRIALS = 2000 };
  int64_t observed[LAYERS][MOST_ELEMENTS] = {{0}};
  int64_t counts_seen[MOST_ELEMENTS + 1] = {0};
  struct net net;
  create_seeded(&net, 6, SPK_GROW_NONE);
  spk_init_options init = init_of(SPK_INIT_ERDOS_RENYI, 0.3);
  init.draw = SPK_DRAW_BERNOULLI;
  double densities[LAYERS];
  assert_ok(spk_masking_densities(net.masking, &init, densities, LAYERS));
  for (int trial = 0; trial < TRIALS; ++trial) {
    assert_ok(spk_masking_initialise(NULL, net.masking, net.layers, LAYERS, &init));
    count_ones(&net, observed);
    ++counts_seen[ones_of(&net, 2)];
  }
  for (int l = 0; l < LAYERS; ++l) {
    const double p = densities[l];
    for (int64_t i = 0; i < numel_of(&net, l); ++i) {
      assert_near((double)observed[l][i], p * TRIALS, 8 * sqrt(TRIALS * p * (1 - p)));
    }
  }
  /* The number itself varies. */
  int64_t different = 0;
  for (int64_t i = 0; i <= MOST_ELEMENTS; ++i) different += counts_seen[i] > 0;
  assert_true(different > 10);
  release_net(&net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(first_masks_prefer_no_place),
      TEST(masks_of_one_seed_prefer_no_place),
      TEST(whole_kernels_prefer_no_place),
      TEST(growth_prefers_no_place),
      TEST(every_update_draws_afresh),
      TEST(seeds_and_layers_differ),
      TEST(removed_layers_change_nothing_for_others),
      TEST(bernoulli_draws_have_their_share),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
