// Euclidean norms of doubles: roots of compensated sums of squares, what is done where squares
// leave the range of double, and when plain sums will do.
#if defined(SPK_KERNELS_EXACT_NORMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_EXACT_NORMS_INL_H_
#undef SPK_KERNELS_EXACT_NORMS_INL_H_
#else
#define SPK_KERNELS_EXACT_NORMS_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "kernels/fold-inl.h"
#include "kernels/kernels.h"
#include "kernels/norm_scale.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Roots of sums of squares whose errors are known: half a unit in the last place and a little.
HWY_INLINE V ExactRoot(V sum, V error) {
  const V root = hn::Sqrt(sum);
  const V square = hn::Mul(root, root);
  const V rest = hn::Sub(hn::Sub(sum, square), LostBySquare(root, square));
  return hn::Add(root, hn::Div(hn::Add(rest, error), hn::Add(root, root)));
}

HWY_INLINE M AreExactRoots(V roots) {
  const D d;
  return hn::And(hn::Ge(roots, hn::Set(d, kLeastExactRoot)),
                 hn::Le(roots, hn::Set(d, 1 / kLeastExactRoot)));
}

// A block of some contiguous rows of n >= kLanes doubles; their places are in bytes from `x` on.
struct BlockOfRows {
  const std::byte *x;
  const int64_t *row;
  int64_t rows, n;
};

// Reduces a block; the result is in lane 0.
template <class Op>
HWY_INLINE Accumulator<Op> ReduceBlock(const BlockOfRows &block, double with) {
  Lanes<Op> lanes[kN];
  const Tail<Op> tail(block.n);
  for (int64_t r = 0; r < block.rows; ++r) {
    const auto *row = reinterpret_cast<const double *>(block.x + block.row[r]);
    AddLong<false>(row, block.n, tail, hn::Set(D(), with), &lanes[0], [](int64_t) {});
  }
  return Fold(lanes);
}

// The norm of a block, with the bits that exact_euclidean of core/norms.cc gives.
inline HWY_NOINLINE double ExactNorm(const BlockOfRows &block) {
  const double largest = hn::GetLane(ReduceBlock<MaxMagnitude>(block, 0.0).sum);
  if (largest == 0.0 || !std::isfinite(largest)) return largest;
  const auto plain = ReduceBlock<SumSquaresExact>(block, 1.0);
  const double root = hn::GetLane(ExactRoot(plain.sum, plain.error));
  if (is_exact_root(root)) return root;
  const double scale = norm_scale(largest);
  const auto scaled = ReduceBlock<SumSquaresExact>(block, scale);
  return hn::GetLane(ExactRoot(scaled.sum, scaled.error)) / scale;
}

// norm_of(i) in the lanes i that are `wanted`, 0 in the others. Not inline: they are few, unless
// many blocks are pruned already.
template <class NormOf>
HWY_NOINLINE V NormsWhere(M wanted, const NormOf &norm_of) {
  HWY_ALIGN double norms[kN];
  hn::Store(hn::IfThenElseZero(wanted, hn::Set(D(), 1.0)), D(), norms);
  for (int64_t i = 0; i < kN; ++i) {
    if (norms[i] != 0.0) norms[i] = norm_of(i);
  }
  return hn::Load(D(), norms);
}

// Norms of which those are `roots` that are exact.
template <class NormOf>
HWY_INLINE V ExactNorms(V roots, const NormOf &norm_of) {
  const M exact = AreExactRoots(roots);
  if (hn::AllTrue(D(), exact)) return roots;
  return hn::IfThenElse(exact, roots, NormsWhere(hn::Not(exact), norm_of));
}

// Which blocks have a norm that is not below their threshold; NaN survives. `squares` are plain
// sums of up to kMostInOneGo squares. Those tell, too, unless they are close: all roundings together,
// fused or not, are less than kClose, as long as sums are well inside the range of double, between
// kLeast and kMost. Then norm_of(i) is asked for the norm of block i.
template <class NormOf>
HWY_INLINE M StayExactly(V squares, V threshold, const NormOf &norm_of) {
  const D d;
  constexpr double kClose = 0x1p-36;
  static_assert((kMostInOneGo + 8) * 0x1p-53 < kClose);
  constexpr double kLeast = 0x1p-1000;
  constexpr double kMost = 0x1p1000;
  const V t = hn::Max(threshold, hn::Zero(d));  // below 0, all stay
  const V limit = hn::Mul(t, t);
  const V lower = hn::MulAdd(limit, hn::Set(d, 1 - kClose), hn::Set(d, -kLeast));
  const V upper = hn::MulAdd(limit, hn::Set(d, 1 + kClose), hn::Set(d, kLeast));
  const M goes = hn::Lt(squares, hn::Min(lower, hn::Set(d, kMost)));
  const M stays = hn::Gt(squares, upper);
  const M known = hn::Or(goes, stays);
  if (HWY_LIKELY(hn::AllTrue(d, known))) return stays;
  // What goes is 0 here, below its threshold.
  const V norms = NormsWhere(hn::Not(known), norm_of);
  return hn::Or(stays, hn::Not(hn::Lt(norms, threshold)));
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
