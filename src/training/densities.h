// The densities of layers at initialisation, by their shapes.
#pragma once

#include <vector>

#include "training/masking.h"

namespace spk {

// What initialisation makes of a layer.
struct LayerPlan {
  bool takes_part = false;  // it has a mask to be written
  bool leaves = false;      // dense
  double density = 0.0;
};

// Of each layer, by id, for the modes that draw by density.
std::vector<LayerPlan> plan_densities(const Masking &masking, int32_t mode, double density);

// Are whole kernels drawn?
bool is_structured(int32_t init_mode);

}  // namespace spk
