// One fusion group to one kernel function.
#pragma once
#include "codegen/target/Target.h"
#include "ir/dialect/Burin.h"

namespace burin::codegen {

/// What the launch plan needs to know of an emitted kernel.
struct KernelInterface {
  std::string schedule;    // of the last target's code
  const char *family = ""; // that made the code of the last target
  std::vector<Dim> sizes;  // values handed in, in order
  struct Launch {
    Dim count = 1;                // of tasks; on a GPU of blocks
    Dim scratchBytes = 0;         // per worker; on a GPU of all threads
    const char *target = nullptr; // the last one of a CPU
  };
  Launch cpu, gpu;
};

/// How one target's code of a kernel for a GPU is launched, beside what all targets share.
struct GpuEntry {
  int64_t threads = 0; // per block
  size_t sizes = 0;    // how many of the first ones it takes
};

/// Emits `name` for a kernel op into `module` (llvm, scf, arith, math and vector ops). `interface` is what other
/// targets need of the same kernel, and is extended: one plan serves them all. `entry` is set for a GPU.
mlir::LogicalResult emitKernel(mlir::ModuleOp module, ir::KernelOp kernel, llvm::StringRef name, const Target &target,
                               KernelInterface &interface, GpuEntry &entry);

} // namespace burin::codegen
