#include "core/hard_threshold.h"

#include <cmath>
#include <limits>

#include "core/norms.h"

namespace spk {
namespace {

// The least float that is not below a double: floats are below the one if below the other.
float next_float(double threshold) {
  const auto nearest = static_cast<float>(threshold);
  const bool below = static_cast<double>(nearest) < threshold;
  return below ? std::nextafter(nearest, std::numeric_limits<float>::infinity()) : nearest;
}

// Blocks of one element that are their own values, and whose thresholds lie in the same order.
bool are_plain_elements(const Grid &grid, const Grid &values, const GridArray &thresholds) {
  return &grid == &values && lie_alike(grid, thresholds);
}

}  // namespace

void hard_threshold(Call &call, const Grid &grid, const Grid &values, const GridArray &given,
                    Tally *tally) {
  GridArray thresholds = given;
  float threshold = 0.0F;
  if (given.dtype == SPK_F64 && grid.leaves[0].dtype == SPK_F32 && is_one_for_all(grid, given)) {
    threshold = next_float(*reinterpret_cast<const double *>(given.data));
    thresholds = {reinterpret_cast<std::byte *>(&threshold), SPK_F32, given.step};
  }
  if (are_plain_elements(grid, values, thresholds)) {
    const int dtype = index_of_dtype(grid.leaves[0].dtype);
    const auto drop = call.kernels().drop_elements[dtype][thresholds.dtype == SPK_F64];
    for_each_element_run(call, grid, thresholds,
                         [&](const ElementArgs &args) { tally->achieved += drop(args); });
    return;
  }
  for_each_norms(call, values, 2.0, [&](Scratch &scratch, const Rect &rect, double *norms) {
    const int64_t count = rect.count();
    round_scores(values, count, norms);
    double *limit = scratch.take<double>(count);
    uint8_t *keep = scratch.take<uint8_t>(count);
    load(call.kernels(), rect, given, limit);
    tally->achieved += call.kernels().keep_at_least(norms, limit, count, keep);
    if (values.is_deep()) {
      mask_all(call, grid, keep);
    } else {
      mask_rect(call.kernels(), grid, rect, keep, true);
    }
  });
}

}  // namespace spk
