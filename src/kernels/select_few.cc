// The top elements of many scopes of few elements each, straight in memory. Keys are the bits of
// magnitudes, which order as the magnitudes do, NaN above infinity; scopes are lanes. A scope is
// cut at its k-th largest key: two sorting networks for its halves, and a merge that stops at k.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select_few.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/kernels.h"
#include "kernels/partners-inl.h"
#include "kernels/tables.h"

#ifndef SPK_KERNELS_SELECT_FEW_ONCE_
#define SPK_KERNELS_SELECT_FEW_ONCE_
namespace spk {

// Batcher's merge exchange for any number of keys (Knuth, volume 3, 5.2.2, algorithm M): pairs of
// positions to be put in order, one after the other.
struct SortingNetwork {
  static constexpr size_t kMostPairs = 63;  // of 16 keys
  std::array<uint8_t, kMostPairs> first{}, second{};
  size_t pairs = 0;
};
constexpr SortingNetwork sorting_network(size_t keys) {
  SortingNetwork network;
  size_t top = 1;
  while (2 * top < keys) top *= 2;
  for (size_t p = keys > 1 ? top : 0; p > 0; p /= 2) {
    size_t remainder = 0;
    size_t distance = p;
    for (size_t q = top;; q /= 2) {
      for (size_t i = 0; i + distance < keys; ++i) {
        if ((i & p) != remainder) continue;
        network.first[network.pairs] = static_cast<uint8_t>(i);
        network.second[network.pairs++] = static_cast<uint8_t>(i + distance);
      }
      if (q == p) break;
      distance = q - p;
      remainder = p;
    }
  }
  return network;
}

}  // namespace spk
#endif

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
using Vec = hn::Vec<Tag<T>>;
template <typename T>
inline constexpr int64_t kLanesOf = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

inline constexpr size_t kHalf = kFewBlocks / 2;
template <typename T>
inline constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));  // elements of a cache line
// Bytes ahead of use at which memory is asked for.
inline constexpr int64_t kPrefetch = 12288;

// Scopes that are selected together: one a lane, some registers of them.
template <typename T>
struct Panel {
  static constexpr int64_t kWidth = 4 * kLine<T>;
  static constexpr int64_t kColumns = kWidth / kLanesOf<T>;

  HWY_ALIGN T element[kFewBlocks][kWidth];
  // The halves of a scope, each between a sentinel above all keys and one below.
  HWY_ALIGN T sorted[kFewBlocks + 4][kWidth];
  // An element stays if its key is above `cut`, or one more and its position at most `until`.
  HWY_ALIGN T cut[kWidth];
  HWY_ALIGN T until[kWidth];
  HWY_ALIGN T wanted[kWidth];
  uint64_t present = 0;  // bit k: a scope of the panel wants k
};

// Where the elements of the scopes of a panel lie: rows of one position each.
template <typename T>
struct Rows {
  const std::byte *x;
  const int64_t *at;  // bytes from x to each row

  HWY_INLINE const T *operator[](int64_t position) const {
    return reinterpret_cast<const T *>(x + at[position]);
  }
};

// The elements of a panel, a row for each position.
template <typename T>
class PanelRows {
 public:
  explicit PanelRows(const Panel<T> &panel)
      : x_(reinterpret_cast<const std::byte *>(panel.element)) {
    constexpr int64_t kRow = Panel<T>::kWidth * static_cast<int64_t>(sizeof(T));
    for (int64_t p = 0; p < int64_t{kFewBlocks}; ++p) at_[p] = p * kRow;
  }
  HWY_INLINE Rows<T> rows() const { return {x_, at_}; }

 private:
  const std::byte *x_;
  int64_t at_[kFewBlocks];
};

template <typename T>
HWY_INLINE Vec<T> Magnitude(Vec<T> element) {
  return hn::And(element, hn::Set(Tag<T>(), std::numeric_limits<T>::max()));
}

// --- the k-th largest -----------------------------------------------------------------------

template <typename T>
HWY_INLINE void LargerFirst(Vec<T> &a, Vec<T> &b) {
  const Vec<T> larger = hn::Max(a, b);
  b = hn::Min(a, b);
  a = larger;
}

template <typename T, size_t N, size_t... I>
HWY_INLINE void SortVectors([[maybe_unused]] Vec<T> *key, std::index_sequence<I...>) {
  [[maybe_unused]] constexpr SortingNetwork network = sorting_network(N);
  (LargerFirst<T>(key[network.first[I]], key[network.second[I]]), ...);
}

// Sorts the keys of N rows from `first` on, largest first.
template <typename T, size_t N>
void SortRows(const Rows<T> &rows, int64_t first, int64_t columns, T (*sorted)[Panel<T>::kWidth]) {
  constexpr Tag<T> d;
  for (int64_t c = 0; c < columns * kLanesOf<T>; c += kLanesOf<T>) {
    Vec<T> key[N];
    for (size_t i = 0; i < N; ++i) {
      key[i] = Magnitude<T>(hn::LoadU(d, rows[first + static_cast<int64_t>(i)] + c));
    }
    SortVectors<T, N>(key, std::make_index_sequence<sorting_network(N).pairs>());
    for (size_t i = 0; i < N; ++i) hn::Store(key[i], d, sorted[i] + c);
  }
}

template <typename T>
using SortRowsFn = void (*)(const Rows<T> &, int64_t, int64_t, T (*)[Panel<T>::kWidth]);

template <typename T, size_t... I>
constexpr std::array<SortRowsFn<T>, kHalf> SortRowsTable(std::index_sequence<I...>) {
  return {SortRows<T, I + 1>...};
}

// Elements of the first half of a scope; the second may have one less.
inline int64_t FirstHalf(int64_t n) {
  return (n + 1) / 2;
}

template <typename T>
void SortHalves(const Rows<T> &rows, int64_t n, int64_t columns, Panel<T> *panel) {
  static constexpr auto kSort = SortRowsTable<T>(std::make_index_sequence<kHalf>());
  const int64_t half = FirstHalf(n);
  kSort[half - 1](rows, 0, columns, panel->sorted + 1);
  if (n > half) kSort[n - half - 1](rows, half, columns, panel->sorted + half + 3);
}

template <typename T>
struct Edge {
  Vec<T> last_in;    // the k-th largest
  Vec<T> first_out;  // the one after it
};

// The keys on either side of the cut of the scopes of a column. The k-th largest of two sorted
// halves is the largest, over all ways to take i keys of the first and k - i of the second, of the
// smallest taken.
template <typename T>
HWY_INLINE Edge<T> EdgeOf(const Panel<T> &panel, int64_t n, int64_t k, int64_t column) {
  constexpr Tag<T> d;
  const int64_t first = FirstHalf(n);
  const int64_t second = n - first;
  const auto load = [&](int64_t row) HWY_ATTR { return hn::Load(d, panel.sorted[row] + column); };
  Edge<T> edge{hn::Set(d, T{-1}), load(HWY_MIN(k, first) + 1)};
  for (int64_t i = HWY_MAX(k - second, 0); i <= HWY_MIN(first, k); ++i) {
    const Vec<T> a = load(i);
    const int64_t row = first + 2 + k - i;
    edge.last_in = hn::Max(edge.last_in, hn::Min(a, load(row)));
    edge.first_out = hn::Max(edge.first_out, hn::Min(a, load(row + 1)));
  }
  return edge;
}

// Cuts each scope of a column below its k-th largest key. Returns whether that leaves a doubt: the
// next key is equal, or too close.
template <typename T>
HWY_INLINE bool CutColumn(const SelectFewArgs &args, int64_t column, Panel<T> *panel) {
  constexpr Tag<T> d;
  const Vec<T> wanted = hn::Load(d, panel->wanted + column);
  const Vec<T> nan = hn::Set(d, static_cast<T>(args.nan_key));
  const Vec<T> margin = hn::Set(d, static_cast<T>(args.margin));
  Vec<T> cut = hn::Set(d, std::numeric_limits<T>::max());  // where none is wanted
  auto doubt = hn::Lt(wanted, hn::Zero(d));
  for (uint64_t rest = panel->present & ~uint64_t{1}; rest != 0; rest &= rest - 1) {
    const int64_t k = __builtin_ctzll(rest);
    const auto here = hn::Eq(wanted, hn::Set(d, static_cast<T>(k)));
    // All NaN are equal.
    const Edge<T> edge = EdgeOf(*panel, args.n, k, column);
    const Vec<T> last_in = hn::Min(edge.last_in, nan);
    cut = hn::IfThenElse(here, hn::Sub(last_in, hn::Set(d, T{1})), cut);
    if (k == args.n) continue;
    const Vec<T> first_out = hn::Min(edge.first_out, nan);
    doubt = hn::Or(doubt, hn::And(here, hn::Lt(hn::Sub(last_in, first_out), margin)));
  }
  hn::Store(cut, d, panel->cut + column);
  return !hn::AllFalse(d, doubt);
}

// --- ties -----------------------------------------------------------------------------------

template <typename T>
int64_t SumOfLanes(Vec<T> v) {
  HWY_ALIGN T lanes[kLanesOf<T>];
  hn::Store(v, Tag<T>(), lanes);
  int64_t sum = 0;
  for (T lane : lanes) sum += lane;
  return sum;
}

template <typename T>
HWY_INLINE Vec<T> ClampedKey(Vec<T> element, int64_t nan_key) {
  return hn::Min(Magnitude<T>(element), hn::Set(Tag<T>(), static_cast<T>(nan_key)));
}

// The position of the last of the ties at each cut of a column that stays by position.
template <typename T>
Vec<T> LastStaying(const SelectFewArgs &args, const Rows<T> &rows, int64_t column, Vec<T> tied_key,
                   Vec<T> quota) {
  constexpr Tag<T> d;
  Vec<T> last = hn::Set(d, T{-1});
  Vec<T> seen = hn::Zero(d);
  for (int64_t p = 0; p < args.n; ++p) {
    const Vec<T> key = ClampedKey<T>(hn::LoadU(d, rows[p] + column), args.nan_key);
    const auto here = hn::Eq(key, tied_key);
    seen = hn::Sub(seen, hn::VecFromMask(d, here));
    const auto leaves = hn::Or(hn::Not(here), hn::Gt(seen, quota));
    last = hn::IfThenElse(leaves, last, hn::Set(d, static_cast<T>(p)));
  }
  return last;
}

// How far into the ties at its cut each scope of a column keeps. Counts the ties, and what is kept
// of them beyond what was wanted.
template <typename T>
void SettleTies(const SelectFewArgs &args, const Rows<T> &rows, int64_t column, Panel<T> *panel) {
  constexpr Tag<T> d;
  const Vec<T> wanted = hn::Load(d, panel->wanted + column);
  // Where none is wanted this wraps around, to what no key is.
  const Vec<T> last_in = hn::Add(hn::Load(d, panel->cut + column), hn::Set(d, T{1}));
  Vec<T> above = hn::Zero(d);
  Vec<T> equal = hn::Zero(d);
  for (int64_t p = 0; p < args.n; ++p) {
    const Vec<T> key = ClampedKey<T>(hn::LoadU(d, rows[p] + column), args.nan_key);
    above = hn::Sub(above, hn::VecFromMask(d, hn::Gt(key, last_in)));
    equal = hn::Sub(equal, hn::VecFromMask(d, hn::Eq(key, last_in)));
  }
  const Vec<T> quota = hn::Sub(wanted, above);
  const auto tied = hn::And(hn::Gt(wanted, hn::Zero(d)), hn::Gt(equal, quota));
  *args.ties += SumOfLanes<T>(hn::IfThenElseZero(tied, equal));
  Vec<T> until = hn::Set(d, T{kFewBlocks});
  if (args.keep_ties) {
    *args.beyond += SumOfLanes<T>(hn::IfThenElseZero(tied, hn::Sub(equal, quota)));
  } else {
    until = hn::IfThenElse(tied, LastStaying<T>(args, rows, column, last_in, quota), until);
  }
  hn::Store(until, d, panel->until + column);
}

// What an element stays for: that its key, all NaN alike, is above the cut, or above what is tied
// at the cut if it comes too late.
template <typename T>
HWY_INLINE Vec<T> KeepSettled(const SelectFewArgs &args, Vec<T> element, Vec<T> position,
                              Vec<T> cut, Vec<T> until) {
  constexpr Tag<T> d;
  const Vec<T> key = ClampedKey<T>(element, args.nan_key);
  const Vec<T> tied_key = hn::Add(cut, hn::Set(d, T{1}));
  const Vec<T> own_cut = hn::IfThenElse(hn::Gt(position, until), tied_key, cut);
  return hn::IfThenElseZero(hn::Gt(key, own_cut), element);
}
template <typename T>
HWY_INLINE Vec<T> Keep(Vec<T> element, Vec<T> cut) {
  return hn::IfThenElseZero(hn::Gt(Magnitude<T>(element), cut), element);
}

// --- a panel --------------------------------------------------------------------------------

// How many each of `scopes` scopes from `first` on keeps; lanes without a scope keep none.
template <typename T>
void FillWanted(const SelectFewArgs &args, int64_t first, int64_t scopes, Panel<T> *panel) {
  const int64_t *counts = args.counts + first * args.count_step;
  if (args.count_step == 0) {
    std::fill_n(panel->wanted, scopes, static_cast<T>(counts[0]));
    panel->present = uint64_t{1} << counts[0];
  } else {
    panel->present = 0;
    for (int64_t s = 0; s < scopes; ++s) {
      const int64_t k = counts[s * args.count_step];
      panel->wanted[s] = static_cast<T>(k);
      panel->present |= uint64_t{1} << k;
    }
  }
  std::fill(panel->wanted + scopes, panel->wanted + Panel<T>::kWidth, T{0});
}

// Cuts the scopes of a panel whose halves are sorted. Returns whether ties are to be settled.
template <typename T>
bool CutPanel(const SelectFewArgs &args, int64_t columns, Panel<T> *panel) {
  bool doubt = false;
  for (int64_t c = 0; c < columns; ++c) doubt |= CutColumn(args, c * kLanesOf<T>, panel);
  if (!doubt || args.margin == 1) return doubt;
  *args.ties += 1;
  return false;
}

template <typename T>
void SettlePanel(const SelectFewArgs &args, const Rows<T> &rows, int64_t columns, Panel<T> *panel) {
  for (int64_t c = 0; c < columns; ++c) SettleTies(args, rows, c * kLanesOf<T>, panel);
}

template <typename T>
void PreparePanel(const SelectFewArgs &args, Panel<T> *panel) {
  const int64_t first = FirstHalf(args.n);
  for (int64_t c = 0; c < Panel<T>::kWidth; ++c) {
    panel->sorted[0][c] = std::numeric_limits<T>::max();
    panel->sorted[first + 1][c] = T{-1};
    panel->sorted[first + 2][c] = std::numeric_limits<T>::max();
    panel->sorted[args.n + 3][c] = T{-1};
  }
  if (args.count_step == 0) FillWanted(args, 0, Panel<T>::kWidth, panel);
}

// --- registers ------------------------------------------------------------------------------

// Scopes of at most this many elements are cut without leaving the registers. Portable code, which
// is not for speed, does without the large sorting networks.
inline constexpr bool kIsPortable = HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128;
inline constexpr size_t kInRegisters = kIsPortable ? 4 : 16;

// Of few elements, some of which stay and some go, the same number everywhere.
inline bool FitsRegisters(const SelectFewArgs &args) {
  return args.n <= static_cast<int64_t>(kInRegisters) && args.count_step == 0 &&
         args.counts[0] > 0 && args.counts[0] < args.n;
}

// Cuts a register of scopes, one a lane. Returns false if that leaves a doubt.
template <typename T, size_t N>
HWY_INLINE bool CutRegisters(const SelectFewArgs &args, const Vec<T> *element, Vec<T> *cut) {
  constexpr Tag<T> d;
  const Vec<T> nan = hn::Set(d, static_cast<T>(args.nan_key));
  Vec<T> key[N];
  for (size_t i = 0; i < N; ++i) key[i] = Magnitude<T>(element[i]);
  SortVectors<T, N>(key, std::make_index_sequence<sorting_network(N).pairs>());
  HWY_ALIGN T sorted[N][kLanesOf<T>];
  for (size_t i = 0; i < N; ++i) hn::Store(key[i], d, sorted[i]);
  const int64_t k = args.counts[0];
  const Vec<T> last_in = hn::Min(hn::Load(d, sorted[k - 1]), nan);
  const Vec<T> first_out = hn::Min(hn::Load(d, sorted[k]), nan);
  *cut = hn::Sub(last_in, hn::Set(d, T{1}));
  const Vec<T> margin = hn::Set(d, static_cast<T>(args.margin));
  return hn::AllFalse(d, hn::Lt(hn::Sub(last_in, first_out), margin));
}

// --- scopes side by side --------------------------------------------------------------------

// What is applied to a panel is applied to a copy: of rows a power of two apart the first cache
// holds no more than it has ways, and most would be gone.
template <typename T, bool kFull>
void CopyRows(const Rows<T> &rows, int64_t n, int64_t columns, Panel<T> *panel) {
  constexpr Tag<T> d;
  const int64_t width = kFull ? Panel<T>::kWidth : columns * kLanesOf<T>;
  for (int64_t p = 0; p < n; ++p) {
    for (int64_t c = 0; c < width; c += kLanesOf<T>) {
      hn::Store(hn::LoadU(d, rows[p] + c), d, panel->element[p] + c);
    }
  }
}

// Asks for what follows in a row, which mostly is the next panel: processors do not foresee so many
// streams. While rows are written: the next ones take their places in the caches.
template <typename T>
HWY_INLINE void AskForNext(const T *row, int64_t width) {
  for (int64_t c = 0; c < width; c += kLine<T>) __builtin_prefetch(row + width + c, 0, 2);
}

template <typename T, bool kFull>
void ApplyAcross(const SelectFewArgs &args, const Rows<T> &rows, std::byte *y, int64_t columns,
                 const Panel<T> &panel) {
  constexpr Tag<T> d;
  constexpr int64_t kL = kLanesOf<T>;
  const int64_t width = kFull ? Panel<T>::kWidth : columns * kL;
  for (int64_t p = 0; p < args.n; ++p) {
    AskForNext(rows[p], width);
    T *to = reinterpret_cast<T *>(y + args.y_at[p]);
    for (int64_t c = 0; c < width; c += kL) {
      const Vec<T> element = hn::Load(d, panel.element[p] + c);
      hn::StoreU(Keep<T>(element, hn::Load(d, panel.cut + c)), d, to + c);
    }
  }
}

template <typename T>
void ApplySettledAcross(const SelectFewArgs &args, const Rows<T> &rows, std::byte *y,
                        int64_t columns, const Panel<T> &panel) {
  constexpr Tag<T> d;
  const int64_t width = columns * kLanesOf<T>;
  for (int64_t p = 0; p < args.n; ++p) {
    AskForNext(rows[p], width);
    const Vec<T> position = hn::Set(d, static_cast<T>(p));
    T *to = reinterpret_cast<T *>(y + args.y_at[p]);
    for (int64_t c = 0; c < width; c += kLanesOf<T>) {
      const Vec<T> kept = KeepSettled<T>(args, hn::Load(d, panel.element[p] + c), position,
                                         hn::Load(d, panel.cut + c), hn::Load(d, panel.until + c));
      hn::StoreU(kept, d, to + c);
    }
  }
}

// Some registers of scopes; all that a panel takes if kFull.
template <typename T, bool kFull>
void SelectAcrossPanel(const SelectFewArgs &args, int64_t scope, int64_t columns, Panel<T> *panel) {
  const int64_t offset = scope * static_cast<int64_t>(sizeof(T));
  const Rows<T> rows{args.x + offset, args.x_at};
  std::byte *y = args.y + offset;
  CopyRows<T, kFull>(rows, args.n, columns, panel);
  const PanelRows<T> copied(*panel);
  SortHalves(copied.rows(), args.n, columns, panel);
  if (CutPanel(args, columns, panel)) {
    SettlePanel(args, copied.rows(), columns, panel);
    ApplySettledAcross(args, rows, y, columns, *panel);
  } else {
    ApplyAcross<T, kFull>(args, rows, y, columns, *panel);
  }
}

// Fewer scopes than a register has lanes: by way of a buffer.
template <typename T>
void SelectAcrossRest(const SelectFewArgs &args, int64_t scope, Panel<T> *panel) {
  constexpr int64_t kL = kLanesOf<T>;
  const auto size = static_cast<int64_t>(sizeof(T));
  const auto bytes = static_cast<size_t>((args.scopes - scope) * size);
  HWY_ALIGN T buffer[kFewBlocks][kL] = {};
  int64_t at[kFewBlocks];
  for (int64_t p = 0; p < args.n; ++p) {
    at[p] = p * kL * size;
    std::memcpy(buffer[p], args.x + args.x_at[p] + scope * size, bytes);
  }
  SelectFewArgs few = args;
  few.x = reinterpret_cast<const std::byte *>(buffer);
  few.y = reinterpret_cast<std::byte *>(buffer);
  few.x_at = at;
  few.y_at = at;
  FillWanted(args, scope, args.scopes - scope, panel);
  SelectAcrossPanel<T, false>(few, 0, 1, panel);
  for (int64_t p = 0; p < args.n; ++p) {
    std::memcpy(args.y + args.y_at[p] + scope * size, buffer[p], bytes);
  }
}

// Registers of scopes of n elements that are read and written together. Of more rows a power of two
// apart than the first cache has ways, a line leaves it before it is used again: whole lines, then.
template <typename T>
constexpr int64_t Together(int64_t n) {
  constexpr int64_t kWays = 8;
  static_assert(kLine<T> >= kLanesOf<T>);
  return n > kWays ? kLine<T> / kLanesOf<T> : 1;
}

// Registers of scopes from `scope` on, as long as no cut leaves a doubt; returns where it stopped.
template <typename T, size_t N>
int64_t AcrossInRegisters(const SelectFewArgs &args, int64_t scope) {
  constexpr Tag<T> d;
  constexpr int64_t kL = kLanesOf<T>;
  constexpr int64_t kC = Together<T>(N);
  const T *x[N];
  T *y[N];
  for (size_t i = 0; i < N; ++i) {
    x[i] = reinterpret_cast<const T *>(args.x + args.x_at[i]);
    y[i] = reinterpret_cast<T *>(args.y + args.y_at[i]);
  }
  for (; args.scopes - scope >= kC * kL; scope += kC * kL) {
    Vec<T> element[kC][N];
    for (size_t i = 0; i < N; ++i) {
      for (int64_t c = 0; c < kC; ++c) element[c][i] = hn::LoadU(d, x[i] + scope + c * kL);
    }
    Vec<T> cut[kC];
    for (int64_t c = 0; c < kC; ++c) {
      if (!CutRegisters<T, N>(args, element[c], &cut[c])) return scope;
    }
    // What was read last is still in cache.
    for (size_t i = N; i-- > 0;) {
      for (int64_t c = 0; c < kC; ++c) {
        hn::StoreU(Keep<T>(element[c][i], cut[c]), d, y[i] + scope + c * kL);
      }
    }
  }
  return scope;
}

template <typename T>
using AcrossFn = int64_t (*)(const SelectFewArgs &, int64_t);

template <typename T, size_t... I>
constexpr std::array<AcrossFn<T>, kInRegisters + 1> AcrossTable(std::index_sequence<I...>) {
  return {nullptr, nullptr, AcrossInRegisters<T, I + 2>...};
}

template <typename T>
void SelectAcross(const SelectFewArgs &args) {
  static constexpr auto kAcross = AcrossTable<T>(std::make_index_sequence<kInRegisters - 1>());
  constexpr int64_t kL = kLanesOf<T>;
  const AcrossFn<T> in_registers = FitsRegisters(args) ? kAcross[args.n] : nullptr;
  Panel<T> panel;
  PreparePanel(args, &panel);
  int64_t scope = 0;
  for (;;) {
    if (in_registers) scope = in_registers(args, scope);
    const int64_t most = in_registers ? Together<T>(args.n) : Panel<T>::kColumns;
    const int64_t columns = HWY_MIN((args.scopes - scope) / kL, most);
    if (columns == 0) break;
    if (args.count_step != 0) FillWanted(args, scope, columns * kL, &panel);
    if (columns == Panel<T>::kColumns) {
      SelectAcrossPanel<T, true>(args, scope, columns, &panel);
    } else {
      SelectAcrossPanel<T, false>(args, scope, columns, &panel);
    }
    scope += columns * kL;
  }
  if (scope < args.scopes) SelectAcrossRest(args, scope, &panel);
}

// --- scopes one after the other -------------------------------------------------------------

// Elements of a register block, the unit of 128 bits inside which elements are interleaved.
template <typename T>
inline constexpr int64_t kAtom = HWY_MIN(kLanesOf<T>, static_cast<int64_t>(16 / sizeof(T)));

#if HWY_TARGET == HWY_SCALAR

template <typename DT, typename T = hn::TFromD<DT>>
HWY_INLINE hn::Vec<DT> LoadBlocks(DT d, const T *x, int64_t) {
  return hn::LoadU(d, x);
}
template <typename T>
HWY_INLINE void TransposeBlocks(Vec<T> *) {}

#else

// A register of blocks that are `step` elements apart.
template <typename DT, typename T = hn::TFromD<DT>>
HWY_INLINE hn::Vec<DT> LoadBlocks(DT d, const T *x, int64_t step) {
  constexpr auto kBlocks = static_cast<int64_t>(hn::MaxLanes(d)) / kAtom<T>;
  if constexpr (kBlocks <= 1) {
    return hn::LoadU(d, x);
  } else {
    const hn::Half<DT> half;
    return hn::Combine(d, LoadBlocks(half, x + kBlocks / 2 * step, step),
                       LoadBlocks(half, x, step));
  }
}

// Transposes, inside each block, as many registers as a block has elements: after as many rounds of
// shuffling as an index has bits, the indices of register and element have changed places.
template <typename T>
HWY_INLINE void TransposeBlocks(Vec<T> *v) {
  constexpr Tag<T> d;
  constexpr int64_t kA = kAtom<T>;
  for (int64_t round = 1; round < kA; round *= 2) {
    Vec<T> shuffled[kA];
    for (int64_t i = 0; i < kA / 2; ++i) {
      shuffled[2 * i] = hn::InterleaveLower(d, v[i], v[i + kA / 2]);
      shuffled[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kA / 2]);
    }
    for (int64_t i = 0; i < kA; ++i) v[i] = shuffled[i];
  }
}

#endif

// The elements from `first` on of a register of scopes of n elements: one position a register.
template <typename T>
HWY_INLINE void LoadTransposed(const T *x, int64_t n, int64_t first, Vec<T> *rows) {
  constexpr int64_t kA = kAtom<T>;
  for (int64_t i = 0; i < kA; ++i) rows[i] = LoadBlocks(Tag<T>(), x + i * n + first, kA * n);
  TransposeBlocks<T>(rows);
}

// A register of scopes of n elements, into rows of one position each. Scopes shorter than a block
// are read beyond their end; of others the last block overlaps the one before.
template <typename T>
HWY_INLINE void TransposeScopes(const T *x, int64_t n, int64_t column, Panel<T> *panel) {
  constexpr int64_t kA = kAtom<T>;
  for (int64_t at = 0; at < n; at += kA) {
    const int64_t first = HWY_MAX(HWY_MIN(at, n - kA), 0);
    Vec<T> rows[kA];
    LoadTransposed(x, n, first, rows);
    for (int64_t i = 0; i < HWY_MIN(kA, n); ++i) {
      hn::Store(rows[i], Tag<T>(), panel->element[first + i] + column);
    }
  }
}

// For each element of a register of scopes, one after the other: the scope's lane and the position.
template <typename T>
struct Places {
  static constexpr int64_t kL = kLanesOf<T>;
  HWY_ALIGN T scope[kFewBlocks * kL + kL];
  HWY_ALIGN T position[kFewBlocks * kL + kL];
};

// What runs over into the next scope is overwritten by it.
template <typename T>
void FillPlaces(int64_t n, Places<T> *places) {
  constexpr Tag<T> d;
  for (int64_t s = 0; s < kLanesOf<T>; ++s) {
    const Vec<T> scope = hn::Set(d, static_cast<T>(s));
    for (int64_t p = 0; p < n; p += kLanesOf<T>) {
      hn::StoreU(scope, d, places->scope + s * n + p);
      hn::StoreU(hn::Iota(d, static_cast<T>(p)), d, places->position + s * n + p);
    }
  }
}

// Not every instruction set can permute 16-bit lanes at will.
template <typename T>
inline constexpr bool kPermutes = sizeof(T) > 2 || HWY_TARGET <= HWY_AVX3;

template <typename T>
HWY_INLINE Vec<T> Permute(Vec<T> v, const T *from) {
  return hn::TableLookupLanes(v, hn::SetTableIndices(Tag<T>(), from));
}
#if HWY_TARGET <= HWY_AVX3
template <>
HWY_INLINE Vec<int16_t> Permute(Vec<int16_t> v, const int16_t *from) {
  return Vec<int16_t>{_mm512_permutexvar_epi16(hn::Load(Tag<int16_t>(), from).raw, v.raw)};
}
#endif

// Gives each element of a register of scopes what its scope has.
template <typename T>
class Spread {
 public:
  HWY_INLINE Spread(const T *of_scope, int64_t n, const Places<T> &places)
      : of_scope_(hn::Load(Tag<T>(), of_scope)), places_(places) {
    if constexpr (!kPermutes<T>) {
      for (int64_t s = 0; s < kLanesOf<T>; ++s) {
        const Vec<T> value = hn::Set(Tag<T>(), of_scope[s]);
        for (int64_t p = 0; p < n; p += kLanesOf<T>) {
          hn::StoreU(value, Tag<T>(), spread_ + s * n + p);
        }
      }
    }
  }

  HWY_INLINE Vec<T> operator[](int64_t element) const {
    if constexpr (kPermutes<T>) {
      return Permute<T>(of_scope_, places_.scope + element);
    } else {
      return hn::Load(Tag<T>(), spread_ + element);
    }
  }

 private:
  Vec<T> of_scope_;
  HWY_ALIGN T spread_[kPermutes<T> ? 1 : kFewBlocks * kLanesOf<T> + kLanesOf<T>];
  const Places<T> &places_;
};

// Asks for a register of scopes that is transposed soon: blocks here and there, which processors do
// not foresee. Done before sorting, during which memory would else be idle.
template <typename T>
HWY_INLINE void AskAhead(const T *x, int64_t n) {
  const T *soon = x + kPrefetch / static_cast<int64_t>(sizeof(T));
  for (int64_t e = 0; e < n * kLanesOf<T>; e += kLine<T>) hwy::Prefetch(soon + e);
}

template <typename T>
HWY_INLINE void ApplyAlong(const SelectFewArgs &args, const T *x, T *y, const T *cut_of_scope,
                           const Places<T> &places) {
  constexpr Tag<T> d;
  const Spread<T> cut(cut_of_scope, args.n, places);
  const int64_t elements = args.n * kLanesOf<T>;
  for (int64_t e = 0; e < elements; e += kLanesOf<T>) {
    hn::StoreU(Keep<T>(hn::LoadU(d, x + e), cut[e]), d, y + e);
  }
}

template <typename T>
void ApplySettledAlong(const SelectFewArgs &args, const T *x, T *y, const T *cut_of_scope,
                       const T *until_of_scope, const Places<T> &places) {
  constexpr Tag<T> d;
  const Spread<T> cut(cut_of_scope, args.n, places);
  const Spread<T> until(until_of_scope, args.n, places);
  for (int64_t e = 0; e < args.n * kLanesOf<T>; e += kLanesOf<T>) {
    const Vec<T> position = hn::Load(d, places.position + e);
    hn::StoreU(KeepSettled<T>(args, hn::LoadU(d, x + e), position, cut[e], until[e]), d, y + e);
  }
}

// Sorts the keys of N elements of a register of scopes, largest first. May read beyond a scope.
template <typename T, size_t N>
void SortTransposed(const T *x, int64_t n, T (*sorted)[Panel<T>::kWidth]) {
  constexpr int64_t kA = kAtom<T>;
  constexpr auto kCount = static_cast<int64_t>(N);
  Vec<T> key[HWY_MAX(kCount, kA)];
  for (int64_t at = 0; at < kCount; at += kA) {
    const int64_t first = HWY_MAX(HWY_MIN(at, kCount - kA), 0);
    LoadTransposed(x, n, first, key + first);
  }
  for (size_t i = 0; i < N; ++i) key[i] = Magnitude<T>(key[i]);
  SortVectors<T, N>(key, std::make_index_sequence<sorting_network(N).pairs>());
  for (size_t i = 0; i < N; ++i) hn::Store(key[i], Tag<T>(), sorted[i]);
}

template <typename T>
using SortTransposedFn = void (*)(const T *, int64_t, T (*)[Panel<T>::kWidth]);

template <typename T, size_t... I>
constexpr std::array<SortTransposedFn<T>, kHalf> SortTransposedTable(std::index_sequence<I...>) {
  return {SortTransposed<T, I + 1>...};
}

template <typename T>
void SortHalvesTransposed(const T *x, int64_t n, int64_t column, Panel<T> *panel) {
  static constexpr auto kSort = SortTransposedTable<T>(std::make_index_sequence<kHalf>());
  using Row = T(*)[Panel<T>::kWidth];
  const int64_t half = FirstHalf(n);
  kSort[half - 1](x, n, reinterpret_cast<Row>(panel->sorted[1] + column));
  if (n == half) return;
  kSort[n - half - 1](x + half, n, reinterpret_cast<Row>(panel->sorted[half + 3] + column));
}

// The elements of a panel as rows, for what needs their positions.
template <typename T>
void SettleTransposed(const SelectFewArgs &args, const T *x, int64_t columns, Panel<T> *panel) {
  for (int64_t c = 0; c < columns * kLanesOf<T>; c += kLanesOf<T>) {
    TransposeScopes(x + c * args.n, args.n, c, panel);
  }
  SettlePanel(args, PanelRows<T>(*panel).rows(), columns, panel);
}

// Registers of scopes, one after the other.
template <typename T>
void SelectAlongPanel(const SelectFewArgs &args, const T *x, T *y, int64_t columns,
                      const Places<T> &places, Panel<T> *panel) {
  constexpr int64_t kL = kLanesOf<T>;
  for (int64_t c = 0; c < columns * kL; c += kL) {
    AskAhead(x + c * args.n, args.n);
    SortHalvesTransposed(x + c * args.n, args.n, c, panel);
  }
  const bool settled = CutPanel(args, columns, panel);
  if (settled) SettleTransposed(args, x, columns, panel);
  for (int64_t c = 0; c < columns * kL; c += kL) {
    const int64_t first = c * args.n;
    if (settled) {
      ApplySettledAlong(args, x + first, y + first, panel->cut + c, panel->until + c, places);
    } else {
      ApplyAlong(args, x + first, y + first, panel->cut + c, places);
    }
  }
}

// Scopes in whole registers that may be read a block at a time.
template <typename T>
int64_t WholeColumns(const SelectFewArgs &args, int64_t scope) {
  const int64_t shortest = HWY_MAX(args.n - FirstHalf(args.n), 1);
  const int64_t beyond = HWY_MAX(kAtom<T> - shortest, 0);
  const int64_t elements = (args.scopes - scope) * args.n - beyond;
  return HWY_MAX(elements, 0) / (kLanesOf<T> * args.n);
}

// Scopes that divide a register: each element is compared with the others of its scope. Writes and
// returns true if no cut leaves a doubt.
template <typename T, size_t N>
HWY_INLINE bool ComparePartners(const SelectFewArgs &args, const T *x, T *y) {
  constexpr Tag<T> d;
  constexpr int64_t kL = kLanesOf<T>;
  const int64_t k = args.counts[0];
  const Vec<T> margin = hn::Set(d, static_cast<T>(args.margin));
  AskAhead(x, static_cast<int64_t>(N));
  Vec<T> kept[N];
  size_t count = 0;
  for (size_t i = 0; i < N; ++i) {
    const Vec<T> element = hn::LoadU(d, x + static_cast<int64_t>(i) * kL);
    hn::Mask<Tag<T>> top;
    count += TopPartners<N, 0>(d, ClampedKey<T>(element, args.nan_key), margin, k, &top);
    kept[i] = hn::IfThenElseZero(top, element);
  }
  if (count != static_cast<size_t>(kL * k)) return false;
  for (size_t i = 0; i < N; ++i) {
    hn::StoreU(kept[i], d, y + static_cast<int64_t>(i) * kL);
  }
  return true;
}

// A register of scopes of any other size.
template <typename T, size_t N>
HWY_INLINE bool SelectTransposed(const SelectFewArgs &args, const Places<T> &places, const T *x,
                                 T *y) {
  constexpr int64_t kA = kAtom<T>;
  constexpr auto n = static_cast<int64_t>(N);
  AskAhead(x, n);
  Vec<T> element[HWY_MAX(n, kA)];
  for (int64_t at = 0; at < n; at += kA) {
    const int64_t first = HWY_MAX(HWY_MIN(at, n - kA), 0);
    LoadTransposed(x, n, first, element + first);
  }
  Vec<T> cut;
  if (!CutRegisters<T, N>(args, element, &cut)) return false;
  HWY_ALIGN T of_scope[kLanesOf<T>];
  hn::Store(cut, Tag<T>(), of_scope);
  ApplyAlong(args, x, y, of_scope, places);
  return true;
}

// Registers of scopes from `scope` on, as long as no cut leaves a doubt; returns where it stopped.
template <typename T, size_t N>
int64_t AlongInRegisters(const SelectFewArgs &args, const Places<T> &places, int64_t scope) {
  constexpr int64_t kL = kLanesOf<T>;
  constexpr auto n = static_cast<int64_t>(N);
  const auto *x = reinterpret_cast<const T *>(args.x) + scope * n;
  auto *y = reinterpret_cast<T *>(args.y) + scope * n;
  if constexpr ((N == 2 || N == 4) && kHoldsPartners<N, Tag<T>>) {
    for (; args.scopes - scope >= kL && ComparePartners<T, N>(args, x, y); scope += kL) {
      x += kL * n;
      y += kL * n;
    }
    return scope;
  }
  const int64_t end = scope + WholeColumns<T>(args, scope) * kL;
  for (; scope < end && SelectTransposed<T, N>(args, places, x, y); scope += kL) {
    x += kL * n;
    y += kL * n;
  }
  return scope;
}

template <typename T>
using AlongFn = int64_t (*)(const SelectFewArgs &, const Places<T> &, int64_t);

template <typename T, size_t... I>
constexpr std::array<AlongFn<T>, kInRegisters + 1> AlongTable(std::index_sequence<I...>) {
  return {nullptr, nullptr, AlongInRegisters<T, I + 2>...};
}

// Fewer scopes than a register has lanes, or the last ones: by way of a buffer.
template <typename T>
void SelectAlongRest(const SelectFewArgs &args, int64_t scope, const Places<T> &places,
                     Panel<T> *panel) {
  constexpr int64_t kL = kLanesOf<T>;
  HWY_ALIGN T buffer[kFewBlocks * kL + kAtom<T>] = {};
  const auto *x = reinterpret_cast<const T *>(args.x);
  auto *y = reinterpret_cast<T *>(args.y);
  for (; scope < args.scopes; scope += kL) {
    const int64_t scopes = HWY_MIN(kL, args.scopes - scope);
    std::copy_n(x + scope * args.n, scopes * args.n, buffer);
    FillWanted(args, scope, scopes, panel);
    SelectAlongPanel(args, buffer, buffer, 1, places, panel);
    std::copy_n(buffer, scopes * args.n, y + scope * args.n);
  }
}

template <typename T>
void SelectAlong(const SelectFewArgs &args) {
  static constexpr auto kAlong = AlongTable<T>(std::make_index_sequence<kInRegisters - 1>());
  constexpr int64_t kL = kLanesOf<T>;
  const auto *x = reinterpret_cast<const T *>(args.x);
  auto *y = reinterpret_cast<T *>(args.y);
  const AlongFn<T> in_registers = FitsRegisters(args) ? kAlong[args.n] : nullptr;
  Panel<T> panel;
  Places<T> places;
  PreparePanel(args, &panel);
  FillPlaces(args.n, &places);
  int64_t scope = 0;
  for (;;) {
    if (in_registers) scope = in_registers(args, places, scope);
    const int64_t most = in_registers ? 1 : Panel<T>::kColumns;
    const int64_t columns = HWY_MIN(WholeColumns<T>(args, scope), most);
    if (columns == 0) break;
    if (args.count_step != 0) FillWanted(args, scope, columns * kL, &panel);
    SelectAlongPanel(args, x + scope * args.n, y + scope * args.n, columns, places, &panel);
    scope += columns * kL;
  }
  SelectAlongRest(args, scope, places, &panel);
}

}  // namespace

void FillSelectFew(Kernels *table) {
  table->select_across[kF32] = SelectAcross<int32_t>;
  table->select_across[kF64] = SelectAcross<int64_t>;
  table->select_across[kF16] = SelectAcross<int16_t>;
  table->select_across[kBf16] = SelectAcross<int16_t>;
  table->select_along[kF32] = SelectAlong<int32_t>;
  table->select_along[kF64] = SelectAlong<int64_t>;
  table->select_along[kF16] = SelectAlong<int16_t>;
  table->select_along[kBf16] = SelectAlong<int16_t>;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillSelectFew);
void fill_select_few(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillSelectFew)(table);
}
}  // namespace spk
#endif
