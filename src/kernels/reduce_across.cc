// Norms, extremes and counts whose sums run across rows, one block an element.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_across.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/reduce-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

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
