#include "core/select_few.h"

#include <algorithm>
#include <cassert>

#include "base/dtype.h"
#include "core/nest.h"

namespace spk {
namespace {

// Work is cut into tiles of about this many elements: nothing is read twice, so that they need not
// fit in cache.
constexpr int64_t kDirectElements = int64_t{1} << 16;
// Rows of fewer scopes side by side, or of fewer elements in scopes one after the other, are copied
// to where they lie better: each call of a kernel has much to prepare.
constexpr int64_t kShortRow = 64;
constexpr int64_t kShortRowAlong = 1024;
// Of scopes that are cut by halving a line is cut at once, however few there are of it: rows and tiles
// have so many, where they can, or a multiple.
constexpr int64_t kScopesTogether = 64;

// Bits of the least NaN: one more than those of infinity.
int64_t nan_key_of(int32_t dtype) {
  switch (dtype) {
    case SPK_F64:
      return 0x7ff0000000000001;
    case SPK_F16:
      return 0x7c01;
    case SPK_BF16:
      return 0x7f81;
    default:
      return 0x7f800001;
  }
}

// Bytes from a scope's first element to each of its elements.
struct Positions {
  // Only those of a scope are set: to clear all would be much of a small call.
  int64_t x[kHalvedBlocks];
  int64_t y[kHalvedBlocks];

  Positions(const Scope &scope, const GridLeaf &leaf) {
    const Extents &shape = scope.members[0].shape;
    const int outer = scope.grid_shape.size();
    for_each_index(shape, [&](int64_t p, const Extents &index) {
      x[p] = y[p] = 0;
      for (int d = 0; d < index.size(); ++d) {
        x[p] += index[d] * leaf.grid_x[outer + d];
        y[p] += index[d] * leaf.grid_y[outer + d];
      }
    });
  }

  bool are_contiguous(int64_t n, int64_t size) const {
    for (int64_t p = 0; p < n; ++p) {
      if (x[p] != p * size || y[p] != p * size) return false;
    }
    return true;
  }
};

// The scopes of a box as rows: operands are the leaf read, the leaf written and the counts.
Nest scope_nest(const Scope &scope, const GridLeaf &leaf, const Rect &scopes,
                const Counts &counts) {
  const Extents number = scope.grid_shape.row_major();
  Nest nest;
  for (int d = 0; d < scopes.extent.size(); ++d) {
    nest.add(scopes.extent[d], leaf.grid_x[d], leaf.grid_y[d], counts.count == 1 ? 0 : number[d]);
  }
  nest.compile();
  nest.pad_to(1);
  return nest;
}

enum class Layout { kAcross, kAlong, kShortRows, kCopiedAcross, kCopiedAlong };

constexpr bool is_copied(Layout layout) {
  return layout == Layout::kCopiedAcross || layout == Layout::kCopiedAlong;
}
constexpr bool is_along(Layout layout) {
  return layout == Layout::kAlong || layout == Layout::kCopiedAlong;
}

// Elements of a tile of scopes of n each, about.
int64_t tile_elements(Layout layout, int64_t n) {
  const int64_t elements = is_copied(layout) ? kTileElements : kDirectElements;
  if (n <= kFewBlocks) return elements;
  return n * kScopesTogether * std::max<int64_t>(elements / n / kScopesTogether, 1);
}

Layout layout_of(const Nest &nest, int64_t n, int64_t size, bool contiguous_positions) {
  const NestDim &row = nest[0];
  const bool equal = row.step[0] == row.step[1] || row.extent == 1;
  if (equal && contiguous_positions && (row.step[0] == n * size || row.extent == 1)) {
    const int64_t least = n > kFewBlocks ? kScopesTogether * n : kShortRowAlong;
    const bool is_long = nest.count() == 1 || row.extent * n >= least;
    return is_long ? Layout::kAlong : Layout::kCopiedAlong;
  }
  if (equal && row.step[0] == size && row.extent >= kShortRow) return Layout::kAcross;
  return Layout::kCopiedAcross;
}

class FewElements {
 public:
  FewElements(const Kernels &kernels, const Scope &scope, const GridLeaf &leaf,
              const Counts &counts, const FewOptions &options)
      : kernels_(kernels),
        scope_(scope),
        leaf_(leaf),
        counts_(counts),
        options_(options),
        positions_(scope, leaf) {}

  Layout layout(const Rect &scopes) const {
    const Nest nest = scope_nest(scope_, leaf_, scopes, counts_);
    const Layout layout = layout_of(nest, n(), size(), positions_.are_contiguous(n(), size()));
    return layout == Layout::kCopiedAcross && are_short_rows(nest) ? Layout::kShortRows : layout;
  }

  FewTotals select(Scratch &scratch, Layout layout, const Rect &scopes, const Extents &low) const {
    FewTotals totals;
    if (is_copied(layout)) {
      select_copied(scratch, layout, scopes, low, &totals);
    } else {
      select_rows(layout, scopes, low, &totals);
    }
    return totals;
  }

 private:
  // Is there a kernel for rows of a few scopes? Shorter ones would leave most of a register idle.
  bool are_short_rows(const Nest &nest) const {
    constexpr int64_t kLeastBytes = 32;
    const NestDim &row = nest[0];
    const bool side_by_side =
        row.step[0] == size() && row.step[1] == size() && row.extent * size() >= kLeastBytes;
    const bool is_small = n() > 1 && n() <= kMostInShortRows;
    const bool keeps_some = counts_.count == 1 && counts_.counts[0] > 0 && counts_.counts[0] < n();
    return side_by_side && is_small && keeps_some && options_.margin == 1 &&
           kernels_.select_short_rows[index_of_dtype(leaf_.dtype)];
  }

  // Scopes that lie in rows of memory. `low` is where in the leaf's grid of scopes they begin.
  void select_rows(Layout layout, const Rect &scopes, const Extents &low, FewTotals *totals) const {
    const auto select = kernel_for(layout);
    Nest nest = scope_nest(scope_, leaf_, scopes, counts_);
    SelectFewArgs args = arguments(totals);
    args.scopes = nest[0].extent;
    const bool in_groups = layout == Layout::kShortRows;
    if (in_groups) {
      assert(nest[0].step[0] == size() && nest[0].step[1] == size());
      nest.pad_to(2);
      args.groups = nest[1].extent;
      args.x_group = nest[1].step[0];
      args.y_group = nest[1].step[1];
    }
    args.x_at = positions_.x;
    args.y_at = positions_.y;
    args.count_step = nest[0].step[2];
    const std::byte *x = leaf_.x + dot(low, leaf_.grid_x);
    std::byte *y = leaf_.y + dot(low, leaf_.grid_y);
    const int64_t *wanted = first_count(scopes);
    nest.for_each_outer(in_groups ? 2 : 1, [&](const int64_t *offset) {
      args.x = x + offset[0];
      args.y = y + offset[1];
      args.counts = wanted + offset[2];
      select(args);
    });
  }

  // Any others: copied to where scopes lie side by side or one after the other, and back.
  void select_copied(Scratch &scratch, Layout layout, const Rect &scopes, const Extents &low,
                     FewTotals *totals) const {
    const Scratch::Frame frame(scratch);
    const int64_t count = scopes.count();
    auto *panel = scratch.take<std::byte>(n() * count * size());
    const Panel shape = panel_of(layout, scopes.extent);
    const Extents steps = shape.extent.row_major().times(size());
    read_box(shape.extent, size(), leaf_.x + dot(low, leaf_.grid_x), shape.x, panel, steps);
    int64_t at[kHalvedBlocks];
    for (int64_t p = 0; p < n(); ++p) at[p] = p * count * size();
    SelectFewArgs args = arguments(totals);
    args.x = panel;
    args.y = panel;
    args.scopes = count;
    args.x_at = at;
    args.y_at = at;
    args.counts = counts_.count == 1 ? counts_.counts : local_counts(scopes, scratch);
    args.count_step = counts_.count == 1 ? 0 : 1;
    kernel_for(layout)(args);
    copy_box(shape.extent, size(), panel, steps, leaf_.y + dot(low, leaf_.grid_y), shape.y);
  }

  int64_t n() const { return scope_.numblk_per_scope; }
  int64_t size() const { return size_of(leaf_.dtype); }

  SelectFewArgs arguments(FewTotals *totals) const {
    assert(n() <= kFewBlocks || options_.margin == 1);
    SelectFewArgs args{};
    args.n = n();
    args.nan_key = nan_key_of(leaf_.dtype);
    args.margin = options_.margin;
    args.keep_ties = options_.keep_ties;
    args.ties = &totals->ties;
    args.beyond = &totals->beyond;
    return args;
  }

  const int64_t *first_count(const Rect &scopes) const {
    if (counts_.count == 1) return counts_.counts;
    return counts_.counts + dot(scopes.low, scope_.grid_shape.row_major());
  }

  // The counts of a box of scopes that have one each, in its order.
  const int64_t *local_counts(const Rect &scopes, Scratch &scratch) const {
    int64_t *local = scratch.take<int64_t>(scopes.count());
    const int64_t *first = first_count(scopes);
    const Extents number = scope_.grid_shape.row_major();
    for_each_index(scopes.extent,
                   [&](int64_t i, const Extents &index) { local[i] = first[dot(index, number)]; });
    return local;
  }

  SelectFewKernel kernel_for(Layout layout) const {
    const auto dtype = index_of_dtype(leaf_.dtype);
    const bool few = n() <= kFewBlocks;
    if (layout == Layout::kShortRows) return kernels_.select_short_rows[dtype];
    if (is_along(layout)) return (few ? kernels_.select_along : kernels_.halve_along)[dtype];
    return (few ? kernels_.select_across : kernels_.halve_across)[dtype];
  }

  // A box of scopes as [scope][position] or [position][scope], and the leaf's steps in that order.
  struct Panel {
    Extents extent, x, y;
  };
  Panel panel_of(Layout layout, const Extents &scopes) const {
    const Extents &positions = scope_.members[0].shape;
    const int outer = scopes.size();
    const auto arrange = [&](const Extents &of_scopes, const Extents &of_positions) {
      return is_along(layout) ? concat(of_scopes, of_positions) : concat(of_positions, of_scopes);
    };
    const auto steps = [&](const Extents &step) {
      return arrange(Extents(step.data(), outer),
                     Extents(step.data() + outer, step.size() - outer));
    };
    return {arrange(scopes, positions), steps(leaf_.grid_x), steps(leaf_.grid_y)};
  }

  const Kernels &kernels_;
  const Scope &scope_;
  const GridLeaf &leaf_;
  const Counts &counts_;
  const FewOptions &options_;
  Positions positions_;
};

}  // namespace

bool are_few_elements(const Scope &scope, const Grids &grids) {
  return scope.numblk_per_scope <= kHalvedBlocks && grids.size() == 1 &&
         grids[0].numel_per_block == 1;
}

FewTotals select_few(const Kernels &kernels, Scratch &scratch, const Scope &scope,
                     const Rect &scopes, const GridLeaf &keys, const Counts &counts,
                     const FewOptions &options) {
  const FewElements few(kernels, scope, keys, counts, options);
  return few.select(scratch, few.layout(scopes), scopes, Extents(scopes.low.size(), 0));
}

void select_few(Call &call, const Scope &scope, const Grid &grid, const Counts &counts,
                int32_t ties, Tally *tally) {
  const GridLeaf &leaf = grid.leaves[0];
  const FewOptions options{1, ties == SPK_TIES_KEEP_ALL};
  const FewElements few(call.kernels(), scope, leaf, counts, options);
  const Layout layout = few.layout(Rect::whole(scope.grid_shape));
  const Extents step(leaf.grid_x.data(), scope.grid_shape.size());
  const Tiling tiles(scope.grid_shape, step, scope.numblk_per_scope,
                     tile_elements(layout, scope.numblk_per_scope));
  call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
    const Rect scopes = tiles[i];
    const FewTotals totals = few.select(scratch, layout, scopes, scopes.low);
    tally->ties += totals.ties;
    tally->achieved += totals.beyond;
  });
}

}  // namespace spk
