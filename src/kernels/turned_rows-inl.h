// Sums of squares of kN short rows at once: rows are turned into registers of one position each,
// which are added up as they are.
#if defined(SPK_KERNELS_TURNED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_TURNED_ROWS_INL_H_
#undef SPK_KERNELS_TURNED_ROWS_INL_H_
#else
#define SPK_KERNELS_TURNED_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

#if HWY_MAX_BYTES < 32

// Rows are not picked in smaller registers (kPicks), and nothing asks for this.
template <int64_t kLength, class T>
VF SquaresOfTurned(const T *x);
template <class VT, class T>
VT SquaresOfFew(const T *x, int64_t n);

#else

// Registers of positions of kN rows, in blocks of 128 bits, of four rows each.
using DTurned = hn::CappedTag<float, 2 * kLanes>;
using VTurned = hn::Vec<DTurned>;
inline constexpr int64_t kTurned = 4;

// The first kLanes elements of a row, and where there is room, those of the row kTurned rows on.
template <class T>
HWY_INLINE VTurned LoadRows(const T *x, [[maybe_unused]] int64_t n) {
  const hn::CappedTag<float, kLanes> row;
  if constexpr (kN == kLanes) {
    return hn::Combine(DTurned(), LoadFloats(row, x + kTurned * n), LoadFloats(row, x));
  } else {
    return LoadFloats(row, x);
  }
}

// Position 3 of blocks, as TransposeBlocks would have it.
HWY_INLINE VTurned TurnLast(const VTurned *rows) {
  const DTurned d;
  return hn::InterleaveUpper(d, hn::InterleaveUpper(d, rows[0], rows[2]),
                             hn::InterleaveUpper(d, rows[1], rows[3]));
}

// Where the second block of a row is.
HWY_INLINE hn::Mask<DTurned> IsUpperBlock() {
  const hn::RebindToUnsigned<DTurned> du;
  const auto bit = hn::And(hn::Iota(du, 0), hn::Set(du, kTurned));
  return hn::RebindMask(DTurned(), hn::Ne(bit, hn::Zero(du)));
}

// Adds up the two blocks of each row.
HWY_INLINE VF JoinBlocks(VTurned sums) {
  if constexpr (kN == kLanes) {
    const VTurned both = hn::Add(sums, hn::SwapAdjacentBlocks(sums));
    return hn::ConcatUpperLower(DF(), hn::UpperHalf(DF(), both), hn::LowerHalf(both));
  } else {
    return hn::Add(hn::LowerHalf(sums), hn::UpperHalf(DF(), sums));
  }
}

// Elements [first, first + kTurned) of kN rows of n elements, one position a register.
template <class T>
HWY_INLINE void LoadTurned(const T *x, int64_t n, int64_t first, VF *position) {
  const hn::CappedTag<float, kTurned> some;
  for (int64_t r = 0; r < kTurned; ++r) {
    const T *row = x + r * n + first;
    if constexpr (kN == kLanes) {
      position[r] = hn::Combine(DF(), LoadFloats(some, row + kTurned * n), LoadFloats(some, row));
    } else {
      position[r] = LoadFloats(some, row);
    }
  }
  TransposeBlocks(position);
}

HWY_INLINE void AddSquare(VF x, VF *squares) {
  *squares = hn::MulAdd(x, x, *squares);
}
HWY_INLINE void AddSquare(VF x, V *squares) {
  const V element = hn::PromoteTo(D(), x);
  *squares = hn::MulAdd(element, element, *squares);  // exact products: fused or not, the same sum
}

// Rows of 3, 5, 6 or 7 elements, one after the other, each added up from its first to its last. Of 3,
// an element beyond the last row is read.
template <class VT, class T>
HWY_INLINE VT SquaresOfFew(const T *x, int64_t n) {
  VT squares = hn::Zero(hn::DFromV<VT>());
  VF position[kTurned];
  LoadTurned(x, n, 0, position);
  for (int64_t k = 0; k < kTurned - 1; ++k) AddSquare(position[k], &squares);
  if (n < kTurned) return squares;
  AddSquare(position[kTurned - 1], &squares);
  LoadTurned(x, n, n - kTurned, position);
  for (int64_t k = 1; k < kTurned; ++k) {
    if (k >= 2 * kTurned - n) AddSquare(position[k], &squares);
  }
  return squares;
}

// In floats; rows of kLength elements, one after the other.
template <int64_t kLength, class T>
HWY_INLINE VF SquaresOfTurned(const T *x) {
  static_assert(kLength == kLanes || kLength == kKernel);
  VTurned rows[kTurned];
  for (int64_t r = 0; r < kTurned; ++r) rows[r] = LoadRows(x + r * kLength, kLength);
  TransposeBlocks(rows);
  VTurned squares = hn::Mul(rows[0], rows[0]);
  for (int64_t k = 1; k < kTurned; ++k) squares = hn::MulAdd(rows[k], rows[k], squares);
  if constexpr (kLength == kKernel) {
    // The last element of a row is that of its last kLanes; what comes before it has been added.
    for (int64_t r = 0; r < kTurned; ++r) rows[r] = LoadRows(x + r * kLength + 1, kLength);
    const auto last = hn::IfThenElseZero(IsUpperBlock(), TurnLast(rows));
    squares = hn::MulAdd(last, last, squares);
  }
  return JoinBlocks(squares);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
