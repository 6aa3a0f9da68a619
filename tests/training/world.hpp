// A masking with its layers and buffers, and what is known about it without asking it.
#ifndef SPARSEKIT_TESTS_TRAINING_WORLD_HPP_
#define SPARSEKIT_TESTS_TRAINING_WORLD_HPP_

#include <sparsekit/training.h>

#include <string>
#include <vector>

#include "../property/case.hpp"
#include "../property/data.hpp"
#include "oracle.hpp"

namespace training {

using ScheduleHandle = prop::Handle<spk_schedule, spk_schedule_retain, spk_schedule_release>;
using MaskingHandle = prop::Handle<spk_masking, spk_masking_retain, spk_masking_release>;
using prop::Buffer;
using prop::Case;

struct Layer {
  std::string name;
  prop::LeafModel model;
  prop::ViewHandle view;
  bool member = true;
  Buffer *weight = nullptr;
  Buffer *mask = nullptr;
  Buffer *gradient = nullptr;  // NULL: not given
  Buffer *momentum = nullptr;
  Buffer *m1 = nullptr;
  Buffer *m2 = nullptr;

  const Dims &shape() const { return model.view.shape; }
  int64_t numel() const { return prop::product(shape()); }
  int64_t kernel() const { return kernel_size(shape()); }
  // How often places of this layer were drawn.
  uint32_t draws = 0;
  // As the call found it.
  LayerData before() const;
};

struct Modes {
  int prune = SPK_PRUNE_MAGNITUDE;
  int redistribute = SPK_REDISTRIBUTE_NONE;
  int grow = SPK_GROW_NONE;
  bool dense = false;

  bool structured_prune() const {
    return prune >= SPK_PRUNE_STRUCT_MAGNITUDE_MEAN && prune <= SPK_PRUNE_STRUCT_CRITERION;
  }
  bool structured_grow() const {
    return grow >= SPK_GROW_STRUCT_GRADIENT_MEAN && grow <= SPK_GROW_STRUCT_CRITERION;
  }
  bool needs_gradient() const {
    return redistribute == SPK_REDISTRIBUTE_GRADIENT || grow == SPK_GROW_GRADIENT ||
           structured_grow();
  }
  bool needs_momentum() const {
    return redistribute == SPK_REDISTRIBUTE_MOMENTUM || grow == SPK_GROW_MOMENTUM;
  }
  // Statistics that depend on the values: sums, and so numbers that can be summed.
  bool measured() const {
    return redistribute == SPK_REDISTRIBUTE_MOMENTUM || redistribute == SPK_REDISTRIBUTE_GRADIENT;
  }
  bool shares() const {
    return redistribute != SPK_REDISTRIBUTE_NONE && redistribute != SPK_REDISTRIBUTE_NONZERO;
  }
  std::string text() const;
};

class World {
 public:
  explicit World(Case &c);

  Case &c;
  Modes modes;
  uint64_t seed = 0;
  ScheduleModel schedule;
  int64_t position = 0;
  std::vector<Layer> layers;
  MaskingHandle masking;

  // What training knows between calls.
  int64_t baseline = 0;
  double adjusted = 0;
  std::vector<int64_t> residuals;

  // What the callbacks of the last call were asked for, by layer; -1: not asked.
  std::vector<int64_t> asked_to_prune;
  std::vector<int64_t> asked_to_grow;

  int32_t count() const { return static_cast<int32_t>(layers.size()); }
  std::vector<int32_t> members() const;
  std::vector<spk_layer> api() const;
  spk_layer_stats stats(int32_t layer) const;

  // Another masking with the same modes and layers, before initialisation.
  MaskingHandle another();
  std::vector<unsigned char> save() const;
  // Takes up a saved state, with a masking that knows nothing or with this one.
  void restore(const std::vector<unsigned char> &blob, bool fresh);

  // New numbers in all buffers but the masks.
  void refill();

 private:
  void make_layers();
  void make_buffers();
  void make_modes();
  void make_schedule();
  ScheduleHandle new_schedule();
  void fill_layer(Layer &layer);
  void fill_values(Buffer &buffer, bool summed);
  std::string description() const;
};

// What the callbacks do.
Places callback_victims(const std::vector<bool> &mask, int64_t requested, int32_t layer);
Places callback_growth(const std::vector<bool> &mask, int64_t requested, int32_t layer);
double callback_statistic(int32_t layer);
// The weight that the growing callback sets, if it sets one.
bool callback_sets_weight(int64_t place);
constexpr double kCallbackWeight = 0.5;

}  // namespace training

#endif  // SPARSEKIT_TESTS_TRAINING_WORLD_HPP_
