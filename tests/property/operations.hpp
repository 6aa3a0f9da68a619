// The operations under test. An operation is one function of a case; a further one needs a line in
// the table of its file, and its cells appear in the final table by themselves.
#ifndef SPARSEKIT_TESTS_PROPERTY_OPERATIONS_HPP_
#define SPARSEKIT_TESTS_PROPERTY_OPERATIONS_HPP_

#include <vector>

#include "case.hpp"
#include "data.hpp"
#include "oracle.hpp"
#include "subject.hpp"

namespace prop {

struct Operation {
  const char *name;
  void (*run)(Case &c);
  bool couples = true;  // false: works on one view, so that class kCoupled does not exist
};

using Operations = std::vector<Operation>;
Operations measuring_operations();   // ops_measure.cpp
Operations writing_operations();     // ops_write.cpp
Operations soft_operations();        // ops_soft.cpp
Operations arranging_operations();   // ops_arrange.cpp
Operations describing_operations();  // ops_describe.cpp
Operations selecting_operations();   // ops_select.cpp
Operations one_call_operations();    // ops_one_call.cpp
Operations refusing_operations();    // ops_refuse.cpp

// --- what several operations need ------------------------------------------------------------

// Any sign of zero and any NaN payload: what is written is fixed up to those of NaN.
void expect_value(Buffer &buffer, int64_t index, quad value);

// Scores as the library sees them: Euclidean norms of the blocks, checked against the truth. The
// scope's are in the order of its score arrays. With `exact_data` they are not asked for: the data
// is such that every way to sum it gives the rounded truth.
std::vector<double> euclidean_scores(Case &c, const BlockSubject &s, const LeafSet &values,
                                     bool exact_data = false);
std::vector<double> euclidean_scores(Case &c, const ScopeSubject &s, const LeafSet &values,
                                     bool exact_data = false);

// Tensors whose norms decide instead of the weights'.
struct Values {
  bool given = false;
  bool exact = false;  // dtypes of their own: small integers, see euclidean_scores
  LeafSet set;

  const spk_buffer *api() const { return given ? set.api() : nullptr; }
};
Values make_values(Case &c, const BlockSubject &s, const Weights &weights);
Values make_values(Case &c, const ScopeSubject &s, const Weights &weights);

// A threshold array of either dtype with `count` entries or a single one, drawn around `scores`.
struct Thresholds {
  Buffer *buffer;
  double at(int64_t index) const { return buffer->before(buffer->numel() == 1 ? 0 : index); }
};
Thresholds make_thresholds(Case &c, const std::vector<double> &scores, int64_t count, bool soft);

void check_report(const spk_report &report, int64_t total, int64_t requested, int64_t achieved,
                  int64_t ties);

// Whether the case passes a report to the library.
spk_report *maybe(Case &c, spk_report &report);

}  // namespace prop

#endif  // SPARSEKIT_TESTS_PROPERTY_OPERATIONS_HPP_
