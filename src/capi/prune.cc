// One-call conveniences: handles made for the call, and the same operations.
#include "capi/selection.h"

using namespace spk;
using namespace spk::capi;

namespace {

Ref<Scope> scope_over(const Ref<const View> &view, const Extents &shape) {
  Ref<Block> block = make_block(view, {}, "block");
  return make_scope(Ref<const Block>::adopt(block.detach()), shape, "scope");
}

}  // namespace

extern "C" {

spk_status spk_prune_nm(spk_context *context, const spk_view *view, const spk_buffer *weights,
                        const spk_buffer *into, int32_t axis, int64_t n, int64_t m,
                        spk_report *report) {
  return guarded([&] {
    const auto over = Ref<const View>::share(&required(view, "view"));
    const int ndim = over->shape.size();
    if (axis < -ndim || axis >= ndim) {
      fail(SPK_INVALID_ARGUMENT, "axis: got ", axis, ", expected ", -ndim, " to ", ndim - 1);
    }
    const int at = axis < 0 ? axis + ndim : axis;
    if (m < 1) fail(SPK_INVALID_ARGUMENT, "m: got ", m, ", expected >= 1");
    if (n < 0 || n > m) fail(SPK_INVALID_ARGUMENT, "n: got ", n, ", expected 0 to m = ", m);
    if (over->shape[at] % m != 0) {
      fail(SPK_SHAPE_MISMATCH, "m: axis ", at, ": size ", over->shape[at], " is not divisible by ",
           m);
    }
    Extents shape(ndim, 1);
    shape[at] = m;
    keep_top_by(context, *scope_over(over, shape), {weights, into, 1, "weights"}, {&n, 1}, nullptr,
                report);
  });
}

spk_status spk_prune_unstructured(spk_context *context, const spk_view *view,
                                  const spk_buffer *weights, const spk_buffer *into,
                                  double sparsity, spk_report *report) {
  return guarded([&] {
    const auto over = Ref<const View>::share(&required(view, "view"));
    const Ref<Scope> scope = scope_over(over, {});
    const int64_t kept = sparsity_to_nnz(*scope, sparsity);
    keep_top_by(context, *scope, {weights, into, 1, "weights"}, {&kept, 1}, nullptr, report);
  });
}

spk_status spk_soft_threshold_blocks(spk_context *context, const spk_view *view,
                                     const spk_buffer *weights, const spk_buffer *into,
                                     int32_t ndim, const int64_t *shape, double threshold,
                                     spk_report *report) {
  return guarded([&] {
    const auto over = Ref<const View>::share(&required(view, "view"));
    const Ref<Block> block = make_block(over, dims(shape, ndim, "block shape"), "block");
    if (std::isnan(threshold)) {
      fail(SPK_INVALID_ARGUMENT, "threshold: got NaN, expected a number");
    }
    if (threshold < 0.0) {
      fail(SPK_INVALID_ARGUMENT, "threshold: got ", threshold, ", expected >= 0");
    }
    const spk_buffer thresholds = {&threshold, 1, SPK_F64, SPK_LAYOUT_CONTIGUOUS, nullptr};
    return soft_threshold_by<Block>(context, block.get(), "block", {weights, into, 1, "weights"},
                                    &thresholds, nullptr, report);
  });
}

}  // extern "C"
