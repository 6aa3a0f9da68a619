// Thresholding of blocks of one short row each that follow each other, such as 3x3 kernels, and of
// several tiny rows: judged kN at a time, and written before they leave the first cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/threshold_along.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "kernels/ask_near-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/float_registers.h"
#include "kernels/fold-inl.h"
#include "kernels/kernels.h"
#include "kernels/narrow-inl.h"
#include "kernels/prefetch.h"
#include "kernels/rows-inl.h"
#include "kernels/shrink-inl.h"
#include "kernels/tables.h"
#include "kernels/tiny-inl.h"
#include "kernels/turned_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// What each of kN blocks is told, a lane a block, and does to its elements.
template <class Op>
struct VerdictOf;
// Its factor, 0 if it is dead.
template <>
struct VerdictOf<Soft> {
  using DV = D;
  template <class T>
  static HWY_INLINE void Apply(const T *x, V factor, T *y) {
    const M alive = hn::Gt(factor, hn::Zero(D()));
    Store(hn::IfThenElseZero(alive, hn::Mul(Load(x), factor)), y);
  }
};
// All bits if it stays, none if it goes.
template <>
struct VerdictOf<Hard> {
  using DV = DU32;
  template <class T>
  static HWY_INLINE void Apply(const T *x, VU32 keep, T *y) {
    StoreKept(x, keep, y);
  }
};

// Rows of 3, 5, 6 or 7 elements. They and tiny rows are added up one element after the other, a block
// a lane.
inline constexpr int64_t kFew = 0;

// Any number of elements that fill kLanes so many times, and some more.
constexpr int64_t AnyThatFill(int64_t times) {
  return -times;
}

// Blocks of one row of kLength elements, which may be kFew or AnyThatFill(times); or, if they have
// kSeveralRows, of several of which each is_tiny().
template <int64_t kLength, bool kSeveralRows, class T, class Op>
class BlocksAlong {
 public:
  BlocksAlong(const ThresholdArgs &args, const Op &op)
      : n_(args.blocks.n),
        rows_(args.blocks.rows / args.blocks.n),
        to_y_(args.to_y),
        ahead_(AheadOf(args.blocks.soon)),
        far_in_rows_(kSeveralRows ? FarInBlocks(args.blocks, 0, args.blocks.rows) : 0),
        tail_(args.blocks.n),
        op_(op) {
    static_assert(is_tiny(kLength) || !kSeveralRows);
    // Elements of tiny rows are rows of their own.
    for (int64_t r = 0; kSeveralRows && r < rows_; ++r) {
      row_[r] =
          (args.blocks.row[r * kLength] - args.blocks.row[0]) / static_cast<int64_t>(sizeof(T));
    }
    SetPicks(DV(), n(), n(), pick_);
    if constexpr (kInFloats) SetPicks(DN(), n(), n() / 2, pairs_);
  }

  // `count` >= 1 groups of kN blocks; returns how many blocks stay. Roots and divisions take long:
  // sums run a group ahead of them, and they a group ahead of what is written.
  template <class L>
  HWY_INLINE int64_t RunGroups(const std::byte *first, const L *threshold, int64_t count) const {
    const T *x = reinterpret_cast<const T *>(first);
    int64_t kept = 0;
    Judged judged = Judge(x, SumOfGroup(x), threshold, &kept);
    Sum sum{};
    if (count > 1) sum = SumOfGroup(x + Group());
    for (int64_t g = 2; g < count; ++g, x += Group()) {
      const Sum next = SumOfGroup(x + 2 * Group());
      threshold += kN;
      const Judged then = Judge(x + Group(), sum, threshold, &kept);
      Write(x, judged, To(x));
      judged = then;
      sum = next;
    }
    Write(x, judged, To(x));
    if (count > 1) {
      x += Group();
      Write(x, Judge(x, sum, threshold + kN, &kept), To(x));
    }
    return kept;
  }

  // The last blocks, up to kN: with others, which are 0 and go, in a buffer.
  template <class L>
  HWY_INLINE int64_t RunRest(const std::byte *first, const L *threshold, int64_t blocks) const {
    const T *x = reinterpret_cast<const T *>(first);
    if constexpr (kSeveralRows) {
      return RunGathered(OfGathered(), x, threshold, blocks);
    } else {
      return RunGathered(*this, x, threshold, blocks);
    }
  }

 private:
  using Verdict = VerdictOf<Op>;
  using DV = typename Verdict::DV;
  using Picks = decltype(hn::SetTableIndices(
      DV(), static_cast<const hn::TFromD<hn::RebindToSigned<DV>> *>(nullptr)));
  static constexpr bool kAnyLength = kLength <= 0;
  static constexpr int64_t kLongestRow = kLength == kFew ? kLanes - 1
                                         : kAnyLength    ? kMostAlong
                                                         : kLength;
  static constexpr int64_t kMostRows = kSeveralRows ? kMostTinyRows : 1;
  // Elements of a row that fill kLanes; the others are its tail.
  static constexpr int64_t kFilling = kAnyLength ? -kLength * kLanes : kLength / kLanes * kLanes;
  static constexpr bool kInFloats = std::is_same_v<Op, Soft> && Narrow<T>::kInFloats;
  // Are a row's factors spread once? Shorter rows would put more than two in a register. With
  // registers of four doubles it is 3 to 6 % faster (measured on AMD's, Zen 3).
  static constexpr bool kBlends =
      std::is_same_v<Op, Soft> && !kInFloats && kN == 4 && kLength >= kN;
  using PairPicks = decltype(hn::SetTableIndices(DN(), static_cast<const int32_t *>(nullptr)));
  // Of squares: floats will do for hard thresholds.
  using Sum = std::conditional_t<std::is_same_v<Op, Soft>, V, VF>;
  struct Judged {
    hn::Vec<DV> verdict;
    bool is_usual;
  };

  // Pairs take a tenth longer if they are asked for further ahead than kFar; longer rows gain
  // (measured, Zen 4).
  static HWY_INLINE Stages AheadOf(int64_t soon) {
    const Stages ahead = StagesAhead(soon);
    return kLength == 2 && soon == kFar ? Stages{kFar, ahead.near} : ahead;
  }

  HWY_INLINE int64_t n() const { return kAnyLength ? n_ : kLength; }
  HWY_INLINE int64_t Group() const { return kN * n(); }
  HWY_INLINE int64_t rows() const { return kSeveralRows ? rows_ : 1; }
  // Row r of the blocks at p, of T or const T.
  template <class P>
  HWY_INLINE P *Row(P *p, int64_t r) const {
    return kSeveralRows ? p + row_[r] : p;
  }

  // The same, of blocks whose rows of kN follow each other.
  BlocksAlong OfGathered() const {
    BlocksAlong gathered = *this;
    for (int64_t r = 0; r < rows(); ++r) gathered.row_[r] = r * Group();
    return gathered;
  }
  template <class L>
  HWY_INLINE int64_t RunGathered(const BlocksAlong &gathered, const T *x, const L *threshold,
                                 int64_t blocks) const {
    HWY_ALIGN T elements[kN * kLongestRow * kMostRows] = {};
    HWY_ALIGN L limits[kN];
    const int64_t in_row = blocks * n();
    std::fill_n(limits, kN, L{1});
    std::copy_n(threshold, blocks, limits);
    for (int64_t r = 0; r < rows(); ++r) {
      std::copy_n(Row(x, r), in_row, gathered.Row(elements, r));
    }
    int64_t kept = 0;
    const Sum sum = gathered.SumOf(op_, elements);
    gathered.Write(elements, gathered.Judge(elements, sum, limits, &kept), elements);
    for (int64_t r = 0; r < rows(); ++r) {
      std::copy_n(gathered.Row(elements, r), in_row, Row(To(x), r));
    }
    return kept;
  }

  HWY_INLINE Sum SumOfGroup(const T *x) const {
    if constexpr (kSeveralRows) {
      for (int64_t r = 0; far_in_rows_ != 0 && r < rows(); ++r) {
        AskFarInRow(Row(x, r), Group(), far_in_rows_);
      }
    } else {
      ask_ahead(x, Group(), ahead_);
    }
    return SumOf(op_, x);
  }
  HWY_INLINE V SumOf(const Soft &, const T *x) const { return Squares(x); }
  HWY_INLINE VF SumOf(const Hard &, const T *x) const {
    if constexpr (is_tiny(kLength)) {
      return SquaresOfElements<VF>(x);
    } else if constexpr (kLength == kFew) {
      return SquaresOfFew<VF>(x, n());
    } else if constexpr (kLength == kLanes || kLength == kKernel) {
      return SquaresOfTurned<kLength>(x);
    } else {
      return ToFloat(Squares(x));
    }
  }
  HWY_INLINE V Squares(const T *x) const {
    if constexpr (is_tiny(kLength)) {
      return SquaresOfElements<V>(x);
    } else if constexpr (kLength == kFew) {
      return SquaresOfFew<V>(x, n());
    } else {
      return SquaresInLanes(x);
    }
  }
  template <class VT>
  HWY_INLINE VT SquaresOfElements(const T *x) const {
    VT squares = hn::Zero(hn::DFromV<VT>());
    for (int64_t r = 0; r < rows(); ++r) {
      VT element[kLength];
      LoadTiny<kLength>(Row(x, r), element);
      // Products of doubles are exact: fused or not, the same sum.
      for (int64_t k = 0; k < kLength; ++k) squares = hn::MulAdd(element[k], element[k], squares);
    }
    return squares;
  }
  HWY_INLINE V SquaresInLanes(const T *x) const {
    const int64_t first = kAnyLength ? tail_.first : Tail<SumSquares>::FirstRegister(kLength);
    Lanes<SumSquares> lanes[kN];
    for (int64_t i = 0; i < kN; ++i, x += n()) {
      for (int64_t e = 0; e < kFilling; e += kLanes) lanes[i].Add(x + e, hn::Zero(D()));
      if (kLength != kFilling) tail_.AddFrom(first, x + n(), hn::Zero(D()), &lanes[i]);
    }
    return Fold(lanes).sum;
  }

  template <class L>
  HWY_INLINE Judged Judge(const T *, V squares, const L *threshold, int64_t *kept) const {
    constexpr bool kIsPair = kLength == 2 && !kSeveralRows;
    const V norm = kIsPair ? op_.MeasureFew(squares) : op_.Measure(squares);
    return JudgeNorm(op_, norm, threshold, kept);
  }
  template <class L>
  HWY_INLINE Judged Judge(const T *x, VF sum, const L *threshold, int64_t *kept) const {
    const auto exact = [&]() HWY_ATTR { return Squares(x); };
    const Hard::Kept blocks = Hard::Judge(sum, threshold, exact);
    *kept += blocks.count;
    return {blocks.words, true};
  }
  template <class L>
  static HWY_INLINE Judged JudgeNorm(const Soft &soft, V norm, const L *threshold, int64_t *kept) {
    const V limit = soft.ThresholdOf(threshold);
    if (HWY_UNLIKELY(!soft.AreUsual(norm))) {
      const V factor = ShrinkFactor(norm, limit, soft.eps);
      *kept += CountAlive(factor);
      return {factor, false};
    }
    const M alive = soft.Alive(norm, limit);
    *kept += static_cast<int64_t>(hn::CountTrue(D(), alive));
    return {hn::IfThenElseZero(alive, soft.Factor(norm, limit)), true};
  }

  HWY_INLINE T *To(const T *x) const {
    return reinterpret_cast<T *>(reinterpret_cast<std::byte *>(const_cast<T *>(x)) + to_y_);
  }

  HWY_INLINE void Write(const T *x, const Judged &judged, T *y) const {
    for (int64_t r = 0; r < rows(); ++r) WriteRow(Row(x, r), judged, Row(y, r));
  }
  HWY_INLINE void WriteRow(const T *x, const Judged &judged, T *y) const {
    if constexpr (std::is_same_v<Op, Soft>) {
      if (HWY_UNLIKELY(!judged.is_usual)) return WriteUnusual(x, judged.verdict, pick_, n(), y);
    }
    if constexpr (kBlends) {
      WriteBlended(x, judged.verdict, y);
    } else {
      int64_t k = 0;
      if constexpr (kInFloats) k = WriteInFloats(x, judged.verdict, y);
      for (; k < n(); ++k) Apply(x, judged.verdict, k, y);
    }
  }

  // One shuffle a row instead of one a register, because conversions keep those busy; blended where a
  // register has elements of two rows. Those of one row are then asked once whether it is alive.
  static HWY_INLINE void WriteBlended(const T *x, V factor, T *y) {
    HWY_ALIGN double factors[kN];
    hn::Store(factor, D(), factors);
    const double *next = factors + 1;
    V row = hn::Set(D(), factors[0]);
    int64_t left = kLength;  // of the row's elements
    for (int64_t k = 0; k < kLength; ++k, left -= kN) {
      V of_elements = row;
      if (left <= kN && k + 1 < kLength) {
        row = hn::Set(D(), *next++);
        of_elements = hn::IfThenElse(hn::FirstN(D(), static_cast<size_t>(left)), of_elements, row);
        left += kLength;
      }
      Verdict::Apply(x + k * kN, of_elements, y + k * kN);
    }
  }

  // Register k of the elements of a group.
  HWY_INLINE void Apply(const T *x, hn::Vec<DV> verdict, int64_t k, T *y) const {
    Verdict::Apply(x + k * kN, hn::TableLookupLanes(verdict, pick_[k]), y + k * kN);
  }

  // Two of them at a time, times factors that are floats; returns how many.
  HWY_INLINE int64_t WriteInFloats(const T *x, V factor, T *y) const {
    const VN factors = AsFloats(factor);
    int64_t k = 0;
    for (; k + 2 <= n(); k += 2) {
      const VN product = ProductInFloats(x + k * kN, hn::TableLookupLanes(factors, pairs_[k / 2]));
      if (HWY_LIKELY((Narrow<T>::StoreTold(product, y + k * kN)))) continue;
      Apply(x, factor, k, y);
      Apply(x, factor, k + 1, y);
    }
    return k;
  }

  static HWY_NOINLINE void WriteUnusual(const T *x, V factor, const Picks *pick, int64_t n, T *y) {
    for (int64_t k = 0; k < n; ++k) {
      StoreShrunk(x + k * kN, hn::TableLookupLanes(factor, pick[k]), y + k * kN);
    }
  }

  Picks pick_[kLongestRow];
  PairPicks pairs_[kInFloats ? kLongestRow / 2 : 1];
  int64_t row_[kMostRows];  // elements from the first to each
  int64_t n_;
  int64_t rows_;
  int64_t to_y_;
  Stages ahead_;
  int64_t far_in_rows_;  // of several; 0: nothing is asked for
  Tail<SumSquares> tail_;
  const Op op_;
};

template <int64_t kLength, bool kSeveralRows, class T, class L, class Op>
HWY_NOINLINE int64_t ThresholdBlocksOf(const ThresholdArgs &args, const Op &op) {
  const BlocksAlong<kLength, kSeveralRows, T, Op> along(args, op);
  // Of rows of 3, the last group is not followed by what is read beyond it.
  const int64_t unread = kLength == kFew && args.blocks.n == 3 ? 1 : 0;
  return ThresholdBlockRows<L>(args, (args.blocks.inner.count - unread) / kN, along);
}

template <int64_t kLength, class T, class L, class Op>
HWY_INLINE int64_t ThresholdRowsOf(const ThresholdArgs &args, const Op &op) {
  return ThresholdBlocksOf<kLength, false, T, L>(args, op);
}
template <int64_t kLength, class T, class L, class Op>
HWY_INLINE int64_t ThresholdTinyRows(const ThresholdArgs &args, const Op &op) {
  if (args.blocks.rows == kLength) return ThresholdRowsOf<kLength, T, L>(args, op);
  return ThresholdBlocksOf<kLength, true, T, L>(args, op);
}

template <class T, class L, class Op>
HWY_INLINE int64_t ThresholdAlong(const ThresholdArgs &args, const Op &op) {
  const int64_t n = args.blocks.n;
  if (n == 2) return ThresholdTinyRows<2, T, L>(args, op);
  if (n == 4) return ThresholdTinyRows<4, T, L>(args, op);
  if (n < kLanes) return ThresholdRowsOf<kFew, T, L>(args, op);
  if (n == kLanes) return ThresholdRowsOf<kLanes, T, L>(args, op);
  if (n == kKernel) return ThresholdRowsOf<kKernel, T, L>(args, op);
  if (n == 2 * kLanes) return ThresholdRowsOf<2 * kLanes, T, L>(args, op);
  if (n == 3 * kLanes) return ThresholdRowsOf<3 * kLanes, T, L>(args, op);
  if (n < 2 * kLanes) return ThresholdRowsOf<AnyThatFill(1), T, L>(args, op);
  if (n < 3 * kLanes) return ThresholdRowsOf<AnyThatFill(2), T, L>(args, op);
  return ThresholdRowsOf<AnyThatFill(3), T, L>(args, op);
}

template <class T, class L>
int64_t ShrinkAlong(const ThresholdArgs &args) {
  return ThresholdAlong<T, L>(args,
                              Soft{hn::Set(D(), args.threshold_scale), hn::Set(D(), args.eps)});
}

template <class T, class L>
int64_t DropAlong(const ThresholdArgs &args) {
  return ThresholdAlong<T, L>(args, Hard());
}

template <class T>
void FillAlong(DtypeIndex dtype, Kernels *table) {
  table->shrink_along[dtype][0] = ShrinkAlong<T, float>;
  table->shrink_along[dtype][1] = ShrinkAlong<T, double>;
  table->drop_along[dtype][0] = DropAlong<T, float>;
  table->drop_along[dtype][1] = DropAlong<T, double>;
}

void FillThresholdAlong(Kernels *table) {
  if constexpr (kPicks) {
    FillAlong<float>(kF32, table);
    FillAlong<F16>(kF16, table);
    FillAlong<Bf16>(kBf16, table);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillThresholdAlong);
#if SPK_HAS_SMALL_REGISTERS
namespace {

// Rows of kLanes and some more gain; of shorter ones and of several, pairs alone (measured).
template <class L>
int64_t shrink_short_rows_by_either(const ThresholdArgs &args) {
  const ReduceArgs &blocks = args.blocks;
  const bool are_pairs = blocks.n == 2 && blocks.rows == 2;
  const bool gains = (blocks.n >= kLanes && blocks.n < 2 * kLanes) || are_pairs;
  return gains ? N_AVX2::ShrinkAlong<float, L>(args) : N_AVX3::ShrinkAlong<float, L>(args);
}

void fill_short_rows_by_either(Kernels *table) {
  table->shrink_along[kF32][0] = shrink_short_rows_by_either<float>;
  table->shrink_along[kF32][1] = shrink_short_rows_by_either<double>;
}

}  // namespace
#endif
void fill_threshold_along(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillThresholdAlong)(table);
#if SPK_HAS_SMALL_REGISTERS
  if (takes_small_registers()) fill_short_rows_by_either(table);
#endif
}
}  // namespace spk
#endif
