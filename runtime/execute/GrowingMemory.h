// Memory of a session, from the caller's allocator.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

namespace burin::rt {

/// The allocator of a session. Null functions stand for the C library. `allocate` may return null.
struct Allocator {
  void *ctx = nullptr;
  void *(*allocate)(void *ctx, size_t bytes, size_t align) = nullptr;
  void (*release)(void *ctx, void *data, size_t bytes) = nullptr;
};

/// The caller's allocator if it has both functions, else the C library's.
Allocator orDefault(const Allocator &given);

/// Memory that only grows.
class GrowingMemory {
public:
  explicit GrowingMemory(const Allocator &allocator) : allocator(allocator) {}
  GrowingMemory(GrowingMemory &&other) noexcept
      : allocator(other.allocator), memory(std::exchange(other.memory, nullptr)),
        capacity(std::exchange(other.capacity, 0)) {}
  GrowingMemory &operator=(GrowingMemory &&) = delete;
  /// Both must have the same allocator.
  friend void swap(GrowingMemory &a, GrowingMemory &b) noexcept {
    std::swap(a.memory, b.memory);
    std::swap(a.capacity, b.capacity);
  }
  ~GrowingMemory() { release(); }

  /// Ensures a capacity of `bytes`; contents are lost if that reallocates. Returns false if there is no memory.
  bool reserve(uint64_t bytes);
  void release();
  std::byte *data() const { return memory; }
  uint64_t size() const { return capacity; }

private:
  Allocator allocator;
  std::byte *memory = nullptr;
  uint64_t capacity = 0;
};

} // namespace burin::rt
