// Kernel families: which emitter makes the code of a kernel, by what its body holds.
#pragma once
#include "passes/analysis/IterationSpace.h"

namespace burin::passes {

enum class DeviceKind { Cpu, Gpu };

/// A kernel's body as families are asked about it: not about the target, since all targets of a plan have the same
/// tasks.
class KernelBody {
public:
  explicit KernelBody(mlir::Block &block) : block(block) {}

  mlir::Block &block;
  /// The iteration space that the ops share, or nullptr if they share none. Computed when first asked for.
  const IterationSpace *space() const;
  /// What the op of a sequential kernel is: the one that makes the first result.
  mlir::Operation *root() const;
  /// The first op of a kind, or null.
  template <class Op> Op first() const {
    auto ops = block.getOps<Op>();
    return ops.empty() ? Op() : *ops.begin();
  }

private:
  mutable std::optional<std::optional<IterationSpace>> inferred;
};

enum class Family {
#define KERNEL_FAMILY(id, name, device, accepts, emit) id,
#include "passes/kernels/KernelFamilies.def"
};

struct KernelFamily {
  Family id;
  const char *name;
  bool onCpu, onGpu;
  bool (*accepts)(const KernelBody &);
};

llvm::ArrayRef<KernelFamily> kernelFamilies();
/// The first family of the device that accepts the body; nullptr if none does.
const KernelFamily *familyOf(const KernelBody &, DeviceKind);
/// Whether a kernel can have this body: a family accepts it. Fusion makes no other kernels, createVerifyKernelsPass
/// checks them, and code generation relies on it. Families of GPUs take what those of CPUs take.
bool isKernelBody(mlir::Block &body);

/// The op that the window family makes its tiles of, or null: a depthwise convolution or max_pool with channels last
/// and known sizes of rows.
mlir::Operation *tiledWindowIn(mlir::Block &body);
/// Taps of all windows of a tile that may be written out.
inline constexpr int64_t kMostUnrolledTaps = 400;

} // namespace burin::passes
