#include "core/tile.h"

#include <algorithm>
#include <optional>

#include "base/dtype.h"
#include "core/nest.h"

namespace spk {
namespace {

constexpr auto kDouble = static_cast<int64_t>(sizeof(double));

// Visits a box of a grid array in runs of constant step: fn(entry in the array, first local entry,
// count, bytes between entries).
template <typename Fn>
void for_each_run(const Rect &rect, const GridArray &array, Fn &&fn) {
  const int64_t size = array.dtype == 0 ? 1 : size_of(array.dtype);
  Extents rows = rect.extent;
  int64_t count = 1;
  int64_t step = size;
  for (int d = rows.size() - 1; d >= 0; --d) {
    if (rows[d] == 1) continue;
    if (count > 1 && array.step[d] != count * step) break;
    if (count == 1) step = array.step[d];
    count *= rows[d];
    rows[d] = 1;
  }
  std::byte *first = array.data + dot(rect.low, array.step);
  for_each_index(rows, [&](int64_t row, const Extents &index) {
    fn(first + dot(index, array.step), row * count, count, step);
  });
}

}  // namespace

GridArray elements_of(const GridLeaf &leaf) {
  return {const_cast<std::byte *>(leaf.x), leaf.dtype, leaf.grid_x};
}

void load(const Kernels &kernels, const Rect &rect, const GridArray &array, double *local) {
  const auto convert = kernels.to_double[index_of_dtype(array.dtype)];
  const int64_t size = size_of(array.dtype);
  for_each_run(rect, array, [&](const std::byte *from, int64_t to, int64_t count, int64_t step) {
    // One entry for all is converted once.
    const int64_t distinct = step == 0 ? 1 : count;
    convert(from, distinct, step / size, local + to, 1);
    if (distinct < count) std::fill_n(local + to + 1, count - 1, local[to]);
  });
}

void store(const Kernels &kernels, const Rect &rect, const double *local, const GridArray &array) {
  const auto convert = kernels.from_double[index_of_dtype(array.dtype)];
  const int64_t size = size_of(array.dtype);
  for_each_run(rect, array, [&](std::byte *to, int64_t from, int64_t count, int64_t step) {
    convert(local + from, count, 1, to, step / size);
  });
}

void load_mask(const Rect &rect, const GridArray &array, uint8_t *local) {
  for_each_run(rect, array, [&](const std::byte *from, int64_t to, int64_t count, int64_t step) {
    for (int64_t i = 0; i < count; ++i) local[to + i] = from[i * step] != std::byte{0};
  });
}

namespace {

// Are entries `size` bytes each, row-major and without gaps?
bool is_dense(const Extents &shape, const Extents &step, int64_t size) {
  for (int d = shape.size() - 1; d >= 0; --d) {
    if (shape[d] > 1 && step[d] != size) return false;
    size *= shape[d];
  }
  return true;
}

}  // namespace

bool lie_alike(const Grid &grid, const GridArray &array) {
  if (grid.numel_per_block != 1) return false;
  const GridLeaf &leaf = grid.leaves[0];
  const int64_t size = size_of(leaf.dtype);
  return is_dense(grid.shape, leaf.grid_x, size) && is_dense(grid.shape, leaf.grid_y, size) &&
         is_dense(grid.shape, array.step, size_of(array.dtype));
}

// --- reductions -----------------------------------------------------------------------------

namespace {

void clear_sums(Reduction reduction, int64_t count, double *sum, double *error) {
  std::fill_n(sum, count, identity_of(reduction));
  if (is_compensated(reduction)) std::fill_n(error, count, 0.0);
}

// One leaf's share of a reduction over a box of blocks that begins at block `low`.
class LeafReduction {
 public:
  LeafReduction(const Kernels &kernels, Scratch &scratch, const GridLeaf &leaf,
                const ReducePlan &plan, const Extents &low, Reduction reduction,
                const ReduceOptions &options)
      : scratch_(scratch), reduction_(reduction), scale_(options.scale), nest_(plan.blocks) {
    const auto dtype = index_of_dtype(leaf.dtype);
    kernel_ = leaf.along ? kernels.reduce_along[dtype][reduction]
                         : kernels.reduce_across[dtype][reduction];
    origin_ = leaf.x + dot(low, leaf.grid_x);
    args_.row = plan.row;
    args_.rows = plan.rows;
    args_.n = plan.n;
    args_.step = plan.step;
    args_.inner = {nest_[0].extent, nest_[0].step[0], 1};
    args_.outer = {nest_[1].extent, nest_[1].step[0], place(nest_[1])};
    args_.eps = options.eps;
  }

  // Do results of neighbours belong side by side, as the kernel writes them?
  bool is_dense() const { return nest_[0].extent == 1 || place(nest_[0]) == 1; }

  // Writes results to their places.
  void write(double *sum, double *error) {
    nest_.for_each_outer(2, [&](const int64_t *offset) {
      const int64_t at = offset[1];
      run(offset[0], sum + at, error ? error + at : nullptr, scale_ ? scale_ + at : nullptr);
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
  const Nest &nest_;
  void (*kernel_)(const ReduceArgs &args);
  const std::byte *origin_;
  ReduceArgs args_{};
};

}  // namespace

void reduce_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                 Reduction reduction, const ReduceOptions &options, double *sum, double *error) {
  bool first = true;
  for (const GridLeaf &leaf : grid.leaves) {
    const Scratch::Frame frame(scratch);
    ScratchMemory memory(&scratch);
    std::optional<ReducePlan> made;
    if (!(rect.extent == grid.tile)) {
      made = plan_reduction(leaf, rect.extent, Rect::whole(leaf.block), &memory);
    }
    LeafReduction work(kernels, scratch, leaf, made ? *made : leaf.reduce, rect.low, reduction,
                       options);
    if (first && work.is_dense()) {
      work.write(sum, error);
    } else {
      if (first) clear_sums(reduction, rect.count(), sum, error);
      work.join(sum, error);
    }
    first = false;
  }
}

Tiling parts_of(const GridLeaf &leaf) {
  return Tiling(leaf.block, leaf.block_x, 1, kPartElements);
}

void reduce_large(Call &call, const Grid &grid, Reduction reduction, const ReduceOptions &options,
                  double *sum, double *error) {
  const int64_t numblk = grid.numblk();
  clear_sums(reduction, numblk, sum, error);
  for (const GridLeaf &leaf : grid.leaves) {
    const Tiling parts = parts_of(leaf);
    Scratch::Frame frame(call.scratch());
    double *sums = call.scratch().take<double>(numblk * parts.count());
    double *errors = call.scratch().take<double>(numblk * parts.count());
    call.for_each(numblk * parts.count(), [&](Scratch &scratch, int64_t i) {
      const int64_t number = i / parts.count();
      const Extents block = index_at(grid.shape, number);
      ReduceOptions one = options;
      if (options.scale) one.scale = options.scale + number;
      ScratchMemory memory(&scratch);
      const ReducePlan plan =
          plan_reduction(leaf, Extents(block.size(), 1), parts[i % parts.count()], &memory);
      LeafReduction(call.kernels(), scratch, leaf, plan, block, reduction, one)
          .write(sums + i, errors + i);
    });
    for (int64_t number = 0; number < numblk; ++number) {
      // All parts go to one accumulator, in order: a step of 0.
      const int64_t first = number * parts.count();
      combine(reduction, parts.count(), sums + first, errors + first, sum + number,
              error ? error + number : nullptr, 0);
    }
  }
}

// --- scaling and masking --------------------------------------------------------------------

namespace {

// Applies one factor a block (double, or a keep byte) to a box of blocks read from x, written to y.
template <typename Factor>
void apply_leaf(const Kernels &kernels, const GridLeaf &leaf, const WritePlan &plan,
                const std::byte *x, std::byte *y, const Factor *factor, bool exact) {
  const auto dtype = index_of_dtype(leaf.dtype);
  const auto kernel = sizeof(Factor) == 1 ? kernels.mask[dtype] : kernels.scale[dtype];
  const int64_t size = size_of(leaf.dtype);
  ScaleArgs args{};
  args.exact_product = exact;
  args.ahead = leaf.ahead;
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

template <typename Factor>
void apply_rect(const Kernels &kernels, const Grid &grid, const Rect &rect, const Factor *factor,
                bool exact) {
  for (const GridLeaf &leaf : grid.leaves) {
    const std::byte *x = leaf.x + dot(rect.low, leaf.grid_x);
    std::byte *y = leaf.y + dot(rect.low, leaf.grid_y);
    if (rect.extent == grid.tile) {
      apply_leaf(kernels, leaf, leaf.write, x, y, factor, exact);
    } else {
      const WritePlan plan = plan_writing(leaf, rect.extent, Rect::whole(leaf.block));
      apply_leaf(kernels, leaf, plan, x, y, factor, exact);
    }
  }
}

// Every block is one group of the loop, so that a cancelled call leaves none half done.
template <typename Factor>
void apply_large(Call &call, const Grid &grid, const Factor *factor, bool exact) {
  int64_t parts_per_block = 0;
  for (const GridLeaf &leaf : grid.leaves) parts_per_block += parts_of(leaf).count();
  call.for_each(
      grid.numblk() * parts_per_block,
      [&](Scratch &, int64_t i) {
        const int64_t number = i / parts_per_block;
        int64_t part = i % parts_per_block;
        size_t l = 0;
        while (part >= parts_of(grid.leaves[l]).count()) part -= parts_of(grid.leaves[l++]).count();
        const GridLeaf &leaf = grid.leaves[l];
        const Extents block = index_at(grid.shape, number);
        const Rect rect = parts_of(leaf)[part];
        const WritePlan plan = plan_writing(leaf, Extents(block.size(), 1), rect);
        apply_leaf(call.kernels(), leaf, plan,
                   leaf.x + dot(block, leaf.grid_x) + dot(rect.low, leaf.block_x),
                   leaf.y + dot(block, leaf.grid_y) + dot(rect.low, leaf.block_y), factor + number,
                   exact);
      },
      parts_per_block);
}

}  // namespace

void scale_rect(const Kernels &kernels, const Grid &grid, const Rect &rect, const double *factor,
                bool exact) {
  apply_rect(kernels, grid, rect, factor, exact);
}
void mask_rect(const Kernels &kernels, const Grid &grid, const Rect &rect, const uint8_t *keep) {
  apply_rect(kernels, grid, rect, keep, false);
}
void scale_large(Call &call, const Grid &grid, const double *factor, bool exact) {
  apply_large(call, grid, factor, exact);
}
void mask_large(Call &call, const Grid &grid, const uint8_t *keep) {
  apply_large(call, grid, keep, false);
}

void spread_rect(const Grid &masks, const Rect &rect, const uint8_t *keep) {
  const Extents local = rect.extent.row_major();
  for (const GridLeaf &leaf : masks.leaves) {
    Nest nest;
    for (int d = 0; d < rect.extent.size(); ++d) {
      nest.add(rect.extent[d], leaf.grid_y[d], local[d]);
    }
    for (int d = 0; d < leaf.block.size(); ++d) nest.add(leaf.block[d], leaf.block_y[d], 0);
    nest.compile();
    nest.pad_to(1);
    copy_nest(nest, 1, reinterpret_cast<const std::byte *>(keep),
              leaf.y + dot(rect.low, leaf.grid_y));
  }
}

// --- gathering ------------------------------------------------------------------------------

namespace {

// Operand 0 is the dense row-major part, operand 1 the leaf's memory.
Nest part_nest(const GridLeaf &leaf, const Rect &part, const Extents &step) {
  const Extents dense = part.extent.row_major();
  Nest nest;
  for (int d = 0; d < leaf.block.size(); ++d) {
    nest.add(part.extent[d], dense[d] * kDouble, step[d]);
  }
  nest.compile();
  nest.pad_to(1);
  return nest;
}

}  // namespace

void gather(const Kernels &kernels, const GridLeaf &leaf, const Extents &block, const Rect &part,
            double *out) {
  const Nest nest = part_nest(leaf, part, leaf.block_x);
  const std::byte *x = leaf.x + dot(block, leaf.grid_x) + dot(part.low, leaf.block_x);
  const auto convert = kernels.to_double[index_of_dtype(leaf.dtype)];
  nest.for_each_outer(1, [&](const int64_t *offset) {
    convert(x + offset[1], nest[0].extent, nest[0].step[1] / size_of(leaf.dtype),
            out + offset[0] / kDouble, 1);
  });
}

void scatter(const Kernels &kernels, const GridLeaf &leaf, const Extents &block, const Rect &part,
             const double *in) {
  const Nest nest = part_nest(leaf, part, leaf.block_y);
  std::byte *y = leaf.y + dot(block, leaf.grid_y) + dot(part.low, leaf.block_y);
  const auto convert = kernels.from_double[index_of_dtype(leaf.dtype)];
  nest.for_each_outer(1, [&](const int64_t *offset) {
    convert(in + offset[0] / kDouble, nest[0].extent, 1, y + offset[1],
            nest[0].step[1] / size_of(leaf.dtype));
  });
}

void gather_block(const Kernels &kernels, const Grid &grid, const Extents &block, double *out) {
  for (const GridLeaf &leaf : grid.leaves) {
    gather(kernels, leaf, block, Rect::whole(leaf.block), out);
    out += leaf.numel();
  }
}

}  // namespace spk
