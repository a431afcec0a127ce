// Evaluation of traced tensors that depend on constants only.
#include "burin/tensor/creation.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/Trace.h"
#include "ir/reference/Reference.h"
#include "llvm/ADT/SetVector.h"

namespace burin {

using mlir::Value;

static Value tracedValue(const Tensor &tensor) {
  auto *traced = std::get_if<detail::TracedValue>(&detail::Access::state(tensor)->value);
  return traced ? Value::getFromOpaquePointer(traced->value) : Value();
}

/// The values that `root` is computed from, including itself.
static llvm::SetVector<Value> slice(Value root, llvm::function_ref<bool(Value)> isKnown) {
  llvm::SetVector<Value> values;
  values.insert(root);
  for (size_t i = 0; i < values.size(); ++i)
    if (mlir::Operation *op = values[i].getDefiningOp(); op && !isKnown(values[i]))
      for (Value operand : op->getOperands())
        values.insert(operand);
  return values;
}

static bool isSmall(Value value) {
  constexpr int64_t kMaxElements = 1 << 16;
  Dim count = elements(ir::shapeOf(value));
  return count.isStatic() && count.value() <= kMaxElements;
}

std::optional<Tensor> Trace::constantValue(const Tensor &tensor, const Location &where) {
  Value root = tracedValue(tensor);
  if (!root)
    return tensor;
  std::vector<mlir::Operation *> ops;
  for (Value value : slice(root, [&](Value v) { return evaluated.contains(v); })) {
    if (evaluated.contains(value))
      continue;
    mlir::Operation *op = value.getDefiningOp();
    if (!op || !isSmall(value) || ir::isOwnStep(op))
      return std::nullopt;
    ops.push_back(op);
  }
  llvm::sort(ops, [&](mlir::Operation *a, mlir::Operation *b) { return isBefore(a, b); });
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
  for (mlir::Operation *op : ops) {
    std::vector<ir::RefTensor> operands;
    for (Value operand : op->getOperands())
      operands.push_back(evaluated.lookup(operand));
    auto results = ir::evaluate(op, operands, {.roundF32 = true});
    if (mlir::failed(results))
      throw Error(where, "", graph->takeDiagnostics());
    for (auto [value, result] : llvm::zip(op->getResults(), *results))
      evaluated[value] = std::move(result);
  }
  const ir::RefTensor &result = evaluated.find(root)->second;
  std::vector<char> bytes = result.toBytes();
  return from_bytes(bytes.data(), {result.dtype, Shape(result.shape.begin(), result.shape.end())}, where);
}

std::vector<std::string> Trace::inputsBehind(const Tensor &tensor) const {
  std::vector<std::string> names;
  mlir::func::FuncOp main = function;
  const std::vector<NamedSpec> &inputs = graph->functions[index].inputs;
  if (Value root = tracedValue(tensor))
    for (Value value : slice(root, [](Value) { return false; }))
      if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
          argument && argument.getOwner()->getParentOp() == main && argument.getArgNumber() < inputs.size())
        names.push_back(inputs[argument.getArgNumber()].name);
  return names;
}

} // namespace burin
