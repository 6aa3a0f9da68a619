#include "core/elements.h"

#include "core/tile.h"

namespace spk {
namespace {

// Shorter rows are not worth a call.
constexpr int64_t kLeastElements = 16;

// Operands: elements read, elements written, entries.
Nest element_nest(const Grid &grid, const GridArray &array) {
  const GridLeaf &leaf = grid.leaves[0];
  Nest nest;
  for (int d = 0; d < grid.shape.size(); ++d) {
    nest.add(grid.shape[d], leaf.grid_x[d], leaf.grid_y[d], array.step[d]);
  }
  nest.compile();
  nest.pad_to(1);
  return nest;
}

// The dimension in which operand `operand` has entries of `size` bytes side by side; -1 if none has.
int row_of(const Nest &nest, int operand, int64_t size) {
  for (int d = 0; d < nest.count(); ++d) {
    if (nest[d].step[operand] == size) return d;
  }
  return -1;
}

}  // namespace

ElementRows::ElementRows(const Grid &grid, const GridArray &array) {
  if (grid.numel_per_block != 1) return;
  const GridLeaf &leaf = grid.leaves[0];
  const int64_t size = size_of(leaf.dtype);
  const Nest nest = element_nest(grid, array);
  for (int d = 0; d < nest.count(); ++d) {
    shape_.push_back(nest[d].extent);
    x_step_.push_back(nest[d].step[0]);
    y_step_.push_back(nest[d].step[1]);
    entry_step_.push_back(nest[d].step[2]);
  }
  x_ = leaf.x + nest.start(0);
  y_ = leaf.y + nest.start(1);
  entry_ = array.data + nest.start(2);
  entry_size_ = size_of(array.dtype);
  one_for_all_ = is_one_for_all(grid, array);
  const bool is_one = grid.numblk() == 1;
  turned_ = one_for_all_ || is_one ? 0 : row_of(nest, 2, entry_size_);
  const bool in_rows = nest[0].step[0] == size && nest[0].step[1] == size;
  const bool worth_it = nest.count() == 1 || (nest[0].extent >= kLeastElements && turned_ >= 0 &&
                                              nest[turned_].extent >= kLeastElements);
  exist_ = is_one || (in_rows && worth_it && turned_ >= 0);
}

Tiling ElementRows::boxes() const {
  constexpr int64_t kRun = int64_t{1} << 14;
  constexpr int64_t kTurned = 64;
  Extents least(shape_.size(), 1);
  if (is_turned()) {
    least[0] = std::min(shape_[0], 2 * kTurned);
    least[turned_] = std::min(shape_[turned_], kTurned);
  }
  return Tiling(shape_, x_step_, 1, is_turned() ? kTileElements : kRun, least);
}

ElementRows::Beside ElementRows::entries_of(Scratch &scratch, const Rect &box,
                                            Entries entries) const {
  std::byte *first = entry_ + dot(box.low, entry_step_);
  if (!is_turned()) return {first, entry_step_};
  Beside own{scratch.take<std::byte>(box.extent.product() * entry_size_),
             Extents(box.extent.size(), entry_size_)};
  for (int d = 1; d < box.extent.size(); ++d) own.step[d] = own.step[d - 1] * box.extent[d - 1];
  if (entries == Entries::kRead) {
    copy_box(box.extent, entry_size_, first, entry_step_, own.first, own.step);
  }
  return own;
}

void ElementRows::put_back(const Rect &box, const Beside &beside) const {
  copy_box(box.extent, entry_size_, beside.first, beside.step, entry_ + dot(box.low, entry_step_),
           entry_step_);
}

}  // namespace spk
