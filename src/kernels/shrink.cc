// Hard and soft thresholding: what blocks of given norms are multiplied by, or whether they stay;
// and from memory to memory, blocks of one element.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/shrink.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/rows-inl.h"
#include "kernels/shrink-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

int64_t Shrink(const double *norms, int64_t n, double threshold_scale, double eps,
               double *factors) {
  const D d;
  const V scale = hn::Set(d, threshold_scale);
  const V veps = hn::Set(d, eps);
  int64_t alive = 0;
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    const V threshold = hn::Mul(hn::LoadU(d, factors + i), scale);
    const V factor = ShrinkFactor(hn::LoadU(d, norms + i), threshold, veps);
    alive += CountAlive(factor);
    hn::StoreU(factor, d, factors + i);
  }
  if (i == n) return alive;
  HWY_ALIGN double norm[kN] = {};
  HWY_ALIGN double factor[kN] = {};
  for (int64_t k = i; k < n; ++k) norm[k - i] = norms[k];
  for (int64_t k = i; k < n; ++k) factor[k - i] = factors[k];
  const V threshold = hn::Mul(hn::Load(d, factor), scale);
  hn::Store(ShrinkFactor(hn::Load(d, norm), threshold, veps), d, factor);
  for (int64_t k = i; k < n; ++k) {
    factors[k] = factor[k - i];
    alive += factors[k] != 0.0;
  }
  return alive;
}

int64_t KeepAtLeast(const double *norms, const double *thresholds, int64_t n, uint8_t *keep) {
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    keep[i] = !(norms[i] < thresholds[i]);  // NaN survives
    kept += keep[i];
  }
  return kept;
}

void KeepBytes(const uint8_t *mask, int64_t n, bool invert, uint8_t *keep) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1);
  const auto flip = hn::Set(d, invert ? 1 : 0);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    // The smaller of the byte and 1.
    hn::StoreU(hn::Xor(hn::Min(hn::LoadU(d, mask + i), one), flip), d, keep + i);
  }
  for (; i < n; ++i) keep[i] = static_cast<uint8_t>((mask[i] != 0) != invert);
}

template <class T>
bool AllAtLeast(const void *numbers, int64_t n, double least) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto *number = static_cast<const T *>(numbers);
  const auto limit = hn::Set(d, static_cast<T>(least));
  auto refused = hn::MaskFromVec(hn::Zero(d));  // without a branch: they may be as many as weights
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    refused = hn::Or(refused, hn::Not(hn::Ge(hn::LoadU(d, number + i), limit)));
  }
  bool rest = false;
  for (; i < n; ++i) rest |= !(number[i] >= static_cast<T>(least));
  return hn::AllFalse(d, refused) && !rest;
}

// --- blocks of one element, in one pass ---------------------------------------------------------

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
  HWY_ALIGN L same[HWY_MAX_BYTES / sizeof(L)];
  const L *first;
  int64_t step{1};

  explicit ThresholdRow(const ElementArgs &args) : first(reinterpret_cast<const L *>(args.others)) {
    if (!args.one_for_all) return;
    std::fill(same, same + HWY_MAX_BYTES / sizeof(L), *first);
    first = same;
    step = 0;
  }
  HWY_INLINE const L *at(int64_t i) const { return first + i * step; }
};

// Elements and their thresholds are asked for so many bytes before they are read: of its own accord
// the processor does not look beyond a page.
inline constexpr int64_t kElementsAhead = 1024;

// some(x, threshold, y) for each kN elements; returns the sum of its results.
template <class T, class L, class Some>
HWY_INLINE int64_t ForElements(const ElementArgs &args, const Some &some) {
  const T *x = reinterpret_cast<const T *>(args.x);
  T *y = reinterpret_cast<T *>(args.y);
  const ThresholdRow<L> threshold(args);
  // Copies that no store can change, as far as compilers know.
  const L *limits = threshold.first;
  const int64_t step = kN * threshold.step;
  const int64_t n = args.n;
  int64_t alive = 0;
  int64_t i = 0;
  for (; i + kLineOf<T> <= n; i += kLineOf<T>) {
    PrefetchAhead(x + i, kElementsAhead);
    for (int64_t k = 0; k < kLineOf<T>; k += kLineOf<L>) {
      PrefetchAhead(limits + k * threshold.step, kElementsAhead);
    }
    for (int64_t k = i; k < i + kLineOf<T>; k += kN, limits += step) {
      alive += some(x + k, limits, y + k);
    }
  }
  for (; i + kN <= n; i += kN, limits += step) alive += some(x + i, limits, y + i);
  if (i == n) return alive;
  // What fills the register is 0, below its threshold, and counts as dead.
  HWY_ALIGN T in[kN] = {};
  HWY_ALIGN L limit[kN];
  HWY_ALIGN T out[kN];
  const int64_t left = n - i;
  std::copy_n(x + i, left, in);
  std::fill_n(limit, kN, L{1});
  std::copy_n(limits, left, limit);
  alive += some(in, limit, out);
  std::copy_n(out, left, y + i);
  return alive;
}

template <class T, class L>
int64_t ShrinkElements(const ElementArgs &args, double threshold_scale, double eps) {
  const Soft soft{hn::Set(D(), threshold_scale), hn::Set(D(), eps)};
  return ForElements<T, L>(args, [soft](const T *x, const L *threshold, T *y)
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
  return ForElements<T, L>(args, [](const T *x, const L *threshold, T *y)
                                     HWY_ATTR { return DropSome(x, threshold, y); });
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
  int64_t i = 0;
  for (; i + kLineOf<T> <= args.n; i += kLineOf<T>) {
    PrefetchAhead(x + i, kElementsAhead);
    PrefetchAhead(threshold.at(i), kElementsAhead);
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

void FillShrink(Kernels *table) {
  table->shrink = Shrink;
  table->keep_at_least = KeepAtLeast;
  table->keep_bytes = KeepBytes;
  table->all_at_least[0] = AllAtLeast<float>;
  table->all_at_least[1] = AllAtLeast<double>;
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
HWY_EXPORT(FillShrink);
void fill_shrink(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillShrink)(table);
}
}  // namespace spk
#endif
