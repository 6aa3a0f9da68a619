// Soft thresholds are checked rather than computed: from the result follows what the library must
// have taken for its only unknown, and that must be as near to the truth as promised.
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle.hpp"

namespace prop {

namespace {

// Relative error of an own norm in units of 2^-53. Data that is not f64 is summed in double, whose
// error may grow with the number of terms; f64 data promises 2 ulp.
double norm_slack(const SoftBlock &block) {
  return 8 + (block.score_dtype == SPK_F64 ? 0.0 : static_cast<double>(block.elements.size()) / 64);
}

quad value_before(const SoftElement &e) {
  return decode(e.dtype, e.before_bits);
}
quad value_after(const SoftElement &e) {
  return decode(e.dtype, e.after_bits);
}

bool sign_kept(const SoftElement &e) {
  return ((e.after_bits ^ e.before_bits) >> (8 * element_size(e.dtype) - 1)) == 0;
}

bool all_zero(const SoftBlock &block) {
  return std::all_of(block.elements.begin(), block.elements.end(),
                     [](const SoftElement &e) { return e.after_bits == 0; });
}

std::string place(size_t i, const SoftElement &e) {
  return "element " + std::to_string(i) + " of the block, " + dtype_name(e.dtype) + ", was " +
         show(decode(e.dtype, e.before_bits)) + " bits " + show_bits(e.before_bits) + ", is " +
         show(decode(e.dtype, e.after_bits)) + " bits " + show_bits(e.after_bits);
}

// Relative error of the threshold: its product with a scale is rounded twice, next to the smallest
// double with an absolute error.
quad threshold_slack(const SoftBlock &block) {
  if (!block.scaled || block.threshold == 0) return 0;
  return 2 * static_cast<quad>(kUnit) + ulp_at(SPK_F64, block.threshold) / block.threshold;
}

// Where a block is not what it was, bit for bit; empty if it is.
std::string changed_element(const SoftBlock &block) {
  for (size_t i = 0; i < block.elements.size(); ++i) {
    const SoftElement &e = block.elements[i];
    if (e.after_bits == e.before_bits) continue;
    return "a block that stays was changed at " + place(i, e) + "; threshold " +
           show(static_cast<double>(block.threshold));
  }
  return "";
}

// ||h . w||, or ||w|| without conditioners.
quad weighted_norm(const SoftBlock &block) {
  quad squares = 0;
  for (const SoftElement &e : block.elements) {
    const quad product = value_before(e) * e.condition;
    squares += product * product;
  }
  return square_root(squares);
}

bool is_small_integer(quad value) {
  return magnitude(value) <= 1024 && static_cast<quad>(static_cast<int>(value)) == value;
}

// Whether any sane summation finds this norm without an error.
bool norm_is_certain(const SoftBlock &block, quad norm) {
  constexpr size_t kMostTerms = 4096;
  return !block.scaled && is_small_integer(norm) && block.elements.size() <= kMostTerms &&
         std::all_of(block.elements.begin(), block.elements.end(), [](const SoftElement &e) {
           return is_small_integer(value_before(e)) && is_small_integer(e.condition);
         });
}

// Blocks that are decided by what they hold: NaN, infinities, an infinite threshold. True if so.
bool decide_special(const SoftBlock &block, Verdict &verdict) {
  bool has_nan = false;
  bool has_infinity = false;
  for (const SoftElement &e : block.elements) {
    has_nan = has_nan || is_nan(value_before(e));
    has_infinity = has_infinity || is_infinite(value_before(e));
  }
  const bool infinite_threshold = is_infinite(block.threshold);
  if (!has_nan && !has_infinity && !infinite_threshold) return false;
  const bool dies = infinite_threshold && !has_nan;
  (dies ? verdict.may_miss : verdict.may_count) = true;
  if (dies && !all_zero(block)) verdict.problem = "a block with threshold +inf is not +0.0";
  if (!dies) verdict.problem = changed_element(block);
  return true;
}

enum class Life { kDead, kAlive, kOnTheEdge };

Life life_of(const SoftBlock &block, quad norm, quad relative_slack) {
  const quad t = block.threshold;
  if (norm_is_certain(block, norm)) return norm <= t ? Life::kDead : Life::kAlive;
  if (norm <= t * (1 - relative_slack)) return Life::kDead;
  return norm > t * (1 + relative_slack) ? Life::kAlive : Life::kOnTheEdge;
}

// Whether the zeros of the block settle the matter.
bool decide_dead(const SoftBlock &block, Life life, Verdict &verdict) {
  verdict.may_miss = life != Life::kAlive;
  verdict.may_count = life != Life::kDead;
  if (life == Life::kAlive) return false;
  if (all_zero(block)) return true;
  if (life == Life::kDead) verdict.problem = "a block with norm <= threshold is not +0.0";
  return life == Life::kDead;
}

}  // namespace

Verdict check_euclidean(const SoftBlock &block, double eps) {
  Verdict verdict;
  if (decide_special(block, verdict)) return verdict;
  const quad norm = weighted_norm(block);
  if (norm == 0) {
    verdict.may_miss = true;
    if (!all_zero(block)) verdict.problem = "a block of zeros is not +0.0";
    return verdict;
  }
  // Norms next to the smallest double carry an absolute error.
  const quad norm_error =
      std::max(norm_slack(block) * static_cast<quad>(kUnit), 2 * ulp_at(SPK_F64, norm) / norm);
  const quad slack = norm_error + threshold_slack(block);
  if (decide_dead(block, life_of(block, norm, slack), verdict)) return verdict;
  // Finite elements whose norm no double can hold: that norm is +inf.
  const bool overflows = norm > static_cast<quad>(std::numeric_limits<double>::max());
  if (overflows && changed_element(block).empty()) return verdict;

  const quad ratio = block.threshold / (norm + eps);
  const quad factor = 1 - ratio;
  const quad factor_error = ratio * (slack + 3 * static_cast<quad>(kUnit)) +
                            magnitude(factor) * 2 * static_cast<quad>(kUnit);
  for (size_t i = 0; i < block.elements.size(); ++i) {
    const SoftElement &e = block.elements[i];
    const quad exact = value_before(e) * std::max<quad>(factor, 0);
    const quad rounding = ulp_at(e.dtype, exact) / 2 * (1 + power_of_two(-20));
    const quad allowed = magnitude(value_before(e)) * factor_error + rounding;
    if (magnitude(value_after(e) - exact) <= allowed && sign_kept(e)) continue;
    verdict.problem = place(i, e) + ", must be " + show(static_cast<double>(exact)) + " up to " +
                      show(static_cast<double>(allowed)) + "; norm " +
                      show(static_cast<double>(norm)) + ", threshold " +
                      show(static_cast<double>(block.threshold));
    return verdict;
  }
  return verdict;
}

namespace {

// ||h w / (1 + h nu)||, which falls as nu grows and is the threshold at the root nu = ||x|| / t.
quad secular(const SoftBlock &block, quad nu) {
  quad squares = 0;
  for (const SoftElement &e : block.elements) {
    const quad h = e.condition;
    const quad term = h * value_before(e) / (1 + h * nu);
    squares += term * term;
  }
  return square_root(squares);
}

// The values of nu that explain every element: x = w h nu / (1 + h nu) turned round.
struct Range {
  quad low = 0;
  quad high = 0;
  bool bounded = false;
  size_t low_from = 0;
  size_t high_from = 0;
  std::string problem;
};

Range explaining_range(const SoftBlock &block) {
  Range range;
  for (size_t i = 0; i < block.elements.size(); ++i) {
    const SoftElement &e = block.elements[i];
    const quad w = magnitude(value_before(e));
    const quad x = magnitude(value_after(e));
    const quad ulps = (e.dtype == SPK_F64 ? 4 : 1) * ulp_at(e.dtype, x);
    // A zero may also come from a block that was taken for dead, and that has no sign.
    if ((x != 0 && !sign_kept(e)) || !(x <= w + ulps) || (w == 0 && x != 0)) {
      range.problem = place(i, e) + ": no shrinking explains it";
      return range;
    }
    if (w == 0) continue;
    const quad h = e.condition;
    const quad low = (x - ulps) / (h * (w - x + ulps));
    if (low > range.low) {
      range.low = low;
      range.low_from = i;
    }
    const quad gap = w - x - ulps;
    if (gap <= 0) continue;
    const quad high = (x + ulps) / (h * gap);
    if (range.bounded && high >= range.high) continue;
    range.bounded = true;
    range.high = high;
    range.high_from = i;
  }
  return range;
}

}  // namespace

Verdict check_conditioned(const SoftBlock &block, double tolerance) {
  Verdict verdict;
  if (decide_special(block, verdict)) return verdict;
  if (block.threshold == 0) {
    verdict.may_count = true;
    // A block of zeros is dead by the one rule and unchanged by the other.
    verdict.may_miss = weighted_norm(block) == 0;
    verdict.problem = changed_element(block);
    return verdict;
  }
  const quad slack = 16 * static_cast<quad>(kUnit) + threshold_slack(block);
  const quad norm = weighted_norm(block);
  if (decide_dead(block, life_of(block, norm, slack), verdict)) return verdict;

  Range range = explaining_range(block);
  verdict.problem = range.problem;
  if (!verdict.problem.empty()) return verdict;
  range.low *= 1 - static_cast<quad>(tolerance);
  range.high *= 1 + static_cast<quad>(tolerance);
  if (range.bounded && range.low > range.high * (1 + power_of_two(-90))) {
    const SoftElement &low = block.elements[range.low_from];
    const SoftElement &high = block.elements[range.high_from];
    verdict.problem = "no single multiplier explains " + place(range.low_from, low) + " with h " +
                      show(low.condition) + " and " + place(range.high_from, high) + " with h " +
                      show(high.condition) + "; norm " + show(static_cast<double>(norm)) +
                      ", threshold " + show(static_cast<double>(block.threshold));
    return verdict;
  }
  // Some nu of the range must solve the equation for a t' near t.
  const quad at_low = secular(block, range.low);
  const quad at_high = range.bounded ? secular(block, range.high) : 0;
  const bool too_far = at_low < block.threshold * (1 - slack);
  if (too_far) verdict.problem = "the block is shrunk too little";
  verdict.converged = at_high <= block.threshold * (1 + slack);
  if (too_far) {
    verdict.problem +=
        ": its elements solve for thresholds in [" + show(static_cast<double>(at_high)) + ", " +
        show(static_cast<double>(at_low)) + "], not for " +
        show(static_cast<double>(block.threshold)) + "; norm " + show(static_cast<double>(norm));
  }
  return verdict;
}

}  // namespace prop
