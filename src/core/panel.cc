#include "core/panel.h"

#include <cstdlib>

#include "base/dtype.h"
#include "core/tile.h"

namespace spk {
namespace {

constexpr int64_t kCacheLine = 64;

int64_t round_up(int64_t count) {
  return (count + kLanes - 1) / kLanes * kLanes;
}

// Are neighbouring blocks neighbours in memory?
bool blocks_touch(const Grid &grid) {
  const GridLeaf &leaf = grid.leaves[0];
  for (int d = 0; d < grid.shape.size(); ++d) {
    if (grid.shape[d] > 1 && std::abs(leaf.grid_x[d]) == size_of(leaf.dtype)) return true;
  }
  return false;
}

// Decides the order of sums, so that nothing but the layout of the grid may matter. Blocks of few
// elements would leave most of a register empty along their rows; of large ones, a tile has too few.
bool lies_across(const Grid &grid) {
  constexpr int64_t kFew = 2 * kLanes;
  constexpr int64_t kMany = kTileElements / kLanes;
  return grid.numel_per_block < kFew || (grid.numel_per_block <= kMany && blocks_touch(grid));
}

// Operand 0 is memory, operand 1 the panel. Neighbours in the panel go inside if they are near in
// memory too. Rows of a cache line or more are visited in the order of the panel: those that are
// neighbours in memory lie in the panel where they drive each other from the cache.
Nest box_nest(const Rect &rect, const Extents &grid_step, const Extents &block_extent,
              const Extents &block_step, const PanelLayout &layout) {
  const Extents blocks = rect.extent.row_major();
  const Extents elements = block_extent.row_major();
  const int64_t size = layout.entry_size();
  Nest nest;
  for (int d = 0; d < rect.extent.size(); ++d) {
    nest.add(rect.extent[d], grid_step[d], blocks[d] * layout.block_step * size);
  }
  for (int d = 0; d < block_extent.size(); ++d) {
    nest.add(block_extent[d], block_step[d], elements[d] * layout.element_step * size);
  }
  nest.compile();
  nest.pad_to(2);
  const bool spans_a_line =
      nest[0].step[1] == size && nest[0].extent * nest[0].step[0] >= kCacheLine;
  const bool panel_differs = nest.count() > 2 && nest[2].step[1] < nest[1].step[1];
  if (spans_a_line && panel_differs && !layout.across) nest.move(2, 1);
  const bool near = nest[1].step[1] == size && nest[1].step[0] <= kCacheLine;
  if (nest[0].step[1] != size && near) nest.move(1, 0);
  return nest;
}

// Does a box lie in memory, by these steps, as in a panel?
bool is_panel(const Grid &grid, const Rect &rect, const Extents &grid_step,
              const Extents &block_step, const PanelLayout &layout) {
  const GridLeaf &leaf = grid.leaves[0];
  const int64_t size = layout.entry_size();
  if (grid.leaves.size() > 1 || size_of(leaf.dtype) != size || layout.has_padding) return false;
  const Nest nest = box_nest(rect, grid_step, leaf.block, block_step, layout);
  return nest[0].extent == layout.size && nest[0].step[0] == size && nest[0].step[1] == size;
}

// A pointer and the size of what it points to.
struct Operand {
  std::byte *data;
  int64_t size;
};

// Calls kernel(args) for the two innermost dimensions of a nest, over all others.
template <typename Kernel>
void for_each_box(const Nest &nest, const Operand &x, const Operand &panel, Kernel &&kernel) {
  BoxArgs args{};
  args.n = nest[0].extent;
  args.step = nest[0].step[0] / x.size;
  args.panel_step = nest[0].step[1] / panel.size;
  args.rows = nest[1].extent;
  args.row_step = nest[1].step[0];
  args.panel_row_step = nest[1].step[1] / panel.size;
  nest.for_each_outer(2, [&](const int64_t *offset) {
    args.x = x.data + offset[0];
    args.panel = panel.data + offset[1];
    kernel(args);
  });
}

}  // namespace

PanelLayout::PanelLayout(const Grid &grid, int64_t blocks, bool of_doubles)
    : doubles(of_doubles), across(lies_across(grid)) {
  const int64_t numel_per_block = grid.numel_per_block;
  const int64_t padded = round_up(across ? blocks : numel_per_block);
  rows = across ? numel_per_block : padded / kLanes;
  row_step = across ? padded : kLanes;
  block_step = across ? 1 : padded;
  element_step = across ? padded : 1;
  size = padded * (across ? numel_per_block : blocks);
  has_padding = size != blocks * numel_per_block;
}

void gather_panel(const Kernels &kernels, const Grid &grid, const Rect &rect,
                  const PanelLayout &layout, std::byte *panel) {
  for (const GridLeaf &leaf : grid.leaves) {
    const Nest nest = box_nest(rect, leaf.grid_x, leaf.block, leaf.block_x, layout);
    std::byte *x = const_cast<std::byte *>(leaf.x) + dot(rect.low, leaf.grid_x);
    for_each_box(nest, {x, size_of(leaf.dtype)}, {panel, layout.entry_size()},
                 kernels.gather[index_of_dtype(leaf.dtype)][layout.doubles]);
    panel += leaf.numel() * layout.element_step * layout.entry_size();
  }
}

void scatter_panel(const Kernels &kernels, const Grid &grid, const Rect &rect,
                   const PanelLayout &layout, std::byte *panel) {
  for (const GridLeaf &leaf : grid.leaves) {
    const Nest nest = box_nest(rect, leaf.grid_y, leaf.block, leaf.block_y, layout);
    std::byte *y = leaf.y + dot(rect.low, leaf.grid_y);
    for_each_box(nest, {y, size_of(leaf.dtype)}, {panel, layout.entry_size()},
                 kernels.scatter[index_of_dtype(leaf.dtype)][layout.doubles]);
    panel += leaf.numel() * layout.element_step * layout.entry_size();
  }
}

const std::byte *panel_of_read(const Grid &grid, const Rect &rect, const PanelLayout &layout) {
  const GridLeaf &leaf = grid.leaves[0];
  const bool is = is_panel(grid, rect, leaf.grid_x, leaf.block_x, layout);
  return is ? leaf.x + dot(rect.low, leaf.grid_x) : nullptr;
}

std::byte *panel_of_written(const Grid &grid, const Rect &rect, const PanelLayout &layout) {
  const GridLeaf &leaf = grid.leaves[0];
  const bool is = is_panel(grid, rect, leaf.grid_y, leaf.block_y, layout);
  return is ? leaf.y + dot(rect.low, leaf.grid_y) : nullptr;
}

Nest memory_nest(const GridLeaf &leaf, const Extents &blocks) {
  Nest nest;
  for (int d = 0; d < blocks.size(); ++d) nest.add(blocks[d], leaf.grid_x[d]);
  for (int d = 0; d < leaf.block.size(); ++d) nest.add(leaf.block[d], leaf.block_x[d]);
  nest.compile();
  nest.pad_to(2);
  return nest;
}

ReadSoon next_of(const Grid &grid, const Rect &rect, int64_t ahead) {
  const GridLeaf &leaf = grid.leaves[0];
  const Nest nest = memory_nest(leaf, rect.extent);
  const int64_t size = size_of(leaf.dtype);
  if (ahead == 0 || nest[0].step[0] != size) return {};
  const std::byte *next = leaf.x + dot(rect.low, leaf.grid_x) + nest.start(0) + ahead;
  return {next, nest[1].extent, nest[1].step[0], nest[0].extent * size};
}

}  // namespace spk
