#include "memory.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "skip.hpp"
#include "units.hpp"

namespace bench {
namespace {

constexpr int64_t kPage = 4096;
// What is left to the rest of the machine.
constexpr int64_t kReserve = int64_t{256} << 20;

int64_t system_memory_available() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    if (word != "MemAvailable:") continue;
    int64_t kib = 0;
    file >> kib;
    return kib << 10;
  }
  return std::numeric_limits<int64_t>::max();
}

// The number in a file of the control group; a file that is absent or says "max" sets no limit.
int64_t cgroup_number(const char *path, int64_t otherwise) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? number : otherwise;
}

int64_t cgroup_memory_available() {
  const int64_t limit = cgroup_number("/sys/fs/cgroup/memory.max", -1);
  if (limit < 0) return std::numeric_limits<int64_t>::max();
  return limit - cgroup_number("/sys/fs/cgroup/memory.current", 0);
}

}  // namespace

int64_t available_memory() {
  return std::max<int64_t>(
      0, std::min(system_memory_available(), cgroup_memory_available()) - kReserve);
}

void require_memory(int64_t bytes) {
  const int64_t available = available_memory();
  if (bytes <= available) return;
  throw Skip("needs " + bytes_text(bytes) + " of memory, " + bytes_text(available) +
             " is available");
}

Memory::Memory(int64_t bytes) : size_((bytes + kPage - 1) / kPage * kPage) {
  require_memory(size_);
  bytes_.reset(static_cast<std::byte *>(std::aligned_alloc(kPage, static_cast<size_t>(size_))));
  if (!bytes_) throw Skip("cannot allocate " + bytes_text(size_));
  std::memset(bytes_.get(), 0, static_cast<size_t>(size_));
}

spk_allocator CountingAllocator::hooks() {
  return {sizeof(spk_allocator), this, allocate, deallocate};
}

void *CountingAllocator::allocate(void *user, size_t bytes, size_t alignment) {
  constexpr size_t kWorthAsking = size_t{64} << 20;
  if (bytes > kWorthAsking && static_cast<int64_t>(bytes) > available_memory()) return nullptr;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void *memory = std::aligned_alloc(alignment, rounded);
  if (memory) static_cast<CountingAllocator *>(user)->count(static_cast<int64_t>(bytes));
  return memory;
}

void CountingAllocator::deallocate(void *user, void *memory, size_t bytes, size_t) {
  std::free(memory);
  static_cast<CountingAllocator *>(user)->count(-static_cast<int64_t>(bytes));
}

void CountingAllocator::count(int64_t bytes) {
  const int64_t now = current_ += bytes;
  int64_t peak = peak_;
  while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
  }
}

}  // namespace bench
