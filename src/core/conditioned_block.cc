// With an unknown nu = ||x|| / s for a unit s of our choice, and radii r = t / (s h), the minimiser
// (see conditioned.cc) is x = w nu / (r + nu), where nu solves the secular equation
// ||b / (r + nu)|| = 1 for b = w / s. The unit is a power of two, hence exact, above max |w|: no
// quantity leaves the range of double where it matters.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/conditioned_block.h"
#include "core/power.h"
#include "core/write_blocks.h"

namespace spk {
namespace {

// Doubles that the solver works on: one block, or one part of a large one.
struct Workspace {
  double *w;       // as gathered
  double *weight;  // b: w over the unit
  double *radius;  // h as gathered, then r

  Workspace(Scratch &scratch, int64_t n)
      : w(scratch.take<double>(n)),
        weight(scratch.take<double>(n)),
        radius(scratch.take<double>(n)) {}
};

// Largest magnitude, NaN wins.
double max_magnitude(const double *w, int64_t n, double max) {
  for (int64_t i = 0; i < n; ++i) {
    const double magnitude = std::fabs(w[i]);
    if (magnitude > max || std::isnan(magnitude)) max = magnitude;
    if (std::isnan(max)) return max;
  }
  return max;
}

// The units of one block: b = w * weight_scale, r = mantissa / h * first * second, where the
// product of the last two is a power of two that may leave the range of double.
class Units {
 public:
  Units() = default;
  // For 0 < max_w < inf and 0 < t < inf.
  Units(double max_w, double t) {
    const int w_exponent = std::clamp(std::ilogb(max_w) + 1, -1022, 1022);
    int t_exponent = 0;
    mantissa_ = std::frexp(t, &t_exponent);
    const int exponent = std::clamp(t_exponent - w_exponent - kHeadroom, -2044, 2044);
    weight_scale_ = std::ldexp(1.0, -w_exponent);
    first_ = std::ldexp(1.0, exponent / 2);
    second_ = std::ldexp(1.0, exponent - exponent / 2);
  }

  void apply(const Workspace &work, int64_t n) const {
    constexpr double kMin = std::numeric_limits<double>::min();
    for (int64_t i = 0; i < n; ++i) {
      work.weight[i] = work.w[i] * weight_scale_ * 0x1p-100;
      // Never 0, which would divide a weight of 0 by 0.
      work.radius[i] = std::max(mantissa_ / work.radius[i] * first_ * second_, kMin);
    }
  }

 private:
  // The unit is 2^100 above max |w|, because radii r grow as conditioners shrink: those of every
  // element that does not vanish are then in range.
  static constexpr int kHeadroom = 100;
  double mantissa_ = 0.0;
  double weight_scale_ = 1.0;
  double first_ = 1.0;
  double second_ = 1.0;
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
    gather_block(kernels_, conditioners_, block_, work_.radius);
  }

  double max_w() const {
    double max = 0.0;
    for_each_piece([&](int64_t n) { max = max_magnitude(work_.w, n, max); });
    return max;
  }

  // fn(w, h) for every element, as it is.
  template <typename Fn>
  void for_each_element(Fn &&fn) {
    const Units units = units_;
    has_units_ = false;
    if (!grid_.is_large()) gather_block(kernels_, conditioners_, block_, work_.radius);
    for_each_piece([&](int64_t n) {
      for (int64_t i = 0; i < n; ++i) fn(work_.w[i], work_.radius[i]);
    });
    set_units(units);
  }

  // From here on pieces come with weights and radii.
  void set_units(const Units &units) {
    units_ = units;
    has_units_ = true;
    if (!grid_.is_large()) units_.apply(work_, grid_.numel_per_block);
  }

  // fn(count) for every piece, in order, with the piece in the workspace.
  template <typename Fn>
  void for_each_piece(Fn &&fn) const {
    if (!grid_.is_large()) return fn(grid_.numel_per_block);
    for_each_part([&](size_t, const Rect &part) { fn(part.count()); });
  }

  // Writes w nu / (r + nu).
  void write(double nu) const {
    if (grid_.is_large()) {
      for_each_part([&](size_t leaf, const Rect &part) {
        shrink(nu, part.count());
        scatter(kernels_, grid_.leaves[leaf], block_, part, work_.w);
      });
      return;
    }
    shrink(nu, grid_.numel_per_block);
    const double *w = work_.w;
    for (const GridLeaf &leaf : grid_.leaves) {
      scatter(kernels_, leaf, block_, Rect::whole(leaf.block), w);
      w += leaf.numel();
    }
  }

  const Workspace &work() const { return work_; }
  const Kernels &kernels() const { return kernels_; }

 private:
  void shrink(double nu, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      const double factor = nu / (work_.radius[i] + nu);
      // A factor near the end of the range has lost bits that the product would keep.
      const bool small = factor < 0x1p-1000;
      work_.w[i] = small ? work_.w[i] * nu / (work_.radius[i] + nu) : work_.w[i] * factor;
    }
  }

  template <typename Fn>
  void for_each_part(Fn &&fn) const {
    for (size_t leaf = 0; leaf < grid_.leaves.size(); ++leaf) {
      const Tiling parts = parts_of(grid_.leaves[leaf]);
      for (int64_t i = 0; i < parts.count(); ++i) {
        const Rect part = parts[i];
        gather(kernels_, grid_.leaves[leaf], block_, part, work_.w);
        gather(kernels_, conditioners_.leaves[leaf], block_, part, work_.radius);
        if (has_units_) units_.apply(work_, part.count());
        fn(leaf, part);
      }
    }
  }

  const Kernels &kernels_;
  const Grid &grid_;
  const Grid &conditioners_;
  const Extents &block_;
  const Workspace &work_;
  Units units_;
  bool has_units_ = false;
};

// Sums of a block for the lower bounds of nu. `a_scale` is a power of two.
ConditionedSums sums_of(const BlockSource &source, double a_scale) {
  ConditionedSums total{};
  source.for_each_piece([&](int64_t n) {
    const ConditionedSums piece =
        source.kernels().conditioned_sums(source.work().weight, source.work().radius, n, a_scale);
    total.weights += piece.weights;
    total.products += piece.products;
    total.quotients += piece.quotients;
    total.cubes += piece.cubes;
  });
  return total;
}

// What the elements tell one by one.
struct Singles {
  // The power of two that brings max |b / r| near 1; 0 if all vanish.
  double a_scale = 0.0;
  // max(|b| - r, 0): the root of the element that alone would have the largest is a lower bound of
  // all, from which no |b / (r + nu)| exceeds 1.
  double root = 0.0;
};

Singles singles_of(const BlockSource &source) {
  Singles result;
  double max = 0.0;
  source.for_each_piece([&](int64_t n) {
    const Workspace &work = source.work();
    for (int64_t i = 0; i < n; ++i) {
      const double weight = std::fabs(work.weight[i]);
      max = std::max(max, weight / work.radius[i]);
      result.root = std::max(result.root, weight - work.radius[i]);
    }
  });
  if (max > 0.0) result.a_scale = std::ldexp(1.0, std::clamp(-std::ilogb(max), -1022, 1022));
  return result;
}

// One Newton step from nu for 1 / ||b / (r + nu)|| = 1.
double newton_step(const BlockSource &source, double nu) {
  double square = 0.0;
  double square_error = 0.0;
  double slope = 0.0;
  source.for_each_piece([&](int64_t n) {
    const SecularSums piece =
        source.kernels().secular_sums(source.work().weight, source.work().radius, n, nu);
    combine(kSumExact, 1, &piece.square, &piece.square_error, &square, &square_error, 1);
    slope += piece.slope;
  });
  const double total = square + square_error;
  // sqrt(total) - 1 = (total - 1) / (sqrt(total) + 1): no cancellation but that of the sum.
  const double excess = ((square - 1.0) + square_error) / (std::sqrt(total) + 1.0);
  return excess * (total / slope);
}

enum class Outcome { kUnchanged, kDead, kShrunk };

struct Solution {
  Outcome outcome = Outcome::kUnchanged;
  double nu = 0.0;
  bool converged = true;
};

// Climbs from a lower bound to the root. In exact arithmetic every step after the first is
// positive: one that is not has met rounding, and the root.
void climb(const BlockSource &source, double floor, double start, const SoftOptions &options,
           Solution *solution) {
  const double tolerance = std::max(options.atol, 0x1p-52);
  double nu = start;
  solution->converged = false;
  for (int i = 0; i < options.max_iter && !solution->converged; ++i) {
    const double step = newton_step(source, nu);
    const bool met_rounding = i > 0 && !(step > 0.0);
    const double next = met_rounding ? nu : std::max(nu + step, floor);
    solution->converged = met_rounding || std::fabs(next - nu) <= tolerance * next;
    nu = next;
  }
  solution->nu = nu;
}

// ||h.w|| <= t, told apart to the last bit: in double-double, for a norm that is near t anyway.
bool is_dead_exactly(BlockSource &source, double max_w, double t) {
  int t_exponent = 0;
  const double mantissa = std::frexp(t, &t_exponent);
  const int w_exponent = std::ilogb(max_w) + 1;
  DoubleDouble sum = {0.0, 0.0};
  source.for_each_element([&](double w, double h) {
    // No product exceeds t by much, so that these do not overflow where it matters.
    const DoubleDouble product =
        two_product(std::ldexp(w, -w_exponent), std::ldexp(h, w_exponent - t_exponent));
    sum = add(sum, multiply(product, product));
  });
  const DoubleDouble limit = two_product(mantissa, mantissa);
  return (sum.high - limit.high) + (sum.low - limit.low) <= 0.0;
}

double finite_or_zero(double x) {
  return std::isfinite(x) ? x : 0.0;
}

Solution solve(BlockSource &source, double threshold, const SoftOptions &options) {
  Solution solution;
  const double max_w = source.max_w();
  if (threshold == 0.0 || std::isnan(max_w)) return solution;
  solution.outcome = Outcome::kDead;
  if (std::isinf(threshold) || max_w == 0.0) return solution;
  solution.outcome = Outcome::kUnchanged;
  if (std::isinf(max_w)) return solution;

  source.set_units(Units(max_w, threshold));
  const Singles singles = singles_of(source);
  const double a_scale = singles.a_scale;
  const ConditionedSums sums = sums_of(source, a_scale);
  const double n = std::sqrt(sums.products);  // ||h.w|| / t, times a_scale
  solution.outcome = Outcome::kDead;
  const bool is_near = std::fabs(n - a_scale) <= 0x1p-40 * a_scale;
  if (is_near ? is_dead_exactly(source, max_w, threshold) : n <= a_scale) return solution;

  solution.outcome = Outcome::kShrunk;
  // Lower bounds of nu; one that left the range of double is none.
  const double floor = std::max(
      singles.root, finite_or_zero((n - a_scale) * (sums.products / sums.cubes) / a_scale));
  const double other = finite_or_zero(std::sqrt(sums.weights) - sums.quotients / sums.weights);
  climb(source, floor, std::max(floor, other), options, &solution);
  return solution;
}

}  // namespace

void conditioned_block(const Kernels &kernels, Scratch &scratch, const Grid &grid,
                       const Grid &conditioners, const Extents &block, double threshold,
                       const SoftOptions &options, Tally *tally) {
  const Scratch::Frame frame(scratch);
  const Workspace work(scratch, std::min(grid.numel_per_block, kPartElements));
  BlockSource source(kernels, grid, conditioners, block, work);
  const Solution solution = solve(source, threshold, options);
  if (!solution.converged) ++tally->not_converged;
  if (solution.outcome == Outcome::kShrunk) {
    source.write(solution.nu);
  } else {
    const uint8_t keep = solution.outcome == Outcome::kUnchanged;
    mask_rect(kernels, scratch, grid, Rect::one(block), &keep, true);
  }
  if (solution.outcome != Outcome::kDead) ++tally->achieved;
}

}  // namespace spk
