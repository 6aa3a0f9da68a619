#include <pthread.h>

#include <atomic>

#include "parallel/executor.h"

namespace spk {
namespace {

std::atomic<bool> forked{false};

}  // namespace

void watch_forks() {
  // Registered by the first call, not at load: an idle library leaves no trace.
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
  (void)registered;
}

bool is_forked_child() {
  return forked.load(std::memory_order_relaxed);
}

}  // namespace spk
