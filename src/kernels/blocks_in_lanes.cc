// The top blocks of scopes of small contiguous blocks that lie one after the other, straight in
// memory: scopes are lanes, and are cut at the k-th largest key of a block.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocks_in_lanes.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <bit>
#include <limits>
#include <type_traits>

#include "kernels/block_keys-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/partners-inl.h"
#include "kernels/prefetch.h"
#include "kernels/select_few-inl.h"
#include "kernels/tables.h"
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// 16-bit elements are moved as words, and squared as floats.
template <typename T>
inline constexpr bool kIsNarrow = sizeof(T) == 2;
template <typename T>
using Word = std::conditional_t<kIsNarrow<T>, int16_t, T>;
template <typename T>
using ScopeKey = hwy::MakeSigned<SquareOf<T>>;

// Scopes that are selected together: as many as a register holds words. Their squares at a position
// fill kColumns registers.
template <typename T>
inline constexpr int64_t kScopes = kLanesOf<Word<T>>;
template <typename T>
inline constexpr int64_t kColumns = kScopes<T> / kLanesOf<SquareOf<T>>;

namespace {

// Blocks are summed twice: for their keys, in registers of positions, and where they lie, to be
// masked. Both sums are the same tree, neighbours first, so that both have the same bits.
template <typename R, int64_t N>
HWY_INLINE Vec<R> SumOf(const Vec<R> *v) {
  if constexpr (N == 1) {
    return v[0];
  } else {
    return hn::Add(SumOf<R, N / 2>(v), SumOf<R, N / 2>(v + N / 2));
  }
}

// What keys blocks of zeros have: those of their sums, as all others do, or of their places.
enum class Zeros { kSums, kPlaces };

// Keys of a register of scopes of `blocks` blocks each, in a row for each block.
template <typename T, int64_t N, Zeros kZeros>
HWY_INLINE void StoreKeys(const T *x, int64_t blocks, Panel<ScopeKey<T>> *panel) {
  using R = SquareOf<T>;
  constexpr Tag<R> d;
  constexpr Tag<ScopeKey<T>> dk;
  constexpr int64_t kA = kAtom<Word<T>>;
  constexpr int64_t kTogether = HWY_MAX(N, kA);
  const auto *words = reinterpret_cast<const Word<T> *>(x);
  for (int64_t first = 0; first < blocks * N; first += kTogether) {
    Vec<Word<T>> rows[kTogether];
    for (int64_t at = 0; at < kTogether; at += kA) {
      LoadTransposed(words, blocks * N, first + at, rows + at);
    }
    HWY_ALIGN Word<T> moved[kTogether][kScopes<T>];
    for (int64_t i = 0; kIsNarrow<T> && i < kTogether; ++i) {
      hn::Store(rows[i], Tag<Word<T>>(), moved[i]);
    }
    for (int64_t c = 0; c < kScopes<T>; c += kLanesOf<R>) {
      Vec<R> square[kTogether];
      [[maybe_unused]] Vec<R> one[kTogether];
      for (int64_t i = 0; i < kTogether; ++i) {
        Vec<R> element;
        if constexpr (kIsNarrow<T>) {
          element = ElementsFrom(d, reinterpret_cast<const T *>(moved[i] + c));
        } else {
          element = rows[i];
        }
        square[i] = hn::Mul(element, element);
        if constexpr (kZeros == Zeros::kPlaces) one[i] = OnesOf(d, element);
      }
      for (int64_t b = 0; b < kTogether / N; ++b) {
        const Vec<R> sum = SumOf<R, N>(square + b * N);
        const int64_t place = first / N + b;
        Vec<ScopeKey<T>> key;
        if constexpr (kZeros == Zeros::kPlaces) {
          const auto of_place = hn::Set(dk, KeyOfPlace<ScopeKey<T>>(place, blocks));
          key = KeysAmongZeros(d, sum, SumOf<R, N>(one + b * N), of_place);
        } else {
          key = KeysOf(d, sum);
        }
        hn::Store(key, dk, panel->element[place] + c);
      }
    }
  }
}

// Adds, in each lane, what is in those that differ from it in the lowest kBits bits of their
// number.
template <typename R, size_t kBits>
HWY_INLINE Vec<R> SumOverLanes(Vec<R> v) {
  if constexpr (kBits == 0) {
    return v;
  } else {
    const Vec<R> sum = SumOverLanes<R, kBits - 1>(v);
    return hn::Add(sum, ExchangeUnits<(sizeof(R) << (kBits - 1))>(Tag<R>(), sum));
  }
}

// Elements where all bits of `stays` are set, 0 where none is.
template <typename T>
HWY_INLINE void StoreStaying(const T *x, Vec<ScopeKey<T>> stays, T *y) {
  constexpr Tag<ScopeKey<T>> dk;
  if constexpr (kIsNarrow<T>) {
    const hn::Rebind<int16_t, decltype(dk)> d;
    const auto words = hn::LoadU(d, reinterpret_cast<const int16_t *>(x));
    hn::StoreU(hn::And(words, hn::DemoteTo(d, stays)), d, reinterpret_cast<int16_t *>(y));
  } else {
    const auto words = hn::LoadU(dk, reinterpret_cast<const ScopeKey<T> *>(x));
    hn::StoreU(hn::And(words, stays), dk, reinterpret_cast<ScopeKey<T> *>(y));
  }
}

// The keys of places of the lanes of a register that begins with the block at `place`.
template <typename T, int64_t N>
HWY_INLINE Vec<ScopeKey<T>> PlacesOfLanes(int64_t place, int64_t blocks) {
  constexpr Tag<ScopeKey<T>> dk;
  constexpr int kBlockShift = std::countr_zero(static_cast<uint64_t>(N));
  constexpr int kMarginShift = std::countr_zero(static_cast<uint64_t>(kKeyMargin));
  static_assert(kKeyMargin == 1 << kMarginShift);
  const auto later = hn::ShiftRight<kBlockShift>(hn::Iota(dk, ScopeKey<T>{0}));
  const auto first = hn::Set(dk, KeyOfPlace<ScopeKey<T>>(place, blocks));
  return hn::Sub(first, hn::ShiftLeft<kMarginShift>(later));
}

// Zeroes the blocks whose keys are not above the cut of their scope.
template <typename T, int64_t N, Zeros kZeros>
HWY_INLINE void MaskScope(const T *x, T *y, int64_t blocks, ScopeKey<T> cut_of_scope,
                          int64_t near) {
  using R = SquareOf<T>;
  constexpr Tag<R> d;
  constexpr Tag<ScopeKey<T>> dk;
  constexpr int64_t kL = kLanesOf<R>;
  constexpr int64_t kOwn = HWY_MAX(N / kL, 1);  // registers of a block
  constexpr auto kBits = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(N / kOwn)));
  const Vec<ScopeKey<T>> cut = hn::Set(dk, cut_of_scope);
  for (int64_t e = 0; e < blocks * N; e += kOwn * kL) {
    Vec<R> sum[kOwn];
    [[maybe_unused]] Vec<R> ones[kOwn];
    for (int64_t r = 0; r < kOwn; ++r) {
      prefetch_near(x + e + r * kL, near);
      const Vec<R> element = ElementsFrom(d, x + e + r * kL);
      sum[r] = SumOverLanes<R, kBits>(hn::Mul(element, element));
      if constexpr (kZeros == Zeros::kPlaces) ones[r] = SumOverLanes<R, kBits>(OnesOf(d, element));
    }
    Vec<ScopeKey<T>> key;
    if constexpr (kZeros == Zeros::kPlaces) {
      // The cut may lie below the keys of all sums.
      key = KeysAmongZeros(d, SumOf<R, kOwn>(sum), SumOf<R, kOwn>(ones),
                           PlacesOfLanes<T, N>(e / N, blocks));
    } else {
      // A cut that is certain lies between the ends of keys (KeysOf): sums beyond those are on the
      // right side of it as they are.
      key = hn::BitCast(dk, hn::Abs(SumOf<R, kOwn>(sum)));
    }
    const Vec<ScopeKey<T>> stays = hn::VecFromMask(dk, hn::Gt(key, cut));
    for (int64_t r = 0; r < kOwn; ++r) StoreStaying(x + e + r * kL, stays, y + e + r * kL);
  }
}

// Counts the blocks of zeros of scopes, from lane `from` on, that the cut goes through: some stay
// because fewer than k others do, and some go because k is less than all.
template <typename T>
HWY_INLINE int64_t CountTies(const SelectFewArgs &few, const Panel<ScopeKey<T>> &panel,
                             int64_t from) {
  constexpr Tag<ScopeKey<T>> dk;
  const Vec<ScopeKey<T>> first_zero = hn::Set(dk, KeyOfPlace<ScopeKey<T>>(0, few.n));
  const Vec<ScopeKey<T>> leaving = hn::Set(dk, static_cast<ScopeKey<T>>(few.n - *few.counts));
  Vec<ScopeKey<T>> ties = hn::Zero(dk);
  for (int64_t c = 0; c < kScopes<T>; c += kLanesOf<SquareOf<T>>) {
    Vec<ScopeKey<T>> zeros = hn::Zero(dk);
    for (int64_t b = 0; b < few.n; ++b) {
      const auto is_zero = hn::Not(hn::Gt(hn::Load(dk, panel.element[b] + c), first_zero));
      zeros = hn::Sub(zeros, hn::VecFromMask(dk, is_zero));
    }
    const auto before = hn::FirstN(dk, static_cast<size_t>(HWY_MAX(from - c, 0)));
    const auto tie = hn::AndNot(before, hn::Gt(zeros, leaving));
    ties = hn::Add(ties, hn::IfThenElseZero(tie, zeros));
  }
  return SumOfLanes<ScopeKey<T>>(ties);
}

// Some scopes. If that leaves a doubt nothing is written, and it returns false.
template <typename T, int64_t N, Zeros kZeros>
HWY_INLINE bool KeepInScopes(const SelectFewArgs &few, const ScopeRows<ScopeKey<T>> &rows,
                             const T *x, T *y, Panel<ScopeKey<T>> *panel) {
  const int64_t elements = few.n * N;
  StoreKeys<T, N, kZeros>(x, few.n, panel);
  SortHalves(rows, few.n, kColumns<T>, panel);
  bool doubt = false;
  for (int64_t c = 0; c < kColumns<T>; ++c) {
    doubt |= CutColumn(few, c * kLanesOf<SquareOf<T>>, panel);
  }
  if (doubt) return false;
  const int64_t bytes = kScopes<T> * elements * static_cast<int64_t>(sizeof(T));
  for (int64_t s = 0; s < kScopes<T>; ++s) {
    MaskScope<T, N, kZeros>(x + s * elements, y + s * elements, few.n, panel->cut[s],
                            HWY_MAX(kNear, bytes));
  }
  return true;
}

// The same where blocks of zeros tie. Sets how many do, in scopes from `from` on.
template <typename T, int64_t N>
HWY_NOINLINE bool KeepAmongZeros(const SelectFewArgs &few, const ScopeRows<ScopeKey<T>> &rows,
                                 const T *x, T *y, Panel<ScopeKey<T>> *panel, int64_t from,
                                 int64_t *ties) {
  if (!KeepInScopes<T, N, Zeros::kPlaces>(few, rows, x, y, panel)) return false;
  *ties = CountTies<T>(few, *panel, from);
  return true;
}

template <typename T, int64_t N>
bool KeepInLanes(const BlockKeysArgs &args, int64_t k) {
  static_assert(kScopes<T> * static_cast<int64_t>(sizeof(T)) <= kMostRegisterBytes);
  Panel<ScopeKey<T>> panel;
  const PanelRows<ScopeKey<T>> rows(panel);
  SelectFewArgs few{};
  few.n = args.per_scope;
  few.counts = &k;
  few.nan_key = std::numeric_limits<ScopeKey<T>>::max();
  few.margin = kKeyMargin;
  PreparePanel(few, &panel);
  const int64_t scopes = args.blocks / few.n;
  int64_t ties = 0;  // of the register before: where zeros tied, they are likely to tie again
  for (int64_t r = 0; r < args.rows; ++r) {
    const auto *x = reinterpret_cast<const T *>(args.x + r * args.x_row);
    auto *y = reinterpret_cast<T *>(args.y + r * args.y_row);
    for (int64_t s = 0; s < scopes; s += kScopes<T>) {
      // The last ones may have been selected before: what went is 0 now and goes again, or is read
      // elsewhere, and the same.
      const int64_t first = HWY_MIN(s, scopes - kScopes<T>);
      const int64_t at = first * few.n * N;
      if (ties == 0 && KeepInScopes<T, N, Zeros::kSums>(few, rows.rows(), x + at, y + at, &panel)) {
        continue;
      }
      if (!args.ties ||
          !KeepAmongZeros<T, N>(few, rows.rows(), x + at, y + at, &panel, s - first, &ties)) {
        return false;
      }
      *args.ties += ties;
    }
  }
  return true;
}

template <typename T>
void FillLanesFor(DtypeIndex dtype, Kernels *table) {
  table->keep_blocks_in_lanes[dtype][0] = KeepInLanes<T, 2>;
  table->keep_blocks_in_lanes[dtype][1] = KeepInLanes<T, 4>;
  table->keep_blocks_in_lanes[dtype][2] = KeepInLanes<T, 8>;
  table->keep_blocks_in_lanes[dtype][3] = KeepInLanes<T, 16>;
}

}  // namespace

void FillBlocksInLanes([[maybe_unused]] Kernels *table) {
  if constexpr (!kIsPortable) {
    FillLanesFor<float>(kF32, table);
    FillLanesFor<double>(kF64, table);
    FillLanesFor<F16>(kF16, table);
    FillLanesFor<Bf16>(kBf16, table);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillBlocksInLanes);
void fill_blocks_in_lanes(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillBlocksInLanes)(table);
}
}  // namespace spk
#endif
