#include "frontend/execute/Executable.h"
#include "llvm/ADT/SmallVector.h"

namespace burin::detail {

size_t byteCount(std::span<const rt::TensorView> views) {
  size_t total = 0;
  for (const rt::TensorView &view : views) {
    size_t bytes = byteWidth(view.dtype);
    for (uint32_t d = 0; d < view.rank; ++d)
      bytes *= size_t(view.shape[d]);
    total += bytes;
  }
  return total;
}

Executable::Executable(rt::Program::Ptr program, HostFunctions functions, bool statesAreGiven, rt::gpu::Device::Ptr gpu,
                       int threads)
    : loaded(std::move(program)), hostFunctions(std::move(functions)),
      asksHost(std::ranges::any_of(loaded->artifact().plans, [](const rt::Plan &p) { return !p.hostCalls.empty(); })),
      statesAreGiven(statesAreGiven), threadCount(threads), gpu(std::move(gpu)) {}

std::optional<Executable::GivenState> Executable::givenState(uint32_t function, size_t output) const {
  const rt::Plan &plan = loaded->artifact().plans[function];
  if (!statesAreGiven || output < plan.callerOutputs())
    return std::nullopt;
  const rt::StateOutput &state = plan.stateOutputs[output - plan.callerOutputs()];
  size_t at = size_t(std::ranges::find(plan.stateInputs, state.state) - plan.stateInputs.begin());
  return GivenState{plan.callerInputs() + at, state.update == rt::StateOutput::Update::InPlace};
}

rt::Status Executable::takeSession(std::unique_ptr<rt::Session> &session) {
  {
    std::lock_guard lock(mutex);
    if (!idle.empty()) {
      session = std::move(idle.back());
      idle.pop_back();
      return {};
    }
  }
  rt::SessionOptions options;
  options.statesAreGiven = statesAreGiven;
  options.threads = threadCount;
  if (!hostFunctions.empty())
    options.host = {&hostFunctions, callHostFromRun};
  if (gpu) {
    options.device = gpu->name();
    options.stream.kind = rt::gpu::StreamChoice::Kind::Shared;
  }
  return rt::Session::create(loaded, options, session);
}

rt::Status Executable::withSession(llvm::function_ref<rt::Status(rt::Session &)> action) {
  std::unique_ptr<rt::Session> session;
  if (rt::Status status = takeSession(session); !status.ok())
    return status;
  rt::Status status = action(*session);
  std::lock_guard lock(mutex);
  idle.push_back(std::move(session));
  return status;
}

rt::Status Executable::onStates(llvm::function_ref<rt::Status(rt::Session &)> action) {
  const void *self[] = {this};
  InUse mark(self, "run", {});
  std::lock_guard oneAtATime(inOrder);
  return withSession(action);
}

rt::Status Executable::run(uint32_t function, std::span<const rt::TensorView> inputs, std::span<rt::TensorView> outputs,
                           llvm::function_ref<void()> take, std::shared_ptr<rt::PendingRun> *later,
                           const rt::UpdateHook &updates) {
  auto action = [&](rt::Session &session) {
    auto begin = std::chrono::steady_clock::now();
    rt::Status status = session.run(inputs, outputs, function, later, updates);
    lastTime.store(std::chrono::steady_clock::now() - begin, std::memory_order_relaxed);
    if (status.ok()) {
      lastBytes.store(byteCount(inputs) + byteCount(outputs), std::memory_order_relaxed);
      take();
    }
    return status;
  };
  return hasStates() ? onStates(action) : withSession(action);
}

std::chrono::nanoseconds Executable::expectedTime(size_t bytes) const {
  std::chrono::nanoseconds last = lastTime.load(std::memory_order_relaxed);
  size_t known = std::max<size_t>(lastBytes.load(std::memory_order_relaxed), 1);
  double growth = std::max(1.0, double(bytes) / double(known));
  return last == last.max() ? last : std::chrono::nanoseconds(int64_t(double(last.count()) * growth));
}

/// Views of tensors of these types; `dims` owns the shapes.
static llvm::SmallVector<rt::TensorView> viewsOf(std::span<const TensorSpec> specs,
                                                 llvm::SmallVectorImpl<int64_t> &dims) {
  size_t total = 0;
  for (const TensorSpec &spec : specs)
    total += spec.shape.size();
  dims.reserve(total); // views point to its elements
  llvm::SmallVector<rt::TensorView> views;
  for (const TensorSpec &spec : specs) {
    views.push_back({nullptr, dims.end(), uint32_t(spec.shape.size()), spec.dtype});
    for (const Dim &size : spec.shape)
      dims.push_back(size.value());
  }
  return views;
}

rt::Status Executable::outputsFor(uint32_t function, std::span<const TensorSpec> inputs,
                                  std::vector<TensorSpec> &outputs) {
  constexpr size_t kMaxSignatures = 8; // as many as a session keeps bindings
  std::lock_guard lock(mutex);
  auto known = std::ranges::find_if(
      signatures, [&](const Signature &s) { return s.function == function && std::ranges::equal(s.inputs, inputs); });
  if (known == signatures.end()) {
    const rt::Artifact &artifact = loaded->artifact();
    const rt::Plan &plan = artifact.plans[function];
    std::vector<TensorSpec> all(inputs.begin(), inputs.end());
    for (uint32_t i : plan.stateInputs)
      if (!statesAreGiven)
        all.push_back(
            {artifact.states[i].dtype, Shape(artifact.states[i].shape.begin(), artifact.states[i].shape.end())});
    llvm::SmallVector<int64_t> dims;
    std::unique_ptr<rt::ShapeBinding> binding;
    std::byte weights{}; // placeholder of GPU weights, never read
    rt::Place place{.workers = 1, .gpuWeights = gpu ? &weights : nullptr};
    if (rt::Status status = rt::ShapeBinding::create(*loaded, function, viewsOf(all, dims), place, binding);
        !status.ok())
      return status;
    Signature made{function, {inputs.begin(), inputs.end()}, {}};
    const auto &infos = plan.outputs;
    for (uint32_t i = 0; i < (statesAreGiven ? infos.size() : plan.callerOutputs()); ++i) {
      auto shape = binding->outputShape(i);
      TensorSpec &spec = made.outputs.emplace_back(TensorSpec{infos[i].dtype, Shape(shape.begin(), shape.end())});
      std::replace(spec.shape.begin(), spec.shape.end(), Dim(-1), Dim("unknown"));
    }
    if (signatures.size() == kMaxSignatures)
      signatures.pop_back();
    known = signatures.insert(signatures.end(), std::move(made));
  }
  std::rotate(signatures.begin(), known, known + 1);
  outputs = signatures.front().outputs;
  return {};
}

} // namespace burin::detail
