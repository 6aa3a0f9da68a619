// Exact selection among many blocks, by counting: nothing is sorted. A few keys, taken at places
// that do not depend on the data, tell two keys between which the k-th largest almost certainly
// lies; one pass counts what is above and below them and collects what is between. Where the guess
// missed, the counts tell on which side to look: the result is exact whatever was guessed. Among few
// keys no guess is made: halving an interval mostly takes less.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select_many.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/convert-inl.h"
#include "kernels/count_up-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

template <class K>
using KeyTag = hn::ScalableTag<K>;
template <class K>
using KeyVec = hn::Vec<KeyTag<K>>;

template <class K>
HWY_INLINE int64_t KeyLanes() {
  return static_cast<int64_t>(hn::Lanes(KeyTag<K>()));
}

template <class K>
inline constexpr size_t kMaxKeyLanes = hn::MaxLanes(KeyTag<K>());

// KeyRule in registers.
template <class K>
class Rule {
 public:
  explicit HWY_INLINE Rule(const KeyRule &rule)
      : magnitude_(hn::Set(KeyTag<K>(), static_cast<K>(rule.magnitude))),
        highest_(hn::Set(KeyTag<K>(), static_cast<K>(rule.highest))) {}

  HWY_INLINE KeyVec<K> Key(KeyVec<K> word) const {
    return hn::Min(hn::And(word, magnitude_), highest_);
  }

 private:
  KeyVec<K> magnitude_;
  KeyVec<K> highest_;
};

template <class K>
HWY_INLINE K KeyOf(const KeyRule &rule, K word) {
  return static_cast<K>(rule.key(word));
}

// --- counting ---------------------------------------------------------------------------------

#if HWY_TARGET == HWY_AVX2
// The lanes of each set of 8, in order, four bits each. Highway's own table would be copied to the
// stack for each vector.
struct LanesOfSets {
  uint32_t packed[256] = {};

  constexpr LanesOfSets() {
    for (uint32_t set = 0; set < 256; ++set) {
      uint32_t shift = 0;
      for (uint32_t lane = 0; lane < 8; ++lane) {
        if ((set >> lane & 1) == 0) continue;
        packed[set] |= lane << shift;
        shift += 4;
      }
    }
  }
};
constexpr LanesOfSets kLanesOfSets;

using Tag32 = KeyTag<uint32_t>;
using Half16 = hn::Half<KeyTag<uint16_t>>;

// Moves chosen lanes to the front; returns how many.
HWY_INLINE int64_t MoveToFront(KeyVec<uint32_t> *keys, hn::Mask<Tag32> chosen) {
  const Tag32 d;
  uint8_t set[8];
  hn::StoreMaskBits(d, chosen, set);
  const auto shifts = hn::ShiftLeft<2>(hn::Iota(d, 0));
  const auto packed = hn::Shr(hn::Set(d, kLanesOfSets.packed[set[0]]), shifts);
  const auto lanes = hn::And(packed, hn::Set(d, 7));
  *keys = hn::TableLookupLanes(*keys, hn::IndicesFromVec(d, lanes));
  return static_cast<int64_t>(hn::CountTrue(d, chosen));
}

// `flags` are all ones where keys are chosen.
HWY_INLINE int64_t CollectHalf(hn::Vec<Half16> keys, hn::Vec<Half16> flags, uint16_t *out) {
  const hn::RebindToSigned<Tag32> di;
  const auto flag = hn::PromoteTo(di, hn::BitCast(hn::RebindToSigned<Half16>(), flags));
  KeyVec<uint32_t> wide = hn::PromoteTo(Tag32(), keys);
  const int64_t count = MoveToFront(&wide, hn::MaskFromVec(hn::BitCast(Tag32(), flag)));
  hn::StoreU(hn::DemoteTo(Half16(), hn::BitCast(di, wide)), Half16(), out);
  return count;
}
#endif

// Writes the chosen lanes of a vector; room for a whole vector. Returns how many. Compress is
// native for 32-bit lanes of AVX-512, and for others pieced together of those; AVX2 has the table
// above.
template <class K, class M>
HWY_INLINE int64_t Collect(KeyVec<K> keys, M chosen, K *out) {
  const KeyTag<K> d;
#if HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(K) == 2) {
    if (hn::AllFalse(d, chosen)) return 0;
    return static_cast<int64_t>(hn::CompressStore(keys, chosen, d, out));
  } else if constexpr (sizeof(K) == 4) {
    hn::StoreU(hn::Compress(keys, chosen), d, out);
    return static_cast<int64_t>(hn::CountTrue(d, chosen));
  } else {
    const hn::Repartition<uint32_t, KeyTag<K>> d32;
    const auto halves = hn::MaskFromVec(hn::BitCast(d32, hn::VecFromMask(d, chosen)));
    hn::StoreU(hn::BitCast(d, hn::Compress(hn::BitCast(d32, keys), halves)), d, out);
    return static_cast<int64_t>(hn::CountTrue(d, chosen));
  }
#elif HWY_TARGET == HWY_AVX2
  const auto flags = hn::VecFromMask(d, chosen);
  if constexpr (sizeof(K) == 2) {
    const int64_t lower = CollectHalf(hn::LowerHalf(keys), hn::LowerHalf(flags), out);
    const Half16 half;
    return lower + CollectHalf(hn::UpperHalf(half, keys), hn::UpperHalf(half, flags), out + lower);
  } else {
    KeyVec<uint32_t> words = hn::BitCast(Tag32(), keys);
    const int64_t count = MoveToFront(&words, hn::MaskFromVec(hn::BitCast(Tag32(), flags)));
    hn::StoreU(hn::BitCast(d, words), d, out);
    return count * static_cast<int64_t>(sizeof(uint32_t)) / static_cast<int64_t>(sizeof(K));
  }
#else
  if (hn::AllFalse(d, chosen)) return 0;
  HWY_ALIGN K key[kMaxKeyLanes<K>];
  HWY_ALIGN K flag[kMaxKeyLanes<K>];
  hn::Store(keys, d, key);
  hn::Store(hn::VecFromMask(d, chosen), d, flag);
  int64_t count = 0;
  for (int64_t l = 0; l < KeyLanes<K>(); ++l) {
    out[count] = key[l];
    count += flag[l] & 1;
  }
  return count;
#endif
}

// Lanes in which a mask was true, over many vectors: lane by lane where lanes are wide enough.
template <class K, bool kWide = (sizeof(K) > 2)>
class LaneCounter {
 public:
  HWY_INLINE LaneCounter() : count_(hn::Zero(KeyTag<K>())) {}
  template <class M>
  HWY_INLINE void Add(M mask) {
    count_ = CountUp(KeyTag<K>(), count_, mask);
  }
  HWY_INLINE int64_t Total() const {
    HWY_ALIGN K lanes[kMaxKeyLanes<K>];
    hn::Store(count_, KeyTag<K>(), lanes);
    int64_t total = 0;
    for (int64_t l = 0; l < KeyLanes<K>(); ++l) total += static_cast<int64_t>(lanes[l]);
    return total;
  }

 private:
  KeyVec<K> count_;
};
template <class K>
class LaneCounter<K, false> {
 public:
  template <class M>
  HWY_INLINE void Add(M mask) {
    count_ += static_cast<int64_t>(hn::CountTrue(KeyTag<K>(), mask));
  }
  HWY_INLINE int64_t Total() const { return count_; }

 private:
  int64_t count_ = 0;
};

enum class Ahead { kNothing, kNext };

// `kCollect`: are the keys strictly inside the bracket written to `between`? Ahead::kNext fetches
// what lies behind the words, which are often those of the next scope.
template <class K, bool kCollect, Ahead kAhead = Ahead::kNothing>
HWY_INLINE BracketCounts CountIn(const Words &words, const Bracket &bracket, K *between) {
  const KeyTag<K> d;
  const Rule<K> rule(words.rule);
  const auto *word = static_cast<const K *>(words.data);
  const int64_t n = words.count;
  const auto low = static_cast<K>(bracket.low);
  const auto high = static_cast<K>(bracket.high);
  const KeyVec<K> lows = hn::Set(d, low);
  const KeyVec<K> highs = hn::Set(d, high);
  LaneCounter<K> above;
  LaneCounter<K> below_high;
  LaneCounter<K> below_low;
  int64_t inside = 0;
  int64_t i = 0;
  for (; i + KeyLanes<K>() <= n; i += KeyLanes<K>()) {
    if constexpr (kAhead == Ahead::kNext) hwy::Prefetch(word + n + i);
    const KeyVec<K> key = rule.Key(hn::LoadU(d, word + i));
    const auto is_below_high = hn::Lt(key, highs);
    above.Add(hn::Gt(key, highs));
    below_high.Add(is_below_high);
    below_low.Add(hn::Lt(key, lows));
    const auto chosen = hn::And(is_below_high, hn::Gt(key, lows));
    if constexpr (kCollect) {
      inside += Collect(key, chosen, between + inside);
    } else {
      inside += static_cast<int64_t>(hn::CountTrue(d, chosen));
    }
  }
  BracketCounts counts;
  counts.above = above.Total();
  counts.at_high = i - below_high.Total() - above.Total();
  counts.at_low = below_high.Total() - below_low.Total() - inside;
  for (; i < n; ++i) {
    const K key = KeyOf(words.rule, word[i]);
    counts.above += key > high;
    counts.at_high += key == high;
    counts.at_low += key == low && key != high;
    if (key <= low || key >= high) continue;
    if constexpr (kCollect) between[inside] = key;
    ++inside;
  }
  counts.between = inside;
  return counts;
}

template <class K>
HWY_NOINLINE BracketCounts Count(const Words &words, const Bracket &bracket, void *between) {
  if (between) return CountIn<K, true>(words, bracket, static_cast<K *>(between));
  return CountIn<K, false>(words, bracket, nullptr);
}

// Increments are spread over several histograms: one to the bin of the last would have to wait.
template <class K>
HWY_NOINLINE void Histogram(const Words &words, const Bracket &bracket, int shift, int32_t *bins) {
  constexpr int64_t kSpread = 4;
  const KeyTag<K> d;
  const Rule<K> rule(words.rule);
  const auto *word = static_cast<const K *>(words.data);
  const KeyVec<K> lows = hn::Set(d, static_cast<K>(bracket.low));
  const KeyVec<K> highs = hn::Set(d, static_cast<K>(bracket.high));
  int32_t spread[kSpread][kHistogramBins] = {};
  HWY_ALIGN K chosen[kMaxKeyLanes<K>];
  int64_t i = 0;
  for (; i + KeyLanes<K>() <= words.count; i += KeyLanes<K>()) {
    const KeyVec<K> key = rule.Key(hn::LoadU(d, word + i));
    const auto outside = hn::Or(hn::Lt(key, lows), hn::Gt(key, highs));
    const KeyVec<K> bin = hn::ShiftRightSame(hn::Sub(key, lows), shift);
    const int64_t n = Collect(bin, hn::Not(outside), chosen);
    for (int64_t c = 0; c < n; ++c) ++spread[c % kSpread][chosen[c]];
  }
  for (; i < words.count; ++i) {
    const uint64_t key = words.rule.key(word[i]);
    if (key >= bracket.low && key <= bracket.high) ++spread[0][(key - bracket.low) >> shift];
  }
  for (const auto &one : spread) {
    for (int64_t b = 0; b < kHistogramBins; ++b) bins[b] += one[b];
  }
}

// --- the k-th largest -------------------------------------------------------------------------

// Among so few keys no guess is made.
constexpr int64_t kFewKeys = 512;
// Keys that a guess is made from: whole vectors.
constexpr int64_t kSampled = 64;
// Guesses; then intervals are halved, which ends whatever the data.
constexpr int kGuesses = 24;

// Of scopes that are guessed in, of so many bytes at most, the next is fetched ahead: caches hold
// both.
constexpr int64_t kMostAhead = int64_t{1} << 17;

// Few keys, among which the k-th largest is searched for by halving an interval. Their highest bits
// are flipped: signed numbers are what instruction sets before AVX-512 compare.
template <class K>
class FewKeys {
 public:
  // Makes them in `buffer`, which may be where the words are.
  HWY_INLINE FewKeys(const Words &words, void *buffer)
      : key_(static_cast<Signed *>(buffer)), count_(words.count) {
    const KeyTag<K> d;
    const Rule<K> rule(words.rule);
    const KeyVec<K> highest_bit = hn::Set(d, kHighestBit);
    const auto *word = static_cast<const K *>(words.data);
    auto *key = static_cast<K *>(buffer);
    int64_t i = 0;
    for (; i + KeyLanes<K>() <= count_; i += KeyLanes<K>()) {
      hn::StoreU(hn::Xor(rule.Key(hn::LoadU(d, word + i)), highest_bit), d, key + i);
    }
    for (; i < count_; ++i) key[i] = KeyOf(words.rule, word[i]) ^ kHighestBit;
    // What fills the last vector is below all keys that are counted, unless all are.
    for (; i % KeyLanes<K>() != 0; ++i) key[i] = kHighestBit;
    end_ = i;
  }

  // The k-th largest.
  HWY_INLINE K Find(int64_t k) const { return static_cast<K>(Search(k)) ^ kHighestBit; }

  // With how many are above it and equal to it.
  HWY_INLINE Cut FindCut(int64_t k) const {
    const K key = Find(k);
    const auto kth = static_cast<Signed>(key ^ kHighestBit);
    const int64_t above = CountFrom(static_cast<Signed>(kth + 1));
    const int64_t from = std::min(CountFrom(kth), count_);
    return {key, above, from - above};
  }

 private:
  using Signed = hwy::MakeSigned<K>;
  using Tag = KeyTag<Signed>;
  static constexpr K kHighestBit = static_cast<K>(hwy::LimitsMin<Signed>());

  HWY_INLINE Signed Search(int64_t k) const {
    constexpr int kPatience = 2;
    // `from_low` keys are `low` or above, at least k, and `from_high` are `high` or above, fewer.
    Signed low = hwy::LimitsMin<Signed>();
    Signed high = hwy::LimitsMax<Signed>();
    int64_t from_low = count_;
    int64_t from_high = 0;
    int in_vain = kPatience;
    for (;;) {
      // Among equal keys no middle is found, and between two that are far from all others not soon.
      if (in_vain == kPatience) {
        low = LeastFrom(low);
        high = static_cast<Signed>(MostBelow(high) + 1);
        in_vain = 0;
      }
      const auto gap = static_cast<K>(static_cast<K>(high) - static_cast<K>(low));
      if (gap <= 1) return low;
      const auto middle = static_cast<Signed>(static_cast<K>(low) + gap / 2);
      const int64_t count = CountFrom(middle);
      if (count == k) return LeastFrom(middle);
      in_vain = count == from_low || count == from_high ? in_vain + 1 : 0;
      (count > k ? low : high) = middle;
      (count > k ? from_low : from_high) = count;
    }
  }

  // How many keys are `least` or above, with what fills the last vector if that is the least of all.
  // So few are below it that lanes of 16 bits count them.
  HWY_INLINE int64_t CountFrom(Signed least) const {
    const KeyTag<K> d;
    const auto limit = hn::Set(Tag(), least);
    KeyVec<K> below = hn::Zero(d);
    for (int64_t i = 0; i < end_; i += KeyLanes<K>()) {
      below = CountUp(d, below, hn::RebindMask(d, hn::Lt(hn::LoadU(Tag(), key_ + i), limit)));
    }
    return end_ - static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(d, below)));
  }
  // The least of them, or of what fills the last vector.
  HWY_INLINE Signed LeastFrom(Signed least) const {
    const auto limit = hn::Set(Tag(), least);
    const auto none = hn::Set(Tag(), hwy::LimitsMax<Signed>());
    auto smallest = none;
    for (int64_t i = 0; i < end_; i += KeyLanes<K>()) {
      const auto keys = hn::LoadU(Tag(), key_ + i);
      smallest = hn::Min(smallest, hn::IfThenElse(hn::Lt(keys, limit), none, keys));
    }
    return hn::GetLane(hn::MinOfLanes(Tag(), smallest));
  }
  HWY_INLINE Signed MostBelow(Signed most) const {
    const auto limit = hn::Set(Tag(), most);
    const auto none = hn::Set(Tag(), hwy::LimitsMin<Signed>());
    auto largest = none;
    for (int64_t i = 0; i < end_; i += KeyLanes<K>()) {
      const auto keys = hn::LoadU(Tag(), key_ + i);
      largest = hn::Max(largest, hn::IfThenElse(hn::Lt(keys, limit), keys, none));
    }
    return hn::GetLane(hn::MaxOfLanes(Tag(), largest));
  }

  Signed *key_;
  int64_t count_;
  int64_t end_;  // of whole vectors
};

// Random numbers below 2^32 that tell where samples are taken: no pattern in the data meets them.
struct SamplePlaces {
  uint32_t at[kSampled] = {};

  constexpr SamplePlaces() {
    uint64_t random = 0x9e3779b97f4a7c15;
    for (uint32_t &place : at) {
      random = random * 6364136223846793005 + 1442695040888963407;
      place = static_cast<uint32_t>(random >> 32);
    }
  }
};
constexpr SamplePlaces kPlaces;

// Two keys of a sample, some standard deviations to either side of where the k-th should be; the
// ends of `wide` where the sample has none.
template <class K>
HWY_INLINE Bracket Guess(const Words &words, int64_t k, const Bracket &wide) {
  constexpr double kDeviations = 2.25;
  const auto *word = static_cast<const K *>(words.data);
  HWY_ALIGN K keys[kSampled];
  // One word of each of kSampled equal parts.
  const auto part = static_cast<uint64_t>(words.count / kSampled);
  for (int64_t s = 0; s < kSampled; ++s, word += part) {
    keys[s] = KeyOf(words.rule, word[kPlaces.at[s] * part >> 32]);
  }
  const FewKeys<K> sample({keys, kSampled, words.rule}, keys);
  const double share = static_cast<double>(k) / static_cast<double>(words.count);
  const double rank = share * kSampled;
  const double margin = kDeviations * std::sqrt(rank * (1.0 - share)) + 1.0;
  const auto high = static_cast<int64_t>(std::floor(rank - margin));
  const auto low = static_cast<int64_t>(std::ceil(rank + margin));
  Bracket guess = wide;
  if (high >= 1) guess.high = sample.Find(high);
  if (low <= kSampled) guess.low = sample.Find(low);
  return guess;
}

template <class K>
HWY_NOINLINE BracketCounts CountTo(const Words &words, const Bracket &bracket, K *between,
                                   bool fetch) {
  if (fetch) return CountIn<K, true, Ahead::kNext>(words, bracket, between);
  return CountIn<K, true>(words, bracket, between);
}

HWY_INLINE Bracket Middle(const Bracket &wide) {
  const uint64_t middle = wide.low + (wide.high - wide.low) / 2;
  return {middle, middle};
}

template <class K>
HWY_NOINLINE Cut FindCut(const Words &words, int64_t k, void *buffer) {
  // The k-th is strictly inside, or 0. All keys that are strictly inside are among `rest`; `outside`
  // counts those above it that are not.
  Bracket wide{0, words.rule.top()};
  Words rest = words;
  int64_t outside = 0;
  const bool fetch = words.count * static_cast<int64_t>(sizeof(K)) <= kMostAhead;
  bool narrow = true;  // guess, or look at all of `wide`, which a guess has missed
  for (int round = 0;; ++round) {
    if (rest.count <= kFewKeys) {
      Cut cut = FewKeys<K>(rest, buffer).FindCut(k - outside);
      cut.above += outside;
      return cut;
    }
    Bracket bracket = wide;
    if (narrow) bracket = round < kGuesses ? Guess<K>(rest, k - outside, wide) : Middle(wide);
    const BracketCounts counts =
        CountTo<K>(rest, bracket, static_cast<K *>(buffer), fetch && round == 0);
    const int64_t above = outside + counts.above;
    const int64_t above_low = above + counts.at_high + counts.between;
    const Place place = counts.place_of(k - outside);
    if (place == Place::kAtHigh) return {bracket.high, above, counts.at_high};
    if (place == Place::kAtLow) return {bracket.low, above_low, counts.at_low};
    narrow = place == Place::kBetween;
    if (narrow) {
      wide = bracket;
      rest = {buffer, counts.between, words.rule};
      outside = above + counts.at_high;
      continue;
    }
    // What was collected is of no use, and may lie where the rest was.
    if (place == Place::kAbove) wide.low = bracket.high;
    if (place == Place::kBelow) wide.high = bracket.low;
    rest = words;
    outside = 0;
  }
}

// --- ties -------------------------------------------------------------------------------------

template <class K>
HWY_NOINLINE int64_t FindEqual(const Words &words, uint64_t key, int64_t n) {
  const KeyTag<K> d;
  const Rule<K> rule(words.rule);
  const auto *word = static_cast<const K *>(words.data);
  const KeyVec<K> wanted = hn::Set(d, static_cast<K>(key));
  int64_t i = 0;
  for (; i + KeyLanes<K>() <= words.count; i += KeyLanes<K>()) {
    const auto equal = hn::Eq(rule.Key(hn::LoadU(d, word + i)), wanted);
    const auto found = static_cast<int64_t>(hn::CountTrue(d, equal));
    if (found >= n) break;
    n -= found;
  }
  for (; n > 0; ++i) n -= words.rule.key(word[i]) == key;
  return i;
}

template <class K>
HWY_NOINLINE uint64_t LargestBelow(const Words &words, uint64_t key) {
  const KeyTag<K> d;
  const Rule<K> rule(words.rule);
  const auto *word = static_cast<const K *>(words.data);
  const KeyVec<K> limit = hn::Set(d, static_cast<K>(key));
  KeyVec<K> most = hn::Zero(d);
  int64_t i = 0;
  for (; i + KeyLanes<K>() <= words.count; i += KeyLanes<K>()) {
    const KeyVec<K> some = rule.Key(hn::LoadU(d, word + i));
    most = hn::Max(most, hn::IfThenElseZero(hn::Lt(some, limit), some));
  }
  HWY_ALIGN K lanes[kMaxKeyLanes<K>];
  hn::Store(most, d, lanes);
  uint64_t best = 0;
  for (int64_t l = 0; l < KeyLanes<K>(); ++l) best = HWY_MAX(best, lanes[l]);
  for (; i < words.count; ++i) {
    const uint64_t some = words.rule.key(word[i]);
    if (some < key) best = HWY_MAX(best, some);
  }
  return best;
}

// --- what stays -------------------------------------------------------------------------------

template <class K>
HWY_NOINLINE void Keep(const Words &words, uint64_t least, uint8_t *keep) {
  const KeyTag<K> d;
  const hn::Rebind<uint8_t, KeyTag<K>> d8;
  const Rule<K> rule(words.rule);
  const auto *word = static_cast<const K *>(words.data);
  const KeyVec<K> limit = hn::Set(d, static_cast<K>(least));
  const KeyVec<K> one = hn::Set(d, K{1});
  const int64_t n = words.count;
  int64_t i = 0;
  for (; i + KeyLanes<K>() <= n; i += KeyLanes<K>()) {
    const auto pruned = hn::Lt(rule.Key(hn::LoadU(d, word + i)), limit);
    hn::StoreU(hn::TruncateTo(d8, hn::IfThenZeroElse(pruned, one)), d8, keep + i);
  }
  for (; i < n; ++i) keep[i] = words.rule.key(word[i]) >= least;
}

template <class K>
HWY_NOINLINE void Prune(const Words &words, uint64_t least, void *y) {
  const KeyTag<K> d;
  const Rule<K> rule(words.rule);
  const auto *word = static_cast<const K *>(words.data);
  auto *out = static_cast<K *>(y);
  const KeyVec<K> limit = hn::Set(d, static_cast<K>(least));
  const int64_t n = words.count;
  int64_t i = 0;
  for (; i + KeyLanes<K>() <= n; i += KeyLanes<K>()) {
    const KeyVec<K> some = hn::LoadU(d, word + i);
    hn::StoreU(hn::IfThenZeroElse(hn::Lt(rule.Key(some), limit), some), d, out + i);
  }
  for (; i < n; ++i) out[i] = words.rule.key(word[i]) >= least ? word[i] : K{0};
}

// --- keys of scores ---------------------------------------------------------------------------

HWY_INLINE V ScoresAs(D, V scores) {
  return scores;
}
// Scores that fit: they have been rounded before.
HWY_INLINE VF ScoresAs(DF, V scores) {
  return ToFloat(scores);
}

// The bits of a number order as it does once those of negative numbers are reversed and the sign is
// flipped. -0 becomes +0 first; every NaN comes right above +inf.
template <class DT, class K = hwy::MakeUnsigned<hn::TFromD<DT>>>
HWY_INLINE void StoreKeys(DT d, V scores, K *keys) {
  constexpr K kSign = K{1} << (8 * sizeof(K) - 1);
  constexpr K kInfinity = sizeof(K) == 4 ? K{0x7f800000} : static_cast<K>(0x7ff0000000000000);
  const hn::RebindToUnsigned<DT> du;
  const hn::RebindToSigned<DT> di;
  const auto number = hn::Add(ScoresAs(d, scores), hn::Zero(d));
  const auto bits = hn::BitCast(di, number);
  const auto negative = hn::BitCast(du, hn::BroadcastSignBit(bits));
  const auto key = hn::Xor(hn::BitCast(du, bits), hn::Or(negative, hn::Set(du, kSign)));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(number));
  hn::StoreU(hn::IfThenElse(is_nan, hn::Set(du, kSign + kInfinity + 1), key), du, keys);
}

template <class DT, class K = hwy::MakeUnsigned<hn::TFromD<DT>>>
HWY_NOINLINE void ScoreKeys(const double *scores, int64_t n, void *keys) {
  auto *key = static_cast<K *>(keys);
  int64_t i = 0;
  for (; i + kN <= n; i += kN) StoreKeys(DT(), Load(scores + i), key + i);
  if (i == n) return;
  HWY_ALIGN double some[kN] = {};
  HWY_ALIGN K made[kN];
  std::copy_n(scores + i, n - i, some);
  StoreKeys(DT(), Load(some), made);
  std::copy_n(made, n - i, key + i);
}

template <class K>
KeyKernels KernelsOf() {
  KeyKernels kernels{};
  kernels.count = Count<K>;
  kernels.histogram = Histogram<K>;
  kernels.find_cut = FindCut<K>;
  kernels.find_equal = FindEqual<K>;
  kernels.largest_below = LargestBelow<K>;
  kernels.keep = Keep<K>;
  kernels.prune = Prune<K>;
  return kernels;
}

void FillSelectMany(Kernels *table) {
  table->keys[kKeys16] = KernelsOf<uint16_t>();
  table->keys[kKeys32] = KernelsOf<uint32_t>();
  table->keys[kKeys64] = KernelsOf<uint64_t>();
  table->keys[kKeys32].score_keys = ScoreKeys<DF>;
  table->keys[kKeys64].score_keys = ScoreKeys<D>;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillSelectMany);
void fill_select_many(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillSelectMany)(table);
}
}  // namespace spk
#endif
