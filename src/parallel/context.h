// The context: how a call runs.
#pragma once

#include "base/handle.h"
#include "parallel/executor.h"
#include "parallel/scratch.h"

struct spk_context final : spk::RefCounted {
  explicit spk_context(const spk_allocator &allocator, spk::Counted counted = spk::Counted::kYes)
      : RefCounted(counted), call_scratch(allocator), lane_scratch(allocator) {}

  int32_t executor_code = SPK_EXECUTOR_SERIAL;
  spk::Executor executor{};
  int32_t threads = 1;
  spk_progress_fn progress = nullptr;
  void *progress_user = nullptr;
  // Two, because calls hold more than the lanes of their loops do: from a pool of both, every
  // scratch would grow to what a call needs.
  spk::ScratchPool call_scratch;
  spk::ScratchPool lane_scratch;

  void trim() {
    call_scratch.trim();
    lane_scratch.trim();
  }
};

namespace spk {

using Context = ::spk_context;

// The process default, made on first use and never destroyed.
Context &default_context();

}  // namespace spk
