// Squares of elements, and keys of blocks, made of their sums.
#if defined(SPK_KERNELS_BLOCK_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_BLOCK_KEYS_INL_H_
#undef SPK_KERNELS_BLOCK_KEYS_INL_H_
#else
#define SPK_KERNELS_BLOCK_KEYS_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
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

template <class D, typename T>
HWY_INLINE hn::Vec<D> ElementsFrom(D d, const T *x) {
  if constexpr (std::is_same_v<T, double>) {
    return hn::LoadU(d, x);
  } else {
    return LoadFloats(d, x);
  }
}

template <class D, typename T>
HWY_INLINE hn::Vec<D> SquaresFrom(D d, const T *x) {
  const hn::Vec<D> elements = ElementsFrom(d, x);
  return hn::Mul(elements, elements);
}

// 1 for elements that are not 0. Summed over a block, they tell whether it is one of zeros, which
// squares do not: those of small elements are 0, too.
template <class D>
HWY_INLINE hn::Vec<D> OnesOf(D d, hn::Vec<D> elements) {
  return hn::IfThenZeroElse(hn::Eq(elements, hn::Zero(d)), hn::Set(d, hn::TFromD<D>{1}));
}

// Sums out of the range in which squares are normal are made equal, so that keys decide no
// cut among them; NaN counts as a large sum.
template <class D, class DK = hn::RebindToSigned<D>>
HWY_INLINE hn::Vec<DK> KeysOf(D d, hn::Vec<D> sums) {
  using T = hn::TFromD<D>;
  constexpr DK dk;
  constexpr bool kDouble = sizeof(T) == 8;
  const auto low = hn::Set(d, static_cast<T>(kDouble ? 0x1p-900 : 0x1p-100));
  const auto high = hn::Set(d, static_cast<T>(kDouble ? 0x1p900 : 0x1p100));
  const auto bits = hn::BitCast(dk, hn::Abs(sums));
  return hn::Min(hn::Max(bits, hn::BitCast(dk, low)), hn::BitCast(dk, high));
}

// The key of a block of zeros at a place in its scope. Where such blocks tie, as pruned ones do, the
// first have the larger ones, a margin apart; all are below those of sums.
template <typename K>
constexpr K KeyOfPlace(int64_t place, int64_t blocks) {
  return static_cast<K>(kKeyMargin * (blocks - place));
}
// Keys of places for blocks of zeros, of which `ones` (OnesOf) sum to 0; of sums for all others.
template <class D, class DK = hn::RebindToSigned<D>>
HWY_INLINE hn::Vec<DK> KeysAmongZeros(D d, hn::Vec<D> sums, hn::Vec<D> ones, hn::Vec<DK> places) {
  const auto is_zero = hn::RebindMask(DK(), hn::Eq(ones, hn::Zero(d)));
  return hn::IfThenElse(is_zero, places, KeysOf(d, sums));
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
