// All graph passes. Their order and its reasons are in Pipelines.cpp.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace burin::passes {

/// Packed panels are this wide on every target, so that one copy of the weights serves all targets in an artifact.
inline constexpr int64_t kPanelBytes = 128;

std::unique_ptr<mlir::Pass> createSimplifyPass();
std::unique_ptr<mlir::Pass> createFoldNormalizationPass();
std::unique_ptr<mlir::Pass> createDecomposePass();

struct ConstantFoldOptions {
  /// A folded value may have this many bytes, or as many as the constants it is computed from.
  uint64_t maxBytes = uint64_t(64) << 20;
  /// What costs next to nothing to compute where it is used (copies of elements, comparisons, sums, …) becomes a
  /// constant only up to this many bytes.
  uint64_t maxCheapBytes = uint64_t(16) << 10;
};
std::unique_ptr<mlir::Pass> createConstantFoldPass(const ConstantFoldOptions & = {});

std::unique_ptr<mlir::Pass> createLayoutAssignmentPass();
std::unique_ptr<mlir::Pass> createLowerContractionsPass();
std::unique_ptr<mlir::Pass> createSinkReshapesPass();
std::unique_ptr<mlir::Pass> createLoopInvariantCodeMotionPass();
std::unique_ptr<mlir::Pass> createShrinkToDemandPass();
/// Bytes of memory traffic that a part must save to be worth a turn of the loop, about a microsecond.
inline constexpr int64_t kLeastGainOfSplit = 32 << 10;
std::unique_ptr<mlir::Pass> createBatchTilingPass(int64_t leastGain = kLeastGainOfSplit);
std::unique_ptr<mlir::Pass> createMarkZeroSkippablePass();
/// Of an argsort: how many of its results, from the first on, are read. The others may be anything.
inline constexpr llvm::StringLiteral kFirstOfSorted = "burin.first";
std::unique_ptr<mlir::Pass> createMarkPartialSortsPass();
std::unique_ptr<mlir::Pass> createShareTiedWeightsPass();
/// For targets that multiply tiles of bf16.
std::unique_ptr<mlir::Pass> createEmulateF32GemmPass();
std::unique_ptr<mlir::Pass> createFusePass();
std::unique_ptr<mlir::Pass> createDecomposeInKernelsPass();
std::unique_ptr<mlir::Pass> createInPlaceResultsPass();
/// Fails if there is a kernel that no code can be generated for, see isKernelBody().
std::unique_ptr<mlir::Pass> createVerifyKernelsPass();

} // namespace burin::passes
