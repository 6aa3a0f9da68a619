// Keys of small blocks, which order as their norms do up to a margin, and masking by them: for
// scopes in which the margin decides, no norm is computed.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/block_keys.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/kernels.h"
#include "kernels/storage.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Squares of 16-bit elements are floats, too.
template <typename T>
struct Square {
  using Type = float;
};
template <>
struct Square<double> {
  using Type = double;
};
template <typename T>
using SquareOf = typename Square<T>::Type;

template <typename T>
using DSquare = hn::CappedTag<SquareOf<T>, kKeyGroup>;
template <typename T>
using VSquare = hn::Vec<DSquare<T>>;
template <typename T>
using DKey = hn::RebindToSigned<DSquare<T>>;
template <typename T>
using VKey = hn::Vec<DKey<T>>;
template <typename T>
using Key = hn::TFromD<DKey<T>>;
template <typename T>
inline constexpr int64_t kLanesOf = static_cast<int64_t>(hn::MaxLanes(DSquare<T>()));

template <typename T>
HWY_INLINE VSquare<T> LoadElements(const T *x) {
  return hn::LoadU(DSquare<T>(), x);
}
template <>
HWY_INLINE VSquare<Bf16> LoadElements(const Bf16 *x) {
  const hn::Rebind<uint16_t, DSquare<Bf16>> d16;
  const hn::Rebind<uint32_t, DSquare<Bf16>> d32;
  const auto words = hn::LoadU(d16, reinterpret_cast<const uint16_t *>(x));
  return hn::BitCast(DSquare<Bf16>(), hn::ShiftLeft<16>(hn::PromoteTo(d32, words)));
}
// Exponent and mantissa in the place of a float's: the value times 2^-112.
template <>
HWY_INLINE VSquare<F16> LoadElements(const F16 *x) {
  const DSquare<F16> d;
  const hn::Rebind<uint16_t, DSquare<F16>> d16;
  const hn::Rebind<uint32_t, DSquare<F16>> d32;
  const auto words = hn::LoadU(d16, reinterpret_cast<const uint16_t *>(x));
  const auto magnitude = hn::And(hn::PromoteTo(d32, words), hn::Set(d32, 0x7fff));
  const auto scaled = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)), hn::Set(d, 0x1p112f));
  const auto special = hn::Gt(magnitude, hn::Set(d32, 0x7bff));
  const auto infinite = hn::IfThenElseZero(special, hn::Set(d32, 0x7f800000u));
  return hn::BitCast(d, hn::Or(hn::BitCast(d32, scaled), infinite));
}

template <typename T>
HWY_INLINE VSquare<T> Squares(const T *x) {
  const VSquare<T> element = LoadElements(x);
  return hn::Mul(element, element);
}

// Sums out of the range in which squares are normal are made equal, so that no cut among them is
// decided here; NaN counts as a large sum.
template <typename T>
HWY_INLINE void StoreKeys(VSquare<T> sums, Key<T> *keys) {
  constexpr DKey<T> d;
  constexpr bool kDouble = sizeof(T) == 8;
  const VSquare<T> low =
      hn::Set(DSquare<T>(), static_cast<SquareOf<T>>(kDouble ? 0x1p-900 : 0x1p-100));
  const VSquare<T> high =
      hn::Set(DSquare<T>(), static_cast<SquareOf<T>>(kDouble ? 0x1p900 : 0x1p100));
  const VKey<T> bits = hn::BitCast(d, hn::Abs(sums));
  hn::StoreU(hn::Min(hn::Max(bits, hn::BitCast(d, low)), hn::BitCast(d, high)), d, keys);
}

// Bytes ahead of use at which memory is asked for.
inline constexpr int64_t kPrefetch = int64_t{1} << 13;

// --- blocks side by side --------------------------------------------------------------------

// N elements a block and kBlocks blocks a row; 0: as many as the arguments say. Rows may be as
// short as one group: nothing is done for each that could be done for all.
template <typename T, int64_t N, int64_t kBlocks>
void KeysAcross(const BlockKeysArgs &given) {
  const BlockKeysArgs args = given;  // a copy that no store can change, as far as compilers know
  const int64_t numel = N == 0 ? args.numel : N;
  const int64_t blocks = kBlocks == 0 ? args.blocks : kBlocks;
  int64_t at[N == 0 ? kKeyedElements : N];
  std::copy_n(args.x_at, numel, at);
  const std::byte *x = args.x;
  auto *keys = static_cast<Key<T> *>(args.keys);
  for (int64_t r = 0; r < args.rows; ++r, x += args.x_row, keys += args.key_row) {
    for (int64_t i = 0; i < blocks; i += kLanesOf<T>) {
      VSquare<T> sums = hn::Zero(DSquare<T>());
      for (int64_t e = 0; e < numel; ++e) {
        const T *elements = reinterpret_cast<const T *>(x + at[e]) + i;
        hwy::Prefetch(elements + kPrefetch / static_cast<int64_t>(sizeof(T)));
        sums = hn::Add(sums, Squares(elements));
      }
      StoreKeys<T>(sums, keys + i);
    }
  }
}

// Elements stay where `stays` is not 0.
HWY_INLINE void MaskElements(hn::Vec<DKey<float>> stays, const float *x, float *y) {
  constexpr DSquare<float> d;
  const auto goes = hn::RebindMask(d, hn::Eq(stays, hn::Zero(DKey<float>())));
  hn::StoreU(hn::IfThenZeroElse(goes, hn::LoadU(d, x)), d, y);
}
HWY_INLINE void MaskElements(hn::Vec<DKey<double>> stays, const double *x, double *y) {
  constexpr DSquare<double> d;
  const auto goes = hn::RebindMask(d, hn::Eq(stays, hn::Zero(DKey<double>())));
  hn::StoreU(hn::IfThenZeroElse(goes, hn::LoadU(d, x)), d, y);
}
template <typename T>
HWY_INLINE void MaskElements(VKey<T> stays, const T *x, T *y) {
  static_assert(sizeof(T) == 2, "the others are written as they are");
  const hn::Rebind<int16_t, DKey<T>> d;
  // Keys are above all 16-bit numbers, and saturate.
  const auto goes = hn::Eq(hn::DemoteTo(d, stays), hn::Zero(d));
  const auto elements = hn::LoadU(d, reinterpret_cast<const int16_t *>(x));
  hn::StoreU(hn::IfThenZeroElse(goes, elements), d, reinterpret_cast<int16_t *>(y));
}

template <typename T, int64_t N, int64_t kBlocks>
void MaskAcross(const BlockKeysArgs &given) {
  const BlockKeysArgs args = given;  // as above
  const int64_t numel = N == 0 ? args.numel : N;
  const int64_t blocks = kBlocks == 0 ? args.blocks : kBlocks;
  int64_t x_at[N == 0 ? kKeyedElements : N];
  int64_t y_at[N == 0 ? kKeyedElements : N];
  std::copy_n(args.x_at, numel, x_at);
  std::copy_n(args.y_at, numel, y_at);
  const std::byte *x = args.x;
  std::byte *y = args.y;
  const auto *keys = static_cast<const Key<T> *>(args.keys);
  for (int64_t r = 0; r < args.rows; ++r) {
    for (int64_t i = 0; i < blocks; i += kLanesOf<T>) {
      const VKey<T> stays = hn::LoadU(DKey<T>(), keys + i);
      for (int64_t e = 0; e < numel; ++e) {
        MaskElements(stays, reinterpret_cast<const T *>(x + x_at[e]) + i,
                     reinterpret_cast<T *>(y + y_at[e]) + i);
      }
    }
    x += args.x_row;
    y += args.y_row;
    keys += args.key_row;
  }
}

// By how many elements a block has, and whether pairs lie in rows of one group.
template <typename T>
void KeysOfAcross(const BlockKeysArgs &args) {
  if (args.numel == 2 && args.blocks == kKeyGroup) return KeysAcross<T, 2, kKeyGroup>(args);
  if (args.numel == 2) return KeysAcross<T, 2, 0>(args);
  if (args.numel == 4) return KeysAcross<T, 4, 0>(args);
  KeysAcross<T, 0, 0>(args);
}
template <typename T>
void MaskOfAcross(const BlockKeysArgs &args) {
  if (args.numel == 2 && args.blocks == kKeyGroup) return MaskAcross<T, 2, kKeyGroup>(args);
  if (args.numel == 2) return MaskAcross<T, 2, 0>(args);
  if (args.numel == 4) return MaskAcross<T, 4, 0>(args);
  MaskAcross<T, 0, 0>(args);
}

// --- blocks one after the other -------------------------------------------------------------

// Sums of neighbours, of two registers into one.
template <typename T>
HWY_INLINE VSquare<T> SumPairs(VSquare<T> first, VSquare<T> second) {
  constexpr DSquare<T> d;
#if HWY_TARGET == HWY_SCALAR
  (void)d;
  return hn::Add(first, second);
#else
  return hn::Add(hn::ConcatEven(d, second, first), hn::ConcatOdd(d, second, first));
#endif
}

template <typename T, int64_t N>
void KeysAlong(const BlockKeysArgs &args) {
  constexpr int64_t kL = kLanesOf<T>;
  for (int64_t r = 0; r < args.rows; ++r) {
    const auto *x = reinterpret_cast<const T *>(args.x + r * args.x_row);
    auto *keys = static_cast<Key<T> *>(args.keys) + r * args.key_row;
    for (int64_t i = 0; i < args.blocks; i += kL) {
      VSquare<T> sums[N];
      for (int64_t v = 0; v < N; ++v) {
        hwy::Prefetch(x + i * N + v * kL + kPrefetch / static_cast<int64_t>(sizeof(T)));
        sums[v] = Squares(x + i * N + v * kL);
      }
      for (int64_t count = N / 2; count > 0; count /= 2) {
        for (int64_t v = 0; v < count; ++v) sums[v] = SumPairs<T>(sums[2 * v], sums[2 * v + 1]);
      }
      StoreKeys<T>(sums[0], keys + i);
    }
  }
}

template <typename T, int64_t N>
void MaskAlong(const BlockKeysArgs &args) {
  constexpr DKey<T> d;
  constexpr int64_t kL = kLanesOf<T>;
  HWY_ALIGN Key<T> block_of[N * kL];
  for (int64_t e = 0; e < N * kL; ++e) block_of[e] = static_cast<Key<T>>(e / N);
  for (int64_t r = 0; r < args.rows; ++r) {
    const auto *x = reinterpret_cast<const T *>(args.x + r * args.x_row);
    auto *y = reinterpret_cast<T *>(args.y + r * args.y_row);
    const auto *keys = static_cast<const Key<T> *>(args.keys) + r * args.key_row;
    for (int64_t i = 0; i < args.blocks; i += kL) {
      const VKey<T> key = hn::LoadU(d, keys + i);
      for (int64_t v = 0; v < N; ++v) {
        const VKey<T> stays = hn::TableLookupLanes(key, hn::SetTableIndices(d, block_of + v * kL));
        MaskElements(stays, x + i * N + v * kL, y + i * N + v * kL);
      }
    }
  }
}

template <typename T>
void FillFor(DtypeIndex dtype, Kernels *table) {
  table->block_keys_across[dtype] = KeysOfAcross<T>;
  table->mask_by_keys_across[dtype] = MaskOfAcross<T>;
  table->block_keys_along[dtype][0] = KeysAlong<T, 2>;
  table->block_keys_along[dtype][1] = KeysAlong<T, 4>;
  table->block_keys_along[dtype][2] = KeysAlong<T, 8>;
  table->block_keys_along[dtype][3] = KeysAlong<T, 16>;
  table->mask_by_keys_along[dtype][0] = MaskAlong<T, 2>;
  table->mask_by_keys_along[dtype][1] = MaskAlong<T, 4>;
  table->mask_by_keys_along[dtype][2] = MaskAlong<T, 8>;
  table->mask_by_keys_along[dtype][3] = MaskAlong<T, 16>;
}

}  // namespace

void FillBlockKeys(Kernels *table) {
  FillFor<float>(kF32, table);
  FillFor<double>(kF64, table);
  FillFor<F16>(kF16, table);
  FillFor<Bf16>(kBf16, table);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillBlockKeys);
void fill_block_keys(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillBlockKeys)(table);
}
}  // namespace spk
#endif
