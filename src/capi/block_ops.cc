#include "capi/operands.h"
#include "core/apply.h"
#include "core/extrema.h"
#include "core/keep_top.h"
#include "core/norms.h"
#include "core/rearrange.h"

using namespace spk;
using namespace spk::capi;

namespace {

// The leaves of a call that only reads them.
Buffers::Leaves read_leaves(Buffers &buffers, const Block &block, const spk_buffer *leaves,
                            int32_t nleaves, const char *name = "leaves") {
  return buffers.leaves(name, leaves, nleaves, block.all_leaves, Access::kLeaf);
}

ArrayData scores_out(Buffers &buffers, const Block &block, const spk_buffer *out) {
  return buffers.array("out", out, block.numblk, {block.score_dtype}, Access::kWrite);
}

spk_status extremes_of(spk_context *context, const spk_block *block, const spk_buffer *leaves,
                       int32_t nleaves, Reduction which, const spk_buffer *out) {
  return guarded([&] {
    required(block, "block");
    Buffers buffers;
    const auto x = read_leaves(buffers, *block, leaves, nleaves);
    const ArrayData result = scores_out(buffers, *block, out);
    buffers.check_overlap();
    Call call(context);
    extremes(call, block_grid(*block, x, {}, Visits::kOnce, call.memory()), which,
             per_block(*block, result));
  });
}

// The dtype that gathered leaves come in.
int32_t gathered_dtype(const Block &block) {
  const int32_t first = block.leaves[0].view->dtype;
  for (const Leaf &leaf : block.leaves) {
    if (leaf.view->dtype != first) return block.score_dtype;
  }
  return first;
}

void apply_mask_to(spk_context *context, const Block &block, const GivenWeights &given,
                   MaskSense sense, const spk_buffer *given_mask) {
  Buffers buffers;
  const Weights w = weights(buffers, block, given);
  const char *name = sense == MaskSense::kKeep ? "keep_mask" : "prune_mask";
  const ArrayData mask = buffers.array(name, given_mask, block.numblk, {SPK_U8}, Access::kRead);
  buffers.check_overlap();
  Call call(context);
  apply_mask(call, block_grid(block, w.x, w.into, Visits::kOnce, call.memory()), sense,
             per_block(block, mask));
}

void apply_multiplier_to(spk_context *context, const Block &block, const GivenWeights &given,
                         const spk_buffer *multiplier) {
  Buffers buffers;
  const Weights w = weights(buffers, block, given);
  const ArrayData factors = buffers.array("multiplier", multiplier, block.numblk,
                                          {SPK_F32, SPK_F64, SPK_F16, SPK_BF16}, Access::kRead);
  buffers.check_overlap();
  Call call(context);
  apply_multiplier(call, block_grid(block, w.x, w.into, Visits::kOnce, call.memory()),
                   per_block(block, factors));
}

void gather_merged(spk_context *context, const Block &block, const char *name,
                   const spk_buffer *leaves, int32_t nleaves, const spk_buffer *out) {
  Buffers buffers;
  const auto x = read_leaves(buffers, block, leaves, nleaves, name);
  const ArrayData result =
      buffers.array("out", out, block.numel, {gathered_dtype(block)}, Access::kWrite);
  buffers.check_overlap();
  Call call(context);
  gather_blocks(call, block_grid(block, x, {}, Visits::kOnce, call.memory()), result);
}

void broadcast(spk_context *context, const Block &block, const spk_buffer *values,
               const spk_buffer *out, int32_t nleaves) {
  Buffers buffers;
  const ArrayData entries =
      buffers.array("values", values, block.numblk,
                    {SPK_F32, SPK_F64, SPK_F16, SPK_BF16, SPK_U8, SPK_I64}, Access::kRead);
  const auto elements = buffers.contiguous_leaves("out", out, nleaves, block.all_leaves,
                                                  Access::kWrite, entries.dtype);
  buffers.check_overlap();
  Call call(context);
  broadcast_to_elements(call, block_grid(block, elements, {}, Visits::kOnce, call.memory()),
                        per_block(block, entries));
}

// A block spec made for one call on a view.
Ref<Block> block_over(const spk_view *view, int32_t ndim, const int64_t *shape) {
  const auto over = Ref<const View>::share(&required(view, "view"));
  return make_block(over, dims(shape, ndim, "block shape"), "block");
}

}  // namespace

extern "C" {

spk_status spk_block_norms(spk_context *context, const spk_block *block, const spk_buffer *leaves,
                           int32_t nleaves, double p, const spk_buffer *out) {
  return guarded([&] {
    required(block, "block");
    check_p(p);
    Buffers buffers;
    const auto x = read_leaves(buffers, *block, leaves, nleaves);
    const ArrayData result = scores_out(buffers, *block, out);
    buffers.check_overlap();
    Call call(context);
    norms(call, block_grid(*block, x, {}, Visits::kOnce, call.memory()), p,
          per_block(*block, result));
  });
}

spk_status spk_block_min(spk_context *context, const spk_block *block, const spk_buffer *leaves,
                         int32_t nleaves, const spk_buffer *out) {
  return extremes_of(context, block, leaves, nleaves, kMin, out);
}

spk_status spk_block_max(spk_context *context, const spk_block *block, const spk_buffer *leaves,
                         int32_t nleaves, const spk_buffer *out) {
  return extremes_of(context, block, leaves, nleaves, kMax, out);
}

spk_status spk_block_nnz(spk_context *context, const spk_block *block, const spk_buffer *leaves,
                         int32_t nleaves, double eps, const spk_buffer *out, int64_t *total) {
  return guarded([&] {
    required(block, "block");
    if (!(eps >= 0.0)) fail(SPK_INVALID_ARGUMENT, "eps: got ", eps, ", expected >= 0");
    if (!out) required(total, "total");
    Buffers buffers;
    const auto x = read_leaves(buffers, *block, leaves, nleaves);
    GridArray counts;
    if (out) {
      counts = per_block(*block,
                         buffers.array("per_block", out, block->numblk, {SPK_I64}, Access::kWrite));
    }
    buffers.check_overlap();
    Call call(context);
    const int64_t count =
        count_nonzeros(call, block_grid(*block, x, {}, Visits::kOnce, call.memory()), eps, counts);
    if (total) *total = count;
  });
}

spk_status spk_block_reduce(spk_context *context, const spk_block *block, const spk_buffer *leaves,
                            int32_t nleaves, spk_reduce_fn fn, void *user, const spk_buffer *out) {
  return guarded([&] {
    required(block, "block");
    if (!fn) fail(SPK_INVALID_ARGUMENT, "fn: got NULL");
    Buffers buffers;
    const auto x = read_leaves(buffers, *block, leaves, nleaves);
    const ArrayData result = scores_out(buffers, *block, out);
    buffers.check_overlap();
    Call call(context);
    reduce_by_callback(call, block_grid(*block, x, {}, Visits::kOnce, call.memory()),
                       "reduce callback", fn, user, per_block(*block, result));
  });
}

spk_status spk_block_apply_mask(spk_context *context, const spk_block *block,
                                const spk_buffer *leaves, const spk_buffer *into, int32_t nleaves,
                                const spk_buffer *prune_mask) {
  return guarded([&] {
    apply_mask_to(context, required(block, "block"), {leaves, into, nleaves}, MaskSense::kPrune,
                  prune_mask);
  });
}

spk_status spk_block_apply_keep_mask(spk_context *context, const spk_block *block,
                                     const spk_buffer *leaves, const spk_buffer *into,
                                     int32_t nleaves, const spk_buffer *keep_mask) {
  return guarded([&] {
    apply_mask_to(context, required(block, "block"), {leaves, into, nleaves}, MaskSense::kKeep,
                  keep_mask);
  });
}

spk_status spk_block_apply_multiplier(spk_context *context, const spk_block *block,
                                      const spk_buffer *leaves, const spk_buffer *into,
                                      int32_t nleaves, const spk_buffer *multiplier) {
  return guarded([&] {
    apply_multiplier_to(context, required(block, "block"), {leaves, into, nleaves}, multiplier);
  });
}

spk_status spk_block_hard_threshold(spk_context *context, const spk_block *block,
                                    const spk_buffer *leaves, const spk_buffer *into,
                                    int32_t nleaves, const spk_buffer *thresholds,
                                    const spk_hard_options *options, spk_report *report) {
  return guarded([&] {
    hard_threshold_by(context, block, "block", {leaves, into, nleaves}, thresholds, options,
                      report);
  });
}

spk_status spk_block_soft_threshold(spk_context *context, const spk_block *block,
                                    const spk_buffer *leaves, const spk_buffer *into,
                                    int32_t nleaves, const spk_buffer *thresholds,
                                    const spk_soft_options *options, spk_report *report) {
  return guarded([&] {
    return soft_threshold_by(context, block, "block", {leaves, into, nleaves}, thresholds, options,
                             report);
  });
}

spk_status spk_block_set_data(spk_context *context, const spk_block *block,
                              const spk_buffer *leaves, int32_t nleaves, const spk_buffer *source) {
  return guarded([&] {
    required(block, "block");
    Buffers buffers;
    const auto y = buffers.leaves("leaves", leaves, nleaves, block->all_leaves, Access::kWrite);
    const auto x = buffers.leaves("source", source, nleaves, block->all_leaves, Access::kRead,
                                  Buffers::kAnyFloat);
    buffers.check_overlap();
    Call call(context);
    set_data(call, block_grid(*block, y, {}, Visits::kOnce, call.memory()),
             block_grid(*block, x, {}, Visits::kOnce, call.memory()));
  });
}

spk_status spk_block_get_masks(spk_context *context, const spk_block *block,
                               const spk_buffer *block_mask, const spk_buffer *masks,
                               int32_t nleaves) {
  return guarded([&] {
    required(block, "block");
    Buffers buffers;
    const ArrayData keep =
        buffers.array("block_mask", block_mask, block->numblk, {SPK_U8}, Access::kRead);
    const auto elements = buffers.contiguous_leaves("masks", masks, nleaves, block->all_leaves,
                                                    Access::kWrite, SPK_U8);
    buffers.check_overlap();
    Call call(context);
    spread_masks(call, block_grid(*block, elements, {}, Visits::kOnce, call.memory()),
                 per_block(*block, keep));
  });
}

spk_status spk_block_block_view(const spk_block *block, int32_t reorder, spk_view **out) {
  return guarded([&] {
    required(out, "out");
    *out = block_view(required(block, "block"), reorder != 0).detach();
  });
}

spk_status spk_block_block_view_merged(spk_context *context, const spk_block *block,
                                       const spk_buffer *leaves, int32_t nleaves,
                                       const spk_buffer *out) {
  return guarded(
      [&] { gather_merged(context, required(block, "block"), "leaves", leaves, nleaves, out); });
}

spk_status spk_block_broadcast_block_to_element(spk_context *context, const spk_block *block,
                                                const spk_buffer *values, const spk_buffer *out,
                                                int32_t nleaves) {
  return guarded([&] { broadcast(context, required(block, "block"), values, out, nleaves); });
}

spk_status spk_block_broadcast_fake(const spk_block *block, int32_t dtype, spk_view **out) {
  return guarded([&] {
    required(out, "out");
    *out = broadcast_fake(required(block, "block"), dtype).detach();
  });
}

spk_status spk_block_expand_block_tensor(const spk_block *block, int32_t dtype, spk_view **out) {
  return guarded([&] {
    required(out, "out");
    *out = expand_block_tensor(required(block, "block"), dtype).detach();
  });
}

spk_status spk_view_apply_mask(spk_context *context, const spk_view *view, const spk_buffer *leaf,
                               const spk_buffer *into, int32_t ndim, const int64_t *shape,
                               const spk_buffer *prune_mask) {
  return guarded([&] {
    apply_mask_to(context, *block_over(view, ndim, shape), {leaf, into, 1, "leaf"},
                  MaskSense::kPrune, prune_mask);
  });
}

spk_status spk_view_apply_keep_mask(spk_context *context, const spk_view *view,
                                    const spk_buffer *leaf, const spk_buffer *into, int32_t ndim,
                                    const int64_t *shape, const spk_buffer *keep_mask) {
  return guarded([&] {
    apply_mask_to(context, *block_over(view, ndim, shape), {leaf, into, 1, "leaf"},
                  MaskSense::kKeep, keep_mask);
  });
}

spk_status spk_view_apply_multiplier(spk_context *context, const spk_view *view,
                                     const spk_buffer *leaf, const spk_buffer *into, int32_t ndim,
                                     const int64_t *shape, const spk_buffer *multiplier) {
  return guarded([&] {
    apply_multiplier_to(context, *block_over(view, ndim, shape), {leaf, into, 1, "leaf"},
                        multiplier);
  });
}

spk_status spk_view_block_view_of(const spk_view *view, int32_t ndim, const int64_t *shape,
                                  int32_t reorder, spk_view **out) {
  return guarded([&] {
    required(out, "out");
    *out = block_view(*block_over(view, ndim, shape), reorder != 0).detach();
  });
}

spk_status spk_view_block_view_merged(spk_context *context, const spk_view *view,
                                      const spk_buffer *leaf, int32_t ndim, const int64_t *shape,
                                      const spk_buffer *out) {
  return guarded(
      [&] { gather_merged(context, *block_over(view, ndim, shape), "leaf", leaf, 1, out); });
}

spk_status spk_view_broadcast_block_to_element(spk_context *context, const spk_view *view,
                                               int32_t ndim, const int64_t *shape,
                                               const spk_buffer *values, const spk_buffer *out) {
  return guarded([&] { broadcast(context, *block_over(view, ndim, shape), values, out, 1); });
}

}  // extern "C"
