// Soft thresholds: Euclidean and conditioned, of blocks and of scopes.
#include <cfloat>
#include <cmath>
#include <limits>

#include "operations.hpp"

namespace prop {

namespace {

// Conditioners as training makes them, and as nobody should.
void fill_conditioner(Random &random, Buffer &buffer) {
  const int dtype = buffer.dtype();
  const double low = smallest_normal(dtype);
  const double high = largest_finite(dtype);
  const double spread = random.pick({0.5, 3.0, 10.0, 60.0});
  const int64_t kind = random.between(0, 4);
  for (int64_t i = 0; i < buffer.numel(); ++i) {
    double h = 1;
    switch (kind) {
      case 0:  // Adam's sqrt(v) + eps
        h = std::fabs(random.normal()) * 1e-3 + 1e-8;
        break;
      case 1:
        h = random.log_uniform(std::exp(-spread), std::exp(spread));
        break;
      case 2:
        h = static_cast<double>(random.between(1, 4));
        break;
      case 3:
        // In f64 half the range: what the header promises of conditioners and weights of one block.
        h = std::exp(random.uniform(std::log(low), std::log(high)) *
                     (dtype == SPK_F64 ? 0.45 : 0.9));
        break;
      default:
        break;
    }
    buffer.set(i, std::fmin(std::fmax(h, low), high));
  }
}

LeafSet make_conditioners(Case &c, const std::vector<LeafModel> &leaves) {
  std::vector<int> dtypes;
  const bool own = c.random.one_in(2);
  for (const LeafModel &leaf : leaves) {
    const int other = c.random.pick({SPK_F32, SPK_F32, SPK_F64, SPK_F16, SPK_BF16});
    dtypes.push_back(own ? other : leaf.dtype);
  }
  LeafSet set = make_leaves(c, leaves, "conditioner", dtypes);
  for (size_t l = 0; l < set.size(); ++l) fill_conditioner(c.random, set[l]);
  return set;
}

// Norms to draw thresholds around: ||w||, or ||h . w||.
std::vector<double> threshold_marks(const LeafSet &weights, const LeafSet *conditioners,
                                    const std::vector<Unit> &units, double scale) {
  std::vector<double> marks;
  for (const Unit &unit : units) {
    quad squares = 0;
    for (const Element &e : unit) {
      const Buffer &w = weights[e.leaf];
      quad product = decode(w.dtype(), w.live_bits(e.index));
      if (conditioners != nullptr) {
        const Buffer &h = (*conditioners)[e.leaf];
        product *= decode(h.dtype(), h.live_bits(e.index));
      }
      squares += product * product;
    }
    marks.push_back(static_cast<double>(square_root(squares)) / scale);
  }
  return marks;
}

// What a call of either kind is about: its units, and the threshold and score dtype of each.
struct Task {
  std::vector<Unit> units;
  std::vector<int64_t> threshold_index;
  // Score dtype of the unit's own block, and that of the handle: equal but in a scope coupling.
  std::vector<int> own_score_dtype;
  int score_dtype;
  int64_t thresholds;
  std::vector<LeafModel> leaves;
};

Task task_of(const BlockSubject &s) {
  Task task = {{}, {}, {}, s.model.score_dtype(), s.model.numblk(), s.model.leaves};
  for (int64_t b = 0; b < s.model.numblk(); ++b) {
    task.units.push_back(s.elements[b]);
    task.threshold_index.push_back(b);
    task.own_score_dtype.push_back(task.score_dtype);
  }
  return task;
}

Task task_of(const ScopeSubject &s) {
  Task task = {{}, {}, {}, s.model.score_dtype(), s.model.numscope(), s.leaves};
  for (int64_t scope = 0; scope < s.model.numscope(); ++scope) {
    for (int64_t i = 0; i < s.model.numblk_per_scope(); ++i) {
      const Competitor &one = s.competitors[static_cast<size_t>(scope)][static_cast<size_t>(i)];
      task.units.push_back(s.unit(scope, i));
      task.threshold_index.push_back(scope);
      task.own_score_dtype.push_back(s.model.members[one.member].block.score_dtype());
    }
  }
  return task;
}

spk_status call_library(spk_context *context, const BlockSubject &s, const Weights &weights,
                        const spk_buffer *thresholds, const spk_soft_options *options,
                        spk_report *report) {
  return spk_block_soft_threshold(context, s.handle.get(), weights.leaves(), weights.into(),
                                  weights.count(), thresholds, options, report);
}

spk_status call_library(spk_context *context, const ScopeSubject &s, const Weights &weights,
                        const spk_buffer *thresholds, const spk_soft_options *options,
                        spk_report *report) {
  return spk_scope_soft_threshold(context, s.handle.get(), weights.leaves(), weights.into(),
                                  weights.count(), thresholds, options, report);
}

SoftBlock soft_block(const Weights &weights, const LeafSet *conditioners, Unit unit) {
  SoftBlock block = {};
  for (const Element &e : unit) {
    Buffer &target = weights.target[e.leaf];
    const double h = conditioners == nullptr ? 1 : conditioners->before(e);
    block.elements.push_back(
        {target.dtype(), weights.before_bits(e), target.live_bits(e.index), h});
    target.accept(e.index);
  }
  return block;
}

double default_eps(int score_dtype) {
  return score_dtype == SPK_F64 ? DBL_EPSILON : FLT_EPSILON;
}

// Counts of the verdicts, against which a report is checked.
struct Tally {
  int64_t least_kept = 0;
  int64_t most_kept = 0;
  int64_t unconverged = 0;

  void add(const Verdict &verdict) {
    if (!verdict.problem.empty()) mismatch(verdict.problem);
    if (!verdict.may_miss) ++least_kept;
    if (verdict.may_count) ++most_kept;
    if (!verdict.converged) ++unconverged;
  }
};

void check_soft_report(const spk_report &report, const Tally &tally, int64_t total,
                       spk_status status) {
  same("report total", total, report.total);
  same("report requested", -1, report.requested);
  same("report ties", 0, report.ties);
  if (report.achieved < tally.least_kept || report.achieved > tally.most_kept) {
    mismatch("report achieved: expected " + std::to_string(tally.least_kept) + " to " +
             std::to_string(tally.most_kept) + ", got " + std::to_string(report.achieved));
  }
  if (report.not_converged < tally.unconverged || report.not_converged > tally.most_kept) {
    mismatch("report not_converged: expected at least " + std::to_string(tally.unconverged) +
             ", got " + std::to_string(report.not_converged));
  }
  same("status says that steps ran out", report.not_converged > 0, status == SPK_NOT_CONVERGED);
}

template <class Subject>
void soft_threshold(Case &c, const Subject &s, bool conditioned) {
  const Task task = task_of(s);
  const Weights weights = make_weights(c, s);
  LeafSet conditioners;
  if (conditioned) conditioners = make_conditioners(c, task.leaves);
  const LeafSet *const h = conditioned ? &conditioners : nullptr;

  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.conditioners = conditioned ? conditioners.api() : nullptr;
  options.scale = c.random.one_in(4) ? 1 : 0;
  if (conditioned) {
    options.atol = c.random.pick({0.0, 0.0, -1.0, 1e-8, 1e-4});
    options.max_iter = c.random.pick({0, 64, 64, 64, 1, 2, 5});
    options.eps = c.random.pick({-1.0, 0.0, 0.5});
  } else {
    options.eps = c.random.pick({-1.0, -1.0, 0.0, 0.0, 1e-3, 1.0});
  }
  const bool all_default = !conditioned && options.eps < 0 && options.scale == 0;
  const spk_soft_options *const told = all_default && c.random.one_in(2) ? nullptr : &options;
  c.note([&] {
    return "scale " + std::to_string(options.scale) + ", eps " + show(options.eps) + ", atol " +
           show(options.atol) + ", max_iter " + std::to_string(options.max_iter);
  });
  const double scale =
      options.scale != 0 ? std::sqrt(static_cast<double>(task.units[0].size())) : 1;
  const std::vector<double> marks = threshold_marks(weights.source, h, task.units, scale);
  const Thresholds thresholds = make_thresholds(c, marks, task.thresholds, true);

  spk_report report;
  spk_report *const asked = maybe(c, report);
  const spk_status status = c.call([&](spk_context *context) {
    const spk_buffer api = thresholds.buffer->api();
    return call_library(context, s, weights, &api, told, asked);
  });
  if (!conditioned || status != SPK_NOT_CONVERGED) c.require(status, "the call");

  Tally tally;
  for (size_t u = 0; u < task.units.size(); ++u) {
    SoftBlock block = soft_block(weights, h, task.units[u]);
    block.score_dtype = task.own_score_dtype[u];
    block.scaled = options.scale != 0;
    block.threshold = thresholds.at(task.threshold_index[u]);
    const quad size = static_cast<quad>(task.units[u].size());
    // A product that no double can hold is infinite.
    if (block.scaled) block.threshold *= square_root(size);
    if (std::isinf(static_cast<double>(block.threshold))) {
      block.threshold = std::numeric_limits<double>::infinity();
    }
    if (conditioned) {
      // The last step bounds the error that is left, with room for slow convergence.
      const double atol = options.atol < 0 ? 1e-8 : options.atol;
      tally.add(check_conditioned(block, 4 * atol));
      continue;
    }
    double eps = options.eps < 0 ? default_eps(task.score_dtype) : options.eps;
    tally.add(check_euclidean(block, eps));
  }
  const int64_t total = static_cast<int64_t>(task.units.size());
  if (asked != nullptr) check_soft_report(report, tally, total, status);
  if (status == SPK_OK) same("blocks off the root", 0, tally.unconverged);
  c.verify();
}

// Exact roots cost the oracle more per element.
constexpr Size kConditionedSize = {64, 70000};

void block_soft(Case &c) {
  soft_threshold(c, make_block(c), false);
}
void scope_soft(Case &c) {
  soft_threshold(c, make_scope(c), false);
}
void block_conditioned(Case &c) {
  soft_threshold(c, make_block(c, kConditionedSize), true);
}
void scope_conditioned(Case &c) {
  soft_threshold(c, make_scope(c, 1, kConditionedSize), true);
}

// The convenience belongs here: it is checked in the same way.
void soft_threshold_blocks(Case &c) {
  const ViewSubject s = make_view(c);
  const Task task = task_of(s);
  const Weights weights = make_weights(c, s);
  const std::vector<double> marks = threshold_marks(weights.source, nullptr, task.units, 1);
  double threshold = marks[static_cast<size_t>(c.random.between(0, s.model.numblk() - 1))];
  if (c.random.one_in(2)) threshold *= c.random.unit();
  if (std::isnan(threshold)) threshold = 1;
  c.note([&] { return "threshold " + show(threshold); });
  spk_report report;
  spk_report *const asked = maybe(c, report);
  const spk_status status = c.call([&](spk_context *context) {
    return spk_soft_threshold_blocks(context, s.view.get(), weights.leaves(), weights.into(),
                                     static_cast<int32_t>(s.told.size()), s.told.data(), threshold,
                                     asked);
  });
  c.require(status, "the call");
  Tally tally;
  for (const Unit &unit : task.units) {
    SoftBlock block = soft_block(weights, nullptr, unit);
    block.score_dtype = task.score_dtype;
    block.threshold = threshold;
    tally.add(check_euclidean(block, default_eps(task.score_dtype)));
  }
  if (asked != nullptr) check_soft_report(report, tally, s.model.numblk(), status);
  c.verify();
}

}  // namespace

Operations soft_operations() {
  return {{"soft", block_soft},
          {"soft_conditioned", block_conditioned},
          {"scope_soft", scope_soft},
          {"scope_conditioned", scope_conditioned},
          {"soft_blocks", soft_threshold_blocks, false}};
}

}  // namespace prop
