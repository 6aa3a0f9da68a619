/* What may be removed from the perceptron, told to the library once: handles hold no data, so the
 * same ones serve every net of this shape.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STRUCTURE_H_
#define STRUCTURE_H_

#include <sparsekit/sparsekit.h>

#include "perceptron.h"

enum { NEURON_LEAVES = 3 };

struct structure {
  spk_view *view1; /* w1 and w2 as they lie in memory */
  spk_view *view2;
  spk_block *weights1; /* every weight is a block */
  spk_block *weights2;
  spk_scope *fours1; /* four neighbours along the input axis compete */
  spk_scope *fours2;
  spk_block *neurons; /* a row of w1, its bias and a column of w2 are one block */
  spk_scope *layer;   /* all neurons compete */
};

struct counts {
  int64_t w1; /* non-zero weights */
  int64_t w2;
  int64_t neurons; /* neurons with any non-zero weight */
};

/* Ends the program with the library's message unless `status` is SPK_OK. */
void check(spk_status status, const char *call);

void structure_create(struct structure *out);
void structure_release(struct structure *structure);

/* Buffers as the library wants them. They point into `net`. */
spk_buffer w1_buffer(perceptron *net);
spk_buffer w2_buffer(perceptron *net);
void neuron_buffers(perceptron *net, spk_buffer leaves[NEURON_LEAVES]);

struct counts structure_count(const struct structure *structure, perceptron *net);

#endif /* STRUCTURE_H_ */
