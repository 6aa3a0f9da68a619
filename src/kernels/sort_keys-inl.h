// Sorts registers of keys, lane by lane. Keys are the bits of magnitudes, which order as the
// magnitudes do, NaN above infinity.
#if defined(SPK_KERNELS_SORT_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_SORT_KEYS_INL_H_
#undef SPK_KERNELS_SORT_KEYS_INL_H_
#else
#define SPK_KERNELS_SORT_KEYS_INL_H_
#endif

#include <hwy/highway.h>

#include <array>
#include <limits>
#include <utility>

#ifndef SPK_KERNELS_SORT_KEYS_ONCE_
#define SPK_KERNELS_SORT_KEYS_ONCE_
namespace spk {

// Batcher's merge exchange for any number of keys (Knuth, volume 3, 5.2.2, algorithm M): pairs of
// positions to be put in order, one after the other.
struct SortingNetwork {
  static constexpr size_t kMostPairs = 63;  // of 16 keys
  std::array<uint8_t, kMostPairs> first{}, second{};
  size_t pairs = 0;
};
constexpr SortingNetwork sorting_network(size_t keys) {
  SortingNetwork network;
  size_t top = 1;
  while (2 * top < keys) top *= 2;
  for (size_t p = keys > 1 ? top : 0; p > 0; p /= 2) {
    size_t remainder = 0;
    size_t distance = p;
    for (size_t q = top;; q /= 2) {
      for (size_t i = 0; i + distance < keys; ++i) {
        if ((i & p) != remainder) continue;
        network.first[network.pairs] = static_cast<uint8_t>(i);
        network.second[network.pairs++] = static_cast<uint8_t>(i + distance);
      }
      if (q == p) break;
      distance = q - p;
      remainder = p;
    }
  }
  return network;
}

}  // namespace spk
#endif

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
using Vec = hn::Vec<Tag<T>>;
template <typename T>
inline constexpr int64_t kLanesOf = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

template <typename T>
HWY_INLINE Vec<T> Magnitude(Vec<T> element) {
  return hn::And(element, hn::Set(Tag<T>(), std::numeric_limits<T>::max()));
}

// Keys of 64 bits are compared as the magnitudes that they are bits of where there is no minimum of
// such integers. NaN does not compare.
template <typename T>
inline constexpr bool kComparesFloats = sizeof(T) == 8 && HWY_TARGET > HWY_AVX3;

template <typename T>
HWY_INLINE auto AsFloats(Vec<T> keys) {
  return hn::BitCast(hn::RebindToFloat<Tag<T>>(), keys);
}
template <typename T>
HWY_INLINE Vec<T> Larger(Vec<T> a, Vec<T> b) {
  if constexpr (kComparesFloats<T>) {
    return hn::BitCast(Tag<T>(), hn::Max(AsFloats<T>(a), AsFloats<T>(b)));
  } else {
    return hn::Max(a, b);
  }
}
template <typename T>
HWY_INLINE Vec<T> Smaller(Vec<T> a, Vec<T> b) {
  if constexpr (kComparesFloats<T>) {
    return hn::BitCast(Tag<T>(), hn::Min(AsFloats<T>(a), AsFloats<T>(b)));
  } else {
    return hn::Min(a, b);
  }
}

// No key that compares is above the one or below the other.
template <typename T>
inline constexpr T kInfinityKey = static_cast<T>(0x7ff0000000000000);
template <typename T>
inline constexpr T kHighKey = kComparesFloats<T> ? kInfinityKey<T> : std::numeric_limits<T>::max();
template <typename T>
inline constexpr T kLowKey = kComparesFloats<T> ? kInfinityKey<T> | std::numeric_limits<T>::min()
                                                : T{-1};

// Whether any of N registers has a key that does not compare: the sum of magnitudes is NaN if one of
// them is, and only then.
template <typename T, size_t N>
HWY_INLINE bool AnyUnordered([[maybe_unused]] const Vec<T> *key) {
  if constexpr (kComparesFloats<T>) {
    constexpr hn::RebindToFloat<Tag<T>> d;
    auto even = AsFloats<T>(key[0]);
    auto odd = hn::Zero(d);
    for (size_t i = 1; i < N; i += 2) odd = hn::Add(odd, AsFloats<T>(key[i]));
    for (size_t i = 2; i < N; i += 2) even = hn::Add(even, AsFloats<T>(key[i]));
    return !hn::AllFalse(d, hn::IsNaN(hn::Add(even, odd)));
  } else {
    return false;
  }
}

// The one of two keys that is not the other. Intel's processors have one port for minima of
// integers in large registers, but two for this.
template <typename T>
HWY_INLINE Vec<T> OtherOf(Vec<T> a, Vec<T> b, Vec<T> larger) {
  if constexpr (HWY_TARGET <= HWY_AVX3 && sizeof(T) > 2) {
    return hn::Xor3(a, b, larger);
  } else {
    return Smaller<T>(a, b);
  }
}
template <typename T>
HWY_INLINE void LargerFirst(Vec<T> &a, Vec<T> &b) {
  const Vec<T> larger = Larger<T>(a, b);
  b = OtherOf<T>(a, b, larger);
  a = larger;
}

template <typename T, size_t N, size_t... I>
HWY_INLINE void SortVectors([[maybe_unused]] Vec<T> *key, std::index_sequence<I...>) {
  [[maybe_unused]] constexpr SortingNetwork network = sorting_network(N);
  (LargerFirst<T>(key[network.first[I]], key[network.second[I]]), ...);
}

// Sorts N registers of keys, largest first. Returns false if some do not compare: then they are in no
// order, and some are lost.
template <typename T, size_t N>
HWY_INLINE bool SortKeys(Vec<T> *key) {
  const bool compare = !AnyUnordered<T, N>(key);
  SortVectors<T, N>(key, std::make_index_sequence<sorting_network(N).pairs>());
  return compare;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
