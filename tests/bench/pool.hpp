// The data that the rows of one dtype and size share.
#ifndef SPARSEKIT_TESTS_BENCH_POOL_HPP_
#define SPARSEKIT_TESTS_BENCH_POOL_HPP_

#include <cstdint>

#include "dtype.hpp"
#include "execution.hpp"
#include "memory.hpp"

namespace bench {

// Where the data are when a timing begins.
enum class CacheState {
  kBySize,  // warm if they fit in a core's own cache, else cold
  kCold,    // in main memory
  kWarm,    // wherever the copy that restored them has left them
};

// A working copy of random weights that can be restored. Rows use the first elements of it.
class Pool {
 public:
  Pool(const Dtype &dtype, int64_t bytes, CacheState cache);

  const Dtype &dtype() const { return dtype_; }
  int64_t bytes() const { return bytes_; }
  int64_t numel() const { return bytes_ / dtype_.size; }
  const void *pristine() const { return pristine_.as(); }
  void *work() const { return work_.as(); }
  // Made when they are first asked for. Of pruned weights nine in ten are 0.
  const void *conditioners();
  const void *pruned();

  // Brings the first `bytes` of the working copy back, and into the same cache state each time.
  void restore(const Execution &execution, int64_t bytes) const;
  // The same of other weights.
  void restore_from(const void *weights, const Execution &execution, int64_t bytes) const;

 private:
  bool cold(int64_t bytes) const;

  Dtype dtype_;
  int64_t bytes_;
  CacheState cache_;
  Memory pristine_;
  Memory work_;
  Memory conditioners_;
  Memory pruned_;
};

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_POOL_HPP_
