// The functions of the CUDA driver for tests that make memory and copy it.
#include "test/gpu/driver/FakeState.h"

using namespace burin::test::fake;

namespace {

/// Memory that is not driver.pinned takes no part in what is recorded.
bool refusesPageable(void *stream, const void *data, size_t bytes) {
  return driver.streams.isCapturing(driver.find(stream)) && !driver.isPinned(data, bytes);
}

template <class T> int fill(uint64_t to, T value, size_t count, void *stream) {
  const int device = driver.find(stream)->device;
  if (!driver.inside(device, to, count * sizeof(T)) || to % sizeof(T))
    return kInvalidValue;
  return driver.enqueue(stream, [=] {
    if (!driver.inside(device, to, count * sizeof(T)))
      return kIllegalAddress;
    std::fill_n(reinterpret_cast<T *>(to), count, value);
    return 0;
  });
}

} // namespace

extern "C" {
int cuMemHostAlloc(void **out, size_t bytes, unsigned) {
  IN_CONTEXT;
  if (bytes == 0)
    return kInvalidValue;
  *out = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  memset(*out, 0xab, bytes);
  driver.pinned[reinterpret_cast<uint64_t>(*out)] = bytes;
  return 0;
}
int cuMemFreeHost(void *data) {
  BEGIN;
  if (!driver.pinned.erase(reinterpret_cast<uint64_t>(data)))
    return kInvalidValue;
  free(data);
  return failure;
}
int cuMemAllocAsync(uint64_t *out, size_t bytes, void *stream) {
  PLANTED;
  if (bytes == 0)
    return kInvalidValue;
  if (driver.streams.isCapturing(driver.find(stream)))
    return kCaptureUnsupported;
  *out = driver.memories[size_t(driver.find(stream)->device)].allocate(bytes);
  return *out ? 0 : kOutOfMemory;
}
int cuMemFreeAsync(uint64_t address, void *stream) {
  BEGIN;
  Memory &memory = driver.memories[size_t(driver.find(stream)->device)];
  if (!memory.isAllocation(address))
    return kInvalidValue;
  int result = driver.enqueue(stream, [address, &memory] {
    if (memory.isAllocation(address))
      memory.free(address);
    else
      driver.wrong += "memory is freed twice\n";
    return 0;
  });
  return failure ? failure : result;
}
int cuDeviceGetDefaultMemPool(void **out, int device) {
  PLANTED;
  if (!driver.isDevice(device))
    return kInvalidDevice;
  *out = &driver.memories[size_t(device)];
  return 0;
}
int cuMemPoolSetAttribute(void *, int attribute, void *) {
  PLANTED;
  return attribute == 4 ? 0 : kInvalidValue; // the release threshold
}
int cuMemPoolGetAttribute(void *pool, int attribute, void *value) {
  PLANTED;
  if (attribute != 5) // what it has reserved
    return kInvalidValue;
  *static_cast<uint64_t *>(value) = static_cast<Memory *>(pool)->bytes();
  return 0;
}
int cuMemPoolTrimTo(void *, size_t) {
  PLANTED;
  return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream) {
  PLANTED;
  return fill(to, value, count, stream);
}
int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, void *stream) {
  PLANTED;
  return fill(to, value, count, stream);
}
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) {
  PLANTED;
  return fill(to, value, count, stream);
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  PLANTED;
  const int device = driver.find(stream)->device;
  if (!driver.inside(device, to, bytes))
    return kInvalidValue;
  if (refusesPageable(stream, from, bytes))
    return kCaptureUnsupported;
  std::vector<char> staged; // pageable memory may be changed when the call returns
  const bool waits = driver.isPinned(from, bytes);
  if (!waits)
    staged.assign(static_cast<const char *>(from), static_cast<const char *>(from) + bytes);
  return driver.enqueue(stream, [=, staged = std::move(staged)] {
    if (!driver.inside(device, to, bytes) || (waits && !driver.isPinned(from, bytes)))
      return kIllegalAddress;
    memcpy(reinterpret_cast<void *>(to), waits ? from : staged.data(), bytes);
    driver.copyCounts.toDevice += int64_t(bytes);
    return 0;
  });
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  PLANTED;
  const int device = driver.find(stream)->device;
  if (!driver.inside(device, from, bytes))
    return kInvalidValue;
  if (refusesPageable(stream, to, bytes))
    return kCaptureUnsupported;
  return driver.enqueue(stream, [=, waits = driver.isPinned(to, bytes)] {
    if (!driver.inside(device, from, bytes) || (waits && !driver.isPinned(to, bytes)))
      return kIllegalAddress;
    memcpy(to, reinterpret_cast<void *>(from), bytes);
    driver.copyCounts.toHost += int64_t(bytes);
    return 0;
  });
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  PLANTED;
  const int device = driver.find(stream)->device;
  if (!driver.inside(device, from, bytes) || !driver.inside(device, to, bytes))
    return kInvalidValue;
  return driver.enqueue(stream, [=] {
    if (!driver.inside(device, from, bytes) || !driver.inside(device, to, bytes))
      return kIllegalAddress;
    memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    driver.copyCounts.within += int64_t(bytes);
    return 0;
  });
}
int cuMemcpyPeerAsync(uint64_t to, void *toContext, uint64_t from, void *fromContext, size_t bytes, void *stream) {
  PLANTED;
  const int toDevice = driver.deviceOf(toContext), fromDevice = driver.deviceOf(fromContext);
  if (!driver.isDevice(toDevice) || !driver.isDevice(fromDevice))
    return kInvalidContext;
  if (!driver.inside(fromDevice, from, bytes) || !driver.inside(toDevice, to, bytes))
    return kInvalidValue;
  return driver.enqueue(stream, [=] {
    if (!driver.inside(fromDevice, from, bytes) || !driver.inside(toDevice, to, bytes))
      return kIllegalAddress;
    memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    driver.copyCounts.between += int64_t(bytes);
    return 0;
  });
}
}
