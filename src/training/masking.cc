#include "training/masking.h"

#include <algorithm>

#include "base/error.h"

namespace spk {
namespace {

// A callback, the mode it belongs to, and the mode that was chosen.
struct CallbackRule {
  const char *name;
  bool given;
  const char *mode_name;
  const char *mode_constant;
  int32_t mode;
  int32_t chosen;
};

void check_callback(const CallbackRule &rule) {
  const bool wanted = rule.chosen == rule.mode;
  if (wanted && !rule.given) {
    fail(SPK_INVALID_ARGUMENT, "options: ", rule.name, ": got NULL, expected a function (",
         rule.mode_name, " mode ", rule.mode_constant, ")");
  }
  if (!wanted && rule.given) {
    fail(SPK_INVALID_ARGUMENT, "options: ", rule.name, ": got a function with ", rule.mode_name,
         " mode ", rule.chosen, ", expected NULL unless it is ", rule.mode_constant, " (",
         rule.mode, ")");
  }
}

void check_mode(const char *name, int32_t mode, int32_t last) {
  if (mode < 0 || mode > last) {
    fail(SPK_INVALID_ARGUMENT, "options: ", name, ": got ", mode, ", expected 0 to ", last);
  }
}

void check_options(const spk_masking_options &o) {
  check_mode("prune", o.prune, SPK_PRUNE_CALLBACK);
  check_mode("redistribute", o.redistribute, SPK_REDISTRIBUTE_CALLBACK);
  check_mode("grow", o.grow, SPK_GROW_CALLBACK);
  check_mode("dense_gradients", o.dense_gradients, 1);
  check_callback({"prune_fn", o.prune_fn != nullptr, "prune", "SPK_PRUNE_CALLBACK",
                  SPK_PRUNE_CALLBACK, o.prune});
  check_callback({"prune_criterion", o.prune_criterion != nullptr, "prune",
                  "SPK_PRUNE_STRUCT_CRITERION", SPK_PRUNE_STRUCT_CRITERION, o.prune});
  check_callback({"statistic_fn", o.statistic_fn != nullptr, "redistribute",
                  "SPK_REDISTRIBUTE_CALLBACK", SPK_REDISTRIBUTE_CALLBACK, o.redistribute});
  check_callback(
      {"grow_fn", o.grow_fn != nullptr, "grow", "SPK_GROW_CALLBACK", SPK_GROW_CALLBACK, o.grow});
  check_callback({"grow_criterion", o.grow_criterion != nullptr, "grow",
                  "SPK_GROW_STRUCT_CRITERION", SPK_GROW_STRUCT_CRITERION, o.grow});
  if (o.grow == SPK_GROW_MOMENTUM && o.dense_gradients == 0) {
    fail(SPK_INVALID_ARGUMENT, "options: grow: got SPK_GROW_MOMENTUM without dense_gradients, ",
         "expected dense_gradients 1: masked momentum is zero wherever it would grow");
  }
}

// What the remaining layers had becomes what growth aims for.
void leave(Masking &masking, MaskedLayer &layer) {
  layer.membership = Membership::kRemoved;
  masking.baseline = nonzeros_of(masking);
}

}  // namespace

int64_t MaskedLayer::kernel() const {
  int64_t kernel = 1;
  for (int d = 2; d < rank(); ++d) kernel *= view->shape[d];
  return kernel;
}

void Residuals::add(int64_t residual) {
  const auto last = static_cast<double>(residual);
  sum += last;
  ++count;
  adjusted_growth = 0.25 * adjusted_growth + 0.75 * last + sum / static_cast<double>(count);
}

MaskingUse::MaskingUse(Masking &masking) : masking_(Ref<Masking>::share(&masking)) {
  if (masking.in_use) {
    fail(SPK_INVALID_ARGUMENT, "masking: in use by the call whose callback this is; a callback ",
         "may read the masking, but not change it");
  }
  masking.in_use = true;
}

Ref<Masking> make_masking(Schedule &schedule, const spk_masking_options &options) {
  check_options(options);
  return Ref<Masking>::adopt(new Masking(&schedule, options));
}

int32_t add_layer(Masking &masking, const std::string &name, const View &view) {
  if (masking.initialised) {
    fail(SPK_INVALID_ARGUMENT, "masking: initialised, expected layers to be added before that");
  }
  if (name.empty()) fail(SPK_INVALID_ARGUMENT, "name: got an empty one, expected characters");
  const int32_t other = find_layer(masking, name);
  if (other >= 0) {
    fail(SPK_INVALID_ARGUMENT, "name: got \"", shortened(name), "\", the name of layer ", other,
         ", expected one of its own");
  }
  MaskedLayer layer;
  layer.name = name;
  layer.view = Ref<const View>::share(&view);
  layer.nonzeros = view.numel;
  masking.layers.push_back(std::move(layer));
  masking.baseline += view.numel;
  return masking.count() - 1;
}

void remove_layer(Masking &masking, const std::string &name) {
  const int32_t id = find_layer(masking, name);
  if (id < 0 || !masking.layer(id).belongs()) {
    fail(SPK_INVALID_ARGUMENT, "name: got \"", shortened(name), "\", expected that of a layer ",
         id < 0 ? "that was added" : "that has not left");
  }
  leave(masking, masking.layer(id));
}

int32_t remove_matching(Masking &masking, const std::string &part) {
  if (part.empty())
    fail(SPK_INVALID_ARGUMENT, "part: got an empty one, expected letters of a name");
  int32_t removed = 0;
  for_each_layer(masking, [&](int32_t, MaskedLayer &layer) {
    if (layer.name.find(part) == std::string::npos) return;
    leave(masking, layer);
    ++removed;
  });
  if (removed == 0) {
    fail(SPK_INVALID_ARGUMENT, "part: got \"", shortened(part),
         "\", expected a part of the name of a layer that has not left");
  }
  return removed;
}

int32_t find_layer(const Masking &masking, const std::string &name) {
  for (int32_t id = 0; id < masking.count(); ++id) {
    if (masking.layer(id).name == name) return id;
  }
  return -1;
}

void check_initialised(const Masking &masking) {
  if (!masking.initialised) {
    fail(SPK_INVALID_ARGUMENT, "masking: not initialised, expected spk_masking_initialise or ",
         "spk_masking_restore before");
  }
}

int64_t nonzeros_of(const Masking &masking) {
  int64_t sum = 0;
  for_each_layer(masking, [&](int32_t, const MaskedLayer &layer) { sum += layer.nonzeros; });
  return sum;
}

int64_t numel_of(const Masking &masking) {
  int64_t sum = 0;
  for_each_layer(masking, [&](int32_t, const MaskedLayer &layer) { sum += layer.numel(); });
  return sum;
}

spk_layer_stats stats_of(const MaskedLayer &layer) {
  spk_layer_stats stats{};
  stats.struct_size = sizeof stats;
  stats.numel = layer.numel();
  stats.nonzeros = layer.nonzeros;
  stats.zeros = stats.numel - stats.nonzeros;
  stats.density = static_cast<double>(stats.nonzeros) / static_cast<double>(stats.numel);
  stats.requested_density = layer.requested_density;
  stats.statistic = layer.last.statistic;
  stats.rate = layer.last.rate;
  stats.requested_removed = layer.last.requested_removed;
  stats.removed = layer.last.removed;
  stats.requested_grown = layer.last.requested_grown;
  stats.grown = layer.last.grown;
  return stats;
}

spk_layer_stats stats_of(const Masking &masking) {
  spk_layer_stats all{};
  all.struct_size = sizeof all;
  for_each_layer(masking, [&](int32_t, const MaskedLayer &layer) {
    const spk_layer_stats one = stats_of(layer);
    const auto numel = static_cast<double>(one.numel);
    all.numel += one.numel;
    all.nonzeros += one.nonzeros;
    all.zeros += one.zeros;
    all.requested_density += one.requested_density * numel;
    all.statistic += one.statistic;
    all.rate += one.rate * numel;
    all.requested_removed += one.requested_removed;
    all.removed += one.removed;
    all.requested_grown += one.requested_grown;
    all.grown += one.grown;
  });
  if (all.numel == 0) return all;
  const auto numel = static_cast<double>(all.numel);
  all.density = static_cast<double>(all.nonzeros) / numel;
  all.requested_density /= numel;
  all.rate /= numel;
  return all;
}

}  // namespace spk

spk_masking::spk_masking(spk_schedule *rates, const spk_masking_options &modes)
    : schedule(spk::Ref<spk_schedule>::share(rates)), options(modes) {}
