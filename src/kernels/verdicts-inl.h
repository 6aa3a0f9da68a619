// What blocks are told by their thresholds, a register of blocks at a time, and what is then
// written of their rows.
#if defined(SPK_KERNELS_VERDICTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_VERDICTS_INL_H_
#undef SPK_KERNELS_VERDICTS_INL_H_
#else
#define SPK_KERNELS_VERDICTS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/convert-inl.h"
#include "kernels/exact_norms-inl.h"
#include "kernels/fold-inl.h"
#include "kernels/kept_first-inl.h"
#include "kernels/rows-inl.h"
#include "kernels/scale-inl.h"
#include "kernels/scale_narrow-inl.h"
#include "kernels/shrink-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// What is written of a row that is multiplied. Doubles may be dead.
template <class T>
class ShrunkRow {
 public:
  explicit HWY_INLINE ShrunkRow(double factor) : factor_(factor), f_(hn::Set(D(), factor)) {}

  // n elements from x on, which fill registers.
  HWY_INLINE void Write(const T *x, T *y, int64_t n) const {
    for (int64_t i = 0; i < n; i += kN) {
      const V product = hn::Mul(Load(x + i), f_);
      Store(sizeof(T) == sizeof(double) ? UnlessByZero(D(), product, f_) : product, y + i);
    }
  }
  // The same of any n >= kN.
  HWY_INLINE void Rest(const T *x, T *y, int64_t n) const {
    ScaleRun<T, Product>(x, y, n, factor_, 0);
  }

 private:
  double factor_;
  V f_;
};

// The same of 16-bit numbers, as multipliers are applied to them.
template <class T>
class ShrunkNarrowRow {
 public:
  HWY_INLINE ShrunkNarrowRow(const NarrowFactors<T, kN> &factors, int64_t i, double factor)
      : factors_(factors), i_(i), factor_(factor) {}

  // Any n >= kNarrow elements from x on.
  HWY_INLINE void Write(const T *x, T *y, int64_t n) const {
    ScaleShortRow<T, Product>(x, y, n, factors_, i_, factor_, 0);
  }
  HWY_INLINE void Rest(const T *x, T *y, int64_t n) const { Write(x, y, n); }

 private:
  const NarrowFactors<T, kN> &factors_;
  int64_t i_;
  double factor_;
};

// What is written of a row of at least kLeast elements, whether it stays or goes.
template <class T, int64_t kLeast>
class KeptRow {
 public:
  // All bits for a row that stays.
  explicit HWY_INLINE KeptRow(uint32_t keep)
      : keep_(hn::Set(DW(), static_cast<Word>(static_cast<int32_t>(keep)))) {}

  // n elements from x on, which fill registers.
  HWY_INLINE void Write(const T *x, T *y, int64_t n) const {
    for (int64_t i = 0; i < n; i += kWords) Mask(x + i, y + i);
  }

 private:
  using Word = hwy::UnsignedFromSize<sizeof(T)>;
  using DW = hn::CappedTag<Word, kLeast>;
  static constexpr auto kWords = static_cast<int64_t>(hn::MaxLanes(DW()));

  static HWY_INLINE hn::Vec<DW> Words(const T *x) {
    return hn::LoadU(DW(), reinterpret_cast<const Word *>(x));
  }
  HWY_INLINE void Mask(const T *x, T *y) const {
    hn::StoreU(hn::And(keep_, Words(x)), DW(), reinterpret_cast<Word *>(y));
  }

  hn::Vec<DW> keep_;
};

// What is written of a row of at least kLeast elements that is dead: nothing of it is read.
template <class T, int64_t kLeast>
struct ZeroedRow {
  using Word = hwy::UnsignedFromSize<sizeof(T)>;
  using DW = hn::CappedTag<Word, kLeast>;
  static constexpr auto kWords = static_cast<int64_t>(hn::MaxLanes(DW()));

  // n elements at y, which fill registers; and any n.
  HWY_INLINE void Write(const T *, T *y, int64_t n) const {
    for (int64_t i = 0; i < n; i += kWords) {
      hn::StoreU(hn::Zero(DW()), DW(), reinterpret_cast<Word *>(y + i));
    }
  }
  HWY_INLINE void Rest(const T *, T *y, int64_t n) const { ZeroRow(y, 1, n); }
};

// The norm of block i of several blocks of doubles, whose first rows are `step` bytes apart.
struct BlockNorms {
  BlockOfRows first;
  int64_t step;

  double operator()(int64_t i) const {
    return ExactNorm({first.x + i * step, first.row, first.rows, first.n});
  }
};

// What is written in one go at the end of a row is no less.
inline constexpr int64_t kLeastRest = 16;

// What each of kN blocks is told: by the sums of their squares, and where those do not tell, by the
// norms of doubles. What is written of it has at least kLeast elements in one go. Stays(i): block i
// is not zeroed. Soft: Changes(i) of one that stays, and [i], what is written of it then. Hard:
// those that stay are as they were; [i] is for kernels that do not ask which.
template <class Op, class T, int64_t kLeast = kLeastRest>
class Verdicts;
template <class T, int64_t kLeast>
class Verdicts<Soft, T, kLeast> {
 public:
  static constexpr bool kExact = std::is_same_v<T, double>;
  using Sum = std::conditional_t<kExact, SumSquaresExact, SumSquares>;

  // What is judged.
  static HWY_INLINE V Measure(const Accumulator<Sum> &squares) {
    if constexpr (kExact) return ExactRoot(squares.sum, squares.error);
    return Soft::Measure(squares.sum);
  }
  // Returns how many blocks stay alive.
  template <class L>
  HWY_INLINE int64_t Judge(const Soft &soft, V norms, const L *threshold,
                           [[maybe_unused]] const BlockNorms &norm_of) {
    if constexpr (kExact) norms = ExactNorms(norms, norm_of);
    const V factors = ShrinkFactor(norms, soft.ThresholdOf(threshold), soft.eps);
    hn::Store(factors, D(), factor_);
    if constexpr (!kMultipliesAll) stay_ = BitsOf(D(), hn::Ne(factors, hn::Zero(D())));
    if constexpr (kInFloats) narrow_.Take(factor_, 1, kN);
    return CountAlive(factors);
  }
  // Dead doubles are not told apart: they are multiplied by 0 as fast as they are read.
  HWY_INLINE bool Stays(int64_t i) const { return kMultipliesAll || (stay_ >> i) % 2 != 0; }
  HWY_INLINE KeptFirst Order() const { return KeptFirst(kMultipliesAll ? kAllStay : stay_); }
  HWY_INLINE bool Changes(int64_t i) const { return factor_[i] != 1.0; }
  HWY_INLINE auto operator[](int64_t i) const {
    if constexpr (kInFloats) {
      return ShrunkNarrowRow<T>(narrow_, i, factor_[i]);
    } else {
      return ShrunkRow<T>(factor_[i]);
    }
  }

 private:
  static constexpr bool kInFloats = Narrow<T>::kInFloats;
  static constexpr bool kMultipliesAll = sizeof(T) == sizeof(double);
  static_assert(!kInFloats || kLeast >= kNarrow, "what is written in one go");
  struct None {};

  HWY_ALIGN double factor_[kN];
  uint64_t stay_ = 0;  // bit i says whether block i does
  std::conditional_t<kInFloats, NarrowFactors<T, kN>, None> narrow_;
};
template <class T, int64_t kLeast>
class Verdicts<Hard, T, kLeast> {
 public:
  using Sum = SumSquares;

  static HWY_INLINE V Measure(const Accumulator<Sum> &squares) {
    return Hard::Measure(squares.sum);
  }
  template <class L>
  HWY_INLINE int64_t Judge(const Hard &, V squares, const L *threshold,
                           [[maybe_unused]] const BlockNorms &norm_of) {
    if constexpr (std::is_same_v<T, double>) {
      const M stay = StayExactly(squares, Load(threshold), norm_of);
      hn::Store(KeepWords(stay), DU32(), keep_);
      stay_ = BitsOf(D(), stay);
      return static_cast<int64_t>(hn::CountTrue(D(), stay));
    } else {
      const Hard::Kept kept = Hard::Judge(squares, threshold);
      hn::Store(kept.words, DU32(), keep_);
      stay_ = BitsOf(DF(), kept.stay);
      return kept.count;
    }
  }
  HWY_INLINE bool Stays(int64_t i) const { return (stay_ >> i) % 2 != 0; }
  HWY_INLINE KeptFirst Order() const { return KeptFirst(stay_); }
  HWY_INLINE KeptRow<T, kLeast> operator[](int64_t i) const { return KeptRow<T, kLeast>(keep_[i]); }

 private:
  HWY_ALIGN uint32_t keep_[kN];
  uint64_t stay_ = 0;  // bit i says whether block i does
};

// The verdicts on `count` <= kN blocks. Other lanes have a measure of 1, below their thresholds,
// and are not counted.
template <class Op, class L, class OfBlocks>
HWY_INLINE int64_t JudgeSome(const Op &op, V measures, const L *threshold, int64_t count,
                             const BlockNorms &norm_of, OfBlocks *verdicts) {
  if (count == kN) return verdicts->Judge(op, measures, threshold, norm_of);
  HWY_ALIGN L limits[kN];
  std::fill_n(limits, kN, std::numeric_limits<L>::infinity());
  std::copy_n(threshold, count, limits);
  const M judged = hn::FirstN(D(), static_cast<size_t>(count));
  const V known = hn::IfThenElse(judged, measures, hn::Set(D(), 1.0));
  return verdicts->Judge(op, known, limits, norm_of);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
