// The top elements of many scopes of few elements each that lie one after the other, straight in
// memory.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select_along.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "kernels/kernels.h"
#include "kernels/partners-inl.h"
#include "kernels/prefetch.h"
#include "kernels/select_few-inl.h"
#include "kernels/tables.h"
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace {

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

// Bytes to the register of scopes after this one, at least kNear.
template <typename T>
HWY_INLINE int64_t NextRegister(int64_t n) {
  return HWY_MAX(kNear, n * kLanesOf<T> * static_cast<int64_t>(sizeof(T)));
}

// Zeroes what is not above its scope's cut. Asks for the next register of scopes, into the first
// cache.
template <typename T>
HWY_INLINE void ApplyAlong(const SelectFewArgs &args, const T *x, T *y, const T *cut_of_scope,
                           const Places<T> &places) {
  constexpr Tag<T> d;
  const Spread<T> cut(cut_of_scope, args.n, places);
  const int64_t elements = args.n * kLanesOf<T>;
  const int64_t near = NextRegister<T>(args.n);
  for (int64_t e = 0; e < elements; e += kLanesOf<T>) {
    prefetch_near(x + e, near);
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

// Sorts the keys of N elements, from `begin` on, of a register of scopes of n, as SortKeys does. May
// read beyond a scope.
template <typename T, size_t N>
bool SortTransposed(const T *x, int64_t n, int64_t begin, T (*sorted)[Panel<T>::kWidth]) {
  Vec<T> key[HWY_MAX(static_cast<int64_t>(N), kAtom<T>)];
  LoadPositions<T, N>(x, n, begin, key);
  for (size_t i = 0; i < N; ++i) key[i] = Magnitude<T>(key[i]);
  const bool compare = SortKeys<T, N>(key);
  for (size_t i = 0; i < N; ++i) hn::Store(key[i], Tag<T>(), sorted[i]);
  return compare;
}

template <typename T>
using SortTransposedFn = bool (*)(const T *, int64_t, int64_t, T (*)[Panel<T>::kWidth]);

template <typename T, size_t... I>
constexpr std::array<SortTransposedFn<T>, kHalf> SortTransposedTable(std::index_sequence<I...>) {
  return {SortTransposed<T, I + 1>...};
}

template <typename T>
bool SortHalvesTransposed(const T *x, int64_t n, int64_t column, Panel<T> *panel) {
  static constexpr auto kSort = SortTransposedTable<T>(std::make_index_sequence<kHalf>());
  using Row = T(*)[Panel<T>::kWidth];
  const int64_t half = FirstHalf(n);
  const bool compare = kSort[half - 1](x, n, 0, reinterpret_cast<Row>(panel->sorted[1] + column));
  if (n == half) return compare;
  const auto second = reinterpret_cast<Row>(panel->sorted[half + 3] + column);
  return kSort[n - half - 1](x, n, half, second) && compare;
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
  panel->is_sorted = true;
  for (int64_t c = 0; c < columns * kL; c += kL) {
    panel->is_sorted &= SortHalvesTransposed(x + c * args.n, args.n, c, panel);
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

template <typename T>
HWY_INLINE int64_t Count(hn::Mask<Tag<T>> mask) {
  return static_cast<int64_t>(hn::CountTrue(Tag<T>(), mask));
}

// Scopes that divide a register, by comparing each element with the others of its scope, where keys
// may be tied: fewer than k are above a tied one, but no fewer are above it or equal. Returns
// whether any are tied.
template <typename T, size_t N>
HWY_NOINLINE bool SettlePartners(const SelectFewArgs &args, const T *x, T *y) {
  constexpr Tag<T> d;
  constexpr int64_t kL = kLanesOf<T>;
  constexpr auto kEnd = static_cast<size_t>(std::countr_zero(N));
  const Vec<T> minus_k = hn::Set(d, static_cast<T>(-args.counts[0]));
  int64_t ties = 0;
  int64_t beyond = 0;
  ask_ahead(x, static_cast<int64_t>(N) * kL, stages_in_stream());
  for (int64_t i = 0; i < static_cast<int64_t>(N) * kL; i += kL) {
    const Vec<T> element = hn::LoadU(d, x + i);
    const Vec<T> key = ClampedKey<T>(element, args.nan_key);
    const Vec<T> below_key = hn::Sub(key, hn::Set(d, T{1}));
    const auto few_above = hn::Gt(MinusPartnersAbove<0, kEnd>(d, key, key), minus_k);
    const auto few_not_below = hn::Gt(MinusPartnersAbove<0, kEnd>(d, key, below_key), minus_k);
    const auto first = hn::Gt(MinusPartnersBefore<kEnd>(d, key), minus_k);
    const auto stays = args.keep_ties ? few_above : first;
    ties += Count<T>(hn::AndNot(few_not_below, few_above));
    beyond += Count<T>(hn::AndNot(first, stays));
    hn::StoreU(hn::IfThenElseZero(stays, element), d, y + i);
  }
  *args.ties += ties;
  *args.beyond += beyond;
  return ties > 0;
}

// The same as long as none is tied. Writes and returns true unless a doubt is left.
template <typename T, size_t N>
HWY_INLINE bool ComparePartners(const SelectFewArgs &args, const T *x, T *y) {
  constexpr Tag<T> d;
  constexpr int64_t kL = kLanesOf<T>;
  const int64_t k = args.counts[0];
  const Vec<T> margin = hn::Set(d, static_cast<T>(args.margin));
  ask_ahead(x, static_cast<int64_t>(N) * kL, stages_in_stream());
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

// A register of scopes becomes the first column of a panel, to be settled.
template <typename T, size_t N>
HWY_INLINE void StoreCut(const Vec<T> *element, Vec<T> cut, Panel<T> *panel) {
  constexpr Tag<T> d;
  for (size_t i = 0; i < N; ++i) hn::Store(element[i], d, panel->element[i]);
  hn::Store(cut, d, panel->cut);
}

// A register of scopes of any other size.
template <typename T, size_t N>
HWY_INLINE bool SelectTransposed(const SelectFewArgs &args, const Places<T> &places, const T *x,
                                 T *y, SortedScopes<T, N> *sorted, Panel<T> *panel) {
  constexpr auto n = static_cast<int64_t>(N);
  Vec<T> element[HWY_MAX(n, kAtom<T>)];
  LoadPositions<T, N>(x, n, 0, element);
  Vec<T> cut;
  const bool certain = CutRegisters<T, N>(args, element, sorted, &cut);
  if (!certain) {
    StoreCut<T, N>(element, cut, panel);
    return false;
  }
  HWY_ALIGN T of_scope[kLanesOf<T>];
  hn::Store(cut, Tag<T>(), of_scope);
  ApplyAlong(args, x, y, of_scope, places);
  return true;
}

// A register of scopes is compared if they divide it.
template <typename T, size_t N>
inline constexpr bool kCompares = (N == 2 || N == 4) && kHoldsPartners<N, Tag<T>>;

// Returns false if a cut leaves a doubt; the panel then has what it takes to settle it.
template <typename T, size_t N>
HWY_INLINE bool SelectRegister(const SelectFewArgs &args, const Places<T> &places, const T *x, T *y,
                               SortedScopes<T, N> *sorted, Panel<T> *panel) {
  if constexpr (kCompares<T, N>) {
    return ComparePartners<T, N>(args, x, y);
  } else {
    return SelectTransposed<T, N>(args, places, x, y, sorted, panel);
  }
}
// Returns whether the next register should be settled, too, without trying to select it.
template <typename T, size_t N>
HWY_INLINE bool SettleRegister(const SelectFewArgs &args, const Places<T> &places, const T *x, T *y,
                               Panel<T> *panel) {
  if constexpr (kCompares<T, N>) {
    // What has ties often has more of them.
    return SettlePartners<T, N>(args, x, y);
  } else {
    SettlePanel(args, PanelRows<T>(*panel).rows(), 1, panel);
    ApplySettledAlong(args, x, y, panel->cut, panel->until, places);
    return false;  // it is not in the panel
  }
}

// Registers of scopes until a cut leaves a doubt; returns where it stopped. Not inlined to where
// calls would take its registers.
template <typename T, size_t N>
HWY_NOINLINE int64_t UntilDoubt(const SelectFewArgs &args, const Places<T> &places, int64_t scope,
                                int64_t end, Panel<T> *panel) {
  constexpr auto n = static_cast<int64_t>(N);
  constexpr int64_t kL = kLanesOf<T>;
  const auto *x = reinterpret_cast<const T *>(args.x) + scope * n;
  auto *y = reinterpret_cast<T *>(args.y) + scope * n;
  SortedScopes<T, N> sorted;
  for (; scope < end && SelectRegister<T, N>(args, places, x, y, &sorted, panel); scope += kL) {
    x += kL * n;
    y += kL * n;
  }
  return scope;
}

// Registers of scopes from `scope` on, as long as all ties can be settled; returns where it stopped.
template <typename T, size_t N>
int64_t AlongInRegisters(const SelectFewArgs &args, const Places<T> &places, int64_t scope,
                         Panel<T> *panel) {
  constexpr int64_t kL = kLanesOf<T>;
  const int64_t left = (args.scopes - scope) / kL;
  const int64_t end = scope + kL * (kCompares<T, N> ? left : WholeColumns<T>(args, scope));
  for (;;) {
    scope = UntilDoubt<T, N>(args, places, scope, end, panel);
    if (scope == end || !MaySettle(args)) return scope;
    bool settles = true;
    for (; settles && scope < end; scope += kL) {
      const int64_t at = scope * static_cast<int64_t>(N);
      settles = SettleRegister<T, N>(args, places, reinterpret_cast<const T *>(args.x) + at,
                                     reinterpret_cast<T *>(args.y) + at, panel);
    }
  }
}

// Scopes one after the other gain by it at every size: what is read is near when it is written.
// Side by side, 17 and more gain nothing.
inline constexpr size_t kInRegistersAlong = kIsPortable ? kInRegisters : kFewBlocks;

template <typename T>
using AlongFn = int64_t (*)(const SelectFewArgs &, const Places<T> &, int64_t, Panel<T> *);

template <typename T, size_t... I>
constexpr std::array<AlongFn<T>, kInRegistersAlong + 1> AlongTable(std::index_sequence<I...>) {
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
  static constexpr auto kAlong = AlongTable<T>(std::make_index_sequence<kInRegistersAlong - 1>());
  constexpr int64_t kL = kLanesOf<T>;
  const auto *x = reinterpret_cast<const T *>(args.x);
  auto *y = reinterpret_cast<T *>(args.y);
  const AlongFn<T> in_registers = FitsRegisters(args, kInRegistersAlong) ? kAlong[args.n] : nullptr;
  Panel<T> panel;
  Places<T> places;
  PreparePanel(args, &panel);
  FillPlaces(args.n, &places);
  // Small scopes with counts of their own come a panel at a time: there is little to sort. Larger
  // ones come a register at a time: between reading and writing memory would be idle for too long.
  const bool is_small = args.n <= static_cast<int64_t>(kInRegisters);
  const int64_t most = is_small && !in_registers ? Panel<T>::kColumns : 1;
  int64_t scope = 0;
  for (;;) {
    if (in_registers) scope = in_registers(args, places, scope, &panel);
    const int64_t columns = HWY_MIN(WholeColumns<T>(args, scope), most);
    if (columns == 0) break;
    if (args.count_step != 0) FillWanted(args, scope, columns * kL, &panel);
    SelectAlongPanel(args, x + scope * args.n, y + scope * args.n, columns, places, &panel);
    scope += columns * kL;
  }
  SelectAlongRest(args, scope, places, &panel);
}

}  // namespace

void FillSelectAlong(Kernels *table) {
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
HWY_EXPORT(FillSelectAlong);
void fill_select_along(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillSelectAlong)(table);
}
}  // namespace spk
#endif
