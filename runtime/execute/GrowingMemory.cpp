#include "runtime/execute/GrowingMemory.h"
#include "runtime/support/Memory.h"
#include <cstdlib>

namespace burin::rt {

static constexpr uint64_t kMemoryAlign = 4096;

Allocator orDefault(const Allocator &given) {
  if (given.allocate && given.release)
    return given;
  return {nullptr, [](void *, size_t bytes, size_t align) { return alignedMemory(bytes, align); },
          [](void *, void *data, size_t) { std::free(data); }};
}

bool GrowingMemory::reserve(uint64_t bytes) {
  if (bytes <= capacity)
    return true;
  release();
  uint64_t rounded = (bytes + kMemoryAlign - 1) / kMemoryAlign * kMemoryAlign;
  memory = static_cast<std::byte *>(allocator.allocate(allocator.ctx, rounded, kMemoryAlign));
  capacity = memory ? rounded : 0;
  return memory;
}

void GrowingMemory::release() {
  if (memory)
    allocator.release(allocator.ctx, memory, capacity);
  memory = nullptr;
  capacity = 0;
}

} // namespace burin::rt
