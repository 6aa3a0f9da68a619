// Cuts scopes at their k-th largest keys, lane by lane, by halving intervals: for scopes of more keys
// than are sorted, and for keys that do not compare as floats.
#if defined(SPK_KERNELS_HALVE_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_HALVE_KEYS_INL_H_
#undef SPK_KERNELS_HALVE_KEYS_INL_H_
#else
#define SPK_KERNELS_HALVE_KEYS_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "kernels/count_up-inl.h"
#include "kernels/sort_keys-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// What comes next is asked for in so many parts.
inline constexpr int kAskedParts = 6;

// An interval [low, high) of keys for each lane of kC registers of scopes: at least as many as are
// wanted are `low` or above, fewer are `high` or above. A register is a column of rows of keys.
template <typename T, int64_t kC>
class Intervals {
 public:
  // From all keys there are. Of zeros, which tie most often, none is halved.
  HWY_INLINE Intervals(const T *keys, int64_t row, int64_t n, const T *wanted)
      : keys_(keys), row_(row), n_(n) {
    for (int64_t c = 0; c < kC; ++c) Begin(c, hn::Load(D(), wanted + c * kL));
  }

  // Halves until each is one key, or tells keys that stay from others. Meanwhile memory is idle: parts
  // 0 to kAskedParts - 1 of what comes next are asked for.
  template <class Ask>
  HWY_INLINE void Halve(const Ask &ask) {
    int part = 0;
    for (; !AreClosed(); ++part) {
      if (part < kAskedParts) ask(part);
      // Keys of 16 bits leave little to halve by then.
      constexpr int kFirst = 12;
      constexpr int kAgain = 4;
      if (sizeof(T) > 2 && part >= kFirst && part % kAgain == 0) {
        for (int64_t c = 0; c < kC; ++c) MoveToKeys(c);
      }
      V middle[kC];
      V from_middle[kC];
      for (int64_t c = 0; c < kC; ++c) {
        middle[c] = hn::Add(low_[c], hn::ShiftRight<1>(hn::Sub(high_[c], low_[c])));
      }
      CountFrom(middle, from_middle);
      for (int64_t c = 0; c < kC; ++c) Take(c, middle[c], from_middle[c]);
    }
    for (; part < kAskedParts; ++part) ask(part);
  }

  // Writes the cuts, below which keys go. Returns whether more are left at some than are wanted.
  HWY_INLINE bool Store(T *cut) const {
    bool tied = false;
    for (int64_t c = 0; c < kC; ++c) {
      hn::Store(hn::Sub(low_[c], hn::Set(D(), T{1})), D(), cut + c * kL);
      tied |= !hn::AllTrue(D(), hn::Eq(from_low_[c], wanted_[c]));
    }
    return tied;
  }

 private:
  using D = Tag<T>;
  using V = Vec<T>;
  static constexpr int64_t kL = kLanesOf<T>;

  HWY_INLINE V Key(int64_t p, int64_t c) const { return hn::Load(D(), keys_ + p * row_ + c * kL); }

  HWY_INLINE void Begin(int64_t c, V wanted) {
    const V all = hn::Set(D(), static_cast<T>(n_));
    const V one = hn::Set(D(), T{1});
    V least = Key(0, c);
    V most = least;
    V zeros = hn::Zero(D());
    for (int64_t p = 0; p < n_; ++p) {
      const V key = Key(p, c);
      least = hn::Min(least, key);
      most = hn::Max(most, key);
      zeros = CountUp(D(), zeros, hn::Eq(key, hn::Zero(D())));
    }
    // Where none is wanted, what stays is above all numbers: one more wraps around to the least.
    const auto none = hn::Eq(wanted, hn::Zero(D()));
    const auto at_zero = hn::Gt(wanted, hn::Sub(all, zeros));
    wanted_[c] = wanted;
    low_[c] = hn::IfThenElse(none, hn::Set(D(), std::numeric_limits<T>::min()), least);
    high_[c] = hn::IfThenElse(at_zero, one, hn::Add(most, one));
    from_low_[c] = hn::IfThenZeroElse(none, all);
    CloseIfTold(c);
  }

  // Nothing is left to tell where as many as are wanted are `low` or above. This may wrap around: an
  // interval is the difference of its ends.
  HWY_INLINE void CloseIfTold(int64_t c) {
    const auto told = hn::Eq(from_low_[c], wanted_[c]);
    high_[c] = hn::IfThenElse(told, hn::Add(low_[c], hn::Set(D(), T{1})), high_[c]);
  }

  HWY_INLINE bool AreClosed() const {
    auto open = hn::Gt(hn::Sub(high_[0], low_[0]), hn::Set(D(), T{1}));
    for (int64_t c = 1; c < kC; ++c) {
      open = hn::Or(open, hn::Gt(hn::Sub(high_[c], low_[c]), hn::Set(D(), T{1})));
    }
    return hn::AllFalse(D(), open);
  }

  // Moves the ends of what is open to keys. Where only equal keys are left in an interval, or a few
  // that are much closer than it is wide, halving would take a pass for each bit.
  HWY_INLINE void MoveToKeys(int64_t c) {
    const V one = hn::Set(D(), T{1});
    const V lowest = hn::Set(D(), std::numeric_limits<T>::min());
    const V highest = hn::Set(D(), std::numeric_limits<T>::max());
    V least = highest;
    V most = lowest;
    for (int64_t p = 0; p < n_; ++p) {
      const V key = Key(p, c);
      least = hn::Min(least, hn::IfThenElse(hn::Gt(low_[c], key), highest, key));
      most = hn::Max(most, hn::IfThenElse(hn::Gt(high_[c], key), key, lowest));
    }
    const auto open = hn::Gt(hn::Sub(high_[c], low_[c]), one);
    low_[c] = hn::IfThenElse(open, least, low_[c]);
    high_[c] = hn::IfThenElse(open, hn::Add(most, one), high_[c]);
  }

  HWY_INLINE void CountFrom(const V *least, V *count) const {
    V below[kC];
    for (int64_t c = 0; c < kC; ++c) {
      below[c] = hn::Sub(least[c], hn::Set(D(), T{1}));
      count[c] = hn::Zero(D());
    }
    V odd[kC];
    for (int64_t c = 0; c < kC; ++c) odd[c] = hn::Zero(D());
    for (int64_t p = 0; p + 1 < n_; p += 2) {
      for (int64_t c = 0; c < kC; ++c) {
        count[c] = CountUp(D(), count[c], hn::Gt(Key(p, c), below[c]));
        odd[c] = CountUp(D(), odd[c], hn::Gt(Key(p + 1, c), below[c]));
      }
    }
    for (int64_t c = 0; c < kC; ++c) {
      if (n_ % 2 != 0) odd[c] = CountUp(D(), odd[c], hn::Gt(Key(n_ - 1, c), below[c]));
      count[c] = hn::Add(count[c], odd[c]);
    }
  }

  // What is closed stays: its middle is `low`.
  HWY_INLINE void Take(int64_t c, V middle, V from_middle) {
    const auto too_few = hn::Gt(wanted_[c], from_middle);
    low_[c] = hn::IfThenElse(too_few, low_[c], middle);
    high_[c] = hn::IfThenElse(too_few, middle, high_[c]);
    from_low_[c] = hn::IfThenElse(too_few, from_low_[c], from_middle);
    CloseIfTold(c);
  }

  const T *keys_;
  int64_t row_;  // keys between rows
  int64_t n_;
  V wanted_[kC], low_[kC], high_[kC];
  V from_low_[kC];  // keys that are `low` or above
};

// Cuts kC registers of scopes of n keys each. Returns whether keys are tied at some cut.
template <typename T, int64_t kC, class Ask>
HWY_INLINE bool HalveKeys(const T *keys, int64_t row, int64_t n, const T *wanted, T *cut,
                          const Ask &ask) {
  Intervals<T, kC> intervals(keys, row, n, wanted);
  intervals.Halve(ask);
  return intervals.Store(cut);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
