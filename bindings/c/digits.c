/* Trains a small perceptron on real handwritten digits and makes it sparse in four ways:
 *
 *   2:4            of every four weights along the inputs, two go
 *   neurons        whole hidden neurons go, an exact number of them
 *   group lasso    training itself removes neurons: a proximal step after each SGD step
 *   conditioned    the same after each Adam step, in Adam's own metric
 *
 * Prints accuracy, density and exact counts before and after each. Then trains it sparse from the
 * start: static, SET, RigL, SNFS and gradual pruning, over ten seeds. Exits with 1 if a count is not
 * what was asked for, or if accuracy is lost.
 *
 *     digits [optdigits.csv]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits_data.h"
#include "perceptron.h"
#include "sparse_training.h"
#include "structure.h"

enum { INIT_SEED = 1, NEURONS_KEPT = 24, DENSE_EPOCHS = 30, TUNE_EPOCHS = 15, LASSO_EPOCHS = 60 };

#define ADAM_RATE 1e-3f
#define LASSO_LAMBDA 1e-2f
#define LASSO_SGD_RATE 0.2f
#define LASSO_ADAM_RATE 2e-3f
#define DENSE_ACCURACY 0.95
#define SPARSE_ACCURACY 0.93

static int failures = 0;

static void expect_count(const char *what, int64_t got, int64_t wanted) {
  if (got == wanted) return;
  fprintf(stderr, "FAILED: %s: %lld, expected %lld\n", what, (long long)got, (long long)wanted);
  ++failures;
}

static void expect_within(const char *what, double got, double low, double high) {
  if (got >= low && got <= high) return;
  fprintf(stderr, "FAILED: %s: %g, expected %g to %g\n", what, got, low, high);
  ++failures;
}

/* Everything that an experiment starts from. */
struct bench {
  const struct digits *data;
  const struct structure *structure;
};

struct row {
  double accuracy;
  struct counts counts;
};

/* Measures a net and prints a line of the table. */
static struct row show(const struct bench *bench, const char *stage, perceptron *net) {
  struct row row = {perceptron_accuracy(net, bench->data), structure_count(bench->structure, net)};
  double density = (double)(row.counts.w1 + row.counts.w2) / (HIDDEN * (INPUTS + OUTPUTS));
  printf("%-34s %7.2f %% %7.2f %% %6lld/%d %5lld/%d %5lld/%d\n", stage, 100.0 * row.accuracy,
         100.0 * density, (long long)row.counts.w1, HIDDEN * INPUTS, (long long)row.counts.w2,
         OUTPUTS * HIDDEN, (long long)row.counts.neurons, HIDDEN);
  return row;
}

static void show_report(const char *what, const spk_report *report) {
  printf("    %s: kept %lld of %lld blocks", what, (long long)report->achieved,
         (long long)report->total);
  if (report->requested >= 0) printf(", asked for %lld", (long long)report->requested);
  printf("\n");
}

/* ---- 2:4 -------------------------------------------------------------------------------- */

/* Which weights are kept: 1 = survives. */
struct weight_masks {
  const struct structure *structure;
  uint8_t kept1[HIDDEN * INPUTS];
  uint8_t kept2[OUTPUTS * HIDDEN];
};

/* The two largest of every four, as a keep mask. */
static void mask_fours(const spk_scope *fours, spk_buffer weights, uint8_t *kept) {
  int64_t two = 2;
  spk_score_source source = {sizeof source, &weights, NULL, NULL};
  spk_buffer mask = {kept, weights.numel, SPK_U8, SPK_LAYOUT_CONTIGUOUS, NULL};
  check(spk_scope_get_masks(NULL, fours, &source, &two, 1, SPK_TIES_BY_POSITION, &mask, 1, NULL),
        "spk_scope_get_masks");
}

static void apply_weight_mask(const spk_block *block, spk_buffer weights, uint8_t *kept) {
  spk_buffer mask = {kept, weights.numel, SPK_U8, SPK_LAYOUT_CONTIGUOUS, NULL};
  check(spk_block_apply_keep_mask(NULL, block, &weights, NULL, 1, &mask),
        "spk_block_apply_keep_mask");
}

static void hold_weights(void *user, perceptron *net, adam *state) {
  (void)state;
  struct weight_masks *masks = user;
  apply_weight_mask(masks->structure->weights1, w1_buffer(net), masks->kept1);
  apply_weight_mask(masks->structure->weights2, w2_buffer(net), masks->kept2);
}

static void prune_fours(const char *what, const spk_view *view, spk_buffer weights) {
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  check(spk_prune_nm(NULL, view, &weights, NULL, 1, 2, 4, &report), "spk_prune_nm");
  show_report(what, &report);
  expect_count("2:4: kept by the report", report.achieved, weights.numel / 2);
}

/* Counts by hand, without the library: fours with more than two non-zero weights. */
static int64_t crowded_fours(const float *weights, int64_t count) {
  int64_t crowded = 0;
  for (int64_t i = 0; i < count; i += 4) {
    int nonzero = 0;
    for (int64_t k = i; k < i + 4; ++k) nonzero += weights[k] != 0.0f;
    crowded += nonzero > 2;
  }
  return crowded;
}

static void expect_two_of_four(const perceptron *net, const struct row *row) {
  expect_count("2:4: non-zeros of w1", row->counts.w1, HIDDEN * INPUTS / 2);
  expect_count("2:4: non-zeros of w2", row->counts.w2, OUTPUTS * HIDDEN / 2);
  expect_count("2:4: crowded fours of w1", crowded_fours(net->w1[0], HIDDEN * INPUTS), 0);
  expect_count("2:4: crowded fours of w2", crowded_fours(net->w2[0], OUTPUTS * HIDDEN), 0);
}

static void two_of_four(const struct bench *bench, const perceptron *dense) {
  const struct structure *s = bench->structure;
  perceptron net = *dense;
  show(bench, "2:4: before", &net);

  struct weight_masks masks = {.structure = s};
  mask_fours(s->fours1, w1_buffer(&net), masks.kept1);
  mask_fours(s->fours2, w2_buffer(&net), masks.kept2);
  prune_fours("w1", s->view1, w1_buffer(&net));
  prune_fours("w2", s->view2, w2_buffer(&net));
  struct row pruned = show(bench, "2:4: pruned", &net);
  expect_two_of_four(&net, &pruned);

  struct recipe tune = {ADAM, ADAM_RATE, TUNE_EPOCHS, hold_weights, &masks};
  perceptron_train(&net, bench->data, &tune);
  struct row tuned = show(bench, "2:4: fine-tuned, mask held", &net);
  expect_two_of_four(&net, &tuned);
  expect_within("2:4: accuracy", tuned.accuracy, SPARSE_ACCURACY, 1.0);
}

/* ---- neurons ---------------------------------------------------------------------------- */

struct neuron_mask {
  const struct structure *structure;
  uint8_t pruned[HIDDEN];
};

static void hold_neurons(void *user, perceptron *net, adam *state) {
  (void)state;
  struct neuron_mask *held = user;
  spk_buffer mask = {held->pruned, HIDDEN, SPK_U8, SPK_LAYOUT_CONTIGUOUS, NULL};
  spk_buffer leaves[NEURON_LEAVES];
  neuron_buffers(net, leaves);
  check(spk_block_apply_mask(NULL, held->structure->neurons, leaves, NULL, NEURON_LEAVES, &mask),
        "spk_block_apply_mask");
}

/* Keeps the neurons of largest norm, over incoming and outgoing weights and bias together. */
static void keep_neurons(const struct structure *s, perceptron *net) {
  int64_t kept = NEURONS_KEPT;
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  spk_buffer leaves[NEURON_LEAVES];
  neuron_buffers(net, leaves);
  check(spk_scope_keep_top(NULL, s->layer, leaves, NULL, NEURON_LEAVES, &kept, 1, NULL, &report),
        "spk_scope_keep_top");
  show_report("neurons", &report);
  expect_count("neurons: kept by the report", report.achieved, NEURONS_KEPT);
}

static void mask_dead_neurons(const struct structure *s, perceptron *net, uint8_t *pruned) {
  float norms[HIDDEN];
  spk_buffer out = {norms, HIDDEN, SPK_F32, SPK_LAYOUT_CONTIGUOUS, NULL};
  spk_buffer leaves[NEURON_LEAVES];
  neuron_buffers(net, leaves);
  check(spk_block_norms(NULL, s->neurons, leaves, NEURON_LEAVES, 2.0, &out), "spk_block_norms");
  for (int j = 0; j < HIDDEN; ++j) pruned[j] = norms[j] == 0.0f;
}

static void expect_neurons(const struct row *row, int64_t neurons) {
  expect_count("neurons alive", row->counts.neurons, neurons);
  expect_count("neurons: non-zeros of w1", row->counts.w1, neurons * INPUTS);
  expect_count("neurons: non-zeros of w2", row->counts.w2, neurons * OUTPUTS);
}

static void remove_neurons(const struct bench *bench, const perceptron *dense) {
  perceptron net = *dense;
  show(bench, "neurons: before", &net);

  keep_neurons(bench->structure, &net);
  struct row pruned = show(bench, "neurons: removed", &net);
  expect_neurons(&pruned, NEURONS_KEPT);

  struct neuron_mask held = {.structure = bench->structure};
  mask_dead_neurons(bench->structure, &net, held.pruned);
  struct recipe tune = {ADAM, ADAM_RATE, TUNE_EPOCHS, hold_neurons, &held};
  perceptron_train(&net, bench->data, &tune);
  struct row tuned = show(bench, "neurons: fine-tuned, held at zero", &net);
  expect_neurons(&tuned, NEURONS_KEPT);
  expect_within("neurons: accuracy", tuned.accuracy, SPARSE_ACCURACY, 1.0);
}

/* ---- group lasso ------------------------------------------------------------------------ */

/* loss + lambda * sum of the neurons' norms. A step of size `rate` along the gradient of the loss
 * is followed by the proximal operator of rate * lambda * sum of norms. */
struct lasso {
  const struct structure *structure;
  float threshold; /* rate * lambda */
  spk_report report;
};

static void shrink_neurons(struct lasso *lasso, perceptron *net, const spk_soft_options *options) {
  spk_buffer threshold = {&lasso->threshold, 1, SPK_F32, SPK_LAYOUT_CONTIGUOUS, NULL};
  spk_buffer leaves[NEURON_LEAVES];
  neuron_buffers(net, leaves);
  lasso->report.struct_size = sizeof lasso->report;
  check(spk_block_soft_threshold(NULL, lasso->structure->neurons, leaves, NULL, NEURON_LEAVES,
                                 &threshold, options, &lasso->report),
        "spk_block_soft_threshold");
}

static void shrink_plain(void *user, perceptron *net, adam *state) {
  (void)state;
  shrink_neurons(user, net, NULL);
}

/* Adam divides each weight's step by its own h = sqrt(v)+eps, so the proximal step has to measure
 * distance with the same h. Weights of pixels that are never inked have no gradient, hence the
 * smallest h: they vanish even where their neuron survives. */
static void shrink_conditioned(void *user, perceptron *net, adam *state) {
  perceptron metric;
  adam_metric(state, &metric);
  spk_buffer conditioners[NEURON_LEAVES];
  neuron_buffers(&metric, conditioners);
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.conditioners = conditioners;
  options.max_iter = 64; /* as many as can be useful: a status of SPK_OK then means converged */
  shrink_neurons(user, net, &options);
}

static void group_lasso(const struct bench *bench, const char *name, enum optimiser optimiser,
                        float rate, after_step_fn shrink) {
  char stage[64];
  perceptron net;
  perceptron_init(&net, INIT_SEED);
  snprintf(stage, sizeof stage, "%s: untrained", name);
  show(bench, stage, &net);

  struct lasso lasso = {.structure = bench->structure, .threshold = rate * LASSO_LAMBDA};
  struct recipe train = {optimiser, rate, LASSO_EPOCHS, shrink, &lasso};
  perceptron_train(&net, bench->data, &train);
  show_report("neurons, last step", &lasso.report);
  snprintf(stage, sizeof stage, "%s: trained", name);
  struct row trained = show(bench, stage, &net);

  int64_t alive = trained.counts.neurons;
  expect_count("group lasso: neurons alive", alive, lasso.report.achieved);
  expect_count("group lasso: non-zeros of w2", trained.counts.w2, alive * OUTPUTS);
  expect_within("group lasso: non-zeros of w1", (double)trained.counts.w1, (double)alive,
                (double)alive * INPUTS);
  expect_within("group lasso: neurons", (double)alive, 8, HIDDEN - 16);
  expect_within("group lasso: accuracy", trained.accuracy, SPARSE_ACCURACY, 1.0);
}

/* ----------------------------------------------------------------------------------------- */

static void train_dense(const struct bench *bench, perceptron *net) {
  struct recipe train = {ADAM, ADAM_RATE, DENSE_EPOCHS, NULL, NULL};
  perceptron_init(net, INIT_SEED);
  perceptron_train(net, bench->data, &train);
  struct row row = show(bench, "dense", net);
  expect_within("dense: accuracy", row.accuracy, DENSE_ACCURACY, 1.0);
  expect_neurons(&row, HIDDEN);
}

int main(int argc, char **argv) {
  static struct digits data;
  if (digits_load(argc > 1 ? argv[1] : DIGITS_CSV, &data) != 0) return EXIT_FAILURE;
  struct structure structure;
  structure_create(&structure);
  struct bench bench = {&data, &structure};

  printf("%d images to train on, %d to test on; %d-%d-%d perceptron\n", TRAIN_IMAGES, TEST_IMAGES,
         INPUTS, HIDDEN, OUTPUTS);
  printf("%-34s %9s %9s %11s %9s %8s\n", "", "accuracy", "density", "w1", "w2", "neurons");
  perceptron dense;
  train_dense(&bench, &dense);
  two_of_four(&bench, &dense);
  remove_neurons(&bench, &dense);
  group_lasso(&bench, "group lasso, SGD", SGD, LASSO_SGD_RATE, shrink_plain);
  group_lasso(&bench, "group lasso, Adam", ADAM, LASSO_ADAM_RATE, shrink_conditioned);

  structure_release(&structure);
  failures += compare_sparse_training(&data);
  expect_count("handles still alive", spk_live_handles(), 0);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
