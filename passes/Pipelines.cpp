#include "passes/Pipelines.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include <cstdlib>

using namespace mlir;

namespace burin::passes {

const std::vector<std::string> &passesDisabledByEnvironment() {
  static const std::vector<std::string> names = [] {
    const char *text = std::getenv("BURIN_DISABLE_PASSES");
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(text ? text : "").split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    return std::vector<std::string>(parts.begin(), parts.end());
  }();
  return names;
}

namespace {

class Pipeline {
public:
  Pipeline(OpPassManager &manager, const PipelineOptions &options) : manager(manager), options(options) {}

  void addGraphPasses() {
    // Canonicalization and CSE first: all later passes see a smaller graph.
    add(createCanonicalizerPass());
    add(createCSEPass());
    // Folds constant expressions, so that the passes below find weights as constants.
    add(createConstantFoldPass());
    // Idiom recognition needs the formulas as written, with their numbers folded to constants.
    add(createSimplifyPass());
    // Gradients of attention, while the softmax of their weights is one op.
    add(createAttentionGradientsPass({.onGpus = options.onGpus, .roundsF32 = options.roundsF32}));
    // Batch norm is folded into the weights before it while convolutions are still whole.
    add(createFoldNormalizationPass());
    // Composites that no kernel computes become simpler ops; softmax and norms stay whole for fusion.
    add(createDecomposePass());
    // Gradient loops, while matmuls are still whole: products of the forward loop are reused, and gradients of weights
    // that all iterations share become one product each.
    add(createShareLoopProductsPass());
    add(createHoistLoopSumsPass());
    verify(createVerifyGraphPass());
    // Convolutions and the ops between them become channels-last, before contractions, which have no other layout.
    add(createLayoutAssignmentPass());
    // Small products of one value become one, whose results are sliced.
    add(options.gpusAlone ? createMergeProductsPass() : nullptr);
    // Lowers products to pack + contract before fusion, which groups ops around contractions.
    add(createLowerContractionsPass({.onGpus = options.gpusAlone,
                                     .onCpus = !options.onGpus,
                                     .forLibraries = options.gpusAlone && options.provider != Provider::None,
                                     .shortTiles = options.shortTiles}));
    // Integer products as products of bytes, right sides of bf16 products as pairs, before constants are folded.
    add(options.gpusAlone ? createNarrowIntegerProductsPass() : nullptr);
    add(options.bf16Pairs ? createPairBf16ProductsPass() : nullptr);
    // Bias and activation of a batch of sequences work on the rows of the product, so that they share its space.
    add(createSinkReshapesPass());
    // Decomposition and lowering leave transposes and reshapes that cancel …
    add(createCanonicalizerPass());
    add(createCSEPass());
    // … and constants to transform: in particular, weights are packed here.
    add(createConstantFoldPass());
    add(createCSEPass());
    // Embeddings that are tied to packed weights read the panels. For bf16 tiles panels have another format.
    if (!options.bf16Tiles)
      add(createShareTiedWeightsPass());
    // Work on weights that are not constant, such as packing, moves out of loops.
    add(createLoopInvariantCodeMotionPass());
    // Rows and columns of convolutions that no window reads are not computed.
    add(createShrinkToDemandPass());
    // Weights have their final form and size, which decides against the size of activations where CPUs tile the batch.
    add(options.gpusAlone ? nullptr : createBatchTilingPass());
    // Contractions with large finite weights may skip the rows of the weights that meet a zero.
    add(createMarkZeroSkippablePass());
    // Sorts of which only the first elements are read.
    add(createMarkPartialSortsPass());
    // Scatters with checked indices cannot fail, so states may be updated before them.
    add(createMarkCheckedIndicesPass());
    add(createCheckIndicesEarlyPass());
    add(options.bf16Tiles ? createEmulateF32GemmPass() : nullptr);
    verify(createVerifyLoweredPass());
  }

  void addKernelPasses() {
    // Loops have their final states. Fusion: from here on the graph is a list of kernels.
    add(createCarryStatesPass());
    add(createMarkReorderedSumsPass());
    add(createFusePass({.onGpus = options.onGpus, .gpusAlone = options.gpusAlone}));
    // Attention of decoding starts as soon as its product has ended.
    add(options.gpusAlone ? createReadSlicesPass() : nullptr);
    // Softmax, norms and means become the reductions that emitters know; fusion has used them as wholes.
    add(createDecomposeInKernelsPass());
    verify(createVerifyKernelsPass());
    // Kernels are final, so the last use of each value is known.
    add(createInPlaceResultsPass());
    // Needs the in-place updates of states, which order kernels; the rest is ordered by memory. Values die elsewhere
    // then, so in-place results are computed again.
    add(createOrderKernelsPass());
    add(createInPlaceResultsPass());
    if (options.memory.bytes) { // long-lived values are recomputed
      add(createLimitMemoryPass(options.memory));
      add(createInPlaceResultsPass());
    }
    // Loops with as few dimensions as possible, once it is known which kernels overwrite an operand element by element.
    add(createMergeDimensionsPass());
  }

private:
  void add(std::unique_ptr<Pass> pass) {
    const std::string name = pass ? pass->getArgument().str() : ""; // null: not for these targets
    if (pass && !llvm::is_contained(options.disabled, name) && !llvm::is_contained(passesDisabledByEnvironment(), name))
      manager.addPass(std::move(pass));
  }
  /// The stage verifiers expect every pass to have run.
  void verify(std::unique_ptr<Pass> pass) {
    if (options.verify && options.disabled.empty() && passesDisabledByEnvironment().empty())
      manager.addPass(std::move(pass));
  }

  OpPassManager &manager;
  const PipelineOptions &options;
};

} // namespace

void buildPipeline(OpPassManager &manager, Stage from, Stage to, const PipelineOptions &options) {
  Pipeline pipeline(manager, options);
  if (from < Stage::Optimized && to >= Stage::Optimized)
    pipeline.addGraphPasses();
  if (from < Stage::Kernels && to >= Stage::Kernels)
    pipeline.addKernelPasses();
}

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

void registerPasses() { registerBurinPasses(); }

} // namespace burin::passes
