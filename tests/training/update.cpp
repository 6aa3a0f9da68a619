// What an update has to do with each layer: statistics, rates, prune, hand out, grow.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "checks.hpp"

namespace training {

namespace {

const Layer &layer_of(const World &world, const Expected &e, size_t i) {
  return world.layers[static_cast<size_t>(e.ids[i])];
}

double raw_statistic(const World &world, const Expected &e, size_t i) {
  const LayerData &layer = e.before[i];
  if (layer.nonzeros() == 0) return 0;
  switch (world.modes.redistribute) {
    case SPK_REDISTRIBUTE_NONZERO:
      return static_cast<double>(layer.nonzeros());
    case SPK_REDISTRIBUTE_MOMENTUM:
      return mean_magnitude(layer, layer.momentum);
    case SPK_REDISTRIBUTE_GRADIENT:
      return mean_magnitude(layer, layer.gradient);
    case SPK_REDISTRIBUTE_CALLBACK:
      return callback_statistic(e.ids[i]);
    default:
      return 0;
  }
}

std::vector<bool> without(std::vector<bool> mask, const Places &places) {
  for (int64_t i : places) mask[static_cast<size_t>(i)] = false;
  return mask;
}

std::vector<bool> with(std::vector<bool> mask, const Places &places) {
  for (int64_t i : places) mask[static_cast<size_t>(i)] = true;
  return mask;
}

// The active places of some kernels.
Places active_in(const std::vector<bool> &mask, const Places &kernels, int64_t size) {
  Places places;
  for (int64_t k : kernels) {
    for (int64_t i = k * size; i < (k + 1) * size; ++i) {
      if (mask[static_cast<size_t>(i)]) places.push_back(i);
    }
  }
  return places;
}

Criterion prune_criterion(int mode) {
  switch (mode) {
    case SPK_PRUNE_STRUCT_MAGNITUDE_MEAN:
      return kMean;
    case SPK_PRUNE_STRUCT_MAGNITUDE_MAX:
      return kMax;
    case SPK_PRUNE_STRUCT_MAGNITUDE_MIN:
      return kMin;
    default:
      return kFirst;
  }
}

Criterion grow_criterion(int mode) {
  switch (mode) {
    case SPK_GROW_STRUCT_GRADIENT_MEAN:
      return kMean;
    case SPK_GROW_STRUCT_GRADIENT_MAX:
      return kMax;
    case SPK_GROW_STRUCT_GRADIENT_MIN:
      return kMin;
    default:
      return kFirst;
  }
}

int64_t total_of(const std::vector<int64_t> &counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// The oracle's counts; where rounding alone decides which layer gets a place more, the library's.
std::vector<int64_t> settle(const char *what, const Allotment &allotment,
                            const std::vector<int64_t> &told, Doubts &doubts) {
  ++doubts.questions;
  if (!allotment.doubtful) return allotment.counts;
  ++doubts.doubts;
  prop::same(std::string(what) + ", all together", total_of(allotment.counts), total_of(told));
  for (size_t i = 0; i < told.size(); ++i) {
    if (std::abs(allotment.counts[i] - told[i]) > 1) {
      prop::mismatch(what, static_cast<int64_t>(i), static_cast<double>(allotment.counts[i]),
                     static_cast<double>(told[i]));
    }
  }
  return told;
}

std::string name_of(const World &world, const Expected &e, size_t i, const char *what) {
  return layer_of(world, e, i).name + ": " + what;
}

}  // namespace

// --- statistics and rates -----------------------------------------------------------------------

void expect_statistics(const World &world, const Expected &e) {
  std::vector<double> raw;
  double sum = 0;
  for (size_t i = 0; i < e.size(); ++i) {
    raw.push_back(raw_statistic(world, e, i));
    sum += raw.back();
  }
  for (size_t i = 0; i < e.size(); ++i) {
    near(name_of(world, e, i, "statistic"), sum == 0 ? 0 : raw[i] / sum, e.stats[i].statistic);
  }
}

void expect_rates(const World &world, const Expected &e) {
  // Of all weights together there is one rate, and of a share of all weights none for a layer.
  if (world.modes.prune == SPK_PRUNE_GLOBAL_MAGNITUDE || world.schedule.kind == kMagnitude) return;
  for (size_t i = 0; i < e.size(); ++i) {
    const LayerData &layer = e.before[i];
    double rate = e.rate;
    const bool dense = 5 * layer.inactive() < layer.numel();
    if (dense && e.stats[i].statistic > 1 / static_cast<double>(e.size())) {
      const double sparsity =
          static_cast<double>(layer.inactive()) / static_cast<double>(layer.numel());
      rate = std::min(rate, sparsity);
    }
    near(name_of(world, e, i, "rate"), rate, e.stats[i].rate);
  }
}

// --- prune --------------------------------------------------------------------------------------

namespace {

// Of all layers of a magnitude schedule: what is missing to s(t).
int64_t gradual_total(const World &world, const Expected &e) {
  int64_t zeros = 0;
  int64_t numel = 0;
  for (const LayerData &layer : e.before) {
    zeros += layer.inactive();
    numel += layer.numel();
  }
  // A target that misses a whole number by rounding alone is that number.
  const double target = world.schedule.cumulative(world.position) * static_cast<double>(numel);
  return std::max<int64_t>(0, static_cast<int64_t>(std::ceil(target - 1e-9)) - zeros);
}

// How many weights of each layer a magnitude schedule takes.
std::vector<int64_t> gradual_counts(const World &world, const Expected &e, Doubts &doubts) {
  const int64_t total = gradual_total(world, e);
  std::vector<double> sizes;
  std::vector<int64_t> caps;
  double numel = 0;
  for (const LayerData &layer : e.before) numel += static_cast<double>(layer.numel());
  for (const LayerData &layer : e.before) {
    sizes.push_back(static_cast<double>(layer.numel()) / numel);
    caps.push_back(layer.nonzeros());
  }
  std::vector<int64_t> told;
  for (const spk_layer_stats &stats : e.stats) told.push_back(stats.removed);
  // Kernels do not hold any number of weights.
  if (world.modes.structured_prune()) told = hand_out(total, sizes, caps).counts;
  return settle("removed", hand_out(total, sizes, caps), told, doubts);
}

std::vector<double> scores_of(const World &world, const Expected &e, size_t i) {
  if (!world.modes.structured_prune()) return magnitudes(e.before[i].weight);
  return kernel_scores(e.before[i].weight, layer_of(world, e, i).kernel(),
                       prune_criterion(world.modes.prune));
}

// The weakest kernels: `count` of them, or (-1) as many as hold what the library says it removed.
Places prune_kernels(const World &world, const Expected &e, size_t i, int64_t count) {
  const std::vector<bool> &mask = e.before[i].mask;
  const int64_t size = layer_of(world, e, i).kernel();
  const std::vector<bool> active = active_kernels(mask, size);
  const std::vector<double> scores = scores_of(world, e, i);
  if (count >= 0) return active_in(mask, weakest(scores, active, count), size);
  Places removed;
  const int64_t most = static_cast<int64_t>(active.size());
  for (int64_t n = 1; n <= most && static_cast<int64_t>(removed.size()) < e.stats[i].removed; ++n) {
    removed = active_in(mask, weakest(scores, active, n), size);
  }
  return removed;
}

void prune_each(const World &world, Expected &e, Doubts &doubts) {
  std::vector<int64_t> gradual;
  if (world.schedule.kind == kMagnitude) gradual = gradual_counts(world, e, doubts);
  for (size_t i = 0; i < e.size(); ++i) {
    const LayerData &layer = e.before[i];
    const int64_t size = layer_of(world, e, i).kernel();
    const double asked = e.stats[i].rate * static_cast<double>(layer.nonzeros());
    const int64_t count = gradual.empty() ? ceil_count(asked) : gradual[i];
    if (world.modes.structured_prune()) {
      // How a share of all weights becomes kernels of one layer is not said.
      const bool said = gradual.empty();
      const int64_t kernels = said ? ceil_count(asked / static_cast<double>(size)) : -1;
      e.removed.push_back(prune_kernels(world, e, i, kernels));
      // Kernels times their size, whole or not.
      e.requested_removed.push_back(said ? kernels * size : -1);
    } else {
      e.removed.push_back(weakest(scores_of(world, e, i), layer.mask, count));
      e.requested_removed.push_back(count);
    }
  }
}

void prune_together(const World &world, Expected &e) {
  int64_t count = ceil_count(e.rate * static_cast<double>(world.baseline));
  if (world.schedule.kind == kMagnitude) count = gradual_total(world, e);
  std::vector<double> scores;
  std::vector<bool> active;
  for (const LayerData &layer : e.before) {
    const std::vector<double> own = magnitudes(layer.weight);
    scores.insert(scores.end(), own.begin(), own.end());
    active.insert(active.end(), layer.mask.begin(), layer.mask.end());
  }
  const Places places = weakest(scores, active, count);
  int64_t start = 0;
  for (const LayerData &layer : e.before) {
    Places own;
    for (int64_t place : places) {
      if (place >= start && place < start + layer.numel()) own.push_back(place - start);
    }
    e.removed.push_back(std::move(own));
    e.requested_removed.push_back(-1);
    start += layer.numel();
  }
}

void prune_by_callback(const World &world, Expected &e) {
  for (size_t i = 0; i < e.size(); ++i) {
    const int64_t asked = world.asked_to_prune[static_cast<size_t>(e.ids[i])];
    const double z = static_cast<double>(e.before[i].nonzeros());
    if (world.schedule.kind != kMagnitude) {
      prop::same(name_of(world, e, i, "asked to prune"), ceil_count(e.stats[i].rate * z), asked);
    }
    e.removed.push_back(callback_victims(e.before[i].mask, asked, e.ids[i]));
    e.requested_removed.push_back(asked);
  }
}

}  // namespace

void expect_pruned(World &world, Expected &e, Doubts &doubts) {
  if (world.modes.prune == SPK_PRUNE_CALLBACK) {
    prune_by_callback(world, e);
  } else if (world.modes.prune == SPK_PRUNE_GLOBAL_MAGNITUDE) {
    prune_together(world, e);
  } else {
    prune_each(world, e, doubts);
  }
  for (size_t i = 0; i < e.size(); ++i) {
    prop::same(name_of(world, e, i, "removed"), static_cast<int64_t>(e.removed[i].size()),
               e.stats[i].removed);
    if (e.requested_removed[i] >= 0) {
      prop::same(name_of(world, e, i, "requested to remove"), e.requested_removed[i],
                 e.stats[i].requested_removed);
    }
    e.pruned.push_back(without(e.before[i].mask, e.removed[i]));
  }
}

// --- hand out -----------------------------------------------------------------------------------

namespace {

bool nothing_to_share(const Expected &e) {
  return std::all_of(e.stats.begin(), e.stats.end(),
                     [](const spk_layer_stats &stats) { return stats.statistic == 0; });
}

std::vector<int64_t> lost_places(const Expected &e) {
  std::vector<int64_t> lost;
  for (const Places &places : e.removed) lost.push_back(static_cast<int64_t>(places.size()));
  return lost;
}

int64_t inactive_after_prune(const Expected &e, size_t i) {
  return std::count(e.pruned[i].begin(), e.pruned[i].end(), false);
}

// In whole kernels the exact numbers depend on layers of other kernels; what must hold is that no
// layer is asked for more than there is, and all together for no more than T.
void expect_kernel_requests(const World &world, Expected &e, int64_t total) {
  int64_t asked = 0;
  for (size_t i = 0; i < e.size(); ++i) {
    const int64_t size = layer_of(world, e, i).kernel();
    const int64_t lost = static_cast<int64_t>(e.removed[i].size());
    const int64_t told = e.stats[i].requested_grown;
    if (!world.modes.shares() && lost % size == 0) {
      prop::same(name_of(world, e, i, "requested to grow"), lost, told);
    }
    if (told < 0 || told > inactive_after_prune(e, i)) {
      prop::mismatch(name_of(world, e, i, "requested to grow: ") + std::to_string(told) + " of " +
                     std::to_string(inactive_after_prune(e, i)));
    }
    asked += told;
    e.requested_grown.push_back(-1);
  }
  if (asked > total) {
    prop::mismatch("requested to grow " + std::to_string(asked) + " of " + std::to_string(total));
  }
}

}  // namespace

void expect_requests(World &world, Expected &e, Doubts &doubts) {
  if (world.modes.grow == SPK_GROW_NONE) {
    e.requested_grown.assign(e.size(), 0);
    return;
  }
  std::vector<int64_t> lost = lost_places(e);
  const bool shared = world.modes.shares() && !nothing_to_share(e);
  int64_t total = total_of(lost);
  if (shared) total = std::max<int64_t>(0, total + round_count(world.adjusted));
  if (world.modes.structured_grow()) {
    expect_kernel_requests(world, e, total);
    return;
  }
  if (!shared) {
    e.requested_grown = std::move(lost);
    return;
  }
  std::vector<double> share;
  std::vector<int64_t> caps;
  for (size_t i = 0; i < e.size(); ++i) {
    share.push_back(e.stats[i].statistic);
    caps.push_back(floor_count(0.99 * static_cast<double>(inactive_after_prune(e, i))));
  }
  const Allotment allotment = hand_out(total, share, caps);
  std::vector<int64_t> told;
  for (const spk_layer_stats &stats : e.stats) told.push_back(stats.requested_grown);
  e.requested_grown = settle("requested to grow", allotment, told, doubts);
}

// --- grow ---------------------------------------------------------------------------------------

namespace {

std::vector<bool> grown_kernels(const World &world, const Expected &e, size_t i) {
  const int64_t size = layer_of(world, e, i).kernel();
  const std::vector<bool> candidates = negated(active_kernels(e.pruned[i], size));
  const std::vector<double> scores =
      kernel_scores(e.before[i].gradient, size, grow_criterion(world.modes.grow));
  const int64_t wanted = e.stats[i].requested_grown / size;
  std::vector<bool> after = e.pruned[i];
  for (int64_t k : strongest(scores, candidates, wanted)) {
    for (int64_t at = k * size; at < (k + 1) * size; ++at) after[static_cast<size_t>(at)] = true;
  }
  return after;
}

// Nothing is drawn, nor counted as a draw, where nothing grows.
Places drawn_growth(World &world, int32_t id, const std::vector<bool> &candidates, int64_t count) {
  if (count == 0) return {};
  Layer &layer = world.layers[static_cast<size_t>(id)];
  return drawn({world.seed, id, 1, layer.draws++}, candidates, count);
}

std::vector<bool> grown(World &world, const Expected &e, size_t i) {
  const std::vector<bool> candidates = negated(e.pruned[i]);
  const int64_t requested = e.requested_grown[i];
  const size_t l = static_cast<size_t>(e.ids[i]);
  switch (world.modes.grow) {
    case SPK_GROW_NONE:
      return e.pruned[i];
    case SPK_GROW_RANDOM:
      return with(e.pruned[i], drawn_growth(world, e.ids[i], candidates, requested));
    case SPK_GROW_GRADIENT:
      return with(e.pruned[i], strongest(magnitudes(e.before[i].gradient), candidates, requested));
    case SPK_GROW_MOMENTUM:
      return with(e.pruned[i], strongest(magnitudes(e.before[i].momentum), candidates, requested));
    case SPK_GROW_CALLBACK:
      prop::same(name_of(world, e, i, "asked to grow"), requested, world.asked_to_grow[l]);
      return with(e.pruned[i], callback_growth(e.pruned[i], requested, e.ids[i]));
    default:
      return grown_kernels(world, e, i);
  }
}

}  // namespace

void expect_grown(World &world, Expected &e) {
  for (size_t i = 0; i < e.size(); ++i) {
    if (e.requested_grown[i] >= 0) {
      prop::same(name_of(world, e, i, "requested to grow"), e.requested_grown[i],
                 e.stats[i].requested_grown);
    }
    e.after.push_back(grown(world, e, i));
    const int64_t before = std::count(e.pruned[i].begin(), e.pruned[i].end(), true);
    const int64_t after = std::count(e.after[i].begin(), e.after[i].end(), true);
    prop::same(name_of(world, e, i, "grown"), after - before, e.stats[i].grown);
    if (world.modes.grow == SPK_GROW_RANDOM) {
      prop::same(name_of(world, e, i, "grown at random"), e.requested_grown[i], after - before);
    }
  }
}

}  // namespace training
