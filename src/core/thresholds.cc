#include "core/thresholds.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace spk {
namespace {

template <typename T>
void check_entries(const T *thresholds, int64_t count, bool allow_negative) {
  const T least = allow_negative ? -std::numeric_limits<T>::infinity() : T{0};
  bool refused = false;  // without a branch: thresholds may be as many as weights
  for (int64_t i = 0; i < count; ++i) refused |= !(thresholds[i] >= least);
  if (!refused) return;
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

void check_thresholds(const ArrayData &array, int64_t count, bool allow_negative) {
  if (array.dtype == SPK_F64) {
    check_entries(array.as<const double>(), count, allow_negative);
  } else {
    check_entries(array.as<const float>(), count, allow_negative);
  }
}

}  // namespace spk
