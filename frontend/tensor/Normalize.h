// Normalises calls of the public API, which promote and broadcast, to strict ops of the dialect, for traces and for the
// one-op graphs of eager calls.
#pragma once
#include "burin/error.h"
#include "ir/dialect/Burin.h"

namespace burin::detail {

/// A call failed because two sizes are not known to be equal.
class UnequalSizes : public Error {
public:
  UnequalSizes(const Location &where, const ir::InferCall &call)
      : Error(where, call.info.name, call.error), sizes(*call.unequal) {}
  ir::InferCall::Unequal sizes;
};

/// A valid call and its results.
struct CheckedCall {
  const ir::OpInfo &info;
  std::vector<std::optional<TensorSpec>> operands; // as the strict op takes them
  std::vector<ir::Attr> attrs;                     // canonical
  std::vector<TensorSpec> results;
};

/// Infers the results of a call. An absent operand is nullopt; `weak` marks C++ numbers, which take the element type of
/// the other operands. Throws Error if the operands are invalid, UnequalSizes if they may be valid for some sizes.
CheckedCall checkCall(const ir::OpInfo &info, std::vector<std::optional<TensorSpec>> operands,
                      llvm::ArrayRef<bool> weak, std::vector<ir::Attr> attrs, const Location &where);

/// Records the call: casts and broadcasts the operands as needed, then creates the op. Absent operands are null.
/// Returns the results.
llvm::SmallVector<mlir::Value> recordCall(mlir::OpBuilder &builder, mlir::Location location, const CheckedCall &call,
                                          llvm::ArrayRef<mlir::Value> operands);

mlir::Value castTo(mlir::OpBuilder &builder, mlir::Location location, mlir::Value value, DType dtype);
/// The location of an op, in a form that outlives the graph.
Location placeOf(mlir::Operation *op);
mlir::Location mlirLocation(mlir::MLIRContext *context, const Location &where);

} // namespace burin::detail
