// 16-bit numbers as floats, and back.
#if defined(SPK_KERNELS_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_NARROW_INL_H_
#undef SPK_KERNELS_NARROW_INL_H_
#else
#define SPK_KERNELS_NARROW_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// How 16-bit numbers become floats, a register at a time, and back. kInFloats is false where the
// instructions for it are missing.
template <class T>
struct Narrow {
  static constexpr bool kInFloats = false;
};
using DN = hn::ScalableTag<float>;
using VN = hn::Vec<DN>;
using DNBits = hn::RebindToUnsigned<DN>;
inline constexpr int64_t kNarrow = static_cast<int64_t>(hn::MaxLanes(DN()));

template <>
struct Narrow<Bf16> {
  static constexpr bool kInFloats = true;
  static constexpr int kCut = 16;  // bits of a float that have no room in the 16

  static HWY_INLINE VN Load(const Bf16 *p) { return LoadFloats(DN(), p); }
  // Of floats that are not in the middle of two numbers, nor NaN of which the last bits are set.
  static HWY_INLINE void Store(VN v, Bf16 *p) {
    const hn::Rebind<uint16_t, DN> d16;
    const auto upper = hn::ShiftRight<16>(PlusHalf(v));
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<DN>(), upper)), d16,
               reinterpret_cast<uint16_t *>(p));
  }
  // 2 * kNarrow numbers: `a` has the lower half of each 128-bit block of them, `b` the upper one,
  // which is cheapest where unpacking and packing work block by block. (They do not on SVE.) Only
  // StorePair brings them back in order.
  static HWY_INLINE void LoadPair(const Bf16 *p, VN *a, VN *b) {
#if HWY_TARGET == HWY_SCALAR
    *a = Load(p);
    *b = Load(p + kNarrow);
#else
    const hn::Repartition<uint16_t, DN> d16;
    const auto words = hn::LoadU(d16, reinterpret_cast<const uint16_t *>(p));
    *a = hn::BitCast(DN(), hn::InterleaveLower(d16, hn::Zero(d16), words));
    *b = hn::BitCast(DN(), hn::InterleaveUpper(d16, hn::Zero(d16), words));
#endif
  }
  static HWY_INLINE void StorePair(VN a, VN b, Bf16 *p) {
#if HWY_TARGET == HWY_SCALAR
    Store(a, p);
    Store(b, p + kNarrow);
#else
    const hn::RebindToSigned<DN> di;
    const hn::Repartition<int16_t, DN> d16;
    const auto upper = [&](VN v)
                           HWY_ATTR { return hn::ShiftRight<16>(hn::BitCast(di, PlusHalf(v))); };
    hn::StoreU(hn::ReorderDemote2To(d16, upper(a), upper(b)), d16, reinterpret_cast<int16_t *>(p));
#endif
  }
  // May any of these products lie in the middle of two numbers? Or be so small that those of a
  // double factor's parts (scale_narrow-inl.h) leave the range of normal floats?
  static HWY_INLINE bool MayLieBetween(VN a, VN b) {
    constexpr uint32_t kLeast = 27u << 23;  // 2^-100
    const DNBits du;
    const auto from_middle = [](VN v) HWY_ATTR { return hn::ShiftLeft<16>(PlusHalf(v)); };
    const auto middle = hn::Eq(hn::Min(from_middle(a), from_middle(b)), hn::Zero(du));
    // 0 becomes the largest.
    const auto less_one = [&](VN v) HWY_ATTR {
      return hn::Sub(hn::BitCast(du, hn::Abs(v)), hn::Set(du, 1));
    };
    const auto least = hn::Min(less_one(a), less_one(b));
    // least <= kLeast - 2, which unsigned numbers are not compared for before AVX-512
    const auto small = hn::Eq(hn::Min(least, hn::Set(du, kLeast - 2)), least);
    return !hn::AllFalse(du, hn::Or(middle, small));
  }

 private:
  static HWY_INLINE hn::Vec<DNBits> PlusHalf(VN v) {
    return hn::Add(hn::BitCast(DNBits(), v), hn::Set(DNBits(), 0x8000u));
  }
};

#if SPK_NATIVE_F16
template <>
struct Narrow<F16> {
  static constexpr bool kInFloats = true;
  static constexpr int kCut = 13;
  using D16 = hn::Rebind<hwy::float16_t, DN>;

  static HWY_INLINE VN Load(const F16 *p) { return LoadFloats(DN(), p); }
  static HWY_INLINE void Store(VN v, F16 *p) {
    hn::StoreU(hn::DemoteTo(D16(), v), D16(), reinterpret_cast<hwy::float16_t *>(p));
  }
  // Conversions take whole registers.
  static HWY_INLINE void LoadPair(const F16 *p, VN *a, VN *b) {
    *a = Load(p);
    *b = Load(p + kNarrow);
  }
  static HWY_INLINE void StorePair(VN a, VN b, F16 *p) {
    Store(a, p);
    Store(b, p + kNarrow);
  }
  // May any of these products lie in the middle of two? What is cut off is turned to the top: of a
  // normal number's middle it is the sign bit alone. Subnormal numbers have fewer bits: of their
  // middles it is 0, and the rest, never 0, is less than that of the least normal number.
  static HWY_INLINE bool MayLieBetween(VN a, VN b) {
    constexpr uint32_t kLeast = 113u << (23 - kCut);  // 2^-14
    constexpr int32_t kBeyond = 1 << (31 - kCut);     // more than the rest of any
    constexpr int32_t kSign = INT32_MIN;
    const DNBits du;
    const hn::RebindToSigned<DN> di;
    const auto turned = [&](VN v)
                            HWY_ATTR { return hn::RotateRight<kCut>(hn::BitCast(du, hn::Abs(v))); };
    const auto x = turned(a);
    const auto y = turned(b);
    const auto lower = hn::Min(hn::BitCast(di, x), hn::BitCast(di, y));
    const auto middle = hn::RebindMask(du, hn::Lt(lower, hn::Set(di, kSign + kBeyond)));
    const auto one = hn::Set(du, 1);
    const auto least = hn::Min(hn::Sub(x, one), hn::Sub(y, one));
    return !hn::AllFalse(du, hn::Or(middle, hn::Lt(least, hn::Set(du, kLeast - 1))));
  }
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
