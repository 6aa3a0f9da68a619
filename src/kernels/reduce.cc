// Norms, extremes and counts: per-block accumulators over rows of elements.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

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
  // Squares of f32, f16 and bf16 are exact as doubles: fused or not, the sum is the same.
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

// sum + b, with the rounding error of the sum added to `error` (Knuth's TwoSum).
HWY_INLINE void AddExact(V &sum, V &error, V b) {
  const V total = hn::Add(sum, b);
  const V part = hn::Sub(total, sum);
  const V lost = hn::Add(hn::Sub(sum, hn::Sub(total, part)), hn::Sub(b, part));
  sum = total;
  error = hn::Add(error, lost);
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

// --- along: sums run along the rows of a block -----------------------------------------------

inline constexpr int64_t kRegisters = kLanes / kN;

// The virtual lanes of one block.
template <class Op>
struct Lanes {
  Accumulator<Op> reg[kRegisters];

  // Written out: a defaulted one is not of the target and cannot be inlined.
  HWY_INLINE Lanes() {}  // NOLINT(modernize-use-equals-default)

  HWY_INLINE void Join(const Lanes &other) {
    for (int64_t r = 0; r < kRegisters; ++r) {
      reg[r] = Accumulator<Op>::Join(reg[r], other.reg[r]);
    }
  }
  template <class T>
  HWY_INLINE void Add(const T *x, V with) {
    for (int64_t r = 0; r < kRegisters; ++r) reg[r].Add(Load(x + r * kN), with);
  }
};

// The last elements of a row of n >= kLanes that do not fill all lanes: they go to the highest, so
// that a load of the row's last kLanes elements finds them in place.
template <class Op>
struct Tail {
  hn::Mask<D> outside[kRegisters];

  explicit HWY_INLINE Tail(int64_t n) {
    const int64_t before = (kLanes - n % kLanes) % kLanes;
    for (int64_t r = 0; r < kRegisters; ++r) {
      const int64_t lanes = HWY_MIN(HWY_MAX(before - r * kN, 0), kN);
      outside[r] = hn::FirstN(D(), static_cast<size_t>(lanes));
    }
  }

  template <class T>
  HWY_INLINE void Add(const T *end, V with, Lanes<Op> *lanes) const {
    for (int64_t r = 0; r < kRegisters; ++r) {
      const V x = Load(end - kLanes + r * kN);
      const V filled = Op::kPad == 0.0 ? hn::IfThenZeroElse(outside[r], x)
                                       : hn::IfThenElse(outside[r], hn::Set(D(), Op::kPad), x);
      lanes->reg[r].Add(filled, with);
    }
  }
};

// The kinds of rows, each with a loop of its own.
enum class Row {
  kOne,       // contiguous, of kLanes elements
  kTwo,       // of 2 * kLanes
  kBetween,   // of a number between
  kLong,      // of more
  kGathered,  // of fewer elements, or not contiguous
};

// Copied, kLanes at a time, and filled up with what changes nothing.
template <class Op, class T>
HWY_INLINE void AddGathered(const T *x, int64_t n, int64_t step, V with, Lanes<Op> *lanes) {
  const D d;
  for (int64_t e = 0; e < n; e += kLanes) {
    HWY_ALIGN T elements[kLanes] = {};
    const int64_t count = HWY_MIN(n - e, kLanes);
    for (int64_t i = 0; i < count; ++i) elements[i] = x[(e + i) * step];
    for (int64_t r = 0; r < kRegisters; ++r) {
      const int64_t inside = HWY_MIN(HWY_MAX(count - r * kN, 0), kN);
      const V v = Load(elements + r * kN);
      const auto mask = hn::FirstN(d, static_cast<size_t>(inside));
      lanes->reg[r].Add(hn::IfThenElse(mask, v, hn::Set(d, Op::kPad)), with);
    }
  }
}

// Eight by eight, elements go to four sets of lanes in turn, which hides latency and fixes the
// order of sums for every target.
template <class Op, class T>
HWY_INLINE void AddLong(const T *x, int64_t n, const Tail<Op> &tail, V with, Lanes<Op> *lanes) {
  Lanes<Op> second;
  int64_t e = 0;
  if (n >= 4 * kLanes) {
    Lanes<Op> third;
    Lanes<Op> fourth;
    for (; e + 4 * kLanes <= n; e += 4 * kLanes) {
      lanes->Add(x + e, with);
      second.Add(x + e + kLanes, with);
      third.Add(x + e + 2 * kLanes, with);
      fourth.Add(x + e + 3 * kLanes, with);
    }
    lanes->Join(third);
    second.Join(fourth);
  }
  for (; e + kLanes <= n; e += kLanes) lanes->Add(x + e, with);
  if (e < n) tail.Add(x + n, with, &second);
  lanes->Join(second);
}

template <Row kRow, class Op, class T>
HWY_INLINE void AddRow(const T *x, const ReduceArgs &args, const Tail<Op> &tail, V with,
                       Lanes<Op> *lanes) {
  if constexpr (kRow == Row::kGathered) {
    AddGathered(x, args.n, args.step, with, lanes);
  } else if constexpr (kRow == Row::kLong) {
    AddLong(x, args.n, tail, with, lanes);
  } else {
    lanes->Add(x, with);
    if (kRow == Row::kTwo) lanes->Add(x + kLanes, with);
    if (kRow == Row::kBetween) tail.Add(x + args.n, with, lanes);
  }
}

// Reads ahead, where rows are too short for the processor to see a stream in them.
HWY_INLINE void PrefetchRow(const std::byte *row, int64_t bytes) {
  constexpr int64_t kLine = 64;
  constexpr int64_t kLongest = 2048;
  for (int64_t at = 0; at < HWY_MIN(bytes, kLongest); at += kLine)
    __builtin_prefetch(row + at, 0, 2);
}

// Up to kLanes blocks, one after the other. Not inline, because registers are few.
template <Row kRow, class Op, class T>
HWY_NOINLINE void ReduceBlocks(const ReduceArgs &args, const Tail<Op> &tail, const std::byte *x,
                               int64_t ahead, int64_t first, int64_t count, Lanes<Op> *blocks) {
  const int64_t bytes = args.n * static_cast<int64_t>(sizeof(T));
  const bool prefetches = args.rows * bytes <= 2048;
  for (int64_t i = 0; i < count; ++i) {
    const V with = WithFor<Op>(args, first + i);
    Lanes<Op> lanes;
    for (int64_t r = 0; r < args.rows; ++r) {
      const std::byte *row = x + i * args.inner.step + args.row[r];
      if (prefetches) PrefetchRow(row + ahead, bytes);
      AddRow<kRow>(reinterpret_cast<const T *>(row), args, tail, with, &lanes);
    }
    blocks[i] = lanes;
  }
}

// At least so many bytes are on their way while a group of blocks is reduced.
inline constexpr int64_t kReadAhead = 4096;

// kLanes blocks of short rows, row by row: neighbours are read together.
template <Row kRow, class Op, class T>
HWY_INLINE void ReduceBlocksByRow(const ReduceArgs &args, const Tail<Op> &tail, const std::byte *x,
                                  int64_t first, Lanes<Op> *blocks) {
  const int64_t bytes = kLanes * args.inner.step;  // of a row of the group
  const int64_t ahead = bytes * HWY_MAX(2, kReadAhead / HWY_MAX(args.rows * bytes, 1));
  Lanes<Op> lanes[kLanes];
  V with[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) with[i] = WithFor<Op>(args, first + i);
  for (int64_t r = 0; r < args.rows; ++r) {
    const std::byte *row = x + args.row[r];
    PrefetchRow(row + ahead, bytes);
    for (int64_t i = 0; i < kLanes; ++i) {
      const T *elements = reinterpret_cast<const T *>(row + i * args.inner.step);
      AddRow<kRow>(elements, args, tail, with[i], &lanes[i]);
    }
  }
  for (int64_t i = 0; i < kLanes; ++i) blocks[i] = lanes[i];
}

// Folds the lanes of kLanes blocks at once: neighbours, then pairs, then halves. Register k of the
// result has blocks k * kN and following.
#if HWY_TARGET == HWY_SCALAR
template <class Op>
HWY_INLINE void Fold(const Lanes<Op> *block, Accumulator<Op> *out) {
  using A = Accumulator<Op>;
  for (int64_t b = 0; b < kLanes; ++b) {
    const A *lane = block[b].reg;
    out[b] = A::Join(A::Join(A::Join(lane[0], lane[1]), A::Join(lane[2], lane[3])),
                     A::Join(A::Join(lane[4], lane[5]), A::Join(lane[6], lane[7])));
  }
}
#else
// Lanes 0 and 1, 2 and 3, ... of register r of two blocks: (a01, b01, a23, b23, ...).
template <class Op>
HWY_INLINE Accumulator<Op> FoldNeighbours(const Lanes<Op> &a, const Lanes<Op> &b, int64_t r) {
  using A = Accumulator<Op>;
  const D d;
  const A even = A::Map(a.reg[r], b.reg[r], [&](V x, V y) { return hn::InterleaveLower(d, x, y); });
  const A odd = A::Map(a.reg[r], b.reg[r], [&](V x, V y) { return hn::InterleaveUpper(d, x, y); });
  return A::Join(even, odd);
}

#if HWY_MAX_BYTES >= 32
template <class Op>
HWY_INLINE Accumulator<Op> FoldHalves(Accumulator<Op> low, Accumulator<Op> high) {
  using A = Accumulator<Op>;
  const D d;
  return A::Join(A::Map(low, high, [&](V x, V y) { return hn::ConcatLowerLower(d, y, x); }),
                 A::Map(low, high, [&](V x, V y) { return hn::ConcatUpperUpper(d, y, x); }));
}
#endif

template <class Op>
HWY_INLINE void Fold(const Lanes<Op> *block, Accumulator<Op> *out) {
  using A = Accumulator<Op>;
  if constexpr (kN == 2) {
    for (int64_t b = 0; b < kLanes; b += 2) {
      A pair[kRegisters];
      for (int64_t r = 0; r < kRegisters; ++r) pair[r] = FoldNeighbours(block[b], block[b + 1], r);
      out[b / 2] = A::Join(A::Join(pair[0], pair[1]), A::Join(pair[2], pair[3]));
    }
  }
#if HWY_MAX_BYTES >= 32
  if constexpr (kN == 4) {
    for (int64_t b = 0; b < kLanes; b += 4) {
      A half[kRegisters];
      for (int64_t r = 0; r < kRegisters; ++r) {
        half[r] = FoldHalves(FoldNeighbours(block[b], block[b + 1], r),
                             FoldNeighbours(block[b + 2], block[b + 3], r));
      }
      out[b / 4] = A::Join(half[0], half[1]);
    }
  }
  if constexpr (kN == 8) {
    A quad[2];
    for (int64_t q = 0; q < 2; ++q) {
      const A ab = FoldNeighbours(block[4 * q], block[4 * q + 1], 0);
      const A cd = FoldNeighbours(block[4 * q + 2], block[4 * q + 3], 0);
      // 128-bit pieces (a0123, c4567 of the pairs ...) meet their neighbours.
      const A straight = A::Map(ab, cd, [](V x, V y) { return hn::OddEvenBlocks(y, x); });
      const A crossed =
          A::Map(ab, cd, [](V x, V y) { return hn::SwapAdjacentBlocks(hn::OddEvenBlocks(x, y)); });
      quad[q] = A::Join(straight, crossed);
    }
    out[0] = FoldHalves(quad[0], quad[1]);
  }
#endif
}
#endif

// Sums of squares become norms, if asked for.
template <class Op>
HWY_INLINE void TakeRoot(const ReduceArgs &args, Accumulator<Op> *sum) {
  if (Op::kWhat == kSumSquares && args.roots) sum->sum = hn::Sqrt(sum->sum);
}

// Stores the first `count` <= kLanes results of registers.
template <class Op>
HWY_INLINE void StoreResults(const Accumulator<Op> *out, int64_t count, double *sum,
                             double *error) {
  const D d;
  HWY_ALIGN double sums[kLanes];
  double *to = count == kLanes ? sum : sums;
  for (int64_t r = 0; r < kRegisters; ++r) hn::StoreU(out[r].sum, d, to + r * kN);
  if (count < kLanes) std::copy_n(sums, count, sum);
  if constexpr (Op::kCompensated) {
    HWY_ALIGN double errors[kLanes];
    to = count == kLanes ? error : errors;
    for (int64_t r = 0; r < kRegisters; ++r) hn::StoreU(out[r].error, d, to + r * kN);
    if (count < kLanes) std::copy_n(errors, count, error);
  }
}

// Bytes from a block to the one that is asked for when it is reduced: some groups further on in the
// loop over `blocks`, of which this one is number `at`, or the same far into the next box.
HWY_INLINE int64_t BytesAhead(const BlockRow &blocks, int64_t at, int64_t blocks_ahead,
                              int64_t next_box) {
  const bool is_inside = at + blocks_ahead < blocks.count || next_box == 0;
  return is_inside ? blocks_ahead * blocks.step
                   : next_box + (blocks_ahead - blocks.count) * blocks.step;
}

// Blocks of one short row each, in groups of kLanes that never leave the registers. Returns how many
// blocks have been reduced.
template <Row kRow, class Op, class T>
HWY_NOINLINE int64_t ReduceSingleRows(const ReduceArgs &given, const Tail<Op> &given_tail,
                                      const std::byte *x, int64_t first) {
  const ReduceArgs args = given;  // copies that no store can change, as far as compilers know
  const Tail<Op> tail = given_tail;
  const int64_t step = args.inner.step;
  const int64_t bytes = kLanes * step;
  const int64_t ahead = bytes * HWY_MAX(2, kReadAhead / HWY_MAX(bytes, 1));
  x += args.row[0];
  int64_t block = 0;
  for (; block + kLanes <= args.inner.count; block += kLanes, x += bytes) {
    PrefetchRow(x + ahead, bytes);
    Lanes<Op> lanes[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      const V with = WithFor<Op>(args, first + block + i);
      AddRow<kRow>(reinterpret_cast<const T *>(x + i * step), args, tail, with, &lanes[i]);
    }
    Accumulator<Op> out[kRegisters];
    Fold(lanes, out);
    for (int64_t r = 0; r < kRegisters; ++r) TakeRoot(args, &out[r]);
    double *error = Op::kCompensated ? args.error + first + block : nullptr;
    StoreResults(out, kLanes, args.sum + first + block, error);
  }
  return block;
}

template <Row kRow, class T, class Op>
HWY_NOINLINE void ReduceRows(const ReduceArgs &args) {
  constexpr bool kShort = kRow == Row::kOne || kRow == Row::kTwo || kRow == Row::kBetween;
  constexpr int64_t kMostAhead = 4 * kLanes;
  const Tail<Op> tail(args.n);
  const int64_t bytes = args.rows * args.n * static_cast<int64_t>(sizeof(T));
  // What follows a short inner loop is in the outer one.
  const bool one_group = args.inner.count <= kLanes;
  const int64_t group = (one_group ? args.inner.count : kLanes) * bytes;
  const int64_t groups_ahead = HWY_MAX(1, 2 * kReadAhead / group);
  for (int64_t o = 0; o < args.outer.count; ++o) {
    const int64_t first = o * args.outer.out;
    const std::byte *x = args.x + o * args.outer.step;
    const int64_t next_row = o + 1 < args.outer.count ? args.outer.step : args.ahead;
    int64_t b = 0;
    if (kShort && args.rows == 1) b = ReduceSingleRows<kRow, Op, T>(args, tail, x, first);
    for (; b < args.inner.count; b += kLanes) {
      const int64_t count = HWY_MIN(args.inner.count - b, kLanes);
      Lanes<Op> blocks[kLanes];
      const std::byte *block = x + b * args.inner.step;
      if (kShort && count == kLanes) {
        ReduceBlocksByRow<kRow, Op, T>(args, tail, block, first + b, blocks);
      } else {
        const int64_t ahead =
            one_group
                ? BytesAhead(args.outer, o, HWY_MIN(groups_ahead, kMostAhead), args.ahead)
                : BytesAhead(args.inner, b, HWY_MIN(groups_ahead * kLanes, kMostAhead), next_row);
        ReduceBlocks<kRow, Op, T>(args, tail, block, ahead, first + b, count, blocks);
      }
      Accumulator<Op> out[kRegisters];
      Fold(blocks, out);
      for (int64_t r = 0; r < kRegisters; ++r) TakeRoot(args, &out[r]);
      double *error = Op::kCompensated ? args.error + first + b : nullptr;
      StoreResults(out, count, args.sum + first + b, error);
    }
  }
}

// Kinds of short rows are much code, which small registers gain little from: there, long rows will
// do, with the same sums.
inline constexpr bool kHasShortRows = kN >= 4;

template <class T, class Op>
void ReduceAlong(const ReduceArgs &args) {
  if (args.step != 1 || args.n < kLanes) return ReduceRows<Row::kGathered, T, Op>(args);
  if constexpr (kHasShortRows) {
    if (args.n == kLanes) return ReduceRows<Row::kOne, T, Op>(args);
    if (args.n == 2 * kLanes) return ReduceRows<Row::kTwo, T, Op>(args);
    if (args.n < 2 * kLanes) return ReduceRows<Row::kBetween, T, Op>(args);
  }
  ReduceRows<Row::kLong, T, Op>(args);
}

// --- across: sums run across rows, one block an element ---------------------------------------

// Loads and stores `count` <= kN doubles.
HWY_INLINE V LoadDoubles(const double *p, int64_t count) {
  if (count == kN) return hn::LoadU(D(), p);
  HWY_ALIGN double values[kN] = {};
  for (int64_t i = 0; i < count; ++i) values[i] = p[i];
  return hn::Load(D(), values);
}
HWY_INLINE void StoreDoubles(V v, double *p, int64_t count) {
  if (count == kN) return hn::StoreU(v, D(), p);
  HWY_ALIGN double values[kN];
  hn::Store(v, D(), values);
  for (int64_t i = 0; i < count; ++i) p[i] = values[i];
}

// `count` <= kN elements, `step` apart; what fills the register is any number.
template <class T>
HWY_INLINE V LoadSome(const T *x, int64_t step, int64_t count) {
  if (step == 1 && count == kN) return Load(x);
  HWY_ALIGN T elements[kN] = {};
  for (int64_t i = 0; i < count; ++i) elements[i] = x[i * step];
  return Load(elements);
}

// Rows [row, row + rows) of `count` <= kN blocks, added to what earlier rows have left. Asks for
// those that are `rows_ahead` further on.
template <class T, class Op>
HWY_INLINE void AddRows(const ReduceArgs &args, const std::byte *x, int64_t step, int64_t count,
                        int64_t row, int64_t rows, int64_t rows_ahead, int64_t at) {
  const D d;
  Accumulator<Op> acc;
  V with = hn::Set(d, args.eps);
  if constexpr (Op::kCompensated) {
    with = args.scale ? LoadDoubles(args.scale + at, count) : hn::Set(d, 1.0);
    if (row > 0) acc.error = LoadDoubles(args.error + at, count);
  }
  if (row > 0) acc.sum = LoadDoubles(args.sum + at, count);
  // In this box, or in the next one.
  const int64_t next = row + HWY_MIN(rows_ahead, args.rows);
  const bool has_more = next + rows <= args.rows;
  const int64_t *soon =
      args.row + (has_more ? next : HWY_MIN(HWY_MAX(next - args.rows, 0), args.rows - rows));
  const std::byte *ahead = has_more ? x : x + args.ahead;
  const bool prefetches = has_more || args.ahead != 0;
  for (int64_t r = row; r < row + rows; ++r) {
    if (prefetches) __builtin_prefetch(ahead + soon[r - row], 0, 2);
    acc.Add(LoadSome(reinterpret_cast<const T *>(x + args.row[r]), step, count), with);
  }
  if (row + rows == args.rows) TakeRoot(args, &acc);
  StoreDoubles(acc.sum, args.sum + at, count);
  if constexpr (Op::kCompensated) StoreDoubles(acc.error, args.error + at, count);
}

// Rows are added a few at a time: sums stay in registers meanwhile, memory is still read in long
// runs, and rows a power of two apart do not drive each other out of the cache.
inline constexpr int64_t kRowsAtOnce = 8;

template <class T, class Op>
HWY_INLINE void ReduceColumns(const ReduceArgs &args, const std::byte *x, int64_t step,
                              int64_t first) {
  const int64_t full = args.inner.count / kN * kN;
  const int64_t bytes = kRowsAtOnce * args.inner.count * static_cast<int64_t>(sizeof(T));
  const int64_t ahead = kRowsAtOnce * HWY_MAX(1, 2 * kReadAhead / bytes);
  for (int64_t row = 0; row < args.rows; row += kRowsAtOnce) {
    const int64_t rows = HWY_MIN(args.rows - row, kRowsAtOnce);
    for (int64_t j = 0; j < full; j += kN) {
      AddRows<T, Op>(args, x + j * args.inner.step, step, kN, row, rows, ahead, first + j);
    }
    if (full < args.inner.count) {
      AddRows<T, Op>(args, x + full * args.inner.step, step, args.inner.count - full, row, rows,
                     ahead, first + full);
    }
  }
}

// Few rows of neighbours that fill registers: what AddRows would ask for each of them is known.
template <class T, class Op>
HWY_INLINE void ReduceFewRows(const ReduceArgs &given, int64_t rows) {
  const ReduceArgs args = given;  // a copy that no store can change, as far as compilers know
  const D d;
  V with = hn::Set(d, Op::kCompensated ? 1.0 : args.eps);
  for (int64_t o = 0; o < args.outer.count; ++o) {
    const std::byte *x = args.x + o * args.outer.step;
    for (int64_t j = 0; j < args.inner.count; j += kN) {
      const int64_t at = o * args.outer.out + j;
      Accumulator<Op> acc;
      if (Op::kCompensated && args.scale) with = hn::LoadU(d, args.scale + at);
      for (int64_t r = 0; r < rows; ++r) {
        acc.Add(Load(reinterpret_cast<const T *>(x + args.row[r]) + j), with);
      }
      TakeRoot(args, &acc);
      hn::StoreU(acc.sum, d, args.sum + at);
      if constexpr (Op::kCompensated) hn::StoreU(acc.error, d, args.error + at);
    }
  }
}

template <class T, class Op>
HWY_NOINLINE void ReduceAcross(const ReduceArgs &args) {
  const int64_t step = args.inner.step / static_cast<int64_t>(sizeof(T));
  if (step == 1 && args.rows <= kRowsAtOnce && args.inner.count % kN == 0) {
    if (args.rows == 2) return ReduceFewRows<T, Op>(args, 2);
    return ReduceFewRows<T, Op>(args, args.rows);
  }
  for (int64_t o = 0; o < args.outer.count; ++o) {
    const std::byte *x = args.x + o * args.outer.step;
    if (step == 1) {
      ReduceColumns<T, Op>(args, x, 1, o * args.outer.out);
    } else {
      ReduceColumns<T, Op>(args, x, step, o * args.outer.out);
    }
  }
}

template <class T, class Op>
void FillOne(DtypeIndex dtype, Kernels *table) {
  table->reduce_along[dtype][Op::kWhat] = ReduceAlong<T, Op>;
  table->reduce_across[dtype][Op::kWhat] = ReduceAcross<T, Op>;
}

template <class T>
void FillDtype(DtypeIndex dtype, Kernels *table) {
  FillOne<T, Count>(dtype, table);
  FillOne<T, Sum>(dtype, table);
  FillOne<T, SumSquares>(dtype, table);
  FillOne<T, MaxMagnitude>(dtype, table);
  FillOne<T, MinMagnitude>(dtype, table);
  FillOne<T, Min>(dtype, table);
  FillOne<T, Max>(dtype, table);
  FillOne<T, SumSigned>(dtype, table);
  FillOne<T, SumExact>(dtype, table);
  FillOne<T, SumSquaresExact>(dtype, table);
}

// --- from sums to scores ----------------------------------------------------------------------

template <class Fn>
HWY_INLINE void ForEachRegister(double *values, int64_t n, Fn fn) {
  int64_t i = 0;
  for (; i + kN <= n; i += kN) hn::StoreU(fn(hn::LoadU(D(), values + i)), D(), values + i);
  if (i < n) StoreDoubles(fn(LoadDoubles(values + i, n - i)), values + i, n - i);
}

// Magnitudes from memory to memory.
template <bool kStream, class T>
void Magnitudes(const std::byte *from, int64_t n, std::byte *to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T *x = reinterpret_cast<const T *>(from);
  T *y = reinterpret_cast<T *>(to);
  const int64_t first = kStream ? BeforeVector(y, lanes, n) : 0;
  int64_t i = 0;
  for (; i < first; ++i) y[i] = std::fabs(x[i]);
  for (; i + lanes <= n; i += lanes) {
    if constexpr (kStream) {
      StorePastCaches(hn::Abs(hn::LoadU(d, x + i)), d, y + i);
    } else {
      hn::StoreU(hn::Abs(hn::LoadU(d, x + i)), d, y + i);
    }
  }
  for (; i < n; ++i) y[i] = std::fabs(x[i]);
  if (kStream) hwy::FlushStream();
}

// Fewer than kN.
template <class T>
HWY_INLINE void MagnitudesOfSome(const T *x, int64_t n, float *y) {
  HWY_ALIGN float magnitudes[kN];
  Store(hn::Abs(LoadSome(x, 1, n)), magnitudes);
  std::copy_n(magnitudes, n, y);
}

// The same of 16-bit numbers, as floats.
template <bool kStream, class T>
void MagnitudesAsFloats(const std::byte *from, int64_t n, std::byte *to) {
  const T *x = reinterpret_cast<const T *>(from);
  float *y = reinterpret_cast<float *>(to);
  int64_t i = kStream ? BeforeVector(y, kN, n) : 0;
  if (i > 0) MagnitudesOfSome(x, i, y);
  for (; i + kN <= n; i += kN) {
    const V magnitude = hn::Abs(Load(x + i));
    if constexpr (kStream) {
      StorePastCaches(ToFloat(magnitude), DF(), y + i);
    } else {
      Store(magnitude, y + i);
    }
  }
  if (i < n) MagnitudesOfSome(x + i, n - i, y + i);
  if (kStream) hwy::FlushStream();
}

// Roots of sums of squares whose errors are known: half a unit in the last place and a little.
// Returns whether all sums were far enough from the ends of the range to be right.
bool ExactRoots(double *sums, const double *errors, int64_t n) {
  const D d;
  auto out_of_range = hn::MaskFromVec(hn::Zero(d));
  for (int64_t i = 0; i < n; i += kN) {
    const int64_t count = HWY_MIN(n - i, kN);
    const V sum = LoadDoubles(sums + i, count);
    const V root = hn::Sqrt(sum);
    const V square = hn::Mul(root, root);
    const V rest = hn::Sub(hn::Sub(sum, square), LostBySquare(root, square));
    const V correction =
        hn::Div(hn::Add(rest, LoadDoubles(errors + i, count)), hn::Add(root, root));
    const V exact = hn::Add(root, correction);
    const auto in_range = hn::And(hn::Ge(exact, hn::Set(d, kLeastExactRoot)),
                                  hn::Le(exact, hn::Set(d, 1 / kLeastExactRoot)));
    const auto inside = hn::FirstN(d, static_cast<size_t>(count));
    out_of_range = hn::Or(out_of_range, hn::AndNot(in_range, inside));
    StoreDoubles(exact, sums + i, count);
  }
  return hn::AllFalse(d, out_of_range);
}

void Roots(double *values, int64_t n) {
  ForEachRegister(values, n, [](V v) { return hn::Sqrt(v); });
}

void RoundToFloat(double *values, int64_t n) {
  ForEachRegister(values, n, [](V v) { return hn::PromoteTo(D(), ToFloat(v)); });
}

void FillReduce(Kernels *table) {
  FillDtype<float>(kF32, table);
  FillDtype<double>(kF64, table);
  FillDtype<F16>(kF16, table);
  FillDtype<Bf16>(kBf16, table);
  table->magnitudes[kF32][0] = Magnitudes<false, float>;
  table->magnitudes[kF32][1] = Magnitudes<true, float>;
  table->magnitudes[kF64][0] = Magnitudes<false, double>;
  table->magnitudes[kF64][1] = Magnitudes<true, double>;
  table->magnitudes[kF16][0] = MagnitudesAsFloats<false, F16>;
  table->magnitudes[kF16][1] = MagnitudesAsFloats<true, F16>;
  table->magnitudes[kBf16][0] = MagnitudesAsFloats<false, Bf16>;
  table->magnitudes[kBf16][1] = MagnitudesAsFloats<true, Bf16>;
  table->exact_roots = ExactRoots;
  table->roots = Roots;
  table->round_to_float = RoundToFloat;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {

HWY_EXPORT(FillReduce);
void fill_reduce(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillReduce)(table);
}

double identity_of(Reduction reduction) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  switch (reduction) {
    case kMinMagnitude:
    case kMin:
      return kInf;
    case kMax:
      return -kInf;
    default:
      return 0.0;
  }
}

namespace {

double larger(double a, double b) {
  return b > a || b != b ? b : a;
}
double smaller(double a, double b) {
  return b < a || b != b ? b : a;
}

void add_exact(double *sum, double *error, double b) {
  const double total = *sum + b;
  const double part = total - *sum;
  *error += (*sum - (total - part)) + (b - part);
  *sum = total;
}

}  // namespace

namespace {

// One step of each kind of reduction: joins (more, more_error) into (sum, error).
struct JoinSums {
  static void join(double *sum, double *, double more, double) { *sum += more; }
};
struct JoinLarger {
  static void join(double *sum, double *, double more, double) { *sum = larger(*sum, more); }
};
struct JoinSmaller {
  static void join(double *sum, double *, double more, double) { *sum = smaller(*sum, more); }
};
struct JoinCompensated {
  static void join(double *sum, double *error, double more, double more_error) {
    *error += more_error;
    add_exact(sum, error, more);
  }
};

// Calls fn with the kind of a reduction.
template <typename Fn>
void with_join(Reduction reduction, Fn &&fn) {
  switch (reduction) {
    case kCount:
    case kSum:
    case kSumSigned:
    case kSumSquares:
      return fn(JoinSums());
    case kMaxMagnitude:
    case kMax:
      return fn(JoinLarger());
    case kMinMagnitude:
    case kMin:
      return fn(JoinSmaller());
    default:
      return fn(JoinCompensated());
  }
}

}  // namespace

void combine(Reduction reduction, int64_t count, const double *more, const double *more_error,
             double *sum, double *error, int64_t step) {
  const bool compensated = is_compensated(reduction);
  with_join(reduction, [&](auto kind) {
    for (int64_t i = 0; i < count; ++i) {
      kind.join(sum + i * step, compensated ? error + i * step : nullptr, more[i],
                compensated ? more_error[i] : 0.0);
    }
  });
}

void fold_lanes(Reduction reduction, double *sum, double *error, int64_t count) {
  const bool compensated = is_compensated(reduction);
  with_join(reduction, [&](auto kind) {
    for (int64_t i = 0; i < count; ++i) {
      double *lane = sum + i * kLanes;
      double *lost = compensated ? error + i * kLanes : lane;
      for (int64_t half = kLanes / 2; half > 0; half /= 2) {
        for (int64_t l = 0; l < half; ++l) {
          kind.join(lane + l, lost + l, lane[l + half], lost[l + half]);
        }
      }
      sum[i] = lane[0];
      if (compensated) error[i] = lost[0];
    }
  });
}

}  // namespace spk
#endif
