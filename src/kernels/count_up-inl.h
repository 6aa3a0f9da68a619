// Counting lane by lane.
#if defined(SPK_KERNELS_COUNT_UP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_COUNT_UP_INL_H_
#undef SPK_KERNELS_COUNT_UP_INL_H_
#else
#define SPK_KERNELS_COUNT_UP_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adds 1 where a mask is true.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V CountUp(D d, V count, hn::Mask<D> mask) {
#if HWY_TARGET <= HWY_AVX3
  return hn::IfThenElse(mask, hn::Add(count, hn::Set(d, hn::TFromD<D>{1})), count);
#else
  return hn::Sub(count, hn::VecFromMask(d, mask));  // which is -1 there
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
