#include "kernels/halves.h"

#include <hwy/base.h>

namespace spk {
namespace {

// The only processors of this family with AVX-512.
bool may_be_zen4() {
#if HWY_ARCH_X86 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  __builtin_cpu_init();
  return __builtin_cpu_is("amdfam19h") != 0;
#else
  return false;
#endif
}

}  // namespace

std::atomic<Conversions> conversions{Conversions::kUndecided};

void decide_conversions() {
  Conversions undecided = Conversions::kUndecided;
  conversions.compare_exchange_strong(undecided,
                                      may_be_zen4() ? Conversions::kInHalves : Conversions::kWhole);
}

bool converts_in_halves() {
  const bool has_large_registers = (hwy::SupportedTargets() & HWY_TARGETS & HWY_AVX3) != 0;
  return has_large_registers &&
         conversions.load(std::memory_order_relaxed) == Conversions::kInHalves;
}

}  // namespace spk
