// Redistribution: how many places each layer grows.
#pragma once

#include "training/update.h"

namespace spk {

// Sets LayerUpdate::requested_grown; in whole kernels where growth is.
void redistribute(const UpdateCall &update, CallLayers &layers);

}  // namespace spk
