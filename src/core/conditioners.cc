// Conditioners are checked before anything is written.
#include <limits>

#include "base/dtype.h"
#include "base/error.h"
#include "core/extrema.h"
#include "core/panel.h"
#include "core/reduce.h"
#include "core/soft_threshold.h"

namespace spk {
namespace {

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
  if (conditioners.numblk() == 0) return;
  bool positive = true;
  for (const GridLeaf &leaf : conditioners.leaves) {
    positive = positive && all_positive(call, leaf, conditioners.shape);
  }
  if (!positive) refuse(call, conditioners, first_leaf);
}

}  // namespace spk
