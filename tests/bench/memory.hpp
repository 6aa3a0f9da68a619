// Memory of the benchmarks, and the account of what the library allocates.
#ifndef SPARSEKIT_TESTS_BENCH_MEMORY_HPP_
#define SPARSEKIT_TESTS_BENCH_MEMORY_HPP_

#include <sparsekit/sparsekit.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace bench {

// Bytes that can be had without swapping or being killed for it.
int64_t available_memory();
// Throws Skip if there are fewer.
void require_memory(int64_t bytes);

// Page-aligned memory, present from the start. Throws Skip if the machine has too little.
class Memory {
 public:
  Memory() = default;
  explicit Memory(int64_t bytes);

  template <class T = void>
  T *as() const {
    return static_cast<T *>(static_cast<void *>(bytes_.get()));
  }
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct Free {
    void operator()(std::byte *memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
  int64_t size_ = 0;
};

// Allocator hooks that remember the peak. Memory that the machine does not have is refused.
class CountingAllocator {
 public:
  CountingAllocator() = default;
  CountingAllocator(const CountingAllocator &) = delete;
  CountingAllocator &operator=(const CountingAllocator &) = delete;

  spk_allocator hooks();
  int64_t peak() const { return peak_; }

 private:
  static void *allocate(void *user, size_t bytes, size_t alignment);
  static void deallocate(void *user, void *memory, size_t bytes, size_t alignment);
  void count(int64_t bytes);

  std::atomic<int64_t> current_{0};
  std::atomic<int64_t> peak_{0};
};

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_MEMORY_HPP_
