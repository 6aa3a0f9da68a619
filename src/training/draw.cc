#include "training/draw.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "training/element_keys.h"

namespace spk {
namespace {

constexpr int64_t kRun = int64_t{1} << 13;

RandomKeysArgs args_of(const Draw &draw) {
  RandomKeysArgs args{};
  args.key = philox_key(draw.seed);
  args.counter[0] = static_cast<uint32_t>(draw.layer);
  args.counter[1] = static_cast<uint32_t>(draw.purpose);
  args.counter[2] = static_cast<uint32_t>(draw.number);
  return args;
}

// Calls fn(scratch, args) for runs of the n indices of a draw, in parallel.
template <typename Fn>
void for_each_run(Call &call, const Draw &draw, int64_t n, Fn &&fn) {
  call.for_each((n + kRun - 1) / kRun, [&](Scratch &scratch, int64_t i) {
    RandomKeysArgs args = args_of(draw);
    args.first = static_cast<uint32_t>(i * kRun);
    args.n = std::min(kRun, n - i * kRun);
    fn(scratch, args);
  });
}

}  // namespace

Draw next_draw(Masking &masking, int32_t layer, Purpose purpose) {
  return {masking.options.seed, layer, purpose, masking.layer(layer).draws++};
}

void check_drawable(int32_t id, const MaskedLayer &layer, int64_t units) {
  constexpr int64_t kIndices = int64_t{1} << 32;
  if (units >= kIndices) {
    fail(SPK_INVALID_ARGUMENT, "layers[", id, "] \"", shortened(layer.name), "\": got ", units,
         " places to draw from, expected fewer than 2^32");
  }
}

void write_random_keys(Call &call, const Draw &draw, const uint8_t *mask, int64_t n,
                       std::byte *keys) {
  for_each_run(call, draw, n, [&](Scratch &, RandomKeysArgs &args) {
    args.mask = mask ? mask + args.first : nullptr;
    args.keys = reinterpret_cast<uint64_t *>(keys) + args.first;
    call.kernels().random_keys(args);
  });
}

void draw_exactly(Call &call, const Draw &draw, int64_t n, int64_t count, uint8_t *keep) {
  const Scratch::Frame frame(call.scratch());
  auto *keys = call.scratch().take<std::byte>(n * bytes_of(kKeys64));
  write_random_keys(call, draw, nullptr, n, keys);
  keep_largest(call, kKeys64, keys, n, count, keep);
}

// A word is below probability 2^64 if its key, which is its complement, is at least 2^64 less that.
void draw_each(Call &call, const Draw &draw, int64_t n, double probability, uint8_t *keep) {
  const double limit = std::ldexp(probability, 64);
  if (limit < 1.0 || probability >= 1.0) {
    std::fill_n(keep, n, probability >= 1.0 ? 1 : 0);
    return;
  }
  const uint64_t least = ~static_cast<uint64_t>(limit) + 1;
  const KeyForm form = KeyForm::of_keys(kKeys64);
  for_each_run(call, draw, n, [&](Scratch &scratch, RandomKeysArgs &args) {
    args.keys = scratch.take<uint64_t>(args.n);
    call.kernels().random_keys(args);
    form.kernels(call.kernels()).keep({args.keys, args.n, form.rule}, least, keep + args.first);
  });
}

}  // namespace spk
