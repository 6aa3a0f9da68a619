#include "core/view.h"

#include <cstring>

#include "capi/guard.h"
#include "core/dlpack.h"

using namespace spk;
using namespace spk::capi;

namespace {

// Refuses index tuples outside the view's shape.
void check_indices(const View &view, const int64_t *index, int64_t count) {
  if (count < 0) fail(SPK_INVALID_ARGUMENT, "count: got ", count, ", expected >= 0");
  if (count > 0) required(index, "index");
  const int ndim = view.shape.size();
  for (int64_t i = 0; i < count; ++i) {
    for (int d = 0; d < ndim; ++d) {
      const int64_t at = index[i * ndim + d];
      if (at < 0 || at >= view.shape[d]) {
        fail(SPK_OUT_OF_BOUNDS, "index[", i, "]: dim ", d, ": got ", at, ", expected 0 to ",
             view.shape[d] - 1);
      }
    }
  }
}

void hand_out(DlpackView made, spk_view **out, spk_buffer *buffer) {
  if (buffer) *buffer = made.buffer;
  *out = made.view.detach();
}

}  // namespace

extern "C" {

spk_status spk_view_create(int32_t dtype, int32_t ndim, const int64_t *shape, const int64_t *stride,
                           int64_t offset, spk_view **out) {
  return guarded([&] {
    required(out, "out");
    if (ndim < 1 || ndim > SPK_MAX_NDIM) {
      fail(SPK_INVALID_ARGUMENT, "view ndim: got ", ndim, ", expected 1 to ", SPK_MAX_NDIM);
    }
    const Extents extents = dims(shape, ndim, "view shape");
    *out = (stride ? make_view(dtype, extents, Extents(stride, ndim), offset)
                   : make_contiguous_view(dtype, extents, offset))
               .detach();
  });
}

spk_status spk_view_parse(int32_t dtype, const char *text, spk_view **out) {
  return guarded([&] {
    required(out, "out");
    *out = parse_view(dtype, &required(text, "text")).detach();
  });
}

spk_status spk_view_format(const spk_view *view, char *text, size_t capacity, size_t *length) {
  return guarded([&] {
    const std::string formatted = format_view(required(view, "view"));
    if (text && capacity <= formatted.size()) {
      fail(SPK_OUT_OF_BOUNDS, "capacity: got ", capacity, ", expected at least ",
           formatted.size() + 1);
    }
    if (text) std::memcpy(text, formatted.c_str(), formatted.size() + 1);
    if (length) *length = formatted.size();
  });
}

spk_status spk_view_from_dlpack(const struct DLManagedTensor *tensor, spk_view **out,
                                spk_buffer *buffer) {
  return guarded([&] {
    required(out, "out");
    hand_out(view_from_dlpack(required(tensor, "tensor")), out, buffer);
  });
}

spk_status spk_view_from_dlpack_versioned(const struct DLManagedTensorVersioned *tensor,
                                          int32_t writable, spk_view **out, spk_buffer *buffer) {
  return guarded([&] {
    required(out, "out");
    hand_out(view_from_dlpack(required(tensor, "tensor"), writable != 0), out, buffer);
  });
}

void spk_view_retain(spk_view *view) {
  if (view) view->retain();
}

void spk_view_release(spk_view *view) {
  if (view) view->release();
}

int32_t spk_view_dtype(const spk_view *view) {
  return view ? view->dtype : -1;
}
int32_t spk_view_ndim(const spk_view *view) {
  return view ? view->shape.size() : -1;
}
const int64_t *spk_view_shape(const spk_view *view) {
  return view ? view->shape.data() : nullptr;
}
const int64_t *spk_view_stride(const spk_view *view) {
  return view ? view->stride.data() : nullptr;
}
int64_t spk_view_offset(const spk_view *view) {
  return view ? view->offset : -1;
}
int64_t spk_view_numel(const spk_view *view) {
  return view ? view->numel : -1;
}
int64_t spk_view_cosize(const spk_view *view) {
  return view ? view->cosize : -1;
}

spk_status spk_view_linear_offset(const spk_view *view, const int64_t *index, int64_t count,
                                  int64_t *out) {
  return guarded([&] {
    check_indices(required(view, "view"), index, count);
    if (count > 0) required(out, "out");
    for (int64_t i = 0; i < count; ++i) {
      out[i] = linear_offset(*view, index + i * view->shape.size());
    }
  });
}

spk_status spk_view_to_param_rc(const spk_view *view, const int64_t *index, int64_t count,
                                int64_t num_cols, int64_t *rows, int64_t *cols) {
  return guarded([&] {
    check_indices(required(view, "view"), index, count);
    if (num_cols < 1) fail(SPK_INVALID_ARGUMENT, "num_cols: got ", num_cols, ", expected >= 1");
    if (count > 0) {
      required(rows, "rows");
      required(cols, "cols");
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t offset = linear_offset(*view, index + i * view->shape.size());
      rows[i] = offset / num_cols;
      cols[i] = offset % num_cols;
    }
  });
}

}  // extern "C"
