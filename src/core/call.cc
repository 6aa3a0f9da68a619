#include "core/call.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <exception>

#include "base/error.h"

namespace spk {
namespace {

// What stands in the place of an index of a range, whose ends add up to `mirror`.
int64_t in_direction(Direction direction, int64_t index, int64_t mirror) {
  return direction == Direction::kForwards ? index : mirror - index;
}

// Indices that one lane begins with. On a cache line of their own: other lanes look at them only
// when they have done theirs.
struct alignas(64) Share {
  std::atomic<int64_t> next;
  int64_t end;
  int64_t mirror;  // for in_direction()
  std::atomic<bool> taken;
};

// A loop under way. Lanes pull the next few indices until none is left, first of their own shares:
// a thread that begins with the same part of every loop finds the data in its caches, of the last
// loop or the last call.
struct Loop {
  static constexpr int64_t kMostShares = 64;

  std::array<Share, kMostShares> share{};
  Context *context;
  void *body;
  void (*task)(void *body, Scratch &scratch, int64_t index);
  int64_t batch;   // indices pulled at once
  int64_t shares;  // of share[]
  Direction direction;
  uint32_t caller;  // number of the thread whose call this is
  std::atomic<bool> failed{false};
  std::exception_ptr failure{};

  void share_out(int64_t begin, int64_t end, int64_t unit) {
    const int64_t units = (end - begin) / unit;
    for (int64_t s = 0; s < shares; ++s) {
      const int64_t first = begin + units * s / shares * unit;
      const int64_t beyond = begin + units * (s + 1) / shares * unit;
      share[static_cast<size_t>(s)].next.store(first, std::memory_order_relaxed);
      share[static_cast<size_t>(s)].end = beyond;
      share[static_cast<size_t>(s)].mirror = first + beyond - 1;
    }
  }

  bool is_done() const {
    return std::all_of(share.begin(), share.begin() + shares, [](const Share &of_lane) {
      return of_lane.next.load(std::memory_order_relaxed) >= of_lane.end;
    });
  }

  void fail_with(std::exception_ptr error) {
    if (!failed.exchange(true)) failure = std::move(error);
    for (Share &left : share) left.next.store(left.end, std::memory_order_relaxed);
  }
};

void run_share(const Loop &loop, Scratch &scratch, Share *share) {
  while (share->next.load(std::memory_order_relaxed) < share->end) {
    const int64_t begin = share->next.fetch_add(loop.batch, std::memory_order_relaxed);
    const int64_t end = std::min(begin + loop.batch, share->end);
    for (int64_t index = begin; index < end; ++index) {
      const Scratch::Frame frame(scratch);
      loop.task(loop.body, scratch, in_direction(loop.direction, index, share->mirror));
    }
  }
}

// Threads that have run loops, in the order in which they came.
uint32_t thread_number() {
  static std::atomic<uint32_t> numbers{0};
  thread_local const uint32_t number = numbers.fetch_add(1, std::memory_order_relaxed);
  return number;
}

// The share that this thread begins with: the first in its own calls, in others' always the same of
// the rest, unless another thread has it.
int64_t first_share(Loop &loop) {
  const uint32_t number = thread_number();
  const int64_t first = number == loop.caller ? 0 : 1 + number % (loop.shares - 1);
  for (int64_t s = 0; s < loop.shares; ++s) {
    const int64_t next = (first + s) % loop.shares;
    if (!loop.share[static_cast<size_t>(next)].taken.exchange(true)) return next;
  }
  return first;  // there are more lanes
}

void run_lane(Loop &loop, Scratch &scratch) {
  const int64_t first = first_share(loop);
  for (int64_t s = 0; s < loop.shares; ++s) {
    run_share(loop, scratch, &loop.share[static_cast<size_t>((first + s) % loop.shares)]);
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

Call::Call(const Call &of, Scratch &scratch)
    : context_(of.context_),
      kernels_(of.kernels_),
      scratch_(&scratch),
      memory_(&scratch),
      is_part_(true) {}

Call::~Call() {
  if (!is_part_) context_.call_scratch.release(scratch_);
}

int32_t Call::threads() const {
  if (is_part_ || context_.threads <= 1 || is_forked_child()) return 1;
  const HostMode mode;
  const int32_t limit = context_.executor.concurrency(context_.executor.user);
  return std::max(1, std::min(context_.threads, limit));
}

void Call::run(int64_t count, const LoopCuts &cuts, void *body, Task task) {
  assert(count % cuts.group == 0 && cuts.group % cuts.unit == 0);
  if (is_part_ || !context_.progress) return run_range({0, count}, cuts, body, task);
  // Progress is reported, and cancellation heard, on this thread between batches.
  const int64_t batch =
      cuts.group * std::max<int64_t>(1, 16 * int64_t{context_.threads} / cuts.group);
  for (int64_t done = 0; done < count; done += batch) {
    report_progress(done, count);
    const int64_t next = std::min(done + batch, count);
    const bool forwards = cuts.direction == Direction::kForwards;
    run_range(forwards ? Indices{done, next} : Indices{count - next, count - done}, cuts, body,
              task);
  }
  ++loop_;
}

// On this thread.
void Call::run_alone(const Indices &range, Direction direction, void *body, Task task) {
  const int64_t mirror = range.begin + range.end - 1;
  for (int64_t index = range.begin; index < range.end; ++index) {
    const Scratch::Frame frame(*scratch_);
    task(body, *scratch_, in_direction(direction, index, mirror));
  }
}

void Call::run_range(const Indices &range, const LoopCuts &cuts, void *body, Task task) {
  const int64_t count = range.end - range.begin;
  const int64_t lanes = count > 1 ? std::min<int64_t>(threads(), count) : 1;
  if (lanes == 1) return run_alone(range, cuts.direction, body, task);
  // Neighbours are near in memory: a lane that takes several reads longer runs. Few enough are
  // taken for the lanes to end together.
  constexpr int64_t kBatch = 16;
  constexpr int64_t kBatchesOfLane = 8;
  const int64_t batch = std::clamp<int64_t>(count / (lanes * kBatchesOfLane), 1, kBatch);
  Loop loop{.context = &context_,
            .body = body,
            .task = task,
            .batch = batch,
            .shares = std::min(lanes, Loop::kMostShares),
            .direction = cuts.direction,
            .caller = thread_number()};
  loop.share_out(range.begin, range.end, cuts.unit);
  int32_t refusal = 0;
  try {
    const HostMode mode;
    refusal = context_.executor.parallel_for(context_.executor.user, lanes, lane_task, &loop);
  } catch (...) {
    // The runtime could not have a thread: this one does what is left.
    lane_task(&loop, 0);
  }
  if (refusal == 0 && !loop.is_done()) lane_task(&loop, 0);
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
