// The launch plan of a module of kernels: where every value lives and in which order the kernels run.
#pragma once
#include "codegen/KernelSet.h"
#include "runtime/Artifact.h"
#include <vector>

namespace burin::codegen {

struct Plan {
  rt::Artifact artifact; // everything but code
  std::vector<std::byte> weights;
};

/// Plans `function`, whose body holds constants, views and kernels; these have been emitted.
mlir::FailureOr<Plan> buildPlan(mlir::func::FuncOp function, const KernelSet &kernels);

} // namespace burin::codegen
