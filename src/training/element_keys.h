// Elements of a layer that compete, as keys in scratch memory: one per position, row-major in the
// shape of the view, whatever the layout of what they are made from.
#pragma once

#include "core/key_array.h"
#include "training/call_layers.h"

namespace spk {

// Numbers whose magnitudes are asked for: an array of any float dtype, or the momentum that Adam's
// two moments make.
struct Magnitudes {
  GridArray values;
  GridArray second;         // Adam's second moments; no data: none
  bool as_doubles = false;  // whatever the dtype, so that those of several dtypes compare

  bool in_doubles() const { return as_doubles || second.data; }
  int32_t dtype() const { return in_doubles() ? SPK_F64 : values.dtype; }
  KeyWidth width() const { return KeyForm::of_elements(dtype()).width; }
};

Magnitudes magnitudes_of(const LeafData &data);
// Of numbers one after the other.
Magnitudes magnitudes_of(double *numbers);
Magnitudes momentum_of(const CallLayer &layer);

// Who competes for being kept; the others are never, or always.
enum class Among { kActive, kInactive };

// Room for n keys.
std::byte *take_keys(Call &call, KeyWidth width, int64_t n);

// Writes the keys of all positions of a shape; returns how many compete. NaN is the largest of the
// active, and does not compete among the inactive.
int64_t write_keys(Call &call, const Extents &shape, const Magnitudes &magnitudes,
                   const uint8_t *mask, Among among, std::byte *keys);

// The mean magnitude of the active, `count` of them; 0 if it is not finite.
double mean_magnitude(Call &call, const Extents &shape, const Magnitudes &magnitudes,
                      const uint8_t *mask, int64_t count);

// Marks the elements that are not 0.
void write_nonzero(Call &call, const Extents &shape, const GridArray &values, uint8_t *mask);

// Marks the k largest of n keys.
void keep_largest(Call &call, KeyWidth width, const std::byte *keys, int64_t n, int64_t k,
                  uint8_t *mask);
// Marks the selected among n keys, which are those from position `first` on.
void keep_selected(Call &call, KeyWidth width, const std::byte *keys, int64_t first, int64_t n,
                   const Selection &selection, uint8_t *mask);

// Zeroes the elements that a mask forbids.
void zero_inactive(Call &call, const Extents &shape, const GridArray &values, const uint8_t *mask);

}  // namespace spk
