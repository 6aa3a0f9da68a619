// Rows of 16-bit numbers times one factor each, in floats.
#if defined(SPK_KERNELS_SCALE_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_SCALE_NARROW_INL_H_
#undef SPK_KERNELS_SCALE_NARROW_INL_H_
#else
#define SPK_KERNELS_SCALE_NARROW_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/narrow-inl.h"
#include "kernels/prefetch.h"
#include "kernels/rows-inl.h"
#include "kernels/scale-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// 16-bit numbers are multiplied as floats, twice as many at once, where that gives the same bits. A
// float as a factor needs no more than that (StoreNarrowProduct); a double is f = high + low, where
// `high` is f cut short enough for its product to be exact. The sum of both products, whose low one
// is off by less than 2^-35 of it, is then good to the last bit of a float and rounds as the exact
// one does, unless it lies in the middle of two 16-bit numbers.

// A factor that is a double.
template <class T>
struct NarrowFactor {
  float high, low;
  uint32_t alive;  // all bits, or none if the factor is 0
  bool is_usual;   // 0, or not 1 and of normal floats, whose products mostly are normal, too

  HWY_INLINE VN Times(VN x) const {
    const DN d;
    const VN product = hn::Add(hn::Mul(x, hn::Set(d, high)), hn::Mul(x, hn::Set(d, low)));
    return hn::And(hn::BitCast(d, hn::Set(DNBits(), alive)), product);
  }
};

// A factor that is a float.
struct FloatFactor {
  float factor;
  bool is_usual;  // neither 1 nor NaN

  explicit HWY_INLINE FloatFactor(float f) : factor(f), is_usual(f == f && f != 1) {}
  HWY_INLINE VN Times(VN x) const {
    const VN f = hn::Set(DN(), factor);
    return hn::IfThenZeroElse(hn::Eq(f, hn::Zero(DN())), hn::Mul(x, f));
  }
};

// Factors of up to kMost rows, made kN at a time.
template <class T>
class NarrowFactors {
 public:
  static constexpr int64_t kMost = 64;

  HWY_INLINE void Take(const double *factor, int64_t step, int64_t count) {
    for (int64_t i = 0; i < count; i += kN) {
      Make(LoadSome(factor + i * step, step, HWY_MIN(count - i, kN)), i);
    }
  }
  HWY_INLINE NarrowFactor<T> operator[](int64_t i) const {
    return {high_[i], low_[i], alive_[i], usual_[i] != 0};
  }

 private:
  using DI32 = hn::Rebind<int32_t, D>;

  HWY_INLINE void Make(V factor, int64_t i) {
    constexpr uint64_t kHighPart = ~((uint64_t{1} << (53 - Narrow<T>::kCut)) - 1);
    const D d;
    const V cut = hn::And(factor, hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), kHighPart)));
    // Never 0, because an infinity times it would be no number; too small to matter.
    const V rest = hn::Add(hn::Sub(factor, cut), hn::Mul(factor, hn::Set(d, 0x1p-60)));
    hn::StoreU(ToFloat(cut), DF(), high_ + i);
    hn::StoreU(ToFloat(rest), DF(), low_ + i);
    const M dead = hn::Eq(factor, hn::Zero(d));
    const V magnitude = hn::Abs(factor);
    const M in_range =
        hn::And(hn::Ge(magnitude, hn::Set(d, 0x1p-60)), hn::Le(magnitude, hn::Set(d, 0x1p60)));
    const M scales = hn::AndNot(hn::Eq(factor, hn::Set(d, 1.0)), in_range);
    StoreBits(hn::Not(dead), alive_ + i);
    StoreBits(hn::Or(scales, dead), usual_ + i);
  }
  // All bits, or none.
  static HWY_INLINE void StoreBits(M mask, uint32_t *to) {
    const auto bits = hn::DemoteTo(DI32(), hn::IfThenElseZero(mask, hn::Set(D(), -1.0)));
    hn::StoreU(hn::BitCast(DU32(), bits), DU32(), to);
  }

  HWY_ALIGN float high_[kMost];
  HWY_ALIGN float low_[kMost];
  HWY_ALIGN uint32_t alive_[kMost];
  HWY_ALIGN uint32_t usual_[kMost];
};

// The first `n` elements of a row, which are pairs of registers. `f` stands for `factor`.
template <class T, class P, class F>
HWY_INLINE void ScaleNarrowPairs(const T *x, T *y, int64_t n, const F &f, Factor<P> factor,
                                 int64_t soon) {
  using N = Narrow<T>;
  for (int64_t i = 0; i < n; i += 2 * kNarrow) {
    prefetch_far(x + i, soon);
    VN a, b;
    N::LoadPair(x + i, &a, &b);
    a = f.Times(a);
    b = f.Times(b);
    if (HWY_UNLIKELY(N::MayLieBetween(a, b))) {
      ScaleRun<T, P>(x + i, y + i, 2 * kNarrow, factor, 0);
      continue;
    }
    N::StorePair(a, b, y + i);
  }
}

// A contiguous row of at least kNarrow elements, times a usual factor. What is no whole pair of
// registers is in two that overlap others, which is why they are read before those are written.
template <class T, class P, class F>
HWY_INLINE void ScaleNarrowRow(const T *x, T *y, int64_t n, const F &f, Factor<P> factor,
                               int64_t soon) {
  using N = Narrow<T>;
  const int64_t pairs = n / (2 * kNarrow) * (2 * kNarrow);
  if (HWY_LIKELY(pairs == n)) return ScaleNarrowPairs<T, P>(x, y, n, f, factor, soon);
  const int64_t left = HWY_MIN(pairs, n - kNarrow);
  const VN a = f.Times(N::Load(x + left));
  const VN b = f.Times(N::Load(x + n - kNarrow));
  prefetch_far(x + n - kNarrow, soon);
  if (HWY_UNLIKELY(N::MayLieBetween(a, b))) return ScaleRun<T, P>(x, y, n, factor, 0);
  ScaleNarrowPairs<T, P>(x, y, pairs, f, factor, soon);
  N::Store(a, y + left);
  N::Store(b, y + n - kNarrow);
}

// A short row of 16-bit numbers, of at least kNarrow.
template <class T, class P, class F>
HWY_INLINE void ScaleShortRow(const T *x, T *y, int64_t n, const F &narrow, Factor<P> factor,
                              int64_t soon) {
  if (HWY_LIKELY(narrow.is_usual)) return ScaleNarrowRow<T, P>(x, y, n, narrow, factor, soon);
  if (factor == 1.0) return CopyRow(x, 1, y, 1, n);
  ScaleRun<T, P>(x, y, n, factor, soon);
}

// Two rows of a register each. `f0` and `f1` stand for the first two factors.
template <class T, class P, class F>
HWY_INLINE void ScaleTwoRegisters(const std::byte *x, std::byte *y, const ScaleArgs &args,
                                  const F &f0, const F &f1, const Factor<P> *factor) {
  using N = Narrow<T>;
  const T *x0 = reinterpret_cast<const T *>(x);
  const T *x1 = reinterpret_cast<const T *>(x + args.x_row);
  T *y0 = reinterpret_cast<T *>(y);
  T *y1 = reinterpret_cast<T *>(y + args.y_row);
  prefetch_far(x0, args.soon);
  prefetch_far(x1, args.soon);
  const VN a = f0.Times(N::Load(x0));
  const VN b = f1.Times(N::Load(x1));
  const bool usual = f0.is_usual && f1.is_usual;
  if (HWY_LIKELY(usual && !N::MayLieBetween(a, b))) {
    N::Store(a, y0);
    N::Store(b, y1);
    return;
  }
  ScaleShortRow<T, P>(x0, y0, kNarrow, f0, factor[0], 0);
  ScaleShortRow<T, P>(x1, y1, kNarrow, f1, factor[args.factor_row], 0);
}

// Short rows of 16-bit numbers: their factors are prepared once for all groups that share them.
template <class T, class P>
HWY_NOINLINE void ScaleNarrowRows(const ScaleArgs &given) {
  const ScaleArgs args = given;  // a copy that no store can change, as far as compilers know
  constexpr int64_t kAtOnce = NarrowFactors<T>::kMost;
  NarrowFactors<T> narrow;
  for (int64_t begin = 0; begin < args.rows; begin += kAtOnce) {
    const int64_t count = HWY_MIN(args.rows - begin, kAtOnce);
    for (int64_t group = 0; group < args.groups; ++group) {
      const double *factor = static_cast<const double *>(args.factor) + group * args.factor_group +
                             begin * args.factor_row;
      if (group == 0 || args.factor_group != 0) narrow.Take(factor, args.factor_row, count);
      const std::byte *x = args.x + group * args.x_group + begin * args.x_row;
      std::byte *y = args.y + group * args.y_group + begin * args.y_row;
      int64_t r = 0;
      if (args.n == kNarrow) {
        for (; r + 2 <= count; r += 2) {
          ScaleTwoRegisters<T, P>(x + r * args.x_row, y + r * args.y_row, args, narrow[r],
                                  narrow[r + 1], factor + r * args.factor_row);
        }
      }
      for (; r < count; ++r) {
        ScaleShortRow<T, P>(reinterpret_cast<const T *>(x + r * args.x_row),
                            reinterpret_cast<T *>(y + r * args.y_row), args.n, narrow[r],
                            factor[r * args.factor_row], args.soon);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
