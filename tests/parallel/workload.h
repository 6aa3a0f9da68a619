// Every operation of the library on one block or scope structure, reduced to a fingerprint of all
// that it wrote: two runs agree in every bit, or their fingerprints differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparsekit/sparsekit.h"

struct Fingerprint {
  std::string what;
  uint64_t hash;
};

// Runs all structures and dtypes with one context, in one of the host's rounding modes (FE_...).
std::vector<Fingerprint> run_workload(spk_context *context, int rounding_mode);
