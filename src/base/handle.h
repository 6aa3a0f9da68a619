// Reference counts of the opaque handles.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace spk {

// Whether an object is one that spk_live_handles() tells of.
enum class Counted { kNo, kYes };

// Handles are retained and released from any thread, in any order.
class RefCounted {
 public:
  explicit RefCounted(Counted counted = Counted::kYes) : weight_(counted == Counted::kYes ? 1 : 0) {
    live_.fetch_add(weight_, std::memory_order_relaxed);
  }
  RefCounted(const RefCounted &) = delete;
  RefCounted &operator=(const RefCounted &) = delete;
  virtual ~RefCounted() { live_.fetch_sub(weight_, std::memory_order_relaxed); }

  void retain() const { owners_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  static int64_t live() { return live_.load(std::memory_order_relaxed); }

 private:
  const int64_t weight_;
  mutable std::atomic<int64_t> owners_{1};
  static inline std::atomic<int64_t> live_{0};
};

// An owner of a handle inside the library.
template <typename T>
class Ref {
 public:
  Ref() = default;
  // Takes over the reference that a new object is born with.
  static Ref adopt(T *object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  static Ref share(T *object) {
    if (object) object->retain();
    return adopt(object);
  }
  Ref(const Ref &other) : object_(other.object_) {
    if (object_) object_->retain();
  }
  Ref(Ref &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref &operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) object_->release();
  }

  T *get() const { return object_; }
  T *operator->() const { return object_; }
  T &operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  // Hands the reference to the caller.
  T *detach() { return std::exchange(object_, nullptr); }

 private:
  T *object_ = nullptr;
};

}  // namespace spk
