// The burin dialect: op classes, and the bridge between MLIR types and attributes and the plain op table.
#pragma once
#include "ir/infer/OpInfo.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::func {
class FuncOp;
}

namespace burin::ir {

/// The op table entry of a burin op; nullptr for kernel, yield and constant.
const OpInfo *opInfo(mlir::Operation *op);

mlir::LogicalResult verifyInferredTypes(mlir::Operation *op);

template <class Op> struct InferredTypes : mlir::OpTrait::TraitBase<Op, InferredTypes> {
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifyInferredTypes(op); }
};
template <class Op> struct Elementwise : mlir::OpTrait::TraitBase<Op, Elementwise> {};
template <class Op> struct Composite : mlir::OpTrait::TraitBase<Op, Composite> {};
template <class Op> struct Reduction : mlir::OpTrait::TraitBase<Op, Reduction> {};

// ---- types
mlir::Type elementType(mlir::MLIRContext *, DType);
std::optional<DType> dtypeOf(mlir::Type element);
mlir::RankedTensorType tensorType(mlir::MLIRContext *, const TensorSpec &);
/// The spec of a burin tensor type. Fatal for a `?` without an expression, which the verifier rejects before.
TensorSpec specOf(mlir::Type);
inline TensorSpec specOf(mlir::Value v) { return specOf(v.getType()); }
/// Returns nullopt for other types, with a description of the problem in `error`.
std::optional<TensorSpec> trySpecOf(mlir::Type, std::string &error);
Shape shapeOf(mlir::Value);
DType dtypeOf(mlir::Value);
/// Checks every tensor type below `root`, also outside of burin ops, such as in unused arguments of functions. For
/// modules from outside.
mlir::LogicalResult verifyTensorTypes(mlir::Operation *root);

// ---- attributes
mlir::Attribute toMlir(mlir::MLIRContext *, const Attr &);
std::optional<Attr> fromMlir(mlir::Attribute, AttrKind);
/// All attributes of `op` in table order, with defaults.
std::vector<Attr> attrsOf(mlir::Operation *op);
/// The symbol of the result size that `op` computes from the elements of its operands.
std::optional<Dim> newSizeOf(mlir::Operation *op);
/// The operands of a table op in table order; null for an absent optional one.
llvm::SmallVector<mlir::Value> operandsOf(mlir::Operation *op);

// ---- construction
/// Creates an op by table entry. Operands in table order; null for an absent optional one. Infers the result types in
/// strict mode; on failure emits an error at `loc` and returns nullptr.
mlir::Operation *createOp(mlir::OpBuilder &, mlir::Location, const OpInfo &, llvm::ArrayRef<mlir::Value> operands,
                          std::vector<Attr> attrs);
/// Creates an op by class and returns its first result, for compiler code, where failure is a bug: `create<AddOp>(b,
/// loc, {x, y})`. Missing attributes take their defaults, so lists and axes with a default must usually be given.
mlir::Value create(mlir::OpBuilder &, mlir::Location, llvm::StringRef name, llvm::ArrayRef<mlir::Value> operands,
                   std::vector<std::pair<llvm::StringRef, Attr>> attrs = {});
template <class Op>
mlir::Value create(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<mlir::Value> operands,
                   std::vector<std::pair<llvm::StringRef, Attr>> attrs = {}) {
  return create(b, loc, Op::getOperationName().drop_front(sizeof("burin.") - 1), operands, std::move(attrs));
}

/// Bytes of a tensor as an attribute: row-major, elements of byteWidth(dtype), bool one byte each. Small tensors become
/// DenseElementsAttr (readable in text), large ones a resource blob (never hashed or copied). With an `owner` the blob
/// refers to `bytes` instead of a copy; the owner is released with the context.
mlir::ElementsAttr constantAttr(mlir::RankedTensorType, llvm::ArrayRef<char> bytes,
                                std::shared_ptr<const void> owner = nullptr, llvm::StringRef name = "");
/// The bytes of a constant; `storage` backs them if the attribute stores them in another form.
llvm::ArrayRef<char> constantBytes(mlir::ElementsAttr, std::vector<char> &storage);
mlir::Value createConstant(mlir::OpBuilder &, mlir::Location, const TensorSpec &, llvm::ArrayRef<char> bytes,
                           llvm::StringRef name = "", std::shared_ptr<const void> owner = nullptr);

/// The value of all elements of `v` if they are known to be equal: v is a constant or `full`, possibly with its
/// elements moved.
std::optional<double> uniformValue(mlir::Value v);

/// "model.cpp:12": the innermost file location, without the line if that is 0; "" if there is none.
std::string fileLine(mlir::Location);

/// Attribute of the main function: [size, size, place] for each pair of sizes that a run must check to be equal.
inline constexpr llvm::StringLiteral kChecksAttr = "burin.checks";

/// Attribute of an argument or result of a function: the symbol of the state that it reads or writes.
inline constexpr llvm::StringLiteral kStateAttr = "burin.state";
/// Attribute of takes and gathers whose indices another op has checked: they cannot fail.
inline constexpr llvm::StringLiteral kCheckedAttr = "burin.checked";
/// Attribute of the op that checks them in their stead: the error of the other op.
inline constexpr llvm::StringLiteral kErrorAttr = "burin.error";
/// The functions that if, while and scan call; null for a missing one.
llvm::SmallVector<mlir::Operation *, 2> appliedFunctions(mlir::Operation *);
/// Whether the op is a step of the launch plan by itself, with operands and results in memory: it calls functions, or
/// the host executes it.
bool isOwnStep(mlir::Operation *);

/// The public functions of a graph with bodies, @main first, the others in the order of the module.
std::vector<mlir::func::FuncOp> publicFunctions(mlir::ModuleOp module);
/// The first of them; null if there is none.
mlir::func::FuncOp mainFunction(mlir::ModuleOp module);

/// Loads the dialects a burin module may contain.
void loadDialects(mlir::MLIRContext &);

} // namespace burin::ir

// clang-format off
#include "ir/BurinDialect.h.inc"
#define GET_OP_CLASSES // each of these files undefines it
#include "ir/ElementwiseOps.h.inc"
#define GET_OP_CLASSES
#include "ir/ReductionOps.h.inc"
#define GET_OP_CLASSES
#include "ir/ShapeOps.h.inc"
#define GET_OP_CLASSES
#include "ir/ContractionOps.h.inc"
#define GET_OP_CLASSES
#include "ir/NeuralOps.h.inc"
#define GET_OP_CLASSES
#include "ir/KernelOps.h.inc"
#define GET_OP_CLASSES
#include "ir/ControlOps.h.inc"
// clang-format on
