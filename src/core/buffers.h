// What a call was brought: buffers checked against what they must hold, ready to be used.
#pragma once

#include <cstddef>
#include <functional>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "core/block.h"
#include "core/overlap.h"

namespace spk {

// A leaf's array: element (i0, i1, ...) of the leaf's view lies at origin + sum(i_d * stride_d),
// stride in elements.
struct LeafData {
  std::byte *origin = nullptr;
  int32_t dtype = 0;
  Extents stride;
};

// A contiguous array.
struct ArrayData {
  std::byte *data = nullptr;
  int32_t dtype = 0;

  template <typename T>
  T *as() const {
    return reinterpret_cast<T *>(data);
  }
};

enum class Access {
  kRead,   // may share bytes with anything else that is only read
  kLeaf,   // only read, but leaves of one call never share bytes
  kWrite,  // shares bytes with nothing but itself
  kAlone,  // shares bytes with nothing, not even itself in another role
};

// Collects the buffers of one call. Everything is checked before anything is written.
class Buffers {
 public:
  using Leaves = std::pmr::vector<LeafData>;
  // What messages call a buffer, by the name and the index that it was brought with.
  using Namer = std::function<std::string(const char *name, int index)>;

  Buffers() = default;
  explicit Buffers(Namer namer) : namer_(std::move(namer)) {}

  // One buffer per leaf. `dtype` 0 = that of the leaf's view, kAnyFloat = any float dtype.
  static constexpr int32_t kAnyFloat = -1;
  Leaves leaves(const char *name, const spk_buffer *buffers, int32_t count,
                const std::vector<const Leaf *> &leaves, Access access, int32_t dtype = 0);
  // One buffer per leaf, contiguous in the shape of its view, whatever its layout field says.
  Leaves contiguous_leaves(const char *name, const spk_buffer *buffers, int32_t count,
                           const std::vector<const Leaf *> &leaves, Access access, int32_t dtype);

  // A contiguous array of `numel` elements of one of `dtypes`.
  ArrayData array(const char *name, const spk_buffer *buffer, int64_t numel,
                  std::initializer_list<int32_t> dtypes, Access access);
  // The same, or one number for all: *broadcast tells which.
  ArrayData array_or_one(const char *name, const spk_buffer *buffer, int64_t numel,
                         std::initializer_list<int32_t> dtypes, bool *broadcast);
  // Element `index` of an array of buffers, named "values[2]".
  ArrayData array_at(const char *name, const spk_buffer *buffers, int32_t index, int64_t numel,
                     std::initializer_list<int32_t> dtypes, Access access);

  // The same for a buffer that is called by a name and a number of its own: see `Namer`.
  LeafData leaf_of(const char *name, int index, const spk_buffer &buffer, const View &view,
                   Access access, int32_t dtype) {
    return leaf(name, index, buffer, view, access, dtype, false);
  }
  ArrayData array_of(const char *name, int index, const spk_buffer &buffer, int64_t numel,
                     std::initializer_list<int32_t> dtypes, Access access) {
    return checked_array(name, index, &buffer, numel, dtypes, access);
  }

  // Refuses buffers that share bytes although one of them is written. The last check of a call.
  void check_overlap();

 private:
  struct Use {
    const char *name;
    int index;  // -1: not one of several
    Access access;
    Footprint footprint;
    intptr_t low, high;  // the bytes [low, high) that hold all of it
    size_t order;        // in which it was brought
  };

  LeafData leaf(const char *name, int index, const spk_buffer &buffer, const View &view,
                Access access, int32_t dtype, bool contiguous);
  ArrayData checked_array(const char *name, int index, const spk_buffer *buffer, int64_t numel,
                          std::initializer_list<int32_t> dtypes, Access access);
  void add_use(const char *name, int index, Access access, Footprint footprint);
  static Decision conflict(const Use &a, const Use &b);
  std::string label(const char *name, int index) const;

  Namer namer_;
  // Most calls bring few buffers: their descriptions live on the stack.
  std::byte storage_[16 << 10];
  std::pmr::monotonic_buffer_resource memory_{storage_, sizeof storage_};
  std::pmr::vector<Use> uses_{&memory_};
};

}  // namespace spk
