// Largest magnitudes along rows of floats and 16-bit numbers, compared as integers of their own
// width: kLanes at a time, without conversions. An element that is compared twice changes nothing,
// so ends of rows need no masks.
#if defined(SPK_KERNELS_LARGEST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_LARGEST_INL_H_
#undef SPK_KERNELS_LARGEST_INL_H_
#else
#define SPK_KERNELS_LARGEST_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "kernels/convert-inl.h"
#include "kernels/fold-inl.h"
#include "kernels/kernels.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// MaxMagnitude of rows of T. Which lane an element is in makes no difference.
template <class T>
struct Largest : MaxMagnitude {};
template <class Op>
inline constexpr bool kIsLargest = false;
template <class T>
inline constexpr bool kIsLargest<Largest<T>> = true;

template <class T>
using DMagnitudes = hn::CappedTag<hwy::SignedFromSize<sizeof(T)>, kLanes>;

template <class T>
struct Lanes<Largest<T>> {
  using DW = DMagnitudes<T>;
  using Word = hn::TFromD<DW>;
  static constexpr int64_t kWords = static_cast<int64_t>(hn::MaxLanes(DW()));

  hn::Vec<DW> largest = hn::Zero(DW());

  HWY_INLINE Lanes() {}  // NOLINT(modernize-use-equals-default)

  HWY_INLINE void Join(const Lanes &other) { largest = hn::Max(largest, other.largest); }
  HWY_INLINE void Add(const T *x, V) {
    const auto without_sign = hn::Set(DW(), hwy::LimitsMax<Word>());
    for (int64_t w = 0; w < kLanes; w += kWords) {
      const auto words = hn::LoadU(DW(), reinterpret_cast<const Word *>(x + w));
      largest = hn::Max(largest, hn::And(words, without_sign));
    }
  }
  // Zeros that follow change nothing.
  HWY_INLINE void AddSome(const T *x, int64_t, V with) { Add(x, with); }
};

template <class T>
struct StoredLanes<Largest<T>> {
  HWY_ALIGN typename Lanes<Largest<T>>::Word largest[Lanes<Largest<T>>::kWords];

  HWY_INLINE void Put(const Lanes<Largest<T>> &lanes) {
    hn::Store(lanes.largest, DMagnitudes<T>(), largest);
  }
  HWY_INLINE void Take(Lanes<Largest<T>> *lanes) const {
    lanes->largest = hn::Load(DMagnitudes<T>(), largest);
  }
};

// The row's last kLanes elements, some of which have been added before.
template <class T>
struct Tail<Largest<T>> {
  static constexpr int64_t FirstRegister(int64_t) { return 0; }

  explicit HWY_INLINE Tail(int64_t) {}
  HWY_INLINE void Add(const T *end, V with, Lanes<Largest<T>> *lanes) const {
    lanes->Add(end - kLanes, with);
  }
  HWY_INLINE void AddFrom(int64_t, const T *end, V with, Lanes<Largest<T>> *lanes) const {
    Add(end, with, lanes);
  }
};

// The largest of each kCount neighbours in kCount registers, taken as one long row of lanes.
#if HWY_TARGET == HWY_SCALAR  // where a register is one lane, and kCount is 1
template <int64_t kCount, class DT, class VT>
HWY_INLINE VT LargestOfNeighbours(DT, const VT *v) {
  return v[0];
}
#else
template <int64_t kCount, class DT, class VT>
HWY_INLINE VT LargestOfNeighbours(DT d, const VT *v) {
  if constexpr (kCount == 2) {
    return hn::Max(hn::ConcatEven(d, v[1], v[0]), hn::ConcatOdd(d, v[1], v[0]));
  } else {
    const VT half[] = {LargestOfNeighbours<kCount / 2>(d, v),
                       LargestOfNeighbours<kCount / 2>(d, v + kCount / 2)};
    return LargestOfNeighbours<2>(d, half);
  }
}
#endif

template <class T>
HWY_INLINE Accumulator<Largest<T>> Fold(const Lanes<Largest<T>> *block) {
  const DMagnitudes<T> d;
  hn::Vec<DMagnitudes<T>> words[kN];
  for (int64_t i = 0; i < kN; ++i) words[i] = block[i].largest;
  words[0] = LargestOfNeighbours<kN>(d, words);
  for (int64_t lanes = Lanes<Largest<T>>::kWords; lanes > kN; lanes /= 2) {
    const hn::Vec<DMagnitudes<T>> twice[] = {words[0], words[0]};
    words[0] = LargestOfNeighbours<2>(d, twice);
  }
  HWY_ALIGN T magnitudes[kLanes];
  hn::Store(words[0], d, reinterpret_cast<hn::TFromD<DMagnitudes<T>> *>(magnitudes));
  return Accumulator<Largest<T>>(Load(magnitudes));
}

// What a reduction of rows of T is done by.
template <class T, class Op>
using AlongRows =
    std::conditional_t<Op::kWhat == kMaxMagnitude && !std::is_same_v<T, double>, Largest<T>, Op>;

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
