// The launch plans of a module of kernels: where every value lives and in which order the kernels of a function run.
#pragma once
#include "codegen/kernels/UniqueKernels.h"
#include "runtime/format/Artifact.h"
#include <vector>

namespace burin::codegen {

struct PlannedArtifact {
  rt::Artifact artifact;                   // everything but code
  std::vector<mlir::ElementsAttr> weights; // of the artifact's constants, in their order
  uint64_t weightBytes = 0;

  /// Puts the weights in their places; the bytes in between are zero already.
  void writeWeights(std::span<std::byte> to) const;
};

/// Plans the public functions of `module`, and those that their steps run. Their bodies hold constants, views, kernels,
/// and loops and branches over functions of this kind; all kernels have been emitted.
mlir::FailureOr<PlannedArtifact> planArtifact(mlir::ModuleOp module, const UniqueKernels &kernels);

} // namespace burin::codegen
