#include "core/buffers.h"

#include <algorithm>

#include "base/dtype.h"
#include "base/error.h"

namespace spk {
namespace {

std::string names_of(std::initializer_list<int32_t> dtypes) {
  std::string names;
  for (int32_t dtype : dtypes) {
    if (!names.empty()) names += " or ";
    names += name_of(dtype);
  }
  return names;
}

bool same(const Footprint &a, const Footprint &b) {
  return a.base == b.base && a.size == b.size && a.shape == b.shape && a.stride == b.stride;
}

}  // namespace

std::string Buffers::label(const char *name, int index) const {
  if (namer_) return namer_(name, index);
  return index < 0 ? std::string(name) : cat(name, "[", index, "]");
}

void Buffers::add_use(const char *name, int index, Access access, Footprint footprint) {
  Use use{name,        index, access, footprint, footprint.base, footprint.base + footprint.size,
          uses_.size()};
  for (int d = 0; d < footprint.shape.size(); ++d) {
    const int64_t span = (footprint.shape[d] - 1) * footprint.stride[d];
    (span < 0 ? use.low : use.high) += span;
  }
  uses_.push_back(use);
}

namespace {

// Checks that hold for every buffer: data, alignment and a dtype that is known.
void check_buffer(const std::string &label, const spk_buffer &buffer, int64_t numel) {
  if (!buffer.data) fail(SPK_INVALID_ARGUMENT, label, ": data: got NULL");
  const auto address = reinterpret_cast<uintptr_t>(buffer.data);
  const auto size = static_cast<uintptr_t>(size_of(buffer.dtype));
  if (address % size != 0) {
    fail(SPK_INVALID_ARGUMENT, label, ": data: got an address that is ", address % size,
         " past a multiple of ", size, ", expected one aligned to the element size of ",
         name_of(buffer.dtype));
  }
  if (buffer.numel < numel) {
    fail(SPK_OUT_OF_BOUNDS, label, ": numel: got ", buffer.numel, ", expected at least ", numel);
  }
}

}  // namespace

LeafData Buffers::leaf(const char *name, int index, const spk_buffer &buffer, const View &view,
                       Access access, int32_t dtype, bool contiguous) {
  const std::string where = label(name, index);
  const bool fits = dtype == kAnyFloat ? is_float(buffer.dtype)
                                       : buffer.dtype == (dtype == 0 ? view.dtype : dtype);
  if (!fits) {
    fail(SPK_UNSUPPORTED_DTYPE, where, ": dtype: got ", name_of(buffer.dtype), " (code ",
         buffer.dtype, "), expected ",
         dtype == kAnyFloat ? "f32, f64, f16 or bf16" : name_of(dtype == 0 ? view.dtype : dtype));
  }
  LeafData data;
  data.dtype = buffer.dtype;
  int64_t offset = 0;
  int64_t needed = 0;
  if (buffer.layout == SPK_LAYOUT_CONTIGUOUS || (contiguous && buffer.layout == SPK_LAYOUT_VIEW)) {
    data.stride = view.shape.row_major();
    needed = view.numel;
  } else if (buffer.layout == SPK_LAYOUT_VIEW) {
    data.stride = view.stride;
    offset = view.offset;
    needed = view.last + 1;
  } else if (buffer.layout == SPK_LAYOUT_OWN && !contiguous) {
    if (!buffer.view) fail(SPK_INVALID_ARGUMENT, where, ": view: got NULL with SPK_LAYOUT_OWN");
    if (!(buffer.view->shape == view.shape)) {
      fail(SPK_SHAPE_MISMATCH, where, ": view: got shape ", buffer.view->shape, ", expected ",
           view.shape, " as the leaf's view");
    }
    if (buffer.view->dtype != buffer.dtype) {
      fail(SPK_UNSUPPORTED_DTYPE, where, ": view: got dtype ", name_of(buffer.view->dtype),
           ", expected ", name_of(buffer.dtype), " as the buffer's");
    }
    data.stride = buffer.view->stride;
    offset = buffer.view->offset;
    needed = buffer.view->last + 1;
  } else {
    fail(SPK_INVALID_ARGUMENT, where, ": layout: got ", buffer.layout, ", expected ",
         contiguous ? "SPK_LAYOUT_CONTIGUOUS" : "SPK_LAYOUT_VIEW, _CONTIGUOUS or _OWN");
  }
  if (buffer.layout != SPK_LAYOUT_OWN && buffer.view) {
    fail(SPK_INVALID_ARGUMENT, where, ": view: got a view with layout ", buffer.layout,
         ", expected NULL unless it is SPK_LAYOUT_OWN (2)");
  }
  check_buffer(where, buffer, needed);
  // Nothing is a stride away along a dimension of 1, and the product could overflow.
  for (int d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] == 1) data.stride[d] = 0;
  }
  const int64_t size = size_of(buffer.dtype);
  data.origin = static_cast<std::byte *>(buffer.data) + offset * size;
  Footprint footprint;
  footprint.base = reinterpret_cast<intptr_t>(data.origin);
  footprint.size = size;
  footprint.shape = view.shape;
  for (int64_t stride : data.stride) footprint.stride.push_back(stride * size);
  add_use(name, index, access, footprint);
  return data;
}

namespace {

void check_count(const char *name, const void *buffers, int64_t count, size_t leaves) {
  const char *noun = leaves == 1 ? " buffer" : " buffers";
  if (!buffers) fail(SPK_INVALID_ARGUMENT, name, ": got NULL, expected ", leaves, noun);
  if (count != static_cast<int64_t>(leaves)) {
    fail(SPK_SHAPE_MISMATCH, name, ": got ", count, " buffers, expected ", leaves,
         ", one per leaf");
  }
}

}  // namespace

Buffers::Leaves Buffers::leaves(const char *name, const spk_buffer *buffers, int32_t count,
                                const std::vector<const Leaf *> &leaves, Access access,
                                int32_t dtype) {
  check_count(name, buffers, count, leaves.size());
  Leaves result(&memory_);
  result.reserve(leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    result.push_back(
        leaf(name, static_cast<int>(i), buffers[i], *leaves[i]->view, access, dtype, false));
  }
  return result;
}

Buffers::Leaves Buffers::contiguous_leaves(const char *name, const spk_buffer *buffers,
                                           int32_t count, const std::vector<const Leaf *> &leaves,
                                           Access access, int32_t dtype) {
  check_count(name, buffers, count, leaves.size());
  Leaves result(&memory_);
  result.reserve(leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    result.push_back(
        leaf(name, static_cast<int>(i), buffers[i], *leaves[i]->view, access, dtype, true));
  }
  return result;
}

ArrayData Buffers::checked_array(const char *name, int index, const spk_buffer *buffer,
                                 int64_t numel, std::initializer_list<int32_t> dtypes,
                                 Access access) {
  const std::string where = label(name, index);
  if (!buffer) fail(SPK_INVALID_ARGUMENT, where, ": got NULL, expected a buffer");
  if (std::find(dtypes.begin(), dtypes.end(), buffer->dtype) == dtypes.end()) {
    fail(SPK_UNSUPPORTED_DTYPE, where, ": dtype: got ", name_of(buffer->dtype), " (code ",
         buffer->dtype, "), expected ", names_of(dtypes));
  }
  if (buffer->layout != SPK_LAYOUT_VIEW && buffer->layout != SPK_LAYOUT_CONTIGUOUS) {
    fail(SPK_INVALID_ARGUMENT, where, ": layout: got ", buffer->layout,
         ", expected SPK_LAYOUT_CONTIGUOUS");
  }
  if (buffer->view) {
    fail(SPK_INVALID_ARGUMENT, where, ": view: got a view, expected NULL: the array is contiguous");
  }
  if (buffer->numel != numel) {
    fail(SPK_SHAPE_MISMATCH, where, ": numel: got ", buffer->numel, ", expected ", numel);
  }
  check_buffer(where, *buffer, numel);
  Footprint footprint;
  footprint.base = reinterpret_cast<intptr_t>(buffer->data);
  footprint.size = size_of(buffer->dtype);
  footprint.shape = {numel};
  footprint.stride = {footprint.size};
  add_use(name, index, access, footprint);
  return {static_cast<std::byte *>(buffer->data), buffer->dtype};
}

ArrayData Buffers::array(const char *name, const spk_buffer *buffer, int64_t numel,
                         std::initializer_list<int32_t> dtypes, Access access) {
  return checked_array(name, -1, buffer, numel, dtypes, access);
}

ArrayData Buffers::array_or_one(const char *name, const spk_buffer *buffer, int64_t numel,
                                std::initializer_list<int32_t> dtypes, bool *broadcast) {
  *broadcast = buffer && buffer->numel == 1;
  if (buffer && buffer->numel != 1 && buffer->numel != numel) {
    fail(SPK_SHAPE_MISMATCH, name, ": numel: got ", buffer->numel, ", expected ",
         numel == 1 ? "1" : cat(numel, " or 1"));
  }
  return checked_array(name, -1, buffer, *broadcast ? 1 : numel, dtypes, Access::kRead);
}

ArrayData Buffers::array_at(const char *name, const spk_buffer *buffers, int32_t index,
                            int64_t numel, std::initializer_list<int32_t> dtypes, Access access) {
  return checked_array(name, index, buffers + index, numel, dtypes, access);
}

Decision Buffers::conflict(const Use &a, const Use &b) {
  if (a.access == Access::kAlone || b.access == Access::kAlone) {
    return share_a_byte(a.footprint, b.footprint);
  }
  if (a.access == Access::kRead && b.access == Access::kRead) return Decision::kNo;
  const bool sisters = a.name == b.name;  // leaves of one argument, which is named once
  const bool written = a.access == Access::kWrite || b.access == Access::kWrite;
  // A leaf that is only read conflicts with its sister leaves alone.
  if (!written && !sisters) return Decision::kNo;
  // One and the same buffer in two roles of one leaf: in place.
  if (!sisters && a.index == b.index && same(a.footprint, b.footprint)) return Decision::kNo;
  return share_a_byte(a.footprint, b.footprint);
}

void Buffers::check_overlap() {
  if (uses_.size() < 2) return;
  std::sort(uses_.begin(), uses_.end(), [](const Use &a, const Use &b) { return a.low < b.low; });
  for (size_t i = 0; i < uses_.size(); ++i) {
    for (size_t j = i + 1; j < uses_.size() && uses_[j].low < uses_[i].high; ++j) {
      const Decision decision = conflict(uses_[i], uses_[j]);
      if (decision == Decision::kNo) continue;
      const Use &a = uses_[i];
      const Use &b = uses_[j];
      const bool in_order = a.order < b.order;
      const std::string first = in_order ? label(a.name, a.index) : label(b.name, b.index);
      const std::string second = in_order ? label(b.name, b.index) : label(a.name, a.index);
      fail(SPK_OVERLAP, first, " and ", second,
           decision == Decision::kYes ? " share bytes" : " cannot be shown to share no byte",
           "; expected buffers that do not overlap");
    }
  }
}

}  // namespace spk
