// Boxes of elements of any float dtype to panels of doubles and back, and the check of conditioners
// on their bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panel.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Rows of whole registers, neighbours here and there.
HWY_INLINE bool AreRegisters(const BoxArgs &args) {
  return args.step == 1 && args.panel_step == 1 && args.n % kN == 0;
}

// Short ones: ToDoubles reads so far ahead that it would be in another row.
template <class T>
HWY_NOINLINE void GatherRegisters(const BoxArgs &given) {
  const BoxArgs args = given;  // a copy that no store can change, as far as compilers know
  for (int64_t row = 0; row < args.rows; ++row) {
    const T *x = reinterpret_cast<const T *>(args.x + row * args.row_step);
    double *panel = args.panel + row * args.panel_row_step;
    for (int64_t i = 0; i < args.n; i += kN) hn::StoreU(Load(x + i), D(), panel + i);
  }
}

template <class T>
HWY_NOINLINE void ScatterRegisters(const BoxArgs &given) {
  const BoxArgs args = given;
  for (int64_t row = 0; row < args.rows; ++row) {
    T *y = reinterpret_cast<T *>(args.x + row * args.row_step);
    const double *panel = args.panel + row * args.panel_row_step;
    for (int64_t i = 0; i < args.n; i += kN) Store(hn::LoadU(D(), panel + i), y + i);
  }
}

template <class T>
void Gather(const BoxArgs &args) {
  if (AreRegisters(args) && args.n < kAhead<T>) return GatherRegisters<T>(args);
  for (int64_t row = 0; row < args.rows; ++row) {
    ToDoubles(reinterpret_cast<const T *>(args.x + row * args.row_step), args.n, args.step,
              args.panel + row * args.panel_row_step, args.panel_step);
  }
}

template <class T>
void Scatter(const BoxArgs &args) {
  if (AreRegisters(args)) return ScatterRegisters<T>(args);
  for (int64_t row = 0; row < args.rows; ++row) {
    FromDoubles(args.panel + row * args.panel_row_step, args.n, args.panel_step,
                reinterpret_cast<T *>(args.x + row * args.row_step), args.step);
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
    auto most = hn::Zero(d);
    for (; i + kLineOf<Word> <= n; i += kLineOf<Word>) {
      hwy::Prefetch(x + i + kAhead<Word>);
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

void FillPanel(Kernels *table) {
  table->gather[kF32] = Gather<float>;
  table->gather[kF64] = Gather<double>;
  table->gather[kF16] = Gather<F16>;
  table->gather[kBf16] = Gather<Bf16>;
  table->scatter[kF32] = Scatter<float>;
  table->scatter[kF64] = Scatter<double>;
  table->scatter[kF16] = Scatter<F16>;
  table->scatter[kBf16] = Scatter<Bf16>;
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
