// What is different where a plan runs on a GPU: inputs and outputs are the caller's, in the memory of the process, and
// are copied through memory that the GPU can reach; kernels are launched in the order of the plan, and what they report
// is looked at when a value is read. A run in which nothing depends on a computed value is recorded the second time,
// and replayed from then on.
#include "runtime/execute/PlanRunner.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <cstring>

namespace burin::rt {

// Recorded launches take memory of the driver, and as many of them one after the other gain little.
static constexpr int64_t kMostRecorded = 20'000;

void PlanRunner::prepareForGpu() {
  const Artifact &a = context.program->artifact();
  onGpu.slotOf.assign(plan.steps.size(), gpu::Gpu::kNoErrors);
  for (uint32_t i = 0; i < plan.steps.size(); ++i)
    if (canFail(a, plan.steps[i])) {
      onGpu.slotOf[i] = uint32_t(onGpu.slotSteps.size());
      onGpu.slotSteps.push_back(i);
    }
  if (plan.isPrivate)
    return;
  auto isKernel = [](const Step &step) { return step.kind == Step::Kind::Kernel; };
  auto failsInLoop = [&](uint32_t i) {
    return std::ranges::any_of(plan.loops, [&](const Loop &l) { return l.firstStep <= i && i <= l.lastStep; });
  };
  onGpu.isRecordable = stages.size() == 1 && std::ranges::all_of(plan.steps, isKernel) &&
                       std::ranges::none_of(onGpu.slotSteps, failsInLoop);
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    onGpu.inputs.emplace_back(context.runMemory);
    onGpu.stagedInputs.emplace_back(context.exchange);
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i)
    onGpu.outputs.emplace_back(context.runMemory);
  onGpu.outputPlace.assign(plan.outputs.size(), OnGpu::kNone);
  for (size_t i = 0; i < plan.stateOutputs.size(); ++i) {
    const StateOutput &output = plan.stateOutputs[i];
    if (output.update != StateOutput::Update::InPlace)
      continue;
    auto input = std::ranges::find(plan.stateInputs, output.state);
    onGpu.outputPlace[plan.callerOutputs() + i] =
        uint32_t(plan.callerInputs() + size_t(input - plan.stateInputs.begin()));
  }
}

bool PlanRunner::canRecord(const ShapeBinding &binding) const {
  int64_t launches = int64_t(binding.steps().size());
  for (const BoundLoop &loop : binding.loops())
    if (__builtin_mul_overflow(loop.turns, int64_t(loop.end - loop.first), &launches) || launches > kMostRecorded)
      return false;
  return onGpu.isRecordable && !context.profile.step && launches <= kMostRecorded;
}

Status PlanRunner::runOnGpu(std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  gpu::Gpu::Use use(*context.gpu);
  context.gpu->begin();
  Status run = onGpu.isRecordable ? runRecorded(inputs, outputs) : runStages(inputs, outputs);
  if (run.ok() && !onGpu.isRecordable)
    fetchResults();
  Status finished = context.gpu->finish();
  if (!finished.ok())
    return finished;
  if (run.ok()) {
    takeErrors(0);
    run = outcome();
  }
  if (run.ok()) // the caller's memory, states among it, changes when nothing can fail any more
    for (uint32_t i = 0; i < outputs.size(); ++i)
      if (uint64_t bytes = outputBytes(i); bytes && !isOurs(i, outputs[i]))
        std::memcpy(outputs[i].data, outputMemory[i].data(), bytes);
  return run;
}

/// A run of a plan with one stage of nothing but kernels.
Status PlanRunner::runRecorded(std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  if (Status s = prepare(inputs, outputs); !s.ok())
    return s;
  if (Status s = prepareStage(0, inputs, outputs); !s.ok())
    return s;
  ShapeBinding &binding = current(0);
  if (binding.recording && !binding.recording->isCurrent())
    binding.recording.reset();
  const bool records = !binding.recording && binding.runs++ > 0 && canRecord(binding);
  if (binding.recording && canRecord(binding)) {
    error.clear();
    context.gpu->replay(*binding.recording);
    return {};
  }
  if (records)
    context.gpu->beginRecording();
  sendInputs();
  Status run = executeStage(binding);
  fetchResults();
  if (records) {
    binding.recording = context.gpu->endRecording();
    if (binding.recording)
      context.gpu->replay(*binding.recording);
  }
  return run;
}

/// Memory for the inputs and outputs of a stage, and the inputs where they are copied from.
Status PlanRunner::stageOperands(size_t stage, std::span<const TensorView> inputs,
                                 std::span<const TensorView> outputs) {
  auto lacks = [](GrowingMemory &memory, uint64_t bytes) { return !memory.reserve(std::max<uint64_t>(bytes, 1)); };
  for (uint32_t i = 0; stage == 0 && i < inputs.size(); ++i) {
    const uint64_t bytes = current(0).inputBytes(i);
    if (lacks(onGpu.inputs[i], bytes) || lacks(onGpu.stagedInputs[i], bytes))
      return {ErrorCode::OutOfMemory, text("no memory for ", bytes, " bytes of input ", i)};
    if (bytes)
      std::memcpy(onGpu.stagedInputs[i].data(), inputs[i].data, bytes);
  }
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    if (pieces.ofOutput[i] != stage)
      continue;
    const uint64_t bytes = current(stage).outputBytes(i);
    bool isInput = onGpu.outputPlace[i] != OnGpu::kNone;
    if ((!isInput && lacks(onGpu.outputs[i], bytes)) || lacks(outputMemory[i], bytes))
      return {ErrorCode::OutOfMemory, text("no memory for ", bytes, " bytes of output ", i)};
  }
  return {};
}

void PlanRunner::sendInputs() {
  for (uint32_t i = 0; i < plan.inputs.size(); ++i)
    context.gpu->toGpu(onGpu.inputs[i].data(), onGpu.stagedInputs[i].data(), current(0).inputBytes(i));
}

/// The outputs, and what kernels have reported.
void PlanRunner::fetchResults() {
  for (uint32_t i = 0; i < plan.outputs.size(); ++i)
    context.gpu->toHost(outputMemory[i].data(), outputOnGpu(i), outputBytes(i));
  if (!onGpu.slotSteps.empty())
    context.gpu->fetchErrors();
}

/// A state that is updated in place is written where it is read.
void *PlanRunner::outputOnGpu(uint32_t i) const {
  const uint32_t input = onGpu.outputPlace[i];
  return input == OnGpu::kNone ? onGpu.outputs[i].data() : onGpu.inputs[input].data();
}

void PlanRunner::launch(const ShapeBinding &binding, const BoundStep &step, void *const *operands, int lane) {
  const Step &info = plan.steps[step.index];
  std::byte *scratch = context.scratch.data() + uint64_t(lane) * binding.scratchBytes();
  context.gpu->launch({.kernel = info.kernel,
                       .operands = {operands, info.operands.size()},
                       .sizes = step.sizes,
                       .blocks = step.tasks,
                       .scratch = scratch,
                       .errorSlot = onGpu.slotOf[step.index]},
                      context.program->artifact().locations[info.location]);
  if (context.profile.step)
    context.gpu->wait();
}

void PlanRunner::launchSideBySide(const ShapeBinding &binding, std::span<const BoundStep> steps) {
  const int lanes = int(std::min<size_t>(steps.size(), gpu::Gpu::kLanes));
  context.gpu->fork(lanes);
  for (size_t i = 0; i < steps.size(); ++i) {
    const int lane = int(i) % lanes;
    context.gpu->useLane(lane);
    launch(binding, steps[i], steps[i].operands, lane);
  }
  context.gpu->join(lanes);
}

void PlanRunner::collectErrors(int64_t turn) {
  if (!context.gpu || !context.gpu->mayHaveErrors())
    return;
  context.gpu->fetchErrors();
  if (context.gpu->wait())
    takeErrors(turn);
}

void PlanRunner::takeErrors(int64_t turn) {
  if (onGpu.slotSteps.empty())
    return;
  std::span<const int64_t> found = context.gpu->takeErrors();
  for (size_t slot = 0; slot < onGpu.slotSteps.size(); ++slot)
    if (found[slot] != DataError::kNone)
      error.add(onGpu.slotSteps[slot], turn, found[slot]);
}

Status PlanRunner::copyToHost(void *to, const void *from, size_t bytes, bool fromGpu) {
  if (!context.gpu || !fromGpu)
    std::memcpy(to, from, bytes);
  else if (!context.gpu->read(to, from, bytes))
    return context.gpu->finish();
  return {};
}

} // namespace burin::rt
