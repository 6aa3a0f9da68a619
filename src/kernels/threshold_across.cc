// Thresholding of blocks of a few elements across rows, one block an element of a row, while they
// are in the first cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/threshold_across.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "kernels/ask_near-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/narrow-inl.h"
#include "kernels/prefetch.h"
#include "kernels/shrink-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Groups of kLanes blocks of kRows elements, or if that is 0 of up to kMostRowsAcross.
template <int64_t kRows, class T, class Op>
class BlocksAcross {
 public:
  BlocksAcross(const ThresholdArgs &args, const Op &op)
      : op_(op),
        rows_(args.blocks.rows),
        to_y_(args.to_y),
        ahead_(stages_of(args.blocks.soon)),
        far_in_rows_(kRows == 0 ? FarInBlocks(args.blocks, 0, args.blocks.rows) : 0),
        thresholds_ahead_(stages_in_stream()) {
    std::copy_n(args.blocks.row, rows(), row_);
  }

  // `count` >= 1 groups, steps apart; returns how many blocks stay.
  template <class L>
  HWY_INLINE int64_t Run(const std::byte *x, int64_t x_step, const L *threshold,
                         int64_t threshold_step, int64_t count) const {
    if constexpr (std::is_same_v<Op, Soft>) {
      return RunAhead(x, x_step, threshold, threshold_step, count);
    } else {
      int64_t kept = 0;
      for (int64_t i = 0; i < count; ++i, x += x_step, threshold += threshold_step) {
        Measure measures[kRegisters];
        MeasureGroup(x, measures);
        ask_ahead(threshold, kLanes, thresholds_ahead_);
        kept += WriteGroup(x, measures, threshold);
      }
      return kept;
    }
  }

 private:
  // The roots of soft thresholds take long: what is measured runs a group ahead of what needs it.
  template <class L>
  HWY_INLINE int64_t RunAhead(const std::byte *x, int64_t x_step, const L *threshold,
                              int64_t threshold_step, int64_t count) const {
    Measure measures[kRegisters];
    MeasureGroup(x, measures);
    int64_t kept = 0;
    for (int64_t i = 1; i < count; ++i, x += x_step, threshold += threshold_step) {
      Measure next[kRegisters];
      MeasureGroup(x + x_step, next);
      ask_ahead(threshold, kLanes, thresholds_ahead_);
      kept += WriteGroup(x, measures, threshold);
      for (int64_t k = 0; k < kRegisters; ++k) measures[k] = next[k];
    }
    return kept + WriteGroup(x, measures, threshold);
  }

  // Norms, or for hard thresholds sums of squares that floats will do for.
  using Measure = std::conditional_t<std::is_same_v<Op, Soft>, V, VF>;

  HWY_INLINE int64_t rows() const { return kRows > 0 ? kRows : rows_; }

  HWY_INLINE void AskForGroup(const std::byte *x) const {
    for (int64_t r = 0; r < rows(); ++r) {
      far_in_rows_ != 0 ? AskFarInRow(Row(x, r), kLanes, far_in_rows_)
                        : ask_ahead(Row(x, r), kLanes, ahead_);
    }
  }
  HWY_INLINE void MeasureGroup(const std::byte *x, Measure *measures) const {
    AskForGroup(x);
    for (int64_t k = 0; k < kRegisters; ++k) measures[k] = MeasureBlocks(op_, x + k * kRegister);
  }
  HWY_INLINE V MeasureBlocks(const Soft &, const std::byte *x) const {
    // What is done for products of Bf16 takes so long that dividers are not waited for.
    constexpr bool kSparesDivider = kRows > 0 && kRows <= 2 && !std::is_same_v<T, Bf16>;
    return kSparesDivider ? Soft::MeasureFew(Squares(x)) : Soft::Measure(Squares(x));
  }
  HWY_INLINE VF MeasureBlocks(const Hard &, const std::byte *x) const {
    VF squares = hn::Zero(DF());
    for (int64_t r = 0; r < rows(); ++r) {
      const VF w = LoadFloats(DF(), Row(x, r));
      squares = hn::MulAdd(w, w, squares);
    }
    return squares;
  }
  HWY_INLINE V Squares(const std::byte *x) const {
    V squares = hn::Zero(D());
    for (int64_t r = 0; r < rows(); ++r) {
      const V w = Load(Row(x, r));
      squares = hn::MulAdd(w, w, squares);  // exact products: fused or not, the same sum
    }
    return squares;
  }

  // Products of 16-bit numbers are told in floats, a register of which has the blocks of kTogether
  // registers of doubles.
  static constexpr bool kInFloats =
      std::is_same_v<Op, Soft> && Narrow<T>::kInFloats && kLanes % kNarrow == 0;
  static constexpr int64_t kTogether = kInFloats ? kNarrow / kN : 1;
  static constexpr auto kRegister = kN * static_cast<int64_t>(sizeof(T));

  template <class L>
  HWY_INLINE int64_t WriteGroup(const std::byte *x, const Measure *measures,
                                const L *threshold) const {
    int64_t kept = 0;
    for (int64_t k = 0; k < kRegisters; k += kTogether) {
      kept += WriteTogether(x + k * kRegister, measures + k, threshold + k * kN);
    }
    return kept;
  }
  template <class L>
  HWY_INLINE int64_t WriteTogether(const std::byte *x, const Measure *measures,
                                   const L *threshold) const {
    if constexpr (kInFloats) {
      bool are_usual = true;
      for (int64_t k = 0; k < kTogether; ++k) are_usual &= op_.AreUsual(measures[k]);
      if (HWY_LIKELY(are_usual)) return WriteInFloats(x, measures, threshold);
    }
    int64_t kept = 0;
    for (int64_t k = 0; k < kTogether; ++k) {
      kept += Write(op_, x + k * kRegister, measures[k], threshold + k * kN);
    }
    return kept;
  }

  // kNarrow blocks of usual norms, whose factors are 0 or well inside the range of floats.
  template <class L>
  HWY_INLINE int64_t WriteInFloats(const std::byte *x, const V *norms, const L *threshold) const {
    HWY_ALIGN double factor[kNarrow];
    int64_t kept = 0;
    for (int64_t k = 0; k < kTogether; ++k) {
      const V limit = op_.ThresholdOf(threshold + k * kN);
      const M alive = op_.Alive(norms[k], limit);
      hn::Store(hn::IfThenElseZero(alive, op_.Factor(norms[k], limit)), D(), factor + k * kN);
      kept += static_cast<int64_t>(hn::CountTrue(D(), alive));
    }
    const VN factors = LoadAsFloats(factor);
    for (int64_t r = 0; r < rows(); ++r) {
      const VN product = ProductInFloats(Row(x, r), factors);
      if (HWY_LIKELY((Narrow<T>::StoreTold(product, To(x, r))))) continue;
      for (int64_t k = 0; k < kNarrow; k += kN) {
        StoreShrunk(Row(x, r) + k, hn::Load(D(), factor + k), To(x, r) + k);
      }
    }
    return kept;
  }

  // kN blocks; returns how many stay.
  template <class L>
  HWY_INLINE int64_t Write(const Soft &soft, const std::byte *x, V norm, const L *threshold) const {
    const V limit = soft.ThresholdOf(threshold);
    if (HWY_UNLIKELY(!soft.AreUsual(norm))) return ShrinkUnusualBlocks(*this, x, norm, limit);
    const M alive = soft.Alive(norm, limit);
    const V factor = soft.Factor(norm, limit);
    for (int64_t r = 0; r < rows(); ++r) {
      Store(hn::IfThenElseZero(alive, hn::Mul(Load(Row(x, r)), factor)), To(x, r));
    }
    return static_cast<int64_t>(hn::CountTrue(D(), alive));
  }
  template <class L>
  HWY_INLINE int64_t Write(const Hard &, const std::byte *x, VF squares, const L *threshold) const {
    const auto exact = [&]() HWY_ATTR { return Squares(x); };
    const Hard::Kept blocks = Hard::Judge(squares, threshold, exact);
    for (int64_t r = 0; r < rows(); ++r) StoreKept(Row(x, r), blocks.words, To(x, r));
    return blocks.count;
  }

  // By value: the address of the caller's object is never taken, and its fields stay in registers.
  static HWY_NOINLINE int64_t ShrinkUnusualBlocks(const BlocksAcross blocks, const std::byte *x,
                                                  V norm, V limit) {
    const V factor = ShrinkFactor(norm, limit, blocks.op_.eps);
    for (int64_t r = 0; r < blocks.rows(); ++r) {
      StoreShrunk(blocks.Row(x, r), factor, blocks.To(x, r));
    }
    return CountAlive(factor);
  }

  HWY_INLINE const T *Row(const std::byte *x, int64_t r) const {
    return reinterpret_cast<const T *>(x + row_[r]);
  }
  HWY_INLINE T *To(const std::byte *x, int64_t r) const {
    return reinterpret_cast<T *>(const_cast<std::byte *>(x) + row_[r] + to_y_);
  }

  const Op op_;
  int64_t row_[kRows > 0 ? kRows : kMostRowsAcross];
  int64_t rows_;
  int64_t to_y_;
  Stages ahead_;
  int64_t far_in_rows_;  // 0: as ahead_ says
  Stages thresholds_ahead_;
};

template <int64_t kRows, class T, class L, class Op>
HWY_NOINLINE int64_t ThresholdRows(const ThresholdArgs &args, const Op &op) {
  constexpr auto kGroup = kLanes * static_cast<int64_t>(sizeof(T));
  const BlocksAcross<kRows, T, Op> across(args, op);
  const L *threshold = static_cast<const L *>(args.threshold);
  const BlockRow inner = args.blocks.inner;
  const BlockRow outer = args.blocks.outer;
  // Short runs would cost more than what is in them: where each step of the outer loop has one
  // group, all of them are one run.
  const bool single = inner.count == kLanes;
  const int64_t runs = single ? 1 : outer.count;
  const int64_t groups = single ? outer.count : inner.count / kLanes;
  const int64_t x_step = single ? outer.step : kGroup;
  const int64_t threshold_step = single ? outer.out : kLanes;
  int64_t kept = 0;
  for (int64_t run = 0; run < runs; ++run) {
    kept += across.Run(args.blocks.x + run * outer.step, x_step, threshold + run * outer.out,
                       threshold_step, groups);
  }
  return kept;
}

template <class T, class L, class Op>
HWY_INLINE int64_t ThresholdAcross(const ThresholdArgs &args, const Op &op) {
  switch (args.blocks.rows) {
    case 1:
      return ThresholdRows<1, T, L>(args, op);
    case 2:
      return ThresholdRows<2, T, L>(args, op);
    case 3:
      return ThresholdRows<3, T, L>(args, op);
    case 4:
      return ThresholdRows<4, T, L>(args, op);
    default:
      return ThresholdRows<0, T, L>(args, op);
  }
}

template <class T, class L>
int64_t ShrinkAcross(const ThresholdArgs &args) {
  return ThresholdAcross<T, L>(args,
                               Soft{hn::Set(D(), args.threshold_scale), hn::Set(D(), args.eps)});
}

template <class T, class L>
int64_t DropAcross(const ThresholdArgs &args) {
  return ThresholdAcross<T, L>(args, Hard());
}

template <class T>
void FillAcross(DtypeIndex dtype, Kernels *table) {
  table->shrink_across[dtype][0] = ShrinkAcross<T, float>;
  table->shrink_across[dtype][1] = ShrinkAcross<T, double>;
  table->drop_across[dtype][0] = DropAcross<T, float>;
  table->drop_across[dtype][1] = DropAcross<T, double>;
}

// Registers of one double would make it much code that gains nothing.
void FillThresholdAcross(Kernels *table) {
  if constexpr (kN > 1) {
    FillAcross<float>(kF32, table);
    FillAcross<F16>(kF16, table);
    FillAcross<Bf16>(kBf16, table);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillThresholdAcross);
void fill_threshold_across(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillThresholdAcross)(table);
}
}  // namespace spk
#endif
