// The passes, in order.
#pragma once
#include "mlir/Pass/PassManager.h"
#include "passes/MemoryLimit.h"

namespace burin::passes {

/// What the graph is once a stage is done; `--emit` stops behind one.
enum class Stage { Graph, Optimized, Kernels };

struct PipelineOptions {
  /// Passes left out, by argument name ("burin-fuse"); for finding the pass that breaks a graph.
  std::vector<std::string> disabled;
  /// Whether each stage is checked to keep what it promises the next one.
#ifdef NDEBUG
  bool verify = false;
#else
  bool verify = true;
#endif
  /// Whether all targets multiply tiles of bf16.
  bool bf16Tiles = false;
  MemoryLimit memory;
};

/// Appends the passes that lead from `from` (exclusive) to `to`.
void buildPipeline(mlir::OpPassManager &, Stage from, Stage to, const PipelineOptions & = {});

/// Makes all passes known by name, for burin-opt.
void registerPasses();

} // namespace burin::passes
