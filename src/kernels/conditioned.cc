// Sums of the conditioned proximal operator over one gathered block (see core/conditioned.cc).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conditioned.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// kLanes compensated partial sums; element e belongs to lane e mod kLanes.
struct LaneSums {
  V sum[kRegisters];
  V error[kRegisters];

  HWY_INLINE void Clear() {
    for (int64_t r = 0; r < kRegisters; ++r) sum[r] = error[r] = hn::Zero(D());
  }
  HWY_INLINE void Add(int64_t r, V term) {
    const V total = hn::Add(sum[r], term);
    const V part = hn::Sub(total, sum[r]);
    const V lost = hn::Add(hn::Sub(sum[r], hn::Sub(total, part)), hn::Sub(term, part));
    sum[r] = total;
    error[r] = hn::Add(error[r], lost);
  }
  void Total(double *total, double *total_error) const {
    HWY_ALIGN double sums[kLanes];
    HWY_ALIGN double errors[kLanes];
    for (int64_t r = 0; r < kRegisters; ++r) {
      hn::Store(sum[r], D(), sums + r * kN);
      hn::Store(error[r], D(), errors + r * kN);
    }
    fold_lanes(kSumExact, sums, errors, 1);
    *total = sums[0];
    *total_error = errors[0];
  }
  double Rounded() const {
    double total;
    double error_total;
    Total(&total, &error_total);
    return total + error_total;
  }
};

// Calls fn(r, i, count) for each register-wide piece: `count` elements from i, in register r.
template <class Fn>
HWY_INLINE void ForPieces(int64_t n, Fn fn) {
  for (int64_t e = 0; e < n; e += kLanes) {
    for (int64_t r = 0; r < kRegisters; ++r) {
      const int64_t i = e + r * kN;
      if (i >= n) break;
      fn(r, i, HWY_MIN(n - i, kN));
    }
  }
}

// The tail reads as `pad`.
HWY_INLINE V LoadPiece(const double *p, int64_t i, int64_t count, double pad) {
  if (count == kN) return hn::LoadU(D(), p + i);
  HWY_ALIGN double values[kN];
  for (int64_t k = 0; k < kN; ++k) values[k] = k < count ? p[i + k] : pad;
  return hn::Load(D(), values);
}

ConditionedSums Conditioned(const double *b, const double *r, int64_t n, double a_scale) {
  const V scale = hn::Set(D(), a_scale);
  LaneSums weights;
  LaneSums products;
  LaneSums quotients;
  LaneSums cubes;
  weights.Clear();
  products.Clear();
  quotients.Clear();
  cubes.Clear();
  ForPieces(n, [&](int64_t lane, int64_t i, int64_t count) {
    const V bi = LoadPiece(b, i, count, 0.0);
    const V ri = LoadPiece(r, i, count, 1.0);
    const V square = hn::Mul(bi, bi);
    const V a = hn::Mul(hn::Div(bi, ri), scale);
    const V a_square = hn::Mul(a, a);
    weights.Add(lane, square);
    products.Add(lane, a_square);
    quotients.Add(lane, hn::Mul(square, ri));
    cubes.Add(lane, hn::Div(a_square, ri));
  });
  return {weights.Rounded(), products.Rounded(), quotients.Rounded(), cubes.Rounded()};
}

SecularSums Secular(const double *b, const double *r, int64_t n, double nu) {
  const V one = hn::Set(D(), 1.0);
  const V vnu = hn::Set(D(), nu);
  LaneSums squares;
  LaneSums slopes;
  squares.Clear();
  slopes.Clear();
  ForPieces(n, [&](int64_t lane, int64_t i, int64_t count) {
    const V bi = LoadPiece(b, i, count, 0.0);
    const V ri = LoadPiece(r, i, count, 1.0);
    const V reciprocal = hn::Div(one, hn::Add(ri, vnu));
    const V q = hn::Mul(bi, reciprocal);
    const V square = hn::Mul(q, q);
    squares.Add(lane, square);
    slopes.Add(lane, hn::Mul(square, reciprocal));
  });
  SecularSums result;
  squares.Total(&result.square, &result.square_error);
  result.slope = slopes.Rounded();
  return result;
}

void FillConditioned(Kernels *table) {
  table->conditioned_sums = Conditioned;
  table->secular_sums = Secular;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillConditioned);
void fill_conditioned(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillConditioned)(table);
}
}  // namespace spk
#endif
