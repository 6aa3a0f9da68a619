// Keys of blocks, made of their sums of squares.
#if defined(SPK_KERNELS_BLOCK_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_BLOCK_KEYS_INL_H_
#undef SPK_KERNELS_BLOCK_KEYS_INL_H_
#else
#define SPK_KERNELS_BLOCK_KEYS_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums out of the range in which squares are normal are made equal, so that no cut among them is
// decided here; NaN counts as a large sum.
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

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
