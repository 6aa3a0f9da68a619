// An update: what it does is in prune, redistribute and grow; here is the order.
#pragma once

#include "training/call_layers.h"

namespace spk {

// What the steps of an update share.
struct UpdateCall {
  Call &call;
  Masking &masking;
  const spk_layer *given;  // what the caller brought, for callbacks
  double rate = 0.0;       // of the schedule

  const spk_masking_options &options() const { return masking.options; }
  // A magnitude schedule tells the share of all weights.
  bool is_of_all() const { return masking.schedule->kind() == ScheduleKind::kMagnitude; }
};

// Refuses what must not be before anything is written.
spk_update_report update(spk_context *context, Masking &masking, const spk_layer *given,
                         int32_t count);

}  // namespace spk
