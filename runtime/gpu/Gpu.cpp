#include "runtime/gpu/Gpu.h"
#include "runtime/gpu/ErrorSlots.h"
#include "runtime/gpu/libraries/Ranges.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace burin::rt::gpu {

static constexpr int64_t kNoError = INT64_MAX;

static DevicePointer address(const void *data) { return reinterpret_cast<DevicePointer>(data); }

/// The largest number of slots that a function needs.
static uint32_t errorSlotsOf(const Artifact &a) {
  size_t most = 0;
  for (uint32_t i = 0; i < a.plans.size(); ++i)
    if (!a.plans[i].isPrivate)
      most = std::max(most, reportingSteps(a, i).size());
  return uint32_t(most);
}

Status Gpu::open(const Program &program, int ordinal, const StreamChoice &choice, std::unique_ptr<Gpu> &out) {
  std::unique_ptr<Gpu> gpu(new Gpu);
  gpu->program = &program;
  if (Status s = Device::open(ordinal, gpu->target); !s.ok())
    return s;
  Use use(*gpu);
  if (!gpu->failure.ok())
    return std::move(gpu->failure);
  Status s = gpu->start(choice);
  Status finished = gpu->finish();
  if (s.ok() && finished.ok())
    out = std::move(gpu);
  return !finished.ok() ? std::move(finished) : std::move(s);
}

Status Gpu::start(const StreamChoice &choice) {
  kind = choice.kind;
  const char *check = std::getenv("BURIN_CUDA_CHECK");
  isChecking = check && *check && *check != '0';
  if (kind == StreamChoice::Kind::Shared) {
    if (Status s = target->sharedLanes(lanes); !s.ok())
      return s;
  } else {
    lanes = &own;
    own.ownsFirst = kind == StreamChoice::Kind::Own;
    own.streams[0] = choice.given;
    if (Status s = target->makeLanes(own); !s.ok())
      return s;
  }
  current = stream();
  if (Status s = LoadedCode::open(*program, target, loaded); !s.ok())
    return s;
  if (std::ranges::any_of(program->artifact().plans, [](const Plan &plan) { return plan.isPrivate; }))
    conditionKernel = target->conditionKernel();
  openLibrary();
  slots = errorSlotsOf(program->artifact());
  mailbox = allocate(mailboxBytes(), Holder::Intermediate);
  letters = static_cast<int64_t *>(allocatePinned(letterBytes()));
  if (!mailbox || !letters)
    return {};
  std::vector<int64_t> none(slots, kNoError);
  toGpu(clean(), none.data(), slots * sizeof(int64_t)); // copied at once, since they are not pinned
  hasErrors = true;                                     // until the first run begins
  return {};
}

// Frees resources even if the driver reports an error, which may come from earlier work.
Gpu::~Gpu() {
  if (!target)
    return;
  Use use(*this);
  if (mailbox)
    target->release(mailbox, mailboxBytes(), Holder::Intermediate, stream());
  if (lanes && stream())
    driver()->streamSynchronize(stream());
  if (letters)
    target->releasePinned(letters, letterBytes());
  if (lanes == &own)
    target->freeLanes(own);
  library.reset();
  loaded.reset();
}

Gpu::Use::Use(Gpu &gpu)
    : gpu(gpu), pushed(gpu.works(gpu.driver()->ctxPush(gpu.target->context()), "entering its context")) {}
Gpu::Use::~Use() {
  Context popped = nullptr;
  if (pushed)
    gpu.driver()->ctxPop(&popped); // callers cannot handle a failure
}

bool Gpu::works(Result result, const char *what) {
  if (result != kSuccess && failure.ok())
    failure = target->check(result, what);
  return result == kSuccess;
}

void Gpu::enqueues(Result result, const char *what) {
  ++enqueued;
  lastKernels = nullptr;
  works(result, what);
}

bool Gpu::keep(Status status) {
  const bool ok = status.ok();
  if (!ok && failure.ok())
    failure = std::move(status);
  return ok;
}

void *Gpu::allocate(size_t bytes, Holder holder) {
  void *memory = nullptr;
  if (capturing && failure.ok())
    failure = {ErrorCode::InvalidArgument,
               text(target->name(),
                    ": the stream is being captured, and memory for these sizes is not there yet\n  run "
                    "once with them before")};
  if (failure.ok())
    keep(target->allocate(bytes, holder, stream(), memory));
  ++allocations;
  return memory;
}

void Gpu::release(void *data, size_t bytes, Holder holder) { target->release(data, bytes, holder, stream()); }

void *Gpu::allocatePinned(size_t bytes) {
  void *memory = nullptr;
  if (failure.ok())
    keep(target->allocatePinned(bytes, memory));
  ++allocations;
  return memory;
}

void Gpu::releasePinned(void *data, size_t bytes) { target->releasePinned(data, bytes); }

void Gpu::toGpu(void *to, const void *from, size_t bytes) {
  if (failure.ok() && bytes)
    enqueues(driver()->copyToDevice(address(to), from, bytes, stream()), "copying to the GPU");
}
void Gpu::toHost(void *to, const void *from, size_t bytes) {
  if (failure.ok() && bytes)
    enqueues(driver()->copyToHost(to, address(from), bytes, stream()), "copying from the GPU");
}
void Gpu::copy(void *to, const void *from, size_t bytes) {
  if (failure.ok() && bytes)
    enqueues(driver()->copyWithin(address(to), address(from), bytes, stream()), "copying within the GPU");
}
void Gpu::copySurely(void *to, const void *from, size_t bytes) {
  if (!failure.ok() || !bytes)
    return;
  Result result = kSuccess;
  for (int i = 0; i < kTries; ++i)
    if (result = driver()->copyWithin(address(to), address(from), bytes, stream()); result == kSuccess)
      return;
  works(result, "copying within the GPU");
}
void Gpu::zero(void *to, size_t bytes) {
  if (failure.ok() && bytes)
    enqueues(driver()->fill(address(to), 0, bytes, stream()), "filling memory");
}

void Gpu::launch(const Launch &launch, const std::string &location) {
  if (!failure.ok())
    return;
  const GpuKernel &info = loaded->code().gpuKernels[launch.kernel];
  const std::string &kernelName = program->artifact().kernels[launch.kernel].name;
  usedLibrary = false;
  if (const Product *product = library ? productOf(program->artifact(), launch.kernel) : nullptr)
    if (multiply(*product, launch, location.empty() ? kernelName : text(kernelName, " at ", location)))
      return;
  int64_t blocks = launch.blocks;
  if (info.blocksPerMultiprocessor)
    blocks = std::min(blocks, int64_t(info.blocksPerMultiprocessor) * target->info().multiprocessors);
  if (blocks > INT32_MAX) {
    failure = {ErrorCode::InvalidArgument, text("cannot run: ", kernelName, " would need ", blocks,
                                                " blocks, a GPU launches 2147483647\n  at ", location)};
    return;
  }
  arguments.clear();
  for (void *const &operand : launch.operands)
    arguments.push_back(static_cast<void *>(const_cast<void **>(&operand)));
  for (uint32_t i = 0; i < info.sizes; ++i)
    arguments.push_back(const_cast<int64_t *>(launch.sizes + i));
  maps.resize(info.maps.size());
  for (size_t i = 0; i < maps.size(); ++i) {
    const TensorMap &map = info.maps[i];
    if (!keep(encodeMap(*target, map, launch.operands[map.operand], launch.sizes, maps[i])))
      return;
    arguments.push_back(&maps[i]);
  }
  void *scratch = launch.scratch;
  const bool reports = launch.errorSlot != kNoErrors;
  void *error = static_cast<int64_t *>(mailbox) + (reports ? launch.errorSlot : 0);
  arguments.insert(arguments.end(), {static_cast<void *>(&scratch), static_cast<void *>(&error)});
  hasErrors |= reports;
  ++enqueued;
  Range range(!Range::isUsed() ? "" : location.empty() ? kernelName : text(kernelName, " at ", location));
  const bool hasGroups = info.group.index != LaunchSize::kNone || info.group.value;
  const int64_t size = info.group.index == LaunchSize::kNone ? info.group.value : launch.sizes[info.group.index];
  const int64_t group = hasGroups ? std::max<int64_t>(size, 1) : blocks;
  Result result = kSuccess;
  int64_t first = 0;
  if (hasGroups)
    arguments.push_back(&first);
  for (; first < blocks && result == kSuccess; first += group)
    result = launchBlocks(launch.kernel, unsigned(std::min(group, blocks - first)));
  if (result == kSuccess && isChecking && !capturing)
    result = driver()->streamSynchronize(current);
  if (result != kSuccess)
    failure = target->check(result, text("launching ", kernelName, location.empty() ? "" : " at ", location));
}

/// Launches a kernel with the arguments that are set. It may begin before the kernel ahead of it in the same stream has
/// ended, if nothing else lies between, since other work would not be waited for in that way.
Result Gpu::launchBlocks(uint32_t kernel, unsigned blocks) {
  const GpuKernel &info = loaded->code().gpuKernels[kernel];
  const Function function = loaded->function(kernel);
  if (!loaded->canStartEarly() || std::exchange(lastKernels, current) != current)
    return driver()->launchKernel(function, blocks, 1, 1, info.threads, 1, 1, info.sharedBytes, current,
                                  arguments.data(), nullptr);
  const LaunchAttribute early;
  const LaunchConfig config{.gridX = blocks,
                            .blockX = info.threads,
                            .sharedBytes = info.sharedBytes,
                            .stream = current,
                            .attributes = &early,
                            .attributeCount = 1};
  return driver()->launchKernelEx(&config, function, arguments.data(), nullptr);
}

void Gpu::fork() {
  if (failure.ok())
    works(driver()->eventRecord(events()[kFork], stream()), "recording an event");
}

void Gpu::mark(int lane) {
  if (failure.ok())
    works(driver()->eventRecord(events()[size_t(lane)], streams()[size_t(lane)]), "recording an event");
}

void Gpu::order(int lane, int after) {
  lastKernels = nullptr;
  if (failure.ok())
    works(driver()->streamWaitEvent(streams()[size_t(lane)], events()[size_t(after)], 0), "waiting for an event");
}

void Gpu::join(unsigned usedLanes) {
  current = stream();
  for (int lane = 1; lane < kLanes; ++lane)
    if (usedLanes >> lane & 1) {
      mark(lane);
      order(0, lane);
    }
}

// ---- errors of kernels

void Gpu::fetchErrors() { toHost(letters, mailbox, slots * sizeof(int64_t)); }

std::span<const int64_t> Gpu::takeErrors() {
  std::span<const int64_t> fetched(letters, slots);
  hasErrors = std::ranges::any_of(fetched, [](int64_t error) { return error != kNoError; });
  return fetched;
}

void Gpu::begin() {
  capturing = false;
  lastKernels = nullptr;
  if (kind == StreamChoice::Kind::Given && failure.ok()) {
    int state = 0;
    works(driver()->streamIsCapturing(stream(), &state), "asking whether the stream is captured");
    capturing = state != 0;
  }
  if (hasErrors)
    copy(mailbox, clean(), slots * sizeof(int64_t));
  hasErrors = !failure.ok();
}

Report::~Report() {
  if (!letters && !done)
    return;
  Device::Use use(*device);
  if (isEnqueued && !isCaptured)
    (*device)->eventSynchronize(done);
  if (letters)
    device->releasePinned(letters, slots * sizeof(int64_t));
  if (done)
    (*device)->eventDestroy(done);
}

Status Report::prepare() {
  void *memory = nullptr;
  if (Status s = device->allocatePinned(slots * sizeof(int64_t), memory); !s.ok())
    return s;
  letters = static_cast<int64_t *>(memory);
  std::fill_n(letters, slots, kNoError);
  return device->check((*device)->eventCreate(&done, /*CU_EVENT_DISABLE_TIMING*/ 2), "making an event");
}

Status Report::wait(std::span<const int64_t> &out) {
  Device::Use use(*device);
  if (Status s = use.status(); !s.ok())
    return s;
  out = {letters, slots};
  if (isCaptured)
    return {};
  return device->check((*device)->eventSynchronize(done), "waiting for a run");
}

std::unique_ptr<Report> Gpu::reportErrors() {
  auto report = std::make_unique<Report>(target, slots);
  if (!failure.ok() || !keep(report->prepare()))
    return nullptr;
  toHost(report->letters, mailbox, slots * sizeof(int64_t));
  report->isCaptured = capturing;
  report->isEnqueued = failure.ok() && works(driver()->eventRecord(report->done, stream()), "recording an event");
  if (!report->isEnqueued)
    driver()->streamSynchronize(stream()); // the driver may be writing to the report
  hasErrors = true;                        // not fetched yet
  return report->isEnqueued ? std::move(report) : nullptr;
}

// ---- recording

void Gpu::beginRecording() {
  if (!failure.ok())
    return;
  recordingLock = std::unique_lock(target->recording);
  if (!keep(target->recordingLanes(0, recorder)))
    return;
  hasBodies = false;
  current = stream();
  lastKernels = nullptr;
  works(driver()->streamBeginCapture(stream(), /*CU_STREAM_CAPTURE_MODE_THREAD_LOCAL*/ 1), "recording");
}

std::unique_ptr<Recording> Gpu::endRecording() {
  Graph graph = nullptr;
  GraphExec executable = nullptr;
  if (recorder)
    works(driver()->streamEndCapture(stream(), &graph), "recording");
  if (graph && failure.ok())
    works(driver()->graphInstantiate(&executable, graph, 0), "preparing what was recorded");
  if (graph && !(executable && hasBodies)) { // a graph with conditional nodes has one executable, and must outlive it
    works(driver()->graphDestroy(graph), "preparing what was recorded");
    graph = nullptr;
  }
  recorder = nullptr;
  if (recordingLock.owns_lock())
    recordingLock.unlock();
  current = stream();
  return executable ? std::make_unique<Recording>(*this, executable, graph) : nullptr;
}

void Gpu::replay(const Recording &recording) {
  hasErrors |= recording.reports;
  if (failure.ok())
    works(driver()->graphLaunch(recording.graph, stream()), "launching what was recorded");
}

Recording::Recording(Gpu &gpu, GraphExec graph, Graph source)
    : gpu(gpu), graph(graph), source(source), allocations(gpu.allocations), reports(gpu.hasErrors) {}
Recording::~Recording() {
  Gpu::Use use(gpu);
  if (gpu.kind != StreamChoice::Kind::Own) // the graph may be running
    gpu.driver()->streamSynchronize(gpu.stream());
  gpu.works(gpu.driver()->graphExecDestroy(graph), "freeing what was recorded");
  if (source)
    gpu.works(gpu.driver()->graphDestroy(source), "freeing what was recorded");
}
bool Recording::isCurrent() const { return allocations == gpu.allocations; }

// ---- waiting

bool Gpu::read(void *to, const void *from, size_t bytes) {
  if (capturing && failure.ok())
    failure = {ErrorCode::InvalidArgument,
               text(target->name(), ": the stream is being captured, and the run depends on a value that it computes")};
  const bool isSmall = bytes <= sizeof(int64_t);
  toHost(isSmall ? letters + slots : to, from, bytes); // unpinned memory works, too, but slowly
  if (!wait())
    return false;
  if (isSmall)
    std::memcpy(to, letters + slots, bytes);
  return true;
}

bool Gpu::wait() {
  // Also after a failure, because the driver may still be writing to host memory.
  return lanes && stream() && works(driver()->streamSynchronize(stream()), "waiting") && failure.ok();
}

Status Gpu::finish() {
  if (lanes && !capturing && !wait()) // lanes may not have been joined
    for (Stream lane : lanes->streams)
      if (lane)
        driver()->streamSynchronize(lane);
  return std::exchange(failure, Status());
}

Status Gpu::leave() { return failure.ok() ? Status() : finish(); }

Status Gpu::finishAtomic() {
  if (!failure.ok())
    return finish();
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i)
    if (driver()->streamSynchronize(stream()) == kSuccess)
      return {};
  return finish();
}

} // namespace burin::rt::gpu
