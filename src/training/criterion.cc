#include "training/criterion.h"

#include "base/error.h"
#include "core/extrema.h"

namespace spk {
namespace {

// Kernels as blocks: one entry along the first two dimensions, all of the others.
Ref<Block> kernel_blocks(const MaskedLayer &layer) {
  Extents shape(layer.rank(), 0);
  for (int d = 0; d < std::min(layer.rank(), 2); ++d) shape[d] = 1;
  return make_block(layer.view, shape, "kernel");
}

// `out` is one after the other.
void means(Call &call, const Grid &grid, const GridArray &out) {
  for_each_reduced(call, grid, kSumSigned, 0.0, [&](const Rect &rect, const double *sums) {
    store(call.kernels(), rect, sums, out);
  });
  auto *means = reinterpret_cast<double *>(out.data);
  const auto count = static_cast<double>(grid.numel_per_block);
  for (int64_t i = 0; i < grid.numblk(); ++i) means[i] /= count;
}

}  // namespace

void kernel_criteria(Call &call, const MaskedLayer &layer, const LeafData &values,
                     const Criterion &criterion, double *out) {
  const Scratch::Frame frame(call.scratch());
  const Ref<Block> block = kernel_blocks(layer);
  const Grid grid =
      block_grid(*block, LeafSpan({values}, call.memory()), {}, Visits::kOnce, call.memory());
  const GridArray result = per_block(*block, {reinterpret_cast<std::byte *>(out), SPK_F64});
  switch (criterion.kind) {
    case CriterionKind::kMean:
      return means(call, grid, result);
    case CriterionKind::kMax:
      return extremes(call, grid, kMax, result);
    case CriterionKind::kMin:
      return extremes(call, grid, kMin, result);
    case CriterionKind::kCallback:
      return reduce_by_callback(call, grid, cat(criterion.name, " of \"", layer.name, "\""),
                                criterion.fn, criterion.user, result);
  }
}

}  // namespace spk
