#include "kernels/float_registers.h"

#include <hwy/base.h>

#include "kernels/tables.h"

namespace spk {
namespace {

// The family is Zen 3 and Zen 4, of which only Zen 4 has AVX-512.
bool is_family_19h() {
#if HWY_ARCH_X86 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  __builtin_cpu_init();
  return __builtin_cpu_is("amdfam19h") != 0;
#else
  return false;
#endif
}

}  // namespace

std::atomic<FloatRegisters> float_registers{FloatRegisters::kUndecided};

void decide_float_registers() {
  FloatRegisters undecided = FloatRegisters::kUndecided;
  float_registers.compare_exchange_strong(
      undecided, is_family_19h() ? FloatRegisters::kSmall : FloatRegisters::kLarge);
}

bool takes_small_registers() {
  return float_registers.load(std::memory_order_relaxed) == FloatRegisters::kSmall &&
         (supported_targets() & HWY_TARGETS & HWY_AVX3) != 0;
}

}  // namespace spk
