#include "training/call_layers.h"

#include <atomic>

#include "base/dtype.h"
#include "base/error.h"

namespace spk {
namespace {

// Collects the buffers of the layers, one by one.
class LayerReader {
 public:
  LayerReader(const Masking &masking, const Needs &needs)
      : masking_(masking), needs_(needs), buffers_([this](const char *name, int index) {
          return cat(label_of(index, masking_.layer(index)), ": ", name);
        }) {}

  CallLayer read(int32_t id, const spk_layer &given) {
    const MaskedLayer &layer = masking_.layer(id);
    if (given.struct_size != sizeof(spk_layer)) {
      fail(SPK_INVALID_ARGUMENT, label_of(id, layer), ": struct_size: got ", given.struct_size,
           ", expected ", sizeof(spk_layer));
    }
    require(id, "weight", given.weight, "");
    require(id, "mask", given.mask, "");
    if (needs_.gradient) require(id, "gradient", given.gradient, cat(" (", needs_.gradient, ")"));
    check_momentum(id, given);
    CallLayer read;
    read.id = id;
    read.layer = &layer;
    read.weight = buffers_.leaf_of("weight", id, given.weight, *layer.view, Access::kAlone, 0);
    read.mask = buffers_.array_of("mask", id, given.mask, layer.numel(), {SPK_U8}, Access::kAlone)
                    .as<uint8_t>();
    read.gradient = optional(id, "gradient", given.gradient);
    read.momentum = optional(id, "momentum", given.momentum);
    read.adam_m1 = optional(id, "adam_m1", given.adam_m1);
    read.adam_m2 = optional(id, "adam_m2", given.adam_m2);
    return read;
  }

  void check_overlap() { buffers_.check_overlap(); }

 private:
  void require(int32_t id, const char *name, const spk_buffer &buffer, const std::string &why) {
    if (buffer.data) return;
    fail(SPK_INVALID_ARGUMENT, label_of(id, masking_.layer(id)), ": ", name,
         ": got NULL, expected a buffer", why);
  }

  // Moments come in pairs; a momentum that is read is told in one way.
  void check_momentum(int32_t id, const spk_layer &given) {
    const bool adam = given.adam_m1.data || given.adam_m2.data;
    if (adam) {
      require(id, "adam_m1", given.adam_m1, ", as adam_m2 is given");
      require(id, "adam_m2", given.adam_m2, ", as adam_m1 is given");
    }
    if (!needs_.momentum) return;
    if (!adam) {
      require(id, "momentum", given.momentum,
              cat(", or adam_m1 and adam_m2 (", needs_.momentum, ")"));
    } else if (given.momentum.data) {
      fail(SPK_INVALID_ARGUMENT, label_of(id, masking_.layer(id)),
           ": momentum: got a buffer besides adam_m1 and adam_m2, expected one or the others (",
           needs_.momentum, ")");
    }
  }

  LeafData optional(int32_t id, const char *name, const spk_buffer &buffer) {
    if (!buffer.data) return {};
    return buffers_.leaf_of(name, id, buffer, *masking_.layer(id).view, Access::kAlone,
                            Buffers::kAnyFloat);
  }

  const Masking &masking_;
  const Needs &needs_;
  Buffers buffers_;
};

}  // namespace

std::string label_of(int32_t id, const MaskedLayer &layer) {
  return cat("layers[", id, "] \"", shortened(layer.name), "\"");
}

CallLayers checked_layers(const Masking &masking, const spk_layer *given, int32_t count,
                          const Needs &needs) {
  if (count != masking.count()) {
    fail(SPK_SHAPE_MISMATCH, "layers: got ", count, ", expected ", masking.count(),
         ", one per layer that was added");
  }
  if (count > 0 && !given) fail(SPK_INVALID_ARGUMENT, "layers: got NULL");
  CallLayers layers;
  layers.reserve(static_cast<size_t>(count));
  LayerReader reader(masking, needs);
  for_each_layer(masking, [&](int32_t id, const MaskedLayer &) {
    layers.push_back(reader.read(id, given[id]));
  });
  reader.check_overlap();
  return layers;
}

GridArray elements_of(const LeafData &data) {
  return {data.origin, data.dtype, data.stride.times(size_of(data.dtype))};
}

int64_t count_active(Call &call, const uint8_t *mask, int64_t n) {
  constexpr int64_t kRun = int64_t{1} << 17;
  std::atomic<int64_t> count{0};
  call.for_each((n + kRun - 1) / kRun, [&](Scratch &, int64_t i) {
    count += call.kernels().count_active(mask + i * kRun, std::min(kRun, n - i * kRun));
  });
  return count;
}

void recount(Masking &masking, const CallLayers &layers) {
  if (!masking.initialised) return;
  for (const CallLayer &layer : layers) {
    masking.layer(layer.id).nonzeros = kernels().count_active(layer.mask, layer.numel());
  }
}

}  // namespace spk
