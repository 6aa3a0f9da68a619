#include "core/block.h"

#include "base/error.h"

namespace spk {
namespace {

bool is_permutation(const Extents &order) {
  uint32_t seen = 0;
  for (int64_t axis : order) {
    if (axis < 0 || axis >= order.size() || (seen >> axis) & 1) return false;
    seen |= uint32_t{1} << axis;
  }
  return true;
}

Extents permuted(const Extents &shape, const Extents &order) {
  Extents result;
  for (int64_t axis : order) result.push_back(shape[static_cast<int>(axis)]);
  return result;
}

// Facts that follow from grid and leaves.
void finish(Block *block) {
  block->numblk = checked_product("block grid", block->grid_shape);
  block->score_dtype = SPK_F32;
  for (const Leaf &leaf : block->leaves) {
    block->all_leaves.push_back(&leaf);
    block->numel_per_block =
        checked_sum("block numel", block->numel_per_block, leaf.numel_per_block());
    if (leaf.view->dtype == SPK_F64) block->score_dtype = SPK_F64;
  }
  block->numel = checked_product("block numel", {block->numblk, block->numel_per_block});
}

}  // namespace

Extents Leaf::own_grid() const {
  Extents grid;
  for (int d = 0; d < block_shape.size(); ++d) grid.push_back(view->shape[d] / block_shape[d]);
  return grid;
}

Extents cut(const char *what, const Extents &whole, const Extents &shape) {
  if (shape.size() != whole.size()) {
    fail(SPK_SHAPE_MISMATCH, what, ": got ", shape.size(), " dims ", shape, ", expected ",
         whole.size(), " to cut ", whole);
  }
  Extents result = shape;
  for (int d = 0; d < whole.size(); ++d) {
    if (result[d] <= 0) result[d] = whole[d];
    if (whole[d] % result[d] != 0) {
      fail(SPK_SHAPE_MISMATCH, what, ": dim ", d, ": size ", whole[d], " is not divisible by ",
           result[d]);
    }
  }
  return result;
}

Ref<Block> make_block(const Ref<const View> &view, const Extents &shape, const std::string &name) {
  if (view->shape.size() > SPK_MAX_NDIM) {
    fail(SPK_INVALID_ARGUMENT, "block view: got a view of ", view->shape.size(),
         " dims, expected at most ", SPK_MAX_NDIM);
  }
  const int ndim = view->shape.size();
  Leaf leaf;
  leaf.view = view;
  leaf.block_shape = cut("block shape", view->shape, shape.empty() ? Extents(ndim, 1) : shape);
  leaf.order = Extents::identity(ndim);
  leaf.name = name;
  auto block = Ref<Block>::adopt(new Block);
  block->name = name;
  block->grid_shape = leaf.own_grid();
  block->leaves.push_back(std::move(leaf));
  finish(block.get());
  return block;
}

Extents compose(const Extents &order, const Extents &outer) {
  return permuted(order, outer);
}

Extents coupled_grid(const char *what, const std::vector<Extents> &grids,
                     const std::vector<std::string> &names, const std::vector<Extents> &orders) {
  Extents common;
  for (size_t i = 0; i < grids.size(); ++i) {
    if (grids[i].size() != grids[0].size()) {
      fail(SPK_COUPLING, what, ": member ", i, " '", shortened(names[i]), "' has a grid of ",
           grids[i].size(), " dims ", grids[i], ", member 0 '", shortened(names[0]), "' one of ",
           grids[0].size(), " dims ", grids[0]);
    }
    if (orders[i].size() != grids[i].size() || !is_permutation(orders[i])) {
      fail(SPK_COUPLING, what, ": order of member ", i, " '", shortened(names[i]), "': got ",
           orders[i], ", expected a permutation of the ", grids[i].size(), " grid axes");
    }
    const Extents grid = permuted(grids[i], orders[i]);
    if (i == 0) common = grid;
    if (!(grid == common)) {
      fail(SPK_COUPLING, what, ": member ", i, " '", shortened(names[i]), "' has grid ", grids[i],
           ", permuted ", grid, ", expected ", common, " as member 0 '", shortened(names[0]), "'");
    }
  }
  return common;
}

Ref<Block> couple_blocks(const std::vector<const Block *> &members,
                         const std::vector<Extents> &orders, const std::string &name) {
  std::vector<Extents> grids;
  std::vector<std::string> names;
  for (const Block *member : members) {
    grids.push_back(member->grid_shape);
    names.push_back(member->name);
  }
  auto block = Ref<Block>::adopt(new Block);
  block->name = name;
  block->grid_shape = coupled_grid("block coupling", grids, names, orders);
  for (size_t i = 0; i < members.size(); ++i) {
    for (Leaf leaf : members[i]->leaves) {
      leaf.order = compose(leaf.order, orders[i]);
      block->leaves.push_back(std::move(leaf));
    }
  }
  finish(block.get());
  return block;
}

Ref<Block> block_of_leaf(const Block &block, int index) {
  const Leaf &leaf = block.leaves[static_cast<size_t>(index)];
  return make_block(leaf.view, leaf.block_shape, leaf.name);
}

Ref<View> split_view(int32_t dtype, const Extents &grid, const Extents &grid_stride,
                     const Extents &inner, const Extents &inner_stride, int64_t offset,
                     bool reorder) {
  if (reorder) {
    return make_view(dtype, concat(grid, inner), concat(grid_stride, inner_stride), offset,
                     kMaxDims);
  }
  Extents shape;
  Extents stride;
  for (int d = 0; d < grid.size(); ++d) {
    shape.push_back(grid[d]);
    stride.push_back(grid_stride[d]);
    shape.push_back(inner[d]);
    stride.push_back(inner_stride[d]);
  }
  return make_view(dtype, shape, stride, offset, kMaxDims);
}

Ref<View> block_view(const Block &block, bool reorder) {
  if (block.leaves.size() != 1) {
    fail(SPK_COUPLING, "block: '", shortened(block.name), "' is a coupling of ",
         block.leaves.size(),
         " leaves in different buffers; expected a block spec (use the merged form)");
  }
  const Leaf &leaf = block.leaves[0];
  const View &view = *leaf.view;
  Extents grid_stride;
  for (int d = 0; d < view.shape.size(); ++d) {
    // Only a single block can overflow, which has no neighbour to be a stride away.
    int64_t stride = 0;
    if (__builtin_mul_overflow(view.stride[d], leaf.block_shape[d], &stride)) stride = 0;
    grid_stride.push_back(stride);
  }
  // A single leaf may still be a coupling of one member with a permuted grid.
  return split_view(view.dtype, block.grid_shape, permuted(grid_stride, leaf.order),
                    permuted(leaf.block_shape, leaf.order), permuted(view.stride, leaf.order),
                    view.offset, reorder);
}

Ref<View> broadcast_fake(const Block &block, int32_t dtype) {
  Extents shape;
  for (int64_t extent : block.grid_shape) {
    shape.push_back(extent);
    shape.push_back(1);
  }
  return make_contiguous_view(dtype, shape, 0, kMaxDims);
}

Ref<View> expand_block_tensor(const Block &block, int32_t dtype) {
  return make_contiguous_view(dtype, block.grid_shape);
}

}  // namespace spk
