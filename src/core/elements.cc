#include "core/elements.h"

#include <algorithm>

#include "base/dtype.h"
#include "core/nest.h"
#include "core/tile.h"

namespace spk {
namespace {

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

// The dimension with a step of `size` bytes; -1 if there is none.
int row_of(const Extents &step, int64_t size) {
  for (int d = 0; d < step.size(); ++d) {
    if (step[d] == size) return d;
  }
  return -1;
}

}  // namespace

ElementRows::ElementRows(const Grid &grid, const GridArray &array) {
  constexpr int64_t kLeastElements = 16;  // shorter rows are not worth a call
  if (grid.numel_per_block != 1) return;
  const GridLeaf &leaf = grid.leaves[0];
  const Nest nest = element_nest(grid, array);
  for (int d = nest.count() - 1; d >= 0; --d) {
    shape_.push_back(nest[d].extent);
    x_step_.push_back(nest[d].step[0]);
    y_step_.push_back(nest[d].step[1]);
    entry_step_.push_back(nest[d].step[2]);
  }
  x_ = leaf.x + nest.start(0);
  y_ = leaf.y + nest.start(1);
  entry_ = array.data + nest.start(2);
  entry_size_ = size_of(array.dtype);
  row_ = shape_.size() - 1;
  one_a_row_ = entry_step_[row_] == 0;
  entry_row_ = one_a_row_ ? row_ : row_of(entry_step_, entry_size_);
  const bool is_one = grid.numblk() == 1;
  const int64_t size = size_of(leaf.dtype);
  const bool in_rows = x_step_[row_] == size && y_step_[row_] == size && entry_row_ >= 0;
  if (!is_one && !in_rows) return;
  const int64_t shortest = std::min(shape_[row_], shape_[entry_row_]);
  exist_ = shape_.size() == 1 || shortest >= kLeastElements;
}

Tiling ElementRows::boxes() const {
  constexpr int64_t kRun = int64_t{1} << 14;
  constexpr int64_t kTurned = 64;
  Extents least(shape_.size(), 1);
  if (is_turned()) {
    least[row_] = std::min(shape_[row_], 2 * kTurned);
    least[entry_row_] = std::min(shape_[entry_row_], kTurned);
  }
  return Tiling(shape_, x_step_, 1, is_turned() ? kTileElements : kRun, least);
}

ElementRows::Beside ElementRows::entries_of(Scratch &scratch, const Rect &box,
                                            Entries entries) const {
  std::byte *first = entry_ + dot(box.low, entry_step_);
  if (!is_turned()) return {first, entry_step_};
  Beside own{scratch.take<std::byte>(box.extent.product() * entry_size_),
             box.extent.row_major().times(entry_size_)};
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
