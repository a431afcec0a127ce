// A libcuda.so.1 for tests: one device whose memory is the host's. It refuses what the real one refuses, and fails on
// request: FAKE_CUDA_FAIL="cuMemAllocAsync:2" makes that function return that result.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace {

constexpr int kInvalidValue = 1, kInvalidDevice = 101;
constexpr size_t kMemory = size_t(1) << 30;

std::mutex mutex;
std::map<uint64_t, size_t> live; // allocations: address, bytes

int planted(std::string_view function) {
  const char *text = getenv("FAKE_CUDA_FAIL");
  if (!text)
    return 0;
  std::string_view fail = text;
  size_t colon = fail.find(':');
  return colon != fail.npos && fail.substr(0, colon) == function ? atoi(text + colon + 1) : 0;
}

/// Whether the bytes lie within one allocation.
bool inside(uint64_t address, size_t bytes) {
  auto after = live.upper_bound(address);
  if (after == live.begin())
    return false;
  auto [begin, size] = *--after;
  return address - begin <= size && bytes <= size - (address - begin);
}

} // namespace

#define PLANTED                                                                                                        \
  if (int result = planted(__func__))                                                                                  \
  return result

extern "C" {
int cuInit(unsigned) {
  PLANTED;
  return 0;
}
int cuDriverGetVersion(int *version) {
  PLANTED;
  *version = 13000;
  return 0;
}
int cuGetErrorName(int result, const char **name) {
  static const std::map<int, const char *> names = {
      {1, "CUDA_ERROR_INVALID_VALUE"},    {2, "CUDA_ERROR_OUT_OF_MEMORY"},     {100, "CUDA_ERROR_NO_DEVICE"},
      {101, "CUDA_ERROR_INVALID_DEVICE"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {719, "CUDA_ERROR_LAUNCH_FAILED"}};
  auto found = names.find(result);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? kInvalidValue : 0;
}
int cuDeviceGetCount(int *count) {
  PLANTED;
  *count = 1;
  return 0;
}
int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? 0 : kInvalidDevice;
}
int cuDeviceGetName(char *name, int bytes, int) {
  PLANTED;
  strncpy(name, "Fake H200", size_t(bytes));
  return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int) {
  *bytes = kMemory;
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int) {
  PLANTED;
  *context = &live;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void *) { return 0; }
// Kernels are not executed yet: every image is refused (CUDA_ERROR_INVALID_IMAGE).
int cuModuleLoadData(void **, const void *) { return 200; }
int cuModuleUnload(void *) { return kInvalidValue; }
int cuModuleGetFunction(void **, void *, const char *) { return kInvalidValue; }
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **) {
  return kInvalidValue;
}
int cuStreamCreate(void **stream, unsigned) {
  PLANTED;
  *stream = new char;
  return 0;
}
int cuStreamDestroy_v2(void *stream) {
  delete static_cast<char *>(stream);
  return 0;
}
int cuStreamSynchronize(void *) {
  PLANTED;
  return 0;
}
int cuMemAllocAsync(uint64_t *out, size_t bytes, void *) {
  PLANTED;
  std::lock_guard lock(mutex);
  size_t used = 0;
  for (auto [address, size] : live)
    used += size;
  if (bytes == 0)
    return kInvalidValue;
  if (bytes > kMemory - used)
    return 2;
  *out = reinterpret_cast<uint64_t>(malloc(bytes));
  memset(reinterpret_cast<void *>(*out), 0xcd, bytes);
  live[*out] = bytes;
  return 0;
}
int cuMemFreeAsync(uint64_t address, void *) {
  std::lock_guard lock(mutex);
  if (!live.erase(address))
    return kInvalidValue;
  free(reinterpret_cast<void *>(address));
  return 0;
}
int cuMemHostAlloc(void **out, size_t bytes, unsigned) {
  PLANTED;
  *out = malloc(bytes);
  return 0;
}
int cuMemFreeHost(void *memory) {
  free(memory);
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *) {
  PLANTED;
  std::lock_guard lock(mutex);
  if (!inside(to, bytes))
    return kInvalidValue;
  memcpy(reinterpret_cast<void *>(to), from, bytes);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *) {
  PLANTED;
  std::lock_guard lock(mutex);
  if (!inside(from, bytes))
    return kInvalidValue;
  memcpy(to, reinterpret_cast<void *>(from), bytes);
  return 0;
}
}
