#include "test/gpu/Ptx.h"
#include "codegen/object/ObjectCode.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <cstdlib>
#include <stdexcept>

namespace burin::test {

static void assemble(llvm::StringRef ptx, const codegen::Target &target, llvm::StringRef ptxas) {
  llvm::SmallString<64> input, log;
  if (llvm::sys::fs::createTemporaryFile("burin", "ptx", input) ||
      llvm::sys::fs::createTemporaryFile("burin", "log", log))
    throw std::runtime_error("no temporary file");
  llvm::FileRemover removers[] = {llvm::FileRemover(input), llvm::FileRemover(log)};
  std::error_code code;
  llvm::raw_fd_ostream(input, code) << ptx;
  std::string architecture = std::string("-arch=") + target.cpu;
  llvm::StringRef arguments[] = {ptxas, architecture, "-O1", input, "-o", "/dev/null"};
  std::optional<llvm::StringRef> streams[] = {llvm::StringRef(), llvm::StringRef(log), llvm::StringRef(log)};
  if (code || llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, streams) == 0)
    return;
  auto text = llvm::MemoryBuffer::getFile(log);
  throw std::runtime_error("ptxas: " + (text ? (*text)->getBuffer().str() : "fails"));
}

std::string checkedPtx(const llvm::Module &kernels, const std::string &name) {
  const codegen::Target &target = *codegen::findTarget(name);
  std::string ptx = codegen::assembly(*llvm::CloneModule(kernels), target); // which changes the module
  if (llvm::StringRef(ptx).count(".entry") == 0)
    throw std::runtime_error("no kernels in the PTX");
  if (const char *ptxas = std::getenv("BURIN_PTXAS"))
    assemble(ptx, target, ptxas);
  return ptx;
}

} // namespace burin::test
