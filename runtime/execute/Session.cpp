#include "runtime/execute/Session.h"
#include "runtime/format/Target.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <charconv>
#include <cstring>

namespace burin::rt {
namespace {

ParallelFor onPool(Pool &pool) {
  return {&pool,
          [](void *ctx, int64_t n, int64_t grain, Pool::Body body, void *bodyCtx) {
            static_cast<Pool *>(ctx)->parallelFor(n, grain, body, bodyCtx);
          },
          pool.threads()};
}

/// Memory of a GPU; its address is of use to kernels only.
Allocator onGpu(gpu::Gpu &gpu) {
  return {&gpu,
          [](void *ctx, size_t bytes, size_t) {
            auto &g = *static_cast<gpu::Gpu *>(ctx);
            gpu::Gpu::Use use(g);
            return g.allocate(bytes);
          },
          [](void *ctx, void *data, size_t) {
            auto &g = *static_cast<gpu::Gpu *>(ctx);
            gpu::Gpu::Use use(g);
            g.release(data);
          }};
}

/// Memory of the process that a GPU copies to and from.
Allocator pinnedBy(gpu::Gpu &gpu) {
  return {&gpu,
          [](void *ctx, size_t bytes, size_t) {
            auto &g = *static_cast<gpu::Gpu *>(ctx);
            gpu::Gpu::Use use(g);
            return g.allocatePinned(bytes);
          },
          [](void *ctx, void *data, size_t) {
            auto &g = *static_cast<gpu::Gpu *>(ctx);
            gpu::Gpu::Use use(g);
            g.releasePinned(data);
          }};
}

/// What runs the session: null for the processor.
Status openDevice(const Program &program, const std::string &name, std::unique_ptr<gpu::Gpu> &out) {
  constexpr std::string_view prefix = "cuda:";
  if (name.empty() || name == "cpu") {
    if (program.runsOnCpu())
      return {};
    return {ErrorCode::Unsupported,
            text("the artifact has code for GPUs only: ", program.target(),
                 "\n  run it on the device cuda:0, or compile it again with --target ", hostTarget())};
  }
  int ordinal = -1;
  const char *end = name.data() + name.size();
  if (name.starts_with(prefix))
    if (auto [at, error] = std::from_chars(name.data() + prefix.size(), end, ordinal);
        error != std::errc() || at != end)
      ordinal = -1;
  if (ordinal < 0)
    return {ErrorCode::InvalidArgument, text("there is no device ", name, ": devices are cpu, cuda:0, cuda:1, …")};
  return gpu::Gpu::open(program, ordinal, out);
}

/// Holds the session for the length of one call.
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

Session::Session(Program::Ptr program, const SessionOptions &options, std::unique_ptr<gpu::Gpu> device)
    : gpu(std::move(device)), context{.program = std::move(program),
                                      .allocator = orDefault(options.allocator),
                                      .gpu = gpu.get(),
                                      .runMemory = gpu ? onGpu(*gpu) : orDefault(options.allocator),
                                      .exchange = gpu ? pinnedBy(*gpu) : orDefault(options.allocator),
                                      .parallel = {},
                                      .pool = nullptr,
                                      .logger = options.logger,
                                      .profile = {},
                                      .scratch = GrowingMemory(gpu ? onGpu(*gpu) : orDefault(options.allocator)),
                                      .runners = {}} {
  if (gpu) {
    context.parallel.threads = 1;
  } else if (options.parallelFor.run) {
    context.parallel = options.parallelFor;
  } else if (options.threads == 1) {
    context.parallel.threads = 1;
  } else {
    if (options.threads > 1)
      ownPool = std::make_unique<Pool>(options.threads);
    context.pool = ownPool ? ownPool.get() : &Pool::shared();
    context.parallel = onPool(*context.pool);
  }
  for (uint32_t i = 0; i < context.program->artifact().plans.size(); ++i)
    context.runners.push_back(std::make_unique<PlanRunner>(context, i));
}

Session::~Session() = default;

Status Session::create(Program::Ptr program, const SessionOptions &options, std::unique_ptr<Session> &out) {
  constexpr int kMaxThreads = 4096;
  if (options.threads < 0 || options.threads > kMaxThreads)
    return {ErrorCode::InvalidArgument, text("threads must be in [0, ", kMaxThreads, "], got ", options.threads)};
  if (options.parallelFor.run && (options.parallelFor.threads < 1 || options.parallelFor.threads > kMaxThreads))
    return {ErrorCode::InvalidArgument, text("the thread pool must have between 1 and ", kMaxThreads, " threads, got ",
                                             options.parallelFor.threads)};
  std::unique_ptr<gpu::Gpu> gpu;
  if (Status s = openDevice(*program, options.device, gpu); !s.ok())
    return s;
  auto session = std::make_unique<Session>(std::move(program), options, std::move(gpu));
  if (Status s = session->makeStates(); !s.ok())
    return s;
  out = std::move(session);
  return {};
}

Status Session::bind(std::span<const TensorView> inputs, uint32_t function) {
  Hold hold(busy);
  if (!hold.ok())
    return Hold::refusal();
  const Plan &plan = program().artifact().plans[function];
  if (plan.stateInputs.empty())
    return context.runners[function]->bind(inputs);
  if (Status s = withStates(inputs, {}, plan); !s.ok())
    return s;
  return context.runners[function]->bind(allInputs);
}

Status Session::run(std::span<const TensorView> inputs, std::span<TensorView> outputs, uint32_t function) {
  Hold hold(busy);
  if (!hold.ok())
    return Hold::refusal();
  const Plan &plan = program().artifact().plans[function];
  bool hasStates = !plan.stateInputs.empty() || !plan.stateOutputs.empty();
  Status s = hasStates ? runWithStates(inputs, outputs, function) : context.runners[function]->run(inputs, outputs);
  if (!s.ok())
    context.runners[function]->forget(outputs);
  return s;
}

Status Session::setProfile(const ProfileHook &hook) {
  Hold hold(busy);
  if (!hold.ok())
    return Hold::refusal();
  context.profile = hook;
  return {};
}

// ---- states

Status Session::makeStates() {
  const Artifact &a = program().artifact();
  for (const State &state : a.states) {
    StateMemory &memory = states.emplace_back(
        StateMemory{GrowingMemory(context.allocator), GrowingMemory(context.allocator), byteWidth(state.dtype)});
    for (int64_t dim : state.shape)
      memory.bytes *= uint64_t(dim);
    if (!memory.value.reserve(std::max<uint64_t>(memory.bytes, 1)))
      return {ErrorCode::OutOfMemory, text("no memory for ", memory.bytes, " bytes of the state ", state.name)};
    initialise(uint32_t(states.size() - 1));
  }
  for (const Plan &plan : a.plans) { // runs allocate nothing
    allInputs.reserve(std::max(allInputs.capacity(), plan.inputs.size()));
    allOutputs.reserve(std::max(allOutputs.capacity(), plan.outputs.size()));
  }
  return {};
}

void Session::initialise(uint32_t i) {
  const State &state = program().artifact().states[i];
  if (state.initial == UINT32_MAX)
    std::memset(states[i].value.data(), 0, states[i].bytes);
  else if (states[i].bytes)
    std::memcpy(states[i].value.data(), program().constant(state.initial), states[i].bytes);
}

/// What a function takes and gives in all. The new value of a state is written over the old one, or beside it.
Status Session::withStates(std::span<const TensorView> inputs, std::span<const TensorView> outputs, const Plan &plan) {
  allInputs.assign(inputs.begin(), inputs.end());
  for (uint32_t i : plan.stateInputs)
    allInputs.push_back(state(i));
  allOutputs.assign(outputs.begin(), outputs.end());
  for (const StateOutput &output : plan.stateOutputs) {
    TensorView view = state(output.state);
    if (output.update == StateOutput::Update::Replace) {
      StateMemory &memory = states[output.state];
      if (!memory.next.reserve(std::max<uint64_t>(memory.bytes, 1)))
        return {ErrorCode::OutOfMemory, text("no memory for ", memory.bytes, " bytes of the next value of the state ",
                                             program().artifact().states[output.state].name)};
      view.data = memory.next.data();
    }
    allOutputs.push_back(view);
  }
  return {};
}

Status Session::runWithStates(std::span<const TensorView> inputs, std::span<TensorView> outputs, uint32_t function) {
  const Plan &plan = program().artifact().plans[function];
  if (inputs.size() != plan.callerInputs() || outputs.size() != plan.callerOutputs())
    return {ErrorCode::InvalidArgument,
            text(plan.name == "main" ? "the artifact" : plan.name, " takes ", plan.callerInputs(), " inputs and gives ",
                 plan.callerOutputs(), " outputs; ", inputs.size(), " and ", outputs.size(), " were given")};
  if (Status s = withStates(inputs, outputs, plan); !s.ok())
    return s;
  Status s = context.runners[function]->run(allInputs, allOutputs);
  std::copy_n(allOutputs.begin(), outputs.size(), outputs.begin());
  if (!s.ok())
    return s;
  for (const StateOutput &output : plan.stateOutputs)
    if (output.update == StateOutput::Update::Replace)
      swap(states[output.state].value, states[output.state].next);
  return {};
}

TensorView Session::state(uint32_t i) const {
  const State &info = program().artifact().states[i];
  return {states[i].value.data(), info.shape.data(), uint32_t(info.shape.size()), info.dtype};
}

Status Session::writeState(uint32_t i, Bytes bytes) {
  Hold hold(busy);
  if (!hold.ok())
    return Hold::refusal();
  if (bytes.size() != states[i].bytes)
    return {ErrorCode::InvalidArgument, text("the state ", program().artifact().states[i].name, " has ",
                                             states[i].bytes, " bytes, ", bytes.size(), " were given")};
  if (!bytes.empty())
    std::memcpy(states[i].value.data(), bytes.data(), bytes.size());
  return {};
}

Status Session::resetStates() {
  Hold hold(busy);
  if (!hold.ok())
    return Hold::refusal();
  for (uint32_t i = 0; i < states.size(); ++i)
    initialise(i);
  return {};
}

Status Session::copyStates(const Session &from) {
  Hold hold(busy);
  if (!hold.ok())
    return Hold::refusal();
  if (from.context.program != context.program)
    return {ErrorCode::InvalidArgument, "states are copied between sessions of one loaded artifact only"};
  for (uint32_t i = 0; i < states.size() && &from != this; ++i)
    if (states[i].bytes)
      std::memcpy(states[i].value.data(), from.states[i].value.data(), states[i].bytes);
  return {};
}

Status Session::reorderState(uint32_t i, uint32_t axis, std::span<const int64_t> order) {
  Hold hold(busy);
  if (!hold.ok())
    return Hold::refusal();
  const State &info = program().artifact().states[i];
  if (axis >= info.shape.size() || int64_t(order.size()) != info.shape[axis])
    return {ErrorCode::InvalidArgument, text("the state ", info.name, " is ", tensorText(info.dtype, info.shape),
                                             "; got ", order.size(), " indices for axis ", axis)};
  for (int64_t from : order)
    if (from < 0 || from >= info.shape[axis])
      return {ErrorCode::InvalidArgument,
              text("index ", from, " is out of range for axis ", axis, " of the state ", info.name)};
  StateMemory &memory = states[i];
  if (!memory.next.reserve(std::max<uint64_t>(memory.bytes, 1)))
    return {ErrorCode::OutOfMemory, text("no memory for ", memory.bytes, " bytes of the state ", info.name)};
  uint64_t inner = byteWidth(info.dtype), outer = 1;
  for (size_t d = 0; d < info.shape.size(); ++d)
    (d < axis ? outer : inner) *= d == axis ? 1 : uint64_t(info.shape[d]);
  for (uint64_t o = 0; o < outer; ++o)
    for (size_t j = 0; j < order.size() && inner; ++j)
      std::memcpy(memory.next.data() + (o * order.size() + j) * inner,
                  memory.value.data() + (o * order.size() + uint64_t(order[j])) * inner, inner);
  swap(memory.value, memory.next);
  return {};
}

} // namespace burin::rt
