#include "core/scope.h"

#include "base/error.h"
#include "base/rate.h"

namespace spk {
namespace {

// Positions, leaves and counts that follow from the members, in order.
void finish(Scope *scope) {
  scope->numscope = checked_product("scope grid", scope->grid_shape);
  scope->score_dtype = SPK_F32;
  for (ScopeMember &member : scope->members) {
    member.numblk = member.shape.product();
    member.first_position = scope->numblk_per_scope;
    member.first_leaf = static_cast<int>(scope->all_leaves.size());
    scope->numblk_per_scope = checked_sum("scope numblk", scope->numblk_per_scope, member.numblk);
    scope->numel_per_scope =
        checked_sum("scope numel", scope->numel_per_scope,
                    checked_product("scope numel", {member.numblk, member.block->numel_per_block}));
    for (const Leaf &leaf : member.block->leaves) scope->all_leaves.push_back(&leaf);
    if (member.block->score_dtype == SPK_F64) scope->score_dtype = SPK_F64;
  }
  checked_product("scope blocks", {scope->numscope, scope->numblk_per_scope});
}

}  // namespace

Ref<Scope> make_scope(const Ref<const Block> &block, const Extents &shape,
                      const std::string &name) {
  const int ndim = block->grid_shape.size();
  if (shape.size() > ndim) {
    fail(SPK_SHAPE_MISMATCH, "scope shape: got ", shape.size(), " dims ", shape,
         ", expected at most ", ndim, " to cut the block grid ", block->grid_shape);
  }
  Extents padded = shape;
  while (padded.size() < ndim) padded.push_back(-1);
  ScopeMember member;
  member.block = block;
  member.shape = cut("scope shape", block->grid_shape, padded);
  member.order = Extents::identity(ndim);
  member.name = name;
  auto scope = Ref<Scope>::adopt(new Scope);
  scope->name = name;
  for (int d = 0; d < ndim; ++d) {
    scope->grid_shape.push_back(block->grid_shape[d] / member.shape[d]);
  }
  scope->members.push_back(std::move(member));
  finish(scope.get());
  return scope;
}

Ref<Scope> couple_scopes(const std::vector<const Scope *> &members,
                         const std::vector<Extents> &orders, const std::string &name) {
  std::vector<Extents> grids;
  std::vector<std::string> names;
  for (const Scope *member : members) {
    grids.push_back(member->grid_shape);
    names.push_back(member->name);
  }
  auto scope = Ref<Scope>::adopt(new Scope);
  scope->name = name;
  scope->grid_shape = coupled_grid("scope coupling", grids, names, orders);
  for (size_t i = 0; i < members.size(); ++i) {
    for (ScopeMember member : members[i]->members) {
      member.order = compose(member.order, orders[i]);
      scope->members.push_back(std::move(member));
    }
  }
  finish(scope.get());
  return scope;
}

int64_t sparsity_to_nnz(const Scope &scope, double sparsity) {
  if (!(sparsity >= 0.0 && sparsity <= 1.0)) {
    fail(SPK_INVALID_ARGUMENT, "sparsity: got ", sparsity, ", expected 0 to 1");
  }
  return scope.numblk_per_scope - floor_of_rate(sparsity, scope.numblk_per_scope);
}

Ref<View> block_to_scope_view(const Scope &scope, int32_t dtype, bool reorder) {
  if (scope.members.size() != 1) {
    fail(SPK_COUPLING, "scope: '", shortened(scope.name), "' is a coupling of ",
         scope.members.size(),
         " members in different buffers; expected a scope spec (use the merged form)");
  }
  const ScopeMember &member = scope.members[0];
  const Extents stride = member.block->grid_shape.row_major();
  Extents grid_stride;
  Extents inner;
  Extents inner_stride;
  for (int64_t axis : member.order) {
    const int a = static_cast<int>(axis);
    grid_stride.push_back(stride[a] * member.shape[a]);
    inner.push_back(member.shape[a]);
    inner_stride.push_back(stride[a]);
  }
  return split_view(dtype, scope.grid_shape, grid_stride, inner, inner_stride, 0, reorder);
}

}  // namespace spk
