#include "core/thresholds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/dtype.h"
#include "base/error.h"

namespace spk {
namespace {

// Names the first entry that is refused.
template <typename T>
void refuse_entry(const T *thresholds, int64_t count, bool allow_negative) {
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(thresholds[i])) {
      fail(SPK_INVALID_ARGUMENT, "thresholds[", i, "]: got NaN, expected a number");
    }
    if (!allow_negative && thresholds[i] < 0) {
      fail(SPK_INVALID_ARGUMENT, "thresholds[", i, "]: got ", thresholds[i], ", expected >= 0");
    }
  }
}

}  // namespace

void check_thresholds(Call &call, const ArrayData &array, int64_t count, bool allow_negative) {
  constexpr int64_t kChunk = int64_t{1} << 15;
  const bool is_double = array.dtype == SPK_F64;
  const double least = allow_negative ? -std::numeric_limits<double>::infinity() : 0.0;
  std::atomic<bool> refused{false};
  call.for_each((count + kChunk - 1) / kChunk, [&](Scratch &, int64_t i) {
    const int64_t first = i * kChunk;
    const int64_t entries = std::min(kChunk, count - first);
    const std::byte *at = array.data + first * size_of(array.dtype);
    if (!call.kernels().all_at_least[is_double](at, entries, least)) refused = true;
  });
  if (!refused) return;
  if (is_double) {
    refuse_entry(array.as<const double>(), count, allow_negative);
  } else {
    refuse_entry(array.as<const float>(), count, allow_negative);
  }
}

}  // namespace spk
