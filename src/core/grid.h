// A grid of blocks with data: what the operations run on. Blocks of a block spec or coupling form
// one; so do the blocks of one member of a scope, indexed by (scope, position in the scope).
#pragma once

#include <algorithm>
#include <array>
#include <memory_resource>
#include <vector>

#include "core/buffers.h"
#include "core/plan.h"
#include "core/scope.h"

namespace spk {

// Work is cut into tiles of whole blocks of about this many elements: in cache between the norm
// and the rescaling, large enough to be worth a task. Results do not depend on it.
inline constexpr int64_t kTileElements = int64_t{1} << 13;
// The same where each of `numel` elements is visited once: larger, because between tiles memory is
// idle.
inline constexpr int64_t kMostStreamed = int64_t{1} << 15;
int64_t streamed_elements(int64_t numel, int64_t at_most = kMostStreamed);
// What a block costs at least, in elements: its score and factor are doubles, and want cache too.
inline constexpr int64_t kBlockWeight = 4;
// A block of more elements is cut into parts, whose sums are joined in order.
inline constexpr int64_t kPartElements = int64_t{1} << 16;
// The same for blocks of this many whose rows are single elements or ragged; and for tall ones.
inline constexpr int64_t kDeepElements = int64_t{1} << 10;
inline constexpr int64_t kDeepPart = int64_t{1} << 9;
inline constexpr int64_t kTallPart = int64_t{1} << 11;
// Rows of so many elements are worth reading alone; or of so many, if blocks have so many rows.
inline constexpr int64_t kLongRun = 64;
inline constexpr int64_t kLongOfMany = 256;
inline constexpr int64_t kManyRows = 512;
// Blocks of many short rows and more elements are tall.
inline constexpr int64_t kTallElements = int64_t{1} << 12;
// Rows of up to so many bytes are better read or written with those of the blocks beside them:
// multipliers of large blocks take up to half of the time (measured).
inline constexpr int64_t kShortRow = int64_t{1} << 14;

// More bytes than the last cache of a few cores holds.
inline constexpr int64_t kCacheBytes = int64_t{32} << 20;

// Equal boxes that cover a shape; the last along each dimension may be smaller.
class Tiling {
 public:
  // Boxes of about `budget` elements, each index counting `weight`; dimensions of small |step| are
  // filled first. At least one index a box, and rows that are worth reading.
  Tiling(const Extents &shape, const Extents &step, int64_t weight, int64_t budget);
  // The same with at least so many indices along each dimension.
  Tiling(const Extents &shape, const Extents &step, int64_t weight, int64_t budget,
         const Extents &least);
  // One box: everything.
  explicit Tiling(const Extents &shape) : shape_(shape), tile_(shape), tiles_(shape.size(), 1) {}

  int64_t count() const { return count_; }
  // Extents of all boxes but the last along each dimension.
  const Extents &extent() const { return tile_; }
  // Elements of `step` from a box to the next.
  int64_t stride(const Extents &step) const;
  Rect operator[](int64_t index) const;

 private:
  Extents shape_;
  Extents tile_;
  Extents tiles_;
  int64_t count_ = 1;
};

// One leaf of a grid. Steps are bytes.
struct GridLeaf {
  GridLeaf() {}  // NOLINT(modernize-use-equals-default): as in Extents

  int32_t dtype = 0;
  const std::byte *x = nullptr;  // read
  std::byte *y = nullptr;        // written; x unless `into` was given
  Extents grid_x, grid_y;        // between neighbouring blocks, per grid dimension
  Extents block;                 // extents of a block, in view order
  Extents block_x, block_y;      // between neighbouring elements of a block
  int64_t run = 1;               // elements of a block that lie one after the other
  bool along = false;            // sums run along rows of a block, else across blocks
  // For boxes of Grid::tile extents; not made for deep blocks.
  ReducePlan reduce;
  WritePlan write;
  int64_t ahead = 0;         // bytes from a box to the next
  int64_t soon = 0;          // kFar if boxes have no gaps, else ahead
  bool past_caches = false;  // all leaves are more data than caches hold

  // Plans reductions of boxes, what follows them in memory included; results lie in `local` steps.
  void plan_boxes(const Tiling &boxes, const Extents &local, Memory *memory);

  int64_t numel() const { return block.product(); }
  // Are its rows worth reading alone? If they are many, and lie apart, only longer ones are.
  bool has_long_rows() const { return run >= (has_many_rows() ? kLongOfMany : kLongRun); }
  bool has_many_rows() const { return numel() / run >= kManyRows; }
  // Are blocks tiles of several rows that are too short to be streams (kShortRow)?
  bool has_short_rows() const;
  // Do short rows begin anywhere in a cache line, which neighbouring blocks then share? So do those
  // of a convolution's input channels.
  bool has_ragged_rows() const;
  // Do blocks have many short rows, and many elements?
  bool is_tall() const;
};

struct Grid {
  Extents shape;
  int64_t numel_per_block = 0;
  int32_t score_dtype = 0;
  std::pmr::vector<GridLeaf> leaves;
  int64_t tile_elements = kTileElements;  // about as many are in a tile
  Extents tile;                           // of the boxes that the leaves' plans are for

  int64_t numblk() const { return shape.product(); }
  bool is_large() const { return numel_per_block > kPartElements; }
  // Are blocks cut into parts? Those of many elements whose rows are single ones, ragged or many are,
  // even if they are not large: whole ones side by side would be in no near cache, and their rows too
  // short to be read fast. So are those they are coupled with, which take turns in pieces.
  bool is_deep() const;
  // Are blocks made of so many short rows that they are better written row by row, those of
  // neighbours together?
  bool is_thin() const;
  // Are leaves coupled whose rows lie along different dimensions, and so large that each is better
  // read or written alone, in its own order? What arrays have for its blocks may then lie far apart,
  // which is worth it for so many elements a block. Leaves in the order of the grid may have fewer.
  bool is_better_by_leaf(int64_t least_elements) const;
  int64_t bytes() const;
  int64_t bytes_per_block() const { return bytes() / numblk(); }
  Tiling tiles() const;
  // The least box of blocks in which each leaf has rows of so many bytes, if it has such rows.
  Extents least_with_rows(int64_t bytes) const;
  // About as many elements are in a box whose elements are visited once.
  int64_t streamed_elements() const;
};

// Where the leaves of a block or scope are read and written. `into` may be empty: in place.
using LeafSpan = std::pmr::vector<LeafData>;

// A call's grids live in its memory (Call::memory).
using Grids = std::pmr::vector<Grid>;

// How often an operation visits the elements of a tile before it goes on to the next.
enum class Visits {
  kOnce,
  kTwice,
  kByThreshold,  // once if its blocks can be thresholded while they are in registers, else twice
};

Grid block_grid(const Block &block, const LeafSpan &x, const LeafSpan &into, Visits visits,
                Memory *memory);
// Grid dimensions: the scope grid, then the member's blocks inside a scope (row-major positions).
Grid member_grid(const Scope &scope, int member, const LeafSpan &x, const LeafSpan &into,
                 Visits visits, Memory *memory);
// For operations that treat all blocks alike: one grid, or one per member.
Grids grids_of(const Block &block, const LeafSpan &x, const LeafSpan &into, Visits visits,
               Memory *memory);
Grids grids_of(const Scope &scope, const LeafSpan &x, const LeafSpan &into, Visits visits,
               Memory *memory);

// The dimensions of a grid as a leaf lies in memory, outermost first.
class MemoryOrder {
 public:
  explicit MemoryOrder(const GridLeaf &leaf);

  // What a grid has of each dimension, in this order.
  Extents of(const Extents &per_dim) const;

 private:
  std::array<int, kMaxDims> dims_;
  int ndim_;
};

// A leaf of a coupling as a grid of its own, in its order. Its elements are visited once.
Grid leaf_alone(const Grid &grid, size_t leaf, const MemoryOrder &order, Memory *memory);

// An array with one entry per block of a grid, some of them shared (step 0).
struct GridArray {
  std::byte *data = nullptr;
  int32_t dtype = 0;
  Extents step;  // bytes, per grid dimension
};

// One entry per block, row-major in the block's grid.
GridArray per_block(const Block &block, const ArrayData &array);
GridArray per_block_of_member(const Scope &scope, int member, const ArrayData &array);
// One entry per scope.
GridArray per_scope(const Scope &scope, int member, const ArrayData &array);
// One entry per block, arranged (scope grid..., numblk_per_scope).
GridArray in_scope_order(const Scope &scope, int member, const ArrayData &array);
// One entry for all.
GridArray one_for_all(const Grid &grid, const ArrayData &array);

// Visits the indices of a box, row-major: fn(number, index).
template <typename Fn>
void for_each_index(const Extents &extent, Fn &&fn) {
  Extents index(extent.size(), 0);
  const int64_t count = extent.product();
  for (int64_t i = 0; i < count; ++i) {
    fn(i, std::as_const(index));
    for (int d = extent.size() - 1; d >= 0; --d) {
      if (++index[d] < extent[d]) break;
      index[d] = 0;
    }
  }
}

// sum(index_d * step_d)
inline int64_t dot(const Extents &index, const Extents &step) {
  int64_t sum = 0;
  for (int d = 0; d < index.size(); ++d) sum += index[d] * step[d];
  return sum;
}

}  // namespace spk
