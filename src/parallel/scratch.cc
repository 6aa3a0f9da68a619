#include "parallel/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/fp_mode.h"

namespace spk {
namespace {

void *allocate(void *, size_t bytes, size_t alignment) {
  return std::aligned_alloc(alignment, bytes);
}
void deallocate(void *, void *memory, size_t, size_t) {
  std::free(memory);
}

size_t round_up(size_t bytes) {
  return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

}  // namespace

spk_allocator default_allocator() {
  return {sizeof(spk_allocator), nullptr, allocate, deallocate};
}

Scratch::~Scratch() {
  free_chunks();
}

void Scratch::free_chunks() {
  const HostMode mode;
  for (const Chunk &chunk : chunks_) {
    allocator_.deallocate(allocator_.user, chunk.memory, chunk.bytes, kScratchAlignment);
  }
  chunks_.clear();
}

void Scratch::add_chunk(size_t bytes) {
  chunks_.reserve(chunks_.size() + 1);
  void *memory = nullptr;
  {
    const HostMode mode;
    memory = allocator_.allocate(allocator_.user, bytes, kScratchAlignment);
  }
  if (!memory) throw std::bad_alloc();
  chunks_.push_back({static_cast<std::byte *>(memory), bytes});
}

void *Scratch::take_bytes(size_t bytes) {
  bytes = round_up(std::max<size_t>(bytes, 1));
  while (chunk_ < chunks_.size() && chunks_[chunk_].bytes - used_ < bytes) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) add_chunk(std::max<size_t>(bytes, size_t{64} << 10));
  void *memory = chunks_[chunk_].memory + used_;
  used_ += bytes;
  return memory;
}

void Scratch::reset() {
  chunk_ = 0;
  used_ = 0;
  if (chunks_.size() <= 1) return;
  size_t total = 0;
  for (const Chunk &chunk : chunks_) total += chunk.bytes;
  free_chunks();
  // The next user may do without; if the memory is not there now, it is asked for again then.
  try {
    add_chunk(total);
  } catch (const std::bad_alloc &) {
  }
}

Scratch *ScratchPool::acquire() {
  for (std::atomic<Scratch *> &slot : slots_) {
    if (Scratch *scratch = slot.exchange(nullptr, std::memory_order_acquire)) return scratch;
  }
  return new Scratch(allocator_);
}

void ScratchPool::release(Scratch *scratch) {
  scratch->reset();
  for (std::atomic<Scratch *> &slot : slots_) {
    Scratch *empty = nullptr;
    if (slot.compare_exchange_strong(empty, scratch, std::memory_order_release,
                                     std::memory_order_relaxed)) {
      return;
    }
  }
  delete scratch;
}

void ScratchPool::trim() {
  for (std::atomic<Scratch *> &slot : slots_)
    delete slot.exchange(nullptr, std::memory_order_acquire);
}

}  // namespace spk
