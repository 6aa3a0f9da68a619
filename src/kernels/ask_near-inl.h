// Who brings memory in time. Processors bring streams as far as the second level of cache. With
// registers of eight doubles (AVX-512) arithmetic waits for the rest of the way on some, and is 10
// to 30 % faster there if the first level is asked for, too, shortly before it is read (measured on
// Intel's, Emerald Rapids). Others with AVX-512 bring streams best by themselves, whatever
// registers a loop has: asking near loses 5 to 25 % there, and loops that compute little are 10 to
// 35 % faster if they read one stream at a time and ask for nothing ahead (AMD's, Zen 4; those of
// other makers are taken to be alike). Loops that compute much, and write, ask there too, but
// further ahead (far_in_stream()). Without AVX-512, loops ask far ahead; arithmetic does not
// wait there, and lost up to a fifth by asking near (Zen 3).
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

inline constexpr bool kHasLargeRegisters = kN == 8;

// Known before loops begin, which else would look it up again and again.
HWY_INLINE bool AsksNear() {
  return kHasLargeRegisters && streams.load(std::memory_order_relaxed) == Streams::kAskedFor;
}

// Are streams left to the processor, by loops that compute little? Those of 16-bit numbers convert
// for so long that they gain by asking.
template <class T>
HWY_INLINE bool LeavesStreams() {
  return sizeof(T) >= sizeof(float) && streams.load(std::memory_order_relaxed) == Streams::kLeft;
}
// How such a loop asks for a stream.
template <class T>
HWY_INLINE Stages InStream(int64_t near) {
  return LeavesStreams<T>() ? kNothingAhead : Stages{far_in_stream(), near};
}

// How streams are asked for where AsksNear().
inline constexpr Stages kStreamAskedNear{kFar, kNear};

// 16-bit numbers take so long to be converted that they do not wait.
template <class T>
HWY_INLINE bool AsksNearFor() {
  return sizeof(T) >= sizeof(float) && AsksNear();
}

// Does the second level of cache hold tens of rows that lie a power of two apart, besides what is
// being worked on? Then they are asked for well before they are read, a fifth to a half of the time
// less. Zen 4's does (1 MiB), Zen 3's does not; Intel's may, which was not measured. With smaller
// registers loops over more than kMostTinyRows do not ask, not even whether to: that alone took up to
// a fifth longer.
HWY_INLINE bool HoldsRowsAhead() {
  return kHasLargeRegisters && streams.load(std::memory_order_relaxed) == Streams::kLeft;
}

// How many bytes ahead such rows are asked for: in each of them, or in the order of reading; and at
// most, as caches hold no more. Measured.
inline constexpr int64_t kFarInRows = 2048;
inline constexpr int64_t kBytesInLaterRows = 8192;
inline constexpr int64_t kMostFar = int64_t{1} << 17;
template <class T>
HWY_INLINE void AskFarInRow(const T *x, int64_t elements, int64_t far = kFarInRows) {
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
  for (int64_t i = 0; i < elements; i += kLine) prefetch_far(x + i, far);
}

// How many bytes ahead rows [begin, end) of blocks are asked for: to the rows that are read when these
// have been read of all neighbours, those of the same blocks that follow, or of the next ones. If
// those are so near that memory would not answer in time, some rows of blocks further on; if they are
// further than caches hold, or blocks are read at once and go on in the same rows, nearer in these.
// Measured: with matrices of 256 columns up to 60 % of the time less than in the same rows. 0 if
// blocks are not from memory; negative if it is back to the first rows, of a box beside this one.
HWY_INLINE int64_t FarInBlocks(const ReduceArgs &args, int64_t begin, int64_t end) {
  if (!args.from_memory) return 0;
  const int64_t next = args.outer.count > 1 ? args.outer.step : args.ahead;
  if (end - begin == args.rows) {
    const bool goes_on = next == args.inner.count * args.inner.step;
    if (goes_on || next <= 0 || next > kMostFar) return kFarInRows;
    return next * HWY_MAX(1, kBytesInLaterRows / next);
  }
  const int64_t span = (args.row[args.rows - 1] - args.row[0]) / args.rows * (end - begin);
  if (span > kMostFar || (end == args.rows && next == 0)) return kFarInRows;
  return end < args.rows ? args.row[end] - args.row[begin] : next + args.row[0] - args.row[begin];
}

// How many bytes ahead, of rows that are read in turn.
inline constexpr int64_t kNearInTurn = 512;
inline constexpr Stages kInTurn{kNearInTurn, kNearInTurn};

// Both stages of asking for what is read `soon` after; the far one alone on processors without
// AVX-512.
HWY_INLINE Stages StagesAhead(int64_t soon) {
  const bool has_both =
      kHasLargeRegisters || streams.load(std::memory_order_relaxed) == Streams::kLeft;
  return has_both ? stages_of(soon) : Stages{soon, soon};
}

// Rows of so many bytes are long: processors see them as streams.
inline constexpr int64_t kLongEnough = 4096;

// Is what follows in memory read next? In a stream it is, and in long rows most of it. What follows
// short ones that lie apart would be brought for nothing.
HWY_INLINE bool IsReadNext(int64_t row_bytes, int64_t soon) {
  return soon == kFar || row_bytes >= kLongEnough;
}

// Asks for what is ahead of some elements of a row that is read in turn with others; where
// AsksNearFor<T>().
template <class T>
HWY_INLINE void AskInTurn(const T *x, int64_t elements) {
  if (kHasLargeRegisters) ask_ahead(x, elements, kInTurn);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
