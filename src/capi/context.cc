#include "parallel/context.h"

#include <algorithm>

#include "capi/guard.h"

namespace spk::capi {
namespace {

spk_allocator allocator_of(const spk_context_options &options) {
  if (!options.allocator) return default_allocator();
  const spk_allocator given = read_struct(options.allocator, spk_allocator{}, "allocator");
  if (!given.allocate || !given.deallocate) {
    fail(SPK_INVALID_ARGUMENT, "allocator: ", given.allocate ? "deallocate" : "allocate",
         ": got NULL");
  }
  return given;
}

Executor executor_of(const spk_context_options &options, int32_t code) {
  if (code == SPK_EXECUTOR_HOST) {
    const Executor host = read_struct(&required(options.host, "host"), Executor{}, "host");
    if (!host.concurrency || !host.parallel_for) {
      fail(SPK_INVALID_ARGUMENT, "host: ", host.concurrency ? "parallel_for" : "concurrency",
           ": got NULL");
    }
    return host;
  }
  if (options.host) {
    fail(SPK_INVALID_ARGUMENT, "host: got a table with executor ", options.executor,
         ", expected NULL unless it is SPK_EXECUTOR_HOST (4)");
  }
  if (code < SPK_EXECUTOR_DEFAULT || code > SPK_EXECUTOR_HOST) {
    fail(SPK_INVALID_ARGUMENT, "executor: got ", code, ", expected SPK_EXECUTOR_DEFAULT (0) to ",
         "SPK_EXECUTOR_HOST (4)");
  }
  const Executor *executor = built_in_executor(code);
  if (!executor) {
    fail(SPK_UNAVAILABLE, "executor: ", code == SPK_EXECUTOR_TBB ? "TBB" : "OpenMP",
         " is not in this build; spk_build_info() lists what is");
  }
  return *executor;
}

int32_t threads_of(const spk_context_options &options, const Executor &executor, int32_t code) {
  if (options.threads < 0 || options.threads > (1 << 16)) {
    fail(SPK_INVALID_ARGUMENT, "threads: got ", options.threads, ", expected 0 to 65536");
  }
  if (options.threads > 0) return options.threads;
  if (code == SPK_EXECUTOR_SERIAL) return 1;
  // A host that lends its pool has decided how wide it is.
  if (code == SPK_EXECUTOR_HOST) {
    const HostMode mode;
    return std::max(1, executor.concurrency(executor.user));
  }
  return available_threads();
}

}  // namespace
}  // namespace spk::capi

using namespace spk;
using namespace spk::capi;

extern "C" {

spk_status spk_context_create(const spk_context_options *options, spk_context **out) {
  return guarded([&] {
    required(out, "out");
    const auto given = read_struct(options, spk_context_options{}, "options");
    const int32_t code =
        given.executor == SPK_EXECUTOR_DEFAULT ? default_executor() : given.executor;
    const Executor executor = executor_of(given, code);
    auto context = Ref<Context>::adopt(new Context(allocator_of(given)));
    context->executor_code = code;
    context->executor = executor;
    context->threads = threads_of(given, executor, code);
    context->progress = given.progress;
    context->progress_user = given.progress_user;
    *out = context.detach();
  });
}

void spk_context_retain(spk_context *context) {
  if (context) context->retain();
}

void spk_context_release(spk_context *context) {
  if (context) context->release();
}

int32_t spk_context_executor(const spk_context *context) {
  int32_t code = -1;
  guarded([&] { code = (context ? *context : default_context()).executor_code; });
  return code;
}

int32_t spk_context_threads(const spk_context *context) {
  int32_t threads = -1;
  guarded([&] { threads = (context ? *context : default_context()).threads; });
  return threads;
}

spk_status spk_context_trim(spk_context *context) {
  return guarded([&] { (context ? *context : default_context()).trim(); });
}

}  // extern "C"
