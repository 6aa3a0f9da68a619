#include "training/grow.h"

#include <algorithm>

#include "base/error.h"
#include "training/criterion.h"
#include "training/draw.h"
#include "training/element_keys.h"
#include "training/kernel_masks.h"

namespace spk {
namespace {

bool is_structured_growth(int32_t mode) {
  return mode >= SPK_GROW_STRUCT_GRADIENT_MEAN && mode <= SPK_GROW_STRUCT_CRITERION;
}

void grow_largest(const UpdateCall &update, const CallLayer &layer, const Magnitudes &magnitudes) {
  const Scratch::Frame frame(update.call.scratch());
  const int64_t n = layer.numel();
  std::byte *keys = take_keys(update.call, magnitudes.width(), n);
  const int64_t growable =
      write_keys(update.call, layer.shape(), magnitudes, layer.mask, Among::kInactive, keys);
  const int64_t wanted = std::min(layer.now.requested_grown, growable);
  keep_largest(update.call, magnitudes.width(), keys, n, layer.nonzeros + wanted, layer.mask);
}

void grow_at_random(const UpdateCall &update, const CallLayer &layer) {
  const Scratch::Frame frame(update.call.scratch());
  const int64_t n = layer.numel();
  const Draw draw = next_draw(update.masking, layer.id, Purpose::kGrow);
  std::byte *keys = take_keys(update.call, kKeys64, n);
  write_random_keys(update.call, draw, layer.mask, n, keys);
  const int64_t wanted = std::min(layer.now.requested_grown, layer.inactive());
  keep_largest(update.call, kKeys64, keys, n, layer.nonzeros + wanted, layer.mask);
}

Criterion growth_criterion(const spk_masking_options &o) {
  switch (o.grow) {
    case SPK_GROW_STRUCT_GRADIENT_MAX:
      return {CriterionKind::kMax};
    case SPK_GROW_STRUCT_GRADIENT_MIN:
      return {CriterionKind::kMin};
    case SPK_GROW_STRUCT_CRITERION:
      return {CriterionKind::kCallback, "grow_criterion", o.grow_criterion, o.grow_criterion_user};
    default:
      return {CriterionKind::kMean};
  }
}

void grow_kernels(const UpdateCall &update, const CallLayer &layer) {
  const Criterion criterion = growth_criterion(update.options());
  const int64_t kernel = layer.layer->kernel();
  // The mean, the largest and the smallest of one element are itself.
  if (kernel == 1 && criterion.kind != CriterionKind::kCallback) {
    return grow_largest(update, layer, magnitudes_of(layer.gradient));
  }
  const Scratch::Frame frame(update.call.scratch());
  const int64_t n = layer.layer->kernels();
  const KernelMask mask{layer.mask, n, kernel};
  double *scores = update.call.scratch().take<double>(n);
  uint8_t *keep = update.call.scratch().take<uint8_t>(n);
  kernel_criteria(update.call, *layer.layer, layer.gradient, criterion, scores);
  find_active(update.call, mask, keep);
  const int64_t active = count_active(update.call, keep, n);
  std::byte *keys = take_keys(update.call, kKeys64, n);
  const int64_t growable =
      write_keys(update.call, {n}, magnitudes_of(scores), keep, Among::kInactive, keys);
  const int64_t wanted = std::min(layer.now.requested_grown / kernel, growable);
  keep_largest(update.call, kKeys64, keys, n, active + wanted, keep);
  fill_empty(update.call, mask, keep);
}

void grow_by_callback(const UpdateCall &update, const CallLayer &layer) {
  const spk_masking_options &o = update.options();
  const int32_t stop = update.call.call_back([&] {
    return o.grow_fn(o.grow_user, &update.masking, update.given, layer.id,
                     layer.now.requested_grown);
  });
  if (stop != 0) {
    fail(SPK_CANCELLED, label_of(layer.id, *layer.layer), ": grow callback: returned ", stop,
         ", which cancels the update");
  }
}

void grow_layer(const UpdateCall &update, const CallLayer &layer) {
  const int32_t mode = update.options().grow;
  if (mode == SPK_GROW_CALLBACK) return grow_by_callback(update, layer);
  if (layer.now.requested_grown == 0) return;
  switch (mode) {
    case SPK_GROW_RANDOM:
      return grow_at_random(update, layer);
    case SPK_GROW_GRADIENT:
      return grow_largest(update, layer, magnitudes_of(layer.gradient));
    case SPK_GROW_MOMENTUM:
      return grow_largest(update, layer, momentum_of(layer));
    default:
      return grow_kernels(update, layer);
  }
}

}  // namespace

int64_t unit_of_growth(int32_t grow_mode, const MaskedLayer &layer) {
  return is_structured_growth(grow_mode) ? layer.kernel() : 1;
}

void grow(const UpdateCall &update, CallLayers &layers) {
  if (update.options().grow == SPK_GROW_NONE) return;
  for (CallLayer &layer : layers) {
    grow_layer(update, layer);
    const int64_t nonzeros = count_active(update.call, layer.mask, layer.numel());
    layer.now.grown = nonzeros - layer.nonzeros;
    layer.nonzeros = nonzeros;
  }
}

}  // namespace spk
