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

// 16-bit numbers are multiplied as floats, twice as many at once, where that gives the same bits: a
// number times a factor f = high + low, where `high` is f cut short enough for its product to be
// exact. The sum of both products, whose low one is off by less than 2^-35 of it, is then good to the
// last bit of a float and rounds as the exact one does, unless it lies in the middle of two 16-bit
// numbers.
//
// `kCut` bits of a float have no room in the 16; below `kLeast` more have none, or products of low
// parts leave the range of normal floats.
template <class T>
struct Narrow {
  static constexpr bool kInFloats = false;
};
using DN = hn::ScalableTag<float>;
using VN = hn::Vec<DN>;
using DNBits = hn::RebindToUnsigned<DN>;
inline constexpr int64_t kNarrow = static_cast<int64_t>(hn::MaxLanes(DN()));

template <>
struct Narrow<Bf16> {
  static constexpr bool kInFloats = true;
  static constexpr int kCut = 16;
  static constexpr uint32_t kLeast = 27u << 23;  // 2^-100
  static constexpr bool kCutsNan = true;         // as every conversion to bf16 does

  static HWY_INLINE VN Load(const Bf16 *p) {
    const auto words = hn::LoadU(hn::Rebind<uint16_t, DN>(), reinterpret_cast<const uint16_t *>(p));
    return hn::BitCast(DN(), hn::ShiftLeft<16>(hn::PromoteTo(DNBits(), words)));
  }
  // Of numbers that are not in the middle of two.
  static HWY_INLINE void Store(VN v, Bf16 *p) {
    const DNBits du;
    const hn::Rebind<uint16_t, DN> d16;
    const auto upper = hn::ShiftRight<16>(hn::Add(hn::BitCast(du, v), hn::Set(du, 0x8000u)));
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<DN>(), upper)), d16,
               reinterpret_cast<uint16_t *>(p));
  }
};

#if SPK_NATIVE_F16
template <>
struct Narrow<F16> {
  static constexpr bool kInFloats = true;
  static constexpr int kCut = 13;
  static constexpr uint32_t kLeast = 113u << 23;  // 2^-14
  static constexpr bool kCutsNan = false;         // all become the same one
  using D16 = hn::Rebind<hwy::float16_t, DN>;

  static HWY_INLINE VN Load(const F16 *p) {
    return hn::PromoteTo(DN(), hn::LoadU(D16(), reinterpret_cast<const hwy::float16_t *>(p)));
  }
  static HWY_INLINE void Store(VN v, F16 *p) {
    hn::StoreU(hn::DemoteTo(D16(), v), D16(), reinterpret_cast<hwy::float16_t *>(p));
  }
};
#endif

// A factor for 16-bit numbers.
template <class T>
struct NarrowFactor {
  float high, low;
  uint32_t alive;  // all bits, or none if the factor is 0
  bool is_usual;   // 0, or not 1 and of normal floats, whose products mostly are normal, too

  NarrowFactor() = default;
  explicit HWY_INLINE NarrowFactor(double factor) {
    constexpr uint64_t kHighPart = ~((uint64_t{1} << (53 - Narrow<T>::kCut)) - 1);
    uint64_t bits = 0;
    std::memcpy(&bits, &factor, sizeof bits);
    bits &= kHighPart;
    double cut = 0.0;
    std::memcpy(&cut, &bits, sizeof cut);
    high = static_cast<float>(cut);
    // Never 0, because an infinity times it would be no number; too small to matter.
    low = static_cast<float>((factor - cut) + factor * 0x1p-60);
    alive = factor == 0.0 ? 0u : ~0u;
    const double magnitude = std::fabs(factor);
    const bool in_range = magnitude >= 0x1p-60 && magnitude <= 0x1p60;
    is_usual = (in_range && factor != 1.0) || factor == 0.0;
  }

  HWY_INLINE VN Times(VN x) const {
    const DN d;
    const VN product = hn::Add(hn::Mul(x, hn::Set(d, high)), hn::Mul(x, hn::Set(d, low)));
    return hn::And(hn::BitCast(d, hn::Set(DNBits(), alive)), product);
  }
};

// Do all of these products round to the numbers that the exact ones round to?
template <class T>
HWY_INLINE bool RoundAsExact(VN a, VN b) {
  constexpr uint32_t kHalf = 1u << (Narrow<T>::kCut - 1);
  const DNBits du;
  const auto half = hn::Set(du, kHalf);
  const auto cut = hn::Set(du, 2 * kHalf - 1);
  const auto from_middle = [&](VN v)
                               HWY_ATTR { return hn::And(hn::Xor(hn::BitCast(du, v), half), cut); };
  const auto middle = hn::Eq(hn::Min(from_middle(a), from_middle(b)), hn::Zero(du));
  // 0 becomes the largest.
  const auto one = hn::Set(du, 1);
  const auto less_one = [&](VN v) HWY_ATTR { return hn::Sub(hn::BitCast(du, hn::Abs(v)), one); };
  const auto small = hn::Lt(hn::Min(less_one(a), less_one(b)), hn::Set(du, Narrow<T>::kLeast - 1));
  if constexpr (Narrow<T>::kCutsNan) return hn::AllFalse(du, hn::Or(middle, small));
  // Opposite infinities look the same, and are then merely scaled the other way.
  const auto nan = hn::RebindMask(du, hn::IsNaN(hn::Add(a, b)));
  return hn::AllFalse(du, hn::Or(nan, hn::Or(middle, small)));
}

// A contiguous row of at least kNarrow elements, times a usual factor. The last register overlaps
// the one before, so it is read before anything is written.
template <class T, class P>
HWY_INLINE void ScaleNarrowRow(const T *x, T *y, int64_t n, const NarrowFactor<T> &f, double factor,
                               int64_t ahead) {
  using N = Narrow<T>;
  const VN first = f.Times(N::Load(x));
  const VN last = n == kNarrow ? first : f.Times(N::Load(x + n - kNarrow));
  PrefetchAhead(x + n - kNarrow, ahead);
  if (HWY_UNLIKELY(!RoundAsExact<T>(first, last))) return ScaleRun<T, P>(x, y, n, factor, 0);
  N::Store(first, y);
  for (int64_t i = kNarrow; i + kNarrow < n; i += 2 * kNarrow) {
    const bool two = i + 2 * kNarrow < n;
    PrefetchAhead(x + i, ahead);
    const VN a = f.Times(N::Load(x + i));
    const VN b = two ? f.Times(N::Load(x + i + kNarrow)) : a;
    if (HWY_LIKELY(RoundAsExact<T>(a, b))) {
      N::Store(a, y + i);
      if (two) N::Store(b, y + i + kNarrow);
    } else {
      ScaleRun<T, P>(x + i, y + i, two ? 2 * kNarrow : kNarrow, factor, 0);
    }
  }
  N::Store(last, y + n - kNarrow);
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
  if constexpr (Narrow<T>::kInFloats) {
    const NarrowFactor<T> narrow(factor);
    if (n >= kNarrow && narrow.is_usual) {
      return ScaleNarrowRow<T, P>(x, y, n, narrow, factor, ahead);
    }
  }
  ScaleRun<T, P>(x, y, n, factor, ahead);
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

// A short row of 16-bit numbers, of at least kNarrow.
template <class T, class P>
HWY_INLINE void ScaleShortRow(const T *x, T *y, int64_t n, const NarrowFactor<T> &narrow,
                              double factor, int64_t ahead) {
  if (HWY_LIKELY(narrow.is_usual)) return ScaleNarrowRow<T, P>(x, y, n, narrow, factor, ahead);
  if (factor == 1.0) return CopyRow(x, 1, y, 1, n);
  ScaleRun<T, P>(x, y, n, factor, ahead);
}

// Two rows of a register each.
template <class T, class P>
HWY_INLINE void ScaleTwoRegisters(const std::byte *x, std::byte *y, const ScaleArgs &args,
                                  const NarrowFactor<T> *narrow, const double *factor) {
  using N = Narrow<T>;
  const T *x0 = reinterpret_cast<const T *>(x);
  const T *x1 = reinterpret_cast<const T *>(x + args.x_row);
  T *y0 = reinterpret_cast<T *>(y);
  T *y1 = reinterpret_cast<T *>(y + args.y_row);
  PrefetchAhead(x0, args.ahead);
  PrefetchAhead(x1, args.ahead);
  const VN a = narrow[0].Times(N::Load(x0));
  const VN b = narrow[1].Times(N::Load(x1));
  const bool usual = narrow[0].is_usual && narrow[1].is_usual;
  if (HWY_LIKELY(usual && RoundAsExact<T>(a, b))) {
    N::Store(a, y0);
    N::Store(b, y1);
    return;
  }
  ScaleShortRow<T, P>(x0, y0, kNarrow, narrow[0], factor[0], 0);
  ScaleShortRow<T, P>(x1, y1, kNarrow, narrow[1], factor[args.factor_row], 0);
}

// Short rows of 16-bit numbers: their factors are prepared once for all groups that share them.
template <class T, class P>
HWY_NOINLINE void ScaleNarrowRows(const ScaleArgs &given) {
  const ScaleArgs args = given;  // a copy that no store can change, as far as compilers know
  constexpr int64_t kAtOnce = 64;
  NarrowFactor<T> narrow[kAtOnce];
  for (int64_t begin = 0; begin < args.rows; begin += kAtOnce) {
    const int64_t count = HWY_MIN(args.rows - begin, kAtOnce);
    for (int64_t group = 0; group < args.groups; ++group) {
      const double *factor = static_cast<const double *>(args.factor) + group * args.factor_group +
                             begin * args.factor_row;
      if (group == 0 || args.factor_group != 0) {
        for (int64_t r = 0; r < count; ++r) {
          narrow[r] = NarrowFactor<T>(factor[r * args.factor_row]);
        }
      }
      const std::byte *x = args.x + group * args.x_group + begin * args.x_row;
      std::byte *y = args.y + group * args.y_group + begin * args.y_row;
      int64_t r = 0;
      if (args.n == kNarrow) {
        for (; r + 2 <= count; r += 2) {
          ScaleTwoRegisters<T, P>(x + r * args.x_row, y + r * args.y_row, args, narrow + r,
                                  factor + r * args.factor_row);
        }
      }
      for (; r < count; ++r) {
        ScaleShortRow<T, P>(reinterpret_cast<const T *>(x + r * args.x_row),
                            reinterpret_cast<T *>(y + r * args.y_row), args.n, narrow[r],
                            factor[r * args.factor_row], args.ahead);
      }
    }
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
      if constexpr (Narrow<T>::kInFloats) {
        if (args.n >= kNarrow) return ScaleNarrowRows<T, P>(args);
      }
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
