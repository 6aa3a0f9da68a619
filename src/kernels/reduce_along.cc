// Norms, extremes and counts whose sums run along the rows of a block.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_along.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/reduce-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

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
enum class RowKind {
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

template <RowKind kRow, class Op, class T>
HWY_INLINE void AddRow(const T *x, const ReduceArgs &args, const Tail<Op> &tail, V with,
                       Lanes<Op> *lanes) {
  if constexpr (kRow == RowKind::kGathered) {
    AddGathered(x, args.n, args.step, with, lanes);
  } else if constexpr (kRow == RowKind::kLong) {
    AddLong(x, args.n, tail, with, lanes);
  } else {
    lanes->Add(x, with);
    if (kRow == RowKind::kTwo) lanes->Add(x + kLanes, with);
    if (kRow == RowKind::kBetween) tail.Add(x + args.n, with, lanes);
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
template <RowKind kRow, class Op, class T>
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

// kLanes blocks of short rows, row by row: neighbours are read together.
template <RowKind kRow, class Op, class T>
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

// Writes the results of `count` <= kLanes blocks, of which the first is number `first`.
template <class Op>
HWY_INLINE void FinishBlocks(const ReduceArgs &args, const Lanes<Op> *blocks, int64_t count,
                             int64_t first) {
  Accumulator<Op> out[kRegisters];
  Fold(blocks, out);
  for (int64_t r = 0; r < kRegisters; ++r) TakeRoot(args, &out[r]);
  double *error = Op::kCompensated ? args.error + first : nullptr;
  StoreResults(out, count, args.sum + first, error);
}

// Bytes from a block to the one that is asked for when it is reduced: some groups further on in the
// loop over `blocks`, of which this one is number `at`, or the same far into the next box.
HWY_INLINE int64_t BytesAhead(const BlockRow &blocks, int64_t at, int64_t blocks_ahead,
                              int64_t next_box) {
  const bool is_inside = at + blocks_ahead < blocks.count || next_box == 0;
  return is_inside ? blocks_ahead * blocks.step
                   : next_box + (blocks_ahead - blocks.count) * blocks.step;
}

// Blocks of one short row each, kLanes at a time, folded at once: where registers are many, their sums
// never leave them. Returns how many blocks have been reduced.
template <RowKind kRow, class Op, class T>
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
    FinishBlocks(args, lanes, kLanes, first + block);
  }
  return block;
}

template <RowKind kRow, class T, class Op>
HWY_NOINLINE void ReduceRows(const ReduceArgs &args) {
  constexpr bool kShort =
      kRow == RowKind::kOne || kRow == RowKind::kTwo || kRow == RowKind::kBetween;
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
    if constexpr (kShort) {
      if (args.rows == 1) b = ReduceSingleRows<kRow, Op, T>(args, tail, x, first);
    }
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
      FinishBlocks(args, blocks, count, first + b);
    }
  }
}

// Kinds of short rows are much code, which small registers gain little from: there, long rows will
// do, with the same sums.
inline constexpr bool kHasShortRows = kN >= 4;

template <class T, class Op>
void ReduceAlong(const ReduceArgs &args) {
  if (args.step != 1 || args.n < kLanes) return ReduceRows<RowKind::kGathered, T, Op>(args);
  if constexpr (kHasShortRows) {
    if (args.n == kLanes) return ReduceRows<RowKind::kOne, T, Op>(args);
    if (args.n == 2 * kLanes) return ReduceRows<RowKind::kTwo, T, Op>(args);
    if (args.n < 2 * kLanes) return ReduceRows<RowKind::kBetween, T, Op>(args);
  }
  ReduceRows<RowKind::kLong, T, Op>(args);
}

template <class T>
void FillDtypeAlong(DtypeIndex dtype, Kernels *table) {
  ForEachReduction([&](auto kind) {
    using Op = decltype(kind);
    table->reduce_along[dtype][Op::kWhat] = ReduceAlong<T, Op>;
  });
}

void FillReduceAlong(Kernels *table) {
  FillDtypeAlong<float>(kF32, table);
  FillDtypeAlong<double>(kF64, table);
  FillDtypeAlong<F16>(kF16, table);
  FillDtypeAlong<Bf16>(kBf16, table);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillReduceAlong);
void fill_reduce_along(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillReduceAlong)(table);
}
}  // namespace spk
#endif
