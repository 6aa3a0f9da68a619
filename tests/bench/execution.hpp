// An executor with a number of threads, for calls of the library and for the yardstick.
#ifndef SPARSEKIT_TESTS_BENCH_EXECUTION_HPP_
#define SPARSEKIT_TESTS_BENCH_EXECUTION_HPP_

#include <sparsekit/sparsekit.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace bench {

struct Execution {
  int32_t executor;
  int threads;

  std::string name() const;
  auto operator<=>(const Execution &) const = default;
};

// The code of "serial", "openmp" or "tbb"; throws std::invalid_argument for other names.
int32_t executor_named(const std::string &name);

using Piece = std::function<void(int64_t begin, int64_t end)>;

// Shares [0, count) out in one piece per thread, on the runtime that the library's executor uses
// too: worker threads of another one, still spinning, would disturb the measurement. Pieces begin
// at multiples of 64 elements, hence of a cache line.
void for_pieces(const Execution &execution, int64_t count, const Piece &piece);

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_EXECUTION_HPP_
