// Ranking of many blocks: kernels on words, which are the elements of a leaf as they lie in memory,
// or scores made into integers before.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spk {

enum KeyWidth { kKeys16, kKeys32, kKeys64, kKeyWidths };

inline constexpr int64_t bytes_of(KeyWidth width) {
  return int64_t{2} << width;
}

// The key of a word, which orders as the score does: min(word & magnitude, highest). Magnitudes of
// floats order as their bits without the sign; whatever is above infinity, NaN, becomes `highest`.
// There is an integer above `highest`.
struct KeyRule {
  uint64_t magnitude = 0;
  uint64_t highest = 0;

  uint64_t key(uint64_t word) const {
    const uint64_t bits = word & magnitude;
    return bits < highest ? bits : highest;
  }
  // What lies above all keys.
  uint64_t top() const { return highest + 1; }
};

struct Words {
  const void *data = nullptr;
  int64_t count = 0;
  KeyRule rule;
};

// Two keys, low <= high, and how many keys lie where.
struct Bracket {
  uint64_t low = 0;
  uint64_t high = 0;
};

enum class Place { kAbove, kAtHigh, kBetween, kAtLow, kBelow };

struct BracketCounts {
  int64_t above = 0;
  int64_t at_high = 0;
  int64_t between = 0;
  int64_t at_low = 0;  // 0 if low == high

  // Where the k-th largest is.
  Place place_of(int64_t k) const {
    if (k <= above) return Place::kAbove;
    if (k <= above + at_high) return Place::kAtHigh;
    if (k <= above + at_high + between) return Place::kBetween;
    return k <= above + at_high + between + at_low ? Place::kAtLow : Place::kBelow;
  }
  BracketCounts &operator+=(const BracketCounts &other) {
    above += other.above;
    at_high += other.at_high;
    between += other.between;
    at_low += other.at_low;
    return *this;
  }
};

// The k-th largest key among some, how many are above it and how many equal to it.
struct Cut {
  uint64_t key = 0;
  int64_t above = 0;
  int64_t equal = 0;

  // Of the `equal`, how many belong to the k largest.
  int64_t quota(int64_t k) const { return k - above; }
  bool splits_ties(int64_t k) const { return quota(k) < equal; }
};

// Buffers that keys are collected in have room for this many bytes more than the keys.
inline constexpr int64_t kKeySlack = 64;
// Bins of `histogram`.
inline constexpr int kHistogramBits = 11;
inline constexpr int64_t kHistogramBins = int64_t{1} << kHistogramBits;

// Kernels for words of one width.
struct KeyKernels {
  // Counts keys, and collects those strictly inside the bracket in `between`, in their order,
  // unless it is NULL. `between` has room for all words and kKeySlack.
  BracketCounts (*count)(const Words &words, const Bracket &bracket, void *between);
  // Adds to bins[(key - low) >> shift] for the keys in [low, high].
  void (*histogram)(const Words &words, const Bracket &bracket, int shift, int32_t *bins);
  // The k-th largest, k in [1, count]. `buffer` has room for all words and kKeySlack; it may not
  // be where the words are.
  Cut (*find_cut)(const Words &words, int64_t k, void *buffer);
  // How many words there are up to the n-th with this key. There are that many, and n > 0.
  int64_t (*find_equal)(const Words &words, uint64_t key, int64_t n);
  // The largest key below `key`, 0 if there is none.
  uint64_t (*largest_below)(const Words &words, uint64_t key);
  // Keep bytes: is the key at least `least`?
  void (*keep)(const Words &words, uint64_t least, uint8_t *keep);
  // Copies the words that would be kept to `y`, which may be where they are, and zeroes the rest.
  void (*prune)(const Words &words, uint64_t least, void *y);
  // Keys of scores, of either sign; 32 bits wide for scores that are floats.
  void (*score_keys)(const double *scores, int64_t n, void *keys);
};

}  // namespace spk
