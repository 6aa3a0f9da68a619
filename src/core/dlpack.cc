#include "core/dlpack.h"

#include "base/dtype.h"
#include "base/error.h"

// The in-memory layout that DLPack fixes (dlpack.h, versions 0.x and 1.x); Debian 12 carries only
// 0.x, so it is restated here.
namespace spk {

struct DlDevice {
  int32_t type;
  int32_t id;
};

struct DlDtype {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DlTensor {
  void *data;
  DlDevice device;
  int32_t ndim;
  DlDtype dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
};

constexpr int32_t kDlCpu = 1;
constexpr int32_t kDlCudaHost = 3;
constexpr int32_t kDlRocmHost = 11;
constexpr uint64_t kDlReadOnly = 1;

}  // namespace spk

struct DLManagedTensor {
  spk::DlTensor tensor;
  void *manager_ctx;
  void (*deleter)(DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void *manager_ctx;
  void (*deleter)(DLManagedTensorVersioned *self);
  uint64_t flags;
  spk::DlTensor tensor;
};

namespace spk {
namespace {

DlpackView view_of(const DlTensor &tensor) {
  const int32_t device = tensor.device.type;
  if (device != kDlCpu && device != kDlCudaHost && device != kDlRocmHost) {
    fail(SPK_UNAVAILABLE, "dlpack device: got type ", device, ", expected CPU memory (1, 3 or 11)");
  }
  const int32_t dtype = (int32_t{tensor.dtype.code} << 8) | tensor.dtype.bits;
  if (tensor.dtype.lanes != 1 || !is_float(dtype)) {
    fail(SPK_UNSUPPORTED_DTYPE, "dlpack dtype: got code ", int{tensor.dtype.code}, " of ",
         int{tensor.dtype.bits}, " bits and ", tensor.dtype.lanes,
         " lanes, expected f32, f64, f16 or bf16 of 1 lane");
  }
  if (tensor.ndim < 1 || tensor.ndim > SPK_MAX_NDIM) {
    fail(SPK_INVALID_ARGUMENT, "dlpack ndim: got ", tensor.ndim, ", expected 1 to ", SPK_MAX_NDIM);
  }
  if (!tensor.data || !tensor.shape) {
    fail(SPK_INVALID_ARGUMENT, "dlpack ", tensor.data ? "shape" : "data", ": got NULL");
  }
  auto *bytes = static_cast<std::byte *>(tensor.data) + tensor.byte_offset;
  const auto size = static_cast<uint64_t>(size_of(dtype));
  const uint64_t past = reinterpret_cast<uintptr_t>(bytes) % size;
  if (past != 0) {
    fail(SPK_INVALID_ARGUMENT, "dlpack data: got an address that is ", past, " past a multiple of ",
         size, ", expected one aligned to the element size of ", name_of(dtype));
  }
  const Extents shape(tensor.shape, tensor.ndim);
  // Negative strides reach below the first element; views count from the lowest one.
  Extents stride;
  int64_t below = 0;
  if (tensor.strides) {
    stride = Extents(tensor.strides, tensor.ndim);
    for (int d = 0; d < tensor.ndim; ++d) {
      int64_t span = 0;
      if (stride[d] < 0 && shape[d] > 1 &&
          (__builtin_mul_overflow(shape[d] - 1, stride[d], &span) ||
           __builtin_sub_overflow(below, span, &below))) {
        fail(SPK_INVALID_ARGUMENT, "dlpack strides: dim ", d, ": extent ", shape[d],
             " times stride ", stride[d], " overflows 64 bits");
      }
    }
  } else {
    stride = make_contiguous_view(dtype, shape)->stride;
  }
  DlpackView result;
  result.view = make_view(dtype, shape, stride, below);
  result.buffer = {bytes - below * static_cast<int64_t>(size), result.view->last + 1, dtype,
                   SPK_LAYOUT_VIEW, nullptr};
  return result;
}

}  // namespace

DlpackView view_from_dlpack(const DLManagedTensor &tensor) {
  return view_of(tensor.tensor);
}

DlpackView view_from_dlpack(const DLManagedTensorVersioned &tensor, bool writable) {
  if (tensor.major != 1) {
    fail(SPK_INVALID_ARGUMENT, "dlpack version: got ", tensor.major, ".", tensor.minor,
         ", expected 1.x");
  }
  if (writable && (tensor.flags & kDlReadOnly)) {
    fail(SPK_INVALID_ARGUMENT, "dlpack flags: got a read-only tensor, expected a writable one");
  }
  return view_of(tensor.tensor);
}

}  // namespace spk
