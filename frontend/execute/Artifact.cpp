#include "burin/graph/states.h"
#include "codegen/Compiler.h"
#include "frontend/autodiff/tape/Opaque.h"
#include "frontend/execute/EagerKernel.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include "frontend/trace/GraphData.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"

namespace burin {

using namespace detail;

struct Artifact::Data {
  HostFunctions hostFunctions;
  std::shared_ptr<const std::vector<std::byte>> bytes; // null if loaded from a file
  std::string path;
  ExecutableRef executable; // null if the code is for other machines, which `problem` names
  std::string target, problem, memoryReport;
  struct Function {
    std::string name;
    std::vector<NamedSpec> inputs, outputs;
  };
  std::vector<Function> functions;
  std::vector<NamedSpec> states;

  Executable &ready(const char *op, const Location &where) const {
    if (!executable)
      throw Error(where, op, problem);
    return *executable;
  }
};

namespace {

/// A size expression of a program as a Dim over the artifact's symbols.
Dim dimOf(const rt::Expr &expr, const std::vector<rt::Symbol> &symbols) {
  std::vector<Dim> stack;
  auto binary = [&](auto combine) {
    Dim right = std::move(stack.back());
    stack.pop_back();
    stack.back() = combine(stack.back(), right);
  };
  for (const rt::Expr::Instr &instr : expr.program)
    switch (instr.op) {
    case rt::Expr::Op::Const:
      stack.push_back(instr.value);
      break;
    case rt::Expr::Op::Symbol:
      stack.push_back(Dim(symbols[instr.value].name, symbols[instr.value].min, symbols[instr.value].max));
      break;
    case rt::Expr::Op::Add:
      binary([](const Dim &a, const Dim &b) { return a + b; });
      break;
    case rt::Expr::Op::Sub:
      binary([](const Dim &a, const Dim &b) { return a - b; });
      break;
    case rt::Expr::Op::Mul:
      binary([](const Dim &a, const Dim &b) { return a * b; });
      break;
    case rt::Expr::Op::FloorDiv:
      binary([](const Dim &a, const Dim &b) { return floordiv(a, b); });
      break;
    case rt::Expr::Op::CeilDiv:
      binary([](const Dim &a, const Dim &b) { return ceildiv(a, b); });
      break;
    case rt::Expr::Op::Mod:
      binary([](const Dim &a, const Dim &b) { return mod(a, b); });
      break;
    case rt::Expr::Op::Min:
      binary([](const Dim &a, const Dim &b) { return min(a, b); });
      break;
    case rt::Expr::Op::Max:
      binary([](const Dim &a, const Dim &b) { return max(a, b); });
      break;
    }
  return stack.back();
}

std::vector<NamedSpec> specsOf(const rt::Plan &plan, std::span<const rt::TensorInfo> infos) {
  std::vector<NamedSpec> specs;
  for (const rt::TensorInfo &info : infos) {
    Shape shape;
    for (rt::ExprId id : info.dims)
      shape.push_back(dimOf(plan.exprs[id], plan.symbols));
    specs.push_back({info.name, {info.dtype, std::move(shape)}});
  }
  return specs;
}

std::shared_ptr<Artifact::Data> dataOf(const rt::Artifact &artifact) {
  auto data = std::make_shared<Artifact::Data>();
  for (const rt::Plan &plan : artifact.plans)
    if (!plan.isPrivate)
      data->functions.push_back({plan.name, specsOf(plan, std::span(plan.inputs).first(plan.callerInputs())),
                                 specsOf(plan, std::span(plan.outputs).first(plan.callerOutputs()))});
  for (const rt::State &state : artifact.states)
    data->states.push_back({state.name, {state.dtype, Shape(state.shape.begin(), state.shape.end())}});
  for (const auto &[key, text] : artifact.metadata)
    if (key == rt::kMemoryReportKey)
      data->memoryReport = text;
  return data;
}
std::shared_ptr<Artifact::Data> dataOf(rt::Program::Ptr program, HostFunctions functions = {},
                                       bool statesAreGiven = false, rt::gpu::Device::Ptr gpu = nullptr,
                                       int threads = 0) {
  std::shared_ptr<Artifact::Data> data = dataOf(program->artifact());
  data->target = program->target();
  data->executable =
      std::make_shared<Executable>(std::move(program), std::move(functions), statesAreGiven, std::move(gpu), threads);
  return data;
}

std::string namesOf(const std::vector<NamedSpec> &specs) {
  return llvm::join(llvm::map_range(specs, [](const NamedSpec &spec) { return spec.name; }), ", ");
}

} // namespace

const std::vector<NamedSpec> &Artifact::inputs() const { return data->functions[index].inputs; }
const std::vector<NamedSpec> &Artifact::outputs() const { return data->functions[index].outputs; }
const std::string &Artifact::target() const { return data->target; }
const std::string &Artifact::memory_report() const { return data->memoryReport; }

namespace {
/// Runs a function. `inputs` are all of its inputs, states included.
std::vector<Tensor> runAll(const Artifact::Data &data, uint32_t index, std::span<const Tensor> inputs,
                           StateStore *states, const Location &place) {
  const std::vector<rt::TensorInfo> &infos = data.executable->program().artifact().plans[index].inputs;
  llvm::SmallVector<const Tensor *, 4> operands;
  llvm::SmallVector<DType, 4> scalarTypes;
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorState &state = stateOf(inputs[i], place);
    if (std::holds_alternative<TracedValue>(state.value))
      throw Error(place, "run", "compiled code cannot become part of a traced graph; call the function it came from");
    operands.push_back(&inputs[i]);
    scalarTypes.push_back(infos[i].dtype);
    specs.push_back(state.spec);
    if (std::holds_alternative<ScalarValue>(state.value))
      specs.back().dtype = scalarTypes.back();
  }
  std::vector<TensorSpec> results;
  if (rt::Status status = data.executable->outputsFor(index, specs, results); !status.ok())
    throw Error(place, "run", status.message());
  // About the cost of waking another thread and being woken by it.
  constexpr auto atOnce = std::chrono::microseconds(50);
  return launch(data.executable, index, operands, scalarTypes, results, atOnce, "run", place, states);
}

/// Results of which eager code would compute gradients make a backward pass fail.
void recordRun(std::span<const Tensor> inputs, std::vector<Tensor> &results, const Location &place) {
  std::vector<TapeEdge> sources;
  for (const Tensor &input : inputs)
    if (TapeEdge edge = edgeOf(input); edge.node)
      sources.push_back(std::move(edge));
  if (sources.empty())
    return;
  for (Tensor &result : results)
    connectOpaque(result, sources, "run",
                  "a backward pass has reached this call, but graphs and artifacts are not differentiated from "
                  "outside.\n  Return the gradients from the traced function (value_and_grad, grad), differentiate "
                  "the function itself, or make the result a constant by NoGrad or detach()",
                  place);
}
} // namespace

std::vector<Tensor> Artifact::run(std::span<const Tensor> inputs, Location where) const {
  const Location &place = inScope(where);
  data->ready("run", place);
  if (size_t wanted = this->inputs().size(); inputs.size() != wanted)
    throw Error(place, "run",
                std::to_string(inputs.size()) + " tensors were given, but there are " + std::to_string(wanted) +
                    " inputs");
  std::vector<Tensor> results = runAll(*data, index, inputs, nullptr, place);
  if (isGradEnabled())
    recordRun(inputs, results, place);
  return results;
}

std::vector<Tensor> detail::runWithStates(const Artifact &artifact, std::span<const Tensor> inputs, StateStore *states,
                                          const Location &where) {
  artifact.shared()->ready("run", where);
  return runAll(*artifact.shared(), 0, inputs, states, where);
}

std::map<std::string, Tensor> Artifact::run(const std::map<std::string, Tensor> &given, Location where) const {
  const Location &place = inScope(where);
  for (const auto &[name, tensor] : given)
    if (std::ranges::none_of(this->inputs(), [&](const NamedSpec &spec) { return spec.name == name; }))
      throw Error(place, "run", "there is no input \"" + name + "\"; the inputs are " + namesOf(this->inputs()));
  std::vector<Tensor> inputs;
  for (const NamedSpec &spec : this->inputs()) {
    auto at = given.find(spec.name);
    if (at == given.end())
      throw Error(place, "run",
                  "the input \"" + spec.name + "\" is missing; the inputs are " + namesOf(this->inputs()));
    inputs.push_back(at->second);
  }
  std::vector<Tensor> results = run(inputs, where);
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < results.size(); ++i)
    named.emplace(outputs()[i].name, std::move(results[i]));
  return named;
}

Tensor Artifact::single(std::initializer_list<Tensor> inputs, const Location &where) const {
  if (outputs().size() != 1)
    throw Error(inScope(where), "run", "there are " + std::to_string(outputs().size()) + " outputs; use run()");
  return run(inputs, where).front();
}

// ---- functions and states

std::vector<std::string> Artifact::functions() const {
  std::vector<std::string> names;
  for (const Data::Function &function : data->functions)
    names.push_back(function.name);
  return names;
}

Artifact Artifact::function(const std::string &name, Location where) const {
  auto known = llvm::find_if(data->functions, [&](const Data::Function &f) { return f.name == name; });
  if (known == data->functions.end())
    throw Error(inScope(where), "function",
                "the artifact has no function \"" + name + "\"; it has " + llvm::join(functions(), ", "));
  return Artifact(data, uint32_t(known - data->functions.begin()));
}

const std::vector<NamedSpec> &Artifact::states() const { return data->states; }

uint32_t Artifact::stateIndex(const std::string &name, const char *op, const Location &where) const {
  data->ready(op, where);
  auto known = llvm::find_if(data->states, [&](const NamedSpec &state) { return state.name == name; });
  if (known == data->states.end())
    throw Error(where, op,
                "the artifact has no state \"" + name + "\"; " +
                    (data->states.empty() ? "it has none" : "it has " + namesOf(data->states)));
  return uint32_t(known - data->states.begin());
}

static void check(const rt::Status &status, const char *op, const Location &where) {
  if (!status.ok())
    throw Error(where, op, status.message());
}

Tensor Artifact::state(const std::string &name, Location where) const {
  const Location place = inScope(where);
  uint32_t i = stateIndex(name, "state", place);
  Tensor value;
  auto copy = [&](rt::Session &session) -> rt::Status {
    rt::TensorView view;
    rt::Status status = session.readState(i, view);
    if (status.ok())
      value = copyOf(view.data, data->states[i].spec, place);
    return status;
  };
  check(data->executable->onStates(copy), "state", place);
  return value;
}

void Artifact::set_state(const std::string &name, const Tensor &value, Location where) const {
  const Location place = inScope(where);
  uint32_t i = stateIndex(name, "set_state", place);
  const TensorSpec &wanted = data->states[i].spec;
  if (TensorSpec given = value.spec(place); given != wanted)
    throw Error(place, "set_state", "the state \"" + name + "\" is " + str(wanted) + ", got " + str(given));
  StorageRef storage = concreteStorage(value, "set_state", place);
  rt::Bytes bytes(static_cast<const std::byte *>(await(storage, place).data()), byteCount(wanted));
  check(data->executable->onStates([&](rt::Session &session) { return session.writeState(i, bytes); }), "set_state",
        place);
}

void Artifact::reset_states(Location where) const {
  const Location place = inScope(where);
  check(data->ready("reset_states", place).onStates([](rt::Session &session) { return session.resetStates(); }),
        "reset_states", place);
}

void Artifact::save_states(const std::string &path, Location where) const {
  const Location place = inScope(where);
  auto save = [&](rt::Session &session) { return session.saveStates(path); };
  check(data->ready("save_states", place).onStates(save), "save_states", place);
}

void Artifact::load_states(const std::string &path, Location where) const {
  const Location place = inScope(where);
  auto read = [&](rt::Session &session) { return session.loadStates(path); };
  check(data->ready("load_states", place).onStates(read), "load_states", place);
}

void copy_states(const Artifact &from, const Artifact &to, Location where) {
  const Location place = inScope(where);
  Executable &source = from.shared()->ready("copy_states", place), &target = to.shared()->ready("copy_states", place);
  if (&source == &target)
    return;
  const bool sourceFirst = std::less<Executable *>()(&source, &target); // one order of locks for all threads
  auto both = [&](rt::Session &outer) {
    return (sourceFirst ? target : source).onStates([&](rt::Session &inner) {
      return sourceFirst ? inner.copyStates(outer) : outer.copyStates(inner);
    });
  };
  check((sourceFirst ? source : target).onStates(both), "copy_states", place);
}

void reorder_state(const Artifact &artifact, const std::string &name, int64_t axis, std::span<const int64_t> order,
                   Location where) {
  const Location place = inScope(where);
  artifact.shared()->ready("reorder_state", place);
  const std::vector<NamedSpec> &states = artifact.states();
  const auto known = std::ranges::find(states, name, &NamedSpec::name);
  if (known == states.end())
    throw Error(place, "reorder_state",
                "the artifact has no state \"" + name + "\"; it has " + (states.empty() ? "none" : namesOf(states)));
  const TensorSpec &spec = known->spec;
  const int64_t rank = int64_t(spec.shape.size()), at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank)
    throw Error(place, "reorder_state",
                "the state \"" + name + "\" is " + str(spec) + " and has no axis " + std::to_string(axis));
  const auto i = uint32_t(known - states.begin());
  auto reorder = [&](rt::Session &session) { return session.reorderState(i, uint32_t(at), order); };
  check(artifact.shared()->ready("reorder_state", place).onStates(reorder), "reorder_state", place);
}

Artifact Artifact::with_own_states(Location where) const {
  return onDevice(device(), "with_own_states", inScope(where));
}

Device Artifact::device() const { return data->executable ? data->executable->device() : cpu; }

Artifact Artifact::to(Device device, Location where) const {
  return device == this->device() && data->executable ? *this : onDevice(device, "to", inScope(where));
}

/// A copy for another device, with its own states.
Artifact Artifact::onDevice(Device device, const char *op, const Location &place) const {
  Executable &executable = data->ready(op, place);
  auto copy = std::make_shared<Data>(*data);
  copy->executable =
      std::make_shared<Executable>(executable.shared(), executable.functions(), false,
                                   device.is_cuda() ? openDevice(device, op, place) : nullptr, executable.threads());
  auto fill = [&](rt::Session &session) {
    return copy->executable->onStates([&](rt::Session &own) { return own.copyStates(session); });
  };
  check(executable.hasStates() ? executable.onStates(fill)
                               : copy->executable->onStates([](rt::Session &) { return rt::Status(); }),
        op, place);
  return Artifact(std::move(copy), index);
}

void Artifact::save(const std::string &path, Location where) const {
  if (!data->bytes)
    throw Error(inScope(where), "save", "this artifact was loaded from \"" + data->path + "\"; copy that file");
  refuseToSave(data->hostFunctions, inScope(where));
  rt::Status status = rt::writeFile(path, std::as_bytes(std::span(*data->bytes)));
  if (!status.ok())
    throw Error(inScope(where), "save", status.message());
}

Artifact load(const std::string &path, const ArtifactOptions &options, Location where) {
  return Artifact::load(path, options, where);
}

Artifact Artifact::load(const std::string &path, const ArtifactOptions &options, Location where) {
  const Location place = inScope(where);
  if (options.threads < 0 || options.threads > 1024)
    throw Error(place, "load", std::to_string(options.threads) + " threads is not a number from 0 to 1024");
  rt::Program::Ptr program;
  rt::Status status = rt::Program::loadFile(path, {}, program);
  if (!status.ok())
    throw Error(place, "load", status.message());
  const bool isForGpus = !program->runsOnCpu() && cuda_device_count() > 0;
  const Device device = options.device.value_or(isForGpus ? cuda(0) : cpu);
  rt::gpu::Device::Ptr gpu = device.is_cuda() ? openDevice(device, "load", place) : nullptr;
  std::shared_ptr<Artifact::Data> data = dataOf(std::move(program), {}, false, std::move(gpu), options.threads);
  data->path = path;
  if (options.device) // whether there is code for it
    check(data->executable->onStates([](rt::Session &) { return rt::Status(); }), "load", place);
  return Artifact(std::move(data));
}

Artifact compile(const Graph &graph, const CompileOptions &options, Location where) {
  const Location &place = inScope(where);
  codegen::CompileOptions compilerOptions;
  compilerOptions.targets = options.targets;
  compilerOptions.pipeline.memory.bytes = options.memory_limit;
  compilerOptions.pipeline.memory.allowBf16 = options.memory_allow_bf16;
  if (options.provider == "cublaslt")
    compilerOptions.pipeline.provider = passes::Provider::CublasLt;
  else if (!options.provider.empty())
    throw Error(place, "compile", "there is no provider \"" + options.provider + "\"; the only one is \"cublaslt\"");
  const Device device = options.device.value_or(graph.device());
  rt::gpu::Device::Ptr gpu = device.is_cuda() ? openDevice(device, "compile", place) : nullptr;
  auto isForGpu = [](const std::string &target) { return target.starts_with("cuda"); };
  if (gpu && std::ranges::none_of(compilerOptions.targets, isForGpu))
    std::ranges::replace(compilerOptions.targets, std::string("native"), targetOf(*gpu));
  std::shared_ptr<std::vector<std::byte>> bytes;
  HostFunctions functions;
  bool statesAreGiven;
  {
    Graph::Data &source = *graph.shared();
    std::lock_guard lock(source.mutex);
    functions = source.hostFunctions;
    statesAreGiven = source.statesAreGiven;
    // Compilation consumes the module; weights are shared.
    mlir::OwningOpRef<mlir::ModuleOp> module = source.module->clone();
    auto compiled = codegen::compile(*module, compilerOptions);
    if (mlir::failed(compiled))
      throw Error(place, "compile", source.takeDiagnostics());
    bytes = std::make_shared<std::vector<std::byte>>(std::move(*compiled));
  }
  auto file = std::as_bytes(std::span(*bytes));
  rt::LoadOptions trusted{rt::WeightCheck::Trust};
  rt::Program::Ptr program;
  rt::ArtifactView view;
  std::shared_ptr<Artifact::Data> data;
  rt::Status status = rt::Program::loadMemory(file, bytes, trusted, program);
  if (status.ok()) {
    data = dataOf(std::move(program), functions, statesAreGiven, std::move(gpu));
  } else if (status.code() == rt::ErrorCode::Unsupported && rt::parseArtifact(file, trusted.weights, view).ok()) {
    data = dataOf(view.artifact); // compiled for other machines: there is a file to save, but nothing to run
    data->problem = status.message();
  } else {
    throw Error(place, "compile", status.message());
  }
  data->bytes = std::move(bytes);
  data->hostFunctions = std::move(functions);
  return Artifact(std::move(data));
}

} // namespace burin
