#include "core/view.h"

#include "base/dtype.h"
#include "base/error.h"
#include "core/overlap.h"

namespace spk {
namespace {

bool multiply(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
bool add(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_add_overflow(a, b, out);
}

void check_dtype(int32_t dtype) {
  if (!is_float(dtype)) {
    fail(SPK_UNSUPPORTED_DTYPE, "view dtype: got code ", dtype,
         ", expected SPK_F32, SPK_F64, SPK_F16 or SPK_BF16");
  }
}

void check_shape(const Extents &shape, const Extents &stride, int max_dims) {
  if (shape.empty() || shape.size() > max_dims) {
    fail(SPK_INVALID_ARGUMENT, "view ndim: got ", shape.size(), ", expected 1 to ", max_dims);
  }
  if (stride.size() != shape.size()) {
    fail(SPK_SHAPE_MISMATCH, "view stride: got ", stride.size(), " strides for ", shape.size(),
         " dims");
  }
  for (int d = 0; d < shape.size(); ++d) {
    if (shape[d] < 1) {
      fail(SPK_INVALID_ARGUMENT, "view shape: dim ", d, ": got ", shape[d], ", expected >= 1");
    }
  }
}

// How far below and above its offset the view reaches, in elements.
struct Reach {
  int64_t below = 0;
  int64_t above = 0;
};

Reach checked_reach(const Extents &shape, const Extents &stride) {
  Reach reach;
  for (int d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    int64_t span = 0;
    const bool ok = stride[d] != INT64_MIN && multiply(shape[d] - 1, stride[d], &span) &&
                    (span < 0 ? !__builtin_sub_overflow(reach.below, span, &reach.below)
                              : add(reach.above, span, &reach.above));
    if (!ok) {
      fail(SPK_INVALID_ARGUMENT, "view stride: dim ", d, ": extent ", shape[d], " times stride ",
           stride[d], " overflows 64 bits");
    }
  }
  return reach;
}

}  // namespace

int64_t checked_sum(const char *what, int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!add(a, b, &sum)) {
    fail(SPK_INVALID_ARGUMENT, what, ": ", a, " plus ", b, " overflows 64 bits");
  }
  return sum;
}

int64_t checked_product(const char *what, const Extents &shape) {
  int64_t product = 1;
  for (int64_t extent : shape) {
    if (!multiply(product, extent, &product)) {
      fail(SPK_INVALID_ARGUMENT, what, ": the product of ", shape, " overflows 64 bits");
    }
  }
  return product;
}

Ref<View> make_view(int32_t dtype, const Extents &shape, const Extents &stride, int64_t offset,
                    int max_dims) {
  check_dtype(dtype);
  check_shape(shape, stride, max_dims);
  const int64_t numel = checked_product("view shape", shape);
  const Reach reach = checked_reach(shape, stride);
  if (offset < 0) fail(SPK_OUT_OF_BOUNDS, "view offset: got ", offset, ", expected >= 0");
  if (reach.below > offset) {
    fail(SPK_OUT_OF_BOUNDS, "view stride: the view reaches element ", offset - reach.below,
         ", below 0; offset is ", offset, ", expected >= ", reach.below);
  }
  int64_t last = 0;
  int64_t cosize = 0;
  if (!add(offset, reach.above, &last) || last > INT64_MAX / size_of(dtype) - 1 ||
      !add(reach.below, reach.above, &cosize) || !add(cosize, 1, &cosize)) {
    fail(SPK_INVALID_ARGUMENT, "view offset: ", offset, " plus the span of the layout overflows ",
         "64 bits");
  }
  switch (maps_two_indices_to_one(shape, stride)) {
    case Decision::kNo:
      break;
    case Decision::kYes:
      fail(SPK_OVERLAP, "view stride: ", shape, ":", stride, " maps two indices to one element");
    case Decision::kUnknown:
      fail(SPK_OVERLAP, "view stride: ", shape, ":", stride,
           " cannot be shown to map every index to its own element");
  }
  auto view = Ref<View>::adopt(new View);
  view->dtype = dtype;
  view->shape = shape;
  view->stride = stride;
  view->offset = offset;
  view->numel = numel;
  view->cosize = cosize;
  view->last = last;
  return view;
}

Ref<View> make_contiguous_view(int32_t dtype, const Extents &shape, int64_t offset, int max_dims) {
  for (int64_t extent : shape) {
    // Row-major strides of a refused shape would be meaningless; make_view says what is wrong.
    if (extent < 1) return make_view(dtype, shape, Extents(shape.size(), 1), offset, max_dims);
  }
  checked_product("view shape", shape);
  return make_view(dtype, shape, shape.row_major(), offset, max_dims);
}

int64_t linear_offset(const View &view, const int64_t *index) {
  int64_t result = view.offset;
  for (int d = 0; d < view.shape.size(); ++d) result += index[d] * view.stride[d];
  return result;
}

}  // namespace spk
