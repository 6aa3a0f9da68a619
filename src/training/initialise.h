// The first masks.
#pragma once

#include "training/call_layers.h"

namespace spk {

void initialise(spk_context *context, Masking &masking, const spk_layer *given, int32_t count,
                const spk_init_options &options);

// The densities that it would give, one per id.
void densities(const Masking &masking, const spk_init_options &options, double *out, int32_t count);

}  // namespace spk
