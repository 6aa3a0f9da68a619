#include "options.hpp"

#include <cstdlib>
#include <cstring>

namespace prop {

bool parse(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return false;
    char *end = nullptr;
    const unsigned long long number = std::strtoull(argv[i + 1], &end, 0);
    if (*end != '\0') return false;
    if (std::strcmp(argv[i], "--cases") == 0) {
      options.cases = static_cast<int64_t>(number);
    } else if (std::strcmp(argv[i], "--seed") == 0) {
      options.seed = number;
    } else if (std::strcmp(argv[i], "--only") == 0) {
      options.only = true;
      options.only_seed = number;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace prop
