// Boxes of elements of any float dtype to panels of floats or doubles and back, and the check of
// conditioners on their bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panel.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "kernels/ask_near-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/prefetch.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Rows of whole registers, neighbours here and there.
HWY_INLINE bool AreRegisters(const BoxArgs &args) {
  return args.step == 1 && args.panel_step == 1 && args.n % kN == 0;
}

// Calls convert(x, n, entries) for rows of n elements. `args` is a copy that no store can change, as
// far as compilers know.
template <class T, class Entry, class Convert>
HWY_INLINE void ForEachRow(const BoxArgs args, int64_t n, Convert convert) {
  for (int64_t row = 0; row < args.rows; ++row) {
    convert(reinterpret_cast<T *>(args.x + row * args.row_step), n,
            static_cast<Entry *>(args.panel) + row * args.panel_row_step);
  }
}

// The same; n is a constant if a row is a cache line.
template <class T, class Entry, class Convert>
HWY_INLINE void ForEachShortRow(const BoxArgs &args, Convert convert) {
  if (args.n == kLineOf<T>) return ForEachRow<T, Entry>(args, kLineOf<T>, convert);
  ForEachRow<T, Entry>(args, args.n, convert);
}

// Short rows: ReadRow asks so far ahead that it would be in another row.
template <class T, class Entry>
HWY_NOINLINE void GatherRegisters(const BoxArgs &args) {
  ForEachShortRow<T, Entry>(
      args, [](const T *x, int64_t n, Entry *panel) HWY_ATTR { ConvertRegisters(x, n, panel); });
}

template <class T, class Entry>
HWY_NOINLINE void ScatterRegisters(const BoxArgs &args) {
  ForEachShortRow<T, Entry>(
      args, [](T *y, int64_t n, const Entry *panel) HWY_ATTR { ConvertRegisters(panel, n, y); });
}

template <class T, class Entry>
void Gather(const BoxArgs &args) {
  if (AreRegisters(args) && args.n < kAhead<T>) return GatherRegisters<T, Entry>(args);
  for (int64_t row = 0; row < args.rows; ++row) {
    ReadRow(reinterpret_cast<const T *>(args.x + row * args.row_step), args.n, args.step,
            static_cast<Entry *>(args.panel) + row * args.panel_row_step, args.panel_step);
  }
}

template <class T, class Entry>
void Scatter(const BoxArgs &args) {
  if (AreRegisters(args)) return ScatterRegisters<T, Entry>(args);
  for (int64_t row = 0; row < args.rows; ++row) {
    WriteRow(static_cast<const Entry *>(args.panel) + row * args.panel_row_step, args.n,
             args.panel_step, reinterpret_cast<T *>(args.x + row * args.row_step), args.step);
  }
}

// The bits of a positive, finite number, less 1, are below those of infinity less 1: zero wraps
// round, and a sign bit is above. Returns the largest of a row.
template <class Word>
HWY_INLINE Word LargestLessOne(const Word *x, int64_t n, int64_t step) {
  Word largest = 0;
  int64_t i = 0;
  if (step == 1) {
    const hn::ScalableTag<Word> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto one = hn::Set(d, Word{1});
    const Stages ahead = InStream<Word>(kNear);
    auto most = hn::Zero(d);
    for (; i + kLineOf<Word> <= n; i += kLineOf<Word>) {
      ask_ahead(x + i, kLineOf<Word>, ahead);
      for (int64_t k = i; k < i + kLineOf<Word>; k += lanes) {
        most = hn::Max(most, hn::Sub(hn::LoadU(d, x + k), one));
      }
    }
    for (; i + lanes <= n; i += lanes) most = hn::Max(most, hn::Sub(hn::LoadU(d, x + i), one));
    HWY_ALIGN Word words[hn::MaxLanes(d)];
    hn::Store(most, d, words);
    for (int64_t k = 0; k < lanes; ++k) largest = HWY_MAX(largest, words[k]);
  }
  for (; i < n; ++i) largest = HWY_MAX(largest, static_cast<Word>(x[i * step] - 1));
  return largest;
}

template <class Word, Word kInfinity>
bool AllPositive(const BoxArgs &args) {
  Word largest = 0;
  for (int64_t row = 0; row < args.rows; ++row) {
    const auto *x = reinterpret_cast<const Word *>(args.x + row * args.row_step);
    largest = std::max(largest, LargestLessOne(x, args.n, args.step));
  }
  return largest < kInfinity - 1;
}

template <class T, class Entry>
void FillBoxes(int dtype, Kernels *table) {
  constexpr bool kDoubles = std::is_same_v<Entry, double>;
  table->gather[dtype][kDoubles] = Gather<T, Entry>;
  table->scatter[dtype][kDoubles] = Scatter<T, Entry>;
}

void FillPanel(Kernels *table) {
  FillBoxes<float, float>(kF32, table);
  FillBoxes<F16, float>(kF16, table);
  FillBoxes<Bf16, float>(kBf16, table);
  FillBoxes<float, double>(kF32, table);
  FillBoxes<double, double>(kF64, table);
  FillBoxes<F16, double>(kF16, table);
  FillBoxes<Bf16, double>(kBf16, table);
  table->all_positive[kF32] = AllPositive<uint32_t, 0x7f800000u>;
  table->all_positive[kF64] = AllPositive<uint64_t, 0x7ff0000000000000u>;
  table->all_positive[kF16] = AllPositive<uint16_t, 0x7c00>;
  table->all_positive[kBf16] = AllPositive<uint16_t, 0x7f80>;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillPanel);
void fill_panel(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillPanel)(table);
}
}  // namespace spk
#endif
