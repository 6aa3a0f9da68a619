#include "core/select.h"

#include <algorithm>
#include <bit>

#include "base/dtype.h"

namespace spk {

// --- keys -------------------------------------------------------------------------------------

namespace {

// Magnitudes: NaN is all that is above infinity.
KeyRule rule_of_magnitudes(int32_t dtype) {
  switch (dtype) {
    case SPK_F64:
      return {0x7fffffffffffffff, 0x7ff0000000000001};
    case SPK_F16:
      return {0x7fff, 0x7c01};
    case SPK_BF16:
      return {0x7fff, 0x7f81};
    default:
      return {0x7fffffff, 0x7f800001};
  }
}

// Undoes KeyKernels::score_keys.
template <typename T, typename K>
double score_of_key(K key) {
  constexpr K kSign = K{1} << (8 * sizeof(K) - 1);
  return std::bit_cast<T>(static_cast<K>((key & kSign) != 0 ? key ^ kSign : ~key));
}

}  // namespace

KeyForm KeyForm::of_elements(int32_t dtype) {
  const int64_t size = size_of(dtype);
  const KeyWidth width = size == 2 ? kKeys16 : size == 4 ? kKeys32 : kKeys64;
  return {width, rule_of_magnitudes(dtype), dtype, true};
}

KeyForm KeyForm::of_scores(int32_t score_dtype) {
  if (score_dtype == SPK_F64) {
    constexpr uint64_t kAll = ~uint64_t{0};
    return {kKeys64, {kAll, 0xfff0000000000001}, SPK_F64, false};
  }
  return {kKeys32, {0xffffffff, 0xff800001}, SPK_F32, false};
}

KeyForm KeyForm::of_keys(KeyWidth width) {
  const uint64_t all = ~uint64_t{0} >> (64 - 8 * bytes_of(width));
  return {width, {all, all - 1}, 0, false};
}

double KeyForm::score_of(const Kernels &all, uint64_t key) const {
  if (key == rule.highest) return std::numeric_limits<double>::quiet_NaN();
  if (!magnitudes) {
    if (width == kKeys64) return score_of_key<double>(key);
    return score_of_key<float>(static_cast<uint32_t>(key));
  }
  // The low bytes of a key are those of the element: the library is built for little endian.
  static_assert(std::endian::native == std::endian::little);
  double score = 0.0;
  all.to_double[index_of_dtype(dtype)](reinterpret_cast<const std::byte *>(&key), 1, 1, &score, 1);
  return score;
}

// --- selections -------------------------------------------------------------------------------

Selection Selection::trivial(const KeyRule &rule, int64_t k) {
  return {k == 0 ? rule.top() : 0, kNoPosition, {k, 0}};
}

Selection Selection::at(const Cut &cut, int64_t k, int32_t ties) {
  Selection selection{cut.key, kNoPosition, {}};
  selection.selected.kept = ties == SPK_TIES_KEEP_ALL ? cut.above + cut.equal : k;
  selection.selected.ties = cut.splits_ties(k) ? cut.equal : 0;
  return selection;
}

// --- samples ----------------------------------------------------------------------------------

uint64_t mixed(uint64_t number) {
  number = (number + 1) * 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

int64_t sample_lines(const std::byte *words, int64_t count, int64_t size, uint64_t seed,
                     int64_t rate, int64_t room, std::byte *out) {
  constexpr int64_t kLineBytes = 64;
  const uint64_t random = mixed(seed);
  const int64_t line = kLineBytes / size;
  int64_t taken = 0;
  for (int64_t first = 0; first + line * rate <= count && taken + line <= room;
       first += line * rate) {
    const int64_t at = first + line * below(mixed(random + static_cast<uint64_t>(first)), rate);
    std::copy_n(words + at * size, kLineBytes, out + taken * size);
    taken += line;
  }
  return taken;
}

// --- in memory --------------------------------------------------------------------------------

Cut ScopeWords::find_cut(int64_t k, Scratch &scratch) const {
  const Scratch::Frame frame(scratch);
  void *buffer = scratch.take<std::byte>(words_.count * form_.bytes() + kKeySlack);
  return kernels_.find_cut(words_, k, buffer);
}

Selection ScopeWords::select_top(int64_t k, int32_t ties, Scratch &scratch) const {
  if (Selection::is_trivial(k, words_.count)) return Selection::trivial(form_.rule, k);
  const Cut cut = find_cut(k, scratch);
  Selection selection = Selection::at(cut, k, ties);
  if (Selection::needs_position(cut, k, ties)) {
    selection.position = kernels_.find_equal(words_, cut.key, cut.quota(k));
  }
  return selection;
}

uint64_t ScopeWords::kth_largest(int64_t k, Scratch &scratch, uint64_t *next) const {
  const Cut cut = find_cut(k, scratch);
  if (next) *next = cut.splits_ties(k) ? cut.key : kernels_.largest_below(words_, cut.key);
  return cut.key;
}

ScopeWords ScopeWords::part(int64_t first, int64_t count) const {
  ScopeWords some = *this;
  some.words_.data = static_cast<const std::byte *>(words_.data) + first * form_.bytes();
  some.words_.count = count;
  return some;
}

int64_t ScopeWords::tied_part(const Selection &selection, int64_t first) const {
  return std::clamp<int64_t>(selection.position - first, 0, words_.count);
}

void ScopeWords::keep(const Selection &selection, int64_t first, uint8_t *keep) const {
  const int64_t tied = tied_part(selection, first);
  kernels_.keep(part(0, tied).words_, selection.key, keep);
  kernels_.keep(part(tied, words_.count - tied).words_, selection.key + 1, keep + tied);
}

void ScopeWords::prune(const Selection &selection, int64_t first, std::byte *y) const {
  const int64_t tied = tied_part(selection, first);
  kernels_.prune(part(0, tied).words_, selection.key, y);
  kernels_.prune(part(tied, words_.count - tied).words_, selection.key + 1,
                 y + tied * form_.bytes());
}

}  // namespace spk
