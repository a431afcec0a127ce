#include "frontend/execute/Executable.h"
#include "frontend/tensor/Creation.h"
#include "llvm/ADT/SmallVector.h"

namespace burin::detail {

static size_t byteCount(std::span<const rt::TensorView> views) {
  size_t total = 0;
  for (const rt::TensorView &view : views) {
    size_t bytes = byteWidth(view.dtype);
    for (uint32_t d = 0; d < view.rank; ++d)
      bytes *= size_t(view.shape[d]);
    total += bytes;
  }
  return total;
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
  return rt::Session::create(loaded, {}, session);
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
  std::lock_guard oneAtATime(inOrder);
  return withSession(action);
}

rt::Status Executable::run(uint32_t function, std::span<const rt::TensorView> inputs, std::span<rt::TensorView> outputs,
                           llvm::function_ref<void()> take) {
  auto action = [&](rt::Session &session) {
    auto begin = std::chrono::steady_clock::now();
    rt::Status status = session.run(inputs, outputs, function);
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
  dims.reserve(total); // the views point into it
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
      all.push_back(
          {artifact.states[i].dtype, Shape(artifact.states[i].shape.begin(), artifact.states[i].shape.end())});
    llvm::SmallVector<int64_t> dims;
    std::unique_ptr<rt::ShapeBinding> binding;
    if (rt::Status status =
            rt::ShapeBinding::create(*loaded, function, viewsOf(all, dims), rt::Place{.workers = 1}, binding);
        !status.ok())
      return status;
    Signature made{function, {inputs.begin(), inputs.end()}, {}};
    const auto &infos = plan.outputs;
    for (uint32_t i = 0; i < plan.callerOutputs(); ++i) {
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

namespace {
/// One call: what it needs until it has run.
struct Launch {
  ExecutableRef executable;
  uint32_t function;
  llvm::SmallVector<StorageRef, 4> inputs; // null: a scalar, in `scalars`
  llvm::SmallVector<StorageRef, 1> outputs;
  llvm::SmallVector<std::array<char, 8>, 2> scalars; // in order
  llvm::SmallVector<rt::TensorView, 4> views;        // inputs, then outputs; without data
  llvm::SmallVector<int64_t, 16> dims;               // what the views' shapes point to
  const char *op;
  Location where;

  void add(const TensorSpec &spec) {
    views.push_back({nullptr, nullptr, uint32_t(spec.shape.size()), spec.dtype});
    for (const Dim &size : spec.shape)
      dims.push_back(size.value());
  }
  void setInputs();
  void operator()();
};

void Launch::setInputs() {
  const int64_t *shape = dims.begin();
  for (rt::TensorView &view : views) {
    view.shape = shape;
    shape += view.rank;
  }
  auto *scalar = scalars.begin();
  for (size_t i = 0; i < inputs.size(); ++i)
    views[i].data = inputs[i] ? inputs[i]->buffer->data() : (scalar++)->data();
}

void Launch::operator()() {
  setInputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    rt::TensorView &view = views[inputs.size() + i];
    outputs[i]->buffer = allocate(byteCount({&view, 1}), where);
    view.data = outputs[i]->buffer->data();
  }
  std::span all(views);
  rt::Status status = executable->run(function, all.first(inputs.size()), all.subspan(inputs.size()));
  if (!status.ok())
    throw Error(where, op, status.message());
}
} // namespace

/// Runs at once and takes the results as the session has made them.
static std::vector<Tensor> runToKnowSizes(Launch &work, std::span<const TensorSpec> results) {
  for (const StorageRef &input : work.inputs)
    if (input)
      await(input, work.where);
  work.setInputs();
  std::vector<rt::TensorView> outputs(results.size());
  std::vector<Tensor> tensors;
  rt::Status status = work.executable->run(work.function, work.views, outputs, [&] {
    for (const rt::TensorView &made : outputs)
      tensors.push_back(copyOf(made.data, {made.dtype, Shape(made.shape, made.shape + made.rank)}, work.where));
  });
  if (!status.ok())
    throw Error(work.where, work.op, status.message());
  return tensors;
}

std::vector<Tensor> launch(const ExecutableRef &executable, uint32_t function, std::span<const Tensor *const> inputs,
                           std::span<const DType> scalarTypes, std::span<const TensorSpec> results,
                           std::chrono::nanoseconds atOnce, const char *op, const Location &where) {
  auto work = std::make_unique<Launch>();
  work->executable = executable;
  work->function = function;
  work->op = op;
  work->where = where;
  llvm::SmallVector<rt::Task *, 4> dependencies;
  size_t inputBytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i])
      continue;
    const TensorState &state = *Access::state(*inputs[i]);
    if (auto *storage = std::get_if<StorageRef>(&state.value)) {
      work->add(state.spec);
      inputBytes += byteCount(state.spec);
      if ((*storage)->task && !((*storage)->task->done() && !(*storage)->task->failed()))
        dependencies.push_back((*storage)->task.get());
      work->inputs.push_back(*storage);
    } else {
      scalarBytes(state, scalarTypes[i], work->scalars.emplace_back().data(), where, op);
      work->views.push_back({nullptr, nullptr, 0, scalarTypes[i]});
      work->inputs.push_back(nullptr);
    }
  }
  auto isSymbolic = [](const TensorSpec &result) {
    return llvm::any_of(result.shape, [](const Dim &d) { return !d.isStatic(); });
  };
  if (llvm::any_of(results, isSymbolic) || executable->hasStates())
    return runToKnowSizes(*work, results);
  size_t bytes = 0;
  std::vector<Tensor> tensors;
  for (const TensorSpec &result : results) {
    work->add(result);
    auto storage = std::make_shared<Storage>();
    work->outputs.push_back(storage);
    bytes += byteCount(result);
    tensors.push_back(Access::make(result, std::move(storage)));
  }
  std::exception_ptr failure;
  if (dependencies.empty() && executable->expectedTime(inputBytes + bytes) <= atOnce)
    try {
      (*work)();
      return tensors;
    } catch (...) {
      failure = std::current_exception(); // reported where the results are waited for, like any other
    }
  auto outputs = work->outputs; // the work may be gone before the task is known here
  rt::TaskRef task = rt::Engine::shared().enqueue(dependencies, bytes, [work = std::move(work), failure] {
    if (failure)
      std::rethrow_exception(failure);
    (*work)();
  });
  for (const StorageRef &storage : outputs)
    storage->task = task;
  return tensors;
}

} // namespace burin::detail
