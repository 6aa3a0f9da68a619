// Conditioners are checked before anything is written.
#include <algorithm>
#include <atomic>
#include <limits>
#include <memory_resource>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "core/extrema.h"
#include "core/panel.h"
#include "core/reduce.h"
#include "core/soft_threshold.h"

namespace spk {
namespace {

// A leaf's elements in the order of memory, which is the fastest: blocks do not matter.
class MemoryPieces {
 public:
  MemoryPieces(const GridLeaf &leaf, const Extents &blocks)
      : nest_(memory_nest(leaf, blocks)),
        inner_(std::min(nest_.count(), kMaxDims)),
        x_(leaf.x),
        size_(size_of(leaf.dtype)),
        shape_(inner_, 1),
        step_(inner_, 0) {
    // Pieces follow each other along the last dimension first, as they do in memory.
    for (int d = 0; d < inner_; ++d) {
      shape_[inner_ - 1 - d] = nest_[d].extent;
      step_[inner_ - 1 - d] = nest_[d].step[0];
    }
    pieces_ = Tiling(shape_, step_, 1, streamed_elements(shape_.product()));
  }

  int64_t count() const { return pieces_.count(); }

  // fn(args) for boxes of two dimensions.
  template <typename Fn>
  void for_each_box(int64_t index, Fn &&fn) const {
    const Rect piece = pieces_[index];
    Nest inside;
    for (int d = inner_ - 1; d >= 0; --d) inside.add(piece.extent[d], step_[d]);
    inside.pad_to(2);
    BoxArgs args{};
    args.n = inside[0].extent;
    args.step = inside[0].step[0] / size_;
    args.rows = inside[1].extent;
    args.row_step = inside[1].step[0];
    const std::byte *x = x_ + dot(piece.low, step_);
    // More dimensions than Extents hold are those of enormous views only.
    nest_.for_each_outer(inner_, [&](const int64_t *outer) {
      inside.for_each_outer(2, [&](const int64_t *offset) {
        args.x = const_cast<std::byte *>(x) + outer[0] + offset[0];
        fn(args);
      });
    });
  }

 private:
  Nest nest_;
  int inner_;  // dimensions that are cut
  const std::byte *x_;
  int64_t size_;
  Extents shape_, step_;
  Tiling pieces_{Extents()};
};

// In one loop over the pieces of all leaves.
bool all_positive(Call &call, const Grid &grid) {
  std::pmr::vector<MemoryPieces> leaves(call.memory());
  leaves.reserve(grid.leaves.size());
  int64_t count = 0;
  for (const GridLeaf &leaf : grid.leaves) {
    count += leaves.emplace_back(leaf, grid.shape).count();
  }
  std::atomic<bool> positive{true};
  call.for_each(count, [&](Scratch &, int64_t i) {
    size_t l = 0;
    for (; i >= leaves[l].count(); ++l) i -= leaves[l].count();
    const auto kernel = call.kernels().all_positive[index_of_dtype(grid.leaves[l].dtype)];
    leaves[l].for_each_box(i, [&](const BoxArgs &args) {
      if (!kernel(args)) positive = false;
    });
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
