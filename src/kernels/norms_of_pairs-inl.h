// Norms of blocks of two elements, each a lane of a whole register of floats. They are those of sums
// in doubles, rounded once, bit for bit; but NaN may keep bits that doubles would change.
#if defined(SPK_KERNELS_NORMS_OF_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_NORMS_OF_PAIRS_INL_H_
#undef SPK_KERNELS_NORMS_OF_PAIRS_INL_H_
#else
#define SPK_KERNELS_NORMS_OF_PAIRS_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "kernels/ask_near-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/prefetch.h"
#include "kernels/reduce-inl.h"
#include "kernels/root-inl.h"
#include "kernels/tiny-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Where 1 / x is guessed to 11.4 bits or more, what a product loses is known by a fused operation,
// and registers are large enough to gain by it.
#if HWY_ARCH_X86 && HWY_NATIVE_FMA && HWY_MAX_BYTES >= 32
// Registers of twice as many floats as those of doubles have doubles.
using DP = hn::Repartition<float, D>;
using VP = hn::Vec<DP>;
inline constexpr int64_t kPairsAtOnce = static_cast<int64_t>(hn::MaxLanes(DP()));

template <class Op>
struct NormOfTwo;

// As a double the sum would be exact, or so far from the middle of two floats that to round it twice
// is to round it once.
template <>
struct NormOfTwo<Sum> {
  static HWY_INLINE VP Of(VP a, VP b) { return hn::Add(hn::Abs(a), hn::Abs(b)); }
};

// See MaxMagnitude.
template <>
struct NormOfTwo<MaxMagnitude> {
  static HWY_INLINE VP Of(VP a, VP b) {
    const hn::RebindToSigned<DP> di;
    const auto bits_a = hn::BitCast(di, hn::Abs(a));
    const auto bits_b = hn::BitCast(di, hn::Abs(b));
    return hn::BitCast(DP(), hn::Max(bits_a, bits_b));
  }
};

template <>
struct NormOfTwo<SumSquares> {
  // The root of the sum of two squares, which is two floats, `sum` and what it has lost, exact but
  // for 2^-47: the float nearest to the root of `sum`, plus a step of Newton's. The step is off by
  // 2^-11.4 of it, the guess of 1 / x, and 2^-45 of the root. If `kSlack` more and less of it lead to
  // the same float, so does the root, and so would a double.
  static HWY_INLINE VP Of(VP a, VP b) {
    const DP d;
    constexpr float kSlack = 0x1p-11F;
    const VP kLeast = hn::Set(d, 0x1p-38F);  // whose square has a last bit that floats can tell
    // Of a number and NaN these take the second: whichever is NaN, so is one of them.
    const VP larger = hn::Max(hn::Abs(a), hn::Abs(b));
    const VP smaller = hn::Min(hn::Abs(b), hn::Abs(a));
    const VP square = hn::Mul(larger, larger);
    const VP sum = hn::MulAdd(smaller, smaller, square);
    const VP lost = hn::Add(hn::MulSub(larger, larger, square),
                            hn::MulAdd(smaller, smaller, hn::Sub(square, sum)));
    const VP root = hn::Sqrt(sum);
    const VP rest = hn::Add(hn::NegMulAdd(root, root, sum), lost);
    const VP step = hn::Mul(rest, hn::ApproximateReciprocal(hn::Max(root, kLeast)));
    const VP norm = hn::MulAdd(step, hn::Set(d, 0.5F * (1 + kSlack)), root);
    const VP other = hn::MulAdd(step, hn::Set(d, 0.5F * (1 - kSlack)), root);
    const auto is_tiny = hn::And(hn::Lt(larger, kLeast), hn::Ne(larger, hn::Zero(d)));
    const auto is_sure = hn::AndNot(is_tiny, hn::Eq(norm, other));
    if (HWY_LIKELY(hn::AllTrue(d, is_sure))) return norm;
    return ByDoubles(a, b);
  }

 private:
  static HWY_NOINLINE VP ByDoubles(VP a, VP b) {
    const DF half;
    const VF low = OfHalf(hn::LowerHalf(half, a), hn::LowerHalf(half, b));
    const VF high = OfHalf(hn::UpperHalf(half, a), hn::UpperHalf(half, b));
    return hn::Combine(DP(), high, low);
  }
  static HWY_INLINE VF OfHalf(VF a, VF b) {
    const V x = hn::PromoteTo(D(), a);
    const V y = hn::PromoteTo(D(), b);
    return ToFloat(RootOfFew(hn::MulAdd(x, x, hn::Mul(y, y))));
  }
};

// How elements of pairs lie: together; kLanes first ones side by side, and as many second ones
// somewhere; or many of each in rows.
enum class Pairs { kTogether, kInLanes, kInRows };

// Writes the norms of pairs, of kPairsAtOnce at a time.
template <Pairs kLayout, class T, class Op>
class NormsOfPairs {
 public:
  explicit NormsOfPairs(const ReduceArgs &args)
      : second_(args.row[1] - args.row[0]),
        next_lanes_(args.outer.step),
        soon_(LeavesStream(args) ? 0 : bytes_ahead(args.soon)),
        asks_near_(AsksNearFor<T>() && args.soon == kFar),
        asks_near_for_rows_(AsksNearFor<T>()),
        are_long_rows_(sizeof(T) == sizeof(float) &&
                       args.inner.count * static_cast<int64_t>(sizeof(T)) >= kLongEnough),
        past_caches_(args.past_caches) {}

  // `count` >= kPairsAtOnce pairs, `step` bytes from each to the next, or from each kLanes of them.
  HWY_INLINE void Write(const std::byte *x, int64_t step, int64_t count, float *to) const {
    constexpr int64_t kApart = kLayout == Pairs::kInLanes ? kLanes : 1;
    int64_t i = 0;
    for (; i + kPairsAtOnce <= count; i += kPairsAtOnce) {
      Store(Norms(x + i / kApart * step), to + i);
    }
    if (i == count) return;
    // The last ones, with some of those before once more.
    const int64_t last = count - kPairsAtOnce;
    StoreFrom(i - last, Norms(x + last / kApart * step), to + last);
  }

 private:
  // Norms that take roots gain by asking ahead.
  static HWY_INLINE bool LeavesStream(const ReduceArgs &args) {
    return Op::kWhat != kSumSquares && LeavesStreams<T>() && args.soon == kFar;
  }

  HWY_INLINE void Store(VP norms, float *to) const {
    if (past_caches_) {
      StreamFloats(norms, DP(), to);
    } else {
      hn::StoreU(norms, DP(), to);
    }
  }
  // From number `first` on. Lines that have been written past the caches are not begun again.
  HWY_INLINE void StoreFrom(int64_t first, VP norms, float *to) const {
    HWY_ALIGN float some[kPairsAtOnce];
    hn::Store(norms, DP(), some);
    const hn::CappedTag<float, 4> four;
    int64_t i = first;
    for (; past_caches_ && i + 4 <= kPairsAtOnce; i += 4) {
      StreamFloats(hn::LoadU(four, some + i), four, to + i);
    }
    for (; i < kPairsAtOnce; ++i) to[i] = some[i];
  }

  HWY_INLINE void Ask(const std::byte *x) const {
    if constexpr (kLayout == Pairs::kTogether) {
      AskForElements(x, 2 * kPairsAtOnce);
    } else if constexpr (kLayout == Pairs::kInLanes) {
      for (int64_t k = 0; k < kPairsAtOnce / kLanes; ++k) AskForLine(x + k * next_lanes_);
    } else {
      AskForElements(x, kPairsAtOnce);
      AskForElements(x + second_, kPairsAtOnce);
    }
  }
  HWY_INLINE void AskForElements(const std::byte *x, int64_t count) const {
    const T *row = reinterpret_cast<const T *>(x);
    if (kLayout == Pairs::kInRows && are_long_rows_) {
      if (asks_near_for_rows_) AskInTurn(row, count);
      return;
    }
    for (int64_t i = 0; i < count; i += kLineOf<T>) AskForLine(row + i);
  }
  HWY_INLINE void AskForLine(const void *x) const {
    prefetch_far(x, soon_);
    if (asks_near_) prefetch_near(x, kNear);
  }

  HWY_INLINE VP Norms(const std::byte *x) const {
    Ask(x);
    if constexpr (kLayout == Pairs::kTogether) {
      const T *first = reinterpret_cast<const T *>(x);
      const VP in[] = {LoadFloats(DP(), first), LoadFloats(DP(), first + kPairsAtOnce)};
      VP element[2];
      Deinterleave<2>(DP(), in, element);
      return NormOfTwo<Op>::Of(element[0], element[1]);
    } else {
      return NormOfTwo<Op>::Of(Elements(x), Elements(x + second_));
    }
  }
  HWY_INLINE VP Elements(const std::byte *x) const {
    const T *some = reinterpret_cast<const T *>(x);
    if constexpr (kLayout == Pairs::kInLanes && kPairsAtOnce > kLanes) {
      const T *more = reinterpret_cast<const T *>(x + next_lanes_);
      return hn::Combine(DP(), LoadFloats(DF(), more), LoadFloats(DF(), some));
    } else {
      return LoadFloats(DP(), some);
    }
  }

  const int64_t second_;      // bytes from first elements to second ones
  const int64_t next_lanes_;  // bytes from kLanes first elements to the next
  const int64_t soon_;
  const bool asks_near_;
  const bool asks_near_for_rows_;
  const bool are_long_rows_;
  const bool past_caches_;
};

// Returns whether there are as many pairs as it takes; else it does nothing.
template <Pairs kLayout, class T, class Op>
HWY_NOINLINE bool WriteNorms(const ReduceArgs &args) {
  const NormsOfPairs<kLayout, T, Op> pairs(args);
  const std::byte *x = args.x + args.row[0];
  if constexpr (kLayout == Pairs::kInLanes) {
    const int64_t count = args.outer.count * kLanes;
    if (count < kPairsAtOnce) return false;
    pairs.Write(x, args.outer.step, count, args.floats);
    return true;
  }
  if (args.inner.count < kPairsAtOnce) return false;
  for (int64_t o = 0; o < args.outer.count; ++o) {
    pairs.Write(x + o * args.outer.step, args.inner.step, args.inner.count,
                args.floats + o * args.outer.out);
  }
  return true;
}

template <class T, class Op>
inline constexpr bool kHasNormsOfPairs = !std::is_same_v<T, double> && Op::kWhat != kCount;

// Returns whether args ask for norms of pairs, and of enough of them; else it does nothing.
template <class T, class Op>
HWY_INLINE bool WriteNormsOfPairs(const ReduceArgs &args) {
  if constexpr (kHasNormsOfPairs<T, Op>) {
    if (args.rows != 2 || !args.floats || (Op::kWhat == kSumSquares && !args.roots)) return false;
    if (args.n == 2) return WriteNorms<Pairs::kTogether, T, Op>(args);
    if (args.inner.step != static_cast<int64_t>(sizeof(T))) return false;
    const bool are_lanes = args.inner.count == kLanes && args.outer.out == kLanes;
    return are_lanes ? WriteNorms<Pairs::kInLanes, T, Op>(args)
                     : WriteNorms<Pairs::kInRows, T, Op>(args);
  }
  return false;
}
#else
template <class T, class Op>
HWY_INLINE bool WriteNormsOfPairs(const ReduceArgs &) {
  return false;
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
