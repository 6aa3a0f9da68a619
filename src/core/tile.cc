#include "core/tile.h"

#include <algorithm>

#include "base/dtype.h"
#include "core/nest.h"

namespace spk {
namespace {

constexpr auto kDouble = static_cast<int64_t>(sizeof(double));

// A nest over the box of a grid array: operand 0 is the caller's array, in whose order memory is
// walked, operand 1 the local one.
Nest local_nest(const Rect &rect, int64_t local_size, const GridArray &array) {
  const Extents local = rect.extent.row_major();
  Nest nest;
  for (int d = 0; d < rect.extent.size(); ++d) {
    nest.add(rect.extent[d], array.step[d], local[d] * local_size);
  }
  nest.compile();
  nest.pad_to(1);
  return nest;
}

std::byte *start_of(const Rect &rect, const GridArray &array) {
  return array.data + dot(rect.low, array.step);
}

}  // namespace

GridArray elements_of(const GridLeaf &leaf) {
  return {const_cast<std::byte *>(leaf.x), leaf.dtype, leaf.grid_x};
}

void load(const Kernels &kernels, const Rect &rect, const GridArray &array, double *local) {
  const Nest nest = local_nest(rect, sizeof(double), array);
  const std::byte *from = start_of(rect, array);
  const auto convert = kernels.to_double[index_of_dtype(array.dtype)];
  nest.for_each_outer(1, [&](const int64_t *offset) {
    convert(from + offset[0], nest[0].extent, nest[0].step[0] / size_of(array.dtype),
            local + offset[1] / kDouble, nest[0].step[1] / kDouble);
  });
}

void store(const Kernels &kernels, const Rect &rect, const double *local, const GridArray &array) {
  const Nest nest = local_nest(rect, sizeof(double), array);
  std::byte *to = start_of(rect, array);
  const auto convert = kernels.from_double[index_of_dtype(array.dtype)];
  nest.for_each_outer(1, [&](const int64_t *offset) {
    convert(local + offset[1] / kDouble, nest[0].extent, nest[0].step[1] / kDouble, to + offset[0],
            nest[0].step[0] / size_of(array.dtype));
  });
}

void load_mask(const Rect &rect, const GridArray &array, uint8_t *local) {
  const Nest nest = local_nest(rect, 1, array);
  const auto *from = reinterpret_cast<const uint8_t *>(start_of(rect, array));
  nest.for_each_outer(1, [&](const int64_t *offset) {
    for (int64_t i = 0; i < nest[0].extent; ++i) {
      local[offset[1] + i * nest[0].step[1]] = from[offset[0] + i * nest[0].step[0]] != 0;
    }
  });
}

// --- reductions -----------------------------------------------------------------------------

namespace {

// The nest of one leaf over a box of blocks and a part of each: operand 0 reads elements, operand
// 1 is the local array (step 0 inside a block), operand 2 becomes the accumulators.
Nest reduce_nest(const GridLeaf &leaf, const Rect &rect, const Rect &part) {
  const Extents local = rect.extent.row_major();
  Nest nest;
  for (int d = 0; d < rect.extent.size(); ++d) {
    nest.add(rect.extent[d], leaf.grid_x[d], local[d] * kDouble);
  }
  for (int d = 0; d < part.extent.size(); ++d) nest.add(part.extent[d], leaf.block_x[d], 0);
  nest.compile();
  return nest;
}

bool is_grid_dim(const NestDim &dim) {
  return dim.step[1] != 0;
}

// Sums across blocks vectorise over a grid dimension: the innermost that fills a register, else the
// longest. Moves it to the front.
void bring_blocks_inside(Nest *nest) {
  constexpr int64_t kRegister = 8;
  int best = -1;
  for (int d = 0; d < nest->count(); ++d) {
    if (!is_grid_dim((*nest)[d])) continue;
    if (best < 0 || (*nest)[d].extent > (*nest)[best].extent) best = d;
    if ((*nest)[best].extent >= kRegister) break;
  }
  if (best < 0) {
    best = nest->count();
    nest->pad_to(best + 1);
  }
  nest->move(best, 0);
}

// Accumulators lie densely, in the order in which memory is walked: `width` doubles a block.
// Returns how many blocks there are.
int64_t place_accumulators(Nest *nest, int64_t width) {
  int64_t blocks = 1;
  for (int d = 0; d < nest->count(); ++d) {
    if (!is_grid_dim((*nest)[d])) continue;
    nest->set_step(d, 2, blocks * width * kDouble);
    blocks *= (*nest)[d].extent;
  }
  return blocks;
}

// Visits the blocks of a reduce nest in memory order, a row of them at a time: fn(first
// accumulator, first local entry, entries between neighbours, count).
template <typename Fn>
void for_each_accumulator_row(const Nest &nest, Fn &&fn) {
  Nest blocks;
  for (int d = 0; d < nest.count(); ++d) {
    if (is_grid_dim(nest[d])) blocks.add(nest[d].extent, 0, nest[d].step[1]);
  }
  blocks.pad_to(1);
  int64_t accumulator = 0;
  blocks.for_each_outer(1, [&](const int64_t *offset) {
    fn(accumulator, (nest.start(1) + offset[1]) / kDouble, blocks[0].step[1] / kDouble,
       blocks[0].extent);
    accumulator += blocks[0].extent;
  });
}

// One leaf's share of the blocks of a box, combined into the local sums.
void reduce_leaf(const Kernels &kernels, Scratch &scratch, const GridLeaf &leaf, const Rect &rect,
                 const Rect &part, Reduction reduction, const ReduceOptions &options, double *sum,
                 double *error) {
  const bool compensated = is_compensated(reduction);
  const int64_t width = leaf.along ? kLanes : 1;
  Nest nest = reduce_nest(leaf, rect, part);
  if (!leaf.along) bring_blocks_inside(&nest);
  nest.pad_to(2);
  const int64_t blocks = place_accumulators(&nest, width);

  Scratch::Frame frame(scratch);
  double *totals = scratch.take<double>(blocks * width);
  double *errors = compensated ? scratch.take<double>(blocks * width) : nullptr;
  double *scales = options.scale ? scratch.take<double>(blocks * width) : nullptr;
  std::fill_n(totals, blocks * width, identity_of(reduction));
  if (errors) std::fill_n(errors, blocks * width, 0.0);
  if (scales) {
    for_each_accumulator_row(nest, [&](int64_t first, int64_t local, int64_t step, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        std::fill_n(scales + (first + i) * width, width, options.scale[local + i * step]);
      }
    });
  }

  const auto dtype = index_of_dtype(leaf.dtype);
  const auto kernel =
      leaf.along ? kernels.reduce_along[dtype][reduction] : kernels.reduce_across[dtype][reduction];
  const std::byte *x = leaf.x + dot(rect.low, leaf.grid_x) + dot(part.low, leaf.block_x);
  ReduceArgs args{};
  args.n = nest[0].extent;
  args.step = nest[0].step[0] / size_of(leaf.dtype);
  args.rows = nest[1].extent;
  args.row_step = nest[1].step[0];
  args.sum_step = nest[1].step[2] / kDouble;
  args.eps = options.eps;
  nest.for_each_outer(2, [&](const int64_t *offset) {
    const int64_t at = offset[2] / kDouble;
    args.x = x + offset[0];
    args.sum = totals + at;
    args.error = errors ? errors + at : nullptr;
    args.scale = scales ? scales + at : nullptr;
    kernel(args);
  });

  if (leaf.along) fold_lanes(reduction, totals, errors, blocks);
  for_each_accumulator_row(nest, [&](int64_t first, int64_t local, int64_t step, int64_t count) {
    combine(reduction, count, totals + first, errors ? errors + first : nullptr, sum + local,
            error ? error + local : nullptr, step);
  });
}

void clear_sums(Reduction reduction, int64_t count, double *sum, double *error) {
  std::fill_n(sum, count, identity_of(reduction));
  if (is_compensated(reduction)) std::fill_n(error, count, 0.0);
}

}  // namespace

void reduce_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                 Reduction reduction, const ReduceOptions &options, double *sum, double *error) {
  clear_sums(reduction, rect.count(), sum, error);
  for (const GridLeaf &leaf : grid.leaves) {
    reduce_leaf(kernels, scratch, leaf, rect, Rect::whole(leaf.block), reduction, options, sum,
                error);
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
      const Rect block = Rect::one(index_at(grid.shape, number));
      ReduceOptions one = options;
      if (options.scale) one.scale = options.scale + number;
      clear_sums(reduction, 1, sums + i, errors + i);
      reduce_leaf(call.kernels(), scratch, leaf, block, parts[i % parts.count()], reduction, one,
                  sums + i, errors + i);
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

// Applies one factor a block (double, or a keep byte) to a box of blocks and a part of each.
template <typename Factor>
void apply_leaf(const Kernels &kernels, const GridLeaf &leaf, const Rect &rect, const Rect &part,
                const Factor *factor, bool exact) {
  const Extents local = rect.extent.row_major();
  Nest nest;
  for (int d = 0; d < rect.extent.size(); ++d) {
    nest.add(rect.extent[d], leaf.grid_x[d], leaf.grid_y[d],
             local[d] * static_cast<int64_t>(sizeof(Factor)));
  }
  for (int d = 0; d < part.extent.size(); ++d) {
    nest.add(part.extent[d], leaf.block_x[d], leaf.block_y[d], 0);
  }
  nest.compile();
  nest.pad_to(2);

  const auto dtype = index_of_dtype(leaf.dtype);
  const auto kernel = sizeof(Factor) == 1 ? kernels.mask[dtype] : kernels.scale[dtype];
  const std::byte *x = leaf.x + dot(rect.low, leaf.grid_x) + dot(part.low, leaf.block_x);
  std::byte *y = leaf.y + dot(rect.low, leaf.grid_y) + dot(part.low, leaf.block_y);
  const auto *factors = reinterpret_cast<const std::byte *>(factor);
  const int64_t size = size_of(leaf.dtype);
  const auto factor_size = static_cast<int64_t>(sizeof(Factor));
  ScaleArgs args{};
  args.exact_product = exact;
  args.n = nest[0].extent;
  args.x_step = nest[0].step[0] / size;
  args.y_step = nest[0].step[1] / size;
  args.factor_step = nest[0].step[2] / factor_size;
  args.rows = nest[1].extent;
  args.x_row = nest[1].step[0];
  args.y_row = nest[1].step[1];
  args.factor_row = nest[1].step[2] / factor_size;
  nest.for_each_outer(2, [&](const int64_t *offset) {
    args.x = x + offset[0];
    args.y = y + offset[1];
    args.factor = factors + offset[2];
    kernel(args);
  });
}

template <typename Factor>
void apply_rect(const Kernels &kernels, const Grid &grid, const Rect &rect, const Factor *factor,
                bool exact) {
  for (const GridLeaf &leaf : grid.leaves) {
    apply_leaf(kernels, leaf, rect, Rect::whole(leaf.block), factor, exact);
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
        apply_leaf(call.kernels(), leaf, Rect::one(index_at(grid.shape, number)),
                   parts_of(leaf)[part], factor + number, exact);
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
