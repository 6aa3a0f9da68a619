#include "core/tile.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <optional>

#include "base/dtype.h"
#include "core/nest.h"

namespace spk {
namespace {

// Are entries `size` bytes each, row-major and without gaps?
bool is_dense(const Extents &shape, const Extents &step, int64_t size) {
  for (int d = shape.size() - 1; d >= 0; --d) {
    if (shape[d] > 1 && step[d] != size) return false;
    size *= shape[d];
  }
  return true;
}

// Visits a box of a grid array of entries of `size` bytes in runs of constant step: fn(entry in the
// array, first local entry, count, bytes between entries).
template <typename Fn>
void for_each_run(const Rect &rect, const GridArray &array, int64_t size, Fn &&fn) {
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

namespace {

// convert(from, count, step, to) makes local entries of elements `step` apart.
template <typename T, typename Convert>
void load_by(const Convert &convert, const Rect &rect, const GridArray &array, T *local) {
  const int64_t size = size_of(array.dtype);
  assert(size > 0);
  const auto load_run = [&](const std::byte *from, int64_t to, int64_t count, int64_t step) {
    // One entry for all is converted once.
    const int64_t distinct = step == 0 ? 1 : count;
    convert(from, distinct, step / size, local + to);
    if (distinct < count) std::fill_n(local + to + 1, count - 1, local[to]);
  };
  for_each_run(rect, array, size, load_run);
}

}  // namespace

void load(const Kernels &kernels, const Rect &rect, const GridArray &array, double *local) {
  const auto to_doubles = kernels.to_double[index_of_dtype(array.dtype)];
  load_by([&](const std::byte *from, int64_t count, int64_t step,
              double *to) { to_doubles(from, count, step, to, 1); },
          rect, array, local);
}

const float *load_floats(const Kernels &kernels, Scratch &scratch, const Rect &rect,
                         const GridArray &array) {
  assert(array.dtype != SPK_F64);
  if (array.dtype == SPK_F32 && is_row_major(rect, array)) {
    return reinterpret_cast<const float *>(array.data + dot(rect.low, array.step));
  }
  float *local = scratch.take<float>(rect.count());
  load_by(kernels.to_float[index_of_dtype(array.dtype)], rect, array, local);
  return local;
}

void store(const Kernels &kernels, const Rect &rect, const double *local, const GridArray &array,
           bool past_caches) {
  const auto convert = kernels.from_double[index_of_dtype(array.dtype)];
  const auto stream = kernels.stream_doubles[array.dtype == SPK_F64];
  const int64_t size = size_of(array.dtype);
  for_each_run(rect, array, size, [&](std::byte *to, int64_t from, int64_t count, int64_t step) {
    // Short runs would write parts of lines.
    if (past_caches && step == size && count >= kLongRun) return stream(local + from, count, to);
    convert(local + from, count, 1, to, step / size);
  });
}

bool is_row_major(const Rect &rect, const GridArray &array) {
  return is_dense(rect.extent, array.step, size_of(array.dtype));
}

void load_mask(const Kernels &kernels, const Rect &rect, const GridArray &array, bool invert,
               uint8_t *local) {
  for_each_run(rect, array, 1, [&](const std::byte *from, int64_t to, int64_t count, int64_t step) {
    const auto *mask = reinterpret_cast<const uint8_t *>(from);
    if (step == 1) return kernels.keep_bytes(mask, count, invert, local + to);
    for (int64_t i = 0; i < count; ++i) local[to + i] = (mask[i * step] != 0) != invert;
  });
}

bool is_one_for_all(const Grid &grid, const GridArray &array) {
  for (int d = 0; d < grid.shape.size(); ++d) {
    if (grid.shape[d] > 1 && array.step[d] != 0) return false;
  }
  return true;
}

// --- reductions -----------------------------------------------------------------------------

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

Tiling parts_of(const GridLeaf &leaf) {
  const int64_t of_short_rows = leaf.is_tall() ? kTallPart : kDeepPart;
  return Tiling(leaf.block, leaf.block_x, 1, leaf.has_long_rows() ? kPartElements : of_short_rows);
}

namespace {

// How many blocks of a leaf, in parts, are worth reading together: long rows are read fastest, but
// threads want some boxes each.
int64_t read_together(const Grid &grid, const GridLeaf &leaf, int64_t threads) {
  constexpr int64_t kLeast = int64_t{1} << 11;
  constexpr int64_t kMost = int64_t{1} << 13;
  constexpr int64_t kBoxesOfThread = 4;
  const int64_t shared = grid.numblk() * parts_of(leaf).count() / (kBoxesOfThread * threads);
  const int64_t most = std::clamp(shared, kLeast, kMost);
  const int64_t boxes = (grid.numblk() + most - 1) / most;
  return (grid.numblk() + boxes - 1) / boxes;
}

// The blocks of a leaf that are read together: of long rows, a few.
Tiling boxes_of(const Grid &grid, const GridLeaf &leaf, int64_t threads) {
  if (leaf.has_long_rows()) return Tiling(grid.shape, leaf.grid_x, leaf.numel(), kMostStreamed);
  return Tiling(grid.shape, leaf.grid_x, 1, read_together(grid, leaf, threads));
}

}  // namespace

void reduce_deep(Call &call, const Grid &grid, Reduction reduction, const ReduceOptions &options,
                 double *sum, double *error) {
  const int64_t numblk = grid.numblk();
  const Extents local = grid.shape.row_major();
  clear_sums(reduction, numblk, sum, error);
  for (const GridLeaf &leaf : grid.leaves) {
    const Tiling boxes = boxes_of(grid, leaf, call.threads());
    const Tiling parts = parts_of(leaf);
    const Scratch::Frame frame(call.scratch());
    double *sums = call.scratch().take<double>(parts.count() * numblk);
    double *errors = error ? call.scratch().take<double>(parts.count() * numblk) : nullptr;
    clear_sums(reduction, parts.count() * numblk, sums, errors);
    call.for_each(boxes.count() * parts.count(), [&](Scratch &scratch, int64_t i) {
      const Rect box = boxes[i % boxes.count()];
      const int64_t part = i / boxes.count();
      const int64_t first = dot(box.low, local);
      ReduceOptions shifted = options;
      if (options.scale) shifted.scale += first;
      ScratchMemory memory(&scratch);
      const ReducePlan plan = plan_reduction(leaf, box.extent, local, parts[part], &memory);
      LeafReduction work(call.kernels(), scratch, leaf, plan, box.low, false, reduction, shifted);
      const int64_t at = part * numblk + first;
      double *error_at = errors ? errors + at : nullptr;
      if (work.is_dense()) {
        work.write(sums + at, error_at, false);
      } else {
        work.join(sums + at, error_at);
      }
    });
    for (int64_t part = 0; part < parts.count(); ++part) {
      combine(reduction, numblk, sums + part * numblk, errors ? errors + part * numblk : nullptr,
              sum, error, 1);
    }
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
    int dims[kMaxDims];
    const int ndim = grid.shape.size();
    std::iota(dims, dims + ndim, 0);
    const Extents step = leaf.grid_x;
    std::sort(dims, dims + ndim,
              [&](int a, int b) { return std::abs(step[a]) > std::abs(step[b]); });
    const Extents results = grid.shape.row_major();
    for (int d = 0; d < ndim; ++d) {
      shape.push_back(grid.shape[dims[d]]);
      local.push_back(results[dims[d]]);
      leaf.grid_x[d] = step[dims[d]];
    }
  }

  // Neighbours in memory may have results far apart. Boxes reach over a cache line of results, which
  // is then near while they are all joined.
  Tiling boxes() const {
    constexpr int64_t kLineOfResults = 8;
    constexpr int64_t kManyElements = int64_t{1} << 10;  // of a block: its result costs nothing
    const int64_t numel = std::max(leaf.numel(), kBlockWeight);
    const int64_t row = streamed_elements(shape.product() * numel);
    if (numel >= kManyElements) return Tiling(shape, leaf.grid_x, numel, row);
    Extents least(shape.size(), 1);
    for (int d = 0; d < shape.size(); ++d) {
      if (local[d] == 1) least[d] = std::min(kLineOfResults, shape[d]);
    }
    return Tiling(shape, leaf.grid_x, numel, row * kLineOfResults / 2, least);
  }
};

}  // namespace

void reduce_by_leaf(Call &call, const Grid &grid, Reduction reduction, double *sum) {
  assert(!grid.is_deep());
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

// --- scaling and masking --------------------------------------------------------------------

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
WriteKernel kernel_by(const Kernels &kernels, int32_t dtype, const uint8_t * /*keep*/) {
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

// Applies one factor a block (double, float, or a keep byte) to a box of blocks read from x and
// written to y. `args` comes with what does not depend on the plan.
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

template <typename Factor>
void apply_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                ScaleArgs args, const Factor *factor) {
  for (const GridLeaf &leaf : grid.leaves) {
    const std::byte *x = leaf.x + dot(rect.low, leaf.grid_x);
    std::byte *y = leaf.y + dot(rect.low, leaf.grid_y);
    if (rect.extent == grid.tile) {
      args.soon = leaf.soon;
      apply_leaf(kernels, scratch, leaf, leaf.write, args, x, y, factor);
    } else {
      const WritePlan plan =
          plan_writing(leaf, rect.extent, rect.extent.row_major(), Rect::whole(leaf.block));
      args.soon = 0;
      apply_leaf(kernels, scratch, leaf, plan, args, x, y, factor);
    }
  }
}

// The boxes of blocks that are written together: tiles; or, of blocks in parts, one, or as many as lie
// side by side where rows are short.
Tiling written_boxes(const Grid &grid) {
  constexpr int64_t kSideBySide = int64_t{1} << 12;
  if (!grid.is_deep() && !grid.is_thin()) return grid.tiles();
  for (const GridLeaf &leaf : grid.leaves) {
    if (!leaf.has_long_rows()) return Tiling(grid.shape, leaf.grid_x, 1, kSideBySide);
  }
  return Tiling(grid.shape, grid.leaves[0].grid_x, 1, 1);
}

// The pieces that a leaf of a box is written in. No sum depends on them: all have about as much to
// do. Long rows are written block by block, short ones across all blocks, in flat strips of each.
struct LeafPieces {
  Tiling blocks;  // of the box
  Tiling strips;  // of a block

  LeafPieces(const GridLeaf &leaf, const Extents &box)
      : blocks(blocks_of(leaf, box)), strips(strips_of(leaf, box)) {}

  int64_t count() const { return blocks.count() * strips.count(); }

 private:
  static constexpr int64_t kElements = int64_t{1} << 17;

  static Tiling blocks_of(const GridLeaf &leaf, const Extents &box) {
    return leaf.has_long_rows() ? Tiling(box, leaf.grid_x, leaf.numel(), kElements) : Tiling(box);
  }
  static Tiling strips_of(const GridLeaf &leaf, const Extents &box) {
    constexpr int64_t kLeast = 64;
    if (leaf.has_long_rows()) return parts_of(leaf);
    return Tiling(leaf.block, leaf.block_x, 1, std::max(kLeast, kElements / box.product()));
  }
};

// A piece of a box: a strip of some blocks of a leaf.
struct LeafPiece {
  const GridLeaf &leaf;
  Rect blocks;  // of the grid; may be empty in a box at the edge
  Rect strip;
};

// Piece `number` of all leaves' pieces, of boxes of such extents.
LeafPiece piece_of(const Grid &grid, const Extents &extents, const Rect &box, int64_t number) {
  size_t l = 0;
  LeafPieces pieces(grid.leaves[l], extents);
  while (number >= pieces.count()) {
    number -= pieces.count();
    pieces = LeafPieces(grid.leaves[++l], extents);
  }
  Rect blocks = pieces.blocks[number % pieces.blocks.count()];
  for (int d = 0; d < extents.size(); ++d) {
    blocks.extent[d] = std::clamp<int64_t>(box.extent[d] - blocks.low[d], 0, blocks.extent[d]);
  }
  blocks.low = plus(blocks.low, box.low);
  return {grid.leaves[l], blocks, pieces.strips[number / pieces.blocks.count()]};
}

// Calls write(scratch, piece) for all pieces of a grid, in parallel. Every box is one group of the
// loop, so that a cancelled call leaves no block half done. Backwards, as norms may have read them
// just before.
template <typename Fn>
void for_each_piece(Call &call, const Grid &grid, Fn &&write) {
  const Tiling boxes = written_boxes(grid);
  int64_t pieces = 0;
  for (const GridLeaf &leaf : grid.leaves) pieces += LeafPieces(leaf, boxes.extent()).count();
  call.for_each(
      boxes.count() * pieces,
      [&](Scratch &scratch, int64_t i) {
        const LeafPiece piece = piece_of(grid, boxes.extent(), boxes[i / pieces], i % pieces);
        if (piece.blocks.count() > 0) write(scratch, piece);
      },
      pieces, Direction::kBackwards);
}

// How far ahead a piece is asked for: rows that follow each other, or are but one, are a stream.
int64_t ahead_of(const WritePlan &plan) {
  constexpr int64_t kRowsAhead = 4;
  const bool is_stream = plan[1].extent == 1 || plan[1].step[0] == plan[0].extent * plan[0].step[0];
  return is_stream ? kFar : kRowsAhead * plan[1].step[0];
}

template <typename Factor>
void apply_all(Call &call, const Grid &grid, const ScaleArgs &args, const Factor *factor) {
  const Extents local = grid.shape.row_major();
  for_each_piece(call, grid, [&](Scratch &scratch, const LeafPiece &piece) {
    const auto &[leaf, blocks, strip] = piece;
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
                const double *factor, bool exact) {
  ScaleArgs args{};
  args.exact_product = exact;
  apply_rect(kernels, scratch, grid, rect, args, factor);
}

void scale_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                const float *factor) {
  apply_rect(kernels, scratch, grid, rect, ScaleArgs{}, factor);
}

void mask_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
               const uint8_t *keep, bool is_cached) {
  ScaleArgs args{};
  args.past_caches = !is_cached;
  args.reads_on = is_cached;  // as this box has been
  apply_rect(kernels, scratch, grid, rect, args, keep);
}

void scale_all(Call &call, const Grid &grid, const double *factor, bool exact) {
  ScaleArgs args{};
  args.exact_product = exact;
  apply_all(call, grid, args, factor);
}

void scale_all(Call &call, const Grid &grid, const float *factor) {
  apply_all(call, grid, ScaleArgs{}, factor);
}

void mask_all(Call &call, const Grid &grid, const uint8_t *keep) {
  ScaleArgs args{};
  args.past_caches = true;
  apply_all(call, grid, args, keep);
}

namespace {

// The keep bytes of some blocks, `local` steps apart, to a strip of each.
void spread(const LeafPiece &piece, const Extents &local, const uint8_t *keep) {
  const auto &[leaf, blocks, strip] = piece;
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
    spread({leaf, rect, Rect::whole(leaf.block)}, local, keep);
  }
}

void spread_all(Call &call, const Grid &masks, const uint8_t *keep) {
  const Extents local = masks.shape.row_major();
  for_each_piece(call, masks, [&](Scratch &, const LeafPiece &piece) {
    spread(piece, local, keep + dot(piece.blocks.low, local));
  });
}

// --- gathering ------------------------------------------------------------------------------

namespace {

// Operand 0 is the dense row-major part, operand 1 the leaf's memory.
Nest part_nest(const GridLeaf &leaf, const Rect &part, const Extents &step) {
  const Extents dense = part.extent.row_major();
  Nest nest;
  for (int d = 0; d < leaf.block.size(); ++d) {
    nest.add(part.extent[d], dense[d] * kDoubleBytes, step[d]);
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
            out + offset[0] / kDoubleBytes, 1);
  });
}

void scatter(const Kernels &kernels, const GridLeaf &leaf, const Extents &block, const Rect &part,
             const double *in) {
  const Nest nest = part_nest(leaf, part, leaf.block_y);
  std::byte *y = leaf.y + dot(block, leaf.grid_y) + dot(part.low, leaf.block_y);
  const auto convert = kernels.from_double[index_of_dtype(leaf.dtype)];
  nest.for_each_outer(1, [&](const int64_t *offset) {
    convert(in + offset[0] / kDoubleBytes, nest[0].extent, 1, y + offset[1],
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
