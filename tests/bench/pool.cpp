#include "pool.hpp"

#include <cstring>

#include "machine.hpp"
#include "random_data.hpp"
#include "sweep_kernels.hpp"

namespace bench {
namespace {

// Reads enough to drive everything else out of the caches.
void evict_caches() {
  static const Memory other(2 * last_cache_bytes());
  volatile uint64_t sink = read_all(other.as(), other.size());
  static_cast<void>(sink);
}

}  // namespace

Pool::Pool(const Dtype &dtype, int64_t bytes, CacheState cache)
    : dtype_(dtype), bytes_(bytes), cache_(cache) {
  require_memory(2 * bytes);  // at once: filling the first part of what does not fit takes long
  pristine_ = Memory(bytes);
  work_ = Memory(bytes);
  fill_weights(dtype_, pristine_.as(), numel());
}

const void *Pool::conditioners() {
  if (conditioners_.empty()) {
    conditioners_ = Memory(bytes_);
    fill_conditioners(dtype_, conditioners_.as(), numel());
  }
  return conditioners_.as();
}

const void *Pool::pruned() {
  if (pruned_.empty()) {
    pruned_ = Memory(bytes_);
    fill_pruned_weights(dtype_, pruned_.as(), numel());
  }
  return pruned_.as();
}

bool Pool::cold(int64_t bytes) const {
  if (cache_ == CacheState::kBySize) return bytes > core_cache_bytes();
  return cache_ == CacheState::kCold;
}

void Pool::restore(const Execution &execution, int64_t bytes) const {
  restore_from(pristine_.as(), execution, bytes);
}

void Pool::restore_from(const void *weights, const Execution &execution, int64_t bytes) const {
  auto *to = work_.as<std::byte>();
  const auto *from = static_cast<const std::byte *>(weights);
  if (!cold(bytes)) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  // Streaming stores leave nothing of the working copy in the caches; reading the source fills
  // them with what no operation wants, and evict_caches does where the source is too small.
  for_pieces(execution, bytes, [&](int64_t begin, int64_t end) {
    copy_streaming(to + begin, from + begin, end - begin);
  });
  if (bytes < 2 * last_cache_bytes()) evict_caches();
}

}  // namespace bench
