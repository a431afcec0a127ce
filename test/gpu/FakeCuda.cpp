// A libcuda.so.1 for tests: one device whose memory is the host's; for streams see FakeStreams.h. It refuses what the
// real one refuses, and fails on request: see FakeCuda.h, or FAKE_CUDA_FAIL="cuMemAllocAsync:2" makes that function
// return that result. What gives something back does so even when it fails, as the real driver reports errors of
// earlier work there.
#include "test/gpu/FakeCuda.h"
#include "test/gpu/FakeStreams.h"
#include "test/gpu/PtxProgram.h"
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

using namespace burin::test::fake;

namespace {

constexpr size_t kMemory = size_t(1) << 30;

/// For the emulator, or to be interpreted.
struct Function {
  Kernel kernel;
  const burin::test::ptx::Function *interpreted = nullptr;
  const burin::test::ptx::Program *program = nullptr;
};
struct Module {
  std::map<std::string, Function> functions;
  burin::test::ptx::Program program;
};

std::recursive_mutex mutex;
Memory memory;
std::map<uint64_t, size_t> pinned;                          // of the process: address, bytes
std::map<std::string, std::map<std::string, Kernel>> known; // by PTX
std::set<Module *> modules;
std::set<Graph *> graphs, executables;
Streams streams;
int contexts = 0, context;
thread_local int entered = 0;
std::string wrong, replacement;
int64_t replayCount = 0, waitCount = 0, forgottenWait = 0;
int64_t callCount = 0, failNumber = 0, failOneOf = 0;
int failResult = 0;

int planted(std::string_view function) {
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
  return colon != fail.npos && fail.substr(0, colon) == function ? atoi(text + colon + 1) : 0;
}

bool inside(uint64_t address, size_t bytes) { return memory.inside(address, bytes); }
bool isPinned(const void *data, size_t bytes) {
  auto at = reinterpret_cast<uint64_t>(data);
  auto after = pinned.upper_bound(at);
  return after != pinned.begin() && (--after, at + bytes <= after->first + after->second);
}

/// The stream that null stands for is never destroyed.
Streams::Stream *find(void *stream) {
  static Streams::Stream *const byDefault = streams.createStream();
  return stream ? static_cast<Streams::Stream *>(stream) : byDefault;
}

int enqueue(void *stream, Work work) { return streams.enqueue(find(stream), std::move(work)); }

/// Null: the PTX has something that is not known, which stderr tells.
std::unique_ptr<Module> loadModule(const char *image) {
  auto module = std::make_unique<Module>();
  if (!replacement.empty())
    image = replacement.c_str();
  if (auto found = known.find(image); found != known.end()) {
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

int interpret(const Function &f, const std::vector<uint64_t> &arguments, int64_t blocks) {
  memory.beginLaunch();
  try {
    burin::test::ptx::launch(*f.program, *f.interpreted, arguments, blocks,
                             [](uint64_t address, size_t bytes) { return memory.mayTouch(address, bytes); });
    return 0;
  } catch (const std::exception &e) {
    fprintf(stderr, "driver for tests: %s\n", e.what());
    wrong += std::string(e.what()) + "\n";
    return kLaunchFailed;
  }
}

/// Memory that is not pinned takes no part in what is recorded.
bool refusesPageable(void *stream, const void *data, size_t bytes) {
  return streams.isCapturing(find(stream)) && !isPinned(data, bytes);
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
  std::unique_ptr<Module> module = loadModule(static_cast<const char *>(image));
  if (!module)
    return kInvalidImage;
  *out = *modules.insert(module.release()).first;
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
  auto &functions = static_cast<Module *>(module)->functions;
  auto found = functions.find(name);
  if (found == functions.end())
    return kNotFound;
  *out = &found->second;
  return 0;
}
int cuLaunchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,
                   unsigned blockZ, unsigned sharedBytes, void *stream, void **arguments, void **extra) {
  IN_CONTEXT;
  const auto &launched = *static_cast<Function *>(function);
  const Kernel &kernel = launched.kernel;
  bool fits = gridX > 0 && gridX <= INT32_MAX && gridY == 1 && gridZ == 1 && int(blockX) == kernel.threads &&
              blockY == 1 && blockZ == 1 && sharedBytes == 0 && !extra;
  if (!fits)
    return kInvalidValue;
  if (launched.interpreted) {
    std::vector<uint64_t> values;
    for (size_t i = 0; i < launched.interpreted->parameters.size(); ++i)
      values.push_back(*static_cast<uint64_t *>(arguments[i]));
    return enqueue(stream, [=, &launched] { return interpret(launched, values, gridX); });
  }
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
        return kIllegalAddress;
    if (!inside(reinterpret_cast<uint64_t>(error), sizeof *error))
      return kIllegalAddress;
    *error = std::min(*error, run(operands.data(), sizes.data(), scratch, 0, int64_t(gridX)));
    return 0;
  });
}
int cuStreamCreate(void **out, unsigned) {
  IN_CONTEXT;
  *out = streams.createStream();
  return 0;
}
int cuStreamDestroy_v2(void *stream) {
  BEGIN;
  return !stream || !streams.destroy(find(stream)) ? kInvalidHandle : failure;
}
int cuStreamSynchronize(void *stream) {
  BEGIN;
  int result = streams.synchronize(find(stream)); // a failure is one of the work
  return failure ? failure : result;
}
int cuStreamWaitEvent(void *stream, void *event, unsigned) {
  PLANTED;
  if (++waitCount == forgottenWait)
    return 0;
  return streams.wait(find(stream), static_cast<Streams::Event *>(event));
}
int cuEventCreate(void **out, unsigned) {
  IN_CONTEXT;
  *out = streams.createEvent();
  return 0;
}
int cuEventDestroy_v2(void *event) {
  BEGIN;
  return streams.destroy(static_cast<Streams::Event *>(event)) ? failure : kInvalidHandle;
}
int cuEventRecord(void *event, void *stream) {
  PLANTED;
  return streams.record(static_cast<Streams::Event *>(event), find(stream));
}
int cuStreamBeginCapture_v2(void *stream, int) {
  PLANTED;
  return streams.beginCapture(find(stream));
}
int cuStreamEndCapture(void *stream, void **out) {
  BEGIN;
  std::unique_ptr<Graph> graph;
  int result = streams.endCapture(find(stream), graph);
  *out = nullptr;
  if (failure || result)
    return failure ? failure : result;
  *out = *graphs.insert(graph.release()).first;
  return 0;
}
int cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long) {
  IN_CONTEXT;
  if (!graphs.count(static_cast<Graph *>(graph)))
    return kInvalidHandle;
  *out = *executables.insert(new Graph(*static_cast<Graph *>(graph))).first;
  return 0;
}
int cuGraphLaunch(void *graph, void *stream) {
  IN_CONTEXT;
  auto *executable = static_cast<Graph *>(graph);
  if (!executables.count(executable))
    return kInvalidHandle;
  ++replayCount;
  return enqueue(stream, [executable] {
    return executables.count(executable) ? streams.run(*executable) : kIllegalState; // destroyed before it has run
  });
}
int cuGraphDestroy(void *graph) {
  BEGIN;
  if (!graphs.erase(static_cast<Graph *>(graph)))
    return kInvalidHandle;
  delete static_cast<Graph *>(graph);
  return failure;
}
int cuGraphExecDestroy(void *graph) {
  BEGIN;
  if (!executables.erase(static_cast<Graph *>(graph)))
    return kInvalidHandle;
  delete static_cast<Graph *>(graph);
  return failure;
}
int cuMemHostAlloc(void **out, size_t bytes, unsigned) {
  IN_CONTEXT;
  if (bytes == 0)
    return kInvalidValue;
  *out = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  memset(*out, 0xab, bytes);
  pinned[reinterpret_cast<uint64_t>(*out)] = bytes;
  return 0;
}
int cuMemFreeHost(void *data) {
  BEGIN;
  if (!pinned.erase(reinterpret_cast<uint64_t>(data)))
    return kInvalidValue;
  free(data);
  return failure;
}
int cuMemAllocAsync(uint64_t *out, size_t bytes, void *stream) {
  PLANTED;
  if (bytes == 0)
    return kInvalidValue;
  if (streams.isCapturing(find(stream)))
    return kCaptureUnsupported;
  *out = memory.allocate(bytes);
  return *out ? 0 : kOutOfMemory;
}
int cuMemFreeAsync(uint64_t address, void *stream) {
  BEGIN;
  if (!memory.isAllocation(address))
    return kInvalidValue;
  int result = enqueue(stream, [address] {
    if (memory.isAllocation(address))
      memory.free(address);
    else
      wrong += "memory is freed twice\n";
    return 0;
  });
  return failure ? failure : result;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  PLANTED;
  if (!inside(to, bytes))
    return kInvalidValue;
  if (refusesPageable(stream, from, bytes))
    return kCaptureUnsupported;
  std::vector<char> staged; // pageable memory may be changed when the call returns
  const bool waits = isPinned(from, bytes);
  if (!waits)
    staged.assign(static_cast<const char *>(from), static_cast<const char *>(from) + bytes);
  return enqueue(stream, [=, staged = std::move(staged)] {
    if (!inside(to, bytes) || (waits && !isPinned(from, bytes)))
      return kIllegalAddress;
    memcpy(reinterpret_cast<void *>(to), waits ? from : staged.data(), bytes);
    return 0;
  });
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  PLANTED;
  if (!inside(from, bytes))
    return kInvalidValue;
  if (refusesPageable(stream, to, bytes))
    return kCaptureUnsupported;
  return enqueue(stream, [=, waits = isPinned(to, bytes)] {
    if (!inside(from, bytes) || (waits && !isPinned(to, bytes)))
      return kIllegalAddress;
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
  known[ptx] = std::move(kernels);
}

void failCall(int64_t number, int result) {
  std::lock_guard lock(mutex);
  callCount = failOneOf = 0;
  failNumber = number;
  failResult = result;
}

void failRandomly(uint64_t seed, int64_t oneOf) {
  std::lock_guard lock(mutex);
  streams.seed(seed);
  callCount = failNumber = 0;
  failOneOf = oneOf;
}

void forgetWait(int64_t number) {
  std::lock_guard lock(mutex);
  waitCount = 0;
  forgottenWait = number;
}

int64_t waits() {
  std::lock_guard lock(mutex);
  return waitCount;
}

int64_t replays() {
  std::lock_guard lock(mutex);
  return replayCount;
}

int64_t calls() {
  std::lock_guard lock(mutex);
  return callCount;
}

void replacePtx(std::string text) {
  std::lock_guard lock(mutex);
  replacement = std::move(text);
}

void setTraces(Traces mode, size_t run) {
  std::lock_guard lock(mutex);
  memory.setTraces(mode, run);
}

std::string problems() {
  std::lock_guard lock(mutex);
  std::string text = std::exchange(wrong, "");
  auto add = [&](size_t count, const char *what) {
    if (count)
      text += std::to_string(count) + " " + what + " left\n";
  };
  add(memory.count(), "allocations");
  add(modules.size(), "modules");
  find(nullptr);
  add(pinned.size(), "pinned allocations");
  add(streams.liveStreams() - 1, "streams");
  add(streams.liveEvents(), "events");
  add(graphs.size() + executables.size(), "graphs");
  add(size_t(contexts), "contexts");
  add(size_t(entered), "entered contexts");
  return text;
}

} // namespace burin::test::fake
