// Panels: the elements of many blocks as floats or doubles, laid out so that kernels run along one
// block or across several, whatever the views are like.
#pragma once

#include "core/grid.h"
#include "core/nest.h"
#include "kernels/kernels.h"

namespace spk {

// Where entry e of block b lies: at b * block_step + e * element_step.
struct PanelLayout {
  // For `blocks` blocks of the grid.
  PanelLayout(const Grid &grid, int64_t blocks, bool of_doubles);

  int64_t entry_size() const { return doubles ? sizeof(double) : sizeof(float); }

  bool doubles;      // entries are doubles; else floats
  bool across;       // kLanes blocks lie across a row of kLanes entries; else one along it
  int64_t rows;      // of kLanes entries, of one block or of kLanes blocks
  int64_t row_step;  // entries between them
  int64_t block_step;
  int64_t element_step;
  int64_t size;      // entries in all
  bool has_padding;  // entries that belong to no block
};

// The elements of the blocks of a box, leaf after leaf; and back, rounded once. `panel` is where
// the box's first block begins. `grid` and the layout have the same number of elements per block.
void gather_panel(const Kernels &kernels, const Grid &grid, const Rect &rect,
                  const PanelLayout &layout, std::byte *panel);
void scatter_panel(const Kernels &kernels, const Grid &grid, const Rect &rect,
                   const PanelLayout &layout, std::byte *panel);

// Where the elements of a box are read, or written, if they lie in memory as in a panel; else NULL.
const std::byte *panel_of_read(const Grid &grid, const Rect &rect, const PanelLayout &layout);
std::byte *panel_of_written(const Grid &grid, const Rect &rect, const PanelLayout &layout);

// The elements that are read of a box of so many blocks, as they lie in memory: operand 0 of a nest of
// at least two dimensions.
Nest memory_nest(const GridLeaf &leaf, const Extents &blocks);

// Rows that the box `ahead` bytes after this one begins with, of the first leaf; nothing where they
// are not rows of neighbours, or `ahead` is 0.
ReadSoon next_of(const Grid &grid, const Rect &rect, int64_t ahead);

}  // namespace spk
