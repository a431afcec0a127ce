// Reverse-mode differentiation of what a trace has recorded.
#include "burin/gradients.h"
#include "burin/creation.h"
#include "frontend/Scope.h"
#include "frontend/Trace.h"
#include "frontend/gradients/Rules.h"
#include "llvm/ADT/SetVector.h"

namespace burin {

using mlir::Value;

/// From one value back to others.
class Trace::Backward {
public:
  Backward(Trace &trace, Value y, llvm::ArrayRef<Value> xs) : trace(trace) {
    for (Value x : xs)
      if (x)
        varying.insert(x);
    findPath(y);
  }

  /// Throws if an op on the way has no rule; all of them are named at once.
  void checkRules(const Location &where) const;

  /// The gradients of all values on the way are in gradientOf() then.
  void run(Value y, const Tensor &gradient) {
    gradients[y] = gradient;
    for (mlir::Operation *op : llvm::reverse(path))
      differentiate(op);
  }
  /// Undefined if it is zero.
  Tensor gradientOf(Value x) const { return gradients.lookup(x); }

private:
  Trace &trace;
  llvm::DenseSet<Value> varying;       // floats that depend on xs
  std::vector<mlir::Operation *> path; // those that give the varying ones, in order
  llvm::DenseMap<Value, Tensor> gradients;

  void findPath(Value y);
  void differentiate(mlir::Operation *op);
};

void Trace::Backward::findPath(Value y) {
  llvm::SetVector<mlir::Operation *> ops; // all that y depends on
  if (mlir::Operation *op = y.getDefiningOp())
    ops.insert(op);
  for (size_t i = 0; i < ops.size(); ++i)
    for (Value operand : ops[i]->getOperands())
      if (mlir::Operation *op = operand.getDefiningOp())
        ops.insert(op);
  auto sorted = ops.takeVector();
  llvm::sort(sorted, [&](mlir::Operation *a, mlir::Operation *b) { // the step of a loop sees what is before it
    return a->getBlock() == b->getBlock() ? a->isBeforeInBlock(b) : a->getBlock() == &trace.function.front();
  });
  for (mlir::Operation *op : sorted) {
    if (llvm::none_of(op->getOperands(), [&](Value operand) { return varying.contains(operand); }))
      continue;
    bool isOnPath = false;
    for (Value result : op->getResults())
      if (isFloat(ir::dtypeOf(result)) && !trace.detached.contains(result)) {
        varying.insert(result);
        isOnPath = true;
      }
    if (isOnPath)
      path.push_back(op);
  }
}

static gradients::GradientRule ruleOf(mlir::Operation *op) {
  const ir::OpInfo *info = ir::opInfo(op);
  return info ? gradients::ruleOf(*info) : nullptr;
}

static std::string nameOf(mlir::Operation *op) { return op->getName().stripDialect().str(); }

void Trace::Backward::checkRules(const Location &where) const {
  constexpr size_t kMostListed = 20;
  std::vector<std::string> missing;
  for (mlir::Operation *op : path)
    if (!ruleOf(op)) {
      std::string place = ir::fileLine(op->getLoc()), text = nameOf(op) + (place.empty() ? "" : " at " + place);
      if (!llvm::is_contained(missing, text))
        missing.push_back(text);
    }
  if (missing.empty())
    return;
  std::string list;
  for (size_t i = 0; i < std::min(missing.size(), kMostListed); ++i)
    list += "\n  " + missing[i];
  if (missing.size() > kMostListed)
    list += "\n  … and " + std::to_string(missing.size() - kMostListed) + " more";
  throw gradients::NoGradient("these ops have no gradient yet:" + list +
                                  "\nwrite them in terms of others, or detach(x) what goes in if it is to be constant",
                              where);
}

/// The place of an op, kept for messages that outlive the graph.
static Location placeOf(mlir::Operation *op) {
  if (auto place = op->getLoc()->findInstanceOf<mlir::FileLineColLoc>())
    return {detail::keepText(place.getFilename().str()), place.getLine(), place.getColumn()};
  return {};
}

void Trace::Backward::differentiate(mlir::Operation *op) {
  auto isZero = [&](Value result) { return !gradients.contains(result); };
  if (llvm::all_of(op->getResults(), isZero))
    return;
  const Location place = placeOf(op);
  LocationScope scope(place);
  gradients::GradientCall call{*ir::opInfo(op), {}, ir::attrsOf(op), {}, {}, {}};
  llvm::SmallVector<Value> operands = ir::operandsOf(op);
  for (Value operand : operands) {
    call.operands.push_back(operand ? trace.wrap(operand) : Tensor());
    call.isNeeded.push_back(operand && varying.contains(operand));
  }
  for (Value result : op->getResults()) {
    call.results.push_back(trace.wrap(result));
    call.gradients.push_back(isZero(result) ? zeros_like(call.results.back()) : gradients.lookup(result));
  }
  std::vector<Tensor> given = ruleOf(op)(call);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!call.isNeeded[i] || !given[i].defined())
      continue;
    TensorSpec wanted = call.operands[i].spec(), got = given[i].spec();
    if (wanted != got)
      throw gradients::NoGradient(nameOf(op) + ": the gradient for an operand " + str(wanted) + " came out as " +
                                  str(got) + "; trace it with known sizes");
    Tensor &sum = gradients[operands[i]];
    sum = sum.defined() ? sum + given[i] : given[i];
  }
}

/// The value that stands for x in the graph, before any conversion; null if the graph does not use it.
Value Trace::variableOf(const Tensor &x, const Location &where) {
  const detail::TensorState &state = detail::stateOf(x, where);
  if (!isFloat(state.spec.dtype))
    throw Error(where, "grad", "gradients are of floats, but this is " + str(state.spec) + "; convert it to f32 first");
  if (auto *storage = std::get_if<detail::StorageRef>(&state.value))
    return constants.lookup(storage->get());
  if (!std::holds_alternative<detail::TracedValue>(state.value))
    return {};
  valueOf(x, state.spec.dtype, where); // which checks that it belongs here
  return Value::getFromOpaquePointer(std::get<detail::TracedValue>(state.value).value);
}

std::vector<Tensor> Trace::grad(const Tensor &y, const std::vector<Tensor> &xs, const std::optional<Tensor> &gradOutput,
                                const Location &where) {
  TensorSpec spec = y.spec(where);
  if (!gradOutput && elements(spec.shape) != Dim(1))
    throw Error(where, "grad",
                "y is " + str(spec) + ", of which there are many gradients; sum it first, or give grad_output, " +
                    "weights for its elements");
  Tensor seed = gradOutput ? gradOutput->to(spec.dtype, where) : ones_like(y, where);
  if (seed.shape(where) != spec.shape)
    throw Error(where, "grad",
                "grad_output is " + str(seed.spec(where)) + ", but y is " + str(spec) + "; they must have one shape");
  Value root = variableOf(y, where);
  std::vector<Value> variables;
  for (const Tensor &x : xs)
    variables.push_back(variableOf(x, where));
  std::vector<Tensor> results(xs.size());
  if (root) {
    Backward backward(*this, root, variables);
    backward.checkRules(where);
    backward.run(root, seed.to(ir::dtypeOf(root), where));
    for (size_t i = 0; i < xs.size(); ++i)
      if (variables[i])
        results[i] = backward.gradientOf(variables[i]);
  }
  for (size_t i = 0; i < xs.size(); ++i)
    results[i] = results[i].defined()
                     ? gradients::reshapeTo(results[i].to(xs[i].dtype(where), where), xs[i].shape(where))
                     : zeros_like(xs[i], where);
  return results;
}

Tensor Trace::detach(const Tensor &x, const Location &where) {
  Value value = valueOf(x, x.dtype(where), where);
  Tensor result = wrap(ir::create(builder, detail::mlirLocation(&graph->context, where), "reshape", {value},
                                  {{"shape", ir::shapeOf(value)}}));
  detached.insert(
      Value::getFromOpaquePointer(std::get<detail::TracedValue>(detail::Access::state(result)->value).value));
  return result;
}

std::vector<Tensor> grad(const Tensor &y, const std::vector<Tensor> &xs, const std::optional<Tensor> &grad_output,
                         Location where) {
  const Location place = detail::inScope(where);
  Trace *trace = Trace::active();
  if (!trace)
    throw Error(place, "grad", "there are gradients in traced functions only so far; call it within trace or jit");
  return trace->grad(y, xs, grad_output, place);
}

Tensor detach(const Tensor &x, Location where) {
  const Location place = detail::inScope(where);
  Trace *trace = Trace::active();
  return trace ? trace->detach(x, place) : x;
}

} // namespace burin
