// Exact selection: which scores are the k largest. Equal scores are ranked by position, NaN above
// +inf; nothing is sorted. Scores are told as keys, integers of the same order.
#pragma once

#include <limits>

#include "core/call.h"

namespace spk {

// How the scores of a scope are told as keys.
struct KeyForm {
  KeyWidth width = kKeys32;
  KeyRule rule;
  int32_t dtype = 0;        // of what the keys were made from
  bool magnitudes = false;  // elements as they lie in memory, whose magnitudes are the scores

  static KeyForm of_elements(int32_t dtype);
  // Made by KeyKernels::score_keys from scores of this dtype.
  static KeyForm of_scores(int32_t score_dtype);
  // Keys that are numbers and nothing else (see kKeptKey).
  static KeyForm of_keys(KeyWidth width);

  const KeyKernels &kernels(const Kernels &all) const { return all.keys[width]; }
  int64_t bytes() const { return bytes_of(width); }
  double score_of(const Kernels &all, uint64_t key) const;
};

struct Selected {
  int64_t kept = 0;
  int64_t ties = 0;  // see spk_report
};

// The k largest of a scope: those with a key above `key`, and those equal to it before `position`.
struct Selection {
  static constexpr int64_t kNoPosition = std::numeric_limits<int64_t>::max();

  uint64_t key = 0;
  int64_t position = kNoPosition;
  Selected selected;

  // Whether each is in can be told without looking at the scores.
  static bool is_trivial(int64_t k, int64_t n) { return k == 0 || k == n; }
  static Selection trivial(const KeyRule &rule, int64_t k);
  // By a cut, the position being open.
  static Selection at(const Cut &cut, int64_t k, int32_t ties);
  static bool needs_position(const Cut &cut, int64_t k, int32_t ties) {
    return cut.splits_ties(k) && ties != SPK_TIES_KEEP_ALL;
  }
};

// Words of one scope that lie in memory in the order of positions.
class ScopeWords {
 public:
  ScopeWords(const Kernels &kernels, const KeyForm &form, const void *data, int64_t count)
      : kernels_(form.kernels(kernels)), form_(form), words_{data, count, form.rule} {}

  const Words &words() const { return words_; }

  Selection select_top(int64_t k, int32_t ties, Scratch &scratch) const;
  // The k-th largest key and, if `next` is not NULL, the (k+1)-th.
  uint64_t kth_largest(int64_t k, Scratch &scratch, uint64_t *next) const;

  ScopeWords part(int64_t first, int64_t count) const;
  // The selected, these words being those of the positions from `first` on: as keep bytes; or
  // copied to `y`, which may be where they are, and the others zeroed.
  void keep(const Selection &selection, int64_t first, uint8_t *keep) const;
  void prune(const Selection &selection, int64_t first, std::byte *y) const;

 private:
  Cut find_cut(int64_t k, Scratch &scratch) const;
  // How many of the words, the first being at position `first`, are kept if they are tied.
  int64_t tied_part(const Selection &selection, int64_t first) const;

  const KeyKernels &kernels_;
  KeyForm form_;
  Words words_;
};

// Samples words of `size` bytes that lie in memory: one cache line from each of equal parts, about
// one word in `rate`, at places that depend on nothing but `seed`. Copies at most `room` words to
// `out`; returns how many.
int64_t sample_lines(const std::byte *words, int64_t count, int64_t size, uint64_t seed,
                     int64_t rate, int64_t room, std::byte *out);
// Well mixed bits of a number (Steele, Lea and Flood, 2014: SplitMix).
uint64_t mixed(uint64_t number);
// A number below `limit`, by random bits.
inline int64_t below(uint64_t random, int64_t limit) {
  return static_cast<int64_t>((random >> 32) % static_cast<uint64_t>(limit));
}

}  // namespace spk
