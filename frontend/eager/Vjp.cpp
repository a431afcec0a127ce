#include "frontend/eager/Vjp.h"
#include "burin/ops.h"
#include "frontend/eager/Move.h"
#include "frontend/execute/EagerKernel.h"
#include "frontend/gradients/Rules.h"
#include "frontend/tensor/AutocastScope.h"
#include "frontend/trace/Trace.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/analysis/IterationSpace.h"
#include "llvm/ADT/BitVector.h"

namespace burin::detail {

namespace {

/// Builds the graph of a vector-Jacobian product. Its inputs are numbered: operands, results, gradients of results.
class VjpGraph {
public:
  explicit VjpGraph(const CallForm &form)
      : form(form), operandCount(form.operands.size()), resultCount(form.results.size()) {
    for (size_t i = 0; i < operandCount; ++i)
      if (form.operands[i])
        declare(*form.operands[i], i);
    for (size_t i = 0; i < 2 * resultCount; ++i)
      declare(form.results[i % resultCount], operandCount + i);
  }

  VjpPlan build() {
    AutocastTypeScope noAutocast(std::nullopt); // the types of the call are final
    Trace trace(inputs, {}, {}, {});
    Trace::Recording recording(trace);
    std::vector<Tensor> given(operandCount + 2 * resultCount), needed;
    for (size_t i = 0; i < positions.size(); ++i)
      given[positions[i]] = trace.inputs()[i];
    for (size_t i = 0; i < operandCount; ++i)
      if (form.isNeeded[i])
        needed.push_back(given[i]);
    std::span all(given);
    std::vector<Tensor> found = trace.vjp(form.info, all.first(operandCount), form.attrs,
                                          all.subspan(operandCount, resultCount), all.last(resultCount), needed);
    VjpPlan plan;
    plan.sources.resize(operandCount);
    std::vector<Tensor> outputs;
    for (size_t i = 0, next = 0; i < operandCount; ++i)
      if (form.isNeeded[i])
        if (const Tensor &gradient = found[next++]; gradient.defined())
          plan.sources[i] = sourceOf(gradient, *form.operands[i], outputs, plan.outputs);
    if (outputs.empty())
      return plan;
    plan.graph = trace.finish(outputs, {}, {}).shared();
    dropUnused(plan);
    return plan;
  }

private:
  const CallForm &form;
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
      throw Error({}, form.info.name, "internal error: the inputs of its gradient cannot be erased");
  }
};

} // namespace

Vjp::Vjp(CallForm given)
    : form(std::move(given)), readsOperands(form.operands.size(), true), readsResults(form.results.size(), true) {
  if (form.info.newSize()) // symbols would have to be bound to sizes
    return;
  try {
    plan = VjpGraph(form).build();
  } catch (const gradients::NoGradient &) { // thrown again, with the place, when the gradient is requested
    return;
  }
  readsOperands.assign(form.operands.size(), false);
  readsResults.assign(form.results.size(), false);
  auto read = [&](size_t position) {
    if (position < form.operands.size())
      readsOperands[position] = true;
    else if (position < form.operands.size() + form.results.size())
      readsResults[position - form.operands.size()] = true;
  };
  for (size_t position : plan->inputs)
    read(position);
  for (const VjpPlan::Source &source : plan->sources)
    if (source.kind == VjpPlan::Source::Input)
      read(source.index);
}
Vjp::~Vjp() = default;

std::string Vjp::key() const {
  std::string key = "gradient of " + callText(form.info, form.operands, form.attrs) + "; of";
  for (size_t i = 0; i < form.isNeeded.size(); ++i)
    if (form.isNeeded[i])
      key += " " + std::to_string(i);
  return key;
}

ExecutableRef Vjp::executableFor(Device device, const Location &where) const {
  std::lock_guard lock(mutex);
  ExecutableRef &executable = executables[device.is_cuda() ? device.index() : -1];
  if (!executable) {
    std::string problem;
    auto graph = [&] { return plan->graph ? plan->graph : VjpGraph(form).build().graph; };
    executable = compileCached(key(), graph, problem, device, where);
    if (!executable)
      throw Error(where, "backward", "internal error: the compiler refused the " + key() + ": " + problem);
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
    AlignedOperands aligned(inputs, form.info.name, where);
    outputs = launch(executableFor(aligned.device(), where), 0, aligned.operands(), {}, plan->outputs, atOnce,
                     "backward", where);
  }
  std::vector<Tensor> given(operands.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const VjpPlan::Source &source = plan->sources[i];
    if (source.kind == VjpPlan::Source::Output)
      given[i] = outputs[source.index];
    else if (source.kind == VjpPlan::Source::Input)
      given[i] = gradients::reshapeTo(at(source.index), form.operands[i]->shape);
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

std::vector<Tensor> Vjp::runRecorded(std::span<const Tensor> operands, std::span<const Tensor> results,
                                     std::span<const Tensor> gradients, const Location &where) const {
  gradients::GradientRule rule = gradients::ruleOf(form.info);
  if (!rule)
    throw gradients::NoGradient(std::string(form.info.name) + " has no gradient", where);
  llvm::SmallVector<bool> weak(operands.size(), false);
  CheckedCall call = checkCall(form.info, form.operands, weak, form.attrs, where);
  ir::InferCall strict{
      .info = form.info, .operands = call.operands, .attrs = call.attrs, .strict = true, .results = {}, .error = {}};
  if (!ir::infer(strict))
    throw Error(where, "backward", "internal error: " + strict.error);
  gradients::GradientCall rulesCall{form.info, {}, call.attrs, {}, {}, form.isNeeded};
  rulesCall.isNeeded.resize(operands.size());
  for (size_t i = 0; i < operands.size(); ++i)
    rulesCall.operands.push_back(form.operands[i] ? toStrict(form.info, i, operands[i], *call.operands[i]) : Tensor());
  for (size_t i = 0; i < results.size(); ++i) {
    const Shape &shape = form.info.newSize() ? form.results[i].shape : strict.results[i].shape;
    rulesCall.results.push_back(gradients::reshapeTo(results[i], shape));
    rulesCall.gradients.push_back(gradients::reshapeTo(gradients[i], shape));
  }
  std::vector<Tensor> given = rule(rulesCall);
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].defined() && form.isNeeded[i])
      given[i] = fromStrict(form.info, i, given[i], *form.operands[i]);
    else
      given[i] = {};
  return given;
}

} // namespace burin::detail
