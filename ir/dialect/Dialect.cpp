#include "ir/dialect/Burin.h"
#include "ir/dialect/GraphVersion.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace burin::ir;

#include "ir/BurinDialect.cpp.inc"

namespace {
/// Version of the dialect in saved graphs: readers reject newer versions and upgrade older ones.
struct BytecodeVersions : BytecodeDialectInterface {
  explicit BytecodeVersions(Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  void writeVersion(DialectBytecodeWriter &writer) const override {
    auto requested = writer.getDialectVersion<BurinDialect>();
    writer.writeVarInt(succeeded(requested) ? static_cast<const GraphVersion *>(*requested)->number
                                            : GraphVersion::kCurrent);
  }
  std::unique_ptr<DialectVersion> readVersion(DialectBytecodeReader &reader) const override {
    uint64_t number;
    if (failed(reader.readVarInt(number)))
      return nullptr;
    if (number > GraphVersion::kCurrent) {
      reader.emitError() << "this graph was saved by a newer burin: its version is " << number
                         << ", this one reads up to " << GraphVersion::kCurrent
                         << "; update burin, or save the graph with this version";
      return nullptr;
    }
    return std::make_unique<GraphVersion>(number);
  }
};
} // namespace

void BurinDialect::initialize() {
  addInterfaces<BytecodeVersions>();
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
      ,
#define GET_OP_LIST
#include "ir/ControlOps.cpp.inc"
      >();
}

Operation *BurinDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, mlir::Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements, StringAttr());
}

void burin::ir::loadDialects(MLIRContext &context) { context.loadDialect<BurinDialect, func::FuncDialect>(); }
