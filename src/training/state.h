// The state of a masking as bytes, the same on every machine.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "training/masking.h"

namespace spk {

std::vector<std::byte> save(const Masking &masking);
// Refuses bytes that are damaged, or do not fit the masking, before anything is changed.
void restore(Masking &masking, std::span<const std::byte> blob);

}  // namespace spk
