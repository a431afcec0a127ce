// All graph passes. Their order and its reasons are in Pipelines.cpp.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace burin::passes {

/// Packed panels are this wide on every target, so that one copy of the weights serves all targets in an artifact.
inline constexpr int64_t kPanelBytes = 128;

std::unique_ptr<mlir::Pass> createLowerContractionsPass();
std::unique_ptr<mlir::Pass> createFusePass();
std::unique_ptr<mlir::Pass> createReuseMemoryPass();

} // namespace burin::passes
