// What the numbers were measured on.
#ifndef SPARSEKIT_TESTS_BENCH_MACHINE_HPP_
#define SPARSEKIT_TESTS_BENCH_MACHINE_HPP_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bench {

struct Cache {
  std::string name;  // "L1d", "L2", ...
  int level;
  int64_t bytes;
};

// Data caches that the first processor sees, smallest first; empty where the system does not tell.
const std::vector<Cache> &data_caches();
// Of the cache that belongs to one core, and of the last one.
int64_t core_cache_bytes();
int64_t last_cache_bytes();

// Processors that this process may use.
int usable_cores();

// Facts for reports, in the order in which they are printed.
std::vector<std::pair<std::string, std::string>> machine_facts();

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_MACHINE_HPP_
