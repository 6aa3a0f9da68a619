#include "core/norms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/dtype.h"
#include "base/error.h"
#include "core/elements.h"
#include "core/power.h"
#include "core/reduce.h"
#include "core/slabs.h"
#include "kernels/norm_scale.h"

namespace spk {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The two ways to reduce a grid, behind one shape: `count` blocks into local arrays.
struct RectReducer {
  const Kernels &kernels;
  Scratch &scratch;
  const Grid &grid;
  const Rect &rect;

  int64_t count() const { return rect.count(); }
  void reduce(Reduction reduction, const ReduceOptions &options, double *sum, double *error) const {
    reduce_rect(kernels, scratch, grid, rect, reduction, options, sum, error);
  }
  // fn(scratch, number, block) for every block.
  template <typename Fn>
  void for_each(Fn &&fn) const {
    for_each_block(rect, [&](int64_t number, const Extents &block) { fn(scratch, number, block); });
  }
  static Tiling parts(const GridLeaf &leaf) { return Tiling(leaf.block); }
};

struct DeepReducer {
  Call &call;
  const Grid &grid;
  const Kernels &kernels = call.kernels();
  Scratch &scratch = call.scratch();

  int64_t count() const { return grid.numblk(); }
  void reduce(Reduction reduction, const ReduceOptions &options, double *sum, double *error) const {
    reduce_deep(call, grid, reduction, options, sum, error);
  }
  template <typename Fn>
  void for_each(Fn &&fn) const {
    call.for_each(count(), [&](Scratch &own, int64_t number) {
      fn(own, number, index_at(grid.shape, number));
    });
  }
  static Tiling parts(const GridLeaf &leaf) { return parts_of(leaf); }
};

// The one reduction, rounded once, that a norm is; none if it takes more.
std::optional<Reduction> plain_reduction(const Grid &grid, double p) {
  if (p == 0.0) return kCount;
  if (p == kInfinity) return kMaxMagnitude;
  if (p == -kInfinity) return kMinMagnitude;
  const bool are_sums_exact = grid.score_dtype != SPK_F64;
  if (p == 1.0 && are_sums_exact) return kSum;
  if (p == 2.0 && are_sums_exact) return kSumSquares;
  return std::nullopt;
}

template <typename Reducer>
void plain(const Reducer &reducer, Reduction reduction, double *norms) {
  ReduceOptions options;
  options.roots = reduction == kSumSquares;
  reducer.reduce(reduction, options, norms, nullptr);
}

template <typename Reducer>
void compensated_sum(const Reducer &reducer, double *norms) {
  double *errors = reducer.scratch.template take<double>(reducer.count());
  reducer.reduce(kSumExact, {}, norms, errors);
  for (int64_t i = 0; i < reducer.count(); ++i) {
    // An overflowed sum leaves inf - inf in its error.
    if (std::isfinite(norms[i])) norms[i] += errors[i];
  }
}

// Norms near the ends of the range of double: elements are first brought near 1, by a power of two
// for each block. Blocks whose `scale` is 0 keep their norm.
template <typename Reducer>
void scaled_euclidean(const Reducer &reducer, const double *scale, double *norms) {
  const int64_t count = reducer.count();
  double *roots = reducer.scratch.template take<double>(count);
  double *errors = reducer.scratch.template take<double>(count);
  ReduceOptions options;
  options.scale = scale;
  reducer.reduce(kSumSquaresExact, options, roots, errors);
  reducer.kernels.exact_roots(roots, errors, count);
  for (int64_t i = 0; i < count; ++i) {
    if (scale[i] != 0.0) norms[i] = roots[i] / scale[i];
  }
}

// Norms of f64 data: compensated sums, scaled only where they must be. ExactNorm of the kernels
// does the same for one block of rows.
template <typename Reducer>
void exact_euclidean(const Reducer &reducer, double *norms) {
  const int64_t count = reducer.count();
  double *errors = reducer.scratch.template take<double>(count);
  reducer.reduce(kSumSquaresExact, {}, norms, errors);
  if (reducer.kernels.exact_roots(norms, errors, count)) return;
  double *largest = reducer.scratch.template take<double>(count);
  reducer.reduce(kMaxMagnitude, {}, largest, nullptr);
  // Blocks that are pruned already, infinite or NaN are as large as their largest magnitude; others
  // are so rarely left that most calls end here.
  double *scale = reducer.scratch.template take<double>(count);
  bool any = false;
  for (int64_t i = 0; i < count; ++i) {
    scale[i] = 0.0;
    if (is_exact_root(norms[i])) continue;
    norms[i] = largest[i];
    if (largest[i] == 0.0 || !std::isfinite(largest[i])) continue;
    scale[i] = norm_scale(largest[i]);
    any = true;
  }
  if (any) scaled_euclidean(reducer, scale, norms);
}

// sum (|x| / max)^p over one block.
template <typename Reducer>
DoubleDouble sum_of_powers(const Reducer &reducer, Scratch &scratch, const Extents &block,
                           double max, double p) {
  const Scratch::Frame frame(scratch);
  double *elements = scratch.take<double>(std::min(reducer.grid.numel_per_block, kPartElements));
  DoubleDouble sum{0.0, 0.0};
  for (const GridLeaf &leaf : reducer.grid.leaves) {
    const Tiling parts = reducer.parts(leaf);
    for (int64_t i = 0; i < parts.count(); ++i) {
      const Rect part = parts[i];
      gather(reducer.kernels, leaf, block, part, elements);
      for (int64_t e = 0; e < part.count(); ++e) {
        sum = add(sum, {power_of_ratio(std::fabs(elements[e]), max, p), 0.0});
      }
    }
  }
  return sum;
}

// Any p: max * (sum (|x| / max)^p)^(1/p).
template <typename Reducer>
void general(const Reducer &reducer, double p, double *norms) {
  plain(reducer, kMaxMagnitude, norms);
  reducer.for_each([&](Scratch &scratch, int64_t i, const Extents &block) {
    const double max = norms[i];
    if (!std::isfinite(max) || max == 0.0) return;
    norms[i] = scaled_root(max, sum_of_powers(reducer, scratch, block, max, p), p);
  });
}

template <typename Reducer>
void norms_by(const Reducer &reducer, double p, double *norms) {
  const Scratch::Frame frame(reducer.scratch);
  if (const auto reduction = plain_reduction(reducer.grid, p)) {
    return plain(reducer, *reduction, norms);
  }
  if (p == 1.0) return compensated_sum(reducer, norms);
  if (p == 2.0) return exact_euclidean(reducer, norms);
  general(reducer, p, norms);
}

// Every norm of one element but p = 0 is its magnitude.
void magnitudes(const Kernels &kernels, const GridLeaf &leaf, const Rect &rect, double *local) {
  load(kernels, rect, elements_of(leaf), local);
  for (int64_t i = 0; i < rect.count(); ++i) local[i] = std::fabs(local[i]);
}

// Norms that are one plain reduction, written where they belong in one go. Returns false, and has
// done nothing, of others.
bool norms_to_floats(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                     double p, bool past_caches, const GridArray &out) {
  const auto reduction = plain_reduction(grid, p);
  const bool are_floats = grid.score_dtype == SPK_F32 && out.dtype == SPK_F32;
  if (!reduction || !are_floats || !is_row_major(rect, out)) return false;
  auto *to = reinterpret_cast<float *>(out.data + dot(rect.low, out.step));
  const bool roots = *reduction == kSumSquares;
  return reduce_to_floats(kernels, scratch, grid, rect, *reduction, roots, past_caches, to);
}

// Are coupled leaves read one after the other? Then a sum of each block is kept until all are read.
bool are_read_by_leaf(const Grid &grid, int64_t threads) {
  constexpr int64_t kLeastElements = 32;  // of a block: beside fewer, a sum is much
  return grid.is_better_by_leaf(kLeastElements) &&
         slabs_have_long_rows(grid, kDoubleBytes, threads);
}

// Norms of coupled leaves that are read one after the other.
void norms_by_leaf(Call &call, const Grid &grid, Reduction reduction, bool past_caches,
                   const GridArray &out) {
  const Kernels &kernels = call.kernels();
  const Scratch::Frame frame(call.scratch());
  double *all = call.scratch().take<double>(grid.numblk());
  reduce_by_leaf(call, grid, reduction, all);
  const Extents step = grid.shape.row_major();
  const Tiling runs(grid.shape, step, 1, kTileElements);  // contiguous, being of rows
  call.for_each(runs.count(), [&](Scratch &, int64_t i) {
    const Rect run = runs[i];
    double *norms = all + dot(run.low, step);
    if (reduction == kSumSquares) kernels.roots(norms, run.count());
    store(kernels, run, norms, out, past_caches);
  });
}

}  // namespace

void check_p(double p) {
  const bool finite_range = p >= 0.01 && p <= 1000.0;
  if (p == 0.0 || p == kInfinity || p == -kInfinity || finite_range) return;
  fail(SPK_INVALID_ARGUMENT, "p: got ", p, ", expected 0, 1, 2, inf, -inf or 0.01 to 1000");
}

void norms_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid, const Rect &rect,
                double p, double *local) {
  if (grid.numel_per_block == 1 && p != 0.0) {
    return magnitudes(kernels, grid.leaves[0], rect, local);
  }
  norms_by(RectReducer{kernels, scratch, grid, rect}, p, local);
}

void norms_deep(Call &call, const Grid &grid, double p, double *local) {
  norms_by(DeepReducer{call, grid}, p, local);
}

void round_scores(const Grid &grid, int64_t count, double *local) {
  if (grid.score_dtype != SPK_F64) kernels().round_to_float(local, count);
}

void norms(Call &call, const Grid &grid, double p, const GridArray &out) {
  const int32_t dtype = grid.leaves[0].dtype;
  const bool in_own_type = (dtype == SPK_F64) == (out.dtype == SPK_F64);
  // Norms that no cache would hold are not worth reading lines for that they will overwrite.
  const bool past_caches = grid.numblk() * size_of(out.dtype) >= kCacheBytes;
  if (const ElementRows rows(grid, out); p != 0.0 && in_own_type && rows.exist()) {
    // Rows that are not long would write parts of lines.
    const bool stream = past_caches && rows.are_long();
    const auto magnitudes = call.kernels().magnitudes[index_of_dtype(dtype)][stream];
    rows.for_each(call, Entries::kWritten,
                  [&](const ElementArgs &args) { magnitudes(args.x, args.n, args.others); });
    return;
  }
  if (grid.is_deep()) {
    return for_each_slab(call, grid, kept_by_norms(grid),
                         [&](const Grid &blocks, const Rect &slab) {
                           double *all = call.scratch().take<double>(slab.count());
                           norms_deep(call, blocks, p, all);
                           store(call.kernels(), slab, all, out, past_caches);
                         });
  }
  if (const auto reduction = plain_reduction(grid, p);
      reduction && are_read_by_leaf(grid, call.threads())) {
    return for_each_slab(call, grid, kDoubleBytes, [&](const Grid &blocks, const Rect &slab) {
      norms_by_leaf(call, blocks, *reduction, past_caches, entries_in(slab, out));
    });
  }
  const Tiling tiles = grid.tiles();
  call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
    const Rect rect = tiles[i];
    if (norms_to_floats(call.kernels(), scratch, grid, rect, p, past_caches, out)) return;
    double *local = scratch.take<double>(rect.count());
    norms_rect(call.kernels(), scratch, grid, rect, p, local);
    store(call.kernels(), rect, local, out, past_caches);
  });
}

}  // namespace spk
