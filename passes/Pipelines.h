// The pass pipeline and its stages.
#pragma once
#include "mlir/Pass/PassManager.h"
#include "passes/MemoryLimit.h"

namespace burin::passes {

/// States of the graph; each is the state after a stage of the pipeline. `--emit` stops after one.
enum class Stage { Graph, Optimized, Kernels };

/// Libraries that may compute products in place of kernels.
enum class Provider { None, CublasLt };

struct PipelineOptions {
  /// Arguments of passes to leave out ("burin-fuse"), to find the pass that breaks a graph.
  std::vector<std::string> disabled;
  /// Whether verifiers run after each stage.
#ifdef NDEBUG
  bool verify = false;
#else
  bool verify = true;
#endif
  /// Whether all targets have bf16 tiles (AMX).
  bool bf16Tiles = false;
  /// Whether no target is a GPU: right sides of bf16 products are packed as pairs.
  bool bf16Pairs = false;
  /// Whether a target is a CPU without AVX-512, whose tiles of sums have few rows: transposed left sides of products
  /// may be packed.
  bool shortTiles = false;
  /// Whether all targets are GPUs: long products with few results are split, so that there are enough tiles, and
  /// batches stay whole.
  bool gpusAlone = false;
  /// Whether a target is a GPU: operands of products and attention keep their last dimension.
  bool onGpus = false;
  /// Whether a GPU may multiply f32 on tensor cores, less exactly than in f32.
  bool roundsF32 = false;
  /// For GPUs alone: constant right sides of products, too, lie in memory as libraries read them.
  Provider provider = Provider::None;
  MemoryLimit memory;
};

/// Passes that the environment variable BURIN_DISABLE_PASSES leaves out of every pipeline, by argument.
const std::vector<std::string> &passesDisabledByEnvironment();

/// Appends the passes from stage `from` (exclusive) to stage `to` (inclusive).
void buildPipeline(mlir::OpPassManager &, Stage from, Stage to, const PipelineOptions & = {});

/// Registers all passes for burin-opt.
void registerPasses();

} // namespace burin::passes
