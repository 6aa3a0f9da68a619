#include "core/apply.h"

#include <algorithm>

#include "base/dtype.h"
#include "core/slabs.h"

namespace spk {
namespace {

// Loads one local factor per block for each box, and applies it. A factor takes up to `kept` bytes.
template <typename Load, typename ApplyRect, typename ApplyDeep>
void apply(Call &call, const Grid &grid, int64_t kept, Load &&load_factors, ApplyRect &&apply_rect,
           ApplyDeep &&apply_all) {
  if (grid.is_deep() || grid.is_thin()) {
    return for_each_slab(call, grid, kept, [&](const Grid &blocks, const Rect &slab) {
      apply_all(blocks, load_factors(call.scratch(), slab));
    });
  }
  const Tiling tiles = grid.tiles();
  call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
    const Rect rect = tiles[i];
    apply_rect(scratch, rect, load_factors(scratch, rect));
  });
}

// Are neither multipliers nor elements f64? Then floats hold both.
bool are_all_floats(const Grid &grid, const GridArray &multiplier) {
  return multiplier.dtype != SPK_F64 &&
         std::all_of(grid.leaves.begin(), grid.leaves.end(),
                     [](const GridLeaf &leaf) { return leaf.dtype != SPK_F64; });
}

void multiply_floats(Call &call, const Grid &grid, const GridArray &multiplier) {
  apply(
      call, grid, size_of(SPK_F32),
      [&](Scratch &scratch, const Rect &rect) {
        return load_floats(call.kernels(), scratch, rect, multiplier);
      },
      [&](Scratch &scratch, const Rect &rect, const float *factor) {
        scale_rect(call.kernels(), scratch, grid, rect, factor);
      },
      [&](const Grid &blocks, const float *factor) { scale_all(call, blocks, factor); });
}

void multiply_any(Call &call, const Grid &grid, const GridArray &multiplier) {
  auto load_factors = [&](Scratch &scratch, const Rect &rect) {
    double *factors = scratch.take<double>(rect.count());
    load(call.kernels(), rect, multiplier, factors);
    return factors;
  };
  // Narrow times narrow is exact as a double; only a double times narrow has to be told.
  const bool exact = multiplier.dtype == SPK_F64;
  apply(
      call, grid, kDoubleBytes, load_factors,
      [&](Scratch &scratch, const Rect &rect, const double *factor) {
        scale_rect(call.kernels(), scratch, grid, rect, factor, false, exact);
      },
      [&](const Grid &blocks, const double *factor) { scale_all(call, blocks, factor, exact); });
}

// Calls write(leaf, values) for each leaf of a coupling as a grid of its own.
template <typename Write>
void for_each_leaf(Call &call, const Grid &grid, const GridArray &values, Write &&write) {
  for (size_t l = 0; l < grid.leaves.size(); ++l) {
    const Scratch::Frame frame(call.scratch());
    ScratchMemory memory(&call.scratch());
    const MemoryOrder order(grid.leaves[l]);
    write(leaf_alone(grid, l, order, &memory),
          GridArray{values.data, values.dtype, order.of(values.step)});
  }
}

// Are leaves written one after the other? Not if the call might be cancelled in between, which would
// leave blocks half done.
bool is_done_by_leaf(const Call &call, const Grid &grid) {
  constexpr int64_t kLeastElements = 8;  // of a block; measured
  return !call.may_be_cancelled() && !grid.is_deep() && grid.is_better_by_leaf(kLeastElements);
}

}  // namespace

void apply_mask(Call &call, const Grid &grid, MaskSense sense, const GridArray &mask) {
  if (is_done_by_leaf(call, grid)) {
    return for_each_leaf(call, grid, mask, [&](const Grid &leaf, const GridArray &own) {
      apply_mask(call, leaf, sense, own);
    });
  }
  apply(
      call, grid, size_of(SPK_U8),
      [&](Scratch &scratch, const Rect &rect) {
        return load_mask_bytes(call.kernels(), scratch, rect, mask);
      },
      [&](Scratch &scratch, const Rect &rect, const uint8_t *bytes) {
        mask_rect(call.kernels(), scratch, grid, rect, bytes, false, sense);
      },
      [&](const Grid &blocks, const uint8_t *bytes) { mask_all(call, blocks, bytes, sense); });
}

void apply_multiplier(Call &call, const Grid &grid, const GridArray &multiplier) {
  if (is_done_by_leaf(call, grid)) {
    return for_each_leaf(call, grid, multiplier, [&](const Grid &leaf, const GridArray &own) {
      apply_multiplier(call, leaf, own);
    });
  }
  if (are_all_floats(grid, multiplier)) return multiply_floats(call, grid, multiplier);
  multiply_any(call, grid, multiplier);
}

}  // namespace spk
