// The command line of a suite of random cases.
#ifndef SPARSEKIT_TESTS_PROPERTY_OPTIONS_HPP_
#define SPARSEKIT_TESTS_PROPERTY_OPTIONS_HPP_

#include <cstdint>

namespace prop {

struct Options {
  int64_t cases;
  uint64_t seed;
  bool only = false;
  uint64_t only_seed = 0;
};

// [--cases N] [--seed S] [--only SEED], over what `options` holds; false if it is anything else.
bool parse(int argc, char **argv, Options &options);

}  // namespace prop

#endif  // SPARSEKIT_TESTS_PROPERTY_OPTIONS_HPP_
