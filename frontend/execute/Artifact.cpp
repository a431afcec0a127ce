#include "codegen/Compiler.h"
#include "frontend/execute/Executable.h"
#include "frontend/tensor/LocationScope.h"
#include "frontend/trace/GraphData.h"
#include "mlir/IR/Verifier.h"

namespace burin {

using namespace detail;

struct Artifact::Data {
  std::shared_ptr<const std::vector<std::byte>> bytes; // null if it came from a file
  std::string path;
  ExecutableRef executable; // null if the code is for other machines; `problem` says which
  std::string target, problem;
  std::vector<NamedSpec> inputs, outputs;
};

namespace {

/// The size that a program of the artifact computes, over the artifact's symbols.
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
      stack.push_back(Dim(symbols[instr.value].name));
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
  const rt::Plan &plan = artifact.plans[0];
  data->inputs = specsOf(plan, std::span(plan.inputs).first(plan.callerInputs()));
  data->outputs = specsOf(plan, std::span(plan.outputs).first(plan.callerOutputs()));
  return data;
}
std::shared_ptr<Artifact::Data> dataOf(rt::Program::Ptr program) {
  std::shared_ptr<Artifact::Data> data = dataOf(program->artifact());
  data->target = program->target();
  data->executable = std::make_shared<Executable>(std::move(program));
  return data;
}

} // namespace

const std::vector<NamedSpec> &Artifact::inputs() const { return data->inputs; }
const std::vector<NamedSpec> &Artifact::outputs() const { return data->outputs; }
const std::string &Artifact::target() const { return data->target; }

std::vector<Tensor> Artifact::run(std::span<const Tensor> inputs, Location where) const {
  const Location &place = inScope(where);
  if (!data->executable)
    throw Error(place, "run", data->problem);
  if (inputs.size() != data->inputs.size())
    throw Error(place, "run",
                std::to_string(inputs.size()) + " tensors were given, but there are " +
                    std::to_string(data->inputs.size()) + " inputs");
  llvm::SmallVector<const Tensor *, 4> operands;
  llvm::SmallVector<DType, 4> scalarTypes;
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorState &state = stateOf(inputs[i], place);
    if (std::holds_alternative<TracedValue>(state.value))
      throw Error(place, "run", "compiled code cannot become part of a traced graph; call the function it came from");
    operands.push_back(&inputs[i]);
    scalarTypes.push_back(data->inputs[i].spec.dtype);
    specs.push_back(state.spec);
    if (std::holds_alternative<ScalarValue>(state.value))
      specs.back().dtype = scalarTypes.back();
  }
  std::vector<TensorSpec> results;
  if (rt::Status status = data->executable->outputsFor(specs, results); !status.ok())
    throw Error(place, "run", status.message());
  constexpr auto atOnce = std::chrono::microseconds(50); // about what waking another thread and being woken by it costs
  return launch(data->executable, operands, scalarTypes, results, atOnce, "run", place);
}

std::map<std::string, Tensor> Artifact::run(const std::map<std::string, Tensor> &given, Location where) const {
  const Location &place = inScope(where);
  auto listOf = [](const std::vector<NamedSpec> &specs) {
    std::string names;
    for (const NamedSpec &spec : specs)
      names += (names.empty() ? "" : ", ") + spec.name;
    return names;
  };
  std::vector<Tensor> inputs;
  for (const NamedSpec &spec : data->inputs) {
    auto at = given.find(spec.name);
    if (at == given.end())
      throw Error(place, "run", "the input \"" + spec.name + "\" is missing; the inputs are " + listOf(data->inputs));
    inputs.push_back(at->second);
  }
  for (const auto &[name, tensor] : given)
    if (std::ranges::none_of(data->inputs, [&](const NamedSpec &spec) { return spec.name == name; }))
      throw Error(place, "run", "there is no input \"" + name + "\"; the inputs are " + listOf(data->inputs));
  std::vector<Tensor> results = run(inputs, where);
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < results.size(); ++i)
    named.emplace(data->outputs[i].name, std::move(results[i]));
  return named;
}

Tensor Artifact::single(std::initializer_list<Tensor> inputs, const Location &where) const {
  if (data->outputs.size() != 1)
    throw Error(inScope(where), "run", "there are " + std::to_string(data->outputs.size()) + " outputs; use run()");
  return run(inputs, where).front();
}

void Artifact::save(const std::string &path, Location where) const {
  if (!data->bytes)
    throw Error(inScope(where), "save", "this artifact was loaded from \"" + data->path + "\"; copy that file");
  rt::Status status = rt::writeFile(path, std::as_bytes(std::span(*data->bytes)));
  if (!status.ok())
    throw Error(inScope(where), "save", status.message());
}

Artifact load(const std::string &path, Location where) { return Artifact::load(path, where); }

Artifact Artifact::load(const std::string &path, Location where) {
  rt::Program::Ptr program;
  rt::Status status = rt::Program::loadFile(path, {}, program);
  if (!status.ok())
    throw Error(inScope(where), "load", status.message());
  std::shared_ptr<Artifact::Data> data = dataOf(std::move(program));
  data->path = path;
  return Artifact(std::move(data));
}

Artifact compile(const Graph &graph, const CompileOptions &options, Location where) {
  const Location &place = inScope(where);
  codegen::CompileOptions compilerOptions;
  compilerOptions.targets = options.targets;
  std::shared_ptr<std::vector<std::byte>> bytes;
  {
    Graph::Data &source = *graph.shared();
    std::lock_guard lock(source.mutex);
    mlir::OwningOpRef<mlir::ModuleOp> module = source.module->clone(); // compilation consumes it; weights are shared
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
    data = dataOf(std::move(program));
  } else if (status.code() == rt::ErrorCode::Unsupported && rt::parseArtifact(file, trusted.weights, view).ok()) {
    data = dataOf(view.artifact); // compiled for other machines: there is a file to save, but nothing to run
    data->problem = status.message();
  } else {
    throw Error(place, "compile", status.message());
  }
  data->bytes = std::move(bytes);
  return Artifact(std::move(data));
}

} // namespace burin
