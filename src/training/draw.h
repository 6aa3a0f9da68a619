// Random choices: Philox words of (layer, purpose, draw, index), so that a mask depends on nothing
// else.
#pragma once

#include "core/call.h"
#include "training/masking.h"

namespace spk {

enum class Purpose : uint32_t { kInitialise = 0, kGrow = 1 };

// One draw of one layer.
struct Draw {
  uint64_t seed;
  int32_t layer;
  Purpose purpose;
  uint64_t number;
};

// The next draw of a layer, which is counted.
Draw next_draw(Masking &masking, int32_t layer, Purpose purpose);
// Refuses a layer of more units (elements or kernels) than there are indices.
void check_drawable(int32_t id, const MaskedLayer &layer, int64_t units);

// Keys of n units, those of the smallest words being the largest; units that `mask` (may be NULL)
// has are kept in any case.
void write_random_keys(Call &call, const Draw &draw, const uint8_t *mask, int64_t n,
                       std::byte *keys);
// Marks `count` of n units; or each with a probability.
void draw_exactly(Call &call, const Draw &draw, int64_t n, int64_t count, uint8_t *keep);
void draw_each(Call &call, const Draw &draw, int64_t n, double probability, uint8_t *keep);

}  // namespace spk
