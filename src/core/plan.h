// Loops over a box of blocks of one leaf, compiled from its layout: which elements are summed
// along, which blocks lie side by side, in which order memory is walked. A plan depends on the
// extents of the box, not on where it lies: a grid has one for its tiles, made once a call.
#pragma once

#include <memory_resource>
#include <utility>

#include "base/extents.h"
#include "core/nest.h"

namespace spk {

struct GridLeaf;

using Memory = std::pmr::memory_resource;

// A box of indices.
struct Rect {
  Extents low;
  Extents extent;

  int64_t count() const { return extent.product(); }
  static Rect whole(const Extents &shape) { return {Extents(shape.size(), 0), shape}; }
  static Rect one(const Extents &index) { return {index, Extents(index.size(), 1)}; }
};

// How the blocks of a box are reduced.
struct ReducePlan {
  // The blocks: operand 0 in memory (bytes), operand 1 in a local array (entries).
  Nest blocks;
  // The rows of a block: contiguous runs of n elements where sums run along them; else single
  // elements, n of which lie together, followed by those of the next block (fewer than kLanes).
  const int64_t *row = nullptr;  // bytes from the block's origin
  int64_t rows = 0;
  int64_t n = 1, step = 1;  // of a run, in elements
};

// How the blocks of a box are written: operands are read (bytes), written (bytes) and the local
// array of factors (entries).
using WritePlan = Nest;

// For boxes of `extent` blocks, and a part of each block; `local` are the entries between
// neighbouring blocks in the local array.
ReducePlan plan_reduction(const GridLeaf &leaf, const Extents &extent, const Extents &local,
                          const Rect &part, Memory *memory);
WritePlan plan_writing(const GridLeaf &leaf, const Extents &extent, const Extents &local,
                       const Rect &part);

}  // namespace spk
