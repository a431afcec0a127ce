// Rebuilds a graph with smaller sizes.
#include "ir/dialect/Burin.h"
#include "ir/reference/ReferenceTensor.h"
#include "tools/burin/verify/GraphCut.h"
#include "tools/burin/verify/Shrink.h"

using namespace mlir;

namespace burin::cli {
namespace {

class Resizer {
public:
  explicit Resizer(llvm::function_ref<Dim(const Dim &)> change) : change(change) {}

  /// Returns false if an op does not accept the new sizes.
  bool run(func::FuncOp main) {
    for (BlockArgument argument : main.getArguments())
      argument.setType(ir::tensorType(main.getContext(), {ir::dtypeOf(argument), resize(ir::shapeOf(argument))}));
    for (Operation &op : llvm::make_early_inc_range(main.front().without_terminator()))
      if (!replace(&op))
        return false;
    main.setFunctionType(FunctionType::get(main.getContext(), main.front().getArgumentTypes(),
                                           main.front().getTerminator()->getOperandTypes()));
    return true;
  }

private:
  Shape resize(const Shape &shape) const {
    Shape result;
    for (const Dim &size : shape)
      result.push_back(change(size));
    return result;
  }

  bool replace(Operation *op) {
    OpBuilder b(op);
    if (auto constant = dyn_cast<ir::ConstantOp>(op)) {
      Shape shape = ir::shapeOf(constant);
      if (resize(shape) == shape)
        return true;
      ir::RefTensor part = firstElements(constant);
      std::vector<char> bytes = part.toBytes();
      Value value =
          ir::createConstant(b, op->getLoc(), {part.dtype, resize(shape)}, bytes, constant.getName().value_or(""));
      return exchange(op, value.getDefiningOp());
    }
    const ir::OpInfo *info = ir::opInfo(op);
    if (!info)
      return false;
    std::vector<ir::Attr> attrs = ir::attrsOf(op);
    for (ir::Attr &attr : attrs)
      if (auto *shape = std::get_if<Shape>(&attr))
        *shape = resize(*shape);
    Operation *made = ir::createOp(b, op->getLoc(), *info, ir::operandsOf(op), std::move(attrs));
    return made && exchange(op, made);
  }

  static bool exchange(Operation *op, Operation *by) {
    if (op->getNumResults() != by->getNumResults())
      return false;
    op->replaceAllUsesWith(by->getResults());
    op->erase();
    return true;
  }

  ir::RefTensor firstElements(ir::ConstantOp constant) const {
    std::vector<int64_t> shape, part;
    for (const Dim &size : ir::shapeOf(constant)) {
      shape.push_back(size.value());
      part.push_back(change(size).value());
    }
    std::vector<char> storage;
    ArrayRef<char> bytes = ir::constantBytes(constant.getValue(), storage);
    ir::RefTensor all = ir::RefTensor::fromBytes(ir::dtypeOf(constant), shape, {bytes.data(), bytes.size()});
    ir::RefTensor result = ir::RefTensor::zeros(all.dtype, part);
    for (int64_t i = 0; i < result.size(); ++i) {
      int64_t rest = i, at = 0, step = 1;
      for (size_t d = shape.size(); d-- > 0;) {
        at += rest % part[d] * step;
        rest /= part[d];
        step *= shape[d];
      }
      if (isFloat(all.dtype))
        result.reals()[size_t(i)] = all.reals()[size_t(at)];
      else
        result.ints()[size_t(i)] = all.ints()[size_t(at)];
    }
    return result;
  }

  llvm::function_ref<Dim(const Dim &)> change;
};

} // namespace

OwningOpRef<ModuleOp> resized(ModuleOp graph, llvm::function_ref<Dim(const Dim &)> change) {
  ScopedDiagnosticHandler quiet(graph.getContext(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> copy = graph.clone();
  if (!Resizer(change).run(mainOf(*copy)))
    return nullptr;
  return copy;
}

} // namespace burin::cli
