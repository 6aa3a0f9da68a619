#include "training/prune.h"

#include <algorithm>

#include "base/error.h"
#include "base/rate.h"
#include "core/select_stream.h"
#include "training/criterion.h"
#include "training/element_keys.h"
#include "training/hand_out.h"
#include "training/kernel_masks.h"

namespace spk {
namespace {

int64_t sum_of_nonzeros(const CallLayers &layers) {
  int64_t sum = 0;
  for (const CallLayer &layer : layers) sum += layer.nonzeros;
  return sum;
}

int64_t sum_of_numel(const CallLayers &layers) {
  int64_t sum = 0;
  for (const CallLayer &layer : layers) sum += layer.numel();
  return sum;
}

// --- how many ---------------------------------------------------------------------------------

// A layer that is nearly dense and matters much loses no more than its own sparsity.
double guarded_rate(const CallLayer &layer, double rate, size_t layers) {
  constexpr double kLowSparsity = 0.2;
  const double sparsity =
      static_cast<double>(layer.inactive()) / static_cast<double>(layer.numel());
  const bool matters = layer.now.statistic > 1.0 / static_cast<double>(layers);
  return sparsity < kLowSparsity && matters ? std::min(sparsity, rate) : rate;
}

// What a magnitude schedule asks for: ceil(s n) zeros, counted in whole numbers because the rate is
// a difference.
int64_t missing_zeros(const UpdateCall &update, const CallLayers &layers) {
  const Schedule &schedule = *update.masking.schedule;
  const int64_t numel = sum_of_numel(layers);
  const int64_t nonzeros = sum_of_nonzeros(layers);
  const double sparsity = cumulative_sparsity(schedule, schedule.position);
  return std::clamp<int64_t>(ceil_of_rate(sparsity, numel) - (numel - nonzeros), 0, nonzeros);
}

void share_out(int64_t total, CallLayers &layers) {
  const auto numel = static_cast<double>(sum_of_numel(layers));
  std::vector<Share> shares;
  shares.reserve(layers.size());
  for (const CallLayer &layer : layers) {
    shares.push_back({static_cast<double>(layer.numel()) / numel, layer.nonzeros});
  }
  hand_out(total, shares);
  for (size_t i = 0; i < layers.size(); ++i) layers[i].now.requested_removed = shares[i].given;
}

void decide_rates(const UpdateCall &update, CallLayers &layers) {
  const bool guarded = !update.is_of_all() && update.options().prune != SPK_PRUNE_GLOBAL_MAGNITUDE;
  for (CallLayer &layer : layers) {
    layer.now.rate = guarded ? guarded_rate(layer, update.rate, layers.size()) : update.rate;
  }
}

void decide_counts(const UpdateCall &update, CallLayers &layers) {
  if (update.is_of_all()) return share_out(missing_zeros(update, layers), layers);
  for (CallLayer &layer : layers) {
    layer.now.requested_removed = ceil_of_rate(layer.now.rate, layer.nonzeros);
  }
}

// --- elements ---------------------------------------------------------------------------------

void remove_elements(const UpdateCall &update, CallLayer &layer) {
  const int64_t stay = layer.nonzeros - std::min(layer.now.requested_removed, layer.nonzeros);
  if (stay == layer.nonzeros) return;
  const Scratch::Frame frame(update.call.scratch());
  const Magnitudes weights = magnitudes_of(layer.weight);
  std::byte *keys = take_keys(update.call, weights.width(), layer.numel());
  write_keys(update.call, layer.shape(), weights, layer.mask, Among::kActive, keys);
  keep_largest(update.call, weights.width(), keys, layer.numel(), stay, layer.mask);
}

// --- kernels ----------------------------------------------------------------------------------

Criterion prune_criterion(const spk_masking_options &o) {
  switch (o.prune) {
    case SPK_PRUNE_STRUCT_MAGNITUDE_MAX:
      return {CriterionKind::kMax};
    case SPK_PRUNE_STRUCT_MAGNITUDE_MIN:
      return {CriterionKind::kMin};
    case SPK_PRUNE_STRUCT_CRITERION:
      return {CriterionKind::kCallback, "prune_criterion", o.prune_criterion,
              o.prune_criterion_user};
    default:
      return {CriterionKind::kMean};
  }
}

void remove_kernels(const UpdateCall &update, CallLayer &layer) {
  const int64_t kernel = layer.layer->kernel();
  const int64_t wanted = (layer.now.requested_removed + kernel - 1) / kernel;
  layer.now.requested_removed = wanted * kernel;
  const Criterion criterion = prune_criterion(update.options());
  // The mean, the largest and the smallest of one element are itself.
  if (kernel == 1 && criterion.kind != CriterionKind::kCallback) {
    return remove_elements(update, layer);
  }
  if (wanted == 0) return;
  const Scratch::Frame frame(update.call.scratch());
  const int64_t n = layer.layer->kernels();
  const KernelMask mask{layer.mask, n, kernel};
  double *scores = update.call.scratch().take<double>(n);
  uint8_t *keep = update.call.scratch().take<uint8_t>(n);
  kernel_criteria(update.call, *layer.layer, layer.weight, criterion, scores);
  find_active(update.call, mask, keep);
  std::byte *keys = take_keys(update.call, kKeys64, n);
  const int64_t active =
      write_keys(update.call, {n}, magnitudes_of(scores), keep, Among::kActive, keys);
  keep_largest(update.call, kKeys64, keys, n, active - std::min(wanted, active), keep);
  clear_others(update.call, mask, keep);
}

// --- all layers together ----------------------------------------------------------------------

bool have_one_dtype(const CallLayers &layers) {
  return std::all_of(layers.begin(), layers.end(), [&](const CallLayer &layer) {
    return layer.weight.dtype == layers[0].weight.dtype;
  });
}

// One selection over the keys of all layers, one after the other.
void remove_among_all(const UpdateCall &update, CallLayers &layers, int64_t total) {
  const int64_t nonzeros = sum_of_nonzeros(layers);
  const int64_t stay = nonzeros - std::min(total, nonzeros);
  if (stay == nonzeros) return;
  const Scratch::Frame frame(update.call.scratch());
  const bool as_doubles = !have_one_dtype(layers);
  const KeyForm form = KeyForm::of_elements(as_doubles ? SPK_F64 : layers[0].weight.dtype);
  const int64_t n = sum_of_numel(layers);
  std::byte *keys = take_keys(update.call, form.width, n);
  std::byte *to = keys;
  for (const CallLayer &layer : layers) {
    Magnitudes weights = magnitudes_of(layer.weight);
    weights.as_doubles = as_doubles;
    write_keys(update.call, layer.shape(), weights, layer.mask, Among::kActive, to);
    to += layer.numel() * form.bytes();
  }
  const KeyArray all(update.call.kernels(), form.width, keys, n);
  const Selection selection = select_top(update.call, all, stay, SPK_TIES_BY_POSITION);
  int64_t first = 0;
  for (const CallLayer &layer : layers) {
    keep_selected(update.call, form.width, keys + first * form.bytes(), first, layer.numel(),
                  selection, layer.mask);
    first += layer.numel();
  }
}

// --- the caller's -----------------------------------------------------------------------------

void remove_by_callback(const UpdateCall &update, const CallLayer &layer) {
  const spk_masking_options &o = update.options();
  const int32_t stop = update.call.call_back([&] {
    return o.prune_fn(o.prune_user, &update.masking, update.given, layer.id, layer.now.rate,
                      layer.now.requested_removed);
  });
  if (stop != 0) {
    fail(SPK_CANCELLED, label_of(layer.id, *layer.layer), ": prune callback: returned ", stop,
         ", which cancels the update");
  }
}

void remove_from(const UpdateCall &update, CallLayer &layer) {
  switch (update.options().prune) {
    case SPK_PRUNE_MAGNITUDE:
      return remove_elements(update, layer);
    case SPK_PRUNE_CALLBACK:
      return remove_by_callback(update, layer);
    default:
      return remove_kernels(update, layer);
  }
}

// Counts what was removed, and zeroes it: what grows there again starts at 0.
void settle(const UpdateCall &update, CallLayer &layer) {
  const int64_t left = count_active(update.call, layer.mask, layer.numel());
  layer.now.removed = layer.nonzeros - left;
  layer.nonzeros = left;
  zero_inactive(update.call, layer.shape(), elements_of(layer.weight), layer.mask);
}

int64_t prune_all_together(const UpdateCall &update, CallLayers &layers) {
  const int64_t total = update.is_of_all() ? missing_zeros(update, layers)
                                           : ceil_of_rate(update.rate, update.masking.baseline);
  remove_among_all(update, layers, total);
  for (CallLayer &layer : layers) {
    settle(update, layer);
    layer.now.requested_removed = layer.now.removed;
  }
  return total;
}

}  // namespace

int64_t prune(const UpdateCall &update, CallLayers &layers) {
  decide_rates(update, layers);
  if (update.options().prune == SPK_PRUNE_GLOBAL_MAGNITUDE) {
    return prune_all_together(update, layers);
  }
  decide_counts(update, layers);
  int64_t requested = 0;
  for (CallLayer &layer : layers) {
    remove_from(update, layer);
    settle(update, layer);
    requested += layer.now.requested_removed;
  }
  return requested;
}

}  // namespace spk
