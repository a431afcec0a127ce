// Kernel families: selects the emitter of a kernel by its body.
#pragma once
#include "passes/analysis/IterationSpace.h"

namespace burin::passes {

/// Hopper: a GPU of compute capability 9.0, which runs the families of all GPUs, too.
enum class DeviceKind { Cpu, Gpu, Hopper };
struct KernelDevice {
  DeviceKind kind;
  bool roundsF32 = false; // f32 products may be less exact than f32, for tensor cores
};

/// The body of a kernel, as families see it. They do not see the target, since all CPU targets of a plan have the same
/// tasks.
class KernelBody {
public:
  explicit KernelBody(mlir::Block &block) : block(block) {}
  /// `classes`: of the function that the block will be in; by default those of the function that it is in.
  KernelBody(mlir::Block &block, const SizeClasses &classes) : block(block), classes(&classes) {}

  mlir::Block &block;
  /// The iteration space that all ops share; nullptr if there is none. Computed on first use.
  const IterationSpace *space() const;
  /// The op that computes the first result: the only op of a sequential kernel.
  mlir::Operation *root() const;
  /// The first op of a type, or null.
  template <class Op> Op first() const {
    auto ops = block.getOps<Op>();
    return ops.empty() ? Op() : *ops.begin();
  }

private:
  const SizeClasses *classes = nullptr;
  mutable std::optional<std::optional<IterationSpace>> inferred;
};

enum class Family {
#define KERNEL_FAMILY(id, name, device, accepts, emit) id,
#include "passes/kernels/families/KernelFamilies.def"
};

struct KernelFamily {
  Family id;
  const char *name;
  bool onCpu, onGpu, onHopper;
  bool roundsF32; // only for devices that do
  bool (*accepts)(const KernelBody &);
};

llvm::ArrayRef<KernelFamily> kernelFamilies();
/// The first family of the device that accepts the body; nullptr if none does.
const KernelFamily *familyOf(const KernelBody &, KernelDevice);
/// Whether some family accepts the body. Fusion makes no other kernels, createVerifyKernelsPass checks that, and code
/// generation relies on it. GPU families accept every body that CPU families accept.
bool isKernelBody(const KernelBody &);
inline bool isKernelBody(mlir::Block &body) { return isKernelBody(KernelBody(body)); }

/// The op that the window family tiles, or null: a depthwise convolution or max_pool, channels-last, with static row
/// sizes.
mlir::Operation *tiledWindowIn(mlir::Block &body);
/// Most unrolled taps of all windows of a tile.
inline constexpr int64_t kMostUnrolledTaps = 400;

} // namespace burin::passes
