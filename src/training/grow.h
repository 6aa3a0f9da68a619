// Growth: which of the inactive places become active.
#pragma once

#include "training/update.h"

namespace spk {

// Elements that grow together: a kernel in structured modes.
int64_t unit_of_growth(int32_t grow_mode, const MaskedLayer &layer);

// Sets mask bytes of each layer, as many as redistribution asked for and can grow.
void grow(const UpdateCall &update, CallLayers &layers);

}  // namespace spk
