// Calls of loaded code: at once on this thread, or as a task.
#include "frontend/execute/Executable.h"
#include "frontend/tensor/context/ModuleContext.h"
#include "frontend/tensor/functions/Creation.h"
#include "llvm/ADT/SmallVector.h"

namespace burin::detail {

namespace {
/// The data of one call, until it has run.
struct Launch {
  ExecutableRef executable;
  uint32_t function;
  llvm::SmallVector<StorageRef, 4> inputs; // null: a scalar, from `scalars`
  llvm::SmallVector<StorageRef, 1> outputs;
  llvm::SmallVector<std::array<char, 8>, 2> scalars; // in order
  llvm::SmallVector<rt::TensorView, 4> views;        // inputs, then outputs; without data
  llvm::SmallVector<int64_t, 16> dims;               // storage of the views' shapes
  const char *op;
  Location where;
  ModuleContext module = ModuleContext::current();

  void add(const TensorSpec &spec) {
    views.push_back({nullptr, nullptr, uint32_t(spec.shape.size()), spec.dtype});
    for (const Dim &size : spec.shape)
      dims.push_back(size.value());
  }
  rt::DeviceTag tag() const {
    return {uint8_t(executable->device().is_cuda()), uint8_t(executable->device().index()), 0};
  }
  void setInputs();
  /// Throws if an input that the task has only waited for has no elements.
  void requireInputs() const {
    for (const StorageRef &input : inputs)
      if (input)
        requireElements(*input, where);
  }
  void operator()();
  /// Runs on a CPU and stores the new values of states late; see LateStates.
  void runStoringLate(std::span<const Tensor> results, StateStore *states);
  /// Memory for the new value of a state: that of the old one if the plan updates it in place and nothing else refers
  /// to it, otherwise other memory, with a copy if the plan needs the old value there.
  void placeState(Storage &to, rt::TensorView &view, const Executable::GivenState &state);
  void restoreStates();
  /// Also if it has never run, after a failure of an input.
  ~Launch() { restoreStates(); }

  bool isDone = false;

private:
  void placeOutput(size_t i);
  void placeOnGpu(size_t i);
  void runOnGpu();
};

void Launch::setInputs() {
  const int64_t *shape = dims.begin();
  for (rt::TensorView &view : views) {
    view.shape = shape;
    shape += view.rank;
  }
  auto *scalar = scalars.begin();
  for (size_t i = 0; i < inputs.size(); ++i) {
    views[i].data = inputs[i] ? inputs[i]->buffer->data() : (scalar++)->data();
    views[i].device = tag();
  }
}

/// Allocates an output. The new value of a state that the plan updates in place overwrites a copy of the old one.
void Launch::placeOnGpu(size_t i) {
  rt::TensorView &view = views[inputs.size() + i];
  const rt::gpu::Device::Ptr &gpu = executable->gpuDevice();
  const size_t bytes = byteCount({&view, 1});
  std::optional<Executable::GivenState> state = executable->givenState(function, i);
  const bool isOver = state && state->isInPlace;
  rt::Status status = isOver ? gpu->copyOf(views[state->input].data, bytes, outputs[i]->buffer)
                             : gpu->allocateBuffer(bytes, outputs[i]->buffer);
  if (!status.ok())
    throw Error(where, op, status.message());
  view.data = outputs[i]->buffer->data();
  view.device = tag();
  if (isOver)
    views[state->input].data = view.data;
}

/// Enqueues the run. Errors of kernels are reported where a result is awaited, but before a state changes.
void Launch::runOnGpu() {
  setInputs();
  std::vector<CheckedRun> runs;
  for (const StorageRef &input : inputs)
    inheritRuns(*input, runs);
  bool givesStates = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    placeOnGpu(i);
    givesStates |= executable->givenState(function, i).has_value();
  }
  std::span all(views);
  std::shared_ptr<rt::PendingRun> later;
  rt::Status status = executable->run(function, all.first(inputs.size()), all.subspan(inputs.size()), [] {}, &later);
  if (status.ok() && later && givesStates)
    status = std::exchange(later, nullptr)->wait();
  if (!status.ok())
    throw Error(where, op, status.message());
  constexpr size_t kMostUnchecked = 32; // bounds the list if nobody waits for the runs
  if (later)
    runs.push_back({std::move(later), op, where, moduleText()});
  if (runs.size() > kMostUnchecked) {
    if (rt::Status first = runs.front().run->wait(); !first.ok())
      fail(runs.front(), first);
    runs.erase(runs.begin());
  }
  for (const StorageRef &output : outputs)
    output->gpu->runs = runs;
  isDone = true;
}

void Launch::operator()() {
  ModuleContext::Entered inModule(module);
  if (executable->device().is_cuda())
    return runOnGpu();
  setInputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    placeOutput(i);
  std::span all(views);
  rt::Status status = executable->run(function, all.first(inputs.size()), all.subspan(inputs.size()));
  if (!status.ok())
    throw Error(where, op, status.message());
  isDone = true;
}

void Launch::placeState(Storage &to, rt::TensorView &view, const Executable::GivenState &state) {
  if (state.isInPlace && isUnseen(inputs[state.input])) {
    to.buffer = inputs[state.input]->buffer;
  } else {
    const size_t bytes = byteCount({&view, 1});
    to.buffer = allocate(bytes, where);
    if (state.isInPlace) {
      std::memcpy(to.buffer->data(), views[state.input].data, bytes);
      views[state.input].data = to.buffer->data();
    }
  }
  view.data = to.buffer->data();
}

void Launch::placeOutput(size_t i) {
  rt::TensorView &view = views[inputs.size() + i];
  if (std::optional<Executable::GivenState> state = executable->givenState(function, i))
    return placeState(*outputs[i], view, *state);
  outputs[i]->buffer = allocate(byteCount({&view, 1}), where);
  view.data = outputs[i]->buffer->data();
}

/// Restores states after a run that failed or did not start: the last step that can fail comes before any state is
/// overwritten.
void Launch::restoreStates() {
  if (std::exchange(isDone, true))
    return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto state = executable->givenState(function, i);
    if (!state)
      continue;
    if (const StorageRef &old = inputs[state->input]) {
      if (old->task && old->task->failed() && !old->isRestored)
        continue; // there is no old value either
      outputs[i]->buffer = old->buffer;
      if (outputs[i]->gpu)
        outputs[i]->gpu->runs = old->gpu->runs;
    } else { // a scalar
      const auto scalar = std::count(inputs.begin(), inputs.begin() + ptrdiff_t(state->input), nullptr);
      const size_t bytes = byteWidth(views[state->input].dtype);
      outputs[i]->buffer = allocate(bytes, where);
      std::memcpy(outputs[i]->buffer->data(), scalars[size_t(scalar)].data(), bytes);
    }
    outputs[i]->isRestored = true;
  }
}
} // namespace

/// Stores the new values of states during a run on a CPU, before its first step that overwrites one: host functions and
/// other threads read the former values until then, and wait for the end of the run afterwards.
class LateStates {
public:
  /// `results` and `outputs` are those of the run. Until the states are stored, new values that overwrite the former
  /// ones share their memory.
  LateStates(Launch &work, std::span<const Tensor> results, std::span<rt::TensorView> outputs, StateStore *store)
      : work(work), results(results), outputs(outputs), store(store) {
    each([&](size_t i, const Executable::GivenState &state) {
      outputs[i] = work.views[state.input];
      if (!state.isInPlace)
        work.placeState(*work.outputs[i], outputs[i], state);
    });
  }
  rt::UpdateHook hook() {
    auto begin = [](void *self) -> rt::Status {
      try {
        static_cast<LateStates *>(self)->begin();
        return {};
      } catch (const std::exception &error) {
        return {rt::ErrorCode::OutOfMemory, error.what()};
      }
    };
    return {this, begin};
  }
  /// The run has succeeded.
  void end() {
    if (!isStored)
      begin();
    if (store)
      store->release();
  }

private:
  Launch &work;
  std::span<const Tensor> results;
  std::span<rt::TensorView> outputs;
  StateStore *store;
  bool isStored = false;

  template <class F> void each(F body) {
    for (size_t i = 0; i < outputs.size(); ++i)
      if (auto state = work.executable->givenState(work.function, i))
        body(i, *state);
  }
  void begin() {
    isStored = true;
    if (store)
      store->store(results); // drops references, so that the run may overwrite old values
    each([&](size_t i, const Executable::GivenState &state) {
      if (state.isInPlace)
        work.placeState(*work.outputs[i], outputs[i], state);
    });
  }
};

void Launch::runStoringLate(std::span<const Tensor> results, StateStore *states) {
  ModuleContext::Entered inModule(module);
  setInputs();
  std::span all(views);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!executable->givenState(function, i))
      placeOutput(i);
  LateStates late(*this, results, all.subspan(inputs.size()), states);
  rt::Status status =
      executable->run(function, all.first(inputs.size()), all.subspan(inputs.size()), [] {}, nullptr, late.hook());
  if (!status.ok())
    throw Error(where, op, status.message());
  late.end();
  isDone = true;
}

static void awaitInputs(const Launch &work) {
  for (const StorageRef &input : work.inputs)
    if (input)
      awaitTask(input, work.where);
}

static void storeAtEnd(StateStore *states, std::span<const Tensor> results) {
  if (!states)
    return;
  states->store(results);
  states->release();
}

/// Runs synchronously and copies the results from the session, which knows their sizes.
static std::vector<Tensor> runToKnowSizes(Launch &work, std::span<const TensorSpec> results, StateStore *states) {
  awaitInputs(work);
  work.setInputs();
  const bool isOnGpu = work.executable->device().is_cuda();
  std::vector<CheckedRun> runs;
  for (const StorageRef &input : work.inputs)
    if (input)
      inheritRuns(*input, runs);
  rt::Status copied;
  auto copyFrom = [&](const void *data, TensorSpec spec) {
    if (!isOnGpu)
      return copyOf(data, std::move(spec), work.where);
    auto storage = std::make_shared<Storage>();
    storage->gpu = std::make_shared<OnDevice>(work.executable->gpuDevice(), work.op, work.where);
    storage->gpu->runs = runs;
    if (copied.ok())
      copied = storage->gpu->device->copyOf(data, byteCount(spec), storage->buffer);
    return Access::make(std::move(spec), std::move(storage));
  };
  std::vector<rt::TensorView> outputs(results.size());
  std::vector<Tensor> tensors(results.size());
  for (size_t i = 0; i < results.size() && copied.ok(); ++i) {
    outputs[i].device = work.tag();
    auto state = work.executable->givenState(work.function, i);
    StorageRef &storage = work.outputs.emplace_back();
    if (state && !isOnGpu) {
      storage = std::make_shared<Storage>();
      tensors[i] = Access::make(results[i], storage);
    } else if (state) { // others may still refer to the old value
      rt::TensorView &old = work.views[state->input];
      tensors[i] = copyFrom(old.data, results[i]);
      storage = std::get<StorageRef>(Access::state(tensors[i])->value);
      outputs[i] = old;
      if (copied.ok())
        outputs[i].data = storage->buffer->data();
      if (state->isInPlace)
        old.data = outputs[i].data;
    }
  }
  std::optional<LateStates> late;
  if (!isOnGpu)
    late.emplace(work, tensors, outputs, states);
  auto take = [&] {
    for (size_t i = 0; i < results.size(); ++i)
      if (const rt::TensorView &made = outputs[i]; !tensors[i].defined())
        tensors[i] = copyFrom(made.data, {made.dtype, Shape(made.shape, made.shape + made.rank)});
  };
  rt::Status status = std::move(copied);
  copied = {};
  if (status.ok())
    status =
        work.executable->run(work.function, work.views, outputs, take, nullptr, late ? late->hook() : rt::UpdateHook());
  if (status.ok())
    status = std::move(copied);
  if (!status.ok())
    throw Error(work.where, work.op, status.message());
  if (late)
    late->end();
  else
    storeAtEnd(states, tensors);
  work.isDone = true;
  return tensors;
}

/// What an asynchronous run waits for.
struct InputTasks {
  llvm::SmallVector<rt::Task *, 4> needed, before;

  void add(const Storage &input) {
    if (!isComplete(input))
      (input.isState ? before : needed).push_back(input.task.get());
  }
  bool empty() const { return needed.empty() && before.empty(); }
};

/// Adds the inputs to the work, and their tasks to `tasks`. Returns their size in bytes.
static size_t addInputs(Launch &work, std::span<const Tensor *const> inputs, std::span<const DType> scalarTypes,
                        InputTasks &tasks) {
  const Device device = work.executable->device();
  size_t bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i])
      continue;
    const TensorState &state = *Access::state(*inputs[i]);
    if (std::holds_alternative<StorageRef>(state.value)) {
      StorageRef storage =
          broughtTo(std::get<StorageRef>(state.value), byteCount(state.spec), device, work.op, work.where);
      work.add(state.spec);
      bytes += byteCount(state.spec);
      tasks.add(*storage);
      work.inputs.push_back(std::move(storage));
    } else if (device.is_cuda()) {
      work.add({scalarTypes[i], {}});
      work.inputs.push_back(scalarOn(device, state, scalarTypes[i], work.op, work.where));
    } else {
      scalarBytes(state, scalarTypes[i], work.scalars.emplace_back().data(), work.where, work.op);
      work.views.push_back({nullptr, nullptr, 0, scalarTypes[i]});
      work.inputs.push_back(nullptr);
    }
  }
  return bytes;
}

/// Adds the results to the work, and returns them pending.
static std::vector<Tensor> addOutputs(Launch &work, std::span<const TensorSpec> results, size_t &bytes) {
  const bool isOnGpu = work.executable->device().is_cuda();
  std::vector<Tensor> tensors;
  for (const TensorSpec &result : results) {
    work.add(result);
    auto storage = std::make_shared<Storage>();
    storage->isState = work.executable->givenState(work.function, work.outputs.size()).has_value();
    if (isOnGpu)
      storage->gpu = std::make_shared<OnDevice>(work.executable->gpuDevice(), work.op, work.where);
    work.outputs.push_back(storage);
    bytes += byteCount(result);
    tensors.push_back(Access::make(result, std::move(storage)));
  }
  return tensors;
}

/// Enqueues the work and stores the new values of states, so that whoever reads them finds the task to wait for. With
/// `failure`, the work has failed already, and the new values are stored.
static void enqueue(std::unique_ptr<Launch> work, const InputTasks &tasks, size_t bytes, std::exception_ptr failure,
                    std::span<const Tensor> results, StateStore *states) {
  rt::Engine &engine = rt::Engine::shared();
  const bool isHeld = states && !failure;
  const auto outputs = work->outputs; // the work may be deleted before the task is known here
  auto run = [work = std::move(work), failure] {
    if (failure)
      std::rethrow_exception(failure);
    work->requireInputs();
    (*work)();
  };
  rt::TaskRef task = engine.enqueue({tasks.needed, tasks.before}, bytes, std::move(run), isHeld);
  for (const StorageRef &storage : outputs)
    storage->task = task;
  struct Begin {
    rt::Engine &engine;
    rt::Task *held;
    ~Begin() {
      if (held)
        engine.begin(*held);
    }
  } atEnd{engine, isHeld ? task.get() : nullptr};
  if (isHeld)
    states->store(results);
  if (states)
    states->release();
}

std::vector<Tensor> launch(const ExecutableRef &executable, uint32_t function, std::span<const Tensor *const> inputs,
                           std::span<const DType> scalarTypes, std::span<const TensorSpec> results,
                           std::chrono::nanoseconds atOnce, const char *op, const Location &where, StateStore *states) {
  auto work = std::make_unique<Launch>();
  work->executable = executable;
  work->function = function;
  work->op = op;
  work->where = where;
  InputTasks tasks;
  size_t bytes = addInputs(*work, inputs, scalarTypes, tasks);
  auto isSymbolic = [](const TensorSpec &result) {
    return llvm::any_of(result.shape, [](const Dim &d) { return !d.isStatic(); });
  };
  const bool isOnGpu = executable->device().is_cuda();
  if (llvm::any_of(results, isSymbolic) || (executable->hasStates() && !isOnGpu))
    return runToKnowSizes(*work, results, states);
  if (executable->needsHost() || executable->hasStates()) { // on a GPU, runs are enqueued in the order of the calls
    awaitInputs(*work);
    tasks = {};
  }
  std::vector<Tensor> tensors = addOutputs(*work, results, bytes);
  if (executable->needsHost()) {
    if (!isOnGpu) {
      work->runStoringLate(tensors, states);
    } else {
      (*work)();
      storeAtEnd(states, tensors);
    }
    return tensors;
  }
  std::exception_ptr failure;
  if (tasks.empty() && (isOnGpu || executable->expectedTime(bytes) <= atOnce)) {
    if (states)
      states->store(tensors);
    try {
      (*work)();
      if (states)
        states->release();
      return tensors;
    } catch (...) {
      failure = std::current_exception(); // reported where the results are awaited, like other errors
    }
    work->restoreStates();
  }
  enqueue(std::move(work), tasks, bytes, failure, tensors, states);
  return tensors;
}

} // namespace burin::detail
