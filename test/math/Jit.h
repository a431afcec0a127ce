// Compiles Scalar code in this process: each function becomes a loop over arrays.
#pragma once
#include "codegen/scalar/base/Scalar.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mlir {
class ExecutionEngine;
}

namespace burin::test {

using Body = std::function<codegen::Scalar(llvm::ArrayRef<codegen::Scalar>)>;
/// `in` has one array per operand; a bool is one byte.
using Kernel = void (*)(const void *const *in, void *out, int64_t n);

class Jit {
public:
  /// `cpu` is an LLVM processor name such as "x86-64-v3"; "" is this machine.
  explicit Jit(std::string cpu = "");
  ~Jit();
  /// Adds a kernel that applies `body` to `lanes` elements at a time, and to single elements at the end.
  void add(const std::string &name, std::vector<DType> operands, int lanes, const Body &body);
  /// Compiles all added kernels.
  void compile();
  mlir::MLIRContext &getContext() { return *context; }
  Kernel operator[](const std::string &name) const;

private:
  std::string cpu;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<mlir::ExecutionEngine> engine;
};

} // namespace burin::test
