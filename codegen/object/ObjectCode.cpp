#include "codegen/object/ObjectCode.h"
#include "codegen/object/GpuCode.h"
#include "lld/Common/Driver.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/Threading.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopStrengthReduce.h"
#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <deque>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace burin::codegen {
namespace {

// Kernels are emitted tiled, unrolled and vectorised; what remains is scalar clean-up and loop-invariant code motion.
// Takes half the time of -O1 with the same inner loops; further unrolling or vectorisation only causes spills.
constexpr const char *kKernelPasses =
    "always-inline,globaldce,function(sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(loop-rotate,licm<allowspeculation>),gvn,loop-mssa(licm<allowspeculation>),"
    "instcombine<no-verify-fixpoint>,simplifycfg)";
/// GPUs load 16 bytes at once only from addresses that are known to be aligned.
constexpr const char *kGpuPasses = "function(infer-alignment)";

std::unique_ptr<llvm::TargetMachine> machineFor(const Target &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple(target.isGpu() ? "nvptx64-nvidia-cuda" : "x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  // Multiply-adds are fused only where the kernel says so: fused and unfused graphs agree bit for bit.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target.cpu, target.features, options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
}

// A file in memory, with a path that lld can open.
class MemoryFile {
public:
  explicit MemoryFile(const char *name) : descriptor(memfd_create(name, MFD_CLOEXEC)) {}
  ~MemoryFile() { close(descriptor); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor); }
  bool write(llvm::StringRef bytes) {
    while (!bytes.empty()) {
      ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
      if (n <= 0)
        return false;
      bytes = bytes.drop_front(n);
    }
    return true;
  }

private:
  int descriptor;
};

/// A pipe with a path that lld can open, emptied by a thread. A regular output file lld would replace by a temporary
/// one, and LLVM keeps the names of all temporary files of a process in a list, which each later link would search.
class OutputPipe {
public:
  /// Whether the system grants what it takes.
  bool open() {
    end = eventfd(0, EFD_CLOEXEC);
    if (end < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) // lld opens it again, and waits while it is full
      return false;
    try {
      reader = std::thread([this] { readAll(); });
    } catch (const std::system_error &) {
      return false;
    }
    return true;
  }
  ~OutputPipe() {
    (void)finish();
    for (int descriptor : {end, ends[0], ends[1]})
      if (descriptor >= 0)
        close(descriptor);
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(ends[1]); }
  /// All that has been written.
  std::vector<char> finish() {
    if (reader.joinable() && eventfd_write(end, 1) == 0)
      reader.join();
    return std::move(bytes);
  }

private:
  int end = -1, ends[2] = {-1, -1}; // all is written; to read from, to write to
  std::vector<char> bytes;
  std::thread reader;

  // Not until the pipe is closed: a child that another thread forks meanwhile keeps it open.
  void readAll() {
    pollfd polled[] = {{ends[0], POLLIN, 0}, {end, POLLIN, 0}};
    char part[1 << 16];
    for (bool isLast = false; !isLast;) {
      poll(polled, 2, /*timeout=*/-1);
      isLast = polled[1].revents;
      for (ssize_t n; (n = ::read(ends[0], part, sizeof part)) > 0;)
        bytes.insert(bytes.end(), part, part + n);
    }
  }
};

/// Analyses of one module, for pass managers.
struct Analyses {
  explicit Analyses(llvm::TargetMachine &machine) : builder(&machine) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(callGraph);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, callGraph, modules);
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
};

/// Loop strength reduction of short loops only. Its time grows with the square of the number of addresses in a loop: it
/// took 55 % of the time to compile EfficientNet, nearly all in the unrolled tiles of six depthwise convolutions. Long
/// loops gain nothing: addresses are a small part of their work, and fewer registers are spilled without it.
struct ShortLoopStrengthReduction : llvm::PassInfoMixin<ShortLoopStrengthReduction> {
  static constexpr unsigned kMostInstructions = 300; // matrix products took 1.00 of the time on a Zen 4 without it

  llvm::PreservedAnalyses run(llvm::Loop &loop, llvm::LoopAnalysisManager &analyses,
                              llvm::LoopStandardAnalysisResults &results, llvm::LPMUpdater &updater) {
    unsigned instructions = 0;
    for (const llvm::BasicBlock *block : loop.blocks())
      instructions += unsigned(block->size());
    return instructions > kMostInstructions ? llvm::PreservedAnalyses::all()
                                            : llvm::LoopStrengthReducePass().run(loop, analyses, results, updater);
  }
};

void reduceStrength(llvm::Module &module, llvm::TargetMachine &machine) {
  Analyses analyses(machine);
  llvm::ModulePassManager passes;
  passes.addPass(
      llvm::createModuleToFunctionPassAdaptor(llvm::createFunctionToLoopPassAdaptor(ShortLoopStrengthReduction())));
  passes.run(module, analyses.modules);
}

/// Leaves out the loop strength reduction that targets add to the passes of code generation.
class CodePasses : public llvm::legacy::PassManager {
public:
  void add(llvm::Pass *pass) override {
    std::unique_ptr<llvm::Pass> owned(pass);
    if (pass->getPassID() != reduction->getPassID())
      PassManager::add(owned.release());
  }

private:
  std::unique_ptr<llvm::Pass> reduction{llvm::createLoopStrengthReducePass()};
};

bool emitBy(llvm::legacy::PassManager &passes, llvm::Module &module, llvm::TargetMachine &machine,
            llvm::CodeGenFileType type, llvm::raw_pwrite_stream &out) {
  if (machine.addPassesToEmitFile(passes, out, nullptr, type, /*DisableVerify=*/true))
    return false;
  passes.run(module);
  return true;
}

bool emit(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type,
          llvm::raw_pwrite_stream &out) {
  if (machine.getTargetTriple().isNVPTX() || machine.getOptLevel() == llvm::CodeGenOptLevel::None) {
    llvm::legacy::PassManager passes;
    return emitBy(passes, module, machine, type, out);
  }
  reduceStrength(module, machine);
  CodePasses passes;
  return emitBy(passes, module, machine, type, out);
}

std::unique_ptr<llvm::Module> translated(mlir::ModuleOp module, const Target &target, llvm::LLVMContext &context) {
  auto llvmModule = mlir::translateModuleToLLVMIR(module, context);
  if (!llvmModule)
    return nullptr;
  std::string width = std::to_string(target.vectorBytes * 8);
  for (llvm::Function &f : *llvmModule) {
    f.addFnAttr(llvm::Attribute::NoUnwind);
    if (f.isDeclaration())
      continue;
    f.addFnAttr("target-cpu", target.cpu);
    f.addFnAttr("target-features", target.features);
    if (target.isGpu())
      continue;
    f.addFnAttr("prefer-vector-width", width);
    f.addFnAttr("min-legal-vector-width", width);
    f.addFnAttr("no-builtins"); // loops must not become library calls
  }
  return llvmModule;
}

bool optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  Analyses analyses(machine);
  llvm::ModulePassManager passes;
  std::string pipeline = kKernelPasses;
  if (machine.getTargetTriple().isNVPTX())
    pipeline += std::string(",") + kGpuPasses;
  if (llvm::Error error = analyses.builder.parsePassPipeline(passes, pipeline)) {
    llvm::consumeError(std::move(error));
    return false;
  }
  passes.run(module, analyses.modules);
  return true;
}

std::optional<Image> link(llvm::ArrayRef<llvm::StringRef> objects, llvm::ArrayRef<std::string> symbols,
                          std::string &error) {
  auto fail = [&](const llvm::Twine &why) {
    error = why.str();
    return std::nullopt;
  };
  std::deque<MemoryFile> inputs;
  std::vector<std::string> paths;
  for (llvm::StringRef object : objects) {
    if (!inputs.emplace_back("kernel.o").write(object))
      return fail("no memory for an object file of " + llvm::Twine(object.size()) + " bytes");
    paths.push_back(inputs.back().path());
  }
  OutputPipe output;
  if (!output.open())
    return fail("no pipe or no thread for the linked image (" + llvm::Twine(std::strerror(errno)) + ")");
  std::string messages;
  llvm::raw_string_ostream log(messages);
  const std::string outputPath = output.path();
  std::vector<const char *> arguments{"ld.lld",
                                      "-shared",
                                      "--threads=1",
                                      "-z",
                                      "noexecstack",
                                      "-z",
                                      "separate-code",
                                      "--hash-style=sysv",
                                      "--gc-sections",
                                      "--no-rosegment",
                                      "-o",
                                      outputPath.c_str()};
  for (const std::string &path : paths)
    arguments.push_back(path.c_str());
  {
    static std::mutex lldIsNotReentrant;
    std::lock_guard lock(lldIsNotReentrant);
    auto result = lld::lldMain(arguments, log, log, {{lld::Gnu, &lld::elf::link}});
    if (result.retCode)
      return fail("linking failed: " + messages);
  }
  Image image;
  image.bytes = output.finish();
  auto elf = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef({image.bytes.data(), image.bytes.size()}, "kernels.so"));
  if (!elf)
    return fail("the linked image cannot be read: " + llvm::toString(elf.takeError()));
  llvm::StringMap<uint64_t> addresses;
  for (const auto &symbol : llvm::cast<llvm::object::ELFObjectFileBase>(**elf).getDynamicSymbolIterators()) {
    auto name = symbol.getName();
    auto address = symbol.getAddress();
    if (name && address)
      addresses[*name] = *address;
  }
  for (const std::string &symbol : symbols) {
    if (!addresses.count(symbol))
      return fail("kernel '" + symbol + "' is missing from the linked image");
    image.entries.push_back(addresses[symbol]);
  }
  return image;
}

} // namespace

std::unique_ptr<llvm::Module> optimizedLLVM(mlir::ModuleOp module, const Target &target, llvm::LLVMContext &context) {
  auto llvmModule = translated(module, target, context);
  auto machine = machineFor(target);
  return llvmModule && machine && optimize(*llvmModule, *machine) ? std::move(llvmModule) : nullptr;
}

std::string assembly(llvm::Module &module, const Target &target) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  if (auto machine = machineFor(target))
    emit(module, *machine, llvm::CodeGenFileType::AssemblyFile, out);
  return target.isGpu() ? withNeededVersion(keepCarries(text)) : text.str().str();
}

double threadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

/// The LLVM IR of one kernel. Each has a context of its own, so that threads share nothing.
struct KernelIR {
  size_t place; // among the kernels
  KernelCost cost;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

struct KernelCompiler::State {
  explicit State(const Target &target) : target(target) {}

  const Target &target;
  unsigned maxThreads = llvm::hardware_concurrency().compute_thread_count();
  std::mutex mutex;
  std::condition_variable_any changed;
  std::vector<KernelIR> waiting;            // a heap by size
  std::deque<llvm::SmallString<0>> objects; // one per kernel; references stay valid
  std::vector<KernelCost> costs;            // likewise
  bool failed = false;
  std::vector<std::jthread> helpers; // last: they use the others

  static bool isSmaller(const KernelIR &x, const KernelIR &y) { return x.cost.emitted < y.cost.emitted; }
  void put(KernelIR kernel) {
    waiting.push_back(std::move(kernel));
    std::push_heap(waiting.begin(), waiting.end(), isSmaller);
  }
  /// The largest kernel that waits, so that none of the large ones is left for the end.
  KernelIR takeLargest() {
    std::pop_heap(waiting.begin(), waiting.end(), isSmaller);
    KernelIR taken = std::move(waiting.back());
    waiting.pop_back();
    return taken;
  }

  void compile(KernelIR kernel, llvm::SmallVectorImpl<char> &object) {
    llvm::raw_svector_ostream out(object);
    const double begun = threadSeconds();
    auto machine = machineFor(target);
    bool succeeded = machine && optimize(*kernel.module, *machine);
    kernel.cost.passes = threadSeconds() - begun;
    kernel.cost.optimized = kernel.module->getInstructionCount();
    succeeded = succeeded && emit(*kernel.module, *machine, llvm::CodeGenFileType::ObjectFile, out);
    kernel.cost.code = threadSeconds() - begun - kernel.cost.passes;
    std::lock_guard lock(mutex);
    costs[kernel.place] = kernel.cost;
    failed = failed || !succeeded;
  }

  /// Compiles waiting kernels. When none is left, returns, or waits for more until `stop` is requested.
  void work(std::optional<std::stop_token> stop) {
    std::unique_lock lock(mutex);
    while (true) {
      if (stop && !changed.wait(lock, *stop, [&] { return !waiting.empty(); }))
        return;
      if (waiting.empty())
        return;
      KernelIR kernel = takeLargest();
      llvm::SmallString<0> &object = objects[kernel.place];
      lock.unlock();
      compile(std::move(kernel), object);
      lock.lock();
    }
  }
};

KernelCompiler::KernelCompiler(const Target &target) : state(std::make_unique<State>(target)) {}

KernelCompiler::~KernelCompiler() {
  std::lock_guard lock(state->mutex);
  state->waiting.clear();
}

mlir::LogicalResult KernelCompiler::add(mlir::ModuleOp module, double begun) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto translatedModule = translated(module, state->target, *context);
  if (!translatedModule)
    return module.emitError("translation to LLVM IR failed");
  KernelCost cost;
  cost.emission = threadSeconds() - begun;
  cost.emitted = translatedModule->getInstructionCount();
  size_t waiting = 0;
  {
    std::lock_guard lock(state->mutex);
    size_t place = state->objects.size();
    state->objects.emplace_back();
    state->costs.emplace_back();
    state->put({place, cost, std::move(context), std::move(translatedModule)});
    waiting = state->waiting.size();
  }
  state->changed.notify_one();
  // The caller compiles, too, in link(): a single kernel needs no other thread.
  if (waiting < 2 || state->helpers.size() + 1 >= state->maxThreads)
    return mlir::success();
  try {
    state->helpers.emplace_back([state = state.get()](const std::stop_token &stop) { state->work(stop); });
  } catch (const std::system_error &) {
    state->maxThreads = 1; // the system grants no more threads: link() compiles what waits
  }
  return mlir::success();
}

std::optional<Image> KernelCompiler::link(llvm::ArrayRef<std::string> symbols, std::string &error) {
  state->work(std::nullopt);
  state->helpers.clear(); // waits for kernels in progress
  if (state->failed) {
    error = std::string("LLVM has no code generator for ") + state->target.cpu;
    return std::nullopt;
  }
  if (state->objects.empty()) { // the linker needs an object; there are no kernels if all steps are host calls
    llvm::LLVMContext context;
    llvm::Module nothing("nothing", context);
    return compileImage(nothing, state->target, symbols, error);
  }
  std::vector<llvm::StringRef> objects(state->objects.begin(), state->objects.end());
  return codegen::link(objects, symbols, error);
}

llvm::ArrayRef<KernelCost> KernelCompiler::costs() const { return state->costs; }

std::optional<Image> compileImage(llvm::Module &module, const Target &target, llvm::ArrayRef<std::string> symbols,
                                  std::string &error) {
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream out(object);
  auto machine = machineFor(target);
  if (machine) {
    machine->setOptLevel(llvm::CodeGenOptLevel::None);
    module.setTargetTriple(machine->getTargetTriple());
    module.setDataLayout(machine->createDataLayout());
  }
  if (!machine || !emit(module, *machine, llvm::CodeGenFileType::ObjectFile, out)) {
    error = std::string("LLVM has no code generator for ") + target.cpu;
    return std::nullopt;
  }
  return link({object.str()}, symbols, error);
}

} // namespace burin::codegen
