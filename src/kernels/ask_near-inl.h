// Asking for memory shortly before it is read, where registers are of eight doubles (AVX-512).
// Processors bring streams as far as the second level of cache. With registers so large arithmetic
// waits for the rest of the way on some, and is 10 to 30 % faster there if the first level is asked
// for, too (measured on Intel's, Emerald Rapids); on others it loses 5 to 25 % (AMD's, Zen 4). With
// smaller registers it does not wait, and lost up to a fifth by asking (AMD's, Zen 3).
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

inline constexpr bool kMayAskNear = kN == 8;

HWY_INLINE bool AsksNear() {
  return kMayAskNear && asking_pays;
}

// Are streams left to the processor? What only reads is 10 to 35 % faster there (AMD's, Zen 4) if it
// reads one at a time and asks for nothing.
template <class T>
HWY_INLINE bool LeavesStreams() {
  return kMayAskNear && sizeof(T) >= sizeof(float) && !asking_pays;
}
// How a stream is asked for that is only read.
template <class T>
HWY_INLINE Stages InStream(int64_t near) {
  return LeavesStreams<T>() ? kNothingAhead : Stages{kFar, near};
}

// 16-bit numbers take so long to be converted that they do not wait.
template <class T>
HWY_INLINE bool AsksNearFor() {
  return sizeof(T) >= sizeof(float) && AsksNear();
}

// How many bytes ahead, of rows that are read in turn.
inline constexpr int64_t kNearInTurn = 512;
inline constexpr Stages kInTurn{kNearInTurn, kNearInTurn};

// Both stages of asking for what is read `soon` after; the far one alone where near loses.
HWY_INLINE Stages StagesAhead(int64_t soon) {
  return AsksNear() ? stages_of(soon) : Stages{soon, soon};
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
  if (AsksNearFor<T>()) ask_ahead(x, elements, kInTurn);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
