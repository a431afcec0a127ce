#include "test/gpu/runs/RunOnGpu.h"
#include "codegen/object/ObjectCode.h"
#include "runtime/code/Elf.h"
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/emulator/Emulate.h"
#include "test/gpu/ptx/Ptx.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <deque>
#include <stdexcept>

namespace burin::test {

/// Whether a kernel waits for those before it ahead of its first access to memory.
static bool waitsFirst(llvm::Function &kernel) {
  for (llvm::Instruction &i : kernel.getEntryBlock()) {
    auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
    if (call && call->getIntrinsicID() == llvm::Intrinsic::nvvm_griddepcontrol_wait)
      return true;
    if (i.mayReadOrWriteMemory())
      return false;
  }
  return false;
}

static codegen::CompileOptions::GpuImage imageFor(const std::string &target, llvm::Module &kernels,
                                                  llvm::ArrayRef<std::string> symbols) {
  static std::deque<rt::CodeImage> images; // as long as the process: kernels may be launched
  std::string ptx = checkedPtx(kernels, target);
  std::map<std::string, fake::Kernel> known;
  for (const std::string &symbol : symbols) {
    llvm::Function &f = *kernels.getFunction(symbol);
    fake::Kernel &kernel = known[symbol];
    kernel.threads = std::stoi(f.getFnAttribute("nvvm.reqntid").getValueAsString().str());
    if (f.hasFnAttribute("burin-shared-bytes"))
      kernel.sharedBytes = std::stoul(f.getFnAttribute("burin-shared-bytes").getValueAsString().str());
    kernel.waitsFirst = waitsFirst(f);
    kernel.inGroups = f.hasFnAttribute("burin-groups");
    for (llvm::Argument &argument : llvm::drop_end(f.args(), kernel.inGroups))
      ++(argument.hasByValAttr() ? kernel.maps : argument.getType()->isPointerTy() ? kernel.operands : kernel.sizes);
    kernel.operands -= 2; // scratch and error
  }
  auto emulation = emulatedByGroups(kernels, symbols);
  rt::CodeImage &image = images.emplace_back();
  rt::Status loaded = rt::CodeImage::load(std::as_bytes(std::span(emulation.bytes)), image);
  if (!loaded.ok())
    throw std::runtime_error(loaded.message());
  for (size_t i = 0; i < symbols.size(); ++i)
    known[symbols[i]].run = reinterpret_cast<decltype(fake::Kernel::run)>(image.function(emulation.entries[i]));
  fake::addModule(ptx, std::move(known));
  return {target, {ptx.begin(), ptx.end()}, {}};
}

decltype(codegen::CompileOptions::emulate) ptxForFakeDriver(const std::string &target) {
  return [target](llvm::Module &kernels, llvm::ArrayRef<std::string> symbols) {
    return imageFor(target, kernels, symbols);
  };
}

} // namespace burin::test
