#include "training/redistribute.h"

#include <algorithm>

#include "base/rate.h"
#include "training/grow.h"
#include "training/hand_out.h"

namespace spk {
namespace {

// So much of what is inactive may grow.
constexpr double kGrowable = 0.99;

int64_t whole_units(int64_t places, int64_t unit) {
  return std::max<int64_t>(places, 0) / unit * unit;
}

bool has_statistics(const CallLayers &layers) {
  return std::any_of(layers.begin(), layers.end(),
                     [](const CallLayer &layer) { return layer.now.statistic > 0.0; });
}

bool is_handed_out(const UpdateCall &update, const CallLayers &layers) {
  const int32_t mode = update.options().redistribute;
  return mode != SPK_REDISTRIBUTE_NONE && mode != SPK_REDISTRIBUTE_NONZERO &&
         has_statistics(layers);
}

// What was removed, and what is missing from updates before.
int64_t places(const UpdateCall &update, const CallLayers &layers) {
  int64_t removed = 0;
  for (const CallLayer &layer : layers) removed += layer.now.removed;
  // A restored state may tell any number.
  constexpr double kMost = 0x1p60;
  const double growth = std::clamp(update.masking.residuals.adjusted_growth, -kMost, kMost);
  return std::max<int64_t>(removed + round_half_up(growth), 0);
}

void hand_out_places(const UpdateCall &update, CallLayers &layers) {
  const int32_t grow = update.options().grow;
  std::vector<Share> shares;
  shares.reserve(layers.size());
  for (const CallLayer &layer : layers) {
    const int64_t unit = unit_of_growth(grow, *layer.layer);
    const int64_t cap = whole_units(floor_of_rate(kGrowable, layer.inactive()), unit);
    shares.push_back({layer.now.statistic, cap, unit});
  }
  hand_out(places(update, layers), shares);
  for (size_t i = 0; i < layers.size(); ++i) layers[i].now.requested_grown = shares[i].given;
}

}  // namespace

void redistribute(const UpdateCall &update, CallLayers &layers) {
  const int32_t grow = update.options().grow;
  if (grow == SPK_GROW_NONE) return;
  if (is_handed_out(update, layers)) return hand_out_places(update, layers);
  for (CallLayer &layer : layers) {
    layer.now.requested_grown = whole_units(layer.now.removed, unit_of_growth(grow, *layer.layer));
  }
}

}  // namespace spk
