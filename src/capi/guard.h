// The boundary: exceptions become statuses and messages, handles and structs are checked.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "base/fp_mode.h"
#include "sparsekit/sparsekit.h"

namespace spk::capi {

// Keeps the message for spk_last_error_copy; returns the status. Never throws.
spk_status remember(spk_status status, const char *message) noexcept;

// Runs one call. `fn` returns nothing, or the status of a call that did its work.
template <typename Fn>
spk_status guarded(Fn &&fn) noexcept {
  const FpMode mode;  // arguments are judged in it, too
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Fn>>) {
      fn();
      return SPK_OK;
    } else {
      return fn();
    }
  } catch (const Error &error) {
    return remember(error.status, error.message.c_str());
  } catch (const std::bad_alloc &) {
    return remember(SPK_OUT_OF_MEMORY, "memory: an allocation failed");
  } catch (const std::exception &error) {
    return remember(SPK_INTERNAL, error.what());
  } catch (...) {
    return remember(SPK_INTERNAL, "internal: unknown exception");
  }
}

template <typename T>
T &required(T *pointer, const char *name) {
  if (!pointer) fail(SPK_INVALID_ARGUMENT, name, ": got NULL");
  return *pointer;
}

// `ndim` numbers of a caller's array; NULL is allowed only for none.
inline Extents dims(const int64_t *values, int32_t ndim, const char *name) {
  if (ndim < 0 || ndim > SPK_MAX_NDIM) {
    fail(SPK_INVALID_ARGUMENT, name, " ndim: got ", ndim, ", expected 0 to ", SPK_MAX_NDIM);
  }
  if (ndim > 0) required(values, name);
  return Extents(values, ndim);
}

inline std::string name_or(const char *name, const char *fallback) {
  return name ? name : fallback;
}

// Refuses a size that no version of the struct has: fields come in units of eight bytes.
template <typename T>
void check_struct_size(const T &given, const char *name) {
  const size_t size = given.struct_size;
  if (size < sizeof(size_t) || size % sizeof(size_t) != 0 || size > 4096) {
    fail(SPK_INVALID_ARGUMENT, name, ": struct_size: got ", size, ", expected ", sizeof(T));
  }
}

// A caller's struct that may be older or newer than ours: missing fields are those of `defaults`,
// unknown ones must be zero.
template <typename T>
T read_struct(const T *given, const T &defaults, const char *name) {
  if (!given) return defaults;
  check_struct_size(*given, name);
  const size_t size = given->struct_size;
  const auto *bytes = reinterpret_cast<const unsigned char *>(given);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      fail(SPK_INVALID_ARGUMENT, name, ": struct_size: got ", size, " with fields that this ",
           "version, which knows ", sizeof(T), " bytes, cannot honour");
    }
  }
  T result = defaults;
  std::memcpy(&result, given, std::min(size, sizeof(T)));
  return result;
}

// Writes as many fields as the caller's struct has; NULL asks for none.
template <typename T>
void write_struct(T *given, T facts) {
  if (!given) return;
  facts.struct_size = given->struct_size;
  std::memcpy(given, &facts, std::min(facts.struct_size, sizeof facts));
}
inline void write_report(spk_report *report, const spk_report &facts) {
  write_struct(report, facts);
}
// Refuses a report that could not be written.
template <typename Report>
void check_report(const Report *report) {
  if (report) check_struct_size(*report, "report");
}

}  // namespace spk::capi
