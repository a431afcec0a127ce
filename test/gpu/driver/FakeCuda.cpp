// A libcuda.so.1 for tests: devices whose memory is the host's; for streams see FakeStreams.h. It refuses what the
// real one refuses, and fails on request: see FakeCuda.h, or FAKE_CUDA_FAIL="cuMemAllocAsync:2" makes that function
// return that result. What gives something back does so even when it fails, as the real driver reports errors of
// earlier work there.
#include "test/gpu/driver/FakeState.h"
#include "test/gpu/driver/TensorMap.h"
#include <cstdio>

namespace burin::test::fake {

Driver driver;
thread_local std::vector<int> entered;

int Driver::planted(std::string_view function) {
  ++callCount;
  if (callCount == failNumber)
    return failResult;
  if (failOneOf && streams.random(uint64_t(failOneOf)) == 0)
    return std::array{1, 2, 201, 700, 719, 999}[streams.random(6)];
  const char *text = getenv("FAKE_CUDA_FAIL");
  if (!text)
    return 0;
  std::string_view fail = text;
  size_t colon = fail.find(':');
  return colon != fail.npos && fail.substr(0, colon) == function ? int(strtol(text + colon + 1, nullptr, 10)) : 0;
}

bool Driver::isPinned(const void *data, size_t bytes) const {
  auto at = reinterpret_cast<uint64_t>(data);
  auto after = pinned.upper_bound(at);
  return after != pinned.begin() && (--after, at + bytes <= after->first + after->second);
}

Streams::Stream *Driver::find(void *stream) {
  static const std::array<Streams::Stream *, kMostDevices> byDefault = {streams.createStream(0),
                                                                        streams.createStream(1)};
  const bool isDefault = reinterpret_cast<uintptr_t>(stream) <= 2; // also CU_STREAM_LEGACY and CU_STREAM_PER_THREAD
  return !isDefault ? static_cast<Streams::Stream *>(stream) : byDefault[entered.empty() ? 0 : size_t(entered.back())];
}

} // namespace burin::test::fake

using namespace burin::test::fake;

namespace {

/// Null: the PTX has something that is not driver.known, which stderr tells.
std::unique_ptr<Module> loadModule(const char *image) {
  auto module = std::make_unique<Module>();
  if (!driver.replacement.empty())
    image = driver.replacement.c_str();
  if (auto found = driver.known.find(image); found != driver.known.end()) {
    for (const auto &[name, kernel] : found->second)
      module->functions[name] = {kernel, nullptr};
    return module;
  }
  try {
    module->program = burin::test::ptx::parse(image);
  } catch (const std::exception &e) {
    fprintf(stderr, "driver for tests: %s\n", e.what());
    return nullptr;
  }
  for (const burin::test::ptx::Function &f : module->program.functions)
    if (f.isKernel)
      module->functions[f.name] = {{.threads = f.threads}, &f, &module->program};
  return module->functions.empty() ? nullptr : std::move(module);
}

/// CUlaunchConfig and CUlaunchAttribute.
struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  void *stream;
  const struct LaunchAttribute *attributes;
  unsigned attributeCount;
};
struct LaunchAttribute {
  int id, padding, value, reserved[15];
};

using MapBytes = std::array<std::byte, burin::test::simt::TensorMap::kBytes>;

/// The arguments of a launch: 8 bytes each, and the bytes of tensor maps, which the launch copies.
struct Arguments {
  std::vector<uint64_t> values;
  std::map<size_t, MapBytes> maps;
};

int interpret(const Function &f, Arguments given, int64_t blocks, size_t sharedBytes) {
  std::vector<uint64_t> &arguments = given.values;
  for (auto &[i, bytes] : given.maps)
    arguments[i] = reinterpret_cast<uint64_t>(bytes.data());
  Memory &memory = driver.memories[size_t(f.device)];
  memory.beginLaunch();
  burin::test::ptx::onSetCondition(
      [](uint64_t condition, uint32_t value) { return driver.streams.setCondition(condition, value != 0); });
  try {
    burin::test::ptx::launch(*f.program, *f.interpreted, arguments, blocks, sharedBytes,
                             [&](uint64_t address, size_t bytes) { return memory.mayTouch(address, bytes); });
    return 0;
  } catch (const std::exception &e) {
    fprintf(stderr, "driver for tests: %s\n", e.what());
    driver.wrong += std::string(e.what()) + "\n";
    return kLaunchFailed;
  }
}

} // namespace

extern "C" {
int cuInit(unsigned) {
  PLANTED;
  return 0;
}
int cuDriverGetVersion(int *version) {
  PLANTED;
  *version = driver.version;
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
  *count = driver.deviceCount;
  return 0;
}
int cuDeviceGet(int *device, int ordinal) {
  PLANTED;
  *device = ordinal;
  return driver.isDevice(ordinal) ? 0 : kInvalidDevice;
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
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? driver.multiprocessors : 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **out, int device) {
  PLANTED;
  if (!driver.isDevice(device))
    return kInvalidDevice;
  ++driver.contexts[size_t(device)].retained;
  *out = &driver.contexts[size_t(device)];
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  BEGIN;
  if (--driver.contexts[size_t(device)].retained == 0)
    driver.streams.clearFault(device);
  return failure;
}
int cuCtxPushCurrent_v2(void *pushed) {
  PLANTED;
  const int device = driver.deviceOf(pushed);
  if (!driver.isDevice(device) || driver.contexts[size_t(device)].retained == 0)
    return kInvalidContext;
  entered.push_back(device);
  return 0;
}
int cuCtxPopCurrent_v2(void **popped) {
  BEGIN;
  if (entered.empty())
    return kInvalidContext;
  *popped = &driver.contexts[size_t(entered.back())];
  entered.pop_back();
  return failure;
}
int cuModuleLoadData(void **out, const void *image) {
  IN_CONTEXT;
  std::unique_ptr<Module> module = loadModule(static_cast<const char *>(image));
  if (!module)
    return kInvalidImage;
  module->device = entered.back();
  for (auto &[name, function] : module->functions)
    function.device = module->device;
  *out = *driver.modules.insert(module.release()).first;
  return 0;
}
int cuModuleUnload(void *module) {
  BEGIN;
  if (!driver.modules.erase(static_cast<Module *>(module)))
    return kInvalidHandle;
  delete static_cast<Module *>(module);
  return failure;
}
int cuModuleGetFunction(void **out, void *module, const char *name) {
  IN_CONTEXT;
  if (!driver.modules.count(static_cast<Module *>(module)))
    return kInvalidHandle;
  auto &functions = static_cast<Module *>(module)->functions;
  auto found = functions.find(name);
  if (found == functions.end())
    return kNotFound;
  *out = &found->second;
  return 0;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
  IN_CONTEXT;
  constexpr int kMostDynamicShared = 8, kMostOfDevice = 227 << 10;
  if (attribute != kMostDynamicShared || value < 0 || value > kMostOfDevice)
    return kInvalidValue;
  auto &asking = *static_cast<Function *>(function);
  asking.mostShared = size_t(value);
  asking.hasAsked = true;
  return 0;
}
int cuLaunchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,
                   unsigned blockZ, unsigned sharedBytes, void *stream, void **arguments, void **extra) {
  IN_CONTEXT;
  const auto &launched = *static_cast<Function *>(function);
  const Kernel &kernel = launched.kernel;
  if (driver.find(stream)->device != launched.device)
    return kInvalidHandle;
  size_t own = 0;
  if (launched.interpreted && !launched.hasAsked)
    for (const burin::test::ptx::Shared &variable : launched.interpreted->shared)
      own += variable.size;
  bool fits = gridX > 0 && gridX <= INT32_MAX && gridY == 1 && gridZ == 1 && int(blockX) == kernel.threads &&
              blockY == 1 && blockZ == 1 && sharedBytes + own <= launched.mostShared && !extra &&
              (launched.interpreted || sharedBytes == kernel.sharedBytes);
  if (!fits)
    return kInvalidValue;
  if (launched.interpreted) {
    Arguments given;
    for (size_t i = 0; i < launched.interpreted->parameters.size(); ++i)
      if (launched.interpreted->isMap[i])
        memcpy(given.maps[i].data(), arguments[i], sizeof(MapBytes)), given.values.push_back(0);
      else
        given.values.push_back(*static_cast<uint64_t *>(arguments[i]));
    return driver.enqueue(stream, [=, &launched] { return interpret(launched, given, gridX, sharedBytes); });
  }
  std::vector<void *> operands;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < kernel.operands; ++i)
    operands.push_back(*static_cast<void **>(*arguments++));
  for (size_t i = 0; i < kernel.sizes; ++i)
    sizes.push_back(*static_cast<int64_t *>(*arguments++));
  arguments += kernel.maps; // its code makes them
  void *scratch = *static_cast<void **>(*arguments++);
  auto *error = *static_cast<int64_t **>(*arguments++);
  const int64_t first = kernel.inGroups ? *static_cast<int64_t *>(*arguments++) : 0;
  return driver.enqueue(stream, [=, run = kernel.run, device = launched.device] {
    for (void *operand : operands)
      if (!driver.inside(device, reinterpret_cast<uint64_t>(operand), 1))
        return kIllegalAddress;
    if (!driver.inside(device, reinterpret_cast<uint64_t>(error), sizeof *error))
      return kIllegalAddress;
    *error = std::min(*error, run(operands.data(), sizes.data(), scratch, first, first + int64_t(gridX)));
    return 0;
  });
}
/// With the attribute that lets a kernel begin before the one ahead of it has ended, and no other: it has to wait
/// itself.
int cuLaunchKernelEx(const LaunchConfig *config, void *function, void **arguments, void **extra) {
  const auto &launched = *static_cast<Function *>(function);
  constexpr int kEarly = 6;
  if (config->attributeCount != 1 || config->attributes->id != kEarly || config->attributes->value != 1)
    return kInvalidValue;
  if (!(launched.interpreted ? launched.interpreted->waitsFirst : launched.kernel.waitsFirst)) {
    driver.wrong += "a kernel that does not wait for the one before it may begin early\n";
    return kInvalidValue;
  }
  {
    std::lock_guard lock(driver.mutex);
    ++driver.earlyCount;
  }
  return cuLaunchKernel(function, config->gridX, config->gridY, config->gridZ, config->blockX, config->blockY,
                        config->blockZ, config->sharedBytes, config->stream, arguments, extra);
}
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *sizes,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleaving,
                           int swizzle, int, int fill) {
  PLANTED;
  constexpr uintptr_t kAlignment = 64;
  constexpr int kUInt16 = 1, kSwizzle64 = 2, kSwizzle128 = 3;
  const bool isKnown = type == kUInt16 && rank >= 1 && rank <= 5 && interleaving == 0 && fill == 0 &&
                       (swizzle == kSwizzle64 || swizzle == kSwizzle128) &&
                       std::all_of(steps, steps + rank, [](uint32_t step) { return step == 1; });
  if (!isKnown || reinterpret_cast<uintptr_t>(map) % kAlignment)
    return kInvalidValue;
  std::string problem;
  const auto made =
      burin::test::simt::TensorMap::make(reinterpret_cast<uint64_t>(address), {sizes, rank}, {strides, rank - 1},
                                         {box, rank}, swizzle == kSwizzle64 ? 64 : 128, problem);
  if (!problem.empty())
    return kInvalidValue;
  made.store(map);
  return 0;
}
int cuStreamCreate(void **out, unsigned) {
  IN_CONTEXT;
  *out = driver.streams.createStream(entered.back());
  return 0;
}
int cuStreamDestroy_v2(void *stream) {
  BEGIN;
  return !stream || !driver.streams.destroy(driver.find(stream)) ? kInvalidHandle : failure;
}
int cuStreamSynchronize(void *stream) {
  BEGIN;
  int result = driver.streams.synchronize(driver.find(stream)); // a failure is one of the work
  return failure ? failure : result;
}
int cuStreamWaitEvent(void *stream, void *event, unsigned) {
  PLANTED;
  if (++driver.waitCount == driver.forgottenWait)
    return 0;
  return driver.streams.wait(driver.find(stream), static_cast<Streams::Event *>(event));
}
int cuEventSynchronize(void *event) {
  BEGIN;
  int result = driver.streams.synchronize(static_cast<Streams::Event *>(event));
  return failure ? failure : result;
}
int cuEventQuery(void *event) {
  PLANTED;
  return driver.streams.isReached(static_cast<Streams::Event *>(event)) ? 0 : kNotReady;
}
int cuEventCreate(void **out, unsigned) {
  IN_CONTEXT;
  *out = driver.streams.createEvent();
  return 0;
}
int cuEventDestroy_v2(void *event) {
  BEGIN;
  return driver.streams.destroy(static_cast<Streams::Event *>(event)) ? failure : kInvalidHandle;
}
int cuEventRecord(void *event, void *stream) {
  PLANTED;
  return driver.streams.record(static_cast<Streams::Event *>(event), driver.find(stream));
}
}

namespace burin::test::fake {

void addModule(const std::string &ptx, std::map<std::string, Kernel> kernels) {
  std::lock_guard lock(driver.mutex);
  driver.known[ptx] = std::move(kernels);
}

void failCall(int64_t number, int result) {
  std::lock_guard lock(driver.mutex);
  driver.callCount = driver.failOneOf = 0;
  driver.failNumber = number;
  driver.failResult = result;
}

void failRandomly(uint64_t seed, int64_t oneOf) {
  std::lock_guard lock(driver.mutex);
  driver.streams.seed(seed);
  driver.callCount = driver.failNumber = 0;
  driver.failOneOf = oneOf;
}

void rankStreams(uint64_t seed) {
  std::lock_guard lock(driver.mutex);
  driver.streams.rank(seed);
}

void forgetWait(int64_t number) {
  std::lock_guard lock(driver.mutex);
  driver.waitCount = 0;
  driver.forgottenWait = number;
}

int64_t waits() {
  std::lock_guard lock(driver.mutex);
  return driver.waitCount;
}

int64_t earlyLaunches() {
  std::lock_guard lock(driver.mutex);
  return driver.earlyCount;
}
int64_t replays() {
  std::lock_guard lock(driver.mutex);
  return driver.replayCount;
}

int64_t calls() {
  std::lock_guard lock(driver.mutex);
  return driver.callCount;
}

void replacePtx(std::string text) {
  std::lock_guard lock(driver.mutex);
  driver.replacement = std::move(text);
}

void setTraces(Traces mode, size_t run) {
  std::lock_guard lock(driver.mutex);
  for (Memory &memory : driver.memories)
    memory.setTraces(mode, run);
}

void setVersion(int version) {
  std::lock_guard lock(driver.mutex);
  driver.version = version;
}

void setMultiprocessors(int count) {
  std::lock_guard lock(driver.mutex);
  driver.multiprocessors = count;
}

void shiftMemory(size_t bytes) {
  std::lock_guard lock(driver.mutex);
  for (Memory &memory : driver.memories)
    memory.setShift(bytes);
}

void setDevices(int count) {
  std::lock_guard lock(driver.mutex);
  driver.deviceCount = count;
}

CopyCounts copies() {
  std::lock_guard lock(driver.mutex);
  return driver.copyCounts;
}

size_t allocations() {
  std::lock_guard lock(driver.mutex);
  size_t count = 0;
  for (const Memory &memory : driver.memories)
    count += memory.count();
  return count;
}

bool isPinned(const void *data) {
  std::lock_guard lock(driver.mutex);
  return driver.isPinned(data, 1);
}

size_t pendingWork(int device) {
  std::lock_guard lock(driver.mutex);
  return driver.streams.pendingWork(device);
}

std::string problems() {
  std::lock_guard lock(driver.mutex);
  std::string text = std::exchange(driver.wrong, "");
  auto add = [&](size_t count, const char *what) {
    if (count)
      text += std::to_string(count) + " " + what + " left\n";
  };
  add(allocations(), "allocations");
  add(driver.modules.size(), "modules");
  driver.find(nullptr);
  add(driver.pinned.size(), "pinned allocations");
  add(driver.streams.liveStreams() - kMostDevices, "streams");
  add(driver.streams.liveEvents(), "events");
  add(driver.graphs.size() + driver.executables.size(), "graphs");
  for (const Context &context : driver.contexts)
    add(size_t(context.retained), "contexts");
  add(entered.size(), "entered contexts");
  add(size_t(captureMode), "capture mode");
  return text;
}

} // namespace burin::test::fake
