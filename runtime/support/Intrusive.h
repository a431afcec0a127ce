// Shared ownership with an embedded reference count.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace burin::rt {

/// Starts with one owner. The last release() calls T::destroy(T *).
template <class T> class RefCounted {
  mutable std::atomic<uint32_t> owners{1};

public:
  RefCounted() = default;
  RefCounted(const RefCounted &) = delete;
  RefCounted &operator=(const RefCounted &) = delete;

  void retain() const { owners.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1)
      T::destroy(const_cast<T *>(static_cast<const T *>(this)));
  }
  /// Whether the caller holds the only reference.
  bool unique() const { return owners.load(std::memory_order_acquire) == 1; }
};

template <class T> class IntrusivePtr {
  T *object = nullptr;

public:
  IntrusivePtr() = default;
  IntrusivePtr(std::nullptr_t) {}
  /// Shares ownership.
  explicit IntrusivePtr(T *object) : object(object) {
    if (object)
      object->retain();
  }
  /// Takes over the caller's reference.
  static IntrusivePtr adopt(T *object) {
    IntrusivePtr pointer;
    pointer.object = object;
    return pointer;
  }
  IntrusivePtr(const IntrusivePtr &other) : IntrusivePtr(other.object) {}
  IntrusivePtr(IntrusivePtr &&other) noexcept : object(std::exchange(other.object, nullptr)) {}
  IntrusivePtr &operator=(IntrusivePtr other) noexcept {
    std::swap(object, other.object);
    return *this;
  }
  ~IntrusivePtr() {
    if (object)
      object->release();
  }

  T *get() const { return object; }
  T *operator->() const { return object; }
  T &operator*() const { return *object; }
  explicit operator bool() const { return object; }
  /// Transfers the reference to the caller.
  T *detach() { return std::exchange(object, nullptr); }
  friend bool operator==(const IntrusivePtr &, const IntrusivePtr &) = default;
};

} // namespace burin::rt
