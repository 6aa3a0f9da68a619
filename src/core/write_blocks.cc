#include "core/write_blocks.h"

#include <algorithm>
#include <cassert>

#include "base/dtype.h"
#include "core/nest.h"
#include "core/pieces.h"

namespace spk {
namespace {

// Are the elements of the innermost rows neighbours, but not their factors? Or do rows of blocks go on
// where their factors do not?
bool has_scattered_factors(const GridLeaf &leaf, const WritePlan &plan) {
  const NestDim &row = plan[0];
  if (row.step[0] != size_of(leaf.dtype)) return false;
  if (row.step[2] != 0) return row.step[2] != 1;
  for (int d = 1; d + 1 < plan.count(); ++d) {
    const NestDim &blocks = plan[d];
    const NestDim &next = plan[d + 1];
    const bool continues = next.step[0] == blocks.extent * blocks.step[0] &&
                           next.step[1] == blocks.extent * blocks.step[1];
    if (blocks.extent > 1 && continues && blocks.step[2] != 0 && next.step[2] != 0) return true;
  }
  return false;
}

// Factors in the order in which a plan reads them, and the plan that reads them there.
template <typename Factor>
struct InOrder {
  const Factor *factor;
  WritePlan plan;
};

template <typename Factor>
InOrder<Factor> rearrange_factors(Scratch &scratch, const Factor *factor, const WritePlan &plan) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(Factor));
  Nest copy;
  WritePlan in_order;
  int64_t count = 1;
  for (int d = 0; d < plan.count(); ++d) {
    const NestDim &dim = plan[d];
    in_order.add(dim.extent, dim.step[0], dim.step[1], dim.step[2] == 0 ? 0 : count);
    if (dim.step[2] == 0) continue;
    copy.add(dim.extent, count * kSize, dim.step[2] * kSize);
    count *= dim.extent;
  }
  copy.compile();
  copy.pad_to(1);
  in_order.compile();
  in_order.pad_to(3);
  in_order.set_start(0, plan.start(0));
  in_order.set_start(1, plan.start(1));
  Factor *own = scratch.take<Factor>(count);
  copy_nest(copy, kSize, reinterpret_cast<const std::byte *>(factor + plan.start(2)),
            reinterpret_cast<std::byte *>(own));
  return {own, in_order};
}

using WriteKernel = void (*)(const ScaleArgs &args);
WriteKernel kernel_by(const Kernels &kernels, int32_t dtype, const uint8_t * /*mask*/) {
  return kernels.mask[index_of_dtype(dtype)];
}
WriteKernel kernel_by(const Kernels &kernels, int32_t dtype, const double * /*factor*/) {
  return kernels.scale[index_of_dtype(dtype)];
}
WriteKernel kernel_by(const Kernels &kernels, int32_t dtype, const float * /*factor*/) {
  assert(dtype != SPK_F64);
  return kernels.scale_by_floats[index_of_dtype(dtype)];
}

template <typename Factor>
void apply_plan(const Kernels &kernels, const GridLeaf &leaf, const WritePlan &plan, ScaleArgs args,
                const std::byte *x, std::byte *y, const Factor *factor) {
  const WriteKernel kernel = kernel_by(kernels, leaf.dtype, factor);
  const int64_t size = size_of(leaf.dtype);
  args.past_caches = args.past_caches && leaf.past_caches;
  args.n = plan[0].extent;
  args.x_step = plan[0].step[0] / size;
  args.y_step = plan[0].step[1] / size;
  args.factor_step = plan[0].step[2];
  args.rows = plan[1].extent;
  args.x_row = plan[1].step[0];
  args.y_row = plan[1].step[1];
  args.factor_row = plan[1].step[2];
  args.groups = plan[2].extent;
  args.x_group = plan[2].step[0];
  args.y_group = plan[2].step[1];
  args.factor_group = plan[2].step[2];
  plan.for_each_outer(3, [&](const int64_t *offset) {
    args.x = x + offset[0];
    args.y = y + offset[1];
    args.factor = factor + offset[2];
    kernel(args);
  });
}

// Applies one factor a block (double, float, or a byte of a mask) to a box of blocks read from x
// and written to y. `args` comes with what does not depend on the plan.
template <typename Factor>
void apply_leaf(const Kernels &kernels, Scratch &scratch, const GridLeaf &leaf,
                const WritePlan &plan, const ScaleArgs &args, const std::byte *x, std::byte *y,
                const Factor *factor) {
  if (!has_scattered_factors(leaf, plan)) {
    return apply_plan(kernels, leaf, plan, args, x, y, factor);
  }
  const Scratch::Frame frame(scratch);
  const InOrder<Factor> in_order = rearrange_factors(scratch, factor, plan);
  apply_plan(kernels, leaf, in_order.plan, args, x, y, in_order.factor);
}

// How far ahead is asked for in a box of one leaf that has not been read before: where blocks side
// by side make rows of some length, it is these that are read next, and not the next box.
int64_t rows_soon(const WritePlan &plan, int64_t size, int64_t soon) {
  constexpr int64_t kLeastBytes = 2048;
  const NestDim &rows = plan[1];
  const int64_t row = plan[0].extent * size;
  const int64_t bytes = rows.extent * row;
  if (rows.step[0] != row || plan[2].extent == 1 || bytes < kLeastBytes) return soon;
  const int64_t rows_ahead = std::max<int64_t>((kFar + bytes / 2) / bytes, 1);
  return not_in_stream(rows_ahead * plan[2].step[0]);
}

// Bytes of a leaf from a box to the one that is visited so many later; 0 if there is none.
int64_t bytes_to_later(const Grid &grid, const GridLeaf &leaf, const Extents &low, int64_t boxes) {
  int64_t bytes = 0;
  for (int d = grid.shape.size() - 1; d >= 0; --d) {
    const int64_t along = (grid.shape[d] + grid.tile[d] - 1) / grid.tile[d];
    const int64_t now = low[d] / grid.tile[d];
    const int64_t then = now + boxes;
    bytes += (then % along - now) * grid.tile[d] * leaf.grid_x[d];
    boxes = then / along;
  }
  return boxes > 0 ? 0 : bytes;
}

// How far ahead a box is asked for.
int64_t soon_of(const Kernels &kernels, const Grid &grid, const GridLeaf &leaf, const Extents &low,
                bool is_cached) {
  if (leaf.soon == kFar) return kFar;
  if (grid.leaves.size() > 1) {
    return not_in_stream(bytes_to_later(grid, leaf, low, kernels.boxes_ahead));
  }
  return is_cached ? leaf.soon : rows_soon(leaf.write, size_of(leaf.dtype), leaf.soon);
}

template <typename Factor>
void apply_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                ScaleArgs args, const Factor *factor, bool is_cached) {
  // Backwards: what norms, if any, have read last is nearest.
  for (size_t l = grid.leaves.size(); l-- > 0;) {
    const GridLeaf &leaf = grid.leaves[l];
    const std::byte *x = leaf.x + dot(rect.low, leaf.grid_x);
    std::byte *y = leaf.y + dot(rect.low, leaf.grid_y);
    if (rect.extent == grid.tile) {
      args.soon = soon_of(kernels, grid, leaf, rect.low, is_cached);
      apply_leaf(kernels, scratch, leaf, leaf.write, args, x, y, factor);
    } else {
      const WritePlan plan =
          plan_writing(leaf, rect.extent, rect.extent.row_major(), Rect::whole(leaf.block));
      args.soon = 0;
      apply_leaf(kernels, scratch, leaf, plan, args, x, y, factor);
    }
  }
}

// How far ahead a piece is asked for: rows that follow each other, or are but one, are a stream.
int64_t ahead_of(const WritePlan &plan) {
  constexpr int64_t kRowsAhead = 4;
  const bool is_stream = plan[1].extent == 1 || plan[1].step[0] == plan[0].extent * plan[0].step[0];
  return is_stream ? kFar : not_in_stream(kRowsAhead * plan[1].step[0]);
}

template <typename Factor>
void apply_all(Call &call, const Grid &grid, const ScaleArgs &args, const Factor *factor) {
  const Extents local = grid.shape.row_major();
  Pieces(call, grid).for_each_strip([&](Scratch &scratch, const Piece &piece) {
    const auto &[leaf, part, blocks, strip] = piece;
    const WritePlan plan = plan_writing(leaf, blocks.extent, local, strip);
    ScaleArgs of_piece = args;
    of_piece.soon = ahead_of(plan);
    apply_leaf(call.kernels(), scratch, leaf, plan, of_piece,
               leaf.x + dot(blocks.low, leaf.grid_x) + dot(strip.low, leaf.block_x),
               leaf.y + dot(blocks.low, leaf.grid_y) + dot(strip.low, leaf.block_y),
               factor + dot(blocks.low, local));
  });
}

}  // namespace

void scale_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                const double *factor, bool is_cached, bool exact) {
  ScaleArgs args{};
  args.exact_product = exact;
  apply_rect(kernels, scratch, grid, rect, args, factor, is_cached);
}

void scale_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                const float *factor) {
  apply_rect(kernels, scratch, grid, rect, ScaleArgs{}, factor, false);
}

void mask_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
               const uint8_t *mask, bool is_cached, MaskSense sense) {
  ScaleArgs args{};
  args.prunes = sense == MaskSense::kPrune;
  args.past_caches = !is_cached;
  args.reads_on = is_cached;  // as this box has been
  apply_rect(kernels, scratch, grid, rect, args, mask, is_cached);
}

void scale_all(Call &call, const Grid &grid, const double *factor, bool exact) {
  ScaleArgs args{};
  args.exact_product = exact;
  apply_all(call, grid, args, factor);
}

void scale_all(Call &call, const Grid &grid, const float *factor) {
  apply_all(call, grid, ScaleArgs{}, factor);
}

void mask_all(Call &call, const Grid &grid, const uint8_t *mask, MaskSense sense) {
  ScaleArgs args{};
  args.prunes = sense == MaskSense::kPrune;
  args.past_caches = true;
  apply_all(call, grid, args, mask);
}

namespace {

// The keep bytes of some blocks, `local` steps apart, to a strip of each.
void spread(const GridLeaf &leaf, const Rect &blocks, const Rect &strip, const Extents &local,
            const uint8_t *keep) {
  Nest nest;
  for (int d = 0; d < blocks.extent.size(); ++d) {
    nest.add(blocks.extent[d], leaf.grid_y[d], local[d]);
  }
  for (int d = 0; d < leaf.block.size(); ++d) nest.add(strip.extent[d], leaf.block_y[d], 0);
  nest.compile();
  nest.pad_to(1);
  copy_nest(nest, 1, reinterpret_cast<const std::byte *>(keep),
            leaf.y + dot(blocks.low, leaf.grid_y) + dot(strip.low, leaf.block_y));
}

}  // namespace

void spread_rect(const Grid &masks, const Rect &rect, const uint8_t *keep) {
  const Extents local = rect.extent.row_major();
  for (const GridLeaf &leaf : masks.leaves) {
    spread(leaf, rect, Rect::whole(leaf.block), local, keep);
  }
}

void spread_all(Call &call, const Grid &masks, const uint8_t *keep) {
  const Extents local = masks.shape.row_major();
  Pieces(call, masks).for_each_strip([&](Scratch &, const Piece &piece) {
    spread(piece.leaf, piece.blocks, piece.strip, local, keep + dot(piece.blocks.low, local));
  });
}

}  // namespace spk
