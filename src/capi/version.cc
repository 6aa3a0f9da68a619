#include <hwy/targets.h>

#include <string>

#include "capi/guard.h"
#include "parallel/executor.h"

namespace {

std::string executors_built_in() {
  std::string names = "serial";
  if (spk::tbb_executor()) names += " tbb";
  if (spk::openmp_executor()) names += " openmp";
  return names + " host";
}

std::string build_info() {
  std::string targets;
  // Highway numbers better targets with lower bits: plainest first.
  for (int bit = 63; bit >= 0; --bit) {
    const int64_t target = HWY_TARGETS & static_cast<int64_t>(uint64_t{1} << bit);
    if (target != 0) targets += spk::cat(" ", hwy::TargetName(target));
  }
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  return spk::cat("sparsekit ", SPK_VERSION_MAJOR, ".", SPK_VERSION_MINOR, ".", SPK_VERSION_PATCH,
                  "; executors: ", executors_built_in(), "; simd:", targets, "; using ",
                  hwy::TargetName(usable & -usable));
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
