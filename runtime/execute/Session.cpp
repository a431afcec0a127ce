#include "runtime/execute/Session.h"
#include "runtime/support/Format.h"
#include "runtime/support/Memory.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>

namespace burin::rt {
namespace {

constexpr uint64_t kMemoryAlign = 4096;

Allocator orDefault(const Allocator &given) {
  if (given.allocate && given.release)
    return given;
  return {nullptr, [](void *, size_t bytes, size_t align) { return alignedMemory(bytes, align); },
          [](void *, void *data, size_t) { std::free(data); }};
}

ParallelFor onPool(Pool &pool) {
  return {&pool,
          [](void *ctx, int64_t n, int64_t grain, Pool::Body body, void *bodyCtx) {
            static_cast<Pool *>(ctx)->parallelFor(n, grain, body, bodyCtx);
          },
          pool.threads()};
}

int64_t nowNs() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

/// Holds the session for the length of one run.
class Hold {
public:
  explicit Hold(std::atomic<bool> &busy) : busy(busy), held(!busy.exchange(true, std::memory_order_acquire)) {}
  ~Hold() {
    if (held)
      busy.store(false, std::memory_order_release);
  }
  bool ok() const { return held; }
  static Status refusal() {
    return {ErrorCode::Busy,
            "the session is running already\n  make one session per thread; they share the loaded artifact"};
  }

private:
  std::atomic<bool> &busy;
  const bool held;
};

} // namespace

bool GrowingMemory::reserve(uint64_t bytes) {
  if (bytes <= capacity)
    return true;
  release();
  uint64_t rounded = (bytes + kMemoryAlign - 1) / kMemoryAlign * kMemoryAlign;
  memory = static_cast<std::byte *>(allocator.allocate(allocator.ctx, rounded, kMemoryAlign));
  capacity = memory ? rounded : 0;
  return memory;
}

void GrowingMemory::release() {
  if (memory)
    allocator.release(allocator.ctx, memory, capacity);
  memory = nullptr;
  capacity = 0;
}

Session::Session(Program::Ptr program, const SessionOptions &options)
    : loaded(std::move(program)), allocator(orDefault(options.allocator)), logger(options.logger), scratch(allocator) {
  if (options.parallelFor.run) {
    parallel = options.parallelFor;
  } else if (options.threads == 1) {
    parallel.threads = 1;
  } else {
    if (options.threads > 1)
      ownPool = std::make_unique<Pool>(options.threads);
    pool = ownPool ? ownPool.get() : &Pool::shared();
    parallel = onPool(*pool);
  }
  outputMemory.reserve(loaded->artifact().outputs.size());
  for (size_t i = 0; i < loaded->artifact().outputs.size(); ++i)
    outputMemory.emplace_back(allocator);
  stages.reserve(loaded->stages().list.size());
  for (size_t i = 0; i < loaded->stages().list.size(); ++i)
    stages.push_back({GrowingMemory(allocator), {}});
  sizes.reserve(loaded->artifact().symbols.size());
}

Session::~Session() = default;

Status Session::create(Program::Ptr program, const SessionOptions &options, std::unique_ptr<Session> &out) {
  constexpr int kMaxThreads = 4096;
  if (options.threads < 0 || options.threads > kMaxThreads)
    return {ErrorCode::InvalidArgument, text("threads must be in [0, ", kMaxThreads, "], got ", options.threads)};
  if (options.parallelFor.run && (options.parallelFor.threads < 1 || options.parallelFor.threads > kMaxThreads))
    return {ErrorCode::InvalidArgument, text("the thread pool must have between 1 and ", kMaxThreads, " threads, got ",
                                             options.parallelFor.threads)};
  out = std::make_unique<Session>(std::move(program), options);
  return {};
}

/// Makes the binding that `matches` the current one, if there is one.
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

Status Session::bindFirst(std::span<const TensorView> inputs) {
  if (!recall(stages[0].bindings, [&](const ShapeBinding &b) { return b.matches(*loaded, inputs); })) {
    std::unique_ptr<ShapeBinding> binding;
    if (Status s = ShapeBinding::create(*loaded, inputs, parallel.threads, binding); !s.ok())
      return s;
    keep(0, std::move(binding));
  }
  reached = 1;
  return {};
}

/// The stage after those reached: `outputs` have data as far as they can have been written.
Status Session::bindNext(std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const ShapeBinding &before = current(reached - 1);
  if (Status s = readSizes(before, inputs, outputs); !s.ok())
    return s;
  if (!recall(stages[reached].bindings, [&](const ShapeBinding &b) { return b.matches(sizes); })) {
    std::unique_ptr<ShapeBinding> binding;
    if (Status s = ShapeBinding::create(*loaded, before, sizes, binding); !s.ok())
      return s;
    keep(reached, std::move(binding));
  }
  ++reached;
  return {};
}

Status Session::readSizes(const ShapeBinding &before, std::span<const TensorView> inputs,
                          std::span<const TensorView> outputs) {
  const Artifact &a = loaded->artifact();
  sizes.assign(before.symbols().begin(), before.symbols().end());
  for (uint32_t i = uint32_t(sizes.size()); i < loaded->stages().list[reached].symbols; ++i) {
    const Symbol &symbol = a.symbols[i];
    const uint32_t index = symbol.count.index;
    const void *at = symbol.count.kind == Slot::Kind::Input      ? inputs[index].data
                     : symbol.count.kind == Slot::Kind::Output   ? outputs[index].data
                     : symbol.count.kind == Slot::Kind::Constant ? loaded->constant(index)
                                                                 : nullptr;
    if (symbol.count.kind == Slot::Kind::Buffer) {
      const ShapeBinding &home = current(loaded->stages().ofBuffer[index]);
      if (home.value(a.buffers[index].bytes) < int64_t(sizeof(int64_t)))
        return {ErrorCode::BadArtifact, text("the size ", symbol.name, " is read from an empty buffer")};
      at = home.buffer(index);
    }
    int64_t value = -1;
    if (at)
      std::memcpy(&value, at, sizeof value);
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

void Session::keep(size_t stage, std::unique_ptr<ShapeBinding> binding) {
  if (logger.log)
    logger.log(logger.ctx, 0,
               text("planned for new ", stage ? "sizes: " : "shapes: ", binding->steps().size(), " steps, ",
                    binding->arenaBytes(), " bytes of intermediate results, ", binding->scratchBytes(),
                    " bytes of scratch per thread")
                   .c_str());
  std::vector<std::unique_ptr<ShapeBinding>> &bindings = stages[stage].bindings;
  if (bindings.size() == kMaxBindings)
    bindings.pop_back();
  bindings.insert(bindings.begin(), std::move(binding));
}

uint64_t Session::arenaBytes() const {
  uint64_t bytes = 0;
  for (size_t stage = 0; stage < reached; ++stage)
    bytes += current(stage).arenaBytes();
  return bytes;
}

Status Session::prepareMemory(size_t stage) {
  ShapeBinding &binding = current(stage);
  GrowingMemory &arena = stages[stage].arena;
  if (!arena.reserve(binding.arenaBytes()))
    return {ErrorCode::OutOfMemory, text("no memory for ", binding.arenaBytes(), " bytes of intermediate results")};
  uint64_t all;
  if (__builtin_mul_overflow(binding.scratchBytes(), uint64_t(parallel.threads), &all) || !scratch.reserve(all))
    return {ErrorCode::OutOfMemory, text("no memory for ", binding.scratchBytes(), " bytes of scratch for each of ",
                                         parallel.threads, " threads")};
  binding.setArena(arena.data());
  for (uint32_t buffer : binding.earlierBuffers())
    binding.setBuffer(buffer, current(loaded->stages().ofBuffer[buffer]).buffer(buffer));
  return {};
}

Status Session::bind(std::span<const TensorView> inputs) {
  Hold hold(busy);
  return hold.ok() ? bindFirst(inputs) : Hold::refusal();
}

Status Session::run(std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  Hold hold(busy);
  if (!hold.ok())
    return Hold::refusal();
  Status s = runBound(inputs, outputs);
  for (uint32_t i = 0; !s.ok() && i < outputs.size() && i < outputMemory.size(); ++i)
    if (isOurs(i, outputs[i]))
      outputs[i] = {};
  return s;
}

Status Session::setProfile(const ProfileHook &hook) {
  Hold hold(busy);
  if (!hold.ok())
    return Hold::refusal();
  profile = hook;
  return {};
}

Status Session::runBound(std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  if (Status s = bindFirst(inputs); !s.ok())
    return s;
  if (Status s = checkInputs(inputs, outputs); !s.ok())
    return s;
  if (Status s = runStage(0, inputs, outputs); !s.ok())
    return s;
  while (reached < stages.size()) {
    if (Status s = bindNext(inputs, outputs); !s.ok())
      return s;
    if (Status s = runStage(reached - 1, inputs, outputs); !s.ok())
      return s;
  }
  return {};
}

Status Session::runStage(size_t stage, std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  if (Status s = prepareMemory(stage); !s.ok())
    return s;
  if (Status s = setOperands(stage, inputs, outputs); !s.ok())
    return s;
  std::optional<Pool::Awake> awake;
  if (pool && current(stage).parallelSteps() > 1)
    awake.emplace(*pool);
  if (profile.step)
    runProfiled(current(stage));
  else
    runSteps(current(stage));
  return {};
}

Status Session::checkInputs(std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const Artifact &a = loaded->artifact();
  if (outputs.size() != a.outputs.size())
    return {ErrorCode::InvalidArgument,
            text("the artifact has ", a.outputs.size(), " outputs, ", outputs.size(), " were given")};
  ErrorList problems;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].data && current(0).inputBytes(i))
      problems.add("input ", i, " (", a.inputs[i].name, ") has no data");
  return problems.any() ? problems.status("cannot run: ") : Status();
}

/// The inputs, and the outputs that are known by now. Those whose shape is new are checked, or given memory.
Status Session::setOperands(size_t stage, std::span<const TensorView> inputs, std::span<TensorView> outputs) {
  ShapeBinding &binding = current(stage);
  const std::vector<uint32_t> &knownFrom = loaded->stages().ofOutput;
  ErrorList problems;
  for (uint32_t i = 0; i < outputs.size(); ++i)
    if (knownFrom[i] == stage && outputs[i].data && !isOurs(i, outputs[i]))
      checkOutput(i, binding, outputs[i], problems);
  if (problems.any())
    return problems.status("cannot run: ");
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
      view = {outputMemory[i].data(), shape.data(), uint32_t(shape.size()), loaded->artifact().outputs[i].dtype};
    }
    binding.setOutput(i, view.data);
  }
  return {};
}

void Session::checkOutput(uint32_t i, const ShapeBinding &binding, const TensorView &got, ErrorList &problems) const {
  const TensorInfo &info = loaded->artifact().outputs[i];
  std::span<const int64_t> want = binding.outputShape(i);
  if (got.dtype != info.dtype || got.rank != want.size() || (got.rank && !got.shape) ||
      !std::equal(want.begin(), want.end(), got.shape))
    problems.add("output ", i, " (", info.name, ") must be ", tensorText(info.dtype, want), ", got ",
                 tensorText(got.dtype, {got.shape, got.shape ? got.rank : 0}));
}

void Session::runStep(const ShapeBinding &binding, const BoundStep &step, void *const *operands) {
  if (step.grain >= step.tasks || parallel.threads == 1) {
    step.kernel(operands, step.sizes, scratch.data(), 0, step.tasks);
    return;
  }
  struct Call {
    const BoundStep &step;
    void *const *operands;
    std::byte *scratch;
    uint64_t stride;
  } call{step, operands, scratch.data(), binding.scratchBytes()};
  auto body = [](void *ctx, int64_t lo, int64_t hi, int worker) {
    auto &c = *static_cast<Call *>(ctx);
    c.step.kernel(c.operands, c.step.sizes, c.scratch + uint64_t(worker) * c.stride, lo, hi);
  };
  parallel.run(parallel.ctx, step.tasks, step.grain, body, &call);
}

/// Each step on one thread.
void Session::runSideBySide(const ShapeBinding &binding, std::span<const BoundStep> steps) {
  struct Call {
    std::span<const BoundStep> steps;
    std::byte *scratch;
    uint64_t stride;
  } call{steps, scratch.data(), binding.scratchBytes()};
  auto body = [](void *ctx, int64_t lo, int64_t hi, int worker) {
    auto &c = *static_cast<Call *>(ctx);
    for (const BoundStep &step : c.steps.subspan(size_t(lo), size_t(hi - lo)))
      step.kernel(step.operands, step.sizes, c.scratch + uint64_t(worker) * c.stride, 0, step.tasks);
  };
  parallel.run(parallel.ctx, int64_t(steps.size()), 1, body, &call);
}

void Session::runLoop(ShapeBinding &binding, const BoundLoop &loop) {
  binding.enter(loop);
  // As many turns at once as there are threads; the threads share the turns that are left over.
  int64_t threads = parallel.threads, together = 0;
  if (threads > 1 && loop.grain < loop.turns) // never so where each turn needs the one before
    together = loop.turns < 4 * threads ? loop.turns / threads * threads : loop.turns;
  struct Call {
    ShapeBinding &binding;
    const BoundLoop &loop;
    std::byte *scratch;
  } call{binding, loop, scratch.data()};
  auto body = [](void *ctx, int64_t lo, int64_t hi, int worker) {
    auto &c = *static_cast<Call *>(ctx);
    std::byte *scratch = c.scratch + uint64_t(worker) * c.binding.scratchBytes();
    for (int64_t turn = lo; turn < hi; ++turn) {
      void *const *operands = c.binding.operandsOfTurn(c.loop, turn, worker);
      for (const BoundStep &step : c.binding.steps().subspan(c.loop.first, c.loop.end - c.loop.first))
        step.kernel(operands + c.binding.offsetInLoop(c.loop, step), step.sizes, scratch, 0, step.tasks);
    }
  };
  if (together)
    parallel.run(parallel.ctx, together, std::min(loop.grain, together / threads), body, &call);
  for (int64_t turn = together; turn < loop.turns; ++turn)
    runTurn(binding, loop, turn,
            [&](const BoundStep &step, void *const *operands) { runStep(binding, step, operands); });
}

template <class F> void Session::runTurn(ShapeBinding &binding, const BoundLoop &loop, int64_t turn, F run) {
  void *const *operands = binding.operandsOfTurn(loop, turn, 0);
  for (const BoundStep &step : binding.steps().subspan(loop.first, loop.end - loop.first))
    run(step, operands + binding.offsetInLoop(loop, step));
}

template <class Steps, class Loop> static void walk(ShapeBinding &binding, Steps step, Loop loop) {
  std::span<const BoundLoop> loops = binding.loops();
  std::span<const BoundStep> steps = binding.steps();
  for (size_t i = 0; i < steps.size();) {
    if (loops.empty() || loops.front().first != i) {
      step(steps.subspan(i, steps[i].together));
      i += steps[i].together;
      continue;
    }
    loop(loops.front());
    i = loops.front().end;
    loops = loops.subspan(1);
  }
}

void Session::runSteps(ShapeBinding &binding) {
  walk(
      binding,
      [&](std::span<const BoundStep> steps) {
        steps.size() > 1 ? runSideBySide(binding, steps) : runStep(binding, steps[0], steps[0].operands);
      },
      [&](const BoundLoop &loop) { runLoop(binding, loop); });
}

void Session::runProfiled(ShapeBinding &binding) {
  const Artifact &a = loaded->artifact();
  auto timed = [&](const BoundStep &step, void *const *operands, int64_t turn, int64_t turns) {
    const Step &info = a.steps[step.index];
    StepProfile p;
    p.step = step.index;
    p.kernel = a.kernels[info.kernel].name.c_str();
    p.location = a.locations[info.location].c_str();
    p.tasks = step.tasks;
    p.flops = binding.value(info.flops);
    p.bytes = binding.value(info.bytes);
    p.parallel = step.grain < step.tasks && parallel.threads > 1;
    p.turn = turn;
    p.turns = turns;
    p.startNs = nowNs();
    runStep(binding, step, operands);
    p.endNs = nowNs();
    profile.step(profile.ctx, p);
  };
  walk(
      binding,
      [&](std::span<const BoundStep> steps) { // one after the other
        for (const BoundStep &step : steps)
          timed(step, step.operands, 0, 1);
      },
      [&](const BoundLoop &loop) { // one turn after the other, so that each step has its time
        binding.enter(loop);
        for (int64_t turn = 0; turn < loop.turns; ++turn)
          runTurn(binding, loop, turn,
                  [&](const BoundStep &step, void *const *operands) { timed(step, operands, turn, loop.turns); });
      });
}

} // namespace burin::rt
