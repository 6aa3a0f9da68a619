// Hard and soft thresholding of a register of blocks whose sums of squares are known.
#if defined(SPK_KERNELS_SHRINK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_SHRINK_INL_H_
#undef SPK_KERNELS_SHRINK_INL_H_
#else
#define SPK_KERNELS_SHRINK_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/convert-inl.h"
#include "kernels/root-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Norms so large that norm + eps leaves the range of double: the same of halves.
inline HWY_NOINLINE V ShrinkFactorOfLarge(V norm, V threshold, V eps) {
  const D d;
  const V half = hn::Set(d, 0.5);
  const V halves = hn::Add(hn::Mul(norm, half), hn::Mul(eps, half));
  return hn::Div(hn::Sub(halves, hn::Mul(threshold, half)), halves);
}

// (d - t) / d for d = norm + eps, rather than 1 - t / d: exact where the two nearly cancel. 0 for a
// norm of at most t; 1 for an infinite or NaN norm.
HWY_INLINE V ShrinkFactor(V norm, V threshold, V eps) {
  const D d;
  const V sum = hn::Add(norm, eps);
  V factor = hn::Div(hn::Sub(sum, threshold), sum);
  const auto fits = hn::Lt(sum, hn::Inf(d));
  if (HWY_UNLIKELY(!hn::AllTrue(d, fits))) {
    factor = hn::IfThenElse(fits, factor, ShrinkFactorOfLarge(norm, threshold, eps));
    // False for NaN, too.
    factor = hn::IfThenElse(hn::Lt(norm, hn::Inf(d)), factor, hn::Set(d, 1.0));
  }
  return hn::IfThenZeroElse(hn::Le(norm, threshold), factor);
}

HWY_INLINE int64_t CountAlive(V factor) {
  return static_cast<int64_t>(hn::CountTrue(D(), hn::Ne(factor, hn::Zero(D()))));
}

// kN elements times factors.
template <class T>
HWY_INLINE void StoreShrunk(const T *x, V factor, T *y) {
  const D d;
  const V w = Load(x);
  const V shrunk = hn::IfThenZeroElse(hn::Eq(factor, hn::Zero(d)), hn::Mul(w, factor));
  if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(w), hn::Inf(d))))) return Store(shrunk, y);
  // NaN, and infinity unless it is dead, keep their very bits.
  HWY_ALIGN T results[kN];
  HWY_ALIGN double factors[kN];
  Store(shrunk, results);
  hn::Store(factor, d, factors);
  for (int64_t k = 0; k < kN; ++k) y[k] = factors[k] == 1.0 ? x[k] : results[k];
}

// Shrinks blocks whose norm is usual: its sum with eps is finite. Others are rare, and left to
// functions of their own, because in the same loop they would take its registers.
struct Soft {
  V scale, eps;

  // What is judged, of sums of squares.
  static HWY_INLINE V Measure(V squares) { return hn::Sqrt(squares); }
  // The same of the squares of one or two floats.
  static HWY_INLINE V MeasureFew(V squares) { return RootOfFew(squares); }

  template <class L>
  HWY_INLINE V ThresholdOf(const L *threshold) const {
    return hn::Mul(Load(threshold), scale);
  }
  HWY_INLINE bool AreUsual(V norm) const {
    return hn::AllTrue(D(), hn::Lt(hn::Add(norm, eps), hn::Inf(D())));
  }
  HWY_INLINE M Alive(V norm, V threshold) const { return hn::Gt(norm, threshold); }
  HWY_INLINE V Factor(V norm, V threshold) const {
    const V sum = hn::Add(norm, eps);
    return hn::Div(hn::Sub(sum, threshold), sum);
  }
};

// All bits where blocks or elements stay, none where they go.
HWY_INLINE VU32 KeepWords(M keep) {
  const hn::RebindToUnsigned<D> du;
  return hn::TruncateTo(DU32(), hn::BitCast(du, hn::VecFromMask(D(), keep)));
}
HWY_INLINE VU32 KeepWords(hn::Mask<DF> keep) {
  return hn::BitCast(DU32(), hn::VecFromMask(DF(), keep));
}

// Elements of 16 or 32 bits, as they are where all bits of `keep` are set, 0 where none is.
template <class T>
HWY_INLINE void StoreKept(const T *x, VU32 keep, T *y) {
  const DU32 du;
  if constexpr (sizeof(T) == sizeof(uint16_t)) {
    const auto words = hn::LoadU(DU16(), reinterpret_cast<const uint16_t *>(x));
    StoreWords(du, hn::And(hn::PromoteTo(du, words), keep), y);
  } else {
    const VU32 words = hn::LoadU(du, reinterpret_cast<const uint32_t *>(x));
    hn::StoreU(hn::And(words, keep), du, reinterpret_cast<uint32_t *>(y));
  }
}

// Drops blocks whose norm, as a float, is below their threshold. NaN survives.
struct Hard {
  // Which blocks stay; all bits for those, and how many they are.
  struct Kept {
    hn::Mask<DF> stay;
    VU32 words;
    int64_t count;
  };

  static HWY_INLINE V Measure(V squares) { return squares; }

  // Of tiny rows, of columns, and of others that are summed in floats (turned_rows-inl.h).
  static constexpr int64_t kMostSquares =
      HWY_MAX(HWY_MAX(4 * kMostTinyRows, kMostRowsAcross), kKernel);

  // Squares tell on which side of its threshold a norm is, without a root, unless it is close: then
  // exact() is asked for their sums as doubles. `sum` are sums as floats, of up to kMostSquares that
  // are floats, or of any that are doubles. All roundings together, one for each float and eight
  // others, are less than kClose, as long as sums are well inside the range of floats, between kLeast
  // and kMost.
  template <class L, class Exact>
  static HWY_INLINE Kept Judge(VF sum, const L *threshold, const Exact &exact) {
    const DF df;
    constexpr float kClose = 0x1p-18F;
    static_assert((kMostSquares + 8) * 0x1p-24F < kClose);
    constexpr float kLeast = 0x1p-100F;
    constexpr float kMost = 0x1p120F;
    const VF t = hn::Max(AsFloats(threshold), hn::Zero(df));  // below 0, all stay
    const VF limit = hn::Mul(t, t);
    const VF lower = hn::MulAdd(limit, hn::Set(df, 1 - kClose), hn::Set(df, -kLeast));
    const VF upper = hn::MulAdd(limit, hn::Set(df, 1 + kClose), hn::Set(df, kLeast));
    const auto goes = hn::Lt(sum, hn::Min(lower, hn::Set(df, kMost)));
    auto stays = hn::Gt(sum, upper);
    if (HWY_UNLIKELY(!hn::AllTrue(df, hn::Or(goes, stays)))) {
      stays = Stay(ToFloat(hn::Sqrt(exact())), threshold);
    }
    return {stays, KeepWords(stays), static_cast<int64_t>(hn::CountTrue(df, stays))};
  }
  template <class L>
  static HWY_INLINE Kept Judge(V squares, const L *threshold) {
    return Judge(ToFloat(squares), threshold, [&]() HWY_ATTR { return squares; });
  }

 private:
  static HWY_INLINE VF AsFloats(const float *threshold) { return hn::LoadU(DF(), threshold); }
  static HWY_INLINE VF AsFloats(const double *threshold) { return ToFloat(Load(threshold)); }

  static HWY_INLINE hn::Mask<DF> Stay(VF norm, const float *threshold) {
    return hn::Not(hn::Lt(norm, hn::LoadU(DF(), threshold)));
  }
  static HWY_INLINE hn::Mask<DF> Stay(VF norm, const double *threshold) {
    const M stay = hn::Not(hn::Lt(hn::PromoteTo(D(), norm), Load(threshold)));
    return hn::MaskFromVec(hn::BitCast(DF(), KeepWords(stay)));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
