// Rematerialisation in traces: copies of ops in the backward pass instead of saved values.
#include "frontend/autodiff/gradients/Backward.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace burin {

std::vector<Tensor> Trace::remat(const detail::Function &function, const std::vector<Tensor> &inputs,
                                 const Location &where) {
  mlir::Block *block = builder.getInsertionBlock();
  mlir::Operation *before = block->empty() ? nullptr : &block->back();
  std::vector<Tensor> results = function(inputs, where);
  auto region = std::make_shared<Region>();
  auto at = before ? std::next(mlir::Block::iterator(before)) : block->begin();
  for (mlir::Operation &op : llvm::make_range(at, block->end()))
    // Not copied: ops that define a size, which must be unique; custom gradients, which expect the original values; ops
    // with effects.
    if (!llvm::is_contained(sizing, &op) && !customs.contains(&op) && !llvm::isa<ir::ConstantOp>(op) &&
        mlir::isMemoryEffectFree(&op))
      region->push_back(&op);
  for (mlir::Operation *op : *region)
    regions[op] = region; // nested regions belong to the outer one
  return results;
}

mlir::IRMapping Trace::Backward::computeAgain(const Region &region) {
  mlir::IRMapping values;
  mlir::OpBuilder &b = trace.builder;
  const int64_t number = trace.barriers++;
  auto isCell = [&](mlir::Value value) {
    return llvm::any_of(trace.cells, [&](const CellUse &use) { return use.argument == value; });
  };
  for (mlir::Operation *op : region) {
    for (mlir::Value operand : op->getOperands())
      if (!values.contains(operand)) {
        // Values that depend only on parameters may be shared with the forward pass, which keeps them anyway.
        bool isKept = isCell(operand) || llvm::isa_and_nonnull<ir::ConstantOp>(operand.getDefiningOp());
        values.map(operand, isKept ? operand : ir::create(b, op->getLoc(), "barrier", {operand}, {{"region", number}}));
      }
    b.clone(*op, values);
  }
  return values;
}

mlir::Value Trace::Backward::computedAgain(mlir::Operation *op, mlir::Value value) {
  auto found = trace.regions.find(op);
  if (found == trace.regions.end())
    return value;
  const Region *region = found->second.get();
  auto known = again.find(region);
  if (known == again.end())
    known = again.try_emplace(region, computeAgain(*region)).first;
  return known->second.lookupOrDefault(value);
}

} // namespace burin
