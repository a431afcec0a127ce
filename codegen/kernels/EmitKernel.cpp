#include "codegen/kernels/EmitKernel.h"
#include "codegen/emit/PointEmitter.h"
#include "codegen/gpu/GpuKernels.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

LogicalResult emitKernel(ModuleOp module, KernelOp kernel, llvm::StringRef name, const Target &target,
                         KernelInterface &interface) {
  Block &body = kernel.getBody().front();
  int64_t inputs = body.getNumArguments(), outputs = body.getTerminator()->getNumOperands();
  SmallVector<bool> shared(inputs + outputs, false);
  if (auto inPlace = kernel.getInPlace())
    for (auto [result, input] : llvm::enumerate(*inPlace))
      if (input >= 0)
        shared[input] = shared[inputs + result] = true;
  KernelBuilder k(module, kernel.getLoc(), name, target, shared, interface.sizes);
  ElementEmitter e(k);
  for (BlockArgument argument : body.getArguments())
    e.bindMemory(argument, {k.operandPointer(argument.getArgNumber()), dtypeOf(argument), shapeOf(argument)});
  SmallVector<Value> results;
  for (int64_t i = 0; i < outputs; ++i)
    results.push_back(k.operandPointer(inputs + i));

  for (ContractOp contract : body.getOps<ContractOp>())
    if (target.isGpu() && contract.getTail())
      return kernel.emitError("a product with columns that are no whole panel has no kernel for ")
             << target.name << " yet";
  LaunchShape launch;
  bool sequential = llvm::any_of(body, [](Operation &op) { return passes::isSequential(&op); });
  if (sequential) {
    launch = emitSequentialKernel(e, body, results);
  } else if (auto terms = body.getOps<Bf16TermsOp>(); !terms.empty()) {
    launch = emitBf16Terms(e, *terms.begin(), results[0]);
  } else {
    auto alignment = passes::inferIterationSpace(body);
    if (!alignment)
      return kernel.emitError("the ops of this kernel do not share an iteration space");
    if (!body.getOps<ContractOp>().empty())
      launch = emitContractionKernel(e, body, *alignment, results);
    else if (!body.getOps<ScaledDotProductAttentionOp>().empty())
      launch = emitAttentionKernel(e, body, *alignment, results);
    else if (auto window = emitWindowKernel(e, body, *alignment, results))
      launch = *window;
    else if (auto transpose = emitTransposeKernel(e, body, results[0]))
      launch = *transpose;
    else if (auto turning = emitTurningKernel(e, body, *alignment, results))
      launch = *turning;
    else
      launch = emitRowwiseKernel(e, body, *alignment, results);
  }
  if (target.isGpu()) {
    GpuLaunch grid = taskPerThread(launch);
    k.finishGpu(grid);
    interface = {k.sizes, grid.blocks, grid.scratchOfThread * grid.blocks * Dim(grid.threads)};
    return success();
  }
  k.finish();
  interface = {k.sizes, launch.tasks, max(interface.scratchBytes, launch.scratchBytes)};
  return success();
}

} // namespace burin::codegen
