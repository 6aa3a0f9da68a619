// The conditioned proximal operator of blocks of one element: |x| = max(|w| - t / h, 0).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conditioned_elements.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

using M = hn::Mask<D>;

// |w| h <= t near the threshold, told apart to the last bit.
bool IsDeadExactly(double magnitude, double h, double t) {
  // Away from the end of the range, where even fma would round.
  const double up = t < 0x1p-900 ? 0x1p200 : 1.0;
  return std::fma(magnitude * up, h, -t * up) <= 0.0;
}

// Which of up to kN elements die; a product near its threshold may have been rounded across it.
HWY_INLINE M Dead(V magnitude, V h, V t) {
  const V product = hn::Mul(magnitude, h);
  const M dead = hn::Le(product, t);
  const V margin = hn::Add(hn::Mul(t, hn::Set(D(), 0x1p-50)), hn::Set(D(), 0x1p-1070));
  const M near = hn::And(hn::Le(hn::Abs(hn::Sub(product, t)), margin),
                         hn::Lt(t, hn::Set(D(), std::numeric_limits<double>::infinity())));
  if (HWY_LIKELY(hn::AllFalse(D(), near))) return dead;
  HWY_ALIGN double magnitudes[kN];
  HWY_ALIGN double conditioners[kN];
  HWY_ALIGN double thresholds[kN];
  HWY_ALIGN double exactly[kN];
  hn::Store(magnitude, D(), magnitudes);
  hn::Store(h, D(), conditioners);
  hn::Store(t, D(), thresholds);
  for (int64_t k = 0; k < kN; ++k) {
    exactly[k] = IsDeadExactly(magnitudes[k], conditioners[k], thresholds[k]) ? 1.0 : 0.0;
  }
  const M dead_exactly = hn::Gt(hn::Load(D(), exactly), hn::Zero(D()));
  return hn::Or(hn::And(near, dead_exactly), hn::AndNot(near, dead));
}

struct Shrunk {
  V x;
  M dead;
  M unchanged;  // to the bit, NaN too
};

HWY_INLINE Shrunk ShrinkLanes(V w, V h, V t) {
  const V magnitude = hn::Abs(w);
  Shrunk result;
  result.unchanged = hn::Or(hn::Eq(t, hn::Zero(D())), hn::IsNaN(w));
  result.dead = hn::AndNot(result.unchanged, Dead(magnitude, h, t));
  // A finite subtrahend leaves an infinite weight as it is.
  const V most = hn::Set(D(), std::numeric_limits<double>::max());
  const V left = hn::Sub(magnitude, hn::Min(hn::Div(t, h), most));
  const V x = hn::CopySignToAbs(hn::Max(left, hn::Zero(D())), w);
  result.x = hn::IfThenZeroElse(result.dead, x);
  return result;
}

// `count` <= kN elements that are not neighbours, or some of which must keep their bits.
template <class T>
HWY_INLINE int64_t ShrinkFew(const ElementsArgs &args, const T *x, T *y, int64_t i, int64_t count) {
  HWY_ALIGN T in[kN] = {};
  HWY_ALIGN T out[kN];
  HWY_ALIGN double h[kN];
  HWY_ALIGN double t[kN] = {};
  HWY_ALIGN double unchanged[kN];
  for (int64_t k = 0; k < kN; ++k) h[k] = 1.0;
  for (int64_t k = 0; k < count; ++k) {
    in[k] = x[(i + k) * args.x_step];
    h[k] = args.h[(i + k) * args.local_step];
    t[k] = args.threshold[(i + k) * args.local_step];
  }
  const Shrunk shrunk = ShrinkLanes(Load(in), hn::Load(D(), h), hn::Load(D(), t));
  Store(shrunk.x, out);
  hn::Store(hn::IfThenElseZero(shrunk.unchanged, hn::Set(D(), 1.0)), D(), unchanged);
  for (int64_t k = 0; k < count; ++k) {
    y[(i + k) * args.y_step] = unchanged[k] != 0.0 ? in[k] : out[k];
  }
  // The lanes beyond `count` have a threshold of 0 and live.
  return count - static_cast<int64_t>(hn::CountTrue(D(), shrunk.dead));
}

// Whole registers, up to the first in which some element must keep its bits; adds to `i`.
template <class T>
HWY_INLINE int64_t ShrinkContiguous(const ElementsArgs &args, const T *x, T *y, int64_t *i) {
  int64_t dead = 0;
  const int64_t first = *i;
  for (; *i + kN <= args.n; *i += kN) {
    const V w = Load(x + *i);
    const Shrunk shrunk =
        ShrinkLanes(w, hn::LoadU(D(), args.h + *i), hn::LoadU(D(), args.threshold + *i));
    if (HWY_UNLIKELY(!hn::AllFalse(D(), shrunk.unchanged))) break;
    Store(shrunk.x, y + *i);
    dead += static_cast<int64_t>(hn::CountTrue(D(), shrunk.dead));
  }
  return *i - first - dead;
}

template <class T>
HWY_NOINLINE int64_t Elements(const ElementsArgs &args) {
  const T *x = reinterpret_cast<const T *>(args.x);
  T *y = reinterpret_cast<T *>(args.y);
  const bool contiguous = args.x_step == 1 && args.y_step == 1 && args.local_step == 1;
  int64_t kept = 0;
  for (int64_t i = 0; i < args.n; i += kN) {
    if (contiguous) kept += ShrinkContiguous(args, x, y, &i);
    if (i < args.n) kept += ShrinkFew(args, x, y, i, HWY_MIN(args.n - i, kN));
  }
  return kept;
}

void FillConditionedElements(Kernels *table) {
  table->conditioned_elements[kF32] = Elements<float>;
  table->conditioned_elements[kF64] = Elements<double>;
  table->conditioned_elements[kF16] = Elements<F16>;
  table->conditioned_elements[kBf16] = Elements<Bf16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillConditionedElements);
void fill_conditioned_elements(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillConditionedElements)(table);
}
}  // namespace spk
#endif
