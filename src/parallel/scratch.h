// Scratch memory of the calls: taken from the context, kept for the next call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "sparsekit/sparsekit.h"

namespace spk {

inline constexpr size_t kScratchAlignment = 64;

// A stack of memory for one thread at a time. Grows by further chunks; when it is emptied, several
// chunks become one of their total size, so that a steady state allocates nothing.
class Scratch {
 public:
  explicit Scratch(const spk_allocator &allocator) : allocator_(allocator) {}
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  ~Scratch();

  // Uninitialised, aligned to kScratchAlignment. Throws std::bad_alloc.
  template <typename T>
  T *take(int64_t count) {
    return static_cast<T *>(take_bytes(static_cast<size_t>(count) * sizeof(T)));
  }
  void reset();

  // What is taken while a Frame lives is given back with it.
  class Frame {
   public:
    explicit Frame(Scratch &scratch)
        : scratch_(scratch), chunk_(scratch.chunk_), used_(scratch.used_) {}
    Frame(const Frame &) = delete;
    Frame &operator=(const Frame &) = delete;
    ~Frame() {
      scratch_.chunk_ = chunk_;
      scratch_.used_ = used_;
    }

   private:
    Scratch &scratch_;
    size_t chunk_;
    size_t used_;
  };

  // Aligned to kScratchAlignment.
  void *take_bytes(size_t bytes);

 private:
  struct Chunk {
    std::byte *memory;
    size_t bytes;
  };

  void add_chunk(size_t bytes);
  void free_chunks();

  spk_allocator allocator_;
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;  // the chunk that is being filled
  size_t used_ = 0;   // bytes of it
};

// Containers in a scratch: their memory is given back with the scratch.
class ScratchMemory final : public std::pmr::memory_resource {
 public:
  explicit ScratchMemory(Scratch *scratch = nullptr) : scratch_(scratch) {}
  void use(Scratch *scratch) { scratch_ = scratch; }

 private:
  void *do_allocate(size_t bytes, size_t) override { return scratch_->take_bytes(bytes); }
  void do_deallocate(void *, size_t, size_t) override {}
  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
    return this == &other;
  }

  Scratch *scratch_;
};

// Idle scratches of a context. Lock-free, so that a fork() cannot leave a lock held in the child.
class ScratchPool {
 public:
  explicit ScratchPool(const spk_allocator &allocator) : allocator_(allocator) {}
  ~ScratchPool() { trim(); }

  Scratch *acquire();
  void release(Scratch *scratch);
  void trim();

 private:
  static constexpr int kSlots = 64;
  spk_allocator allocator_;
  std::atomic<Scratch *> slots_[kSlots] = {};
};

// malloc with alignment, for contexts without an allocator of their own.
spk_allocator default_allocator();

}  // namespace spk
