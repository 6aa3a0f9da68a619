// Masks, multipliers, hard thresholds and copies.
#include <cmath>

#include "operations.hpp"

namespace prop {

namespace {

void expect_masked(const BlockSubject &s, const Weights &weights, const Buffer &prune_mask) {
  for (int64_t b = 0; b < s.model.numblk(); ++b) {
    const bool pruned = prune_mask.before_bits(b) != 0;
    for (const Element &e : s.elements[b]) {
      pruned ? weights.expect_zero(e) : weights.expect_same(e);
    }
  }
}

void block_apply_mask(Case &c) {
  const BlockSubject s = make_block(c);
  const Weights weights = make_weights(c, s);
  Buffer &mask = c.array("prune_mask", SPK_U8, s.model.numblk());
  fill_mask(c.random, mask);
  c.run([&](spk_context *context) {
    const spk_buffer api = mask.api();
    return spk_block_apply_mask(context, s.handle.get(), weights.leaves(), weights.into(),
                                weights.count(), &api);
  });
  expect_masked(s, weights, mask);
  c.verify();
}

void view_apply_mask(Case &c) {
  const ViewSubject s = make_view(c);
  const Weights weights = make_weights(c, s);
  Buffer &mask = c.array("prune_mask", SPK_U8, s.model.numblk());
  fill_mask(c.random, mask);
  c.run([&](spk_context *context) {
    const spk_buffer api = mask.api();
    return spk_view_apply_mask(context, s.view.get(), weights.leaves(), weights.into(),
                               static_cast<int32_t>(s.told.size()), s.told.data(), &api);
  });
  expect_masked(s, weights, mask);
  c.verify();
}

// A multiplier whose product with `value` lies so near the middle of two neighbours of the dtype
// that a product rounded to double first would be rounded to the wrong one half of the time.
double treacherous(Random &random, int dtype, double value) {
  const double near = random.uniform(1, 2);
  const quad middle = round_to(dtype, near) + ulp_at(dtype, near) / 2;
  return static_cast<double>(middle / value);
}

Buffer &make_multiplier(Case &c, const BlockSubject &s, const Weights &weights) {
  const int dtype = c.random.pick({SPK_F32, SPK_F64, SPK_F16, SPK_BF16});
  Buffer &multiplier = c.array("multiplier", dtype, s.model.numblk());
  fill(c.random, multiplier, random_mix(c.random));
  const bool treachery = c.random.one_in(2);
  for (int64_t b = 0; b < multiplier.numel(); ++b) {
    if (c.random.one_in(4)) multiplier.set(b, c.random.pick({0.0, -0.0, 1.0, 1.0, -1.0, 0.5}));
    if (!treachery) continue;
    const Element &e = *s.elements[b].begin();
    const Buffer &leaf = weights.source[e.leaf];
    const double value = decode(leaf.dtype(), leaf.live_bits(e.index));
    if (value == 0 || !std::isfinite(value)) continue;
    multiplier.set(b, treacherous(c.random, leaf.dtype(), value));
  }
  return multiplier;
}

void expect_multiplied(const BlockSubject &s, const Weights &weights, const Buffer &multiplier) {
  for (int64_t b = 0; b < s.model.numblk(); ++b) {
    const quad factor = multiplier.before(b);
    for (const Element &e : s.elements[b]) {
      // Two doubles have their whole product in a quad, so this rounds once.
      const quad product = factor == 0 ? 0 : factor * weights.before(e);
      expect_value(weights.target[e.leaf], e.index, product);
    }
  }
}

void block_apply_multiplier(Case &c) {
  const BlockSubject s = make_block(c);
  const Weights weights = make_weights(c, s);
  const Buffer &multiplier = make_multiplier(c, s, weights);
  c.run([&](spk_context *context) {
    const spk_buffer api = multiplier.api();
    return spk_block_apply_multiplier(context, s.handle.get(), weights.leaves(), weights.into(),
                                      weights.count(), &api);
  });
  expect_multiplied(s, weights, multiplier);
  c.verify();
}

void view_apply_multiplier(Case &c) {
  const ViewSubject s = make_view(c);
  const Weights weights = make_weights(c, s);
  const Buffer &multiplier = make_multiplier(c, s, weights);
  c.run([&](spk_context *context) {
    const spk_buffer api = multiplier.api();
    return spk_view_apply_multiplier(context, s.view.get(), weights.leaves(), weights.into(),
                                     static_cast<int32_t>(s.told.size()), s.told.data(), &api);
  });
  expect_multiplied(s, weights, multiplier);
  c.verify();
}

// Writes what becomes of a block and counts it if it is kept.
void expect_fate(const Weights &weights, Unit unit, bool dies, int64_t &kept) {
  for (const Element &e : unit) dies ? weights.expect_zero(e) : weights.expect_same(e);
  if (!dies) ++kept;
}

void block_hard_threshold(Case &c) {
  const BlockSubject s = make_block(c);
  const Weights weights = make_weights(c, s);
  const Values values = make_values(c, s, weights);
  const std::vector<double> norms =
      euclidean_scores(c, s, values.given ? values.set : weights.source, values.exact);
  const Thresholds thresholds = make_thresholds(c, norms, s.model.numblk(), false);
  spk_hard_options options = {sizeof options, values.api()};
  spk_report report;
  spk_report *const asked = maybe(c, report);
  c.run([&](spk_context *context) {
    const spk_buffer api = thresholds.buffer->api();
    return spk_block_hard_threshold(context, s.handle.get(), weights.leaves(), weights.into(),
                                    weights.count(), &api, values.given ? &options : nullptr,
                                    asked);
  });
  int64_t kept = 0;
  for (int64_t b = 0; b < s.model.numblk(); ++b) {
    // A NaN norm is not less than anything.
    const bool dies = norms[static_cast<size_t>(b)] < thresholds.at(b);
    expect_fate(weights, s.elements[b], dies, kept);
  }
  if (asked != nullptr) check_report(report, s.model.numblk(), -1, kept, 0);
  c.verify();
}

void scope_hard_threshold(Case &c) {
  const ScopeSubject s = make_scope(c);
  const Weights weights = make_weights(c, s);
  const Values values = make_values(c, s, weights);
  const std::vector<double> norms =
      euclidean_scores(c, s, values.given ? values.set : weights.source, values.exact);
  const Thresholds thresholds = make_thresholds(c, norms, s.model.numscope(), false);
  spk_hard_options options = {sizeof options, values.api()};
  spk_report report;
  spk_report *const asked = maybe(c, report);
  c.run([&](spk_context *context) {
    const spk_buffer api = thresholds.buffer->api();
    return spk_scope_hard_threshold(context, s.handle.get(), weights.leaves(), weights.into(),
                                    weights.count(), &api, values.given ? &options : nullptr,
                                    asked);
  });
  const int64_t per_scope = s.model.numblk_per_scope();
  int64_t kept = 0;
  for (size_t i = 0; i < norms.size(); ++i) {
    const int64_t scope = static_cast<int64_t>(i) / per_scope;
    const bool dies = norms[i] < thresholds.at(scope);
    expect_fate(weights, s.unit(scope, static_cast<int64_t>(i) % per_scope), dies, kept);
  }
  if (asked != nullptr) {
    check_report(report, static_cast<int64_t>(norms.size()), -1, kept, 0);
  }
  c.verify();
}

void block_set_data(Case &c) {
  const BlockSubject s = make_block(c);
  LeafSet leaves = make_leaves(c, s.model.leaves, "leaf");
  std::vector<int> dtypes;
  for (const LeafModel &leaf : s.model.leaves) {
    const int other = c.random.pick({SPK_F32, SPK_F64, SPK_F16, SPK_BF16});
    dtypes.push_back(c.random.one_in(3) ? leaf.dtype : other);
  }
  LeafSet source = make_leaves(c, s.model.leaves, "source", dtypes);
  fill_leaves(c, source);
  c.run([&](spk_context *context) {
    return spk_block_set_data(context, s.handle.get(), leaves.api(), leaves.count(), source.api());
  });
  for (size_t l = 0; l < leaves.size(); ++l) {
    for (int64_t i = 0; i < leaves[l].numel(); ++i) {
      if (source[l].dtype() == leaves[l].dtype()) {
        leaves[l].expect_bits(i, source[l].before_bits(i));
      } else {
        expect_value(leaves[l], i, source[l].before(i));
      }
    }
  }
  c.verify();
}

}  // namespace

Operations writing_operations() {
  return {{"apply_mask", block_apply_mask},
          {"view_apply_mask", view_apply_mask, false},
          {"apply_multiplier", block_apply_multiplier},
          {"view_multiplier", view_apply_multiplier, false},
          {"hard_threshold", block_hard_threshold},
          {"scope_hard", scope_hard_threshold},
          {"set_data", block_set_data}};
}

}  // namespace prop
