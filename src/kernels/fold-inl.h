// The virtual lanes that sums along a row are kept in, and how they become one number.
#if defined(SPK_KERNELS_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_FOLD_INL_H_
#undef SPK_KERNELS_FOLD_INL_H_
#else
#define SPK_KERNELS_FOLD_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/prefetch.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

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
    V elements[kRegisters];
    LoadLanes(x, elements);
    for (int64_t r = 0; r < kRegisters; ++r) reg[r].Add(elements[r], with);
  }
  // The first `count` elements of kLanes, of which the others are zeros.
  template <class T>
  HWY_INLINE void AddSome(const T *x, int64_t count, V with) {
    for (int64_t r = 0; r < kRegisters; ++r) {
      const int64_t inside = HWY_MIN(HWY_MAX(count - r * kN, 0), kN);
      const auto mask = hn::FirstN(D(), static_cast<size_t>(inside));
      reg[r].Add(hn::IfThenElse(mask, Load(x + r * kN), hn::Set(D(), Op::kPad)), with);
    }
  }
};

// Lanes that wait in memory; nothing is written when they are made.
template <class Op>
struct StoredLanes {
  HWY_ALIGN double sums[Op::kCompensated ? 2 * kLanes : kLanes];  // then errors

  HWY_INLINE void Put(const Lanes<Op> &lanes) {
    for (int64_t r = 0; r < kRegisters; ++r) {
      hn::Store(lanes.reg[r].sum, D(), sums + r * kN);
      if constexpr (Op::kCompensated) hn::Store(lanes.reg[r].error, D(), sums + kLanes + r * kN);
    }
  }
  HWY_INLINE void Take(Lanes<Op> *lanes) const {
    for (int64_t r = 0; r < kRegisters; ++r) {
      lanes->reg[r].sum = hn::Load(D(), sums + r * kN);
      if constexpr (Op::kCompensated) lanes->reg[r].error = hn::Load(D(), sums + kLanes + r * kN);
    }
  }
};

// The last elements of a row of n >= kLanes that do not fill all lanes: they go to the highest, so
// that a load of the row's last kLanes elements finds them in place.
template <class Op>
struct Tail {
  M inside[kRegisters];
  int64_t first;  // the first register with any of them

  static constexpr int64_t LanesBefore(int64_t n) { return (kLanes - n % kLanes) % kLanes; }
  static constexpr int64_t FirstRegister(int64_t n) { return LanesBefore(n) / kN; }

  explicit HWY_INLINE Tail(int64_t n) : first(FirstRegister(n)) {
    const int64_t before = LanesBefore(n);
    for (int64_t r = 0; r < kRegisters; ++r) {
      const int64_t lanes = HWY_MIN(HWY_MAX(before - r * kN, 0), kN);
      inside[r] = hn::Not(hn::FirstN(D(), static_cast<size_t>(lanes)));
    }
  }

  template <class T>
  HWY_INLINE void Add(const T *end, V with, Lanes<Op> *lanes) const {
    AddFrom(first, end, with, lanes);
  }
  // The same with that register from the caller, who may know it when this is compiled.
  template <class T>
  HWY_INLINE void AddFrom(int64_t first_register, const T *end, V with, Lanes<Op> *lanes) const {
    for (int64_t r = 0; r < kRegisters; ++r) {
      if (kRegisters > 1 && r < first_register) continue;  // here, so that registers are known
      const V x = Load(end - kLanes + r * kN);
      const V filled = Op::kPad == 0.0 ? hn::IfThenElseZero(inside[r], x)
                                       : hn::IfThenElse(inside[r], x, hn::Set(D(), Op::kPad));
      lanes->reg[r].Add(filled, with);
    }
  }
};

// Elements of a long row that are added in one go: to four sets of lanes in turn, which hides
// latency and fixes the order of sums for every target.
inline constexpr int64_t kLongStep = 4 * kLanes;
// Rows of more elements are not worth taking whole in groups of kN.
inline constexpr int64_t kMostInGroup = 256;

// Asks ahead for each step of a long row; with 0 not at all: for rows that are in caches as often
// as not, or are asked for elsewhere.
template <class T>
struct AskAlong {
  const T *x;
  Stages ahead;

  HWY_INLINE void operator()(int64_t step) const { Ask(step, kLongStep); }
  HWY_INLINE void Ask(int64_t first, int64_t elements) const {
    ask_ahead(x + first, elements, ahead);
  }
};

// The four sets of lanes of a long row.
template <class Op>
struct LongLanes {
  Lanes<Op> set[4];

  HWY_INLINE LongLanes() {}  // NOLINT(modernize-use-equals-default): as in Lanes

  // Adds a step.
  template <class T>
  HWY_INLINE void Add(const T *x, V with) {
    for (int64_t k = 0; k < 4; ++k) set[k].Add(x + k * kLanes, with);
  }
  // Joins all steps, after which the first two sets are left.
  HWY_INLINE void JoinSteps() {
    set[0].Join(set[2]);
    set[1].Join(set[3]);
  }
  // Adds elements [e, n) of a row of n >= kLanes, less than a step, and joins all.
  template <class T>
  HWY_INLINE Lanes<Op> Finish(const T *x, int64_t e, int64_t n, const Tail<Op> &tail, V with) {
    for (; e + kLanes <= n; e += kLanes) set[0].Add(x + e, with);
    if (e < n) tail.Add(x + n, with, &set[1]);
    set[0].Join(set[1]);
    return set[0];
  }
};

// Adds a row of n >= kLanes elements. Calls between(e) after each step, which began at element e.
// `kWhole`: the row is whole steps.
template <bool kWhole, class Op, class T, class Fn>
HWY_INLINE void AddLong(const T *x, int64_t n, const Tail<Op> &tail, V with, Lanes<Op> *lanes,
                        const Fn &between) {
  LongLanes<Op> sums;
  sums.set[0] = *lanes;
  int64_t e = 0;
  if (kWhole || n >= kLongStep) {
    for (; e + kLongStep <= n; e += kLongStep) {
      sums.Add(x + e, with);
      between(e);
    }
    sums.JoinSteps();
  }
  *lanes = sums.Finish(x, kWhole ? n : e, n, tail, with);
}

// Folds the lanes of kN blocks at once, a lane of the result each: neighbours, then pairs, then
// halves.
#if HWY_TARGET == HWY_SCALAR
template <class Op>
HWY_INLINE Accumulator<Op> Fold(const Lanes<Op> *block) {
  using A = Accumulator<Op>;
  const A *lane = block[0].reg;
  return A::Join(A::Join(A::Join(lane[0], lane[1]), A::Join(lane[2], lane[3])),
                 A::Join(A::Join(lane[4], lane[5]), A::Join(lane[6], lane[7])));
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
HWY_INLINE Accumulator<Op> Fold(const Lanes<Op> *block) {
  using A = Accumulator<Op>;
  if constexpr (kN == 2) {
    A pair[kRegisters];
    for (int64_t r = 0; r < kRegisters; ++r) pair[r] = FoldNeighbours(block[0], block[1], r);
    return A::Join(A::Join(pair[0], pair[1]), A::Join(pair[2], pair[3]));
  }
#if HWY_MAX_BYTES >= 32
  if constexpr (kN == 4) {
    A half[kRegisters];
    for (int64_t r = 0; r < kRegisters; ++r) {
      half[r] =
          FoldHalves(FoldNeighbours(block[0], block[1], r), FoldNeighbours(block[2], block[3], r));
    }
    return A::Join(half[0], half[1]);
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
    return FoldHalves(quad[0], quad[1]);
  }
#endif
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
