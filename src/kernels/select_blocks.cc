// The top blocks of scopes of small contiguous blocks that lie one after the other, straight in
// memory: scopes are lanes, and are cut at the k-th largest key of a block.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select_blocks.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <bit>
#include <limits>

#include "kernels/block_keys-inl.h"
#include "kernels/kernels.h"
#include "kernels/partners-inl.h"
#include "kernels/prefetch.h"
#include "kernels/select_few-inl.h"
#include "kernels/tables.h"
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
using ScopeKey = hwy::MakeSigned<T>;

template <typename T>
HWY_INLINE Vec<T> SquaresOf(Vec<T> v) {
  return hn::Mul(v, v);
}

// The sum of N registers, neighbours first: as BlockSums does.
template <typename T, int64_t N>
HWY_INLINE Vec<T> SumOf(const Vec<T> *v) {
  if constexpr (N == 1) {
    return v[0];
  } else {
    return hn::Add(SumOf<T, N / 2>(v), SumOf<T, N / 2>(v + N / 2));
  }
}

// Keys of a register of scopes of `elements` elements each, in a row for each block.
template <typename T, int64_t N>
HWY_INLINE void StoreKeys(const T *x, int64_t elements, Panel<ScopeKey<T>> *panel) {
  constexpr int64_t kA = kAtom<T>;
  constexpr int64_t kTogether = HWY_MAX(N, kA);
  for (int64_t first = 0; first < elements; first += kTogether) {
    Vec<T> square[kTogether];
    for (int64_t at = 0; at < kTogether; at += kA) {
      for (int64_t i = 0; i < kA; ++i) {
        prefetch_far(x + (first + at + i) * kLanesOf<T>, kFar);
      }
      LoadTransposed(x, elements, first + at, square + at);
    }
    for (Vec<T> &v : square) v = SquaresOf<T>(v);
    for (int64_t b = 0; b < kTogether / N; ++b) {
      hn::Store(KeysOf(Tag<T>(), SumOf<T, N>(square + b * N)), Tag<ScopeKey<T>>(),
                panel->element[first / N + b]);
    }
  }
}

// Adds, in each lane, what is in those that differ from it in the lowest kBits bits of their number.
template <typename T, size_t kBits>
HWY_INLINE Vec<T> SumOverLanes(Vec<T> v) {
  if constexpr (kBits == 0) {
    return v;
  } else {
    const Vec<T> sum = SumOverLanes<T, kBits - 1>(v);
    return hn::Add(sum, ExchangeUnits<(sizeof(T) << (kBits - 1))>(Tag<T>(), sum));
  }
}

// Zeroes the blocks whose keys are not above the cut of their scope.
template <typename T, int64_t N>
HWY_INLINE void MaskScope(const T *x, T *y, int64_t elements, ScopeKey<T> cut_of_scope,
                          int64_t near) {
  constexpr Tag<T> d;
  constexpr Tag<ScopeKey<T>> dk;
  constexpr int64_t kL = kLanesOf<T>;
  constexpr int64_t kOwn = HWY_MAX(N / kL, 1);  // registers of a block
  constexpr auto kBits = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(N / kOwn)));
  const Vec<ScopeKey<T>> cut = hn::Set(dk, cut_of_scope);
  for (int64_t e = 0; e < elements; e += kOwn * kL) {
    Vec<T> element[kOwn];
    Vec<T> sum[kOwn];
    for (int64_t r = 0; r < kOwn; ++r) {
      prefetch_near(x + e + r * kL, near);
      element[r] = hn::LoadU(d, x + e + r * kL);
      sum[r] = SumOverLanes<T, kBits>(SquaresOf<T>(element[r]));
    }
    const Vec<ScopeKey<T>> key = hn::BitCast(dk, hn::Abs(SumOf<T, kOwn>(sum)));
    const auto stays = hn::RebindMask(d, hn::Gt(key, cut));
    for (int64_t r = 0; r < kOwn; ++r) {
      hn::StoreU(hn::IfThenElseZero(stays, element[r]), d, y + e + r * kL);
    }
  }
}

// A register of scopes. If that leaves a doubt all of them keep all, and it returns false.
template <typename T, int64_t N>
HWY_INLINE bool SelectScopes(const SelectFewArgs &few, const ScopeRows<ScopeKey<T>> &rows,
                             const T *x, T *y, Panel<ScopeKey<T>> *panel) {
  constexpr int64_t kL = kLanesOf<T>;
  const int64_t elements = few.n * N;
  StoreKeys<T, N>(x, elements, panel);
  SortHalves(rows, few.n, 1, panel);
  const bool certain = !CutColumn(few, 0, panel);
  const int64_t near = HWY_MAX(kNear, kL * elements * static_cast<int64_t>(sizeof(T)));
  for (int64_t s = 0; s < kL; ++s) {
    const ScopeKey<T> cut = certain ? panel->cut[s] : ScopeKey<T>{-1};
    MaskScope<T, N>(x + s * elements, y + s * elements, elements, cut, near);
  }
  return certain;
}

template <typename T, int64_t N>
bool SelectBlocks(const BlockKeysArgs &args, int64_t k) {
  constexpr int64_t kL = kLanesOf<T>;
  static_assert(kL <= kMostScopeLanes);
  Panel<ScopeKey<T>> panel;
  const PanelRows<ScopeKey<T>> rows(panel);
  SelectFewArgs few{};
  few.n = args.per_scope;
  few.counts = &k;
  few.nan_key = std::numeric_limits<ScopeKey<T>>::max();
  few.margin = kKeyMargin;
  PreparePanel(few, &panel);
  const int64_t scopes = args.blocks / few.n;
  bool certain = true;
  for (int64_t r = 0; r < args.rows; ++r) {
    const auto *x = reinterpret_cast<const T *>(args.x + r * args.x_row);
    auto *y = reinterpret_cast<T *>(args.y + r * args.y_row);
    for (int64_t s = 0; s < scopes; s += kL) {
      // The last ones may have been selected before, which changes nothing.
      const int64_t at = HWY_MIN(s, scopes - kL) * few.n * N;
      certain &= SelectScopes<T, N>(few, rows.rows(), x + at, y + at, &panel);
    }
  }
  return certain;
}

template <typename T>
void FillBlocksOf(DtypeIndex dtype, Kernels *table) {
  table->select_blocks[dtype][0] = SelectBlocks<T, 2>;
  table->select_blocks[dtype][1] = SelectBlocks<T, 4>;
  table->select_blocks[dtype][2] = SelectBlocks<T, 8>;
  table->select_blocks[dtype][3] = SelectBlocks<T, 16>;
}

}  // namespace

void FillSelectBlocks([[maybe_unused]] Kernels *table) {
  if constexpr (!kIsPortable) {
    FillBlocksOf<float>(kF32, table);
    FillBlocksOf<double>(kF64, table);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillSelectBlocks);
void fill_select_blocks(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillSelectBlocks)(table);
}
}  // namespace spk
#endif
