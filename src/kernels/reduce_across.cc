// Norms, extremes and counts whose sums run across rows, one block an element.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_across.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "kernels/ask_near-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/norms_of_pairs-inl.h"
#include "kernels/prefetch.h"
#include "kernels/reduce-inl.h"
#include "kernels/root-inl.h"
#include "kernels/tables.h"
#include "kernels/tiny-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// What is added at once: rows [row, row + rows) of blocks whose first result is number `at`.
struct RowsOfBlocks {
  int64_t row;
  int64_t rows;
  int64_t at;
};

// Asks for what follows in rows that are long, one element after the other; in others for rows that
// are `rows_ahead` further on, in this box or in the next one.
class RowsAhead {
 public:
  HWY_INLINE RowsAhead(const ReduceArgs &args, int64_t row, int64_t rows, int64_t rows_ahead,
                       bool are_long = false) {
    const int64_t next = row + HWY_MIN(rows_ahead, args.rows);
    const bool has_more = next + rows <= args.rows;
    const int64_t in_next_box = HWY_MIN(HWY_MAX(next - args.rows, 0), args.rows - rows);
    soon_ = args.row + (has_more ? next : in_next_box);
    bytes_ = has_more ? 0 : args.ahead;
    asks_for_rows_ = !are_long && (has_more || args.ahead != 0);
    asks_far_ = args.from_memory && HoldsRowsAhead();
    asks_in_row_ = are_long && (asks_far_ || AsksNear());
  }
  // `x` is where the blocks begin, `r` counts from the first row.
  HWY_INLINE void Ask(const std::byte *x, int64_t r) const {
    if (asks_for_rows_) prefetch_far(x + soon_[r], bytes_);
  }
  template <class T>
  HWY_INLINE void AskInRow(const T *x, int64_t elements) const {
    if (!asks_in_row_) return;
    asks_far_ ? AskFarInRow(x, elements) : AskInTurn(x, elements);
  }

 private:
  const int64_t *soon_;
  int64_t bytes_;
  bool asks_for_rows_;
  bool asks_in_row_;
  bool asks_far_;
};

// Rows of so many bytes are long. Processors see eight of them in turn as streams, and to ask for rows
// that follow took up to a fifth longer. With 16-bit numbers that never lost: they take so long to be
// converted and added that memory would wait.
template <class T>
inline constexpr int64_t kLeastStream = sizeof(T) < sizeof(float) ? INT64_MAX : 4096;

// As TakeRoot; without the divider for blocks of one or two floats.
template <class T, class Op>
HWY_INLINE void TakeRootAcross(const ReduceArgs &args, Accumulator<Op> *sum) {
  if constexpr (Op::kWhat == kSumSquares && !std::is_same_v<T, double>) {
    if (args.roots && args.rows <= 2) {
      sum->sum = RootOfFew(sum->sum);
      return;
    }
  }
  TakeRoot(args, sum);
}

// Rows of one register of `count` <= kN blocks, or of kCount full ones, added to what earlier rows
// have left. kContiguous: nothing is between blocks.
template <int64_t kCount, bool kContiguous, class T, class Op>
HWY_INLINE void AddRows(const ReduceArgs &args, const std::byte *x, int64_t step, int64_t count,
                        const RowsOfBlocks &of, const RowsAhead &ahead) {
  const D d;
  Accumulator<Op> acc[kCount];
  V with[kCount];
  for (int64_t k = 0; k < kCount; ++k) {
    const int64_t at = of.at + k * kN;
    with[k] = hn::Set(d, args.eps);
    if constexpr (Op::kCompensated) {
      with[k] = args.scale ? LoadDoubles(args.scale + at, count) : hn::Set(d, 1.0);
      if (of.row > 0) acc[k].error = LoadDoubles(args.error + at, count);
    }
    if (of.row > 0) acc[k].sum = LoadDoubles(args.sum + at, count);
  }
  for (int64_t r = 0; r < of.rows; ++r) {
    ahead.Ask(x, r);
    if (kCount * kN > kLineOf<T> && step == 1) ahead.Ask(x + 64, r);
    const T *row = reinterpret_cast<const T *>(x + args.row[of.row + r]);
    if (kContiguous && kCount * kN >= kLineOf<T>) ahead.AskInRow(row, kCount * kN);
    for (int64_t k = 0; k < kCount; ++k) {
      acc[k].Add(LoadSome(row + k * kN * step, step, count), with[k]);
    }
  }
  for (int64_t k = 0; k < kCount; ++k) {
    const int64_t at = of.at + k * kN;
    if (of.row + of.rows == args.rows) TakeRootAcross<T>(args, &acc[k]);
    StoreResults(args, acc[k], at, count);
  }
}

// One register, whose code every kind of loop shares; too little to ask for what follows in rows.
template <class T, class Op>
HWY_NOINLINE void AddRegister(const ReduceArgs &args, const std::byte *x, int64_t step,
                              int64_t count, const RowsOfBlocks &of, const RowsAhead &ahead) {
  AddRows<1, false, T, Op>(args, x, step, count, of, ahead);
}

// Blocks from number j on, kCount registers of them at a time; returns how far.
template <int64_t kCount, bool kContiguous, class T, class Op>
HWY_INLINE int64_t AddSideBySide(const ReduceArgs &args, const std::byte *x, int64_t step,
                                 int64_t first, int64_t j, RowsOfBlocks of,
                                 const RowsAhead &ahead) {
  for (; j + kCount * kN <= args.inner.count; j += kCount * kN) {
    of.at = first + j;
    AddRows<kCount, kContiguous, T, Op>(args, x + j * args.inner.step, step, kN, of, ahead);
  }
  return j;
}

// One box, some registers of neighbours at a time. kContiguous: nothing is between them.
template <bool kContiguous, class T, class Op>
HWY_INLINE void ReduceColumns(const ReduceArgs &args, const std::byte *x, int64_t first) {
  const int64_t step = kContiguous ? 1 : args.inner.step / static_cast<int64_t>(sizeof(T));
  // As many registers as two cache lines of a row fill, or as sums leave room for.
  constexpr int64_t kMost = Op::kCompensated ? 2 : 8;
  constexpr int64_t kSideBySide = HWY_MIN(kMost, 2 * kLineOf<T> / kN);
  const int64_t row_bytes = args.inner.count * static_cast<int64_t>(sizeof(T));
  const int64_t rows_ahead = kRowsAtOnce * HWY_MAX(1, 2 * kReadAhead / (kRowsAtOnce * row_bytes));
  const bool are_long = kContiguous && row_bytes >= kLeastStream<T>;
  for (int64_t row = 0; row < args.rows; row += kRowsAtOnce) {
    const int64_t rows = HWY_MIN(args.rows - row, kRowsAtOnce);
    const RowsAhead ahead(args, row, rows, rows_ahead, are_long);
    int64_t j = 0;
    if constexpr (kIsCommon<T, Op>) {
      const RowsOfBlocks of{row, rows, 0};
      j = AddSideBySide<kSideBySide, kContiguous, T, Op>(args, x, step, first, j, of, ahead);
      // What is left may be all there is.
      if constexpr (kSideBySide > 2) {
        j = AddSideBySide<kSideBySide / 2, kContiguous, T, Op>(args, x, step, first, j, of, ahead);
      }
    }
    for (; j + kN <= args.inner.count; j += kN) {
      AddRegister<T, Op>(args, x + j * args.inner.step, step, kN, {row, rows, first + j}, ahead);
    }
    if (j < args.inner.count) {
      AddRegister<T, Op>(args, x + j * args.inner.step, step, args.inner.count - j,
                         {row, rows, first + j}, ahead);
    }
  }
}

// Elements [row, row + some) of blocks, each kCount of which lie beside those of the next block:
// what AddRows would find out for each is known. With kRows > 0 blocks have no others. kBeside
// blocks lie side by side, or if that is 0 args.inner.count.
template <int64_t kCount, int64_t kRows, int64_t kBeside, class T, class Op>
HWY_INLINE void AddFewRows(const ReduceArgs &given, int64_t row, int64_t some) {
  static_assert(kBeside % kN == 0);
  // Copies, as of the elements' places, that no result can change, as far as compilers know.
  const ReduceArgs args = given;
  constexpr int64_t kMost = kRows > 0 ? kRows : kCount * kRowsAtOnce;
  constexpr int64_t kBytes = kCount * kN * static_cast<int64_t>(sizeof(T));  // at once
  const int64_t rows = kRows > 0 ? kRows : some;
  const bool is_first = kRows > 0 || row == 0;
  const bool is_last = kRows > 0 || row + rows == args.rows;
  int64_t offset[kMost];
  std::copy_n(args.row + row, rows, offset);
  const int64_t beside = kBeside > 0 ? kBeside : args.inner.count;
  const bool asks_near = AsksNearFor<T>() && args.soon == kFar;
  const bool has_rows = kCount > 1 && rows > kCount && HoldsRowsAhead();
  const int64_t far = has_rows ? FarInBlocks(args, row, row + rows) : 0;
  const int64_t soon = far != 0 ? far : bytes_ahead(args.soon);
  const D d;
  V with = hn::Set(d, Op::kCompensated ? 1.0 : args.eps);
  for (int64_t o = 0; o < args.outer.count; ++o) {
    const std::byte *x = args.x + o * args.outer.step;
    const int64_t first = o * args.outer.out;
    int64_t j = 0;
    for (; j + kN <= beside; j += kN, x += kN * args.inner.step) {
      const int64_t at = first + j;
      Accumulator<Op> acc;
      if (!is_first) {
        acc.sum = hn::LoadU(d, args.sum + at);
        if constexpr (Op::kCompensated) acc.error = hn::LoadU(d, args.error + at);
      }
      if (Op::kCompensated && args.scale) with = hn::LoadU(d, args.scale + at);
      for (int64_t r = 0; r < rows; r += kCount) {
        for (int64_t b = 0; b < kBytes; b += 64) prefetch_far(x + offset[r] + b, soon);
        if (asks_near) prefetch_near(x + offset[r], kNear);
        V element[kCount];
        LoadTiny<kCount>(reinterpret_cast<const T *>(x + offset[r]), element);
        for (int64_t k = 0; k < kCount; ++k) acc.Add(element[k], with);
      }
      if (is_last) TakeRootAcross<T>(args, &acc);
      StoreResults(args, acc, at, kN);
    }
    if (j < beside) {
      const int64_t step = args.inner.step / static_cast<int64_t>(sizeof(T));
      AddRegister<T, Op>(args, x, step, beside - j, {row, rows, first + j},
                         RowsAhead(args, row, rows, rows));
    }
  }
}

// Blocks of kRows elements, or if that is 0 of up to kRowsAtOnce.
template <int64_t kRows, int64_t kBeside, class T, class Op>
HWY_INLINE void ReduceFewRows(const ReduceArgs &args) {
  AddFewRows<1, kRows, kBeside, T, Op>(args, 0, args.rows);
}

// Blocks of any number of rows of kCount elements, some rows at a time.
template <int64_t kCount, class T, class Op>
HWY_INLINE void ReduceTinyRows(const ReduceArgs &args) {
  constexpr int64_t kAtOnce = kCount * kRowsAtOnce;
  for (int64_t row = 0; row < args.rows; row += kAtOnce) {
    AddFewRows<kCount, 0, 0, T, Op>(args, row, HWY_MIN(args.rows - row, kAtOnce));
  }
}

// A few rows, if they are so long that each is a stream, are reduced faster as the boxes of many
// are; two only if they are floats. Measured.
template <class T>
inline constexpr bool kPairsInBoxes = std::is_same_v<T, float>;

template <bool kContiguous, class T, class Op>
HWY_INLINE void ReduceBoxes(const ReduceArgs &args) {
  for (int64_t o = 0; o < args.outer.count; ++o) {
    ReduceColumns<kContiguous, T, Op>(args, args.x + o * args.outer.step, o * args.outer.out);
  }
}

template <class T, class Op>
HWY_NOINLINE void ReduceAnyAcross(const ReduceArgs &args) {
  if constexpr (kIsCommon<T, Op>) {
    const bool contiguous = args.inner.step == static_cast<int64_t>(sizeof(T));
    // Memory would wait for what loops of boxes take to begin and to end.
    const bool is_short = args.inner.count * static_cast<int64_t>(sizeof(T)) < kLongEnough;
    if (WriteNormsOfPairs<T, Op>(args)) return;
    if (contiguous && args.rows == 2 && (is_short || !kPairsInBoxes<T>)) {
      if (args.inner.count == kLanes) return ReduceFewRows<2, kLanes, T, Op>(args);
      return ReduceFewRows<2, 0, T, Op>(args);
    }
    if (contiguous && args.rows <= kRowsAtOnce && is_short) {
      return ReduceFewRows<0, 0, T, Op>(args);
    }
    // Narrower registers would gain little.
    if constexpr (kN >= 4) {
      if (args.n == 2) return ReduceTinyRows<2, T, Op>(args);
      if (args.n == 4) return ReduceTinyRows<4, T, Op>(args);
    }
    if (contiguous) return ReduceBoxes<true, T, Op>(args);
  }
  ReduceBoxes<false, T, Op>(args);
}

template <class T, class Op>
void ReduceAcross(const ReduceArgs &args) {
  ReduceAnyAcross<T, Op>(args);
  if (args.past_caches) hwy::FlushStream();
}

template <class T>
void FillDtypeAcross(DtypeIndex dtype, Kernels *table) {
  ForEachReduction([&](auto kind) {
    using Op = decltype(kind);
    table->reduce_across[dtype][Op::kWhat] = ReduceAcross<T, Op>;
  });
}

void FillReduceAcross(Kernels *table) {
  FillDtypeAcross<float>(kF32, table);
  FillDtypeAcross<double>(kF64, table);
  FillDtypeAcross<F16>(kF16, table);
  FillDtypeAcross<Bf16>(kBf16, table);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillReduceAcross);
void fill_reduce_across(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillReduceAcross)(table);
}
}  // namespace spk
#endif
