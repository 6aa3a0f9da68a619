// The kinds of reductions: what an element adds to an accumulator, how two accumulators join, and the
// exact sums and squares that compensated ones are made of.
#if defined(SPK_KERNELS_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_REDUCE_INL_H_
#undef SPK_KERNELS_REDUCE_INL_H_
#else
#define SPK_KERNELS_REDUCE_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>
#include <type_traits>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// A plain accumulator: one double a lane.
struct Plain {
  static constexpr bool kCompensated = false;
};

struct Count : Plain {
  static constexpr Reduction kWhat = kCount;
  static constexpr double kPad = 0.0;  // never above eps >= 0
  static HWY_INLINE V Add(V sum, V x, V eps) {
    const V one = hn::Set(D(), 1.0);
    return hn::Add(sum, hn::IfThenZeroElse(hn::Le(hn::Abs(x), eps), one));
  }
  static HWY_INLINE V Join(V a, V b) { return hn::Add(a, b); }
};

struct Sum : Plain {
  static constexpr Reduction kWhat = kSum;
  static constexpr double kPad = 0.0;
  static HWY_INLINE V Add(V sum, V x, V) { return hn::Add(sum, hn::Abs(x)); }
  static HWY_INLINE V Join(V a, V b) { return hn::Add(a, b); }
};

struct SumSigned : Plain {
  static constexpr Reduction kWhat = kSumSigned;
  static constexpr double kPad = 0.0;
  static HWY_INLINE V Add(V sum, V x, V) { return hn::Add(sum, x); }
  static HWY_INLINE V Join(V a, V b) { return hn::Add(a, b); }
};

struct SumSquares : Plain {
  static constexpr Reduction kWhat = kSumSquares;
  static constexpr double kPad = 0.0;
  // But for f64, squares are exact: fused or not, the sum is the same. See StayExactly.
  static HWY_INLINE V Add(V sum, V x, V) { return hn::MulAdd(x, x, sum); }
  static HWY_INLINE V Join(V a, V b) { return hn::Add(a, b); }
};

// The larger one; NaN wins over everything.
HWY_INLINE V Larger(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
}
HWY_INLINE V Smaller(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
}

// The bits of magnitudes order as the magnitudes do, with NaN above all.
struct MaxMagnitude : Plain {
  static constexpr Reduction kWhat = kMaxMagnitude;
  static constexpr double kPad = 0.0;
  static HWY_INLINE V Add(V best, V x, V) { return Join(best, hn::Abs(x)); }
  static HWY_INLINE V Join(V a, V b) {
    const hn::RebindToSigned<D> di;
    return hn::BitCast(D(), hn::Max(hn::BitCast(di, a), hn::BitCast(di, b)));
  }
};

struct MinMagnitude : Plain {
  static constexpr Reduction kWhat = kMinMagnitude;
  static constexpr double kPad = std::numeric_limits<double>::infinity();
  static HWY_INLINE V Add(V best, V x, V) { return Smaller(best, hn::Abs(x)); }
  static HWY_INLINE V Join(V a, V b) { return Smaller(a, b); }
};

// Adding +0 turns -0 into +0 and leaves the rest.
struct Max : Plain {
  static constexpr Reduction kWhat = kMax;
  static constexpr double kPad = -std::numeric_limits<double>::infinity();
  static HWY_INLINE V Add(V best, V x, V) { return Larger(best, hn::Add(x, hn::Zero(D()))); }
  static HWY_INLINE V Join(V a, V b) { return Larger(a, b); }
};

struct Min : Plain {
  static constexpr Reduction kWhat = kMin;
  static constexpr double kPad = std::numeric_limits<double>::infinity();
  static HWY_INLINE V Add(V best, V x, V) { return Smaller(best, hn::Add(x, hn::Zero(D()))); }
  static HWY_INLINE V Join(V a, V b) { return Smaller(a, b); }
};

// sum + b, neither of them negative, with the rounding error of the sum added to `error` (Dekker's
// Fast2Sum, which takes the larger one first: what it takes to tell them apart is less than what
// Knuth's TwoSum computes instead).
HWY_INLINE void AddExact(V &sum, V &error, V b) {
  const V total = hn::Add(sum, b);
  const V larger = hn::Max(sum, b);
  const V smaller = hn::Min(sum, b);
  error = hn::Add(error, hn::Sub(smaller, hn::Sub(total, larger)));
  sum = total;
}

// x^2 = square + what is returned, exactly: by a fused operation where there is one, else by
// Dekker's splitting, which gives the same number. Scaled elements are too small to overflow.
HWY_INLINE V LostBySquare(V x, V square) {
#if HWY_NATIVE_FMA
  return hn::MulSub(x, x, square);
#else
  const V spread = hn::Mul(x, hn::Set(D(), 134217729.0));  // 2^27 + 1
  const V high = hn::Sub(spread, hn::Sub(spread, x));
  const V low = hn::Sub(x, high);
  const V cross = hn::Mul(high, low);
  return hn::Add(hn::Add(hn::Sub(hn::Mul(high, high), square), hn::Add(cross, cross)),
                 hn::Mul(low, low));
#endif
}

// A compensated accumulator: sum and error.
struct Compensated {
  static constexpr bool kCompensated = true;
  static constexpr double kPad = 0.0;
  static HWY_INLINE void Join(V &sum, V &error, V more, V more_error) {
    error = hn::Add(error, more_error);
    AddExact(sum, error, more);
  }
};

struct SumExact : Compensated {
  static constexpr Reduction kWhat = kSumExact;
  static HWY_INLINE void Add(V &sum, V &error, V x, V) { AddExact(sum, error, hn::Abs(x)); }
};

struct SumSquaresExact : Compensated {
  static constexpr Reduction kWhat = kSumSquaresExact;
  static HWY_INLINE void Add(V &sum, V &error, V x, V scale) {
    const V v = hn::Mul(x, scale);
    const V square = hn::Mul(v, v);
    error = hn::Add(error, LostBySquare(v, square));
    AddExact(sum, error, square);
  }
};

// Is this what norms with p = 0, 1, 2 and inf are made of? That is worth more code than the rest,
// and than norms of narrow leaves that are coupled with doubles.
template <class T, class Op>
inline constexpr bool kIsCommon = Op::kWhat == kCount || Op::kWhat == kMaxMagnitude ||
                                  (std::is_same_v<T, double>
                                       ? Op::kCompensated
                                       : Op::kWhat == kSum || Op::kWhat == kSumSquares);

// One register of accumulators. `with` is eps or the scale, whichever the reduction wants.
template <class Op, bool kCompensated = Op::kCompensated>
struct Accumulator {
  V sum;

  HWY_INLINE Accumulator() : sum(hn::Set(D(), Op::kPad)) {}
  explicit HWY_INLINE Accumulator(V s) : sum(s) {}
  HWY_INLINE void Add(V x, V with) { sum = Op::Add(sum, x, with); }
  static HWY_INLINE Accumulator Join(Accumulator a, Accumulator b) {
    return Accumulator(Op::Join(a.sum, b.sum));
  }
  // fn(a, b) of every part.
  template <class Fn>
  static HWY_INLINE Accumulator Map(Accumulator a, Accumulator b, Fn fn) {
    return Accumulator(fn(a.sum, b.sum));
  }
};
template <class Op>
struct Accumulator<Op, true> {
  V sum;
  V error;

  HWY_INLINE Accumulator() : sum(hn::Zero(D())), error(hn::Zero(D())) {}
  HWY_INLINE Accumulator(V s, V e) : sum(s), error(e) {}
  HWY_INLINE void Add(V x, V with) { Op::Add(sum, error, x, with); }
  static HWY_INLINE Accumulator Join(Accumulator a, Accumulator b) {
    Op::Join(a.sum, a.error, b.sum, b.error);
    return a;
  }
  template <class Fn>
  static HWY_INLINE Accumulator Map(Accumulator a, Accumulator b, Fn fn) {
    return Accumulator(fn(a.sum, b.sum), fn(a.error, b.error));
  }
};

// What a reduction is told for all elements of a block: eps, or the block's scale.
template <class Op>
HWY_INLINE V WithFor(const ReduceArgs &args, int64_t block) {
  if (Op::kCompensated) return hn::Set(D(), args.scale ? args.scale[block] : 1.0);
  return hn::Set(D(), args.eps);
}

// At least so many bytes are on their way while a group of blocks is reduced.
inline constexpr int64_t kReadAhead = 4096;

// Sums of squares become norms, if asked for.
template <class Op>
HWY_INLINE void TakeRoot(const ReduceArgs &args, Accumulator<Op> *sum) {
  if (Op::kWhat == kSumSquares && args.roots) sum->sum = hn::Sqrt(sum->sum);
}

// Past the caches, in as large parts as may begin there, if four floats may: those that most
// allocators give begin so. What is written to a line in turn reaches memory together.
template <class DT>
HWY_INLINE void StreamFloats(hn::Vec<DT> floats, DT d, float *to) {
  constexpr auto kFloats = static_cast<int64_t>(hn::MaxLanes(d));
  if (HWY_LIKELY(reinterpret_cast<uintptr_t>(to) % (kFloats * sizeof(float)) == 0)) {
    return StorePastCaches(floats, d, to);
  }
#if HWY_MAX_BYTES >= 32
  if constexpr (kFloats > 4) {
    const hn::Half<DT> half;
    StreamFloats(hn::LowerHalf(half, floats), half, to);
    StreamFloats(hn::UpperHalf(half, floats), half, to + kFloats / 2);
    return;
  }
#endif
  hn::StoreU(floats, d, to);
}

HWY_INLINE void StoreFloats(V results, bool past_caches, float *to, int64_t count) {
  const DF df;
  const VF floats = ToFloat(results);
  if (count < kN) {
    HWY_ALIGN float some[kN];
    hn::Store(floats, df, some);
    for (int64_t i = 0; i < count; ++i) to[i] = some[i];
  } else if (past_caches) {
    StreamFloats(floats, df, to);
  } else {
    hn::StoreU(floats, df, to);
  }
}

// The results of `count` <= kN blocks, of which the first is number `at`.
template <class Op>
HWY_INLINE void StoreResults(const ReduceArgs &args, const Accumulator<Op> &results, int64_t at,
                             int64_t count) {
  if constexpr (Op::kCompensated) {
    StoreDoubles(results.sum, args.sum + at, count);
    StoreDoubles(results.error, args.error + at, count);
  } else if (args.floats) {
    StoreFloats(results.sum, args.past_caches, args.floats + at, count);
  } else {
    StoreDoubles(results.sum, args.sum + at, count);
  }
}

// The same of kN blocks that are `apart` blocks from each other. Never past the caches: results
// that lie apart are no whole lines, and few beside what is read for them.
template <class Op>
HWY_INLINE void StoreApart(const ReduceArgs &args, const Accumulator<Op> &results, int64_t at,
                           int64_t apart) {
  const auto store = [&](auto d, auto part, hn::TFromD<decltype(d)> *to) HWY_ATTR {
    HWY_ALIGN hn::TFromD<decltype(d)> some[kN];
    hn::Store(part, d, some);
    for (int64_t i = 0; i < kN; ++i) to[at + i * apart] = some[i];
  };
  if constexpr (Op::kCompensated) {
    store(D(), results.sum, args.sum);
    store(D(), results.error, args.error);
  } else if (args.floats) {
    store(DF(), ToFloat(results.sum), args.floats);
  } else {
    store(D(), results.sum, args.sum);
  }
}

// Calls fn(Op()) for every kind.
template <class Fn>
void ForEachReduction(Fn fn) {
  fn(Count());
  fn(Sum());
  fn(SumSquares());
  fn(MaxMagnitude());
  fn(MinMagnitude());
  fn(Min());
  fn(Max());
  fn(SumSigned());
  fn(SumExact());
  fn(SumSquaresExact());
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
