#include "core/scope.h"

#include "capi/couple.h"
#include "capi/guard.h"

using namespace spk;
using namespace spk::capi;

namespace {

const ScopeMember *member_or_null(const spk_scope *scope, int32_t index) {
  if (!scope || index < 0 || static_cast<size_t>(index) >= scope->members.size()) return nullptr;
  return &scope->members[static_cast<size_t>(index)];
}

}  // namespace

extern "C" {

spk_status spk_scope_create(const spk_block *block, int32_t ndim, const int64_t *shape,
                            const char *name, spk_scope **out) {
  return guarded([&] {
    required(out, "out");
    const auto over = Ref<const Block>::share(&required(block, "block"));
    *out = make_scope(over, dims(shape, ndim, "scope shape"), name_or(name, "scope")).detach();
  });
}

spk_status spk_scope_couple(spk_scope *const *members, int32_t count, const int32_t *orders,
                            const char *name, spk_scope **out) {
  return guarded([&] {
    required(out, "out");
    const auto list = member_list(members, count);
    const auto permutations = member_orders(list, orders);
    *out = couple_scopes(list, permutations, name_or(name, "coupling")).detach();
  });
}

void spk_scope_retain(spk_scope *scope) {
  if (scope) scope->retain();
}

void spk_scope_release(spk_scope *scope) {
  if (scope) scope->release();
}

const char *spk_scope_name(const spk_scope *scope) {
  return scope ? scope->name.c_str() : nullptr;
}
int32_t spk_scope_grid_ndim(const spk_scope *scope) {
  return scope ? scope->grid_shape.size() : -1;
}
const int64_t *spk_scope_grid_shape(const spk_scope *scope) {
  return scope ? scope->grid_shape.data() : nullptr;
}
int64_t spk_scope_numscope(const spk_scope *scope) {
  return scope ? scope->numscope : -1;
}
int64_t spk_scope_numblk_per_scope(const spk_scope *scope) {
  return scope ? scope->numblk_per_scope : -1;
}
int64_t spk_scope_numel_per_scope(const spk_scope *scope) {
  return scope ? scope->numel_per_scope : -1;
}
int32_t spk_scope_score_dtype(const spk_scope *scope) {
  return scope ? scope->score_dtype : -1;
}
int32_t spk_scope_member_count(const spk_scope *scope) {
  return scope ? static_cast<int32_t>(scope->members.size()) : -1;
}

const spk_block *spk_scope_member_block(const spk_scope *scope, int32_t index) {
  const ScopeMember *member = member_or_null(scope, index);
  return member ? member->block.get() : nullptr;
}

int64_t spk_scope_member_numblk(const spk_scope *scope, int32_t index) {
  const ScopeMember *member = member_or_null(scope, index);
  return member ? member->numblk : -1;
}

int32_t spk_scope_leaf_count(const spk_scope *scope) {
  return scope ? static_cast<int32_t>(scope->all_leaves.size()) : -1;
}

const spk_view *spk_scope_leaf_view(const spk_scope *scope, int32_t index) {
  if (!scope || index < 0 || static_cast<size_t>(index) >= scope->all_leaves.size()) return nullptr;
  return scope->all_leaves[static_cast<size_t>(index)]->view.get();
}

spk_status spk_scope_sparsity_to_nnz(const spk_scope *scope, double sparsity, int64_t *nnz) {
  return guarded([&] {
    required(nnz, "nnz");
    *nnz = sparsity_to_nnz(required(scope, "scope"), sparsity);
  });
}

}  // extern "C"
