#include "runtime/gpu/Device.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <bit>

namespace burin::rt::gpu {

static DevicePointer address(const void *data) { return reinterpret_cast<DevicePointer>(data); }

/// The driver stays open after the first success.
static Status openDriver(Driver &out) {
  static auto *mutex = new std::mutex;
  static Driver *open = nullptr;
  std::lock_guard lock(*mutex);
  if (!open) {
    auto made = std::make_unique<Driver>();
    if (Status s = Driver::open(*made); !s.ok())
      return s;
    open = made.release();
  }
  out = *open;
  return {};
}

Status Device::list(std::vector<DeviceInfo> &out) {
  Driver driver;
  if (Status s = openDriver(driver); !s.ok())
    return s;
  return driver.devices(out);
}

Status Device::open(int ordinal, Ptr &out) {
  static auto *mutex = new std::mutex;
  static auto *known = new std::map<int, std::weak_ptr<Device>>;
  std::lock_guard lock(*mutex);
  if (auto at = known->find(ordinal); at != known->end()) {
    out = at->second.lock();
    if (out)
      return {};
  }
  std::vector<DeviceInfo> devices;
  if (Status s = list(devices); !s.ok())
    return s;
  Ptr made(new Device);
  made->index = ordinal;
  made->label = text("cuda:", ordinal);
  if (ordinal < 0 || size_t(ordinal) >= devices.size())
    return {ErrorCode::Unsupported, text("there is no GPU ", made->label, ": this machine has ", devices.size())};
  made->properties = devices[size_t(ordinal)];
  if (Status s = openDriver(made->driver); !s.ok())
    return s;
  if (Status s = made->start(); !s.ok())
    return s;
  (*known)[ordinal] = made;
  out = std::move(made);
  return {};
}

Status Device::start() {
  // Freed memory stays in the driver's pool for later allocations.
  constexpr int kReleaseThreshold = 4; // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
  uint64_t everything = UINT64_MAX;
  Result result = driver->deviceGet(&number, index);
  if (result == kSuccess)
    result = driver->primaryCtxRetain(&primary, number);
  if (result == kSuccess)
    result = driver->deviceMemoryPool(&pool, number);
  if (result == kSuccess)
    result = driver->poolSetAttribute(pool, kReleaseThreshold, &everything);
  return check(result, "making a context");
}

Device::~Device() {
  if (!primary)
    return;
  {
    Use use(*this);
    if (shared)
      freeLanes(*shared);
    for (const auto &lanes : recorders)
      freeLanes(*lanes);
    if (conditionModule)
      driver->moduleUnload(conditionModule);
    close(toDevice);
    close(toHost);
    for (void *slab : slabs)
      driver->memFreeHost(slab);
    while (!blocks.empty())
      freeBlock(blocks.begin()->first);
  }
  driver->primaryCtxRelease(number);
}

Device::Use::~Use() {
  Context popped = nullptr;
  if (result == kSuccess)
    device->ctxPop(&popped); // callers cannot handle a failure
}

Status Device::check(Result result, const std::string &what) const {
  return result == kSuccess ? Status() : driver.check(result, text(label, ": ", what));
}

// ---- memory

static std::string bytesText(size_t bytes) {
  return bytes < (size_t(1) << 20) ? text(bytes, " bytes") : text(bytes >> 20, " MiB");
}

Status Device::allocate(size_t bytes, Holder holder, Stream stream, void *&out) {
  const size_t now = inUse.fetch_add(bytes) + bytes;
  auto refuse = [&](Status status) {
    inUse.fetch_sub(bytes);
    return status;
  };
  if (now > limit.load())
    return refuse(exhausted(bytes, text("the limit is ", bytesText(limit.load()))));
  DevicePointer memory = 0;
  Result result = driver->memAllocAsync(&memory, bytes, stream);
  if (result == kOutOfMemory && driver->streamSynchronize(stream) == kSuccess) { // pending frees are complete now
    driver->poolTrimTo(pool, 0);
    result = driver->memAllocAsync(&memory, bytes, stream);
  }
  if (result == kOutOfMemory)
    return refuse(exhausted(bytes, "CUDA_ERROR_OUT_OF_MEMORY (2)"));
  if (result != kSuccess)
    return refuse(check(result, text("allocating ", bytes, " bytes")));
  held[size_t(holder)].fetch_add(bytes);
  for (size_t most = peak.load(); most < now && !peak.compare_exchange_weak(most, now);)
    ;
  out = reinterpret_cast<void *>(memory); // NOLINT(performance-no-int-to-ptr): the driver's addresses are integers
  return {};
}

void Device::release(void *data, size_t bytes, Holder holder, Stream stream) {
  driver->memFreeAsync(address(data), stream); // it fails only after an earlier failure, which is reported elsewhere
  inUse.fetch_sub(bytes);
  held[size_t(holder)].fetch_sub(bytes);
}

Status Device::exhausted(size_t bytes, const std::string &why) const {
  auto heldBy = [&](Holder holder) { return bytesText(held[size_t(holder)].load()); };
  return {ErrorCode::OutOfMemory,
          text(label, ": allocating ", bytesText(bytes), ": ", why, "\n  in use of ", bytesText(properties.memoryBytes),
               ": tensors ", heldBy(Holder::Tensors), ", weights ", heldBy(Holder::Weights), ", states ",
               heldBy(Holder::States), ", intermediate results ", heldBy(Holder::Intermediate))};
}

MemoryUse Device::memoryUse() const {
  constexpr int kReserved = 5; // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
  MemoryUse use{.inUse = inUse.load(),
                .peak = peak.load(),
                .limit = limit.load() == SIZE_MAX ? 0 : limit.load(),
                .total = properties.memoryBytes};
  uint64_t reserved = 0;
  if (driver->poolGetAttribute(pool, kReserved, &reserved) == kSuccess)
    use.reserved = reserved;
  for (size_t i = 0; i < kHolders; ++i)
    use.held[i] = held[i].load();
  return use;
}

Status Device::allocatePinned(size_t bytes, void *&out) {
  const size_t size = std::bit_ceil(std::max(bytes, kLeastPiece));
  const bool isPiece = size < kSlabBytes;
  std::lock_guard lock(pinnedMutex);
  std::vector<void *> *pieces = isPiece ? &freePieces[size] : nullptr;
  if (!pieces || pieces->empty()) {
    void *memory = nullptr;
    Result result = driver->memHostAlloc(&memory, isPiece ? kSlabBytes : bytes, 0);
    if (result != kSuccess)
      return check(result, text("allocating ", bytes, " bytes of pinned memory"));
    if (!isPiece) {
      out = memory;
      return {};
    }
    slabs.push_back(memory);
    for (size_t at = 0; at < kSlabBytes; at += size)
      pieces->push_back(static_cast<std::byte *>(memory) + at);
  }
  out = pieces->back();
  pieces->pop_back();
  return {};
}

void Device::releasePinned(void *data, size_t bytes) {
  const size_t size = std::bit_ceil(std::max(bytes, kLeastPiece));
  std::lock_guard lock(pinnedMutex);
  if (size < kSlabBytes)
    freePieces[size].push_back(data);
  else
    driver->memFreeHost(data);
}

// ---- streams

Status Device::makeLanes(Lanes &lanes) {
  for (size_t i = lanes.ownsFirst ? 0 : 1; i < lanes.streams.size(); ++i)
    if (Result r = driver->streamCreate(&lanes.streams[i], /*CU_STREAM_NON_BLOCKING*/ 1); r != kSuccess)
      return check(r, "making a stream");
  for (Event &event : lanes.events)
    if (Result r = driver->eventCreate(&event, /*CU_EVENT_DISABLE_TIMING*/ 2); r != kSuccess)
      return check(r, "making an event");
  return {};
}

void Device::freeLanes(Lanes &lanes) {
  for (Event event : lanes.events)
    if (event)
      driver->eventDestroy(event);
  for (size_t i = lanes.ownsFirst ? 0 : 1; i < lanes.streams.size(); ++i)
    if (lanes.streams[i])
      driver->streamDestroy(lanes.streams[i]);
}

Status Device::openLanes(std::unique_ptr<Lanes> &lanes) {
  auto made = std::make_unique<Lanes>();
  if (Status s = makeLanes(*made); !s.ok()) {
    freeLanes(*made);
    return s;
  }
  lanes = std::move(made);
  return {};
}

Status Device::sharedLanes(Lanes *&out) {
  std::lock_guard lock(lanesMutex);
  if (!shared)
    if (Status s = openLanes(shared); !s.ok())
      return s;
  out = shared.get();
  return {};
}

Status Device::recordingLanes(size_t depth, Lanes *&out) {
  while (recorders.size() <= depth) {
    std::unique_ptr<Lanes> made;
    if (Status s = openLanes(made); !s.ok())
      return s;
    recorders.push_back(std::move(made));
  }
  out = recorders[depth].get();
  return {};
}

Status Device::synchronize() {
  Lanes *lanes = nullptr;
  if (Status s = sharedLanes(lanes); !s.ok())
    return s;
  return check(driver->streamSynchronize(lanes->streams[0]), "waiting");
}

} // namespace burin::rt::gpu
