// Euclidean norms of doubles: roots of compensated sums of squares, and what is done where squares
// leave the range of double.
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

// Of a contiguous row of n >= kLanes elements, in lane 0.
template <class Op>
HWY_INLINE Accumulator<Op> ReduceRow(const double *x, int64_t n, double with) {
  Lanes<Op> lanes[kN];
  AddLong<false>(x, n, Tail<Op>(n), hn::Set(D(), with), &lanes[0], [](int64_t) {});
  return Fold(lanes);
}

// The same bits as the norms of core/norms.cc.
inline HWY_NOINLINE double ExactNorm(const double *x, int64_t n) {
  const double largest = hn::GetLane(ReduceRow<MaxMagnitude>(x, n, 0.0).sum);
  if (largest == 0.0 || !std::isfinite(largest)) return largest;
  const auto plain = ReduceRow<SumSquaresExact>(x, n, 1.0);
  const double root = hn::GetLane(ExactRoot(plain.sum, plain.error));
  if (is_exact_root(root)) return root;
  const double scale = norm_scale(largest);
  const auto scaled = ReduceRow<SumSquaresExact>(x, n, scale);
  return hn::GetLane(ExactRoot(scaled.sum, scaled.error)) / scale;
}

// norm_of(i) in the lanes i that are `wanted`, which is rare; 0 in the others.
template <class NormOf>
HWY_NOINLINE V NormsWhere(M wanted, const NormOf &norm_of) {
  HWY_ALIGN double norms[kN];
  hn::Store(hn::IfThenElseZero(wanted, hn::Set(D(), 1.0)), D(), norms);
  for (double &norm : norms) {
    if (norm != 0.0) norm = norm_of(&norm - norms);
  }
  return hn::Load(D(), norms);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
