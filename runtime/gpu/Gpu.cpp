#include "runtime/gpu/Gpu.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <charconv>
#include <cstring>

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

/// The steps of the largest plan that can report errors.
static uint32_t errorSlotsOf(const Artifact &a) {
  size_t most = 1;
  for (const Plan &plan : a.plans)
    most =
        std::max<size_t>(most, std::ranges::count_if(plan.steps, [&](const Step &step) { return canFail(a, step); }));
  return uint32_t(most);
}

Status Gpu::load() {
  if (!makeStreams() || !works(driver->moduleLoadData(&module, program->gpuCode(*code)), "loading the code"))
    return {};
  for (const GpuKernel &kernel : code->gpuKernels) {
    Function &function = functions.emplace_back();
    if (!works(driver->moduleGetFunction(&function, module, kernel.entry.c_str()), "finding a kernel"))
      return {};
  }
  const uint64_t bytes = program->weightBytes();
  weightMemory = static_cast<std::byte *>(allocate(std::max<uint64_t>(bytes, 1)));
  if (weightMemory && bytes)
    toGpu(weightMemory, program->weightData(), bytes); // not pinned, which makes the call wait
  makeMailbox();
  return {};
}

bool Gpu::makeStreams() {
  for (Stream &lane : streams)
    if (!works(driver->streamCreate(&lane, /*CU_STREAM_NON_BLOCKING*/ 1), "making a stream"))
      return false;
  for (Event &event : events)
    if (!works(driver->eventCreate(&event, /*CU_EVENT_DISABLE_TIMING*/ 2), "making an event"))
      return false;
  current = stream();
  return true;
}

void Gpu::makeMailbox() {
  slots = errorSlotsOf(program->artifact());
  mailbox = static_cast<std::byte *>(allocate((slots + 1) * sizeof(int64_t)));
  letters = static_cast<int64_t *>(allocatePinned((2 * slots + 1) * sizeof(int64_t)));
  if (!mailbox || !letters)
    return;
  std::fill_n(letters, 2 * slots, kNoError);
  hasErrors = true; // until the first run begins
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
    if (stream())
      driver->streamSynchronize(stream());
    if (letters)
      driver->memFreeHost(letters);
    for (Event event : events)
      if (event)
        driver->eventDestroy(event);
    for (Stream lane : streams)
      if (lane)
        driver->streamDestroy(lane);
    if (module)
      driver->moduleUnload(module);
  }
  driver->primaryCtxRelease(device);
}

Gpu::Use::Use(Gpu &gpu) : gpu(gpu), pushed(gpu.works(gpu.driver->ctxPush(gpu.context), "entering its context")) {}
Gpu::Use::~Use() {
  Context popped = nullptr;
  if (pushed)
    gpu.driver->ctxPop(&popped); // nothing that a caller could do about a failure
}

bool Gpu::works(Result result, const char *what) {
  if (result != kSuccess && failure.ok())
    failure = driver.check(result, text(name, ": ", what));
  return result == kSuccess;
}

void *Gpu::allocate(size_t bytes) {
  if (!failure.ok())
    return nullptr;
  DevicePointer memory = 0;
  Result result = driver->memAllocAsync(&memory, bytes, stream());
  if (result != kSuccess)
    failure = driver.check(result, text(name, ": allocating ", bytes, " bytes"));
  ++allocations;
  return result == kSuccess ? reinterpret_cast<void *>(memory) : nullptr;
}

void Gpu::release(void *data) { works(driver->memFreeAsync(address(data), stream()), "freeing memory"); }

void *Gpu::allocatePinned(size_t bytes) {
  if (!failure.ok())
    return nullptr;
  void *memory = nullptr;
  Result result = driver->memHostAlloc(&memory, bytes, 0);
  if (result != kSuccess)
    failure = driver.check(result, text(name, ": allocating ", bytes, " bytes of pinned memory"));
  ++allocations;
  return result == kSuccess ? memory : nullptr;
}

void Gpu::releasePinned(void *data) { works(driver->memFreeHost(data), "freeing pinned memory"); }

void Gpu::toGpu(void *to, const void *from, size_t bytes) {
  if (failure.ok() && bytes)
    works(driver->copyToDevice(address(to), from, bytes, stream()), "copying to the GPU");
}
void Gpu::toHost(void *to, const void *from, size_t bytes) {
  if (failure.ok() && bytes)
    works(driver->copyToHost(to, address(from), bytes, stream()), "copying from the GPU");
}
void Gpu::copy(void *to, const void *from, size_t bytes) {
  if (failure.ok() && bytes)
    works(driver->copyWithin(address(to), address(from), bytes, stream()), "copying within the GPU");
}

void Gpu::launch(const Launch &launch, const std::string &location) {
  if (!failure.ok())
    return;
  const GpuKernel &info = code->gpuKernels[launch.kernel];
  const std::string &kernelName = program->artifact().kernels[launch.kernel].name;
  if (launch.blocks > INT32_MAX) {
    failure = {ErrorCode::InvalidArgument, text("cannot run: ", kernelName, " would need ", launch.blocks,
                                                " blocks, a GPU launches 2147483647\n  at ", location)};
    return;
  }
  arguments.clear();
  for (void *const &operand : launch.operands)
    arguments.push_back(const_cast<void **>(&operand));
  for (uint32_t i = 0; i < info.sizes; ++i)
    arguments.push_back(const_cast<int64_t *>(launch.sizes + i));
  void *scratch = launch.scratch;
  const bool reports = launch.errorSlot != kNoErrors;
  void *error = mailbox + (reports ? launch.errorSlot : 0) * sizeof(int64_t);
  arguments.insert(arguments.end(), {&scratch, &error});
  hasErrors |= reports;
  Result result = driver->launchKernel(functions[launch.kernel], unsigned(launch.blocks), 1, 1, info.threads, 1, 1, 0,
                                       current, arguments.data(), nullptr);
  if (result != kSuccess)
    failure = driver.check(result, text(name, ": launching ", kernelName, location.empty() ? "" : " at ", location));
}

void Gpu::fork(int lanes) {
  if (failure.ok())
    works(driver->eventRecord(events[0], stream()), "recording an event");
  for (int lane = 1; lane < lanes && failure.ok(); ++lane)
    works(driver->streamWaitEvent(streams[size_t(lane)], events[0], 0), "waiting for an event");
}

void Gpu::join(int lanes) {
  current = stream();
  for (size_t lane = 1; lane < size_t(lanes) && failure.ok(); ++lane)
    if (works(driver->eventRecord(events[lane], streams[lane]), "recording an event"))
      works(driver->streamWaitEvent(stream(), events[lane], 0), "waiting for an event");
}

void Gpu::fetchErrors() { toHost(letters, mailbox, slots * sizeof(int64_t)); }

std::span<const int64_t> Gpu::takeErrors() {
  std::span<const int64_t> fetched(letters, slots);
  hasErrors = std::ranges::any_of(fetched, [](int64_t error) { return error != kNoError; });
  return fetched;
}

void Gpu::begin() {
  if (hasErrors)
    toGpu(mailbox, letters + slots, slots * sizeof(int64_t));
  hasErrors = !failure.ok();
}

void Gpu::beginRecording() {
  if (failure.ok())
    works(driver->streamBeginCapture(stream(), /*CU_STREAM_CAPTURE_MODE_THREAD_LOCAL*/ 1), "recording");
}

std::unique_ptr<Recording> Gpu::endRecording() {
  Graph graph = nullptr;
  GraphExec executable = nullptr;
  works(driver->streamEndCapture(stream(), &graph), "recording");
  if (graph && failure.ok())
    works(driver->graphInstantiate(&executable, graph, 0), "preparing what was recorded");
  if (graph)
    works(driver->graphDestroy(graph), "preparing what was recorded");
  return executable ? std::make_unique<Recording>(*this, executable) : nullptr;
}

void Gpu::replay(const Recording &recording) {
  hasErrors |= recording.reports;
  if (failure.ok())
    works(driver->graphLaunch(recording.graph, stream()), "launching what was recorded");
}

Recording::Recording(Gpu &gpu, GraphExec graph)
    : gpu(gpu), graph(graph), allocations(gpu.allocations), reports(gpu.hasErrors) {}
Recording::~Recording() {
  Gpu::Use use(gpu);
  gpu.works(gpu.driver->graphExecDestroy(graph), "freeing what was recorded");
}
bool Recording::isCurrent() const { return allocations == gpu.allocations; }

bool Gpu::read(void *to, const void *from, size_t bytes) {
  toHost(letters + 2 * slots, from, bytes);
  if (!wait())
    return false;
  std::memcpy(to, letters + 2 * slots, bytes);
  return true;
}

bool Gpu::wait() {
  // Even after a failure: the driver may still be writing.
  return stream() && works(driver->streamSynchronize(stream()), "waiting") && failure.ok();
}

Status Gpu::finish() {
  if (!wait()) // lanes may not have been joined
    for (Stream lane : streams)
      if (lane)
        driver->streamSynchronize(lane);
  return std::exchange(failure, Status());
}

} // namespace burin::rt::gpu
