#include "core/select_small.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/dtype.h"
#include "core/nest.h"
#include "core/select.h"
#include "core/select_few.h"
#include "core/write_blocks.h"

namespace spk {
namespace {

// Elements of a tile: with their keys in cache, and enough of them to be worth describing.
constexpr int64_t kSmallTile = int64_t{1} << 14;
// A tile with an undecided scope is cut into this many, down to boxes of few scopes.
constexpr int64_t kSplit = 4;
constexpr int64_t kFewScopes = 256;

// How the blocks of a box lie in memory: rows of blocks, side by side or one after the other.
struct BlockRows {
  Nest nest;  // operands: the leaf read, the leaf written, the keys
  bool side_by_side = false;

  bool are_groups() const { return nest[0].extent % kKeyGroup == 0; }
};

class SmallBlocks {
 public:
  SmallBlocks(const Kernels &kernels, const Scope &scope, const Grid &grid, const Counts &counts,
              int32_t ties)
      : kernels_(kernels),
        scope_(scope),
        grid_(grid),
        leaf_(grid.leaves[0]),
        counts_(counts),
        ties_(ties) {
    for_each_index(leaf_.block, [&](int64_t e, const Extents &index) {
      x_at_[e] = dot(index, leaf_.block_x);
      y_at_[e] = dot(index, leaf_.block_y);
    });
  }

  void select(Scratch &scratch, const Rect &scopes, Tally *tally) const {
    const Scratch::Frame frame(scratch);
    const Rect blocks = member_rect(scope_.members[0], scopes);
    const Extents key_step = key_steps(blocks);
    BlockRows rows;
    if (!find_rows(blocks, key_step, &rows)) return select_by_norms(scratch, scopes, tally);
    const KeepBlocks keep = are_neighbours(blocks, key_step) ? keep_kernel(rows) : nullptr;
    if (!keep && !rows.are_groups()) return select_by_norms(scratch, scopes, tally);
    const bool certain = keep ? keep_neighbours(keep, blocks, rows, tally)
                              : keep_by_keys(scratch, scopes, blocks, rows, key_step);
    if (certain) return;
    // Scopes that were certain may be done: their blocks that went are 0 now, and go once more.
    if (scopes.count() <= kFewScopes) return select_by_norms(scratch, scopes, tally);
    split(scratch, scopes, tally);
  }

  Extents scope_steps() const { return Extents(leaf_.grid_x.data(), scope_.grid_shape.size()); }

 private:
  int32_t key_dtype() const { return leaf_.dtype == SPK_F64 ? SPK_F64 : SPK_F32; }
  int64_t key_size() const { return size_of(key_dtype()); }

  // Keys lie densely, in the order of memory.
  Extents key_steps(const Rect &blocks) const {
    const int ndim = blocks.extent.size();
    int order[kMaxDims];
    std::iota(order, order + ndim, 0);
    // Few dimensions; std::stable_sort would allocate.
    for (int i = 1; i < ndim; ++i) {
      for (int k = i; k > 0 && leaf_.grid_x[order[k - 1]] > leaf_.grid_x[order[k]]; --k) {
        std::swap(order[k - 1], order[k]);
      }
    }
    Extents step(ndim, 0);
    int64_t dense = key_size();
    for (int i = 0; i < ndim; ++i) {
      if (blocks.extent[order[i]] == 1) continue;
      step[order[i]] = dense;
      dense *= blocks.extent[order[i]];
    }
    return step;
  }

  bool find_rows(const Rect &blocks, const Extents &key_step, BlockRows *rows) const {
    for (int d = 0; d < blocks.extent.size(); ++d) {
      rows->nest.add(blocks.extent[d], leaf_.grid_x[d], leaf_.grid_y[d], key_step[d]);
    }
    rows->nest.compile();
    rows->nest.pad_to(2);
    const NestDim &row = rows->nest[0];
    const int64_t size = size_of(leaf_.dtype);
    rows->side_by_side = row.step[0] == size;
    const bool in_one_piece = row.step[0] == leaf_.numel() * size && are_contiguous();
    return row.step[0] == row.step[1] && row.step[2] == key_size() &&
           (rows->side_by_side || in_one_piece);
  }

  bool are_contiguous() const {
    const int64_t numel = leaf_.numel();
    for (int64_t e = 0; e < numel; ++e) {
      const int64_t at = e * size_of(leaf_.dtype);
      if (x_at_[e] != at || y_at_[e] != at) return false;
    }
    return std::has_single_bit(static_cast<uint64_t>(numel));
  }

  // Whether scopes are neighbours in a row, of which the same number stays everywhere.
  bool are_neighbours(const Rect &blocks, const Extents &key_step) const {
    const int64_t n = scope_.numblk_per_scope;
    if (counts_.count != 1 || counts_[0] == 0 || counts_[0] == n) return false;
    for (int d = scope_.grid_shape.size(); d < blocks.extent.size(); ++d) {
      if (blocks.extent[d] == n) return key_step[d] == key_size();
    }
    return false;
  }

  // What selects such scopes without the keys of a tile; NULL: nothing does.
  KeepBlocks keep_kernel(const BlockRows &rows) const {
    const auto dtype = index_of_dtype(leaf_.dtype);
    const int64_t n = scope_.numblk_per_scope;
    const int64_t numel = leaf_.numel();
    const int block = power_of(numel);
    const bool are_few = n <= 8 && std::has_single_bit(static_cast<uint64_t>(n));
    const KeepBlocks in_lanes =
        fill_lanes(rows) ? kernels_.keep_blocks_in_lanes[dtype][block] : nullptr;
    // To compare each of eight with the others is much for blocks of two elements.
    if (!are_few || (in_lanes && n == 8 && numel == 2)) return in_lanes;
    if (!rows.are_groups()) return nullptr;
    return rows.side_by_side ? kernels_.keep_blocks_across[dtype][power_of(n)]
                             : kernels_.keep_blocks_along[dtype][power_of(n)][block];
  }

  // Are scopes in one piece each, whole registers of squares, and enough of them in a row?
  bool fill_lanes(const BlockRows &rows) const {
    const int64_t scopes = rows.nest[0].extent / scope_.numblk_per_scope;
    return !rows.side_by_side && scope_.numel_per_scope * key_size() % kMostRegisterBytes == 0 &&
           scopes >= kMostRegisterBytes / size_of(leaf_.dtype);
  }

  // Selects while keys are in registers. Returns false if some are too close to tell: then only some
  // scopes have been selected, or written at all.
  bool keep_neighbours(KeepBlocks keep, const Rect &blocks, const BlockRows &rows,
                       Tally *tally) const {
    bool certain = true;
    int64_t ties = 0;
    for_each_box_of_rows(blocks, rows, nullptr, [&](BlockKeysArgs args) {
      // Where ties all stay, zeros that tie are left in doubt: more would have to be counted.
      args.ties = ties_ == SPK_TIES_KEEP_ALL ? nullptr : &ties;
      certain = certain && keep(args, counts_[0]);
    });
    if (certain) tally->ties += ties;
    return certain;
  }

  // Selects by keys in memory. Writes nothing and returns false if some are too close to tell.
  bool keep_by_keys(Scratch &scratch, const Rect &scopes, const Rect &blocks, const BlockRows &rows,
                    const Extents &key_step) const {
    auto *keys = scratch.take<std::byte>(blocks.count() * key_size());
    run(blocks, rows, keys, false);
    const bool certain = decide(scratch, scopes, key_step, keys);
    if (certain) run(blocks, rows, keys, true);
    return certain;
  }

  // Writes the keys of a box, or masks it by them.
  void run(const Rect &blocks, const BlockRows &rows, std::byte *keys, bool masks) const {
    const auto dtype = index_of_dtype(leaf_.dtype);
    const int block = power_of(leaf_.numel());
    const auto kernel =
        rows.side_by_side
            ? (masks ? kernels_.mask_by_keys_across : kernels_.block_keys_across)[dtype]
            : (masks ? kernels_.mask_by_keys_along : kernels_.block_keys_along)[dtype][block];
    for_each_box_of_rows(blocks, rows, keys, kernel);
  }

  // Which table entry is that of 2, 4, 8 or 16.
  static int power_of(int64_t count) { return std::countr_zero(static_cast<uint64_t>(count)) - 1; }

  template <typename F>
  void for_each_box_of_rows(const Rect &blocks, const BlockRows &rows, std::byte *keys,
                            const F &kernel) const {
    const std::byte *x = leaf_.x + dot(blocks.low, leaf_.grid_x);
    std::byte *y = leaf_.y + dot(blocks.low, leaf_.grid_y);
    BlockKeysArgs args{};
    args.blocks = rows.nest[0].extent;
    args.rows = rows.nest[1].extent;
    args.x_row = rows.nest[1].step[0];
    args.y_row = rows.nest[1].step[1];
    args.key_row = rows.nest[1].step[2] / key_size();
    args.numel = leaf_.numel();
    args.per_scope = scope_.numblk_per_scope;
    args.x_at = x_at_;
    args.y_at = y_at_;
    rows.nest.for_each_outer(2, [&](const int64_t *offset) {
      args.x = x + offset[0];
      args.y = y + offset[1];
      if (keys) args.keys = keys + offset[2];
      kernel(args);
    });
  }

  // Zeroes the keys of the blocks that go. Returns false if some are too close to tell.
  bool decide(Scratch &scratch, const Rect &scopes, const Extents &key_step,
              std::byte *keys) const {
    return select_few(kernels_, scratch, scope_, scopes, leaf_of_keys(keys, key_step), counts_,
                      {kKeyMargin, false})
               .ties == 0;
  }

  // An array of the keys of a box of blocks, as something to select from.
  GridLeaf leaf_of_keys(std::byte *keys, const Extents &key_step) const {
    GridLeaf leaf;
    leaf.dtype = key_dtype();
    leaf.x = keys;
    leaf.y = keys;
    leaf.grid_x = key_step;
    leaf.grid_y = key_step;
    return leaf;
  }

  void split(Scratch &scratch, const Rect &scopes, Tally *tally) const {
    const Tiling parts(scopes.extent, scope_steps(), 1, scopes.count() / kSplit);
    for (int64_t i = 0; i < parts.count(); ++i) {
      Rect part = parts[i];
      part.low = plus(part.low, scopes.low);
      select(scratch, part, tally);
    }
  }

  // Selects by norms, which tell what keys do not.
  void select_by_norms(Scratch &scratch, const Rect &scopes, Tally *tally) const {
    const Rect blocks = member_rect(scope_.members[0], scopes);
    const int64_t count = blocks.count();
    double *norms = scratch.take<double>(count);
    norms_rect(kernels_, scratch, grid_, blocks, 2.0, norms);
    round_scores(grid_, count, norms);
    // Keys of norms, which are not negative, are their bits and the highest one. That is taken for
    // the sign of an element, which leaves the norm as its magnitude; and no key is 0.
    const KeyForm form = KeyForm::of_scores(key_dtype());
    auto *keys = scratch.take<std::byte>(count * form.bytes());
    form.kernels(kernels_).score_keys(norms, count, keys);
    const Extents dense = blocks.extent.row_major().times(form.bytes());
    const FewTotals totals =
        select_few(kernels_, scratch, scope_, scopes, leaf_of_keys(keys, dense), counts_,
                   {1, ties_ == SPK_TIES_KEEP_ALL});
    uint8_t *keep = scratch.take<uint8_t>(count);
    form.kernels(kernels_).keep({keys, count, form.rule}, 1, keep);
    mask_rect(kernels_, scratch, grid_, blocks, keep, true);
    tally->ties += totals.ties;
    tally->achieved += totals.beyond;
  }

  const Kernels &kernels_;
  const Scope &scope_;
  const Grid &grid_;
  const GridLeaf &leaf_;
  const Counts &counts_;
  int32_t ties_;
  int64_t x_at_[kKeyedElements] = {};
  int64_t y_at_[kKeyedElements] = {};
};

}  // namespace

bool are_few_small_blocks(const Scope &scope, const Grids &grids) {
  if (scope.numblk_per_scope > kFewBlocks || grids.size() != 1) return false;
  const Grid &grid = grids[0];
  if (grid.leaves.size() != 1 || grid.numel_per_block > kKeyedElements) return false;
  const Extents &step = grid.leaves[0].grid_x;
  return std::all_of(step.begin(), step.end(), [](int64_t s) { return s >= 0; });
}

void select_small(Call &call, const Scope &scope, const Grid &grid, const Counts &counts,
                  int32_t ties, Tally *tally) {
  const SmallBlocks small(call.kernels(), scope, grid, counts, ties);
  const Tiling tiles(scope.grid_shape, small.scope_steps(), scope.numel_per_scope, kSmallTile);
  call.for_each(tiles.count(),
                [&](Scratch &scratch, int64_t i) { small.select(scratch, tiles[i], tally); });
}

}  // namespace spk
