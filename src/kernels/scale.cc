// Multipliers and masks: rows of elements times factors, rounded once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/scale.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

template <class T>
HWY_INLINE void CopyRow(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n) {
  if (x == y && x_step == y_step) return;
  for (int64_t i = 0; i < n; ++i) y[i * y_step] = x[i * x_step];
}

template <class T>
HWY_INLINE void ZeroRow(T *y, int64_t y_step, int64_t n) {
  if (y_step == 1) {
    std::memset(y, 0, static_cast<size_t>(n) * sizeof(T));
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * y_step] = T{};
  }
}

// x * f as a double.
struct Product {
  static HWY_INLINE V Of(V x, V f) { return hn::Mul(x, f); }
};

// x * f rounded to odd, which a later rounding to fewer bits cannot tell from the exact product.
// For x of at most 24 bits: the low half of Dekker's product tells whether the double is inexact.
struct ExactProduct {
  static HWY_INLINE V Of(V x, V f) {
    const D d;
    const hn::RebindToUnsigned<D> du;
    const V product = hn::Mul(x, f);
    const V spread = hn::Mul(f, hn::Set(d, 134217729.0));  // 2^27 + 1
    const V high = hn::Sub(spread, hn::Sub(spread, f));
    const V low = hn::Sub(f, high);
    const V lost = hn::Add(hn::Sub(hn::Mul(x, high), product), hn::Mul(x, low));
    // Where the splitting overflows, `lost` is NaN and the product beyond the narrow dtypes anyway.
    const auto more = hn::Gt(hn::Abs(lost), hn::Zero(d));
    const auto away = hn::Gt(hn::CopySign(hn::Set(d, 1.0), hn::Xor(lost, product)), hn::Zero(d));
    const auto bits = hn::BitCast(du, product);
    const auto even = hn::AndNot(bits, hn::Set(du, 1));
    const auto up = hn::BitCast(du, hn::Add(bits, even));
    const auto down = hn::BitCast(du, hn::Sub(bits, even));
    const auto odd = hn::IfThenElse(hn::RebindMask(du, away), up, down);
    return hn::BitCast(d, hn::IfThenElse(hn::RebindMask(du, more), odd, bits));
  }
};

// Rows of more elements ask whether there is anything to compute; in shorter ones a wrong guess of
// the processor would cost more than the answer saves.
inline constexpr int64_t kLongRow = 256;

// Asks for what is read soon, while this is computed: into the second level of cache, because the
// first is full of what is being worked on.
template <class T>
HWY_INLINE void PrefetchAhead(const T *x, int64_t ahead) {
  __builtin_prefetch(reinterpret_cast<const std::byte *>(x) + ahead, 0, 2);
}

// A contiguous row of at least kN elements, times one factor. The last register overlaps the one
// before, so it is read before anything is written.
template <class T, class P>
HWY_INLINE void ScaleRun(const T *x, T *y, int64_t n, double factor, int64_t ahead) {
  const D d;
  const V f = hn::Set(d, factor);
  const auto dead = hn::Eq(f, hn::Zero(d));
  const auto scaled = [&](const T *from)
                          HWY_ATTR { return hn::IfThenZeroElse(dead, P::Of(Load(from), f)); };
  const V last = scaled(x + n - kN);
  PrefetchAhead(x + n - kN, ahead);
  if (n <= 2 * kN) {
    Store(scaled(x), y);
    return Store(last, y + n - kN);
  }
  for (int64_t i = 0; i + kN < n; i += kN) {
    PrefetchAhead(x + i, ahead);
    Store(scaled(x + i), y + i);
  }
  Store(last, y + n - kN);
}

// 16-bit numbers are multiplied as floats, twice as many at once, where that gives the same bits.
// `kCut` bits of a float have no room in them; below `kLeast` they have fewer bits still.
template <class T>
struct Narrow {
  static constexpr bool kInFloats = false;
};
using DN = hn::ScalableTag<float>;
using VN = hn::Vec<DN>;
inline constexpr int64_t kNarrow = static_cast<int64_t>(hn::MaxLanes(DN()));

template <>
struct Narrow<Bf16> {
  static constexpr bool kInFloats = true;
  static constexpr int kCut = 16;
  static constexpr float kLeast = 0x1p-126f;

  static HWY_INLINE VN Load(const Bf16 *p) {
    const hn::RebindToUnsigned<DN> du;
    const auto words = hn::LoadU(hn::Rebind<uint16_t, DN>(), reinterpret_cast<const uint16_t *>(p));
    return hn::BitCast(DN(), hn::ShiftLeft<16>(hn::PromoteTo(du, words)));
  }
  static HWY_INLINE void Store(VN v, Bf16 *p) {
    const hn::RebindToUnsigned<DN> du;
    const hn::Rebind<uint16_t, DN> d16;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto upper = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<DN>(), upper)), d16,
               reinterpret_cast<uint16_t *>(p));
  }
};

#if SPK_NATIVE_F16
template <>
struct Narrow<F16> {
  static constexpr bool kInFloats = true;
  static constexpr int kCut = 13;
  static constexpr float kLeast = 0x1p-14f;
  using D16 = hn::Rebind<hwy::float16_t, DN>;

  static HWY_INLINE VN Load(const F16 *p) {
    return hn::PromoteTo(DN(), hn::LoadU(D16(), reinterpret_cast<const hwy::float16_t *>(p)));
  }
  static HWY_INLINE void Store(VN v, F16 *p) {
    hn::StoreU(hn::DemoteTo(D16(), v), D16(), reinterpret_cast<hwy::float16_t *>(p));
  }
};
#endif

// Do all these products, which are off by less than 4 units in the last place, round to the narrow
// numbers that the exact ones round to? They do unless they are near the middle of two.
template <class T>
HWY_INLINE bool RoundAsExact(VN product) {
  constexpr int32_t kHalf = 1 << (Narrow<T>::kCut - 1);
  const DN d;
  const hn::RebindToSigned<DN> di;
  const auto cut = hn::And(hn::BitCast(di, product), hn::Set(di, 2 * kHalf - 1));
  const auto clear = hn::Gt(hn::Abs(hn::Sub(cut, hn::Set(di, kHalf))), hn::Set(di, 8));
  const VN magnitude = hn::Abs(product);
  const auto normal = hn::Ge(magnitude, hn::Set(d, Narrow<T>::kLeast));  // false for NaN
  const auto usual = hn::Or(normal, hn::Eq(magnitude, hn::Zero(d)));
  return hn::AllTrue(d, hn::And(usual, hn::RebindMask(d, clear)));
}

// The beginning of a contiguous row, times one factor; returns how far it came.
template <class T, class P>
HWY_INLINE int64_t ScaleNarrow(const T *x, T *y, int64_t n, double factor, int64_t ahead) {
  if constexpr (!Narrow<T>::kInFloats) {
    return 0;
  } else {
    // Whether a factor is 0 is hard to guess: the three are not asked one by one.
    const double magnitude = std::fabs(factor);
    const int usual =
        static_cast<int>(magnitude >= 0x1p-100) & static_cast<int>(magnitude <= 0x1p100);
    if (HWY_UNLIKELY((usual | static_cast<int>(factor == 0.0)) == 0)) return 0;
    const DN d;
    const VN f = hn::Set(d, static_cast<float>(factor));
    const auto dead = hn::Eq(f, hn::Zero(d));
    int64_t i = 0;
    for (; i + kNarrow <= n; i += kNarrow) {
      PrefetchAhead(x + i, ahead);
      const VN product = hn::IfThenZeroElse(dead, hn::Mul(Narrow<T>::Load(x + i), f));
      if (HWY_LIKELY(RoundAsExact<T>(product))) {
        Narrow<T>::Store(product, y + i);
      } else {
        ScaleRun<T, P>(x + i, y + i, kNarrow, factor, 0);
      }
    }
    return i;
  }
}

// Any row, through registers filled element by element.
template <class T, class P>
HWY_INLINE void ScaleGathered(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                              double factor) {
  const V f = hn::Set(D(), factor);
  for (int64_t i = 0; i < n; i += kN) {
    const int64_t left = HWY_MIN(n - i, kN);
    HWY_ALIGN T in[kN] = {};
    HWY_ALIGN T out[kN];
    for (int64_t k = 0; k < left; ++k) in[k] = x[(i + k) * x_step];
    Store(P::Of(Load(in), f), out);
    for (int64_t k = 0; k < left; ++k) y[(i + k) * y_step] = out[k];
  }
}

// Up to kN elements with a factor each, through registers filled element by element.
template <class T, class P>
HWY_NOINLINE void ScaleSome(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                            const double *factor, int64_t factor_step) {
  HWY_ALIGN T in[kN] = {};
  HWY_ALIGN double f[kN] = {};
  HWY_ALIGN T out[kN];
  for (int64_t k = 0; k < n; ++k) in[k] = x[k * x_step];
  for (int64_t k = 0; k < n; ++k) f[k] = factor[k * factor_step];
  Store(P::Of(Load(in), hn::Load(D(), f)), out);
  for (int64_t k = 0; k < n; ++k) {
    const T kept = f[k] == 1.0 ? in[k] : out[k];
    y[k * y_step] = f[k] == 0.0 ? T{} : kept;
  }
}

// A contiguous row of at least kN elements, times one factor.
template <class T, class P>
HWY_INLINE void ScaleContiguousRow(const T *x, T *y, int64_t n, double factor, int64_t ahead) {
  const int64_t i = ScaleNarrow<T, P>(x, y, n, factor, ahead);
  if (i == n) return;
  if (n - i >= kN) return ScaleRun<T, P>(x + i, y + i, n - i, factor, ahead);
  ScaleSome<T, P>(x + i, 1, y + i, 1, n - i, &factor, 0);
}

// One factor for the whole row.
template <class T, class P>
HWY_INLINE void ScaleRow(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n, double factor,
                         int64_t ahead) {
  if (factor == 1.0) return CopyRow(x, x_step, y, y_step, n);
  const bool contiguous = x_step == 1 && y_step == 1 && n >= kN;
  if (factor == 0.0 && (n >= kLongRow || !contiguous)) return ZeroRow(y, y_step, n);
  if (contiguous) return ScaleContiguousRow<T, P>(x, y, n, factor, ahead);
  ScaleGathered<T, P>(x, x_step, y, y_step, n, factor);
}

// A factor for each element of a contiguous row. Factor 1 is exact for all but NaN, whose bits it
// must keep; returns how far it came, which is up to the first NaN or the tail.
template <class T, class P>
HWY_INLINE int64_t ScaleContiguous(const T *x, T *y, int64_t n, const double *factor,
                                   int64_t ahead) {
  const V zero = hn::Zero(D());
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    PrefetchAhead(x + i, ahead);
    const V in = Load(x + i);
    const V f = hn::LoadU(D(), factor + i);
    if (!hn::AllFalse(D(), hn::IsNaN(in))) break;
    Store(hn::IfThenZeroElse(hn::Eq(f, zero), P::Of(in, f)), y + i);
  }
  return i;
}

// A factor for each element of the row.
template <class T, class P>
HWY_INLINE void ScaleElements(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                              const double *factor, int64_t factor_step, int64_t ahead) {
  const bool contiguous = x_step == 1 && y_step == 1 && factor_step == 1;
  int64_t i = contiguous ? ScaleContiguous<T, P>(x, y, n, factor, ahead) : 0;
  while (i < n) {
    ScaleSome<T, P>(x + i * x_step, x_step, y + i * y_step, y_step, HWY_MIN(n - i, kN),
                    factor + i * factor_step, factor_step);
    i += kN;
    if (contiguous && i < n) {
      i += ScaleContiguous<T, P>(x + i, y + i, n - i, factor + i, ahead);
    }
  }
}

// Rows of a few elements that follow each other: a run of elements with repeated factors.
template <class T, class P>
HWY_NOINLINE void ScaleTinyRows(const T *x, T *y, int64_t n, int64_t rows, const double *factor,
                                int64_t factor_row, int64_t ahead) {
  constexpr int64_t kRepeated = 512;
  HWY_ALIGN double repeated[kRepeated];
  const int64_t at_once = kRepeated / n;
  for (int64_t row = 0; row < rows; row += at_once) {
    const int64_t count = HWY_MIN(rows - row, at_once);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t i = 0; i < n; ++i) repeated[r * n + i] = factor[(row + r) * factor_row];
    }
    ScaleElements<T, P>(x + row * n, 1, y + row * n, 1, count * n, repeated, 1, ahead);
  }
}

// Where a register holds the factors of kLanes such rows: n registers of elements have theirs picked
// from it.
inline constexpr int64_t kMostPicked = 2 * kLanes;
inline constexpr bool kPicks = kN == kLanes;

class PickedRows {
 public:
  explicit HWY_INLINE PickedRows(int64_t n) : n_(n) {
    HWY_ALIGN int64_t row[kN];
    int64_t r = 0;
    int64_t element = 0;  // of the row
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t l = 0; l < kN; ++l) {
        row[l] = r;
        if (++element < n) continue;
        element = 0;
        ++r;
      }
      pick_[k] = hn::SetTableIndices(D(), row);
    }
  }

  // Returns how many rows have been scaled.
  template <class T, class P>
  HWY_INLINE int64_t Scale(const T *x, T *y, int64_t rows, const double *factor,
                           int64_t ahead) const {
    const D d;
    const V zero = hn::Zero(d);
    int64_t row = 0;
    for (; row + kLanes <= rows; row += kLanes, x += kLanes * n_, y += kLanes * n_) {
      const V factors = hn::LoadU(d, factor + row);
      // Rows times 1 keep the bits of NaN.
      if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Eq(factors, hn::Set(d, 1.0))))) {
        ScaleTinyRows<T, P>(x, y, n_, kLanes, factor + row, 1, ahead);
        continue;
      }
      for (int64_t k = 0; k < n_; ++k) {
        PrefetchAhead(x + k * kN, ahead);
        const V f = hn::TableLookupLanes(factors, pick_[k]);
        const V product = P::Of(Load(x + k * kN), f);
        Store(hn::IfThenZeroElse(hn::Eq(f, zero), product), y + k * kN);
      }
    }
    return row;
  }

 private:
  using Picks = decltype(hn::SetTableIndices(D(), static_cast<const int64_t *>(nullptr)));

  int64_t n_;
  Picks pick_[kMostPicked];
};

// How the rows of a call are handled; told apart once, because many rows are short.
enum class Rows {
  kShort,     // contiguous, one factor each
  kElements,  // contiguous, a factor for each element
  kAny,
};

template <class T>
HWY_INLINE Rows KindOfRows(const ScaleArgs &args, int64_t least) {
  if (args.x_step != 1 || args.y_step != 1) return Rows::kAny;
  if (args.factor_step == 1) return Rows::kElements;
  const bool is_short = args.n >= least && args.n < kLongRow;
  return args.factor_step == 0 && is_short ? Rows::kShort : Rows::kAny;
}

// Calls row(x, y, factor) for each row. The arguments are copied: those of others a store might
// change, as far as compilers know.
template <class T, class F, class Fn>
HWY_INLINE void ForEachRow(const ScaleArgs args, Fn row) {
  for (int64_t group = 0; group < args.groups; ++group) {
    const std::byte *x = args.x + group * args.x_group;
    std::byte *y = args.y + group * args.y_group;
    const F *factor = static_cast<const F *>(args.factor) + group * args.factor_group;
    for (int64_t r = 0; r < args.rows; ++r) {
      row(reinterpret_cast<const T *>(x), reinterpret_cast<T *>(y), factor);
      x += args.x_row;
      y += args.y_row;
      factor += args.factor_row;
    }
  }
}

template <class T>
HWY_INLINE bool FollowEachOther(const ScaleArgs &args) {
  const int64_t bytes = args.n * static_cast<int64_t>(sizeof(T));
  return args.factor_step == 0 && args.x_step == 1 && args.y_step == 1 && args.x_row == bytes &&
         args.y_row == bytes;
}

template <class T, class P>
HWY_NOINLINE void ScaleGroupsOfTinyRows(const ScaleArgs &args) {
  for (int64_t group = 0; group < args.groups; ++group) {
    ScaleTinyRows<T, P>(reinterpret_cast<const T *>(args.x + group * args.x_group),
                        reinterpret_cast<T *>(args.y + group * args.y_group), args.n, args.rows,
                        static_cast<const double *>(args.factor) + group * args.factor_group,
                        args.factor_row, args.ahead);
  }
}

template <class T, class P>
HWY_NOINLINE void ScaleGroupsOfPickedRows(const ScaleArgs &args) {
  const PickedRows picked(args.n);
  for (int64_t group = 0; group < args.groups; ++group) {
    const T *x = reinterpret_cast<const T *>(args.x + group * args.x_group);
    T *y = reinterpret_cast<T *>(args.y + group * args.y_group);
    const double *factor = static_cast<const double *>(args.factor) + group * args.factor_group;
    const int64_t done = picked.Scale<T, P>(x, y, args.rows, factor, args.ahead);
    ScaleTinyRows<T, P>(x + done * args.n, y + done * args.n, args.n, args.rows - done,
                        factor + done, 1, args.ahead);
  }
}

template <class T, class P>
HWY_NOINLINE void ScaleRows(const ScaleArgs &args) {
  if (FollowEachOther<T>(args)) {
    if constexpr (kPicks) {
      const bool many = args.rows >= kLanes && args.factor_row == 1;
      if (many && args.n < kMostPicked) return ScaleGroupsOfPickedRows<T, P>(args);
    }
    if (args.n < kN) return ScaleGroupsOfTinyRows<T, P>(args);
  }
  switch (KindOfRows<T>(args, kN)) {
    case Rows::kShort:
      return ForEachRow<T, double>(
          args, [n = args.n, ahead = args.ahead](const T *x, T *y, const double *factor) HWY_ATTR {
            if (HWY_UNLIKELY(*factor == 1.0)) return CopyRow(x, 1, y, 1, n);
            ScaleContiguousRow<T, P>(x, y, n, *factor, ahead);
          });
    case Rows::kElements:
      return ForEachRow<T, double>(
          args, [n = args.n, ahead = args.ahead](const T *x, T *y, const double *factor)
                    HWY_ATTR { ScaleElements<T, P>(x, 1, y, 1, n, factor, 1, ahead); });
    case Rows::kAny:
      return ForEachRow<T, double>(args, [&](const T *x, T *y, const double *factor) HWY_ATTR {
        if (args.factor_step == 0) {
          ScaleRow<T, P>(x, args.x_step, y, args.y_step, args.n, *factor, args.ahead);
        } else {
          ScaleElements<T, P>(x, args.x_step, y, args.y_step, args.n, factor, args.factor_step,
                              args.ahead);
        }
      });
  }
}

template <class T>
void Scale(const ScaleArgs &args) {
  // The product of doubles is rounded once as it is.
  if (args.exact_product && sizeof(T) < sizeof(double)) {
    ScaleRows<T, ExactProduct>(args);
  } else {
    ScaleRows<T, Product>(args);
  }
}

// Words of a mask are moved at most eight at a time, as many as a block may be wide.
template <class T>
using Words = hn::CappedTag<T, 8>;

// Bytes that are not 0, as a mask of words.
template <class T>
HWY_INLINE hn::Mask<Words<T>> KeepMask(const uint8_t *keep) {
  const Words<T> d;
  const auto bytes = hn::LoadU(hn::Rebind<uint8_t, Words<T>>(), keep);
  if constexpr (sizeof(T) == 8) {
    const auto words = hn::PromoteTo(hn::Rebind<uint32_t, Words<T>>(), bytes);
    return hn::Ne(hn::PromoteTo(d, words), hn::Zero(d));
  } else {
    return hn::Ne(hn::PromoteTo(d, bytes), hn::Zero(d));
  }
}

// A keep byte for each element of the row.
template <class T>
HWY_INLINE void MaskElements(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                             const uint8_t *keep, int64_t keep_step, int64_t ahead) {
  const Words<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (x_step == 1 && y_step == 1 && keep_step == 1) {
    for (; i + lanes <= n; i += lanes) {
      PrefetchAhead(x + i, ahead);
      hn::StoreU(hn::IfThenElseZero(KeepMask<T>(keep + i), hn::LoadU(d, x + i)), d, y + i);
    }
  }
  for (; i < n; ++i) y[i * y_step] = keep[i * keep_step] ? x[i * x_step] : T{};
}

// A short row, kept or not without a branch: which of them are kept is hard to guess.
template <class T>
HWY_INLINE void MaskShortRow(const T *x, T *y, int64_t n, bool keep) {
  const Words<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mask = hn::Set(d, keep ? static_cast<T>(~T{0}) : T{0});
  const auto last = hn::And(mask, hn::LoadU(d, x + n - lanes));
  for (int64_t i = 0; i + lanes < n; i += lanes) {
    hn::StoreU(hn::And(mask, hn::LoadU(d, x + i)), d, y + i);
  }
  hn::StoreU(last, d, y + n - lanes);
}

template <class T>
HWY_INLINE void MaskRow(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n, bool keep) {
  if (keep) {
    CopyRow(x, x_step, y, y_step, n);
  } else {
    ZeroRow(y, y_step, n);
  }
}

// Are all rows whole cache lines, masked in place, of more data than caches hold?
template <class T>
HWY_INLINE bool AreLines(const ScaleArgs &args) {
  constexpr int64_t kLine = 64;
  const int64_t bytes = args.n * static_cast<int64_t>(sizeof(T));
  const auto at = static_cast<int64_t>(reinterpret_cast<uintptr_t>(args.y));
  return args.past_caches && args.factor_step == 0 && args.y_step == 1 && args.x == args.y &&
         args.x_row == args.y_row && args.x_group == args.y_group &&
         (at | bytes | args.y_row | args.y_group) % kLine == 0;
}

// Zeroes the lines of what is not kept past the caches, which else would read them first, and does
// not touch the others. The lines of one block follow each other: its mask is hard to guess.
template <class T>
HWY_INLINE void ZeroLines(const ScaleArgs &args) {
  struct Loop {
    int64_t count, step, keep_step;
  };
  Loop inner{args.rows, args.y_row, args.factor_row};
  Loop outer{args.groups, args.y_group, args.factor_group};
  if (outer.keep_step == 0) std::swap(inner, outer);
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto *keep = static_cast<const uint8_t *>(args.factor);
  for (int64_t o = 0; o < outer.count; ++o) {
    for (int64_t i = 0; i < inner.count; ++i) {
      if (keep[o * outer.keep_step + i * inner.keep_step]) continue;
      T *y = reinterpret_cast<T *>(args.y + o * outer.step + i * inner.step);
      for (int64_t k = 0; k < args.n; k += lanes) hn::Stream(hn::Zero(d), d, y + k);
    }
  }
  hwy::FlushStream();
}

template <class T>
HWY_NOINLINE void Mask(const ScaleArgs &args) {
  if (AreLines<T>(args)) return ZeroLines<T>(args);
  const auto lanes = static_cast<int64_t>(hn::Lanes(Words<T>()));
  switch (KindOfRows<T>(args, lanes)) {
    case Rows::kShort:
      return ForEachRow<T, uint8_t>(
          args, [n = args.n, ahead = args.ahead](const T *x, T *y, const uint8_t *keep) HWY_ATTR {
            PrefetchAhead(x, ahead);
            MaskShortRow(x, y, n, *keep != 0);
          });
    case Rows::kElements:
      return ForEachRow<T, uint8_t>(
          args, [n = args.n, ahead = args.ahead](const T *x, T *y, const uint8_t *keep)
                    HWY_ATTR { MaskElements(x, 1, y, 1, n, keep, 1, ahead); });
    case Rows::kAny:
      return ForEachRow<T, uint8_t>(args, [&](const T *x, T *y, const uint8_t *keep) HWY_ATTR {
        if (args.factor_step == 0) {
          MaskRow(x, args.x_step, y, args.y_step, args.n, *keep != 0);
        } else {
          MaskElements(x, args.x_step, y, args.y_step, args.n, keep, args.factor_step, args.ahead);
        }
      });
  }
}

void FillScale(Kernels *table) {
  table->scale[kF32] = Scale<float>;
  table->scale[kF64] = Scale<double>;
  table->scale[kF16] = Scale<F16>;
  table->scale[kBf16] = Scale<Bf16>;
  // A mask moves words, whatever they mean.
  table->mask[kF32] = Mask<uint32_t>;
  table->mask[kF64] = Mask<uint64_t>;
  table->mask[kF16] = table->mask[kBf16] = Mask<uint16_t>;
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
