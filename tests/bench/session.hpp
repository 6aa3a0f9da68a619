// A context of the library whose memory is counted, and checks of what calls return.
#ifndef SPARSEKIT_TESTS_BENCH_SESSION_HPP_
#define SPARSEKIT_TESTS_BENCH_SESSION_HPP_

#include <sparsekit/sparsekit.h>

#include "../property/handles.hpp"
#include "execution.hpp"
#include "memory.hpp"

namespace bench {

using prop::BlockHandle;
using prop::ContextHandle;
using prop::ScopeHandle;
using prop::ViewHandle;

// Throws Skip if memory was lacking or the executor is not there, std::runtime_error with the
// library's message for any other failure.
void check(spk_status status);

class Session {
 public:
  explicit Session(const Execution &execution);

  spk_context *context() const { return context_.get(); }
  // The most scratch memory that calls had at one time.
  int64_t peak_bytes() const { return allocator_.peak(); }

 private:
  CountingAllocator allocator_;  // outlives the context
  ContextHandle context_;
};

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_SESSION_HPP_
