#include "parallel/context.h"

namespace spk {

Context &default_context() {
  static Context *context = [] {
    auto *made = new Context(default_allocator(), Counted::kNo);
    made->executor_code = default_executor();
    made->executor = *built_in_executor(made->executor_code);
    made->threads = made->executor_code == SPK_EXECUTOR_SERIAL ? 1 : available_threads();
    return made;
  }();
  return *context;
}

}  // namespace spk
