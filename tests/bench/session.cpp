#include "session.hpp"

#include <stdexcept>
#include <string>

#include "skip.hpp"

namespace bench {

void check(spk_status status) {
  if (status == SPK_OK) return;
  char message[SPK_MESSAGE_SIZE];
  spk_last_error_copy(message, sizeof message, nullptr);
  const std::string text = std::string(spk_status_string(status)) + ": " + message;
  if (status == SPK_OUT_OF_MEMORY || status == SPK_UNAVAILABLE) throw Skip(text);
  throw std::runtime_error(text);
}

Session::Session(const Execution &execution) {
  const spk_allocator hooks = allocator_.hooks();
  spk_context_options options = {};
  options.struct_size = sizeof options;
  options.executor = execution.executor;
  options.threads = execution.threads;
  options.allocator = &hooks;
  check(spk_context_create(&options, context_.out()));
}

}  // namespace bench
