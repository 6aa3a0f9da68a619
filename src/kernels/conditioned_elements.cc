// The conditioned proximal operator of blocks of one element: |x| = max(|w| - t / h, 0).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conditioned_elements.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Processors do not look beyond a page of their own accord.
inline constexpr int64_t kAheadBytes = 4096;

// |w| h <= t for numbers, told apart to the last bit: products of doubles are rounded.
bool IsDead(double magnitude, double h, double t) {
  if (std::isinf(t)) return true;
  // Away from the end of the range, where even fma would round.
  const double up = t < 0x1p-900 ? 0x1p200 : 1.0;
  return std::fma(magnitude * up, h, -t * up) <= 0.0;
}

// |w| - t / h with the sign of w, where that is not below 0.
HWY_INLINE V Shrink(V w, V magnitude, V h, V t) {
  // A finite subtrahend leaves an infinite weight as it is.
  const V most = hn::Set(D(), std::numeric_limits<double>::max());
  return hn::CopySignToAbs(hn::Sub(magnitude, hn::Min(hn::Div(t, h), most)), w);
}

// Rows of weights, conditioners and thresholds.
template <class T, class H>
struct Row {
  explicit HWY_INLINE Row(const ConditionedElementsArgs &args)
      : x(reinterpret_cast<const T *>(args.x)),
        y(reinterpret_cast<T *>(args.y)),
        h(reinterpret_cast<const H *>(args.h)) {}

  const T *x;
  T *y;
  const H *h;
};

// `count` <= kN elements of any kind, which need not be neighbours.
template <class T, class H>
HWY_NOINLINE int64_t ShrinkFew(const ConditionedElementsArgs &args, int64_t i, int64_t count) {
  const Row<T, H> row(args);
  HWY_ALIGN T in[kN] = {};
  HWY_ALIGN T out[kN];
  HWY_ALIGN H conditioners[kN] = {};
  HWY_ALIGN double t[kN] = {};
  HWY_ALIGN double magnitudes[kN];
  HWY_ALIGN double h[kN];
  for (int64_t k = 0; k < count; ++k) {
    in[k] = row.x[(i + k) * args.x_step];
    conditioners[k] = row.h[(i + k) * args.h_step];
    t[k] = args.threshold[(i + k) * args.threshold_step];
  }
  const V w = Load(in);
  hn::Store(hn::Abs(w), D(), magnitudes);
  hn::Store(Load(conditioners), D(), h);
  // Conditioners of 0 pad the lanes beyond `count`.
  Store(Shrink(w, hn::Abs(w), Load(conditioners), hn::Load(D(), t)), out);
  int64_t kept = 0;
  for (int64_t k = 0; k < count; ++k) {
    const bool unchanged = t[k] == 0.0 || std::isnan(magnitudes[k]);
    const bool dead = !unchanged && IsDead(magnitudes[k], h[k], t[k]);
    row.y[(i + k) * args.y_step] = unchanged ? in[k] : dead ? T{} : out[k];
    kept += !dead;
  }
  return kept;
}

// Whole registers of neighbours from `*next` on that are plain: neither NaN nor so near to the
// threshold that the product may have been rounded across it. Moves `*next` to the first that is
// not. `threshold(i)` are those of a register.
template <class T, class H, class Threshold>
HWY_INLINE int64_t ShrinkPlain(const ConditionedElementsArgs &args, const Threshold threshold,
                               int64_t *next) {
  const Row<T, H> row(args);
  const int64_t n = args.n;
  const V infinity = hn::Set(D(), std::numeric_limits<double>::infinity());
  int64_t kept = 0;
  int64_t i = *next;
  for (; i + kN <= n; i += kN) {
    hwy::Prefetch(reinterpret_cast<const std::byte *>(row.x + i) + kAheadBytes);
    hwy::Prefetch(reinterpret_cast<const std::byte *>(row.h + i) + kAheadBytes);
    const V t = threshold(i);
    const V w = Load(row.x + i);
    const V h = Load(row.h + i);
    const V magnitude = hn::Abs(w);
    const V product = hn::Mul(magnitude, h);
    const V margin = hn::Add(hn::Mul(t, hn::Set(D(), 0x1p-50)), hn::Set(D(), 0x1p-1070));
    const M far = hn::Gt(hn::Abs(hn::Sub(product, t)), margin);
    const M plain = hn::And(far, hn::And(hn::Gt(t, hn::Zero(D())), hn::Lt(t, infinity)));
    if (HWY_UNLIKELY(!hn::AllTrue(D(), plain))) break;
    const M alive = hn::Gt(product, t);
    Store(hn::IfThenElseZero(alive, Shrink(w, magnitude, h, t)), row.y + i);
    kept += static_cast<int64_t>(hn::CountTrue(D(), alive));
  }
  *next = i;
  return kept;
}

template <class T, class H>
HWY_NOINLINE int64_t ShrinkPlainByOne(const ConditionedElementsArgs &args, int64_t *next) {
  const V t = hn::Set(D(), *args.threshold);
  return ShrinkPlain<T, H>(
      args, [t](int64_t) HWY_ATTR { return t; }, next);
}
template <class T, class H>
HWY_NOINLINE int64_t ShrinkPlainByEach(const ConditionedElementsArgs &args, int64_t *next) {
  const double *t = args.threshold;
  return ShrinkPlain<T, H>(
      args, [t](int64_t i) HWY_ATTR { return hn::LoadU(D(), t + i); }, next);
}

template <class T, class H>
int64_t Elements(const ConditionedElementsArgs &args) {
  const bool contiguous = args.x_step == 1 && args.y_step == 1 && args.h_step == 1 &&
                          (args.threshold_step == 0 || args.threshold_step == 1);
  int64_t kept = 0;
  for (int64_t i = 0; i < args.n; i += kN) {
    if (contiguous) {
      kept += args.threshold_step == 0 ? ShrinkPlainByOne<T, H>(args, &i)
                                       : ShrinkPlainByEach<T, H>(args, &i);
    }
    if (i < args.n) kept += ShrinkFew<T, H>(args, i, HWY_MIN(args.n - i, kN));
  }
  return kept;
}

template <class T>
void FillWeights(int64_t (**table)(const ConditionedElementsArgs &)) {
  table[kF32] = Elements<T, float>;
  table[kF64] = Elements<T, double>;
  table[kF16] = Elements<T, F16>;
  table[kBf16] = Elements<T, Bf16>;
}

void FillConditionedElements(Kernels *table) {
  FillWeights<float>(table->conditioned_elements[kF32]);
  FillWeights<double>(table->conditioned_elements[kF64]);
  FillWeights<F16>(table->conditioned_elements[kF16]);
  FillWeights<Bf16>(table->conditioned_elements[kBf16]);
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
