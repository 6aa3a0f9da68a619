#include "core/call.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include "base/error.h"

namespace spk {
namespace {

// A loop under way: lanes pull the next few indices until none is left.
struct Loop {
  Context *context;
  void *body;
  void (*task)(void *body, Scratch &scratch, int64_t index);
  std::atomic<int64_t> next;
  int64_t end;
  int64_t batch;  // indices pulled at once
  std::atomic<bool> failed{false};
  std::exception_ptr failure;

  void fail_with(std::exception_ptr error) {
    if (!failed.exchange(true)) failure = std::move(error);
    next.store(end, std::memory_order_relaxed);
  }
};

void run_lane(Loop &loop, Scratch &scratch) {
  for (;;) {
    const int64_t begin = loop.next.fetch_add(loop.batch, std::memory_order_relaxed);
    if (begin >= loop.end) return;
    const int64_t end = std::min(begin + loop.batch, loop.end);
    for (int64_t index = begin; index < end; ++index) {
      const Scratch::Frame frame(scratch);
      loop.task(loop.body, scratch, index);
    }
  }
}

// One lane on a thread of the executor: brings its own scratch and floating-point mode.
void lane_task(void *data, int64_t) {
  Loop &loop = *static_cast<Loop *>(data);
  const FpMode mode;
  try {
    Scratch *scratch = loop.context->lane_scratch.acquire();
    try {
      run_lane(loop, *scratch);
    } catch (...) {
      loop.fail_with(std::current_exception());
    }
    loop.context->lane_scratch.release(scratch);
  } catch (...) {
    loop.fail_with(std::current_exception());
  }
}

// Callbacks under way on this thread, innermost first.
thread_local const void *innermost_callback = nullptr;

}  // namespace

Call::CallbackScope::CallbackScope(Call &call)
    : call_(call), outer_(static_cast<const CallbackScope *>(innermost_callback)) {
  innermost_callback = this;
}

Call::CallbackScope::~CallbackScope() {
  innermost_callback = outer_;
}

Call::Call(Context *context)
    : context_(context ? *context : default_context()), kernels_(spk::kernels()) {
  for (auto *scope = static_cast<const CallbackScope *>(innermost_callback); scope;
       scope = scope->outer_) {
    if (&scope->call_.context_ == &context_) {
      fail(SPK_INVALID_ARGUMENT, "context: in use by the call whose callback this is; expected ",
           "another context inside a callback");
    }
  }
  watch_forks();
  scratch_ = context_.call_scratch.acquire();
  memory_.use(scratch_);
}

Call::~Call() {
  context_.call_scratch.release(scratch_);
}

int32_t Call::threads() const {
  if (context_.threads <= 1 || is_forked_child()) return 1;
  const HostMode mode;
  const int32_t limit = context_.executor.concurrency(context_.executor.user);
  return std::max(1, std::min(context_.threads, limit));
}

void Call::run(int64_t count, int64_t group, void *body, Task task) {
  if (!context_.progress) {
    run_range(0, count, body, task);
    return;
  }
  // Progress is reported, and cancellation heard, on this thread between batches.
  const int64_t batch = group * std::max<int64_t>(1, 16 * int64_t{context_.threads} / group);
  for (int64_t begin = 0; begin < count; begin += batch) {
    report_progress(begin, count);
    run_range(begin, std::min(begin + batch, count), body, task);
  }
  ++loop_;
}

void Call::run_range(int64_t begin, int64_t end, void *body, Task task) {
  const int64_t lanes = end - begin > 1 ? std::min<int64_t>(threads(), end - begin) : 1;
  // Neighbours are near in memory: a lane that takes several reads longer runs. Few enough are
  // taken for the lanes to end together.
  constexpr int64_t kBatch = 16;
  constexpr int64_t kShares = 8;
  const int64_t batch = std::clamp<int64_t>((end - begin) / (lanes * kShares), 1, kBatch);
  Loop loop{&context_, body, task, begin, end, batch, {}, {}};
  if (lanes == 1) {
    run_lane(loop, *scratch_);
    return;
  }
  int32_t refusal = 0;
  try {
    const HostMode mode;
    refusal = context_.executor.parallel_for(context_.executor.user, lanes, lane_task, &loop);
  } catch (...) {
    // The runtime could not have a thread: this one does what is left.
    lane_task(&loop, 0);
  }
  if (refusal == 0 && loop.next.load(std::memory_order_relaxed) < loop.end) lane_task(&loop, 0);
  if (loop.failure) std::rethrow_exception(loop.failure);
  if (refusal != 0) {
    fail(SPK_INTERNAL, "host executor: parallel_for returned ", refusal, ", expected 0");
  }
}

void Call::report_progress(int64_t done, int64_t count) {
  constexpr int64_t kParts = 1024;  // of one loop
  const int64_t total = loops_ * kParts;
  const auto share = static_cast<int64_t>(static_cast<double>(done) / static_cast<double>(count) *
                                          static_cast<double>(kParts));
  const int64_t at = std::min(loop_ * kParts + share, total);
  const int32_t stop =
      call_back([&] { return context_.progress(context_.progress_user, at, total); });
  if (stop != 0) {
    fail(SPK_CANCELLED, "progress callback: returned ", stop, " at ", at, " of ", total,
         ", which cancels the call");
  }
}

}  // namespace spk
