// All graph passes, generated from Passes.td. Their order and its reasons are in Pipelines.cpp.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/MemoryLimit.h"
#include "passes/TargetIndependent.h"
#include <memory>

namespace burin::passes {

/// Attribute of an argsort: the number of leading results that are read; the other results may hold any value.
inline constexpr llvm::StringLiteral kFirstOfSorted = "burin.first";
/// Attribute of a module: the report of `burin-limit-memory`, lines of text.
inline constexpr llvm::StringLiteral kMemoryReport = "burin.memory_report";

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

/// Takes a MemoryLimit, which the textual options of the pass cannot express in full.
std::unique_ptr<mlir::Pass> createLimitMemoryPass(const MemoryLimit &);

} // namespace burin::passes
