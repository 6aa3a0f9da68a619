#include "training/kernel_masks.h"

#include <algorithm>
#include <cstring>

namespace spk {
namespace {

// Calls fn(number, elements) for each kernel, many in a row; in parallel.
template <typename Fn>
void for_each_kernel(Call &call, const KernelMask &mask, Fn &&fn) {
  constexpr int64_t kElements = int64_t{1} << 15;
  const int64_t at_once = std::max<int64_t>(kElements / mask.kernel, 1);
  call.for_each((mask.kernels + at_once - 1) / at_once, [&](Scratch &, int64_t i) {
    const int64_t end = std::min(mask.kernels, (i + 1) * at_once);
    for (int64_t k = i * at_once; k < end; ++k) fn(k, mask.mask + k * mask.kernel);
  });
}

bool is_active(const uint8_t *elements, int64_t count) {
  return std::any_of(elements, elements + count, [](uint8_t byte) { return byte != 0; });
}

void fill(uint8_t *elements, int64_t count, int value) {
  std::memset(elements, value, static_cast<size_t>(count));
}

}  // namespace

void find_active(Call &call, const KernelMask &mask, uint8_t *active) {
  for_each_kernel(call, mask, [&](int64_t k, const uint8_t *elements) {
    active[k] = is_active(elements, mask.kernel) ? 1 : 0;
  });
}

void spread_kernels(Call &call, const KernelMask &mask, const uint8_t *keep) {
  for_each_kernel(call, mask,
                  [&](int64_t k, uint8_t *elements) { fill(elements, mask.kernel, keep[k]); });
}

void clear_others(Call &call, const KernelMask &mask, const uint8_t *keep) {
  for_each_kernel(call, mask, [&](int64_t k, uint8_t *elements) {
    if (keep[k] == 0) fill(elements, mask.kernel, 0);
  });
}

void fill_empty(Call &call, const KernelMask &mask, const uint8_t *keep) {
  for_each_kernel(call, mask, [&](int64_t k, uint8_t *elements) {
    if (keep[k] != 0 && !is_active(elements, mask.kernel)) fill(elements, mask.kernel, 1);
  });
}

}  // namespace spk
