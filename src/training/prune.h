// Pruning: which of the active weights leave.
#pragma once

#include "training/update.h"

namespace spk {

// Decides how many each layer loses, and clears their mask bytes and weights. Returns how many were
// asked for in all.
int64_t prune(const UpdateCall &update, CallLayers &layers);

}  // namespace spk
