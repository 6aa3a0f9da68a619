/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse_training.h"

#include <math.h>
#include <sparsekit/training.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "perceptron.h"
#include "structure.h"

enum { SEEDS = 10, EPOCHS = 30, STEPS = EPOCHS * ((TRAIN_IMAGES + 31) / 32) };
/* Updates come at every so many steps, and end when a quarter of the steps is left. */
enum { INTERVAL = 50, LAST_UPDATE = STEPS * 3 / 4, FIRST_PRUNE = 200 };

#define RATE 2e-3f
#define PRUNE_RATE 0.3
#define STUDENT_T 2.262 /* 95 %, 9 degrees of freedom */
#define WORSE_BY_CHANCE 0.005

struct method {
  const char *name;
  int sparse;
  int updates;
  int gradual; /* dense at first; the others start sparse */
  int32_t redistribute;
  int32_t grow;
};

static const struct method kDense = {"dense", 0, 0, 0, 0, 0};
static const struct method kMethods[] = {
    {"static", 1, 0, 0, SPK_REDISTRIBUTE_NONE, SPK_GROW_NONE},
    {"SET", 1, 1, 0, SPK_REDISTRIBUTE_NONE, SPK_GROW_RANDOM},
    {"RigL", 1, 1, 0, SPK_REDISTRIBUTE_NONE, SPK_GROW_GRADIENT},
    {"SNFS", 1, 1, 0, SPK_REDISTRIBUTE_MOMENTUM, SPK_GROW_MOMENTUM},
    {"gradual", 1, 1, 1, SPK_REDISTRIBUTE_NONE, SPK_GROW_NONE},
};
enum { METHODS = sizeof kMethods / sizeof kMethods[0], STATIC = 0, RIGL = 2 };

/* One run. Masks are the caller's, like every other buffer. */
struct run {
  const struct method *method;
  double sparsity;
  spk_masking *masking;
  int64_t step;
  uint8_t mask1[HIDDEN * INPUTS];
  uint8_t mask2[OUTPUTS * HIDDEN];
};

enum { LAYERS = 2 };

static spk_buffer buffer_of(void *data, int64_t numel, int32_t dtype) {
  spk_buffer buffer = {data, numel, dtype, SPK_LAYOUT_CONTIGUOUS, NULL};
  return buffer;
}

static spk_layer layer_of(float *weight, float *gradient, float *m, float *v, uint8_t *mask,
                          int64_t numel) {
  spk_layer layer = {.struct_size = sizeof layer};
  layer.weight = buffer_of(weight, numel, SPK_F32);
  layer.gradient = buffer_of(gradient, numel, SPK_F32);
  layer.adam_m1 = buffer_of(m, numel, SPK_F32);
  layer.adam_m2 = buffer_of(v, numel, SPK_F32);
  layer.mask = buffer_of(mask, numel, SPK_U8);
  return layer;
}

static void layers_of(struct run *run, perceptron *net, adam *state, spk_layer *layers) {
  layers[0] = layer_of(net->w1[0], state->gradient.w1[0], state->m.w1[0], state->v.w1[0],
                       run->mask1, HIDDEN * INPUTS);
  layers[1] = layer_of(net->w2[0], state->gradient.w2[0], state->m.w2[0], state->v.w2[0],
                       run->mask2, OUTPUTS * HIDDEN);
}

/* After each optimiser step; an update comes before the masks are applied. */
static void train_sparsely(void *user, perceptron *net, adam *state) {
  struct run *run = user;
  spk_layer layers[LAYERS];
  layers_of(run, net, state, layers);
  ++run->step;
  if (run->method->updates && run->step % INTERVAL == 0 && run->step <= LAST_UPDATE) {
    check(spk_masking_update(NULL, run->masking, layers, LAYERS, NULL), "spk_masking_update");
  }
  check(spk_masking_step(NULL, run->masking, layers, LAYERS), "spk_masking_step");
}

/* An update reads the schedule before the step that moves it on: the last one has to find gradual
 * pruning at its end. */
static spk_schedule *schedule_of(const struct run *run) {
  spk_schedule *schedule = NULL;
  if (run->method->gradual) {
    check(spk_schedule_create_magnitude(0.0, run->sparsity, LAST_UPDATE - INTERVAL, FIRST_PRUNE,
                                        INTERVAL, &schedule),
          "spk_schedule_create_magnitude");
  } else {
    check(spk_schedule_create_cosine(PRUNE_RATE, LAST_UPDATE, 0.0, -1, &schedule),
          "spk_schedule_create_cosine");
  }
  return schedule;
}

static void add_layer(spk_masking *masking, const char *name, int64_t rows, int64_t cols) {
  int64_t shape[2] = {rows, cols};
  spk_view *view = NULL;
  check(spk_view_create(SPK_F32, 2, shape, NULL, 0, &view), "spk_view_create");
  check(spk_masking_add(masking, name, view, NULL), "spk_masking_add");
  spk_view_release(view);
}

/* Gradual pruning starts from masks of ones; the others from an Erdos-Renyi draw. */
static void start(struct run *run, perceptron *net, uint64_t seed) {
  spk_masking_options options = {.struct_size = sizeof options, .seed = seed};
  options.redistribute = run->method->redistribute;
  options.grow = run->method->grow;
  options.dense_gradients = 1;
  spk_schedule *schedule = schedule_of(run);
  check(spk_masking_create(schedule, &options, &run->masking), "spk_masking_create");
  spk_schedule_release(schedule);
  add_layer(run->masking, "w1", HIDDEN, INPUTS);
  add_layer(run->masking, "w2", OUTPUTS, HIDDEN);

  memset(run->mask1, 1, sizeof run->mask1);
  memset(run->mask2, 1, sizeof run->mask2);
  static adam unused;
  spk_layer layers[LAYERS];
  layers_of(run, net, &unused, layers);
  spk_init_options init = {.struct_size = sizeof init, .density = 1.0 - run->sparsity};
  init.mode = run->method->gradual ? SPK_INIT_LOTTERY_TICKET : SPK_INIT_ERDOS_RENYI;
  check(spk_masking_initialise(NULL, run->masking, layers, LAYERS, &init),
        "spk_masking_initialise");
}

/* What the weights themselves say, and what the masking does. */
static int wrong_counts(const struct run *run, const perceptron *net) {
  int64_t ones = 0;
  int64_t outside = 0;
  for (int i = 0; i < HIDDEN * INPUTS; ++i) {
    ones += run->mask1[i];
    outside += !run->mask1[i] && net->w1[0][i] != 0.0f;
  }
  for (int i = 0; i < OUTPUTS * HIDDEN; ++i) {
    ones += run->mask2[i];
    outside += !run->mask2[i] && net->w2[0][i] != 0.0f;
  }
  spk_layer_stats stats = {.struct_size = sizeof stats};
  check(spk_masking_stats(run->masking, &stats), "spk_masking_stats");
  const int64_t all = HIDDEN * INPUTS + OUTPUTS * HIDDEN;
  const int64_t target = all - (int64_t)ceil(run->sparsity * (double)all - 1e-9);
  const int64_t wanted = run->method->gradual ? target : spk_masking_baseline(run->masking);
  if (outside == 0 && ones == stats.nonzeros && ones == wanted) return 0;
  fprintf(stderr, "FAILED: %s: %lld ones, %lld told, %lld wanted, %lld weights outside the masks\n",
          run->method->name, (long long)ones, (long long)stats.nonzeros, (long long)wanted,
          (long long)outside);
  return 1;
}

/* Accuracy on the test images; adds to the failures. */
static double train_once(const struct digits *data, const struct method *method, double sparsity,
                         uint64_t seed, int *failures) {
  perceptron net;
  perceptron_init(&net, seed);
  struct run run = {.method = method, .sparsity = sparsity};
  struct recipe recipe = {ADAM, RATE, EPOCHS, NULL, NULL};
  if (method->sparse) {
    start(&run, &net, seed);
    recipe.after_step = train_sparsely;
    recipe.user = &run;
  }
  perceptron_train(&net, data, &recipe);
  if (method->sparse) *failures += wrong_counts(&run, &net);
  spk_masking_release(run.masking);
  return perceptron_accuracy(&net, data);
}

/* Mean accuracy over the seeds; prints a line of the table. */
static double show_method(const struct digits *data, const struct method *method, double sparsity,
                          int *failures) {
  double accuracies[SEEDS];
  double mean = 0.0;
  const clock_t begin = clock();
  for (int s = 0; s < SEEDS; ++s) {
    accuracies[s] = train_once(data, method, sparsity, (uint64_t)s + 1, failures);
    mean += accuracies[s] / SEEDS;
  }
  const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC / SEEDS;
  double variance = 0.0;
  for (int s = 0; s < SEEDS; ++s) {
    variance += (accuracies[s] - mean) * (accuracies[s] - mean) / (SEEDS - 1);
  }
  printf("%-10s %8.0f %% %12.2f %% +- %4.2f %11.2f s\n", method->name, 100.0 * sparsity,
         100.0 * mean, 100.0 * STUDENT_T * sqrt(variance / SEEDS), seconds);
  return mean;
}

int compare_sparse_training(const struct digits *data) {
  const double sparsities[] = {0.9, 0.95};
  int failures = 0;
  printf(
      "\nsparse training: %d seeds, %d epochs of Adam; mean accuracy, its 95 %% interval, time\n",
      SEEDS, EPOCHS);
  printf("%-10s %10s %22s %13s\n", "", "sparsity", "accuracy", "CPU time");
  show_method(data, &kDense, 0.0, &failures);
  for (int i = 0; i < 2; ++i) {
    double means[METHODS];
    for (int m = 0; m < METHODS; ++m) {
      means[m] = show_method(data, &kMethods[m], sparsities[i], &failures);
    }
    if (means[RIGL] >= means[STATIC] - WORSE_BY_CHANCE) continue;
    fprintf(stderr, "FAILED: RigL: accuracy %g, static %g\n", means[RIGL], means[STATIC]);
    ++failures;
  }
  return failures;
}
