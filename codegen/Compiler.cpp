#include "codegen/Compiler.h"
#include "codegen/gpu/math/DeviceMath.h"
#include "codegen/object/GpuCode.h"
#include "codegen/object/ObjectCode.h"
#include "codegen/plan/BufferOrder.h"
#include "codegen/plan/PlanBuilder.h"
#include "codegen/scalar/math/MathParts.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "runtime/format/Archive.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

LogicalResult checkIsGraph(ModuleOp module) {
  if (!mainFunction(module))
    return module.emitError("a graph is a module with at least one public function");
  return success();
}

FailureOr<std::vector<const Target *>> findTargets(ModuleOp module, const CompileOptions &options) {
  std::vector<const Target *> targets;
  for (const std::string &name : options.targets) {
    const Target *target = findTarget(name);
    if (!target)
      return module.emitError() << targetProblem(name);
    auto isSame = [&](const Target *other) { return llvm::StringRef(other->name) == target->name; };
    if (llvm::none_of(targets, isSame)) // "native" names one of the other targets, with its tuning
      targets.push_back(target);
  }
  for (const Target *target : targets)
    if (target->amx && targets.size() > 1)
      return module.emitError() << "code for " << target->name
                                << " has weights of its own form: compile it to an artifact of its own";
  if (options.pipeline.provider != passes::Provider::None &&
      !llvm::all_of(targets, [](const Target *target) { return target->isGpu(); }))
    return module.emitError("a library computes products on GPUs only: name targets for GPUs alone");
  for (const Target *target : targets)
    if (target->f32Products != F32Products::Exact && llvm::any_of(targets, [&](const Target *other) {
          return other->isGpu() && other->f32Products != target->f32Products;
        }))
      return module.emitError() << "code for " << target->name
                                << " rounds other than that for other GPUs: name targets for GPUs of one precision";
  return targets;
}

// Collects the sizes that an op needs to be equal, or to be large enough for it.
void addChecksOf(Operation *op, Builder &b, SmallVectorImpl<Attribute> &checks) {
  auto add = [&](const Dim &left, const Dim &right) {
    if (left != right)
      checks.push_back(b.getStrArrayAttr({left.str(), right.str(), fileLine(op->getLoc())}));
  };
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    add(elements(shapeOf(reshape.getX())), elements(shapeOf(reshape.getResult())));
  auto pad = dyn_cast<PadOp>(op);
  if (!pad || pad.getMode() == "constant")
    return;
  const Shape shape =
      shapeOf(pad.getX()); // the border repeats its first and last element, or mirrors as many as it adds
  for (size_t i = 0; i < shape.size(); ++i)
    if (int64_t added = std::max(pad.getLow()[i], pad.getHigh()[i]); added > 0)
      add(shape[i], max(shape[i], pad.getMode() == "edge" ? 1 : added + 1));
}

// Collects the checks of sizes whose validity depends on the values of symbols; every run performs them, for functions
// of branches only when the branch is taken.
void addSizeChecks(func::FuncOp function, llvm::DenseSet<Operation *> &seen) {
  if (!seen.insert(function).second)
    return;
  SmallVector<Attribute> checks;
  if (auto known = function->getAttrOfType<ArrayAttr>(kChecksAttr))
    checks.append(known.begin(), known.end());
  Builder b(function.getContext());
  std::function<void(Operation *)> visit = [&](Operation *inner) {
    inner->walk([&](Operation *op) {
      addChecksOf(op, b, checks);
      if (auto scan = dyn_cast<ScanOp>(op))
        visit(scan.body());
      else
        for (Operation *applied : appliedFunctions(op))
          addSizeChecks(cast<func::FuncOp>(applied), seen);
    });
  };
  visit(function);
  if (!checks.empty())
    function->setAttr(kChecksAttr, b.getArrayAttr(checks));
}

/// Reports an exception of `step` (sizes whose arithmetic exceeds all bounds) as an error at `op`.
template <class F> auto reportAt(Operation *op, F step) -> decltype(step()) {
  try {
    return step();
  } catch (const Error &error) {
    op->emitError(error.what()) << "; the sizes are too complex to compile for all of their values: fix some of them "
                                   "(--dim NAME=SIZE), or trace with known sizes";
    return failure();
  }
}

LogicalResult runPassesOnce(ModuleOp module, const CompileOptions &options, ArrayRef<const Target *> targets,
                            passes::Stage to) {
  PassManager manager(module.getContext());
#ifdef NDEBUG
  manager.enableVerifier(false);
#endif
  passes::PipelineOptions pipeline = options.pipeline;
  pipeline.bf16Tiles = targets.front()->amx; // a target with AMX is the only one
  pipeline.gpusAlone = llvm::all_of(targets, [](const Target *target) { return target->isGpu(); });
  pipeline.onGpus = llvm::any_of(targets, [](const Target *target) { return target->isGpu(); });
  pipeline.roundsF32 =
      llvm::any_of(targets, [](const Target *target) { return target->f32Products != F32Products::Exact; });
  pipeline.bf16Pairs = !pipeline.onGpus;
  pipeline.shortTiles = !pipeline.onGpus &&
                        llvm::any_of(targets, [](const Target *target) { return !target->isGpu() && !target->avx512; });
  pipeline.memory.arenaBytes = arenaBytes;
  passes::buildPipeline(manager, passes::Stage::Graph, to, pipeline);
  if (options.instrument)
    options.instrument(manager);
  return reportAt(module, [&] { return manager.run(module); });
}

/// Runs the passes. If a limit of memory is not kept, they run once more without values that loops keep for the loops
/// of their gradients, which then compute them again.
LogicalResult runPasses(ModuleOp module, const CompileOptions &options, ArrayRef<const Target *> targets,
                        passes::Stage to) {
  const bool hasLoops = module.walk([](ScanOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (!options.pipeline.memory.bytes || to < passes::Stage::Kernels || !hasLoops)
    return runPassesOnce(module, options, targets, to);
  OwningOpRef<ModuleOp> original = module.clone();
  {
    ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &) {});
    if (succeeded(runPassesOnce(module, options, targets, to)))
      return success();
  }
  module.getBodyRegion().takeBody(original->getBodyRegion());
  CompileOptions lean = options;
  lean.pipeline.disabled.push_back("burin-share-loop-products");
  return runPassesOnce(module, lean, targets, to);
}

// Emits kernels for one target into a new module.
FailureOr<OwningOpRef<ModuleOp>> emitKernels(MutableArrayRef<UniqueKernels::Entry> kernels, mlir::Location loc,
                                             const Target &target, const CompileOptions &options,
                                             std::vector<rt::GpuKernel> &launched) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  if (target.avx512)
    declareAvx512(*module);
  if (target.isGpu())
    declareGpu(*module);
  const bool forLibraries = options.pipeline.provider != passes::Provider::None;
  for (UniqueKernels::Entry &kernel : kernels) {
    GpuEntry entry;
    auto emit = [&] {
      return emitKernel(*module, kernel.op, kernel.symbol, target, kernel.interface, entry, forLibraries);
    };
    if (failed(reportAt(kernel.op, emit)))
      return failure();
    if (target.isGpu())
      launched.push_back({kernel.symbol, uint32_t(entry.threads), uint32_t(entry.sizes), uint32_t(entry.sharedBytes),
                          uint32_t(entry.blocksPerMultiprocessor), std::move(entry.maps), entry.group});
  }
  if (target.isGpu())
    defineLibm(*module);
  declareLibm(*module);
  if (options.instrumentCode)
    options.instrumentCode(*module);
#ifndef NDEBUG
  if (failed(verify(*module)))
    return failure();
#endif
  return module;
}

void prepareContext(MLIRContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  context
      .loadDialect<LLVM::LLVMDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
}

/// The code of one target, as stored in the artifact.
struct CodeImage {
  std::string target;
  Image image;
};

std::vector<std::string> symbolsOf(const UniqueKernels &set) {
  std::vector<std::string> symbols;
  for (const UniqueKernels::Entry &kernel : set.kernels)
    symbols.push_back(kernel.symbol);
  return symbols;
}

/// PTX, whose kernels the driver finds by name, or the output of an emulator for the same code.
FailureOr<CodeImage> gpuImage(UniqueKernels &set, mlir::Location loc, const Target &target,
                              const CompileOptions &options, std::vector<rt::GpuKernel> &launched) {
  auto code = emitKernels(set.kernels, loc, target, options, launched);
  if (failed(code) || failed(lowerToLLVMDialect(**code)))
    return failure();
  llvm::LLVMContext context;
  std::string error;
  auto kernels = optimizedGpuLLVM(**code, target, context, error);
  if (!kernels)
    return emitError(loc, error);
  if (options.emulate) {
    auto [name, bytes, entries] = options.emulate(*kernels, symbolsOf(set));
    return CodeImage{name, {std::move(bytes), std::move(entries)}};
  }
  std::string ptx = assembly(*kernels, target);
  return CodeImage{target.name, {{ptx.begin(), ptx.end()}, {}}};
}

/// One module per kernel: while LLVM compiles one on another core, the next is emitted here. MLIR passes run on one
/// module after the other, because passes that load dialects must not run concurrently in one context.
FailureOr<CodeImage> cpuImage(UniqueKernels &set, mlir::Location loc, const Target &target,
                              const CompileOptions &options) {
  KernelCompiler compiler(target);
  for (size_t i = 0; i < set.kernels.size(); ++i) {
    std::vector<rt::GpuKernel> launched;
    const double begun = threadSeconds();
    auto code = emitKernels(MutableArrayRef(set.kernels).slice(i, 1), loc, target, options, launched);
    if (failed(code) || failed(lowerToLLVMDialect(**code)) || failed(compiler.add(**code, begun)))
      return failure();
  }
  std::string error;
  auto image = compiler.link(symbolsOf(set), error);
  if (!image)
    return emitError(loc, error);
  if (options.reportCost)
    for (auto [kernel, cost] : llvm::zip(set.kernels, compiler.costs()))
      options.reportCost(kernel.symbol + " " + kernel.interface.family + " " + kernel.op.getName().value_or("").str() +
                             " " + fileLine(kernel.op.getLoc()),
                         cost);
  return CodeImage{target.name, std::move(*image)};
}

/// One line per kernel, "kernel0 contraction contract+relu: tasks n, scratch 0 bytes", and the schedule that its
/// emitter chose.
std::string scheduleText(UniqueKernels &set, const Target &target, ArrayRef<rt::GpuKernel> launched) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (auto [i, kernel] : llvm::enumerate(set.kernels)) {
    const KernelInterface &interface = kernel.interface;
    out << kernel.symbol << ' ' << interface.family << ' ' << kernel.op.getName().value_or("");
    if (target.isGpu()) {
      out << ": blocks " << interface.gpu.counts.back().str() << " of " << launched[i].threads << " threads, ";
      if (uint32_t most = launched[i].blocksPerMultiprocessor)
        out << "at most " << most << " per multiprocessor, ";
      out << "scratch " << interface.gpu.scratchBytes.str() << " bytes\n";
    } else {
      out << ": tasks " << interface.cpu.count.str() << ", scratch " << interface.cpu.scratchBytes.str() << " bytes\n"
          << interface.schedule;
    }
  }
  return text;
}

std::vector<std::byte> bytesOf(const std::vector<char> &chars) {
  auto *begin = reinterpret_cast<const std::byte *>(chars.data());
  return {begin, begin + chars.size()};
}

} // namespace

FailureOr<std::vector<std::byte>> compile(ModuleOp module, const CompileOptions &options) {
  auto targets = findTargets(module, options);
  if (failed(targets) || failed(checkIsGraph(module)))
    return failure();
  prepareContext(*module.getContext());
  llvm::DenseSet<Operation *> seen;
  for (func::FuncOp function : publicFunctions(module))
    addSizeChecks(function, seen);
  if (failed(runPasses(module, options, *targets, passes::Stage::Kernels)))
    return failure();
  UniqueKernels kernels(module);

  std::vector<rt::Code> codes;
  std::vector<std::vector<std::byte>> images;
  for (const Target *target : *targets) {
    std::vector<rt::GpuKernel> launched;
    auto made = target->isGpu() ? gpuImage(kernels, module.getLoc(), *target, options, launched)
                                : cpuImage(kernels, module.getLoc(), *target, options);
    if (failed(made))
      return failure();
    rt::Code &entry = codes.emplace_back(rt::Code{made->target, made->image.entries, {}});
    if (entry.isForGpu())
      entry.gpuKernels = std::move(launched);
    else if (target->isGpu()) // code of an emulator
      for (UniqueKernels::Entry &kernel : kernels.kernels) {
        KernelInterface::Blocks &blocks = kernel.interface.gpu;
        const Dim count = blocks.counts.pop_back_val(), launches = kernel.interface.gpu.inGroups ? Dim(1) : count;
        kernel.interface.cpu = {launches, blocks.scratchBytes};
      }
    images.push_back(bytesOf(made->image.bytes));
  }
  auto planned = reportAt(module, [&] { return planArtifact(module, kernels); });
  if (failed(planned))
    return failure();
  planned->artifact.codes = std::move(codes);
  for (auto [i, kernel] : llvm::enumerate(kernels.kernels))
    if (std::optional<rt::Product> &product = kernel.interface.product) {
      product->kernel = uint32_t(i);
      planned->artifact.products.push_back(std::move(*product));
    }
  return rt::writeArtifact(planned->artifact, images, planned->weightBytes,
                           [&](std::span<std::byte> weights) { planned->writeWeights(weights); });
}

FailureOr<std::string> emitText(ModuleOp module, const CompileOptions &options, EmitStage stage) {
  auto targets = findTargets(module, options);
  if (failed(targets) || failed(checkIsGraph(module)))
    return failure();
  prepareContext(*module.getContext());
  auto text = [](Operation *op) {
    std::string s;
    llvm::raw_string_ostream out(s);
    op->print(out, OpPrintingFlags().elideLargeElementsAttrs(64).elideLargeResourceString(64));
    return s;
  };
  if (stage <= EmitStage::Kernels) {
    if (failed(runPasses(module, options, *targets, static_cast<passes::Stage>(stage))))
      return failure();
    return text(module);
  }
  if (failed(runPasses(module, options, *targets, passes::Stage::Kernels)))
    return failure();
  UniqueKernels kernels(module);
  const Target &target = *targets->front();
  std::vector<rt::GpuKernel> launched;
  auto code = emitKernels(kernels.kernels, module.getLoc(), target, options, launched);
  if (failed(code))
    return failure();
  if (stage == EmitStage::Schedule)
    return scheduleText(kernels, target, launched);
  if (stage == EmitStage::Loops)
    return text(code->get());
  if (failed(lowerToLLVMDialect(**code)))
    return failure();
  llvm::LLVMContext llvmContext;
  std::string error = "translation to LLVM IR failed";
  auto llvmModule = target.isGpu() ? optimizedGpuLLVM(**code, target, llvmContext, error)
                                   : optimizedLLVM(**code, target, llvmContext);
  if (!llvmModule)
    return module.emitError(error);
  if (stage == EmitStage::Assembly)
    return assembly(*llvmModule, target);
  std::string s;
  llvm::raw_string_ostream out(s);
  llvmModule->print(out, nullptr);
  return s;
}

} // namespace burin::codegen
