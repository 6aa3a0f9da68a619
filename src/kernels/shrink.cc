// Hard and soft thresholding: what blocks of given norms are multiplied by, or whether they stay;
// and from memory to memory, blocks of one element or of a few across rows.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/shrink.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Norms so large that norm + eps leaves the range of double: the same of halves.
HWY_NOINLINE V ShrinkFactorOfLarge(V norm, V threshold, V eps) {
  const D d;
  const V half = hn::Set(d, 0.5);
  const V halves = hn::Add(hn::Mul(norm, half), hn::Mul(eps, half));
  return hn::Div(hn::Sub(halves, hn::Mul(threshold, half)), halves);
}

// (d - t) / d for d = norm + eps, rather than 1 - t / d: exact where the two nearly cancel. 0 for a
// norm of at most t; 1 for an infinite or NaN norm.
HWY_INLINE V ShrinkFactor(V norm, V threshold, V eps) {
  const D d;
  const V sum = hn::Add(norm, eps);
  V factor = hn::Div(hn::Sub(sum, threshold), sum);
  const auto fits = hn::Lt(sum, hn::Inf(d));
  if (HWY_UNLIKELY(!hn::AllTrue(d, fits))) {
    factor = hn::IfThenElse(fits, factor, ShrinkFactorOfLarge(norm, threshold, eps));
    // False for NaN, too.
    factor = hn::IfThenElse(hn::Lt(norm, hn::Inf(d)), factor, hn::Set(d, 1.0));
  }
  return hn::IfThenZeroElse(hn::Le(norm, threshold), factor);
}

int64_t Shrink(const double *norms, int64_t n, double threshold_scale, double eps,
               double *factors) {
  const D d;
  const V scale = hn::Set(d, threshold_scale);
  const V veps = hn::Set(d, eps);
  int64_t alive = 0;
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    const V threshold = hn::Mul(hn::LoadU(d, factors + i), scale);
    const V factor = ShrinkFactor(hn::LoadU(d, norms + i), threshold, veps);
    alive += static_cast<int64_t>(hn::CountTrue(d, hn::Ne(factor, hn::Zero(d))));
    hn::StoreU(factor, d, factors + i);
  }
  if (i == n) return alive;
  HWY_ALIGN double norm[kN] = {};
  HWY_ALIGN double factor[kN] = {};
  for (int64_t k = i; k < n; ++k) norm[k - i] = norms[k];
  for (int64_t k = i; k < n; ++k) factor[k - i] = factors[k];
  const V threshold = hn::Mul(hn::Load(d, factor), scale);
  hn::Store(ShrinkFactor(hn::Load(d, norm), threshold, veps), d, factor);
  for (int64_t k = i; k < n; ++k) {
    factors[k] = factor[k - i];
    alive += factors[k] != 0.0;
  }
  return alive;
}

int64_t KeepAtLeast(const double *norms, const double *thresholds, int64_t n, uint8_t *keep) {
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    keep[i] = !(norms[i] < thresholds[i]);  // NaN survives
    kept += keep[i];
  }
  return kept;
}

void KeepBytes(const uint8_t *mask, int64_t n, bool invert, uint8_t *keep) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1);
  const auto flip = hn::Set(d, invert ? 1 : 0);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    // The smaller of the byte and 1.
    hn::StoreU(hn::Xor(hn::Min(hn::LoadU(d, mask + i), one), flip), d, keep + i);
  }
  for (; i < n; ++i) keep[i] = static_cast<uint8_t>((mask[i] != 0) != invert);
}

template <class T>
bool AllAtLeast(const void *numbers, int64_t n, double least) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto *number = static_cast<const T *>(numbers);
  const auto limit = hn::Set(d, static_cast<T>(least));
  auto refused = hn::MaskFromVec(hn::Zero(d));  // without a branch: they may be as many as weights
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    refused = hn::Or(refused, hn::Not(hn::Ge(hn::LoadU(d, number + i), limit)));
  }
  bool rest = false;
  for (; i < n; ++i) rest |= !(number[i] >= static_cast<T>(least));
  return hn::AllFalse(d, refused) && !rest;
}

// --- blocks of one element, in one pass ---------------------------------------------------------

HWY_INLINE int64_t CountAlive(V factor) {
  return static_cast<int64_t>(hn::CountTrue(D(), hn::Ne(factor, hn::Zero(D()))));
}

// kN elements times factors.
template <class T>
HWY_INLINE void StoreShrunk(const T *x, V factor, T *y) {
  const D d;
  const V w = Load(x);
  const V shrunk = hn::IfThenZeroElse(hn::Eq(factor, hn::Zero(d)), hn::Mul(w, factor));
  if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(w), hn::Inf(d))))) return Store(shrunk, y);
  // NaN, and infinity unless it is dead, keep their very bits.
  HWY_ALIGN T results[kN];
  HWY_ALIGN double factors[kN];
  Store(shrunk, results);
  hn::Store(factor, d, factors);
  for (int64_t k = 0; k < kN; ++k) y[k] = factors[k] == 1.0 ? x[k] : results[k];
}

// Shrinks blocks whose norm is usual: its sum with eps is finite. Others are rare, and left to
// functions of their own, because in the same loop they would take its registers.
struct Soft {
  static constexpr bool kHasUnusual = true;
  V scale, eps;

  template <class L>
  HWY_INLINE V ThresholdOf(const L *threshold) const {
    return hn::Mul(Load(threshold), scale);
  }
  HWY_INLINE bool AreUsual(V norm) const {
    return hn::AllTrue(D(), hn::Lt(hn::Add(norm, eps), hn::Inf(D())));
  }
  HWY_INLINE M Alive(V norm, V threshold) const { return hn::Gt(norm, threshold); }
  HWY_INLINE V Factor(V norm, V threshold) const {
    const V sum = hn::Add(norm, eps);
    return hn::Div(hn::Sub(sum, threshold), sum);
  }
  // `w` is what x holds.
  template <class T>
  static HWY_INLINE void Write(const T *, V w, M alive, V factor, T *y) {
    Store(hn::IfThenElseZero(alive, hn::Mul(w, factor)), y);
  }
};

// kN elements, of which some are not usual; returns how many stay alive.
template <class T>
HWY_NOINLINE int64_t ShrinkUnusual(const T *x, V threshold, V eps, T *y) {
  const V factor = ShrinkFactor(hn::Abs(Load(x)), threshold, eps);
  StoreShrunk(x, factor, y);
  return CountAlive(factor);
}

// kN elements; returns how many stay alive.
template <class T, class L>
HWY_INLINE int64_t ShrinkSome(const Soft &soft, const T *x, const L *threshold, T *y) {
  const V w = Load(x);
  const V norm = hn::Abs(w);
  const V limit = soft.ThresholdOf(threshold);
  if (HWY_UNLIKELY(!soft.AreUsual(norm))) return ShrinkUnusual(x, limit, soft.eps, y);
  const M alive = soft.Alive(norm, limit);
  Soft::Write(x, w, alive, soft.Factor(norm, limit), y);
  return static_cast<int64_t>(hn::CountTrue(D(), alive));
}

// One threshold for all is read from a register full of it.
template <class L>
struct ThresholdRow {
  HWY_ALIGN L same[HWY_MAX_BYTES / sizeof(L)];
  const L *first;
  int64_t step{1};

  explicit ThresholdRow(const ElementArgs &args) : first(reinterpret_cast<const L *>(args.others)) {
    if (!args.one_for_all) return;
    std::fill(same, same + HWY_MAX_BYTES / sizeof(L), *first);
    first = same;
    step = 0;
  }
  HWY_INLINE const L *at(int64_t i) const { return first + i * step; }
};

// some(x, threshold, y) for each kN elements; returns the sum of its results.
template <class T, class L, class Some>
HWY_INLINE int64_t ForElements(const ElementArgs &args, const Some &some) {
  const T *x = reinterpret_cast<const T *>(args.x);
  T *y = reinterpret_cast<T *>(args.y);
  const ThresholdRow<L> threshold(args);
  int64_t alive = 0;
  int64_t i = 0;
  for (; i + kN <= args.n; i += kN) alive += some(x + i, threshold.at(i), y + i);
  if (i == args.n) return alive;
  // What fills the register is 0, below its threshold, and counts as dead.
  HWY_ALIGN T in[kN] = {};
  HWY_ALIGN L limit[kN];
  HWY_ALIGN T out[kN];
  const int64_t left = args.n - i;
  std::copy_n(x + i, left, in);
  std::fill_n(limit, kN, L{1});
  std::copy_n(threshold.at(i), left, limit);
  alive += some(in, limit, out);
  std::copy_n(out, left, y + i);
  return alive;
}

template <class T, class L>
int64_t ShrinkElements(const ElementArgs &args, double threshold_scale, double eps) {
  const Soft soft{hn::Set(D(), threshold_scale), hn::Set(D(), eps)};
  return ForElements<T, L>(args, [soft](const T *x, const L *threshold, T *y)
                                     HWY_ATTR { return ShrinkSome(soft, x, threshold, y); });
}

// Words of 16 or 32 bits, as they are where `keep` is 1, 0 where it is 0.
HWY_INLINE void StoreKeptWords(const void *x, VU32 keep, uint16_t *y) {
  const DU32 du;
  const VU32 words = hn::PromoteTo(du, hn::LoadU(DU16(), static_cast<const uint16_t *>(x)));
  StoreWords(hn::And(words, hn::Sub(hn::Zero(du), keep)), y);
}
HWY_INLINE void StoreKeptWords(const void *x, VU32 keep, uint32_t *y) {
  const DU32 du;
  const VU32 words = hn::LoadU(du, static_cast<const uint32_t *>(x));
  hn::StoreU(hn::And(words, hn::Sub(hn::Zero(du), keep)), du, y);
}
template <class T>
HWY_INLINE void StoreKept(const T *x, V keep, T *y) {
  using Word = std::conditional_t<sizeof(T) == sizeof(uint16_t), uint16_t, uint32_t>;
  const hn::Rebind<int32_t, D> di;
  StoreKeptWords(x, hn::BitCast(DU32(), hn::DemoteTo(di, keep)), reinterpret_cast<Word *>(y));
}

// kN elements: what is below its threshold becomes 0; returns how many stay.
template <class T, class L>
HWY_INLINE int64_t DropSome(const T *x, const L *threshold, T *y) {
  const D d;
  const auto below = hn::Lt(hn::Abs(Load(x)), Load(threshold));
  if constexpr (sizeof(T) == sizeof(double)) {
    Store(hn::IfThenZeroElse(below, Load(x)), y);
  } else {
    StoreKept(x, hn::IfThenZeroElse(below, hn::Set(d, 1.0)), y);
  }
  return kN - static_cast<int64_t>(hn::CountTrue(d, below));
}

template <class T, class L>
int64_t DropElements(const ElementArgs &args) {
  return ForElements<T, L>(args, [](const T *x, const L *threshold, T *y)
                                     HWY_ATTR { return DropSome(x, threshold, y); });
}

// The same for weights and thresholds of one type, which is also the one they are compared in.
template <class T>
int64_t DropAlike(const ElementArgs &args) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T *x = reinterpret_cast<const T *>(args.x);
  T *y = reinterpret_cast<T *>(args.y);
  const ThresholdRow<T> threshold(args);
  int64_t dropped = 0;
  int64_t i = 0;
  for (; i + lanes <= args.n; i += lanes) {
    const auto w = hn::LoadU(d, x + i);
    const auto below = hn::Lt(hn::Abs(w), hn::LoadU(d, threshold.at(i)));
    dropped += static_cast<int64_t>(hn::CountTrue(d, below));
    hn::StoreU(hn::IfThenZeroElse(below, w), d, y + i);
  }
  for (; i < args.n; ++i) {
    const bool below = std::fabs(x[i]) < *threshold.at(i);
    dropped += below;
    y[i] = below ? T{0} : x[i];
  }
  return args.n - dropped;
}

// --- blocks of a few elements across rows, one block an element of a row -----------------------

// Drops blocks whose norm, as a float, is below their threshold. NaN survives.
struct Hard {
  static constexpr bool kHasUnusual = false;

  HWY_INLINE V ThresholdOf(const double *threshold) const { return hn::LoadU(D(), threshold); }
  HWY_INLINE M Alive(V norm, V threshold) const {
    return hn::Not(hn::Lt(hn::PromoteTo(D(), ToFloat(norm)), threshold));
  }
  HWY_INLINE V Factor(V, V) const { return hn::Set(D(), 1.0); }
  template <class T>
  static HWY_INLINE void Write(const T *x, V, M alive, V one, T *y) {
    StoreKept(x, hn::IfThenElseZero(alive, one), y);
  }
};

// Registers of kN blocks of kRows elements.
template <int64_t kRows, class T, class Op>
class BlocksAcross {
 public:
  BlocksAcross(const ThresholdArgs &args, const Op &op)
      : op_(op), to_y_(args.to_y), ahead_(args.blocks.ahead) {
    std::copy_n(args.blocks.row, kRows, row_);
  }

  // `count` registers, steps apart; returns how many blocks stay.
  HWY_INLINE int64_t Run(const std::byte *x, int64_t x_step, const double *threshold,
                         int64_t threshold_step, int64_t count) const {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i, x += x_step, threshold += threshold_step) {
      V w[kRows];
      V squares = hn::Zero(D());
      for (int64_t r = 0; r < kRows; ++r) {
        __builtin_prefetch(x + row_[r] + ahead_, 0, 2);
        w[r] = Load(Row(x, r));
        squares = hn::MulAdd(w[r], w[r], squares);  // exact products: fused or not, the same sum
      }
      const V norm = hn::Sqrt(squares);
      const V limit = op_.ThresholdOf(threshold);
      if constexpr (Op::kHasUnusual) {
        if (HWY_UNLIKELY(!op_.AreUsual(norm))) {
          kept += ShrinkUnusualBlocks(*this, x, norm, limit);
          continue;
        }
      }
      const M alive = op_.Alive(norm, limit);
      const V factor = op_.Factor(norm, limit);
      for (int64_t r = 0; r < kRows; ++r) Op::Write(Row(x, r), w[r], alive, factor, To(x, r));
      kept += static_cast<int64_t>(hn::CountTrue(D(), alive));
    }
    return kept;
  }

 private:
  // By value: the address of the caller's object is never taken, and its fields stay in registers.
  static HWY_NOINLINE int64_t ShrinkUnusualBlocks(const BlocksAcross blocks, const std::byte *x,
                                                  V norm, V limit) {
    const V factor = ShrinkFactor(norm, limit, blocks.op_.eps);
    for (int64_t r = 0; r < kRows; ++r) StoreShrunk(blocks.Row(x, r), factor, blocks.To(x, r));
    return CountAlive(factor);
  }

  HWY_INLINE const T *Row(const std::byte *x, int64_t r) const {
    return reinterpret_cast<const T *>(x + row_[r]);
  }
  HWY_INLINE T *To(const std::byte *x, int64_t r) const {
    return reinterpret_cast<T *>(const_cast<std::byte *>(x) + row_[r] + to_y_);
  }

  const Op op_;
  int64_t row_[kRows];
  int64_t to_y_;
  int64_t ahead_;
};

template <int64_t kRows, class T, class Op>
HWY_NOINLINE int64_t ThresholdRows(const ThresholdArgs &args, const Op &op) {
  constexpr auto kRegister = kN * static_cast<int64_t>(sizeof(T));
  const BlocksAcross<kRows, T, Op> across(args, op);
  const BlockRow inner = args.blocks.inner;
  const BlockRow outer = args.blocks.outer;
  // Short runs would cost more than what is in them.
  if (inner.count == kN) {
    return across.Run(args.blocks.x, outer.step, args.threshold, outer.out, outer.count);
  }
  int64_t kept = 0;
  for (int64_t o = 0; o < outer.count; ++o) {
    kept += across.Run(args.blocks.x + o * outer.step, kRegister, args.threshold + o * outer.out,
                       kN, inner.count / kN);
  }
  return kept;
}

template <class T, class Op>
HWY_INLINE int64_t ThresholdAcross(const ThresholdArgs &args, const Op &op) {
  static_assert(kMostRowsAcross == 4);
  switch (args.blocks.rows) {
    case 1:
      return ThresholdRows<1, T>(args, op);
    case 2:
      return ThresholdRows<2, T>(args, op);
    case 3:
      return ThresholdRows<3, T>(args, op);
    default:
      return ThresholdRows<4, T>(args, op);
  }
}

template <class T>
int64_t ShrinkAcross(const ThresholdArgs &args) {
  return ThresholdAcross<T>(args, Soft{hn::Set(D(), args.threshold_scale), hn::Set(D(), args.eps)});
}

template <class T>
int64_t DropAcross(const ThresholdArgs &args) {
  return ThresholdAcross<T>(args, Hard());
}

template <class T>
void FillAcross(DtypeIndex dtype, Kernels *table) {
  table->shrink_across[dtype] = ShrinkAcross<T>;
  table->drop_across[dtype] = DropAcross<T>;
}

template <class T>
void FillElements(DtypeIndex dtype, Kernels *table) {
  table->shrink_elements[dtype][0] = ShrinkElements<T, float>;
  table->shrink_elements[dtype][1] = ShrinkElements<T, double>;
  table->drop_elements[dtype][0] = DropElements<T, float>;
  table->drop_elements[dtype][1] = DropElements<T, double>;
}

void FillShrink(Kernels *table) {
  table->shrink = Shrink;
  table->keep_at_least = KeepAtLeast;
  table->keep_bytes = KeepBytes;
  table->all_at_least[0] = AllAtLeast<float>;
  table->all_at_least[1] = AllAtLeast<double>;
  FillElements<float>(kF32, table);
  FillElements<double>(kF64, table);
  FillElements<F16>(kF16, table);
  FillElements<Bf16>(kBf16, table);
  table->drop_elements[kF32][0] = DropAlike<float>;
  table->drop_elements[kF64][1] = DropAlike<double>;
  FillAcross<float>(kF32, table);
  FillAcross<F16>(kF16, table);
  FillAcross<Bf16>(kBf16, table);
  table->shrink_across[kF64] = nullptr;
  table->drop_across[kF64] = nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillShrink);
void fill_shrink(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillShrink)(table);
}
}  // namespace spk
#endif
