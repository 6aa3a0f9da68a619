#include "core/hard_threshold.h"

#include <cmath>
#include <limits>

#include "core/elements.h"
#include "core/norms.h"
#include "core/slabs.h"
#include "core/threshold_rect.h"
#include "core/write_blocks.h"

namespace spk {
namespace {

// The least float that is not below a double: floats are below the one if below the other.
float next_float(double threshold) {
  const auto nearest = static_cast<float>(threshold);
  const bool below = static_cast<double>(nearest) < threshold;
  return below ? std::nextafter(nearest, std::numeric_limits<float>::infinity()) : nearest;
}

// Blocks that are cut into parts.
void hard_threshold_deep(Call &call, const Grid &grid, const Grid &values,
                         const GridArray &thresholds, Tally *tally) {
  const Kernels &kernels = call.kernels();
  const int64_t count = grid.numblk();
  double *norms = call.scratch().take<double>(count);
  double *limit = call.scratch().take<double>(count);
  uint8_t *keep = call.scratch().take<uint8_t>(count);
  norms_deep(call, values, 2.0, norms);
  round_scores(values, count, norms);
  load(kernels, Rect::whole(grid.shape), thresholds, limit);
  tally->achieved += kernels.keep_at_least(norms, limit, count, keep);
  mask_all(call, grid, keep);
}

// Returns how many blocks stay.
int64_t hard_threshold_rect(const Kernels &kernels, Scratch &scratch, const Grid &grid,
                            const Grid &values, const Rect &rect, const GridArray &thresholds) {
  const int64_t count = rect.count();
  double *limit = scratch.take<double>(count);
  double *norms = scratch.take<double>(count);
  uint8_t *keep = scratch.take<uint8_t>(count);
  load(kernels, rect, thresholds, limit);
  norms_rect(kernels, scratch, values, rect, 2.0, norms);
  round_scores(values, count, norms);
  const int64_t kept = kernels.keep_at_least(norms, limit, count, keep);
  mask_rect(kernels, scratch, grid, rect, keep, &grid == &values);
  return kept;
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
  const bool own_values = &grid == &values;
  if (const ElementRows rows(grid, thresholds); own_values && rows.exist()) {
    const int dtype = index_of_dtype(grid.leaves[0].dtype);
    const auto drop = call.kernels().drop_elements[dtype][thresholds.dtype == SPK_F64];
    rows.for_each(call, Entries::kRead,
                  [&](const ElementArgs &args) { tally->achieved += drop(args); });
    return;
  }
  if (values.is_deep()) {
    return for_each_slab(
        call, values, kept_by_norms(values), [&](const Grid &read, const Rect &slab) {
          const GridArray own = entries_in(slab, given);
          if (&grid == &values) return hard_threshold_deep(call, read, read, own, tally);
          hard_threshold_deep(call, blocks_in(slab, grid, call.memory()), read, own, tally);
        });
  }
  const Kernels &kernels = call.kernels();
  RectThresholds how = {kernels.drop_across, kernels.drop_along,       kernels.drop_rows,
                        kernels.drop_tiles,  kernels.holds_rows_ahead, given};
  const Tiling boxes = own_values ? threshold_boxes(grid, &how) : values.tiles();
  call.for_each(boxes.count(), [&](Scratch &scratch, int64_t i) {
    const Rect box = boxes[i];
    int64_t kept = 0;
    if (!own_values || !threshold_rect(kernels, scratch, grid, box, how, &kept)) {
      kept = hard_threshold_rect(kernels, scratch, grid, values, box, given);
    }
    tally->achieved += kept;
  });
}

}  // namespace spk
