#include "core/select_stream.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include "core/extra_memory.h"

namespace spk {
namespace {

// One key in this many is sampled, or fewer.
constexpr int64_t kSampleRate = 64;

// Counts of a parallel histogram.
struct Histogram {
  std::atomic<int64_t> bins[kHistogramBins];

  void clear() {
    for (auto &bin : bins) bin.store(0, std::memory_order_relaxed);
  }
  void add(const int32_t *counts) {
    for (int64_t b = 0; b < kHistogramBins; ++b) {
      if (counts[b]) bins[b].fetch_add(counts[b], std::memory_order_relaxed);
    }
  }
};

// Finds the cut of one stream, a KeyStream or a KeyArray, in few passes over it.
template <typename Stream>
class StreamSelector {
 public:
  StreamSelector(Call &call, const Stream &stream)
      : call_(call),
        stream_(stream),
        kernels_(stream.form().kernels(call.kernels())),
        rule_(stream.form().rule),
        size_(stream.form().bytes()),
        room_(room_of(call, stream)),
        collected_(take_keys(call.scratch(), room_)),
        buffer_(take_keys(call.scratch(), room_)),
        chunks_(call.scratch().take<ChunkCounts>(stream.chunks())),
        histogram_(new (call.scratch().take<Histogram>(1)) Histogram) {}

  Cut find(int64_t k) {
    constexpr int kGuesses = 2;  // after the first
    count(guess(k));
    for (int i = 0; i < kGuesses && is_beside(k); ++i) count(guess_beside(k));
    if (!is_found(k)) count(narrow(k));
    return cut(k);
  }
  // After find: the position before which `quota` keys are equal to the cut.
  int64_t position(const Cut &cut, int64_t quota) const {
    return stream_.in_order() ? position_in_order(cut, quota) : search_position(cut, quota);
  }
  uint64_t largest_below(uint64_t key) const;

 private:
  struct ChunkCounts {
    BracketCounts counts;
    int64_t first;  // of the keys inside the bracket, among those collected
  };
  // Keys in [low, high] number `inside`, keys above that `above`; the k-th largest is inside.
  struct Interval {
    uint64_t low, high;
    int64_t above, inside;
  };

  // As many keys as leave a call within its extra memory, but for keys that are stored, or some
  // thousand. Sorting them out takes as much again.
  static int64_t room_of(Call &call, const Stream &stream) {
    constexpr int64_t kUsualCopy = int64_t{1} << 17;  // of a chunk; part of kBytesOfThread
    constexpr int64_t kLeast = int64_t{1} << 14;
    const int64_t size = stream.form().bytes();
    const int64_t copy = Stream::size(stream.chunk(0)) * size;
    const auto fixed = call.threads() * std::max<int64_t>(copy - kUsualCopy, 0) +
                       stream.chunks() * static_cast<int64_t>(sizeof(ChunkCounts)) +
                       static_cast<int64_t>(sizeof(Histogram));
    const int64_t bytes = extra_bytes(stream.data_bytes(), call.threads()) - fixed;
    return std::min(stream.count(), std::max(bytes / 2 / size, kLeast));
  }
  std::byte *take_keys(Scratch &scratch, int64_t count) const {
    return scratch.take<std::byte>(count * size_ + kKeySlack);
  }
  // Visits the chunks in parallel: each(scratch, number, words).
  template <typename Fn>
  void for_each_chunk(Fn &&each) const {
    call_.for_each(stream_.chunks(), [&](Scratch &scratch, int64_t number) {
      each(scratch, number, stream_.words(scratch, stream_.chunk(number)).words());
    });
  }

  Words sample();
  uint64_t sampled(const Words &sample, int64_t rank) const;
  Bracket guess(int64_t k);
  bool is_beside(int64_t k) const;
  Bracket guess_beside(int64_t k);
  void count(const Bracket &bracket);
  void collect(const std::byte *keys, ChunkCounts *chunk);
  bool is_found(int64_t k) const;
  Bracket narrow(int64_t k);
  Interval known_interval(int64_t k) const;
  Interval narrower(const Interval &interval, int64_t k);
  Cut cut(int64_t k);
  int64_t equal_in(int64_t chunk, uint64_t key) const;
  int64_t position_in_order(const Cut &cut, int64_t quota) const;
  int64_t search_position(const Cut &cut, int64_t quota) const;
  void count_positions(const Words &words, int64_t position, uint64_t key, int64_t first, int shift,
                       int32_t *bins) const;

  Call &call_;
  const Stream &stream_;
  const KeyKernels &kernels_;
  const KeyRule rule_;
  const int64_t size_;
  const int64_t room_;  // of collected_, in keys
  std::byte *const collected_;
  std::byte *const buffer_;  // of as much room
  ChunkCounts *const chunks_;
  Histogram *const histogram_;
  // What the last `count` found.
  Bracket bracket_;
  BracketCounts total_;
  std::atomic<int64_t> used_{0};  // of the room; more than there is if they did not fit
};

// --- guessing ---------------------------------------------------------------------------------

// Some of the keys, if they are too many to be collected; none if no sample could be had. The same
// each time.
template <typename Stream>
Words StreamSelector<Stream>::sample() {
  const int64_t n = stream_.count();
  const int64_t rate = std::max(kSampleRate, (n + room_ - 1) / room_);
  used_ = 0;
  call_.for_each(stream_.chunks(), [&](Scratch &scratch, int64_t number) {
    const int64_t room = Stream::size(stream_.chunk(number));
    std::byte *keys = take_keys(scratch, room);
    const int64_t taken = stream_.sample(scratch, number, rate, room, keys);
    const int64_t first = used_.fetch_add(taken, std::memory_order_relaxed);
    if (first + taken <= room_) std::copy_n(keys, taken * size_, collected_ + first * size_);
  });
  return {collected_, used_ <= room_ ? used_.load() : 0, rule_};
}

// The key of a rank in the sample; beyond its ends, 0 or what lies above all keys.
template <typename Stream>
uint64_t StreamSelector<Stream>::sampled(const Words &sample, int64_t rank) const {
  if (rank < 1) return rule_.top();
  if (rank > sample.count) return 0;
  return kernels_.find_cut(sample, rank, buffer_).key;
}

// Two keys of a sample, to either side of where the k-th should be: as far as sampling errs at
// worst, but not so far that what is between would not fit.
template <typename Stream>
Bracket StreamSelector<Stream>::guess(int64_t k) {
  constexpr double kDeviations = 4.0;
  constexpr double kFill = 0.4;  // of the room, on either side
  const int64_t n = stream_.count();
  if (n <= room_) return {0, rule_.top()};
  const Words some = sample();
  if (some.count == 0) return {0, rule_.top()};
  const double share = static_cast<double>(k) / static_cast<double>(n);
  const auto count = static_cast<double>(some.count);
  const double rank = share * count;
  const double margin =
      std::min(kDeviations * std::sqrt(rank * (1.0 - share)) + 1.0,
               kFill * static_cast<double>(room_) * count / static_cast<double>(n));
  const auto high = static_cast<int64_t>(std::floor(rank - margin));
  const auto low = static_cast<int64_t>(std::ceil(rank + margin));
  return {sampled(some, low), sampled(some, high)};
}

// Is the k-th outside what was guessed?
template <typename Stream>
bool StreamSelector<Stream>::is_beside(int64_t k) const {
  const Place place = total_.place_of(k);
  return place == Place::kAbove || place == Place::kBelow;
}

// The guess after one that the k-th is beside: from the near end of that as far in the sample as
// the keys between make of it, and as sampling errs, which is less, because they are few; but not
// further than fits.
template <typename Stream>
Bracket StreamSelector<Stream>::guess_beside(int64_t k) {
  constexpr double kDeviations = 4.0;
  constexpr double kFill = 0.8;  // of the room
  const bool is_above = total_.place_of(k) == Place::kAbove;
  const int64_t from_low = total_.above + total_.at_high + total_.between + total_.at_low;
  const int64_t keys = is_above ? total_.above - k : k - from_low;
  const Words some = sample();
  const double share = static_cast<double>(some.count) / static_cast<double>(stream_.count());
  const double steps = static_cast<double>(keys) * share;
  const auto ranks = static_cast<int64_t>(std::ceil(std::min(
      steps + kDeviations * std::sqrt(steps + 1.0), kFill * static_cast<double>(room_) * share)));
  const uint64_t end = is_above ? bracket_.high : bracket_.low;
  const BracketCounts at_end = kernels_.count(some, {end, end}, nullptr);
  if (is_above) return {end, sampled(some, at_end.above + 1 - ranks)};
  return {sampled(some, at_end.above + at_end.at_high + ranks), end};
}

// --- counting ---------------------------------------------------------------------------------

template <typename Stream>
void StreamSelector<Stream>::count(const Bracket &bracket) {
  bracket_ = bracket;
  used_ = 0;
  for_each_chunk([&](Scratch &scratch, int64_t number, const Words &words) {
    ChunkCounts *chunk = &chunks_[number];
    // A single key has nothing inside.
    std::byte *keys = bracket.low < bracket.high ? take_keys(scratch, words.count) : nullptr;
    chunk->counts = kernels_.count(words, bracket, keys);
    collect(keys, chunk);
  });
  total_ = {};
  for (int64_t i = 0; i < stream_.chunks(); ++i) total_ += chunks_[i].counts;
}

// Keeps the keys inside the bracket while there is room.
template <typename Stream>
void StreamSelector<Stream>::collect(const std::byte *keys, ChunkCounts *chunk) {
  const int64_t n = chunk->counts.between;
  if (n == 0) return;
  chunk->first = used_.fetch_add(n, std::memory_order_relaxed);
  if (chunk->first + n <= room_) {
    std::copy_n(keys, n * size_, collected_ + chunk->first * size_);
  }
}

template <typename Stream>
bool StreamSelector<Stream>::is_found(int64_t k) const {
  switch (total_.place_of(k)) {
    case Place::kAtHigh:
    case Place::kAtLow:
      return true;
    case Place::kBetween:
      return used_ <= room_;
    default:
      return false;
  }
}

template <typename Stream>
Cut StreamSelector<Stream>::cut(int64_t k) {
  const int64_t from_high = total_.above + total_.at_high;
  switch (total_.place_of(k)) {
    case Place::kAtHigh:
      return {bracket_.high, total_.above, total_.at_high};
    case Place::kAtLow:
      return {bracket_.low, from_high + total_.between, total_.at_low};
    default:
      Cut cut = kernels_.find_cut({collected_, total_.between, rule_}, k - from_high, buffer_);
      cut.above += from_high;
      return cut;
  }
}

// --- when the guess has missed ----------------------------------------------------------------

template <typename Stream>
typename StreamSelector<Stream>::Interval StreamSelector<Stream>::known_interval(int64_t k) const {
  const int64_t from_high = total_.above + total_.at_high;
  const int64_t from_low = from_high + total_.between + total_.at_low;
  switch (total_.place_of(k)) {
    case Place::kAbove:
      return {bracket_.high + 1, rule_.highest, 0, total_.above};
    case Place::kBelow:
      return {0, bracket_.low - 1, from_low, stream_.count() - from_low};
    default:
      return {bracket_.low + 1, bracket_.high - 1, from_high, total_.between};
  }
}

// The bin of the interval that the k-th is in.
template <typename Stream>
typename StreamSelector<Stream>::Interval StreamSelector<Stream>::narrower(const Interval &interval,
                                                                           int64_t k) {
  const int shift =
      std::max(0, static_cast<int>(std::bit_width(interval.high - interval.low)) - kHistogramBits);
  histogram_->clear();
  for_each_chunk([&](Scratch &scratch, int64_t, const Words &words) {
    int32_t *bins = scratch.take<int32_t>(kHistogramBins);
    std::fill_n(bins, kHistogramBins, 0);
    kernels_.histogram(words, {interval.low, interval.high}, shift, bins);
    histogram_->add(bins);
  });
  auto bin = static_cast<int64_t>((interval.high - interval.low) >> shift);
  int64_t above = interval.above;
  while (above + histogram_->bins[bin] < k) above += histogram_->bins[bin--];
  const uint64_t low = interval.low + (static_cast<uint64_t>(bin) << shift);
  const uint64_t last = (uint64_t{1} << shift) - 1;
  return {low, last < interval.high - low ? low + last : interval.high, above,
          histogram_->bins[bin]};
}

// Keys that can be collected, or a single one.
template <typename Stream>
Bracket StreamSelector<Stream>::narrow(int64_t k) {
  Interval interval = known_interval(k);
  while (interval.inside > room_ && interval.low < interval.high) interval = narrower(interval, k);
  if (interval.low == interval.high) return {interval.low, interval.low};
  return {std::max<uint64_t>(interval.low, 1) - 1, interval.high + 1};
}

// --- ties -------------------------------------------------------------------------------------

template <typename Stream>
int64_t StreamSelector<Stream>::equal_in(int64_t number, uint64_t key) const {
  const ChunkCounts &chunk = chunks_[number];
  if (key == bracket_.high) return chunk.counts.at_high;
  if (key == bracket_.low) return chunk.counts.at_low;
  if (chunk.counts.between == 0) return 0;
  const Words collected{collected_ + chunk.first * size_, chunk.counts.between, rule_};
  return kernels_.count(collected, {key, key}, nullptr).at_high;
}

template <typename Stream>
int64_t StreamSelector<Stream>::position_in_order(const Cut &cut, int64_t quota) const {
  int64_t number = 0;
  for (int64_t equal = equal_in(0, cut.key); equal < quota; equal = equal_in(++number, cut.key)) {
    quota -= equal;
  }
  const Scratch::Frame frame(call_.scratch());
  const typename Stream::Chunk chunk = stream_.chunk(number);
  const Words words = stream_.words(call_.scratch(), chunk).words();
  return stream_.first_position(chunk) + kernels_.find_equal(words, cut.key, quota);
}

// Counts the keys of a run of positions that are equal to a key, by position.
template <typename Stream>
void StreamSelector<Stream>::count_positions(const Words &run, int64_t position, uint64_t key,
                                             int64_t first, int shift, int32_t *bins) const {
  Words rest = run;
  const auto skip = [&](int64_t n) {
    rest.data = static_cast<const std::byte *>(rest.data) + n * size_;
    rest.count -= n;
    position += n;
  };
  int64_t equal = kernels_.count(run, {key, key}, nullptr).at_high;
  for (; equal > 0; --equal) {
    skip(kernels_.find_equal(rest, key, 1));
    const int64_t bin = (position - 1 - first) >> shift;
    if (bin >= 0 && bin < kHistogramBins) ++bins[bin];
  }
}

// Positions of chunks that interleave: eleven bits a pass, over the chunks that have such keys.
template <typename Stream>
int64_t StreamSelector<Stream>::search_position(const Cut &cut, int64_t quota) const {
  const auto positions = static_cast<uint64_t>(stream_.count());
  int shift = std::max(0, static_cast<int>(std::bit_width(positions)) - kHistogramBits);
  int64_t first = 0;  // the position is in [first, first + (kHistogramBins << shift))
  for (;; shift = std::max(0, shift - kHistogramBits)) {
    histogram_->clear();
    call_.for_each(stream_.chunks(), [&](Scratch &scratch, int64_t number) {
      if (equal_in(number, cut.key) == 0) return;
      const typename Stream::Chunk chunk = stream_.chunk(number);
      const ScopeWords words = stream_.words(scratch, chunk);
      int32_t *bins = scratch.take<int32_t>(kHistogramBins);
      std::fill_n(bins, kHistogramBins, 0);
      stream_.for_each_run(chunk, [&](int64_t word, int64_t n, int64_t position) {
        count_positions(words.part(word, n).words(), position, cut.key, first, shift, bins);
      });
      histogram_->add(bins);
    });
    int64_t bin = 0;
    while (histogram_->bins[bin] < quota) quota -= histogram_->bins[bin++];
    first += bin << shift;
    if (shift == 0) return first + 1;
  }
}

template <typename Stream>
uint64_t StreamSelector<Stream>::largest_below(uint64_t key) const {
  std::atomic<uint64_t> best{0};
  for_each_chunk([&](Scratch &, int64_t, const Words &words) {
    const uint64_t local = kernels_.largest_below(words, key);
    uint64_t seen = best.load(std::memory_order_relaxed);
    while (seen < local && !best.compare_exchange_weak(seen, local)) {
    }
  });
  return best;
}

template <typename Stream>
Selection select_top_of(Call &call, const Stream &stream, int64_t k, int32_t ties) {
  if (Selection::is_trivial(k, stream.count())) return Selection::trivial(stream.form().rule, k);
  const Scratch::Frame frame(call.scratch());
  StreamSelector<Stream> selector(call, stream);
  const Cut cut = selector.find(k);
  Selection selection = Selection::at(cut, k, ties);
  if (Selection::needs_position(cut, k, ties)) {
    selection.position = selector.position(cut, cut.quota(k));
  }
  return selection;
}

}  // namespace

Selection select_top(Call &call, const KeyStream &stream, int64_t k, int32_t ties) {
  return select_top_of(call, stream, k, ties);
}

Selection select_top(Call &call, const KeyArray &keys, int64_t k, int32_t ties) {
  return select_top_of(call, keys, k, ties);
}

uint64_t kth_largest(Call &call, const KeyStream &stream, int64_t k, uint64_t *next) {
  const Scratch::Frame frame(call.scratch());
  StreamSelector<KeyStream> selector(call, stream);
  const Cut cut = selector.find(k);
  if (next) *next = cut.splits_ties(k) ? cut.key : selector.largest_below(cut.key);
  return cut.key;
}

}  // namespace spk
