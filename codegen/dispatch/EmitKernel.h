// Emits one kernel (a fusion group) as one function.
#pragma once
#include "codegen/target/Target.h"
#include "ir/dialect/Burin.h"
#include "runtime/format/Artifact.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace burin::codegen {

/// Facts about an emitted kernel that the launch plan needs.
struct KernelInterface {
  std::string schedule;    // choices of the emitter for the last target
  const char *family = ""; // family that emitted the last target's code
  std::vector<Dim> sizes;  // sizes passed to the kernel, in order
  struct Tasks {
    Dim count = 1;
    Dim scratchBytes = 0;         // per worker
    const char *target = nullptr; // the last CPU target
  } cpu;
  struct Blocks {
    llvm::SmallVector<Dim> counts; // per GPU target
    Dim scratchBytes = 0;          // of all threads
    bool inGroups = false;         // whether the last target's blocks are launched in groups
  } gpu;
  std::optional<rt::Product> product; // for libraries on a GPU, if it is to be described; without the kernel's number
};

/// Launch parameters of one GPU target's code, besides those that all targets share.
struct GpuEntry {
  int64_t threads = 0;     // per block
  size_t sizes = 0;        // number of leading sizes that it takes
  int64_t sharedBytes = 0; // see GpuLaunch
  int64_t blocksPerMultiprocessor = 0;
  std::vector<rt::TensorMap> maps = {};
  rt::LaunchSize group = {};
};

/// Emits `name` for a kernel op into `module` (llvm, scf, arith, math and vector ops). `interface` carries what other
/// targets need of the same kernel and is extended, since one plan serves them all. `entry` is set for a GPU. Products
/// are described if libraries may compute them (`forLibraries`).
mlir::LogicalResult emitKernel(mlir::ModuleOp module, ir::KernelOp kernel, llvm::StringRef name, const Target &target,
                               KernelInterface &interface, GpuEntry &entry, bool forLibraries);

} // namespace burin::codegen
