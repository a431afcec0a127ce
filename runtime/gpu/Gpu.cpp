#include "runtime/gpu/Gpu.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <charconv>

namespace burin::rt::gpu {

static constexpr int64_t kNoError = INT64_MAX;

static DevicePointer address(const void *data) { return reinterpret_cast<DevicePointer>(data); }

/// How well a GPU runs code for "cuda-sm_80+ptx" (higher is better), or -1. With an "a" behind the number it runs on
/// that compute capability alone, else on all later ones, too.
static int rankOf(std::string_view target, const DeviceInfo &info) {
  constexpr std::string_view prefix = "cuda-sm_";
  int number = 0;
  if (!target.starts_with(prefix))
    return -1;
  target.remove_prefix(prefix.size());
  auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), number);
  if (error != std::errc())
    return -1;
  bool isExact = end != target.data() + target.size() && *end == 'a';
  const int own = info.major * 10 + info.minor;
  return isExact ? (own == number ? 2 * number + 1 : -1) : own >= number ? 2 * number : -1;
}

Status Gpu::open(const Program &program, int ordinal, std::unique_ptr<Gpu> &out) {
  std::unique_ptr<Gpu> gpu(new Gpu);
  gpu->program = &program;
  gpu->name = text("cuda:", ordinal);
  if (Status s = Driver::open(gpu->driver); !s.ok())
    return s;
  std::vector<DeviceInfo> devices;
  if (Status s = gpu->driver.devices(devices); !s.ok())
    return s;
  if (ordinal < 0 || size_t(ordinal) >= devices.size())
    return {ErrorCode::Unsupported, text("there is no GPU ", gpu->name, ": this machine has ", devices.size())};
  if (Status s = gpu->chooseCode(devices[size_t(ordinal)], ordinal); !s.ok())
    return s;
  if (gpu->works(gpu->driver->deviceGet(&gpu->device, ordinal), "finding the device"))
    gpu->works(gpu->driver->primaryCtxRetain(&gpu->context, gpu->device), "making a context");
  if (!gpu->failure.ok())
    return std::move(gpu->failure);
  Use use(*gpu);
  Status s = gpu->load();
  Status finished = gpu->finish();
  if (s.ok() && finished.ok())
    out = std::move(gpu);
  return !finished.ok() ? std::move(finished) : std::move(s);
}

Status Gpu::chooseCode(const DeviceInfo &info, int ordinal) {
  int best = -1;
  std::string all;
  for (const Code &candidate : program->artifact().codes) {
    all += (all.empty() ? "" : ", ") + candidate.target;
    if (int rank = rankOf(candidate.target, info); rank > best)
      best = rank, code = &candidate;
  }
  if (best >= 0)
    return {};
  return {ErrorCode::Unsupported,
          text("the artifact has no code for cuda:", ordinal, " (", info.name, ", compute capability ", info.major, ".",
               info.minor, "): it has ", all, "\n  compile it again with --target cuda-sm_80+ptx")};
}

Status Gpu::load() {
  if (!works(driver->streamCreate(&stream, /*CU_STREAM_NON_BLOCKING*/ 1), "making a stream") ||
      !works(driver->moduleLoadData(&module, program->gpuCode(*code)), "loading the code"))
    return {};
  for (const GpuKernel &kernel : code->gpuKernels) {
    Function &function = functions.emplace_back();
    if (!works(driver->moduleGetFunction(&function, module, kernel.entry.c_str()), "finding a kernel"))
      return {};
  }
  const uint64_t bytes = program->weightBytes();
  weightMemory = static_cast<std::byte *>(allocate(std::max<uint64_t>(bytes, 1)));
  mailbox = static_cast<std::byte *>(allocate(2 * sizeof(int64_t)));
  if (weightMemory && bytes)
    toGpu(weightMemory, program->weightData(), bytes);
  if (mailbox)
    toGpu(mailbox, &kNoError, sizeof kNoError);
  return {};
}

// Resources are given back even where the driver reports an error: it may be one of earlier work.
Gpu::~Gpu() {
  if (!context)
    return;
  {
    Use use(*this);
    if (mailbox)
      release(mailbox);
    if (weightMemory)
      release(weightMemory);
    if (stream) {
      driver->streamSynchronize(stream);
      driver->streamDestroy(stream);
    }
    if (module)
      driver->moduleUnload(module);
  }
  driver->primaryCtxRelease(device);
}

Gpu::Use::Use(Gpu &gpu) : gpu(gpu), pushed(gpu.works(gpu.driver->ctxPush(gpu.context), "entering its context")) {}
Gpu::Use::~Use() {
  Context popped = nullptr;
  if (pushed)
    gpu.works(gpu.driver->ctxPop(&popped), "leaving its context");
}

bool Gpu::works(Result result, const char *what) {
  if (result != kSuccess && failure.ok())
    failure = driver.check(result, text(name, ": ", what));
  return result == kSuccess;
}

void *Gpu::allocate(size_t bytes) {
  DevicePointer memory = 0;
  Result result = driver->memAllocAsync(&memory, bytes, stream);
  if (result != kSuccess && failure.ok())
    failure = driver.check(result, text(name, ": allocating ", bytes, " bytes"));
  return result == kSuccess ? reinterpret_cast<void *>(memory) : nullptr;
}

void Gpu::release(void *data) { works(driver->memFreeAsync(address(data), stream), "freeing memory"); }

void Gpu::toGpu(void *to, const void *from, size_t bytes) {
  if (failure.ok() && bytes)
    works(driver->copyToDevice(address(to), from, bytes, stream), "copying to the GPU");
}
void Gpu::toHost(void *to, const void *from, size_t bytes) {
  if (failure.ok() && bytes)
    works(driver->copyToHost(to, address(from), bytes, stream), "copying from the GPU");
}
void Gpu::copy(void *to, const void *from, size_t bytes) {
  if (failure.ok() && bytes)
    works(driver->copyWithin(address(to), address(from), bytes, stream), "copying within the GPU");
}

void Gpu::launch(uint32_t kernel, std::span<void *const> operands, const int64_t *sizes, int64_t blocks, void *scratch,
                 const std::string &location) {
  if (!failure.ok())
    return;
  const GpuKernel &info = code->gpuKernels[kernel];
  const std::string &kernelName = program->artifact().kernels[kernel].name;
  if (blocks > INT32_MAX) {
    failure = {ErrorCode::InvalidArgument, text("cannot run: ", kernelName, " would need ", blocks,
                                                " blocks, a GPU launches 2147483647\n  at ", location)};
    return;
  }
  arguments.clear();
  for (void *const &operand : operands)
    arguments.push_back(const_cast<void **>(&operand));
  for (uint32_t i = 0; i < info.sizes; ++i)
    arguments.push_back(const_cast<int64_t *>(sizes + i));
  void *error = mailbox;
  arguments.insert(arguments.end(), {&scratch, &error});
  Result result = driver->launchKernel(functions[kernel], unsigned(blocks), 1, 1, info.threads, 1, 1, 0, stream,
                                       arguments.data(), nullptr);
  if (result != kSuccess)
    failure = driver.check(result, text(name, ": launching ", kernelName, location.empty() ? "" : " at ", location));
}

bool Gpu::read(void *to, const void *from, size_t bytes) {
  toHost(to, from, bytes);
  // Even after a failure: the driver may still be writing.
  return works(driver->streamSynchronize(stream), "waiting") && failure.ok();
}

int64_t Gpu::takeError() {
  int64_t error = kNoError;
  if (!read(&error, mailbox, sizeof error))
    return kNoError;
  if (error != kNoError)
    toGpu(mailbox, &kNoError, sizeof kNoError);
  return error;
}

void Gpu::wait() {
  if (stream)
    works(driver->streamSynchronize(stream), "waiting");
}

Status Gpu::finish() {
  wait();
  return std::exchange(failure, Status());
}

} // namespace burin::rt::gpu
