#include "training/statistics.h"

#include <cmath>

#include "base/error.h"
#include "training/element_keys.h"

namespace spk {
namespace {

double ask(const UpdateCall &update, const CallLayer &layer) {
  const spk_masking_options &o = update.options();
  double statistic = 0.0;
  const int32_t stop = update.call.call_back([&] {
    return o.statistic_fn(o.statistic_user, &update.masking, update.given, layer.id, &statistic);
  });
  const std::string label = label_of(layer.id, *layer.layer);
  if (stop != 0) {
    fail(SPK_CANCELLED, label, ": statistic callback: returned ", stop,
         ", which cancels the update");
  }
  if (!(std::isfinite(statistic) && statistic >= 0.0)) {
    fail(SPK_INVALID_ARGUMENT, label, ": statistic callback: got ", statistic,
         ", expected a finite number >= 0");
  }
  return statistic;
}

double statistic_of(const UpdateCall &update, const CallLayer &layer) {
  const auto mean = [&](const Magnitudes &magnitudes) {
    return mean_magnitude(update.call, layer.shape(), magnitudes, layer.mask, layer.nonzeros);
  };
  if (layer.nonzeros == 0) return 0.0;
  switch (update.options().redistribute) {
    case SPK_REDISTRIBUTE_NONZERO:
      return static_cast<double>(layer.nonzeros);
    case SPK_REDISTRIBUTE_MOMENTUM:
      return mean(momentum_of(layer));
    case SPK_REDISTRIBUTE_GRADIENT:
      return mean(magnitudes_of(layer.gradient));
    case SPK_REDISTRIBUTE_CALLBACK:
      return ask(update, layer);
    default:
      return 0.0;
  }
}

double sum_of(const CallLayers &layers) {
  double sum = 0.0;
  for (const CallLayer &layer : layers) sum += layer.now.statistic;
  return sum;
}

}  // namespace

void measure_statistics(const UpdateCall &update, CallLayers &layers) {
  for (CallLayer &layer : layers) layer.now.statistic = statistic_of(update, layer);
  if (std::isinf(sum_of(layers))) {
    // A power of two that is no less than the number of layers there can be.
    for (CallLayer &layer : layers) layer.now.statistic *= 0x1p-32;
  }
  const double sum = sum_of(layers);
  if (sum == 0.0) return;
  for (CallLayer &layer : layers) layer.now.statistic /= sum;
}

}  // namespace spk
