/* What the cases of training share: a small net in two layouts, modes with everything they need,
 * and a picture of all that a refused call must leave alone. */
#ifndef SPARSEKIT_TESTS_TRAINING_NET_H_
#define SPARSEKIT_TESTS_TRAINING_NET_H_

#include <sparsekit/training.h>
#include <stdlib.h>

#include "../unit/support.h"

enum { LAYERS = 3, MOST_ELEMENTS = 72, MOST_MEMORY = 160, MOST_BLOB = 8192 };

static const char *const kNames[LAYERS] = {"conv1.weight", "fc.weight", "conv2.weight"};
static const char *const kPlain[LAYERS] = {"(4,3,2,2)", "(8,6)", "(6,4,3,1)"};
/* The same shapes, permuted, with gaps, offsets and steps backwards. */
static const char *const kStrided[LAYERS] = {"(4,3,2,2):(-3,1,24,12)+9", "(8,6):(1,8)",
                                             "(6,4,3,1):(2,12,-48,7)+97"};

struct arrays {
  float weight[LAYERS][MOST_MEMORY];
  float gradient[LAYERS][MOST_MEMORY];
  float momentum[LAYERS][MOST_MEMORY];
  uint8_t mask[LAYERS][MOST_ELEMENTS];
};

struct net {
  struct arrays a;
  spk_view *views[LAYERS];
  spk_schedule *schedule;
  spk_masking *masking;
  spk_layer layers[LAYERS];
};

/* --- numbers --------------------------------------------------------------------------------- */

static inline uint64_t scrambled(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

/* In (-1, 1), never 0. */
static inline float number(uint64_t seed, int kind, int layer, int64_t index) {
  const uint64_t bits =
      scrambled(scrambled(seed * 16 + (uint64_t)kind) ^ (uint64_t)(layer * 1000 + index));
  const float size = (float)((bits >> 40) + 1) * 0x1p-25f;
  return bits & 1 ? size : -size;
}

/* Where element `index` of a layer lies. */
static inline int64_t place_of(const struct net *net, int layer, int64_t index) {
  const spk_view *view = net->views[layer];
  int64_t tuple[SPK_MAX_NDIM];
  int64_t place = 0;
  const int32_t ndim = spk_view_ndim(view);
  for (int32_t d = ndim - 1; d >= 0; --d) {
    tuple[d] = index % spk_view_shape(view)[d];
    index /= spk_view_shape(view)[d];
  }
  assert_ok(spk_view_linear_offset(view, tuple, 1, &place));
  return place;
}

static inline int64_t numel_of(const struct net *net, int layer) {
  return spk_view_numel(net->views[layer]);
}

/* New weights, gradients and momentum, the same in every layout. */
static inline void refill(struct net *net, uint64_t seed) {
  for (int l = 0; l < LAYERS; ++l) {
    for (int64_t i = 0; i < numel_of(net, l); ++i) {
      const int64_t place = place_of(net, l, i);
      net->a.weight[l][place] = number(seed, 1, l, i);
      net->a.gradient[l][place] = number(seed, 2, l, i);
      net->a.momentum[l][place] = number(seed, 3, l, i);
    }
  }
}

static inline int64_t ones_of(const struct net *net, int layer) {
  int64_t ones = 0;
  for (int64_t i = 0; i < numel_of(net, layer); ++i) ones += net->a.mask[layer][i];
  return ones;
}

static inline int64_t all_ones(const struct net *net) {
  int64_t ones = 0;
  for (int l = 0; l < LAYERS; ++l) ones += ones_of(net, l);
  return ones;
}

/* --- callbacks that do what modes of the library might ----------------------------------------- */

static inline int32_t prune_first(void *user, const spk_masking *masking, const spk_layer *layers,
                                  int32_t layer, double rate, int64_t requested) {
  (void)user;
  (void)rate;
  uint8_t *mask = layers[layer].mask.data;
  const int64_t numel = spk_view_numel(spk_masking_layer_view(masking, layer));
  for (int64_t i = 0; i < numel && requested > 0; ++i) {
    if (mask[i]) --requested;
    mask[i] = 0;
  }
  return 0;
}

static inline int32_t grow_last(void *user, const spk_masking *masking, const spk_layer *layers,
                                int32_t layer, int64_t requested) {
  (void)user;
  uint8_t *mask = layers[layer].mask.data;
  const int64_t numel = spk_view_numel(spk_masking_layer_view(masking, layer));
  for (int64_t i = numel - 1; i >= 0 && requested > 0; --i) {
    if (!mask[i]) --requested;
    mask[i] = 1;
  }
  return 0;
}

static inline int32_t layer_number(void *user, const spk_masking *masking, const spk_layer *layers,
                                   int32_t layer, double *statistic) {
  (void)user;
  (void)masking;
  (void)layers;
  *statistic = 1 + layer;
  return 0;
}

static inline int32_t first_of_kernel(void *user, int64_t block, const double *elements,
                                      int64_t count, double *result) {
  (void)user;
  (void)block;
  (void)count;
  *result = elements[0];
  return 0;
}

/* --- making ------------------------------------------------------------------------------------ */

/* Options of three modes, with the functions that they need. */
static inline spk_masking_options options_of(int32_t prune, int32_t redistribute, int32_t grow) {
  spk_masking_options options = {.struct_size = sizeof options,
                                 .seed = 42,
                                 .prune = prune,
                                 .redistribute = redistribute,
                                 .grow = grow};
  options.dense_gradients = grow == SPK_GROW_MOMENTUM;
  if (prune == SPK_PRUNE_CALLBACK) options.prune_fn = prune_first;
  if (prune == SPK_PRUNE_STRUCT_CRITERION) options.prune_criterion = first_of_kernel;
  if (redistribute == SPK_REDISTRIBUTE_CALLBACK) options.statistic_fn = layer_number;
  if (grow == SPK_GROW_CALLBACK) options.grow_fn = grow_last;
  if (grow == SPK_GROW_STRUCT_CRITERION) options.grow_criterion = first_of_kernel;
  return options;
}

static inline spk_schedule *falling_rate(void) {
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_cosine(0.4, 40, 0.05, -1, &schedule));
  return schedule;
}

static inline spk_masking *masking_of(const struct net *net, spk_schedule *schedule,
                                      const spk_masking_options *options) {
  spk_masking *masking = NULL;
  assert_ok(spk_masking_create(schedule, options, &masking));
  for (int l = 0; l < LAYERS; ++l) {
    assert_ok(spk_masking_add(masking, kNames[l], net->views[l], NULL));
  }
  return masking;
}

static inline spk_buffer floats(float *data) {
  return (spk_buffer){data, MOST_MEMORY, SPK_F32, SPK_LAYOUT_VIEW, NULL};
}

/* Takes over the schedule. */
static inline void create_net(struct net *net, const char *const *views, spk_schedule *schedule,
                              const spk_masking_options *options) {
  memset(net, 0, sizeof *net);
  for (int l = 0; l < LAYERS; ++l) {
    net->views[l] = view_of(SPK_F32, views[l]);
    net->layers[l].struct_size = sizeof(spk_layer);
    net->layers[l].weight = floats(net->a.weight[l]);
    net->layers[l].gradient = floats(net->a.gradient[l]);
    net->layers[l].momentum = floats(net->a.momentum[l]);
    net->layers[l].mask = (spk_buffer){net->a.mask[l], numel_of(net, l), SPK_U8, 0, NULL};
  }
  net->schedule = schedule;
  net->masking = masking_of(net, schedule, options);
  refill(net, 1);
}

static inline void release_net(struct net *net) {
  spk_masking_release(net->masking);
  spk_schedule_release(net->schedule);
  for (int l = 0; l < LAYERS; ++l) spk_view_release(net->views[l]);
}

static inline spk_init_options init_of(int32_t mode, double density) {
  return (spk_init_options){
      .struct_size = sizeof(spk_init_options), .density = density, .mode = mode};
}

static inline void initialise(struct net *net, int32_t mode, double density) {
  const spk_init_options init = init_of(mode, density);
  assert_ok(spk_masking_initialise(NULL, net->masking, net->layers, LAYERS, &init));
}

/* A net of some modes whose masks are whole kernels of half density. */
static inline void create_ready(struct net *net, const char *const *views,
                                const spk_masking_options *options) {
  create_net(net, views, falling_rate(), options);
  for (int l = 0; l < LAYERS; ++l) {
    const int64_t numel = numel_of(net, l);
    /* Kernels of 4, 1 and 3 elements. */
    const int64_t kernel = l == 0 ? 4 : l == 1 ? 1 : 3;
    for (int64_t i = 0; i < numel; ++i) net->a.mask[l][i] = i / kernel % 2 == 0;
  }
  initialise(net, SPK_INIT_LOTTERY_TICKET, 0);
}

static inline spk_layer_stats stats_of(const struct net *net, int32_t layer) {
  spk_layer_stats stats = {.struct_size = sizeof stats};
  assert_ok(spk_masking_layer_stats(net->masking, layer, &stats));
  return stats;
}

static inline spk_update_report update(struct net *net) {
  spk_update_report report = {.struct_size = sizeof report};
  assert_ok(spk_masking_update(NULL, net->masking, net->layers, LAYERS, &report));
  return report;
}

static inline void step(struct net *net) {
  assert_ok(spk_masking_step(NULL, net->masking, net->layers, LAYERS));
}

static inline size_t save(const spk_masking *masking, unsigned char *blob) {
  size_t length = 0;
  assert_ok(spk_masking_save(masking, blob, MOST_BLOB, &length));
  return length;
}

/* --- what a refused call must leave alone ------------------------------------------------------ */

struct picture {
  struct arrays a;
  unsigned char blob[MOST_BLOB];
  size_t length;
  spk_layer_stats stats[LAYERS];
  int32_t layers;
  int64_t baseline;
  int64_t position;
  int64_t handles;
};

static inline void take_picture(const struct net *net, struct picture *picture) {
  memset(picture, 0, sizeof *picture);
  picture->a = net->a;
  picture->length = save(net->masking, picture->blob);
  picture->layers = spk_masking_layer_count(net->masking);
  for (int l = 0; l < picture->layers && l < LAYERS; ++l) picture->stats[l] = stats_of(net, l);
  picture->baseline = spk_masking_baseline(net->masking);
  picture->position = spk_schedule_position(net->schedule);
  picture->handles = spk_live_handles();
}

/* A status, and a message that holds every one of the parts, which '|' separates. */
static inline void expect_told(spk_status got, spk_status status, const char *parts,
                               const char *call, const char *file, int line) {
  char told[SPK_MESSAGE_SIZE] = "";
  const spk_status remembered = spk_last_error_copy(told, sizeof told, NULL);
  int missing = got != status || remembered != status;
  char copy[256];
  snprintf(copy, sizeof copy, "%s", parts);
  for (char *part = strtok(copy, "|"); part != NULL; part = strtok(NULL, "|")) {
    missing = missing || strstr(told, part) == NULL;
  }
  if (!missing) return;
  print_error("%s\ngot      %s: %s\nexpected %s, naming %s\n", call, spk_status_string(got),
              got == SPK_OK ? "" : told, spk_status_string(status), parts);
  _fail(file, line);
}

#define assert_told(status, parts, call) \
  expect_told((call), status, parts, #call, __FILE__, __LINE__)

#define assert_refused(net, status, parts, call)                      \
  do {                                                                \
    static struct picture before_call, after_call;                    \
    take_picture(net, &before_call);                                  \
    expect_told((call), status, parts, #call, __FILE__, __LINE__);    \
    take_picture(net, &after_call);                                   \
    if (memcmp(&before_call, &after_call, sizeof before_call) != 0) { \
      print_error("%s: refused, and yet something changed\n", #call); \
      _fail(__FILE__, __LINE__);                                      \
    }                                                                 \
  } while (0)

#endif
