// Memory of tensors: shared, 64-byte aligned blocks with a cache of freed ones.
#pragma once
#include "runtime/support/Futex.h"
#include "runtime/support/Intrusive.h"
#include "runtime/support/Status.h"
#include <cstddef>

namespace burin::rt {

class Memory;

/// Allocates from the C library, with huge pages from 4 MB on; freed by std::free(). Null if there is no memory.
void *alignedMemory(size_t bytes, size_t alignment);

/// A reference-counted range of bytes: a block of a Memory, or foreign memory with a function that frees it.
class alignas(64) SharedBuffer : public RefCounted<SharedBuffer> {
  friend class Memory;
  friend class RefCounted<SharedBuffer>;

  uint32_t sizeClass = 0;
  void *start = nullptr;
  size_t length = 0;
  Memory *owner = nullptr; // null: foreign
  void (*freeForeign)(void *ctx) = nullptr;
  union {
    void *ctx = nullptr;
    SharedBuffer *next; // in the cache
  };

  SharedBuffer() = default;
  static void destroy(SharedBuffer *buffer);

public:
  void *data() const { return start; }
  size_t size() const { return length; }
  /// Whether it wraps foreign memory, which may be read-only.
  bool isForeign() const { return !owner; }
};
using BufferRef = IntrusivePtr<SharedBuffer>;

/// Allocates blocks in size classes (four per power of two) and caches freed ones for later requests. Thread-safe. Must
/// outlive its buffers.
class Memory {
public:
  /// The allocator of the process; never destroyed.
  static Memory &shared();

  /// Freed blocks beyond `cacheLimit` bytes are returned to the system.
  explicit Memory(size_t cacheLimit);
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// Undefined contents; data() is not null even for 0 bytes. Returns null, with an emptied cache, if the system has no
  /// memory; `exhausted` makes the error.
  BufferRef allocate(size_t bytes);
  Status exhausted(size_t bytes) const;

  /// Wraps foreign memory. `free(ctx)` is called once, by the thread that drops the last reference, or at once, with a
  /// null result, if the handle cannot be allocated. `free` may be null.
  static BufferRef wrap(void *data, size_t bytes, void (*free)(void *ctx), void *ctx);

  /// Returns cached blocks to the system until at most `keep` bytes are cached.
  void trim(size_t keep = 0);
  void setCacheLimit(size_t bytes);

  struct Stats {
    size_t inUse, peak; // bytes of allocated blocks: now, and the maximum since resetPeak
    size_t cached;
    uint64_t systemAllocations;
  };
  Stats stats() const;
  void resetPeak();

private:
  friend class SharedBuffer;
  struct alignas(64) FreeList {
    SpinLock lock;
    SharedBuffer *head = nullptr;
  };
  static constexpr int kClasses = 160;

  SharedBuffer *takeCached(uint32_t sizeClass);
  SharedBuffer *newBlock(uint32_t sizeClass);
  void giveBack(SharedBuffer *block);
  void account(size_t bytes);

  FreeList lists[kClasses];
  alignas(64) std::atomic<size_t> inUse{0}, peak{0}, cached{0};
  std::atomic<size_t> cacheLimit;
  std::atomic<uint64_t> systemAllocations{0};
  std::atomic<uint32_t> evictFrom{0}; // next size class to evict from
};

} // namespace burin::rt
