#include "core/apply.h"

namespace spk {
namespace {

// Loads one local factor per block for each box, and applies it.
template <typename Factor, typename Load, typename ApplyRect, typename ApplyDeep>
void apply(Call &call, const Grid &grid, Load &&load_factors, ApplyRect &&apply_rect,
           ApplyDeep &&apply_all) {
  if (grid.is_deep() || grid.is_thin()) {
    Factor *factors = call.scratch().take<Factor>(grid.numblk());
    load_factors(Rect::whole(grid.shape), factors);
    apply_all(factors);
    return;
  }
  const Tiling tiles = grid.tiles();
  call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
    const Rect rect = tiles[i];
    Factor *factors = scratch.take<Factor>(rect.count());
    load_factors(rect, factors);
    apply_rect(scratch, rect, factors);
  });
}

}  // namespace

void apply_mask(Call &call, const Grid &grid, MaskSense sense, const GridArray &mask) {
  auto load_keep = [&](const Rect &rect, uint8_t *keep) {
    load_mask(call.kernels(), rect, mask, sense == MaskSense::kPrune, keep);
  };
  apply<uint8_t>(
      call, grid, load_keep,
      [&](Scratch &scratch, const Rect &rect, const uint8_t *keep) {
        mask_rect(call.kernels(), scratch, grid, rect, keep, false);
      },
      [&](const uint8_t *keep) { mask_all(call, grid, keep); });
}

void apply_multiplier(Call &call, const Grid &grid, const GridArray &multiplier) {
  auto load_factors = [&](const Rect &rect, double *factor) {
    load(call.kernels(), rect, multiplier, factor);
  };
  // Narrow times narrow is exact as a double; only a double times narrow has to be told.
  const bool exact = multiplier.dtype == SPK_F64;
  apply<double>(
      call, grid, load_factors,
      [&](Scratch &scratch, const Rect &rect, const double *factor) {
        scale_rect(call.kernels(), scratch, grid, rect, factor, exact);
      },
      [&](const double *factor) { scale_all(call, grid, factor, exact); });
}

}  // namespace spk
