// Soft thresholding in a diagonal metric: the minimiser of 1/2 (x-w)' H (x-w) + t ||x||, H =
// diag(h), block by block. It is x = w h nu / (1 + h nu), where nu = ||x|| / t solves the secular
// equation ||h w / (1 + h nu)|| = t. In 1/||.|| the equation is concave in nu, so Newton's iteration
// climbs to the root from any lower bound, as in trust-region methods (Conn, Gould and Toint, 2000,
// section 7.3).
//
// Blocks are solved many at a time, in panels of floats or doubles. What is too large for a panel,
// or too extreme, is solved block by block (conditioned_block.cc).
#include <algorithm>

#include "base/dtype.h"
#include "core/conditioned_block.h"
#include "core/nest.h"
#include "core/panel.h"

namespace spk {
namespace {

// What a task needs to know of the call.
struct Task {
  const Kernels &kernels;
  const Grid &grid;
  const Grid &conditioners;
  const SoftOptions &options;
  const Tiling &tiles;
  Tally *tally;
};

bool is_one_threshold(const Rect &rect, const GridArray &thresholds) {
  for (int d = 0; d < rect.extent.size(); ++d) {
    if (rect.extent[d] > 1 && thresholds.step[d] != 0) return false;
  }
  return true;
}

// The thresholds of a box, scaled.
double *thresholds_of(const Task &task, Scratch &scratch, const GridArray &thresholds,
                      const Rect &rect) {
  const int64_t count = rect.count();
  double *threshold = scratch.take<double>(count);
  if (is_one_threshold(rect, thresholds)) {
    load(task.kernels, Rect::one(rect.low), thresholds, threshold);
    std::fill_n(threshold, count, *threshold * task.options.threshold_scale);
    return threshold;
  }
  load(task.kernels, rect, thresholds, threshold);
  for (int64_t b = 0; b < count; ++b) threshold[b] *= task.options.threshold_scale;
  return threshold;
}

// --- blocks of one element --------------------------------------------------------------------

// One leaf of single elements, as bytes.
struct Elements {
  const std::byte *data;
  int32_t dtype;
  Extents step;

  int64_t steps(int64_t bytes) const { return bytes / size_of(dtype); }
};

// The elements of a box, from memory to memory. Operands of the nest: weights, results, conditioners
// (which are local if the thresholds differ, so that they move as one).
void shrink_elements_by(const Task &task, const Rect &rect, const Elements &h,
                        const double *threshold, bool one_threshold) {
  const GridLeaf &leaf = task.grid.leaves[0];
  Nest nest;
  for (int d = 0; d < rect.extent.size(); ++d) {
    nest.add(rect.extent[d], leaf.grid_x[d], leaf.grid_y[d], h.step[d]);
  }
  nest.compile();
  nest.pad_to(1);
  ConditionedElementsArgs args{};
  args.n = nest[0].extent;
  args.x_step = nest[0].step[0] / size_of(leaf.dtype);
  args.y_step = nest[0].step[1] / size_of(leaf.dtype);
  args.h_step = h.steps(nest[0].step[2]);
  args.threshold_step = one_threshold ? 0 : args.h_step;
  const auto kernel =
      task.kernels.conditioned_elements[index_of_dtype(leaf.dtype)][index_of_dtype(h.dtype)];
  int64_t kept = 0;
  nest.for_each_outer(1, [&](const int64_t *offset) {
    args.x = leaf.x + dot(rect.low, leaf.grid_x) + offset[0];
    args.y = leaf.y + dot(rect.low, leaf.grid_y) + offset[1];
    args.h = h.data + offset[2];
    args.threshold = threshold + (one_threshold ? 0 : h.steps(offset[2]));
    kept += kernel(args);
  });
  task.tally->achieved += kept;
}

// Blocks of one element need no iteration.
void shrink_elements(const Task &task, Scratch &scratch, const Rect &rect,
                     const GridArray &thresholds) {
  const GridLeaf &leaf = task.conditioners.leaves[0];
  if (is_one_threshold(rect, thresholds)) {
    const double *threshold = thresholds_of(task, scratch, thresholds, Rect::one(rect.low));
    const Elements h = {leaf.x + dot(rect.low, leaf.grid_x), leaf.dtype, leaf.grid_x};
    return shrink_elements_by(task, rect, h, threshold, true);
  }
  const double *threshold = thresholds_of(task, scratch, thresholds, rect);
  double *local = scratch.take<double>(rect.count());
  load(task.kernels, rect, elements_of(leaf), local);
  const Elements h = {reinterpret_cast<const std::byte *>(local), SPK_F64,
                      rect.extent.row_major().times(kDoubleBytes)};
  shrink_elements_by(task, rect, h, threshold, false);
}

// --- blocks in panels -------------------------------------------------------------------------

// Has the grid leaves of elements of so many bytes?
bool has_size(const Grid &grid, int64_t bytes) {
  return std::any_of(grid.leaves.begin(), grid.leaves.end(),
                     [&](const GridLeaf &leaf) { return size_of(leaf.dtype) == bytes; });
}

// Floats do for floats. Results are rounded once: to 16 bits by way of floats rounded to odd, which
// other leaves of floats could not take.
bool wants_doubles(const Grid &grid, const Grid &conditioners) {
  return has_size(grid, 8) || has_size(conditioners, 8) || (has_size(grid, 4) && has_size(grid, 2));
}

// Tiles of which two panels take half a mebibyte at most: those of long columns, in the width that
// other operations like, would take several. Single elements need no panel.
Tiling panel_tiles(const Grid &grid, const Grid &conditioners) {
  constexpr int64_t kMostBytes = int64_t{512} << 10;
  const int64_t bytes_of_two = wants_doubles(grid, conditioners) ? 16 : 8;
  const int64_t most = kMostBytes / bytes_of_two;
  const int64_t elements = grid.tiles().extent().product() * grid.numel_per_block;
  if (elements <= most || grid.numel_per_block == 1) return grid.tiles();
  return Tiling(grid.shape, grid.leaves[0].grid_x, grid.numel_per_block, most,
                Extents(grid.shape.size(), 1));
}

// The blocks of a tile in panels of weights and conditioners, which may be where those lie.
class TilePanel {
 public:
  TilePanel(const Task &task, Scratch &scratch, const Rect &rect)
      : task_(task),
        rect_(rect),
        layout_(task.grid, rect.count(), wants_doubles(task.grid, task.conditioners)),
        w_(weights_in_place()),
        h_(panel_of_read(task.conditioners, rect, layout_)),
        in_place_(w_ != nullptr) {
    if (!w_) w_ = gathered(scratch, task.grid, 0.0F);
    if (!h_) h_ = gathered(scratch, task.conditioners, 1.0F);
  }

  void solve(Scratch &scratch, const double *threshold, PanelOutcome *outcome) const {
    ConditionedPanel panel{};
    panel.w = w_;
    panel.h = h_;
    panel.blocks = rect_.count();
    panel.rows = layout_.rows;
    panel.row_step = layout_.row_step;
    panel.block_step = layout_.block_step;
    panel.across = layout_.across;
    panel.to_odd = !layout_.doubles && has_size(task_.grid, 2);
    if (!layout_.doubles) panel.shares = scratch.take<double>(batch_entries());
    panel.threshold = threshold;
    // Results that are floats lose no more than 2^-18 of their last bit.
    panel.tolerance = std::max(task_.options.atol, layout_.doubles ? 0x1p-52 : 0x1p-42);
    panel.max_iter = task_.options.max_iter;
    panel.outcome = outcome;
    panel.soon[0] = next_of(task_.grid, rect_, ahead_in(task_.grid));
    panel.soon[1] = next_of(task_.conditioners, rect_, ahead_in(task_.conditioners));
    task_.kernels.conditioned_panel[layout_.doubles](panel);
  }

  // Entries of blocks that are solved at once.
  int64_t batch_entries() const {
    const int64_t blocks = panel_batch(layout_.rows, layout_.across);
    return layout_.rows * (layout_.across ? blocks : kLanes * std::min(blocks, rect_.count()));
  }

  // Bytes from this tile to the next. Weights and conditioners are cut into the same tiles.
  int64_t ahead_in(const Grid &grid) const { return task_.tiles.stride(grid.leaves[0].grid_x); }

  void write() const {
    if (!in_place_) scatter_panel(task_.kernels, task_.grid, rect_, layout_, w_);
  }

  void write_block(int64_t number, const Extents &block) const {
    if (in_place_) return;
    scatter_panel(task_.kernels, task_.grid, Rect::one(block), layout_,
                  w_ + number * layout_.block_step * layout_.entry_size());
  }

 private:
  // The weights themselves, if they lie as in a panel.
  std::byte *weights_in_place() const {
    std::byte *written = panel_of_written(task_.grid, rect_, layout_);
    return written == panel_of_read(task_.grid, rect_, layout_) ? written : nullptr;
  }

  // A panel in which what belongs to no block is `padding`.
  std::byte *gathered(Scratch &scratch, const Grid &grid, float padding) const {
    std::byte *panel =
        layout_.doubles ? padded<double>(scratch, padding) : padded<float>(scratch, padding);
    gather_panel(task_.kernels, grid, rect_, layout_, panel);
    return panel;
  }
  template <typename Entry>
  std::byte *padded(Scratch &scratch, Entry padding) const {
    Entry *panel = scratch.take<Entry>(layout_.size);
    if (layout_.has_padding) std::fill_n(panel, layout_.size, padding);
    return reinterpret_cast<std::byte *>(panel);
  }

  const Task &task_;
  const Rect &rect_;
  const PanelLayout layout_;
  std::byte *w_;
  const std::byte *h_;
  const bool in_place_;
};

void count_outcomes(const PanelOutcome *outcome, int64_t count, Tally *tally) {
  tally->achieved += count - std::count(outcome, outcome + count, kPanelDead) -
                     std::count(outcome, outcome + count, kPanelUnsolved);
  tally->not_converged += std::count(outcome, outcome + count, kPanelOutOfSteps);
}

void shrink_tile(const Task &task, Scratch &scratch, const Rect &rect, const double *threshold) {
  const int64_t count = rect.count();
  auto *outcome = scratch.take<PanelOutcome>(count);
  const TilePanel panel(task, scratch, rect);
  panel.solve(scratch, threshold, outcome);
  count_outcomes(outcome, count, task.tally);
  if (std::find(outcome, outcome + count, kPanelUnsolved) == outcome + count) {
    panel.write();
    return;
  }
  for_each_block(rect, [&](int64_t number, const Extents &block) {
    if (outcome[number] == kPanelUnsolved) {
      conditioned_block(task.kernels, scratch, task.grid, task.conditioners, block,
                        threshold[number], task.options, task.tally);
    } else {
      panel.write_block(number, block);
    }
  });
}

}  // namespace

void conditioned_soft_threshold(Call &call, const Grid &grid, const Grid &conditioners,
                                const GridArray &thresholds, const SoftOptions &options,
                                Tally *tally) {
  const Tiling tiles = panel_tiles(grid, conditioners);
  const Task task = {call.kernels(), grid, conditioners, options, tiles, tally};
  call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
    const Rect rect = tiles[i];
    if (grid.numel_per_block == 1) return shrink_elements(task, scratch, rect, thresholds);
    const double *threshold = thresholds_of(task, scratch, thresholds, rect);
    if (!grid.is_large()) return shrink_tile(task, scratch, rect, threshold);
    for_each_block(rect, [&](int64_t number, const Extents &block) {
      conditioned_block(task.kernels, scratch, grid, conditioners, block, threshold[number],
                        options, tally);
    });
  });
}

}  // namespace spk
