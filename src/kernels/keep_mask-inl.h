// The bytes of keep masks in registers.
#if defined(SPK_KERNELS_KEEP_MASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_KEEP_MASK_INL_H_
#undef SPK_KERNELS_KEEP_MASK_INL_H_
#else
#define SPK_KERNELS_KEEP_MASK_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Bytes that are not 0, as a mask of words.
template <class DW, class T = hn::TFromD<DW>>
HWY_INLINE hn::Mask<DW> KeepMask(DW d, const uint8_t *keep) {
  const auto bytes = hn::LoadU(hn::Rebind<uint8_t, DW>(), keep);
  if constexpr (sizeof(T) == 8) {
    const auto words = hn::PromoteTo(hn::Rebind<uint32_t, DW>(), bytes);
    return hn::Ne(hn::PromoteTo(d, words), hn::Zero(d));
  } else {
    return hn::Ne(hn::PromoteTo(d, bytes), hn::Zero(d));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
