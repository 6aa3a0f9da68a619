#include "training/initialise.h"

#include <algorithm>

#include "base/error.h"
#include "base/rate.h"
#include "training/densities.h"
#include "training/draw.h"
#include "training/element_keys.h"
#include "training/kernel_masks.h"

namespace spk {
namespace {

bool draws_by_density(int32_t mode) {
  return mode >= SPK_INIT_RANDOM && mode <= SPK_INIT_STRUCT_ERDOS_RENYI_KERNEL;
}

bool draws(int32_t mode) {
  return draws_by_density(mode) || mode == SPK_INIT_LOTTERY_TICKET_DIST;
}

// Places that are drawn: kernels or elements.
int64_t units_of(const MaskedLayer &layer, int32_t mode) {
  return is_structured(mode) ? layer.kernels() : layer.numel();
}

void check_counts(const Masking &masking, const spk_init_options &options) {
  if (options.mode != SPK_INIT_LOTTERY_TICKET_DIST) {
    if (options.counts || options.ncounts != 0) {
      fail(SPK_INVALID_ARGUMENT, "options: counts: got some, expected NULL and 0 unless the mode ",
           "is SPK_INIT_LOTTERY_TICKET_DIST (", SPK_INIT_LOTTERY_TICKET_DIST, ")");
    }
    return;
  }
  if (!options.counts) fail(SPK_INVALID_ARGUMENT, "options: counts: got NULL, expected counts");
  if (options.ncounts != masking.count()) {
    fail(SPK_SHAPE_MISMATCH, "options: ncounts: got ", options.ncounts, ", expected ",
         masking.count(), ", one per layer that was added");
  }
  for_each_layer(masking, [&](int32_t id, const MaskedLayer &layer) {
    if (options.counts[id] < 0 || options.counts[id] > layer.numel()) {
      fail(SPK_INVALID_ARGUMENT, "options: counts[", id, "]: got ", options.counts[id],
           ", expected 0 to ", layer.numel());
    }
  });
}

void check_options(const Masking &masking, const spk_init_options &options) {
  if (options.mode < 0 || options.mode > SPK_INIT_LOTTERY_TICKET_DIST) {
    fail(SPK_INVALID_ARGUMENT, "options: mode: got ", options.mode, ", expected 0 to ",
         SPK_INIT_LOTTERY_TICKET_DIST);
  }
  if (options.draw != SPK_DRAW_EXACT && options.draw != SPK_DRAW_BERNOULLI) {
    fail(SPK_INVALID_ARGUMENT, "options: draw: got ", options.draw,
         ", expected SPK_DRAW_EXACT (0) or SPK_DRAW_BERNOULLI (1)");
  }
  check_counts(masking, options);
  bool any = false;
  for_each_layer(masking, [&](int32_t id, const MaskedLayer &layer) {
    any = true;
    if (draws(options.mode)) check_drawable(id, layer, units_of(layer, options.mode));
  });
  if (!any) fail(SPK_INVALID_ARGUMENT, "masking: got no layers, expected at least one");
}

// What each layer gets. Densities of masks that are not drawn are only known when they are there.
std::vector<LayerPlan> plan(const Masking &masking, const spk_init_options &options) {
  if (draws_by_density(options.mode)) {
    return plan_densities(masking, options.mode, options.density);
  }
  std::vector<LayerPlan> plans(masking.layers.size());
  for_each_layer(masking, [&](int32_t id, const MaskedLayer &layer) {
    LayerPlan &one = plans[static_cast<size_t>(id)];
    one.takes_part = true;
    if (options.mode == SPK_INIT_LOTTERY_TICKET_DIST) {
      one.density = static_cast<double>(options.counts[id]) / static_cast<double>(layer.numel());
    }
  });
  return plans;
}

// One initialisation.
class Initialisation {
 public:
  Initialisation(Call &call, Masking &masking, const spk_init_options &options)
      : call_(call), masking_(masking), options_(options) {}

  void write_mask(const CallLayer &layer, const LayerPlan &plan) const {
    if (plan.leaves) {
      std::fill_n(layer.mask, layer.numel(), uint8_t{1});
    } else if (options_.mode == SPK_INIT_RESUME) {
      write_nonzero(call_, layer.shape(), elements_of(layer.weight), layer.mask);
    } else if (is_structured(options_.mode)) {
      draw_kernels(layer, plan.density);
    } else if (draws(options_.mode)) {
      draw(layer, plan.density, layer.numel(), layer.mask);
    }
  }

 private:
  void draw_kernels(const CallLayer &layer, double density) const {
    const Scratch::Frame frame(call_.scratch());
    const int64_t kernels = layer.layer->kernels();
    uint8_t *keep = call_.scratch().take<uint8_t>(kernels);
    draw(layer, density, kernels, keep);
    spread_kernels(call_, {layer.mask, kernels, layer.layer->kernel()}, keep);
  }

  void draw(const CallLayer &layer, double density, int64_t units, uint8_t *keep) const {
    const Draw next = next_draw(masking_, layer.id, Purpose::kInitialise);
    if (options_.draw == SPK_DRAW_BERNOULLI) return draw_each(call_, next, units, density, keep);
    draw_exactly(call_, next, units, ones_of(layer, density, units), keep);
  }

  int64_t ones_of(const CallLayer &layer, double density, int64_t units) const {
    if (options_.mode == SPK_INIT_LOTTERY_TICKET_DIST) return options_.counts[layer.id];
    return std::min(round_half_up(density * static_cast<double>(units)), units);
  }

  Call &call_;
  Masking &masking_;
  const spk_init_options &options_;
};

void commit(Masking &masking, const spk_init_options &options, const CallLayers &layers,
            const std::vector<LayerPlan> &plans) {
  for (const CallLayer &one : layers) {
    MaskedLayer &layer = masking.layer(one.id);
    const LayerPlan &plan = plans[static_cast<size_t>(one.id)];
    layer.nonzeros = one.nonzeros;
    layer.last = {};
    const double achieved = static_cast<double>(one.nonzeros) / static_cast<double>(one.numel());
    layer.requested_density = draws(options.mode) ? plan.density : achieved;
    if (plan.leaves) layer.membership = Membership::kDense;
  }
  masking.baseline = nonzeros_of(masking);
  masking.residuals = {};
  masking.initialised = true;
}

}  // namespace

void initialise(spk_context *context, Masking &masking, const spk_layer *given, int32_t count,
                const spk_init_options &options) {
  const MaskingUse use(masking);
  check_options(masking, options);
  const std::vector<LayerPlan> plans = plan(masking, options);
  CallLayers layers = checked_layers(masking, given, count, {});
  Call call(context);
  constexpr int kLoops = 6;  // of a layer, about
  call.expect_loops(kLoops * static_cast<int>(layers.size()));
  const Initialisation work(call, masking, options);
  try {
    for (CallLayer &layer : layers) {
      work.write_mask(layer, plans[static_cast<size_t>(layer.id)]);
      layer.nonzeros = count_active(call, layer.mask, layer.numel());
      zero_inactive(call, layer.shape(), elements_of(layer.weight), layer.mask);
    }
  } catch (...) {
    recount(masking, layers);
    throw;
  }
  commit(masking, options, layers, plans);
}

void densities(const Masking &masking, const spk_init_options &options, double *out,
               int32_t count) {
  if (count != masking.count()) {
    fail(SPK_SHAPE_MISMATCH, "densities: got ", count, " numbers, expected ", masking.count(),
         ", one per layer that was added");
  }
  check_options(masking, options);
  if (!draws_by_density(options.mode)) {
    fail(SPK_INVALID_ARGUMENT, "options: mode: got ", options.mode, ", expected one that draws by ",
         "density, SPK_INIT_RANDOM (0) to SPK_INIT_STRUCT_ERDOS_RENYI_KERNEL (5)");
  }
  const std::vector<LayerPlan> plans = plan(masking, options);
  for (size_t id = 0; id < plans.size(); ++id) out[id] = plans[id].density;
}

}  // namespace spk
