// Exact selection: k-th scores, counts, ties, masks.
#include <cmath>

#include "operations.hpp"

namespace prop {

namespace {

// The scores that a selection goes by, from whichever source the case draws.
struct Source {
  std::vector<double> scores;
  Values values;
  Buffer *array = nullptr;
};

Buffer &make_score_array(Case &c, const ScopeSubject &s) {
  const int64_t count = s.model.numscope() * s.model.numblk_per_scope();
  Buffer &array = c.array("scores", s.model.score_dtype(), count);
  fill(c.random, array, c.random.one_in(2) ? kTies : random_mix(c.random));
  return array;
}

std::vector<double> contents(const Buffer &array) {
  std::vector<double> scores;
  for (int64_t i = 0; i < array.numel(); ++i) {
    scores.push_back(decode(array.dtype(), array.live_bits(i)));
  }
  return scores;
}

// Norms of the weights, unless the case draws values or scores.
Source make_source(Case &c, const ScopeSubject &s, const Weights &weights, bool must_be_given) {
  Source source;
  if (c.random.one_in(2)) {
    source.array = &make_score_array(c, s);
    source.scores = contents(*source.array);
    return source;
  }
  source.values = make_values(c, s, weights);
  if (must_be_given && !source.values.given) {
    source.values.given = true;
    source.values.set = weights.source;
  }
  source.scores = euclidean_scores(c, s, source.values.given ? source.values.set : weights.source,
                                   source.values.exact);
  return source;
}

std::vector<double> scores_of_scope(const std::vector<double> &scores, int64_t scope,
                                    int64_t per_scope) {
  const auto first = scores.begin() + scope * per_scope;
  return {first, first + per_scope};
}

// Either one number for all scopes or one for each, in [low, high].
Dims random_counts(Random &random, int64_t scopes, int64_t low, int64_t high) {
  Dims counts(static_cast<size_t>(random.one_in(2) ? 1 : scopes));
  for (int64_t &count : counts) {
    count = random.between(low, high);
    if (random.one_in(4)) count = random.pick({low, high});
  }
  return counts;
}

int64_t count_of(const Dims &counts, int64_t scope) {
  return counts.size() == 1 ? counts[0] : counts[static_cast<size_t>(scope)];
}

// --- k-th scores -----------------------------------------------------------------------------

spk_score_source api_source(const Source &source, const spk_buffer *scores) {
  spk_score_source api = {};
  api.struct_size = sizeof api;
  api.values = source.values.api();
  api.scores = source.array == nullptr ? nullptr : scores;
  return api;
}

// The k-th score of a scope and the one after it.
struct Neighbours {
  double kth;
  double next;
};

Neighbours neighbours(const std::vector<double> &scores, int64_t k) {
  const std::vector<int64_t> order = ranking(scores);
  const auto score = [&](int64_t rank) {
    return scores[static_cast<size_t>(order[static_cast<size_t>(rank)])];
  };
  const int64_t n = static_cast<int64_t>(scores.size());
  return {score(k - 1), k < n ? score(k) : 0};
}

bool is_one_ulp_near(int dtype, double expected, double got) {
  return norm_is_near(dtype, 2, static_cast<quad>(expected), got);
}

void kth(Case &c, bool middle) {
  const ScopeSubject s = make_scope(c, middle ? 2 : 1);
  const Weights weights = make_weights(c, s);
  const Source source = make_source(c, s, weights, true);
  const int64_t per_scope = s.model.numblk_per_scope();
  const int64_t scopes = s.model.numscope();
  const Dims k = random_counts(c.random, scopes, 1, middle ? per_scope - 1 : per_scope);
  double weight = c.random.pick({1.0, 1.0, 3.0, 0.25, 1e300, 1e-300});
  if (c.random.one_in(3)) weight = c.random.log_uniform(0.01, 100);
  c.note([&] { return "k " + text_of(k) + (middle ? ", k_weight " + show(weight) : ""); });
  Buffer &out = c.array("out", s.model.score_dtype(), scopes);
  c.run([&](spk_context *context) {
    const spk_buffer array = source.array == nullptr ? spk_buffer{} : source.array->api();
    const spk_score_source from = api_source(source, &array);
    const spk_buffer api = out.api();
    const int64_t nk = static_cast<int64_t>(k.size());
    return middle ? spk_scope_kth_mid(context, s.handle.get(), &from, weights.count(), k.data(), nk,
                                      weight, &api)
                  : spk_scope_kth_largest(context, s.handle.get(), &from, weights.count(), k.data(),
                                          nk, &api);
  });
  for (int64_t scope = 0; scope < scopes; ++scope) {
    const Neighbours near =
        neighbours(scores_of_scope(source.scores, scope, per_scope), count_of(k, scope));
    const double got = out.live(scope);
    bool right;
    if (middle) {
      right = mid_is_right(out.dtype(), near.kth, near.next, weight, got);
    } else {
      right = ranks_equal(near.kth, got);
    }
    // Values with dtypes of their own leave an ulp to the library.
    if (!right && source.values.exact && !middle) {
      right = is_one_ulp_near(out.dtype(), near.kth, got);
    }
    if (!right) {
      mismatch("out (k-th " + show(near.kth) + ", next " + show(near.next) + ")", scope, near.kth,
               got);
    }
    out.accept(scope);
  }
  c.verify();
}

void kth_largest(Case &c) {
  kth(c, false);
}
void kth_mid(Case &c) {
  kth(c, true);
}

void sparsity_to_nnz(Case &c) {
  const ScopeSubject s = make_scope(c);
  const int64_t n = s.model.numblk_per_scope();
  for (int i = 0; i < 10; ++i) {
    double sparsity = c.random.pick({0.0, 1.0, 0.29, 0.07, 0.5, 0.1, 1.0 / 3, c.random.unit()});
    if (c.random.one_in(3)) {
      sparsity = static_cast<double>(c.random.between(0, n)) / static_cast<double>(n);
    }
    int64_t nnz = -77;
    c.require(spk_scope_sparsity_to_nnz(s.handle.get(), sparsity, &nnz), "sparsity_to_nnz");
    const PrunedCount pruned = pruned_count(sparsity, n);
    if (nnz > n - pruned.least || nnz < n - pruned.most) {
      same("nnz of " + std::to_string(n) + " at sparsity " + show(sparsity), n - pruned.least, nnz);
    }
  }
}

// --- selection -------------------------------------------------------------------------------

struct Outcome {
  std::vector<Selection> scopes;
  int64_t requested = 0;
  int64_t achieved = 0;
  int64_t ties = 0;
};

Outcome select(const ScopeSubject &s, const std::vector<double> &scores, const Dims &counts,
               int ties_policy) {
  Outcome outcome;
  for (int64_t scope = 0; scope < s.model.numscope(); ++scope) {
    const int64_t count = count_of(counts, scope);
    outcome.scopes.push_back(
        select_top(scores_of_scope(scores, scope, s.model.numblk_per_scope()), count, ties_policy));
    outcome.requested += count;
    outcome.achieved += outcome.scopes.back().kept;
    outcome.ties += outcome.scopes.back().ties;
  }
  return outcome;
}

void keep_top(Case &c) {
  const ScopeSubject s = make_scope(c);
  const Weights weights = make_weights(c, s);
  const Source source = make_source(c, s, weights, false);
  const int64_t per_scope = s.model.numblk_per_scope();
  const Dims counts = random_counts(c.random, s.model.numscope(), 0, per_scope);
  spk_select_options options = {};
  options.struct_size = sizeof options;
  options.values = source.values.api();
  options.ties = c.random.pick({SPK_TIES_BY_POSITION, SPK_TIES_KEEP_ALL});
  c.note([&] { return "counts " + text_of(counts) + ", ties " + std::to_string(options.ties); });
  const bool defaults =
      options.values == nullptr && source.array == nullptr && options.ties == SPK_TIES_BY_POSITION;
  const bool pass_options = !defaults || c.random.one_in(2);
  spk_report report;
  spk_report *const asked = maybe(c, report);
  c.run([&](spk_context *context) {
    const spk_buffer array = source.array == nullptr ? spk_buffer{} : source.array->api();
    options.scores = source.array == nullptr ? nullptr : &array;
    return spk_scope_keep_top(context, s.handle.get(), weights.leaves(), weights.into(),
                              weights.count(), counts.data(), static_cast<int64_t>(counts.size()),
                              pass_options ? &options : nullptr, asked);
  });
  const Outcome outcome = select(s, source.scores, counts, options.ties);
  for (int64_t scope = 0; scope < s.model.numscope(); ++scope) {
    const Selection &selection = outcome.scopes[static_cast<size_t>(scope)];
    for (int64_t i = 0; i < per_scope; ++i) {
      for (const Element &e : s.unit(scope, i)) {
        selection.keep[static_cast<size_t>(i)] ? weights.expect_same(e) : weights.expect_zero(e);
      }
    }
  }
  if (asked != nullptr) {
    check_report(report, s.model.numscope() * per_scope, outcome.requested, outcome.achieved,
                 outcome.ties);
  }
  c.verify();
}

void expect_element_masks(const ScopeSubject &s, const LeafSet &masks, int64_t scope, int64_t i,
                          bool keep) {
  for (const Element &e : s.unit(scope, i)) masks[e.leaf].expect_bits(e.index, keep ? 1 : 0);
}

void masks_of_block_mask(Case &c, const ScopeSubject &s, const LeafSet &masks) {
  const int64_t per_scope = s.model.numblk_per_scope();
  Buffer &block_mask = c.array("block_mask", SPK_U8, s.model.numscope() * per_scope);
  fill_mask(c.random, block_mask);
  spk_report report;
  spk_report *const asked = maybe(c, report);
  c.run([&](spk_context *context) {
    const spk_buffer api = block_mask.api();
    spk_score_source from = {};
    from.struct_size = sizeof from;
    from.block_mask = &api;
    return spk_scope_get_masks(context, s.handle.get(), &from, nullptr, 0, SPK_TIES_BY_POSITION,
                               masks.api(), masks.count(), asked);
  });
  int64_t kept = 0;
  for (int64_t i = 0; i < block_mask.numel(); ++i) {
    const bool keep = block_mask.before_bits(i) != 0;
    if (keep) ++kept;
    expect_element_masks(s, masks, i / per_scope, i % per_scope, keep);
  }
  if (asked != nullptr) {
    same("report total", block_mask.numel(), report.total);
    same("report achieved", kept, report.achieved);
    same("report ties", 0, report.ties);
  }
  c.verify();
}

void scope_get_masks(Case &c) {
  const ScopeSubject s = make_scope(c);
  const LeafSet masks = make_contiguous(c, s.leaves, "mask", SPK_U8);
  if (c.random.one_in(4)) {
    masks_of_block_mask(c, s, masks);
    return;
  }
  const Weights weights = make_weights(c, s);
  const Source source = make_source(c, s, weights, true);
  const int64_t per_scope = s.model.numblk_per_scope();
  const Dims counts = random_counts(c.random, s.model.numscope(), 0, per_scope);
  const int32_t ties = c.random.pick({SPK_TIES_BY_POSITION, SPK_TIES_KEEP_ALL});
  c.note([&] { return "counts " + text_of(counts) + ", ties " + std::to_string(ties); });
  spk_report report;
  spk_report *const asked = maybe(c, report);
  c.run([&](spk_context *context) {
    const spk_buffer array = source.array == nullptr ? spk_buffer{} : source.array->api();
    const spk_score_source from = api_source(source, &array);
    return spk_scope_get_masks(context, s.handle.get(), &from, counts.data(),
                               static_cast<int64_t>(counts.size()), ties, masks.api(),
                               masks.count(), asked);
  });
  const Outcome outcome = select(s, source.scores, counts, ties);
  for (int64_t scope = 0; scope < s.model.numscope(); ++scope) {
    const Selection &selection = outcome.scopes[static_cast<size_t>(scope)];
    for (int64_t i = 0; i < per_scope; ++i) {
      expect_element_masks(s, masks, scope, i, selection.keep[static_cast<size_t>(i)]);
    }
  }
  if (asked != nullptr) {
    check_report(report, s.model.numscope() * per_scope, outcome.requested, outcome.achieved,
                 outcome.ties);
  }
  c.verify();
}

}  // namespace

Operations selecting_operations() {
  return {{"kth_largest", kth_largest},
          {"kth_mid", kth_mid},
          {"sparsity_to_nnz", sparsity_to_nnz},
          {"keep_top", keep_top},
          {"scope_get_masks", scope_get_masks}};
}

}  // namespace prop
