// Steps that run functions: calls, branches, loops, and host functions.
#include "runtime/execute/PlanRunner.h"
#include "runtime/support/Format.h"
#include "runtime/support/TensorText.h"
#include <algorithm>
#include <cstring>

namespace burin::rt {

void PlanRunner::runFunctions(const BoundStep &step, const ShapeBinding &binding, void *const *operands) {
  const Step &info = plan.steps[step.index];
  const std::vector<Plan> &plans = context.program->artifact().plans;
  std::span<const int64_t> symbols(step.sizes, info.sizes.size());
  auto symbolsOf = [&](size_t i) {
    size_t first = i ? plans[info.plans[0]].symbols.size() : 0;
    return symbols.subspan(first, plans[info.plans[i]].symbols.size());
  };
  switch (info.kind) {
  case Step::Kind::Kernel:
    break;
  case Step::Kind::Call:
    failure = call(info, 0, symbols, operands);
    break;
  case Step::Kind::Branch: {
    if (isInGraph(info)) {
      failure = branchInGraph(info, symbols, operands);
      break;
    }
    uint8_t taken = 0;
    if (failure = copyToHost(&taken, operands[0], 1, /*fromGpu=*/true); failure.ok())
      failure = call(info, taken ? 0 : 1, symbolsOf(taken ? 0 : 1), operands + 1);
    break;
  }
  case Step::Kind::While:
    failure = isInGraph(info) ? whileInGraph(info, symbols, operands) : runWhile(info, symbols, operands);
    break;
  case Step::Kind::Host:
    failure = askHost(info, binding, operands);
    break;
  }
}

/// On a GPU, host functions get copies.
Status PlanRunner::askHost(const Step &step, const ShapeBinding &binding, void *const *operands) {
  const HostCall &call = plan.hostCalls[step.hostCall];
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::vector<std::byte>> copies;
  std::vector<TensorView> views;
  auto add = [&](const TensorInfo &info, bool isInput) -> Status {
    std::vector<int64_t> &shape = shapes.emplace_back();
    uint64_t bytes = byteWidth(info.dtype);
    for (ExprId dim : info.dims) {
      shape.push_back(std::max<int64_t>(binding.value(dim), 0));
      bytes *= uint64_t(shape.back());
    }
    void *data = operands[views.size()];
    if (context.gpu) {
      std::vector<std::byte> &copy = copies.emplace_back(bytes);
      if (isInput && bytes)
        if (Status s = copyToHost(copy.data(), data, bytes, /*fromGpu=*/true); !s.ok())
          return s;
      data = copy.data();
    }
    views.push_back({data, nullptr, uint32_t(shape.size()), info.dtype});
    return {};
  };
  for (const TensorInfo &info : call.inputs)
    if (Status s = add(info, true); !s.ok())
      return s;
  for (const TensorInfo &info : call.results)
    if (Status s = add(info, false); !s.ok())
      return s;
  for (size_t i = 0; i < views.size(); ++i)
    views[i].shape = shapes[i].data();
  std::span<const TensorView> all(views);
  const std::string &where = context.program->artifact().locations[step.location];
  if (call.kind == HostCall::Kind::Print) {
    std::string message;
    for (const TensorView &view : all)
      message += printText(where, call.label, view.dtype, {view.shape, view.rank}, view.data);
    writeToStandardError(message);
    return {};
  }
  if (context.gpu)
    return {ErrorCode::Unsupported, text("host_call runs on the processor only\n  at ", where)};
  Status s = context.host.call(context.host.ctx, call.function, all.first(call.inputs.size()),
                               all.subspan(call.inputs.size()));
  return s.ok() || where.empty() ? std::move(s) : Status(s.code(), text(s.message(), "\n  at ", where));
}

PlanRunner &PlanRunner::callee(const Step &step, size_t which) {
  PlanRunner &runner = *context.runners[step.plans[which]];
  if (!context.gpu)
    return runner;
  runner.onGpu.firstSlot = onGpu.firstSlot + onGpu.slotOf[size_t(&step - plan.steps.data())];
  for (uint32_t other : gpu::orderOfFunctions(step)) {
    if (other == which)
      break;
    runner.onGpu.firstSlot += uint32_t(context.runners[step.plans[other]]->onGpu.slots.size());
  }
  return runner;
}

Status PlanRunner::call(const Step &step, size_t which, std::span<const int64_t> symbols, void *const *operands) {
  PlanRunner &runner = callee(step, which);
  if (Status s = runner.enter(symbols); !s.ok())
    return s;
  const auto inputs = uint32_t(runner.plan.inputs.size()), outputs = uint32_t(runner.plan.outputs.size());
  for (uint32_t i = 0; i < inputs; ++i)
    runner.setInput(i, operands[i]);
  for (uint32_t i = 0; i < outputs; ++i)
    runner.setOutput(i, operands[inputs + i]);
  return runner.execute();
}

/// The carried values alternate between the results and the buffers, starting from the initial ones. A value that the
/// body overwrites has one place for all three.
Status PlanRunner::runWhile(const Step &step, std::span<const int64_t> symbols, void *const *operands) {
  PlanRunner &condition = callee(step, 0), &body = callee(step, 1);
  const size_t split = condition.plan.symbols.size();
  const auto inputs = uint32_t(body.plan.inputs.size()), carried = uint32_t(body.plan.outputs.size());
  if (Status s = condition.enter(symbols.first(split)); !s.ok())
    return s;
  if (Status s = body.enter(symbols.subspan(split)); !s.ok())
    return s;
  uint8_t goesOn = 0;
  condition.setOutput(0, context.gpu ? context.gpu->flag() : &goesOn);
  for (uint32_t i = carried; i < inputs; ++i) {
    condition.setInput(i, operands[i]);
    body.setInput(i, operands[i]);
  }
  void *const *results = operands + inputs, *const *buffers = results + carried, *const *values = operands;
  for (;;) {
    for (uint32_t i = 0; i < carried; ++i)
      condition.setInput(i, values[i]);
    if (Status s = condition.execute(); !s.ok())
      return s;
    if (context.gpu)
      if (Status s = copyToHost(&goesOn, context.gpu->flag(), 1, /*fromGpu=*/true); !s.ok())
        return s;
    if (!goesOn)
      break;
    void *const *next = values == results ? buffers : results;
    for (uint32_t i = 0; i < carried; ++i) {
      body.setInput(i, values[i]);
      body.setOutput(i, next[i]);
    }
    if (Status s = body.execute(); !s.ok())
      return s;
    values = next;
  }
  if (values != results)
    for (uint32_t i = 0; i < carried; ++i)
      if (uint64_t bytes = body.current(0).outputBytes(i); bytes && results[i] != values[i])
        context.gpu ? context.gpu->copy(results[i], values[i], bytes) : (void)std::memcpy(results[i], values[i], bytes);
  return {};
}

// ---- in a CUDA graph

bool PlanRunner::isInGraph(const Step &step) const {
  return context.gpu && context.gpu->isInGraph() && context.gpu->hasConditions() &&
         std::ranges::all_of(step.plans, [&](uint32_t callee) { return context.runners[callee]->onGpu.isRecordable; });
}

Status PlanRunner::branchInGraph(const Step &step, std::span<const int64_t> symbols, void *const *operands) {
  gpu::Gpu &gpu = *context.gpu;
  const size_t split = context.runners[step.plans[0]]->plan.symbols.size();
  const gpu::Condition isTaken = gpu.makeCondition(), isNot = gpu.makeCondition();
  gpu.setConditions(isTaken, isNot, operands[0]);
  gpu.beginBody(isTaken, /*repeats=*/false);
  Status status = call(step, 0, symbols.first(split), operands + 1);
  gpu.endBody();
  gpu.beginBody(isNot, /*repeats=*/false);
  if (status.ok())
    status = call(step, 1, symbols.subspan(split), operands + 1);
  gpu.endBody();
  return status;
}

/// The values alternate as in runWhile(). The addresses in a graph are fixed, so its loop has two iterations: the first
/// leaves the values in the buffers, the second brings them back to the results. If the first is the last one, they are
/// copied.
Status PlanRunner::whileInGraph(const Step &step, std::span<const int64_t> symbols, void *const *operands) {
  gpu::Gpu &gpu = *context.gpu;
  PlanRunner &condition = *context.runners[step.plans[0]], &body = *context.runners[step.plans[1]];
  const auto inputs = uint32_t(body.plan.inputs.size()), carried = uint32_t(body.plan.outputs.size());
  void *const *results = operands + inputs, *const *buffers = results + carried;
  std::vector<void *> arguments(operands, operands + inputs);
  auto run = [&](size_t which, std::span<const int64_t> of, void *const *values, std::span<void *const> to) {
    std::copy_n(values, carried, arguments.begin());
    arguments.resize(inputs);
    arguments.insert(arguments.end(), to.begin(), to.end());
    return call(step, which, of, arguments.data());
  };
  const size_t split = condition.plan.symbols.size();
  void *flag = gpu.flag();
  auto decide = [&](void *const *values) { return run(0, symbols.first(split), values, {&flag, 1}); };
  auto advance = [&](void *const *values, void *const *next) {
    return run(1, symbols.subspan(split), values, {next, carried});
  };
  if (Status s = body.enter(symbols.subspan(split)); !s.ok())
    return s;
  std::vector<uint64_t> bytes;
  for (uint32_t i = 0; i < carried; ++i)
    bytes.push_back(body.current(0).outputBytes(i));
  auto copyToResults = [&](void *const *from) {
    for (uint32_t i = 0; i < carried; ++i)
      if (results[i] != from[i])
        gpu.copy(results[i], from[i], bytes[i]);
  };

  copyToResults(operands);
  const gpu::Condition goesOn = gpu.makeCondition();
  Status status = decide(results);
  gpu.setConditions(goesOn, 0, flag);
  gpu.beginBody(goesOn, /*repeats=*/true);
  if (status.ok())
    status = advance(results, buffers);
  if (status.ok())
    status = decide(buffers);
  const gpu::Condition isSecond = gpu.makeCondition(), isLast = gpu.makeCondition();
  gpu.setConditions(isSecond, isLast, flag);
  gpu.beginBody(isSecond, /*repeats=*/false);
  if (status.ok())
    status = advance(buffers, results);
  if (status.ok())
    status = decide(results);
  gpu.endBody();
  gpu.beginBody(isLast, /*repeats=*/false);
  copyToResults(buffers);
  gpu.endBody();
  gpu.setConditions(goesOn, 0, flag); // not met unless the second iteration has run and met its own
  gpu.endBody();
  return status;
}

// ---- states that a run overwrites

static bool canFail(const Artifact &a, const Plan &plan);
static bool canFail(const Artifact &a, const Plan &plan, const Step &step) {
  const bool asksHost = step.kind == Step::Kind::Host && plan.hostCalls[step.hostCall].kind == HostCall::Kind::Function;
  return asksHost || canFail(a, step) ||
         std::ranges::any_of(step.plans, [&](uint32_t plan) { return canFail(a, a.plans[plan]); });
}
static bool canFail(const Artifact &a, const Plan &plan) {
  return std::ranges::any_of(plan.steps, [&](const Step &step) { return canFail(a, plan, step); });
}

/// The first step that names a state that is updated in place, among those behind all that can fail: states are
/// overwritten only there, perhaps by several steps one after the other.
uint32_t PlanRunner::firstUpdateOf(const Artifact &a, const Plan &plan) {
  uint32_t first = 0;
  for (const Symbol &symbol : plan.symbols)
    if (symbol.kind == Symbol::Kind::Computed)
      first = std::max(first, symbol.step);
  for (uint32_t i = first; i < plan.steps.size(); ++i)
    if (canFail(a, plan, plan.steps[i]))
      first = i + 1;
  auto isUpdated = [&](uint32_t input) {
    if (input < plan.callerInputs())
      return false;
    const uint32_t state = plan.stateInputs[input - plan.callerInputs()];
    return std::ranges::any_of(plan.stateOutputs, [&](const StateOutput &output) {
      return output.state == state && output.update == StateOutput::Update::InPlace;
    });
  };
  auto names = [&](Slot slot) {
    if (slot.kind == Slot::Kind::Part)
      slot = plan.parts[slot.index].whole;
    return slot.kind == Slot::Kind::Input && isUpdated(slot.index);
  };
  while (first < plan.steps.size() && std::ranges::none_of(plan.steps[first].operands, names))
    ++first;
  return first;
}

bool PlanRunner::beginUpdates(ShapeBinding &binding) {
  const UpdateHook hook = std::exchange(updates.hook, {});
  failure = hook.begin(hook.ctx);
  if (!failure.ok())
    return false;
  for (uint32_t i = 0; i < updates.inputs.size(); ++i)
    binding.setInput(i, updates.inputs[i].data);
  for (uint32_t i = 0; i < updates.outputs.size(); ++i)
    if (updates.outputs[i].data)
      binding.setOutput(i, updates.outputs[i].data);
  return true;
}

} // namespace burin::rt
