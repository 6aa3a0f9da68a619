// One working call: its context and kernels, and the loops it runs. The boundary has set the
// floating-point mode (FpMode) before.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <type_traits>

#include "base/fp_mode.h"
#include "kernels/kernels.h"
#include "parallel/context.h"
#include "parallel/scratch.h"

namespace spk {

// In which a thread takes its part of a loop's indices. Backwards, a loop over the same data as the
// last one begins with what that one has left in the caches.
enum class Direction { kForwards, kBackwards };

// How a loop's indices are cut, besides one by one.
struct LoopCuts {
  int64_t group = 1;  // so many consecutive ones, of which the count is a multiple, are all done or
                      // all left if the call is cancelled
  int64_t unit = 1;   // divides a group: parts of threads begin at multiples of it
  Direction direction = Direction::kForwards;
};

class Call {
 public:
  // NULL is the process default. Refuses a context that one of its own callbacks is using.
  explicit Call(Context *context);
  // A part of a call, of one task of its loops: its own loops run on this thread, with the task's
  // scratch, and are not reported.
  Call(const Call &of, Scratch &scratch);
  ~Call();
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  const Kernels &kernels() const { return kernels_; }
  // Scratch of the calling thread, given back when the call ends.
  Scratch &scratch() { return *scratch_; }
  // The same, for containers that live as long as the call.
  std::pmr::memory_resource *memory() { return &memory_; }

  // How many threads a loop runs on at most.
  int32_t threads() const;

  // Is progress reported, to a callback that may cancel the call?
  bool may_be_cancelled() const { return !is_part_ && context_.progress; }

  // How many loops the call will run, for the progress callback's share of work.
  void expect_loops(int loops) { loops_ = loops; }

  // Calls fn(Scratch &, index) for each index in [0, count), in parallel; each call has an empty
  // frame of its thread's scratch. A thread begins with the same part of the indices of every loop,
  // and then helps others.
  template <typename Fn>
  void for_each(int64_t count, Fn &&fn, const LoopCuts &cuts = {}) {
    using Body = std::remove_reference_t<Fn>;
    run(count, cuts, const_cast<std::remove_const_t<Body> *>(&fn),
        [](void *body, Scratch &scratch, int64_t index) {
          (*static_cast<Body *>(body))(scratch, index);
        });
  }

  // Runs a callback of the caller's, in the caller's floating-point mode.
  template <typename Fn>
  auto call_back(Fn &&fn) {
    CallbackScope scope(*this);
    return fn();
  }

 private:
  using Task = void (*)(void *body, Scratch &scratch, int64_t index);
  struct Indices {
    int64_t begin, end;
  };

  class CallbackScope {
   public:
    explicit CallbackScope(Call &call);
    ~CallbackScope();

   private:
    Call &call_;
    const CallbackScope *outer_;
    HostMode mode_;
    friend class Call;
  };

  void run(int64_t count, const LoopCuts &cuts, void *body, Task task);
  void run_range(const Indices &range, const LoopCuts &cuts, void *body, Task task);
  void run_alone(const Indices &range, Direction direction, void *body, Task task);
  void report_progress(int64_t done, int64_t count);

  Context &context_;
  const Kernels &kernels_;
  Scratch *scratch_;
  ScratchMemory memory_;
  bool is_part_ = false;
  int loops_ = 1;
  int loop_ = 0;
};

}  // namespace spk
