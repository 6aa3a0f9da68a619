// The conditioned proximal operator of many blocks at once (core/conditioned.cc has the equation).
//
// The root nu of ||q|| = t, q = h w / (1 + h nu), is found for a batch of blocks at a time, as many
// as stay in the nearest caches. Sums over the elements run in kLanes virtual lanes, which belong to
// one block or are a block each; what is done once a block is done in lanes too, several registers
// at a time, because one alone would mostly wait. Each lane stops alone.
//
// With the moments E_k = sum q^2 p^k / sum q^2 of p = h nu / (1 + h nu), a change of nu to
// nu (1 + x) makes ||q||^2 exactly (1 - 2 E_1 x + 3 E_2 x^2 - 4 E_3 x^3 + ...) times as large, so
// that one sweep gives Newton's step y for 1 / ||q|| and two terms beyond it. All p lie in [0, 1],
// which bounds the next term whatever the block: the error that a step leaves is known. Sums are of
// x = w p = nu q, which takes one division for two elements.
//
// Panels of floats find their way in floats: the norms that a start is made of, and the first step.
// What those cannot tell for certain, and all steps after that, are doubles'. Where the last step
// is a small one, as it mostly is, the results follow from its shares p without another division.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conditioned_panel.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "kernels/conditioned_sums-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Sums of floats between the inverse of this and this lost nothing to the range of float.
inline constexpr double kFloatRange = 0x1p100;
// What squares of floats below their range lose of a norm, 2^13 of 2^-149, is far below this.
inline constexpr double kSmallNorm = 0x1p-40;

// Conditioners and thresholds between the inverse of this and this, and weights of a norm up to it,
// keep all sums here in the range of double: c^2 h^2 <= 2^900, ||x|| >= low t > 2^-342. All of f32
// do.
inline constexpr double kRange = 0x1p150;

// One number for each block of a batch.
struct Scalars {
  HWY_ALIGN double of[kMostPanelBatch];

  HWY_INLINE V Load(int64_t r) const { return hn::Load(D(), of + r * kN); }
  HWY_INLINE void Store(int64_t r, V v) { hn::Store(v, D(), of + r * kN); }
  HWY_INLINE void Update(int64_t r, M where, V v) { Store(r, hn::IfThenElse(where, v, Load(r))); }
};

// kPartials sums for each block of a batch.
struct Partials {
  HWY_ALIGN double of[kMostPanelBatch * kPartials];
};

struct Batch {
  Scalars threshold;
  Scalars unit;  // what conditioners were multiplied by in norms, a power of two
  Scalars nu;
  Scalars low, high;  // bounds of nu, not sharp
  Scalars outcome;    // PanelOutcome, as a number
  Scalars unsure;     // 1 while it is not known what becomes of the block
  Scalars climbing;   // 1 while the root is being sought
  HWY_ALIGN float float_unit[kMostPanelBatch];
  HWY_ALIGN float float_nu[kMostPanelBatch];
  Scalars share_nu;  // of which shares were kept
  Scalars moment[kMoments];
  Partials partial[kMoments];  // of blocks along rows
};

HWY_INLINE V Number(PanelOutcome outcome) {
  return hn::Set(D(), static_cast<double>(outcome));
}

// So that rounding once more, to 16 bits, is right: a float that may lie in the middle of two such
// numbers is rounded to odd. The last 12 bits of such a one are 0: f16 has room for 13 less than a
// float, bf16 and all subnormals for fewer yet.
HWY_INLINE void StoreOdd(V v, float *p) {
  const DU32 du;
  VU32 bits = hn::BitCast(du, ToFloat(v));
  const auto ends_in_zeros = hn::Eq(hn::And(bits, hn::Set(du, 0xfff)), hn::Zero(du));
  const auto is_zero = hn::Eq(hn::ShiftLeft<1>(bits), hn::Zero(du));
  if (HWY_UNLIKELY(!hn::AllFalse(du, hn::AndNot(is_zero, ends_in_zeros)))) bits = ToFloatOdd(v);
  hn::StoreU(hn::BitCast(DF(), bits), DF(), p);
}

template <bool kToOdd, class Entry>
HWY_INLINE void StoreEntries(V x, Entry *p) {
  if constexpr (kToOdd) {
    StoreOdd(x, p);
  } else {
    Store(x, p);
  }
}

// Stores the lanes that are marked with 1, and no other: loads and stores may change a NaN.
template <bool kToOdd, class Entry>
HWY_INLINE void StoreMarked(V x, const double *marks, Entry *p) {
  HWY_ALIGN Entry lanes[kN];
  StoreEntries<kToOdd>(x, lanes);
  for (int64_t k = 0; k < kN; ++k) {
    if (marks[k] == 1.0) p[k] = lanes[k];
  }
}

HWY_INLINE M AreShrunk(V outcome) {
  return hn::Or(hn::Eq(outcome, Number(kPanelShrunk)), hn::Eq(outcome, Number(kPanelOutOfSteps)));
}

// Writes the results of blocks that live, and +0 in dead ones; others are not touched. A register
// of group g begins with lane `lane`: for_each_row(g, lane, write) calls write(x, row) for its
// results.
template <bool kAcross, bool kToOdd, class Entry, class ForEachRow>
HWY_INLINE void WriteGroups(const Groups<Entry> &groups, const double *outcomes,
                            ForEachRow for_each_row) {
  const int64_t row_step = kAcross ? groups.row_step : kLanes;
  for (int64_t i = 0; i < groups.count * kRegisters; ++i) {
    const int64_t g = i / kRegisters;
    const int64_t lane = i % kRegisters * kN;
    const V outcome = LanesOf<kAcross>(D(), outcomes, g, i % kRegisters);
    const M dead = hn::Eq(outcome, Number(kPanelDead));
    const M shrunk = AreShrunk(outcome);
    const M written = hn::Or(dead, shrunk);
    Entry *w = groups.w + g * groups.step + lane;
    const auto write_rows = [&](auto store) HWY_ATTR {
      for_each_row(g, lane, [&](V x, int64_t row) HWY_ATTR { store(x, w + row * row_step); });
    };
    if (hn::AllTrue(D(), shrunk)) {
      write_rows([](V x, Entry *p) HWY_ATTR { StoreEntries<kToOdd>(x, p); });
    } else if (hn::AllTrue(D(), dead)) {
      for (int64_t row = 0; row < groups.rows; ++row) Store(hn::Zero(D()), w + row * row_step);
    } else if (hn::AllTrue(D(), written)) {
      write_rows([&](V x, Entry *p)
                     HWY_ATTR { StoreEntries<kToOdd>(hn::IfThenZeroElse(dead, x), p); });
    } else if (!hn::AllFalse(D(), written)) {
      HWY_ALIGN double marks[kN];
      hn::Store(hn::IfThenElseZero(written, hn::Set(D(), 1.0)), D(), marks);
      // Where no block was solved there is nothing to make results of.
      if (hn::AllFalse(D(), shrunk)) {
        for (int64_t row = 0; row < groups.rows; ++row) {
          StoreMarked<false>(hn::Zero(D()), marks, w + row * row_step);
        }
        continue;
      }
      write_rows([&](V x, Entry *p)
                     HWY_ATTR { StoreMarked<kToOdd>(hn::IfThenZeroElse(dead, x), marks, p); });
    }
  }
}

// w becomes w h nu / (1 + h nu).
template <bool kAcross, bool kToOdd, class Entry>
HWY_NOINLINE void Shrink(const Groups<Entry> &given, const double *nus, const double *outcomes) {
  const Groups<Entry> groups = given;
  const int64_t row_step = kAcross ? groups.row_step : kLanes;
  WriteGroups<kAcross, kToOdd>(groups, outcomes, [&](int64_t g, int64_t lane, auto write) HWY_ATTR {
    const V nu = LanesOf<kAcross>(D(), nus, g, lane / kN);
    const Entry *w = groups.w + g * groups.step + lane;
    const Entry *h = groups.h + g * groups.step + lane;
    for (int64_t row = 0; row < groups.rows; ++row) {
      const V ratio = hn::Mul(Load(h + row * row_step), nu);
      const V weighted = hn::Mul(Load(w + row * row_step), ratio);
      write(hn::Div(weighted, hn::Add(ratio, hn::Set(D(), 1.0))), row);
    }
  });
}

// A change of nu by no more than this part of it is small: what the series below leaves out is at
// most 2^-45.
inline constexpr double kSmallChange = 0x1p-15;

// x = w p (1 + change) / (1 + p change) for the shares p at nu, when nu becomes nu (1 + change):
// 1 / (1 + y) = 1 - y + y^2 - ...
struct AfterChange {
  V first, second, third;

  HWY_INLINE explicit AfterChange(V change)
      : first(hn::Add(hn::Set(D(), 1.0), change)),
        second(hn::Mul(change, first)),
        third(hn::Mul(change, second)) {}

  HWY_INLINE V Result(V w, V p) const {
    const V correction = hn::Mul(p, hn::Sub(second, hn::Mul(p, third)));
    return hn::Mul(hn::Mul(w, p), hn::Sub(first, correction));
  }
};

// The same from the shares that SumMomentsKeepShares kept, for small changes after that.
template <bool kAcross, bool kToOdd>
HWY_NOINLINE void ShrinkByShares(const Groups<float> &given, const double *shares,
                                 const double *changes, const double *outcomes) {
  const Groups<float> groups = given;
  const int64_t row_step = kAcross ? groups.row_step : kLanes;
  WriteGroups<kAcross, kToOdd>(groups, outcomes, [&](int64_t g, int64_t lane, auto write) HWY_ATTR {
    const AfterChange after(LanesOf<kAcross>(D(), changes, g, lane / kN));
    const float *w = groups.w + g * groups.step + lane;
    const double *share = shares + g * groups.rows * kLanes + lane;
    for (int64_t row = 0; row < groups.rows; ++row) {
      const V p = hn::Load(D(), share + row * kLanes);
      write(after.Result(Load(w + row * row_step), p), row);
    }
  });
}

// Are conditioners of the lanes of a group within kRange? `of` is set to 1 or 0.
template <class Entry>
HWY_INLINE void CheckRange(const Groups<Entry> &groups, int64_t group, double *of) {
  for (int64_t r = 0; r < kRegisters; ++r) {
    V least = hn::Set(D(), 1.0);
    V most = hn::Set(D(), 1.0);
    const Entry *h = groups.h + group * groups.step + r * kN;
    for (int64_t row = 0; row < groups.rows; ++row, h += groups.row_step) {
      least = hn::Min(least, Load(h));
      most = hn::Max(most, Load(h));
    }
    const M in_range =
        hn::And(hn::Ge(least, hn::Set(D(), 1.0 / kRange)), hn::Le(most, hn::Set(D(), kRange)));
    hn::StoreU(hn::IfThenElseZero(in_range, hn::Set(D(), 1.0)), D(), of + r * kN);
  }
}

// 1 where conditioners of a block are within kRange.
template <bool kAcross, class Entry>
HWY_NOINLINE void FindRanges(const Groups<Entry> &groups, double *in_range) {
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

// Did sums of floats stay below the end of their range? Not if one is NaN.
HWY_INLINE M AreBelowRangeOfFloat(int64_t r, const Batch &batch) {
  V sum = batch.moment[0].Load(r);
  for (int k = 1; k < kMoments; ++k) sum = hn::Add(sum, batch.moment[k].Load(r));
  return hn::Le(sum, hn::Set(D(), kFloatRange));
}

// Did they stay in it?
HWY_INLINE M AreInRangeOfFloat(int64_t r, const Batch &batch) {
  V least = batch.moment[0].Load(r);
  for (int k = 1; k < kMoments; ++k) least = hn::Min(least, batch.moment[k].Load(r));
  return hn::And(hn::Ge(least, hn::Set(D(), 1.0 / kFloatRange)), AreBelowRangeOfFloat(r, batch));
}

// Is the outcome that sums of floats tell certain? A norm that is small, or 0, is so up to what its
// squares lost below the range, and dies all the same.
HWY_INLINE M IsSureInFloats(int64_t r, V norm, V threshold, V outcome, const Batch &batch) {
  const M told = hn::And(AreInRangeOfFloat(r, batch), hn::Ne(outcome, Number(kPanelUnsolved)));
  const M small = hn::And(hn::Lt(norm, hn::Set(D(), kSmallNorm)),
                          hn::Gt(threshold, hn::Set(D(), 2 * kSmallNorm)));
  const M dies =
      hn::And(hn::And(small, AreBelowRangeOfFloat(r, batch)), hn::Eq(outcome, Number(kPanelDead)));
  return hn::Or(told, dies);
}

// Decides what needs no root, and finds a start and bounds for the rest.
//
// With N = ||c||, rms = N / ||w|| and z = nu rms, f(z) = N / ||q|| is concave: it rises from 1 with
// a slope R = sum c^2 h / (N^2 rms) >= 1, bends by f'' = -3 V, V the variance of h / rms under
// weights c^2, and nears a slope of 1. f = (1 + (R + D) z + D z^2) / (1 + D z) has all of this for
// D = 3 V / (2 (R - 1)), which is 1 for h that hardly differ; f = N / t is a quadratic equation.
// The bounds (N / t - 1) / R <= z <= N / t - 1 hold for any h.
//
// `kInFloats`: the sums are of floats; blocks of which they tell nothing for certain stay unsure.
template <bool kInFloats>
HWY_INLINE void StartRegister(int64_t r, V in_range, Batch *batch) {
  const V zero = hn::Zero(D());
  const V one = hn::Set(D(), 1.0);
  const V unit = batch->unit.Load(r);
  const V threshold = batch->threshold.Load(r);
  const V t = hn::Mul(threshold, unit);
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
  const M asked = hn::Gt(batch->unsure.Load(r), zero);
  const V to_nu = hn::Mul(inverse_rms, unit);
  batch->nu.Update(r, asked, hn::Mul(hn::Min(hn::Max(z, least), excess), to_nu));
  // Factors of 2, because the excess may have lost bits, and in floats the slope, too.
  batch->low.Update(r, asked, hn::Mul(least, hn::Mul(to_nu, hn::Set(D(), 0.5))));
  batch->high.Update(r, asked, hn::Mul(excess, hn::Mul(to_nu, hn::Set(D(), 2.0))));

  const V infinity = hn::Set(D(), std::numeric_limits<double>::infinity());
  const M plain_weights =
      hn::And(hn::Le(weights, hn::Set(D(), kRange * kRange)), hn::Gt(in_range, zero));
  const M plain = hn::And(plain_weights, hn::And(hn::Ge(threshold, hn::Set(D(), 1.0 / kRange)),
                                                 hn::Le(threshold, hn::Set(D(), kRange))));
  // Nearer to the threshold than this, a norm is compared to the last bit. In floats, the
  // compensated sum of products is exact to 2^-19.
  constexpr double kDoubt = kInFloats ? 0x1p-16 : 0x1p-40;
  const M below = hn::And(plain, hn::Lt(tau, hn::Set(D(), 1.0 - kDoubt)));
  const M above = hn::And(plain, hn::Gt(tau, hn::Set(D(), 1.0 + kDoubt)));
  const M number = hn::Eq(weights, weights);
  const M dead = hn::Or(below, hn::And(number, hn::Eq(threshold, infinity)));
  const M unchanged = hn::And(number, hn::Eq(threshold, zero));
  V outcome = Number(kPanelUnsolved);
  outcome = hn::IfThenElse(above, Number(kPanelOutOfSteps), outcome);
  outcome = hn::IfThenElse(dead, Number(kPanelDead), outcome);
  outcome = hn::IfThenElse(unchanged, Number(kPanelUnchanged), outcome);
  batch->outcome.Update(r, asked, outcome);
  M sure = asked;
  if constexpr (kInFloats) sure = hn::And(asked, IsSureInFloats(r, norm, t, outcome, *batch));
  batch->climbing.Update(r, sure, hn::IfThenElseZero(above, one));
  batch->unsure.Update(r, sure, zero);
}

// What moments at nu tell of the root.
struct Step {
  V excess;   // ||q|| / t - 1
  V inverse;  // 1 / E_1
  V spread;   // (E_2 - E_1^2) / E_1
  V y;        // to nu (1 + y): Newton's step
  V x;        // to nu (1 + x): the best one
};

HWY_INLINE Step StepOf(int64_t r, V nu, const Batch &batch) {
  const V one = hn::Set(D(), 1.0);
  const V zero = hn::Zero(D());
  const V square = batch.moment[0].Load(r);
  const V share = hn::Div(one, square);
  const V e1 = hn::Mul(batch.moment[1].Load(r), share);
  const V e2 = hn::Mul(batch.moment[2].Load(r), share);
  const V e3 = hn::Mul(batch.moment[3].Load(r), share);

  Step step;
  // ||x|| / (nu t) - 1 = ||q|| / t - 1, with no cancellation but that of the sum.
  const V wanted = hn::Mul(nu, batch.threshold.Load(r));
  const V quotient = hn::Div(square, hn::Mul(wanted, wanted));
  step.excess = hn::Div(hn::Sub(quotient, one), hn::Add(hn::Sqrt(quotient), one));
  // 1 / ||q|| in powers of x: 1 + e1 (x + a x^2 + b x^3 + ...).
  step.inverse = hn::Div(one, e1);
  const V y = hn::Mul(step.excess, step.inverse);
  const V e1_square = hn::Mul(e1, e1);
  step.spread = hn::Mul(hn::Max(hn::Sub(e2, e1_square), zero), step.inverse);
  const V a = hn::Mul(hn::Set(D(), -1.5), step.spread);
  const V b = hn::Add(hn::Sub(hn::Mul(hn::Mul(hn::Set(D(), 2.0), e3), step.inverse),
                              hn::Mul(hn::Set(D(), 4.5), e2)),
                      hn::Mul(hn::Set(D(), 2.5), e1_square));
  // Its inverse as a fraction: x = y / (1 + a y + (b - a^2) y^2).
  const V ay = hn::Mul(a, y);
  const V cy2 = hn::Mul(hn::Mul(hn::Sub(b, hn::Mul(a, a)), y), y);
  const V fraction = hn::Div(y, hn::Add(hn::Add(one, ay), cy2));
  const M tame =
      hn::And(hn::Le(hn::Abs(ay), hn::Set(D(), 0.5)), hn::Le(hn::Abs(cy2), hn::Set(D(), 0.25)));
  step.y = y;
  step.x = hn::IfThenElse(tame, fraction, y);
  return step;
}

// One step towards the root from sums of floats, in lanes that climb.
HWY_INLINE void FloatStepRegister(int64_t r, Batch *batch) {
  const V nu = batch->nu.Load(r);
  const Step step = StepOf(r, nu, *batch);
  const V next =
      hn::Min(hn::Max(hn::Add(nu, hn::Mul(nu, step.x)), batch->low.Load(r)), batch->high.Load(r));
  const M climbing = hn::Gt(batch->climbing.Load(r), hn::Zero(D()));
  batch->nu.Update(r, hn::And(climbing, AreInRangeOfFloat(r, *batch)), next);
}

// One step towards the root, in lanes that climb.
HWY_INLINE void StepRegister(int64_t r, double tolerance, Batch *batch) {
  const V one = hn::Set(D(), 1.0);
  const V zero = hn::Zero(D());
  const V nu = batch->nu.Load(r);
  const Step step = StepOf(r, nu, *batch);

  // 1 / ||q|| is concave in nu: Newton's own step never passes the root, but for what rounding did
  // to the excess.
  const V certain = hn::Mul(hn::Sub(step.excess, hn::Set(D(), 0x1p-48)), step.inverse);
  const V low = hn::Max(batch->low.Load(r), hn::Add(nu, hn::Mul(nu, certain)));
  const M below = hn::Gt(step.excess, zero);
  const V high = hn::IfThenElse(below, batch->high.Load(r), hn::Min(batch->high.Load(r), nu));
  const V next = hn::Min(hn::Max(hn::Add(nu, hn::Mul(nu, step.x)), low), high);

  // What a step of |y| <= 1/16 leaves is below 3 spread y^4, the most among millions of
  // distributions of p, if the sums of the moments, which are not compensated, do not spoil it. Or
  // the equation is solved for a threshold next to t.
  const V y2 = hn::Mul(step.y, step.y);
  const V left = hn::Mul(hn::Mul(hn::Set(D(), 16.0), step.spread), hn::Mul(y2, y2));
  const M foreseen =
      hn::And(hn::Le(left, hn::Set(D(), tolerance)), hn::Le(hn::Abs(step.y), hn::Set(D(), 0.0625)));
  const M solved = hn::Le(hn::Abs(step.excess), hn::Set(D(), 0x1p-51));
  const M still = hn::Le(hn::Abs(hn::Sub(next, nu)), hn::Mul(hn::Set(D(), tolerance), next));
  const M done = hn::Or(hn::Or(foreseen, solved), still);

  const M climbing = hn::Gt(batch->climbing.Load(r), zero);
  batch->low.Update(r, climbing, low);
  batch->high.Update(r, climbing, high);
  batch->nu.Update(r, climbing, next);
  batch->outcome.Update(r, hn::And(climbing, done), Number(kPanelShrunk));
  batch->climbing.Store(r, hn::IfThenElseZero(hn::AndNot(done, climbing), one));
}

// Out of steps: Newton's own iterate, which like all of them lies below the root.
HWY_INLINE void SettleRegister(int64_t r, Batch *batch) {
  const M climbing = hn::Gt(batch->climbing.Load(r), hn::Zero(D()));
  batch->nu.Update(r, climbing, batch->low.Load(r));
}

// How blocks of floats are written: outcomes of those that ShrinkByShares writes, and of those that
// are left to Shrink; the others are unchanged there.
struct Writing {
  Scalars change;  // by which part of it nu changed since shares were kept
  Scalars by_shares;
  Scalars by_division;
};

HWY_INLINE void DecideWriting(int64_t r, const Batch &batch, Writing *writing) {
  const V share_nu = batch.share_nu.Load(r);
  const V change = hn::Div(hn::Sub(batch.nu.Load(r), share_nu), share_nu);
  const V outcome = batch.outcome.Load(r);
  // NaN where none were kept.
  const M is_small = hn::Le(hn::Abs(change), hn::Set(D(), kSmallChange));
  const M by_division = hn::AndNot(is_small, AreShrunk(outcome));
  writing->change.Store(r, change);
  writing->by_shares.Store(r, hn::IfThenElse(by_division, Number(kPanelUnchanged), outcome));
  writing->by_division.Store(r, hn::IfThenElse(by_division, outcome, Number(kPanelUnchanged)));
}

// Is one of the blocks of these registers marked?
HWY_INLINE bool IsAny(const Scalars &marks, int64_t registers) {
  V any = hn::Zero(D());
  for (int64_t r = 0; r < registers; ++r) any = hn::Max(any, marks.Load(r));
  return !hn::AllFalse(D(), hn::Gt(any, hn::Zero(D())));
}

// Solves blocks `first` to `first + count` of a panel.
template <bool kAcross, class Entry>
class BatchSolver {
 public:
  HWY_INLINE BatchSolver(const ConditionedPanel &panel, int64_t first, int64_t count, Batch *batch)
      : panel_(panel),
        groups_(GroupsOf(panel, first, count)),
        count_(count),
        registers_((count + kLanes - 1) / kLanes * kRegisters),
        batch_(batch) {
    std::copy_n(panel.threshold + first, count, batch->threshold.of);
    for (int64_t r = 0; r < registers_; ++r) {
      batch->unsure.Store(r, hn::Set(D(), 1.0));
      batch->climbing.Store(r, hn::Zero(D()));
    }
    // Lanes without a block: what they hold is of no use to anyone.
    for (int64_t b = count; b < registers_ * kN; ++b) {
      batch->unsure.of[b] = 0.0;
      batch->outcome.of[b] = static_cast<double>(kPanelUnchanged);
    }
  }

  // Reads ahead for weights, then for conditioners.
  HWY_INLINE void Solve(ReadAhead *soon) {
    if constexpr (std::is_same_v<Entry, float>) {
      Start<true>(DFloats(), &soon[0]);
      if (IsAny(batch_->unsure, registers_)) Start<false>(D(), nullptr);
      FloatStep(&soon[1]);
      Climb(nullptr);
    } else {
      Start<false>(D(), &soon[0]);
      Climb(&soon[1]);
    }
  }

  HWY_INLINE void Finish(PanelOutcome *outcome) {
    for (int64_t r = 0; r < registers_; ++r) SettleRegister(r, batch_);
    if constexpr (std::is_same_v<Entry, float>) {
      panel_.to_odd ? ShrinkFloats<true>() : ShrinkFloats<false>();
    } else {
      Shrink<kAcross, false>(groups_, batch_->nu.of, batch_->outcome.of);
    }
    for (int64_t b = 0; b < count_; ++b) {
      outcome[b] = static_cast<PanelOutcome>(batch_->outcome.of[b]);
    }
  }

 private:
  template <bool kToOdd>
  HWY_INLINE void ShrinkFloats() {
    Writing writing;
    for (int64_t r = 0; r < registers_; ++r) DecideWriting(r, *batch_, &writing);
    ShrinkByShares<kAcross, kToOdd>(groups_, panel_.shares, writing.change.of,
                                    writing.by_shares.of);
    const double *rest = writing.by_division.of;
    if (std::all_of(rest, rest + count_, IsUnchanged)) return;
    Shrink<kAcross, kToOdd>(groups_, batch_->nu.of, rest);
  }
  static bool IsUnchanged(double outcome) {
    return outcome == static_cast<double>(kPanelUnchanged);
  }

  static HWY_INLINE Groups<Entry> GroupsOf(const ConditionedPanel &panel, int64_t first,
                                           int64_t count) {
    constexpr int64_t kWidth = kAcross ? kLanes : 1;  // blocks in a group
    const int64_t at = first * panel.block_step;
    return {static_cast<Entry *>(panel.w) + at,
            static_cast<const Entry *>(panel.h) + at,
            (count + kWidth - 1) / kWidth,
            kWidth * panel.block_step,
            panel.rows,
            panel.row_step};
  }

  // Powers of two that bring the conditioners of a block near 1, as far as its first one tells:
  // with their fourth powers, floats would soon be beyond their range.
  HWY_INLINE void TakeUnits(DFloats) {
    constexpr uint32_t kExponent = 0x7f800000u;
    constexpr uint32_t kMost = 253u << 23;  // its inverse is no subnormal
    for (int64_t b = 0; b < count_; ++b) {
      const float first = groups_.h[b * panel_.block_step];
      const uint32_t exponent = std::bit_cast<uint32_t>(first) & kExponent;
      batch_->float_unit[b] = std::bit_cast<float>((254u << 23) - std::min(exponent, kMost));
      batch_->unit.of[b] = static_cast<double>(batch_->float_unit[b]);
    }
  }
  HWY_INLINE void TakeUnits(D) {
    for (int64_t r = 0; r < registers_; ++r) batch_->unit.Store(r, hn::Set(D(), 1.0));
  }

  template <bool kInFloats, class DT>
  HWY_INLINE void Start(DT d, ReadAhead *soon) {
    TakeUnits(d);
    TakeSums(SumNorms<kAcross, DT, Entry>, d, UnitsOf(d), batch_->unsure, soon);
    Scalars in_range;
    std::fill_n(in_range.of, kMostPanelBatch, 1.0);
    // The range of floats is plain.
    if constexpr (std::is_same_v<Entry, double>) FindRanges<kAcross>(groups_, in_range.of);
    for (int64_t r = 0; r < registers_; ++r) StartRegister<kInFloats>(r, in_range.Load(r), batch_);
  }

  HWY_INLINE void FloatStep(ReadAhead *soon) {
    for (int64_t r = 0; r < registers_; ++r) {
      hn::StoreU(ToFloat(batch_->nu.Load(r)), DF(), batch_->float_nu + r * kN);
    }
    const DFloats d;
    TakeSums(SumMoments<kAcross, DFloats, Entry>, d, batch_->float_nu, batch_->climbing, soon);
    for (int64_t r = 0; r < registers_; ++r) FloatStepRegister(r, batch_);
  }

  HWY_INLINE void Climb(ReadAhead *soon) {
    for (int i = 0; i < panel_.max_iter && IsAny(batch_->climbing, registers_); ++i) {
      if constexpr (std::is_same_v<Entry, float>) {
        TakeMomentsKeepShares(i > 0);
      } else {
        TakeSums(SumMoments<kAcross, D, Entry>, D(), batch_->nu.of, batch_->climbing,
                 i == 0 ? soon : nullptr);
      }
      for (int64_t r = 0; r < registers_; ++r) StepRegister(r, panel_.tolerance, batch_);
    }
  }

  // `again`: shares were kept before, and stay in lanes that do not climb any more.
  HWY_INLINE void TakeMomentsKeepShares(bool again) {
    for (int64_t r = 0; r < registers_; ++r) {
      const M climbing = hn::Gt(batch_->climbing.Load(r), hn::Zero(D()));
      batch_->share_nu.Update(r, climbing, batch_->nu.Load(r));
    }
    const auto sum = [&](D, const Groups<float> &groups, const double *nus, const double *asked,
                         double *const *out, ReadAhead *) {
      SumMomentsKeepShares<kAcross>(groups, nus, asked, out, again, panel_.shares);
    };
    TakeSums(sum, D(), batch_->nu.of, batch_->climbing, nullptr);
  }

  HWY_INLINE const double *UnitsOf(D) const { return batch_->unit.of; }
  HWY_INLINE const float *UnitsOf(DFloats) const { return batch_->float_unit; }

  // batch->moment becomes the sums of a kernel over the elements of blocks that are asked for.
  template <class DT, class Kernel>
  HWY_INLINE void TakeSums(Kernel sum, DT d, const hn::TFromD<DT> *numbers, const Scalars &asked,
                           ReadAhead *soon) {
    double *out[kMoments];
    for (int k = 0; k < kMoments; ++k) {
      out[k] = kAcross ? batch_->moment[k].of : batch_->partial[k].of;
    }
    sum(d, groups_, numbers, asked.of, out, soon);
    if (kAcross) return;
    for (int64_t b = 0; b < count_; b += kLanes) {
      for (int k = 0; k < kMoments; ++k) {
        Fold(batch_->partial[k].of + b * kPartials, batch_->moment[k].of + b);
      }
    }
  }

  const ConditionedPanel &panel_;
  const Groups<Entry> groups_;
  const int64_t count_;
  const int64_t registers_;  // that hold the batch
  Batch *const batch_;
};

template <bool kAcross, class Entry>
HWY_NOINLINE void SolveBatches(const ConditionedPanel &panel) {
  Batch batch = {};
  const int64_t step = panel_batch(panel.rows, panel.across);
  const int64_t groups = kAcross ? (panel.blocks + kLanes - 1) / kLanes : panel.blocks;
  ReadAhead soon[2] = {ReadAhead(panel.soon[0], 2 * groups), ReadAhead(panel.soon[1], 2 * groups)};
  for (int64_t first = 0; first < panel.blocks; first += step) {
    const int64_t count = HWY_MIN(step, panel.blocks - first);
    BatchSolver<kAcross, Entry> solver(panel, first, count, &batch);
    solver.Solve(soon);
    solver.Finish(panel.outcome + first);
  }
}

template <class Entry>
void SolvePanel(const ConditionedPanel &panel) {
  if (panel.across) return SolveBatches<true, Entry>(panel);
  SolveBatches<false, Entry>(panel);
}

void FillConditionedPanel(Kernels *table) {
  table->conditioned_panel[0] = SolvePanel<float>;
  table->conditioned_panel[1] = SolvePanel<double>;
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
