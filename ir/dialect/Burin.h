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
/// The spec of a burin tensor type; fatal on a `?` without its expression (the verifier refuses those first).
TensorSpec specOf(mlir::Type);
inline TensorSpec specOf(mlir::Value v) { return specOf(v.getType()); }
/// nullopt, with what is wrong in `error`, for any other type.
std::optional<TensorSpec> trySpecOf(mlir::Type, std::string &error);
Shape shapeOf(mlir::Value);
DType dtypeOf(mlir::Value);
/// Checks every tensor type below `root`, also where no burin op does: unused arguments of functions, for example.
/// To be called once on a module from outside.
mlir::LogicalResult verifyTensorTypes(mlir::Operation *root);

// ---- attributes
mlir::Attribute toMlir(mlir::MLIRContext *, const Attr &);
std::optional<Attr> fromMlir(mlir::Attribute, AttrKind);
/// All attributes of `op` in table order, defaults filled in.
std::vector<Attr> attrsOf(mlir::Operation *op);
/// The symbol of the size that `op` defines, as its result depends on the elements of its operands.
std::optional<Dim> newSizeOf(mlir::Operation *op);
/// The operands of an op of the table in table order; an absent optional one is a null Value.
llvm::SmallVector<mlir::Value> operandsOf(mlir::Operation *op);

// ---- construction
/// Creates an op by table entry. Operands per table order; a null Value is an absent optional. Infers the result types
/// in strict mode; emits an error at `loc` and returns nullptr if the op is not valid.
mlir::Operation *createOp(mlir::OpBuilder &, mlir::Location, const OpInfo &, llvm::ArrayRef<mlir::Value> operands,
                          std::vector<Attr> attrs);
/// The first result of the same by op class for compiler code, where failure is our bug: `create<AddOp>(b, loc, {x,
/// y})`. Missing attributes take their defaults, so lists and axes with a default must usually be given.
mlir::Value create(mlir::OpBuilder &, mlir::Location, llvm::StringRef name, llvm::ArrayRef<mlir::Value> operands,
                   std::vector<std::pair<llvm::StringRef, Attr>> attrs = {});
template <class Op>
mlir::Value create(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<mlir::Value> operands,
                   std::vector<std::pair<llvm::StringRef, Attr>> attrs = {}) {
  return create(b, loc, Op::getOperationName().drop_front(sizeof("burin.") - 1), operands, std::move(attrs));
}

/// A tensor's bytes as constants hold them: row-major, elements of byteWidth(dtype), bool one byte each.
/// Small ones become DenseElementsAttr (readable in text), large ones a resource blob (never hashed or copied). With an
/// `owner` the blob refers to `bytes` instead of a copy, and drops the owner with the context.
mlir::ElementsAttr constantAttr(mlir::RankedTensorType, llvm::ArrayRef<char> bytes,
                                std::shared_ptr<const void> owner = nullptr, llvm::StringRef name = "");
/// The bytes of a constant; `storage` backs those that are not stored this way.
llvm::ArrayRef<char> constantBytes(mlir::ElementsAttr, std::vector<char> &storage);
mlir::Value createConstant(mlir::OpBuilder &, mlir::Location, const TensorSpec &, llvm::ArrayRef<char> bytes,
                           llvm::StringRef name = "", std::shared_ptr<const void> owner = nullptr);

/// The number that every element of `v` is, if it is known: v is a constant or `full`, moved or not.
std::optional<double> uniformValue(mlir::Value v);

/// "model.cpp:12" of an MLIR location: the innermost file location, without the line if that is 0, or "" when there is
/// none.
std::string fileLine(mlir::Location);

/// Attribute of the main function: [size, size, place] for each pair of sizes that a run must find equal.
inline constexpr llvm::StringLiteral kChecksAttr = "burin.checks";

/// Attribute of an argument or result of a function: the state that it is, a symbol of the module.
inline constexpr llvm::StringLiteral kStateAttr = "burin.state";
/// The functions that an op applies: those of if, while and scan. Null ones are missing.
llvm::SmallVector<mlir::Operation *, 2> appliedFunctions(mlir::Operation *);
/// Whether the op is a step of the launch plan by itself, with its operands and results in memory: it applies
/// functions, or is done by the host.
bool isOwnStep(mlir::Operation *);

/// The public functions of a graph with bodies, @main first, then in the order of the module.
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
