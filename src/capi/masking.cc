#include "training/masking.h"

#include <limits>

#include "capi/guard.h"
#include "training/apply_masks.h"
#include "training/initialise.h"
#include "training/state.h"
#include "training/update.h"

using namespace spk;
using namespace spk::capi;

namespace {

const MaskedLayer *layer_or_null(const spk_masking *masking, int32_t layer) {
  return masking && masking->has(layer) ? &masking->layer(layer) : nullptr;
}

const MaskedLayer &required_layer(const spk_masking *masking, int32_t layer) {
  if (!required(masking, "masking").has(layer)) {
    fail(SPK_OUT_OF_BOUNDS, "layer: got ", layer, ", expected an id from 0 to ",
         masking->count() - 1);
  }
  return masking->layer(layer);
}

spk_init_options init_options(const spk_init_options *options) {
  return read_struct(&required(options, "options"), spk_init_options{}, "options");
}

void check_stats(const spk_layer_stats *stats) {
  check_struct_size(required(stats, "stats"), "stats");
}

}  // namespace

extern "C" {

spk_status spk_masking_create(spk_schedule *schedule, const spk_masking_options *options,
                              spk_masking **out) {
  return guarded([&] {
    required(out, "out");
    const auto chosen = read_struct(options, spk_masking_options{}, "options");
    *out = make_masking(required(schedule, "schedule"), chosen).detach();
  });
}

void spk_masking_retain(spk_masking *masking) {
  if (masking) masking->retain();
}

void spk_masking_release(spk_masking *masking) {
  if (masking) masking->release();
}

spk_status spk_masking_add(spk_masking *masking, const char *name, const spk_view *view,
                           int32_t *id) {
  return guarded([&] {
    const MaskingUse use(required(masking, "masking"));
    const int32_t added = add_layer(*masking, &required(name, "name"), required(view, "view"));
    if (id) *id = added;
  });
}

spk_status spk_masking_remove(spk_masking *masking, const char *name) {
  return guarded([&] {
    const MaskingUse use(required(masking, "masking"));
    remove_layer(*masking, &required(name, "name"));
  });
}

spk_status spk_masking_remove_matching(spk_masking *masking, const char *part, int32_t *removed) {
  return guarded([&] {
    const MaskingUse use(required(masking, "masking"));
    const int32_t count = remove_matching(*masking, &required(part, "part"));
    if (removed) *removed = count;
  });
}

int32_t spk_masking_layer_count(const spk_masking *masking) {
  return masking ? masking->count() : -1;
}

int32_t spk_masking_find(const spk_masking *masking, const char *name) {
  int32_t id = -1;
  guarded([&] {
    if (masking && name) id = find_layer(*masking, name);
  });
  return id;
}

const char *spk_masking_layer_name(const spk_masking *masking, int32_t layer) {
  const MaskedLayer *found = layer_or_null(masking, layer);
  return found ? found->name.c_str() : nullptr;
}

const spk_view *spk_masking_layer_view(const spk_masking *masking, int32_t layer) {
  const MaskedLayer *found = layer_or_null(masking, layer);
  return found ? found->view.get() : nullptr;
}

int32_t spk_masking_has_layer(const spk_masking *masking, int32_t layer) {
  if (!masking) return -1;
  const MaskedLayer *found = layer_or_null(masking, layer);
  return found && found->belongs() ? 1 : 0;
}

spk_schedule *spk_masking_schedule(const spk_masking *masking) {
  return masking ? masking->schedule.get() : nullptr;
}

spk_status spk_masking_initialise(spk_context *context, spk_masking *masking,
                                  const spk_layer *layers, int32_t nlayers,
                                  const spk_init_options *options) {
  return guarded([&] {
    required(masking, "masking");
    initialise(context, *masking, layers, nlayers, init_options(options));
  });
}

spk_status spk_masking_densities(const spk_masking *masking, const spk_init_options *options,
                                 double *numbers, int32_t count) {
  return guarded([&] {
    required(masking, "masking");
    const spk_init_options chosen = init_options(options);
    densities(*masking, chosen, &required(numbers, "densities"), count);
  });
}

spk_status spk_masking_apply(spk_context *context, const spk_masking *masking,
                             const spk_layer *layers, int32_t nlayers, int32_t what) {
  return guarded([&] {
    constexpr int32_t kAll = SPK_APPLY_WEIGHTS | SPK_APPLY_MOMENTUM | SPK_APPLY_GRADIENTS;
    required(masking, "masking");
    if (what < 1 || what > kAll) {
      fail(SPK_INVALID_ARGUMENT, "what: got ", what, ", expected a sum of SPK_APPLY_..., 1 to ",
           kAll);
    }
    const CallLayers checked = checked_layers(*masking, layers, nlayers, {});
    Call call(context);
    apply_masks(call, checked, what);
  });
}

spk_status spk_masking_step(spk_context *context, spk_masking *masking, const spk_layer *layers,
                            int32_t nlayers) {
  return guarded([&] { step(context, required(masking, "masking"), layers, nlayers); });
}

spk_status spk_masking_update(spk_context *context, spk_masking *masking, const spk_layer *layers,
                              int32_t nlayers, spk_update_report *report) {
  return guarded([&] {
    required(masking, "masking");
    check_report(report);
    write_struct(report, update(context, *masking, layers, nlayers));
  });
}

spk_status spk_masking_layer_stats(const spk_masking *masking, int32_t layer,
                                   spk_layer_stats *stats) {
  return guarded([&] {
    const MaskedLayer &found = required_layer(masking, layer);
    check_stats(stats);
    write_struct(stats, stats_of(found));
  });
}

spk_status spk_masking_stats(const spk_masking *masking, spk_layer_stats *stats) {
  return guarded([&] {
    required(masking, "masking");
    check_stats(stats);
    write_struct(stats, stats_of(*masking));
  });
}

int64_t spk_masking_baseline(const spk_masking *masking) {
  return masking ? masking->baseline : -1;
}

double spk_masking_adjusted_growth(const spk_masking *masking) {
  return masking ? masking->residuals.adjusted_growth : std::numeric_limits<double>::quiet_NaN();
}

spk_status spk_masking_save(const spk_masking *masking, void *blob, size_t capacity,
                            size_t *length) {
  return guarded([&] {
    const std::vector<std::byte> bytes = save(required(masking, "masking"));
    if (length) *length = bytes.size();
    if (!blob) return;
    if (capacity < bytes.size()) {
      fail(SPK_OUT_OF_BOUNDS, "capacity: got ", capacity, ", expected at least ", bytes.size());
    }
    std::memcpy(blob, bytes.data(), bytes.size());
  });
}

spk_status spk_masking_restore(spk_masking *masking, const void *blob, size_t length) {
  return guarded([&] {
    required(masking, "masking");
    const std::byte &first = required(static_cast<const std::byte *>(blob), "blob");
    restore(*masking, {&first, length});
  });
}

}  // extern "C"
