// Lanes that differ in bits of their numbers: exchanged, and as scopes of a few keys compared.
#if defined(SPK_KERNELS_PARTNERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_PARTNERS_INL_H_
#undef SPK_KERNELS_PARTNERS_INL_H_
#else
#define SPK_KERNELS_PARTNERS_INL_H_
#endif

#include <hwy/highway.h>

#include <bit>

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Units of kBytes change places with their neighbours.
template <size_t kBytes, class D, class V = hn::Vec<D>>
HWY_INLINE V ExchangeUnits(D d, V v) {
  if constexpr (kBytes <= 8) {
    const hn::Repartition<hwy::UnsignedFromSize<kBytes>, D> units;
    return hn::BitCast(d, hn::Reverse2(units, hn::BitCast(units, v)));
  } else if constexpr (kBytes == 16) {
    return hn::SwapAdjacentBlocks(v);
  } else {
    static_assert(kBytes == 32);
    return hn::SwapAdjacentBlocks(hn::ReverseBlocks(d, v));
  }
}

template <size_t kBytes, class D, class V = hn::Vec<D>>
HWY_INLINE V OddEvenUnits(D d, V odd, V even) {
  if constexpr (kBytes <= 8) {
    const hn::Repartition<hwy::UnsignedFromSize<kBytes>, D> units;
    return hn::BitCast(d, hn::OddEven(hn::BitCast(units, odd), hn::BitCast(units, even)));
  } else if constexpr (kBytes == 16) {
    return hn::OddEvenBlocks(odd, even);
  } else {
    static_assert(kBytes == 32);
    return hn::IfThenElse(hn::FirstN(d, hn::MaxLanes(d) / 2), even, odd);
  }
}

// Lanes that differ in a bit of their number are units of this size apart. Bits are counted round
// and round.
template <class D>
constexpr size_t UnitOfBit(size_t bit) {
  return sizeof(hn::TFromD<D>) << bit % static_cast<size_t>(std::countr_zero(hn::MaxLanes(D())));
}

// Minus the number of keys above `than` in a lane and those that differ from it in some of the bits
// [kFirst, kEnd).
template <size_t kFirst, size_t kEnd, class D, class V = hn::Vec<D>>
HWY_INLINE V MinusLanesAbove(D d, V key, V than) {
  if constexpr (kFirst == kEnd) {
    return hn::VecFromMask(d, hn::Gt(key, than));
  } else {
    const V exchanged = ExchangeUnits<UnitOfBit<D>(kEnd - 1)>(d, key);
    return hn::Add(MinusLanesAbove<kFirst, kEnd - 1>(d, key, than),
                   MinusLanesAbove<kFirst, kEnd - 1>(d, exchanged, than));
  }
}

// The same without the lane itself.
template <size_t kFirst, size_t kEnd, class D, class V = hn::Vec<D>>
HWY_INLINE V MinusPartnersAbove(D d, V key, V than) {
  const V exchanged = ExchangeUnits<UnitOfBit<D>(kEnd - 1)>(d, key);
  const V others = MinusLanesAbove<kFirst, kEnd - 1>(d, exchanged, than);
  if constexpr (kFirst == kEnd - 1) {
    return others;
  } else {
    return hn::Add(MinusPartnersAbove<kFirst, kEnd - 1>(d, key, than), others);
  }
}

// Minus the number of keys that come before a lane's own: those above it, and of equal ones those in
// lanes of lower number.
template <size_t kEnd, class D, class V = hn::Vec<D>>
HWY_INLINE V MinusPartnersBefore(D d, V key) {
  if constexpr (kEnd == 0) {
    return hn::Zero(d);
  } else {
    // Of lanes that differ in this bit and none above it, the one without it is the lower.
    const V bit = hn::ShiftRight<kEnd - 1>(hn::Iota(d, hn::TFromD<D>{0}));
    const V than = hn::Sub(key, hn::And(bit, hn::Set(d, hn::TFromD<D>{1})));
    const V exchanged = ExchangeUnits<UnitOfBit<D>(kEnd - 1)>(d, key);
    return hn::Add(MinusPartnersBefore<kEnd - 1>(d, key),
                   MinusLanesAbove<0, kEnd - 1>(d, exchanged, than));
  }
}

// Whether a register holds whole scopes of N keys.
template <size_t N, class D>
inline constexpr bool kHoldsPartners = N > 1 && hn::MaxLanes(D()) >= N;

// Scopes of N = 2, 4 or 8 keys, in lanes that differ in the bits from kFirst on. Finds the k
// largest keys of each and returns how many lanes that are: fewer than k a scope if some next key is
// less than `margin` below a k-th, because such keys fall out together.
template <size_t N, size_t kFirst, class D, class V = hn::Vec<D>>
HWY_INLINE size_t TopPartners(D d, V key, V margin, int64_t k, hn::Mask<D> *top) {
  constexpr size_t kEnd = kFirst + static_cast<size_t>(std::countr_zero(N));
  const V minus_above = MinusPartnersAbove<kFirst, kEnd>(d, key, hn::Sub(key, margin));
  *top = hn::Gt(minus_above, hn::Set(d, static_cast<hn::TFromD<D>>(-k)));
  return hn::CountTrue(d, *top);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
