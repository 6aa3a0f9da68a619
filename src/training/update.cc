#include "training/update.h"

#include "training/apply_masks.h"
#include "training/draw.h"
#include "training/grow.h"
#include "training/prune.h"
#include "training/redistribute.h"
#include "training/statistics.h"

namespace spk {
namespace {

// Why a gradient is read, or NULL.
const char *gradient_reason(const spk_masking_options &o) {
  switch (o.grow) {
    case SPK_GROW_GRADIENT:
      return "grow mode SPK_GROW_GRADIENT";
    case SPK_GROW_STRUCT_GRADIENT_MEAN:
      return "grow mode SPK_GROW_STRUCT_GRADIENT_MEAN";
    case SPK_GROW_STRUCT_GRADIENT_MAX:
      return "grow mode SPK_GROW_STRUCT_GRADIENT_MAX";
    case SPK_GROW_STRUCT_GRADIENT_MIN:
      return "grow mode SPK_GROW_STRUCT_GRADIENT_MIN";
    case SPK_GROW_STRUCT_CRITERION:
      return "grow mode SPK_GROW_STRUCT_CRITERION";
    default:
      return o.redistribute == SPK_REDISTRIBUTE_GRADIENT
                 ? "redistribute mode SPK_REDISTRIBUTE_GRADIENT"
                 : nullptr;
  }
}

const char *momentum_reason(const spk_masking_options &o) {
  if (o.grow == SPK_GROW_MOMENTUM) return "grow mode SPK_GROW_MOMENTUM";
  return o.redistribute == SPK_REDISTRIBUTE_MOMENTUM ? "redistribute mode SPK_REDISTRIBUTE_MOMENTUM"
                                                     : nullptr;
}

void check_draws(const Masking &masking) {
  if (masking.options.grow != SPK_GROW_RANDOM) return;
  for_each_layer(masking, [](int32_t id, const MaskedLayer &layer) {
    check_drawable(id, layer, layer.numel());
  });
}

void count_all(Call &call, CallLayers &layers) {
  for (CallLayer &layer : layers) {
    layer.nonzeros = count_active(call, layer.mask, layer.numel());
  }
}

int64_t nonzeros_of(const CallLayers &layers) {
  int64_t sum = 0;
  for (const CallLayer &layer : layers) sum += layer.nonzeros;
  return sum;
}

// Asks a schedule of the caller's as a callback of this call.
double rate_of(Call &call, const Masking &masking, const CallLayers &layers) {
  const Schedule &schedule = *masking.schedule;
  switch (schedule.kind()) {
    case ScheduleKind::kCustom:
      return call.call_back([&] { return schedule.rate(); });
    case ScheduleKind::kMagnitude: {
      const auto numel = static_cast<double>(numel_of(masking));
      if (numel == 0.0) return 0.0;
      return rate_from(schedule, 1.0 - static_cast<double>(nonzeros_of(layers)) / numel);
    }
    default:
      return schedule.rate();
  }
}

// Masks that were given or grown by the caller may allow less than before.
void apply_all(const UpdateCall &update, const CallLayers &layers) {
  int32_t what = update.options().grow == SPK_GROW_CALLBACK ? SPK_APPLY_WEIGHTS : 0;
  if (update.options().dense_gradients == 0) what |= SPK_APPLY_MOMENTUM | SPK_APPLY_GRADIENTS;
  apply_masks(update.call, layers, what);
}

spk_update_report run(UpdateCall &update, CallLayers &layers) {
  spk_update_report report{};
  count_all(update.call, layers);
  update.rate = rate_of(update.call, update.masking, layers);
  measure_statistics(update, layers);
  report.rate = update.rate;
  report.requested_removed = prune(update, layers);
  redistribute(update, layers);
  grow(update, layers);
  apply_all(update, layers);
  report.nonzeros = nonzeros_of(layers);
  for (const CallLayer &layer : layers) {
    report.removed += layer.now.removed;
    report.requested_grown += layer.now.requested_grown;
    report.grown += layer.now.grown;
  }
  return report;
}

void commit(const CallLayers &layers, Masking &masking) {
  for (const CallLayer &layer : layers) {
    masking.layer(layer.id).nonzeros = layer.nonzeros;
    masking.layer(layer.id).last = layer.now;
  }
}

}  // namespace

spk_update_report update(spk_context *context, Masking &masking, const spk_layer *given,
                         int32_t count) {
  const MaskingUse use(masking);
  check_initialised(masking);
  const Needs needs{gradient_reason(masking.options), momentum_reason(masking.options)};
  CallLayers layers = checked_layers(masking, given, count, needs);
  check_draws(masking);
  Call call(context);
  // Loops of a layer, about: only the progress callback's share of work depends on it.
  constexpr int kLoops = 16;
  call.expect_loops(kLoops * static_cast<int>(layers.size()));
  UpdateCall work{call, masking, given};
  spk_update_report report{};
  try {
    report = run(work, layers);
  } catch (...) {
    recount(masking, layers);
    throw;
  }
  commit(layers, masking);
  report.residual = masking.baseline - report.nonzeros;
  masking.residuals.add(report.residual);
  return report;
}

}  // namespace spk
