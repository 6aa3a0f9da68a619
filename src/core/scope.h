// Scope specs and scope couplings: the groups inside which blocks compete.
#pragma once

#include <string>
#include <vector>

#include "core/block.h"

namespace spk {

// One scope spec inside a scope.
struct ScopeMember {
  Ref<const Block> block;
  Extents shape;               // blocks of a scope along each axis of the block's grid
  Extents order;               // axis d of the (coupled) scope grid is block grid axis order[d]
  int64_t numblk = 0;          // blocks that the member brings to a scope
  int64_t first_position = 0;  // of its blocks in the scope
  int first_leaf = 0;
  std::string name;
};

}  // namespace spk

struct spk_scope final : spk::RefCounted {
  std::string name;
  spk::Extents grid_shape;
  std::vector<spk::ScopeMember> members;
  int64_t numscope = 0;
  int64_t numblk_per_scope = 0;
  int64_t numel_per_scope = 0;
  std::vector<const spk::Leaf *> all_leaves;  // of all members, in order
  int32_t score_dtype = 0;
};

namespace spk {

using Scope = ::spk_scope;

Ref<Scope> make_scope(const Ref<const Block> &block, const Extents &shape, const std::string &name);
Ref<Scope> couple_scopes(const std::vector<const Scope *> &members,
                         const std::vector<Extents> &orders, const std::string &name);
int64_t sparsity_to_nnz(const Scope &scope, double sparsity);
Ref<View> block_to_scope_view(const Scope &scope, int32_t dtype, bool reorder);

}  // namespace spk
