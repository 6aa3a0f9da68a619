// What dynamic sparse training asks of elements and the bytes of their keep masks: keys of those
// that compete, random ones, counts and sums of the active.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/masked.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/convert-inl.h"
#include "kernels/keep_mask-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

template <class K>
using MaskedTag = hn::ScalableTag<K>;

template <class K>
HWY_INLINE int64_t MaskedLanes() {
  return static_cast<int64_t>(hn::Lanes(MaskedTag<K>()));
}

// --- keys -------------------------------------------------------------------------------------

// The active compete, NaN above all.
struct AmongActive {
  template <class K>
  static HWY_INLINE K Key(const KeyRule &rule, K word, bool active) {
    return active ? static_cast<K>(rule.key(word) + 1) : K{0};
  }
  template <class DK, class M, class VK = hn::Vec<DK>>
  static HWY_INLINE VK Keys(DK d, VK bits, VK nan, M active) {
    const VK key = hn::Add(hn::Min(bits, nan), hn::Set(d, 1));
    return hn::IfThenElseZero(active, key);
  }
};

// The inactive compete, but for NaN; the active are kept in any case.
struct AmongInactive {
  template <class K>
  static HWY_INLINE K Key(const KeyRule &rule, K word, bool active) {
    if (active) return kKeptKey<K>;
    const auto key = static_cast<K>(rule.key(word));
    return key == static_cast<K>(rule.highest) ? K{0} : static_cast<K>(key + 1);
  }
  template <class DK, class M, class VK = hn::Vec<DK>>
  static HWY_INLINE VK Keys(DK d, VK bits, VK nan, M active) {
    const VK key = hn::Add(bits, hn::Set(d, 1));
    const VK number = hn::IfThenElseZero(hn::Lt(bits, nan), key);
    return hn::IfThenElse(active, hn::Set(d, kKeptKey<hn::TFromD<DK>>), number);
  }
};

template <class Who, class K>
HWY_NOINLINE int64_t MaskedKeys(const MaskedKeysArgs &args) {
  const MaskedTag<K> d;
  const auto *word = static_cast<const K *>(args.words);
  auto *out = static_cast<K *>(args.keys);
  const auto magnitude = hn::Set(d, static_cast<K>(args.rule.magnitude));
  const auto nan = hn::Set(d, static_cast<K>(args.rule.highest));
  const auto kept = hn::Set(d, kKeptKey<K>);
  int64_t rejected = 0;
  int64_t i = 0;
  for (; i + MaskedLanes<K>() <= args.n; i += MaskedLanes<K>()) {
    const auto bits = hn::And(hn::LoadU(d, word + i), magnitude);
    const auto keys = Who::Keys(d, bits, nan, KeepMask(d, args.mask + i));
    const auto no_candidate = hn::Or(hn::Eq(keys, hn::Zero(d)), hn::Eq(keys, kept));
    rejected += static_cast<int64_t>(hn::CountTrue(d, no_candidate));
    hn::StoreU(keys, d, out + i);
  }
  for (; i < args.n; ++i) {
    out[i] = Who::template Key<K>(args.rule, word[i], args.mask[i] != 0);
    rejected += out[i] == 0 || out[i] == kKeptKey<K>;
  }
  return args.n - rejected;
}

// --- random keys ------------------------------------------------------------------------------

using DW = hn::ScalableTag<uint64_t>;
using VW = hn::Vec<DW>;

// The smallest words have the largest keys. Two values at either end are given up for those that
// mean something else: equal keys of different words are as rare as equal words.
constexpr uint64_t kLeastRandomKey = 1;
constexpr uint64_t kMostRandomKey = kKeptKey<uint64_t> - 1;

HWY_INLINE uint64_t RandomKey(const RandomKeysArgs &args, int64_t i) {
  if (args.mask && args.mask[i] != 0) return kKeptKey<uint64_t>;
  const auto index = args.first + static_cast<uint32_t>(i);
  const uint64_t word =
      philox_word({args.counter[0], args.counter[1], args.counter[2], index}, args.key);
  return HWY_MIN(HWY_MAX(~word, kLeastRandomKey), kMostRandomKey);
}

#if HWY_TARGET != HWY_SCALAR
// 32-bit words in 64-bit lanes, whose products are then in place.
HWY_INLINE VW Product32(VW a, uint32_t b) {
  const hn::Repartition<uint32_t, DW> d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::Set(d32, b));
}

// Several vectors of counters, round by round: one alone would wait for its products.
constexpr int64_t kPhiloxVectors = 4;

struct PhiloxState {
  VW x[4][kPhiloxVectors];

  HWY_INLINE void Round(const PhiloxKey &key) {
    const DW d;
    const VW low = hn::Set(d, 0xffffffffu);
    for (int64_t v = 0; v < kPhiloxVectors; ++v) {
      const VW a = Product32(x[0][v], kPhiloxMultipliers[0]);
      const VW b = Product32(x[2][v], kPhiloxMultipliers[1]);
      x[0][v] = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), x[1][v]), hn::Set(d, key[0]));
      x[1][v] = hn::And(b, low);
      x[2][v] = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), x[3][v]), hn::Set(d, key[1]));
      x[3][v] = hn::And(a, low);
    }
  }
  HWY_INLINE VW Word(int64_t v) const { return hn::Or(x[0][v], hn::ShiftLeft<32>(x[1][v])); }
};

// The keys of kPhiloxVectors vectors from i on.
HWY_INLINE void RandomKeysAt(const RandomKeysArgs &args, int64_t i) {
  const DW d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  PhiloxState state;
  for (int64_t v = 0; v < kPhiloxVectors; ++v) {
    for (int word = 0; word < 3; ++word) state.x[word][v] = hn::Set(d, args.counter[word]);
    state.x[3][v] = hn::Iota(d, args.first + static_cast<uint64_t>(i + v * lanes));
  }
  for (int round = 0; round < kPhiloxRounds; ++round) {
    state.Round(philox_round_key(args.key, round));
  }
  for (int64_t v = 0; v < kPhiloxVectors; ++v) {
    const int64_t at = i + v * lanes;
    VW key = hn::Not(state.Word(v));
    key = hn::Min(hn::Max(key, hn::Set(d, kLeastRandomKey)), hn::Set(d, kMostRandomKey));
    if (args.mask) {
      key = hn::IfThenElse(KeepMask(d, args.mask + at), hn::Set(d, kKeptKey<uint64_t>), key);
    }
    hn::StoreU(key, d, args.keys + at);
  }
}
#endif

HWY_NOINLINE void RandomKeys(const RandomKeysArgs &args) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const int64_t at_once = kPhiloxVectors * static_cast<int64_t>(hn::Lanes(DW()));
  for (; i + at_once <= args.n; i += at_once) RandomKeysAt(args, i);
#endif
  for (; i < args.n; ++i) args.keys[i] = RandomKey(args, i);
}

// --- counts and sums --------------------------------------------------------------------------

HWY_NOINLINE int64_t CountActive(const uint8_t *mask, int64_t n) {
  const MaskedTag<uint8_t> d;
  int64_t zeros = 0;
  int64_t i = 0;
  for (; i + MaskedLanes<uint8_t>() <= n; i += MaskedLanes<uint8_t>()) {
    const auto zero = hn::Eq(hn::LoadU(d, mask + i), hn::Zero(d));
    zeros += static_cast<int64_t>(hn::CountTrue(d, zero));
  }
  for (; i < n; ++i) zeros += mask[i] == 0;
  return n - zeros;
}

constexpr int64_t kSumRegisters = kLanes / kN;

// kLanes elements, each to its virtual lane.
HWY_INLINE void AddActive(const double *x, const uint8_t *mask, V *sum) {
  const D d;
  const hn::RebindToUnsigned<D> du;
  for (int64_t r = 0; r < kSumRegisters; ++r) {
    const auto active = hn::RebindMask(d, KeepMask(du, mask + r * kN));
    const V magnitude = hn::Abs(hn::LoadU(d, x + r * kN));
    sum[r] = hn::Add(sum[r], hn::IfThenElseZero(active, magnitude));
  }
}

HWY_NOINLINE double SumActive(const double *x, const uint8_t *mask, int64_t n) {
  const D d;
  V sum[kSumRegisters];
  for (int64_t r = 0; r < kSumRegisters; ++r) sum[r] = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) AddActive(x + i, mask + i, sum);
  if (i < n) {
    double rest[kLanes] = {};
    uint8_t rest_mask[kLanes] = {};
    std::copy_n(x + i, n - i, rest);
    std::copy_n(mask + i, n - i, rest_mask);
    AddActive(rest, rest_mask, sum);
  }
  double lanes[kLanes];
  for (int64_t r = 0; r < kSumRegisters; ++r) hn::StoreU(sum[r], d, lanes + r * kN);
  fold_lanes(kSum, lanes, nullptr, 1);
  return lanes[0];
}

// --- momentum ---------------------------------------------------------------------------------

HWY_INLINE V AdamOf(V m1, V m2) {
  return hn::Div(m1, hn::Add(hn::Sqrt(m2), hn::Set(D(), kAdamEps)));
}

HWY_NOINLINE void AdamMomentum(const double *m1, const double *m2, int64_t n, double *out) {
  const D d;
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    hn::StoreU(AdamOf(hn::LoadU(d, m1 + i), hn::LoadU(d, m2 + i)), d, out + i);
  }
  if (i == n) return;
  double first[kN] = {};
  double second[kN] = {};
  std::copy_n(m1 + i, n - i, first);
  std::copy_n(m2 + i, n - i, second);
  hn::StoreU(AdamOf(hn::LoadU(d, first), hn::LoadU(d, second)), d, first);
  std::copy_n(first, n - i, out + i);
}

template <class K>
void FillKeys(KeyWidth width, Kernels *table) {
  table->active_keys[width] = MaskedKeys<AmongActive, K>;
  table->inactive_keys[width] = MaskedKeys<AmongInactive, K>;
}

void FillMasked(Kernels *table) {
  FillKeys<uint16_t>(kKeys16, table);
  FillKeys<uint32_t>(kKeys32, table);
  FillKeys<uint64_t>(kKeys64, table);
  table->random_keys = RandomKeys;
  table->count_active = CountActive;
  table->sum_active = SumActive;
  table->adam_momentum = AdamMomentum;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillMasked);
void fill_masked(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillMasked)(table);
}
}  // namespace spk
#endif
