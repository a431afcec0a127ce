#include "codegen/ObjectCode.h"
#include "lld/Common/Driver.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace burin::codegen {
namespace {

// Kernels arrive tiled, unrolled and vectorised: what is left is scalar clean-up and moving what a loop repeats out of
// it. Half the time of -O1, the same inner loops; unrolling and vectorising more only spills.
constexpr const char *kKernelPasses =
    "always-inline,globaldce,function(sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(loop-rotate,licm<allowspeculation>),gvn,loop-mssa(licm<allowspeculation>),"
    "instcombine<no-verify-fixpoint>,simplifycfg)";

std::unique_ptr<llvm::TargetMachine> machineFor(const Target &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  // Products and sums are fused only where the kernel says so: fused and unfused graphs agree bit for bit.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target.cpu, target.features, options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
}

// A file in memory with a path that lld can open.
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

bool emit(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type,
          llvm::raw_pwrite_stream &out) {
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, type, /*DisableVerify=*/true))
    return false;
  passes.run(module);
  return true;
}

} // namespace

std::unique_ptr<llvm::Module> optimizedLLVM(mlir::ModuleOp module, const Target &target, llvm::LLVMContext &context) {
  auto llvmModule = mlir::translateModuleToLLVMIR(module, context);
  auto machine = machineFor(target);
  if (!llvmModule || !machine)
    return nullptr;
  llvmModule->setTargetTriple(machine->getTargetTriple());
  llvmModule->setDataLayout(machine->createDataLayout());
  std::string width = std::to_string(target.vectorBytes * 8);
  for (llvm::Function &f : *llvmModule) {
    f.addFnAttr(llvm::Attribute::NoUnwind);
    if (f.isDeclaration())
      continue;
    f.addFnAttr("target-cpu", target.cpu);
    f.addFnAttr("target-features", target.features);
    f.addFnAttr("prefer-vector-width", width);
    f.addFnAttr("min-legal-vector-width", width);
    f.addFnAttr("no-builtins"); // loops must not become calls
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(machine.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, kKernelPasses)) {
    llvm::consumeError(std::move(error));
    return nullptr;
  }
  passes.run(*llvmModule, modules);
  return llvmModule;
}

std::string assembly(llvm::Module &module, const Target &target) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  if (auto machine = machineFor(target))
    emit(module, *machine, llvm::CodeGenFileType::AssemblyFile, out);
  return text.str().str();
}

std::optional<Image> link(llvm::Module &module, const Target &target, llvm::ArrayRef<std::string> symbols,
                          std::string &error) {
  auto fail = [&](const llvm::Twine &why) {
    error = why.str();
    return std::nullopt;
  };
  auto machine = machineFor(target);
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream out(object);
  if (!machine || !emit(module, *machine, llvm::CodeGenFileType::ObjectFile, out))
    return fail("LLVM has no code generator for " + llvm::Twine(target.cpu));
  MemoryFile input("kernels.o");
  if (!input.write(object.str()))
    return fail("no memory for an object file of " + llvm::Twine(object.size()) + " bytes");
  // lld replaces its output, so that has to be a real file.
  llvm::SmallString<64> outputPath;
  if (std::error_code code = llvm::sys::fs::createTemporaryFile("burin", "so", outputPath))
    return fail("cannot create a temporary file (" + code.message() + "); set TMPDIR to a folder that can be written");
  llvm::FileRemover remover(outputPath);
  std::string inputPath = input.path(), messages;
  llvm::raw_string_ostream log(messages);
  std::vector<const char *> arguments{"ld.lld",          "-shared",
                                      "--threads=1",     "-z",
                                      "noexecstack",     "-z",
                                      "separate-code",   "--hash-style=sysv",
                                      "--gc-sections",   "--no-rosegment",
                                      inputPath.c_str(), "-o",
                                      outputPath.c_str()};
  {
    static std::mutex lldIsNotReentrant;
    std::lock_guard lock(lldIsNotReentrant);
    auto result = lld::lldMain(arguments, log, log, {{lld::Gnu, &lld::elf::link}});
    if (result.retCode)
      return fail("linking failed: " + messages);
  }
  auto written = llvm::MemoryBuffer::getFile(outputPath, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!written)
    return fail("the linked image cannot be read: " + written.getError().message());
  Image image;
  image.bytes.assign((*written)->getBufferStart(), (*written)->getBufferEnd());
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

} // namespace burin::codegen
