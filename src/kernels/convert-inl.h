// Loads of any float dtype as floats or doubles, and stores of them rounded once to nearest even.
// Per target; written in integer operations where instruction sets differ in rounding or in NaN.
#if defined(SPK_KERNELS_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_CONVERT_INL_H_
#undef SPK_KERNELS_CONVERT_INL_H_
#else
#define SPK_KERNELS_CONVERT_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <type_traits>

#include "kernels/kernels.h"
#include "kernels/storage.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 8 doubles, so that the 8 virtual lanes are always whole registers.
using D = hn::CappedTag<double, 8>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;
using DF = hn::Rebind<float, D>;
using DU32 = hn::Rebind<uint32_t, D>;
using DU16 = hn::Rebind<uint16_t, D>;
using VF = hn::Vec<DF>;
using VU32 = hn::Vec<DU32>;
inline constexpr int64_t kN = static_cast<int64_t>(hn::MaxLanes(D()));
inline constexpr int64_t kRegisters = kLanes / kN;  // of virtual lanes
// Elements of a cache line.
template <class T>
inline constexpr int64_t kLineOf = 64 / static_cast<int64_t>(sizeof(T));

// Elements as floats, of any register of them.
template <class DT>
HWY_INLINE hn::Vec<DT> LoadFloats(DT d, const float *p) {
  return hn::LoadU(d, p);
}

template <class DT>
HWY_INLINE hn::Vec<DT> LoadFloats(DT d, const Bf16 *p) {
  const hn::Rebind<uint16_t, DT> d16;
  const hn::RebindToUnsigned<DT> du;
  const auto words = hn::LoadU(d16, reinterpret_cast<const uint16_t *>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, words)));
}

// From AVX2 on, processors convert f16 themselves.
#undef SPK_NATIVE_F16
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
#define SPK_NATIVE_F16 1
#else
#define SPK_NATIVE_F16 0
#endif

#if SPK_NATIVE_F16
using DF16 = hn::Rebind<hwy::float16_t, D>;

template <class DT>
HWY_INLINE hn::Vec<DT> LoadFloats(DT d, const F16 *p) {
  const hn::Rebind<hwy::float16_t, DT> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t *>(p)));
}
#else
// Exponent and mantissa moved into place read as the value times 2^-112, subnormals included;
// infinities and NaN get their exponent afterwards.
template <class DT>
HWY_INLINE hn::Vec<DT> LoadFloats(DT d, const F16 *p) {
  const hn::Rebind<uint16_t, DT> d16;
  const hn::RebindToUnsigned<DT> du;
  const auto half = hn::PromoteTo(du, hn::LoadU(d16, reinterpret_cast<const uint16_t *>(p)));
  const auto magnitude = hn::And(half, hn::Set(du, 0x7fff));
  const auto sign = hn::ShiftLeft<16>(hn::Xor(half, magnitude));
  const auto scaled = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)), hn::Set(d, 0x1p112f));
  const auto special = hn::Gt(magnitude, hn::Set(du, 0x7bff));
  const auto bits =
      hn::Or(hn::BitCast(du, scaled), hn::IfThenElseZero(special, hn::Set(du, 0x7f800000u)));
  return hn::BitCast(d, hn::Or(bits, sign));
}
#endif

HWY_INLINE V Load(const double *p) {
  return hn::LoadU(D(), p);
}
template <class T>
HWY_INLINE V Load(const T *p) {
  return hn::PromoteTo(D(), LoadFloats(DF(), p));
}

// kLanes elements.
template <class T>
HWY_INLINE void LoadLanes(const T *p, V *lanes) {
  for (int64_t r = 0; r < kRegisters; ++r) lanes[r] = Load(p + r * kN);
}
#if HWY_MAX_BYTES == 32
// Words that fill a register are unpacked from it straight to where floats have them.
HWY_INLINE void LoadLanes(const Bf16 *p, V *lanes) {
  const hn::Repartition<uint16_t, DF> d16;
  const auto words = hn::LoadU(d16, reinterpret_cast<const uint16_t *>(p));
  const auto lower = hn::InterleaveLower(d16, hn::Zero(d16), words);
  const auto upper = hn::InterleaveUpper(d16, hn::Zero(d16), words);
  lanes[0] = hn::PromoteTo(D(), hn::BitCast(DF(), lower));
  lanes[1] = hn::PromoteTo(D(), hn::BitCast(DF(), upper));
}
#endif

// Where Highway has no instructions for it, it makes the largest float of what is beyond.
HWY_INLINE VF ToFloat(V v) {
#if HWY_TARGET == HWY_SCALAR
  return VF(static_cast<float>(v.raw));
#elif HWY_TARGET == HWY_EMU128
  VF floats;
  for (int64_t i = 0; i < kN; ++i) floats.raw[i] = static_cast<float>(v.raw[i]);
  return floats;
#else
  return hn::DemoteTo(DF(), v);
#endif
}

// Past the caches, to where a vector may begin. Highway streams no less than 16 bytes: half a
// register would write beyond its end.
template <class VT, class DT>
HWY_INLINE void StorePastCaches(VT v, DT d, hn::TFromD<DT> *p) {
  if constexpr (hn::MaxLanes(d) * sizeof(*p) >= 16) {
    hn::Stream(v, d, p);
  } else {
    hn::StoreU(v, d, p);
  }
}

// Elements before the first that begins a vector of `lanes`.
template <class T>
HWY_INLINE int64_t BeforeVector(const T *y, int64_t lanes, int64_t n) {
  const auto at = static_cast<int64_t>(reinterpret_cast<uintptr_t>(y) / sizeof(T));
  return HWY_MIN(n, (lanes - at % lanes) % lanes);
}

HWY_INLINE void Store(V v, double *p) {
  hn::StoreU(v, D(), p);
}
HWY_INLINE void Store(V v, float *p) {
  hn::StoreU(ToFloat(v), DF(), p);
}

// Rounds to odd: a float that a later rounding to fewer bits cannot tell from the exact value
// (Boldo and Melquiond, 2008). An inexact even float moves one step towards the exact value.
HWY_INLINE VU32 ToFloatOdd(V v) {
  const D d;
  const DU32 du;
  const VF rounded = ToFloat(v);
  const V back = hn::PromoteTo(d, rounded);
  // Comparisons in double, moved to 32-bit lanes as 0 or 1 by a conversion.
  const V one = hn::Set(d, 1.0);
  const auto above = hn::Gt(hn::Abs(back), hn::Abs(v));
  const auto below = hn::Lt(hn::Abs(back), hn::Abs(v));
  const hn::Rebind<int32_t, D> di;
  const VU32 down = hn::BitCast(du, hn::DemoteTo(di, hn::IfThenElseZero(above, one)));
  const VU32 up = hn::BitCast(du, hn::DemoteTo(di, hn::IfThenElseZero(below, one)));
  const VU32 bits = hn::BitCast(du, rounded);
  const VU32 even = hn::AndNot(bits, hn::Set(du, 1));  // 1 where the last bit is 0
  return hn::Sub(hn::Add(bits, hn::And(up, even)), hn::And(down, even));
}

// The same for numbers that are 0 or no less than the least normal float: the bits that a float
// has no room for are cut off, and any that is set sets the last one that stays.
HWY_INLINE VF ToFloatOddNormal(V v) {
  const D d;
  const hn::RebindToUnsigned<D> du;
  constexpr uint64_t kCut = (uint64_t{1} << 29) - 1;
  const auto bits = hn::BitCast(du, v);
  const auto cut = hn::And(bits, hn::Set(du, kCut));
  const auto sticky = hn::IfThenElseZero(hn::Ne(cut, hn::Zero(du)), hn::Set(du, uint64_t{1} << 29));
  return ToFloat(hn::BitCast(d, hn::Or(hn::AndNot(hn::Set(du, kCut), bits), sticky)));
}

HWY_INLINE bool AllNormalFloats(V v) {
  const D d;
  const V magnitude = hn::Abs(v);
  const auto normal = hn::Ge(magnitude, hn::Set(d, 0x1p-126));  // false for NaN
  return hn::AllTrue(d, hn::Or(normal, hn::Eq(magnitude, hn::Zero(d))));
}

template <class DU>
HWY_INLINE void StoreWords(DU, hn::Vec<DU> words, void *p) {
  // Lanes hold 16-bit values; a saturating conversion keeps them.
  const hn::RebindToSigned<DU> di;
  const hn::Rebind<uint16_t, DU> d16;
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, words)), d16, static_cast<uint16_t *>(p));
}

// To nearest even, of the upper half of a float's bits.
template <class DU>
HWY_INLINE hn::Vec<DU> UpperHalf(DU du, hn::Vec<DU> bits) {
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  return hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
}

inline HWY_NOINLINE void StoreAny(V v, Bf16 *p) {
  const DU32 du;
  const VU32 bits = ToFloatOdd(v);
  const VU32 magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
  const VU32 quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40));
  const auto is_nan = hn::Gt(magnitude, hn::Set(du, 0x7f800000u));
  StoreWords(du, hn::IfThenElse(is_nan, quiet, UpperHalf(du, bits)), p);
}

HWY_INLINE void Store(V v, Bf16 *p) {
  if (HWY_UNLIKELY(!AllNormalFloats(v))) return StoreAny(v, p);
  const DU32 du;
  StoreWords(du, UpperHalf(du, hn::BitCast(du, ToFloatOddNormal(v))), p);
}

#if !SPK_NATIVE_F16
inline HWY_NOINLINE void Store(V v, F16 *p) {
  const DU32 du;
  const DF df;
  const VU32 bits = ToFloatOdd(v);
  const VU32 magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
  const VU32 sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
  // Normal: round the mantissa to 10 bits, to even; a carry runs into the exponent, up to infinity.
  const VU32 odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const VU32 rebiased = hn::Sub(magnitude, hn::Set(du, 112u << 23));
  const VU32 normal = hn::ShiftRight<13>(hn::Add(rebiased, hn::Add(odd, hn::Set(du, 0xfffu))));
  // Subnormal: adding 0.5 aligns the last bit of the sum with 2^-24, and rounds to it.
  const VF aligned = hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5f));
  const VU32 subnormal = hn::Sub(hn::BitCast(du, aligned), hn::Set(du, 0x3f000000u));
  const VU32 tiny_or_normal =
      hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 113u << 23)), subnormal, normal);
  const auto overflows = hn::Gt(magnitude, hn::Set(du, 0x477fffffu));  // >= 65536
  const auto is_nan = hn::Gt(magnitude, hn::Set(du, 0x7f800000u));
  VU32 half = hn::IfThenElse(overflows, hn::Set(du, 0x7c00), tiny_or_normal);
  // A NaN's payload is cut off, as by processors.
  const VU32 payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x3ff));
  half = hn::IfThenElse(is_nan, hn::Or(payload, hn::Set(du, 0x7e00)), half);
  StoreWords(du, hn::Or(half, sign), p);
}
#else
HWY_INLINE void Store(V v, F16 *p) {
  // What is less than the least normal float becomes 0 either way.
  const auto half = hn::DemoteTo(DF16(), ToFloatOddNormal(v));
  hn::StoreU(half, DF16(), reinterpret_cast<hwy::float16_t *>(p));
}
#endif

// --- rows of any step, to floats or doubles and back -------------------------------------------

// Floats to elements; to 16-bit ones for floats that are exact, or were rounded to odd, so that none
// in the middle of two had lost bits.
template <class DT>
HWY_INLINE void StoreFloats(DT d, hn::Vec<DT> v, float *p) {
  hn::StoreU(v, d, p);
}
template <class DT>
HWY_INLINE void StoreFloats(DT, hn::Vec<DT> v, Bf16 *p) {
  const hn::RebindToUnsigned<DT> du;
  StoreWords(du, UpperHalf(du, hn::BitCast(du, v)), p);
}
#if SPK_NATIVE_F16
template <class DT>
HWY_INLINE void StoreFloats(DT, hn::Vec<DT> v, F16 *p) {
  const hn::Rebind<hwy::float16_t, DT> d16;
  hn::StoreU(hn::DemoteTo(d16, v), d16, reinterpret_cast<hwy::float16_t *>(p));
}
#else
HWY_INLINE void StoreFloats(DF, VF v, F16 *p) {
  Store(hn::PromoteTo(D(), v), p);
}
#endif

// Converts kN numbers; to fewer bits rounded once.
template <class From, class To>
HWY_INLINE void Convert(const From *from, To *to) {
  if constexpr (sizeof(From) <= sizeof(float) && sizeof(To) <= sizeof(float)) {
    StoreFloats(DF(), LoadFloats(DF(), from), to);
  } else {
    Store(Load(from), to);
  }
}

// Converts kLanes numbers.
template <class From, class To>
HWY_INLINE void ConvertLanes(const From *from, To *to) {
  // Floats fill registers that hold as many doubles only in half.
  constexpr bool kFloats = sizeof(From) <= sizeof(float) && sizeof(To) <= sizeof(float);
  if constexpr (kFloats && (SPK_NATIVE_F16 || !std::is_same_v<To, F16>)) {
    const hn::CappedTag<float, kLanes> d;
    for (int64_t i = 0; i < kLanes; i += static_cast<int64_t>(hn::MaxLanes(d))) {
      StoreFloats(d, LoadFloats(d, from + i), to + i);
    }
  } else {
    for (int64_t i = 0; i < kLanes; i += kN) Convert(from + i, to + i);
  }
}

// Converts as many of n neighbours as fill registers, and returns how many.
template <class From, class To>
HWY_INLINE int64_t ConvertRegisters(const From *from, int64_t n, To *to) {
  int64_t i = 0;
  if (n % kLanes == 0) {
    for (; i < n; i += kLanes) ConvertLanes(from + i, to + i);
  } else {
    for (; i + kN <= n; i += kN) Convert(from + i, to + i);
  }
  return i;
}

// Converts n numbers, `step` and `to_step` apart, from the `i`th on.
template <class From, class To>
HWY_INLINE void ConvertRest(const From *from, int64_t i, int64_t n, int64_t step, To *to,
                            int64_t to_step) {
  // Words gathered for a register would be waited for; scalars that C++ knows are not.
  if constexpr (std::is_floating_point_v<From> && std::is_floating_point_v<To>) {
    for (; i < n; ++i) to[i * to_step] = static_cast<To>(from[i * step]);
  }
  for (; i < n; i += kN) {
    const int64_t left = HWY_MIN(n - i, kN);
    HWY_ALIGN From in[kN] = {};
    HWY_ALIGN To out[kN];
    for (int64_t k = 0; k < left; ++k) in[k] = from[(i + k) * step];
    Convert(in, out);
    for (int64_t k = 0; k < left; ++k) to[(i + k) * to_step] = out[k];
  }
}

// Processors do not look beyond a page of their own accord, and boxes are often about as wide.
template <class T>
inline constexpr int64_t kAhead = 4096 / sizeof(T);

// Elements to floats, if they are no wider, or doubles.
template <class T, class To>
HWY_INLINE void ReadRow(const T *x, int64_t n, int64_t step, To *out, int64_t out_step) {
  int64_t i = 0;
  if (step == 1 && out_step == 1) {
    for (; i + kLineOf<T> <= n; i += kLineOf<T>) {
      hwy::Prefetch(x + i + kAhead<T>);
      ConvertRegisters(x + i, kLineOf<T>, out + i);
    }
    i += ConvertRegisters(x + i, n - i, out + i);
  }
  ConvertRest(x, i, n, step, out, out_step);
}

// And back.
template <class From, class T>
HWY_INLINE void WriteRow(const From *in, int64_t n, int64_t in_step, T *y, int64_t step) {
  const int64_t i = step == 1 && in_step == 1 ? ConvertRegisters(in, n, y) : 0;
  ConvertRest(in, i, n, in_step, y, step);
}

// --- registers that are not full --------------------------------------------------------------

// Loads and stores `count` <= kN doubles.
HWY_INLINE V LoadDoubles(const double *p, int64_t count) {
  if (count == kN) return hn::LoadU(D(), p);
  HWY_ALIGN double values[kN] = {};
  for (int64_t i = 0; i < count; ++i) values[i] = p[i];
  return hn::Load(D(), values);
}
HWY_INLINE void StoreDoubles(V v, double *p, int64_t count) {
  if (count == kN) return hn::StoreU(v, D(), p);
  HWY_ALIGN double values[kN];
  hn::Store(v, D(), values);
  for (int64_t i = 0; i < count; ++i) p[i] = values[i];
}

// Numbers, `step` apart, as lanes. They meet in registers: gathered in memory, they would be waited
// for.
template <class DT, class T>
HWY_INLINE hn::Vec<DT> GatherLanes(DT d, const T *x, int64_t step) {
  constexpr auto kCount = static_cast<int64_t>(hn::MaxLanes(d));
  const auto number = [&](int64_t i)
                          HWY_ATTR { return hn::Set(d, static_cast<hn::TFromD<DT>>(x[i * step])); };
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kCount == 2) {
    return hn::OddEven(number(1), number(0));
  } else if constexpr (kCount == 4) {
    return hn::ConcatUpperLower(d, hn::OddEven(number(3), number(2)),
                                hn::OddEven(number(1), number(0)));
  } else if constexpr (kCount == 8) {
    const hn::Half<DT> half;
    return hn::Combine(d, GatherLanes(half, x + 4 * step, step), GatherLanes(half, x, step));
  }
#endif
  static_assert(kCount <= 8);
  return number(0);
}

HWY_INLINE V LoadApart(const double *x, int64_t step) {
  return GatherLanes(D(), x, step);
}
HWY_INLINE V LoadApart(const float *x, int64_t step) {
  return hn::PromoteTo(D(), GatherLanes(DF(), x, step));
}
// Stored as one, words can be loaded as one at once.
template <class T>
HWY_INLINE V LoadApart(const T *x, int64_t step) {
  HWY_ALIGN T elements[kN];
  const auto *words = reinterpret_cast<const uint16_t *>(x);
  StoreWords(DU32(), GatherLanes(DU32(), words, step), elements);
  return Load(elements);
}

// `count` <= kN elements, `step` apart; what fills the register is any number.
template <class T>
HWY_INLINE V LoadSome(const T *x, int64_t step, int64_t count) {
  if (count == kN) return step == 1 ? Load(x) : LoadApart(x, step);
  HWY_ALIGN T elements[kN] = {};
  for (int64_t i = 0; i < count; ++i) elements[i] = x[i * step];
  return Load(elements);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();
#endif
