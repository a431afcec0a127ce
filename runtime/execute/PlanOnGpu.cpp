// What is different where a plan runs on a GPU: inputs and outputs are the caller's, in the memory of the process, and
// are copied; kernels are launched on one stream, so that each step finds what those before it have done.
#include "runtime/execute/PlanRunner.h"
#include <algorithm>
#include <cstring>

namespace burin::rt {

Status PlanRunner::runOnGpu(std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  gpu::Gpu::Use use(*context.gpu);
  Status run = runStages(inputs, outputs);
  for (uint32_t i = 0; run.ok() && i < outputs.size(); ++i)
    context.gpu->toHost(outputs[i].data, outputOnGpu(i, outputs[i], inputs), outputBytes(i));
  // After a failure, too: until then the GPU may use the memory of the caller.
  Status finished = context.gpu->finish();
  return finished.ok() ? std::move(run) : std::move(finished);
}

void *PlanRunner::inputOnGpu(uint32_t i, const TensorView &input, bool isNew) {
  const uint64_t bytes = current(0).inputBytes(i);
  if (isNew && gpuInputs[i].reserve(std::max<uint64_t>(bytes, 1)))
    context.gpu->toGpu(gpuInputs[i].data(), input.data, bytes);
  return gpuInputs[i].data();
}

/// A state that is updated in place is written where it is read.
void *PlanRunner::outputOnGpu(uint32_t i, const TensorView &output, std::span<const TensorView> inputs) {
  for (uint32_t j = 0; j < inputs.size(); ++j)
    if (inputs[j].data == output.data && outputBytes(i))
      return gpuInputs[j].data();
  (void)gpuOutputs[i].reserve(std::max<uint64_t>(outputBytes(i), 1)); // finish() tells of a failure
  return gpuOutputs[i].data();
}

void PlanRunner::launch(const BoundStep &step, void *const *operands, int64_t turn) {
  const Artifact &a = context.program->artifact();
  const Step &info = plan.steps[step.index];
  context.gpu->launch(info.kernel, {operands, info.operands.size()}, step.sizes, step.tasks, context.scratch.data(),
                      a.locations[info.location]);
  // Whether it has failed must be known before the next step: that may write over a state.
  if (!a.kernels[info.kernel].errors.empty())
    if (int64_t at = context.gpu->takeError(); at != DataError::kNone)
      error.add(step.index, turn, at);
  if (context.profile.step)
    context.gpu->wait();
}

Status PlanRunner::copyToHost(void *to, const void *from, size_t bytes, bool fromGpu) {
  if (!context.gpu || !fromGpu)
    std::memcpy(to, from, bytes);
  else if (!context.gpu->read(to, from, bytes))
    return context.gpu->finish();
  return {};
}

} // namespace burin::rt
