// Keys of small blocks, which order as their norms do up to a margin, and masking by them: for
// scopes in which the margin decides, no norm is computed. Of a few neighbouring blocks the keys
// stay in registers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/block_keys.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <bit>

#include "kernels/block_keys-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/partners-inl.h"
#include "kernels/prefetch.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace {

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
inline constexpr int64_t kSquaresOf = static_cast<int64_t>(hn::MaxLanes(DSquare<T>()));

// What is summed over each block: squares, or ones for elements that are not 0.
struct Squares {
  template <typename T>
  static HWY_INLINE VSquare<T> Of(const T *x) {
    return SquaresFrom(DSquare<T>(), x);
  }
};
struct NonZeros {
  template <typename T>
  static HWY_INLINE VSquare<T> Of(const T *x) {
    constexpr DSquare<T> d;
    return OnesOf(d, ElementsFrom(d, x));
  }
};

// --- scopes in registers --------------------------------------------------------------------

// Which blocks stay of a register of them: the k of largest key of each kScope neighbours, in lanes
// that differ in the bits from kFirst on. If that leaves a doubt all stay, and it returns false.
template <typename T, size_t kScope, size_t kFirst>
HWY_INLINE bool StaysOf(VKey<T> keys, int64_t k, VKey<T> *stays) {
  constexpr DKey<T> d;
  const VKey<T> margin = hn::Set(d, Key<T>{kKeyMargin});
  hn::Mask<DKey<T>> top;
  const size_t count = TopPartners<kScope, kFirst>(d, keys, margin, k, &top);
  *stays = hn::VecFromMask(d, top);
  if (count == hn::Lanes(d) / kScope * static_cast<size_t>(k)) return true;
  *stays = hn::Set(d, Key<T>{-1});
  return false;
}

// The key of each lane's place in its scope.
template <typename T, size_t kScope, size_t kFirst>
HWY_INLINE VKey<T> KeysOfTheirPlaces() {
  constexpr auto kL = static_cast<size_t>(kSquaresOf<T>);
  constexpr auto kBits = static_cast<size_t>(std::countr_zero(kL));
  HWY_ALIGN Key<T> places[kL];
  for (size_t lane = 0; lane < kL; ++lane) {
    const size_t turned = lane >> kFirst % kBits | lane << (kBits - kFirst % kBits);
    places[lane] = KeyOfPlace<Key<T>>(turned % kScope, kScope);
  }
  return hn::Load(DKey<T>(), places);
}

// The same where blocks of zeros tie, as pruned ones do: the first of them stay, if all others do.
// Counts those of scopes of which some stay; others go then, because k is less than all.
template <typename T, size_t kScope, size_t kFirst>
HWY_INLINE bool StaysOfZeros(VSquare<T> squares, VSquare<T> nonzeros, int64_t k, int64_t *ties,
                             VKey<T> *stays) {
  constexpr DKey<T> d;
  constexpr DSquare<T> ds;
  constexpr size_t kEnd = kFirst + static_cast<size_t>(std::countr_zero(kScope));
  const auto is_zero = hn::RebindMask(d, hn::Eq(nonzeros, hn::Zero(ds)));
  const VKey<T> places = KeysOfTheirPlaces<T, kScope, kFirst>();
  const VKey<T> keys = KeysAmongZeros(ds, squares, nonzeros, places);
  const VKey<T> first_zero = hn::Set(d, KeyOfPlace<Key<T>>(0, kScope));
  const VKey<T> minus_nonzeros = MinusLanesAbove<kFirst, kEnd>(d, keys, first_zero);
  const auto some_stay = hn::Gt(minus_nonzeros, hn::Set(d, static_cast<Key<T>>(-k)));
  *ties += static_cast<int64_t>(hn::CountTrue(d, hn::And(is_zero, some_stay)));
  return StaysOf<T, kScope, kFirst>(keys, k, stays);
}

// --- blocks side by side --------------------------------------------------------------------

// A register of blocks side by side, from element i of a row on.
struct RegisterAcross {
  const std::byte *x;
  std::byte *y;
  const int64_t *x_at;
  const int64_t *y_at;
  int64_t numel;
  int64_t i;
  Stages ahead;
};

// Calls fn(blocks, number of their first key) for each register of blocks. N elements a block and
// kBlocks blocks a row; 0: as many as the arguments say. Rows may be as short as one group: nothing
// is done for each that could be done for all.
template <typename T, int64_t N, int64_t kBlocks, class Fn>
HWY_INLINE void ForEachAcross(const BlockKeysArgs &given, Fn fn) {
  const BlockKeysArgs args = given;  // copies that no store can change, as far as compilers know
  const int64_t numel = N == 0 ? args.numel : N;
  const int64_t blocks = kBlocks == 0 ? args.blocks : kBlocks;
  int64_t x_at[N == 0 ? kKeyedElements : N];
  int64_t y_at[N == 0 ? kKeyedElements : N];
  std::copy_n(args.x_at, numel, x_at);
  std::copy_n(args.y_at, numel, y_at);
  const std::byte *x = args.x;
  std::byte *y = args.y;
  const Stages ahead = stages_in_stream();
  int64_t key = 0;
  for (int64_t r = 0; r < args.rows; ++r, x += args.x_row, y += args.y_row, key += args.key_row) {
    for (int64_t i = 0; i < blocks; i += kSquaresOf<T>) {
      fn(RegisterAcross{x, y, x_at, y_at, numel, i, ahead}, key + i);
    }
  }
}

template <typename T, class Of = Squares>
HWY_INLINE VSquare<T> SumsAcross(const RegisterAcross &of) {
  const auto addend = [&](int64_t e) HWY_ATTR {
    const T *elements = reinterpret_cast<const T *>(of.x + of.x_at[e]) + of.i;
    ask_ahead(elements, 1, of.ahead);
    return Of::Of(elements);
  };
  VSquare<T> sums = addend(0);
  for (int64_t e = 1; e < of.numel; ++e) sums = hn::Add(sums, addend(e));
  return sums;
}

template <typename T, int64_t N, int64_t kBlocks>
void KeysAcross(const BlockKeysArgs &args) {
  auto *keys = static_cast<Key<T> *>(args.keys);
  ForEachAcross<T, N, kBlocks>(args, [=](const RegisterAcross &of, int64_t key) HWY_ATTR {
    hn::StoreU(KeysOf(DSquare<T>(), SumsAcross<T>(of)), DKey<T>(), keys + key);
  });
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

template <typename T>
HWY_INLINE void MaskBlocksAcross(VKey<T> stays, const RegisterAcross &of) {
  for (int64_t e = 0; e < of.numel; ++e) {
    MaskElements(stays, reinterpret_cast<const T *>(of.x + of.x_at[e]) + of.i,
                 reinterpret_cast<T *>(of.y + of.y_at[e]) + of.i);
  }
}

template <typename T, int64_t N, int64_t kBlocks>
void MaskAcross(const BlockKeysArgs &args) {
  const auto *keys = static_cast<const Key<T> *>(args.keys);
  ForEachAcross<T, N, kBlocks>(args, [=](const RegisterAcross &of, int64_t key) HWY_ATTR {
    MaskBlocksAcross<T>(hn::LoadU(DKey<T>(), keys + key), of);
  });
}

template <typename T, size_t kScope>
HWY_NOINLINE bool StaysOfZerosAcross(const RegisterAcross &of, int64_t k, int64_t *ties,
                                     VKey<T> *stays) {
  return StaysOfZeros<T, kScope, 0>(SumsAcross<T>(of), SumsAcross<T, NonZeros>(of), k, ties, stays);
}

template <typename T, int64_t N, int64_t kBlocks, size_t kScope>
bool KeepAcross(const BlockKeysArgs &args, int64_t k) {
  bool certain = true;
  int64_t *ties = args.ties;
  ForEachAcross<T, N, kBlocks>(args, [&, k, ties](const RegisterAcross &of, int64_t) HWY_ATTR {
    VKey<T> stays;
    if (!StaysOf<T, kScope, 0>(KeysOf(DSquare<T>(), SumsAcross<T>(of)), k, &stays)) {
      certain &= ties && StaysOfZerosAcross<T, kScope>(of, k, ties, &stays);
    }
    MaskBlocksAcross<T>(stays, of);
  });
  return certain;
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
template <typename T, size_t kScope>
bool KeepOfAcross(const BlockKeysArgs &args, int64_t k) {
  if (args.numel == 2 && args.blocks == kKeyGroup) {
    return KeepAcross<T, 2, kKeyGroup, kScope>(args, k);
  }
  return KeepAcross<T, 0, 0, kScope>(args, k);
}

// --- blocks one after the other -------------------------------------------------------------

// Blocks of N elements, as many as a register has lanes, are N registers. Number the elements: the
// upper bits are those of the block. Each bit of lanes that is summed over makes room for the lowest
// bit of registers that is left; in the end the bits of lanes are those of blocks, turned by so many.
template <typename T, int64_t N>
inline constexpr size_t kReplaced = std::countr_zero(static_cast<uint64_t>(HWY_MIN(N,
                                                                                   kSquaresOf<T>)));

// Sums two registers over a bit of their lanes: the second goes to where that bit is set.
template <typename T, size_t kBit>
HWY_INLINE VSquare<T> SumOverBit(VSquare<T> first, VSquare<T> second) {
  constexpr DSquare<T> d;
  constexpr size_t kBytes = sizeof(SquareOf<T>) << kBit;
  first = hn::Add(first, ExchangeUnits<kBytes>(d, first));
  second = hn::Add(second, ExchangeUnits<kBytes>(d, second));
  return OddEvenUnits<kBytes>(d, second, first);
}

// Sums 2^(kBits - kBit) registers over the bits of lanes from kBit on.
template <typename T, size_t kBits, size_t kBit = 0>
HWY_INLINE void SumOverBits([[maybe_unused]] VSquare<T> *sums) {
  if constexpr (kBit < kBits) {
    for (size_t v = 0; v < size_t{1} << (kBits - kBit - 1); ++v) {
      sums[v] = SumOverBit<T, kBit>(sums[2 * v], sums[2 * v + 1]);
    }
    SumOverBits<T, kBits, kBit + 1>(sums);
  }
}

template <typename T, int64_t N, class Of = Squares>
HWY_INLINE VSquare<T> SumsAlong(const T *x) {
  constexpr int64_t kL = kSquaresOf<T>;
  ask_ahead(x, N * kL, stages_in_stream());
  // Registers of one block.
  constexpr int64_t kOwn = N > kL ? N / kL : 1;
  VSquare<T> sums[N / kOwn];
  for (int64_t v = 0; v < N / kOwn; ++v) {
    sums[v] = Of::Of(x + v * kOwn * kL);
    for (int64_t r = 1; r < kOwn; ++r) {
      sums[v] = hn::Add(sums[v], Of::Of(x + (v * kOwn + r) * kL));
    }
  }
  SumOverBits<T, kReplaced<T, N>>(sums);
  return sums[0];
}

// Undoes SumOverBits for what each block has: from one register into 2^kBits.
template <typename T, size_t kBits, size_t kBit = kBits>
HWY_INLINE void SpreadOverBits([[maybe_unused]] VKey<T> *of_blocks) {
  if constexpr (kBit > 0) {
    constexpr DKey<T> d;
    constexpr size_t kBytes = sizeof(SquareOf<T>) << (kBit - 1);
    for (size_t v = size_t{1} << (kBits - kBit); v-- > 0;) {
      const VKey<T> both = of_blocks[v];
      const VKey<T> exchanged = ExchangeUnits<kBytes>(d, both);
      of_blocks[2 * v + 1] = OddEvenUnits<kBytes>(d, both, exchanged);
      of_blocks[2 * v] = OddEvenUnits<kBytes>(d, exchanged, both);
    }
    SpreadOverBits<T, kBits, kBit - 1>(of_blocks);
  }
}

// Masks a register of blocks of N elements; `stays` has the lanes of sums.
template <typename T, int64_t N>
HWY_INLINE void MaskBlocksAlong(VKey<T> stays, const T *x, T *y) {
  constexpr size_t kBits = kReplaced<T, N>;
  VKey<T> of_register[size_t{1} << kBits];
  of_register[0] = stays;
  SpreadOverBits<T, kBits>(of_register);
  for (int64_t v = 0; v < N; ++v) {
    const int64_t at = v * kSquaresOf<T>;
    MaskElements(of_register[(v << kBits) / N], x + at, y + at);
  }
}

// Where keys go in memory, in the order of blocks.
template <typename T, int64_t N>
class Order {
 public:
  Order() {
    for (size_t i = 0; i < kL; ++i) {
      lane_of_block_[i] = static_cast<Key<T>>(Turned(i, kReplaced<T, N>));
      block_of_lane_[i] = static_cast<Key<T>>(Turned(i, 2 * kBits - kReplaced<T, N>));
    }
  }

  HWY_INLINE void Store(VKey<T> of_lanes, Key<T> *keys) const {
    hn::StoreU(Permuted(of_lanes, lane_of_block_), DKey<T>(), keys);
  }
  HWY_INLINE VKey<T> Load(const Key<T> *keys) const {
    return Permuted(hn::LoadU(DKey<T>(), keys), block_of_lane_);
  }

 private:
  static constexpr auto kL = static_cast<size_t>(kSquaresOf<T>);
  static constexpr auto kBits = static_cast<size_t>(std::countr_zero(kL));

  // A number of kBits bits whose bits are moved up, the highest ones to the lowest place.
  static constexpr size_t Turned(size_t number, size_t by) {
    for (; by > 0; --by) number = (number << 1 & (kL - 1)) | (number << 1) / kL;
    return number;
  }
  static HWY_INLINE VKey<T> Permuted(VKey<T> v, const Key<T> *from) {
    if constexpr (kReplaced<T, N> == kBits) {
      return v;
    } else {
      return hn::TableLookupLanes(v, hn::SetTableIndices(DKey<T>(), from));
    }
  }

  HWY_ALIGN Key<T> lane_of_block_[kL];
  HWY_ALIGN Key<T> block_of_lane_[kL];
};

template <typename T, int64_t N>
void KeysAlong(const BlockKeysArgs &args) {
  const Order<T, N> order;
  for (int64_t r = 0; r < args.rows; ++r) {
    const auto *x = reinterpret_cast<const T *>(args.x + r * args.x_row);
    auto *keys = static_cast<Key<T> *>(args.keys) + r * args.key_row;
    for (int64_t i = 0; i < args.blocks; i += kSquaresOf<T>) {
      order.Store(KeysOf(DSquare<T>(), SumsAlong<T, N>(x + i * N)), keys + i);
    }
  }
}

template <typename T, int64_t N>
void MaskAlong(const BlockKeysArgs &args) {
  const Order<T, N> order;
  for (int64_t r = 0; r < args.rows; ++r) {
    const auto *x = reinterpret_cast<const T *>(args.x + r * args.x_row);
    auto *y = reinterpret_cast<T *>(args.y + r * args.y_row);
    const auto *keys = static_cast<const Key<T> *>(args.keys) + r * args.key_row;
    for (int64_t i = 0; i < args.blocks; i += kSquaresOf<T>) {
      MaskBlocksAlong<T, N>(order.Load(keys + i), x + i * N, y + i * N);
    }
  }
}

// `count` registers of blocks.
template <typename T, int64_t N, size_t kScope>
HWY_NOINLINE bool StaysOfZerosAlong(const T *x, int64_t count, int64_t k, int64_t *ties,
                                    VKey<T> *stays) {
  bool certain = true;
  for (int64_t g = 0; g < count; ++g, x += kSquaresOf<T> * N) {
    certain &= StaysOfZeros<T, kScope, kReplaced<T, N>>(
        SumsAlong<T, N>(x), SumsAlong<T, N, NonZeros>(x), k, ties, &stays[g]);
  }
  return certain;
}

// Some registers of blocks are masked together: what stays of each takes long to find out, and is
// found out for all of them meanwhile.
template <typename T, int64_t N, size_t kScope>
bool KeepAlong(const BlockKeysArgs &args, int64_t k) {
  constexpr int64_t kL = kSquaresOf<T>;
  constexpr int64_t kTogether = 4;
  for (int64_t r = 0; r < args.rows; ++r) {
    const auto *x = reinterpret_cast<const T *>(args.x + r * args.x_row);
    auto *y = reinterpret_cast<T *>(args.y + r * args.y_row);
    for (int64_t i = 0; i < args.blocks; i += kTogether * kL) {
      const int64_t count = HWY_MIN(kTogether, (args.blocks - i) / kL);
      VKey<T> stays[kTogether];
      bool certain = true;
      for (int64_t g = 0; g < count; ++g) {
        const VKey<T> keys = KeysOf(DSquare<T>(), SumsAlong<T, N>(x + (i + g * kL) * N));
        certain &= StaysOf<T, kScope, kReplaced<T, N>>(keys, k, &stays[g]);
      }
      if (!certain && args.ties) {
        certain = StaysOfZerosAlong<T, N, kScope>(x + i * N, count, k, args.ties, stays);
      }
      for (int64_t g = 0; g < count; ++g) {
        const int64_t at = (i + g * kL) * N;
        MaskBlocksAlong<T, N>(stays[g], x + at, y + at);
      }
      if (!certain) return false;
    }
  }
  return true;
}

template <typename T, size_t kScope>
void FillKeep([[maybe_unused]] DtypeIndex dtype, [[maybe_unused]] int scope,
              [[maybe_unused]] Kernels *table) {
  if constexpr (kHoldsPartners<kScope, DKey<T>>) {
    table->keep_blocks_across[dtype][scope] = KeepOfAcross<T, kScope>;
    table->keep_blocks_along[dtype][scope][0] = KeepAlong<T, 2, kScope>;
    table->keep_blocks_along[dtype][scope][1] = KeepAlong<T, 4, kScope>;
    table->keep_blocks_along[dtype][scope][2] = KeepAlong<T, 8, kScope>;
    table->keep_blocks_along[dtype][scope][3] = KeepAlong<T, 16, kScope>;
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
  FillKeep<T, 2>(dtype, 0, table);
  FillKeep<T, 4>(dtype, 1, table);
  FillKeep<T, 8>(dtype, 2, table);
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
