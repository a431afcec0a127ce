#include "codegen/object/GpuCode.h"
#include "codegen/object/ObjectCode.h"
#include "codegen/scalar/math/Math.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace burin::codegen {
namespace {

/// Names of C library functions that the kernels call and that have no definition.
std::string missingFunctions(ModuleOp module) {
  llvm::SetVector<StringRef> names;
  module.walk([&](LLVM::CallOp call) {
    auto function = call.getCallee() ? module.lookupSymbol<LLVM::LLVMFuncOp>(*call.getCallee()) : LLVM::LLVMFuncOp();
    if (function && function.isExternal() && isLibmFunction(*call.getCallee()))
      names.insert(*call.getCallee());
  });
  return llvm::join(names, ", ");
}

/// NVPTX in LLVM 22 drops the upper half of a 64-bit shift amount together with the check that it is below 64: 1 <<
/// 2^32 became 1 instead of 0. An explicit minimum, which makes the check redundant, avoids that.
void limitShifts(llvm::Module &module) {
  SmallVector<llvm::BinaryOperator *> shifts;
  for (llvm::Function &f : module)
    for (llvm::Instruction &i : llvm::instructions(f))
      if (i.isShift() && i.getType()->getScalarType()->isIntegerTy(64) &&
          !isa<llvm::Constant, llvm::ZExtInst>(i.getOperand(1)))
        shifts.push_back(cast<llvm::BinaryOperator>(&i));
  for (llvm::BinaryOperator *shift : shifts) {
    llvm::IRBuilder<> b(shift);
    shift->setOperand(1, b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, shift->getOperand(1),
                                                 llvm::ConstantInt::get(shift->getType(), 63)));
  }
}

/// Tensor maps are read where the host has put them: parameters that kernels do not write.
void keepMapsInPlace(llvm::Module &module) {
  for (llvm::Function &f : module)
    for (llvm::Argument &argument : f.args())
      if (f.getCallingConv() == llvm::CallingConv::PTX_Kernel && argument.hasByValAttr())
        argument.addAttr(llvm::Attribute::get(module.getContext(), "nvvm.grid_constant"));
}

/// Programmatic dependent launch, which hides the latency of launches: a kernel is launched when all blocks of the one
/// before it have ended, and waits until the results of that one are visible. As every kernel waits, those of all
/// earlier ones are, too. No kernel lets the next one begin earlier (griddepcontrol.launch_dependents): blocks are then
/// placed where the running ones leave room, several on one multiprocessor, which took more time than it saved.
void orderKernels(llvm::Module &module) {
  for (llvm::Function &f : module) {
    if (f.getCallingConv() != llvm::CallingConv::PTX_Kernel || f.isDeclaration())
      continue;
    llvm::IRBuilder<> b(&*f.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    b.CreateIntrinsic(llvm::Intrinsic::nvvm_griddepcontrol_wait, {});
  }
}

} // namespace

std::unique_ptr<llvm::Module> optimizedGpuLLVM(ModuleOp module, const Target &target, llvm::LLVMContext &context,
                                               std::string &error) {
  if (std::string missing = missingFunctions(module); !missing.empty()) {
    error = "kernels for " + std::string(target.name) + " cannot call " + missing + ": a GPU has no C library";
    return nullptr;
  }
  // NVPTX in LLVM 22 cannot select prefetches; removing them changes no result.
  module.walk([](LLVM::Prefetch prefetch) { prefetch.erase(); });
  auto code = optimizedLLVM(module, target, context);
  if (!code)
    error = std::string("LLVM has no code generator for ") + target.name;
  else
    limitShifts(*code), keepMapsInPlace(*code);
  if (code && target.dependentLaunches)
    orderKernels(*code);
  return code;
}

namespace {

/// "instruction result, operand…;" of a line of PTX.
struct PtxLine {
  explicit PtxLine(StringRef line) {
    auto [name, rest] = line.trim().rtrim(';').split('\t');
    instruction = name.trim();
    rest.split(operands, ',');
    for (StringRef &operand : operands)
      operand = operand.trim();
  }
  StringRef instruction;
  SmallVector<StringRef, 4> operands;
};

} // namespace

std::string keepCarries(StringRef ptx) {
  llvm::StringSet<> products, widened; // registers with a result of mul.hi.u32, and the same in 64 bits
  std::string text;
  text.reserve(ptx.size());
  for (StringRef rest = ptx; !rest.empty();) {
    auto [line, behind] = rest.split('\n');
    rest = behind;
    const PtxLine parts(line);
    if (parts.instruction == ".visible" || line.contains(".entry"))
      products.clear(), widened.clear();
    else if (parts.instruction == "mul.hi.u32")
      products.insert(parts.operands[0]);
    else if (parts.instruction == "cvt.u64.u32" && products.contains(parts.operands[1]))
      widened.insert(parts.operands[0]);
    if (parts.instruction == "sub.s64" && widened.contains(parts.operands[1])) {
      text += ("\tsub.s64 \t" + parts.operands[0] + ", " + parts.operands[2] + ", " + parts.operands[1] + ";\n").str();
      text += ("\tneg.s64 \t" + parts.operands[0] + ", " + parts.operands[0] + ";\n").str();
    } else {
      text.append(line.data(), line.size()).push_back('\n');
    }
  }
  return text;
}

std::string withNeededVersion(std::string ptx) {
  const StringRef text = ptx, version = ".version 8.0";
  const size_t at = text.find(version);
  const bool isMixed = text.contains("k32.s32.u8.s8 ") || text.contains("k32.s32.s8.u8 ");
  return isMixed && at != StringRef::npos ? ptx.replace(at, version.size(), ".version 8.4") : ptx;
}

} // namespace burin::codegen
