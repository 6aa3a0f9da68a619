// The truth about norms, selections and soft thresholds, slowly and without cleverness.
#ifndef SPARSEKIT_TESTS_PROPERTY_ORACLE_HPP_
#define SPARSEKIT_TESTS_PROPERTY_ORACLE_HPP_

#include <cstdint>
#include <string>
#include <vector>

#include "numbers.hpp"

namespace prop {

// --- norms -----------------------------------------------------------------------------------

// The Lp norm: exact but for a relative error far below what is tested. NaN in, NaN out, except
// that p = 0 counts it.
quad exact_norm(const std::vector<double> &values, double p);

// Whether `got` is as near to the exact norm as promised: p in {0, 1, 2, +-inf} 1 ulp of the score
// dtype (f64: 2), any other p a relative error of (8 + 16/p) 2^-53 before it is rounded.
bool norm_is_near(int score_dtype, double p, quad exact, double got);

// --- ranks -----------------------------------------------------------------------------------

// Positions by falling score, NaN above +inf, equal scores by position.
std::vector<int64_t> ranking(const std::vector<double> &scores);
bool ranks_equal(double a, double b);

struct Selection {
  std::vector<bool> keep;
  int64_t kept = 0;
  int64_t ties = 0;
};
Selection select_top(const std::vector<double> &scores, int64_t count, int ties_policy);

// Whether `mid` may stand between the k-th score and the next one.
bool mid_is_right(int score_dtype, double kth, double next, double weight, double mid);

// The blocks that a sparsity prunes: floor(sparsity * n * (1 + 2^-50)). Where n is moderate, no
// rounding in double can change that number, except next to an integer: `least` and `most`.
struct PrunedCount {
  int64_t least;
  int64_t most;
};
PrunedCount pruned_count(double sparsity, int64_t n);

// --- soft thresholds -------------------------------------------------------------------------

// One element of a block before and after.
struct SoftElement {
  int dtype;
  uint64_t before_bits;
  uint64_t after_bits;
  double condition;  // h; 1 if there are no conditioners
};

struct SoftBlock {
  std::vector<SoftElement> elements;
  int score_dtype;
  quad threshold;  // with its scale
  bool scaled;     // the library's own scale factor is rounded
};

struct Verdict {
  std::string problem;     // empty: all right
  bool converged = true;   // false: only right for an iteration that ran out of steps
  bool may_count = false;  // a report may count the block as kept
  bool may_miss = false;   // and may not
};

// Euclidean: w max(0, 1 - t / (||w|| + eps)).
Verdict check_euclidean(const SoftBlock &block, double eps);

// Conditioned: some t' within 16 * 2^-53 t has these bits as its rounded minimiser, up to 1 ulp
// (f64: 4). `tolerance` is the relative error that the caller left to the root.
Verdict check_conditioned(const SoftBlock &block, double tolerance);

}  // namespace prop

#endif  // SPARSEKIT_TESTS_PROPERTY_ORACLE_HPP_
