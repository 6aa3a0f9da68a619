#include "core/reduce.h"

#include <algorithm>
#include <cassert>

#include "base/dtype.h"
#include "core/nest.h"
#include "core/pieces.h"

namespace spk {

ReduceArgs reduce_args(const ReducePlan &plan) {
  const NestDim &inner = plan.blocks[0];
  const NestDim &outer = plan.blocks[1];
  ReduceArgs args{};
  args.row = plan.row;
  args.rows = plan.rows;
  args.n = plan.n;
  args.step = plan.step;
  args.inner = {inner.extent, inner.step[0], 1};
  args.outer = {outer.extent, outer.step[0], outer.step[1]};
  return args;
}

bool has_dense_results(const ReducePlan &plan) {
  return plan.blocks[0].extent == 1 || plan.blocks[0].step[1] == 1;
}

namespace {

void clear_sums(Reduction reduction, int64_t count, double *sum, double *error) {
  std::fill_n(sum, count, identity_of(reduction));
  if (is_compensated(reduction)) std::fill_n(error, count, 0.0);
}

// One leaf's share of a reduction over a box of blocks that begins at block `low`.
class LeafReduction {
 public:
  // `is_tile`: is it a box of Grid::tile extents, which the next one follows?
  LeafReduction(const Kernels &kernels, Scratch &scratch, const GridLeaf &leaf,
                const ReducePlan &plan, const Extents &low, bool is_tile, Reduction reduction,
                const ReduceOptions &options)
      : scratch_(scratch),
        reduction_(reduction),
        scale_(options.scale),
        plan_(plan),
        nest_(plan.blocks),
        args_(reduce_args(plan)) {
    const auto dtype = index_of_dtype(leaf.dtype);
    kernel_ = leaf.along ? kernels.reduce_along[dtype][reduction]
                         : kernels.reduce_across[dtype][reduction];
    origin_ = leaf.x + dot(low, leaf.grid_x);
    args_.eps = options.eps;
    args_.ahead = is_tile ? leaf.ahead : 0;
    args_.soon = is_tile ? leaf.soon : 0;
    args_.from_memory = leaf.past_caches;
  }

  // Do results of neighbours belong side by side, as the kernel writes them?
  bool is_dense() const { return has_dense_results(plan_); }

  // Writes results, or their roots, to their places.
  void write(double *sum, double *error, bool roots) {
    args_.roots = roots;
    nest_.for_each_outer(2, [&](const int64_t *offset) {
      const int64_t at = offset[1];
      run(offset[0], sum + at, error ? error + at : nullptr, scale_ ? scale_ + at : nullptr);
    });
  }

  // The same, rounded to floats.
  void write_floats(float *out, bool roots, bool past_caches) {
    args_.roots = roots;
    args_.past_caches = past_caches;
    nest_.for_each_outer(2, [&](const int64_t *offset) {
      args_.floats = out + offset[1];
      run(offset[0], nullptr, nullptr, nullptr);
    });
  }

  // Joins results with what is there.
  void join(double *sum, double *error) {
    const int64_t inner = nest_[0].extent;
    const int64_t outer = nest_[1].extent;
    args_.outer.out = inner;
    double *sums = scratch_.take<double>(inner * outer);
    double *errors = error ? scratch_.take<double>(inner * outer) : nullptr;
    double *scales = scale_ ? scratch_.take<double>(inner * outer) : nullptr;
    nest_.for_each_outer(2, [&](const int64_t *offset) {
      const int64_t at = offset[1];
      if (scales) take_scales(at, scales);
      run(offset[0], sums, errors, scales);
      for (int64_t o = 0; o < outer; ++o) {
        const int64_t to = at + o * place(nest_[1]);
        combine(reduction_, inner, sums + o * inner, errors ? errors + o * inner : nullptr,
                sum + to, error ? error + to : nullptr, place(nest_[0]));
      }
    });
  }

 private:
  // Local entries between neighbours along a dimension.
  static int64_t place(const NestDim &dim) { return dim.step[1]; }

  void run(int64_t offset, double *sum, double *error, const double *scale) {
    args_.x = origin_ + offset;
    args_.sum = sum;
    args_.error = error;
    args_.scale = scale;
    kernel_(args_);
  }

  void take_scales(int64_t at, double *scales) const {
    for (int64_t o = 0; o < nest_[1].extent; ++o) {
      for (int64_t i = 0; i < nest_[0].extent; ++i) {
        *scales++ = scale_[at + o * place(nest_[1]) + i * place(nest_[0])];
      }
    }
  }

  Scratch &scratch_;
  Reduction reduction_;
  const double *scale_;
  const ReducePlan &plan_;
  const Nest &nest_;
  void (*kernel_)(const ReduceArgs &args);
  const std::byte *origin_;
  ReduceArgs args_;
};

}  // namespace

void reduce_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                 Reduction reduction, const ReduceOptions &options, double *sum, double *error) {
  const Extents local = rect.extent.row_major();
  const bool one_share = grid.leaves.size() == 1 && !grid.is_deep();
  bool rooted = !options.roots;
  bool first = true;
  // Adds what a plan reduces; the first share is written, where it can be.
  const auto add = [&](const GridLeaf &leaf, const ReducePlan &plan, bool is_tile) {
    const Scratch::Frame frame(scratch);
    LeafReduction work(kernels, scratch, leaf, plan, rect.low, is_tile, reduction, options);
    if (first && work.is_dense()) {
      work.write(sum, error, options.roots && one_share);
      rooted |= one_share;
    } else {
      if (first) clear_sums(reduction, rect.count(), sum, error);
      work.join(sum, error);
    }
    first = false;
  };
  for (const GridLeaf &leaf : grid.leaves) {
    if (rect.extent == grid.tile) {
      add(leaf, leaf.reduce, true);
      continue;
    }
    // Deep blocks are summed part by part, here as in reduce_deep: a block has one norm.
    const Tiling parts = grid.is_deep() ? parts_of(leaf) : Tiling(leaf.block);
    for (int64_t part = 0; part < parts.count(); ++part) {
      const Scratch::Frame frame(scratch);
      ScratchMemory memory(&scratch);
      add(leaf, plan_reduction(leaf, rect.extent, local, parts[part], &memory), false);
    }
  }
  if (!rooted) kernels.roots(sum, rect.count());
}

bool reduce_to_floats(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                      Reduction reduction, bool roots, bool past_caches, float *out) {
  if (grid.leaves.size() != 1 || grid.is_deep() || !(rect.extent == grid.tile)) return false;
  const GridLeaf &leaf = grid.leaves[0];
  const ReducePlan &plan = leaf.reduce;
  const bool at_once = leaf.along || plan.rows <= kRowsAtOnce;
  if (!at_once || !has_dense_results(plan)) return false;
  // Short runs would write parts of lines.
  const NestDim &inner = plan.blocks[0];
  const bool long_runs = inner.extent >= kLongRun || plan.blocks[1].step[1] == inner.extent;
  LeafReduction work(kernels, scratch, leaf, plan, rect.low, true, reduction, {});
  work.write_floats(out, roots, past_caches && long_runs);
  return true;
}

void reduce_deep(Call &call, const Grid &grid, Reduction reduction, const ReduceOptions &options,
                 double *sum, double *error) {
  const int64_t numblk = grid.numblk();
  const Extents local = grid.shape.row_major();
  const Scratch::Frame frame(call.scratch());
  const Pieces pieces(call, grid);
  double *sums = call.scratch().take<double>(pieces.parts() * numblk);
  double *errors = error ? call.scratch().take<double>(pieces.parts() * numblk) : nullptr;
  clear_sums(reduction, pieces.parts() * numblk, sums, errors);
  pieces.for_each_part([&](Scratch &scratch, const Piece &piece) {
    const auto &[leaf, part, blocks, strip] = piece;
    const int64_t first = dot(blocks.low, local);
    ReduceOptions shifted = options;
    if (options.scale) shifted.scale += first;
    ScratchMemory memory(&scratch);
    const ReducePlan plan = plan_reduction(leaf, blocks.extent, local, strip, &memory);
    LeafReduction work(call.kernels(), scratch, leaf, plan, blocks.low, false, reduction, shifted);
    const int64_t at = part * numblk + first;
    double *error_at = errors ? errors + at : nullptr;
    if (work.is_dense()) {
      work.write(sums + at, error_at, false);
    } else {
      work.join(sums + at, error_at);
    }
  });
  clear_sums(reduction, numblk, sum, error);
  for (int64_t part = 0; part < pieces.parts(); ++part) {
    combine(reduction, numblk, sums + part * numblk, errors ? errors + part * numblk : nullptr, sum,
            error, 1);
  }
  if (options.roots) call.kernels().roots(sum, numblk);
}

namespace {

// A coupling's dimensions in an order of its own for reading one leaf: outermost first, as it lies in
// memory.
struct LeafOrder {
  GridLeaf leaf;
  Extents shape;
  Extents local;  // steps of results, which lie in the coupling's order

  LeafOrder(const Grid &grid, size_t number) : leaf(grid.leaves[number]) {
    const MemoryOrder order(leaf);
    shape = order.of(grid.shape);
    local = order.of(grid.shape.row_major());
    leaf.grid_x = order.of(leaf.grid_x);
  }

  // Neighbours in memory may have results far apart. Boxes reach over a cache line of results, which
  // is then near while they are all joined.
  Tiling boxes() const {
    constexpr int64_t kLineOfResults = 8;
    constexpr int64_t kManyElements = int64_t{1} << 10;  // of a block: its result costs nothing
    constexpr int64_t kLeastWeight = 32;  // sums of smaller blocks would be much memory
    const int64_t numel = std::max(leaf.numel(), kLeastWeight);
    const int64_t row = streamed_elements(shape.product() * numel);
    if (numel >= kManyElements) return Tiling(shape, leaf.grid_x, numel, row);
    Extents least(shape.size(), 1);
    for (int d = 0; d < shape.size(); ++d) {
      if (local[d] == 1) least[d] = std::min(kLineOfResults, shape[d]);
    }
    return Tiling(shape, leaf.grid_x, numel, row * kLineOfResults, least);
  }
};

}  // namespace

void reduce_by_leaf(Call &call, const Grid &grid, Reduction reduction, double *sum) {
  assert(!grid.is_deep() && !is_compensated(reduction));
  clear_sums(reduction, grid.numblk(), sum, nullptr);
  for (size_t l = 0; l < grid.leaves.size(); ++l) {
    const Scratch::Frame frame(call.scratch());
    ScratchMemory plans(&call.scratch());
    LeafOrder in_order(grid, l);
    GridLeaf &leaf = in_order.leaf;
    const Extents &local = in_order.local;
    const Tiling boxes = in_order.boxes();
    leaf.plan_boxes(boxes, local, &plans);
    call.for_each(boxes.count(), [&](Scratch &scratch, int64_t i) {
      const Rect box = boxes[i];
      const bool is_whole = box.extent == boxes.extent();
      ScratchMemory memory(&scratch);
      ReducePlan rest;
      if (!is_whole) {
        rest = plan_reduction(leaf, box.extent, local, Rect::whole(leaf.block), &memory);
      }
      LeafReduction work(call.kernels(), scratch, leaf, is_whole ? leaf.reduce : rest, box.low,
                         is_whole, reduction, {});
      double *to = sum + dot(box.low, local);
      if (l == 0 && work.is_dense()) {
        work.write(to, nullptr, false);
      } else {
        work.join(to, nullptr);
      }
    });
  }
}

}  // namespace spk
