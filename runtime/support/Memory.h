// Where tensors live: shared, 64-byte aligned bytes from a cache of freed blocks.
#pragma once
#include "runtime/support/Futex.h"
#include "runtime/support/Intrusive.h"
#include "runtime/support/Status.h"
#include <cstddef>

namespace burin::rt {

class Memory;

/// Memory of the C library, in huge pages from 4 MB on; std::free() releases it. Null: there is none.
void *alignedMemory(size_t bytes, size_t alignment);

/// A range of bytes with owners. Either a block of a Memory, or foreign memory with a function that frees it.
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
  /// Somebody else's memory, which may be read only.
  bool isForeign() const { return !owner; }
};
using BufferRef = IntrusivePtr<SharedBuffer>;

/// Hands out blocks in size classes (four per power of two) and keeps freed ones for the next request of the class.
/// Thread-safe. Must outlive its buffers.
class Memory {
public:
  /// One per process and never destroyed.
  static Memory &shared();

  /// Freed blocks beyond `cacheLimit` bytes go back to the system.
  explicit Memory(size_t cacheLimit);
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// Contents undefined; data() is not null even for no bytes. Null if the system has no memory, cache emptied:
  /// `exhausted` says so.
  BufferRef allocate(size_t bytes);
  Status exhausted(size_t bytes) const;

  /// Memory of someone else; `free(ctx)` is called once, by whichever thread drops the last reference (and at once,
  /// with a null result, if not even the handle can be allocated). `free` may be null.
  static BufferRef wrap(void *data, size_t bytes, void (*free)(void *ctx), void *ctx);

  /// Gives cached blocks back to the system until at most `keep` bytes are cached.
  void trim(size_t keep = 0);
  void setCacheLimit(size_t bytes);

  struct Stats {
    size_t inUse, peak; // bytes of blocks handed out: now, and at most since resetPeak
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
  std::atomic<uint32_t> evictFrom{0}; // class to look at next for a block to give up
};

} // namespace burin::rt
