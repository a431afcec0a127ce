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
          plan.sources[i] = sourceOf(gradient, *call.operands[i], outputs, plan.outputs);
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

  VjpPlan::Source sourceOf(const Tensor &gradient, const TensorSpec &spec, std::vector<Tensor> &outputs,
                           std::vector<TensorSpec> &specs) const {
    auto traced = std::get<TracedValue>(Access::state(gradient)->value);
    mlir::Value value = passes::skipReshapes(mlir::Value::getFromOpaquePointer(traced.value));
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value))
      return {VjpPlan::Source::Input, positions[argument.getArgNumber()]};
    outputs.push_back(gradient);
    specs.push_back(spec);
    return {VjpPlan::Source::Output, outputs.size() - 1};
  }

  /// Erases ops and inputs that no output depends on.
  void dropUnused(VjpPlan &plan) const {
    auto main = llvm::cast<mlir::func::FuncOp>(*plan.graph->module->getBody()->begin());
    for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(main.front())))
      if (mlir::isOpTriviallyDead(&op))
        op.erase();
    llvm::BitVector unused(main.getNumArguments());
    for (mlir::BlockArgument argument : main.getArguments())
      if (argument.use_empty())
        unused.set(argument.getArgNumber());
      else
        plan.inputs.push_back(positions[argument.getArgNumber()]);
    if (mlir::failed(main.eraseArguments(unused)))
      throw Error({}, call.info.name, "internal error: the inputs of its gradient cannot be erased");
  }
};

} // namespace

Vjp::Vjp(std::shared_ptr<const EagerCall> call, std::vector<bool> needed)
    : called(std::move(call)), isNeeded(std::move(needed)), readsOperands(called->operands.size(), true),
      readsResults(called->checked.results.size(), true) {
  if (called->info.newSize()) // symbols would have to be bound to sizes
    return;
  try {
    plan = VjpGraph(*called, isNeeded).build();
  } catch (const gradients::NoGradient &) { // thrown again, with the place, when the gradient is requested
    return;
  }
  const size_t operandCount = readsOperands.size(), resultCount = readsResults.size();
  readsOperands.assign(operandCount, false);
  readsResults.assign(resultCount, false);
  auto read = [&](size_t position) {
    if (position < operandCount)
      readsOperands[position] = true;
    else if (position < operandCount + resultCount)
      readsResults[position - operandCount] = true;
  };
  for (size_t position : plan->inputs)
    read(position);
  for (const VjpPlan::Source &source : plan->sources)
    if (source.kind == VjpPlan::Source::Input)
      read(source.index);
}
Vjp::~Vjp() = default;

ExecutableRef Vjp::executableFor(Device device, const Location &where) const {
  std::lock_guard lock(mutex);
  ExecutableRef &executable = executables[device.is_cuda() ? device.index() : -1];
  if (!executable) {
    std::string key = std::string("gradient of ") + called->info.name + " for ", problem;
    for (bool needed : isNeeded)
      key += needed ? '1' : '0';
    key += called->key.bytes();
    auto graph = [&] { return plan->graph ? plan->graph : VjpGraph(*called, isNeeded).build().graph; };
    executable = compileCached(key, graph, problem, device, where);
    if (!executable)
      throw Error(where, "backward",
                  "internal error: the compiler refused the gradient of " + str(*called) + ": " + problem);
    plan->graph = nullptr;
  }
  return executable;
}

std::vector<Tensor> Vjp::run(std::span<const Tensor> operands, std::span<const Tensor> results,
                             std::span<const Tensor> gradients, const Location &where) const {
  if (!plan)
    return runRecorded(operands, results, gradients, where);
  auto at = [&](size_t position) -> const Tensor & {
    if (position < operands.size())
      return operands[position];
    position -= operands.size();
    return position < results.size() ? results[position] : gradients[position - results.size()];
  };
  std::vector<Tensor> outputs;
  if (!plan->outputs.empty()) {
    llvm::SmallVector<const Tensor *> inputs;
    for (size_t position : plan->inputs)
      inputs.push_back(&at(position));
    constexpr auto atOnce = std::chrono::microseconds(2);
    AlignedOperands aligned(inputs, called->info.name, where);
    outputs = launch(executableFor(aligned.device(), where), 0, aligned.operands(), {}, plan->outputs, atOnce,
                     "backward", where);
  }
  std::vector<Tensor> given(operands.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const VjpPlan::Source &source = plan->sources[i];
    if (source.kind == VjpPlan::Source::Output)
      given[i] = outputs[source.index];
    else if (source.kind == VjpPlan::Source::Input)
      given[i] = gradients::reshapeTo(at(source.index), called->operands[i]->shape);
  }
  return given;
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
