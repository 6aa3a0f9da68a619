// Thresholding of tiles, blocks of several short rows that lie beside those of their neighbours:
// while some tiles are written row by row, the next ones are read, so that memory is busy both ways
// all the time. Or some are read and written, while others are asked for that come later. Tiles
// that stay as they are are not written in place, unless they are of 16 bits and short rows.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/threshold_tiles.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

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

// Are tiles read and written one turn after the other, and asked for some turns before? Where the
// second level of cache holds more rows, those from memory are: up to half the time (measured, Zen
// 4).
template <class T>
HWY_INLINE bool GoTurnByTurn(const ThresholdArgs &args) {
  return args.blocks.from_memory && HoldsRowsAhead() &&
         args.blocks.n * static_cast<int64_t>(sizeof(T)) >= kLeastInTileRowAhead;
}

// Tiles whose rows have kLength elements, or for 0 any number from kLongStep on; kTurn of them are
// read before they are written: turn by turn, or while others are written.
template <int64_t kLength, int64_t kTurn, bool kTurnByTurn, class T, class Op>
class TilesInTurn {
 public:
  TilesInTurn(const ThresholdArgs &args, const Op &op)
      : row_(args.blocks.row),
        rows_(args.blocks.rows),
        n_(args.blocks.n),
        in_steps_(n_ % kLongStep == 0 ? n_ : (n_ - kLeastRest) / kLongStep * kLongStep),
        turn_(kTurn * n() * static_cast<int64_t>(sizeof(T))),
        rows_ahead_(HWY_MIN(rows_, HWY_MAX(1, kBytesAhead / turn_))),
        turns_ahead_(TurnsAhead(turn_ * rows_)),
        to_y_(args.to_y),
        tail_(args.blocks.n),
        op_(op) {}

  // `turns` >= 1 turns of tiles, from which it is `next` bytes to the row of tiles that follows,
  // or 0 if none is known; returns how many tiles stay.
  template <class L>
  HWY_INLINE int64_t RunTurns(const std::byte *x, const L *threshold, int64_t turns,
                              int64_t next) const {
    if constexpr (kTurnByTurn) {
      return RunTurnByTurn(x, threshold, turns, next);
    } else {
      return RunInterleaved(x, threshold, turns);
    }
  }

  // The last tiles, fewer than a turn's.
  template <class L>
  HWY_INLINE int64_t RunRest(const std::byte *x, const L *threshold, int64_t count) const {
    Tiles tiles[kGroups];
    const int64_t kept = Read(x, threshold, count, tiles);
    Write(x, count, tiles);
    return kept;
  }

 private:
  // Of what is read next, in the order of reading. The same row some turns further on would be as
  // far, but took up to a fifth longer: of rows a power of two apart caches hold few, and what is
  // asked for too early drives out what is being worked on.
  static constexpr int64_t kBytesAhead = 3072;  // measured
  // Turn by turn, tiles are asked for so many bytes before, in the order of reading, or two turns if
  // that is more, or one if two are so much that they and others leave the cache. Measured.
  static constexpr int64_t kBytesInLaterTurns = int64_t{1} << 14;
  static constexpr int64_t kMostInLaterTurns = int64_t{1} << 18;
  // So many rows before it is read, a row of many is asked for into the first level, too: hard
  // thresholds of floats and doubles take 5 to 10 % less, others as long (measured, Zen 4). Of few,
  // or where processors see a stream, they would take 5 to 30 % more.
  static constexpr int64_t kRowsNear = 3;
  static constexpr int64_t kLeastAskedNear = 16;
  static constexpr bool kAnyLength = kLength == 0;
  // Short rows of 16 bits are masked without asking which stay: a wrong guess takes longer.
  // Measured.
  static constexpr bool kKeptFirst = kAnyLength || sizeof(T) >= sizeof(float);
  static constexpr int64_t kGroups = (kTurn + kN - 1) / kN;
  static constexpr int64_t kLeast = kAnyLength ? kLeastRest : HWY_MIN(kLength, kLeastRest);
  using Tiles = Verdicts<Op, T, kLeast>;
  using Sum = typename Tiles::Sum;

  HWY_INLINE int64_t n() const { return kAnyLength ? n_ : kLength; }

  template <class L>
  HWY_INLINE int64_t RunInterleaved(const std::byte *x, const L *threshold, int64_t turns) const {
    Tiles tiles[kGroups];
    int64_t kept = Read(x, threshold, kTurn, tiles);
    for (int64_t t = 1; t < turns; ++t, x += turn_) {
      threshold += kTurn;
      Lanes<Sum> lanes[kGroups * kN];
      for (int64_t r = 0; r < rows_; ++r) {
        const std::byte *row = x + row_[r];
        AskAhead(x + turn_, r);
        // What is read next has been asked for some rows ago; this gives it more time to arrive.
        WriteRow(row, kTurn, tiles);
        ReadRow(row + turn_, kTurn, lanes);
      }
      kept += Judge(x + turn_, lanes, threshold, kTurn, tiles);
    }
    Write(x, kTurn, tiles);
    return kept;
  }

  template <class L>
  HWY_INLINE int64_t RunTurnByTurn(const std::byte *x, const L *threshold, int64_t turns,
                                   int64_t next) const {
    // Where turns follow each other without a gap, processors see it.
    const bool is_stream = turns == 1 && row_[1] - row_[0] == turn_;
    const bool asks_near = !is_stream && rows_ >= kLeastAskedNear;
    // So many rows of tiles, and turns in them.
    const int64_t rows_ahead = turns_ahead_ / turns;
    const int64_t in_row = turns_ahead_ % turns;
    int64_t kept = 0;
    for (int64_t t = 0; t < turns; ++t, x += turn_, threshold += kTurn) {
      const int64_t rows = t + in_row < turns ? rows_ahead : rows_ahead + 1;
      const bool is_known = !is_stream && (rows == 0 || next != 0);
      const int64_t ahead = is_known ? rows * next + (turns_ahead_ - rows * turns) * turn_ : 0;
      Lanes<Sum> lanes[kGroups * kN];
      for (int64_t r = 0; r < rows_; ++r) {
        if (ahead != 0 && IsAskedForEarly(r)) AskForRow(x + row_[r] + ahead);
        if (asks_near && r + kRowsNear < rows_) AskNearForRow(x + row_[r + kRowsNear]);
        ReadRow(x + row_[r], kTurn, lanes);
      }
      Tiles tiles[kGroups];
      kept += Judge(x, lanes, threshold, kTurn, tiles);
      for (int64_t r = 0; r < rows_; ++r) {
        if (ahead != 0 && !IsAskedForEarly(r)) AskForRow(x + row_[r] + ahead);
        WriteRow(x + row_[r], kTurn, tiles);
      }
    }
    return kept;
  }

  // Of turns of so many bytes.
  static HWY_INLINE int64_t TurnsAhead(int64_t bytes) {
    return 2 * bytes <= kMostInLaterTurns ? HWY_MAX(kBytesInLaterTurns / bytes, 2) : 1;
  }
  // Is row r of those asked for while a turn is read, not while it is written? If all were asked
  // for at once, memory would be idle for the rest. Measured.
  static HWY_INLINE bool IsAskedForEarly(int64_t r) { return r % 3 == 0; }
  HWY_INLINE void AskForRow(const std::byte *row) const {
    for (int64_t at = 0; at < turn_; at += 64) prefetch_far(row + at, 0);
  }
  HWY_INLINE void AskNearForRow(const std::byte *row) const {
    for (int64_t at = 0; at < turn_; at += 64) prefetch_near(row + at, 0);
  }
  // Asks for what is read `rows_ahead_` rows after row r of the turn at x.
  HWY_INLINE void AskAhead(const std::byte *x, int64_t r) const {
    const int64_t soon = r + rows_ahead_;
    AskForRow(x + (soon < rows_ ? row_[soon] : turn_ + row_[soon - rows_]));
  }

  template <class L>
  HWY_INLINE int64_t Judge(const std::byte *x, const Lanes<Sum> *lanes, const L *threshold,
                           int64_t count, Tiles *tiles) const {
    const int64_t step = n() * static_cast<int64_t>(sizeof(T));
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i += kN) {
      const V measures = Tiles::Measure(Fold(lanes + i));
      const BlockNorms norms{{x + i * step, row_, rows_, n()}, step};
      const int64_t some = HWY_MIN(count - i, kN);
      kept += JudgeSome(op_, measures, threshold + i, some, norms, &tiles[i / kN]);
    }
    return kept;
  }

  template <class L>
  HWY_INLINE int64_t Read(const std::byte *x, const L *threshold, int64_t count,
                          Tiles *tiles) const {
    Lanes<Sum> lanes[kGroups * kN];
    for (int64_t r = 0; r < rows_; ++r) ReadRow(x + row_[r], count, lanes);
    return Judge(x, lanes, threshold, count, tiles);
  }
  HWY_INLINE void ReadRow(const std::byte *row, int64_t count, Lanes<Sum> *lanes) const {
    const T *x = reinterpret_cast<const T *>(row);
    for (int64_t i = 0; i < count; ++i, x += n()) AddRow(x, &lanes[i]);
  }
  // In the order of reduce_along.cc.
  HWY_INLINE void AddRow(const T *x, Lanes<Sum> *lanes) const {
    const V unused = hn::Zero(D());
    if constexpr (kAnyLength || kLength >= kLongStep) {
      AddLong<!kAnyLength>(x, n(), tail_, unused, lanes, [](int64_t) {});
    } else {
      for (int64_t e = 0; e < kLength; e += kLanes) lanes->Add(x + e, unused);
    }
  }

  HWY_INLINE void Write(const std::byte *x, int64_t count, const Tiles *tiles) const {
    for (int64_t r = 0; r < rows_; ++r) WriteRow(x + row_[r], count, tiles);
  }
  HWY_INLINE void WriteRow(const std::byte *row, int64_t count, const Tiles *tiles) const {
    const T *x = reinterpret_cast<const T *>(row);
    T *y = reinterpret_cast<T *>(const_cast<std::byte *>(row) + to_y_);
    const int64_t group = kN * n();
    for (int64_t first = 0; first < count; first += kN, ++tiles, x += group, y += group) {
      WriteRowOfGroup(x, y, HWY_MIN(count - first, kN), *tiles);
    }
  }
  // Of `count` <= kN tiles; the lanes of others, the last, are told to go.
  HWY_INLINE void WriteRowOfGroup(const T *x, T *y, int64_t count, const Tiles &tiles) const {
    if constexpr (!kKeptFirst) {
      for (int64_t i = 0; i < count; ++i) WriteRowOf(tiles[i], x + i * n(), y + i * n());
    } else if constexpr (kTurn == 1) {
      WriteRowOfTile(x, y, tiles, 0, tiles.Stays(0));
    } else {
      const KeptFirst order = tiles.Order();
      for (int64_t k = 0; k < count; ++k) {
        const int64_t at = order[k] * n();
        WriteRowOfTile(x + at, y + at, tiles, order[k], k < order.kept());
      }
    }
  }
  HWY_INLINE void WriteRowOfTile(const T *x, T *y, const Tiles &tiles, int64_t i,
                                 bool stays) const {
    if (!stays) return WriteRowOf(ZeroedRow<T, kLeast>(), x, y);
    if constexpr (std::is_same_v<Op, Soft>) {
      if (tiles.Changes(i)) return WriteRowOf(tiles[i], x, y);
    }
    CopyRow(x, 1, y, 1, n());
  }
  template <class Tile>
  HWY_INLINE void WriteRowOf(const Tile &tile, const T *x, T *y) const {
    if constexpr (kAnyLength) {
      for (int64_t e = 0; e < in_steps_; e += kLongStep) tile.Write(x + e, y + e, kLongStep);
      if (in_steps_ < n_) tile.Rest(x + in_steps_, y + in_steps_, n_ - in_steps_);
    } else {
      tile.Write(x, y, kLength);
    }
  }

  const int64_t *row_;
  int64_t rows_;
  int64_t n_;
  int64_t in_steps_;  // elements of a row that are written in steps
  int64_t turn_;      // bytes of a row of the tiles of a turn
  int64_t rows_ahead_;
  int64_t turns_ahead_;
  int64_t to_y_;
  Tail<Sum> tail_;
  const Op op_;
};

template <int64_t kLength, int64_t kTurn, bool kTurnByTurn, class T, class L, class Op>
HWY_NOINLINE int64_t ThresholdTurns(const ThresholdArgs &args, const Op &op) {
  const TilesInTurn<kLength, kTurn, kTurnByTurn, T, Op> tiles(args, op);
  const ReduceArgs &blocks = args.blocks;
  const int64_t turns = blocks.inner.count / kTurn;
  const int64_t in_turns = turns * kTurn;
  const int64_t rest = blocks.inner.count - in_turns;
  int64_t kept = 0;
  for (int64_t o = 0; o < blocks.outer.count; ++o) {
    const std::byte *x = blocks.x + o * blocks.outer.step;
    const L *threshold = static_cast<const L *>(args.threshold) + o * blocks.outer.out;
    const int64_t next = bytes_to_next_row(blocks, o);
    if (turns > 0) kept += tiles.RunTurns(x, threshold, turns, next);
    if (rest == 0) continue;
    kept += tiles.RunRest(x + in_turns * blocks.inner.step, threshold + in_turns, rest);
  }
  return kept;
}

// How many tiles a turn has: rows of them are pieces of up to 128 elements, which was measured. Of
// 16 bits those are short: two registers of tiles are no more to read than one of floats.
template <class T>
inline constexpr int64_t kMostTiles = sizeof(T) < sizeof(float) ? 2 * kN : kN;
template <int64_t kLength, class T>
inline constexpr int64_t kTilesOf = kLength == 0 ? kMostTiles<T> / kN
                                                 : HWY_MIN(kMostTiles<T>, 128 / kLength);
// Of small ones that are read and written turn after turn, up to so many bytes: what is done once a
// turn takes as long as the rest of it.
inline constexpr int64_t kSmallTurn = 4096;

template <int64_t kLength, class T, class L, class Op>
HWY_INLINE int64_t ThresholdTilesOf(const ThresholdArgs &args, const Op &op) {
  constexpr int64_t kTurn = kTilesOf<kLength, T>;
  if constexpr (kHasLargeRegisters) {
    if (GoTurnByTurn<T>(args)) {
      constexpr int64_t kMore = kLength == 0 ? 4 * kTurn : 2 * kTurn;
      const int64_t bytes = args.blocks.rows * args.blocks.n * static_cast<int64_t>(sizeof(T));
      const bool takes_more = kMore * bytes <= kSmallTurn && kMore <= args.blocks.inner.count;
      return takes_more ? ThresholdTurns<kLength, kMore, true, T, L>(args, op)
                        : ThresholdTurns<kLength, kTurn, true, T, L>(args, op);
    }
  }
  return ThresholdTurns<kLength, kTurn, false, T, L>(args, op);
}

template <class T, class L, class Op>
HWY_INLINE int64_t ThresholdTiles(const ThresholdArgs &args, const Op &op) {
  const int64_t n = args.blocks.n;
  if (n == kLanes) return ThresholdTilesOf<kLanes, T, L>(args, op);
  if (n == 2 * kLanes) return ThresholdTilesOf<2 * kLanes, T, L>(args, op);
  if (n == kLongStep) return ThresholdTilesOf<kLongStep, T, L>(args, op);
  return ThresholdTilesOf<0, T, L>(args, op);
}

template <class T, class L>
int64_t ShrinkTiles(const ThresholdArgs &args) {
  return ThresholdTiles<T, L>(args,
                              Soft{hn::Set(D(), args.threshold_scale), hn::Set(D(), args.eps)});
}

template <class T, class L>
int64_t DropTiles(const ThresholdArgs &args) {
  return ThresholdTiles<T, L>(args, Hard());
}

template <class T>
void FillDropTiles(DtypeIndex dtype, Kernels *table) {
  table->drop_tiles[dtype][0] = DropTiles<T, float>;
  table->drop_tiles[dtype][1] = DropTiles<T, double>;
}

void FillThresholdTiles(Kernels *table) {
  table->holds_rows_ahead = HoldsRowsAhead();
  if constexpr (kN >= 4) {
    table->shrink_tiles[kF32][0] = ShrinkTiles<float, float>;
    table->shrink_tiles[kF32][1] = ShrinkTiles<float, double>;
    FillDropTiles<float>(kF32, table);
    FillDropTiles<double>(kF64, table);
    FillDropTiles<F16>(kF16, table);
    FillDropTiles<Bf16>(kBf16, table);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillThresholdTiles);
#if SPK_HAS_SMALL_REGISTERS
namespace {

// Rows of one large register do not gain; nor do long ones, nor tiles from memory, of which fewer
// and larger instructions are further ahead. Measured.
template <class L>
int64_t shrink_tiles_by_either(const ThresholdArgs &args) {
  const int64_t n = args.blocks.n;
  const bool gains = n > kLanes && n <= N_AVX3::kLongStep && !args.blocks.from_memory;
  return gains ? N_AVX2::ShrinkTiles<float, L>(args) : N_AVX3::ShrinkTiles<float, L>(args);
}

void fill_tiles_by_either(Kernels *table) {
  table->shrink_tiles[kF32][0] = shrink_tiles_by_either<float>;
  table->shrink_tiles[kF32][1] = shrink_tiles_by_either<double>;
}

}  // namespace
#endif
void fill_threshold_tiles(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillThresholdTiles)(table);
#if SPK_HAS_SMALL_REGISTERS
  if (takes_small_registers()) fill_tiles_by_either(table);
#endif
}
}  // namespace spk
#endif
