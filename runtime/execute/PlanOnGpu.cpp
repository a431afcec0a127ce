// The parts of PlanRunner that differ on a GPU. Inputs and outputs in host memory are copied through pinned memory.
// Kernels are launched in the order of the plan, and their errors are checked when a value is read. A run without steps
// that need the host is recorded as a CUDA graph when it uses the same memory for the second time, and replayed from
// then on; branches and loops become conditional nodes where the driver has them.
#include "runtime/execute/PlanRunner.h"
#include "runtime/gpu/libraries/Ranges.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace burin::rt {

// Limit of recorded launches: they take driver memory, and long sequences gain little.
static constexpr int64_t kMostRecorded = 20'000;

/// Whether a run of the plan can be one CUDA graph: no step needs the host, and steps of a loop of known length report
/// no errors, since a slot has no iteration.
static bool canBeGraph(const Program &program, uint32_t index, bool hasConditions) {
  const Artifact &a = program.artifact();
  const Plan &plan = a.plans[index];
  auto isRepeated = [&](uint32_t i) {
    return std::ranges::any_of(plan.loops, [&](const Loop &l) { return l.firstStep <= i && i <= l.lastStep; });
  };
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    const Step &step = plan.steps[i];
    const bool needsCondition = step.kind == Step::Kind::Branch || step.kind == Step::Kind::While;
    if ((canFail(a, step) && isRepeated(i)) || step.kind == Step::Kind::Host || (needsCondition && !hasConditions) ||
        std::ranges::any_of(step.plans, [&](uint32_t callee) { return !canBeGraph(program, callee, hasConditions); }))
      return false;
  }
  return program.stages(index).list.size() == 1;
}

void PlanRunner::prepareForGpu() {
  const Artifact &a = context.program->artifact();
  onGpu.slots = gpu::reportingSteps(a, index);
  onGpu.slotOf.assign(plan.steps.size(), gpu::Gpu::kNoErrors);
  uint32_t slot = 0;
  bool hasFunctions = false;
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    const Step &step = plan.steps[i];
    if (canFail(a, step))
      onGpu.slotOf[i] = slot++;
    else if (!step.plans.empty())
      onGpu.slotOf[i] = slot, hasFunctions = true;
    for (uint32_t callee : step.plans)
      slot += uint32_t(gpu::reportingSteps(a, callee).size());
  }
  constexpr size_t kMostSlots = 64; // one thread reads all of them before each decision
  onGpu.isRecordable = canBeGraph(*context.program, index, context.gpu->hasConditions()) &&
                       !(hasFunctions && onGpu.slots.size() > kMostSlots);
  if (plan.isPrivate)
    return;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    onGpu.inputs.emplace_back(context.runMemory);
    onGpu.stagedInputs.emplace_back(context.exchange);
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i)
    onGpu.outputs.emplace_back(context.runMemory);
  onGpu.inputAt.resize(plan.inputs.size());
  onGpu.outputAt.resize(plan.outputs.size());
}

bool PlanRunner::canRecord(ShapeBinding &binding) {
  if (!onGpu.isRecordable || context.profile.step || context.gpu->checksLaunches())
    return false;
  const int64_t launches = prepareLaunches(binding);
  return launches >= 0 && launches <= kMostRecorded && !context.gpu->isCaptured();
}

int64_t PlanRunner::prepareLaunches(ShapeBinding &binding) {
  if (binding.launches >= 0)
    return binding.launches;
  std::vector<int64_t> ofSteps;
  for (const BoundStep &step : binding.steps()) {
    const int64_t *symbols = step.sizes;
    int64_t count = 1;
    for (uint32_t callee : plan.steps[step.index].plans) {
      PlanRunner &runner = *context.runners[callee];
      const size_t own = runner.plan.symbols.size();
      if (!runner.enter({symbols, own}).ok())
        return -1;
      const int64_t inside = runner.prepareLaunches(runner.current(0));
      if (inside < 0)
        return -1;
      symbols += own;
      count = std::min(count + 2 * inside, kMostRecorded + 1); // a loop contains its functions twice
    }
    ofSteps.push_back(count);
  }
  auto sum = [&](size_t first, size_t end) {
    int64_t all = 0;
    for (size_t i = first; i < end; ++i)
      all = std::min(all + ofSteps[i], kMostRecorded + 1);
    return all;
  };
  int64_t launches = sum(0, ofSteps.size());
  for (const BoundLoop &loop : binding.loops()) {
    int64_t inLoop = 0;
    if (__builtin_mul_overflow(loop.iterations, sum(loop.first, loop.end), &inLoop))
      inLoop = kMostRecorded + 1;
    launches += std::min(inLoop, kMostRecorded + 1);
  }
  binding.launches = std::min(launches, kMostRecorded + 1);
  return binding.launches;
}

bool PlanRunner::canUpdateInPlace(std::span<const TensorView> inputs) {
  return onGpu.slots.empty() && bind(inputs).ok() && canRecord(current(0));
}

// ---- a run

Status PlanRunner::runOnGpu(std::span<const TensorView> inputs, std::span<TensorView> outputs, GpuRun &mode) {
  gpu::Gpu::Use use(*context.gpu);
  gpu::Range range(plan.name);
  Status run = startOnGpu(inputs, outputs, mode);
  if (run.ok())
    run = onGpu.isRecordable ? runRecorded(inputs, outputs) : runStages(inputs, outputs);
  if (run.ok() && !onGpu.isRecordable)
    fetchResults(outputs);
  return endOnGpu(std::move(run), outputs, mode);
}

Status PlanRunner::startOnGpu(std::span<const TensorView> inputs, std::span<TensorView> outputs, const GpuRun &mode) {
  context.gpu->begin();
  auto isThere = [&](const TensorView &view) { return isOnGpu(view); };
  const bool areOutputsThere = std::ranges::all_of(outputs, isThere);
  onGpu.leaves = mode.mayLeave && areOutputsThere;
  onGpu.isAtomic = mode.isAtomic;
  onGpu.isOwn = false;
  onGpu.given.assign(inputs.begin(), inputs.end());
  if (context.gpu->isCaptured() && !(onGpu.leaves && std::ranges::all_of(inputs, isThere)))
    return {ErrorCode::InvalidArgument,
            "cannot run: while the stream is being captured, inputs and outputs must be on the GPU"};
  return {};
}

Status PlanRunner::endOnGpu(Status run, std::span<TensorView> outputs, GpuRun &mode) {
  const bool mayReport = run.ok() && !onGpu.slots.empty();
  if (mayReport && onGpu.leaves)
    mode.report = context.gpu->reportErrors();
  else if (mayReport)
    context.gpu->fetchErrors();
  Status finished = onGpu.leaves && run.ok() ? context.gpu->leave()
                    : onGpu.isAtomic         ? context.gpu->finishAtomic()
                                             : context.gpu->finish();
  if (!finished.ok()) { // the driver error has the cause, the run's error the context
    bool isMemory = finished.code() == ErrorCode::OutOfMemory && run.code() == ErrorCode::OutOfMemory;
    return isMemory ? Status(ErrorCode::OutOfMemory, text(finished.message(), "\n  ", run.message()))
                    : std::move(finished);
  }
  if (run.ok() && !onGpu.leaves) {
    takeErrors(0);
    run = outcome();
  }
  if (run.ok()) // the caller's memory is written only when nothing can fail any more
    for (uint32_t i = 0; i < outputs.size(); ++i)
      if (uint64_t bytes = outputBytes(i); bytes && !isOnGpu(outputs[i]) && !isOurs(i, outputs[i]))
        std::memcpy(outputs[i].data, outputMemory[i].data(), bytes);
  return run;
}

/// The recording for runs with this memory, moved to the front.
ShapeBinding::Recorded &PlanRunner::recorded(ShapeBinding &binding, std::span<const TensorView> outputs) {
  constexpr size_t kMost = 4;
  std::vector<void *> &memory = onGpu.memory;
  memory.assign(onGpu.inputAt.begin(), onGpu.inputAt.end());
  for (uint32_t i = 0; i < outputs.size(); ++i)
    memory.insert(memory.end(), {onGpu.outputAt[i], isOnGpu(outputs[i]) ? nullptr : outputMemory[i].data()});
  std::vector<ShapeBinding::Recorded> &all = binding.recorded;
  auto known = std::ranges::find(all, memory, &ShapeBinding::Recorded::memory);
  if (known == all.end()) {
    if (all.size() == kMost) {
      all.pop_back();
      ++binding.evictions;
    }
    known = all.insert(all.end(), {memory, 0, nullptr});
  }
  std::rotate(all.begin(), known, known + 1);
  if (all.front().recording && !all.front().recording->isCurrent())
    all.front().recording.reset();
  return all.front();
}

/// Runs a plan that can be a CUDA graph.
Status PlanRunner::runRecorded(std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  if (Status s = prepare(inputs, outputs); !s.ok())
    return s;
  ShapeBinding &binding = current(0);
  auto isThere = [&](const TensorView &view) { return isOnGpu(view); };
  const bool mayRecord = canRecord(binding) && (!onGpu.leaves || std::ranges::all_of(inputs, isThere));
  constexpr int64_t kMostEvictions = 4;
  onGpu.isOwn = mayRecord && binding.evictions >= kMostEvictions;
  if (Status s = prepareStage(0, inputs, outputs); !s.ok())
    return s;
  ShapeBinding::Recorded *known = mayRecord ? &recorded(binding, outputs) : nullptr;
  copyIn();
  if (known && known->recording) {
    error.clear();
    failure = {};
    context.gpu->replay(*known->recording);
    copyOut(outputs);
    return {};
  }
  const bool records = known && (known->runs++ > 0 || onGpu.isAtomic);
  if (records)
    context.gpu->beginRecording();
  sendInputs();
  Status run = executeStage(binding);
  fetchResults(outputs);
  if (records) {
    known->recording = context.gpu->endRecording();
    if (known->recording)
      context.gpu->replay(*known->recording);
  }
  copyOut(outputs);
  return run;
}

void PlanRunner::copyIn() {
  for (uint32_t i = 0; onGpu.isOwn && i < plan.callerInputs(); ++i)
    if (isOnGpu(onGpu.given[i]))
      context.gpu->copy(onGpu.inputAt[i], onGpu.given[i].data, current(0).inputBytes(i));
}

/// Copies outputs to the caller's memory; must not fail if states have been updated.
void PlanRunner::copyOut(std::span<const TensorView> outputs) {
  for (uint32_t i = 0; onGpu.isOwn && i < plan.callerOutputs(); ++i)
    if (isOnGpu(outputs[i]) && outputs[i].data != onGpu.outputAt[i])
      onGpu.isAtomic ? context.gpu->copySurely(outputs[i].data, onGpu.outputAt[i], outputBytes(i))
                     : context.gpu->copy(outputs[i].data, onGpu.outputAt[i], outputBytes(i));
}

// ---- inputs and outputs

void PlanRunner::checkDevices(std::span<const TensorView> views, std::span<const TensorInfo> infos, const char *what,
                              ErrorList &problems) const {
  const std::string here = context.gpu ? context.gpu->device()->name() : "cpu";
  for (size_t i = 0; i < views.size(); ++i)
    if (isOnGpu(views[i]) && (!context.gpu || views[i].device.index != context.gpu->ordinal()))
      problems.add(what, " ", i, " (", infos[i].name, ") is on cuda:", int(views[i].device.index),
                   ", the session runs on ", here);
}

/// Copies inputs in host memory to pinned memory, since the caller may change them after the call returns. For a run
/// that returns early, the driver reads them at once instead.
Status PlanRunner::stageInputs(std::span<const TensorView> inputs) {
  auto lacks = [](GrowingMemory &memory, uint64_t bytes) { return !memory.reserve(std::max<uint64_t>(bytes, 1)); };
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    onGpu.inputAt[i] = inputs[i].data;
    const bool isThere = isOnGpu(inputs[i]);
    if (isThere && !(onGpu.isOwn && i < plan.callerInputs()))
      continue;
    const uint64_t bytes = current(0).inputBytes(i);
    const bool isStaged = !isThere && !onGpu.leaves;
    if (lacks(onGpu.inputs[i], bytes) || (isStaged && lacks(onGpu.stagedInputs[i], bytes)))
      return {ErrorCode::OutOfMemory, text("no memory for ", bytes, " bytes of input ", i)};
    if (bytes && isStaged)
      std::memcpy(onGpu.stagedInputs[i].data(), inputs[i].data, bytes);
    onGpu.inputAt[i] = onGpu.inputs[i].data();
  }
  return {};
}

Status PlanRunner::setOperandsOnGpu(size_t stage, std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  ShapeBinding &binding = current(stage);
  if (stage == 0)
    if (Status s = stageInputs(inputs); !s.ok())
      return s;
  for (uint32_t i = 0; i < inputs.size(); ++i)
    binding.setInput(i, onGpu.inputAt[i]);
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    if (pieces.ofOutput[i] > stage)
      continue;
    TensorView &view = outputs[i];
    if (pieces.ofOutput[i] == stage) {
      const uint64_t bytes = std::max<uint64_t>(binding.outputBytes(i), 1);
      const bool isThere = isOnGpu(view), isSessions = !view.data || isOurs(i, view);
      const bool usesOwn = isSessions || !isThere || (onGpu.isOwn && i < plan.callerOutputs());
      if ((usesOwn && !onGpu.outputs[i].reserve(bytes)) || (!isThere && !outputMemory[i].reserve(bytes)))
        return {ErrorCode::OutOfMemory, text("no memory for ", bytes, " bytes of output ", i)};
      onGpu.outputAt[i] = usesOwn ? onGpu.outputs[i].data() : view.data;
      if (isSessions) {
        std::span<const int64_t> shape = binding.outputShape(i);
        view = {isThere ? onGpu.outputs[i].data() : outputMemory[i].data(), shape.data(), uint32_t(shape.size()),
                plan.outputs[i].dtype, view.device};
      }
    }
    binding.setOutput(i, onGpu.outputAt[i]);
  }
  return {};
}

void PlanRunner::sendInputs() {
  for (uint32_t i = 0; i < plan.inputs.size(); ++i)
    if (!isOnGpu(onGpu.given[i]))
      context.gpu->toGpu(onGpu.inputAt[i], onGpu.leaves ? onGpu.given[i].data : onGpu.stagedInputs[i].data(),
                         current(0).inputBytes(i));
}

void PlanRunner::fetchResults(std::span<const TensorView> outputs) {
  for (uint32_t i = 0; i < outputs.size(); ++i)
    if (!isOnGpu(outputs[i]))
      context.gpu->toHost(outputMemory[i].data(), onGpu.outputAt[i], outputBytes(i));
}

// ---- steps

void RunContext::reportNote() const {
  const std::string note = gpu->takeNote();
  if (note.empty())
    return;
  if (logger.log)
    logger.log(logger.ctx, 1, note.c_str());
  const char *topics = std::getenv("BURIN_LOG");
  if (topics && std::strstr(topics, "provider"))
    std::fprintf(stderr, "burin: %s\n", note.c_str());
}

void PlanRunner::launch(const ShapeBinding &binding, const BoundStep &step, void *const *operands, int lane) {
  const Step &info = plan.steps[step.index];
  std::byte *scratch = context.scratch.data() + uint64_t(lane) * binding.scratchBytes();
  context.gpu->launch({.kernel = info.kernel,
                       .operands = {operands, info.operands.size()},
                       .sizes = step.sizes,
                       .blocks = step.tasks,
                       .scratch = scratch,
                       .errorSlot = canFail(context.program->artifact(), info)
                                        ? onGpu.firstSlot + onGpu.slotOf[step.index]
                                        : gpu::Gpu::kNoErrors},
                      context.program->artifact().locations[info.location]);
  context.reportNote();
  if (context.profile.step)
    context.gpu->wait();
}

/// A group of steps. Groups that follow each other are ordered by what their steps touch: see LaneOrder.
void PlanRunner::launchSideBySide(const ShapeBinding &binding, std::span<const BoundStep> steps) {
  static_assert(gpu::Gpu::kLanes <= LaneOrder::kMostLanes);
  gpu::Gpu &gpu = *context.gpu;
  if (!onGpu.usedLanes)
    gpu.fork();
  unsigned awaited = 0;
  auto forLanes = [](unsigned lanes, auto act) {
    for (int lane = 0; lane < gpu::Gpu::kLanes; ++lane)
      if (lanes >> lane & 1)
        act(lane);
  };
  for (const BoundStep &step : steps)
    awaited |= step.lane.waits;
  forLanes(awaited, [&](int lane) { gpu.mark(lane); });
  for (const BoundStep &step : steps) { // before any of them is launched
    if (step.lane.waits & LaneOrder::kFork)
      gpu.order(step.lane.lane, gpu::Gpu::kFork);
    forLanes(step.lane.waits, [&](int lane) { gpu.order(step.lane.lane, lane); });
    onGpu.usedLanes |= 1u << step.lane.lane;
  }
  for (const BoundStep &step : steps) {
    gpu.useLane(step.lane.lane);
    launch(binding, step, step.operands, step.lane.lane);
  }
  const BoundStep *next = steps.data() + steps.size();
  if (next == std::to_address(binding.steps().end()) || next->together == 1)
    gpu.join(std::exchange(onGpu.usedLanes, 0));
  else
    gpu.useLane(0);
}

void PlanRunner::collectErrors(int64_t iteration) {
  if (!context.gpu || context.gpu->isInGraph() || !context.gpu->mayHaveErrors())
    return;
  context.gpu->fetchErrors();
  if (context.gpu->wait())
    takeErrors(iteration);
}

void PlanRunner::takeErrors(int64_t iteration) {
  if (onGpu.slots.empty())
    return;
  const Artifact &a = context.program->artifact();
  std::span<const int64_t> found = context.gpu->takeErrors().subspan(onGpu.firstSlot);
  for (size_t slot = 0; slot < onGpu.slots.size(); ++slot) {
    const auto [in, step] = onGpu.slots[slot];
    if (found[slot] == DataError::kNone)
      continue;
    if (in == index)
      error.add(step, iteration, found[slot]);
    else if (!error.any() && failure.ok()) // of a function in a CUDA graph
      failure = dataErrorOf(a, a.plans[in], step, found[slot]);
  }
}

Status PlanRunner::copyToHost(void *to, const void *from, size_t bytes, bool fromGpu) {
  if (!context.gpu || !fromGpu)
    std::memcpy(to, from, bytes);
  else if (!context.gpu->read(to, from, bytes))
    return {ErrorCode::Internal, "the GPU has failed"}; // the end of the run reports the first error of the driver
  return {};
}

} // namespace burin::rt
