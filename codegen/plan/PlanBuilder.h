// Builds the launch plans of a module of kernels: the place of every value, and the order of the steps of a function.
#pragma once
#include "codegen/dispatch/UniqueKernels.h"
#include "runtime/format/Artifact.h"
#include <vector>

namespace burin::codegen {

struct PlannedArtifact {
  rt::Artifact artifact;                   // without code
  std::vector<mlir::ElementsAttr> weights; // values of the artifact's constants, in order
  uint64_t weightBytes = 0;

  /// Copies the weights to their offsets; the padding between them must be zero already.
  void writeWeights(std::span<std::byte> to) const;
};

/// Plans the public functions of `module` and the functions that their steps run. Bodies contain constants, views,
/// kernels, and loops and branches over such functions; all kernels must have been emitted.
mlir::FailureOr<PlannedArtifact> planArtifact(mlir::ModuleOp module, const UniqueKernels &kernels);

} // namespace burin::codegen
