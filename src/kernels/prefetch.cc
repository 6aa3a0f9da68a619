#include "kernels/prefetch.h"

namespace spk {
namespace {

bool is_intel() {
#if HWY_ARCH_X86 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

}  // namespace

std::atomic<Streams> streams{Streams::kUndecided};

void decide_streams() {
  Streams undecided = Streams::kUndecided;
  streams.compare_exchange_strong(undecided, is_intel() ? Streams::kAskedFor : Streams::kLeft);
}

}  // namespace spk
