// Neighbouring blocks with rows of 1, 2 or 4 elements, as registers of one element each.
#if defined(SPK_KERNELS_TINY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_TINY_INL_H_
#undef SPK_KERNELS_TINY_INL_H_
#else
#define SPK_KERNELS_TINY_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Lane i of out[k] is element k of block i.
#if HWY_TARGET == HWY_SCALAR  // has no instructions for it
template <int64_t kCount, class DT, class VT>
HWY_INLINE void Deinterleave(DT, const VT *in, VT *out) {
  for (int64_t k = 0; k < kCount; ++k) out[k] = in[k];
}
#else
template <int64_t kCount, class DT, class VT>
HWY_INLINE void Deinterleave(DT d, const VT *in, VT *out) {
  if constexpr (kCount == 2) {
    out[0] = hn::ConcatEven(d, in[1], in[0]);
    out[1] = hn::ConcatOdd(d, in[1], in[0]);
  } else {
    static_assert(kCount == 4);
    VT low[2];
    VT high[2];
    VT even[2];
    VT odd[2];
    Deinterleave<2>(d, in, low);
    Deinterleave<2>(d, in + 2, high);
    const VT evens[] = {low[0], high[0]};
    const VT odds[] = {low[1], high[1]};
    Deinterleave<2>(d, evens, even);
    Deinterleave<2>(d, odds, odd);
    out[0] = even[0];
    out[1] = odd[0];
    out[2] = even[1];
    out[3] = odd[1];
  }
}
#endif

// Lane i of element[k] is element k of a row of block i.
template <int64_t kCount, class T>
HWY_INLINE void LoadTiny(const T *x, VF *element) {
  VF in[kCount];
  for (int64_t k = 0; k < kCount; ++k) in[k] = LoadFloats(DF(), x + k * kN);
  if constexpr (kCount == 1) {
    element[0] = in[0];
  } else {
    Deinterleave<kCount>(DF(), in, element);
  }
}

// Pairs of words become floats where they are.
template <int64_t kCount>
HWY_INLINE void LoadTiny(const Bf16 *x, VF *element) {
  if constexpr (kCount == 1 || HWY_TARGET == HWY_SCALAR) {
    LoadTiny<kCount, Bf16>(x, element);
  } else {
    const DU32 du;
    constexpr int64_t kPairs = kCount / 2;
    VU32 in[kPairs];
    VU32 pair[kPairs];
    for (int64_t k = 0; k < kPairs; ++k) {
      in[k] = hn::LoadU(du, reinterpret_cast<const uint32_t *>(x + 2 * k * kN));
    }
    if constexpr (kPairs == 1) {
      pair[0] = in[0];
    } else {
      Deinterleave<kPairs>(du, in, pair);
    }
    for (int64_t k = 0; k < kPairs; ++k) {
      element[2 * k] = hn::BitCast(DF(), hn::ShiftLeft<16>(pair[k]));
      element[2 * k + 1] = hn::BitCast(DF(), hn::And(pair[k], hn::Set(du, 0xffff0000u)));
    }
  }
}

// Elements are moved as floats, before they are made doubles, which is less to move.
template <int64_t kCount, class T>
HWY_INLINE void LoadTiny(const T *x, V *element) {
  if constexpr (kCount == 1) {
    element[0] = Load(x);
  } else if constexpr (std::is_same_v<T, double>) {
    V in[kCount];
    for (int64_t k = 0; k < kCount; ++k) in[k] = Load(x + k * kN);
    Deinterleave<kCount>(D(), in, element);
  } else {
    VF floats[kCount];
    LoadTiny<kCount>(x, floats);
    for (int64_t k = 0; k < kCount; ++k) element[k] = hn::PromoteTo(D(), floats[k]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
