// Masks: rows of elements kept or zeroed.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/mask.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstring>
#include <type_traits>

#include "kernels/ask_near-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/keep_mask-inl.h"
#include "kernels/kernels.h"
#include "kernels/prefetch.h"
#include "kernels/rows-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Short rows, and what is left of longer ones, are moved at most eight words at a time.
template <class T>
using MaskWords = hn::CappedTag<T, 8>;

// What the bytes of a mask say: those that are not 0 keep, or prune.
class Sense {
 public:
  explicit HWY_INLINE Sense(const ScaleArgs &args) : flip_(args.prunes ? 1 : 0) {}

  HWY_INLINE bool Keeps(uint8_t byte) const { return (byte != 0) != (flip_ != 0); }
  // 1 for each that keeps, else 0.
  template <class DB>
  HWY_INLINE hn::Vec<DB> Kept(DB d, hn::Vec<DB> bytes) const {
    return hn::Xor(hn::Min(bytes, hn::Set(d, 1)), hn::Set(d, flip_));
  }
  // Of bytes in memory, as a mask of words.
  template <class DW>
  HWY_INLINE hn::Mask<DW> Mask(DW d, const uint8_t *bytes) const {
    const hn::Rebind<uint8_t, DW> db;
    return AreSet(d, Kept(db, hn::LoadU(db, bytes)));
  }
  // Of n bytes, `step` apart: 1 for each that keeps, else 0.
  HWY_INLINE void WhichStay(const uint8_t *bytes, int64_t step, int64_t n, uint8_t *stays) const {
    const hn::ScalableTag<uint8_t> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t i = 0;
    if (step == 1) {
      for (; i + lanes <= n; i += lanes) hn::StoreU(Kept(d, hn::LoadU(d, bytes + i)), d, stays + i);
    }
    for (; i < n; ++i) stays[i] = Keeps(bytes[i * step]);
  }

 private:
  uint8_t flip_;
};

// A register, with a mask's byte for each element.
template <class DW, class T = hn::TFromD<DW>>
HWY_INLINE void MaskRegister(DW d, const T *x, T *y, const uint8_t *mask, Sense sense,
                             int64_t soon) {
  if (soon != 0) prefetch_far(x, soon);
  hn::StoreU(hn::IfThenElseZero(sense.Mask(d, mask), hn::LoadU(d, x)), d, y);
}

// Whole registers of a contiguous row, from element i on. Returns how far it came.
template <class DW, class T = hn::TFromD<DW>>
HWY_INLINE int64_t MaskRegisters(DW d, const T *x, T *y, int64_t i, int64_t n, const uint8_t *mask,
                                 Sense sense, int64_t soon) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= n; i += lanes) MaskRegister(d, x + i, y + i, mask + i, sense, soon);
  return i;
}

// Rows of kLanes words that share their bytes of the mask, two of them in a register.
template <class T>
inline constexpr bool kTwinsFit = hn::MaxLanes(hn::CappedTag<T, 2 * kLanes>()) == 2 * kLanes;

template <class T>
HWY_INLINE void MaskTwins(const T *x, T *y, const uint8_t *mask, Sense sense, int64_t soon,
                          bool asks_near) {
  const hn::CappedTag<T, 2 * kLanes> d;
  const hn::CappedTag<uint64_t, 2> twice;
  uint64_t bytes;
  static_assert(sizeof bytes == kLanes);
  std::memcpy(&bytes, mask, sizeof bytes);
  if (soon != 0) prefetch_far(x, soon);
  if (asks_near) prefetch_near(x, kNear);
  const hn::Rebind<uint8_t, decltype(d)> db;
  const auto kept = AreSet(d, sense.Kept(db, hn::BitCast(db, hn::Set(twice, bytes))));
  hn::StoreU(hn::IfThenElseZero(kept, hn::LoadU(d, x)), d, y);
}

// A byte of the mask for each element of the row.
template <class T>
HWY_INLINE void MaskElements(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n,
                             const uint8_t *mask, int64_t mask_step, Sense sense, int64_t soon) {
  int64_t i = 0;
  if (x_step == 1 && y_step == 1 && mask_step == 1) {
    i = MaskRegisters(hn::ScalableTag<T>(), x, y, 0, n, mask, sense, soon);
    i = MaskRegisters(MaskWords<T>(), x, y, i, n, mask, sense, soon);
  }
  for (; i < n; ++i) y[i * y_step] = sense.Keeps(mask[i * mask_step]) ? x[i * x_step] : T{};
}

// A short row, kept or not without a branch: which of them are kept is hard to guess.
template <class T>
HWY_INLINE void MaskShortRow(const T *x, T *y, int64_t n, bool keep) {
  const MaskWords<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mask = hn::Set(d, keep ? static_cast<T>(~T{0}) : T{0});
  const auto last = hn::And(mask, hn::LoadU(d, x + n - lanes));
  for (int64_t i = 0; i + lanes < n; i += lanes) {
    hn::StoreU(hn::And(mask, hn::LoadU(d, x + i)), d, y + i);
  }
  hn::StoreU(last, d, y + n - lanes);
}

template <class T>
HWY_INLINE void MaskRow(const T *x, int64_t x_step, T *y, int64_t y_step, int64_t n, bool keep) {
  if (keep) {
    CopyRow(x, x_step, y, y_step, n);
  } else {
    ZeroRow(y, y_step, n);
  }
}

// Rows of a few words that follow each other: a register holds what the mask says of kRows rows,
// and the registers of their words pick theirs from it.
template <class T>
class PickedMasks {
 public:
  using DW = hn::ScalableTag<T>;
  static constexpr auto kRows = static_cast<int64_t>(hn::MaxLanes(DW()));
  // Narrow registers would not hold many rows.
  static constexpr bool kIsFit = kRows >= kLanes;

  explicit HWY_INLINE PickedMasks(int64_t n) : n_(n) { SetPicks(DW(), n, n, pick_); }

  // Returns how many rows have been masked.
  HWY_INLINE int64_t Mask(const T *x, T *y, int64_t rows, const uint8_t *mask, Sense sense,
                          int64_t soon) const {
    const DW d;
    int64_t row = 0;
    for (; row + kRows <= rows; row += kRows) {
      const auto kept = hn::VecFromMask(d, sense.Mask(d, mask + row));
      for (int64_t k = 0; k < n_; ++k, x += kRows, y += kRows) {
        if (soon != 0) prefetch_far(x, soon);
        const auto words = hn::TableLookupLanes(kept, pick_[k]);
        hn::StoreU(hn::And(words, hn::LoadU(d, x)), d, y);
      }
    }
    return row;
  }

 private:
  using Picks =
      decltype(hn::SetTableIndices(DW(), static_cast<const std::make_signed_t<T> *>(nullptr)));

  int64_t n_;
  Picks pick_[kMostPicked];
};

#if HWY_TARGET != HWY_SCALAR
// Of 16-bit words they pick bytes, of which 128 bits hold those of 16 rows.
template <>
class PickedMasks<uint16_t> {
 public:
  using DW = hn::CappedTag<uint16_t, 16>;
  static constexpr int64_t kRows = 16;
  static constexpr bool kIsFit = true;

  // Counts rather than divides, which would take longer than a small box.
  explicit HWY_INLINE PickedMasks(int64_t n) : registers_(n * kRows / kWords) {
    HWY_ALIGN uint8_t row_of[2 * kWords];
    uint8_t row = 0;
    int64_t left = n;  // words of the row
    for (int64_t k = 0; k < registers_; ++k) {
      for (int64_t word = 0; word < kWords; ++word) {
        row_of[2 * word] = row_of[2 * word + 1] = row;
        if (--left > 0) continue;
        ++row;
        left = n;
      }
      pick_[k] = hn::Load(DB(), row_of);
    }
  }

  HWY_INLINE int64_t Mask(const uint16_t *x, uint16_t *y, int64_t rows, const uint8_t *mask,
                          Sense sense, int64_t soon) const {
    const DW d;
    const DB bytes;
    int64_t row = 0;
    for (; row + kRows <= rows; row += kRows) {
      const auto given = sense.Kept(bytes, hn::LoadDup128(bytes, mask + row));
      const auto kept = hn::VecFromMask(bytes, hn::Ne(given, hn::Zero(bytes)));
      for (int64_t k = 0; k < registers_; ++k, x += kWords, y += kWords) {
        if (soon != 0) prefetch_far(x, soon);
        const auto words = hn::BitCast(d, hn::TableLookupBytes(kept, pick_[k]));
        hn::StoreU(hn::And(words, hn::LoadU(d, x)), d, y);
      }
    }
    return row;
  }

 private:
  using DB = hn::Repartition<uint8_t, DW>;
  static constexpr auto kWords = static_cast<int64_t>(hn::MaxLanes(DW()));

  int64_t registers_;
  hn::Vec<DB> pick_[kMostPicked * kRows / kWords];
};
#endif

// Rows of T, masked as rows of W that have as many bytes.
template <class W, class T>
HWY_NOINLINE void MaskGroupsOfPickedRows(const ScaleArgs &args) {
  const PickedMasks<W> picked(args.n * (kLineOf<W> / kLineOf<T>));
  const Sense sense(args);
  for (int64_t group = 0; group < args.groups; ++group) {
    const std::byte *x = args.x + group * args.x_group;
    std::byte *y = args.y + group * args.y_group;
    const auto *mask = static_cast<const uint8_t *>(args.factor) + group * args.factor_group;
    int64_t row = picked.Mask(reinterpret_cast<const W *>(x), reinterpret_cast<W *>(y), args.rows,
                              mask, sense, args.soon);
    for (; row < args.rows; ++row) {
      MaskRow(reinterpret_cast<const T *>(x) + row * args.n, 1,
              reinterpret_cast<T *>(y) + row * args.n, 1, args.n, sense.Keeps(mask[row]));
    }
  }
}

// The words in which what the mask says of rows of T is picked: too few of 64 bits are in a
// register.
template <class T>
using PickedWord = std::conditional_t<std::is_same_v<T, uint64_t>, uint32_t, T>;

template <class T>
HWY_INLINE bool ArePicked(const ScaleArgs &args) {
  using W = PickedWord<T>;
  const int64_t words = args.n * (kLineOf<W> / kLineOf<T>);
  return args.rows >= PickedMasks<W>::kRows && args.factor_row == 1 && words < kMostPicked &&
         FollowEachOther<T>(args);
}

// Are all rows whole cache lines?
template <class T>
HWY_INLINE bool AreLines(const ScaleArgs &args) {
  constexpr int64_t kLineBytes = 64;
  const int64_t bytes = args.n * static_cast<int64_t>(sizeof(T));
  const auto at = static_cast<int64_t>(reinterpret_cast<uintptr_t>(args.y));
  return (at | bytes | args.y_row | args.y_group) % kLineBytes == 0;
}

// Of rows that are masked in place, those that stay need not be touched. Worth its while from about
// a cache line on, which is a register at least. Rows that share lines with the next ones have to
// be longer: of shorter ones most lines are written to anyway, in an order that no processor
// foresees.
template <class T>
HWY_INLINE bool AreZeroedInPlace(const ScaleArgs &args) {
  const bool in_place = args.factor_step == 0 && args.x_step == 1 && args.y_step == 1 &&
                        args.x == args.y && args.x_row == args.y_row &&
                        args.x_group == args.y_group;
  const bool share_lines = FollowEachOther<T>(args) && !AreLines<T>(args);
  return in_place && args.n >= (share_lines ? 4 : 1) * kLineOf<T>;
}

// Zeroes at least a cache line of words. With kStream, whole lines, past the caches, which else would
// read them first.
template <bool kStream, class T>
HWY_INLINE void ZeroWords(T *y, int64_t n) {
  const hn::ScalableTag<T> d;
  static_assert(hn::MaxLanes(d) <= kLineOf<T>);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if constexpr (kStream) {
      hn::Stream(hn::Zero(d), d, y + i);
    } else {
      hn::StoreU(hn::Zero(d), d, y + i);
    }
  }
  if (i < n) hn::StoreU(hn::Zero(d), d, y + n - lanes);
}

// A loop over rows: bytes, and bytes of the mask, from one to the next.
struct Loop {
  int64_t count, step, mask_step;
};

// Asks for what is read soon after some rows, also after those that are left alone.
template <class T>
HWY_INLINE void AskAfterRows(const ScaleArgs &args, const std::byte *y, const Loop &rows) {
  const int64_t bytes = args.n * static_cast<int64_t>(sizeof(T));
  for (int64_t row = 0; row < rows.count; ++row) {
    for (int64_t at = 0; at < bytes; at += 64) prefetch_far(y + row * rows.step + at, args.soon);
  }
}

// Zeroes those that go of the rows of one loop, in each repetition by another one: over the rows of
// a tile, say. Which go is hard to guess, hence found out without a branch, and once for all
// repetitions. Rows have kLength elements, or for 0 any number.
template <bool kStream, int64_t kLength, class T>
HWY_INLINE void ZeroRows(const ScaleArgs &args, std::byte *y, const uint8_t *mask, const Loop &rows,
                         const Loop &repeated) {
  const int64_t n = kLength == 0 ? args.n : kLength;
  const Sense sense(args);
  constexpr int64_t kMost = 256;
  uint8_t stays[kMost];
  int64_t gone[kMost];
  for (int64_t first = 0; first < rows.count; first += kMost) {
    const int64_t end = HWY_MIN(first + kMost, rows.count);
    int64_t count = 0;
    sense.WhichStay(mask + first * rows.mask_step, rows.mask_step, end - first, stays);
    // What the mask says of later rows; memory is busy with zeros until then.
    for (int64_t at = 0; rows.mask_step == 1 && at < kMost; at += 64) {
      prefetch_near(mask + first, 2 * kMost + at);
    }
    for (int64_t row = first; row < end; ++row) {
      gone[count] = row * rows.step;
      count += 1 - stays[row - first];
    }
    const auto zero = [&](int64_t r, int64_t g) HWY_ATTR {
      ZeroWords<kStream>(reinterpret_cast<T *>(y + r * repeated.step + gone[g]), n);
    };
    // In the order of memory.
    if (repeated.count == 1 || repeated.step >= rows.step) {
      for (int64_t r = 0; r < repeated.count; ++r) {
        if (args.reads_on && args.soon != 0) {
          const Loop these{end - first, rows.step, 0};
          AskAfterRows<T>(args, y + r * repeated.step + first * rows.step, these);
        }
        for (int64_t g = 0; g < count; ++g) zero(r, g);
      }
    } else {
      for (int64_t g = 0; g < count; ++g) {
        for (int64_t r = 0; r < repeated.count; ++r) zero(r, g);
      }
    }
  }
}

template <bool kStream, int64_t kLength, class T>
HWY_NOINLINE void ZeroInPlace(const ScaleArgs &args) {
  constexpr Loop kOnce{1, 0, 0};
  const auto *mask = static_cast<const uint8_t *>(args.factor);
  const Loop rows{args.rows, args.y_row, args.factor_row};
  const Loop groups{args.groups, args.y_group, args.factor_group};
  if (groups.mask_step == 0) {
    ZeroRows<kStream, kLength, T>(args, args.y, mask, rows, groups);
  } else if (rows.mask_step == 0) {
    ZeroRows<kStream, kLength, T>(args, args.y, mask, groups, rows);
  } else {
    for (int64_t g = 0; g < groups.count; ++g) {
      ZeroRows<kStream, kLength, T>(args, args.y + g * groups.step, mask + g * groups.mask_step,
                                    rows, kOnce);
    }
  }
  if (kStream) hwy::FlushStream();
}

template <class T>
HWY_NOINLINE void MaskRows(const ScaleArgs &args) {
  if constexpr (PickedMasks<PickedWord<T>>::kIsFit) {
    if (ArePicked<T>(args)) return MaskGroupsOfPickedRows<PickedWord<T>, T>(args);
  }
  const auto lanes = static_cast<int64_t>(hn::Lanes(MaskWords<T>()));
  const Sense sense(args);
  switch (KindOfRows<T>(args, lanes)) {
    case Rows::kShort:
      return ForEachRow<T, uint8_t>(args, [n = args.n, sense, soon = args.soon](
                                              const T *x, T *y, const uint8_t *mask) HWY_ATTR {
        if (soon != 0) prefetch_far(x, soon);
        MaskShortRow(x, y, n, sense.Keeps(*mask));
      });
    case Rows::kElements:
      if constexpr (kTwinsFit<T>) {
        if (AreTwins<T>(args)) {
          const bool asks_near = AsksNear() && args.soon == kFar;
          return ForEachRow<T, uint8_t>(
              AsTwins(args),
              [sense, soon = args.soon, asks_near](const T *x, T *y, const uint8_t *mask)
                  HWY_ATTR { MaskTwins(x, y, mask, sense, soon, asks_near); });
        }
      }
      if (args.n == lanes) {
        return ForEachRow<T, uint8_t>(
            args, [sense, soon = args.soon](const T *x, T *y, const uint8_t *mask)
                      HWY_ATTR { MaskRegister(MaskWords<T>(), x, y, mask, sense, soon); });
      }
      return ForEachRow<T, uint8_t>(
          args, [n = args.n, sense, soon = args.soon](const T *x, T *y, const uint8_t *mask)
                    HWY_ATTR { MaskElements(x, 1, y, 1, n, mask, 1, sense, soon); });
    case Rows::kAny:
      return ForEachRow<T, uint8_t>(args, [&](const T *x, T *y, const uint8_t *mask) HWY_ATTR {
        if (args.factor_step == 0) {
          MaskRow(x, args.x_step, y, args.y_step, args.n, sense.Keeps(*mask));
        } else {
          MaskElements(x, args.x_step, y, args.y_step, args.n, mask, args.factor_step, sense,
                       args.soon);
        }
      });
  }
}

template <class T>
HWY_NOINLINE void Mask(const ScaleArgs &args) {
  if (!AreZeroedInPlace<T>(args)) return MaskRows<T>(WithoutStreams<T>(args));
  constexpr int64_t kLine = kLineOf<T>;
  const bool one_line = args.n == kLine;
  if (args.past_caches && AreLines<T>(args)) {
    return one_line ? ZeroInPlace<true, kLine, T>(args) : ZeroInPlace<true, 0, T>(args);
  }
  return one_line ? ZeroInPlace<false, kLine, T>(args) : ZeroInPlace<false, 0, T>(args);
}

void FillMask(Kernels *table) {
  // A mask moves words, whatever they mean.
  table->mask[kF32] = Mask<uint32_t>;
  table->mask[kF64] = Mask<uint64_t>;
  table->mask[kF16] = table->mask[kBf16] = Mask<uint16_t>;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillMask);
void fill_mask(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillMask)(table);
}
}  // namespace spk
#endif
