// The masking: layers, modes and the counts that go on from update to update. It holds no data.
#pragma once

#include <string>
#include <vector>

#include "core/view.h"
#include "training/schedule.h"

namespace spk {

// Whether a layer belongs to the masking; the values are those of saved states.
enum class Membership : int32_t {
  kBelongs = 0,
  kRemoved = 1,  // by the caller
  kDense = 2,    // left at initialisation
};

// What an update did to a layer.
struct LayerUpdate {
  double statistic = 0.0;
  double rate = 0.0;
  int64_t requested_removed = 0;
  int64_t removed = 0;
  int64_t requested_grown = 0;
  int64_t grown = 0;
};

struct MaskedLayer {
  std::string name;
  Ref<const View> view;
  Membership membership = Membership::kBelongs;
  int64_t nonzeros = 0;  // when last counted
  double requested_density = 1.0;
  uint64_t draws = 0;  // random masks so far
  LayerUpdate last;

  bool belongs() const { return membership == Membership::kBelongs; }
  int64_t numel() const { return view->numel; }
  int rank() const { return view->shape.size(); }
  // A kernel is what the dimensions after the first two hold.
  int64_t kernel() const;
  int64_t kernels() const { return numel() / kernel(); }
};

// Growth that makes up for what is missing from the baseline.
struct Residuals {
  double sum = 0.0;
  int64_t count = 0;
  double adjusted_growth = 0.0;

  void add(int64_t residual);
};

}  // namespace spk

struct spk_masking final : spk::RefCounted {
  spk_masking(spk_schedule *rates, const spk_masking_options &modes);

  spk::Ref<spk_schedule> schedule;
  spk_masking_options options;
  std::vector<spk::MaskedLayer> layers;
  bool initialised = false;
  bool in_use = false;  // by a call whose callbacks may not change it
  int64_t baseline = 0;
  spk::Residuals residuals;

  int32_t count() const { return static_cast<int32_t>(layers.size()); }
  bool has(int32_t id) const { return id >= 0 && id < count(); }
  spk::MaskedLayer &layer(int32_t id) { return layers[static_cast<size_t>(id)]; }
  const spk::MaskedLayer &layer(int32_t id) const { return layers[static_cast<size_t>(id)]; }
};

namespace spk {

using Masking = ::spk_masking;

// Keeps a masking from being changed, and alive, while a call works on it.
class MaskingUse {
 public:
  // Refuses a masking that is in use: a callback wants to change it.
  explicit MaskingUse(Masking &masking);
  ~MaskingUse() { masking_->in_use = false; }
  MaskingUse(const MaskingUse &) = delete;
  MaskingUse &operator=(const MaskingUse &) = delete;

 private:
  Ref<Masking> masking_;
};

Ref<Masking> make_masking(Schedule &schedule, const spk_masking_options &options);

// Adds a layer; returns its id.
int32_t add_layer(Masking &masking, const std::string &name, const View &view);
void remove_layer(Masking &masking, const std::string &name);
// Removes all whose names contain `part`; returns how many.
int32_t remove_matching(Masking &masking, const std::string &part);
// -1 if there is none.
int32_t find_layer(const Masking &masking, const std::string &name);

void check_initialised(const Masking &masking);
// Calls fn(id, layer) for the layers that belong to the masking.
template <typename M, typename Fn>
void for_each_layer(M &masking, Fn &&fn) {
  for (int32_t id = 0; id < masking.count(); ++id) {
    if (masking.layer(id).belongs()) fn(id, masking.layer(id));
  }
}
int64_t nonzeros_of(const Masking &masking);
int64_t numel_of(const Masking &masking);

spk_layer_stats stats_of(const MaskedLayer &layer);
spk_layer_stats stats_of(const Masking &masking);

}  // namespace spk
