// Sums over the elements of many blocks of a panel for the conditioned proximal operator
// (conditioned_panel.cc): norms, and moments at a given nu; in floats or in doubles.
#if defined(SPK_KERNELS_CONDITIONED_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_CONDITIONED_SUMS_INL_H_
#undef SPK_KERNELS_CONDITIONED_SUMS_INL_H_
#else
#define SPK_KERNELS_CONDITIONED_SUMS_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Rows that are summed as they are; the sums of such chains are added with compensation, so that
// the error does not grow with the size of a block.
inline constexpr int64_t kChain = 8;
// Sums of floats between the inverse of this and this lost nothing to the range of float.
inline constexpr double kFloatRange = 0x1p100;
inline constexpr int kMoments = 4;

// Lanes of a block that lie so far apart are added at once: it has so many partial sums.
inline constexpr int64_t kPartials = kLanes / 2;

template <class DT>
inline constexpr int64_t kLanesIn = static_cast<int64_t>(hn::MaxLanes(DT()));
// Registers of floats, which may be wide enough for the virtual lanes of two groups.
using DFloats = hn::CappedTag<float, 2 * kLanes>;
template <class DT>
inline constexpr bool kHoldsTwo = kLanesIn<DT> == 2 * kLanes;
template <class DT>
inline constexpr int64_t kGroupsIn = kHoldsTwo<DT> ? 2 : 1;

HWY_INLINE V LoadLanes(D, const double *p) {
  return Load(p);
}
HWY_INLINE V LoadLanes(D, const float *p) {
  return Load(p);
}
template <class DT>
HWY_INLINE hn::Vec<DT> LoadLanes(DT d, const float *p) {
  return hn::LoadU(d, p);
}

// Lanes of two groups in one register, lanes_of(d, 0 or 1) each; of the first if it has room for one.
template <class DT, class LanesOfGroup>
HWY_INLINE hn::Vec<DT> OfGroups(DT d, LanesOfGroup lanes_of) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kHoldsTwo<DT>) {
    const hn::Half<DT> half;
    return hn::Combine(d, lanes_of(half, 1), lanes_of(half, 0));
  } else {
    return lanes_of(d, 0);
  }
#else
  return lanes_of(d, 0);
#endif
}

// The elements of a batch in groups: of one block along rows, or of kLanes blocks across them.
template <class Entry>
struct Groups {
  Entry *w;
  const Entry *h;
  int64_t count;
  int64_t step;  // entries between groups
  int64_t rows;
  int64_t row_step;
};

// Quotients of doubles keep the divider of many processors busy for three times as long as those of
// floats. n / d for 1 <= d <= 2 kFloatRange, from a float y next to 1 / d: with e = 1 - d y, at
// most 2^-22, it is n y / (1 - e) = n y (1 + e + e^2 + ...).
HWY_INLINE V InverseInFloats(V d) {
  return hn::PromoteTo(D(), hn::Div(hn::Set(DF(), 1.0F), ToFloat(d)));
}
// Off by at most 3 * 2^-53.
HWY_INLINE V FineQuotient(V n, V d) {
  const V y = InverseInFloats(d);
  const V e = hn::Sub(hn::Set(D(), 1.0), hn::Mul(d, y));
  const V ny = hn::Mul(n, y);
  return hn::Add(ny, hn::Mul(ny, hn::Add(e, hn::Mul(e, e))));
}
// Of h nu: above this, h nu / (1 + h nu) is 1.
HWY_INLINE V ClampToFloats(V ratio) {
  return hn::Min(ratio, hn::Set(D(), kFloatRange));
}

// How a row has its quotients. Every other one has short divisions and more products: the divider
// and the multipliers are both busy.
enum class Quotient { kDivided, kRefined };
template <Quotient kQuotient>
using QuotientTag = std::integral_constant<Quotient, kQuotient>;

// ratio / (1 + ratio) for ratio >= 0.
template <Quotient>
HWY_INLINE hn::Vec<DFloats> ShareOf(DFloats d, hn::Vec<DFloats> ratio) {
  return hn::Div(ratio, hn::Add(ratio, hn::Set(d, 1)));
}
template <Quotient kQuotient>
HWY_INLINE V ShareOf(D d, V ratio) {
  const V one = hn::Set(d, 1.0);
  if constexpr (kQuotient == Quotient::kDivided) {
    return hn::Div(ratio, hn::Add(ratio, one));
  } else {
    const V clamped = ClampToFloats(ratio);
    return FineQuotient(clamped, hn::Add(clamped, one));
  }
}

// Sum of term(quotient, row) for rows from `row` to `end`, kChain at most.
template <class DT, class Term>
HWY_INLINE hn::Vec<DT> SumOfChain(DT d, int64_t row, int64_t end, Term term) {
  constexpr QuotientTag<Quotient::kDivided> kDivided;
  constexpr QuotientTag<Quotient::kRefined> kRefined;
  auto sum = hn::Zero(d);
  if (end - row == kChain) {
    for (int64_t i = 0; i < kChain; i += 2) {
      sum = hn::Add(sum, term(kDivided, row + i));
      sum = hn::Add(sum, term(kRefined, row + i + 1));
    }
  } else {
    for (; row < end; ++row) sum = hn::Add(sum, term(kDivided, row));
  }
  return sum;
}

// Compensated sum of the chains of all rows.
template <class DT, class Term>
HWY_INLINE hn::Vec<DT> SumOfRows(DT d, int64_t rows, Term term) {
  auto total = SumOfChain(d, 0, HWY_MIN(kChain, rows), term);
  if (rows <= kChain) return total;  // nothing to compensate
  auto lost = hn::Zero(d);
  for (int64_t row = kChain; row < rows; row += kChain) {
    const auto chain = SumOfChain(d, row, HWY_MIN(row + kChain, rows), term);
    const auto sum = hn::Add(total, chain);
    const auto part = hn::Sub(sum, total);
    lost = hn::Add(lost, hn::Add(hn::Sub(total, hn::Sub(sum, part)), hn::Sub(chain, part)));
    total = sum;
  }
  return hn::Add(total, lost);
}

// The rows of a register of one or two groups.
struct RowsOfGroups {
  int64_t count;
  int64_t step;     // entries
  int64_t to_next;  // entries to those of the next group, if the register is wide enough for two
};

template <class DT, class Entry>
HWY_INLINE hn::Vec<DT> LoadRow(DT d, const Entry *p, int64_t row, RowsOfGroups rows) {
  p += row * rows.step;
  return OfGroups(d,
                  [&](auto dl, int64_t i) HWY_ATTR { return LoadLanes(dl, p + i * rows.to_next); });
}

// Lanes of sum w^2, sum c^2, sum c^2 h and sum c^2 h^2 for c = h w, of one register of a group, for
// conditioners h times `unit`.
template <class DT, class Entry>
HWY_INLINE void NormsOfRegister(DT d, const Entry *w, const Entry *h, RowsOfGroups rows,
                                hn::Vec<DT> unit, hn::Vec<DT> *sums) {
  auto weights = hn::Zero(d);
  auto cubes = hn::Zero(d);
  auto fourths = hn::Zero(d);
  const auto products = SumOfRows(d, rows.count, [&](auto, int64_t row) HWY_ATTR {
    const auto weight = LoadRow(d, w, row, rows);
    const auto metric = hn::Mul(LoadRow(d, h, row, rows), unit);
    const auto c = hn::Mul(metric, weight);
    const auto square = hn::Mul(c, c);
    weights = hn::Add(weights, hn::Mul(weight, weight));
    const auto cube = hn::Mul(square, metric);
    cubes = hn::Add(cubes, cube);
    fourths = hn::Add(fourths, hn::Mul(cube, metric));
    return square;
  });
  sums[0] = weights;
  sums[1] = products;
  sums[2] = cubes;
  sums[3] = fourths;
}

// Lanes of sum (w p)^2 p^k, k = 0 to 3, of one register of a group: nu^2 times those of q.
template <class DT, class Entry>
HWY_INLINE void MomentsOfRegister(DT d, const Entry *w, const Entry *h, RowsOfGroups rows,
                                  hn::Vec<DT> nu, hn::Vec<DT> *sums) {
  auto first = hn::Zero(d);
  auto second = hn::Zero(d);
  auto third = hn::Zero(d);
  const auto squares = SumOfRows(d, rows.count, [&](auto quotient, int64_t row) HWY_ATTR {
    const auto ratio = hn::Mul(LoadRow(d, h, row, rows), nu);
    const auto p = ShareOf<decltype(quotient)::value>(d, ratio);
    const auto x = hn::Mul(LoadRow(d, w, row, rows), p);
    const auto term0 = hn::Mul(x, x);
    const auto term1 = hn::Mul(term0, p);
    const auto term2 = hn::Mul(term1, p);
    first = hn::Add(first, term1);
    second = hn::Add(second, term2);
    third = hn::Add(third, hn::Mul(term2, p));
    return term0;
  });
  sums[0] = squares;
  sums[1] = first;
  sums[2] = second;
  sums[3] = third;
}

// Sums of kLanes blocks, as doubles if they are not.
template <class T>
HWY_INLINE void StoreAsDoubles(const T *lanes, double *sums) {
  for (int64_t i = 0; i < kLanes; i += kN) hn::StoreU(Load(lanes + i), D(), sums + i);
}

// A block's lanes become its partial sums: the upper half of them is added to the lower.
template <class T>
HWY_INLINE void FoldHalves(const T *lanes, double *partial) {
  const hn::CappedTag<double, kPartials> d;
  const hn::Rebind<T, decltype(d)> half;
  for (int64_t i = 0; i < kPartials; i += kLanesIn<decltype(d)>) {
    const auto sum = hn::Add(hn::Load(half, lanes + i), hn::Load(half, lanes + kPartials + i));
    if constexpr (std::is_same_v<T, double>) {
      hn::Store(sum, d, partial + i);
    } else {
      hn::Store(hn::PromoteTo(d, sum), d, partial + i);
    }
  }
}

// Adds up the partial sums of kLanes blocks.
HWY_INLINE void Fold(const double *partial, double *sums) {
  static_assert(kPartials == 4);
  for (int64_t i = 0; i < kLanes; i += kN) {
    V a, b, c, d;
    hn::LoadInterleaved4(D(), partial + 4 * i, a, b, c, d);
    hn::Store(hn::Add(hn::Add(a, b), hn::Add(c, d)), D(), sums + i);
  }
}

// Asks for what is read soon, some lines at a time, so that it arrives during the arithmetic. Few at
// a time: processors keep only about a dozen on their way, and wait for room for more.
class ReadAhead {
 public:
  HWY_INLINE ReadAhead(const ReadSoon &soon, int64_t times)
      : row_(soon.first),
        line_(soon.first),
        end_(soon.first + soon.bytes),
        row_step_(soon.row_step),
        rows_(soon.bytes > 0 ? soon.rows : 0),
        lines_((rows_ * ((soon.bytes + kLine - 1) / kLine) + times - 1) / times) {}

  HWY_INLINE void AskForSome() {
    for (int64_t left = lines_; left > 0 && rows_ > 0; --rows_) {
      left = AskForRow(left);
      if (line_ < end_) return;
      row_ += row_step_;
      end_ += row_step_;
      line_ = row_;
    }
  }

 private:
  static constexpr int64_t kLine = 64;

  // Some lines of the row that is being asked for; returns how many fewer are left.
  HWY_INLINE int64_t AskForRow(int64_t left) {
    const std::byte *line = line_;
    for (; left > 0 && line < end_; --left, line += kLine) prefetch_far(line, 0);
    line_ = line;
    return left;
  }

  const std::byte *row_;
  const std::byte *line_;
  const std::byte *end_;  // of the row
  int64_t row_step_;
  int64_t rows_;   // left
  int64_t lines_;  // at a time
};

// What the lanes of a register of a group stand for: one block, or one each.
template <bool kAcross, class DT>
HWY_INLINE hn::Vec<DT> LanesOf(DT d, const hn::TFromD<DT> *numbers, int64_t group, int64_t r) {
  if constexpr (kAcross) {
    return hn::LoadU(d, numbers + group * kLanes + r * kLanesIn<DT>);
  } else {
    return hn::Set(d, numbers[group]);
  }
}

// Is one of a group's blocks asked for?
template <bool kAcross>
HWY_INLINE bool IsAsked(const double *asked, int64_t group) {
  V most = LanesOf<kAcross>(D(), asked, group, 0);
  for (int64_t r = 1; kAcross && r < kRegisters; ++r) {
    most = hn::Max(most, LanesOf<kAcross>(D(), asked, group, r));
  }
  return !hn::AllFalse(D(), hn::Gt(most, hn::Zero(D())));
}

// Writes the sums of a group: one for each of its kLanes blocks, or kPartials for its one block.
template <bool kAcross, class T>
HWY_INLINE void WriteSums(const T *lanes, int64_t group, double *out) {
  if constexpr (kAcross) {
    StoreAsDoubles(lanes, out + group * kLanes);
  } else {
    FoldHalves(lanes, out + group * kPartials);
  }
}

// The sums over the elements of groups `first` and `last`, which may be one, into out[kind];
// `of_register(r, sums)` are those of a register.
template <bool kAcross, class DT, class OfRegister>
HWY_INLINE void SumTogether(DT d, int64_t first, int64_t last, double *const *out,
                            OfRegister of_register) {
  constexpr int64_t kCount = kGroupsIn<DT> * kLanes;
  HWY_ALIGN hn::TFromD<DT> lanes[kMoments][kCount];
  for (int64_t r = 0; r < kCount / kLanesIn<DT>; ++r) {
    hn::Vec<DT> sums[kMoments];
    of_register(r, sums);
    for (int k = 0; k < kMoments; ++k) hn::Store(sums[k], d, lanes[k] + r * kLanesIn<DT>);
  }
  for (int k = 0; k < kMoments; ++k) {
    WriteSums<kAcross>(lanes[k], first, out[k]);
    if (kHoldsTwo<DT>) WriteSums<kAcross>(lanes[k] + kCount - kLanes, last, out[k]);
  }
}

// The same for all groups that are asked for, and for those that share registers with them.
// `of_register(w, h, rows, number, sums)` are those of a register; each block has a number.
template <bool kAcross, class DT, class Entry, class OfRegister>
HWY_INLINE void SumGroups(DT d, const Groups<Entry> groups, const hn::TFromD<DT> *numbers,
                          const double *asked, double *const *out, ReadAhead *soon,
                          OfRegister of_register) {
  const int64_t row_step = kAcross ? groups.row_step : kLanes;  // a constant, if it is one
  for (int64_t g = 0; g < groups.count; g += kGroupsIn<DT>) {
    // A group that is left over takes both halves; both are written, and equal.
    const int64_t last = HWY_MIN(g + kGroupsIn<DT>, groups.count) - 1;
    for (int64_t i = g; soon && i <= last; ++i) soon->AskForSome();
    if (IsAsked<kAcross>(asked, g) || (kHoldsTwo<DT> && IsAsked<kAcross>(asked, last))) {
      const RowsOfGroups rows = {groups.rows, row_step, (last - g) * groups.step};
      SumTogether<kAcross>(d, g, last, out, [&](int64_t r, hn::Vec<DT> *sums) HWY_ATTR {
        const int64_t at = g * groups.step + r * kLanesIn<DT>;
        const auto number = OfGroups(d, [&](auto dl, int64_t i) HWY_ATTR {
          return LanesOf<kAcross>(dl, numbers, i == 0 ? g : last, r);
        });
        of_register(groups.w + at, groups.h + at, rows, number, sums);
      });
    }
    for (int64_t i = g; soon && i <= last; ++i) soon->AskForSome();
  }
}

// Not inlined into what solves a batch, where other loops would take their registers.
template <bool kAcross, class DT, class Entry>
HWY_NOINLINE void SumNorms(DT d, const Groups<Entry> &given, const hn::TFromD<DT> *units,
                           const double *asked, double *const *out, ReadAhead *soon) {
  const Groups<Entry> groups = given;  // a copy that no store can change, as far as compilers know
  SumGroups<kAcross>(
      d, groups, units, asked, out, soon,
      [&](const Entry *w, const Entry *h, RowsOfGroups rows, hn::Vec<DT> unit, hn::Vec<DT> *sums)
          HWY_ATTR { NormsOfRegister(d, w, h, rows, unit, sums); });
}
template <bool kAcross, class DT, class Entry>
HWY_NOINLINE void SumMoments(DT d, const Groups<Entry> &given, const hn::TFromD<DT> *nus,
                             const double *asked, double *const *out, ReadAhead *soon) {
  const Groups<Entry> groups = given;
  SumGroups<kAcross>(
      d, groups, nus, asked, out, soon,
      [&](const Entry *w, const Entry *h, RowsOfGroups rows, hn::Vec<DT> nu, hn::Vec<DT> *sums)
          HWY_ATTR { MomentsOfRegister(d, w, h, rows, nu, sums); });
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();
#endif
