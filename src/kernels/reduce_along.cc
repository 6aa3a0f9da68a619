// Norms, extremes and counts whose sums run along the rows of a block.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_along.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include "kernels/ask_near-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/float_registers.h"
#include "kernels/fold-inl.h"
#include "kernels/kernels.h"
#include "kernels/largest-inl.h"
#include "kernels/prefetch.h"
#include "kernels/reduce-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// The kinds of rows, each with a loop of its own.
enum class RowKind {
  kOne,       // contiguous, of kLanes elements
  kTwo,       // of 2 * kLanes
  kBetween,   // of a number between
  kKernels,   // of kKernel elements, one block's after the other's
  kWhole,     // of a multiple of kLongStep, up to kMostInGroup, and the only one of its block
  kInTiles,   // of more, as AreInTiles() says, several a block, next to its neighbours'
  kLong,      // of others that are long
  kGathered,  // of fewer elements, or not contiguous
  kAny,       // any, of rare reductions, whose code is kept small
};

constexpr bool is_short(RowKind kind) {
  return kind == RowKind::kOne || kind == RowKind::kTwo || kind == RowKind::kBetween ||
         kind == RowKind::kKernels;
}
constexpr bool is_long(RowKind kind) {
  return kind == RowKind::kInTiles || kind == RowKind::kWhole || kind == RowKind::kLong;
}

// Copied, kLanes at a time, and filled up with what changes nothing.
template <class Op, class T>
HWY_INLINE void AddGathered(const T *x, int64_t n, int64_t step, V with, Lanes<Op> *lanes) {
  for (int64_t e = 0; e < n; e += kLanes) {
    HWY_ALIGN T elements[kLanes] = {};
    const int64_t count = HWY_MIN(n - e, kLanes);
    for (int64_t i = 0; i < count; ++i) elements[i] = x[(e + i) * step];
    lanes->AddSome(elements, count, with);
  }
}

// Whole registers where rows are contiguous, else copied.
template <class Op, class T>
HWY_INLINE void AddAny(const T *x, const ReduceArgs &args, const Tail<Op> &tail, V with,
                       Lanes<Op> *lanes) {
  if (args.step != 1 || args.n < kLanes) return AddGathered(x, args.n, args.step, with, lanes);
  for (int64_t e = 0; e + kLanes <= args.n; e += kLanes) lanes->Add(x + e, with);
  if (args.n % kLanes != 0) tail.Add(x + args.n, with, lanes);
}

template <RowKind kRow, class Op, class T>
HWY_INLINE void AddRow(const T *x, const ReduceArgs &args, const Tail<Op> &tail, V with,
                       Stages ahead, Lanes<Op> *lanes) {
  if constexpr (kRow == RowKind::kGathered) {
    AddGathered(x, args.n, args.step, with, lanes);
  } else if constexpr (kRow == RowKind::kAny) {
    AddAny(x, args, tail, with, lanes);
  } else if constexpr (is_long(kRow)) {
    const AskAlong<T> ask{x, ahead};
    AddLong<kRow == RowKind::kWhole>(x, args.n, tail, with, lanes, ask);
    if (kRow != RowKind::kWhole) {
      const int64_t rest = args.n % kLongStep;
      ask.Ask(args.n - rest, rest);
    }
  } else {
    lanes->Add(x, with);
    if (kRow == RowKind::kTwo) lanes->Add(x + kLanes, with);
    if (kRow == RowKind::kBetween) tail.Add(x + args.n, with, lanes);
    if (kRow == RowKind::kKernels) {
      tail.AddFrom(Tail<Op>::FirstRegister(kKernel), x + kKernel, with, lanes);
    }
  }
}

// Reads ahead, where rows are too short for the processor to see a stream in them.
HWY_INLINE void PrefetchRow(const std::byte *row, int64_t bytes) {
  constexpr int64_t kLine = 64;
  constexpr int64_t kLongest = 2048;
  for (int64_t at = 0; at < HWY_MIN(bytes, kLongest); at += kLine) prefetch_far(row, at);
  if (bytes % kLine != 0) prefetch_far(row, bytes - 1);  // it may begin anywhere in a line
}

// Bytes from a block to its row r, where rows [begin, end) of neighbours are read in turn: beyond
// `end`, to one of the next block.
HWY_INLINE int64_t RowOfNeighbours(const ReduceArgs &args, int64_t r, int64_t begin, int64_t end) {
  return r < end ? args.row[r] : args.inner.step + args.row[begin + r - end];
}

// The second stage in a stream. Loops that have next to nothing to do are there as soon as memory
// is: they ask for what they are about to read, which costs little.
template <class Op>
inline constexpr int64_t kNearOf = kIsLargest<Op> ? 0 : kNear;

// Up to kLanes blocks, one after the other. Not inline, because registers are few.
template <RowKind kRow, class Op, class T>
HWY_NOINLINE void ReduceBlocks(const ReduceArgs &args, const Tail<Op> &tail, const std::byte *x,
                               int64_t ahead, int64_t first, int64_t count, Lanes<Op> *blocks) {
  const int64_t bytes = args.n * static_cast<int64_t>(sizeof(T));
  constexpr bool kAsksItself = is_long(kRow);
  const bool prefetches = args.rows * bytes <= 2048;
  const bool follow = args.rows == 1 && args.inner.step == bytes;
  const bool is_stream = follow || bytes >= 2 * kFar;
  const bool leaves_it = is_stream && LeavesStreams<T>();
  const int64_t in_stream = follow || bytes >= 2 * kFurther ? far_in_stream() : kFar;
  const int64_t far = prefetches ? ahead : is_stream ? in_stream : 0;
  const Stages asked_for{far, is_stream ? kNearOf<Op> : 0};
  const Stages in_row = leaves_it ? kNothingAhead : asked_for;
  // Rows too long to be asked for whole and too short for streams: while one is read, the same
  // places of a later one are asked for.
  const bool asks_for_next = args.rows > 1 && !prefetches && !is_stream;
  // Up to a fifth of the time less than one row ahead, a tenth more if it is all of a block
  // (measured).
  const int64_t rows_ahead =
      HoldsRowsAhead() ? HWY_MAX(HWY_MIN(kBytesInLaterRows / bytes, args.rows / 2), 1) : 1;
  const bool asks_near = AsksNearFor<T>() && (args.inner.step == bytes || IsReadNext(bytes, 0));
  for (int64_t i = 0; i < count; ++i) {
    const V with = WithFor<Op>(args, first + i);
    Lanes<Op> lanes;
    for (int64_t r = 0; r < args.rows; ++r) {
      const std::byte *row = x + i * args.inner.step + args.row[r];
      if (prefetches && !kAsksItself && !leaves_it) PrefetchRow(row + ahead, bytes);
      const Stages next_row{RowOfNeighbours(args, r + rows_ahead, 0, args.rows) - args.row[r],
                            asks_near ? kNearInTurn : 0};
      AddRow<kRow>(reinterpret_cast<const T *>(row), args, tail, with,
                   asks_for_next ? next_row : in_row, &lanes);
    }
    blocks[i] = lanes;
  }
}

// How far ahead short rows are asked for, in bytes: kReadAhead in all rows of a block together, but
// at least some lines, and half of what kN blocks have. Further on, lines of many rows drive each
// other out, and what a processor sees for itself is better left to it.
HWY_INLINE int64_t BytesAheadInRow(const ReduceArgs &args) {
  constexpr int64_t kLeast = 256;
  return HWY_MAX(kN * args.inner.step / 2, HWY_MAX(kReadAhead / args.rows, kLeast));
}

template <class Op>
HWY_INLINE Accumulator<Op> ResultsOf(const ReduceArgs &args, const Lanes<Op> *blocks) {
  Accumulator<Op> results = Fold(blocks);
  TakeRoot(args, &results);
  return results;
}

// Writes the results of `count` blocks, of which the first is number `first`; `blocks` is filled up
// to a multiple of kN.
template <class Op>
HWY_INLINE void FinishBlocks(const ReduceArgs &args, const Lanes<Op> *blocks, int64_t count,
                             int64_t first) {
  for (int64_t b = 0; b < count; b += kN) {
    StoreResults(args, ResultsOf(args, blocks + b), first + b, HWY_MIN(count - b, kN));
  }
}

// The same, where the lanes are in memory anyway.
template <class Op>
HWY_NOINLINE void FinishStored(const ReduceArgs &args, const Lanes<Op> *blocks, int64_t count,
                               int64_t first) {
  FinishBlocks(args, blocks, count, first);
}

// Rows of tiles are read block by block if they have at least so many bytes, else several blocks
// together; and no row that follows is asked for then, because processors fetch such pieces best
// by themselves, and up to eight rows in turn, too. 16-bit numbers take so long to add that asking
// pays, of rows read block by block if they are longer still. Measured.
inline constexpr int64_t kLeastByBlock = 128;
template <class T>
inline constexpr bool kAsksForRows = sizeof(T) < sizeof(float);
inline constexpr int64_t kLeastAskedByBlock = 256;
inline constexpr int64_t kRowsAhead = 4;
template <RowKind kRow, class T>
inline constexpr bool kMayGoByBlock = kRow == RowKind::kInTiles ||
                                      (kRow == RowKind::kTwo &&
                                       2 * kLanes * sizeof(T) >= kLeastByBlock);

// How far ahead rows [begin, end) of neighbours are asked for from memory; 0: not at all. Asking costs
// what is in caches up to a third, and the code for it ragged rows 5 %.
template <RowKind kRow>
HWY_INLINE int64_t FarInNeighbours(const ReduceArgs &args, int64_t begin, int64_t end) {
  return kRow != RowKind::kBetween && HoldsRowsAhead() ? FarInBlocks(args, begin, end) : 0;
}

// Adds rows [begin, end) of `count` <= kN neighbours; `far` is FarInNeighbours().
template <RowKind kRow, class Op, class T>
HWY_INLINE void AddRowsOfNeighbours(const ReduceArgs &args, const Tail<Op> &tail,
                                    const std::byte *x, int64_t first, int64_t count, int64_t begin,
                                    int64_t end, int64_t far, Lanes<Op> *lanes) {
  const int64_t n = kRow == RowKind::kKernels ? kKernel : args.n;
  const int64_t row_bytes = n * static_cast<int64_t>(sizeof(T));
  const int64_t step = kRow == RowKind::kKernels ? row_bytes : args.inner.step;
  const bool asks_near =
      AsksNearFor<T>() && step == row_bytes && IsReadNext(args.inner.count * step, args.soon);
  const bool asks_far = kRow != RowKind::kBetween && far != 0;
  if (kMayGoByBlock<kRow, T> && row_bytes >= kLeastByBlock && step == row_bytes) {
    const bool asks = kAsksForRows<T> && !asks_far && row_bytes >= kLeastAskedByBlock;
    const int64_t rows_ahead = HWY_MIN(kRowsAhead, end - begin);
    for (int64_t i = 0; i < count; ++i, x += step) {
      const V with = WithFor<Op>(args, first + i);
      for (int64_t r = begin; r < end; ++r) {
        if (asks) PrefetchRow(x + RowOfNeighbours(args, r + rows_ahead, begin, end), row_bytes);
        if (asks_far) PrefetchRow(x + args.row[r] + far, row_bytes);
        const T *row = reinterpret_cast<const T *>(x + args.row[r]);
        if (asks_near) AskInTurn(row, args.n);
        AddRow<kRow>(row, args, tail, with, kNothingAhead, &lanes[i]);
      }
    }
    return;
  }
  // Short pieces of long rows, read in parts, are best asked for in these (measured).
  const bool are_long = end - begin < args.rows && args.inner.count * step >= 2 * kLongEnough;
  const int64_t ahead = asks_far          ? (are_long ? kFarInRows : far)
                        : kAsksForRows<T> ? BytesAheadInRow(args)
                                          : 0;
  V with[kN];
  for (int64_t i = 0; i < count; ++i) with[i] = WithFor<Op>(args, first + i);
  for (int64_t r = begin; r < end; ++r) {
    const std::byte *row = x + args.row[r];
    if (ahead != 0) PrefetchRow(row + ahead, count * step);
    if (asks_near) AskInTurn(reinterpret_cast<const T *>(row), count * n);
    for (int64_t i = 0; i < count; ++i, row += step) {
      AddRow<kRow>(reinterpret_cast<const T *>(row), args, tail, with[i], kNothingAhead, &lanes[i]);
    }
  }
}

// Neighbours whose rows are added together: as many as fit 32 KiB of stack, because processors read
// long rows best by themselves. Rows that are asked for may be shorter, and lanes stay in cache.
template <class T, class Op>
inline constexpr int64_t kNeighbours = kAsksForRows<T>
                                           ? 16 * kLanes
                                           : (int64_t{32} << 10) / sizeof(StoredLanes<Op>);

// `count` <= kNeighbours blocks, of which the first is number `first`; of short rows a multiple of
// kN.
template <RowKind kRow, class Op, class T>
HWY_INLINE void ReduceNeighbours(const ReduceArgs &args, const Tail<Op> &tail, const std::byte *x,
                                 int64_t first, int64_t count) {
  StoredLanes<Op> stored[kNeighbours<T, Op>];
  for (int64_t row = 0; row < args.rows; row += kRowsAtOnce) {
    const int64_t end = HWY_MIN(row + kRowsAtOnce, args.rows);
    const int64_t far = FarInNeighbours<kRow>(args, row, end);
    for (int64_t b = 0; b < count; b += kN) {
      const int64_t some = is_short(kRow) ? kN : HWY_MIN(count - b, kN);
      Lanes<Op> lanes[kN];
      for (int64_t i = 0; row > 0 && i < some; ++i) stored[b + i].Take(&lanes[i]);
      AddRowsOfNeighbours<kRow, Op, T>(args, tail, x + b * args.inner.step, first + b, some, row,
                                       end, far, lanes);
      if (end == args.rows) {
        FinishBlocks(args, lanes, some, first + b);
      } else {
        for (int64_t i = 0; i < some; ++i) stored[b + i].Put(lanes[i]);
      }
    }
  }
}

// The same of a row of blocks from block `from` on, as far as groups are full; returns how far.
template <RowKind kRow, class Op, class T>
HWY_INLINE int64_t ReduceAllNeighbours(const ReduceArgs &args, const Tail<Op> &tail,
                                       const std::byte *x, int64_t first, int64_t from) {
  const int64_t all = is_short(kRow) ? args.inner.count / kN * kN : args.inner.count;
  constexpr int64_t kTogether = kNeighbours<T, Op>;
  for (int64_t b = from; b < all; b += kTogether) {
    const int64_t count = HWY_MIN(all - b, kTogether);
    ReduceNeighbours<kRow, Op, T>(args, tail, x + b * args.inner.step, first + b, count);
  }
  return all;
}

// Bytes from a block to the one that is asked for when it is reduced: some groups further on in the
// loop over `blocks`, of which this one is number `at`, or the same far into the next box.
HWY_INLINE int64_t BytesAhead(const BlockRow &blocks, int64_t at, int64_t blocks_ahead,
                              int64_t next_box) {
  const bool is_inside = at + blocks_ahead < blocks.count || next_box == 0;
  return is_inside ? blocks_ahead * blocks.step
                   : next_box + (blocks_ahead - blocks.count) * blocks.step;
}

// Long rows that are read in turn are read so much at a time: what may be asked for ahead, or a KiB.
// Longer pieces gain less.
template <class T>
inline constexpr int64_t kPieceOf = (kHasLargeRegisters ? kNearInTurn : 1024) /
                                    static_cast<int64_t>(sizeof(T));

// Adds kN long rows, `bytes` and `apart` blocks from one to the next, piece by piece in turn.
template <class Op, class T>
HWY_INLINE void AddInPieces(const ReduceArgs &args, const Tail<Op> &tail, const std::byte *x,
                            int64_t bytes, int64_t first, int64_t apart, Stages ahead,
                            Lanes<Op> *lanes) {
  const auto row = [&](int64_t i) HWY_ATTR { return reinterpret_cast<const T *>(x + i * bytes); };
  const auto with = [&](int64_t i) HWY_ATTR { return WithFor<Op>(args, first + i * apart); };
  const int64_t in_steps = args.n / kLongStep * kLongStep;
  LongLanes<Op> sums[kN];
  for (int64_t e = 0; e < in_steps; e += kPieceOf<T>) {
    const int64_t end = HWY_MIN(e + kPieceOf<T>, in_steps);
    for (int64_t i = 0; i < kN; ++i) {
      LongLanes<Op> own = sums[i];  // in registers
      const AskAlong<T> ask{row(i), ahead};
      for (int64_t k = e; k < end; k += kLongStep) {
        own.Add(row(i) + k, with(i));
        ask(k);
      }
      sums[i] = own;
    }
  }
  for (int64_t i = 0; i < kN; ++i) {
    sums[i].JoinSteps();
    lanes[i] = sums[i].Finish(row(i), in_steps, args.n, tail, with(i));
  }
}

// The results of kN blocks of one row each, `apart` blocks from one to the next; the first is
// number `first` and begins at x. `ahead` is for rows of kWhole and kLong; for
// others the caller has asked.
template <RowKind kRow, class Op, class T>
HWY_INLINE Accumulator<Op> ReduceGroup(const ReduceArgs &args, const Tail<Op> &tail,
                                       const std::byte *x, int64_t step, int64_t first,
                                       int64_t apart, Stages ahead) {
  Lanes<Op> lanes[kN];
  if constexpr (kRow == RowKind::kLong) {
    AddInPieces<Op, T>(args, tail, x, apart * step, first, apart, ahead, lanes);
  } else {
    for (int64_t i = 0; i < kN; ++i) {
      const T *row = reinterpret_cast<const T *>(x + i * apart * step);
      Lanes<Op> own;
      AddRow<kRow>(row, args, tail, WithFor<Op>(args, first + i * apart), ahead, &own);
      lanes[i] = own;
    }
  }
  return ResultsOf(args, lanes);
}

// How many bytes ahead, in the order of reading, rows that lie apart are asked for; measured.
inline constexpr int64_t kAheadInRows = 3072;

// Blocks of one short row each that lie apart, kN at a time. Returns how many have been reduced.
// What is reduced after them begins `next_box` bytes from x; 0: none is known.
template <RowKind kRow, class Op, class T>
HWY_INLINE int64_t ReduceRowsApart(const ReduceArgs &args, const Tail<Op> &tail, const std::byte *x,
                                   int64_t first, int64_t next_box) {
  const int64_t step = args.inner.step;
  const int64_t bytes = args.n * static_cast<int64_t>(sizeof(T));
  const int64_t blocks_ahead = HWY_MIN(HWY_MAX(1, kAheadInRows / bytes), args.inner.count);
  int64_t block = 0;
  for (; block + kN <= args.inner.count; block += kN, x += kN * step) {
    const int64_t ahead = BytesAhead(args.inner, block, blocks_ahead, next_box);
    for (int64_t i = 0; i < kN; ++i) PrefetchRow(x + i * step + ahead, bytes);
    const auto results =
        ReduceGroup<kRow, Op, T>(args, tail, x, step, first + block, 1, kNothingAhead);
    StoreResults(args, results, first + block, kN);
  }
  return block;
}

// Memory gives more to several streams than to one, however far ahead that is asked for, except where
// streams are left to the processor: rows are read at several places of their box in turn, a little
// at each. Where they take long to compute with (16-bit numbers, short rows of doubles whose sums are
// compensated) they are not: what comes late costs more there. Measured with registers of four and of
// eight doubles, those of doubles that are not summed with four only; smaller ones would have fewer
// places.
template <class T, class Op>
inline constexpr bool kShortInTurn = sizeof(T) >= sizeof(float) && !Op::kCompensated;
template <class T>
inline constexpr bool kLongInTurn = kN >= 4 && sizeof(T) >= sizeof(float);
inline constexpr int64_t kLeastInTurn = 512;  // elements of a long row; of shorter ones unmeasured

// So many bytes are at a place at least.
inline constexpr int64_t kLeastAtPlace = 8192;

// Reduces blocks of one short row each with nothing between them, a group at each of kPlaces places
// in turn. Returns how many.
template <RowKind kRow, class Op, class T>
HWY_INLINE int64_t ReduceGroupsInTurn(const ReduceArgs &args, const Tail<Op> &tail,
                                      const std::byte *x, int64_t step, int64_t first) {
  constexpr int64_t kPlaces = 4;
  const int64_t at_place = args.inner.count / (kPlaces * kN) * kN;
  if (at_place * step < kLeastAtPlace) return 0;
  const int64_t elements = kN * step / static_cast<int64_t>(sizeof(T));
  const bool asks_near = AsksNearFor<T>();
  for (int64_t block = 0; block < at_place; block += kN) {
    for (int64_t at = block; at < kPlaces * at_place; at += at_place) {
      const std::byte *group = x + at * step;
      if (asks_near) AskInTurn(reinterpret_cast<const T *>(group), elements);
      const auto results =
          ReduceGroup<kRow, Op, T>(args, tail, group, step, first + at, 1, kNothingAhead);
      StoreResults(args, results, first + at, kN);
    }
  }
  return kPlaces * at_place;
}

// Reduces blocks of one row each that is not so short: a group is a row at each of kN places.
// Returns how many.
template <RowKind kRow, class Op, class T>
HWY_INLINE int64_t ReduceRowsInTurn(const ReduceArgs &args, const Tail<Op> &tail,
                                    const std::byte *x, int64_t step, int64_t first) {
  const int64_t at_place = args.inner.count / kN;
  if (at_place * step < kLeastAtPlace) return 0;
  const int64_t bytes = args.n * static_cast<int64_t>(sizeof(T));
  const bool asks_near = AsksNearFor<T>() && (step == bytes || IsReadNext(bytes, 0));
  const Stages ahead = asks_near ? kInTurn : kNothingAhead;
  for (int64_t block = 0; block < at_place; ++block) {
    const auto results = ReduceGroup<kRow, Op, T>(args, tail, x + block * step, step, first + block,
                                                  at_place, ahead);
    StoreApart(args, results, first + block, at_place);
  }
  return kN * at_place;
}

// Either, as the kind of the short rows wants it. Returns how many.
template <RowKind kRow, class Op, class T>
HWY_INLINE int64_t ReduceInTurn(const ReduceArgs &args, const Tail<Op> &tail, const std::byte *x,
                                int64_t step, int64_t first) {
  if constexpr (kRow == RowKind::kWhole) {
    return ReduceRowsInTurn<kRow, Op, T>(args, tail, x, step, first);
  } else {
    return ReduceGroupsInTurn<kRow, Op, T>(args, tail, x, step, first);
  }
}

// Reduces blocks of one short row each with nothing between them, in the order in which they lie,
// from block `block` on. Returns how many there are up to the last full group.
template <RowKind kRow, class Op, class T>
HWY_INLINE int64_t ReduceInOrder(const ReduceArgs &args, const Tail<Op> &tail, const std::byte *x,
                                 int64_t step, int64_t first, int64_t block) {
  const Stages ahead = InStream<T>(kNearOf<Op>);
  for (; block + kN <= args.inner.count; block += kN) {
    const std::byte *group = x + block * step;
    if (kRow != RowKind::kWhole) ask_ahead(group, kN * step, ahead);
    const auto results = ReduceGroup<kRow, Op, T>(args, tail, group, step, first + block, 1, ahead);
    StoreResults(args, results, first + block, kN);
  }
  return block;
}

// Blocks of one short row each, as many as fill groups; returns how many.
template <RowKind kRow, class Op, class T>
HWY_NOINLINE int64_t ReduceSingleRows(const ReduceArgs &given, const Tail<Op> &given_tail,
                                      const std::byte *x, int64_t first, int64_t next_box) {
  const ReduceArgs args = given;  // copies that no store can change, as far as compilers know
  const Tail<Op> tail = given_tail;
  x += args.row[0];
  const int64_t row =
      static_cast<int64_t>(sizeof(T)) * (kRow == RowKind::kKernels ? kKernel : args.n);
  if constexpr (kRow != RowKind::kKernels) {
    if (args.inner.step != row) {
      return ReduceRowsApart<kRow, Op, T>(args, tail, x, first, next_box);
    }
  }
  int64_t block = 0;
  if constexpr (kShortInTurn<T, Op>) {
    if (!LeavesStreams<T>()) block = ReduceInTurn<kRow, Op, T>(args, tail, x, row, first);
  }
  return ReduceInOrder<kRow, Op, T>(args, tail, x, row, first, block);
}

template <RowKind kRow, class T, class Op>
HWY_NOINLINE void ReduceRows(const ReduceArgs &args) {
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
    const int64_t next_row = bytes_to_next_row(args, o);
    int64_t b = 0;
    if constexpr (kRow == RowKind::kWhole) {
      b = ReduceSingleRows<kRow, Op, T>(args, tail, x, first, next_row);
    } else if constexpr (is_short(kRow)) {
      if (args.rows == 1) b = ReduceSingleRows<kRow, Op, T>(args, tail, x, first, next_row);
      b = ReduceAllNeighbours<kRow, Op, T>(args, tail, x, first, b);
    } else if constexpr (kRow == RowKind::kInTiles) {
      ReduceAllNeighbours<kRow, Op, T>(args, tail, x, first, 0);
      continue;
    } else if constexpr (kRow == RowKind::kLong && kLongInTurn<T>) {
      if (args.rows == 1 && args.n >= kLeastInTurn && !LeavesStreams<T>()) {
        b = ReduceRowsInTurn<kRow, Op, T>(args, tail, x + args.row[0], args.inner.step, first);
      }
    }
    for (; b < args.inner.count; b += kLanes) {
      const int64_t count = HWY_MIN(args.inner.count - b, kLanes);
      Lanes<Op> blocks[kLanes];
      const int64_t ahead =
          one_group
              ? BytesAhead(args.outer, o, HWY_MIN(groups_ahead, kMostAhead), args.ahead)
              : BytesAhead(args.inner, b, HWY_MIN(groups_ahead * kLanes, kMostAhead), next_row);
      ReduceBlocks<kRow, Op, T>(args, tail, x + b * args.inner.step, ahead, first + b, count,
                                blocks);
      FinishStored(args, blocks, count, first + b);
    }
  }
}

// Kinds of short rows are much code, which small registers gain little from: there, long rows will
// do, with the same sums.
inline constexpr bool kHasShortRows = kN >= 4;

// Rows of tiles of up to so many bytes are read with those of the tiles beside them: tile after
// tile, it takes up to twice as long. Of many rows, so are those of up to twice as many. Measured.
inline constexpr int64_t kMostBesideOthers = 512;

template <class T>
HWY_INLINE bool AreInTiles(const ReduceArgs &args) {
  const int64_t bytes = args.n * static_cast<int64_t>(sizeof(T));
  const int64_t most = args.rows >= 2 * kRowsAtOnce ? 2 * kMostBesideOthers : kMostBesideOthers;
  return args.rows > 1 && bytes <= most && args.inner.step == bytes;
}

template <class T>
HWY_INLINE bool AreKernels(const ReduceArgs &args) {
  const int64_t bytes = kKernel * static_cast<int64_t>(sizeof(T));
  return args.n == kKernel && args.inner.step == bytes;
}

template <class T, class Op>
void ReduceCommon(const ReduceArgs &args) {
  if (args.step != 1 || args.n < kLanes) return ReduceRows<RowKind::kGathered, T, Op>(args);
  if constexpr (kHasShortRows) {
    if (args.n == kLanes) return ReduceRows<RowKind::kOne, T, Op>(args);
    if (args.n == 2 * kLanes) return ReduceRows<RowKind::kTwo, T, Op>(args);
    if (AreKernels<T>(args)) return ReduceRows<RowKind::kKernels, T, Op>(args);
    if (args.n < 2 * kLanes) return ReduceRows<RowKind::kBetween, T, Op>(args);
    if (args.rows == 1 && args.n % kLongStep == 0 && args.n <= kMostInGroup) {
      return ReduceRows<RowKind::kWhole, T, Op>(args);
    }
    if (AreInTiles<T>(args)) return ReduceRows<RowKind::kInTiles, T, Op>(args);
  }
  ReduceRows<RowKind::kLong, T, Op>(args);
}

template <class T, class Op>
void ReduceAlong(const ReduceArgs &args) {
  if constexpr (kIsCommon<T, Op>) {
    ReduceCommon<T, Op>(args);
  } else {
    ReduceRows<RowKind::kAny, T, Op>(args);
  }
  if (args.past_caches) hwy::FlushStream();
}

template <class Op>
void ReduceFloats(const ReduceArgs &args) {
  ReduceAlong<float, AlongRows<float, Op>>(args);
}

template <class T>
void FillDtypeAlong(DtypeIndex dtype, Kernels *table) {
  ForEachReduction([&](auto kind) {
    using Op = decltype(kind);
    table->reduce_along[dtype][Op::kWhat] = ReduceAlong<T, AlongRows<T, Op>>;
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
#if SPK_HAS_SMALL_REGISTERS
namespace {

// Do small registers gain? Not of rows of one step: more are joined at its end than added in it.
// Nor of rows from memory that lie apart, which large ones ask for (HoldsRowsAhead()).
bool sums_gain(const ReduceArgs &args) {
  const bool is_one_step = args.n >= N_AVX3::kLongStep && args.n < 2 * N_AVX3::kLongStep;
  const bool asks = args.from_memory && args.rows > 1;
  return !is_one_step && !asks;
}

void sum_by_either(const ReduceArgs &args) {
  if (sums_gain(args)) return N_AVX2::ReduceFloats<N_AVX2::Sum>(args);
  N_AVX3::ReduceFloats<N_AVX3::Sum>(args);
}
void sum_squares_by_either(const ReduceArgs &args) {
  if (sums_gain(args)) return N_AVX2::ReduceFloats<N_AVX2::SumSquares>(args);
  N_AVX3::ReduceFloats<N_AVX3::SumSquares>(args);
}

void fill_sums_by_either(Kernels *table) {
  table->reduce_along[kF32][kSum] = sum_by_either;
  table->reduce_along[kF32][kSumSquares] = sum_squares_by_either;
}

}  // namespace
#endif
void fill_reduce_along(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillReduceAlong)(table);
#if SPK_HAS_SMALL_REGISTERS
  if (takes_small_registers()) fill_sums_by_either(table);
#endif
}
}  // namespace spk
#endif
