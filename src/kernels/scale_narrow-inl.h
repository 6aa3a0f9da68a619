// Rows of 16-bit numbers times one factor each, in floats.
#if defined(SPK_KERNELS_SCALE_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_SCALE_NARROW_INL_H_
#undef SPK_KERNELS_SCALE_NARROW_INL_H_
#else
#define SPK_KERNELS_SCALE_NARROW_INL_H_
#endif

#include <hwy/highway.h>

#include <bit>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/narrow-inl.h"
#include "kernels/prefetch.h"
#include "kernels/rows-inl.h"
#include "kernels/scale-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// 0, or well inside the range of normal floats, so that what is made of it is normal, too? False
// for NaN.
HWY_INLINE M AreInFloats(V factor) {
  const D d;
  const V magnitude = hn::Abs(factor);
  const M in_range =
      hn::And(hn::Ge(magnitude, hn::Set(d, 0x1p-120)), hn::Le(magnitude, hn::Set(d, 0x1p120)));
  return hn::Or(in_range, hn::Eq(factor, hn::Zero(d)));
}

// Factors of up to kMost rows, made kN at a time.
template <class T, int64_t kMost>
class NarrowFactors {
  using N = Narrow<T>;
  using Factors = typename N::Factors;
  using DI32 = hn::Rebind<int32_t, D>;

 public:
  template <class F>
  HWY_INLINE void Take(const F *factor, int64_t step, int64_t count) {
    for (int64_t i = 0; i < count; i += kN) {
      Make(LoadSome(factor + i * step, step, HWY_MIN(count - i, kN)), i);
    }
  }
  // In floats, and not 1, whose products keep the bits of NaN?
  HWY_INLINE bool IsUsual(int64_t i) const { return usual_[i] != 0; }
  HWY_INLINE Factors Of(int64_t i) const { return Factors(part_ + i, kMost); }

 private:
  HWY_INLINE void Make(V factor, int64_t i) {
    const D d;
    for (int p = 0; p < N::kParts; ++p) {
      hn::StoreU(ToFloat(N::Part(factor, p)), DF(), part_ + p * kMost + i);
    }
    const M scales = hn::AndNot(hn::Eq(factor, hn::Set(d, 1.0)), AreInFloats(factor));
    const V is_usual = hn::IfThenElseZero(scales, hn::Set(d, 1.0));
    hn::StoreU(hn::DemoteTo(DI32(), is_usual), DI32(), usual_ + i);
  }

  HWY_ALIGN float part_[N::kParts * kMost];
  HWY_ALIGN int32_t usual_[kMost];
};

// What floats do not tell.
template <class T, class P>
HWY_NOINLINE void ScaleUntold(const T *x, T *y, int64_t n, Factor<P> factor) {
  ScaleRun<T, P>(x, y, n, factor, 0);
}

// A contiguous row of n >= kNarrow elements times a factor that is usual and short, and not 0. The
// last register may overlap the one before, so it is read before anything is written.
template <class T>
HWY_INLINE void ScaleByShort(const T *x, T *y, int64_t n, float factor, int64_t soon) {
  const VN f = hn::Set(DN(), factor);
  const auto store = [&](VN elements, T *to)
                         HWY_ATTR { StoreShortProduct(hn::Mul(elements, f), elements, f, to); };
  const int64_t before_last = n - kNarrow;
  const VN last = Narrow<T>::Load(x + before_last);
  for (int64_t i = 0; i < before_last; i += kNarrow) {
    if (i % kLineOf<T> == 0) prefetch_far(x + i, soon);
    store(Narrow<T>::Load(x + i), y + i);
  }
  prefetch_far(x + before_last, soon);
  store(last, y + before_last);
}

// A pair of registers.
template <class T, class P, class F>
HWY_INLINE void ScalePair(const T *x, T *y, const F &f, const Factor<P> &factor, int64_t soon) {
  using N = Narrow<T>;
  prefetch_far(x, soon);
  const auto products = N::Multiply(N::LoadPair(x), f);
  if (HWY_UNLIKELY(!N::AreTold(products))) return ScaleUntold<T, P>(x, y, kWords, factor);
  N::StorePair(products, y);
}

// Two of them.
template <class T, class P, class F>
HWY_INLINE void ScaleTwoPairs(const T *x, T *y, const F &f, const Factor<P> &factor, int64_t soon) {
  using N = Narrow<T>;
  for (int64_t i = 0; i < 2 * kWords; i += kLineOf<T>) prefetch_far(x + i, soon);
  const auto a = N::Multiply(N::LoadPair(x), f);
  const auto b = N::Multiply(N::LoadPair(x + kWords), f);
  if (HWY_UNLIKELY(!N::AreTold(a, b))) return ScaleUntold<T, P>(x, y, 2 * kWords, factor);
  N::StorePair(a, y);
  N::StorePair(b, y + kWords);
}

// The first n elements of a row, which are pairs of registers. `f` stands for `factor`.
template <class T, class P, class F>
HWY_INLINE void ScalePairs(const T *x, T *y, int64_t n, const F &f, const Factor<P> &factor,
                           int64_t soon) {
  int64_t i = 0;
  for (; i + 2 * kWords <= n; i += 2 * kWords) ScaleTwoPairs<T, P>(x + i, y + i, f, factor, soon);
  if (i < n) ScalePair<T, P>(x + i, y + i, f, factor, soon);
}

// A contiguous row of n >= kNarrow elements, times a usual factor. What overlaps is read before it
// is written.
template <class T, class P, class F>
HWY_INLINE void ScaleNarrowRow(const T *x, T *y, int64_t n, const F &f, const Factor<P> &factor,
                               int64_t soon) {
  using N = Narrow<T>;
  if constexpr (!kByDoubles<P>) {
    // 0 is short, too, but found among factors of any kind: processors would guess wrong.
    const bool is_short = (std::bit_cast<uint32_t>(factor) & kBeyondShort<T>) == 0;
    if (is_short && factor != 0) return ScaleByShort(x, y, n, factor, soon);
  }
  if (HWY_LIKELY(n % kWords == 0)) return ScalePairs<T, P>(x, y, n, f, factor, soon);
  prefetch_far(x + n - kNarrow, soon);
  if (n == kNarrow) {
    const VN product = ProductInFloats(x, hn::Set(DN(), static_cast<float>(factor)));
    if (HWY_LIKELY(N::StoreTold(product, y))) return;
    return ScaleUntold<T, P>(x, y, n, factor);
  }
  if (n < kWords) {
    const auto both = N::Multiply(N::LoadHalves(x, x + n - kNarrow), f);
    if (HWY_UNLIKELY(!N::AreTold(both))) return ScaleUntold<T, P>(x, y, n, factor);
    return N::StoreHalves(both, y, y + n - kNarrow);
  }
  const auto last = N::Multiply(N::LoadPair(x + n - kWords), f);
  if (HWY_UNLIKELY(!N::AreTold(last))) return ScaleUntold<T, P>(x, y, n, factor);
  ScalePairs<T, P>(x, y, n / kWords * kWords, f, factor, soon);
  N::StorePair(last, y + n - kWords);
}

// Row i of those whose factors are `narrow`.
template <class T, class P, int64_t kMost>
HWY_INLINE void ScaleShortRow(const T *x, T *y, int64_t n, const NarrowFactors<T, kMost> &narrow,
                              int64_t i, const Factor<P> &factor, int64_t soon) {
  if (HWY_LIKELY(narrow.IsUsual(i))) {
    return ScaleNarrowRow<T, P>(x, y, n, narrow.Of(i), factor, soon);
  }
  if (factor == 1) return CopyRow(x, 1, y, 1, n);
  ScaleRun<T, P>(x, y, n, factor, soon);
}

// Short rows of 16-bit numbers: their factors are prepared once for all groups that share them.
// kLength elements each, or for 0 any number from kNarrow on.
template <int64_t kLength, class T, class P>
HWY_NOINLINE void ScaleNarrowRowsOf(const ScaleArgs &given) {
  const ScaleArgs args = given;  // a copy that no store can change, as far as compilers know
  constexpr int64_t kAtOnce = 64;
  const int64_t n = kLength == 0 ? args.n : kLength;
  NarrowFactors<T, kAtOnce> narrow;
  for (int64_t begin = 0; begin < args.rows; begin += kAtOnce) {
    const int64_t count = HWY_MIN(args.rows - begin, kAtOnce);
    for (int64_t group = 0; group < args.groups; ++group) {
      const auto *factor = static_cast<const Factor<P> *>(args.factor) + group * args.factor_group +
                           begin * args.factor_row;
      if (group == 0 || args.factor_group != 0) narrow.Take(factor, args.factor_row, count);
      const std::byte *x = args.x + group * args.x_group + begin * args.x_row;
      std::byte *y = args.y + group * args.y_group + begin * args.y_row;
      for (int64_t r = 0; r < count; ++r) {
        ScaleShortRow<T, P>(reinterpret_cast<const T *>(x), reinterpret_cast<T *>(y), n, narrow, r,
                            *factor, args.soon);
        x += args.x_row;
        y += args.y_row;
        factor += args.factor_row;
      }
    }
  }
}

template <class T, class P>
HWY_INLINE void ScaleNarrowRows(const ScaleArgs &args) {
  if (args.n == kNarrow) return ScaleNarrowRowsOf<kNarrow, T, P>(args);
  if (args.n == kWords) return ScaleNarrowRowsOf<kWords, T, P>(args);
  ScaleNarrowRowsOf<0, T, P>(args);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
