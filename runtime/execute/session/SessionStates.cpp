// The states of a session, in memory of its device. A failed run leaves them unchanged. On a GPU new values are written
// to separate memory, which replaces the old one when the run has succeeded. A state that the plan updates in place is
// copied there first, unless the run is a single recorded graph, which completes as a whole or not at all.
#include "runtime/execute/session/Session.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <cstring>
#include <optional>

namespace burin::rt {

Status Session::allocateState(GrowingMemory &memory, const StateMemory &of, uint32_t state) const {
  if (memory.reserve(std::max<uint64_t>(of.bytes, 1)))
    return {};
  std::string message =
      text("no memory for ", of.bytes, " bytes of the state ", program().artifact().states[state].name);
  if (!gpu)
    return {ErrorCode::OutOfMemory, std::move(message)};
  gpu::Gpu::Use use(*gpu);
  Status why = gpu->finish();
  return {why.ok() ? ErrorCode::OutOfMemory : why.code(), text(why.message(), "\n  ", message)};
}

Status Session::makeStates() {
  const Artifact &a = program().artifact();
  if (statesAreGiven)
    return {};
  for (const State &state : a.states) {
    StateMemory &memory =
        states.emplace_back(StateMemory{GrowingMemory(context.stateMemory), GrowingMemory(context.stateMemory),
                                        byteWidth(state.dtype), GrowingMemory(context.exchange)});
    for (int64_t dim : state.shape)
      memory.bytes *= uint64_t(dim);
  }
  for (uint32_t i = 0; i < states.size(); ++i) {
    if (Status s = allocateState(states[i].value, states[i], i); !s.ok())
      return s;
    initialise(i);
  }
  for (const Plan &plan : a.plans) { // so that runs allocate nothing
    allInputs.reserve(std::max(allInputs.capacity(), plan.inputs.size()));
    allOutputs.reserve(std::max(allOutputs.capacity(), plan.outputs.size()));
  }
  if (!gpu)
    return {};
  gpu::Gpu::Use use(*gpu);
  return gpu->finish();
}

void Session::initialise(uint32_t i) {
  const State &state = program().artifact().states[i];
  const uint64_t bytes = states[i].bytes;
  void *value = states[i].value.data();
  const void *initial = state.initial == UINT32_MAX ? nullptr : program().constant(state.initial);
  if (gpu) {
    gpu::Gpu::Use use(*gpu);
    initial ? gpu->toGpu(value, initial, bytes) : gpu->zero(value, bytes);
  } else if (!initial) {
    std::memset(value, 0, bytes);
  } else if (bytes) {
    std::memcpy(value, initial, bytes);
  }
}

void Session::copyState(void *to, const void *from, uint64_t bytes) {
  if (gpu)
    gpu->copy(to, from, bytes);
  else if (bytes)
    std::memcpy(to, from, bytes);
}

/// Appends states to the inputs and outputs. The new value of a state is written over the old one, or to separate
/// memory.
Status Session::withStates(std::span<const TensorView> inputs, std::span<const TensorView> outputs, const Plan &plan) {
  allInputs.assign(inputs.begin(), inputs.end());
  for (uint32_t i : plan.stateInputs)
    allInputs.push_back(state(i));
  allOutputs.assign(outputs.begin(), outputs.end());
  for (const StateOutput &output : plan.stateOutputs) {
    StateMemory &memory = states[output.state];
    TensorView view = state(output.state);
    if (output.update == StateOutput::Update::Replace) {
      if (Status s = allocateState(memory.next, memory, output.state); !s.ok())
        return s;
      view.data = memory.next.data();
    }
    allOutputs.push_back(view);
  }
  return {};
}

/// Makes a copy of each state that the plan updates in place, if that could not be undone.
Status Session::withStatesOnGpu(const Plan &plan, bool inPlace) {
  for (size_t i = 0; i < plan.stateOutputs.size(); ++i) {
    const StateOutput &output = plan.stateOutputs[i];
    if (output.update != StateOutput::Update::InPlace || inPlace)
      continue;
    StateMemory &memory = states[output.state];
    if (Status s = allocateState(memory.next, memory, output.state); !s.ok())
      return s;
    gpu->copy(memory.next.data(), memory.value.data(), memory.bytes);
    allOutputs[plan.callerOutputs() + i].data = memory.next.data();
    auto input = std::ranges::find(plan.stateInputs, output.state);
    allInputs[plan.callerInputs() + size_t(input - plan.stateInputs.begin())].data = memory.next.data();
  }
  return {};
}

Status Session::runWithStates(std::span<const TensorView> inputs, std::span<TensorView> outputs, uint32_t function,
                              GpuRun &mode) {
  const Plan &plan = program().artifact().plans[function];
  PlanRunner &runner = *context.runners[function];
  if (inputs.size() != plan.callerInputs() || outputs.size() != plan.callerOutputs())
    return {ErrorCode::InvalidArgument,
            text(plan.name == "main" ? "the artifact" : plan.name, " takes ", plan.callerInputs(), " inputs and gives ",
                 plan.callerOutputs(), " outputs; ", inputs.size(), " and ", outputs.size(), " were given")};
  if (Status s = withStates(inputs, outputs, plan); !s.ok())
    return s;
  bool inPlace = !gpu, isCaptured = false;
  std::optional<gpu::Gpu::Use> use;
  if (gpu) {
    use.emplace(*gpu);
    gpu->begin();
    isCaptured = gpu->isCaptured();
    inPlace = isCaptured || runner.canUpdateInPlace(allInputs);
    auto isInPlace = [](const StateOutput &o) { return o.update == StateOutput::Update::InPlace; };
    mode.isAtomic = inPlace && !isCaptured && std::ranges::any_of(plan.stateOutputs, isInPlace);
    // Errors must be known before states change.
    mode.mayLeave &= isCaptured || runner.reportingSteps().empty() || plan.stateOutputs.empty();
    if (Status s = withStatesOnGpu(plan, inPlace); !s.ok())
      return s;
  }
  Status s = runner.run(allInputs, allOutputs, &mode);
  std::copy_n(allOutputs.begin(), outputs.size(), outputs.begin());
  if (!s.ok())
    return s;
  for (const StateOutput &output : plan.stateOutputs) {
    StateMemory &memory = states[output.state];
    if (output.update == StateOutput::Update::InPlace && inPlace)
      continue;
    if (isCaptured) // the captured graph refers to the current address of each state
      gpu->copy(memory.value.data(), memory.next.data(), memory.bytes);
    else
      swap(memory.value, memory.next);
  }
  return isCaptured ? gpu->leave() : Status();
}

TensorView Session::state(uint32_t i) const {
  const State &info = program().artifact().states[i];
  DeviceTag device;
  if (gpu)
    device = {1, uint8_t(gpu->ordinal()), 0};
  return {states[i].value.data(), info.shape.data(), uint32_t(info.shape.size()), info.dtype, device};
}

Status Session::readState(uint32_t i, TensorView &out) {
  out = state(i);
  if (!gpu)
    return {};
  StateMemory &memory = states[i];
  if (Status s = allocateState(memory.onHost, memory, i); !s.ok())
    return s;
  gpu::Gpu::Use use(*gpu);
  gpu->toHost(memory.onHost.data(), memory.value.data(), memory.bytes);
  out.data = memory.onHost.data();
  out.device = {};
  return gpu->finish();
}

Status Session::writeState(uint32_t i, Bytes bytes, bool isOnGpu) {
  SessionHold hold(busy);
  if (!hold.ok())
    return SessionHold::refusal();
  if (bytes.size() != states[i].bytes)
    return {ErrorCode::InvalidArgument, text("the state ", program().artifact().states[i].name, " has ",
                                             states[i].bytes, " bytes, ", bytes.size(), " were given")};
  return overwriteState(i, bytes.data(), isOnGpu);
}

Status Session::overwriteState(uint32_t i, const void *from, bool isOnGpu) {
  StateMemory &memory = states[i];
  if (!gpu) {
    copyState(memory.value.data(), from, memory.bytes);
    return {};
  }
  gpu::Gpu::Use use(*gpu);
  isOnGpu ? gpu->copy(memory.value.data(), from, memory.bytes) : gpu->toGpu(memory.value.data(), from, memory.bytes);
  return gpu->finish();
}

Status Session::resetStates() {
  SessionHold hold(busy);
  if (!hold.ok())
    return SessionHold::refusal();
  for (uint32_t i = 0; i < states.size(); ++i)
    initialise(i);
  if (!gpu)
    return {};
  gpu::Gpu::Use use(*gpu);
  return gpu->finish();
}

Status Session::copyStates(Session &from) {
  SessionHold hold(busy);
  if (!hold.ok())
    return SessionHold::refusal();
  if (from.context.program != context.program)
    return {ErrorCode::InvalidArgument, "states are copied between sessions of one loaded artifact only"};
  std::optional<gpu::Gpu::Use> use;
  if (gpu)
    use.emplace(*gpu);
  const bool isBeside = gpu && from.gpu && gpu->ordinal() == from.gpu->ordinal();
  for (uint32_t i = 0; i < states.size() && &from != this; ++i) {
    TensorView value = from.state(i);
    if (!isBeside)
      if (Status s = from.readState(i, value); !s.ok())
        return s;
    isBeside || !gpu ? copyState(states[i].value.data(), value.data, states[i].bytes)
                     : gpu->toGpu(states[i].value.data(), value.data, states[i].bytes);
  }
  return gpu ? gpu->finish() : Status();
}

Status Session::reorderState(uint32_t i, uint32_t axis, std::span<const int64_t> order) {
  SessionHold hold(busy);
  if (!hold.ok())
    return SessionHold::refusal();
  const State &info = program().artifact().states[i];
  if (axis >= info.shape.size() || int64_t(order.size()) != info.shape[axis])
    return {ErrorCode::InvalidArgument, text("the state ", info.name, " is ", tensorText(info.dtype, info.shape),
                                             "; got ", order.size(), " indices for axis ", axis)};
  for (int64_t from : order)
    if (from < 0 || from >= info.shape[axis])
      return {ErrorCode::InvalidArgument,
              text("index ", from, " is out of range for axis ", axis, " of the state ", info.name)};
  StateMemory &memory = states[i];
  if (Status s = allocateState(memory.next, memory, i); !s.ok())
    return s;
  uint64_t inner = byteWidth(info.dtype), outer = 1;
  for (size_t d = 0; d < info.shape.size(); ++d)
    (d < axis ? outer : inner) *= d == axis ? 1 : uint64_t(info.shape[d]);
  std::optional<gpu::Gpu::Use> use;
  if (gpu)
    use.emplace(*gpu);
  for (uint64_t o = 0; o < outer; ++o)
    for (size_t j = 0; j < order.size() && inner; ++j)
      copyState(memory.next.data() + (o * order.size() + j) * inner,
                memory.value.data() + (o * order.size() + uint64_t(order[j])) * inner, inner);
  Status s = gpu ? gpu->finish() : Status();
  if (s.ok())
    swap(memory.value, memory.next);
  return s;
}

} // namespace burin::rt
