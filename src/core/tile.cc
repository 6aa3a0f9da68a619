#include "core/tile.h"

#include <algorithm>
#include <cassert>

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

// The parts of a leaf cut about alike, so that two or four threads have as much to do each; however
// many there are, because this fixes the order of sums.
Tiling evenly(const Tiling &parts, const GridLeaf &leaf) {
  constexpr int64_t kThreads = 4;
  const Extents &extent = parts.extent();
  Extents even = extent;
  for (int d = 0; d < even.size(); ++d) {
    int64_t cuts = (leaf.block[d] + extent[d] - 1) / extent[d];
    if (cuts > 2) cuts = (cuts + kThreads - 1) / kThreads * kThreads;
    even[d] = (leaf.block[d] + cuts - 1) / cuts;
  }
  return Tiling(leaf.block, leaf.block_x, 1, even.product(), even);
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

void load_mask(const Kernels &kernels, const Rect &rect, const GridArray &array, uint8_t *local) {
  for_each_run(rect, array, 1, [&](const std::byte *from, int64_t to, int64_t count, int64_t step) {
    const auto *mask = reinterpret_cast<const uint8_t *>(from);
    if (step == 1) return kernels.keep_bytes(mask, count, local + to);
    for (int64_t i = 0; i < count; ++i) local[to + i] = mask[i * step] != 0;
  });
}

const uint8_t *load_mask_bytes(const Kernels &kernels, Scratch &scratch, const Rect &rect,
                               const GridArray &array) {
  if (is_row_major(rect, array)) {
    return reinterpret_cast<const uint8_t *>(array.data + dot(rect.low, array.step));
  }
  auto *local = scratch.take<uint8_t>(rect.count());
  load_mask(kernels, rect, array, local);
  return local;
}

bool is_one_for_all(const Grid &grid, const GridArray &array) {
  for (int d = 0; d < grid.shape.size(); ++d) {
    if (grid.shape[d] > 1 && array.step[d] != 0) return false;
  }
  return true;
}

Tiling parts_of(const GridLeaf &leaf) {
  if (leaf.has_long_rows()) return Tiling(leaf.block, leaf.block_x, 1, kPartElements);
  return evenly(Tiling(leaf.block, leaf.block_x, 1, leaf.is_tall() ? kTallPart : kDeepPart), leaf);
}

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
