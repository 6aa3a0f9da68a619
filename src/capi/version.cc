#include <string>

#include "capi/guard.h"
#include "kernels/kernels.h"
#include "parallel/executor.h"

namespace {

std::string executors_built_in() {
  std::string names = "serial";
  if (spk::tbb_executor()) names += " tbb";
  if (spk::openmp_executor()) names += " openmp";
  return names + " host";
}

std::string build_info() {
  return spk::cat("sparsekit ", SPK_VERSION_MAJOR, ".", SPK_VERSION_MINOR, ".", SPK_VERSION_PATCH,
                  "; executors: ", executors_built_in(), "; simd: ", spk::target_names(),
                  "; using ", spk::target_in_use());
}

}  // namespace

extern "C" {

int32_t spk_version(void) {
  return SPK_VERSION;
}

const char *spk_build_info(void) {
  try {
    static const std::string *info = new std::string(build_info());
    return info->c_str();
  } catch (...) {
    return "sparsekit: out of memory";
  }
}

int32_t spk_executor_available(int32_t executor) {
  return executor == SPK_EXECUTOR_DEFAULT || executor == SPK_EXECUTOR_HOST ||
         spk::built_in_executor(executor) != nullptr;
}

}  // extern "C"
