// The reference interpreter: what every op means, in plain loops over doubles and 64-bit integers. It shares nothing
// with code generation except the definitions it checks code generation against, and favours clarity over speed.
#pragma once
#include "ir/dialect/Burin.h"
#include "ir/reference/ReferenceTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace burin::ir {

/// Called with each evaluated op and its results, which it may replace by other values of the same types: what follows
/// is computed from those.
using RefObserver = llvm::function_ref<void(mlir::Operation *, llvm::MutableArrayRef<RefTensor>)>;

/// Evaluates one op of the dialect; a kernel evaluates its body. Symbolic sizes get their values from the operands.
/// What is wrong with the op or the operands is reported at the op.
mlir::FailureOr<std::vector<RefTensor>> evaluate(mlir::Operation *op, llvm::ArrayRef<RefTensor> operands,
                                                 const RefOptions &options = {});

/// Runs a function. Symbolic sizes get their values from the inputs.
mlir::FailureOr<std::vector<RefTensor>> interpret(mlir::func::FuncOp func, llvm::ArrayRef<RefTensor> inputs,
                                                  RefObserver onOp = {}, const RefOptions &options = {});
/// Runs @main.
mlir::FailureOr<std::vector<RefTensor>> interpret(mlir::ModuleOp module, llvm::ArrayRef<RefTensor> inputs,
                                                  RefObserver onOp = {}, const RefOptions &options = {});

} // namespace burin::ir
