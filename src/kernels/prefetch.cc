#include "kernels/prefetch.h"

namespace spk {
namespace {

bool is_intel() {
#if HWY_ARCH_X86 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  __builtin_cpu_init();  // this may run before the runtime's own
  return __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

}  // namespace

const bool asking_pays = is_intel();

}  // namespace spk
