// Bytes of masks in registers.
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

// Which of as many bytes are not 0, as a mask of words.
template <class DW, class T = hn::TFromD<DW>>
HWY_INLINE hn::Mask<DW> AreSet(DW d, hn::Vec<hn::Rebind<uint8_t, DW>> bytes) {
  if constexpr (sizeof(T) == 8) {
    const auto words = hn::PromoteTo(hn::Rebind<uint32_t, DW>(), bytes);
    return hn::Ne(hn::PromoteTo(d, words), hn::Zero(d));
  } else {
    return hn::Ne(hn::PromoteTo(d, bytes), hn::Zero(d));
  }
}

// The same of bytes in memory.
template <class DW, class T = hn::TFromD<DW>>
HWY_INLINE hn::Mask<DW> KeepMask(DW d, const uint8_t *keep) {
  return AreSet(d, hn::LoadU(hn::Rebind<uint8_t, DW>(), keep));
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
