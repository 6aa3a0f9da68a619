// N:M and unstructured pruning in one call. The magnitude of one element is its own norm, exactly,
// so these need no score of the library.
#include <cmath>

#include "operations.hpp"

namespace prop {

namespace {

double magnitude_before(const Buffer &weights, int64_t index) {
  return std::fabs(weights.before(index));
}

void expect_kept(const Weights &weights, int64_t index, bool keep) {
  const Element e = {0, index};
  keep ? weights.expect_same(e) : weights.expect_zero(e);
}

void prune_nm(Case &c) {
  const int64_t m = c.random.pick<int64_t>({1, 2, 4, 4, 4, 8, 16, 5, 7, 33});
  const int64_t n = c.random.between(0, m);
  const size_t wanted_axis = c.random.pick<size_t>({0, 0, 1, 1, 2, 3});
  const ViewSubject s = make_grouped_view(c, m, wanted_axis);
  const Dims &shape = s.model.leaves[0].view.shape;
  int32_t axis = static_cast<int32_t>(wanted_axis);
  if (c.random.one_in(2)) axis -= static_cast<int32_t>(shape.size());
  c.note([&] {
    return std::to_string(n) + ":" + std::to_string(m) + " along axis " + std::to_string(axis);
  });
  const Weights weights = make_weights(c, s);
  spk_report report;
  spk_report *const asked = maybe(c, report);
  c.run([&](spk_context *context) {
    return spk_prune_nm(context, s.view.get(), weights.leaves(), weights.into(), axis, n, m, asked);
  });
  Dims groups_shape = shape;
  groups_shape[wanted_axis] /= m;
  Dims group(shape.size(), 0);
  int64_t ties = 0;
  do {
    std::vector<int64_t> places;
    std::vector<double> scores;
    for (int64_t i = 0; i < m; ++i) {
      Dims index = group;
      index[wanted_axis] = group[wanted_axis] * m + i;
      places.push_back(row_major(index, shape));
      scores.push_back(magnitude_before(weights.source[0], places.back()));
    }
    const Selection selection = select_top(scores, n, SPK_TIES_BY_POSITION);
    ties += selection.ties;
    for (size_t i = 0; i < places.size(); ++i) expect_kept(weights, places[i], selection.keep[i]);
  } while (advance(group, groups_shape));
  const int64_t total = product(shape);
  if (asked != nullptr) check_report(report, total, total / m * n, total / m * n, ties);
  c.verify();
}

void prune_unstructured(Case &c) {
  const ViewSubject s = make_view(c);
  const Weights weights = make_weights(c, s);
  const Buffer &leaf = weights.source[0];
  const int64_t numel = leaf.numel();
  double sparsity = c.random.pick({0.0, 1.0, 0.5, 0.29, 0.9, c.random.unit(), c.random.unit()});
  if (c.random.one_in(3)) {
    sparsity = static_cast<double>(c.random.between(0, numel)) / static_cast<double>(numel);
  }
  c.note([&] { return "sparsity " + show(sparsity); });
  spk_report report = junk_report();
  c.run([&](spk_context *context) {
    return spk_prune_unstructured(context, s.view.get(), weights.leaves(), weights.into(), sparsity,
                                  &report);
  });
  const PrunedCount pruned = pruned_count(sparsity, numel);
  if (report.achieved > numel - pruned.least || report.achieved < numel - pruned.most) {
    same("report achieved", numel - pruned.least, report.achieved);
  }
  std::vector<double> scores;
  for (int64_t i = 0; i < numel; ++i) scores.push_back(magnitude_before(leaf, i));
  const Selection selection = select_top(scores, report.achieved, SPK_TIES_BY_POSITION);
  for (int64_t i = 0; i < numel; ++i) {
    expect_kept(weights, i, selection.keep[static_cast<size_t>(i)]);
  }
  check_report(report, numel, report.achieved, report.achieved, selection.ties);
  c.verify();
}

}  // namespace

Operations one_call_operations() {
  return {{"prune_nm", prune_nm, false}, {"prune_unstructured", prune_unstructured, false}};
}

}  // namespace prop
