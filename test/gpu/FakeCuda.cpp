// A libcuda.so.1 for tests: one device whose memory is the host's. Work on a stream is done as late as the real driver
// may do it, when the stream is waited for, so that a missing wait shows. It refuses what the real one refuses, and
// fails on request: see FakeCuda.h, or FAKE_CUDA_FAIL="cuMemAllocAsync:2" makes that function return that result. What
// gives something back does so even when it fails, as the real driver reports errors of earlier work there.
#include "test/gpu/FakeCuda.h"
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

using burin::test::fake::Kernel;

namespace {

constexpr int kInvalidValue = 1, kInvalidDevice = 101, kInvalidContext = 201, kInvalidImage = 200, kInvalidHandle = 400,
              kNotFound = 500;
constexpr size_t kMemory = size_t(1) << 30;

struct Module {
  std::map<std::string, Kernel> kernels;
};
struct Stream {
  std::deque<std::function<int()>> work;
};

std::recursive_mutex mutex;
std::map<uint64_t, size_t> live; // allocations: address, bytes
std::map<std::string, Module> known;
std::set<Module *> modules;
std::set<Stream *> streams;
Stream defaultStream;
int contexts = 0, context;
thread_local int entered = 0;
std::string wrong;
int64_t callCount = 0, failNumber = 0;
int failResult = 0;

int planted(std::string_view function) {
  ++callCount;
  if (callCount == failNumber)
    return failResult;
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

Stream *find(void *stream) {
  if (!stream)
    return &defaultStream;
  return streams.count(static_cast<Stream *>(stream)) ? static_cast<Stream *>(stream) : nullptr;
}

int drain(Stream &stream) {
  while (!stream.work.empty()) {
    auto work = std::move(stream.work.front());
    stream.work.pop_front();
    if (int result = work())
      return result;
  }
  return 0;
}

/// Work for later, if there is such a stream.
int enqueue(void *stream, std::function<int()> work) {
  Stream *s = find(stream);
  if (!s)
    return kInvalidHandle;
  s->work.push_back(std::move(work));
  return 0;
}

} // namespace

#define BEGIN                                                                                                          \
  std::lock_guard lock(mutex);                                                                                         \
  const int failure = planted(__func__)
#define PLANTED                                                                                                        \
  BEGIN;                                                                                                               \
  if (failure)                                                                                                         \
  return failure
#define IN_CONTEXT                                                                                                     \
  PLANTED;                                                                                                             \
  if (!entered)                                                                                                        \
  return kInvalidContext

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
      {1, "CUDA_ERROR_INVALID_VALUE"},     {2, "CUDA_ERROR_OUT_OF_MEMORY"},   {100, "CUDA_ERROR_NO_DEVICE"},
      {101, "CUDA_ERROR_INVALID_DEVICE"},  {200, "CUDA_ERROR_INVALID_IMAGE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {719, "CUDA_ERROR_LAUNCH_FAILED"}, {999, "CUDA_ERROR_UNKNOWN"}};
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
  PLANTED;
  *device = ordinal;
  return ordinal == 0 ? 0 : kInvalidDevice;
}
int cuDeviceGetName(char *name, int bytes, int) {
  PLANTED;
  strncpy(name, "Fake H200", size_t(bytes));
  return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int) {
  PLANTED;
  *bytes = kMemory;
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
  PLANTED;
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **out, int) {
  PLANTED;
  ++contexts;
  *out = &context;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  BEGIN;
  --contexts;
  return failure;
}
int cuCtxPushCurrent_v2(void *pushed) {
  PLANTED;
  if (pushed != &context || contexts == 0)
    return kInvalidContext;
  ++entered;
  return 0;
}
int cuCtxPopCurrent_v2(void **popped) {
  BEGIN;
  if (!entered)
    return kInvalidContext;
  --entered;
  *popped = &context;
  return failure;
}
int cuModuleLoadData(void **out, const void *image) {
  IN_CONTEXT;
  auto found = known.find(static_cast<const char *>(image));
  if (found == known.end())
    return kInvalidImage;
  auto *module = new Module(found->second);
  modules.insert(module);
  *out = module;
  return 0;
}
int cuModuleUnload(void *module) {
  BEGIN;
  if (!modules.erase(static_cast<Module *>(module)))
    return kInvalidHandle;
  delete static_cast<Module *>(module);
  return failure;
}
int cuModuleGetFunction(void **out, void *module, const char *name) {
  IN_CONTEXT;
  if (!modules.count(static_cast<Module *>(module)))
    return kInvalidHandle;
  auto &kernels = static_cast<Module *>(module)->kernels;
  auto found = kernels.find(name);
  if (found == kernels.end())
    return kNotFound;
  *out = &found->second;
  return 0;
}
int cuLaunchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,
                   unsigned blockZ, unsigned sharedBytes, void *stream, void **arguments, void **extra) {
  IN_CONTEXT;
  const auto &kernel = *static_cast<Kernel *>(function);
  bool fits = gridX > 0 && gridX <= INT32_MAX && gridY == 1 && gridZ == 1 && int(blockX) == kernel.threads &&
              blockY == 1 && blockZ == 1 && sharedBytes == 0 && !extra;
  if (!fits)
    return kInvalidValue;
  std::vector<void *> operands;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < kernel.operands; ++i)
    operands.push_back(*static_cast<void **>(*arguments++));
  for (size_t i = 0; i < kernel.sizes; ++i)
    sizes.push_back(*static_cast<int64_t *>(*arguments++));
  void *scratch = *static_cast<void **>(*arguments++);
  auto *error = *static_cast<int64_t **>(*arguments++);
  return enqueue(stream, [=, run = kernel.run] {
    for (void *operand : operands)
      if (!inside(reinterpret_cast<uint64_t>(operand), 1))
        return 700;
    if (!inside(reinterpret_cast<uint64_t>(error), sizeof *error))
      return 700;
    *error = std::min(*error, run(operands.data(), sizes.data(), scratch, 0, int64_t(gridX)));
    return 0;
  });
}
int cuStreamCreate(void **out, unsigned) {
  IN_CONTEXT;
  auto *stream = new Stream;
  streams.insert(stream);
  *out = stream;
  return 0;
}
int cuStreamDestroy_v2(void *stream) {
  BEGIN;
  Stream *s = find(stream);
  if (!s || !stream)
    return kInvalidHandle;
  drain(*s);
  streams.erase(s);
  delete s;
  return failure;
}
int cuStreamSynchronize(void *stream) {
  BEGIN;
  Stream *s = find(stream);
  if (!s)
    return kInvalidHandle;
  int result = drain(*s); // a failure is one of the work
  return failure ? failure : result;
}
int cuMemAllocAsync(uint64_t *out, size_t bytes, void *stream) {
  PLANTED;
  size_t used = 0;
  for (auto [address, size] : live)
    used += size;
  if (bytes == 0 || !find(stream))
    return kInvalidValue;
  if (bytes > kMemory - used)
    return 2;
  *out = reinterpret_cast<uint64_t>(aligned_alloc(256, (bytes + 255) / 256 * 256));
  memset(reinterpret_cast<void *>(*out), 0xcd, bytes);
  live[*out] = bytes;
  return 0;
}
int cuMemFreeAsync(uint64_t address, void *stream) {
  BEGIN;
  if (!live.count(address))
    return kInvalidValue;
  int result = enqueue(stream, [address] {
    if (!live.erase(address))
      wrong += "memory is freed twice\n";
    else
      free(reinterpret_cast<void *>(address));
    return 0;
  });
  return failure ? failure : result;
}
// Of pageable memory: it may be changed when the call returns.
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  PLANTED;
  if (!inside(to, bytes))
    return kInvalidValue;
  std::vector<char> staged(static_cast<const char *>(from), static_cast<const char *>(from) + bytes);
  return enqueue(stream, [to, staged = std::move(staged)] {
    if (!inside(to, staged.size()))
      return 700;
    memcpy(reinterpret_cast<void *>(to), staged.data(), staged.size());
    return 0;
  });
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  PLANTED;
  if (!inside(from, bytes))
    return kInvalidValue;
  return enqueue(stream, [=] {
    if (!inside(from, bytes))
      return 700;
    memcpy(to, reinterpret_cast<void *>(from), bytes);
    return 0;
  });
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  PLANTED;
  if (!inside(from, bytes) || !inside(to, bytes))
    return kInvalidValue;
  return enqueue(stream, [=] {
    memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    return 0;
  });
}
}

namespace burin::test::fake {

void addModule(const std::string &ptx, std::map<std::string, Kernel> kernels) {
  std::lock_guard lock(mutex);
  known[ptx] = {std::move(kernels)};
}

void failCall(int64_t number, int result) {
  std::lock_guard lock(mutex);
  callCount = 0;
  failNumber = number;
  failResult = result;
}

int64_t calls() {
  std::lock_guard lock(mutex);
  return callCount;
}

std::string problems() {
  std::lock_guard lock(mutex);
  std::string text = std::exchange(wrong, "");
  auto add = [&](size_t count, const char *what) {
    if (count)
      text += std::to_string(count) + " " + what + " left\n";
  };
  add(live.size(), "allocations");
  add(modules.size(), "modules");
  add(streams.size(), "streams");
  add(size_t(contexts), "contexts");
  add(size_t(entered), "entered contexts");
  return text;
}

} // namespace burin::test::fake
