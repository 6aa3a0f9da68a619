// The view: a strided window (shape, stride, offset, dtype) over memory that calls bring.
#pragma once

#include <cstdint>
#include <string>

#include "base/extents.h"
#include "base/handle.h"
#include "sparsekit/sparsekit.h"

struct spk_view final : spk::RefCounted {
  int32_t dtype = 0;
  spk::Extents shape;
  spk::Extents stride;
  int64_t offset = 0;
  int64_t numel = 0;
  int64_t cosize = 0;
  int64_t last = 0;  // the largest linear offset that the view reaches
};

namespace spk {

using View = ::spk_view;

// Checks everything that spk_view_create refuses. `max_dims` is SPK_MAX_NDIM for views that callers
// describe; block views of a view may have twice as many.
Ref<View> make_view(int32_t dtype, const Extents &shape, const Extents &stride, int64_t offset,
                    int max_dims = SPK_MAX_NDIM);
Ref<View> make_contiguous_view(int32_t dtype, const Extents &shape, int64_t offset = 0,
                               int max_dims = SPK_MAX_NDIM);

// Sum of sizes that are >= 0; refuses an overflow in the name of `what`.
int64_t checked_sum(const char *what, int64_t a, int64_t b);
// Product of a shape whose dimensions are >= 1; refuses an overflow in the name of `what`.
int64_t checked_product(const char *what, const Extents &shape);

int64_t linear_offset(const View &view, const int64_t *index);

Ref<View> parse_view(int32_t dtype, const std::string &text);
std::string format_view(const View &view);

}  // namespace spk
