// One number per kernel of a layer, by which whole kernels are pruned and grown.
#pragma once

#include "training/call_layers.h"

namespace spk {

enum class CriterionKind { kMean, kMax, kMin, kCallback };

struct Criterion {
  CriterionKind kind;
  const char *name = nullptr;  // kCallback, and so are the rest
  spk_reduce_fn fn = nullptr;
  void *user = nullptr;
};

// The criteria of all kernels of a layer's array, row-major in (out, in).
void kernel_criteria(Call &call, const MaskedLayer &layer, const LeafData &values,
                     const Criterion &criterion, double *out);

}  // namespace spk
