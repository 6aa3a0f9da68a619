// The rows that thresholds, multipliers and masks write: how those of a call are walked, copied and
// zeroed.
#if defined(SPK_KERNELS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_ROWS_INL_H_
#undef SPK_KERNELS_ROWS_INL_H_
#else
#define SPK_KERNELS_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "kernels/ask_near-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

template <class T>
HWY_INLINE void CopyRow(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n) {
  if (x == y && x_step == y_step) return;
  for (int64_t i = 0; i < n; ++i) y[i * y_step] = x[i * x_step];
}

template <class T>
HWY_INLINE void ZeroRow(T *y, int64_t y_step, int64_t n) {
  if (y_step == 1) {
    std::memset(y, 0, static_cast<size_t>(n) * sizeof(T));
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * y_step] = T{};
  }
}

// Rows of more elements ask whether there is anything to compute; in shorter ones a wrong guess of
// the processor would cost more than the answer saves.
inline constexpr int64_t kLongRow = 256;

// How the rows of a call are handled; told apart once, because many rows are short.
enum class Rows {
  kShort,     // contiguous, one factor each
  kElements,  // contiguous, a factor for each element
  kAny,
};

template <class T>
HWY_INLINE Rows KindOfRows(const ScaleArgs &args, int64_t least) {
  if (args.x_step != 1 || args.y_step != 1) return Rows::kAny;
  if (args.factor_step == 1) return Rows::kElements;
  const bool is_short = args.n >= least && args.n < kLongRow;
  return args.factor_step == 0 && is_short ? Rows::kShort : Rows::kAny;
}

// Are rows contiguous, one after the other, with one factor each, wherever that lies?
template <class T>
HWY_INLINE bool FollowEachOther(const ScaleArgs &args) {
  const int64_t bytes = args.n * static_cast<int64_t>(sizeof(T));
  return args.factor_step == 0 && args.x_step == 1 && args.y_step == 1 && args.x_row == bytes &&
         args.y_row == bytes;
}

// Are rows kLanes elements, one after the other, with the same factors for each two of them? So are
// elements of eight pairs that lie eight and eight.
template <class T>
HWY_INLINE bool AreTwins(const ScaleArgs &args) {
  constexpr int64_t kBytes = kLanes * static_cast<int64_t>(sizeof(T));
  const bool are_rows = args.n == kLanes && args.x_step == 1 && args.y_step == 1 &&
                        args.x_row == kBytes && args.y_row == kBytes;
  return are_rows && args.rows % 2 == 0 && args.factor_step == 1 && args.factor_row == 0;
}
// Each two of them as one.
inline ScaleArgs AsTwins(ScaleArgs args) {
  args.rows /= 2;
  args.x_row *= 2;
  args.y_row *= 2;
  return args;
}

// The factors of rows of up to kMostPicked elements that follow each other, picked from a register
// of them: lane l of register k of the elements, of which there are `registers`, belongs to row
// (k * lanes + l) / n.
inline constexpr int64_t kMostPicked = 16;
// Are factors picked? A register holds those of kN rows, whose elements are n registers; of two
// rows it gains little.
inline constexpr bool kPicks = kN >= 4;

template <class DT, class Indices>
HWY_INLINE void SetPicks(DT d, int64_t n, int64_t registers, Indices *pick) {
  constexpr auto kRegister = static_cast<int64_t>(hn::MaxLanes(d));
  HWY_ALIGN hn::TFromD<hn::RebindToSigned<DT>> row[kRegister];
  int64_t r = 0;
  int64_t element = 0;  // of the row
  for (int64_t k = 0; k < registers; ++k) {
    for (int64_t l = 0; l < kRegister; ++l) {
      row[l] = static_cast<hn::TFromD<hn::RebindToSigned<DT>>>(r);
      if (++element < n) continue;
      element = 0;
      ++r;
    }
    pick[k] = hn::SetTableIndices(d, row);
  }
}

// Groups of one row each are rows of one group: one loop.
inline ScaleArgs WithoutSingleRows(ScaleArgs args) {
  if (args.rows != 1) return args;
  args.rows = args.groups;
  args.x_row = args.x_group;
  args.y_row = args.y_group;
  args.factor_row = args.factor_group;
  args.groups = 1;
  return args;
}

// `soon` as the distance that is asked for. Compared with kFar, it still tells a stream where
// AsksNear(): there they are asked for so far ahead.
inline ScaleArgs WithBytesAhead(ScaleArgs args) {
  args.soon = bytes_ahead(args.soon);
  return args;
}
// The same, but nothing is asked for in streams that are left to the processor.
template <class T>
HWY_INLINE ScaleArgs WithoutStreams(const ScaleArgs &given) {
  ScaleArgs args = WithBytesAhead(given);
  if (LeavesStreams<T>() && given.soon == kFar) args.soon = 0;
  return args;
}

// Calls row(x, y, factor) for each row. The arguments are copied: those of others a store might
// change, as far as compilers know.
template <class T, class F, class Fn>
HWY_INLINE void ForEachRow(const ScaleArgs &given, Fn row) {
  const ScaleArgs args = WithoutSingleRows(given);
  for (int64_t group = 0; group < args.groups; ++group) {
    const std::byte *x = args.x + group * args.x_group;
    std::byte *y = args.y + group * args.y_group;
    const F *factor = static_cast<const F *>(args.factor) + group * args.factor_group;
    for (int64_t r = 0; r < args.rows; ++r) {
      row(reinterpret_cast<const T *>(x), reinterpret_cast<T *>(y), factor);
      x += args.x_row;
      y += args.y_row;
      factor += args.factor_row;
    }
  }
}

// Thresholds a row at a time, each a block, with rows.RunGroups(x, threshold, groups) and
// rows.RunRest(x, threshold, rows): those of each of blocks.outer are `groups` groups of kN, and
// the rest. Returns how many stay.
template <class L, class BlockRows>
HWY_INLINE int64_t ThresholdBlockRows(const ThresholdArgs &args, int64_t groups,
                                      const BlockRows &rows) {
  const ReduceArgs &blocks = args.blocks;
  const int64_t in_groups = groups * kN;
  const int64_t rest = blocks.inner.count - in_groups;
  int64_t kept = 0;
  for (int64_t o = 0; o < blocks.outer.count; ++o) {
    const std::byte *x = blocks.x + blocks.row[0] + o * blocks.outer.step;
    const L *threshold = static_cast<const L *>(args.threshold) + o * blocks.outer.out;
    if (groups > 0) kept += rows.RunGroups(x, threshold, groups);
    if (rest == 0) continue;
    kept += rows.RunRest(x + in_groups * blocks.inner.step, threshold + in_groups, rest);
  }
  return kept;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
