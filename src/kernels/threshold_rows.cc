// Thresholding of blocks of one contiguous row each: while a row is written, a later one is read,
// step by step, so that memory is busy both ways all the time; a long one may be read whole, then
// written. Rows that stay as they are are not written in place.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/threshold_rows.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <type_traits>

#include "kernels/ask_near-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/float_registers.h"
#include "kernels/fold-inl.h"
#include "kernels/kernels.h"
#include "kernels/prefetch.h"
#include "kernels/rows-inl.h"
#include "kernels/shrink-inl.h"
#include "kernels/tables.h"
#include "kernels/verdicts-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Of doubles, the groups of more elements that are at work do not fit in the first cache.
template <class T>
inline constexpr int64_t kMostInGroupOf = sizeof(T) == sizeof(double) ? kMostInGroup / 2
                                                                      : kMostInGroup;

// Rows that follow each other at any distance. `kWhole`: of whole steps.
template <bool kWhole, class T, class Op>
class RowsInTurn {
 public:
  RowsInTurn(const ThresholdArgs &args, const Op &op)
      : n_(args.blocks.n),
        in_steps_(kWhole ? n_ : (n_ - kLeastRest) / kLongStep * kLongStep),
        step_(args.blocks.inner.step),
        to_y_(args.to_y),
        reads_first_(ReadsFirst(args.blocks)),
        ahead_(AheadOf(args.blocks)),
        tail_(n_),
        op_(op) {}

  // `groups` >= 1 groups of kN rows, of which three fit in the first cache; returns how many rows
  // stay. Roots and divisions take long: sums run a group ahead of them, and they a group ahead of
  // what is written.
  template <class L>
  HWY_INLINE int64_t RunGroups(const std::byte *x, const L *threshold, int64_t groups) const {
    const int64_t group = kN * step_;
    Verdicts<Op, T> verdicts;
    int64_t kept = verdicts.Judge(op_, Measures(x), threshold, Norms(x));
    V measures = groups > 1 ? Measures(x + group) : hn::Zero(D());
    for (int64_t g = 1; g < groups; ++g, x += group) {
      threshold += kN;
      Verdicts<Op, T> then;
      kept += then.Judge(op_, measures, threshold, Norms(x + group));
      if (g + 1 < groups) {
        measures = WriteAndMeasure(x, verdicts, x + 2 * group);
      } else {
        WriteGroup(x, verdicts);
      }
      verdicts = then;
    }
    WriteGroup(x, verdicts);
    return kept;
  }

  // The same one by one.
  template <class L>
  HWY_INLINE int64_t RunRest(const std::byte *x, const L *threshold, int64_t rows) const {
    if constexpr (kMayReadFirst) {
      if (reads_first_) return RunReadingFirst(x, threshold, rows);
    }
    return RunInTurn(x, threshold, rows);
  }

 private:
  // While a row is written, the next one is read.
  template <class L>
  HWY_INLINE int64_t RunInTurn(const std::byte *x, const L *threshold, int64_t rows) const {
    Verdicts<Op, T> verdict;
    int64_t kept = JudgeOne(x, Read(x), *threshold, &verdict);
    for (int64_t r = 1; r < rows; ++r, x += step_) {
      const Lanes<Sum> next = WriteAndRead(x, verdict, 0, verdict.Stays(0), x + step_);
      kept += JudgeOne(x + step_, next, threshold[r], &verdict);
    }
    Write(x, verdict, 0, verdict.Stays(0));
    return kept;
  }
  // A row is read, then written; both ask for what is read later.
  template <class L>
  HWY_INLINE int64_t RunReadingFirst(const std::byte *x, const L *threshold, int64_t rows) const {
    Verdicts<Op, T> verdict;
    int64_t kept = 0;
    for (int64_t r = 0; r < rows; ++r, x += step_) {
      kept += JudgeOne(x, Read(x), threshold[r], &verdict);
      WriteAndAsk(x, verdict);
    }
    return kept;
  }

  using Sum = typename Verdicts<Op, T>::Sum;

  // Long rows of floats in streams that are left to the processor gain up to a seventh in soft
  // thresholds if they are read, then written, and both ask for what is read later (measured, Zen 4;
  // doubles, 16-bit numbers and what is in caches lose as much).
  static constexpr bool kMayReadFirst = std::is_same_v<Op, Soft> && std::is_same_v<T, float>;
  static HWY_INLINE bool ReadsFirst(const ReduceArgs &blocks) {
    constexpr int64_t kLeastBytes = 16384;
    const int64_t bytes = blocks.n * static_cast<int64_t>(sizeof(T));
    return kMayReadFirst && LeavesStreams<T>() && blocks.from_memory &&
           bytes == blocks.inner.step && bytes >= kLeastBytes;
  }

  // Hard thresholds compute little.
  HWY_INLINE Stages AheadOf(const ReduceArgs &blocks) const {
    const int64_t bytes = n_ * static_cast<int64_t>(sizeof(T));
    const bool leaves = std::is_same_v<Op, Hard> && LeavesStreams<T>() && bytes == step_;
    return leaves ? kNothingAhead : Stages{Ahead(blocks), near_in_rows(bytes, step_)};
  }

  // From a row to one that is read soon: of short runs of rows, that of a later run.
  static HWY_INLINE int64_t Ahead(const ReduceArgs &blocks) {
    const int64_t bytes = blocks.n * static_cast<int64_t>(sizeof(T));
    const int64_t run = blocks.outer.step;
    const bool is_stream = blocks.inner.step == bytes;
    const int64_t far = is_stream ? far_in_stream() : kFar;
    if (run != 0 && blocks.inner.count * bytes <= 2 * far) {
      return run * (1 + (far - 1) / (run < 0 ? -run : run));
    }
    return blocks.inner.step * HWY_MAX(1, far / bytes);
  }

  HWY_INLINE BlockNorms Norms(const std::byte *x) const {
    static constexpr int64_t kFirst = 0;
    return {{x, &kFirst, 1, n_}, step_};
  }

  template <class L>
  HWY_INLINE int64_t JudgeOne(const std::byte *x, const Lanes<Sum> &row, L threshold,
                              Verdicts<Op, T> *verdict) const {
    Lanes<Sum> lanes[kN];
    lanes[0] = row;
    return JudgeSome(op_, Verdicts<Op, T>::Measure(Fold(lanes)), &threshold, 1, Norms(x), verdict);
  }

  // All that is read asks for what is read soon.
  HWY_INLINE AskAlong<T> AskFrom(const std::byte *x) const {
    const AskAlong<T> ask{At(x), ahead_};
    if (!kWhole) ask.Ask(n_ / kLongStep * kLongStep, n_ % kLongStep);
    return ask;
  }
  HWY_INLINE Lanes<Sum> Read(const std::byte *x) const { return ReadAnd(x, AskFrom(x)); }
  // Calls between(e) after each step that is read, which begins at element e.
  template <class Fn>
  HWY_INLINE Lanes<Sum> ReadAnd(const std::byte *x, const Fn &between) const {
    Lanes<Sum> lanes;
    AddLong<kWhole>(At(x), n_, tail_, hn::Set(D(), 1.0), &lanes, between);
    return lanes;
  }

  HWY_INLINE V Measures(const std::byte *x) const {
    Lanes<Sum> lanes[kN];
    for (int64_t i = 0; i < kN; ++i) lanes[i] = Read(x + i * step_);
    return Verdicts<Op, T>::Measure(Fold(lanes));
  }
  // Of the group at `next`.
  HWY_INLINE V WriteAndMeasure(const std::byte *x, const Verdicts<Op, T> &verdicts,
                               const std::byte *next) const {
    Lanes<Sum> lanes[kN];
    const KeptFirst order = verdicts.Order();
    for (int64_t k = 0; k < kN; ++k) {
      const int64_t i = order[k];
      lanes[k] = WriteAndRead(x + i * step_, verdicts, i, k < order.kept(), next + k * step_);
    }
    return Verdicts<Op, T>::Measure(Fold(lanes));
  }

  HWY_INLINE void WriteGroup(const std::byte *x, const Verdicts<Op, T> &verdicts) const {
    const KeptFirst order = verdicts.Order();
    for (int64_t k = 0; k < kN; ++k) {
      Write(x + order[k] * step_, verdicts, order[k], k < order.kept());
    }
  }

  HWY_INLINE void Write(const std::byte *x, const Verdicts<Op, T> &verdicts, int64_t i,
                        bool stays) const {
    const T *from = At(x);
    T *y = To(x);
    if (!stays) return ZeroRow(y, 1, n_);
    if constexpr (std::is_same_v<Op, Soft>) {
      if (verdicts.Changes(i)) {
        const auto row = verdicts[i];
        if (in_steps_ > 0) row.Write(from, y, in_steps_);
        return WriteRest(row, from, y);
      }
    }
    CopyRow(from, 1, y, 1, n_);
  }

  HWY_INLINE void WriteAndAsk(const std::byte *x, const Verdicts<Op, T> &verdict) const {
    const T *from = At(x);
    T *y = To(x);
    if (!verdict.Stays(0)) return WriteRowAndAsk(ZeroedRow<T, kLeastRest>(), from, y);
    if (verdict.Changes(0)) return WriteRowAndAsk(verdict[0], from, y);
    CopyRow(from, 1, y, 1, n_);
  }
  template <class Row>
  HWY_INLINE void WriteRowAndAsk(const Row &row, const T *from, T *y) const {
    for (int64_t e = 0; e < in_steps_; e += kLongStep) {
      for (int64_t k = 0; k < kLongStep; k += kLineOf<T>) prefetch_far(from + e + k, ahead_.far);
      row.Write(from + e, y + e, kLongStep);
    }
    WriteRest(row, from, y);
  }

  HWY_INLINE Lanes<Sum> WriteAndRead(const std::byte *x, const Verdicts<Op, T> &verdicts, int64_t i,
                                     bool stays, const std::byte *next) const {
    const T *from = At(x);
    T *y = To(x);
    if (!stays) return WriteRowAndRead(ZeroedRow<T, kLeastRest>(), from, y, next);
    if constexpr (std::is_same_v<Op, Soft>) {
      if (verdicts.Changes(i)) return WriteRowAndRead(verdicts[i], from, y, next);
    }
    CopyRow(from, 1, y, 1, n_);
    return Read(next);
  }
  template <class Row>
  HWY_INLINE Lanes<Sum> WriteRowAndRead(const Row &row, const T *from, T *y,
                                        const std::byte *next) const {
    const AskAlong<T> ask = AskFrom(next);
    const Lanes<Sum> lanes = ReadAnd(next, [&](int64_t e) HWY_ATTR {
      ask(e);
      if (kWhole || e < in_steps_) row.Write(from + e, y + e, kLongStep);
    });
    WriteRest(row, from, y);
    return lanes;
  }

  template <class Row>
  HWY_INLINE void WriteRest(const Row &row, const T *x, T *y) const {
    if (!kWhole) row.Rest(x + in_steps_, y + in_steps_, n_ - in_steps_);
  }

  static HWY_INLINE const T *At(const std::byte *x) { return reinterpret_cast<const T *>(x); }
  HWY_INLINE T *To(const std::byte *x) const {
    return reinterpret_cast<T *>(const_cast<std::byte *>(x) + to_y_);
  }

  int64_t n_;
  int64_t in_steps_;  // elements that are written in steps
  int64_t step_;
  int64_t to_y_;
  bool reads_first_;  // rows, before they are written
  Stages ahead_;
  Tail<Sum> tail_;
  const Op op_;
};

template <bool kWhole, class T, class L, class Op>
HWY_NOINLINE int64_t ThresholdSingleRows(const ThresholdArgs &args, const Op &op) {
  const RowsInTurn<kWhole, T, Op> rows(args, op);
  const ReduceArgs &blocks = args.blocks;
  const int64_t groups = blocks.n <= kMostInGroupOf<T> ? blocks.inner.count / kN : 0;
  return ThresholdBlockRows<L>(args, groups, rows);
}

template <class T, class L, class Op>
HWY_INLINE int64_t ThresholdRows(const ThresholdArgs &args, const Op &op) {
  if (args.blocks.n % kLongStep == 0) return ThresholdSingleRows<true, T, L>(args, op);
  return ThresholdSingleRows<false, T, L>(args, op);
}

template <class T, class L>
int64_t ShrinkRows(const ThresholdArgs &args) {
  return ThresholdRows<T, L>(args,
                             Soft{hn::Set(D(), args.threshold_scale), hn::Set(D(), args.eps)});
}

template <class T, class L>
int64_t DropRows(const ThresholdArgs &args) {
  return ThresholdRows<T, L>(args, Hard());
}

template <class T>
void FillShrinkRows(DtypeIndex dtype, Kernels *table) {
  table->shrink_rows[dtype][0] = ShrinkRows<T, float>;
  table->shrink_rows[dtype][1] = ShrinkRows<T, double>;
}

template <class T>
void FillDropRows(DtypeIndex dtype, Kernels *table) {
  table->drop_rows[dtype][0] = DropRows<T, float>;
  table->drop_rows[dtype][1] = DropRows<T, double>;
}

void FillThresholdRows(Kernels *table) {
  if constexpr (kN >= 4) {
    FillShrinkRows<float>(kF32, table);
    FillShrinkRows<double>(kF64, table);
    if constexpr (Narrow<F16>::kInFloats) FillShrinkRows<F16>(kF16, table);
    if constexpr (Narrow<Bf16>::kInFloats) FillShrinkRows<Bf16>(kBf16, table);
    FillDropRows<float>(kF32, table);
    FillDropRows<double>(kF64, table);
    FillDropRows<F16>(kF16, table);
    FillDropRows<Bf16>(kBf16, table);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillThresholdRows);
#if SPK_HAS_SMALL_REGISTERS
namespace {

// Do small registers gain? Of short rows, what is done once a row takes longer than converting it,
// and fills large ones.
bool rows_gain(const ThresholdArgs &args) {
  constexpr int64_t kLeast = 128;  // measured
  return args.blocks.n >= kLeast;
}

template <class L>
int64_t shrink_rows_by_either(const ThresholdArgs &args) {
  return rows_gain(args) ? N_AVX2::ShrinkRows<float, L>(args) : N_AVX3::ShrinkRows<float, L>(args);
}
template <class L>
int64_t drop_rows_by_either(const ThresholdArgs &args) {
  return rows_gain(args) ? N_AVX2::DropRows<float, L>(args) : N_AVX3::DropRows<float, L>(args);
}

void fill_rows_by_either(Kernels *table) {
  table->shrink_rows[kF32][0] = shrink_rows_by_either<float>;
  table->shrink_rows[kF32][1] = shrink_rows_by_either<double>;
  table->drop_rows[kF32][0] = drop_rows_by_either<float>;
  table->drop_rows[kF32][1] = drop_rows_by_either<double>;
}

}  // namespace
#endif
void fill_threshold_rows(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillThresholdRows)(table);
#if SPK_HAS_SMALL_REGISTERS
  if (takes_small_registers()) fill_rows_by_either(table);
#endif
}
}  // namespace spk
#endif
