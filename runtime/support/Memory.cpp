#include "runtime/support/Memory.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define BURIN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BURIN_ASAN 1
#endif
#endif
#ifdef BURIN_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes)
#endif

namespace burin::rt {

// A block starts with its header, followed by the data. Size classes in units of 64 bytes: 1, 2 … 8, then 10, 12, 14,
// 16, 20, 24, 28, 32, 40 …
static constexpr size_t kUnit = 64, kLargest = size_t(1) << 46, kHugePage = size_t(2) << 20;
static_assert(sizeof(SharedBuffer) == kUnit);

static uint32_t classOf(size_t bytes) {
  uint64_t units = (bytes + kUnit - 1) / kUnit;
  if (units <= 8)
    return static_cast<uint32_t>(units);
  int power = std::bit_width(units - 1) - 1; // 2^power < units <= 2^(power + 1)
  uint64_t quarter = uint64_t(1) << (power - 2);
  return static_cast<uint32_t>(8 + 4 * (power - 3) + (units + quarter - 1) / quarter - 4);
}

static size_t bytesOf(uint32_t sizeClass) {
  if (sizeClass <= 8)
    return sizeClass * kUnit;
  uint32_t step = sizeClass - 9;
  return (uint64_t(5 + step % 4) << (step / 4 + 1)) * kUnit;
}

Memory &Memory::shared() {
  static Memory *memory = [] {
    size_t installed = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return new Memory(std::min(installed / 8, size_t(2) << 30));
  }();
  return *memory;
}

Memory::Memory(size_t cacheLimit) : cacheLimit(cacheLimit) {}
Memory::~Memory() { trim(); }

BufferRef Memory::allocate(size_t bytes) {
  if (bytes > kLargest - kUnit)
    return nullptr;
  uint32_t sizeClass = classOf(bytes + kUnit);
  SharedBuffer *block = takeCached(sizeClass);
  if (!block)
    block = newBlock(sizeClass);
  if (!block)
    return nullptr;
  account(bytesOf(sizeClass));
  ASAN_UNPOISON_MEMORY_REGION(block->start, bytes);
  block->length = bytes;
  return BufferRef::adopt(block);
}

void Memory::account(size_t bytes) {
  size_t now = inUse.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  size_t most = peak.load(std::memory_order_relaxed);
  while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed))
    ;
}

SharedBuffer *Memory::takeCached(uint32_t sizeClass) {
  FreeList &list = lists[sizeClass];
  SharedBuffer *block;
  {
    std::lock_guard lock(list.lock);
    block = list.head;
    if (!block)
      return nullptr;
    list.head = block->next;
  }
  block->retain();
  cached.fetch_sub(bytesOf(sizeClass), std::memory_order_relaxed);
  return block;
}

void *alignedMemory(size_t bytes, size_t alignment) {
  bool huge = bytes >= 2 * kHugePage;
  alignment = std::max(alignment, huge ? kHugePage : 1);
  void *memory = std::aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
  if (memory && huge) // fewer page faults and TLB misses; a hint, so it may fail
    madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

SharedBuffer *Memory::newBlock(uint32_t sizeClass) {
  size_t bytes = bytesOf(sizeClass);
  void *memory = alignedMemory(bytes, kUnit);
  if (!memory) {
    trim();
    memory = alignedMemory(bytes, kUnit);
  }
  if (!memory)
    return nullptr;
  systemAllocations.fetch_add(1, std::memory_order_relaxed);
  auto *block = new (memory) SharedBuffer;
  block->owner = this;
  block->sizeClass = sizeClass;
  block->start = block + 1;
  ASAN_POISON_MEMORY_REGION(block->start, bytes - kUnit);
  return block;
}

static void freeBlock(SharedBuffer *block, [[maybe_unused]] size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(block + 1, bytes - kUnit);
  std::free(block);
}

void SharedBuffer::destroy(SharedBuffer *buffer) {
  if (buffer->owner)
    return buffer->owner->giveBack(buffer);
  if (buffer->freeForeign)
    buffer->freeForeign(buffer->ctx);
  delete buffer;
}

void Memory::giveBack(SharedBuffer *block) {
  size_t bytes = bytesOf(block->sizeClass), limit = cacheLimit.load(std::memory_order_relaxed);
  inUse.fetch_sub(bytes, std::memory_order_relaxed);
  if (bytes > limit)
    return freeBlock(block, bytes);
  ASAN_POISON_MEMORY_REGION(block->start, bytes - kUnit);
  // Counted before it can be taken, so that the count never drops below zero.
  size_t total = cached.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  {
    FreeList &list = lists[block->sizeClass];
    std::lock_guard lock(list.lock);
    block->next = list.head;
    list.head = block;
  }
  // Makes room for sizes in use now by evicting others.
  if (total > limit)
    trim(limit);
}

void Memory::trim(size_t keep) {
  for (int empty = 0; empty < kClasses && cached.load(std::memory_order_relaxed) > keep;) {
    uint32_t sizeClass = evictFrom.fetch_add(1, std::memory_order_relaxed) % kClasses;
    SharedBuffer *block = takeCached(sizeClass);
    if (block)
      freeBlock(block, bytesOf(sizeClass));
    empty = block ? 0 : empty + 1;
  }
}

void Memory::setCacheLimit(size_t bytes) {
  cacheLimit.store(bytes, std::memory_order_relaxed);
  trim(bytes);
}

Status Memory::exhausted(size_t bytes) const {
  auto mebibytes = [](size_t count) { return count / 1048576 + (count % 1048576 != 0); };
  return {ErrorCode::OutOfMemory,
          text("out of memory: cannot allocate ", mebibytes(bytes), " MiB; tensors use ", mebibytes(inUse.load()),
               " MiB, the cache holds ", mebibytes(cached.load()), " MiB\n  release tensors or use smaller batches")};
}

BufferRef Memory::wrap(void *data, size_t bytes, void (*free)(void *ctx), void *ctx) {
  auto *buffer = new (std::nothrow) SharedBuffer;
  if (!buffer) {
    if (free)
      free(ctx);
    return nullptr;
  }
  buffer->start = data;
  buffer->length = bytes;
  buffer->freeForeign = free;
  buffer->ctx = ctx;
  return BufferRef::adopt(buffer);
}

Memory::Stats Memory::stats() const {
  return {inUse.load(std::memory_order_relaxed), peak.load(std::memory_order_relaxed),
          cached.load(std::memory_order_relaxed), systemAllocations.load(std::memory_order_relaxed)};
}

void Memory::resetPeak() { peak.store(inUse.load(std::memory_order_relaxed), std::memory_order_relaxed); }

} // namespace burin::rt
