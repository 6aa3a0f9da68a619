#include <algorithm>
#include <cstdint>

#include "base/handle.h"
#include "capi/guard.h"

namespace spk::capi {
namespace {

// One message per thread, of fixed size, so that failing never allocates.
thread_local char last_message[SPK_MESSAGE_SIZE] = "";
thread_local spk_status last_status = SPK_OK;

}  // namespace

spk_status remember(spk_status status, const char *message) noexcept {
  constexpr size_t kRoom = SPK_MESSAGE_SIZE - 1;
  const size_t length = std::strlen(message);
  std::memcpy(last_message, message, std::min(length, kRoom));
  last_message[std::min(length, kRoom)] = 0;
  if (length > kRoom) std::memcpy(last_message + kRoom - 3, "...", 3);
  last_status = status;
  return status;
}

}  // namespace spk::capi

extern "C" {

const char *spk_status_string(spk_status status) {
  switch (status) {
    case SPK_OK:
      return "SPK_OK";
    case SPK_INVALID_ARGUMENT:
      return "SPK_INVALID_ARGUMENT";
    case SPK_SHAPE_MISMATCH:
      return "SPK_SHAPE_MISMATCH";
    case SPK_COUPLING:
      return "SPK_COUPLING";
    case SPK_OVERLAP:
      return "SPK_OVERLAP";
    case SPK_OUT_OF_BOUNDS:
      return "SPK_OUT_OF_BOUNDS";
    case SPK_UNSUPPORTED_DTYPE:
      return "SPK_UNSUPPORTED_DTYPE";
    case SPK_OUT_OF_MEMORY:
      return "SPK_OUT_OF_MEMORY";
    case SPK_NOT_CONVERGED:
      return "SPK_NOT_CONVERGED";
    case SPK_CANCELLED:
      return "SPK_CANCELLED";
    case SPK_UNAVAILABLE:
      return "SPK_UNAVAILABLE";
    case SPK_INTERNAL:
      return "SPK_INTERNAL";
    default:
      return "unknown status";
  }
}

spk_status spk_last_error_copy(char *text, size_t capacity, size_t *length) {
  const char *message = spk::capi::last_message;
  const size_t whole = std::strlen(message);
  if (length) *length = whole;
  if (text && capacity > 0) {
    const size_t copied = std::min(whole, capacity - 1);
    std::memcpy(text, message, copied);
    text[copied] = 0;
  }
  return spk::capi::last_status;
}

int64_t spk_live_handles(void) {
  return spk::RefCounted::live();
}

}  // extern "C"
