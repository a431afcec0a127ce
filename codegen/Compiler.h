// The compiler: a graph in, an artifact out.
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

struct CompileOptions {
  /// Names of targets, best first or not: the runtime takes the best it supports.
  std::vector<std::string> targets{"native"};
  passes::PipelineOptions pipeline;
  /// Called on the pass manager before it runs: printing, timing, instrumentation.
  std::function<void(mlir::PassManager &)> instrument;
  /// The same for the code of all kernels, before it is lowered to LLVM.
  std::function<void(mlir::ModuleOp)> instrumentCode;
  /// Makes the image of a GPU target from its optimised LLVM IR, instead of PTX; the second argument names the kernels.
  /// An emulator may make code for the processor that it runs on, and name that: its tasks are the blocks.
  struct GpuImage {
    std::string target;
    std::vector<char> bytes;
    std::vector<uint64_t> entries;
  };
  std::function<GpuImage(llvm::Module &, llvm::ArrayRef<std::string>)> emulate;
};

/// A module with one func.func @main, arguments and results named by {burin.name = "x"}, to the bytes of an artifact.
/// The module is consumed: it ends up as the kernels it was made of. ErrorList are reported to the context's diagnostic
/// handler.
mlir::FailureOr<std::vector<std::byte>> compile(mlir::ModuleOp module, const CompileOptions &options);

/// How far `emitText` goes. The schedule tells of each kernel its family and how threads share it.
enum class EmitStage { Graph, Optimized, Kernels, Schedule, Loops, LLVM, Assembly };
/// The module as text after a stage, for the first of the targets.
mlir::FailureOr<std::string> emitText(mlir::ModuleOp module, const CompileOptions &options, EmitStage stage);

} // namespace burin::codegen
