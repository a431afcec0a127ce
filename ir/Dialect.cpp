#include "ir/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace burin::ir;

#include "ir/BurinDialect.cpp.inc"

void BurinDialect::initialize() {
  // In two steps: one list of all ops is slow to instantiate.
  addOperations<
#define GET_OP_LIST
#include "ir/ElementwiseOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/ReductionOps.cpp.inc"
      ,
#define GET_OP_LIST
#include "ir/ShapeOps.cpp.inc"
      ,
#define GET_OP_LIST
#include "ir/ContractionOps.cpp.inc"
      ,
#define GET_OP_LIST
#include "ir/NeuralOps.cpp.inc"
      ,
#define GET_OP_LIST
#include "ir/KernelOps.cpp.inc"
      >();
}

Operation *BurinDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements, StringAttr());
}

void burin::ir::loadDialects(MLIRContext &context) { context.loadDialect<BurinDialect, func::FuncDialect>(); }
