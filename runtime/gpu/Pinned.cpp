// Pinned memory for the elements of tensors in host memory. Making it takes milliseconds, so it is kept for reuse.
#include "runtime/gpu/Device.h"
#include "runtime/support/Format.h"
#include <algorithm>

namespace burin::rt::gpu {

Status Device::takeBlock(size_t bytes, const std::byte *&out) {
  constexpr size_t kUnit = size_t(64) << 10;
  bytes = (std::max<size_t>(bytes, 1) + kUnit - 1) / kUnit * kUnit;
  Event copied = nullptr;
  {
    std::lock_guard lock(blocksMutex);
    if (auto at = freeBlocks.lower_bound(bytes); at != freeBlocks.end() && at->first <= bytes + bytes / 4) {
      out = at->second;
      copied = blocks[out].copied;
      freeBytes -= at->first;
      freeBlocks.erase(at);
    }
  }
  if (out)
    return copied ? check(driver->eventSynchronize(copied), "waiting for a copy") : Status();
  void *memory = nullptr;
  if (Result r = driver->memHostAlloc(&memory, bytes, 0); r != kSuccess)
    return check(r, text("allocating ", bytes, " bytes of pinned memory"));
  out = static_cast<const std::byte *>(memory);
  std::lock_guard lock(blocksMutex);
  blocks[out].bytes = bytes;
  return {};
}

Status Device::pinnedBuffer(size_t bytes, BufferRef &out) {
  struct Owner {
    Ptr device;
    const std::byte *data;
  };
  Use use(*this);
  if (Status s = use.status(); !s.ok())
    return s;
  const std::byte *data = nullptr;
  if (Status s = takeBlock(bytes, data); !s.ok()) {
    if (data)
      returnBlock(data);
    return s;
  }
  auto free = [](void *ctx) {
    std::unique_ptr<Owner> owner(static_cast<Owner *>(ctx));
    owner->device->returnBlock(owner->data);
  };
  out = Memory::wrap(const_cast<std::byte *>(data), bytes, free, new Owner{shared_from_this(), data});
  return out ? Status() : Status(ErrorCode::OutOfMemory, "no memory for a tensor");
}

void Device::returnBlock(const std::byte *data) {
  constexpr size_t kMostFree = size_t(512) << 20;
  {
    std::lock_guard lock(blocksMutex);
    const size_t bytes = blocks[data].bytes;
    if (freeBytes + bytes <= kMostFree) {
      freeBlocks.emplace(bytes, data);
      freeBytes += bytes;
      return;
    }
  }
  Use use(*this);
  freeBlock(data);
}

void Device::freeBlock(const std::byte *data) {
  std::lock_guard lock(blocksMutex);
  if (Event copied = blocks[data].copied) {
    driver->eventSynchronize(copied);
    driver->eventDestroy(copied);
  }
  driver->memFreeHost(const_cast<std::byte *>(data));
  blocks.erase(data);
}

Device::PinnedBlock *Device::blockOf(const void *from, size_t bytes) {
  std::lock_guard lock(blocksMutex);
  const auto *data = static_cast<const std::byte *>(from);
  auto at = blocks.upper_bound(data);
  if (at == blocks.begin())
    return nullptr;
  --at;
  return data + bytes <= at->first + at->second.bytes ? &at->second : nullptr;
}

/// Copies without the CPU; the block is not reused before the copy is complete.
Status Device::sendPinned(CopyLane &lane, void *to, const void *from, size_t bytes, PinnedBlock &block) {
  if (!block.copied)
    if (Result r = driver->eventCreate(&block.copied, /*CU_EVENT_DISABLE_TIMING*/ 2); r != kSuccess)
      return check(r, "making an event");
  Result result = driver->copyToDevice(reinterpret_cast<DevicePointer>(to), from, bytes, lane.stream);
  if (result != kSuccess)
    return check(result, "copying to the GPU");
  result = driver->eventRecord(block.copied, lane.stream);
  if (result != kSuccess)
    driver->streamSynchronize(lane.stream); // the block has no event to wait for
  return check(result, "recording an event");
}

} // namespace burin::rt::gpu
