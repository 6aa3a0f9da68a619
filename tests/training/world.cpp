#include "world.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace training {

using prop::Mix;
using prop::Random;

// --- layers -------------------------------------------------------------------------------------

namespace {

std::vector<double> values_before(const Buffer *buffer) {
  std::vector<double> values;
  if (buffer == nullptr) return values;
  for (int64_t i = 0; i < buffer->numel(); ++i) values.push_back(buffer->before(i));
  return values;
}

}  // namespace

LayerData Layer::before() const {
  LayerData data;
  data.shape = shape();
  for (int64_t i = 0; i < numel(); ++i) data.mask.push_back(mask->before_bits(i) != 0);
  data.weight = values_before(weight);
  data.gradient = values_before(gradient);
  data.momentum = values_before(momentum);
  if (m1 != nullptr) {
    for (int64_t i = 0; i < numel(); ++i) {
      data.momentum.push_back(adam_momentum(m1->before(i), m2->before(i)));
    }
  }
  return data;
}

std::string Modes::text() const {
  return "prune " + std::to_string(prune) + ", redistribute " + std::to_string(redistribute) +
         ", grow " + std::to_string(grow) + (dense ? ", dense gradients" : "");
}

// --- callbacks ----------------------------------------------------------------------------------

Places callback_victims(const std::vector<bool> &mask, int64_t requested, int32_t layer) {
  Places places;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (static_cast<int64_t>(places.size()) == requested) break;
    if (mask[i] && (i + static_cast<size_t>(layer)) % 3 != 0) {
      places.push_back(static_cast<int64_t>(i));
    }
  }
  return places;
}

Places callback_growth(const std::vector<bool> &mask, int64_t requested, int32_t layer) {
  Places places;
  // One more than it was asked for in some layers: it may.
  if (layer % 2 == 1) ++requested;
  for (size_t i = mask.size(); i-- > 0;) {
    if (static_cast<int64_t>(places.size()) >= requested) break;
    if (!mask[i]) places.push_back(static_cast<int64_t>(i));
  }
  std::sort(places.begin(), places.end());
  return places;
}

double callback_statistic(int32_t layer) {
  return static_cast<double>((layer * 7 + 3) % 5) / 4;
}

bool callback_sets_weight(int64_t place) {
  return place % 2 == 0;
}

namespace {

std::vector<bool> live_mask(const Layer &layer) {
  std::vector<bool> mask;
  for (int64_t i = 0; i < layer.numel(); ++i) mask.push_back(layer.mask->live_bits(i) != 0);
  return mask;
}

int32_t prune_some(void *user, const spk_masking *masking, const spk_layer *, int32_t layer, double,
                   int64_t requested) {
  World &world = *static_cast<World *>(user);
  const size_t l = static_cast<size_t>(layer);
  if (spk_masking_layer_count(masking) != world.count()) return 7;
  world.asked_to_prune[l] = requested;
  for (int64_t i : callback_victims(live_mask(world.layers[l]), requested, layer)) {
    world.layers[l].mask->set_bits(i, 0);
  }
  return 0;
}

int32_t grow_some(void *user, const spk_masking *, const spk_layer *, int32_t layer,
                  int64_t requested) {
  World &world = *static_cast<World *>(user);
  Layer &one = world.layers[static_cast<size_t>(layer)];
  world.asked_to_grow[static_cast<size_t>(layer)] = requested;
  for (int64_t i : callback_growth(live_mask(one), requested, layer)) {
    // It finds zeros where it may grow.
    if (one.weight->live_bits(i) != 0) return 9;
    one.mask->set_bits(i, 1);
    if (callback_sets_weight(i)) one.weight->set(i, kCallbackWeight);
  }
  return 0;
}

int32_t tell_statistic(void *, const spk_masking *, const spk_layer *, int32_t layer,
                       double *statistic) {
  *statistic = callback_statistic(layer);
  return 0;
}

int32_t first_element(void *, int64_t, const double *elements, int64_t, double *result) {
  *result = elements[0];
  return 0;
}

int32_t custom_schedule(void *, int64_t t, double *rate) {
  *rate = custom_rate(t);
  return 0;
}

spk_masking_options options_for(const Modes &modes, uint64_t seed, World &world) {
  spk_masking_options options = {};
  options.struct_size = sizeof options;
  options.seed = seed;
  options.prune = modes.prune;
  options.redistribute = modes.redistribute;
  options.grow = modes.grow;
  options.dense_gradients = modes.dense ? 1 : 0;
  if (modes.prune == SPK_PRUNE_CALLBACK) {
    options.prune_fn = prune_some;
    options.prune_user = &world;
  }
  if (modes.prune == SPK_PRUNE_STRUCT_CRITERION) options.prune_criterion = first_element;
  if (modes.redistribute == SPK_REDISTRIBUTE_CALLBACK) options.statistic_fn = tell_statistic;
  if (modes.grow == SPK_GROW_CALLBACK) {
    options.grow_fn = grow_some;
    options.grow_user = &world;
  }
  if (modes.grow == SPK_GROW_STRUCT_CRITERION) options.grow_criterion = first_element;
  return options;
}

// --- shapes -------------------------------------------------------------------------------------

constexpr int64_t kMostLayers = 6;
constexpr int64_t kLargeLayer = 30000;

Dims random_shape(Random &random, bool large) {
  const size_t rank = random.pick<size_t>({1, 2, 2, 2, 3, 4, 4});
  Dims shape(rank, 1);
  for (size_t d = 0; d < rank; ++d) {
    shape[d] = d < 2 ? random.between(1, 9) : random.between(1, 4);
  }
  if (rank == 1 && random.one_in(2)) shape[0] = random.between(1, 40);
  if (large) shape[0] = std::max<int64_t>(1, kLargeLayer / prop::product(shape)) + 1;
  return shape;
}

int random_dtype(Random &random) {
  return random.pick({SPK_F32, SPK_F32, SPK_F64, SPK_F16, SPK_BF16});
}

std::vector<int> random_dtypes(Random &random, size_t count) {
  std::vector<int> dtypes;
  for (size_t i = 0; i < count; ++i) dtypes.push_back(random_dtype(random));
  return dtypes;
}

}  // namespace

World::World(Case &one_case) : c(one_case) {
  make_modes();
  make_schedule();
  make_layers();
  make_buffers();
  masking = another();
  c.note([&] { return description(); });
}

std::string World::description() const {
  std::string text = modes.text() + "; " + schedule.text() + "; layers";
  for (const Layer &layer : layers) {
    text += std::string(" ") + prop::dtype_name(layer.model.dtype) + layer.model.view.text();
  }
  return text;
}

void World::make_modes() {
  Random &random = c.random;
  seed = random.bits();
  modes.prune = static_cast<int>(random.between(SPK_PRUNE_MAGNITUDE, SPK_PRUNE_CALLBACK));
  modes.redistribute =
      static_cast<int>(random.between(SPK_REDISTRIBUTE_NONE, SPK_REDISTRIBUTE_CALLBACK));
  modes.grow = static_cast<int>(random.between(SPK_GROW_NONE, SPK_GROW_CALLBACK));
  if (random.one_in(2)) modes.prune = SPK_PRUNE_MAGNITUDE;
  modes.dense = modes.grow == SPK_GROW_MOMENTUM || random.one_in(3);
}

void World::make_schedule() {
  Random &random = c.random;
  schedule.kind = static_cast<Kind>(random.between(0, kKinds - 1));
  schedule.t_max = random.between(4, 30);
  schedule.first = random.pick({0.0, 0.1, 0.3, 0.5, 1.0, random.unit()});
  schedule.last = random.pick({0.0, 0.05, 0.8, 1.0, random.unit()});
  if (schedule.kind == kMagnitude) {
    schedule.t_start = random.between(0, schedule.t_max - 1);
    schedule.interval = random.between(1, 5);
  }
}

ScheduleHandle World::new_schedule() {
  ScheduleHandle made;
  const ScheduleModel &s = schedule;
  spk_status status = SPK_OK;
  switch (s.kind) {
    case kCosine:
      status = spk_schedule_create_cosine(s.first, s.t_max, s.last, -1, made.out());
      break;
    case kLinear:
      status = spk_schedule_create_linear(s.first, s.t_max, made.out());
      break;
    case kMagnitude:
      status = spk_schedule_create_magnitude(s.first, s.last, s.t_max, s.t_start, s.interval,
                                             made.out());
      break;
    default:
      status = spk_schedule_create_custom(custom_schedule, nullptr, made.out());
  }
  c.require(status, "the schedule");
  return made;
}

void World::make_layers() {
  const int64_t wanted = c.random.between(1, kMostLayers);
  for (int64_t l = 0; l < wanted; ++l) {
    Layer layer;
    layer.name = "layer" + std::to_string(l) + ".weight";
    layer.model.dtype = random_dtype(c.random);
    const bool large = c.large && (l == 0 || c.random.one_in(2));
    layer.model.view = prop::random_layout(c.random, random_shape(c.random, large), c.layout_class);
    layer.model.block = Dims(layer.shape().size(), 1);
    const prop::Layout &view = layer.model.view;
    c.require(spk_view_create(layer.model.dtype, static_cast<int32_t>(view.shape.size()),
                              view.shape.data(), view.stride.data(), view.offset, layer.view.out()),
              "spk_view_create " + view.text());
    layers.push_back(std::move(layer));
  }
  asked_to_prune.assign(layers.size(), -1);
  asked_to_grow.assign(layers.size(), -1);
}

void World::make_buffers() {
  std::vector<prop::LeafModel> models;
  for (const Layer &layer : layers) models.push_back(layer.model);
  const size_t n = layers.size();
  const prop::LeafSet weight = make_leaves(c, models, "weight");
  const prop::LeafSet mask = make_contiguous(c, models, "mask", SPK_U8);
  const prop::LeafSet gradient = make_leaves(c, models, "gradient", random_dtypes(c.random, n));
  const prop::LeafSet momentum = make_leaves(c, models, "momentum", random_dtypes(c.random, n));
  const prop::LeafSet m1 = make_leaves(c, models, "m1", random_dtypes(c.random, n));
  const prop::LeafSet m2 = make_leaves(c, models, "m2", random_dtypes(c.random, n));
  for (size_t l = 0; l < n; ++l) {
    layers[l].weight = &weight[l];
    layers[l].mask = &mask[l];
    if (modes.needs_gradient() || c.random.one_in(2)) layers[l].gradient = &gradient[l];
    if (!modes.needs_momentum() && c.random.one_in(2)) continue;
    if (c.random.one_in(2)) {
      layers[l].momentum = &momentum[l];
    } else {
      layers[l].m1 = &m1[l];
      layers[l].m2 = &m2[l];
    }
  }
}

MaskingHandle World::another() {
  const ScheduleHandle its_schedule = new_schedule();
  const spk_masking_options options = options_for(modes, seed, *this);
  MaskingHandle made;
  c.require(spk_masking_create(its_schedule.get(), &options, made.out()), "spk_masking_create");
  for (int32_t l = 0; l < count(); ++l) {
    int32_t id = -1;
    const Layer &layer = layers[static_cast<size_t>(l)];
    c.require(spk_masking_add(made.get(), layer.name.c_str(), layer.view.get(), &id),
              "spk_masking_add");
    prop::same("id", l, id);
  }
  return made;
}

// --- what calls take and tell -------------------------------------------------------------------

std::vector<int32_t> World::members() const {
  std::vector<int32_t> ids;
  for (int32_t l = 0; l < count(); ++l) {
    if (layers[static_cast<size_t>(l)].member) ids.push_back(l);
  }
  return ids;
}

std::vector<spk_layer> World::api() const {
  std::vector<spk_layer> result;
  for (const Layer &layer : layers) {
    spk_layer one = {};
    // Half of those that left are told as nothing.
    if (layer.member || (result.size() + layers.size()) % 2 == 0) {
      one.struct_size = sizeof one;
      one.weight = layer.weight->api();
      one.mask = layer.mask->api();
      if (layer.gradient != nullptr) one.gradient = layer.gradient->api();
      if (layer.momentum != nullptr) one.momentum = layer.momentum->api();
      if (layer.m1 != nullptr) one.adam_m1 = layer.m1->api();
      if (layer.m2 != nullptr) one.adam_m2 = layer.m2->api();
    }
    result.push_back(one);
  }
  return result;
}

spk_layer_stats World::stats(int32_t layer) const {
  spk_layer_stats result = {};
  result.struct_size = sizeof result;
  c.require(spk_masking_layer_stats(masking.get(), layer, &result), "spk_masking_layer_stats");
  return result;
}

std::vector<unsigned char> World::save() const {
  size_t length = 0;
  c.require(spk_masking_save(masking.get(), nullptr, 0, &length), "asking for the length");
  std::vector<unsigned char> blob(length);
  c.require(spk_masking_save(masking.get(), blob.data(), length, nullptr), "spk_masking_save");
  return blob;
}

void World::restore(const std::vector<unsigned char> &blob, bool fresh) {
  if (fresh) masking = another();
  c.require(spk_masking_restore(masking.get(), blob.data(), blob.size()), "spk_masking_restore");
  if (save() != blob) prop::mismatch("a restored masking saves other bytes");
}

// --- numbers ------------------------------------------------------------------------------------

namespace {

// Numbers whose sums do not depend on the order in any digit that could matter.
Mix calm_mix(Random &random) {
  return random.pick({prop::kNormal, prop::kNormal, prop::kTies, prop::kTies, prop::kSparse,
                      prop::kConstant, prop::kZeros});
}

}  // namespace

void World::fill_values(Buffer &buffer, bool summed) {
  prop::fill(c.random, buffer, summed ? calm_mix(c.random) : prop::random_mix(c.random));
}

void World::fill_layer(Layer &layer) {
  fill_values(*layer.weight, modes.prune == SPK_PRUNE_STRUCT_MAGNITUDE_MEAN);
  const bool summed_gradient = modes.redistribute == SPK_REDISTRIBUTE_GRADIENT ||
                               modes.grow == SPK_GROW_STRUCT_GRADIENT_MEAN;
  if (layer.gradient != nullptr) fill_values(*layer.gradient, summed_gradient);
  const bool summed_momentum = modes.redistribute == SPK_REDISTRIBUTE_MOMENTUM;
  if (layer.momentum != nullptr) fill_values(*layer.momentum, summed_momentum);
  if (layer.m1 == nullptr) return;
  fill_values(*layer.m1, summed_momentum);
  // Second moments are squares.
  prop::fill(c.random, *layer.m2, calm_mix(c.random));
  for (int64_t i = 0; i < layer.numel(); ++i) {
    layer.m2->set(i, std::abs(prop::decode(layer.m2->dtype(), layer.m2->live_bits(i))));
  }
}

void World::refill() {
  for (Layer &layer : layers) fill_layer(layer);
}

}  // namespace training
