// Random masks against the published generator: places are those of the smallest words of Philox
// 4x32-10, keyed by the seed, with the counter (layer, purpose, draw, index). How purposes and draws
// are numbered is the library's own affair, so that they are looked for; that there are some is not.
#include <sparsekit/training.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "../property/handles.hpp"
#include "philox.hpp"

namespace {

using ScheduleHandle = prop::Handle<spk_schedule, spk_schedule_retain, spk_schedule_release>;
using MaskingHandle = prop::Handle<spk_masking, spk_masking_retain, spk_masking_release>;
using Mask = std::vector<uint8_t>;

constexpr uint32_t kMostPurposes = 32;
constexpr uint32_t kMostDraws = 8;
constexpr int32_t kLayers = 3;
constexpr int64_t kNumel = 60;
constexpr int64_t kOnes = 25;

[[noreturn]] void fail(const std::string &what) {
  char text[SPK_MESSAGE_SIZE];
  spk_last_error_copy(text, sizeof text, nullptr);
  std::printf("FAILED: %s (last error: %s)\n", what.c_str(), text);
  std::exit(EXIT_FAILURE);
}

void require(spk_status status, const char *what) {
  if (status != SPK_OK) fail(what);
}

// How a 64-bit word of an index is made of the generator's four numbers.
enum Words { kLowFirst, kHighFirst, kTwoOfABlock, kWordKinds };

uint64_t word_of(const training::Key &key, uint32_t layer, uint32_t purpose, uint32_t draw,
                 uint32_t index, int words) {
  const uint32_t block = words == kTwoOfABlock ? index / 2 : index;
  const training::Counter r = training::philox({layer, purpose, draw, block}, key);
  const size_t first = words == kTwoOfABlock ? 2 * (index % 2) : 0;
  const uint64_t a = r[first];
  const uint64_t b = r[first + 1];
  return words == kHighFirst ? a << 32 | b : b << 32 | a;
}

// The places of the `ones` smallest words, of equal ones the lower.
Mask mask_of(const training::Key &key, uint32_t layer, uint32_t purpose, uint32_t draw, int words) {
  std::vector<uint64_t> word;
  for (uint32_t i = 0; i < kNumel; ++i)
    word.push_back(word_of(key, layer, purpose, draw, i, words));
  std::vector<size_t> order(word.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return word[a] < word[b]; });
  Mask mask(word.size(), 0);
  for (int64_t i = 0; i < kOnes; ++i) mask[order[static_cast<size_t>(i)]] = 1;
  return mask;
}

struct Origin {
  int words;
  uint32_t purpose;
  uint32_t draw;
  auto operator<=>(const Origin &) const = default;
};

std::set<Origin> origins(const Mask &mask, uint64_t seed, uint32_t layer) {
  std::set<Origin> found;
  const training::Key key = training::key_of(seed);
  for (int words = 0; words < kWordKinds; ++words) {
    for (uint32_t purpose = 0; purpose < kMostPurposes; ++purpose) {
      for (uint32_t draw = 0; draw < kMostDraws; ++draw) {
        if (mask_of(key, layer, purpose, draw, words) == mask) found.insert({words, purpose, draw});
      }
    }
  }
  return found;
}

struct Net {
  std::vector<float> weight[kLayers];
  Mask mask[kLayers];
  std::vector<spk_layer> layers;
  prop::ViewHandle view;
  MaskingHandle masking;
};

void create(Net &net, uint64_t seed) {
  ScheduleHandle schedule;
  require(spk_schedule_create_linear(0.3, 10, schedule.out()), "schedule");
  spk_masking_options options = {};
  options.struct_size = sizeof options;
  options.seed = seed;
  require(spk_masking_create(schedule.get(), &options, net.masking.out()), "masking");
  const int64_t shape[2] = {6, 10};
  require(spk_view_create(SPK_F32, 2, shape, nullptr, 0, net.view.out()), "view");
  for (int32_t l = 0; l < kLayers; ++l) {
    net.weight[l].assign(kNumel, 1);
    net.mask[l].assign(kNumel, 0);
    const std::string name = "layer" + std::to_string(l);
    require(spk_masking_add(net.masking.get(), name.c_str(), net.view.get(), nullptr), "add");
    spk_layer layer = {};
    layer.struct_size = sizeof layer;
    layer.weight = {net.weight[l].data(), kNumel, SPK_F32, SPK_LAYOUT_VIEW, nullptr};
    layer.mask = {net.mask[l].data(), kNumel, SPK_U8, SPK_LAYOUT_VIEW, nullptr};
    net.layers.push_back(layer);
  }
}

void draw(Net &net) {
  const std::vector<int64_t> counts(kLayers, kOnes);
  spk_init_options init = {};
  init.struct_size = sizeof init;
  init.mode = SPK_INIT_LOTTERY_TICKET_DIST;
  init.counts = counts.data();
  init.ncounts = kLayers;
  require(spk_masking_initialise(nullptr, net.masking.get(), net.layers.data(), kLayers, &init),
          "initialise");
}

// The one origin of the masks of all layers.
Origin origin_of(const Net &net, uint64_t seed) {
  std::set<Origin> common;
  for (int32_t l = 0; l < kLayers; ++l) {
    const std::set<Origin> own = origins(net.mask[l], seed, static_cast<uint32_t>(l));
    if (own.empty()) fail("no purpose and draw explain the mask of layer " + std::to_string(l));
    if (l == 0) common = own;
    if (own != common) fail("layers have masks of different draws");
  }
  return *common.begin();
}

void check() {
  std::set<int> words;
  std::set<uint32_t> purposes;
  for (uint64_t seed : {uint64_t{0}, uint64_t{42}, uint64_t{0xfedcba9876543210u}}) {
    Net net;
    create(net, seed);
    std::set<uint32_t> draws;
    for (int time = 0; time < 3; ++time) {
      draw(net);
      const Origin origin = origin_of(net, seed);
      words.insert(origin.words);
      purposes.insert(origin.purpose);
      draws.insert(origin.draw);
    }
    if (draws.size() != 3) fail("a draw was repeated");
  }
  if (words.size() != 1 || purposes.size() != 1) fail("the numbering changes from run to run");
}

}  // namespace

int main() {
  check();
  if (spk_live_handles() != 0) fail("handles are alive in the end");
  std::printf("masks are those of the published generator\n");
  return EXIT_SUCCESS;
}
