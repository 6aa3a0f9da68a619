// Block specs and block couplings: grids of blocks, the atoms of pruning.
#pragma once

#include <string>
#include <vector>

#include "base/extents.h"
#include "base/handle.h"
#include "core/view.h"

namespace spk {

// One block spec inside a block, coupling or scope.
struct Leaf {
  Ref<const View> view;
  Extents block_shape;  // along each view dimension
  Extents order;        // axis d of the (coupled) grid is view dimension order[d]
  std::string name;

  int64_t numel_per_block() const { return block_shape.product(); }
  // Extents of the grid, in view order.
  Extents own_grid() const;
};

}  // namespace spk

struct spk_block final : spk::RefCounted {
  std::string name;
  spk::Extents grid_shape;
  std::vector<spk::Leaf> leaves;
  std::vector<const spk::Leaf *> all_leaves;  // the same, as spk_scope lists them
  int64_t numblk = 0;
  int64_t numel_per_block = 0;
  int64_t numel = 0;
  int32_t score_dtype = 0;
};

namespace spk {

using Block = ::spk_block;

Ref<Block> make_block(const Ref<const View> &view, const Extents &shape, const std::string &name);
Ref<Block> couple_blocks(const std::vector<const Block *> &members,
                         const std::vector<Extents> &orders, const std::string &name);
// The block spec that leaf `index` was created as.
Ref<Block> block_of_leaf(const Block &block, int index);

Ref<View> block_view(const Block &block, bool reorder);
Ref<View> broadcast_fake(const Block &block, int32_t dtype);
Ref<View> expand_block_tensor(const Block &block, int32_t dtype);

// order[d] of a coupling: `order` of the member applied to what the coupling asks of it.
Extents compose(const Extents &order, const Extents &outer);
// Checks that a coupling's orders are permutations and that the permuted grids agree; returns the
// common grid. `what` is "block coupling" or "scope coupling".
Extents coupled_grid(const char *what, const std::vector<Extents> &grids,
                     const std::vector<std::string> &names, const std::vector<Extents> &orders);

// A shape that cuts `whole` into equal parts: entries <= 0 span their dimension, each must divide.
Extents cut(const char *what, const Extents &whole, const Extents &shape);

// A block view of dims (B x b): strides and extents interleaved or reordered.
Ref<View> split_view(int32_t dtype, const Extents &grid, const Extents &grid_stride,
                     const Extents &inner, const Extents &inner_stride, int64_t offset,
                     bool reorder);

}  // namespace spk
