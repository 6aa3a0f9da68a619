// Rows of words become columns.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/transpose.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include "kernels/kernels.h"
#include "kernels/tables.h"
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace {

// TransposeArgs in words.
template <typename T>
struct WordRows {
  const T *x;
  T *y;
  int64_t x_row, y_row;

  HWY_INLINE void MoveWord(int64_t row, int64_t column) const {
    y[column * y_row + row] = x[row * x_row + column];
  }
  // As many rows as a register has lanes, of as many columns as a register block.
  HWY_INLINE void MoveBlocks(int64_t row, int64_t column) const {
    constexpr Tag<T> d;
    constexpr int64_t kA = kAtom<T>;
    Vec<T> words[kA];
    for (int64_t i = 0; i < kA; ++i) {
      words[i] = LoadBlocks(d, x + (row + i) * x_row + column, kA * x_row);
    }
    TransposeBlocks(words);
    for (int64_t i = 0; i < kA; ++i) hn::StoreU(words[i], d, y + (column + i) * y_row + row);
  }
};

// Some columns at a time, so that the lines they are written to stay in the first cache until they
// are full.
template <typename T>
void Transpose(const TransposeArgs &args) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  constexpr int64_t kColumns = 64;
  const WordRows<T> words{reinterpret_cast<const T *>(args.x), reinterpret_cast<T *>(args.y),
                          args.x_row / kSize, args.y_row / kSize};
  const int64_t whole_rows = args.rows / kLanesOf<T> * kLanesOf<T>;
  for (int64_t first = 0; first < args.columns; first += kColumns) {
    const int64_t end = HWY_MIN(first + kColumns, args.columns);
    const int64_t whole_end = end - (end - first) % kAtom<T>;
    for (int64_t r = 0; r < whole_rows; r += kLanesOf<T>) {
      for (int64_t c = first; c < whole_end; c += kAtom<T>) words.MoveBlocks(r, c);
      for (int64_t c = whole_end; c < end; ++c) {
        for (int64_t i = r; i < r + kLanesOf<T>; ++i) words.MoveWord(i, c);
      }
    }
    for (int64_t r = whole_rows; r < args.rows; ++r) {
      for (int64_t c = first; c < end; ++c) words.MoveWord(r, c);
    }
  }
}

}  // namespace

void FillTranspose(Kernels *table) {
  table->transpose[kKeys16] = Transpose<int16_t>;
  table->transpose[kKeys32] = Transpose<int32_t>;
  table->transpose[kKeys64] = Transpose<int64_t>;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillTranspose);
void fill_transpose(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillTranspose)(table);
}
}  // namespace spk
#endif
