// Why a row is not measured.
#ifndef SPARSEKIT_TESTS_BENCH_SKIP_HPP_
#define SPARSEKIT_TESTS_BENCH_SKIP_HPP_

#include <stdexcept>

namespace bench {

// The row cannot be had here: too little memory, a layout larger than the data. No failure.
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_SKIP_HPP_
