/* SPDX-License-Identifier: Apache-2.0 */
#include "perceptron.h"

#include <math.h>
#include <string.h>

enum { BATCH = 32, SHUFFLE_SEED = 2 };

#define ADAM_BETA1 0.9f
#define ADAM_BETA2 0.999f
#define ADAM_EPSILON 1e-8f

struct activations {
  float hidden[HIDDEN];
  float output[OUTPUTS]; /* probabilities */
};

/* SplitMix64. */
static uint64_t random_bits(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/* Uniform in [-limit, limit). */
static void random_fill(float *weights, int count, float limit, uint64_t *state) {
  for (int i = 0; i < count; ++i) {
    double unit = (double)(random_bits(state) >> 11) * 0x1p-53;
    weights[i] = (float)((2.0 * unit - 1.0) * limit);
  }
}

void perceptron_init(perceptron *net, uint64_t seed) {
  memset(net, 0, sizeof *net);
  random_fill(&net->w1[0][0], HIDDEN * INPUTS, sqrtf(6.0f / INPUTS), &seed);
  random_fill(&net->w2[0][0], OUTPUTS * HIDDEN, sqrtf(6.0f / HIDDEN), &seed);
}

static void softmax(float *values) {
  float largest = values[0];
  for (int k = 1; k < OUTPUTS; ++k) largest = fmaxf(largest, values[k]);
  float sum = 0.0f;
  for (int k = 0; k < OUTPUTS; ++k) sum += values[k] = expf(values[k] - largest);
  for (int k = 0; k < OUTPUTS; ++k) values[k] /= sum;
}

static void forward(const perceptron *net, const float *pixels, struct activations *out) {
  for (int j = 0; j < HIDDEN; ++j) {
    float sum = net->b1[j];
    for (int i = 0; i < INPUTS; ++i) sum += net->w1[j][i] * pixels[i];
    out->hidden[j] = fmaxf(sum, 0.0f);
  }
  for (int k = 0; k < OUTPUTS; ++k) {
    float sum = net->b2[k];
    for (int j = 0; j < HIDDEN; ++j) sum += net->w2[k][j] * out->hidden[j];
    out->output[k] = sum;
  }
  softmax(out->output);
}

/* Adds the gradient of one image's cross-entropy. `delta` is its derivative by the outputs before
 * the softmax. */
static void backward(const perceptron *net, const float *pixels, const struct activations *at,
                     const float *delta, perceptron *gradient) {
  float hidden_delta[HIDDEN] = {0};
  for (int k = 0; k < OUTPUTS; ++k) {
    gradient->b2[k] += delta[k];
    for (int j = 0; j < HIDDEN; ++j) {
      gradient->w2[k][j] += delta[k] * at->hidden[j];
      hidden_delta[j] += delta[k] * net->w2[k][j];
    }
  }
  for (int j = 0; j < HIDDEN; ++j) {
    if (at->hidden[j] <= 0.0f) continue; /* the ReLU is flat there */
    gradient->b1[j] += hidden_delta[j];
    for (int i = 0; i < INPUTS; ++i) gradient->w1[j][i] += hidden_delta[j] * pixels[i];
  }
}

/* Mean over the `count` images that `order` names. */
static void batch_gradient(const perceptron *net, const struct digits *data, const int *order,
                           int count, perceptron *gradient) {
  memset(gradient, 0, sizeof *gradient);
  for (int n = 0; n < count; ++n) {
    const struct image *image = &data->train[order[n]];
    struct activations at;
    forward(net, image->pixels, &at);
    float delta[OUTPUTS];
    for (int k = 0; k < OUTPUTS; ++k) {
      delta[k] = (at.output[k] - (k == image->label ? 1.0f : 0.0f)) / (float)count;
    }
    backward(net, image->pixels, &at, delta, gradient);
  }
}

static void sgd_step(perceptron *net, const perceptron *gradient, float rate) {
  for (int i = 0; i < PARAMETERS; ++i) net->all[i] -= rate * gradient->all[i];
}

void adam_metric(const adam *state, perceptron *metric) {
  float correction = 1.0f - powf(ADAM_BETA2, (float)state->step);
  for (int i = 0; i < PARAMETERS; ++i) {
    metric->all[i] = sqrtf(state->v.all[i] / correction) + ADAM_EPSILON;
  }
}

static void adam_step(adam *state, perceptron *net, float rate) {
  ++state->step;
  for (int i = 0; i < PARAMETERS; ++i) {
    float g = state->gradient.all[i];
    state->m.all[i] += (1.0f - ADAM_BETA1) * (g - state->m.all[i]);
    state->v.all[i] += (1.0f - ADAM_BETA2) * (g * g - state->v.all[i]);
  }
  perceptron metric;
  adam_metric(state, &metric);
  float correction = 1.0f - powf(ADAM_BETA1, (float)state->step);
  for (int i = 0; i < PARAMETERS; ++i) {
    net->all[i] -= rate * (state->m.all[i] / correction) / metric.all[i];
  }
}

/* Fisher and Yates. */
static void shuffle(int *order, int count, uint64_t *state) {
  for (int i = count - 1; i > 0; --i) {
    int j = (int)(random_bits(state) % (uint64_t)(i + 1));
    int kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
}

static void train_epoch(perceptron *net, adam *state, const struct digits *data, const int *order,
                        const struct recipe *recipe) {
  for (int start = 0; start < TRAIN_IMAGES; start += BATCH) {
    int count = TRAIN_IMAGES - start < BATCH ? TRAIN_IMAGES - start : BATCH;
    batch_gradient(net, data, order + start, count, &state->gradient);
    if (recipe->optimiser == ADAM) {
      adam_step(state, net, recipe->rate);
    } else {
      sgd_step(net, &state->gradient, recipe->rate);
    }
    if (recipe->after_step != NULL) recipe->after_step(recipe->user, net, state);
  }
}

void perceptron_train(perceptron *net, const struct digits *data, const struct recipe *recipe) {
  adam state;
  memset(&state, 0, sizeof state);
  int order[TRAIN_IMAGES];
  for (int i = 0; i < TRAIN_IMAGES; ++i) order[i] = i;
  uint64_t random = SHUFFLE_SEED;
  for (int epoch = 0; epoch < recipe->epochs; ++epoch) {
    shuffle(order, TRAIN_IMAGES, &random);
    train_epoch(net, &state, data, order, recipe);
  }
}

static int best_class(const float *probabilities) {
  int best = 0;
  for (int k = 1; k < OUTPUTS; ++k) {
    if (probabilities[k] > probabilities[best]) best = k;
  }
  return best;
}

double perceptron_accuracy(const perceptron *net, const struct digits *data) {
  int right = 0;
  for (int n = 0; n < TEST_IMAGES; ++n) {
    struct activations at;
    forward(net, data->test[n].pixels, &at);
    right += best_class(at.output) == data->test[n].label;
  }
  return (double)right / TEST_IMAGES;
}
