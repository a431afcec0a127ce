#include "test/gpu/ptx/Ptx.h"
#include "codegen/object/ObjectCode.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <cstdlib>
#include <stdexcept>

namespace burin::test {

std::string findPtxas() {
  if (const char *given = std::getenv("BURIN_PTXAS"))
    return given;
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  auto found = llvm::sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"});
  return found ? *found : "";
}

/// The number before `unit` in a line, or 0.
static int numberBefore(llvm::StringRef line, llvm::StringRef unit) {
  size_t at = line.find(unit);
  if (at == llvm::StringRef::npos)
    return 0;
  llvm::StringRef before = line.take_front(at).rtrim();
  int number = 0;
  before.substr(before.find_last_not_of("0123456789") + 1).getAsInteger(10, number);
  return number;
}

std::vector<AssembledKernel> assembled(const std::string &ptx, const std::string &target, const std::string &ptxas) {
  llvm::SmallString<64> input, log;
  if (llvm::sys::fs::createTemporaryFile("burin", "ptx", input) ||
      llvm::sys::fs::createTemporaryFile("burin", "log", log))
    throw std::runtime_error("no temporary file");
  llvm::FileRemover removers[] = {llvm::FileRemover(input), llvm::FileRemover(log)};
  std::error_code code;
  llvm::raw_fd_ostream(input, code) << ptx;
  std::string architecture = std::string("-arch=") + codegen::findTarget(target)->cpu;
  llvm::StringRef arguments[] = {ptxas, architecture, "-v", input, "-o", "/dev/null"};
  std::optional<llvm::StringRef> streams[] = {llvm::StringRef(), llvm::StringRef(log), llvm::StringRef(log)};
  const bool takes = !code && llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, streams) == 0;
  auto text = llvm::MemoryBuffer::getFile(log);
  // "Potential Performance Loss": wgmma instructions run one after the other.
  if (!takes || !text || (*text)->getBuffer().contains("warning") || (*text)->getBuffer().contains("Performance Loss"))
    throw std::runtime_error("ptxas: " + (text ? (*text)->getBuffer().str() : "fails"));
  std::vector<AssembledKernel> kernels;
  for (llvm::StringRef line : llvm::split((*text)->getBuffer(), '\n')) {
    if (line.contains("Compiling entry function"))
      kernels.push_back({line.split('\'').second.split('\'').first.str()});
    if (kernels.empty())
      continue;
    AssembledKernel &kernel = kernels.back();
    kernel.spilledBytes += numberBefore(line, " bytes spill stores") + numberBefore(line, " bytes spill loads");
    if (line.contains("Used "))
      kernel.registers = numberBefore(line, " registers"), kernel.sharedBytes = numberBefore(line, " bytes smem");
  }
  return kernels;
}

std::string checkedPtx(const llvm::Module &kernels, const std::string &name) {
  const codegen::Target &target = *codegen::findTarget(name);
  std::string ptx = codegen::assembly(*llvm::CloneModule(kernels), target); // which changes the module
  if (llvm::StringRef(ptx).count(".entry") == 0)
    throw std::runtime_error("no kernels in the PTX");
  if (const char *ptxas = std::getenv("BURIN_PTXAS"))
    assembled(ptx, name, ptxas);
  return ptx;
}

} // namespace burin::test
