#include "test/reference/Harness.h"
#include "ir/fold/Fold.h"
#include "ir/reference/Reference.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include <cmath>

namespace burin::test {

using ir::RefTensor;

namespace {

/// A separate context for every evaluation, which collects the diagnostics.
struct Session {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  Outcome outcome;
  mlir::ScopedDiagnosticHandler handler{&context, [this](mlir::Diagnostic &d) {
                                          outcome.error += d.str() + "\n";
                                          return mlir::success();
                                        }};
  Session() { ir::loadDialects(context); }

  Outcome finish(mlir::FailureOr<std::vector<RefTensor>> results) {
    if (mlir::succeeded(results))
      outcome.results = std::move(*results);
    else if (outcome.error.empty())
      outcome.error = "failed without a diagnostic";
    return std::move(outcome);
  }
};

} // namespace

namespace {

/// One op, recorded as by the frontend: loose attributes become canonical.
struct Recorded {
  Session session;
  mlir::Block block;
  mlir::Operation *op = nullptr;

  /// `operand` creates the value of an operand at the start of the block.
  Recorded(const std::string &name, const std::vector<const RefTensor *> &operands, const Attrs &attrs,
           llvm::function_ref<mlir::Value(mlir::OpBuilder &, const TensorSpec &, size_t)> operandValue) {
    const ir::OpInfo *info = ir::findOp(name);
    if (!info) {
      session.outcome.error = "no op " + name;
      return;
    }
    ir::InferCall call{*info, {}, {}, /*strict=*/false, {}, {}};
    for (const ir::AttrInfo &attr : info->attrs)
      call.attrs.push_back(attrs.count(attr.name) ? attrs.at(attr.name) : attr.fallback);
    for (const RefTensor *operand : operands)
      if (operand)
        call.operands.push_back(TensorSpec{operand->dtype, Shape(operand->shape.begin(), operand->shape.end())});
      else
        call.operands.push_back(std::nullopt);
    if (!ir::infer(call)) {
      session.outcome.error = call.error;
      return;
    }
    mlir::OpBuilder builder(&session.context);
    builder.setInsertionPointToStart(&block);
    std::vector<mlir::Value> values;
    for (size_t i = 0; i < operands.size(); ++i)
      values.push_back(operands[i] ? operandValue(builder, *call.operands[i], i) : mlir::Value());
    op = ir::createOp(builder, builder.getUnknownLoc(), *info, values, call.attrs);
  }
};

} // namespace

Outcome evaluateOp(const std::string &name, std::vector<const RefTensor *> operands, const Attrs &attrs,
                   const ir::RefOptions &options) {
  std::vector<RefTensor> tensors;
  Recorded recorded(name, operands, attrs, [&](mlir::OpBuilder &builder, const TensorSpec &spec, size_t i) {
    tensors.push_back(*operands[i]);
    return builder.getBlock()->addArgument(ir::tensorType(builder.getContext(), spec), builder.getUnknownLoc());
  });
  if (!recorded.op)
    return recorded.session.finish(mlir::failure());
  return recorded.session.finish(ir::evaluate(recorded.op, tensors, options));
}

std::vector<std::vector<char>> foldedBytes(const std::string &name, std::vector<const RefTensor *> operands,
                                           const Attrs &attrs, const std::vector<std::vector<char>> &bytes) {
  Recorded recorded(name, operands, attrs, [&](mlir::OpBuilder &builder, const TensorSpec &spec, size_t i) {
    return ir::createConstant(builder, builder.getUnknownLoc(), spec,
                              bytes.empty() ? operands[i]->toBytes() : bytes[i]);
  });
  std::vector<std::vector<char>> results;
  if (!recorded.op)
    return results;
  if (auto folded = ir::foldOp(recorded.op); mlir::succeeded(folded))
    for (mlir::ElementsAttr attr : *folded) {
      std::vector<char> storage;
      results.push_back(ir::constantBytes(attr, storage).vec());
    }
  return results;
}

Outcome evaluateOp(const std::string &name, std::initializer_list<RefTensor> operands, const Attrs &attrs,
                   const ir::RefOptions &options) {
  std::vector<const RefTensor *> pointers;
  for (const RefTensor &operand : operands)
    pointers.push_back(&operand);
  return evaluateOp(name, pointers, attrs, options);
}

Outcome interpretText(const std::string &text, const std::vector<RefTensor> &inputs, const Observer &onOp,
                      const ir::RefOptions &options) {
  Session session;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &session.context);
  if (!module)
    return session.finish(mlir::failure());
  auto observe = [&](mlir::Operation *op, llvm::ArrayRef<RefTensor> results) {
    onOp(op->getName().stripDialect().str(), results.vec());
  };
  return session.finish(ir::interpret(*module, inputs, onOp ? ir::RefObserver(observe) : ir::RefObserver(), options));
}

RefTensor reals(std::vector<double> elements, std::vector<int64_t> shape, DType dtype) {
  if (shape.empty())
    shape = {int64_t(elements.size())};
  return {dtype, std::move(shape), std::move(elements)};
}

RefTensor integers(std::vector<int64_t> elements, std::vector<int64_t> shape, DType dtype) {
  if (shape.empty())
    shape = {int64_t(elements.size())};
  return {dtype, std::move(shape), std::move(elements)};
}

std::string difference(const RefTensor &got, const RefTensor &expected, double tolerance) {
  if (got.dtype != expected.dtype)
    return "type " + std::string(name(got.dtype)) + ", expected " + std::string(name(expected.dtype));
  if (got.shape != expected.shape)
    return "the shapes differ";
  if (!isFloat(got.dtype)) {
    for (size_t i = 0; i < got.ints().size(); ++i)
      if (got.ints()[i] != expected.ints()[i])
        return "element " + std::to_string(i) + " is " + std::to_string(got.ints()[i]) + ", expected " +
               std::to_string(expected.ints()[i]);
    return "";
  }
  for (size_t i = 0; i < got.reals().size(); ++i) {
    double x = got.reals()[i], y = expected.reals()[i];
    if (!(x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(y))))
      return "element " + std::to_string(i) + " is " + std::to_string(x) + ", expected " + std::to_string(y);
  }
  return "";
}

} // namespace burin::test
