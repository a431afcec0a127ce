#include "codegen/gpu/contraction/LibraryProduct.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/StridedView.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

rt::LaunchSize launchSizeOf(const KernelBuilder &k, const Dim &size) {
  return size.isStatic() ? rt::LaunchSize{rt::LaunchSize::kNone, size.value()}
                         : rt::LaunchSize{uint32_t(llvm::find(k.sizes, size) - k.sizes.begin()), 0};
}

namespace {

/// The argument of the body that is `v` in another shape; null if it is none.
BlockArgument argumentBehind(Value v) { return dyn_cast<BlockArgument>(passes::skipReshapes(v)); }

/// The argument with the elements that `v` repeats for each row of `columns` elements; null if it is none.
BlockArgument biasBehind(Value v, const Dim &columns) {
  auto repeated = passes::skipReshapes(v).getDefiningOp<BroadcastToOp>();
  if (!repeated || shapeOf(v).back() != columns)
    return {};
  const Shape from = shapeOf(repeated.getX());
  const bool isRow = !from.empty() && from.back() == columns && elements(from) == columns &&
                     shapeOf(repeated.getResult()).back() == columns;
  return isRow ? argumentBehind(repeated.getX()) : BlockArgument();
}

/// Whether rows of windows of one element follow each other at one distance.
bool hasRegularRows(ContractOp op, const passes::StridedView &left) {
  auto isOne = [](int64_t n) { return n == 1; };
  auto isZero = [](int64_t n) { return n == 0; };
  bool isRegular = llvm::all_of(op.getKernel(), isOne) && llvm::all_of(op.getStrides(), isOne) &&
                   llvm::all_of(op.getPadding(), isZero) && left.offset == Dim(0) && left.strides.back() == Dim(1);
  const Shape shape = shapeOf(op.getLhs());
  for (size_t d = op.getBatch(); d + 2 < shape.size(); ++d)
    isRegular &= left.strides[d] == left.strides[d + 1] * shape[d + 1];
  return isRegular;
}

} // namespace

std::optional<rt::Product> libraryProductOf(KernelOp kernel, KernelBuilder &k) {
  Block &body = kernel.getBody().front();
  if (body.getTerminator()->getNumOperands() != 1 || k.sharesMemory() || !k.checks.empty())
    return std::nullopt;
  Value root = passes::skipReshapes(body.getTerminator()->getOperand(0));
  auto op = root.getDefiningOp<ContractOp>();
  BlockArgument bias;
  if (auto sum = root.getDefiningOp<AddOp>(); sum && dtypeOf(root) == DType::f32)
    for (unsigned i : {0, 1})
      if (auto summand = passes::skipReshapes(sum->getOperand(i)).getDefiningOp<ContractOp>())
        op = summand, bias = biasBehind(sum->getOperand(1 - i), shapeOf(summand.getResult()).back());
  if (!op || (op.getResult() != root && !bias) || op.getTail() || op.getTerms() || op.getBatch() > 1)
    return std::nullopt;
  const DType type = dtypeOf(op.getLhs());
  const Shape left = shapeOf(op.getLhs()), right = shapeOf(op.getRhs());
  const Dim columns = shapeOf(op.getResult()).back();
  const bool isMultiplied =
      type == DType::f16 || type == DType::bf16 || (type == DType::f32 && k.target.f32Products == F32Products::Exact);
  const bool isPacked = right[right.size() - 3] != Dim(1) || right.back() != columns;
  const passes::StridedView view = passes::stridedViewOf(op.getLhs());
  auto leftArgument = dyn_cast<BlockArgument>(view.base);
  BlockArgument rightArgument = argumentBehind(op.getRhs());
  if (!isMultiplied || dtypeOf(op.getRhs()) != type || isPacked || !leftArgument || !rightArgument ||
      !hasRegularRows(op, view))
    return std::nullopt;

  const size_t batch = op.getBatch();
  const Dim batches = batch ? left[0] : Dim(1);
  rt::Product made;
  made.type = type;
  made.resultType = dtypeOf(op.getResult());
  made.operands = {leftArgument.getArgNumber(), rightArgument.getArgNumber(), body.getNumArguments()};
  if (bias)
    made.operands.push_back(bias.getArgNumber());
  const Dim rows = elements(Shape(left.begin() + batch, left.end() - 1));
  for (const Dim &size :
       {rows, columns, left.back(), batches, view.strides[view.strides.size() - 2], batch ? view.strides[0] : Dim(0)}) {
    k.addSize(size);
    made.sizes.push_back(launchSizeOf(k, size));
  }
  return made;
}

} // namespace burin::codegen
