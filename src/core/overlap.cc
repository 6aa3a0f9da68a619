#include "core/overlap.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace spk {
namespace {

using Wide = __int128;

// One term x * step of a linear Diophantine equation, low <= x <= high, step > 0.
struct Term {
  Wide step;
  Wide low;
  Wide high;
};

Wide floor_div(Wide a, Wide b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
Wide ceil_div(Wide a, Wide b) {
  return -floor_div(-a, b);
}

Wide gcd(Wide a, Wide b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

// Terms of both layouts rarely exceed this: the merged dimensions of two views.
constexpr int kMaxTerms = 2 * kMaxDims;
// Steps of the search before it gives up; far above what any practical layout needs (it is one
// step a dimension there), about 10 ms in the worst case.
constexpr int kMaxSteps = 1 << 20;

// Solves sum(x_i * step_i) = target with each x_i in its range. Terms are sorted by descending
// step, so each remainder leaves only few candidates: the smaller terms must still reach it.
class Equation {
 public:
  void add(Wide step, Wide low, Wide high) {
    for (int i = 0; i < count_; ++i) {
      if (terms_[i].step != step) continue;
      // x * step + y * step = (x + y) * step, and x + y takes every value of the summed range.
      terms_[i].low += low;
      terms_[i].high += high;
      return;
    }
    terms_[count_++] = {step, low, high};
  }

  Decision solvable(Wide target) {
    std::sort(terms_, terms_ + count_,
              [](const Term &a, const Term &b) { return a.step > b.step; });
    reach_low_[count_] = reach_high_[count_] = divisor_[count_] = 0;
    for (int i = count_ - 1; i >= 0; --i) {
      reach_low_[i] = reach_low_[i + 1] + terms_[i].low * terms_[i].step;
      reach_high_[i] = reach_high_[i + 1] + terms_[i].high * terms_[i].step;
      divisor_[i] = gcd(terms_[i].step, divisor_[i + 1]);
    }
    steps_ = 0;
    return search(0, target);
  }

 private:
  Decision search(int i, Wide target) {
    if (target < reach_low_[i] || target > reach_high_[i]) return Decision::kNo;
    if (i == count_) return target == 0 ? Decision::kYes : Decision::kNo;
    if (target % divisor_[i] != 0) return Decision::kNo;
    if (i + 2 == count_) return two_terms(terms_[i], terms_[i + 1], target);
    if (++steps_ > kMaxSteps) return Decision::kUnknown;
    const Term &term = terms_[i];
    const Wide first = std::max(term.low, ceil_div(target - reach_high_[i + 1], term.step));
    const Wide last = std::min(term.high, floor_div(target - reach_low_[i + 1], term.step));
    for (Wide x = first; x <= last; ++x) {
      const Decision decision = search(i + 1, target - x * term.step);
      if (decision != Decision::kNo) return decision;
      if (++steps_ > kMaxSteps) return Decision::kUnknown;
    }
    return Decision::kNo;
  }

  // a.step * x + b.step * y = target in closed form: all solutions are one of them plus multiples
  // of (b.step, -a.step) / gcd.
  static Decision two_terms(const Term &a, const Term &b, Wide target) {
    const Wide divisor = gcd(a.step, b.step);
    const Wide step_a = a.step / divisor;
    const Wide step_b = b.step / divisor;
    const Wide rest = target / divisor;
    // x = rest * inverse(step_a) mod step_b, the smallest non-negative solution.
    Wide x = (rest % step_b) * inverse(step_a % step_b, step_b) % step_b;
    if (x < 0) x += step_b;
    // x + k * step_b in [a.low, a.high] and y = (rest - x * step_a) / step_b - k * step_a in range.
    const Wide y = (rest - x * step_a) / step_b;
    const Wide low = std::max(ceil_div(a.low - x, step_b), ceil_div(y - b.high, step_a));
    const Wide high = std::min(floor_div(a.high - x, step_b), floor_div(y - b.low, step_a));
    return low <= high ? Decision::kYes : Decision::kNo;
  }

  // Inverse of value modulo `modulus`; the two are coprime.
  static Wide inverse(Wide value, Wide modulus) {
    if (modulus == 1) return 0;
    Wide previous = 0;
    Wide current = 1;
    Wide a = modulus;
    Wide b = value;
    while (b > 1) {
      const Wide quotient = a / b;
      a = std::exchange(b, a % b);
      previous = std::exchange(current, previous - quotient * current);
    }
    return current < 0 ? current + modulus : current;
  }

  Term terms_[kMaxTerms];
  Wide reach_low_[kMaxTerms + 1];
  Wide reach_high_[kMaxTerms + 1];
  Wide divisor_[kMaxTerms + 1];
  int count_ = 0;
  int steps_ = 0;
};

struct Dim {
  int64_t extent;
  int64_t step;
};

// Dimensions that matter, ascending by |stride|, neighbours that continue each other merged: the
// merged layout reaches the same elements, equally often.
int merged_dims(const Extents &shape, const Extents &stride, Dim *dims) {
  int count = 0;
  for (int d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1) dims[count++] = {shape[d], stride[d] < 0 ? -stride[d] : stride[d]};
  }
  std::sort(dims, dims + count, [](const Dim &a, const Dim &b) { return a.step < b.step; });
  int merged = 0;
  for (int d = 0; d < count; ++d) {
    Dim *below = merged > 0 ? &dims[merged - 1] : nullptr;
    if (below && Wide{below->extent} * below->step == dims[d].step) {
      below->extent *= dims[d].extent;
    } else {
      dims[merged++] = dims[d];
    }
  }
  return merged;
}

// Each stride jumps over all that the smaller ones reach: the sufficient test that nearly every
// layout passes.
bool is_nested(const Dim *dims, int count) {
  Wide reach = 0;
  for (int d = 0; d < count; ++d) {
    if (dims[d].step <= reach) return false;
    reach += Wide{dims[d].extent - 1} * dims[d].step;
  }
  return true;
}

}  // namespace

Decision maps_two_indices_to_one(const Extents &shape, const Extents &stride) {
  Dim dims[kMaxDims];
  const int count = merged_dims(shape, stride, dims);
  if (count > 0 && dims[0].step == 0) return Decision::kYes;
  if (is_nested(dims, count)) return Decision::kNo;
  // Two indices meet if their difference, not zero, has offset 0. Up to its sign, the difference
  // is positive in the largest dimension where it is not zero: try each as that dimension.
  Decision worst = Decision::kNo;
  for (int top = count - 1; top >= 1; --top) {
    Equation equation;
    for (int d = 0; d < top; ++d) {
      equation.add(dims[d].step, 1 - Wide{dims[d].extent}, Wide{dims[d].extent} - 1);
    }
    if (dims[top].step == dims[top - 1].step) return Decision::kYes;
    equation.add(dims[top].step, 1, Wide{dims[top].extent} - 1);
    const Decision decision = equation.solvable(0);
    if (decision == Decision::kYes) return decision;
    if (decision == Decision::kUnknown) worst = decision;
  }
  return worst;
}

Decision share_a_byte(const Footprint &a, const Footprint &b) {
  Equation equation;
  // base_a + sum(x * stride_a) - base_b - sum(y * stride_b) = gap, with every stride made positive
  // by counting a negative dimension from its other end.
  Wide target = Wide{b.base} - a.base;
  Wide low = 0;
  Wide high = 0;
  auto add_terms = [&](const Footprint &f, int sign) {
    for (int d = 0; d < f.shape.size(); ++d) {
      const Wide step = Wide{f.stride[d]} * sign;
      const Wide last = Wide{f.shape[d]} - 1;
      if (step == 0 || last == 0) continue;
      if (step > 0) {
        equation.add(step, 0, last);
        high += step * last;
      } else {
        equation.add(-step, -last, 0);
        low += step * last;
      }
    }
  };
  add_terms(a, 1);
  add_terms(b, -1);
  // Element a covers [p, p + a.size), element b [q, q + b.size): they meet if -a.size < p - q <
  // b.size. All that the terms reach is a multiple of the element sizes' common divisor.
  const int64_t unit = std::gcd(a.size, b.size);
  if (target + b.size - 1 < low || target - a.size + 1 > high) return Decision::kNo;
  const bool aligned = target % unit == 0;
  Decision worst = Decision::kNo;
  for (int64_t gap = 1 - a.size; gap < b.size; ++gap) {
    if (aligned && gap % unit != 0) continue;
    const Decision decision = equation.solvable(target + gap);
    if (decision == Decision::kYes) return decision;
    if (decision == Decision::kUnknown) worst = decision;
  }
  return worst;
}

}  // namespace spk
