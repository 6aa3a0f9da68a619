// Conditioners are checked before anything is written.
#include <atomic>
#include <limits>

#include "base/dtype.h"
#include "base/error.h"
#include "core/extrema.h"
#include "core/panel.h"
#include "core/reduce.h"
#include "core/soft_threshold.h"

namespace spk {
namespace {

bool all_positive(const Kernels &kernels, const Grid &grid, const Rect &rect) {
  for (const GridLeaf &leaf : grid.leaves) {
    if (!all_positive(kernels, leaf, rect, Rect::whole(leaf.block))) return false;
  }
  return true;
}

// The parts of a large block are read in parallel.
bool all_positive_large(Call &call, const Grid &grid) {
  std::atomic<bool> positive{true};
  for (const GridLeaf &leaf : grid.leaves) {
    const Tiling parts = parts_of(leaf);
    call.for_each(grid.numblk() * parts.count(), [&](Scratch &, int64_t i) {
      const Rect block = Rect::one(index_at(grid.shape, i / parts.count()));
      if (!all_positive(call.kernels(), leaf, block, parts[i % parts.count()])) positive = false;
    });
  }
  return positive;
}

bool all_positive(Call &call, const Grid &grid) {
  if (grid.is_large()) return all_positive_large(call, grid);
  std::atomic<bool> positive{true};
  const Tiling tiles = grid.tiles();
  call.for_each(tiles.count(), [&](Scratch &, int64_t i) {
    if (!all_positive(call.kernels(), grid, tiles[i])) positive = false;
  });
  return positive;
}

// Names the first block that has a number which is not positive and finite.
void refuse(Call &call, const Grid &conditioners, int first_leaf) {
  for (size_t l = 0; l < conditioners.leaves.size(); ++l) {
    Grid leaf = conditioners;
    leaf.leaves.assign(1, conditioners.leaves[l]);
    leaf.numel_per_block = leaf.leaves[0].numel();
    auto check = [&](double h, const Rect &rect, int64_t number) {
      if (h > 0.0 && h < std::numeric_limits<double>::infinity()) return;
      fail(SPK_INVALID_ARGUMENT, "conditioners[", first_leaf + static_cast<int>(l), "]: got ", h,
           " in block ", plus(rect.low, index_at(rect.extent, number)),
           ", expected numbers > 0 and finite");
    };
    for (const Reduction reduction : {kMin, kMax}) {
      for_each_reduced(call, leaf, reduction, 0.0, [&](const Rect &rect, const double *local) {
        for (int64_t i = 0; i < rect.count(); ++i) check(local[i], rect, i);
      });
    }
  }
}

}  // namespace

void check_conditioners(Call &call, const Grid &conditioners, int first_leaf) {
  if (!all_positive(call, conditioners)) refuse(call, conditioners, first_leaf);
}

}  // namespace spk
