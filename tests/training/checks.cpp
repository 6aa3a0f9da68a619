#include "checks.hpp"

#include <algorithm>
#include <cmath>

namespace training {

void near(const std::string &what, double expected, double got) {
  const double error = 1e-11 * std::max(1.0, std::abs(expected));
  if (std::abs(expected - got) <= error) return;
  prop::mismatch(what + ": expected " + prop::show(expected) + ", got " + prop::show(got));
}

void expect_masked(Buffer *buffer, const std::vector<bool> &mask) {
  if (buffer == nullptr) return;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (!mask[i]) buffer->expect_bits(static_cast<int64_t>(i), 0);
  }
}

namespace {

std::vector<bool> mask_now(const Layer &layer) {
  std::vector<bool> mask;
  for (int64_t i = 0; i < layer.numel(); ++i) mask.push_back(layer.mask->live_bits(i) != 0);
  return mask;
}

int64_t ones(const std::vector<bool> &mask) {
  return std::count(mask.begin(), mask.end(), true);
}

int64_t total_numel(const World &world) {
  int64_t numel = 0;
  for (int32_t l : world.members()) numel += world.layers[static_cast<size_t>(l)].numel();
  return numel;
}

// Sums over the members; densities and rate are means, weighted by numel.
void check_totals(const World &world, const spk_layer_stats &all) {
  spk_layer_stats sum = {};
  double requested = 0;
  double rate = 0;
  for (int32_t l : world.members()) {
    const spk_layer_stats one = world.stats(l);
    requested += one.requested_density * static_cast<double>(one.numel);
    rate += one.rate * static_cast<double>(one.numel);
    sum.statistic += one.statistic;
    sum.requested_removed += one.requested_removed;
    sum.removed += one.removed;
    sum.requested_grown += one.requested_grown;
    sum.grown += one.grown;
  }
  const double numel = static_cast<double>(all.numel);
  near("all: density", static_cast<double>(all.nonzeros) / numel, all.density);
  near("all: requested density", requested / numel, all.requested_density);
  near("all: rate", rate / numel, all.rate);
  near("all: statistic", sum.statistic, all.statistic);
  prop::same("all: requested to remove", sum.requested_removed, all.requested_removed);
  prop::same("all: removed", sum.removed, all.removed);
  prop::same("all: requested to grow", sum.requested_grown, all.requested_grown);
  prop::same("all: grown", sum.grown, all.grown);
}

// Counts of a layer, and of all: those of the masks as they are now.
int64_t check_counts(const World &world) {
  int64_t total = 0;
  for (int32_t l : world.members()) {
    const Layer &layer = world.layers[static_cast<size_t>(l)];
    const int64_t nonzeros = ones(mask_now(layer));
    const spk_layer_stats stats = world.stats(l);
    prop::same(layer.name + ": numel", layer.numel(), stats.numel);
    prop::same(layer.name + ": nonzeros", nonzeros, stats.nonzeros);
    prop::same(layer.name + ": zeros", layer.numel() - nonzeros, stats.zeros);
    near(layer.name + ": density",
         static_cast<double>(nonzeros) / static_cast<double>(layer.numel()), stats.density);
    total += nonzeros;
  }
  spk_layer_stats all = {};
  all.struct_size = sizeof all;
  world.c.require(spk_masking_stats(world.masking.get(), &all), "spk_masking_stats");
  prop::same("all: numel", total_numel(world), all.numel);
  prop::same("all: nonzeros", total, all.nonzeros);
  prop::same("all: zeros", all.numel - total, all.zeros);
  check_totals(world, all);
  return total;
}

void check_growth_state(const World &world) {
  prop::same("baseline", world.baseline, spk_masking_baseline(world.masking.get()));
  near("adjusted growth", world.adjusted, spk_masking_adjusted_growth(world.masking.get()));
}

}  // namespace

// --- initialisation -----------------------------------------------------------------------------

namespace {

struct Init {
  spk_init_options options = {};
  std::vector<int64_t> counts;
};

bool reads_density(int mode) {
  return mode <= SPK_INIT_STRUCT_ERDOS_RENYI_KERNEL;
}

// Whether the layers have the ranks that a mode asks for.
bool fits(const World &world, int mode) {
  size_t least = 9;
  size_t most = 0;
  for (const Layer &layer : world.layers) {
    least = std::min(least, layer.shape().size());
    most = std::max(most, layer.shape().size());
  }
  if (mode == SPK_INIT_RANDOM) return world.layers.size() > 1;
  if (is_structured_init(mode)) return least >= 2 && most > 2;
  return !reads_density(mode) || least >= 2;
}

std::vector<Dims> shapes_of(const World &world) {
  std::vector<Dims> shapes;
  for (const Layer &layer : world.layers) shapes.push_back(layer.shape());
  return shapes;
}

Init random_init(World &world) {
  prop::Random &random = world.c.random;
  Init init;
  init.options.struct_size = sizeof init.options;
  do {
    init.options.mode =
        static_cast<int32_t>(random.between(SPK_INIT_RANDOM, SPK_INIT_LOTTERY_TICKET_DIST));
  } while (!fits(world, init.options.mode));
  init.options.density = random.pick({0.1, 0.2, 0.5, 0.9, 0.0, 1.0, random.unit(), random.unit()});
  if (reads_density(init.options.mode)) {
    while (densities(shapes_of(world), init.options.mode, init.options.density).empty()) {
      init.options.density = (1 + init.options.density) / 2;
    }
    if (random.one_in(5)) init.options.draw = SPK_DRAW_BERNOULLI;
  }
  if (init.options.mode == SPK_INIT_LOTTERY_TICKET_DIST) {
    for (const Layer &layer : world.layers) init.counts.push_back(random.between(0, layer.numel()));
    init.options.counts = init.counts.data();
    init.options.ncounts = world.count();
  }
  return init;
}

// What the caller brings: weights with zeros for RESUME, masks for LOTTERY_TICKET.
void prepare_masks(World &world) {
  world.refill();
  for (Layer &layer : world.layers) {
    const int64_t rarity = world.c.random.pick<int64_t>({1, 2, 2, 5});
    for (int64_t i = 0; i < layer.numel(); ++i) {
      layer.mask->set_bits(i, world.c.random.one_in(rarity) ? 1 : 0);
    }
  }
}

bool whole_kernels(const std::vector<bool> &mask, int64_t kernel) {
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != mask[i / static_cast<size_t>(kernel) * static_cast<size_t>(kernel)]) {
      return false;
    }
  }
  return true;
}

// The first draw of a layer: kernels or elements of it, each `size` places.
void check_places(const World &world, const Layer &layer, int64_t size, int64_t count) {
  const int32_t id = static_cast<int32_t>(&layer - world.layers.data());
  const std::vector<bool> all(static_cast<size_t>(layer.numel() / size), true);
  std::vector<bool> expected(static_cast<size_t>(layer.numel()), false);
  for (int64_t k : drawn({world.seed, id, 0, layer.draws}, all, count)) {
    for (int64_t i = k * size; i < (k + 1) * size; ++i) expected[static_cast<size_t>(i)] = true;
  }
  if (mask_now(layer) != expected) prop::mismatch(layer.name + ": other places were drawn");
}

void check_drawn(const World &world, const Layer &layer, const Init &init, double density) {
  const std::vector<bool> mask = mask_now(layer);
  const int64_t kernel = is_structured_init(init.options.mode) ? layer.kernel() : 1;
  if (!whole_kernels(mask, kernel)) prop::mismatch(layer.name + ": a kernel is torn");
  if (init.options.draw == SPK_DRAW_BERNOULLI) {
    if (density == 0) prop::same(layer.name + ": ones", 0, ones(mask));
    if (density == 1) prop::same(layer.name + ": ones", layer.numel(), ones(mask));
    return;
  }
  const int64_t expected = round_count(density * static_cast<double>(layer.numel() / kernel));
  prop::same(layer.name + ": ones", expected * kernel, ones(mask));
  check_places(world, layer, kernel, expected);
}

void check_initial_mask(const World &world, const Layer &layer, const Init &init) {
  const size_t l = static_cast<size_t>(&layer - world.layers.data());
  if (init.options.mode == SPK_INIT_LOTTERY_TICKET_DIST) {
    prop::same(layer.name + ": ones", init.counts[l], ones(mask_now(layer)));
    check_places(world, layer, 1, init.counts[l]);
    return;
  }
  for (int64_t i = 0; i < layer.numel(); ++i) {
    const bool expected = init.options.mode == SPK_INIT_RESUME ? layer.weight->before(i) != 0
                                                               : layer.mask->before_bits(i) != 0;
    layer.mask->expect_bits(i, expected ? 1 : 0);
  }
}

// Compares with the oracle; returns the library's own, which are used from here on.
std::vector<double> check_densities(World &world, const Init &init) {
  const std::vector<double> expected =
      densities(shapes_of(world), init.options.mode, init.options.density);
  std::vector<double> got(expected.size(), -1);
  world.c.require(
      spk_masking_densities(world.masking.get(), &init.options, got.data(), world.count()),
      "spk_masking_densities");
  for (size_t l = 0; l < got.size(); ++l) near(world.layers[l].name, expected[l], got[l]);
  return got;
}

void expect_initialised(World &world, const Init &init, const std::vector<double> &told) {
  for (size_t l = 0; l < world.layers.size(); ++l) {
    Layer &layer = world.layers[l];
    layer.member = !leaves(init.options.mode, layer.shape(), l == 0);
    prop::same(layer.name + ": belongs", layer.member ? 1 : 0,
               spk_masking_has_layer(world.masking.get(), static_cast<int32_t>(l)));
    if (!layer.member) {
      for (int64_t i = 0; i < layer.numel(); ++i) layer.mask->expect_bits(i, 1);
      continue;
    }
    if (!told.empty()) {
      check_drawn(world, layer, init, told[l]);
      near(layer.name + ": requested density", told[l],
           world.stats(static_cast<int32_t>(l)).requested_density);
    } else {
      check_initial_mask(world, layer, init);
    }
    // Masks hold 0 or 1; which, was checked.
    for (int64_t i = 0; i < layer.numel(); ++i) {
      const bool free = !told.empty() || init.options.mode == SPK_INIT_LOTTERY_TICKET_DIST;
      if (free) layer.mask->expect_bits(i, layer.mask->live_bits(i) != 0 ? 1 : 0);
    }
    expect_masked(layer.weight, mask_now(layer));
    const bool draws = !told.empty() || init.options.mode == SPK_INIT_LOTTERY_TICKET_DIST;
    if (draws) ++layer.draws;
  }
}

}  // namespace

void check_initialise(World &world) {
  const Init init = random_init(world);
  world.c.note([&] {
    return "initialise: mode " + std::to_string(init.options.mode) + ", density " +
           prop::show(init.options.density) + ", draw " + std::to_string(init.options.draw);
  });
  prepare_masks(world);
  std::vector<double> told;
  if (reads_density(init.options.mode)) told = check_densities(world, init);
  const std::vector<spk_layer> layers = world.api();
  int attempts = 0;
  world.c.run([&](spk_context *context) {
    // A second attempt has to draw the same, so it starts from the same.
    if (attempts++ > 0) world.masking = world.another();
    return spk_masking_initialise(context, world.masking.get(), layers.data(), world.count(),
                                  &init.options);
  });
  expect_initialised(world, init, told);
  world.c.verify();
  world.baseline = check_counts(world);
  world.adjusted = 0;
  check_growth_state(world);
}

// --- step, apply, removal -----------------------------------------------------------------------

void check_step(World &world) {
  if (world.c.random.one_in(2)) world.refill();
  const std::vector<spk_layer> layers = world.api();
  const std::vector<unsigned char> blob = world.save();
  int attempts = 0;
  world.c.run([&](spk_context *context) {
    if (attempts++ > 0) world.restore(blob, false);
    return spk_masking_step(context, world.masking.get(), layers.data(), world.count());
  });
  ++world.position;
  for (int32_t l : world.members()) {
    Layer &layer = world.layers[static_cast<size_t>(l)];
    const std::vector<bool> mask = mask_now(layer);
    expect_masked(layer.weight, mask);
    if (world.modes.dense) continue;
    for (Buffer *buffer : {layer.momentum, layer.m1, layer.m2}) expect_masked(buffer, mask);
  }
  world.c.verify();
  prop::same("position", world.position,
             spk_schedule_position(spk_masking_schedule(world.masking.get())));
}

void check_apply(World &world) {
  world.refill();
  const int32_t what = static_cast<int32_t>(world.c.random.between(1, 7));
  world.c.note([&] { return "apply " + std::to_string(what); });
  const std::vector<spk_layer> layers = world.api();
  world.c.run([&](spk_context *context) {
    return spk_masking_apply(context, world.masking.get(), layers.data(), world.count(), what);
  });
  for (int32_t l : world.members()) {
    Layer &layer = world.layers[static_cast<size_t>(l)];
    const std::vector<bool> mask = mask_now(layer);
    if ((what & SPK_APPLY_WEIGHTS) != 0) expect_masked(layer.weight, mask);
    if ((what & SPK_APPLY_GRADIENTS) != 0) expect_masked(layer.gradient, mask);
    if ((what & SPK_APPLY_MOMENTUM) == 0) continue;
    for (Buffer *buffer : {layer.momentum, layer.m1, layer.m2}) expect_masked(buffer, mask);
  }
  world.c.verify();
}

void check_removal(World &world) {
  const std::vector<int32_t> members = world.members();
  if (members.size() < 2) return;
  const int64_t choice = world.c.random.between(0, static_cast<int64_t>(members.size()) - 1);
  Layer &leaver = world.layers[static_cast<size_t>(members[static_cast<size_t>(choice)])];
  world.c.note([&] { return "remove " + leaver.name; });
  if (world.c.random.one_in(2)) {
    world.c.require(spk_masking_remove(world.masking.get(), leaver.name.c_str()),
                    "spk_masking_remove");
  } else {
    int32_t removed = -1;
    world.c.require(spk_masking_remove_matching(world.masking.get(),
                                                leaver.name.substr(1, 6).c_str(), &removed),
                    "spk_masking_remove_matching");
    prop::same("removed", 1, removed);
  }
  leaver.member = false;
  world.baseline = check_counts(world);
  check_growth_state(world);
}

// --- update -------------------------------------------------------------------------------------

namespace {

spk_update_report junk_update_report() {
  return {sizeof(spk_update_report), -7, -71, -72, -73, -74, -75, -76};
}

Expected seen_before(const World &world) {
  Expected e;
  e.ids = world.members();
  for (int32_t l : e.ids) e.before.push_back(world.layers[static_cast<size_t>(l)].before());
  return e;
}

// Calls; a second attempt runs in a masking that was restored from the state before the first.
spk_update_report call_update(World &world) {
  spk_update_report report = junk_update_report();
  const std::vector<spk_layer> layers = world.api();
  const std::vector<unsigned char> blob = world.save();
  std::vector<unsigned char> after;
  const bool fresh = world.c.random.one_in(2);
  int attempts = 0;
  world.c.run([&](spk_context *context) {
    if (attempts++ > 0) {
      after = world.save();
      world.restore(blob, fresh);
    }
    return spk_masking_update(context, world.masking.get(), layers.data(), world.count(), &report);
  });
  if (attempts > 1 && world.save() != after) prop::mismatch("a resumed run saves other bytes");
  return report;
}

// Places where a weight survives keep it; all others hold zeros, or what a callback set.
void expect_weights(const World &world, const Expected &e) {
  for (size_t i = 0; i < e.size(); ++i) {
    const Layer &layer = world.layers[static_cast<size_t>(e.ids[i])];
    std::vector<bool> survives = e.pruned[i];
    expect_masked(layer.weight, survives);
    if (world.modes.grow != SPK_GROW_CALLBACK) continue;
    for (size_t at = 0; at < survives.size(); ++at) {
      const int64_t place = static_cast<int64_t>(at);
      if (survives[at] || !e.after[i][at] || !callback_sets_weight(place)) continue;
      layer.weight->expect_bits(place, prop::encode(layer.model.dtype, kCallbackWeight));
    }
  }
}

void expect_masks(const World &world, const Expected &e) {
  for (size_t i = 0; i < e.size(); ++i) {
    const Layer &layer = world.layers[static_cast<size_t>(e.ids[i])];
    for (size_t at = 0; at < e.after[i].size(); ++at) {
      layer.mask->expect_bits(static_cast<int64_t>(at), e.after[i][at] ? 1 : 0);
    }
    if (world.modes.dense) continue;
    for (Buffer *buffer : {layer.gradient, layer.momentum, layer.m1, layer.m2}) {
      expect_masked(buffer, e.after[i]);
    }
  }
}

void check_sums(const Expected &e, const spk_update_report &report) {
  int64_t removed = 0;
  int64_t grown = 0;
  int64_t requested = 0;
  for (const spk_layer_stats &stats : e.stats) {
    removed += stats.removed;
    grown += stats.grown;
    requested += stats.requested_grown;
  }
  prop::same("report: removed", removed, report.removed);
  prop::same("report: grown", grown, report.grown);
  prop::same("report: requested growth", requested, report.requested_grown);
}

void check_growth(World &world, const spk_update_report &report) {
  const int64_t nonzeros = check_counts(world);
  const int64_t residual = world.baseline - nonzeros;
  prop::same("report: nonzeros", nonzeros, report.nonzeros);
  prop::same("report: residual", residual, report.residual);
  world.residuals.push_back(residual);
  double sum = 0;
  for (int64_t one : world.residuals) sum += static_cast<double>(one);
  world.adjusted = world.adjusted / 4 + 0.75 * static_cast<double>(residual) +
                   sum / static_cast<double>(world.residuals.size());
  check_growth_state(world);
}

double expected_rate(const World &world, const Expected &e) {
  if (world.schedule.kind != kMagnitude) return world.schedule.rate(world.position);
  int64_t zeros = 0;
  int64_t numel = 0;
  for (const LayerData &layer : e.before) {
    zeros += layer.inactive();
    numel += layer.numel();
  }
  const double now = static_cast<double>(zeros) / static_cast<double>(numel);
  return std::max(0.0, world.schedule.cumulative(world.position) - now);
}

}  // namespace

void check_update(World &world, Doubts &doubts) {
  world.refill();
  // Whole kernels are judged with the zeros that a step leaves in them.
  if (world.modes.structured_prune()) check_step(world);
  world.c.note([&] { return "update at " + std::to_string(world.position); });
  world.asked_to_prune.assign(world.layers.size(), -1);
  world.asked_to_grow.assign(world.layers.size(), -1);
  const spk_update_report report = call_update(world);
  Expected e = seen_before(world);
  for (int32_t l : e.ids) e.stats.push_back(world.stats(l));
  near("report: rate", expected_rate(world, e), report.rate);
  e.rate = report.rate;
  expect_statistics(world, e);
  expect_rates(world, e);
  expect_pruned(world, e, doubts);
  expect_requests(world, e, doubts);
  expect_grown(world, e);
  expect_weights(world, e);
  expect_masks(world, e);
  check_sums(e, report);
  world.c.verify();
  check_growth(world, report);
}

}  // namespace training
