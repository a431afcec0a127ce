#include "frontend/tensor/Normalize.h"
#include "frontend/tensor/context/LocationScope.h"
#include "mlir/IR/Builders.h"

namespace burin::detail {

using mlir::Value;

/// Whether an operand takes part in promotion; the condition of `where` does not.
static bool takesPart(const ir::OpInfo &info, size_t operand) {
  return info.normalize != ir::Normalize::None &&
         !(operand < info.operands.size() && std::string_view(info.operands[operand].name) == "condition");
}

/// Gives weak operands the element type to which they would be cast.
static void typeWeakOperands(const ir::OpInfo &info, std::vector<std::optional<TensorSpec>> &operands,
                             llvm::ArrayRef<bool> weak) {
  llvm::SmallVector<DType> types;
  llvm::SmallVector<bool> flags;
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && takesPart(info, i)) {
      types.push_back(operands[i]->dtype);
      flags.push_back(weak[i]);
    }
  if (types.empty())
    return;
  DType common = ir::promote(types, flags);
  if ((info.normalize == ir::Normalize::Float || info.normalize == ir::Normalize::BroadcastFloat) && !isFloat(common))
    common = DType::f32;
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && takesPart(info, i) && weak[i])
      operands[i]->dtype = common;
}

CheckedCall checkCall(const ir::OpInfo &info, std::vector<std::optional<TensorSpec>> operands,
                      llvm::ArrayRef<bool> weak, std::vector<ir::Attr> attrs, const Location &where) {
  if (llvm::is_contained(weak, true))
    typeWeakOperands(info, operands, weak);
  ir::InferCall call{
      .info = info, .operands = std::move(operands), .attrs = std::move(attrs), .results = {}, .error = {}};
  bool fits = ir::infer(call);
  if (!fits && call.unequal && mayEqual(call.unequal->left, call.unequal->right))
    throw UnequalSizes(where, call);
  if (!fits)
    throw Error(where, info.name, call.error + afterModule());
  return {info, std::move(call.operands), std::move(call.attrs), std::move(call.results)};
}

Location placeOf(mlir::Operation *op) {
  if (auto place = op->getLoc()->findInstanceOf<mlir::FileLineColLoc>())
    return {keepText(place.getFilename().str()), place.getLine(), place.getColumn()};
  return {};
}

mlir::Location mlirLocation(mlir::MLIRContext *context, const Location &where) {
  if (!*where.file)
    return mlir::UnknownLoc::get(context);
  mlir::Location place = mlir::FileLineColLoc::get(context, where.file, where.line, where.column);
  const std::string module = modulePath();
  return module.empty() ? place : mlir::NameLoc::get(mlir::StringAttr::get(context, module), place);
}

mlir::Value castTo(mlir::OpBuilder &builder, mlir::Location location, Value value, DType dtype) {
  if (ir::dtypeOf(value) == dtype)
    return value;
  return ir::create(builder, location, "cast", {value}, {{"dtype", dtype}});
}

/// Reshapes or broadcasts an operand to the shape of the strict op.
static Value shapeTo(mlir::OpBuilder &builder, mlir::Location location, const CheckedCall &call, size_t index,
                     Value value) {
  const Shape &wanted = call.operands[index]->shape;
  Shape shape = ir::shapeOf(value);
  if (shape == wanted)
    return value;
  if (shape.size() == 1 && index == 1 && std::string_view(call.info.name) == "matmul")
    value = ir::create(builder, location, "unsqueeze", {value}, {{"axes", std::vector<int64_t>{1}}}); // a column
  if (ir::shapeOf(value) == wanted)
    return value;
  return ir::create(builder, location, "broadcast_to", {value}, {{"shape", wanted}});
}

llvm::SmallVector<Value> recordCall(mlir::OpBuilder &builder, mlir::Location location, const CheckedCall &call,
                                    llvm::ArrayRef<Value> operands) {
  llvm::SmallVector<Value> strict;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    Value value = i < operands.size() ? operands[i] : Value();
    if (value) {
      value = castTo(builder, location, value, call.operands[i]->dtype);
      value = shapeTo(builder, location, call, i, value);
    }
    strict.push_back(value);
  }
  std::string reason;
  mlir::ScopedDiagnosticHandler keepReason(builder.getContext(), [&](mlir::Diagnostic &d) { reason = d.str(); });
  mlir::Operation *op = ir::createOp(builder, location, call.info, strict, call.attrs);
  if (!op)
    throw Error({}, call.info.name, "internal error: the call was accepted, but its op was refused: " + reason);
  llvm::SmallVector<Value> results(op->getResults());
  for (size_t i = 0; i < results.size(); ++i) // the strict matmul keeps the dimension of a vector operand
    if (ir::shapeOf(results[i]) != call.results[i].shape)
      results[i] = ir::create(builder, location, "reshape", {results[i]}, {{"shape", call.results[i].shape}});
  return results;
}

} // namespace burin::detail
