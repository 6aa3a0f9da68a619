// The layers of one call: their buffers, checked, and what the call finds out about them.
#pragma once

#include <vector>

#include "core/buffers.h"
#include "core/call.h"
#include "core/grid.h"
#include "training/masking.h"

namespace spk {

struct CallLayer {
  int32_t id = 0;
  const MaskedLayer *layer = nullptr;
  LeafData weight;
  uint8_t *mask = nullptr;
  // Those that were not given have no origin.
  LeafData gradient, momentum, adam_m1, adam_m2;
  int64_t nonzeros = 0;
  LayerUpdate now;

  const Extents &shape() const { return layer->view->shape; }
  int64_t numel() const { return layer->numel(); }
  int64_t inactive() const { return numel() - nonzeros; }
};

// Those that belong to the masking.
using CallLayers = std::vector<CallLayer>;

// Why the gradient or the momentum of every layer must be given; NULL if they need not.
struct Needs {
  const char *gradient = nullptr;
  const char *momentum = nullptr;
};

// Checks all buffers of all layers. No two of them may share bytes.
CallLayers checked_layers(const Masking &masking, const spk_layer *given, int32_t count,
                          const Needs &needs);

// An array over the positions of a layer.
GridArray elements_of(const LeafData &data);

// What messages call a layer.
std::string label_of(int32_t id, const MaskedLayer &layer);

// The ones of a mask.
int64_t count_active(Call &call, const uint8_t *mask, int64_t n);
// After a call that was broken off: the masking's counts follow the masks.
void recount(Masking &masking, const CallLayers &layers);

}  // namespace spk
