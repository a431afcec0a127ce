// The launch plan of a module of kernels: where every value lives and in which order the kernels run.
#pragma once
#include "codegen/UniqueKernels.h"
#include "runtime/format/Artifact.h"
#include <vector>

namespace burin::codegen {

struct Plan {
  rt::Artifact artifact;                   // everything but code
  std::vector<mlir::ElementsAttr> weights; // of the artifact's constants, in their order
  uint64_t weightBytes = 0;

  /// Puts the weights in their places; the bytes in between are zero already.
  void writeWeights(std::span<std::byte> to) const;
};

/// Plans `function`, whose body holds constants, views and kernels; these have been emitted.
mlir::FailureOr<Plan> buildPlan(mlir::func::FuncOp function, const UniqueKernels &kernels);

} // namespace burin::codegen
