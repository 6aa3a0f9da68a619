// Zeroing what the masks forbid.
#pragma once

#include "training/call_layers.h"

namespace spk {

// In the buffers that `what` names (the sum of SPK_APPLY_...), where they are given.
void apply_masks(Call &call, const CallLayers &layers, int32_t what);

// After an optimiser step.
void step(spk_context *context, Masking &masking, const spk_layer *given, int32_t count);

}  // namespace spk
