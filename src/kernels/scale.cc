// Multipliers: rows of elements times factors, rounded once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/scale.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <type_traits>

#include "kernels/ask_near-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/prefetch.h"
#include "kernels/rows-inl.h"
#include "kernels/scale-inl.h"
#include "kernels/scale_narrow-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Any row, through registers filled element by element.
template <class T, class P>
HWY_INLINE void ScaleGathered(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                              Factor<P> factor) {
  const auto f = hn::Set(typename P::Tag(), factor);
  for (int64_t i = 0; i < n; i += kFactors<P>) {
    const int64_t left = HWY_MIN(n - i, kFactors<P>);
    HWY_ALIGN T in[kFactors<P>] = {};
    HWY_ALIGN T out[kFactors<P>];
    for (int64_t k = 0; k < left; ++k) in[k] = x[(i + k) * x_step];
    StoreProduct<P>(LoadFor<P>(in), f, out);
    for (int64_t k = 0; k < left; ++k) y[(i + k) * y_step] = out[k];
  }
}

// Up to a register of elements with a factor each, through registers filled element by element.
template <class T, class P>
HWY_NOINLINE void ScaleSome(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                            const Factor<P> *factor, int64_t factor_step) {
  HWY_ALIGN T in[kFactors<P>] = {};
  HWY_ALIGN Factor<P> f[kFactors<P>] = {};
  HWY_ALIGN T out[kFactors<P>];
  for (int64_t k = 0; k < n; ++k) in[k] = x[k * x_step];
  for (int64_t k = 0; k < n; ++k) f[k] = factor[k * factor_step];
  StoreProduct<P>(LoadFor<P>(in), hn::Load(typename P::Tag(), f), out);
  for (int64_t k = 0; k < n; ++k) {
    y[k * y_step] = f[k] == 1 ? in[k] : out[k];
  }
}

// Is P for the rows of 16-bit numbers that are too short for Narrow's registers?
template <class P, class T>
inline constexpr bool kForShortRows = !kByDoubles<P> && Narrow<T>::kInFloats && !kAsNarrow<P, T>;

// A contiguous row of at least a register of elements, times one factor.
template <class T, class P>
HWY_INLINE void ScaleContiguousRow(const T *x, T *y, int64_t n, Factor<P> factor, int64_t soon) {
  if constexpr (Narrow<T>::kInFloats && !kForShortRows<P, T>) {
    if (n >= kNarrow) {
      NarrowFactors<T, kN> narrow;
      narrow.Take(&factor, 1, 1);
      if (narrow.IsUsual(0)) return ScaleNarrowRow<T, P>(x, y, n, narrow.Of(0), factor, soon);
    }
  }
  ScaleRun<T, P>(x, y, n, factor, soon);
}

// One factor for the whole row.
template <class T, class P>
HWY_INLINE void ScaleRow(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                         Factor<P> factor, int64_t soon) {
  if (factor == 1) return CopyRow(x, x_step, y, y_step, n);
  const bool contiguous = x_step == 1 && y_step == 1 && n >= kFactors<P>;
  if (factor == 0 && (n >= kLongRow || !contiguous)) return ZeroRow(y, y_step, n);
  if (contiguous) return ScaleContiguousRow<T, P>(x, y, n, factor, soon);
  ScaleGathered<T, P>(x, x_step, y, y_step, n, factor);
}

// Without the sign, the bits of NaN are above those of infinity.
template <class T>
inline constexpr int16_t kInfinityBits = 0x7c00;
template <>
inline constexpr int16_t kInfinityBits<Bf16> = 0x7f80;

template <class T, class DT>
HWY_INLINE auto AreNaN(DT d, const T *x) {
  if constexpr (std::is_floating_point_v<T>) {
    return hn::IsNaN(hn::LoadU(d, x));
  } else {
    const auto words = hn::LoadU(d, reinterpret_cast<const int16_t *>(x));
    return hn::Gt(hn::And(words, hn::Set(d, 0x7fff)), hn::Set(d, kInfinityBits<T>));
  }
}

// Is a NaN among kCount elements, a multiple of kN?
template <int64_t kCount, class T>
HWY_INLINE bool HasNaN(const T *x) {
  using Lane = std::conditional_t<std::is_floating_point_v<T>, T, int16_t>;
  const hn::CappedTag<Lane, kCount> d;
  constexpr auto kRegister = static_cast<int64_t>(hn::MaxLanes(d));
  auto any = AreNaN(d, x);
  for (int64_t i = kRegister; i < kCount; i += kRegister) any = hn::Or(any, AreNaN(d, x + i));
  return !hn::AllFalse(d, any);
}

// Doubles as factors of 16-bit numbers are taken as floats: twice as many are in a register, and
// mostly they tell how to round.
template <class P, class T>
inline constexpr bool kPicksFloats = kByDoubles<P> &&Narrow<T>::kInFloats;
template <class P, class T>
using PickedProduct = std::conditional_t<kPicksFloats<P, T>, FloatProduct<DN>, P>;

// Rows of up to so many elements have their factors picked. Of those of 16, groups that share their
// factors are then read in turn, which gains with large registers only.
inline constexpr int64_t kMostInPickedRow = kHasLargeRegisters ? kMostPicked : kMostPicked - 1;

// A register of factors. Returns whether what is loaded stands for them.
template <class P, class T, class F>
HWY_INLINE bool LoadFactors(const Factor<P> *factor, F *factors) {
  if constexpr (kPicksFloats<P, T>) {
    *factors = LoadAsFloats(factor);
    M in_floats = AreInFloats(Load(factor));
    for (int64_t i = kN; i < kNarrow; i += kN) {
      in_floats = hn::And(in_floats, AreInFloats(Load(factor + i)));
    }
    return hn::AllTrue(D(), in_floats);
  } else {
    *factors = hn::LoadU(typename PickedProduct<P, T>::Tag(), factor);
    return true;
  }
}

// Are kCount elements, with a double each, scaled in floats? They fill registers then; processors
// that convert to f16 themselves are done with doubles as soon.
template <int64_t kCount, class P, class T>
inline constexpr bool kInFloats =
    kPicksFloats<P, T> &&std::is_same_v<T, Bf16> &&kCount % kNarrow == 0;

// kNarrow elements with a double each, in floats. Returns false if those do not tell, and has then
// stored nothing.
template <class P, class T>
HWY_INLINE bool ScaleInFloats(const T *x, T *y, const double *factor) {
  VN factors;
  return LoadFactors<P, T>(factor, &factors) &&
         Narrow<T>::StoreTold(ProductInFloats(x, factors), y);
}

// Asks for what is read `soon` after some elements; and, if `asks_near`, near for what follows in
// memory and for the factors that follow.
template <int64_t kCount, class P, class T>
HWY_INLINE void AskForBoth(const T *x, const Factor<P> *factor, int64_t soon, bool asks_near) {
  prefetch_far(x, soon);
  if (!kHasLargeRegisters || !asks_near) return;
  prefetch_near(x, kNear);
  if (soon == kFar) ask_ahead(factor, kCount, kStreamAskedNear);
}

// kCount elements, whole registers, with a factor each, unless a NaN is among them: returns whether
// they are done.
template <int64_t kCount, class P, class T>
HWY_INLINE bool ScaleRegisters(const T *x, T *y, const Factor<P> *factor, int64_t soon,
                               bool asks_near) {
  const typename P::Tag d;
  AskForBoth<kCount, P>(x, factor, soon, asks_near);
  if (HWY_UNLIKELY(HasNaN<kCount>(x))) return false;
  constexpr int64_t kTogether = kInFloats<kCount, P, T> ? kNarrow : kFactors<P>;
  for (int64_t i = 0; i < kCount; i += kTogether) {
    if constexpr (kInFloats<kCount, P, T>) {
      if (HWY_LIKELY((ScaleInFloats<P>(x + i, y + i, factor + i)))) continue;
    }
    for (int64_t k = i; k < i + kTogether; k += kFactors<P>) {
      StoreProduct<P>(LoadFor<P>(x + k), hn::LoadU(d, factor + k), y + k);
    }
  }
  return true;
}

// A factor for each element of a contiguous row. Factor 1 is exact for all but NaN, whose bits it
// must keep; returns how far it came, which is up to the first NaN or the tail.
template <class T, class P>
HWY_INLINE int64_t ScaleContiguous(const T *x, T *y, int64_t n, const Factor<P> *factor,
                                   int64_t soon, bool asks_near) {
  int64_t i = 0;
  for (; i + kLineOf<T> <= n; i += kLineOf<T>) {
    if (!ScaleRegisters<kLineOf<T>, P>(x + i, y + i, factor + i, soon, asks_near)) break;
  }
  for (; i + kFactors<P> <= n; i += kFactors<P>) {
    if (!ScaleRegisters<kFactors<P>, P>(x + i, y + i, factor + i, soon, false)) break;
  }
  return i;
}

// A factor for each element of the row. `asks_near`: for what follows both in memory, as it is read
// next.
template <class T, class P>
HWY_INLINE void ScaleElements(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                              const Factor<P> *factor, int64_t factor_step, int64_t soon,
                              bool asks_near) {
  const bool contiguous = x_step == 1 && y_step == 1 && factor_step == 1;
  int64_t i = contiguous ? ScaleContiguous<T, P>(x, y, n, factor, soon, asks_near) : 0;
  while (i < n) {
    ScaleSome<T, P>(x + i * x_step, x_step, y + i * y_step, y_step, HWY_MIN(n - i, kFactors<P>),
                    factor + i * factor_step, factor_step);
    i += kFactors<P>;
    if (contiguous && i < n) {
      i += ScaleContiguous<T, P>(x + i, y + i, n - i, factor + i, soon, asks_near);
    }
  }
}

// Rows of a few elements that follow each other: a run of elements with repeated factors.
template <class T, class P>
HWY_NOINLINE void ScaleTinyRows(const T *x, T *y, int64_t n, int64_t rows, const Factor<P> *factor,
                                int64_t factor_row, int64_t soon) {
  constexpr int64_t kRepeated = 512;
  HWY_ALIGN Factor<P> repeated[kRepeated];
  const int64_t at_once = kRepeated / n;
  for (int64_t row = 0; row < rows; row += at_once) {
    const int64_t count = HWY_MIN(rows - row, at_once);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t i = 0; i < n; ++i) repeated[r * n + i] = factor[(row + r) * factor_row];
    }
    ScaleElements<T, P>(x + row * n, 1, y + row * n, 1, count * n, repeated, 1, soon, false);
  }
}

// Register k of the elements of rows of n, where floats do not tell.
template <class P, class T>
HWY_NOINLINE void ScalePickedUntold(const T *x, T *y, int64_t n, int64_t k, const double *factor) {
  HWY_ALIGN double picked[kNarrow];
  for (int64_t i = 0; i < kNarrow; ++i) picked[i] = factor[(k * kNarrow + i) / n];
  for (int64_t i = 0; i < kNarrow; i += kN) StoreProduct<P>(Load(x + i), Load(picked + i), y + i);
}

// The same, a register of rows at a time, with factors picked from it.
template <class P, class T>
class PickedRows {
 public:
  static constexpr auto kRows = kFactors<PickedProduct<P, T>>;

  explicit HWY_INLINE PickedRows(int64_t n) : n_(n) { SetPicks(Tag(), n, n, pick_); }

  // kGroups groups that share their factors, each of which is picked once. Returns how many rows of
  // each have been scaled.
  template <int64_t kGroups>
  HWY_INLINE int64_t Scale(const ScaleArgs &args, const std::byte *x, std::byte *y,
                           const Factor<P> *factor) const {
    constexpr auto kRegister = kRows * static_cast<int64_t>(sizeof(T));
    const Tag d;
    const int64_t soon = kGroups > 1 && HoldsRowsAhead() ? FarInGroups<kGroups>(args) : args.soon;
    const bool asks_near =
        AsksNearFor<T>() && IsReadNext(args.rows * n_ * static_cast<int64_t>(sizeof(T)), args.soon);
    int64_t row = 0;
    for (; row + kRows <= args.rows; row += kRows, x += kRegister * n_, y += kRegister * n_) {
      hn::Vec<Tag> factors;
      const bool are_picked = LoadFactors<P, T>(factor + row, &factors);
      // Rows times 1 keep the bits of NaN.
      const bool some_stay = !hn::AllFalse(d, hn::Eq(factors, hn::Set(d, 1)));
      if (HWY_UNLIKELY(!are_picked || (some_stay && HaveNaN<kGroups>(args, x)))) {
        for (int64_t g = 0; g < kGroups; ++g) {
          ScaleTinyRows<T, P>(At(x + g * args.x_group), At(y + g * args.y_group), n_, kRows,
                              factor + row, 1, args.soon);
        }
        continue;
      }
      for (int64_t k = 0; k < n_; ++k) {
        const auto picked = hn::TableLookupLanes(factors, pick_[k]);
        for (int64_t g = 0; g < kGroups; ++g) {
          const T *from = At(x + g * args.x_group + k * kRegister);
          if (soon != 0) prefetch_far(from, soon);
          if (asks_near) AskInTurn(from, 1);
          Store(from, picked, At(y + g * args.y_group + k * kRegister), k, factor + row);
        }
      }
    }
    return row;
  }

 private:
  using Tag = typename PickedProduct<P, T>::Tag;
  using Index = hn::TFromD<hn::RebindToSigned<Tag>>;
  using Picks = decltype(hn::SetTableIndices(Tag(), static_cast<const Index *>(nullptr)));

  // Groups of short rows are followed by the next ones, which are further on in memory.
  template <int64_t kGroups>
  HWY_INLINE int64_t FarInGroups(const ScaleArgs &args) const {
    const int64_t next = kGroups * args.x_group;
    const bool are_long = args.rows * n_ * static_cast<int64_t>(sizeof(T)) >= 4 * kLongEnough;
    if (are_long || next <= 0 || next > kMostFar) return kFarInRows;
    return next * HWY_MAX(1, kBytesInLaterRows / next);
  }

  static HWY_INLINE const T *At(const std::byte *p) { return reinterpret_cast<const T *>(p); }
  static HWY_INLINE T *At(std::byte *p) { return reinterpret_cast<T *>(p); }

  // Is a NaN in kRows rows of any of the groups?
  template <int64_t kGroups>
  HWY_INLINE bool HaveNaN(const ScaleArgs &args, const std::byte *x) const {
    bool any = false;
    for (int64_t g = 0; g < kGroups; ++g) {
      const T *from = At(x + g * args.x_group);
      for (int64_t k = 0; k < n_; ++k) any |= HasNaN<kRows>(from + k * kRows);
    }
    return any;
  }

  // Register k of the elements.
  HWY_INLINE void Store(const T *x, hn::Vec<Tag> picked, T *y, int64_t k,
                        const Factor<P> *factor) const {
    if constexpr (kPicksFloats<P, T>) {
      if (HWY_LIKELY(Narrow<T>::StoreTold(ProductInFloats(x, picked), y))) return;
      ScalePickedUntold<P>(x, y, n_, k, factor);
    } else {
      StoreProduct<P>(LoadFor<P>(x), picked, y);
    }
  }

  int64_t n_;
  Picks pick_[kMostPicked];
};

template <class T, class P>
HWY_NOINLINE void ScaleGroupsOfTinyRows(const ScaleArgs &args) {
  for (int64_t group = 0; group < args.groups; ++group) {
    ScaleTinyRows<T, P>(reinterpret_cast<const T *>(args.x + group * args.x_group),
                        reinterpret_cast<T *>(args.y + group * args.y_group), args.n, args.rows,
                        static_cast<const Factor<P> *>(args.factor) + group * args.factor_group,
                        args.factor_row, args.soon);
  }
}

// kGroups groups of rows from number `first` on.
template <int64_t kGroups, class T, class P>
HWY_INLINE void ScaleSomeGroups(const ScaleArgs &args, const PickedRows<P, T> &picked,
                                int64_t first) {
  const std::byte *x = args.x + first * args.x_group;
  std::byte *y = args.y + first * args.y_group;
  const auto *factor = static_cast<const Factor<P> *>(args.factor) + first * args.factor_group;
  const int64_t done = picked.template Scale<kGroups>(args, x, y, factor);
  for (int64_t g = 0; g < kGroups; ++g) {
    ScaleTinyRows<T, P>(reinterpret_cast<const T *>(x + g * args.x_group) + done * args.n,
                        reinterpret_cast<T *>(y + g * args.y_group) + done * args.n, args.n,
                        args.rows - done, factor + done, 1, args.soon);
  }
}

template <class T, class P>
HWY_NOINLINE void ScaleGroupsOfPickedRows(const ScaleArgs &given) {
  const ScaleArgs args = given;  // a copy that no store can change, as far as compilers know
  constexpr int64_t kTogether = 4;
  const PickedRows<P, T> picked(args.n);
  int64_t group = 0;
  if (args.factor_group == 0) {
    for (; group + kTogether <= args.groups; group += kTogether) {
      ScaleSomeGroups<kTogether, T, P>(args, picked, group);
    }
  }
  for (; group < args.groups; ++group) ScaleSomeGroups<1, T, P>(args, picked, group);
}

// Rows of kCount elements, whole registers, with a factor for each element.
template <int64_t kCount, class T, class P>
HWY_NOINLINE void ScaleRowsOfRegisters(const ScaleArgs &args) {
  const int64_t soon = args.soon;
  const bool asks_near = AsksNearFor<T>() && soon == kFar;  // a stream, and so are its factors
  ForEachRow<T, Factor<P>>(args, [=](const T *x, T *y, const Factor<P> *factor) HWY_ATTR {
    if (HWY_LIKELY((ScaleRegisters<kCount, P>(x, y, factor, soon, asks_near)))) return;
    for (int64_t i = 0; i < kCount; i += kFactors<P>) {
      ScaleSome<T, P>(x + i, 1, y + i, 1, kFactors<P>, factor + i, 1);
    }
  });
}

#if HWY_MAX_BYTES >= 64
// Two rows of kLanes elements that share their factors.
template <class T>
HWY_INLINE void ScaleTwinRows(const T *x, T *y, const float *factor, int64_t soon, bool asks_near) {
  using P = FloatProduct<DN>;
  static_assert(kNarrow == 2 * kLanes);
  const DN d;
  AskForBoth<kLanes, P>(x, factor, soon, asks_near);
  const auto once = hn::LoadU(hn::Half<DN>(), factor);
  const VN twice = hn::Combine(d, once, once);
  if (HWY_LIKELY(!HasNaN<kNarrow>(x))) return StoreProduct<P>(LoadFor<P>(x), twice, y);
  HWY_ALIGN float factors[kNarrow];
  hn::Store(twice, d, factors);
  ScaleSome<T, P>(x, 1, y, 1, kNarrow, factors, 1);
}

// Returns whether rows are such, and scales them if they are.
template <class T>
HWY_NOINLINE bool ScaleTwins(const ScaleArgs &args) {
  if (!AreTwins<T>(args)) return false;
  const bool asks_near = AsksNearFor<T>() && args.soon == kFar;  // as above
  ForEachRow<T, float>(AsTwins(args),
                       [soon = args.soon, asks_near](const T *x, T *y, const float *factor)
                           HWY_ATTR { ScaleTwinRows(x, y, factor, soon, asks_near); });
  return true;
}
#else
template <class T>
HWY_INLINE bool ScaleTwins(const ScaleArgs &) {
  return false;
}
#endif

template <class T, class P>
HWY_NOINLINE void ScaleRows(const ScaleArgs &args) {
  const bool asks_near =
      AsksNear() && IsReadNext(args.n * static_cast<int64_t>(sizeof(T)), args.soon);
  if constexpr (!kForShortRows<P, T>) {
    if (FollowEachOther<T>(args)) {
      constexpr auto kRows = PickedRows<P, T>::kRows;
      if constexpr (kRows >= 4) {
        const bool many = args.rows >= kRows && args.factor_row == 1;
        if (many && args.n <= kMostInPickedRow) return ScaleGroupsOfPickedRows<T, P>(args);
      }
      if (args.n < kFactors<P>) return ScaleGroupsOfTinyRows<T, P>(args);
    }
  }
  switch (KindOfRows<T>(args, kFactors<P>)) {
    case Rows::kShort:
      if constexpr (Narrow<T>::kInFloats && !kForShortRows<P, T>) {
        if (args.n >= kNarrow) return ScaleNarrowRows<T, P>(args);
      }
      return ForEachRow<T, Factor<P>>(
          args, [n = args.n, soon = args.soon](const T *x, T *y, const Factor<P> *factor) HWY_ATTR {
            if (HWY_UNLIKELY(*factor == 1)) return CopyRow(x, 1, y, 1, n);
            ScaleContiguousRow<T, P>(x, y, n, *factor, soon);
          });
    case Rows::kElements:
      if (args.n == kFactors<P>) return ScaleRowsOfRegisters<kFactors<P>, T, P>(args);
      if constexpr (kLanes % kFactors<P> == 0) {
        if (args.n == kLanes) return ScaleRowsOfRegisters<kLanes, T, P>(args);
      }
      return ForEachRow<T, Factor<P>>(
          args, [n = args.n, soon = args.soon, asks_near](const T *x, T *y, const Factor<P> *factor)
                    HWY_ATTR { ScaleElements<T, P>(x, 1, y, 1, n, factor, 1, soon, asks_near); });
    case Rows::kAny:
      return ForEachRow<T, Factor<P>>(
          args, [&](const T *x, T *y, const Factor<P> *factor) HWY_ATTR {
            if (args.factor_step == 0) {
              ScaleRow<T, P>(x, args.x_step, y, args.y_step, args.n, *factor, args.soon);
            } else {
              ScaleElements<T, P>(x, args.x_step, y, args.y_step, args.n, factor, args.factor_step,
                                  args.soon, false);
            }
          });
  }
}

// Several long rows that have a factor for each element, and the same ones, gain by asking: factors
// are read from the first cache again and again.
template <class T>
HWY_INLINE ScaleArgs WithoutStreamsUnlessShared(const ScaleArgs &args) {
  const bool same_factors = args.rows > 1 && args.factor_step == 1 && args.factor_row == 0;
  return same_factors && args.n >= kLongRow ? WithBytesAhead(args) : WithoutStreams<T>(args);
}

template <class T>
void Scale(const ScaleArgs &given) {
  const ScaleArgs args = WithoutStreamsUnlessShared<T>(given);
  // The product of doubles is rounded once as it is.
  if constexpr (sizeof(T) < sizeof(double)) {
    if (args.exact_product) return ScaleRows<T, ExactProduct>(args);
  }
  ScaleRows<T, Product>(args);
}

// Registers hold up to kLanes floats, as many as a short row: 4 do not fill those of 8.
void ScaleFloatsByFloats(const ScaleArgs &given) {
  const ScaleArgs args = WithoutStreamsUnlessShared<float>(given);
  if (ScaleTwins<float>(args)) return;
  const bool tiny = args.n < kLanes && !FollowEachOther<float>(args);
  if (tiny) return ScaleRows<float, FloatProduct<hn::CappedTag<float, 4>>>(args);
  ScaleRows<float, FloatProduct<hn::CappedTag<float, kLanes>>>(args);
}

// Registers of half the size where rows neither fill whole ones nor follow each other.
template <class T>
void ScaleNarrowByFloats(const ScaleArgs &given) {
  const ScaleArgs args = WithBytesAhead(given);
  if constexpr (Narrow<T>::kInFloats) {
    if (ScaleTwins<T>(args)) return;
    const bool fills = args.n >= kNarrow || FollowEachOther<T>(args);
    if (fills) return ScaleRows<T, FloatProduct<DN>>(args);
  }
  ScaleRows<T, FloatProduct<DF>>(args);
}

void FillScale(Kernels *table) {
  table->boxes_ahead = HoldsRowsAhead() ? 2 : 1;
  table->scale[kF32] = Scale<float>;
  table->scale[kF64] = Scale<double>;
  table->scale[kF16] = Scale<F16>;
  table->scale[kBf16] = Scale<Bf16>;
  table->scale_by_floats[kF32] = ScaleFloatsByFloats;
  table->scale_by_floats[kF64] = nullptr;  // multiplied by doubles only (core/apply.cc)
  table->scale_by_floats[kF16] = ScaleNarrowByFloats<F16>;
  table->scale_by_floats[kBf16] = ScaleNarrowByFloats<Bf16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillScale);
void fill_scale(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillScale)(table);
}
}  // namespace spk
#endif
