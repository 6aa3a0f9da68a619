#include "oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace prop {

namespace {

const double kInfinity = std::numeric_limits<double>::infinity();

bool is_plain_power(double p) {
  return p == 0 || p == 1 || p == 2 || std::isinf(p);
}

// max * (sum (|x| / max)^p)^(1/p). Relative errors of long double (2^-64) grow by at most 1/p when
// the root is taken, which leaves 2^-57 at p = 0.01, where 2^-42 is asked for.
quad general_norm(const std::vector<double> &values, double largest, double p) {
  if (largest == 0 || std::isinf(largest)) return largest;
  quad sum = 0;
  for (double value : values) {
    const long double ratio = static_cast<long double>(std::fabs(value)) / largest;
    sum += std::pow(ratio, static_cast<long double>(p));
  }
  return static_cast<quad>(
             std::pow(static_cast<long double>(sum), 1 / static_cast<long double>(p))) *
         largest;
}

}  // namespace

quad exact_norm(const std::vector<double> &values, double p) {
  if (p == 0) {
    return static_cast<quad>(
        std::count_if(values.begin(), values.end(), [](double x) { return x != 0; }));
  }
  double largest = 0;
  double smallest = kInfinity;
  quad sum = 0;
  quad squares = 0;
  for (double value : values) {
    if (std::isnan(value)) return value;
    const double size = std::fabs(value);
    largest = std::max(largest, size);
    smallest = std::min(smallest, size);
    if (p == 1) sum += size;
    if (p == 2) squares += static_cast<quad>(size) * size;
  }
  if (p == -kInfinity) return smallest;
  if (p == kInfinity) return largest;
  if (p == 1) return sum;
  if (p == 2) return square_root(squares);
  return general_norm(values, largest, p);
}

bool norm_is_near(int score_dtype, double p, quad exact, double got) {
  if (is_nan(exact) || std::isnan(got)) return is_nan(exact) && std::isnan(got);
  if (is_infinite(exact)) return std::isinf(got) && got > 0;
  if (is_plain_power(p)) {
    const quad allowed = ulp_at(score_dtype, exact) * (score_dtype == SPK_F64 ? 2 : 1);
    const quad value = finite_or_next(score_dtype, got);
    // Infinity is right for anything past the largest number.
    if (std::isinf(got) && exact >= value) return true;
    return magnitude(value - exact) <= allowed;
  }
  const quad relative = (8 + 16 / static_cast<quad>(p)) * kUnit;
  return got >= round_to(score_dtype, exact * (1 - relative)) &&
         got <= round_to(score_dtype, exact * (1 + relative));
}

bool ranks_equal(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

std::vector<int64_t> ranking(const std::vector<double> &scores) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    const double a = scores[static_cast<size_t>(i)];
    const double b = scores[static_cast<size_t>(j)];
    return std::isnan(a) ? !std::isnan(b) : a > b;
  });
  return order;
}

Selection select_top(const std::vector<double> &scores, int64_t count, int ties_policy) {
  const std::vector<int64_t> order = ranking(scores);
  const int64_t n = static_cast<int64_t>(scores.size());
  const auto score = [&](int64_t rank) {
    return scores[static_cast<size_t>(order[static_cast<size_t>(rank)])];
  };
  Selection selection;
  const bool cut_in_tie = count > 0 && count < n && ranks_equal(score(count - 1), score(count));
  selection.kept = count;
  if (cut_in_tie) {
    for (int64_t rank = 0; rank < n; ++rank) {
      if (!ranks_equal(score(rank), score(count))) continue;
      ++selection.ties;
      if (ties_policy == SPK_TIES_KEEP_ALL) selection.kept = rank + 1;
    }
  }
  selection.keep.assign(scores.size(), false);
  for (int64_t rank = 0; rank < selection.kept; ++rank) {
    selection.keep[static_cast<size_t>(order[static_cast<size_t>(rank)])] = true;
  }
  return selection;
}

bool mid_is_right(int score_dtype, double kth, double next, double weight, double mid) {
  if (std::isnan(kth)) return std::isnan(next) ? std::isnan(mid) : mid == kInfinity;
  if (kth == next) return mid == kth;
  if (!(next < mid && mid <= kth)) return false;
  // With an infinite end only the order can be asked for, which makes +inf the middle of x and
  // +inf as the formula has it.
  if (std::isinf(next)) return true;
  if (std::isinf(kth)) return mid == kth;
  const quad exact = (static_cast<quad>(weight) * kth + next) / (static_cast<quad>(weight) + 1);
  const quad larger = std::max(std::fabs(kth), std::fabs(next));
  return magnitude(mid - exact) <= 4 * ulp_at(score_dtype, larger);
}

PrunedCount pruned_count(double sparsity, int64_t n) {
  const quad wanted = static_cast<quad>(sparsity) * n * (1 + power_of_two(-50));
  const quad slack = wanted * power_of_two(-51);
  const auto whole = [&](quad x) { return std::min(n, static_cast<int64_t>(x)); };
  return {whole(wanted - slack), whole(wanted + slack)};
}

}  // namespace prop
