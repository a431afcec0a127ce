#include "runtime/execute/session/Session.h"
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

/// An allocator of GPU memory.
template <gpu::Holder holder> Allocator onGpu(gpu::Gpu &gpu) {
  return {&gpu,
          [](void *ctx, size_t bytes, size_t) {
            auto &g = *static_cast<gpu::Gpu *>(ctx);
            gpu::Gpu::Use use(g);
            return g.allocate(bytes, holder);
          },
          [](void *ctx, void *data, size_t bytes) {
            auto &g = *static_cast<gpu::Gpu *>(ctx);
            gpu::Gpu::Use use(g);
            g.release(data, bytes, holder);
          }};
}

/// An allocator of pinned host memory.
Allocator pinnedBy(gpu::Gpu &gpu) {
  return {&gpu,
          [](void *ctx, size_t bytes, size_t) {
            auto &g = *static_cast<gpu::Gpu *>(ctx);
            gpu::Gpu::Use use(g);
            return g.allocatePinned(bytes);
          },
          [](void *ctx, void *data, size_t bytes) {
            auto &g = *static_cast<gpu::Gpu *>(ctx);
            gpu::Gpu::Use use(g);
            g.releasePinned(data, bytes);
          }};
}

/// Opens the device of the session; null for the CPU.
Status openDevice(const Program &program, const SessionOptions &options, std::unique_ptr<gpu::Gpu> &out) {
  int ordinal = -1;
  if (Status s = parseDevice(options.device, ordinal); !s.ok())
    return s;
  if (ordinal >= 0)
    return gpu::Gpu::open(program, ordinal, options.stream, out);
  if (program.runsOnCpu())
    return {};
  return {ErrorCode::Unsupported,
          text("the artifact has code for GPUs only: ", program.target(),
               "\n  run it on the device cuda:0, or compile it again with --target ", hostTarget())};
}

} // namespace

Status parseDevice(std::string_view name, int &ordinal) {
  constexpr std::string_view prefix = "cuda:";
  ordinal = -1;
  if (name.empty() || name == "cpu")
    return {};
  const char *end = name.data() + name.size();
  if (name.starts_with(prefix))
    if (auto [at, error] = std::from_chars(name.data() + prefix.size(), end, ordinal);
        error != std::errc() || at != end)
      ordinal = -1;
  constexpr int kMost = 255; // see DeviceTag
  if (ordinal < 0 || ordinal > kMost)
    return {ErrorCode::InvalidArgument, text("there is no device ", name, ": devices are cpu, cuda:0, cuda:1, …")};
  return {};
}

Session::Session(Program::Ptr program, const SessionOptions &options, std::unique_ptr<gpu::Gpu> device)
    : gpu(std::move(device)),
      context{.program = std::move(program),
              .allocator = orDefault(options.allocator),
              .gpu = gpu.get(),
              .runMemory = gpu ? onGpu<gpu::Holder::Intermediate>(*gpu) : orDefault(options.allocator),
              .stateMemory = gpu ? onGpu<gpu::Holder::States>(*gpu) : orDefault(options.allocator),
              .exchange = gpu ? pinnedBy(*gpu) : orDefault(options.allocator),
              .parallel = {},
              .pool = nullptr,
              .logger = options.logger,
              .profile = {},
              .host = options.host,
              .scratch = GrowingMemory(gpu ? onGpu<gpu::Holder::Intermediate>(*gpu) : orDefault(options.allocator)),
              .runners = {}},
      statesAreGiven(options.statesAreGiven) {
  isStreamGiven = options.stream.kind == gpu::StreamChoice::Kind::Given;
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
  if (hasHostCall(program->artifact(), HostCall::Kind::Function) && !options.host.call)
    return {ErrorCode::Unsupported, "the artifact calls C++ functions of the process that compiled it (host_call), so "
                                    "that only that process can run it"};
  std::unique_ptr<gpu::Gpu> gpu;
  if (Status s = openDevice(*program, options, gpu); !s.ok())
    return s;
  auto session = std::make_unique<Session>(std::move(program), options, std::move(gpu));
  if (session->gpu)
    session->context.reportNote();
  if (Status s = session->makeStates(); !s.ok())
    return s;
  out = std::move(session);
  return {};
}

Status Session::bind(std::span<const TensorView> inputs, uint32_t function) {
  SessionHold hold(busy);
  if (!hold.ok())
    return SessionHold::refusal();
  const Plan &plan = program().artifact().plans[function];
  if (plan.stateInputs.empty() || statesAreGiven)
    return context.runners[function]->bind(inputs);
  if (Status s = withStates(inputs, {}, plan); !s.ok())
    return s;
  return context.runners[function]->bind(allInputs);
}

Status Session::run(std::span<const TensorView> inputs, std::span<TensorView> outputs, uint32_t function,
                    std::shared_ptr<PendingRun> *later, const UpdateHook &updates) {
  SessionHold hold(busy);
  if (!hold.ok())
    return SessionHold::refusal();
  const Plan &plan = program().artifact().plans[function];
  PlanRunner &runner = *context.runners[function];
  bool hasStates = !statesAreGiven && (!plan.stateInputs.empty() || !plan.stateOutputs.empty());
  GpuRun mode;
  mode.mayLeave = gpu && (later || isStreamGiven);
  Status s = hasStates ? runWithStates(inputs, outputs, function, mode) : runner.run(inputs, outputs, &mode, updates);
  if (s.ok() && gpu)
    s = keepReport(function, mode, later);
  if (!s.ok())
    runner.forget(outputs);
  return s;
}

Status Session::keepReport(uint32_t function, GpuRun &mode, std::shared_ptr<PendingRun> *later) {
  constexpr size_t kMostLeft = 64;
  std::shared_ptr<PendingRun> run;
  if (mode.report)
    run = std::make_shared<PendingRun>(context.program, context.runners[function]->reportingSteps(),
                                       std::move(mode.report));
  if (later)
    *later = std::move(run);
  else if (run)
    left.push_back(std::move(run));
  auto isDue = [](const std::shared_ptr<PendingRun> &r) { return !r->isCaptured(); };
  auto oldest = std::ranges::find_if(left, isDue);
  if (left.size() <= kMostLeft || gpu->isCaptured() || oldest == left.end())
    return {};
  run = std::move(*oldest);
  left.erase(oldest);
  return run->wait();
}

Status Session::synchronize() {
  SessionHold hold(busy);
  if (!hold.ok())
    return SessionHold::refusal();
  if (!gpu)
    return {};
  gpu::Gpu::Use use(*gpu);
  Status first = gpu->finish();
  for (const std::shared_ptr<PendingRun> &run : left)
    if (Status s = run->wait(); first.ok())
      first = std::move(s);
  std::erase_if(left, [](const std::shared_ptr<PendingRun> &run) { return !run->isCaptured(); });
  return first;
}

Status Session::setProfile(const ProfileHook &hook) {
  SessionHold hold(busy);
  if (!hold.ok())
    return SessionHold::refusal();
  context.profile = hook;
  return {};
}

} // namespace burin::rt
