#include "operations.hpp"

#include <cmath>
#include <limits>

namespace prop {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> checked(const LeafSet &values, const std::vector<Unit> &units, int score_dtype,
                            Buffer *out) {
  std::vector<double> scores;
  scores.reserve(units.size());
  for (size_t u = 0; u < units.size(); ++u) {
    const int64_t index = static_cast<int64_t>(u);
    const quad truth = exact_norm(values_of(values, units[u]), 2);
    if (out == nullptr) {
      scores.push_back(round_to(score_dtype, truth));
      continue;
    }
    scores.push_back(out->live(index));
    if (!norm_is_near(score_dtype, 2, truth, scores.back())) {
      mismatch("norm that decides", index, static_cast<double>(truth), scores.back());
    }
    out->accept(index);
  }
  return scores;
}

void fill_values(Case &c, Values &values, const std::vector<LeafModel> &leaves,
                 const Weights &weights) {
  values.given = c.random.one_in(2);
  if (!values.given) return;
  if (c.random.one_in(6)) {
    values.set = weights.source;
    return;
  }
  std::vector<int> dtypes;
  for (const LeafModel &leaf : leaves) dtypes.push_back(leaf.dtype);
  if (c.random.one_in(3)) {
    values.exact = true;
    for (int &dtype : dtypes) dtype = c.random.pick({SPK_F32, SPK_F64, SPK_F16, SPK_BF16});
  }
  values.set = make_leaves(c, leaves, "values", dtypes);
  if (values.exact) {
    for (size_t l = 0; l < leaves.size(); ++l) fill(c.random, values.set[l], kTies);
  } else {
    fill_leaves(c, values.set);
  }
}

}  // namespace

void expect_value(Buffer &buffer, int64_t index, quad value) {
  if (!is_nan(value)) {
    buffer.expect_bits(index, encode(buffer.dtype(), value));
    return;
  }
  const double got = buffer.live(index);
  if (!std::isnan(got)) mismatch(buffer.label(), index, static_cast<double>(value), got);
  buffer.accept(index);
}

std::vector<double> euclidean_scores(Case &c, const BlockSubject &s, const LeafSet &values,
                                     bool exact_data) {
  const int score = s.model.score_dtype();
  Buffer *out = nullptr;
  if (!exact_data) out = &c.array("norms", score, s.model.numblk());
  c.run([&](spk_context *context) {
    if (out == nullptr) return SPK_OK;
    const spk_buffer api = out->api();
    return spk_block_norms(context, s.handle.get(), values.api(), values.count(), 2, &api);
  });
  std::vector<Unit> units;
  for (int64_t b = 0; b < s.model.numblk(); ++b) units.push_back(s.elements[b]);
  std::vector<double> scores = checked(values, units, score, out);
  c.verify();
  return scores;
}

std::vector<double> euclidean_scores(Case &c, const ScopeSubject &s, const LeafSet &values,
                                     bool exact_data) {
  const int score = s.model.score_dtype();
  const int64_t per_scope = s.model.numblk_per_scope();
  Buffer *out = nullptr;
  if (!exact_data) out = &c.array("norms", score, s.model.numscope() * per_scope);
  c.run([&](spk_context *context) {
    if (out == nullptr) return SPK_OK;
    const spk_buffer api = out->api();
    return spk_scope_block_norms(context, s.handle.get(), values.api(), values.count(), 2, &api);
  });
  std::vector<Unit> units;
  for (int64_t scope = 0; scope < s.model.numscope(); ++scope) {
    for (int64_t i = 0; i < per_scope; ++i) units.push_back(s.unit(scope, i));
  }
  std::vector<double> scores = checked(values, units, score, out);
  c.verify();
  return scores;
}

Values make_values(Case &c, const BlockSubject &s, const Weights &weights) {
  Values values;
  fill_values(c, values, s.model.leaves, weights);
  const bool own_data = values.given && !values.exact;
  if (own_data && &values.set[0] != &weights.source[0]) patch_blocks(c, values.set, s.elements);
  return values;
}

Values make_values(Case &c, const ScopeSubject &s, const Weights &weights) {
  Values values;
  fill_values(c, values, s.leaves, weights);
  const bool own_data = values.given && !values.exact;
  if (own_data && &values.set[0] != &weights.source[0]) {
    for (const Membership &elements : s.elements) patch_blocks(c, values.set, elements);
  }
  return values;
}

Thresholds make_thresholds(Case &c, const std::vector<double> &scores, int64_t count, bool soft) {
  const int dtype = c.random.pick({SPK_F32, SPK_F64});
  const bool single = c.random.one_in(3);
  Buffer &buffer = c.array("thresholds", dtype, single ? 1 : count);
  const double other = c.random.uniform(0, 2);
  for (int64_t i = 0; i < buffer.numel(); ++i) {
    const int64_t last = static_cast<int64_t>(scores.size()) - 1;
    double near = scores[static_cast<size_t>(c.random.between(0, last))];
    if (std::isnan(near)) near = 1;
    double value = near;
    switch (c.random.between(0, 11)) {
      case 0:
        value = 0;
        break;
      case 1:
        value = c.random.one_in(3) ? kInfinity : other;
        break;
      case 2:
        value = std::nextafter(near, c.random.pick({0.0, kInfinity}));
        break;
      case 3:
        value = near * (1 + c.random.normal() * 1e-7);
        break;
      case 4:
        value = other;
        break;
      case 5:
      case 6:
        break;
      default:
        value = near * c.random.uniform(0, 1.1);
    }
    if (!soft && c.random.one_in(20)) value = c.random.pick({-value, -1.0, -0.0, -kInfinity});
    if (soft) value = std::fabs(value);
    buffer.set(i, value);
  }
  return {&buffer};
}

void check_report(const spk_report &report, int64_t total, int64_t requested, int64_t achieved,
                  int64_t ties) {
  same("report total", total, report.total);
  same("report requested", requested, report.requested);
  same("report achieved", achieved, report.achieved);
  same("report ties", ties, report.ties);
  same("report not_converged", 0, report.not_converged);
}

spk_report *maybe(Case &c, spk_report &report) {
  report = junk_report();
  return c.random.one_in(4) ? nullptr : &report;
}

}  // namespace prop
