// The conditioned proximal operator of many blocks at once (core/conditioned.cc has the equation).
//
// The root nu of ||q|| = t, q = h w / (1 + h nu), is found for a batch of blocks at a time, as many
// as stay in the nearest cache. Sums over the elements run in kLanes virtual lanes, which belong to
// one block or are a block each; what is done once a block is done in lanes too, several registers
// at a time, because one alone would mostly wait. Each lane stops alone.
//
// With the moments E_k = sum q^2 p^k / sum q^2 of p = h nu / (1 + h nu), a change of nu to
// nu (1 + x) makes ||q||^2 exactly (1 - 2 E_1 x + 3 E_2 x^2 - 4 E_3 x^3 + ...) times as large, so
// that one sweep gives Newton's step y for 1 / ||q|| and two terms beyond it. All p lie in [0, 1],
// which bounds the next term whatever the block: the error that a step leaves is known. Sums are of
// x = w p = nu q, which takes one division.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conditioned_panel.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

inline constexpr int64_t kMostBlocks = 4 * kLanes;  // of a batch
inline constexpr int64_t kBatchElements = 2048;
// Rows that are summed as they are; the sums of such chains are added with compensation, so that
// the error does not grow with the size of a block.
inline constexpr int64_t kChain = 8;
inline constexpr int kMoments = 4;

// Conditioners and thresholds between the inverse of this and this, and weights of a norm up to it,
// keep all sums here in the range of double: c^2 h^2 <= 2^900, ||x|| >= low t > 2^-342. All of f32
// do.
inline constexpr double kRange = 0x1p150;

// One number for each block of a batch.
struct Scalars {
  HWY_ALIGN double of[kMostBlocks];

  HWY_INLINE V Load(int64_t r) const { return hn::Load(D(), of + r * kN); }
  HWY_INLINE void Store(int64_t r, V v) { hn::Store(v, D(), of + r * kN); }
};

// kPartials sums for each block of a batch: lanes that lie so far apart are added at once.
inline constexpr int64_t kPartials = kLanes / 2;
struct Partials {
  HWY_ALIGN double of[kMostBlocks * kPartials];
};

struct Batch {
  Scalars threshold;
  Scalars nu;
  Scalars low, high;  // bounds of nu, not sharp
  Scalars outcome;    // PanelOutcome, as a number
  Scalars climbing;   // 1 while the root is being sought
  Scalars moment[kMoments];
  Partials partial[kMoments];  // of blocks along rows
};

HWY_INLINE V Number(PanelOutcome outcome) {
  return hn::Set(D(), static_cast<double>(outcome));
}

// The elements of a batch in groups: of one block along rows, or of kLanes blocks across them.
struct Groups {
  double *w;
  const double *h;
  int64_t count;
  int64_t step;  // doubles between groups
  int64_t rows;
  int64_t row_step;
};

// Sum of term(row) for rows from `row` to `end`, kChain at most.
template <class Term>
HWY_INLINE V SumOfChain(int64_t row, int64_t end, Term term) {
  V sum = hn::Zero(D());
  if (end - row == kChain) {
    HWY_UNROLL(2)
    for (int64_t i = 0; i < kChain; ++i) sum = hn::Add(sum, term(row + i));
  } else {
    for (; row < end; ++row) sum = hn::Add(sum, term(row));
  }
  return sum;
}

// Compensated sum of the chains of all rows.
template <class Term>
HWY_INLINE V SumOfRows(int64_t rows, Term term) {
  V total = SumOfChain(0, HWY_MIN(kChain, rows), term);
  if (rows <= kChain) return total;  // nothing to compensate
  V lost = hn::Zero(D());
  for (int64_t row = kChain; row < rows; row += kChain) {
    const V chain = SumOfChain(row, HWY_MIN(row + kChain, rows), term);
    const V sum = hn::Add(total, chain);
    const V part = hn::Sub(sum, total);
    lost = hn::Add(lost, hn::Add(hn::Sub(total, hn::Sub(sum, part)), hn::Sub(chain, part)));
    total = sum;
  }
  return hn::Add(total, lost);
}

// Lanes of sum w^2, sum c^2, sum c^2 h and sum c^2 h^2 for c = h w, of one register of a group.
HWY_INLINE void NormsOfRegister(const double *w, const double *h, int64_t rows, int64_t row_step,
                                V *sums) {
  V weights = hn::Zero(D());
  V cubes = hn::Zero(D());
  V fourths = hn::Zero(D());
  const V products = SumOfRows(rows, [&](int64_t row) HWY_ATTR {
    const V weight = hn::LoadU(D(), w + row * row_step);
    const V metric = hn::LoadU(D(), h + row * row_step);
    const V c = hn::Mul(metric, weight);
    const V square = hn::Mul(c, c);
    weights = hn::Add(weights, hn::Mul(weight, weight));
    const V cube = hn::Mul(square, metric);
    cubes = hn::Add(cubes, cube);
    fourths = hn::Add(fourths, hn::Mul(cube, metric));
    return square;
  });
  sums[0] = weights;
  sums[1] = products;
  sums[2] = cubes;
  sums[3] = fourths;
}

// Lanes of sum (w p)^2 p^k, k = 0 to 3, of one register of a group: nu^2 times those of q.
HWY_INLINE void MomentsOfRegister(const double *w, const double *h, int64_t rows, int64_t row_step,
                                  V nu, V *sums) {
  const V one = hn::Set(D(), 1.0);
  V first = hn::Zero(D());
  V second = hn::Zero(D());
  V third = hn::Zero(D());
  const V squares = SumOfRows(rows, [&](int64_t row) HWY_ATTR {
    const V ratio = hn::Mul(hn::LoadU(D(), h + row * row_step), nu);
    const V p = hn::Div(ratio, hn::Add(ratio, one));
    const V x = hn::Mul(hn::LoadU(D(), w + row * row_step), p);
    const V term0 = hn::Mul(x, x);
    const V term1 = hn::Mul(term0, p);
    const V term2 = hn::Mul(term1, p);
    first = hn::Add(first, term1);
    second = hn::Add(second, term2);
    third = hn::Add(third, hn::Mul(term2, p));
    return term0;
  });
  sums[0] = squares;
  sums[1] = first;
  sums[2] = second;
  sums[3] = third;
}

// Register r of a block's lanes becomes a part of its partial sums, the same on every target: the
// upper half of the lanes is added to the lower.
HWY_INLINE void StorePartial(V sum, int64_t r, double *partial) {
  if constexpr (kN > kPartials) {
    const hn::CappedTag<double, kPartials> half;
    HWY_ALIGN double lanes[kN];
    hn::Store(sum, D(), lanes);
    hn::Store(hn::Add(hn::Load(half, lanes), hn::Load(half, lanes + kPartials)), half, partial);
  } else {
    double *at = partial + r * kN % kPartials;
    hn::StoreU(r * kN < kPartials ? sum : hn::Add(hn::LoadU(D(), at), sum), D(), at);
  }
}

// Adds up the partial sums of kLanes blocks.
HWY_INLINE void Fold(const double *partial, double *sums) {
  static_assert(kPartials == 4);
  for (int64_t i = 0; i < kLanes; i += kN) {
    V a, b, c, d;
    hn::LoadInterleaved4(D(), partial + 4 * i, a, b, c, d);
    hn::Store(hn::Add(hn::Add(a, b), hn::Add(c, d)), D(), sums + i);
  }
}

// Asks for what is read soon, some lines at a time, so that it arrives during the arithmetic.
class ReadAhead {
 public:
  HWY_INLINE ReadAhead(const ReadSoon &soon, int64_t times)
      : row_(soon.first),
        line_(soon.first),
        end_(soon.first + soon.bytes),
        row_step_(soon.row_step),
        rows_(soon.bytes > 0 ? soon.rows : 0),
        lines_((rows_ * ((soon.bytes + kLine - 1) / kLine) + times - 1) / times) {}

  HWY_INLINE void AskForSome() {
    for (int64_t left = lines_; left > 0 && rows_ > 0; --rows_) {
      left = AskForRow(left);
      if (line_ < end_) return;
      row_ += row_step_;
      end_ += row_step_;
      line_ = row_;
    }
  }

 private:
  static constexpr int64_t kLine = 64;

  // Some lines of the row that is being asked for; returns how many fewer are left.
  HWY_INLINE int64_t AskForRow(int64_t left) {
    const std::byte *line = line_;
    for (; left > 0 && line < end_; --left, line += kLine) __builtin_prefetch(line, 0, 2);
    line_ = line;
    return left;
  }

  const std::byte *row_;
  const std::byte *line_;
  const std::byte *end_;  // of the row
  int64_t row_step_;
  int64_t rows_;   // left
  int64_t lines_;  // at a time
};

// What the lanes of a register of a group stand for: one block, or one each.
template <bool kAcross>
HWY_INLINE V LanesOf(const double *numbers, int64_t group, int64_t r) {
  if constexpr (kAcross) {
    return hn::LoadU(D(), numbers + group * kLanes + r * kN);
  } else {
    return hn::Set(D(), numbers[group]);
  }
}

template <bool kAcross>
HWY_INLINE bool AnyClimbs(const double *climbing, int64_t group) {
  V most = LanesOf<kAcross>(climbing, group, 0);
  for (int64_t r = 1; kAcross && r < kRegisters; ++r) {
    most = hn::Max(most, LanesOf<kAcross>(climbing, group, r));
  }
  return !hn::AllFalse(D(), hn::Gt(most, hn::Zero(D())));
}

// Sums over the elements of groups, from out[kind] on: one for each of kLanes blocks, or kPartials
// for one block; groups whose roots have been found are left out. `of_register(w, h, rows,
// row step, nu, sums)` are those of a register.
template <bool kAcross, class OfRegister>
HWY_INLINE void SumGroups(const Groups groups, const double *nu, const double *climbing,
                          double *const *out, ReadAhead *soon, OfRegister of_register) {
  const int64_t row_step = kAcross ? groups.row_step : kLanes;  // a constant, if it is one
  for (int64_t g = 0; g < groups.count; ++g) {
    if (soon) soon->AskForSome();
    if (!AnyClimbs<kAcross>(climbing, g)) continue;
    for (int64_t r = 0; r < kRegisters; ++r) {
      const int64_t at = g * groups.step + r * kN;
      V sums[kMoments];
      of_register(groups.w + at, groups.h + at, groups.rows, row_step, LanesOf<kAcross>(nu, g, r),
                  sums);
      for (int k = 0; k < kMoments; ++k) {
        if constexpr (kAcross) {
          hn::StoreU(sums[k], D(), out[k] + g * kLanes + r * kN);
        } else {
          StorePartial(sums[k], r, out[k] + g * kPartials);
        }
      }
    }
  }
}

// Not inlined into what solves a batch, where other loops would take their registers.
template <bool kAcross>
HWY_NOINLINE void SumNorms(const Groups &groups, const double *nu, const double *climbing,
                           double *const *out, ReadAhead *soon) {
  SumGroups<kAcross>(groups, nu, climbing, out, soon,
                     [](const double *w, const double *h, int64_t rows, int64_t row_step, V,
                        V *sums) HWY_ATTR { NormsOfRegister(w, h, rows, row_step, sums); });
}
template <bool kAcross>
HWY_NOINLINE void SumMoments(const Groups &groups, const double *nu, const double *climbing,
                             double *const *out, ReadAhead *soon) {
  SumGroups<kAcross>(groups, nu, climbing, out, soon,
                     [](const double *w, const double *h, int64_t rows, int64_t row_step, V nus,
                        V *sums) HWY_ATTR { MomentsOfRegister(w, h, rows, row_step, nus, sums); });
}

template <class Choose>
HWY_INLINE void ShrinkRows(double *w, const double *h, int64_t rows, int64_t row_step, V nu,
                           Choose choose) {
  const V one = hn::Set(D(), 1.0);
  for (int64_t row = 0; row < rows; ++row, w += row_step, h += row_step) {
    const V weight = hn::LoadU(D(), w);
    const V ratio = hn::Mul(hn::LoadU(D(), h), nu);
    const V x = hn::Div(hn::Mul(weight, ratio), hn::Add(ratio, one));
    hn::StoreU(choose(x, weight), D(), w);
  }
}

// w becomes w h nu / (1 + h nu) in blocks that live, +0 in dead ones.
template <bool kAcross>
HWY_NOINLINE void ShrinkGroups(const Groups &given, const double *nus, const double *outcomes) {
  const Groups groups = given;  // a copy that no store can change, as far as compilers know
  for (int64_t i = 0; i < groups.count * kRegisters; ++i) {
    const int64_t g = i / kRegisters;
    const int64_t r = i % kRegisters;
    double *w = groups.w + g * groups.step + r * kN;
    const double *h = groups.h + g * groups.step + r * kN;
    const V nu = LanesOf<kAcross>(nus, g, r);
    const V outcome = LanesOf<kAcross>(outcomes, g, r);
    const M dead = hn::Eq(outcome, Number(kPanelDead));
    const M shrunk =
        hn::Or(hn::Eq(outcome, Number(kPanelShrunk)), hn::Eq(outcome, Number(kPanelOutOfSteps)));
    if (hn::AllTrue(D(), shrunk)) {
      ShrinkRows(w, h, groups.rows, groups.row_step, nu, [](V x, V) HWY_ATTR { return x; });
    } else {
      ShrinkRows(w, h, groups.rows, groups.row_step, nu, [&](V x, V weight) HWY_ATTR {
        return hn::IfThenZeroElse(dead, hn::IfThenElse(shrunk, x, weight));
      });
    }
  }
}

// Are conditioners of the lanes of a group within kRange? `of` is set to 1 or 0.
HWY_INLINE void CheckRange(const Groups &groups, int64_t group, double *of) {
  for (int64_t r = 0; r < kRegisters; ++r) {
    V least = hn::Set(D(), 1.0);
    V most = hn::Set(D(), 1.0);
    const double *h = groups.h + group * groups.step + r * kN;
    for (int64_t row = 0; row < groups.rows; ++row, h += groups.row_step) {
      least = hn::Min(least, hn::LoadU(D(), h));
      most = hn::Max(most, hn::LoadU(D(), h));
    }
    const M in_range =
        hn::And(hn::Ge(least, hn::Set(D(), 1.0 / kRange)), hn::Le(most, hn::Set(D(), kRange)));
    hn::StoreU(hn::IfThenElseZero(in_range, hn::Set(D(), 1.0)), D(), of + r * kN);
  }
}

// 1 where conditioners of a block are within kRange.
template <bool kAcross>
HWY_NOINLINE void FindRanges(const Groups &groups, double *in_range) {
  for (int64_t g = 0; g < groups.count; ++g) {
    if constexpr (kAcross) {
      CheckRange(groups, g, in_range + g * kLanes);
    } else {
      HWY_ALIGN double lanes[kLanes];
      CheckRange(groups, g, lanes);
      in_range[g] = *std::min_element(lanes, lanes + kLanes);
    }
  }
}

// Decides what needs no root, and finds a start and bounds for the rest.
//
// With N = ||c||, rms = N / ||w|| and z = nu rms, f(z) = N / ||q|| is concave: it rises from 1 with
// a slope R = sum c^2 h / (N^2 rms) >= 1, bends by f'' = -3 V, V the variance of h / rms under
// weights c^2, and nears a slope of 1. f = (1 + (R + D) z + D z^2) / (1 + D z) has all of this for
// D = 3 V / (2 (R - 1)), which is 1 for h that hardly differ; f = N / t is a quadratic equation.
// The bounds (N / t - 1) / R <= z <= N / t - 1 hold for any h.
HWY_INLINE void StartRegister(int64_t r, V in_range, Batch *batch) {
  const V zero = hn::Zero(D());
  const V one = hn::Set(D(), 1.0);
  const V t = batch->threshold.Load(r);
  const V weights = batch->moment[0].Load(r);
  const V products = batch->moment[1].Load(r);
  const V norm = hn::Sqrt(products);
  const V tau = hn::Div(norm, t);
  const V excess = hn::Sub(tau, one);
  const V inverse_rms = hn::Div(hn::Sqrt(weights), norm);
  const V inverse_products = hn::Div(one, products);

  const V mean = hn::Mul(hn::Mul(batch->moment[2].Load(r), inverse_products), inverse_rms);
  const V mean_square = hn::Mul(hn::Mul(batch->moment[3].Load(r), inverse_products),
                                hn::Mul(inverse_rms, inverse_rms));
  const V variance = hn::Sub(mean_square, hn::Mul(mean, mean));
  const V slope = hn::Max(mean, one);
  const V steepness = hn::Sub(slope, one);
  const V bend = hn::Div(hn::Mul(hn::Set(D(), 1.5), variance), steepness);
  const V bounded = hn::Min(hn::Max(bend, hn::Set(D(), 0.01)), hn::Set(D(), 100.0));
  const V d = hn::IfThenElse(hn::Gt(steepness, hn::Set(D(), 1e-4)), bounded, one);
  // d z^2 + 2 half z = excess
  const V half = hn::Mul(hn::Sub(slope, hn::Mul(d, excess)), hn::Set(D(), 0.5));
  const V root = hn::Sqrt(hn::Add(hn::Mul(half, half), hn::Mul(d, excess)));
  const M rises = hn::Gt(half, zero);
  const V modelled = hn::Div(hn::IfThenElse(rises, excess, hn::Sub(root, half)),
                             hn::IfThenElse(rises, hn::Add(root, half), d));
  // Conditioners that differ by orders of magnitude are not like that: from above, a first step
  // finds the lower bound that the asymptote gives.
  const V z = hn::IfThenElse(hn::Gt(slope, hn::Set(D(), 16.0)), excess, modelled);
  const V least = hn::Div(excess, slope);
  batch->nu.Store(r, hn::Mul(hn::Min(hn::Max(z, least), excess), inverse_rms));
  // Factors of 2, because the excess may have lost bits.
  batch->low.Store(r, hn::Mul(least, hn::Mul(inverse_rms, hn::Set(D(), 0.5))));
  batch->high.Store(r, hn::Mul(excess, hn::Mul(inverse_rms, hn::Set(D(), 2.0))));

  const V infinity = hn::Set(D(), std::numeric_limits<double>::infinity());
  const M plain_weights =
      hn::And(hn::Le(weights, hn::Set(D(), kRange * kRange)), hn::Gt(in_range, zero));
  const M plain = hn::And(plain_weights, hn::And(hn::Ge(t, hn::Set(D(), 1.0 / kRange)),
                                                 hn::Le(t, hn::Set(D(), kRange))));
  // Nearer to the threshold than this, a norm is compared to the last bit.
  constexpr double kNear = 0x1p-40;
  const M below = hn::And(plain, hn::Lt(tau, hn::Set(D(), 1.0 - kNear)));
  const M above = hn::And(plain, hn::Gt(tau, hn::Set(D(), 1.0 + kNear)));
  const M number = hn::Eq(weights, weights);
  const M dead = hn::Or(below, hn::And(number, hn::Eq(t, infinity)));
  const M unchanged = hn::And(number, hn::Eq(t, zero));
  V outcome = Number(kPanelUnsolved);
  outcome = hn::IfThenElse(above, Number(kPanelOutOfSteps), outcome);
  outcome = hn::IfThenElse(dead, Number(kPanelDead), outcome);
  outcome = hn::IfThenElse(unchanged, Number(kPanelUnchanged), outcome);
  batch->outcome.Store(r, outcome);
  batch->climbing.Store(r, hn::IfThenElseZero(above, one));
}

// One step towards the root, in lanes that climb.
HWY_INLINE void StepRegister(int64_t r, double tolerance, Batch *batch) {
  const V one = hn::Set(D(), 1.0);
  const V zero = hn::Zero(D());
  const V t = batch->threshold.Load(r);
  const V nu = batch->nu.Load(r);
  const V square = batch->moment[0].Load(r);
  const V share = hn::Div(one, square);
  const V e1 = hn::Mul(batch->moment[1].Load(r), share);
  const V e2 = hn::Mul(batch->moment[2].Load(r), share);
  const V e3 = hn::Mul(batch->moment[3].Load(r), share);

  // ||x|| / (nu t) - 1 = ||q|| / t - 1, with no cancellation but that of the sum.
  const V wanted = hn::Mul(nu, t);
  const V quotient = hn::Div(square, hn::Mul(wanted, wanted));
  const V excess = hn::Div(hn::Sub(quotient, one), hn::Add(hn::Sqrt(quotient), one));
  // 1 / ||q|| in powers of x: 1 + e1 (x + a x^2 + b x^3 + ...).
  const V inverse = hn::Div(one, e1);
  const V y = hn::Mul(excess, inverse);
  const V e1_square = hn::Mul(e1, e1);
  const V spread = hn::Mul(hn::Max(hn::Sub(e2, e1_square), zero), inverse);
  const V a = hn::Mul(hn::Set(D(), -1.5), spread);
  const V b = hn::Add(
      hn::Sub(hn::Mul(hn::Mul(hn::Set(D(), 2.0), e3), inverse), hn::Mul(hn::Set(D(), 4.5), e2)),
      hn::Mul(hn::Set(D(), 2.5), e1_square));
  // Its inverse as a fraction: x = y / (1 + a y + (b - a^2) y^2).
  const V ay = hn::Mul(a, y);
  const V cy2 = hn::Mul(hn::Mul(hn::Sub(b, hn::Mul(a, a)), y), y);
  const V fraction = hn::Div(y, hn::Add(hn::Add(one, ay), cy2));
  const M tame =
      hn::And(hn::Le(hn::Abs(ay), hn::Set(D(), 0.5)), hn::Le(hn::Abs(cy2), hn::Set(D(), 0.25)));
  const V x = hn::IfThenElse(tame, fraction, y);

  // 1 / ||q|| is concave in nu: Newton's own step never passes the root, but for what rounding did
  // to the excess.
  const V certain = hn::Mul(hn::Sub(excess, hn::Set(D(), 0x1p-48)), inverse);
  const V low = hn::Max(batch->low.Load(r), hn::Add(nu, hn::Mul(nu, certain)));
  const M below = hn::Gt(excess, zero);
  const V high = hn::IfThenElse(below, batch->high.Load(r), hn::Min(batch->high.Load(r), nu));
  const V next = hn::Min(hn::Max(hn::Add(nu, hn::Mul(nu, x)), low), high);

  // What a step of |y| <= 1/16 leaves is below 3 spread y^4, the most among millions of
  // distributions of p, if the sums of the moments, which are not compensated, do not spoil it. Or
  // the equation is solved for a threshold next to t.
  const V y2 = hn::Mul(y, y);
  const V left = hn::Mul(hn::Mul(hn::Set(D(), 16.0), spread), hn::Mul(y2, y2));
  const M foreseen =
      hn::And(hn::Le(left, hn::Set(D(), tolerance)), hn::Le(hn::Abs(y), hn::Set(D(), 0.0625)));
  const M solved = hn::Le(hn::Abs(excess), hn::Set(D(), 0x1p-51));
  const M still = hn::Le(hn::Abs(hn::Sub(next, nu)), hn::Mul(hn::Set(D(), tolerance), next));
  const M done = hn::Or(hn::Or(foreseen, solved), still);

  const M climbing = hn::Gt(batch->climbing.Load(r), zero);
  const M stops = hn::And(climbing, done);
  batch->low.Store(r, hn::IfThenElse(climbing, low, batch->low.Load(r)));
  batch->high.Store(r, hn::IfThenElse(climbing, high, batch->high.Load(r)));
  batch->nu.Store(r, hn::IfThenElse(climbing, next, nu));
  const V outcome = batch->outcome.Load(r);
  batch->outcome.Store(r, hn::IfThenElse(stops, Number(kPanelShrunk), outcome));
  batch->climbing.Store(r, hn::IfThenElseZero(hn::AndNot(done, climbing), one));
}

// Out of steps: Newton's own iterate, which like all of them lies below the root.
HWY_INLINE void SettleRegister(int64_t r, Batch *batch) {
  const M climbing = hn::Gt(batch->climbing.Load(r), hn::Zero(D()));
  batch->nu.Store(r, hn::IfThenElse(climbing, batch->low.Load(r), batch->nu.Load(r)));
}

// `registers` hold the batch.
HWY_INLINE bool Climbs(const Batch &batch, int64_t registers) {
  V any = hn::Zero(D());
  for (int64_t r = 0; r < registers; ++r) any = hn::Max(any, batch.climbing.Load(r));
  return !hn::AllFalse(D(), hn::Gt(any, hn::Zero(D())));
}

// batch->moment becomes the sums of a kernel over the elements of `count` blocks.
template <bool kAcross, class Kernel>
HWY_INLINE void TakeSums(Kernel sum, const Groups &groups, int64_t count, ReadAhead *soon,
                         Batch *batch) {
  double *out[kMoments];
  for (int k = 0; k < kMoments; ++k) {
    out[k] = kAcross ? batch->moment[k].of : batch->partial[k].of;
  }
  sum(groups, batch->nu.of, batch->climbing.of, out, soon);
  if (kAcross) return;
  for (int64_t b = 0; b < count; b += kLanes) {
    for (int k = 0; k < kMoments; ++k)
      Fold(batch->partial[k].of + b * kPartials, batch->moment[k].of + b);
  }
}

template <bool kAcross>
HWY_INLINE void SolveBatch(const ConditionedPanel &panel, int64_t first, int64_t count,
                           ReadAhead *soon, Batch *batch) {
  constexpr int64_t kWidth = kAcross ? kLanes : 1;  // blocks in a group
  const int64_t at = first * panel.block_step;
  const Groups groups = {
      panel.w + at, panel.h + at,  (count + kWidth - 1) / kWidth, kWidth * panel.block_step,
      panel.rows,   panel.row_step};
  const int64_t registers = (count + kN - 1) / kN;
  std::copy_n(panel.threshold + first, count, batch->threshold.of);
  std::fill_n(batch->climbing.of, kMostBlocks, 1.0);
  TakeSums<kAcross>(SumNorms<kAcross>, groups, count, &soon[0], batch);
  Scalars in_range;
  std::fill_n(in_range.of, kMostBlocks, 1.0);
  if (panel.wide) FindRanges<kAcross>(groups, in_range.of);
  for (int64_t r = 0; r < registers; ++r) StartRegister(r, in_range.Load(r), batch);
  // Lanes without a block: what they hold is of no use to anyone.
  std::fill_n(batch->climbing.of + count, kMostBlocks - count, 0.0);
  for (int i = 0; i < panel.max_iter && Climbs(*batch, registers); ++i) {
    TakeSums<kAcross>(SumMoments<kAcross>, groups, count, i == 0 ? &soon[1] : nullptr, batch);
    for (int64_t r = 0; r < registers; ++r) StepRegister(r, panel.tolerance, batch);
  }
  for (int64_t r = 0; r < registers; ++r) SettleRegister(r, batch);
  ShrinkGroups<kAcross>(groups, batch->nu.of, batch->outcome.of);
  for (int64_t b = 0; b < count; ++b) {
    panel.outcome[first + b] = static_cast<PanelOutcome>(batch->outcome.of[b]);
  }
}

// As many whole groups of lanes as have about kBatchElements.
HWY_INLINE int64_t BlocksPerBatch(const ConditionedPanel &panel) {
  const int64_t elements = panel.across ? panel.rows : panel.rows * kLanes;
  const int64_t blocks = kBatchElements / elements / kLanes * kLanes;
  return HWY_MAX(kLanes, HWY_MIN(blocks, kMostBlocks));
}

template <bool kAcross>
HWY_NOINLINE void SolveBatches(const ConditionedPanel &panel) {
  Batch batch = {};
  const int64_t step = BlocksPerBatch(panel);
  const int64_t groups = kAcross ? (panel.blocks + kLanes - 1) / kLanes : panel.blocks;
  ReadAhead soon[2] = {ReadAhead(panel.soon[0], groups), ReadAhead(panel.soon[1], groups)};
  for (int64_t first = 0; first < panel.blocks; first += step) {
    SolveBatch<kAcross>(panel, first, HWY_MIN(step, panel.blocks - first), soon, &batch);
  }
}

void SolvePanel(const ConditionedPanel &panel) {
  if (panel.across) return SolveBatches<true>(panel);
  SolveBatches<false>(panel);
}

void FillConditionedPanel(Kernels *table) {
  table->conditioned_panel = SolvePanel;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillConditionedPanel);
void fill_conditioned_panel(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillConditionedPanel)(table);
}
}  // namespace spk
#endif
