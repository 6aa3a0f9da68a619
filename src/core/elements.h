// Blocks that are single elements beside the entries of an array, of which kernels read rows.
#pragma once

#include "core/call.h"
#include "core/grid.h"

namespace spk {

// What an operation does with the array.
enum class Entries { kRead, kWritten };

class ElementRows {
 public:
  ElementRows(const Grid &grid, const GridArray &array);

  // Are blocks single elements, in rows of memory that are worth a call each? Entries lie beside them,
  // are one for a row or for all, or lie in rows along another dimension.
  bool exist() const { return exist_; }
  bool are_long() const { return !is_turned() && shape_[row_] >= kLongRow; }

  // In parallel: fn(args) once a row, or a part of one. Entries in another order are copied to and
  // fro, a box at a time.
  template <typename Fn>
  void for_each(Call &call, Entries entries, Fn &&fn) const {
    const Tiling boxes = this->boxes();
    call.for_each(boxes.count(), [&](Scratch &scratch, int64_t i) {
      const Rect box = boxes[i];
      const Beside beside = entries_of(scratch, box, entries);
      Extents rows = box.extent;
      rows[row_] = 1;
      const std::byte *x = x_ + dot(box.low, x_step_);
      std::byte *y = y_ + dot(box.low, y_step_);
      for_each_index(rows, [&](int64_t, const Extents &row) {
        fn(ElementArgs{x + dot(row, x_step_), y + dot(row, y_step_),
                       beside.first + dot(row, beside.step), box.extent[row_], one_a_row_});
      });
      if (is_turned() && entries == Entries::kWritten) put_back(box, beside);
    });
  }

 private:
  static constexpr int64_t kLongRow = 1024;

  // The entries beside the elements of a box.
  struct Beside {
    std::byte *first;
    Extents step;
  };

  bool is_turned() const { return entry_row_ != row_; }
  Tiling boxes() const;
  Beside entries_of(Scratch &scratch, const Rect &box, Entries entries) const;
  void put_back(const Rect &box, const Beside &beside) const;

  // Dimensions are in the order of memory, the innermost last.
  Extents shape_, x_step_, y_step_, entry_step_;
  const std::byte *x_ = nullptr;
  std::byte *y_ = nullptr;
  std::byte *entry_ = nullptr;
  int64_t entry_size_ = 0;
  int row_ = 0;        // the dimension in which elements lie side by side: the last one
  int entry_row_ = 0;  // that of entries
  bool one_a_row_ = false;
  bool exist_ = false;
};

}  // namespace spk
