#include "training/apply_masks.h"

#include "training/element_keys.h"

namespace spk {

void apply_masks(Call &call, const CallLayers &layers, int32_t what) {
  const auto apply = [&](const CallLayer &layer, const LeafData &data) {
    if (data.origin) zero_inactive(call, layer.shape(), elements_of(data), layer.mask);
  };
  for (const CallLayer &layer : layers) {
    if ((what & SPK_APPLY_WEIGHTS) != 0) apply(layer, layer.weight);
    if ((what & SPK_APPLY_MOMENTUM) != 0) {
      apply(layer, layer.momentum);
      apply(layer, layer.adam_m1);
      apply(layer, layer.adam_m2);
    }
    if ((what & SPK_APPLY_GRADIENTS) != 0) apply(layer, layer.gradient);
  }
}

void step(spk_context *context, Masking &masking, const spk_layer *given, int32_t count) {
  const MaskingUse use(masking);
  check_initialised(masking);
  const CallLayers layers = checked_layers(masking, given, count, {});
  Call call(context);
  call.expect_loops(static_cast<int>(layers.size()));
  const bool dense = masking.options.dense_gradients != 0;
  apply_masks(call, layers, dense ? SPK_APPLY_WEIGHTS : SPK_APPLY_WEIGHTS | SPK_APPLY_MOMENTUM);
  masking.schedule->step();
}

}  // namespace spk
