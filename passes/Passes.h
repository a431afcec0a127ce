// All graph passes, generated from Passes.td. Their order and its reasons are in Pipelines.cpp.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/MemoryLimit.h"
#include "passes/TargetIndependent.h"
#include <memory>

namespace burin::passes {

/// Attribute of an argsort: how many of its results, from the first on, are read. The others may be anything.
inline constexpr llvm::StringLiteral kFirstOfSorted = "burin.first";
/// Attribute of a module: what `burin-limit-memory` has done, as lines of text.
inline constexpr llvm::StringLiteral kMemoryReport = "burin.memory_report";

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

/// With what its options cannot say, too.
std::unique_ptr<mlir::Pass> createLimitMemoryPass(const MemoryLimit &);

} // namespace burin::passes
