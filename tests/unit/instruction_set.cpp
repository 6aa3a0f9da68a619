// Linked to a unit test, restricts the library to the instruction set that the environment variable
// TEST_INSTRUCTION_SET names. Exits with 77 where the machine or the build lacks it. Whichever the
// processor is, TEST_STREAMS tells whether streams are "asked for" or "left" to it, and
// TEST_FLOAT_REGISTERS whether floats become doubles in "large" registers or in "small" ones.
#include <hwy/highway.h>
#include <hwy/targets.h>
#include <sparsekit/sparsekit.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/float_registers.h"
#include "kernels/prefetch.h"

namespace {

int64_t supported_target(const char *name) {
  if (!std::strstr(spk_build_info(), name)) return 0;
  for (int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    if (std::strcmp(hwy::TargetName(target), name) == 0) return target;
  }
  return 0;
}

const bool chosen = [] {
  const char *name = std::getenv("TEST_INSTRUCTION_SET");
  const int64_t target = name ? supported_target(name) : 0;
  if (target == 0) {
    std::fprintf(stderr, "no instruction set %s here\n", name ? name : "(unnamed)");
    std::exit(77);
  }
  if (const char *streams = std::getenv("TEST_STREAMS")) {
    const bool left = std::strcmp(streams, "left") == 0;
    spk::streams = left ? spk::Streams::kLeft : spk::Streams::kAskedFor;
  }
  if (const char *registers = std::getenv("TEST_FLOAT_REGISTERS")) {
    const bool small = std::strcmp(registers, "small") == 0;
    spk::float_registers = small ? spk::FloatRegisters::kSmall : spk::FloatRegisters::kLarge;
  }
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().DeInit();
  return true;
}();

}  // namespace
