// Hard and soft thresholding of blocks of one element, from memory to memory.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/threshold_elements.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/ask_near-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/narrow-inl.h"
#include "kernels/prefetch.h"
#include "kernels/shrink-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// kN elements, of which some are not usual; returns how many stay alive.
template <class T>
HWY_NOINLINE int64_t ShrinkUnusual(const T *x, V threshold, V eps, T *y) {
  const V factor = ShrinkFactor(hn::Abs(Load(x)), threshold, eps);
  StoreShrunk(x, factor, y);
  return CountAlive(factor);
}

// kN elements; returns how many stay alive.
template <class T, class L>
HWY_INLINE int64_t ShrinkSome(const Soft &soft, const T *x, const L *threshold, T *y) {
  const V w = Load(x);
  const V norm = hn::Abs(w);
  const V limit = soft.ThresholdOf(threshold);
  if (HWY_UNLIKELY(!soft.AreUsual(norm))) return ShrinkUnusual(x, limit, soft.eps, y);
  const M alive = soft.Alive(norm, limit);
  Store(hn::IfThenElseZero(alive, hn::Mul(w, soft.Factor(norm, limit))), y);
  return static_cast<int64_t>(hn::CountTrue(D(), alive));
}

// One threshold for all is read from a register full of it.
template <class L>
struct ThresholdRow {
  HWY_ALIGN L same[HWY_MAX(kN, kNarrow)];
  const L *first;
  int64_t step{1};

  explicit ThresholdRow(const ElementArgs &args) : first(reinterpret_cast<const L *>(args.others)) {
    if (!args.one_for_all) return;
    std::fill(same, same + HWY_MAX(kN, kNarrow), *first);
    first = same;
    step = 0;
  }
  HWY_INLINE const L *at(int64_t i) const { return first + i * step; }
};

// some(x, threshold, y) for each kCount elements; returns the sum of its results.
template <int64_t kCount, class T, class L, class Some>
HWY_INLINE int64_t ForElements(const ElementArgs &args, const Some &some) {
  const T *x = reinterpret_cast<const T *>(args.x);
  T *y = reinterpret_cast<T *>(args.y);
  const ThresholdRow<L> threshold(args);
  // Copies that no store can change, as far as compilers know.
  const L *limits = threshold.first;
  const int64_t step = kCount * threshold.step;
  const int64_t n = args.n;
  const Stages ahead = stages_in_stream();
  int64_t alive = 0;
  int64_t i = 0;
  for (; i + kLineOf<T> <= n; i += kLineOf<T>) {
    ask_ahead(x + i, kLineOf<T>, ahead);
    // One threshold for all: no other is asked for.
    for (int64_t k = 0; k < kLineOf<T>; k += kLineOf<L>) {
      prefetch_far(limits + k * threshold.step, threshold.step * ahead.far);
      prefetch_near(limits + k * threshold.step, threshold.step * ahead.near);
    }
    for (int64_t k = i; k < i + kLineOf<T>; k += kCount, limits += step) {
      alive += some(x + k, limits, y + k);
    }
  }
  for (; i + kCount <= n; i += kCount, limits += step) alive += some(x + i, limits, y + i);
  if (i == n) return alive;
  // What fills the register is 0, below its threshold, and counts as dead.
  HWY_ALIGN T in[kCount] = {};
  HWY_ALIGN L limit[kCount];
  HWY_ALIGN T out[kCount];
  const int64_t left = n - i;
  std::copy_n(x + i, left, in);
  std::fill_n(limit, kCount, L{1});
  std::copy_n(limits, left, limit);
  alive += some(in, limit, out);
  std::copy_n(out, left, y + i);
  return alive;
}

// Soft thresholding of kNarrow elements of up to 24 bits in floats. With d = |x| + eps,
//
//   |x| (1 - t / d) = (|x| - t) + eps t / d.
//
// What rounding takes from the difference is a float, too (Dekker's Fast2Sum), and the last term is
// so small that a float says it closely enough. The sum is rounded from a little above and from a
// little below, by more than all roundings amount to: of doubles in the definition 2^-51 |x|, of
// floats here 2^-47 |x| and 2^-22 of the last term. Where both are one float, it is the one that
// doubles give.
class FloatShrink {
 public:
  // Are eps, or a threshold, and what their nearest floats leave of them, in the range of floats?
  static bool Takes(double number) {
    return number == 0.0 || (number >= kLeast && number <= 1 / kLeast);
  }

  explicit HWY_INLINE FloatShrink(double eps)
      : eps_(hn::Set(DN(), static_cast<float>(eps))),
        at_least_(hn::Set(DN(), static_cast<float>(HWY_MAX(eps, kLeast)))) {}

  // Of thresholds high + low, which are the nearest floats and what is left. Returns false if
  // floats do not tell one of the results; NaN and infinities are among those.
  HWY_INLINE bool Run(VN x, VN high, VN low, VN *shrunk, hn::Mask<DN> *dead) const {
    // Parts of d, and of eps t / d.
    constexpr float kOfSum = 0x1p-40F;
    constexpr float kOfTerm = 0x1p-20F;
    const DN d;
    const VN norm = hn::Abs(x);
    const VN difference = hn::Sub(norm, high);
    const VN lost = hn::Sub(hn::Sub(hn::Sub(norm, difference), high), low);
    const VN sum = hn::Add(norm, at_least_);
    const VN term = hn::Mul(hn::Div(high, sum), eps_);
    const VN more =
        hn::MulAdd(sum, hn::Set(d, kOfSum), hn::MulAdd(term, hn::Set(d, 1 + kOfTerm), lost));
    const VN less =
        hn::NegMulAdd(sum, hn::Set(d, kOfSum), hn::MulAdd(term, hn::Set(d, 1 - kOfTerm), lost));
    const VN result = hn::Add(difference, more);
    *dead = hn::Le(difference, low);
    *shrunk = hn::IfThenZeroElse(*dead, hn::CopySignToAbs(result, x));
    const auto is_told = hn::Eq(result, hn::Add(difference, less));
    return hn::AllTrue(d, hn::Or(*dead, is_told));
  }

 private:
  static constexpr double kLeast = 0x1p-80;

  VN eps_, at_least_;
};

// Thresholds as the nearest floats and what is left: floats, one for each element;
struct EachLimit {
  static HWY_INLINE VN High(const float *threshold) { return hn::LoadU(DN(), threshold); }
  static HWY_INLINE VN Low(const float * /*threshold*/) { return hn::Zero(DN()); }
};
// or any one for all.
struct OneLimit {
  explicit HWY_INLINE OneLimit(double limit)
      : high(hn::Set(DN(), static_cast<float>(limit))),
        low(hn::Set(DN(), static_cast<float>(limit - static_cast<float>(limit)))) {}
  HWY_INLINE VN High(const void * /*threshold*/) const { return high; }
  HWY_INLINE VN Low(const void * /*threshold*/) const { return low; }

  VN high, low;
};

template <class T>
HWY_INLINE VN LoadNarrow(const T *x) {
  if constexpr (std::is_same_v<T, float>) {
    return hn::LoadU(DN(), x);
  } else {
    return Narrow<T>::Load(x);
  }
}
// Returns false, and has stored nothing, if floats do not tell how to round.
HWY_INLINE bool StoreNarrow(VN v, float *y) {
  hn::StoreU(v, DN(), y);
  return true;
}
template <class T>
HWY_INLINE bool StoreNarrow(VN v, T *y) {
  return Narrow<T>::StoreTold(v, y);
}

// kNarrow elements; returns how many stay alive.
template <class Limits, class T, class L>
HWY_INLINE int64_t ShrinkNarrow(const FloatShrink &in_floats, const Limits &limits,
                                const Soft &soft, const T *x, const L *threshold, T *y) {
  VN shrunk;
  hn::Mask<DN> dead;
  if (HWY_LIKELY(in_floats.Run(LoadNarrow(x), limits.High(threshold), limits.Low(threshold),
                               &shrunk, &dead) &&
                 StoreNarrow(shrunk, y))) {
    return kNarrow - static_cast<int64_t>(hn::CountTrue(DN(), dead));
  }
  int64_t alive = 0;
  for (int64_t k = 0; k < kNarrow; k += kN) {
    alive += ShrinkSome(soft, x + k, threshold + k, y + k);
  }
  return alive;
}

template <class T, class L>
int64_t ShrinkElements(const ElementArgs &args, double eps) {
  const Soft soft{hn::Set(D(), 1.0), hn::Set(D(), eps)};
  if constexpr (std::is_same_v<T, float> || Narrow<T>::kInFloats) {
    const auto shrink_narrow = [&](const auto &limits) {
      return ForElements<kNarrow, T, L>(
          args, [in_floats = FloatShrink(eps), limits, soft](const T *x, const L *threshold, T *y)
                    HWY_ATTR { return ShrinkNarrow(in_floats, limits, soft, x, threshold, y); });
    };
    const double one = args.one_for_all ? *reinterpret_cast<const L *>(args.others) : 0.0;
    if (FloatShrink::Takes(eps) && FloatShrink::Takes(one)) {
      if (args.one_for_all) return shrink_narrow(OneLimit(one));
      if constexpr (std::is_same_v<L, float>) return shrink_narrow(EachLimit());
    }
  }
  return ForElements<kN, T, L>(args, [soft](const T *x, const L *threshold, T *y)
                                         HWY_ATTR { return ShrinkSome(soft, x, threshold, y); });
}

// kN elements: what is below its threshold becomes 0; returns how many stay.
template <class T, class L>
HWY_INLINE int64_t DropSome(const T *x, const L *threshold, T *y) {
  const D d;
  const auto below = hn::Lt(hn::Abs(Load(x)), Load(threshold));
  if constexpr (sizeof(T) == sizeof(double)) {
    Store(hn::IfThenZeroElse(below, Load(x)), y);
  } else {
    StoreKept(x, KeepWords(hn::Not(below)), y);
  }
  return kN - static_cast<int64_t>(hn::CountTrue(d, below));
}

template <class T, class L>
int64_t DropElements(const ElementArgs &args) {
  return ForElements<kN, T, L>(args, [](const T *x, const L *threshold, T *y)
                                         HWY_ATTR { return DropSome(x, threshold, y); });
}

// Asks for what follows a line in a stream. One stage is enough for so short a loop, which runs
// ahead of itself, unless it waits for the second.
template <class T>
HWY_INLINE void AskForLine(const T *line, bool asks_near) {
  if (asks_near) {
    ask_ahead(line, 1, kStreamAskedNear);
  } else {
    prefetch_far(line, kNear);
  }
}

// The same for weights and thresholds of one type, which is also the one they are compared in.
template <class T>
int64_t DropAlike(const ElementArgs &args) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T *x = reinterpret_cast<const T *>(args.x);
  T *y = reinterpret_cast<T *>(args.y);
  const ThresholdRow<T> threshold(args);
  int64_t dropped = 0;
  const auto drop = [&](int64_t i) HWY_ATTR {
    const auto w = hn::LoadU(d, x + i);
    const auto below = hn::Lt(hn::Abs(w), hn::LoadU(d, threshold.at(i)));
    dropped += static_cast<int64_t>(hn::CountTrue(d, below));
    hn::StoreU(hn::IfThenZeroElse(below, w), d, y + i);
  };
  const bool asks_near = AsksNear();
  int64_t i = 0;
  for (; i + kLineOf<T> <= args.n; i += kLineOf<T>) {
    AskForLine(x + i, asks_near);
    if (threshold.step != 0) AskForLine(threshold.at(i), asks_near);
    for (int64_t k = i; k < i + kLineOf<T>; k += lanes) drop(k);
  }
  for (; i + lanes <= args.n; i += lanes) drop(i);
  for (; i < args.n; ++i) {
    const bool below = std::fabs(x[i]) < *threshold.at(i);
    dropped += below;
    y[i] = below ? T{0} : x[i];
  }
  return args.n - dropped;
}

template <class T>
void FillElements(DtypeIndex dtype, Kernels *table) {
  table->shrink_elements[dtype][0] = ShrinkElements<T, float>;
  table->shrink_elements[dtype][1] = ShrinkElements<T, double>;
  table->drop_elements[dtype][0] = DropElements<T, float>;
  table->drop_elements[dtype][1] = DropElements<T, double>;
}

void FillThresholdElements(Kernels *table) {
  FillElements<float>(kF32, table);
  FillElements<double>(kF64, table);
  FillElements<F16>(kF16, table);
  FillElements<Bf16>(kBf16, table);
  table->drop_elements[kF32][0] = DropAlike<float>;
  table->drop_elements[kF64][1] = DropAlike<double>;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillThresholdElements);
void fill_threshold_elements(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillThresholdElements)(table);
}
}  // namespace spk
#endif
