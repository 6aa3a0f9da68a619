// Asking for memory shortly before it is read, where registers are of eight doubles (AVX-512).
// Processors bring streams as far as the second level of cache. With registers so large arithmetic
// waits for the rest of the way, and is 10 to 30 % faster if the first level is asked for, too
// (measured on Intel's, Emerald Rapids). With smaller ones it does not wait, and lost up to a fifth
// by asking (AMD's, Zen 3).
#if defined(SPK_KERNELS_ASK_NEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_ASK_NEAR_INL_H_
#undef SPK_KERNELS_ASK_NEAR_INL_H_
#else
#define SPK_KERNELS_ASK_NEAR_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/convert-inl.h"
#include "kernels/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

inline constexpr bool kAsksNear = kN == 8;

// How many bytes ahead, of rows that are read in turn. 16-bit numbers take so long to be converted
// that they do not wait.
template <class T>
inline constexpr int64_t kNearInTurn = kAsksNear && sizeof(T) >= sizeof(float) ? 512 : 0;
template <class T>
inline constexpr Stages kInTurn{kNearInTurn<T>, kNearInTurn<T>};

// Both stages of asking for what is read `soon` after; the far one alone where near loses.
HWY_INLINE Stages StagesAhead(int64_t soon) {
  return kAsksNear ? stages_of(soon) : Stages{soon, soon};
}

// Rows of so many bytes are long: processors see them as streams.
inline constexpr int64_t kLongEnough = 4096;

// Is what follows in memory read next? In a stream it is, and in long rows most of it. What follows
// short ones that lie apart would be brought for nothing.
HWY_INLINE bool IsReadNext(int64_t row_bytes, int64_t soon) {
  return soon == kFar || row_bytes >= kLongEnough;
}

// Asks for what is ahead of some elements of a row that is read in turn with others.
template <class T>
HWY_INLINE void AskInTurn(const T *x, int64_t elements) {
  if constexpr (kNearInTurn<T> != 0) ask_ahead(x, elements, kInTurn<T>);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
