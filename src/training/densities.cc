#include "training/densities.h"

#include <algorithm>

#include "base/error.h"
#include "base/rate.h"

namespace spk {
namespace {

// How densities are shared out among layers.
enum class Sharing { kUniform, kErdosRenyi, kErdosRenyiKernel };

Sharing sharing_of(int32_t mode) {
  switch (mode) {
    case SPK_INIT_ERDOS_RENYI:
    case SPK_INIT_STRUCT_ERDOS_RENYI:
      return Sharing::kErdosRenyi;
    case SPK_INIT_ERDOS_RENYI_KERNEL:
    case SPK_INIT_STRUCT_ERDOS_RENYI_KERNEL:
      return Sharing::kErdosRenyiKernel;
    default:
      return Sharing::kUniform;
  }
}

double raw_density(const Extents &shape, Sharing sharing) {
  const int dims = sharing == Sharing::kErdosRenyi ? 2 : shape.size();
  double sum = 0.0;
  double product = 1.0;
  for (int d = 0; d < dims; ++d) {
    sum += static_cast<double>(shape[d]);
    product *= static_cast<double>(shape[d]);
  }
  return sum / product;
}

// A layer among those that share a density.
struct Sharer {
  int32_t id;
  double raw;
  double numel;
  double wanted;  // floor(density n)
  double spared;  // floor((1 - density) n)
  bool dense = false;
};

// The factor eps: what sparse layers may have together, over what they have by their raw densities.
double solve(const std::vector<Sharer> &sharers) {
  double ones = 0.0;
  double raw = 0.0;
  for (const Sharer &one : sharers) {
    ones += one.dense ? -one.spared : one.wanted;
    if (!one.dense) raw += one.raw * one.numel;
  }
  return raw > 0.0 ? std::max(ones, 0.0) / raw : 0.0;
}

double largest_raw(const std::vector<Sharer> &sharers) {
  double largest = 0.0;
  for (const Sharer &one : sharers) {
    if (!one.dense) largest = std::max(largest, one.raw);
  }
  return largest;
}

void share_by_raw_density(std::vector<Sharer> &sharers, std::vector<LayerPlan> &plans) {
  double eps = solve(sharers);
  while (eps * largest_raw(sharers) > 1.0) {
    const double most = largest_raw(sharers);
    for (Sharer &one : sharers) one.dense = one.dense || one.raw == most;
    eps = solve(sharers);
  }
  for (const Sharer &one : sharers) {
    plans[static_cast<size_t>(one.id)].density = one.dense ? 1.0 : eps * one.raw;
  }
}

// Gives the layers that take part and stay this density, all together.
void share_out(const Masking &masking, Sharing sharing, double density,
               std::vector<LayerPlan> &plans) {
  std::vector<Sharer> sharers;
  for_each_layer(masking, [&](int32_t id, const MaskedLayer &layer) {
    LayerPlan &plan = plans[static_cast<size_t>(id)];
    if (plan.leaves) return;
    plan.density = density;
    if (sharing == Sharing::kUniform) return;
    const int64_t n = layer.numel();
    sharers.push_back({id, raw_density(layer.view->shape, sharing), static_cast<double>(n),
                       static_cast<double>(floor_of_rate(density, n)),
                       static_cast<double>(floor_of_rate(1.0 - density, n))});
  });
  if (sharing != Sharing::kUniform) share_by_raw_density(sharers, plans);
}

void check_rank(int32_t id, const MaskedLayer &layer) {
  if (layer.rank() < 2) {
    fail(SPK_INVALID_ARGUMENT, "layers[", id, "] \"", shortened(layer.name), "\": got rank ",
         layer.rank(), ", expected at least 2 for this mode of initialisation");
  }
}

// The first layer leaves, unless one has done so at an earlier initialisation.
void let_first_leave(const Masking &masking, std::vector<LayerPlan> &plans) {
  for (int32_t id = 0; id < masking.count(); ++id) {
    const Membership membership = masking.layer(id).membership;
    if (membership == Membership::kRemoved) continue;
    plans[static_cast<size_t>(id)].leaves = membership == Membership::kBelongs;
    return;
  }
}

// Layers of rank 2 leave. Returns the density that makes up for them, and for those of rank 2 that
// left at an earlier initialisation.
double let_flat_leave(const Masking &masking, double density, std::vector<LayerPlan> &plans) {
  double kept = 0.0;
  double left = 0.0;
  for (int32_t id = 0; id < masking.count(); ++id) {
    const MaskedLayer &layer = masking.layer(id);
    if (layer.membership == Membership::kRemoved) continue;
    const bool leaves = layer.rank() == 2;
    plans[static_cast<size_t>(id)].leaves = leaves && layer.belongs();
    if (leaves) left += static_cast<double>(layer.numel());
    if (!leaves && layer.belongs()) kept += static_cast<double>(layer.numel());
  }
  if (kept == 0.0) {
    fail(SPK_INVALID_ARGUMENT, "options: mode: got a structured one, expected layers of rank > 2");
  }
  const double adjusted = (density * (kept + left) - left) / kept;
  if (adjusted < 0.0) {
    fail(SPK_INVALID_ARGUMENT, "options: density: got ", density, ", expected at least ",
         left / (kept + left), ": layers of rank 2 are left dense");
  }
  return std::min(adjusted, 1.0);
}

}  // namespace

bool is_structured(int32_t init_mode) {
  return init_mode >= SPK_INIT_STRUCT_RANDOM && init_mode <= SPK_INIT_STRUCT_ERDOS_RENYI_KERNEL;
}

std::vector<LayerPlan> plan_densities(const Masking &masking, int32_t mode, double density) {
  check_share("options: density", density);
  std::vector<LayerPlan> plans(masking.layers.size());
  const Sharing sharing = sharing_of(mode);
  for_each_layer(masking, [&](int32_t id, const MaskedLayer &layer) {
    plans[static_cast<size_t>(id)].takes_part = true;
    if (sharing != Sharing::kUniform || is_structured(mode)) check_rank(id, layer);
  });
  double remaining = density;
  if (mode == SPK_INIT_RANDOM) let_first_leave(masking, plans);
  if (is_structured(mode)) remaining = let_flat_leave(masking, density, plans);
  share_out(masking, sharing, remaining, plans);
  for (LayerPlan &plan : plans) {
    if (plan.leaves) plan.density = 1.0;
  }
  return plans;
}

}  // namespace spk
