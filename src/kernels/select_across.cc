// The top elements of many scopes of few elements each that lie side by side, straight in memory.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select_across.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <array>
#include <cstring>
#include <utility>

#include "kernels/kernels.h"
#include "kernels/prefetch.h"
#include "kernels/select_few-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace {

// What is applied to a panel is applied to a copy: of rows a power of two apart the first cache
// holds no more than it has ways, and most would be gone.
template <typename T, bool kFull>
void CopyRows(const ScopeRows<T> &rows, int64_t n, int64_t columns, Panel<T> *panel) {
  constexpr Tag<T> d;
  const int64_t width = kFull ? Panel<T>::kWidth : columns * kLanesOf<T>;
  for (int64_t p = 0; p < n; ++p) {
    for (int64_t c = 0; c < width; c += kLanesOf<T>) {
      hn::Store(hn::LoadU(d, rows[p] + c), d, panel->element[p] + c);
    }
  }
}

// Asks for what follows in a row, which mostly is the next panel: processors do not foresee so many
// streams. When rows have just been read, or while they are written: the next ones take their
// places in the caches. What was asked for while keys were sorted may have been driven out again.
template <typename T>
HWY_INLINE void AskForNext(const T *row, int64_t width) {
  for (int64_t c = 0; c < width; c += kLine<T>) prefetch_far(row + width + c, 0);
}

template <typename T, bool kFull>
void ApplyAcross(const SelectFewArgs &args, const ScopeRows<T> &rows, std::byte *y, int64_t columns,
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
void ApplySettledAcross(const SelectFewArgs &args, const ScopeRows<T> &rows, std::byte *y,
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
  const ScopeRows<T> rows{args.x + offset, args.x_at};
  CopyRows<T, kFull>(rows, args.n, columns, panel);
  const PanelRows<T> copied(*panel);
  const int64_t bytes = columns * kLanesOf<T> * static_cast<int64_t>(sizeof(T));
  SortHalves(copied.rows(), args.n, columns, panel, {args.x + offset + bytes, args.x_at});
  if (CutPanel(args, columns, panel)) {
    SettlePanel(args, copied.rows(), columns, panel);
    ApplySettledAcross(args, rows, args.y + offset, columns, *panel);
  } else {
    ApplyAcross<T, kFull>(args, rows, args.y + offset, columns, *panel);
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
constexpr int64_t kWays = 8;
template <typename T>
constexpr int64_t Together(int64_t n) {
  static_assert(kLine<T> >= kLanesOf<T>);
  return n > kWays ? kLine<T> / kLanesOf<T> : 1;
}

// A register of scopes, from `scope` on of rows.
template <typename T, size_t N>
struct WholeRegister {
  const T *const *x;
  T *const *y;
  int64_t scope;

  HWY_INLINE Vec<T> Load(size_t i) const { return hn::LoadU(Tag<T>(), x[i] + scope); }
  HWY_INLINE void Store(Vec<T> v, size_t i) const { hn::StoreU(v, Tag<T>(), y[i] + scope); }
};

// Registers of scopes from `scope` on, as long as doubts can be settled; returns where it stopped.
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
  SortedScopes<T, N> sorted;
  for (; args.scopes - scope >= kC * kL; scope += kC * kL) {
    Vec<T> element[kC][N];
    for (size_t i = 0; i < N; ++i) {
      if (N > kWays) AskForNext(x[i] + scope, kC * kL);
      for (int64_t c = 0; c < kC; ++c) element[c][i] = hn::LoadU(d, x[i] + scope + c * kL);
    }
    Vec<T> cut[kC];
    bool certain = true;
    for (int64_t c = 0; c < kC; ++c) {
      certain &= CutRegisters<T, N>(args, element[c], &sorted, &cut[c]);
    }
    if (!certain) {
      if (!MaySettle(args)) return scope;
      for (int64_t c = 0; c < kC; ++c) {
        SettleScopes<T, N>(args, WholeRegister<T, N>{x, y, scope + c * kL}, cut[c]);
      }
      continue;
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
  const AcrossFn<T> in_registers = FitsRegisters(args, kInRegisters) ? kAcross[args.n] : nullptr;
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

}  // namespace

void FillSelectAcross(Kernels *table) {
  table->select_across[kF32] = SelectAcross<int32_t>;
  table->select_across[kF64] = SelectAcross<int64_t>;
  table->select_across[kF16] = SelectAcross<int16_t>;
  table->select_across[kBf16] = SelectAcross<int16_t>;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillSelectAcross);
void fill_select_across(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillSelectAcross)(table);
}
}  // namespace spk
#endif
