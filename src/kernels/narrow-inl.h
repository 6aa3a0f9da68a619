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
inline constexpr int64_t kWords = 2 * kNarrow;

// kNarrow doubles as floats.
HWY_INLINE VN LoadAsFloats(const double *p) {
#if HWY_TARGET == HWY_SCALAR
  return ToFloat(Load(p));
#else
  return hn::Combine(DN(), ToFloat(Load(p + kN)), ToFloat(Load(p)));
#endif
}

// kN doubles as floats, in the lower lanes.
HWY_INLINE VN AsFloats(V v) {
#if HWY_TARGET == HWY_SCALAR
  return ToFloat(v);
#else
  return hn::ZeroExtendVector(DN(), ToFloat(v));
#endif
}

// Numbers are taken kNarrow at a time, as floats, or twice as many, a whole register of words,
// times one factor. A product that is off by less than a bit and a half of a float rounds on as the
// exact one does unless the middle of two 16-bit numbers is as near: such products are not told, and
// left to others.

// SCALAR has no register of two words.
#if HWY_TARGET != HWY_SCALAR
using DWords = hn::Repartition<uint16_t, DN>;
using VWords = hn::Vec<DWords>;

template <>
struct Narrow<Bf16> {
  static constexpr bool kInFloats = true;

  static HWY_INLINE VN Load(const Bf16 *p) { return LoadFloats(DN(), p); }
  // Of products; the lower half of a NaN is 0. Stores them if all are told, and returns whether.
  static HWY_INLINE bool StoreTold(VN v, Bf16 *p) {
    const DNBits du;
    const auto bits = PastMiddle(hn::BitCast(du, v));
    const auto near = AreAtMost(du, hn::ShiftLeft<16>(bits), uint32_t{kNear} << 16);
    if (HWY_UNLIKELY(!hn::AllFalse(du, near))) return false;
    StoreWords(du, hn::ShiftRight<16>(bits), p);
    return true;
  }

  // What a factor is made of; here it is the nearest float.
  static constexpr int kParts = 1;
  static HWY_INLINE V Part(V factor, int /*part*/) { return factor; }
  // Parts are `part` apart.
  struct Factors {
    VN words;

    HWY_INLINE Factors(const float *factor, int64_t /*part*/) : words(hn::Set(DN(), *factor)) {}
  };
  using Words = VWords;
  struct Products {
    VWords words, rest;
  };

  static HWY_INLINE Words LoadPair(const Bf16 *p) {
    return hn::LoadU(DWords(), reinterpret_cast<const uint16_t *>(p));
  }
  // A row of fewer: its first and its last kNarrow, which may overlap.
  static HWY_INLINE Words LoadHalves(const Bf16 *lower, const Bf16 *upper) {
    const hn::Half<DWords> half;
    return hn::Combine(DWords(), hn::LoadU(half, reinterpret_cast<const uint16_t *>(upper)),
                       hn::LoadU(half, reinterpret_cast<const uint16_t *>(lower)));
  }
  // Even words and odd ones are taken apart, and meet again, by shifts. +0 where a factor is 0.
  static HWY_INLINE Products Multiply(Words x, const Factors &factors) {
    const DN d;
    const DNBits du;
    const DWords dw;
    const auto pairs = hn::BitCast(du, x);
    const VN even = hn::BitCast(d, hn::ShiftLeft<16>(pairs));
    const VN odd = hn::BitCast(d, hn::And(pairs, hn::Set(du, 0xffff0000u)));
    const auto low = PastMiddle(hn::BitCast(du, hn::Mul(even, factors.words)));
    const auto high = PastMiddle(hn::BitCast(du, hn::Mul(odd, factors.words)));
    const auto join = [](hn::Vec<DNBits> e, hn::Vec<DNBits> o) HWY_ATTR {
      return hn::OddEven(hn::BitCast(DWords(), o), hn::BitCast(DWords(), e));
    };
    const auto alive = hn::Ne(factors.words, hn::Zero(d));
    const VN words = hn::BitCast(d, join(hn::ShiftRight<16>(low), high));
    return {hn::BitCast(dw, hn::IfThenElseZero(alive, words)), join(low, hn::ShiftLeft<16>(high))};
  }
  static HWY_INLINE bool AreTold(const Products &a) {
    return hn::AllFalse(DWords(), AreAtMost(DWords(), a.rest, kNear));
  }
  static HWY_INLINE bool AreTold(const Products &a, const Products &b) {
    return hn::AllFalse(DWords(), AreAtMost(DWords(), hn::Min(a.rest, b.rest), kNear));
  }
  static HWY_INLINE void StorePair(const Products &v, Bf16 *p) {
    hn::StoreU(v.words, DWords(), reinterpret_cast<uint16_t *>(p));
  }
  static HWY_INLINE void StoreHalves(const Products &v, Bf16 *lower, Bf16 *upper) {
    const hn::Half<DWords> half;
    hn::StoreU(hn::LowerHalf(half, v.words), half, reinterpret_cast<uint16_t *>(lower));
    hn::StoreU(hn::UpperHalf(half, v.words), half, reinterpret_cast<uint16_t *>(upper));
  }

 private:
  // A middle, the bit below it and the one above it become 0 to kNear in the lower half; what is
  // further up is carried into the upper one.
  static constexpr uint16_t kNear = 2;
  static HWY_INLINE hn::Vec<DNBits> PastMiddle(hn::Vec<DNBits> bits) {
    return hn::Add(bits, hn::Set(DNBits(), 0x8001u));
  }
  // Unsigned numbers are not compared for it before AVX-512.
  template <class DU>
  static HWY_INLINE hn::Mask<DU> AreAtMost(DU d, hn::Vec<DU> v, hn::TFromD<DU> most) {
    return hn::Eq(hn::Min(v, hn::Set(d, most)), v);
  }
};
#endif

#if SPK_NATIVE_F16
// Processors round to f16 themselves, subnormal numbers too: a product is told where one of a
// little less and one of a little more round alike.
template <>
struct Narrow<F16> {
  static constexpr bool kInFloats = true;
  using D16 = hn::Rebind<hwy::float16_t, DN>;
  using DBytes = hn::Repartition<uint8_t, D16>;

  static HWY_INLINE VN Load(const F16 *p) { return LoadFloats(DN(), p); }
  // Of products that are off by less than a bit and a half: those beside them are two bits away.
  static HWY_INLINE bool StoreTold(VN v, F16 *p) {
    constexpr float kAway = 0x1p-22F;
    const auto less = hn::DemoteTo(D16(), hn::Mul(v, hn::Set(DN(), 1 - kAway)));
    const auto more = hn::DemoteTo(D16(), hn::Mul(v, hn::Set(DN(), 1 + kAway)));
    if (HWY_UNLIKELY(!hn::AllTrue(DBytes(), Alike(less, more)))) return false;
    StoreHalf(less, p);
    return true;
  }

  // Nearest floats of these are at least 2^-24 of the factor away from it, half a bit of any
  // product, and not much more. Adding 0 takes the sign off -0: what is dead becomes +0.
  static constexpr int kParts = 2;
  static HWY_INLINE V Part(V factor, int part) {
    constexpr double kAway = 0x1p-23 + 0x1p-40;
    const V part_of = hn::Mul(factor, hn::Set(D(), part == 0 ? 1 - kAway : 1 + kAway));
    return hn::Add(part_of, hn::Zero(D()));
  }
  struct Factors {
    VN less, more;

    HWY_INLINE Factors(const float *factor, int64_t part)
        : less(hn::Set(DN(), factor[0])), more(hn::Set(DN(), factor[part])) {}
  };
  struct Words {
    VN half[2];
  };
  struct Products {
    hn::Vec<D16> half[2];
    hn::Mask<DBytes> told;
  };

  static HWY_INLINE Words LoadPair(const F16 *p) { return LoadHalves(p, p + kNarrow); }
  static HWY_INLINE Words LoadHalves(const F16 *lower, const F16 *upper) {
    return {{Load(lower), Load(upper)}};
  }
  static HWY_INLINE Products Multiply(const Words &x, const Factors &factors) {
    const auto alive = hn::Ne(factors.less, hn::Zero(DN()));
    hn::Vec<D16> less[2];
    hn::Vec<D16> more[2];
    for (int i = 0; i < 2; ++i) {
      const VN v = hn::IfThenElseZero(alive, x.half[i]);
      less[i] = hn::DemoteTo(D16(), hn::Mul(v, factors.less));
      more[i] = hn::DemoteTo(D16(), hn::Mul(v, factors.more));
    }
    return {{less[0], less[1]}, hn::And(Alike(less[0], more[0]), Alike(less[1], more[1]))};
  }
  static HWY_INLINE bool AreTold(const Products &a) { return hn::AllTrue(DBytes(), a.told); }
  static HWY_INLINE bool AreTold(const Products &a, const Products &b) {
    return hn::AllTrue(DBytes(), hn::And(a.told, b.told));
  }
  static HWY_INLINE void StorePair(const Products &v, F16 *p) { StoreHalves(v, p, p + kNarrow); }
  static HWY_INLINE void StoreHalves(const Products &v, F16 *lower, F16 *upper) {
    StoreHalf(v.half[0], lower);
    StoreHalf(v.half[1], upper);
  }

 private:
  static HWY_INLINE void StoreHalf(hn::Vec<D16> v, F16 *p) {
    hn::StoreU(v, D16(), reinterpret_cast<hwy::float16_t *>(p));
  }
  // Bytes, because a mask of all is taken from those at once.
  static HWY_INLINE hn::Mask<DBytes> Alike(hn::Vec<D16> a, hn::Vec<D16> b) {
    return hn::Eq(hn::BitCast(DBytes(), a), hn::BitCast(DBytes(), b));
  }
};
#endif

// kNarrow elements times factors that are floats; +0 where one is 0.
template <class T>
HWY_INLINE VN ProductInFloats(const T *x, VN factor) {
  const auto alive = hn::Ne(factor, hn::Zero(DN()));
  return hn::IfThenElseZero(alive, hn::Mul(Narrow<T>::Load(x), factor));
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
