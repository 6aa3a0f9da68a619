// Scopes that lie one after the other, turned into registers of one position each.
#if defined(SPK_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_TRANSPOSE_INL_H_
#undef SPK_KERNELS_TRANSPOSE_INL_H_
#else
#define SPK_KERNELS_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include <utility>

#include "kernels/prefetch.h"
#include "kernels/select_few-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Elements of a register block, the unit of 128 bits inside which elements are interleaved.
template <typename T>
inline constexpr int64_t kAtom = HWY_MIN(kLanesOf<T>, static_cast<int64_t>(16 / sizeof(T)));

#if HWY_TARGET == HWY_SCALAR

template <typename DT, typename T = hn::TFromD<DT>>
HWY_INLINE hn::Vec<DT> LoadBlocks(DT d, const T *x, int64_t) {
  return hn::LoadU(d, x);
}
template <typename VT>
HWY_INLINE void TransposeBlocks(VT *) {}

#else

// A register of blocks that are `step` elements apart.
template <typename DT, typename T = hn::TFromD<DT>>
HWY_INLINE hn::Vec<DT> LoadBlocks(DT d, const T *x, int64_t step) {
  constexpr auto kBlocks = static_cast<int64_t>(hn::MaxLanes(d)) / kAtom<T>;
  if constexpr (kBlocks <= 1) {
    return hn::LoadU(d, x);
  } else {
    const hn::Half<DT> half;
    return hn::Combine(d, LoadBlocks(half, x + kBlocks / 2 * step, step),
                       LoadBlocks(half, x, step));
  }
}

// Transposes, inside each block, as many registers as a block has elements: after as many rounds of
// shuffling as an index has bits, the indices of register and element have changed places.
template <typename VT>
HWY_INLINE void TransposeBlocks(VT *v) {
  constexpr hn::DFromV<VT> d;
  constexpr int64_t kA = kAtom<hn::TFromV<VT>>;
  for (int64_t round = 1; round < kA; round *= 2) {
    VT shuffled[kA];
    for (int64_t i = 0; i < kA / 2; ++i) {
      shuffled[2 * i] = hn::InterleaveLower(d, v[i], v[i + kA / 2]);
      shuffled[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kA / 2]);
    }
    for (int64_t i = 0; i < kA; ++i) v[i] = shuffled[i];
  }
}

#endif

// The elements from `first` on of a register of scopes of n elements: one position a register.
template <typename T>
HWY_INLINE void LoadBlocksTransposed(const T *x, int64_t n, int64_t first, Vec<T> *rows) {
  constexpr int64_t kA = kAtom<T>;
  for (int64_t i = 0; i < kA; ++i) rows[i] = LoadBlocks(Tag<T>(), x + i * n + first, kA * n);
  TransposeBlocks(rows);
}
// The same; asks for its share of the memory ahead: processors keep only about a dozen lines on their
// way, and to ask for all of it at once would stall.
template <typename T>
HWY_INLINE void LoadTransposed(const T *x, int64_t n, int64_t first, Vec<T> *rows) {
  const int64_t far = far_in_stream();
  for (int64_t i = first; i < first + kAtom<T>; ++i) prefetch_far(x + i * kLanesOf<T>, far);
  LoadBlocksTransposed(x, n, first, rows);
}

// The same of the N elements from `first` on; the last block overlaps the one before, and may be all
// there is. Not a loop: compilers would keep its registers in memory.
template <typename T, size_t N, size_t... I>
HWY_INLINE void LoadPositions(const T *x, int64_t n, int64_t first, Vec<T> *rows,
                              std::index_sequence<I...>) {
  constexpr int64_t kA = kAtom<T>;
  constexpr int64_t kLast = HWY_MAX(static_cast<int64_t>(N) - kA, 0);
  constexpr int64_t kAt[] = {HWY_MIN(static_cast<int64_t>(I) * kA, kLast)...};
  (LoadTransposed(x, n, first + kAt[I], rows + kAt[I]), ...);
}
template <typename T, size_t N>
HWY_INLINE void LoadPositions(const T *x, int64_t n, int64_t first, Vec<T> *rows) {
  constexpr auto kA = static_cast<size_t>(kAtom<T>);
  LoadPositions<T, N>(x, n, first, rows, std::make_index_sequence<(N + kA - 1) / kA>());
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
