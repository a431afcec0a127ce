#include "codegen/dispatch/EmitKernel.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/contraction/LibraryProduct.h"
#include "codegen/kernels/contraction/ContractionSchedule.h"
#include "passes/analysis/ValueChecks.h"
#include "passes/kernels/families/KernelFamily.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

namespace {

/// The emitter of a family; exactly one of the two is set.
struct Emitter {
  LaunchShape (*cpu)(const KernelEmission &) = nullptr;
  GpuLaunch (*gpu)(const KernelEmission &) = nullptr;

  constexpr Emitter(LaunchShape (*emit)(const KernelEmission &)) : cpu(emit) {}
  constexpr Emitter(GpuLaunch (*emit)(const KernelEmission &)) : gpu(emit) {}
};

// In the order of passes::Family.
constexpr Emitter emitters[] = {
#define KERNEL_FAMILY(id, name, device, accepts, emit) Emitter(emit),
#include "passes/kernels/families/KernelFamilies.def"
};

passes::KernelDevice deviceOf(const Target &target) {
  using passes::DeviceKind;
  if (!target.isGpu())
    return {DeviceKind::Cpu};
  return {target.warpgroups ? DeviceKind::Hopper : DeviceKind::Gpu, target.f32Products != F32Products::Exact};
}

std::vector<rt::TensorMap> mapsOf(const KernelBuilder &k) {
  std::vector<rt::TensorMap> maps;
  auto launchSize = [&](const Dim &size) { return launchSizeOf(k, size); };
  for (const TensorMap &map : k.tensorMaps) {
    rt::TensorMap &made = maps.emplace_back();
    made.operand = uint32_t(map.operand), made.line = uint32_t(map.line);
    llvm::transform(map.sizes, std::back_inserter(made.sizes), launchSize);
    llvm::transform(map.strides, std::back_inserter(made.strides), launchSize);
    made.box.assign(map.box.begin(), map.box.end());
  }
  return maps;
}

} // namespace

LogicalResult emitKernel(ModuleOp module, KernelOp kernel, llvm::StringRef name, const Target &target,
                         KernelInterface &interface, GpuEntry &entry, bool forLibraries) {
  Block &body = kernel.getBody().front();
  int64_t inputs = body.getNumArguments(), outputs = body.getTerminator()->getNumOperands();
  SmallVector<bool> shared(inputs + outputs, false);
  if (auto inPlace = kernel.getInPlace())
    for (auto [result, input] : llvm::enumerate(*inPlace))
      if (input >= 0)
        shared[input] = shared[inputs + result] = true;
  auto contractions = body.getOps<ContractOp>();
  const Target used = contractions.empty() ? target : targetOfColumns(*contractions.begin(), target);
  KernelBuilder k(module, kernel.getLoc(), name, used, shared, interface.sizes);
  k.checks = passes::checksOf(kernel);
  ElementEmitter e(k);
  for (BlockArgument argument : body.getArguments())
    e.bindMemory(argument, {k.operandPointer(argument.getArgNumber()), dtypeOf(argument), shapeOf(argument)});
  SmallVector<Value> results;
  for (int64_t i = 0; i < outputs; ++i)
    results.push_back(k.operandPointer(inputs + i));

  passes::KernelBody forms(body);
  const passes::KernelFamily *family = familyOf(forms, deviceOf(target));
  if (!family)
    return kernel.emitOpError("has ops that do not share an iteration space");
  interface.family = family->name;
  const Emitter &emitter = emitters[size_t(family->id)];
  KernelEmission emission{e, body, forms.space(), results};
  if (target.isGpu()) {
    GpuLaunch grid = emitter.gpu ? emitter.gpu(emission) : taskPerThread(emitter.cpu(emission));
    if (forLibraries)
      interface.product = libraryProductOf(kernel, k);
    k.finishGpu(grid);
    interface.sizes = k.sizes;
    interface.gpu.counts.push_back(grid.blocks);
    interface.gpu.inGroups = grid.group.has_value();
    interface.gpu.scratchBytes =
        max(interface.gpu.scratchBytes, grid.scratchOfThread * grid.blocks * Dim(grid.threads));
    entry = {grid.threads, k.sizes.size(), grid.sharedBytes, grid.blocksPerMultiprocessor, mapsOf(k)};
    if (grid.group)
      entry.group = launchSizeOf(k, *grid.group);
    return success();
  }
  LaunchShape launch = emitter.cpu(emission);
  if (interface.cpu.target && interface.cpu.count != launch.tasks)
    return kernel.emitError() << "one plan cannot serve all targets: the code for " << target.name << " has "
                              << launch.tasks.str() << " tasks, that for " << interface.cpu.target << " "
                              << interface.cpu.count.str();
  interface.schedule = launch.schedule;
  k.finish();
  interface.sizes = k.sizes;
  interface.cpu = {launch.tasks, max(interface.cpu.scratchBytes, launch.scratchBytes), target.name};
  return success();
}

} // namespace burin::codegen
