// Boxes of elements of any float dtype to panels of doubles and back, and the check of conditioners
// on their bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panel.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <type_traits>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Processors do not look beyond a page of their own accord, and boxes are often about as wide.
template <class T>
inline constexpr int64_t kAhead = 4096 / sizeof(T);

template <class T>
HWY_INLINE void GatherRow(const T *x, int64_t n, int64_t step, double *out, int64_t out_step) {
  int64_t i = 0;
  if (step == 1 && out_step == 1) {
    for (; i + kN <= n; i += kN) {
      hwy::Prefetch(x + i + kAhead<T>);
      hn::StoreU(Load(x + i), D(), out + i);
    }
  }
  // Words gathered for a register would be waited for; scalars that C++ knows are not.
  if constexpr (std::is_floating_point_v<T>) {
    for (; i < n; ++i) out[i * out_step] = static_cast<double>(x[i * step]);
  }
  for (; i < n; i += kN) {
    const int64_t left = HWY_MIN(n - i, kN);
    HWY_ALIGN T in[kN] = {};
    HWY_ALIGN double values[kN];
    for (int64_t k = 0; k < left; ++k) in[k] = x[(i + k) * step];
    hn::Store(Load(in), D(), values);
    for (int64_t k = 0; k < left; ++k) out[(i + k) * out_step] = values[k];
  }
}

template <class T>
HWY_INLINE void ScatterRow(const double *in, int64_t n, int64_t in_step, T *y, int64_t step) {
  int64_t i = 0;
  if (step == 1 && in_step == 1) {
    for (; i + kN <= n; i += kN) Store(hn::LoadU(D(), in + i), y + i);
  }
  if constexpr (std::is_floating_point_v<T>) {
    for (; i < n; ++i) y[i * step] = static_cast<T>(in[i * in_step]);
  }
  for (; i < n; i += kN) {
    const int64_t left = HWY_MIN(n - i, kN);
    HWY_ALIGN double values[kN] = {};
    HWY_ALIGN T out[kN];
    for (int64_t k = 0; k < left; ++k) values[k] = in[(i + k) * in_step];
    Store(hn::Load(D(), values), out);
    for (int64_t k = 0; k < left; ++k) y[(i + k) * step] = out[k];
  }
}

template <class T>
void Gather(const BoxArgs &args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    GatherRow(reinterpret_cast<const T *>(args.x + row * args.row_step), args.n, args.step,
              args.panel + row * args.panel_row_step, args.panel_step);
  }
}

template <class T>
void Scatter(const BoxArgs &args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    ScatterRow(args.panel + row * args.panel_row_step, args.n, args.panel_step,
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
    for (; i + lanes <= n; i += lanes) {
      hwy::Prefetch(x + i + kAhead<Word>);
      most = hn::Max(most, hn::Sub(hn::LoadU(d, x + i), one));
    }
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
    largest = HWY_MAX(largest, LargestLessOne(x, args.n, args.step));
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
