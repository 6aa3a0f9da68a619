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

// A number of rows, as a type.
template <int64_t kRows>
using RowCount = std::integral_constant<int64_t, kRows>;

// ratio >= 0 becomes ratio / (1 + ratio), row by row.
template <int64_t kRows>
HWY_INLINE void TakeShares(DFloats d, hn::Vec<DFloats> *ratio) {
  for (int64_t i = 0; i < kRows; ++i) {
    ratio[i] = hn::Div(ratio[i], hn::Add(ratio[i], hn::Set(d, 1)));
  }
}
// Quotients of doubles keep the divider busy for longer than all other steps take: two share one, as
// a / b = a d / (b d), and what it divides is multiplied meanwhile. Off by at most 5 * 2^-53; with
// conditioners and thresholds in kRange (conditioned_panel.cc), all ratios are below 2^500.
template <int64_t kRows>
HWY_INLINE void TakeShares(D d, V *ratio) {
  static_assert(kRows == 1 || kRows == 2);
  const V one = hn::Set(d, 1.0);
  const V first = hn::Add(ratio[0], one);
  if constexpr (kRows == 1) {
    ratio[0] = hn::Div(ratio[0], first);
  } else {
    const V second = hn::Add(ratio[1], one);
    const V inverse = hn::Div(one, hn::Mul(first, second));
    ratio[0] = hn::Mul(hn::Mul(ratio[0], second), inverse);
    ratio[1] = hn::Mul(hn::Mul(ratio[1], first), inverse);
  }
}

// The sum over rows from `row` to `end`, kChain at most; add(RowCount, row, &sum) adds some. Not
// unrolled: GCC would put off the sums that `add` takes beside this one, and run out of registers.
template <class DT, class Add>
HWY_INLINE hn::Vec<DT> SumOfChain(DT d, int64_t row, int64_t end, Add add) {
  auto sum = hn::Zero(d);
  for (; row + 2 <= end; row += 2) add(RowCount<2>(), row, &sum);
  if (row < end) add(RowCount<1>(), row, &sum);
  return sum;
}

// Compensated sum of the chains of all rows.
template <class DT, class Add>
HWY_INLINE hn::Vec<DT> SumOfRows(DT d, int64_t rows, Add add) {
  auto total = SumOfChain(d, 0, HWY_MIN(kChain, rows), add);
  if (rows <= kChain) return total;  // nothing to compensate
  auto lost = hn::Zero(d);
  for (int64_t row = kChain; row < rows; row += kChain) {
    const auto chain = SumOfChain(d, row, HWY_MIN(row + kChain, rows), add);
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

// What a register goes over: lanes of `group`, from `lane` on, and of the next one if it holds two.
template <class DT, class Entry>
struct SummedLanes {
  static constexpr DT d{};
  int64_t group;
  int64_t lane;
  const Entry *w_first;
  const Entry *h_first;
  RowsOfGroups rows;
  hn::Vec<DT> number;  // each block has one

  HWY_INLINE hn::Vec<DT> Weights(int64_t row) const { return LoadRow(d, w_first, row, rows); }
  HWY_INLINE hn::Vec<DT> Conditioners(int64_t row) const { return LoadRow(d, h_first, row, rows); }
};

// Sums of w^2, c^2, c^2 h and c^2 h^2 for c = h w, for conditioners h times a number.
template <class DT, class Entry>
HWY_INLINE void NormsOfLanes(const SummedLanes<DT, Entry> &lanes, hn::Vec<DT> *sums) {
  const DT d;
  auto weights = hn::Zero(d);
  auto cubes = hn::Zero(d);
  auto fourths = hn::Zero(d);
  const auto add = [&](auto count, int64_t first, hn::Vec<DT> *products) HWY_ATTR {
    for (int64_t row = first; row < first + count; ++row) {
      const auto weight = lanes.Weights(row);
      const auto metric = hn::Mul(lanes.Conditioners(row), lanes.number);
      const auto c = hn::Mul(metric, weight);
      const auto square = hn::Mul(c, c);
      const auto cube = hn::Mul(square, metric);
      *products = hn::Add(*products, square);
      weights = hn::Add(weights, hn::Mul(weight, weight));
      cubes = hn::Add(cubes, cube);
      fourths = hn::Add(fourths, hn::Mul(cube, metric));
    }
  };
  sums[1] = SumOfRows(d, lanes.rows.count, add);
  sums[0] = weights;
  sums[2] = cubes;
  sums[3] = fourths;
}

// Sums of (w p)^2 p^k, k = 0 to 3, at a number nu: nu^2 times those of q. Calls keep(row, p).
template <class DT, class Entry, class Keep>
HWY_INLINE void MomentsOfLanes(const SummedLanes<DT, Entry> &lanes, hn::Vec<DT> *sums, Keep keep) {
  const DT d;
  auto first = hn::Zero(d);
  auto second = hn::Zero(d);
  auto third = hn::Zero(d);
  const auto add = [&](auto count, int64_t row, hn::Vec<DT> *squares) HWY_ATTR {
    constexpr int64_t kRows = decltype(count)::value;
    hn::Vec<DT> p[kRows];
    for (int64_t i = 0; i < kRows; ++i) p[i] = hn::Mul(lanes.Conditioners(row + i), lanes.number);
    TakeShares<kRows>(d, p);
    for (int64_t i = 0; i < kRows; ++i) {
      keep(row + i, p[i]);
      const auto x = hn::Mul(lanes.Weights(row + i), p[i]);
      const auto term0 = hn::Mul(x, x);
      const auto term1 = hn::Mul(term0, p[i]);
      const auto term2 = hn::Mul(term1, p[i]);
      *squares = hn::Add(*squares, term0);
      first = hn::Add(first, term1);
      second = hn::Add(second, term2);
      third = hn::Add(third, hn::Mul(term2, p[i]));
    }
  };
  sums[0] = SumOfRows(d, lanes.rows.count, add);
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
// sum_register(r, sums) gives those of a register.
template <bool kAcross, class DT, class SumRegister>
HWY_INLINE void SumTogether(DT d, int64_t first, int64_t last, double *const *out,
                            SumRegister sum_register) {
  constexpr int64_t kCount = kGroupsIn<DT> * kLanes;
  HWY_ALIGN hn::TFromD<DT> lanes[kMoments][kCount];
  for (int64_t r = 0; r < kCount / kLanesIn<DT>; ++r) {
    hn::Vec<DT> sums[kMoments];
    sum_register(r, sums);
    for (int k = 0; k < kMoments; ++k) hn::Store(sums[k], d, lanes[k] + r * kLanesIn<DT>);
  }
  for (int k = 0; k < kMoments; ++k) {
    WriteSums<kAcross>(lanes[k], first, out[k]);
    if (kHoldsTwo<DT>) WriteSums<kAcross>(lanes[k] + kCount - kLanes, last, out[k]);
  }
}

// The same for all groups that are asked for, and for those that share registers with them.
// sum_lanes(lanes, sums) gives those of a register; each block has a number.
template <bool kAcross, class DT, class Entry, class SumLanes>
HWY_INLINE void SumGroups(DT d, const Groups<Entry> groups, const hn::TFromD<DT> *numbers,
                          const double *asked, double *const *out, ReadAhead *soon,
                          SumLanes sum_lanes) {
  const int64_t row_step = kAcross ? groups.row_step : kLanes;  // a constant, if it is one
  for (int64_t g = 0; g < groups.count; g += kGroupsIn<DT>) {
    // A group that is left over takes both halves; both are written, and equal.
    const int64_t last = HWY_MIN(g + kGroupsIn<DT>, groups.count) - 1;
    for (int64_t i = g; soon && i <= last; ++i) soon->AskForSome();
    if (IsAsked<kAcross>(asked, g) || (kHoldsTwo<DT> && IsAsked<kAcross>(asked, last))) {
      const RowsOfGroups rows = {groups.rows, row_step, (last - g) * groups.step};
      SumTogether<kAcross>(d, g, last, out, [&](int64_t r, hn::Vec<DT> *sums) HWY_ATTR {
        const int64_t lane = r * kLanesIn<DT>;
        const int64_t at = g * groups.step + lane;
        const auto number = OfGroups(d, [&](auto dl, int64_t i) HWY_ATTR {
          return LanesOf<kAcross>(dl, numbers, i == 0 ? g : last, r);
        });
        sum_lanes({g, lane, groups.w + at, groups.h + at, rows, number}, sums);
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
  SumGroups<kAcross>(d, groups, units, asked, out, soon,
                     [&](const SummedLanes<DT, Entry> &lanes, hn::Vec<DT> *sums)
                         HWY_ATTR { NormsOfLanes(lanes, sums); });
}
template <bool kAcross, class DT, class Entry>
HWY_NOINLINE void SumMoments(DT d, const Groups<Entry> &given, const hn::TFromD<DT> *nus,
                             const double *asked, double *const *out, ReadAhead *soon) {
  const Groups<Entry> groups = given;
  SumGroups<kAcross>(d, groups, nus, asked, out, soon,
                     [&](const SummedLanes<DT, Entry> &lanes, hn::Vec<DT> *sums) HWY_ATTR {
                       MomentsOfLanes(lanes, sums, [](int64_t, hn::Vec<DT>) HWY_ATTR {});
                     });
}

// SumMoments of floats in doubles, which keeps the shares p of blocks that are asked for: kLanes of
// each row, those of a group after each other. `again`: others stay as they were kept before.
template <bool kAcross>
HWY_NOINLINE void SumMomentsKeepShares(const Groups<float> &given, const double *nus,
                                       const double *asked, double *const *out, bool again,
                                       double *shares) {
  const Groups<float> groups = given;
  const D d;
  SumGroups<kAcross>(d, groups, nus, asked, out, nullptr,
                     [&](const SummedLanes<D, float> &lanes, V *sums) HWY_ATTR {
                       double *share = shares + lanes.group * groups.rows * kLanes + lanes.lane;
                       if (!kAcross || !again) {
                         MomentsOfLanes(lanes, sums, [&](int64_t row, V p) HWY_ATTR {
                           hn::Store(p, d, share + row * kLanes);
                         });
                         return;
                       }
                       const V marks = LanesOf<kAcross>(d, asked, lanes.group, lanes.lane / kN);
                       const M kept = hn::Gt(marks, hn::Zero(d));
                       MomentsOfLanes(lanes, sums, [&](int64_t row, V p) HWY_ATTR {
                         double *at = share + row * kLanes;
                         hn::Store(hn::IfThenElse(kept, p, hn::Load(d, at)), d, at);
                       });
                     });
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();
#endif
