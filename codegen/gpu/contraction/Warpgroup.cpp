#include "codegen/gpu/contraction/Warpgroup.h"

using namespace mlir;

namespace burin::codegen {
namespace {

Value word(KernelBuilder &k, int32_t n) { return arith::ConstantIntOp::create(k.b, k.loc, k.b.getI32Type(), n); }

void call(KernelBuilder &k, llvm::StringRef name, ValueRange operands) {
  LLVM::CallIntrinsicOp::create(k.b, k.loc, k.b.getStringAttr(name), operands);
}
Value call(KernelBuilder &k, llvm::StringRef name, Type result, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(k.b, k.loc, result, k.b.getStringAttr(name), operands).getResult(0);
}

/// Assembly that changes f32 registers, its operands $0, $1, …; `further` follow those twice as many.
SmallVector<Value> changeRegisters(KernelBuilder &k, const std::string &text, ArrayRef<Value> registers,
                                   ArrayRef<Value> further, llvm::StringRef furtherConstraints) {
  std::string outputs, inputs;
  for (size_t i = 0; i < registers.size(); ++i) {
    outputs += i ? ",=f" : "=f";
    inputs += "," + std::to_string(i);
  }
  SmallVector<Value> operands(registers);
  llvm::append_range(operands, further);
  SmallVector<Type> types(registers.size(), k.b.getF32Type());
  auto all = LLVM::LLVMStructType::getLiteral(k.b.getContext(), types);
  Value result =
      LLVM::InlineAsmOp::create(k.b, k.loc, all, operands, text, outputs + inputs + furtherConstraints.str(),
                                /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None, {}, {})
          .getResult(0);
  SmallVector<Value> changed;
  for (size_t i = 0; i < registers.size(); ++i)
    changed.push_back(LLVM::ExtractValueOp::create(k.b, k.loc, result, int64_t(i)));
  return changed;
}

} // namespace

Value PhaseBarriers::at(KernelBuilder &k, Value barrier) const {
  return k.elementPointer({pointer, DType::i64, {}}, barrier);
}

void PhaseBarriers::init(KernelBuilder &k, int64_t barrier, int64_t arrivals) const {
  call(k, "llvm.nvvm.mbarrier.init.shared", {at(k, k.constant(barrier)), word(k, int32_t(arrivals))});
}

void PhaseBarriers::arrive(KernelBuilder &k, Value barrier) const {
  call(k, "llvm.nvvm.mbarrier.arrive.shared", k.b.getI64Type(), at(k, barrier));
}

void PhaseBarriers::arriveWithCopies(KernelBuilder &k, Value barrier) const {
  call(k, "llvm.nvvm.cp.async.mbarrier.arrive.noinc.shared", at(k, barrier));
}

void PhaseBarriers::wait(KernelBuilder &k, Value barrier, Value parity) const {
  Value place = at(k, barrier);
  k.loopWhile(
      {},
      [&](ValueRange) {
        Value hasEnded = call(k, "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta", k.b.getI1Type(),
                              ValueRange{place, parity});
        Value yes = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
        return arith::XOrIOp::create(k.b, k.loc, hasEnded, yes).getResult();
      },
      [](ValueRange) { return SmallVector<Value>(); });
}

Value matrixDescriptor(KernelBuilder &k, Value pointer, int64_t panelBytes, int64_t groupBytes) {
  // Bits 0-13: address, 16-29: panels, 32-45: groups, all of them in units of 16 bytes; 62-63: 2 for rows of 64 bytes.
  constexpr int64_t kAddresses = (1 << 18) - 1, kUnit = 16;
  constexpr uint64_t kRowsOf64 = uint64_t(2) << 62;
  Value address = LLVM::PtrToIntOp::create(k.b, k.loc, k.b.getI64Type(), pointer);
  Value start = k.div(arith::AndIOp::create(k.b, k.loc, address, k.constant(kAddresses)), k.constant(kUnit));
  Value rest = k.constant(int64_t(kRowsOf64 | uint64_t(groupBytes / kUnit) << 32 | uint64_t(panelBytes / kUnit) << 16));
  return arith::OrIOp::create(k.b, k.loc, start, rest);
}

SmallVector<Value> multiplyMatrices(KernelBuilder &k, DType dtype, Value left, Value right, ArrayRef<Value> sums) {
  const std::string type = dtype == DType::f16 ? "f16" : "bf16", columns = std::to_string(2 * sums.size());
  std::string registers;
  for (size_t i = 0; i < sums.size(); ++i)
    registers += (i ? ", $" : "$") + std::to_string(i);
  auto further = [&](size_t i) { return "$" + std::to_string(2 * sums.size() + i); };
  // Sums are added to; neither side changes its sign; the right side alone is transposed.
  std::string text = "{\n.reg .pred %adds;\nsetp.ne.b32 %adds, 1, 0;\nwgmma.mma_async.sync.aligned.m64n" + columns +
                     "k16.f32." + type + "." + type + " {" + registers + "}, " + further(0) + ", " + further(1) +
                     ", %adds, 1, 1, 0, 1;\n}";
  return changeRegisters(k, text, sums, {left, right}, ",l,l");
}

void beginProducts(KernelBuilder &k) { call(k, "llvm.nvvm.wgmma.fence.sync.aligned", {}); }
void commitProducts(KernelBuilder &k) { call(k, "llvm.nvvm.wgmma.commit_group.sync.aligned", {}); }

void waitForProducts(KernelBuilder &k, int64_t groups) {
  Value most = arith::ConstantIntOp::create(k.b, k.loc, k.b.getI64Type(), groups);
  call(k, "llvm.nvvm.wgmma.wait_group.sync.aligned", most);
}

SmallVector<Value> finishProducts(KernelBuilder &k, ArrayRef<Value> sums) {
  return changeRegisters(k, "wgmma.wait_group.sync.aligned 0;", sums, {}, ",~{memory}");
}

void showToProducts(KernelBuilder &k) { call(k, "llvm.nvvm.fence.proxy.async.shared_cta", {}); }

} // namespace burin::codegen
