#include "frontend/eager/Vjp.h"
#include "burin/ops.h"
#include "frontend/autodiff/gradients/Rules.h"
#include "frontend/eager/Move.h"
#include "frontend/execute/EagerKernel.h"
#include "frontend/tensor/context/AutocastScope.h"
#include "frontend/trace/Trace.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/analysis/IterationSpace.h"
#include "llvm/ADT/BitVector.h"
#include <set>

namespace burin::detail {

namespace {

/// Builds the graph of a vector-Jacobian product. Its inputs are numbered: operands, results, gradients of results.
class VjpGraph {
public:
  VjpGraph(const EagerCall &call, const std::vector<bool> &isNeeded)
      : call(call), isNeeded(isNeeded), operandCount(call.operands.size()), resultCount(call.checked.results.size()) {
    for (size_t i = 0; i < operandCount; ++i)
      if (call.operands[i])
        declare(*call.operands[i], i);
    for (size_t i = 0; i < 2 * resultCount; ++i)
      declare(call.checked.results[i % resultCount], operandCount + i);
  }

  VjpPlan build() {
    AutocastTypeScope noAutocast(std::nullopt); // the types of the call are final
    Trace trace(inputs, {}, {}, {});
    Trace::Recording recording(trace);
    EnableGrad on; // a backward pass need not be recorded itself
    std::vector<Tensor> given(operandCount + 2 * resultCount), needed;
    for (size_t i = 0; i < positions.size(); ++i)
      given[positions[i]] = trace.inputs()[i];
    for (size_t i = 0; i < operandCount; ++i)
      if (isNeeded[i])
        needed.push_back(given[i]);
    std::span all(given);
    std::vector<Tensor> found = trace.vjp(call.info, all.first(operandCount), call.attrs,
                                          all.subspan(operandCount, resultCount), all.last(resultCount), needed);
    VjpPlan plan;
    plan.sources.resize(operandCount);
    std::vector<Tensor> outputs;
    for (size_t i = 0, next = 0; i < operandCount; ++i)
      if (isNeeded[i])
        if (const Tensor &gradient = found[next++]; gradient.defined())
          plan.sources[i] = sourceOf(gradient, outputs);
    plan.outputs = outputs.size();
    if (outputs.empty())
      return plan;
    plan.graph = trace.finish(outputs, {}, {}).shared();
    dropUnused(plan);
    return plan;
  }

private:
  const EagerCall &call;
  const std::vector<bool> &isNeeded;
  const size_t operandCount, resultCount;
  std::vector<Trace::Input> inputs;
  std::vector<size_t> positions; // of the inputs

  void declare(const TensorSpec &spec, size_t position) {
    inputs.push_back({spec, false});
    positions.push_back(position);
  }

  VjpPlan::Source sourceOf(const Tensor &gradient, std::vector<Tensor> &outputs) const {
    auto traced = std::get<TracedValue>(Access::state(gradient)->value);
    mlir::Value value = passes::skipReshapes(mlir::Value::getFromOpaquePointer(traced.value));
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value))
      return {VjpPlan::Source::Input, positions[argument.getArgNumber()]};
    outputs.push_back(gradient);
    return {VjpPlan::Source::Output, outputs.size() - 1};
  }

  /// Symbols that are sizes of an input.
  void addSymbols(size_t position, std::set<std::string> &symbols) const {
    for (const Dim &size : inputs[position].spec.shape)
      if (!size.isStatic())
        symbols.insert(size.str());
  }

  /// Erases ops and inputs that no output depends on. Inputs that are the only ones with a symbol stay.
  void dropUnused(VjpPlan &plan) const {
    auto main = llvm::cast<mlir::func::FuncOp>(*plan.graph->module->getBody()->begin());
    for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(main.front())))
      if (mlir::isOpTriviallyDead(&op))
        op.erase();
    std::set<std::string> known;
    for (mlir::BlockArgument argument : main.getArguments())
      if (!argument.use_empty())
        addSymbols(argument.getArgNumber(), known);
    llvm::BitVector unused(main.getNumArguments());
    for (mlir::BlockArgument argument : main.getArguments()) {
      const size_t before = known.size();
      if (argument.use_empty())
        addSymbols(argument.getArgNumber(), known);
      if (argument.use_empty() && known.size() == before)
        unused.set(argument.getArgNumber());
      else
        plan.inputs.push_back({positions[argument.getArgNumber()], argument.use_empty()});
    }
    if (mlir::failed(main.eraseArguments(unused)))
      throw Error({}, call.info.name, "internal error: the inputs of its gradient cannot be erased");
  }
};

/// Gradients of convolutions add in an order that depends on sizes: with symbols it would be another one.
bool addsBySizes(const ir::OpInfo &info) {
  return info.name == std::string_view("conv") || info.name == std::string_view("conv_transpose");
}

/// The code for all calls of this form, or null: it is compiled for their own sizes.
std::shared_ptr<VjpCode> symbolicCode(const EagerCall &call, const std::vector<bool> &isNeeded) {
  static constexpr size_t kMost = 4096; // then the table is cleared
  static auto *mutex = new std::mutex;
  static auto *known = new std::map<std::pair<std::string, std::vector<bool>>, std::shared_ptr<VjpCode>>;
  std::shared_ptr<const EagerCall> form = addsBySizes(call.info) ? nullptr : symbolicCall(call);
  if (!form)
    return nullptr;
  std::lock_guard lock(*mutex);
  if (known->size() >= kMost)
    known->clear();
  auto [at, isNew] = known->try_emplace({std::string(form->key.bytes()), isNeeded});
  if (isNew)
    try {
      at->second = std::make_shared<VjpCode>(form, isNeeded);
    } catch (const Error &) {
      at->second = nullptr; // the rule needs numbers
    }
  return at->second;
}

/// A tensor of which only the shape is read.
Tensor shapeOnly(const TensorSpec &spec) {
  static const auto *nothing = new rt::BufferRef(allocate(64, {}));
  auto storage = std::make_shared<Storage>();
  storage->buffer = *nothing;
  return Access::make(spec, std::move(storage));
}

} // namespace

VjpCode::VjpCode(std::shared_ptr<const EagerCall> of, std::vector<bool> needed)
    : call(std::move(of)), isNeeded(std::move(needed)), plan(VjpGraph(*call, isNeeded).build()) {}

bool VjpCode::reads(size_t number) const {
  auto isRead = [&](const VjpPlan::Input &input) { return input.number == number && !input.isForSizes; };
  auto isGiven = [&](const VjpPlan::Source &source) {
    return source.kind == VjpPlan::Source::Input && source.index == number;
  };
  return llvm::any_of(plan.inputs, isRead) || llvm::any_of(plan.sources, isGiven);
}

ExecutableRef VjpCode::executableFor(Device device, const Location &where) {
  std::lock_guard lock(mutex);
  ExecutableRef &executable = executables[device.is_cuda() ? device.index() : -1];
  if (!executable) {
    std::string key = std::string("gradient of ") + call->info.name + " for ", problem;
    for (bool needed : isNeeded)
      key += needed ? '1' : '0';
    key += call->key.bytes();
    auto graph = [&] { return plan.graph ? plan.graph : VjpGraph(*call, isNeeded).build().graph; };
    executable = compileCached(key, graph, problem, device, where);
    if (!executable)
      throw Error(where, "backward",
                  "internal error: the compiler refused the gradient of " + str(*call) + ": " + problem);
    plan.graph = nullptr;
  }
  return executable;
}

Vjp::Vjp(std::shared_ptr<const EagerCall> call, std::vector<bool> needed, bool isOnHost)
    : called(std::move(call)), isNeeded(std::move(needed)), readsOperands(called->operands.size(), true),
      readsResults(called->checked.results.size(), true) {
  if (called->info.newSize()) // symbols would have to be bound to sizes
    return;
  isMoved = isOnHost && movementOf(*called);
  try {
    code = isOnHost && !isMoved ? symbolicCode(*called, isNeeded) : nullptr;
    mayImprove = code != nullptr;
    if (!code)
      code = std::make_shared<VjpCode>(called, isNeeded);
  } catch (const gradients::NoGradient &) { // thrown again, with the place, when the gradient is requested
    return;
  }
  const size_t operandCount = readsOperands.size();
  for (size_t i = 0; i < operandCount; ++i)
    readsOperands[i] = code->reads(i);
  for (size_t i = 0; i < readsResults.size(); ++i)
    readsResults[i] = code->reads(operandCount + i);
}
Vjp::~Vjp() = default;

const TensorSpec &Vjp::specOf(size_t number) const {
  const size_t operandCount = called->operands.size(), resultCount = called->checked.results.size();
  return number < operandCount ? *called->operands[number]
                               : called->checked.results[(number - operandCount) % resultCount];
}

/// The code for one more run. Code for the call's own sizes must not need more than the tape has saved.
std::shared_ptr<VjpCode> Vjp::codeForRun() const {
  constexpr uint32_t kFewRuns = 32; // compiling takes milliseconds
  if (!mayImprove || runs.fetch_add(1, std::memory_order_relaxed) + 1 < kFewRuns)
    return code;
  std::lock_guard lock(mutex);
  if (!improved) {
    improved = std::make_shared<VjpCode>(called, isNeeded);
    for (size_t i = 0; i < readsOperands.size() + readsResults.size(); ++i)
      if (improved->reads(i) && !code->reads(i))
        improved = code;
  }
  return improved;
}

std::vector<Tensor> Vjp::runCode(VjpCode &runs, llvm::ArrayRef<const Tensor *> given, const Location &where) const {
  std::vector<Tensor> outputs;
  if (runs.outputs()) {
    std::vector<Tensor> shapes(runs.inputs().size());
    llvm::SmallVector<const Tensor *> inputs;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const VjpPlan::Input &input = runs.inputs()[i];
      if (input.isForSizes)
        shapes[i] = shapeOnly(specOf(input.number));
      inputs.push_back(input.isForSizes ? &shapes[i] : given[input.number]);
    }
    std::vector<TensorSpec> specs(runs.outputs());
    for (size_t i = 0; i < runs.sources().size(); ++i)
      if (runs.sources()[i].kind == VjpPlan::Source::Output)
        specs[runs.sources()[i].index] = *called->operands[i];
    constexpr auto atOnce = std::chrono::microseconds(2);
    AlignedOperands aligned(inputs, called->info.name, where);
    outputs = launch(runs.executableFor(aligned.device(), where), 0, aligned.operands(), {}, specs, atOnce, "backward",
                     where);
  }
  std::vector<Tensor> found(called->operands.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const VjpPlan::Source &source = runs.sources()[i];
    if (source.kind == VjpPlan::Source::Output)
      found[i] = outputs[source.index];
    else if (source.kind == VjpPlan::Source::Input)
      found[i] = gradients::reshapeTo(*given[source.index], called->operands[i]->shape);
  }
  return found;
}

std::vector<Tensor> Vjp::run(std::span<const Tensor> operands, std::span<const Tensor> results,
                             std::span<const Tensor> gradients, const Location &where) const {
  if (!code)
    return runRecorded(operands, results, gradients, where);
  if (isMoved && code->outputs()) { // what is not saved is not read
    AutocastTypeScope noAutocast(std::nullopt);
    NoGrad off;
    std::vector<Tensor> shapes;
    for (size_t i = 0; i < operands.size() + results.size(); ++i) {
      const Tensor &x = i < operands.size() ? operands[i] : results[i - operands.size()];
      shapes.push_back(x.defined() ? x : shapeOnly(specOf(i)));
    }
    std::span all(shapes);
    return runRecorded(all.first(operands.size()), all.subspan(operands.size()), gradients, where);
  }
  llvm::SmallVector<const Tensor *> given;
  for (std::span<const Tensor> part : {operands, results, gradients})
    for (const Tensor &x : part)
      given.push_back(&x);
  return runCode(*codeForRun(), given, where);
}

namespace {

/// An operand as passed to the strict op.
Tensor toStrict(const ir::OpInfo &info, size_t index, const Tensor &x, const TensorSpec &wanted) {
  Tensor result = x.to(wanted.dtype);
  if (result.shape() == wanted.shape)
    return result;
  if (index == 1 && result.rank() == 1 && std::string_view(info.name) == "matmul")
    result = unsqueeze(result, {1});
  return result.shape() == wanted.shape ? result : broadcast_to(result, wanted.shape);
}

/// The gradient of the operand, from that of the strict op's operand.
Tensor fromStrict(const ir::OpInfo &info, size_t index, const Tensor &g, const TensorSpec &wanted) {
  Shape shape = wanted.shape;
  if (index == 1 && shape.size() == 1 && std::string_view(info.name) == "matmul")
    shape.push_back(1);
  return gradients::reshapeTo(gradients::sumTo(g, shape), wanted.shape).to(wanted.dtype);
}

} // namespace

/// They differ from those of the call where a product has a vector operand: the strict op keeps its dimension.
const std::vector<Shape> &Vjp::strictShapes(const Location &where) const {
  std::lock_guard lock(mutex);
  if (shapesOfStrictOp.empty()) {
    const CheckedCall &checked = called->checked;
    ir::InferCall strict{.info = called->info,
                         .operands = checked.operands,
                         .attrs = checked.attrs,
                         .strict = true,
                         .results = {},
                         .error = {}};
    if (!ir::infer(strict))
      throw Error(where, "backward", "internal error: " + strict.error);
    for (TensorSpec &result : strict.results)
      shapesOfStrictOp.push_back(std::move(result.shape));
  }
  return shapesOfStrictOp;
}

std::vector<Tensor> Vjp::runRecorded(std::span<const Tensor> operands, std::span<const Tensor> results,
                                     std::span<const Tensor> gradients, const Location &where) const {
  const ir::OpInfo &info = called->info;
  const CheckedCall &checked = called->checked;
  gradients::GradientRule rule = gradients::ruleOf(info);
  if (!rule)
    throw gradients::NoGradient(std::string(info.name) + " has no gradient", where);
  gradients::GradientCall rulesCall{info, {}, checked.attrs, {}, {}, isNeeded};
  rulesCall.isNeeded.resize(operands.size());
  for (size_t i = 0; i < operands.size(); ++i)
    rulesCall.operands.push_back(called->operands[i] ? toStrict(info, i, operands[i], *checked.operands[i]) : Tensor());
  for (size_t i = 0; i < results.size(); ++i) {
    const Shape shape = info.newSize() ? results[i].shape() : strictShapes(where)[i];
    rulesCall.results.push_back(gradients::reshapeTo(results[i], shape));
    rulesCall.gradients.push_back(gradients::reshapeTo(gradients[i], shape));
  }
  std::vector<Tensor> given = rule(rulesCall);
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].defined() && isNeeded[i])
      given[i] = fromStrict(info, i, given[i], *called->operands[i]);
    else
      given[i] = {};
  return given;
}

} // namespace burin::detail
