// What selects the top elements of scopes of few elements each, whichever way they lie. Keys are the
// bits of magnitudes, which order as the magnitudes do, NaN above infinity; scopes are lanes. A
// scope is cut at its k-th largest key: two sorting networks for its halves, and a merge that stops
// at k.
#if defined(SPK_KERNELS_SELECT_FEW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_SELECT_FEW_INL_H_
#undef SPK_KERNELS_SELECT_FEW_INL_H_
#else
#define SPK_KERNELS_SELECT_FEW_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "kernels/halve_keys-inl.h"
#include "kernels/kernels.h"
#include "kernels/prefetch.h"
#include "kernels/sort_keys-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

inline constexpr size_t kHalf = kFewBlocks / 2;
template <typename T>
inline constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));  // elements of a cache line

// What is wanted and found of scopes that are selected together, one a lane.
template <typename T>
struct Cuts {
  static constexpr int64_t kWidth = 4 * kLine<T>;

  // An element stays if its key is above `cut`, or one more and its position at most `until`.
  HWY_ALIGN T cut[kWidth];
  HWY_ALIGN T until[kWidth];
  HWY_ALIGN T wanted[kWidth];
};

// Some registers of scopes.
template <typename T>
struct Panel : Cuts<T> {
  using Cuts<T>::kWidth;
  static constexpr int64_t kColumns = kWidth / kLanesOf<T>;

  HWY_ALIGN T element[kFewBlocks][kWidth];
  // The halves of a scope, each between a sentinel above all keys and one below.
  HWY_ALIGN T sorted[kFewBlocks + 4][kWidth];
  uint64_t present = 0;   // bit k: a scope of the panel wants k
  bool is_sorted = true;  // false: some keys do not compare
};

// Where the elements of the scopes of a panel lie: rows of one position each.
template <typename T>
struct ScopeRows {
  const std::byte *x;
  const int64_t *at;  // bytes from x to each row

  HWY_INLINE const T *operator[](int64_t position) const {
    return reinterpret_cast<const T *>(x + at[position]);
  }
};

// kRows rows of one array, `row` elements apart.
template <typename T, int64_t kRows>
class RowsOf {
 public:
  RowsOf(const T *first, int64_t row) : x_(reinterpret_cast<const std::byte *>(first)) {
    for (int64_t p = 0; p < kRows; ++p) at_[p] = p * row * static_cast<int64_t>(sizeof(T));
  }
  HWY_INLINE ScopeRows<T> rows() const { return {x_, at_}; }

 private:
  const std::byte *x_;
  int64_t at_[kRows];
};

// The elements of a panel, a row for each position.
template <typename T>
class PanelRows : public RowsOf<T, kFewBlocks> {
 public:
  explicit PanelRows(const Panel<T> &panel)
      : RowsOf<T, kFewBlocks>(panel.element[0], Panel<T>::kWidth) {}
};

// --- the k-th largest -----------------------------------------------------------------------

// Elements of the first half of a scope; the second may have one less.
inline int64_t FirstHalf(int64_t n) {
  return (n + 1) / 2;
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
  Edge<T> edge{hn::Set(d, kLowKey<T>), load(HWY_MIN(k, first) + 1)};
  for (int64_t i = HWY_MAX(k - second, 0); i <= HWY_MIN(first, k); ++i) {
    const Vec<T> a = load(i);
    const int64_t row = first + 2 + k - i;
    edge.last_in = Larger<T>(edge.last_in, Smaller<T>(a, load(row)));
    edge.first_out = Larger<T>(edge.first_out, Smaller<T>(a, load(row + 1)));
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

template <typename T>
HWY_INLINE Vec<T> ClampedKey(Vec<T> element, int64_t nan_key) {
  return hn::Min(Magnitude<T>(element), hn::Set(Tag<T>(), static_cast<T>(nan_key)));
}

// --- ties -----------------------------------------------------------------------------------

template <typename T>
HWY_INLINE int64_t SumOfLanes(Vec<T> v) {
  return static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(Tag<T>(), v)));
}

// The position of the last of the ties at each cut of a column that stays by position.
template <typename T>
Vec<T> LastStaying(const SelectFewArgs &args, const ScopeRows<T> &rows, int64_t column,
                   Vec<T> tied_key, Vec<T> quota) {
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
void SettleTies(const SelectFewArgs &args, const ScopeRows<T> &rows, int64_t column,
                Cuts<T> *scopes) {
  constexpr Tag<T> d;
  const Vec<T> wanted = hn::Load(d, scopes->wanted + column);
  // Where none is wanted this wraps around, to what no key is.
  const Vec<T> last_in = hn::Add(hn::Load(d, scopes->cut + column), hn::Set(d, T{1}));
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
  Vec<T> until = hn::Set(d, static_cast<T>(args.n));
  if (args.keep_ties) {
    *args.beyond += SumOfLanes<T>(hn::IfThenElseZero(tied, hn::Sub(equal, quota)));
  } else {
    until = hn::IfThenElse(tied, LastStaying<T>(args, rows, column, last_in, quota), until);
  }
  hn::Store(until, d, scopes->until + column);
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

// Are doubts ties of keys? Else they are of margins, and are only counted.
inline bool MaySettle(const SelectFewArgs &args) {
  return args.margin == 1;
}

// Cuts the scopes of a panel whose halves are sorted. Returns whether it is to be settled.
template <typename T>
bool CutPanel(const SelectFewArgs &args, int64_t columns, Panel<T> *panel) {
  bool doubt = !panel->is_sorted;
  for (int64_t c = 0; c < columns; ++c) doubt |= CutColumn(args, c * kLanesOf<T>, panel);
  if (!doubt || MaySettle(args)) return doubt;
  *args.ties += 1;
  return false;
}

struct AskNothing {
  HWY_INLINE void operator()(int) const {}
};

// Cuts a register of scopes of n keys each that could not be sorted.
template <typename T>
HWY_NOINLINE void HalveRegister(const T *keys, int64_t n, const T *wanted, T *cut) {
  HalveKeys<T, 1>(keys, kLanesOf<T>, n, wanted, cut, AskNothing());
}

// Cuts a column whose keys could not be sorted.
template <typename T>
void HalveColumn(const SelectFewArgs &args, const ScopeRows<T> &rows, int64_t column,
                 Panel<T> *panel) {
  constexpr Tag<T> d;
  HWY_ALIGN T keys[kFewBlocks][kLanesOf<T>];
  for (int64_t p = 0; p < args.n; ++p) {
    hn::Store(ClampedKey<T>(hn::LoadU(d, rows[p] + column), args.nan_key), d, keys[p]);
  }
  HalveRegister(keys[0], args.n, panel->wanted + column, panel->cut + column);
}

template <typename T>
void SettlePanel(const SelectFewArgs &args, const ScopeRows<T> &rows, int64_t columns,
                 Panel<T> *panel) {
  for (int64_t c = 0; c < columns * kLanesOf<T>; c += kLanesOf<T>) {
    if (!panel->is_sorted) HalveColumn(args, rows, c, panel);
    SettleTies(args, rows, c, panel);
  }
}

template <typename T>
void PreparePanel(const SelectFewArgs &args, Panel<T> *panel) {
  const int64_t first = FirstHalf(args.n);
  for (int64_t c = 0; c < Panel<T>::kWidth; ++c) {
    panel->sorted[0][c] = kHighKey<T>;
    panel->sorted[first + 1][c] = kLowKey<T>;
    panel->sorted[first + 2][c] = kHighKey<T>;
    panel->sorted[args.n + 3][c] = kLowKey<T>;
  }
  if (args.count_step == 0) FillWanted(args, 0, Panel<T>::kWidth, panel);
}

// Asks for a part of what N of the next rows have in the cache line that column c is in: while that
// is sorted, all of it. Lines of so many rows, asked for at once, would wait for each other.
template <typename T, size_t N>
HWY_INLINE void AskForPart(const ScopeRows<T> &next, int64_t first, int64_t c) {
  constexpr int64_t kSteps = kLine<T> / kLanesOf<T>;
  constexpr auto kRows = static_cast<int64_t>(N);
  constexpr int64_t kPart = (kRows + kSteps - 1) / kSteps;
  const int64_t begin = c % kLine<T> / kLanesOf<T> * kPart;
  const int64_t line = c / kLine<T> * kLine<T>;
  for (int64_t i = begin; i < HWY_MIN(begin + kPart, kRows); ++i) {
    prefetch_far(next[first + i] + line, 0);
  }
}

// Sorts the keys of N rows from `first` on, as SortKeys does. Asks for those of `next`, if there are.
template <typename T, size_t N>
bool SortRows(const ScopeRows<T> &rows, int64_t first, int64_t columns,
              T (*sorted)[Panel<T>::kWidth], const ScopeRows<T> &next) {
  constexpr Tag<T> d;
  bool compare = true;
  for (int64_t c = 0; c < columns * kLanesOf<T>; c += kLanesOf<T>) {
    if (next.x) AskForPart<T, N>(next, first, c);
    Vec<T> key[N];
    for (size_t i = 0; i < N; ++i) {
      key[i] = Magnitude<T>(hn::LoadU(d, rows[first + static_cast<int64_t>(i)] + c));
    }
    compare &= SortKeys<T, N>(key);
    for (size_t i = 0; i < N; ++i) hn::Store(key[i], d, sorted[i] + c);
  }
  return compare;
}

template <typename T>
using SortRowsFn = bool (*)(const ScopeRows<T> &, int64_t, int64_t, T (*)[Panel<T>::kWidth],
                            const ScopeRows<T> &);

template <typename T, size_t... I>
constexpr std::array<SortRowsFn<T>, kHalf> SortRowsTable(std::index_sequence<I...>) {
  return {SortRows<T, I + 1>...};
}

// Sorts the halves of scopes, each between its sentinels in panel->sorted, and asks for the rows
// that are sorted next, if there are.
template <typename T>
void SortHalves(const ScopeRows<T> &rows, int64_t n, int64_t columns, Panel<T> *panel,
                const ScopeRows<T> &next = {nullptr, nullptr}) {
  static constexpr auto kSort = SortRowsTable<T>(std::make_index_sequence<kHalf>());
  const int64_t half = FirstHalf(n);
  panel->is_sorted = kSort[half - 1](rows, 0, columns, panel->sorted + 1, next);
  if (n > half) {
    panel->is_sorted &= kSort[n - half - 1](rows, half, columns, panel->sorted + half + 3, next);
  }
}

// --- registers ------------------------------------------------------------------------------

// Scopes side by side of at most this many elements are cut a register at a time, without a panel.
// Portable code, which is not for speed, does without the large sorting networks.
inline constexpr bool kIsPortable = HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128;
inline constexpr size_t kInRegisters = kIsPortable ? 4 : 16;

// Of up to `most` elements, some of which stay and some go, the same number everywhere.
inline bool FitsRegisters(const SelectFewArgs &args, size_t most) {
  return args.n <= static_cast<int64_t>(most) && args.count_step == 0 && args.counts[0] > 0 &&
         args.counts[0] < args.n;
}

// The cut of a register of scopes whose keys could not be sorted.
template <typename T, size_t N>
HWY_INLINE Vec<T> HalvedCut(const SelectFewArgs &args, const Vec<T> *element) {
  constexpr Tag<T> d;
  HWY_ALIGN T keys[N][kLanesOf<T>];
  HWY_ALIGN T wanted[kLanesOf<T>];
  HWY_ALIGN T cut[kLanesOf<T>];
  for (size_t i = 0; i < N; ++i) hn::Store(ClampedKey<T>(element[i], args.nan_key), d, keys[i]);
  hn::Store(hn::Set(d, static_cast<T>(args.counts[0])), d, wanted);
  HalveRegister(keys[0], static_cast<int64_t>(N), wanted, cut);
  return hn::Load(d, cut);
}

// Finds the edge at k of registers of scopes of N elements, one a lane: from the sorted keys of
// their halves, as EdgeOf does, or of all in one if they are few.
template <typename T, size_t N>
class SortedScopes {
 public:
  HWY_INLINE SortedScopes() {
    if constexpr (kFirst > 0) {
      for (auto &row : row_) hn::Store(hn::Set(D(), kLowKey<T>), D(), row);
      hn::Store(hn::Set(D(), kHighKey<T>), D(), row_[kFirst]);
    }
  }

  // Returns false if some keys do not compare.
  HWY_INLINE bool FindEdge(const Vec<T> *element, int64_t k, Edge<T> *edge) {
    Vec<T> second[kSecond];
    for (size_t i = 0; i < kSecond; ++i) second[i] = Magnitude<T>(element[kFirst + i]);
    bool compare = SortKeys<T, kSecond>(second);
    for (size_t i = 0; i < kSecond; ++i) hn::Store(second[i], D(), row_[kFirst + 1 + i]);
    const auto *last = row_ + kFirst + k;
    edge->last_in = hn::Load(D(), last[0]);
    edge->first_out = hn::Load(D(), last[1]);
    if constexpr (kFirst > 0) {
      Vec<T> first[kFirst];
      for (size_t i = 0; i < kFirst; ++i) first[i] = Magnitude<T>(element[i]);
      compare &= SortKeys<T, kFirst>(first);
      for (size_t i = 0; i < kFirst; ++i) {
        const Vec<T> a = hn::Load(D(), last[-1 - static_cast<int64_t>(i)]);
        const Vec<T> b = hn::Load(D(), last[-static_cast<int64_t>(i)]);
        edge->last_in = Larger<T>(edge->last_in, Smaller<T>(first[i], a));
        edge->first_out = Larger<T>(edge->first_out, Smaller<T>(first[i], b));
      }
    }
    return compare;
  }

 private:
  using D = Tag<T>;
  static constexpr size_t kMostInOne = 8;
  static constexpr size_t kFirst = N > kMostInOne ? N / 2 : 0;
  static constexpr size_t kSecond = N - kFirst;

  // The sorted keys of the second half, which is the larger one here: row kFirst + i is the i-th
  // largest. Row kFirst stands for none taken and is above all keys. The kFirst rows before it and
  // those after the keys are below all: there are no so few or so many to take.
  HWY_ALIGN T row_[kFirst + 1 + kSecond + kFirst][kLanesOf<T>];
};

// Cuts a register of scopes, one a lane. Returns false if that leaves a doubt.
template <typename T, size_t N>
HWY_INLINE bool CutRegisters(const SelectFewArgs &args, const Vec<T> *element,
                             SortedScopes<T, N> *sorted, Vec<T> *cut) {
  constexpr Tag<T> d;
  Edge<T> edge;
  if (!sorted->FindEdge(element, args.counts[0], &edge)) {
    *cut = HalvedCut<T, N>(args, element);
    return false;
  }
  const Vec<T> nan = hn::Set(d, static_cast<T>(args.nan_key));
  const Vec<T> last_in = hn::Min(edge.last_in, nan);
  const Vec<T> first_out = hn::Min(edge.first_out, nan);
  *cut = hn::Sub(last_in, hn::Set(d, T{1}));
  const Vec<T> margin = hn::Set(d, static_cast<T>(args.margin));
  return hn::AllFalse(d, hn::Lt(hn::Sub(last_in, first_out), margin));
}

// Selects a register of scopes where the last keys that stay and the first that go may be equal.
// scopes.Load(i) are elements i of them, scopes.Store(v, i) writes those.
template <typename T, size_t N, class Register>
HWY_NOINLINE void SettleScopes(const SelectFewArgs &args, const Register &scopes, Vec<T> cut) {
  constexpr Tag<T> d;
  const Vec<T> last_in = hn::Add(cut, hn::Set(d, T{1}));
  Vec<T> key[N];
  Vec<T> minus_above = hn::Zero(d);
  Vec<T> minus_equal = hn::Zero(d);
  for (size_t i = 0; i < N; ++i) {
    key[i] = ClampedKey<T>(scopes.Load(i), args.nan_key);
    minus_above = hn::Add(minus_above, hn::VecFromMask(d, hn::Gt(key[i], last_in)));
    minus_equal = hn::Add(minus_equal, hn::VecFromMask(d, hn::Eq(key[i], last_in)));
  }
  const Vec<T> quota = hn::Add(hn::Set(d, static_cast<T>(args.counts[0])), minus_above);
  const Vec<T> equal = hn::Neg(minus_equal);
  const auto tied = hn::Gt(equal, quota);
  *args.ties += SumOfLanes<T>(hn::IfThenElseZero(tied, equal));
  const Vec<T> stay = args.keep_ties ? equal : quota;
  *args.beyond += SumOfLanes<T>(hn::Sub(stay, quota));
  Vec<T> left = stay;
  for (size_t i = 0; i < N; ++i) {
    const auto is_equal = hn::Eq(key[i], last_in);
    const auto stays_equal = hn::And(is_equal, hn::Gt(left, hn::Zero(d)));
    left = hn::Add(left, hn::VecFromMask(d, is_equal));
    const auto stays = hn::Or(hn::Gt(key[i], last_in), stays_equal);
    scopes.Store(hn::IfThenElseZero(stays, scopes.Load(i)), i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
