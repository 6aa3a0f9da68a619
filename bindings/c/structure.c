/* SPDX-License-Identifier: Apache-2.0 */
#include "structure.h"

#include <stdio.h>
#include <stdlib.h>

void check(spk_status status, const char *call) {
  if (status == SPK_OK) return;
  char message[SPK_MESSAGE_SIZE];
  spk_last_error_copy(message, sizeof message, NULL);
  fprintf(stderr, "%s: %s: %s\n", call, spk_status_string(status), message);
  exit(EXIT_FAILURE);
}

static spk_view *matrix_view(int64_t rows, int64_t columns) {
  int64_t shape[2] = {rows, columns};
  spk_view *view = NULL;
  check(spk_view_create(SPK_F32, 2, shape, NULL, 0, &view), "spk_view_create");
  return view;
}

/* Every weight is a block, and four neighbours in a row are a scope. */
static void create_fours(const spk_view *view, const char *name, spk_block **weights,
                         spk_scope **fours) {
  int64_t four[2] = {1, 4};
  check(spk_block_create(view, 0, NULL, name, weights), "spk_block_create");
  check(spk_scope_create(*weights, 2, four, name, fours), "spk_scope_create");
}

/* Neuron j is row j of w1, element j of b1 and column j of w2. The first two have a grid of
 * HIDDEN x 1 blocks, the last one of 1 x HIDDEN: its axes are swapped to agree. */
static void create_neurons(struct structure *s) {
  int64_t row[2] = {1, -1};
  int64_t column[2] = {-1, 1};
  int32_t orders[NEURON_LEAVES][2] = {{0, 1}, {0, 1}, {1, 0}};
  spk_view *bias = matrix_view(HIDDEN, 1);
  spk_block *members[NEURON_LEAVES] = {NULL};
  check(spk_block_create(s->view1, 2, row, "w1 rows", &members[0]), "spk_block_create");
  check(spk_block_create(bias, 2, row, "b1", &members[1]), "spk_block_create");
  check(spk_block_create(s->view2, 2, column, "w2 columns", &members[2]), "spk_block_create");
  check(spk_block_couple(members, NEURON_LEAVES, orders[0], "neurons", &s->neurons),
        "spk_block_couple");
  check(spk_scope_create(s->neurons, 0, NULL, "hidden layer", &s->layer), "spk_scope_create");

  /* The coupling keeps alive what it is made of. */
  for (int i = 0; i < NEURON_LEAVES; ++i) spk_block_release(members[i]);
  spk_view_release(bias);
}

void structure_create(struct structure *out) {
  out->view1 = matrix_view(HIDDEN, INPUTS);
  out->view2 = matrix_view(OUTPUTS, HIDDEN);
  create_fours(out->view1, "w1", &out->weights1, &out->fours1);
  create_fours(out->view2, "w2", &out->weights2, &out->fours2);
  create_neurons(out);
}

void structure_release(struct structure *structure) {
  spk_view_release(structure->view1);
  spk_view_release(structure->view2);
  spk_block_release(structure->weights1);
  spk_block_release(structure->weights2);
  spk_scope_release(structure->fours1);
  spk_scope_release(structure->fours2);
  spk_block_release(structure->neurons);
  spk_scope_release(structure->layer);
}

static spk_buffer float_buffer(float *data, int64_t numel) {
  spk_buffer buffer = {data, numel, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  return buffer;
}

spk_buffer w1_buffer(perceptron *net) {
  return float_buffer(net->w1[0], HIDDEN * INPUTS);
}

spk_buffer w2_buffer(perceptron *net) {
  return float_buffer(net->w2[0], OUTPUTS * HIDDEN);
}

void neuron_buffers(perceptron *net, spk_buffer leaves[NEURON_LEAVES]) {
  leaves[0] = w1_buffer(net);
  leaves[1] = float_buffer(net->b1, HIDDEN);
  leaves[2] = w2_buffer(net);
}

static int64_t count_weights(const spk_block *weights, spk_buffer leaf) {
  int64_t total = 0;
  check(spk_block_nnz(NULL, weights, &leaf, 1, 0.0, NULL, &total), "spk_block_nnz");
  return total;
}

static int64_t count_neurons(const struct structure *s, perceptron *net) {
  int64_t nonzeros[HIDDEN];
  spk_buffer per_neuron = {nonzeros, HIDDEN, SPK_I64, SPK_LAYOUT_CONTIGUOUS, NULL};
  spk_buffer leaves[NEURON_LEAVES];
  neuron_buffers(net, leaves);
  check(spk_block_nnz(NULL, s->neurons, leaves, NEURON_LEAVES, 0.0, &per_neuron, NULL),
        "spk_block_nnz");
  int64_t alive = 0;
  for (int j = 0; j < HIDDEN; ++j) alive += nonzeros[j] > 0;
  return alive;
}

struct counts structure_count(const struct structure *structure, perceptron *net) {
  struct counts result = {count_weights(structure->weights1, w1_buffer(net)),
                          count_weights(structure->weights2, w2_buffer(net)),
                          count_neurons(structure, net)};
  return result;
}
