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

// Keys of a register of scopes of `elements` elements each, in a row for each block.
template <typename T, int64_t N>
HWY_INLINE void StoreKeys(const T *x, int64_t elements, Panel<ScopeKey<T>> *panel) {
  using R = SquareOf<T>;
  constexpr int64_t kA = kAtom<Word<T>>;
  constexpr int64_t kTogether = HWY_MAX(N, kA);
  const auto *words = reinterpret_cast<const Word<T> *>(x);
  for (int64_t first = 0; first < elements; first += kTogether) {
    Vec<Word<T>> rows[kTogether];
    for (int64_t at = 0; at < kTogether; at += kA) {
      LoadTransposed(words, elements, first + at, rows + at);
    }
    HWY_ALIGN Word<T> moved[kTogether][kScopes<T>];
    for (int64_t i = 0; kIsNarrow<T> && i < kTogether; ++i) {
      hn::Store(rows[i], Tag<Word<T>>(), moved[i]);
    }
    for (int64_t c = 0; c < kScopes<T>; c += kLanesOf<R>) {
      Vec<R> square[kTogether];
      for (int64_t i = 0; i < kTogether; ++i) {
        if constexpr (kIsNarrow<T>) {
          square[i] = SquaresFrom(Tag<R>(), reinterpret_cast<const T *>(moved[i] + c));
        } else {
          square[i] = hn::Mul(rows[i], rows[i]);
        }
      }
      for (int64_t b = 0; b < kTogether / N; ++b) {
        hn::Store(KeysOf(Tag<R>(), SumOf<R, N>(square + b * N)), Tag<ScopeKey<T>>(),
                  panel->element[first / N + b] + c);
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

// Zeroes the blocks whose sums are not above the cut of their scope. A cut that is certain lies
// between the ends of all keys: sums beyond those are on the right side of it as they are.
template <typename T, int64_t N>
HWY_INLINE void MaskScope(const T *x, T *y, int64_t elements, ScopeKey<T> cut_of_scope,
                          int64_t near) {
  using R = SquareOf<T>;
  constexpr Tag<ScopeKey<T>> dk;
  constexpr int64_t kL = kLanesOf<R>;
  constexpr int64_t kOwn = HWY_MAX(N / kL, 1);  // registers of a block
  constexpr auto kBits = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(N / kOwn)));
  const Vec<ScopeKey<T>> cut = hn::Set(dk, cut_of_scope);
  for (int64_t e = 0; e < elements; e += kOwn * kL) {
    Vec<R> sum[kOwn];
    for (int64_t r = 0; r < kOwn; ++r) {
      prefetch_near(x + e + r * kL, near);
      sum[r] = SumOverLanes<R, kBits>(SquaresFrom(Tag<R>(), x + e + r * kL));
    }
    const Vec<ScopeKey<T>> key = hn::BitCast(dk, hn::Abs(SumOf<R, kOwn>(sum)));
    const Vec<ScopeKey<T>> stays = hn::VecFromMask(dk, hn::Gt(key, cut));
    for (int64_t r = 0; r < kOwn; ++r) StoreStaying(x + e + r * kL, stays, y + e + r * kL);
  }
}

// Some scopes. If that leaves a doubt all of them keep all, and it returns false.
template <typename T, int64_t N>
HWY_INLINE bool KeepInScopes(const SelectFewArgs &few, const ScopeRows<ScopeKey<T>> &rows,
                             const T *x, T *y, Panel<ScopeKey<T>> *panel) {
  const int64_t elements = few.n * N;
  StoreKeys<T, N>(x, elements, panel);
  SortHalves(rows, few.n, kColumns<T>, panel);
  bool certain = true;
  for (int64_t c = 0; c < kColumns<T>; ++c) {
    certain &= !CutColumn(few, c * kLanesOf<SquareOf<T>>, panel);
  }
  const int64_t bytes = kScopes<T> * elements * static_cast<int64_t>(sizeof(T));
  for (int64_t s = 0; s < kScopes<T>; ++s) {
    const ScopeKey<T> cut = certain ? panel->cut[s] : ScopeKey<T>{-1};
    MaskScope<T, N>(x + s * elements, y + s * elements, elements, cut, HWY_MAX(kNear, bytes));
  }
  return certain;
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
  for (int64_t r = 0; r < args.rows; ++r) {
    const auto *x = reinterpret_cast<const T *>(args.x + r * args.x_row);
    auto *y = reinterpret_cast<T *>(args.y + r * args.y_row);
    for (int64_t s = 0; s < scopes; s += kScopes<T>) {
      // The last ones may have been selected before: what went is 0 now, and goes again.
      const int64_t at = HWY_MIN(s, scopes - kScopes<T>) * few.n * N;
      if (!KeepInScopes<T, N>(few, rows.rows(), x + at, y + at, &panel)) return false;
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
