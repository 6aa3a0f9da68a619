/* Initialisation: densities that are known, and masks drawn by Philox words that are known. */
#include <sparsekit/training.h>
#include <stdlib.h>

#include "support.h"

static spk_masking *new_masking(uint64_t seed) {
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_linear(0.3, 1000, &schedule));
  spk_masking_options options = {.struct_size = sizeof options, .seed = seed};
  spk_masking *masking = NULL;
  assert_ok(spk_masking_create(schedule, &options, &masking));
  spk_schedule_release(schedule);
  return masking;
}

static void add(spk_masking *masking, const char *name, const char *shape) {
  spk_view *view = view_of(SPK_F32, shape);
  assert_ok(spk_masking_add(masking, name, view, NULL));
  spk_view_release(view);
}

static void expect_densities(int32_t mode, double density, const double *want) {
  spk_masking *masking = new_masking(0);
  add(masking, "conv1", "(16,3,3,3)");
  add(masking, "b1", "(32,16,3,3)");
  add(masking, "b2", "(32,32,3,3)");
  add(masking, "b3", "(64,32,3,3)");
  add(masking, "b4", "(128,64,1,1)");
  add(masking, "fc", "(10,128)");
  double got[6] = {0};
  const spk_init_options options = {
      .struct_size = sizeof options, .density = density, .mode = mode};
  assert_ok(spk_masking_densities(masking, &options, got, 6));
  for (int i = 0; i < 6; ++i) assert_near(got[i], want[i], 5.1e-7);
  spk_masking_release(masking);
}

static void erdos_renyi_densities(void **state) {
  (void)state;
  expect_densities(SPK_INIT_ERDOS_RENYI_KERNEL, 0.1,
                   (double[]){0.418295, 0.084705, 0.054901, 0.039999, 0.171174, 0.779283});
  expect_densities(SPK_INIT_ERDOS_RENYI_KERNEL, 0.2,
                   (double[]){0.929827, 0.188290, 0.122040, 0.088915, 0.380503, 1});
  expect_densities(SPK_INIT_ERDOS_RENYI_KERNEL, 0.5,
                   (double[]){1, 0.579508, 0.375607, 0.273656, 1, 1});
  expect_densities(SPK_INIT_ERDOS_RENYI, 0.2,
                   (double[]){1, 0.340557, 0.227038, 0.170278, 0.085139, 0.391640});
}

static void flat_layers_are_made_up_for(void **state) {
  (void)state;
  const double conv = 16 * 3 * 9 + 32 * 16 * 9 + 32 * 32 * 9 + 64 * 32 * 9 + 128 * 64;
  const double d = (0.5 * (conv + 1280) - 1280) / conv;
  expect_densities(SPK_INIT_STRUCT_RANDOM, 0.5, (double[]){d, d, d, d, d, 1});
}

/* Philox 4x32-10, first half of the block. */
static uint64_t philox_word(const uint32_t counter[4], uint64_t seed) {
  uint32_t x[4] = {counter[0], counter[1], counter[2], counter[3]};
  uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = (uint64_t)0xd2511f53 * x[0];
    const uint64_t b = (uint64_t)0xcd9e8d57 * x[2];
    const uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k[0], (uint32_t)b,
                              (uint32_t)(a >> 32) ^ x[3] ^ k[1], (uint32_t)a};
    memcpy(x, next, sizeof x);
    k[0] += 0x9e3779b9;
    k[1] += 0xbb67ae85;
  }
  return x[0] | (uint64_t)x[1] << 32;
}

static void philox_has_its_known_answers(void **state) {
  (void)state;
  assert_true(philox_word((const uint32_t[]){0, 0, 0, 0}, 0) == 0xe169c58d6627e8d5);
  const uint32_t pi[4] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
  assert_true(philox_word(pi, 0x299f31d0a4093822) == 0x94fdccebd16cfe09);
}

/* Is `mask` that of the `ones` smallest words of a draw? */
static void expect_drawn(const uint8_t *mask, int64_t n, int64_t ones, uint32_t layer,
                         uint32_t draw, uint64_t seed) {
  uint64_t most_in = 0;
  uint64_t least_out = UINT64_MAX;
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t word = philox_word((const uint32_t[]){layer, 0, draw, (uint32_t)i}, seed);
    if (mask[i]) {
      ++count;
      if (word > most_in) most_in = word;
    } else if (word < least_out) {
      least_out = word;
    }
  }
  assert_int_equal(count, ones);
  assert_true(most_in < least_out);
}

static spk_buffer array_of(void *data, int64_t numel, int32_t dtype) {
  return (spk_buffer){data, numel, dtype, SPK_LAYOUT_CONTIGUOUS, NULL};
}

static void smallest_words_are_drawn(void **state) {
  (void)state;
  enum { kRows = 300, kCols = 201, kNumel = kRows * kCols };
  const uint64_t seed = 0x0123456789abcdef;
  float *weights = malloc(2 * kNumel * sizeof(float));
  uint8_t *masks = malloc(2 * kNumel);
  for (int i = 0; i < 2 * kNumel; ++i) weights[i] = 1;
  spk_masking *masking = new_masking(seed);
  add(masking, "first", "(300,201)");
  add(masking, "second", "(300,201)");
  spk_layer layers[2] = {0};
  for (int l = 0; l < 2; ++l) {
    layers[l].struct_size = sizeof(spk_layer);
    layers[l].weight = array_of(weights + l * kNumel, kNumel, SPK_F32);
    layers[l].mask = array_of(masks + l * kNumel, kNumel, SPK_U8);
  }
  const spk_init_options options = {.struct_size = sizeof options, .density = 0.1};
  for (uint32_t draw = 0; draw < 3; ++draw) {
    assert_ok(spk_masking_initialise(NULL, masking, layers, 2, &options));
    expect_drawn(masks + kNumel, kNumel, 6030, 1, draw, seed);
  }
  assert_int_equal(spk_masking_has_layer(masking, 0), 0);
  assert_int_equal(spk_masking_baseline(masking), 6030);
  for (int i = 0; i < kNumel; ++i) {
    assert_int_equal(masks[i], 1);
    assert_true(weights[i] == 1);
  }
  spk_masking_release(masking);
  free(masks);
  free(weights);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(erdos_renyi_densities),
      TEST(flat_layers_are_made_up_for),
      TEST(philox_has_its_known_answers),
      TEST(smallest_words_are_drawn),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
