// Joins results of reductions: of parts of a block, of its virtual lanes.
#include <limits>

#include "kernels/kernels.h"

namespace spk {

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

// As AddExact of reduce-inl.h, by TwoSum: the error is the same number.
void add_exact(double *sum, double *error, double b) {
  const double total = *sum + b;
  const double part = total - *sum;
  *error += (*sum - (total - part)) + (b - part);
  *sum = total;
}

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
    case kSumSigned:
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
      double *to = sum + i * step;  // in place of an error, where there is none and it is not used
      kind.join(to, compensated ? error + i * step : to, more[i],
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
