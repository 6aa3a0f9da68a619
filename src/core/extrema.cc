#include "core/extrema.h"

#include <atomic>

#include "base/error.h"

namespace spk {
namespace {

void store_counts(const Rect &rect, const double *local, const GridArray &out) {
  for_each_block(rect, [&](int64_t number, const Extents &block) {
    *reinterpret_cast<int64_t *>(out.data + dot(block, out.step)) =
        static_cast<int64_t>(local[number]);
  });
}

}  // namespace

void extremes(Call &call, const Grid &grid, Reduction which, const GridArray &out) {
  for_each_reduced(call, grid, which, 0.0, [&](const Rect &rect, const double *local) {
    store(call.kernels(), rect, local, out);
  });
}

int64_t count_nonzeros(Call &call, const Grid &grid, double eps, const GridArray &per_block) {
  std::atomic<int64_t> total{0};
  for_each_reduced(call, grid, kCount, eps, [&](const Rect &rect, const double *local) {
    int64_t count = 0;
    for (int64_t i = 0; i < rect.count(); ++i) count += static_cast<int64_t>(local[i]);
    total += count;
    if (per_block.data) store_counts(rect, local, per_block);
  });
  return total;
}

void reduce_by_callback(Call &call, const Grid &grid, const std::string &name, spk_reduce_fn fn,
                        void *user, const GridArray &out) {
  double *elements = call.scratch().take<double>(grid.numel_per_block);
  for_each_block(Rect::whole(grid.shape), [&](int64_t number, const Extents &block) {
    gather_block(call.kernels(), grid, block, elements);
    double result = 0.0;
    const int32_t stop =
        call.call_back([&] { return fn(user, number, elements, grid.numel_per_block, &result); });
    if (stop != 0) {
      fail(SPK_CANCELLED, name, ": returned ", stop, " for block ", number,
           ", which cancels the call");
    }
    store(call.kernels(), Rect::one(block), &result, out);
  });
}

}  // namespace spk
