// Copies of tensors between host and device, and between devices.
#include "runtime/gpu/Device.h"
#include <algorithm>
#include <cstring>

namespace burin::rt::gpu {

static DevicePointer address(const void *data) { return reinterpret_cast<DevicePointer>(data); }

Status Device::prepare(CopyLane &lane) {
  if (!lane.stream)
    if (Result r = driver->streamCreate(&lane.stream, /*CU_STREAM_NON_BLOCKING*/ 1); r != kSuccess)
      return check(r, "making a stream");
  auto make = [&](Event &event) {
    return event ? Status() : check(driver->eventCreate(&event, /*CU_EVENT_DISABLE_TIMING*/ 2), "making an event");
  };
  Status status = make(lane.ordered);
  for (size_t i = 0; i < CopyLane::kPieces && status.ok(); ++i) {
    status = make(lane.done[i]);
    void *memory = nullptr;
    if (status.ok() && !lane.pieces[i])
      if (status = allocatePinned(CopyLane::kPieceBytes, memory); status.ok())
        lane.pieces[i] = static_cast<std::byte *>(memory);
  }
  return status;
}

void Device::close(CopyLane &lane) {
  if (lane.stream)
    driver->streamSynchronize(lane.stream);
  for (std::byte *piece : lane.pieces)
    if (piece)
      releasePinned(piece, CopyLane::kPieceBytes);
  for (Event event : lane.done)
    if (event)
      driver->eventDestroy(event);
  if (lane.ordered)
    driver->eventDestroy(lane.ordered);
  if (lane.stream)
    driver->streamDestroy(lane.stream);
}

/// Copies through the ring of pinned pieces; a piece is reused when the copy from it is complete.
Status Device::sendThrough(CopyLane &lane, void *to, const void *from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += CopyLane::kPieceBytes) {
    const size_t i = lane.next++ % CopyLane::kPieces, size = std::min(CopyLane::kPieceBytes, bytes - at);
    if (Result r = driver->eventSynchronize(lane.done[i]); r != kSuccess)
      return check(r, "waiting for a copy");
    std::memcpy(lane.pieces[i], static_cast<const std::byte *>(from) + at, size);
    if (Result r = driver->copyToDevice(address(to) + at, lane.pieces[i], size, lane.stream); r != kSuccess)
      return check(r, "copying to the GPU");
    if (Result r = driver->eventRecord(lane.done[i], lane.stream); r != kSuccess) {
      driver->streamSynchronize(lane.stream); // the piece has no event to wait for
      return check(r, "recording an event");
    }
  }
  return {};
}

/// Copies into the ring of pinned pieces, and empties them in order.
Status Device::fetchThrough(CopyLane &lane, void *to, const void *from, size_t bytes) {
  const size_t count = (bytes + CopyLane::kPieceBytes - 1) / CopyLane::kPieceBytes;
  auto sizeOf = [&](size_t i) { return std::min(CopyLane::kPieceBytes, bytes - i * CopyLane::kPieceBytes); };
  Result result = kSuccess;
  size_t sent = 0;
  for (size_t i = 0; i < count && result == kSuccess; ++i) {
    for (; sent < count && sent < i + CopyLane::kPieces && result == kSuccess; ++sent) {
      const size_t piece = sent % CopyLane::kPieces;
      result = driver->copyToHost(lane.pieces[piece], address(from) + sent * CopyLane::kPieceBytes, sizeOf(sent),
                                  lane.stream);
      if (result == kSuccess)
        result = driver->eventRecord(lane.done[piece], lane.stream);
    }
    if (result == kSuccess)
      result = driver->eventSynchronize(lane.done[i % CopyLane::kPieces]);
    if (result == kSuccess)
      std::memcpy(static_cast<std::byte *>(to) + i * CopyLane::kPieceBytes, lane.pieces[i % CopyLane::kPieces],
                  sizeOf(i));
  }
  if (result != kSuccess)
    driver->streamSynchronize(lane.stream); // the driver may still be writing to the pieces
  return check(result, "copying from the GPU");
}

Status Device::allocateOn(Stream stream, size_t bytes, BufferRef &out) {
  struct Block {
    Ptr device;
    void *data;
    size_t bytes;
  };
  void *data = nullptr;
  bytes = std::max<size_t>(bytes, 1);
  Lanes *lanes = nullptr; // memory is freed in their order
  if (Status s = sharedLanes(lanes); !s.ok())
    return s;
  if (Status s = allocate(bytes, Holder::Tensors, stream ? stream : lanes->streams[0], data); !s.ok())
    return s;
  auto free = [](void *ctx) {
    std::unique_ptr<Block> block(static_cast<Block *>(ctx));
    Device &device = *block->device;
    Use use(device);
    device.release(block->data, block->bytes, Holder::Tensors, device.shared->streams[0]);
  };
  out = Memory::wrap(data, bytes, free, new Block{shared_from_this(), data, bytes});
  return out ? Status() : Status(ErrorCode::OutOfMemory, "no memory for a tensor");
}

Status Device::allocateBuffer(size_t bytes, BufferRef &out) {
  Use use(*this);
  Status status = use.status();
  return status.ok() ? allocateOn(nullptr, bytes, out) : std::move(status);
}

Status Device::upload(const void *from, size_t bytes, BufferRef &out) {
  Use use(*this);
  if (Status s = use.status(); !s.ok())
    return s;
  std::lock_guard lock(toDevice.mutex);
  if (Status s = prepare(toDevice); !s.ok())
    return s;
  BufferRef made; // on the copy stream, so that copies do not wait for computation
  if (Status s = allocateOn(toDevice.stream, bytes, made); !s.ok())
    return s;
  PinnedBlock *block = blockOf(from, bytes);
  Status status = block ? sendPinned(toDevice, made->data(), from, bytes, *block)
                        : sendThrough(toDevice, made->data(), from, bytes);
  Result result = driver->eventRecord(toDevice.ordered, toDevice.stream);
  if (result == kSuccess)
    result = driver->streamWaitEvent(shared->streams[0], toDevice.ordered, 0);
  if (result != kSuccess) // the buffer must not be freed before it is written
    driver->streamSynchronize(toDevice.stream);
  if (status.ok() && result == kSuccess)
    out = std::move(made);
  return status.ok() ? check(result, "waiting for a copy") : std::move(status);
}

Status Device::download(void *to, const void *from, size_t bytes) {
  Use use(*this);
  if (Status s = use.status(); !s.ok())
    return s;
  std::lock_guard lock(toHost.mutex);
  if (Status s = prepare(toHost); !s.ok())
    return s;
  Lanes *lanes = nullptr;
  if (Status s = sharedLanes(lanes); !s.ok())
    return s;
  Result result = driver->eventRecord(toHost.ordered, lanes->streams[0]);
  if (result == kSuccess)
    result = driver->streamWaitEvent(toHost.stream, toHost.ordered, 0);
  if (result != kSuccess)
    return check(result, "waiting for what is to be copied");
  return fetchThrough(toHost, to, from, bytes);
}

Status Device::fill(void *to, const void *element, size_t width, size_t count) {
  Use use(*this);
  Lanes *lanes = nullptr;
  if (Status s = use.status(); !s.ok() || count == 0)
    return s;
  if (Status s = sharedLanes(lanes); !s.ok())
    return s;
  return fillIn(lanes->streams[0], to, element, width, count);
}

Status Device::fillIn(Stream stream, void *to, const void *element, size_t width, size_t count) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, width);
  const bool isHalves = width == 8 && bits >> 32 == (bits & UINT32_MAX);
  Result result = kSuccess;
  if (width == 8 && !isHalves) {                                      // rare: 64-bit elements other than 0
    result = driver->copyToDevice(address(to), &bits, width, stream); // which reads it at once
    for (size_t done = 1; done < count && result == kSuccess; done *= 2)
      result =
          driver->copyWithin(address(to) + done * width, address(to), std::min(done, count - done) * width, stream);
  } else {
    result = width == 1   ? driver->fill(address(to), static_cast<unsigned char>(bits), count, stream)
             : width == 2 ? driver->fill16(address(to), static_cast<unsigned short>(bits), count, stream)
                          : driver->fill32(address(to), unsigned(bits), count * width / 4, stream);
  }
  return check(result, "filling memory");
}

Status Device::follow(Stream other) { return order(true, other); }
Status Device::lead(Stream other) { return order(false, other); }

Status Device::order(bool isFollowing, Stream other) {
  Use use(*this);
  Lanes *lanes = nullptr;
  if (Status s = use.status(); !s.ok())
    return s;
  if (Status s = sharedLanes(lanes); !s.ok())
    return s;
  Stream own = lanes->streams[0];
  Event event = nullptr;
  Result result = driver->eventCreate(&event, /*CU_EVENT_DISABLE_TIMING*/ 2);
  if (result == kSuccess)
    result = driver->eventRecord(event, isFollowing ? other : own);
  if (result == kSuccess)
    result = driver->streamWaitEvent(isFollowing ? own : other, event, 0);
  if (event)
    driver->eventDestroy(event); // takes effect when the event has been reached
  return check(result, "ordering streams");
}

Status Device::copyOf(const void *from, size_t bytes, BufferRef &out) {
  Use use(*this);
  if (Status s = use.status(); !s.ok())
    return s;
  BufferRef made;
  if (Status s = allocateOn(nullptr, bytes, made); !s.ok())
    return s;
  if (bytes)
    if (Result r = driver->copyWithin(address(made->data()), address(from), bytes, shared->streams[0]); r != kSuccess)
      return check(r, "copying within the GPU");
  out = std::move(made);
  return {};
}

Status Device::copyFrom(Device &other, const void *from, size_t bytes, BufferRef &out) {
  Lanes *lanes = nullptr, *others = nullptr;
  // One per device, because an event is recorded on streams of its own device.
  Event written = nullptr, copied = nullptr;
  auto onOther = [&](auto act) {
    Use use(other);
    Status s = use.status();
    return s.ok() ? act() : std::move(s);
  };
  Status status = onOther([&]() -> Status {
    if (Status s = other.sharedLanes(others); !s.ok())
      return s;
    Result result = driver->eventCreate(&written, /*CU_EVENT_DISABLE_TIMING*/ 2);
    if (result == kSuccess)
      result = driver->eventRecord(written, others->streams[0]);
    return other.check(result, "recording an event");
  });
  if (status.ok()) {
    Use use(*this);
    status = use.status();
    BufferRef made;
    if (status.ok())
      status = allocateOn(nullptr, bytes, made);
    if (status.ok())
      status = sharedLanes(lanes);
    if (status.ok()) {
      Result result = driver->streamWaitEvent(lanes->streams[0], written, 0);
      if (result == kSuccess && bytes)
        result =
            driver->copyPeer(address(made->data()), primary, address(from), other.primary, bytes, lanes->streams[0]);
      if (result == kSuccess)
        result = driver->eventCreate(&copied, /*CU_EVENT_DISABLE_TIMING*/ 2);
      if (result == kSuccess)
        result = driver->eventRecord(copied, lanes->streams[0]);
      if (result == kSuccess) // afterwards the source may be freed and overwritten
        result = driver->streamWaitEvent(others->streams[0], copied, 0);
      if (result != kSuccess)
        driver->streamSynchronize(lanes->streams[0]);
      else
        out = std::move(made);
      status = check(result, "copying from another GPU");
    }
  }
  for (Event event : {written, copied})
    if (event)
      driver->eventDestroy(event);
  return status;
}

} // namespace burin::rt::gpu
