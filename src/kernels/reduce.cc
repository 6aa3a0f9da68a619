// Norms, extremes and counts: per-block accumulators over rows of elements.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <limits>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// A plain accumulator: one double a lane.
struct Plain {
  static constexpr bool kCompensated = false;
};

struct Count : Plain {
  static constexpr Reduction kWhat = kCount;
  static constexpr double kPad = 0.0;  // never above eps >= 0
  static HWY_INLINE V Add(V sum, V x, V eps) {
    const V one = hn::Set(D(), 1.0);
    return hn::Add(sum, hn::IfThenZeroElse(hn::Le(hn::Abs(x), eps), one));
  }
  static HWY_INLINE V Join(V a, V b) { return hn::Add(a, b); }
};

struct Sum : Plain {
  static constexpr Reduction kWhat = kSum;
  static constexpr double kPad = 0.0;
  static HWY_INLINE V Add(V sum, V x, V) { return hn::Add(sum, hn::Abs(x)); }
  static HWY_INLINE V Join(V a, V b) { return hn::Add(a, b); }
};

struct SumSquares : Plain {
  static constexpr Reduction kWhat = kSumSquares;
  static constexpr double kPad = 0.0;
  static HWY_INLINE V Add(V sum, V x, V) { return hn::Add(sum, hn::Mul(x, x)); }
  static HWY_INLINE V Join(V a, V b) { return hn::Add(a, b); }
};

// The larger one; NaN wins over everything.
HWY_INLINE V Larger(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
}
HWY_INLINE V Smaller(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
}

struct MaxMagnitude : Plain {
  static constexpr Reduction kWhat = kMaxMagnitude;
  static constexpr double kPad = 0.0;
  static HWY_INLINE V Add(V best, V x, V) { return Larger(best, hn::Abs(x)); }
  static HWY_INLINE V Join(V a, V b) { return Larger(a, b); }
};

struct MinMagnitude : Plain {
  static constexpr Reduction kWhat = kMinMagnitude;
  static constexpr double kPad = std::numeric_limits<double>::infinity();
  static HWY_INLINE V Add(V best, V x, V) { return Smaller(best, hn::Abs(x)); }
  static HWY_INLINE V Join(V a, V b) { return Smaller(a, b); }
};

// Adding +0 turns -0 into +0 and leaves the rest.
struct Max : Plain {
  static constexpr Reduction kWhat = kMax;
  static constexpr double kPad = -std::numeric_limits<double>::infinity();
  static HWY_INLINE V Add(V best, V x, V) { return Larger(best, hn::Add(x, hn::Zero(D()))); }
  static HWY_INLINE V Join(V a, V b) { return Larger(a, b); }
};

struct Min : Plain {
  static constexpr Reduction kWhat = kMin;
  static constexpr double kPad = std::numeric_limits<double>::infinity();
  static HWY_INLINE V Add(V best, V x, V) { return Smaller(best, hn::Add(x, hn::Zero(D()))); }
  static HWY_INLINE V Join(V a, V b) { return Smaller(a, b); }
};

// sum + b, with the rounding error of the sum added to `error` (Knuth's TwoSum).
HWY_INLINE void AddExact(V &sum, V &error, V b) {
  const V total = hn::Add(sum, b);
  const V part = hn::Sub(total, sum);
  const V lost = hn::Add(hn::Sub(sum, hn::Sub(total, part)), hn::Sub(b, part));
  sum = total;
  error = hn::Add(error, lost);
}

// A compensated accumulator: sum and error.
struct Compensated {
  static constexpr bool kCompensated = true;
  static constexpr double kPad = 0.0;
  static HWY_INLINE void Join(V &sum, V &error, V more, V more_error) {
    error = hn::Add(error, more_error);
    AddExact(sum, error, more);
  }
};

struct SumExact : Compensated {
  static constexpr Reduction kWhat = kSumExact;
  static HWY_INLINE void Add(V &sum, V &error, V x, V) { AddExact(sum, error, hn::Abs(x)); }
};

struct SumSquaresExact : Compensated {
  static constexpr Reduction kWhat = kSumSquaresExact;
  // Dekker's product: x^2 = square + lost exactly, without relying on fused multiply-add. Scaled
  // elements are at most 1, so the splitting cannot overflow.
  static HWY_INLINE void Add(V &sum, V &error, V x, V scale) {
    const V v = hn::Mul(x, scale);
    const V spread = hn::Mul(v, hn::Set(D(), 134217729.0));  // 2^27 + 1
    const V high = hn::Sub(spread, hn::Sub(spread, v));
    const V low = hn::Sub(v, high);
    const V square = hn::Mul(v, v);
    const V cross = hn::Mul(high, low);
    const V lost = hn::Add(hn::Add(hn::Sub(hn::Mul(high, high), square), hn::Add(cross, cross)),
                           hn::Mul(low, low));
    error = hn::Add(error, lost);
    AddExact(sum, error, square);
  }
};

// Up to kN elements as doubles, the rest filled with `pad`.
template <class T>
HWY_INLINE V LoadSome(const T *x, int64_t step, int64_t count, double pad) {
  if (step == 1 && count == kN) return Load(x);
  HWY_ALIGN T elements[kN] = {};
  for (int64_t i = 0; i < count; ++i) elements[i] = x[i * step];
  const V loaded = Load(elements);
  return hn::IfThenElse(hn::FirstN(D(), static_cast<size_t>(count)), loaded, hn::Set(D(), pad));
}

// Within a row, element e goes to virtual lane e mod 32; at its end the 32 are folded to 8 (l with
// l + 16, then l + 8), and those added to the accumulators of the row's block. Wider rows of lanes
// only hide latency: what is added to what is the same on every target.
inline constexpr int64_t kRowLanes = 32;
inline constexpr int64_t kGroups = kRowLanes / kN;

// Rows of exactly kLanes * kEighths elements, at most kRowLanes: the same additions without a loop.
template <class T, class Op, int64_t kEighths>
HWY_NOINLINE void ReduceShortRows(const ReduceArgs &args) {
  const D d;
  const V eps = hn::Set(d, args.eps);
  const V pad = hn::Set(d, Op::kPad);
  for (int64_t row = 0; row < args.rows; ++row) {
    const T *x = reinterpret_cast<const T *>(args.x + row * args.row_step);
    double *sum = args.sum + row * args.sum_step;
    for (int64_t l = 0; l < kLanes; l += kN) {
      V lane = Op::Add(pad, Load(x + l), eps);
      if constexpr (kEighths == 2) lane = Op::Join(lane, Op::Add(pad, Load(x + 8 + l), eps));
      if constexpr (kEighths == 4) {
        lane = Op::Join(lane, Op::Add(pad, Load(x + 16 + l), eps));
        const V other = Op::Add(pad, Load(x + 8 + l), eps);
        lane = Op::Join(lane, Op::Join(other, Op::Add(pad, Load(x + 24 + l), eps)));
      }
      hn::StoreU(Op::Join(hn::LoadU(d, sum + l), lane), d, sum + l);
    }
  }
}

template <class T, class Op>
HWY_NOINLINE void ReduceAlongPlain(const ReduceArgs &args) {
  if (args.step == 1 && args.n == kLanes) return ReduceShortRows<T, Op, 1>(args);
  if (args.step == 1 && args.n == 2 * kLanes) return ReduceShortRows<T, Op, 2>(args);
  if (args.step == 1 && args.n == 4 * kLanes) return ReduceShortRows<T, Op, 4>(args);
  const D d;
  const V eps = hn::Set(d, args.eps);
  for (int64_t row = 0; row < args.rows; ++row) {
    const T *x = reinterpret_cast<const T *>(args.x + row * args.row_step);
    V lane[kGroups];
    for (int64_t g = 0; g < kGroups; ++g) lane[g] = hn::Set(d, Op::kPad);
    int64_t e = 0;
    if (args.step == 1) {
      for (; e + kRowLanes <= args.n; e += kRowLanes) {
        for (int64_t g = 0; g < kGroups; ++g) lane[g] = Op::Add(lane[g], Load(x + e + g * kN), eps);
      }
    }
    for (; e < args.n; e += kRowLanes) {
      for (int64_t g = 0; g < kGroups; ++g) {
        const int64_t left = HWY_MIN(args.n - e - g * kN, kN);
        if (left <= 0) break;
        const V v = LoadSome(x + (e + g * kN) * args.step, args.step, left, Op::kPad);
        lane[g] = Op::Add(lane[g], v, eps);
      }
    }
    for (int64_t half = kGroups / 2; half * kN >= kLanes; half /= 2) {
      for (int64_t g = 0; g < half; ++g) lane[g] = Op::Join(lane[g], lane[g + half]);
    }
    double *sum = args.sum + row * args.sum_step;
    for (int64_t g = 0; g < kLanes / kN; ++g) {
      hn::StoreU(Op::Join(hn::LoadU(d, sum + g * kN), lane[g]), d, sum + g * kN);
    }
  }
}

template <class T, class Op>
HWY_NOINLINE void ReduceAlongCompensated(const ReduceArgs &args) {
  const D d;
  for (int64_t row = 0; row < args.rows; ++row) {
    const T *x = reinterpret_cast<const T *>(args.x + row * args.row_step);
    const V scale = args.scale ? hn::LoadU(d, args.scale + row * args.sum_step) : hn::Zero(d);
    V lane[kGroups];
    V lost[kGroups];
    for (int64_t g = 0; g < kGroups; ++g) lane[g] = lost[g] = hn::Zero(d);
    for (int64_t e = 0; e < args.n; e += kRowLanes) {
      for (int64_t g = 0; g < kGroups; ++g) {
        const int64_t left = HWY_MIN(args.n - e - g * kN, kN);
        if (left <= 0) break;
        const V v = LoadSome(x + (e + g * kN) * args.step, args.step, left, Op::kPad);
        Op::Add(lane[g], lost[g], v, scale);
      }
    }
    for (int64_t half = kGroups / 2; half * kN >= kLanes; half /= 2) {
      for (int64_t g = 0; g < half; ++g) {
        Op::Join(lane[g], lost[g], lane[g + half], lost[g + half]);
      }
    }
    for (int64_t g = 0; g < kLanes / kN; ++g) {
      double *sum = args.sum + row * args.sum_step + g * kN;
      double *error = args.error + row * args.sum_step + g * kN;
      V total = hn::LoadU(d, sum);
      V total_error = hn::LoadU(d, error);
      Op::Join(total, total_error, lane[g], lost[g]);
      hn::StoreU(total, d, sum);
      hn::StoreU(total_error, d, error);
    }
  }
}

template <class T, class Op>
void ReduceAlong(const ReduceArgs &args) {
  if constexpr (Op::kCompensated) {
    ReduceAlongCompensated<T, Op>(args);
  } else {
    ReduceAlongPlain<T, Op>(args);
  }
}

// Loads and stores `count` <= kN doubles.
HWY_INLINE V LoadDoubles(const double *p, int64_t count) {
  if (count == kN) return hn::LoadU(D(), p);
  HWY_ALIGN double values[kN] = {};
  for (int64_t i = 0; i < count; ++i) values[i] = p[i];
  return hn::Load(D(), values);
}
HWY_INLINE void StoreDoubles(V v, double *p, int64_t count) {
  if (count == kN) return hn::StoreU(v, D(), p);
  HWY_ALIGN double values[kN];
  hn::Store(v, D(), values);
  for (int64_t i = 0; i < count; ++i) p[i] = values[i];
}

template <class T, class Op>
HWY_NOINLINE void ReduceAcross(const ReduceArgs &args) {
  const D d;
  const V eps = hn::Set(d, args.eps);
  for (int64_t row = 0; row < args.rows; ++row) {
    const T *x = reinterpret_cast<const T *>(args.x + row * args.row_step);
    double *sums = args.sum + row * args.sum_step;
    for (int64_t j = 0; j < args.n; j += kN) {
      const int64_t left = HWY_MIN(args.n - j, kN);
      const V v = LoadSome(x + j * args.step, args.step, left, Op::kPad);
      V sum = LoadDoubles(sums + j, left);
      if constexpr (Op::kCompensated) {
        double *errors = args.error + row * args.sum_step;
        V error = LoadDoubles(errors + j, left);
        const V scale =
            args.scale ? LoadDoubles(args.scale + row * args.sum_step + j, left) : hn::Zero(d);
        Op::Add(sum, error, v, scale);
        StoreDoubles(error, errors + j, left);
      } else {
        sum = Op::Add(sum, v, eps);
      }
      StoreDoubles(sum, sums + j, left);
    }
  }
}

template <class T, class Op>
void FillOne(DtypeIndex dtype, Kernels *table) {
  table->reduce_along[dtype][Op::kWhat] = ReduceAlong<T, Op>;
  table->reduce_across[dtype][Op::kWhat] = ReduceAcross<T, Op>;
}

template <class T>
void FillDtype(DtypeIndex dtype, Kernels *table) {
  FillOne<T, Count>(dtype, table);
  FillOne<T, Sum>(dtype, table);
  FillOne<T, SumSquares>(dtype, table);
  FillOne<T, MaxMagnitude>(dtype, table);
  FillOne<T, MinMagnitude>(dtype, table);
  FillOne<T, Min>(dtype, table);
  FillOne<T, Max>(dtype, table);
  FillOne<T, SumExact>(dtype, table);
  FillOne<T, SumSquaresExact>(dtype, table);
}

void FillReduce(Kernels *table) {
  FillDtype<float>(kF32, table);
  FillDtype<double>(kF64, table);
  FillDtype<F16>(kF16, table);
  FillDtype<Bf16>(kBf16, table);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {

HWY_EXPORT(FillReduce);
void fill_reduce(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillReduce)(table);
}

double identity_of(Reduction reduction) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  switch (reduction) {
    case kMinMagnitude:
    case kMin:
      return kInf;
    case kMax:
      return -kInf;
    default:
      return 0.0;
  }
}

namespace {

double larger(double a, double b) {
  return b > a || b != b ? b : a;
}
double smaller(double a, double b) {
  return b < a || b != b ? b : a;
}

void add_exact(double *sum, double *error, double b) {
  const double total = *sum + b;
  const double part = total - *sum;
  *error += (*sum - (total - part)) + (b - part);
  *sum = total;
}

}  // namespace

namespace {

// One step of each kind of reduction: joins (more, more_error) into (sum, error).
struct JoinSums {
  static void join(double *sum, double *, double more, double) { *sum += more; }
};
struct JoinLarger {
  static void join(double *sum, double *, double more, double) { *sum = larger(*sum, more); }
};
struct JoinSmaller {
  static void join(double *sum, double *, double more, double) { *sum = smaller(*sum, more); }
};
struct JoinCompensated {
  static void join(double *sum, double *error, double more, double more_error) {
    *error += more_error;
    add_exact(sum, error, more);
  }
};

// Calls fn with the kind of a reduction.
template <typename Fn>
void with_join(Reduction reduction, Fn &&fn) {
  switch (reduction) {
    case kCount:
    case kSum:
    case kSumSquares:
      return fn(JoinSums());
    case kMaxMagnitude:
    case kMax:
      return fn(JoinLarger());
    case kMinMagnitude:
    case kMin:
      return fn(JoinSmaller());
    default:
      return fn(JoinCompensated());
  }
}

}  // namespace

void combine(Reduction reduction, int64_t count, const double *more, const double *more_error,
             double *sum, double *error, int64_t step) {
  const bool compensated = is_compensated(reduction);
  with_join(reduction, [&](auto kind) {
    for (int64_t i = 0; i < count; ++i) {
      kind.join(sum + i * step, compensated ? error + i * step : nullptr, more[i],
                compensated ? more_error[i] : 0.0);
    }
  });
}

void fold_lanes(Reduction reduction, double *sum, double *error, int64_t count) {
  const bool compensated = is_compensated(reduction);
  with_join(reduction, [&](auto kind) {
    for (int64_t i = 0; i < count; ++i) {
      double *lane = sum + i * kLanes;
      double *lost = compensated ? error + i * kLanes : lane;
      for (int64_t half = kLanes / 2; half > 0; half /= 2) {
        for (int64_t l = 0; l < half; ++l) {
          kind.join(lane + l, lost + l, lane[l + half], lost[l + half]);
        }
      }
      sum[i] = lane[0];
      if (compensated) error[i] = lost[0];
    }
  });
}

}  // namespace spk
#endif
