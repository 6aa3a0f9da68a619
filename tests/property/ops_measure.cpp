// Norms, extremes, counts, reductions.
#include <cmath>
#include <limits>

#include "operations.hpp"

namespace prop {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double random_power(Random &random) {
  if (!random.one_in(3)) return random.pick({0.0, 1.0, 2.0, 2.0, kInfinity, -kInfinity});
  if (random.one_in(2)) return random.pick({0.01, 0.5, 1.5, 3.0, 4.0, 10.0, 1000.0});
  return random.log_uniform(0.01, 1000);
}

LeafSet make_filled(Case &c, const BlockSubject &s) {
  LeafSet leaves = make_leaves(c, s.model.leaves, "leaf");
  fill_leaves(c, leaves);
  patch_blocks(c, leaves, s.elements);
  return leaves;
}

void check_norm(Buffer &out, int64_t index, double p, const std::vector<double> &values) {
  const quad exact = exact_norm(values, p);
  if (!norm_is_near(out.dtype(), p, exact, out.live(index))) {
    mismatch("norm", index, static_cast<double>(exact), out.live(index));
  }
  out.accept(index);
}

void block_norms(Case &c) {
  const BlockSubject s = make_block(c);
  const LeafSet leaves = make_filled(c, s);
  const double p = random_power(c.random);
  c.note([&] { return "p = " + show(p); });
  Buffer &out = c.array("out", s.model.score_dtype(), s.model.numblk());
  c.run([&](spk_context *context) {
    const spk_buffer api = out.api();
    return spk_block_norms(context, s.handle.get(), leaves.api(), leaves.count(), p, &api);
  });
  for (int64_t b = 0; b < out.numel(); ++b) {
    check_norm(out, b, p, values_of(leaves, s.elements[b]));
  }
  c.verify();
}

void scope_block_norms(Case &c) {
  const ScopeSubject s = make_scope(c);
  const Weights weights = make_weights(c, s);
  const double p = random_power(c.random);
  c.note([&] { return "p = " + show(p); });
  const int64_t per_scope = s.model.numblk_per_scope();
  Buffer &out = c.array("out", s.model.score_dtype(), s.model.numscope() * per_scope);
  c.run([&](spk_context *context) {
    const spk_buffer api = out.api();
    return spk_scope_block_norms(context, s.handle.get(), weights.leaves(), weights.count(), p,
                                 &api);
  });
  for (int64_t i = 0; i < out.numel(); ++i) {
    const Unit unit = s.unit(i / per_scope, i % per_scope);
    check_norm(out, i, p, values_of(weights.source, unit));
  }
  c.verify();
}

void extreme(Case &c, double sign, decltype(spk_block_min) *function) {
  const BlockSubject s = make_block(c);
  const LeafSet leaves = make_filled(c, s);
  Buffer &out = c.array("out", s.model.score_dtype(), s.model.numblk());
  c.run([&](spk_context *context) {
    const spk_buffer api = out.api();
    return function(context, s.handle.get(), leaves.api(), leaves.count(), &api);
  });
  for (int64_t b = 0; b < out.numel(); ++b) {
    double best = -kInfinity;
    for (double value : values_of(leaves, s.elements[b])) {
      if (std::isnan(value) || sign * value > best) best = sign * value;
      if (std::isnan(best)) break;
    }
    // Adding +0 turns a zero of either sign into +0.
    expect_value(out, b, sign * best + 0.0);
  }
  c.verify();
}

void block_min(Case &c) {
  extreme(c, -1, spk_block_min);
}
void block_max(Case &c) {
  extreme(c, 1, spk_block_max);
}

void block_nnz(Case &c) {
  const BlockSubject s = make_block(c);
  const LeafSet leaves = make_filled(c, s);
  double eps = c.random.pick({0.0, SPK_NNZ_EPS, 1.0, 0.5, 1e-300, kInfinity});
  if (c.random.one_in(4)) {
    // A value of the data itself: not counted, for it is not above.
    const double value = decode(leaves[0].dtype(), leaves[0].live_bits(0));
    if (!std::isnan(value)) eps = std::fabs(value);
  }
  c.note([&] { return "eps = " + show(eps); });
  Buffer *per_block = c.random.one_in(3) ? nullptr : &c.array("nnz", SPK_I64, s.model.numblk());
  const bool ask_total = per_block == nullptr || c.random.one_in(2);
  int64_t total = -77;
  c.run([&](spk_context *context) {
    const spk_buffer api = per_block == nullptr ? spk_buffer{} : per_block->api();
    return spk_block_nnz(context, s.handle.get(), leaves.api(), leaves.count(), eps,
                         per_block == nullptr ? nullptr : &api, ask_total ? &total : nullptr);
  });
  int64_t expected_total = 0;
  for (int64_t b = 0; b < s.model.numblk(); ++b) {
    int64_t count = 0;
    for (double value : values_of(leaves, s.elements[b])) {
      if (std::isnan(value) || std::fabs(value) > eps) ++count;
    }
    expected_total += count;
    if (per_block != nullptr) per_block->expect_bits(b, static_cast<uint64_t>(count));
  }
  if (ask_total) same("total nnz", expected_total, total);
  c.verify();
}

// A result that depends on every element and on its place.
double place_sum(const double *elements, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += elements[i] * static_cast<double>(i % 7 + 1);
  return sum;
}

struct Reduction {
  int64_t expected_count;
  int64_t stop_at;
  int64_t next = 0;
  std::string problem;
};

int32_t reduce_block(void *user, int64_t block, const double *elements, int64_t count,
                     double *result) {
  Reduction &state = *static_cast<Reduction *>(user);
  if (block != state.next++) state.problem = "blocks came out of order";
  if (count != state.expected_count) state.problem = "wrong number of elements";
  if (block == state.stop_at) return 1;
  *result = place_sum(elements, count);
  return 0;
}

void block_reduce(Case &c) {
  const BlockSubject s = make_block(c);
  const LeafSet leaves = make_filled(c, s);
  Buffer &out = c.array("out", s.model.score_dtype(), s.model.numblk());
  const int64_t stop = c.random.one_in(6) ? c.random.between(0, out.numel() - 1) : -1;
  c.note([&] { return "stops at block " + std::to_string(stop); });
  Reduction state = {};
  const spk_status status = c.call([&](spk_context *context) {
    const spk_buffer api = out.api();
    state = {s.model.numel_per_block(), stop, 0, ""};
    return spk_block_reduce(context, s.handle.get(), leaves.api(), leaves.count(), reduce_block,
                            &state, &api);
  });
  same("status", stop < 0 ? SPK_OK : SPK_CANCELLED, status);
  if (!state.problem.empty()) mismatch(state.problem);
  const int64_t finished = stop < 0 ? out.numel() : stop;
  for (int64_t b = 0; b < finished; ++b) {
    const std::vector<double> values = values_of(leaves, s.elements[b]);
    expect_value(out, b, place_sum(values.data(), static_cast<int64_t>(values.size())));
  }
  c.verify();
}

}  // namespace

Operations measuring_operations() {
  return {{"norms", block_norms}, {"min", block_min},       {"max", block_max},
          {"nnz", block_nnz},     {"reduce", block_reduce}, {"scope_norms", scope_block_norms}};
}

}  // namespace prop
