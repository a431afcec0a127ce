#include "codegen/kernels/EmitKernel.h"
#include "codegen/emit/PointEmitter.h"
#include "codegen/gpu/GpuKernels.h"
#include "passes/analysis/ValueChecks.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

namespace {

bool isSequential(Block &body) {
  return llvm::any_of(body, [](Operation &op) { return passes::isSequential(&op); });
}

FailureOr<passes::IterationSpace> spaceOf(KernelOp kernel) {
  auto space = passes::inferIterationSpace(kernel.getBody().front());
  if (!space)
    return kernel.emitError("the ops of this kernel do not share an iteration space");
  return *space;
}

FailureOr<LaunchShape> emitCpuKernel(ElementEmitter &e, KernelOp kernel, ArrayRef<Value> results) {
  Block &body = kernel.getBody().front();
  if (isSequential(body))
    return emitSequentialKernel(e, body, results);
  if (auto terms = body.getOps<Bf16TermsOp>(); !terms.empty())
    return emitBf16Terms(e, *terms.begin(), results[0]);
  auto space = spaceOf(kernel);
  if (failed(space))
    return failure();
  if (!body.getOps<ContractOp>().empty())
    return emitContractionKernel(e, body, *space, results);
  if (!body.getOps<ScaledDotProductAttentionOp>().empty())
    return emitAttentionKernel(e, body, *space, results);
  if (auto window = emitWindowKernel(e, body, *space, results))
    return *window;
  if (auto pool = emitPlanePoolKernel(e, body, *space, results))
    return *pool;
  if (auto mean = emitPlaneMeanKernel(e, body, *space, results))
    return *mean;
  if (auto transpose = emitTransposeKernel(e, body, results[0]))
    return *transpose;
  if (auto turning = emitTurningKernel(e, body, *space, results))
    return *turning;
  return emitRowwiseKernel(e, body, *space, results);
}

/// Nothing where a task is for one thread.
std::optional<GpuLaunch> emitGpuSequential(ElementEmitter &e, Block &body, Value result) {
  Operation *root = passes::skipReshapes(body.getTerminator()->getOperand(0)).getDefiningOp();
  if (auto sort = dyn_cast<ArgsortOp>(root))
    return emitGpuSort(e, sort, result);
  if (auto scatter = dyn_cast<ScatterOp>(root))
    return emitGpuScatter(e, scatter, result);
  return emitGpuRunning(e, root, result);
}

FailureOr<GpuLaunch> emitGpuKernel(ElementEmitter &e, KernelOp kernel, ArrayRef<Value> results) {
  Block &body = kernel.getBody().front();
  auto eachTaskInAThread = [&] {
    auto launch = emitCpuKernel(e, kernel, results);
    return failed(launch) ? FailureOr<GpuLaunch>() : taskPerThread(*launch);
  };
  if (isSequential(body)) {
    auto launch = emitGpuSequential(e, body, results[0]);
    return launch ? FailureOr<GpuLaunch>(*launch) : eachTaskInAThread();
  }
  auto space = spaceOf(kernel);
  if (failed(space))
    return failure();
  if (!body.getOps<ScaledDotProductAttentionOp>().empty()) {
    auto attention = emitGpuAttention(e, body, *space, results);
    return attention ? FailureOr<GpuLaunch>(*attention) : eachTaskInAThread();
  }
  if (!body.getOps<ContractOp>().empty())
    return emitGpuContraction(e, body, *space, results);
  bool reduces = llvm::any_of(body, [](Operation &op) { return !passes::reducedAxes(&op).empty(); });
  return reduces ? emitGpuRows(e, body, *space, results) : emitGpuMap(e, body, *space, results);
}

} // namespace

LogicalResult emitKernel(ModuleOp module, KernelOp kernel, llvm::StringRef name, const Target &target,
                         KernelInterface &interface, GpuEntry &entry) {
  Block &body = kernel.getBody().front();
  int64_t inputs = body.getNumArguments(), outputs = body.getTerminator()->getNumOperands();
  SmallVector<bool> shared(inputs + outputs, false);
  if (auto inPlace = kernel.getInPlace())
    for (auto [result, input] : llvm::enumerate(*inPlace))
      if (input >= 0)
        shared[input] = shared[inputs + result] = true;
  KernelBuilder k(module, kernel.getLoc(), name, target, shared, interface.sizes);
  k.checks = passes::checksOf(kernel);
  ElementEmitter e(k);
  for (BlockArgument argument : body.getArguments())
    e.bindMemory(argument, {k.operandPointer(argument.getArgNumber()), dtypeOf(argument), shapeOf(argument)});
  SmallVector<Value> results;
  for (int64_t i = 0; i < outputs; ++i)
    results.push_back(k.operandPointer(inputs + i));

  if (target.isGpu()) {
    auto grid = emitGpuKernel(e, kernel, results);
    if (failed(grid))
      return failure();
    k.finishGpu(*grid);
    interface.sizes = k.sizes;
    interface.gpu = {grid->blocks, grid->scratchOfThread * grid->blocks * Dim(grid->threads)};
    entry = {grid->threads, k.sizes.size()};
    return success();
  }
  auto launch = emitCpuKernel(e, kernel, results);
  if (failed(launch))
    return failure();
  k.finish();
  interface.sizes = k.sizes;
  interface.cpu = {launch->tasks, max(interface.cpu.scratchBytes, launch->scratchBytes)};
  return success();
}

} // namespace burin::codegen
