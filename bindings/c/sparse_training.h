/* Sparse training compared: the same perceptron by each method, over several seeds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSE_TRAINING_H_
#define SPARSE_TRAINING_H_

#include "digits_data.h"

/* Prints a table of accuracy and time. Returns how many of its expectations failed: exact counts,
 * and RigL no worse than static sparse training. */
int compare_sparse_training(const struct digits *data);

#endif /* SPARSE_TRAINING_H_ */
