#include "core/rearrange.h"

#include "base/dtype.h"
#include "core/nest.h"

namespace spk {
namespace {

// Boxes of a grid, a whole large block at a time.
template <typename Fn>
void for_each_box(Call &call, const Grid &grid, Fn &&each) {
  const Tiling tiles = grid.tiles();
  call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) { each(scratch, tiles[i]); });
}

// Blocks of one leaf from another, by way of double unless the dtypes agree.
void convert_block(const Kernels &kernels, Scratch &scratch, const GridLeaf &from,
                   const GridLeaf &to, const Extents &block) {
  const Tiling parts = parts_of(to);
  const Scratch::Frame frame(scratch);
  double *elements = scratch.take<double>(std::min(to.numel(), kPartElements));
  for (int64_t i = 0; i < parts.count(); ++i) {
    gather(kernels, from, block, parts[i], elements);
    scatter(kernels, to, block, parts[i], elements);
  }
}

void copy_leaf(const GridLeaf &from, const GridLeaf &to, const Rect &rect) {
  Nest nest;
  for (int d = 0; d < rect.extent.size(); ++d) {
    nest.add(rect.extent[d], to.grid_y[d], from.grid_x[d]);
  }
  for (int d = 0; d < to.block.size(); ++d) {
    nest.add(to.block[d], to.block_y[d], from.block_x[d]);
  }
  nest.compile();
  nest.pad_to(1);
  copy_nest(nest, size_of(to.dtype), from.x + dot(rect.low, from.grid_x),
            to.y + dot(rect.low, to.grid_y));
}

}  // namespace

void set_data(Call &call, const Grid &grid, const Grid &source) {
  for_each_box(call, grid, [&](Scratch &scratch, const Rect &rect) {
    for (size_t l = 0; l < grid.leaves.size(); ++l) {
      const GridLeaf &from = source.leaves[l];
      const GridLeaf &to = grid.leaves[l];
      if (from.dtype == to.dtype) {
        copy_leaf(from, to, rect);
        continue;
      }
      for_each_block(rect, [&](int64_t, const Extents &block) {
        convert_block(call.kernels(), scratch, from, to, block);
      });
    }
  });
}

void gather_blocks(Call &call, const Grid &grid, const ArrayData &out) {
  // The output, leaf by leaf, is a grid leaf too: blocks numel_per_block apart, each contiguous.
  const int64_t size = size_of(out.dtype);
  Grid gathered{.shape = grid.shape,
                .numel_per_block = grid.numel_per_block,
                .score_dtype = grid.score_dtype,
                .leaves = {grid.leaves, call.memory()},
                .tile_elements = grid.tile_elements,
                .tile = grid.tile};
  int64_t first = 0;
  for (GridLeaf &leaf : gathered.leaves) {
    leaf.dtype = out.dtype;
    leaf.y = out.data + first * size;
    leaf.grid_y = grid.shape.row_major().times(grid.numel_per_block * size);
    leaf.block_y = leaf.block.row_major().times(size);
    first += leaf.numel();
  }
  set_data(call, gathered, grid);
}

void broadcast_to_elements(Call &call, const Grid &elements, const GridArray &values) {
  for_each_box(call, elements, [&](Scratch &, const Rect &rect) {
    for (const GridLeaf &leaf : elements.leaves) {
      Nest nest;
      for (int d = 0; d < rect.extent.size(); ++d) {
        nest.add(rect.extent[d], leaf.grid_y[d], values.step[d]);
      }
      for (int d = 0; d < leaf.block.size(); ++d) nest.add(leaf.block[d], leaf.block_y[d], 0);
      nest.compile();
      nest.pad_to(1);
      copy_nest(nest, size_of(leaf.dtype), values.data + dot(rect.low, values.step),
                leaf.y + dot(rect.low, leaf.grid_y));
    }
  });
}

void copy_entries(Call &call, const Extents &shape, const GridArray &from, const GridArray &to) {
  const Tiling tiles(shape, to.step, 1, kTileElements);
  call.for_each(tiles.count(), [&](Scratch &, int64_t i) {
    const Rect rect = tiles[i];
    copy_box(rect.extent, size_of(to.dtype), from.data + dot(rect.low, from.step), from.step,
             to.data + dot(rect.low, to.step), to.step);
  });
}

}  // namespace spk
