#include "core/block.h"

#include "capi/couple.h"
#include "capi/guard.h"

using namespace spk;
using namespace spk::capi;

namespace {

const Leaf *leaf_or_null(const spk_block *block, int32_t index) {
  if (!block || index < 0 || static_cast<size_t>(index) >= block->leaves.size()) return nullptr;
  return &block->leaves[static_cast<size_t>(index)];
}

}  // namespace

extern "C" {

spk_status spk_block_create(const spk_view *view, int32_t ndim, const int64_t *shape,
                            const char *name, spk_block **out) {
  return guarded([&] {
    required(out, "out");
    const auto over = Ref<const View>::share(&required(view, "view"));
    *out = make_block(over, dims(shape, ndim, "block shape"), name_or(name, "block")).detach();
  });
}

spk_status spk_block_couple(spk_block *const *members, int32_t count, const int32_t *orders,
                            const char *name, spk_block **out) {
  return guarded([&] {
    required(out, "out");
    const auto list = member_list(members, count);
    const auto permutations = member_orders(list, orders);
    *out = couple_blocks(list, permutations, name_or(name, "coupling")).detach();
  });
}

void spk_block_retain(spk_block *block) {
  if (block) block->retain();
}

void spk_block_release(spk_block *block) {
  if (block) block->release();
}

const char *spk_block_name(const spk_block *block) {
  return block ? block->name.c_str() : nullptr;
}
int32_t spk_block_grid_ndim(const spk_block *block) {
  return block ? block->grid_shape.size() : -1;
}
const int64_t *spk_block_grid_shape(const spk_block *block) {
  return block ? block->grid_shape.data() : nullptr;
}
int64_t spk_block_numblk(const spk_block *block) {
  return block ? block->numblk : -1;
}
int64_t spk_block_numel_per_block(const spk_block *block) {
  return block ? block->numel_per_block : -1;
}
int64_t spk_block_numel(const spk_block *block) {
  return block ? block->numel : -1;
}
int32_t spk_block_score_dtype(const spk_block *block) {
  return block ? block->score_dtype : -1;
}
int32_t spk_block_leaf_count(const spk_block *block) {
  return block ? static_cast<int32_t>(block->leaves.size()) : -1;
}

const spk_view *spk_block_leaf_view(const spk_block *block, int32_t index) {
  const Leaf *leaf = leaf_or_null(block, index);
  return leaf ? leaf->view.get() : nullptr;
}

const int64_t *spk_block_leaf_shape(const spk_block *block, int32_t index) {
  const Leaf *leaf = leaf_or_null(block, index);
  return leaf ? leaf->block_shape.data() : nullptr;
}

spk_status spk_block_leaf(const spk_block *block, int32_t index, spk_block **out) {
  return guarded([&] {
    required(block, "block");
    required(out, "out");
    if (!leaf_or_null(block, index)) {
      fail(SPK_OUT_OF_BOUNDS, "index: got ", index, ", expected 0 to ", block->leaves.size() - 1);
    }
    *out = block_of_leaf(*block, index).detach();
  });
}

}  // extern "C"
