#include "codegen/object/ObjectCode.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace burin::codegen {

LogicalResult lowerToLLVMDialect(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.enableVerifier(false);
  passes.addPass(createCSEPass());
  // bf16 conversions become integer arithmetic: not all targets have instructions, and kernels cannot call a library.
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  passes.addPass(arith::createArithExpandOpsPass(expand));
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

} // namespace burin::codegen
