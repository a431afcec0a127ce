// The reference interpreter: the meaning of every op, in plain loops over doubles and 64-bit integers. It shares no
// code with code generation, which it checks, and favours clarity over speed.
#pragma once
#include "ir/dialect/Burin.h"
#include "ir/reference/ReferenceTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace burin::ir {

/// Called with each evaluated op and its results, which it may replace by other values of the same types for the ops
/// that follow.
using RefObserver = llvm::function_ref<void(mlir::Operation *, llvm::MutableArrayRef<RefTensor>)>;

/// Evaluates an op of the dialect; a kernel evaluates its body. Symbolic sizes are bound by the operands. Errors are
/// reported at the op.
mlir::FailureOr<std::vector<RefTensor>> evaluate(mlir::Operation *op, llvm::ArrayRef<RefTensor> operands,
                                                 const RefOptions &options = {});

/// Runs a function. Symbolic sizes are bound by the inputs.
mlir::FailureOr<std::vector<RefTensor>> interpret(mlir::func::FuncOp func, llvm::ArrayRef<RefTensor> inputs,
                                                  RefObserver onOp = {}, const RefOptions &options = {});
/// Runs @main.
mlir::FailureOr<std::vector<RefTensor>> interpret(mlir::ModuleOp module, llvm::ArrayRef<RefTensor> inputs,
                                                  RefObserver onOp = {}, const RefOptions &options = {});

} // namespace burin::ir
