// The statistic of each layer, by which growth is redistributed.
#pragma once

#include "training/update.h"

namespace spk {

// Sets LayerUpdate::statistic: of all layers together 1, or 0 if there is none.
void measure_statistics(const UpdateCall &update, CallLayers &layers);

}  // namespace spk
