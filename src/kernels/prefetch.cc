#include "kernels/prefetch.h"

#include <hwy/targets.h>

#include "kernels/tables.h"

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
  const bool has_avx512 = (supported_targets() & HWY_AVX3) != 0;
  const Streams own = has_avx512 && !is_intel() ? Streams::kLeft : Streams::kAskedFor;
  Streams undecided = Streams::kUndecided;
  streams.compare_exchange_strong(undecided, own);
}

}  // namespace spk
