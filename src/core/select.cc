#include "core/select.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <limits>

namespace spk {

const uint64_t *rank_keys(const Kernels &kernels, const double *scores, int64_t n,
                          Scratch &scratch) {
  uint64_t *keys = scratch.take<uint64_t>(n);
  kernels.rank_keys(scores, n, keys);
  return keys;
}

double score_of(uint64_t key) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  if (key == std::numeric_limits<uint64_t>::max()) return std::numeric_limits<double>::quiet_NaN();
  return std::bit_cast<double>(key & kSign ? key ^ kSign : ~key);
}

// --- in memory ------------------------------------------------------------------------------

namespace {

Cut find_cut(const uint64_t *keys, int64_t n, int64_t k, Scratch &scratch) {
  const Scratch::Frame frame(scratch);
  uint64_t *order = scratch.take<uint64_t>(n);
  std::copy_n(keys, n, order);
  std::nth_element(order, order + (k - 1), order + n, std::greater<>());
  Cut cut;
  cut.key = order[k - 1];
  for (int64_t i = 0; i < n; ++i) {
    cut.above += keys[i] > cut.key;
    cut.equal += keys[i] == cut.key;
  }
  return cut;
}

Selected selected_by(const Cut &cut, int64_t k, int32_t ties) {
  Selected selected;
  selected.kept = ties == SPK_TIES_KEEP_ALL ? cut.above + cut.equal : k;
  selected.ties = cut.splits_ties(k) ? cut.equal : 0;
  return selected;
}

}  // namespace

Selected select_top(const uint64_t *keys, int64_t n, int64_t k, int32_t ties, Scratch &scratch,
                    uint8_t *keep) {
  if (k == 0 || k == n) {
    std::fill_n(keep, n, static_cast<uint8_t>(k == n));
    return {k, 0};
  }
  const Cut cut = find_cut(keys, n, k, scratch);
  int64_t quota = ties == SPK_TIES_KEEP_ALL ? cut.equal : cut.quota(k);
  for (int64_t i = 0; i < n; ++i) {
    const bool tied = keys[i] == cut.key && quota > 0;
    keep[i] = keys[i] > cut.key || tied;
    quota -= tied;
  }
  return selected_by(cut, k, ties);
}

double kth_largest(const uint64_t *keys, int64_t n, int64_t k, Scratch &scratch, double *next) {
  if (next) *next = score_of(find_cut(keys, n, k + 1, scratch).key);
  return score_of(find_cut(keys, n, k, scratch).key);
}

// --- in streams -----------------------------------------------------------------------------

namespace {

constexpr int kDigitBits = 11;
constexpr int64_t kBins = int64_t{1} << kDigitBits;
// Candidates that are few enough are collected rather than counted.
constexpr int64_t kCollect = int64_t{1} << 13;

// Counts of a parallel histogram.
struct Histogram {
  std::atomic<int64_t> bins[kBins];

  void clear() {
    for (auto &bin : bins) bin.store(0, std::memory_order_relaxed);
  }
  void add(const int32_t *counts) {
    for (int64_t b = 0; b < kBins; ++b) {
      if (counts[b]) bins[b].fetch_add(counts[b], std::memory_order_relaxed);
    }
  }
};

// Visits a stream in parallel: each(scratch, chunk, keys).
template <typename Fn>
void for_each_chunk(Call &call, const ScoreStream &stream, Fn &&each) {
  call.for_each(stream.chunks(), [&](Scratch &scratch, int64_t number) {
    const ScoreStream::Chunk chunk = stream.chunk(number);
    each(scratch, chunk, stream.keys(call.kernels(), scratch, chunk));
  });
}

// Counts digits over a stream: digits(scratch, chunk, keys, counts) counts those of one chunk.
template <typename Digits>
void count_digits(Call &call, const ScoreStream &stream, Histogram *histogram, Digits &&digits) {
  histogram->clear();
  for_each_chunk(call, stream,
                 [&](Scratch &scratch, const ScoreStream::Chunk &chunk, const uint64_t *keys) {
                   int32_t *counts = scratch.take<int32_t>(kBins);
                   std::fill_n(counts, kBins, 0);
                   digits(scratch, chunk, keys, counts);
                   histogram->add(counts);
                 });
}

// Keys that begin with the digits found so far.
struct Prefix {
  uint64_t bits = 0;
  int known = 0;  // how many of the 64

  bool matches(uint64_t key) const { return known == 0 || (key ^ bits) >> (64 - known) == 0; }
  int width() const { return std::min(kDigitBits, 64 - known); }
  int64_t digit(uint64_t key) const {
    return static_cast<int64_t>(key >> (64 - known - width())) & ((int64_t{1} << width()) - 1);
  }
  void append(int64_t digit) {
    const int added = width();
    known += added;
    bits |= static_cast<uint64_t>(digit) << (64 - known);
  }
};

// The cut among the `candidates` keys with a prefix, of which the k-th largest is wanted.
Cut collect_cut(Call &call, const ScoreStream &stream, const Prefix &prefix, int64_t candidates,
                int64_t k) {
  const Scratch::Frame frame(call.scratch());
  uint64_t *matching = call.scratch().take<uint64_t>(candidates);
  std::atomic<int64_t> found{0};
  for_each_chunk(call, stream,
                 [&](Scratch &, const ScoreStream::Chunk &chunk, const uint64_t *keys) {
                   for (int64_t i = 0; i < chunk.positions.count(); ++i) {
                     const uint64_t key = keys[i];
                     if (prefix.matches(key))
                       matching[found.fetch_add(1, std::memory_order_relaxed)] = key;
                   }
                 });
  return find_cut(matching, candidates, k, call.scratch());
}

// Radix selection, eleven bits a pass from the top.
Cut find_cut(Call &call, const ScoreStream &stream, int64_t k) {
  const Scratch::Frame frame(call.scratch());
  auto *histogram = new (call.scratch().take<Histogram>(1)) Histogram;
  Prefix prefix;
  int64_t above = 0;
  int64_t candidates = stream.count();
  while (prefix.known < 64) {
    if (candidates <= kCollect) {
      Cut cut = collect_cut(call, stream, prefix, candidates, k - above);
      cut.above += above;
      return cut;
    }
    count_digits(
        call, stream, histogram,
        [&](Scratch &, const ScoreStream::Chunk &chunk, const uint64_t *keys, int32_t *counts) {
          const int64_t n = chunk.positions.count();
          for (int64_t i = 0; i < n; ++i) {
            if (prefix.matches(keys[i])) ++counts[prefix.digit(keys[i])];
          }
        });
    int64_t bin = (int64_t{1} << prefix.width()) - 1;
    while (above + histogram->bins[bin] < k) above += histogram->bins[bin--];
    candidates = histogram->bins[bin];
    prefix.append(bin);
  }
  return {prefix.bits, above, candidates};
}

// The position before which exactly `quota` scores have this key.
int64_t find_position(Call &call, const ScoreStream &stream, uint64_t key, int64_t quota) {
  const Scratch::Frame frame(call.scratch());
  auto *histogram = new (call.scratch().take<Histogram>(1)) Histogram;
  int shift = std::max(
      0, static_cast<int>(std::bit_width(static_cast<uint64_t>(stream.count()))) - kDigitBits);
  int64_t first = 0;  // the position is in [first, first + (kBins << shift))
  for (;; shift = std::max(0, shift - kDigitBits)) {
    const int64_t width = int64_t{1} << shift;
    count_digits(call, stream, histogram,
                 [&](Scratch &scratch, const ScoreStream::Chunk &chunk, const uint64_t *keys,
                     int32_t *counts) {
                   const int64_t n = chunk.positions.count();
                   if (std::find(keys, keys + n, key) == keys + n) return;
                   const int64_t *position = stream.positions(scratch, chunk);
                   for (int64_t i = 0; i < n; ++i) {
                     if (keys[i] != key) continue;
                     const int64_t bin = (position[i] - first) >> shift;
                     if (bin >= 0 && bin < kBins) ++counts[bin];
                   }
                 });
    int64_t bin = 0;
    while (histogram->bins[bin] < quota) quota -= histogram->bins[bin++];
    first += bin * width;
    if (shift == 0) return first + 1;
  }
}

// The largest key below `key`.
uint64_t largest_below(Call &call, const ScoreStream &stream, uint64_t key) {
  std::atomic<uint64_t> best{0};
  for_each_chunk(call, stream,
                 [&](Scratch &, const ScoreStream::Chunk &chunk, const uint64_t *keys) {
                   uint64_t local = 0;
                   for (int64_t i = 0; i < chunk.positions.count(); ++i) {
                     const uint64_t candidate = keys[i];
                     if (candidate < key) local = std::max(local, candidate);
                   }
                   uint64_t seen = best.load(std::memory_order_relaxed);
                   while (seen < local && !best.compare_exchange_weak(seen, local)) {
                   }
                 });
  return best;
}

}  // namespace

StreamCut select_top(Call &call, const ScoreStream &stream, int64_t k, int32_t ties) {
  constexpr uint64_t kHighest = std::numeric_limits<uint64_t>::max();
  if (k == 0) return {kHighest, 0, {0, 0}};
  if (k == stream.count()) return {0, std::numeric_limits<int64_t>::max(), {k, 0}};
  const Cut cut = find_cut(call, stream, k);
  StreamCut result{cut.key, std::numeric_limits<int64_t>::max(), selected_by(cut, k, ties)};
  if (cut.splits_ties(k) && ties != SPK_TIES_KEEP_ALL) {
    result.position = find_position(call, stream, cut.key, cut.quota(k));
  }
  return result;
}

double kth_largest(Call &call, const ScoreStream &stream, int64_t k, double *next) {
  const Cut cut = find_cut(call, stream, k);
  if (next) {
    const bool tied = cut.splits_ties(k);
    *next = score_of(tied ? cut.key : largest_below(call, stream, cut.key));
  }
  return score_of(cut.key);
}

}  // namespace spk
