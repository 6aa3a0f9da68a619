#include "core/apply.h"

namespace spk {
namespace {

// Loads one local factor per block for each box, and applies it.
template <typename Factor, typename Load>
void apply(Call &call, const Grid &grid, Load &&load_factors,
           void (*apply_rect)(const Kernels &, const Grid &, const Rect &, const Factor *),
           void (*apply_large)(Call &, const Grid &, const Factor *)) {
  if (grid.is_large()) {
    Factor *factors = call.scratch().take<Factor>(grid.numblk());
    load_factors(Rect::whole(grid.shape), factors);
    apply_large(call, grid, factors);
    return;
  }
  const Tiling tiles = grid.tiles();
  call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
    const Rect rect = tiles[i];
    Factor *factors = scratch.take<Factor>(rect.count());
    load_factors(rect, factors);
    apply_rect(call.kernels(), grid, rect, factors);
  });
}

}  // namespace

void apply_mask(Call &call, const Grid &grid, MaskSense sense, const GridArray &mask) {
  auto load_keep = [&](const Rect &rect, uint8_t *keep) {
    load_mask(rect, mask, keep);
    if (sense == MaskSense::kKeep) return;
    for (int64_t i = 0; i < rect.count(); ++i) keep[i] ^= 1;
  };
  apply<uint8_t>(call, grid, load_keep, mask_rect, mask_large);
}

void apply_multiplier(Call &call, const Grid &grid, const GridArray &multiplier) {
  auto load_factors = [&](const Rect &rect, double *factor) {
    load(call.kernels(), rect, multiplier, factor);
  };
  apply<double>(call, grid, load_factors, scale_rect, scale_large);
}

}  // namespace spk
