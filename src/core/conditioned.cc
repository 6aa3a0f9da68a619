// Soft thresholding in a diagonal metric: the minimiser of 1/2 (x-w)' H (x-w) + t ||x||, H =
// diag(h). With a = h.w and nu = ||x|| / t it is x = w.h nu / (1 + h nu), where nu solves the
// secular equation ||a / (1 + h nu)|| = t. In 1/||.|| the equation is concave in nu, so Newton's
// iteration climbs to the root from any lower bound, as in trust-region methods (Conn, Gould and
// Toint, 2000, section 7.3). Blocks are scaled by powers of two, which is exact, and a by 1 / t.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/norms.h"
#include "core/soft_threshold.h"

namespace spk {
namespace {

// Doubles that the solver works on: one block, or one part of a large one.
struct Workspace {
  double *w;  // as gathered
  double *h;
  double *scaled_w;
  double *scaled_h;
  double *a;

  Workspace(Scratch &scratch, int64_t n)
      : w(scratch.take<double>(n)),
        h(scratch.take<double>(n)),
        scaled_w(scratch.take<double>(n)),
        scaled_h(scratch.take<double>(n)),
        a(scratch.take<double>(n)) {}
};

// The elements of one block in pieces: all of a small block, gathered once, or the parts of a large
// one, gathered again each time.
class BlockSource {
 public:
  BlockSource(const Kernels &kernels, const Grid &grid, const Grid &conditioners,
              const Extents &block, const Workspace &work)
      : kernels_(kernels), grid_(grid), conditioners_(conditioners), block_(block), work_(work) {
    if (grid_.is_large()) return;
    gather_block(kernels_, grid_, block_, work_.w);
    gather_block(kernels_, conditioners_, block_, work_.h);
  }

  // fn(count) for every piece, in order, with the piece in work.w and work.h.
  template <typename Fn>
  void for_each_piece(Fn &&fn) const {
    if (!grid_.is_large()) return fn(grid_.numel_per_block);
    for_each_part([&](size_t, const Rect &part) { fn(part.count()); });
  }

  // Multiplies every element by factor(h) and writes it.
  template <typename Fn>
  void write(Fn &&factor) const {
    auto multiply = [&](int64_t n) {
      for (int64_t i = 0; i < n; ++i) work_.w[i] *= factor(work_.h[i]);
    };
    if (grid_.is_large()) {
      for_each_part([&](size_t leaf, const Rect &part) {
        multiply(part.count());
        scatter(kernels_, grid_.leaves[leaf], block_, part, work_.w);
      });
      return;
    }
    multiply(grid_.numel_per_block);
    const double *w = work_.w;
    for (const GridLeaf &leaf : grid_.leaves) {
      scatter(kernels_, leaf, block_, Rect::whole(leaf.block), w);
      w += leaf.numel();
    }
  }

  const Workspace &work() const { return work_; }
  const Kernels &kernels() const { return kernels_; }

 private:
  template <typename Fn>
  void for_each_part(Fn &&fn) const {
    for (size_t leaf = 0; leaf < grid_.leaves.size(); ++leaf) {
      const Tiling parts = parts_of(grid_.leaves[leaf]);
      for (int64_t i = 0; i < parts.count(); ++i) {
        gather(kernels_, grid_.leaves[leaf], block_, parts[i], work_.w);
        gather(kernels_, conditioners_.leaves[leaf], block_, parts[i], work_.h);
        fn(leaf, parts[i]);
      }
    }
  }

  const Kernels &kernels_;
  const Grid &grid_;
  const Grid &conditioners_;
  const Extents &block_;
  const Workspace &work_;
};

// The exponent of the power of two that brings a positive, finite number into [1/2, 1), as far as
// the power itself is a normal double.
int exponent_for(double magnitude) {
  return std::clamp(-(std::ilogb(magnitude) + 1), -1022, 1022);
}

// A block scaled by powers of two: max |w| and max h in [1/2, 1), and so max |a| of a = h.w.
class ScaledBlock {
 public:
  explicit ScaledBlock(const BlockSource &source) : source_(source) {
    source_.for_each_piece([&](int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const double magnitude = std::fabs(work().w[i]);
        if (magnitude > max_w_ || std::isnan(magnitude)) max_w_ = magnitude;
        max_h_ = std::max(max_h_, work().h[i]);
        if (std::isnan(max_w_)) return;
      }
    });
  }

  double max_w() const { return max_w_; }
  double h_scale() const { return std::ldexp(1.0, h_exponent_); }

  // For a block with 0 < max |w| < inf. False if every product vanishes even so.
  bool scale() {
    w_exponent_ = exponent_for(max_w_);
    h_exponent_ = exponent_for(max_h_);
    double max_a = 0.0;
    for_each_scaled_piece([&](int64_t n) {
      for (int64_t i = 0; i < n; ++i) max_a = std::max(max_a, std::fabs(work().a[i]));
    });
    if (max_a == 0.0) return false;
    a_exponent_ = exponent_for(max_a);
    return true;
  }

  // The threshold in the scale of w and h, and in that of a.
  double scaled(double threshold) const { return std::ldexp(threshold, w_exponent_ + h_exponent_); }
  double scaled_for_a(double threshold) const {
    return std::ldexp(threshold, w_exponent_ + h_exponent_ + a_exponent_);
  }

  ConditionedSums sums() const {
    ConditionedSums total{};
    for_each_scaled_piece([&](int64_t n) {
      const ConditionedSums piece =
          source_.kernels().conditioned_sums(work().scaled_w, work().scaled_h, work().a, n);
      total.weights += piece.weights;
      total.products += piece.products;
      total.quotients += piece.quotients;
      total.cubes += piece.cubes;
    });
    return total;
  }

  // One Newton step of 1 / ||(a / t) / (1 + h nu)|| = 1 from nu; t in the scale of a.
  double newton_step(double t, double nu) const {
    double square = 0.0;
    double square_error = 0.0;
    double slope = 0.0;
    for_each_scaled_piece([&](int64_t n) {
      for (int64_t i = 0; i < n; ++i) work().a[i] /= t;
      const SecularSums piece = source_.kernels().secular_sums(work().a, work().scaled_h, n, nu);
      combine(kSumExact, &square, &square_error, piece.square, piece.square_error);
      slope += piece.slope;
    });
    const double total = square + square_error;
    // sqrt(total) - 1 = (total - 1) / (sqrt(total) + 1): no cancellation but that of the sum.
    const double excess = ((square - 1.0) + square_error) / (std::sqrt(total) + 1.0);
    return excess * (total / slope);
  }

 private:
  const Workspace &work() const { return source_.work(); }

  template <typename Fn>
  void for_each_scaled_piece(Fn &&fn) const {
    const double w_scale = std::ldexp(1.0, w_exponent_);
    const double h_scale = std::ldexp(1.0, h_exponent_);
    const double a_scale = std::ldexp(1.0, a_exponent_);
    source_.for_each_piece([&](int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        work().scaled_w[i] = work().w[i] * w_scale;
        work().scaled_h[i] = work().h[i] * h_scale;
        work().a[i] = work().scaled_w[i] * work().scaled_h[i] * a_scale;
      }
      fn(n);
    });
  }

  const BlockSource &source_;
  double max_w_ = 0.0;  // NaN wins
  double max_h_ = 0.0;
  int w_exponent_ = 0;
  int h_exponent_ = 0;
  int a_exponent_ = 0;
};

enum class Outcome { kUnchanged, kDead, kShrunk };

struct Solution {
  Outcome outcome = Outcome::kUnchanged;
  double nu = 0.0;  // for h times h_scale
  double h_scale = 1.0;
  bool converged = true;
};

// Climbs from a lower bound to the root. In exact arithmetic every step after the first is
// positive: one that is not has met rounding, and the root.
void climb(const ScaledBlock &block, double t, double floor, double start,
           const SoftOptions &options, Solution *solution) {
  const double tolerance = std::max(options.atol, 0x1p-52);
  double nu = start;
  solution->converged = false;
  for (int i = 0; i < options.max_iter && !solution->converged; ++i) {
    const double step = block.newton_step(t, nu);
    const bool met_rounding = i > 0 && !(step > 0.0);
    const double next = met_rounding ? nu : std::max(nu + step, floor);
    solution->converged = met_rounding || std::fabs(next - nu) <= tolerance * next;
    nu = next;
  }
  solution->nu = nu;
}

Solution solve(const BlockSource &source, double threshold, const SoftOptions &options) {
  ScaledBlock block(source);
  Solution solution;
  if (threshold == 0.0 || std::isnan(block.max_w())) return solution;
  solution.outcome = Outcome::kDead;
  if (std::isinf(threshold) || block.max_w() == 0.0) return solution;
  solution.outcome = Outcome::kUnchanged;
  if (std::isinf(block.max_w())) return solution;

  solution.outcome = Outcome::kDead;
  if (!block.scale()) return solution;
  const ConditionedSums sums = block.sums();
  const double n = std::sqrt(sums.products);
  const double t = block.scaled_for_a(threshold);
  if (n <= t) return solution;
  // So small a threshold moves no element by as much as its rounding error.
  solution.outcome = Outcome::kUnchanged;
  if (t < n * 0x1p-1000) return solution;

  solution.outcome = Outcome::kShrunk;
  solution.h_scale = block.h_scale();
  const double floor = (n - t) * sums.products / (t * sums.cubes);
  const double other =
      std::sqrt(sums.weights) / block.scaled(threshold) - sums.quotients / sums.weights;
  const double start = std::isfinite(other) ? std::max(floor, other) : floor;
  climb(block, t, floor, start, options, &solution);
  return solution;
}

// One element: |x| = |w| - t / h.
double shrink_element(double w, double h, double t) {
  if (t == 0.0 || std::isnan(w)) return w;
  if (std::isinf(t)) return 0.0;
  if (std::isinf(w)) return w;
  const double shift = t / h;
  const double magnitude = std::fabs(w);
  return magnitude <= shift ? 0.0 : std::copysign(magnitude - shift, w);
}

// Blocks of one element need no iteration: whole boxes of them at once.
void shrink_elements(const Kernels &kernels, Scratch &scratch, const Grid &grid,
                     const Grid &conditioners, const Rect &rect, const double *threshold,
                     Tally *tally) {
  const GridLeaf &weights = grid.leaves[0];
  const GridLeaf &metric = conditioners.leaves[0];
  const int64_t count = rect.count();
  double *w = scratch.take<double>(count);
  double *h = scratch.take<double>(count);
  load(kernels, rect, {const_cast<std::byte *>(weights.x), weights.dtype, weights.grid_x}, w);
  load(kernels, rect, {const_cast<std::byte *>(metric.x), metric.dtype, metric.grid_x}, h);
  int64_t kept = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bool unchanged = threshold[i] == 0.0;
    w[i] = shrink_element(w[i], h[i], threshold[i]);
    kept += unchanged || w[i] != 0.0;
  }
  store(kernels, rect, w, {weights.y, weights.dtype, weights.grid_y});
  tally->achieved += kept;
}

void shrink_block(const Kernels &kernels, Scratch &scratch, const Grid &grid,
                  const Grid &conditioners, const Extents &block, double threshold,
                  const SoftOptions &options, Tally *tally) {
  const Scratch::Frame frame(scratch);
  const Workspace work(scratch, std::min(grid.numel_per_block, kPartElements));
  const BlockSource source(kernels, grid, conditioners, block, work);
  const Solution solution = solve(source, threshold, options);
  if (!solution.converged) ++tally->not_converged;
  if (solution.outcome == Outcome::kShrunk) {
    source.write([&](double h) {
      const double reach = h * solution.h_scale * solution.nu;
      // Beyond the range of double nothing is left to shrink.
      return std::isinf(reach) ? 1.0 : reach / (1.0 + reach);
    });
  } else {
    const uint8_t keep = solution.outcome == Outcome::kUnchanged;
    mask_rect(kernels, grid, {block, Extents(block.size(), 1)}, &keep);
  }
  if (solution.outcome != Outcome::kDead) ++tally->achieved;
}

}  // namespace

void check_conditioners(Call &call, const Grid &conditioners, int first_leaf) {
  for (size_t l = 0; l < conditioners.leaves.size(); ++l) {
    const GridLeaf &leaf = conditioners.leaves[l];
    const Tiling parts = parts_of(leaf);
    const Tiling tiles = conditioners.tiles();
    call.for_each(tiles.count() * parts.count(), [&](Scratch &scratch, int64_t i) {
      const Rect part = parts[i % parts.count()];
      double *h = scratch.take<double>(part.count());
      for_each_block(tiles[i / parts.count()], [&](int64_t, const Extents &block) {
        gather(call.kernels(), leaf, block, part, h);
        for (int64_t e = 0; e < part.count(); ++e) {
          if (h[e] > 0.0 && std::isfinite(h[e])) continue;
          fail(SPK_INVALID_ARGUMENT, "conditioners[", first_leaf + static_cast<int>(l), "]: got ",
               h[e], " in block ", block, ", expected numbers > 0 and finite");
        }
      });
    });
  }
}

void conditioned_soft_threshold(Call &call, const Grid &grid, const Grid &conditioners,
                                const GridArray &thresholds, const SoftOptions &options,
                                Tally *tally) {
  const Tiling tiles = grid.tiles();
  call.for_each(tiles.count(), [&](Scratch &scratch, int64_t i) {
    const Rect rect = tiles[i];
    double *threshold = scratch.take<double>(rect.count());
    load(call.kernels(), rect, thresholds, threshold);
    for (int64_t b = 0; b < rect.count(); ++b) threshold[b] *= options.threshold_scale;
    if (grid.numel_per_block == 1) {
      shrink_elements(call.kernels(), scratch, grid, conditioners, rect, threshold, tally);
      return;
    }
    for_each_block(rect, [&](int64_t number, const Extents &block) {
      shrink_block(call.kernels(), scratch, grid, conditioners, block, threshold[number], options,
                   tally);
    });
  });
}

}  // namespace spk
