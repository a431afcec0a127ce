// Prints and calls of C++ functions, eagerly and in a trace.
#include "burin/graph/host.h"
#include "burin/training/gradients.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/HostFunctions.h"
#include "frontend/trace/Trace.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "runtime/support/TensorText.h"

namespace burin {

using detail::inScope;

// ---- in a trace

void Trace::debugPrint(const Tensor &x, const std::string &label, const Location &where) {
  mlir::Value value = valueOf(x, x.dtype(where), where);
  ir::DebugPrintOp::create(builder, detail::mlirLocation(&graph->context, where), value, label);
}

std::vector<Tensor> Trace::hostCall(detail::Function function, std::span<const TensorSpec> results,
                                    const std::vector<Tensor> &operands, const Location &where) {
  llvm::SmallVector<mlir::Value> values;
  for (const Tensor &operand : operands)
    values.push_back(valueOf(operand, operand.dtype(where), where));
  llvm::SmallVector<mlir::Type> types;
  for (const TensorSpec &spec : results)
    types.push_back(ir::tensorType(&graph->context, spec));
  auto op = ir::HostCallOp::create(builder, detail::mlirLocation(&graph->context, where), types,
                                   graph->hostFunctions.size(), values);
  graph->hostFunctions.push_back(
      std::make_shared<detail::HostFunction>(detail::HostFunction{std::move(function), where}));
  std::vector<Tensor> made;
  for (mlir::Value result : op.getResults())
    made.push_back(wrap(result));
  return made;
}

/// Replaces the functions that an op calls, recursively, by copies without prints.
void Trace::silence(mlir::Operation *op) {
  if (mlir::isMemoryEffectFree(op))
    return;
  for (mlir::NamedAttribute attribute : llvm::to_vector(op->getAttrs())) {
    auto name = llvm::dyn_cast<mlir::FlatSymbolRefAttr>(attribute.getValue());
    auto function = name ? graph->module->lookupSymbol<mlir::func::FuncOp>(name.getAttr()) : mlir::func::FuncOp();
    if (!function)
      continue;
    mlir::OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(function);
    auto copy = llvm::cast<mlir::func::FuncOp>(builder.clone(*function));
    copy.setName("silent" + std::to_string(graph->privateFunctions++));
    for (mlir::Operation &inner : llvm::make_early_inc_range(copy.front()))
      llvm::isa<ir::DebugPrintOp>(inner) ? inner.erase() : silence(&inner);
    op->setAttr(attribute.getName(), mlir::FlatSymbolRefAttr::get(copy.getNameAttr()));
  }
}

// ---- anywhere

void debug_print(const Tensor &x, const std::string &label, Location where) {
  const Location place = inScope(where);
  if (Trace *trace = Trace::active())
    return trace->debugPrint(x, label, place);
  TensorSpec spec = x.spec(place);
  std::vector<int64_t> shape;
  for (const Dim &size : spec.shape)
    shape.push_back(size.value());
  std::string path = detail::modulePath(), source = place.str() + (path.empty() ? "" : " (module " + path + ")");
  const detail::StorageRef storage = detail::concreteStorage(x, "debug_print", place);
  const void *elements = detail::await(storage, place).data();
  rt::writeToStandardError(rt::printText(source, label, spec.dtype, shape, elements));
}

std::vector<Tensor> detail::hostCall(Function function, const HostResults &results,
                                     const std::vector<Tensor> &operands) {
  const Location place = inScope(results.where);
  LocationScope scope(place);
  auto call = [&](const std::vector<Tensor> &given) {
    if (Trace *trace = Trace::active())
      return trace->hostCall(std::move(function), results.specs, given, place);
    for (const TensorSpec &spec : results.specs)
      for (const Dim &size : spec.shape)
        if (!size.isStatic())
          throw Error(place, "host_call", "outside of a trace sizes are numbers, but a result is " + str(spec));
    HostFunction host{std::move(function), place};
    return callHost(host, given, results.specs);
  };
  auto refuse = [place](const auto &, const auto &, const auto &) -> std::vector<Tensor> {
    throw Error(place, "host_call",
                "a C++ function has no gradient; put the call into a custom_vjp, or detach() its operands");
  };
  return custom_vjp(call, refuse)(operands);
}

} // namespace burin
