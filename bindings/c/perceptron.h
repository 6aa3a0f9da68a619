/* A perceptron with one hidden layer, and two plain ways to train it. It knows nothing of sparsity:
 * whoever wants some is called after every step.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PERCEPTRON_H_
#define PERCEPTRON_H_

#include <stdint.h>

#include "digits_data.h"

enum { INPUTS = PIXELS, HIDDEN = 64, OUTPUTS = CLASSES };

enum { PARAMETERS = HIDDEN * INPUTS + HIDDEN + OUTPUTS * HIDDEN + OUTPUTS };

/* out = softmax(w2 relu(w1 in + b1) + b2). Gradients and Adam's moments have the same shape. */
typedef union perceptron {
  struct {
    float w1[HIDDEN][INPUTS];
    float b1[HIDDEN];
    float w2[OUTPUTS][HIDDEN];
    float b2[OUTPUTS];
  };
  float all[PARAMETERS];
} perceptron;

/* The last minibatch's gradient and, for Adam, the running means of gradients and of their squares
 * before bias correction. */
typedef struct adam {
  perceptron gradient;
  perceptron m;
  perceptron v;
  int step;
} adam;

enum optimiser { SGD, ADAM };

/* Called after each step, with the optimiser's state: brings the weights back into the structure
 * that is wanted of them. */
typedef void (*after_step_fn)(void *user, perceptron *net, adam *state);

struct recipe {
  enum optimiser optimiser;
  float rate;
  int epochs;
  after_step_fn after_step; /* may be NULL */
  void *user;
};

/* Random weights, the same for the same seed on every machine. */
void perceptron_init(perceptron *net, uint64_t seed);

/* Trains by minibatches of the training images, whose order depends on nothing but the epoch. */
void perceptron_train(perceptron *net, const struct digits *data, const struct recipe *recipe);

/* Share of the test images that get their right label. */
double perceptron_accuracy(const perceptron *net, const struct digits *data);

/* Adam's diagonal metric sqrt(v-hat) + epsilon, one positive number per weight. */
void adam_metric(const adam *state, perceptron *metric);

#endif /* PERCEPTRON_H_ */
