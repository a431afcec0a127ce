// The compiler: takes a graph, returns an artifact.
#pragma once
#include "codegen/target/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Pipelines.h"
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace burin::codegen {

struct KernelCost;

struct CompileOptions {
  /// Names of targets in any order: the runtime picks the best one that the processor supports.
  std::vector<std::string> targets{"native"};
  passes::PipelineOptions pipeline;
  /// Called on the pass manager before it runs, for printing, timing and other instrumentation.
  std::function<void(mlir::PassManager &)> instrument;
  /// Called on the module of all kernels before it is lowered to LLVM.
  std::function<void(mlir::ModuleOp)> instrumentCode;
  /// Called for each kernel of a CPU target, with its symbol, family, ops and location, and what its compilation took.
  std::function<void(const std::string &kernel, const KernelCost &)> reportCost;
  /// Makes the image of a GPU target from its optimised LLVM IR, instead of PTX; the second argument names the kernels.
  /// An emulator may emit code for the host and name its target; the blocks become tasks.
  struct GpuImage {
    std::string target;
    std::vector<char> bytes;
    std::vector<uint64_t> entries;
  };
  std::function<GpuImage(llvm::Module &, llvm::ArrayRef<std::string>)> emulate;
};

/// Compiles a module with one func.func @main, whose arguments and results are named by {burin.name = "x"}, to the
/// bytes of an artifact. Consumes the module: afterwards it contains kernels. Errors go to the diagnostic handler of
/// the context.
mlir::FailureOr<std::vector<std::byte>> compile(mlir::ModuleOp module, const CompileOptions &options);

/// The stage after which `emitText` prints. Schedule prints the family of each kernel and its split into tasks.
enum class EmitStage { Graph, Optimized, Kernels, Schedule, Loops, LLVM, Assembly };
/// Prints the module after a stage, for the first target.
mlir::FailureOr<std::string> emitText(mlir::ModuleOp module, const CompileOptions &options, EmitStage stage);

} // namespace burin::codegen
