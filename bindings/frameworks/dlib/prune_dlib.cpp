/* Prunes a network of dlib, in the memory where dlib keeps it.
 *
 * Trains a perceptron on handwritten digits, makes copies of it sparse in two ways and trains these
 * on, with their zeros held:
 *
 *   2:4       of every four weights along a neuron's inputs, two go
 *   neurons   half of the hidden neurons go, each with its inputs, its bias and its outputs
 *
 * Prints accuracy and density before and after. Exits with 1 if a count is not exactly what was
 * asked for, or if accuracy falls by more than chance explains.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlib/dnn.h>
#include <sparsekit/sparsekit.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <vector>

extern "C" {
#include "digits_data.h"
}

enum { HIDDEN = 64, NEURONS_KEPT = HIDDEN / 2, BATCH = 32, EPOCHS = 30 };

/* What least squares on the pixels reaches: a network that is no better has not learnt. */
static const double LINEAR_ACCURACY = 0.93;

using Image = dlib::matrix<float, PIXELS, 1>;
using HiddenLayer = dlib::relu<dlib::fc<HIDDEN, dlib::input<Image>>>;
using Net = dlib::loss_multiclass_log<dlib::fc<CLASSES, HiddenLayer>>;

struct Images {
  std::vector<Image> pixels;
  std::vector<unsigned long> labels;
};

static bool failed = false;

static void expect(bool truth, const char *what) {
  if (!truth) std::fprintf(stderr, "FAILED: %s\n", what);
  failed |= !truth;
}

static void check(spk_status status) {
  if (status == SPK_OK) return;
  char message[SPK_MESSAGE_SIZE];
  spk_last_error_copy(message, sizeof message, nullptr);
  throw std::runtime_error(message);
}

/* --- parameters: dlib's tensors, and how the library is told of them ------------------------- */

/* The matrix of a dlib::fc layer: a row of weights for each input, the biases as the last row; a
 * column for each neuron. Layers are numbered from the loss, which is 0, down. */
static dlib::tensor &hidden(Net &net) {
  return dlib::layer<3>(net).layer_details().get_layer_params();
}

static dlib::tensor &output(Net &net) {
  return dlib::layer<1>(net).layer_details().get_layer_params();
}

/* host() is where dlib keeps the tensor, and tells dlib that it may be written to. */
static spk_buffer buffer_of(dlib::tensor &matrix) {
  return {matrix.host(), static_cast<int64_t>(matrix.size()), SPK_F32, SPK_LAYOUT_VIEW, nullptr};
}

/* The first `rows` rows: with or without the biases. */
static spk_view *create_view(const dlib::tensor &matrix, int64_t rows) {
  const int64_t shape[] = {rows, matrix.k()};
  spk_view *view = nullptr;
  check(spk_view_create(SPK_F32, 2, shape, nullptr, 0, &view));
  return view;
}

static spk_block *create_block(spk_view *view, int64_t rows, int64_t columns, const char *name) {
  const int64_t shape[] = {rows, columns};
  spk_block *block = nullptr;
  check(spk_block_create(view, 2, shape, name, &block));
  spk_view_release(view); /* the block keeps it */
  return block;
}

/* --- pruning --------------------------------------------------------------------------------- */

static void prune_two_of_four(dlib::tensor &matrix) {
  spk_view *weights = create_view(matrix, matrix.num_samples() - 1);
  const spk_buffer buffer = buffer_of(matrix);
  check(spk_prune_nm(nullptr, weights, &buffer, nullptr, 0, 2, 4, nullptr));
  spk_view_release(weights);
}

/* Neuron j is column j of the hidden layer's matrix, its bias included, and row j of the next
 * one's: the grids are 1 x HIDDEN and HIDDEN x 1, so the axes of the second are swapped. */
static void prune_neurons(Net &net) {
  spk_block *members[] = {create_block(create_view(hidden(net), PIXELS + 1), -1, 1, "in"),
                          create_block(create_view(output(net), HIDDEN), 1, -1, "out")};
  const int32_t orders[] = {0, 1, 1, 0};
  spk_block *neurons = nullptr;
  spk_scope *layer = nullptr;
  check(spk_block_couple(members, 2, orders, "neurons", &neurons));
  check(spk_scope_create(neurons, 0, nullptr, "hidden layer", &layer));

  const spk_buffer leaves[] = {buffer_of(hidden(net)), buffer_of(output(net))};
  const int64_t kept = NEURONS_KEPT;
  check(spk_scope_keep_top(nullptr, layer, leaves, nullptr, 2, &kept, 1, nullptr, nullptr));

  spk_scope_release(layer);
  spk_block_release(neurons);
  for (spk_block *member : members) spk_block_release(member);
}

/* --- counting, with dlib alone --------------------------------------------------------------- */

using Matrix = dlib::matrix<float>;

/* 1 where a parameter is not zero, else 0. */
static Matrix nonzeros(const dlib::tensor &matrix) {
  return dlib::mat(matrix) != 0;
}

/* The same without the biases. */
static Matrix nonzero_weights(const dlib::tensor &matrix) {
  return dlib::rowm(nonzeros(matrix), dlib::range(0, matrix.num_samples() - 2));
}

static double density(Net &net) {
  return (dlib::sum(nonzero_weights(hidden(net))) + dlib::sum(nonzero_weights(output(net)))) /
         (HIDDEN * (PIXELS + CLASSES));
}

static bool two_of_every_four(const dlib::tensor &matrix) {
  const Matrix ones = nonzero_weights(matrix);
  for (long i = 0; i < ones.nr(); i += 4) {
    const Matrix in_fours = dlib::sum_rows(dlib::rowm(ones, dlib::range(i, i + 3)));
    if (dlib::min(in_fours) != 2 || dlib::max(in_fours) != 2) return false;
  }
  return true;
}

/* A neuron is dead if its whole column, with its bias, and its whole row are zero. */
static int live_neurons(Net &net) {
  const Matrix inputs = dlib::sum_rows(nonzeros(hidden(net)));
  const Matrix outputs = dlib::sum_cols(nonzero_weights(output(net)));
  int live = 0;
  for (long j = 0; j < HIDDEN; ++j) live += inputs(j) != 0 || outputs(j) != 0;
  return live;
}

/* --- training and measuring ------------------------------------------------------------------ */

static Images convert(const image *first, int count) {
  Images images;
  for (const image *next = first; next != first + count; ++next) {
    images.pixels.push_back(dlib::mat(next->pixels, PIXELS, 1));
    images.labels.push_back(next->label);
  }
  return images;
}

/* With `hold`, what is zero at first stays zero, whatever the optimiser does to it. */
static void train(Net &net, Images images, bool hold) {
  const Matrix kept_hidden = hold ? nonzeros(hidden(net)) : Matrix();
  const Matrix kept_output = hold ? nonzeros(output(net)) : Matrix();
  dlib::dnn_trainer<Net> trainer(net);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    /* Both with the same seed, so that labels stay with their images. */
    std::shuffle(images.pixels.begin(), images.pixels.end(), std::mt19937(epoch));
    std::shuffle(images.labels.begin(), images.labels.end(), std::mt19937(epoch));
    for (size_t i = 0; i < images.pixels.size(); i += BATCH) {
      const size_t end = std::min(i + BATCH, images.pixels.size());
      trainer.train_one_step(images.pixels.begin() + i, images.pixels.begin() + end,
                             images.labels.begin() + i);
      trainer.get_net(dlib::force_flush_to_disk::no); /* waits for the end of the step */
      if (!hold) continue;
      hidden(net) = dlib::pointwise_multiply(dlib::mat(hidden(net)), kept_hidden);
      output(net) = dlib::pointwise_multiply(dlib::mat(output(net)), kept_output);
    }
  }
}

/* Prints a line of the table, and returns the share of images that get their right label. */
static double show(const char *stage, Net &net, const Images &images) {
  const std::vector<unsigned long> labels = net(images.pixels);
  int right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += labels[i] == images.labels[i];
  const double accuracy = static_cast<double>(right) / labels.size();
  std::printf("%-20s %7.2f %% %7.2f %% %5d/%d\n", stage, 100 * accuracy, 100 * density(net),
              live_neurons(net), HIDDEN);
  return accuracy;
}

/* Trains on with the zeros held. What is lost must be within two standard errors of an accuracy
 * that is measured on so few images. */
static void tune(const char *stage, Net &net, const Images &training, const Images &test,
                 double dense) {
  train(net, training, true);
  const double error = std::sqrt(dense * (1 - dense) / test.labels.size());
  expect(show(stage, net, test) >= dense - 2 * error, "accuracy is kept");
  expect(density(net) == 0.5, "half of the weights are kept");
}

static void run(const digits &data) {
  const Images training = convert(data.train, TRAIN_IMAGES);
  const Images test = convert(data.test, TEST_IMAGES);
  Net dense;
  train(dense, training, false);
  std::printf("%-20s %9s %9s %8s\n", "", "accuracy", "density", "neurons");
  const double accuracy = show("dense", dense, test);
  expect(accuracy > LINEAR_ACCURACY, "dense: better than a linear classifier");

  Net fours = dense;
  prune_two_of_four(hidden(fours));
  prune_two_of_four(output(fours));
  show("2:4, pruned", fours, test);
  tune("2:4, fine-tuned", fours, training, test, accuracy);
  expect(two_of_every_four(hidden(fours)), "2:4: hidden layer");
  expect(two_of_every_four(output(fours)), "2:4: output layer");

  Net fewer = dense;
  prune_neurons(fewer);
  show("neurons, pruned", fewer, test);
  tune("neurons, fine-tuned", fewer, training, test, accuracy);
  expect(live_neurons(fewer) == NEURONS_KEPT, "neurons: the number asked for");
}

int main(int argc, char **argv) {
  static digits data;
  if (digits_load(argc > 1 ? argv[1] : DIGITS_CSV, &data) != 0) return EXIT_FAILURE;
  std::srand(1); /* dlib draws the first weights with it */
  run(data);
  expect(spk_live_handles() == 0, "all handles are released");
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
