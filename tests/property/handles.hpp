// Owners of library handles.
#ifndef SPARSEKIT_TESTS_PROPERTY_HANDLES_HPP_
#define SPARSEKIT_TESTS_PROPERTY_HANDLES_HPP_

#include <sparsekit/sparsekit.h>

#include <utility>

namespace prop {

template <class T, void (*Retain)(T *), void (*Release)(T *)>
class Handle {
 public:
  Handle() = default;
  Handle(const Handle &other) : raw_(other.raw_) { Retain(raw_); }
  Handle(Handle &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Handle &operator=(Handle other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Handle() { Release(raw_); }

  // For functions that give a new owner through an out-pointer.
  T **out() {
    *this = Handle();
    return &raw_;
  }
  T *get() const { return raw_; }

 private:
  T *raw_ = nullptr;
};

using ViewHandle = Handle<spk_view, spk_view_retain, spk_view_release>;
using BlockHandle = Handle<spk_block, spk_block_retain, spk_block_release>;
using ScopeHandle = Handle<spk_scope, spk_scope_retain, spk_scope_release>;
using ContextHandle = Handle<spk_context, spk_context_retain, spk_context_release>;

}  // namespace prop

#endif  // SPARSEKIT_TESTS_PROPERTY_HANDLES_HPP_
