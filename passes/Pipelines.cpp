#include "passes/Pipelines.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace burin::passes {

void buildPipeline(OpPassManager &manager, Stage from, Stage to, const PipelineOptions &options) {
  auto add = [&](std::unique_ptr<Pass> pass) {
    if (!llvm::is_contained(options.disabled, pass->getArgument().str()))
      manager.addPass(std::move(pass));
  };
  // Without a pass that is left out, a stage may not keep its promise.
  auto verify = [&](std::unique_ptr<Pass> pass) {
    if (options.verify && options.disabled.empty())
      manager.addPass(std::move(pass));
  };
  if (from < Stage::Optimized && to >= Stage::Optimized) {
    // Identities and repeated work go first: everything after sees a smaller graph.
    add(createCanonicalizerPass());
    add(createCSEPass());
    // What depends on constants alone is computed now: weights arrive as the passes below expect them.
    add(createConstantFoldPass());
    // Formulas become the ops they spell while they are still as written; their numbers are constants by now.
    add(createSimplifyPass());
    // Batch norm disappears into the weights before it, while convolutions are still whole.
    add(createFoldNormalizationPass());
    // Composites that are not one kernel's business become simpler ops; row composites stay whole for fusion.
    add(createDecomposePass());
    // Loops of gradients, while products are still whole: those of the loop before are taken from it, and the gradients
    // of weights that all iterations use become one product each.
    add(createShareLoopProductsPass());
    add(createHoistLoopSumsPass());
    verify(createVerifyGraphPass());
    // Convolutions and what lies between them work channels-last; before they become contractions, which only know
    // that.
    add(createLayoutAssignmentPass());
    // Products to pack + contract, before fusion, which groups around them.
    add(createLowerContractionsPass());
    // The bias and activation of a batch of sequences work on the rows of the product, not on the batch.
    add(createSinkReshapesPass());
    // Decomposition and lowering leave transposes and reshapes that cancel …
    add(createCanonicalizerPass());
    add(createCSEPass());
    // … and constants to transform: above all, the weights are packed here.
    add(createConstantFoldPass());
    add(createCSEPass());
    // Packed weights also serve the embeddings that are tied to them. Tiles of bf16 have a copy of their own.
    if (!options.bf16Tiles)
      add(createShareTiedWeightsPass());
    // What is left to do for weights that are no constants is done once, not in every turn of a loop.
    add(createLoopInvariantCodeMotionPass());
    // What a convolution makes and no window reads is left out.
    add(createShrinkToDemandPass());
    // Weights have their final form and size: compared with the activations, they say where the batch is split.
    add(createBatchTilingPass());
    // … and where zeros among the activations spare kernels parts of them.
    add(createMarkZeroSkippablePass());
    // Of what is sorted, often the first elements alone are read.
    add(createMarkPartialSortsPass());
    // What cannot fail leaves states free to be updated early.
    add(createMarkCheckedIndicesPass());
    // Products of many rows on processors that multiply tiles of bf16.
    if (options.bf16Tiles)
      add(createEmulateF32GemmPass());
    verify(createVerifyLoweredPass());
  }
  if (from < Stage::Kernels && to >= Stage::Kernels) {
    // From here on the graph is a list of kernels.
    add(createFusePass());
    // Kernels are placed; softmax, norms and means inside them become the reductions that code is made from.
    add(createDecomposeInKernelsPass());
    verify(createVerifyKernelsPass());
    // Kernels are final, so it is known which values die where.
    add(createInPlaceResultsPass());
    // States that are updated in place say what must run before; what remains free is ordered by memory. Then other
    // values die than before.
    add(createOrderKernelsPass());
    add(createInPlaceResultsPass());
    // What is kept for too long is computed again.
    if (options.memory.bytes) {
      add(createLimitMemoryPass(options.memory));
      add(createInPlaceResultsPass());
    }
  }
}

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

void registerPasses() { registerBurinPasses(); }

} // namespace burin::passes
