#include "runtime/execute/PlanRunner.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <cstring>
#include <ctime>
#include <optional>

namespace burin::rt {

static int64_t nowNs() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

PlanRunner::PlanRunner(RunContext &context, uint32_t index)
    : context(context), index(index), plan(context.program->artifact().plans[index]),
      pieces(context.program->stages(index)), firstUpdate(firstUpdateOf(context.program->artifact(), plan)) {
  outputMemory.reserve(plan.outputs.size());
  for (size_t i = 0; i < plan.outputs.size(); ++i)
    outputMemory.emplace_back(context.exchange);
  stages.reserve(pieces.list.size());
  for (size_t i = 0; i < pieces.list.size(); ++i)
    stages.push_back({GrowingMemory(context.runMemory), {}});
  if (context.gpu)
    prepareForGpu();
  sizes.reserve(plan.symbols.size());
}

/// Moves the first binding that `matches` to the front; returns false if there is none.
template <class Matches> static bool recall(std::vector<std::unique_ptr<ShapeBinding>> &bindings, Matches matches) {
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (matches(*bindings[i])) {
      if (i)
        std::rotate(bindings.begin(), bindings.begin() + i, bindings.begin() + i + 1);
      return true;
    }
  }
  return false;
}

Status PlanRunner::bind(std::span<const TensorView> inputs) {
  if (!recall(stages[0].bindings, [&](const ShapeBinding &b) { return b.matches(*context.program, inputs); })) {
    std::unique_ptr<ShapeBinding> binding;
    if (Status s = ShapeBinding::create(*context.program, index, inputs, context.place(), binding); !s.ok())
      return s;
    keep(0, std::move(binding));
  }
  reached = 1;
  return {};
}

Status PlanRunner::enter(std::span<const int64_t> symbols) {
  if (!recall(stages[0].bindings, [&](const ShapeBinding &b) { return b.matches(symbols); })) {
    std::unique_ptr<ShapeBinding> binding;
    if (Status s = ShapeBinding::create(*context.program, index, symbols, context.place(), binding); !s.ok())
      return s;
    keep(0, std::move(binding));
  }
  reached = 1;
  return prepareMemory(0);
}

/// Binds the next stage. `outputs` have data as far as they can have been written.
Status PlanRunner::bindNext(std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const ShapeBinding &before = current(reached - 1);
  if (Status s = readSizes(before, inputs, outputs); !s.ok())
    return s;
  if (!recall(stages[reached].bindings, [&](const ShapeBinding &b) { return b.matches(sizes); })) {
    std::unique_ptr<ShapeBinding> binding;
    if (Status s = ShapeBinding::create(*context.program, before, sizes, binding); !s.ok())
      return s;
    keep(reached, std::move(binding));
  }
  ++reached;
  return {};
}

Status PlanRunner::readSizes(const ShapeBinding &before, std::span<const TensorView> inputs,
                             std::span<const TensorView> outputs) {
  const Artifact &a = context.program->artifact();
  sizes.assign(before.symbols().begin(), before.symbols().end());
  for (uint32_t i = uint32_t(sizes.size()); i < pieces.list[reached].symbols; ++i) {
    const Symbol &symbol = plan.symbols[i];
    const uint32_t index = symbol.count.index;
    const void *at = symbol.count.kind == Slot::Kind::Input      ? inputs[index].data
                     : symbol.count.kind == Slot::Kind::Output   ? outputs[index].data
                     : symbol.count.kind == Slot::Kind::Constant ? context.program->constant(index)
                                                                 : nullptr;
    if (symbol.count.kind == Slot::Kind::Buffer) {
      const ShapeBinding &home = current(pieces.ofBuffer[index]);
      if (home.value(plan.buffers[index].bytes) < int64_t(sizeof(int64_t)))
        return {ErrorCode::BadArtifact, text("the size ", symbol.name, " is read from an empty buffer")};
      at = home.buffer(index);
    }
    int64_t value = -1;
    bool fromGpu = symbol.count.kind == Slot::Kind::Output || symbol.count.kind == Slot::Kind::Buffer ||
                   (symbol.count.kind == Slot::Kind::Input && isOnGpu(inputs[index]));
    if (symbol.count.kind == Slot::Kind::Output && context.gpu)
      at = onGpu.outputAt[index];
    if (at)
      if (Status s = copyToHost(&value, at, sizeof value, fromGpu); !s.ok())
        return s;
    if (int64_t limit = before.value(symbol.limit); value < 0 || value > limit) {
      const std::string &where = a.locations[symbol.location];
      return {ErrorCode::InvalidArgument,
              text("cannot go on: the size ", symbol.name, " is computed as ", value, ", but must be in [0, ", limit,
                   "]", where.empty() ? "" : "\n  at ", where)};
    }
    sizes.push_back(value);
  }
  return {};
}

void PlanRunner::keep(size_t stage, std::unique_ptr<ShapeBinding> binding) {
  if (context.logger.log)
    context.logger.log(context.logger.ctx, 0,
                       text("planned for new ", stage ? "sizes: " : "shapes: ", binding->steps().size(), " steps, ",
                            binding->arenaBytes(), " bytes of intermediate results, ", binding->scratchBytes(),
                            " bytes of scratch per thread")
                           .c_str());
  std::vector<std::unique_ptr<ShapeBinding>> &bindings = stages[stage].bindings;
  if (bindings.size() == kMaxBindings)
    bindings.pop_back();
  bindings.insert(bindings.begin(), std::move(binding));
}

uint64_t PlanRunner::arenaBytes() const {
  uint64_t bytes = 0;
  for (size_t stage = 0; stage < reached; ++stage)
    bytes += current(stage).arenaBytes();
  return bytes;
}

Status PlanRunner::prepareMemory(size_t stage) {
  ShapeBinding &binding = current(stage);
  GrowingMemory &arena = stages[stage].arena;
  if (!arena.reserve(binding.arenaBytes()))
    return {ErrorCode::OutOfMemory, noArena(binding)};
  uint64_t all;
  const int lanes = context.place().lanes();
  if (__builtin_mul_overflow(binding.scratchBytes(), uint64_t(lanes), &all) || !context.scratch.reserve(all))
    return {ErrorCode::OutOfMemory,
            text("no memory for ", binding.scratchBytes(), " bytes of scratch for each of ", lanes, " threads")};
  binding.setArena(arena.data());
  for (uint32_t buffer : binding.earlierBuffers())
    binding.setBuffer(buffer, current(pieces.ofBuffer[buffer]).buffer(buffer));
  return {};
}

/// Error message that names the largest buffer.
std::string PlanRunner::noArena(const ShapeBinding &binding) const {
  const Artifact &a = context.program->artifact();
  const ArenaBuffer *largest = nullptr;
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    if (pieces.ofBuffer[i] < reached &&
        (!largest || binding.value(plan.buffers[i].bytes) > binding.value(largest->bytes)))
      largest = &plan.buffers[i];
  std::string message = text("no memory for ", binding.arenaBytes(), " bytes of intermediate results");
  if (!largest)
    return message;
  const Step &step = plan.steps[largest->firstStep];
  const std::string &where = a.locations[step.location];
  message += text("\n  the largest, ", binding.value(largest->bytes), " bytes, is made by ",
                  step.kind == Step::Kind::Kernel ? a.kernels[step.kernel].name : "a call");
  return where.empty() ? message : text(message, "\n  at ", where);
}

Status PlanRunner::run(std::span<const TensorView> inputs, std::span<TensorView> outputs, GpuRun *gpuRun,
                       const UpdateHook &hook) {
  GpuRun waits;
  if (context.gpu)
    return runOnGpu(inputs, outputs, gpuRun ? *gpuRun : waits);
  updates = {hook, inputs, outputs};
  Status status = runStages(inputs, outputs);
  updates = {};
  return status;
}

Status PlanRunner::runStages(std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  if (Status s = prepare(inputs, outputs); !s.ok())
    return s;
  if (Status s = runStage(0, inputs, outputs); !s.ok())
    return s;
  while (reached < stages.size()) {
    collectErrors(0);
    if (Status s = outcome(); !s.ok())
      return s;
    if (Status s = bindNext(inputs, outputs); !s.ok())
      return s;
    if (Status s = runStage(reached - 1, inputs, outputs); !s.ok())
      return s;
  }
  return {};
}

void PlanRunner::forget(std::span<TensorView> outputs) const {
  for (uint32_t i = 0; i < outputs.size() && i < outputMemory.size(); ++i)
    if (isOurs(i, outputs[i]))
      outputs[i] = {};
}

Status PlanRunner::prepare(std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  if (Status s = bind(inputs); !s.ok())
    return s;
  return checkInputs(inputs, outputs);
}

Status PlanRunner::prepareStage(size_t stage, std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  if (Status s = prepareMemory(stage); !s.ok())
    return s;
  return setOperands(stage, inputs, outputs);
}

Status PlanRunner::runStage(size_t stage, std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  if (Status s = prepareStage(stage, inputs, outputs); !s.ok())
    return s;
  if (context.gpu && stage == 0)
    sendInputs();
  std::optional<Pool::Awake> awake;
  if (context.pool && current(stage).parallelSteps() > 1)
    awake.emplace(*context.pool);
  return executeStage(current(stage));
}

Status PlanRunner::execute() {
  if (Status s = executeStage(current(0)); !s.ok())
    return s;
  collectErrors(0);
  return outcome();
}

Status PlanRunner::executeStage(ShapeBinding &binding) {
  error.clear();
  failure = {};
  if (context.profile.step)
    runProfiled(binding);
  else
    runSteps(binding);
  return outcome();
}

Status PlanRunner::outcome() { return !failure.ok() ? std::move(failure) : error.any() ? dataError() : Status(); }

Status PlanRunner::dataError() const {
  return dataErrorOf(context.program->artifact(), plan, error.step, error.position);
}

Status dataErrorOf(const Artifact &a, const Plan &plan, int64_t inStep, int64_t at) {
  const Step &step = plan.steps[size_t(inStep)];
  const Kernel &kernel = a.kernels[step.kernel];
  const size_t number = size_t(at >> kErrorPositionBits);
  const int64_t position = at & ((int64_t(1) << kErrorPositionBits) - 1);
  const bool isKnown = number < kernel.errors.size() && number < step.errorLocations.size();
  const std::string &where = a.locations[isKnown ? step.errorLocations[number] : step.location];
  return {ErrorCode::Data, text(isKnown ? kernel.errors[number] : "a value is not allowed", " (element ", position, ")",
                                where.empty() ? "" : "\n  at ", where)};
}

Status PlanRunner::checkInputs(std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  if (outputs.size() != plan.outputs.size())
    return {ErrorCode::InvalidArgument,
            text(plan.name == "main" ? "the artifact" : plan.name, " has ", plan.callerOutputs(), " outputs, ",
                 outputs.size() - plan.stateOutputs.size(), " were given")};
  ErrorList problems;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].data && current(0).inputBytes(i))
      problems.add("input ", i, " (", plan.inputs[i].name, ") has no data");
  checkDevices(inputs, plan.inputs, "input", problems);
  checkDevices(outputs, plan.outputs, "output", problems);
  return problems.any() ? problems.status("cannot run: ") : Status();
}

/// Sets the inputs, and the outputs whose shapes are known. Outputs of this stage are checked, or get memory.
Status PlanRunner::setOperands(size_t stage, std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  ShapeBinding &binding = current(stage);
  const std::vector<uint32_t> &knownFrom = pieces.ofOutput;
  ErrorList problems;
  for (uint32_t i = 0; i < outputs.size(); ++i)
    if (knownFrom[i] == stage && outputs[i].data && !isOurs(i, outputs[i]))
      checkOutput(i, binding, outputs[i], problems);
  if (problems.any())
    return problems.status("cannot run: ");
  if (context.gpu)
    return setOperandsOnGpu(stage, inputs, outputs);
  for (uint32_t i = 0; i < inputs.size(); ++i)
    binding.setInput(i, inputs[i].data);
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    if (knownFrom[i] > stage)
      continue;
    TensorView &view = outputs[i];
    if (knownFrom[i] == stage && (!view.data || isOurs(i, view))) {
      if (!outputMemory[i].reserve(std::max<uint64_t>(binding.outputBytes(i), 1)))
        return {ErrorCode::OutOfMemory, text("no memory for ", binding.outputBytes(i), " bytes of output ", i)};
      std::span<const int64_t> shape = binding.outputShape(i);
      view = {outputMemory[i].data(), shape.data(), uint32_t(shape.size()), plan.outputs[i].dtype};
    }
    binding.setOutput(i, view.data);
  }
  return {};
}

void PlanRunner::checkOutput(uint32_t i, const ShapeBinding &binding, const TensorView &got,
                             ErrorList &problems) const {
  const TensorInfo &info = plan.outputs[i];
  std::span<const int64_t> want = binding.outputShape(i);
  if (got.dtype != info.dtype || got.rank != want.size() || (got.rank && !got.shape) ||
      !std::equal(want.begin(), want.end(), got.shape))
    problems.add("output ", i, " (", info.name, ") must be ", tensorText(info.dtype, want), ", got ",
                 tensorText(got.dtype, {got.shape, got.shape ? got.rank : 0}));
}

void PlanRunner::runKernel(const ShapeBinding &binding, const BoundStep &step, void *const *operands,
                           int64_t iteration) {
  if (context.gpu)
    return launch(binding, step, operands, 0);
  if (step.grain >= step.tasks || context.parallel.threads == 1) {
    int64_t at = step.kernel(operands, step.sizes, context.scratch.data(), 0, step.tasks);
    if (at != DataError::kNone)
      error.add(step.index, iteration, at);
    return;
  }
  struct Call {
    const BoundStep &step;
    void *const *operands;
    std::byte *scratch;
    uint64_t stride;
    DataError &error;
    int64_t iteration;
  } call{step, operands, context.scratch.data(), binding.scratchBytes(), error, iteration};
  auto body = [](void *ctx, int64_t lo, int64_t hi, int worker) {
    auto &c = *static_cast<Call *>(ctx);
    int64_t at = c.step.kernel(c.operands, c.step.sizes, c.scratch + uint64_t(worker) * c.stride, lo, hi);
    if (at != DataError::kNone)
      c.error.add(c.step.index, c.iteration, at);
  };
  context.parallel.run(context.parallel.ctx, step.tasks, step.grain, body, &call);
}

/// Runs steps concurrently, each on one thread.
void PlanRunner::runSideBySide(const ShapeBinding &binding, std::span<const BoundStep> steps) {
  if (context.gpu)
    return launchSideBySide(binding, steps);
  struct Call {
    std::span<const BoundStep> steps;
    std::byte *scratch;
    uint64_t stride;
    DataError &error;
  } call{steps, context.scratch.data(), binding.scratchBytes(), error};
  auto body = [](void *ctx, int64_t lo, int64_t hi, int worker) {
    auto &c = *static_cast<Call *>(ctx);
    for (const BoundStep &step : c.steps.subspan(size_t(lo), size_t(hi - lo))) {
      int64_t at = step.kernel(step.operands, step.sizes, c.scratch + uint64_t(worker) * c.stride, 0, step.tasks);
      if (at != DataError::kNone)
        c.error.add(step.index, 0, at);
    }
  };
  context.parallel.run(context.parallel.ctx, int64_t(steps.size()), 1, body, &call);
}

void PlanRunner::runLoop(ShapeBinding &binding, const BoundLoop &loop) {
  binding.enter(loop);
  // As many iterations as possible run concurrently; the threads share each of the remaining ones.
  int64_t threads = context.parallel.threads, together = 0;
  if (threads > 1 && loop.grain < loop.iterations) // never if iterations depend on each other
    together = loop.iterations < 4 * threads ? loop.iterations / threads * threads : loop.iterations;
  struct Call {
    ShapeBinding &binding;
    const BoundLoop &loop;
    std::byte *scratch;
    DataError &error;
  } call{binding, loop, context.scratch.data(), error};
  auto body = [](void *ctx, int64_t lo, int64_t hi, int worker) {
    auto &c = *static_cast<Call *>(ctx);
    std::byte *scratch = c.scratch + uint64_t(worker) * c.binding.scratchBytes();
    for (int64_t iteration = lo; iteration < hi; ++iteration) {
      void *const *operands = c.binding.operandsOfIteration(c.loop, iteration, worker);
      for (const BoundStep &step : c.binding.steps().subspan(c.loop.first, c.loop.end - c.loop.first)) {
        int64_t at = step.kernel(operands + c.binding.offsetInLoop(c.loop, step), step.sizes, scratch, 0, step.tasks);
        if (at != DataError::kNone)
          c.error.add(step.index, iteration, at);
      }
    }
  };
  if (together)
    context.parallel.run(context.parallel.ctx, together, std::min(loop.grain, together / threads), body, &call);
  for (int64_t iteration = together; iteration < loop.iterations && goesOn(binding, loop); ++iteration) {
    runIteration(binding, loop, iteration, [&](const BoundStep &step, void *const *operands) {
      if (!loop.sequential || mustRun(step.index))
        runStep(binding, step, operands, iteration);
    });
    collectErrors(iteration);
  }
}

template <class F>
void PlanRunner::runIteration(ShapeBinding &binding, const BoundLoop &loop, int64_t iteration, F run) {
  void *const *operands = binding.operandsOfIteration(loop, iteration, 0);
  for (const BoundStep &step : binding.steps().subspan(loop.first, loop.end - loop.first))
    run(step, operands + binding.offsetInLoop(loop, step));
}

/// Runs steps and loops in order; after a failed step, only those that precede it in the plan.
template <class Steps, class Loop, class MustRun>
static void walk(ShapeBinding &binding, Steps step, Loop loop, MustRun mustRun) {
  std::span<const BoundLoop> loops = binding.loops();
  std::span<const BoundStep> steps = binding.steps();
  for (size_t i = 0; i < steps.size();) {
    if (loops.empty() || loops.front().first != i) {
      if (mustRun(steps[i].index) || steps[i].together > 1)
        step(steps.subspan(i, steps[i].together));
      i += steps[i].together;
      continue;
    }
    if (mustRun(steps[i].index))
      loop(loops.front());
    i = loops.front().end;
    loops = loops.subspan(1);
  }
}

void PlanRunner::runPreceding(const ShapeBinding &binding, std::span<const BoundStep> steps) {
  for (const BoundStep &step : steps)
    if (mustRun(step.index))
      runStep(binding, step, step.operands, 0);
}

void PlanRunner::runSteps(ShapeBinding &binding) {
  walk(
      binding,
      [&](std::span<const BoundStep> steps) {
        if (hasFailed())
          runPreceding(binding, steps);
        else if (mayUpdate(binding, steps))
          steps.size() > 1 ? runSideBySide(binding, steps) : runStep(binding, steps[0], steps[0].operands, 0);
      },
      [&](const BoundLoop &loop) { runLoop(binding, loop); }, [&](uint32_t step) { return mustRun(step); });
}

void PlanRunner::runProfiled(ShapeBinding &binding) {
  const Artifact &a = context.program->artifact();
  auto timed = [&](const BoundStep &step, void *const *operands, int64_t iteration, int64_t iterations) {
    if (!step.isKernel) // the functions that it runs report their steps
      return runStep(binding, step, operands, iteration);
    const Step &info = plan.steps[step.index];
    StepProfile p;
    p.step = step.index;
    p.kernel = a.kernels[info.kernel].name.c_str();
    p.location = a.locations[info.location].c_str();
    p.function = plan.name.c_str();
    p.tasks = step.tasks;
    p.flops = binding.value(info.flops);
    p.bytes = binding.value(info.bytes);
    p.parallel = step.grain < step.tasks && context.parallel.threads > 1;
    p.iteration = iteration;
    p.iterations = iterations;
    p.startNs = nowNs();
    runKernel(binding, step, operands, iteration);
    p.endNs = nowNs();
    p.provider = context.gpu && context.gpu->hasUsedLibrary() ? "cuBLASLt" : nullptr;
    context.profile.step(context.profile.ctx, p);
  };
  walk(
      binding,
      [&](std::span<const BoundStep> steps) { // one by one
        if (hasFailed())
          return runPreceding(binding, steps);
        for (const BoundStep &step : mayUpdate(binding, steps) ? steps : std::span<const BoundStep>())
          timed(step, step.operands, 0, 1);
      },
      [&](const BoundLoop &loop) { // iterations one by one, so that each step is timed
        binding.enter(loop);
        for (int64_t iteration = 0; iteration < loop.iterations && goesOn(binding, loop); ++iteration) {
          runIteration(binding, loop, iteration, [&](const BoundStep &step, void *const *operands) {
            if (!loop.sequential || mustRun(step.index))
              timed(step, operands, iteration, loop.iterations);
          });
          collectErrors(iteration);
        }
      },
      [&](uint32_t step) { return mustRun(step); });
}

} // namespace burin::rt
