#include "passes/Pipelines.h"
#include "passes/Passes.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace burin::passes {

void buildPipeline(OpPassManager &manager, Stage from, Stage to, const PipelineOptions &options) {
  auto add = [&](std::unique_ptr<Pass> pass) {
    if (!llvm::is_contained(options.disabled, pass->getArgument().str()))
      manager.addPass(std::move(pass));
  };
  if (from < Stage::Optimized && to >= Stage::Optimized) {
    // Identities and repeated work go first: everything after sees a smaller graph.
    add(createCanonicalizerPass());
    add(createCSEPass());
    // Products to pack + contract, before fusion, which groups around them.
    add(createLowerContractionsPass());
    // Lowering leaves transposes and reshapes that cancel.
    add(createCanonicalizerPass());
    add(createCSEPass());
  }
  if (from < Stage::Kernels && to >= Stage::Kernels) {
    add(createFusePass());
    // Kernels are final, so it is known which values die where.
    add(createReuseMemoryPass());
  }
}

void registerPasses() {
  registerPass([] { return createConstantFoldPass(); });
  registerPass(createFoldNormalizationPass);
  registerPass(createDecomposePass);
  registerPass(createDecomposeInKernelsPass);
  registerPass(createLowerContractionsPass);
  registerPass(createFusePass);
  registerPass(createReuseMemoryPass);
}

} // namespace burin::passes
