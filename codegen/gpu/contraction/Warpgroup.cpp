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

/// Assembly with registers of f32 or i32 as results, its operands $0, $1, …; they begin as `before`, unless that is
/// empty. `further` are the operands behind them.
SmallVector<Value> changeRegisters(KernelBuilder &k, const std::string &text, Type type, size_t count,
                                   ArrayRef<Value> before, ArrayRef<Value> further,
                                   llvm::StringRef furtherConstraints) {
  std::string outputs, inputs;
  for (size_t i = 0; i < count; ++i) {
    outputs += std::string(i ? "," : "") + (type.isF32() ? "=f" : "=r");
    inputs += before.empty() ? "" : "," + std::to_string(i);
  }
  SmallVector<Value> operands(before);
  llvm::append_range(operands, further);
  auto all = LLVM::LLVMStructType::getLiteral(k.b.getContext(), SmallVector<Type>(count, type));
  Value result =
      LLVM::InlineAsmOp::create(k.b, k.loc, all, operands, text, outputs + inputs + furtherConstraints.str(),
                                /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None, {}, {})
          .getResult(0);
  SmallVector<Value> changed;
  for (size_t i = 0; i < count; ++i)
    changed.push_back(LLVM::ExtractValueOp::create(k.b, k.loc, result, int64_t(i)));
  return changed;
}

/// "$0, $1, …" of so many operands.
std::string listed(size_t first, size_t count) {
  std::string text;
  for (size_t i = first; i < first + count; ++i)
    text += (i > first ? ", $" : "$") + std::to_string(i);
  return text;
}

/// The name of a type in wgmma.
std::string textOf(DType type) {
  switch (type) {
  case DType::f16:
    return "f16";
  case DType::bf16:
    return "bf16";
  case DType::f8e4m3fn:
    return "e4m3";
  case DType::f8e5m2:
    return "e5m2";
  default:
    return type == DType::u8 ? "u8" : "s8";
  }
}

SmallVector<Value> startProduct(KernelBuilder &k, ProductTypes types, ArrayRef<Value> left, Value right,
                                RightRows rightRows, size_t count, ArrayRef<Value> before) {
  const size_t first = count + before.size(); // of the operands behind the sums
  const bool isInRegisters = left.size() > 1, isOfIntegers = isInteger(types.left);
  const int64_t width = int64_t(byteWidth(types.left));
  const std::string leftText = isInRegisters ? "{" + listed(first, left.size()) + "}" : listed(first, 1);
  // Neither side changes its sign. Of 16-bit floats, a left side in memory is not transposed; the right side is if its
  // rows are steps.
  std::string flags = isOfIntegers ? "" : ", 1, 1";
  if (width == 2)
    flags += std::string(isInRegisters ? "" : ", 0") + (rightRows == RightRows::Steps ? ", 1" : ", 0");
  std::string text = "{\n.reg .pred %adds;\nsetp.ne.b32 %adds, " + std::string(before.empty() ? "0" : "1") +
                     ", 0;\nwgmma.mma_async.sync.aligned.m64n" + std::to_string(2 * count) + "k" +
                     std::to_string(kProductBytes / width) + (isOfIntegers ? ".s32." : ".f32.") + textOf(types.left) +
                     "." + textOf(types.right) + " {" + listed(0, count) + "}, " + leftText + ", " +
                     listed(first + left.size(), 1) + ", %adds" + flags + ";\n}";
  SmallVector<Value> operands(left);
  operands.push_back(right);
  Type sum = isOfIntegers ? Type(k.b.getI32Type()) : Type(k.b.getF32Type());
  return changeRegisters(k, text, sum, count, before, operands, isInRegisters ? ",r,r,r,r,l" : ",l,l");
}

} // namespace

Value PhaseBarriers::at(KernelBuilder &k, Value barrier) const {
  return k.elementPointer({pointer, DType::i64, {}}, barrier);
}

void PhaseBarriers::init(KernelBuilder &k, int64_t barrier, Value arrivals) const {
  Value count = arith::TruncIOp::create(k.b, k.loc, k.b.getI32Type(), arrivals);
  call(k, "llvm.nvvm.mbarrier.init.shared", {at(k, k.constant(barrier)), count});
}

void PhaseBarriers::arriveExpecting(KernelBuilder &k, Value barrier, int64_t bytes) const {
  call(k, "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta", k.b.getI64Type(),
       {at(k, barrier), word(k, int32_t(bytes))});
}

void PhaseBarriers::copyBox(KernelBuilder &k, Value barrier, Value to, Value map, ArrayRef<Value> coordinates) const {
  constexpr unsigned kClusterSpace = 7; // shared memory of the blocks of a cluster; this block is one of its own
  auto cluster = LLVM::LLVMPointerType::get(k.b.getContext(), kClusterSpace);
  auto flag = [&](bool on) -> Value { return arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(on)); };
  SmallVector<Value> operands{LLVM::AddrSpaceCastOp::create(k.b, k.loc, cluster, to), at(k, barrier), map};
  for (Value x : coordinates)
    operands.push_back(arith::TruncIOp::create(k.b, k.loc, k.b.getI32Type(), x));
  Value noMask = arith::ConstantIntOp::create(k.b, k.loc, k.b.getI16Type(), 0);
  // Neither multicast nor a cache policy; one block per copy.
  operands.append({noMask, k.constant(0), flag(false), flag(false), word(k, 0)});
  call(k, "llvm.nvvm.cp.async.bulk.tensor.g2s.tile." + std::to_string(coordinates.size()) + "d", operands);
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

SliceBarriers SliceBarriers::at(KernelBuilder &k, Value pointer, int64_t stages) {
  Value second = k.elementPointer({pointer, DType::i64, {}}, k.constant(stages));
  return {{pointer}, {second}, stages};
}

void SliceBarriers::init(KernelBuilder &k, Value writing, int64_t reading) const {
  for (int64_t stage = 0; stage < stages; ++stage) {
    isThere.init(k, stage, writing);
    isRead.init(k, stage, reading);
  }
}

Value SliceBarriers::stageOf(KernelBuilder &k, Value slice) const { return k.rem(slice, k.constant(stages)); }

Value SliceBarriers::parityOf(KernelBuilder &k, Value slice, int64_t phasesLater) const {
  Value phase = k.add(k.div(slice, k.constant(stages)), k.constant(phasesLater));
  return arith::TruncIOp::create(k.b, k.loc, k.b.getI32Type(), k.rem(phase, k.constant(2)));
}

void SliceBarriers::waitUntilThere(KernelBuilder &k, Value slice) const {
  isThere.wait(k, stageOf(k, slice), parityOf(k, slice, 0));
}

// The phase before the first one counts as ended.
void SliceBarriers::waitUntilFree(KernelBuilder &k, Value slice) const {
  isRead.wait(k, stageOf(k, slice), parityOf(k, slice, 1));
}

// Eight rows of 128 bytes fill the 32 banks eight times, so each row has an order of its own.
Value SwizzledRows::pieceAt(KernelBuilder &k, Value row, Value piece, int64_t elementsOfPiece) {
  Value place = arith::XOrIOp::create(k.b, k.loc, piece, k.rem(row, k.constant(kPieces)));
  return k.add(k.mul(row, k.constant(kPieces * elementsOfPiece)), k.mul(place, k.constant(elementsOfPiece)));
}

Value matrixDescriptor(KernelBuilder &k, Value pointer, int64_t panelBytes, int64_t groupBytes, int64_t rowBytes) {
  // Bits 0-13: address, 16-29: panels, 32-45: groups, all of them in units of 16 bytes; 62-63: 1 for shared rows of 128
  // bytes, 2 for those of 64.
  constexpr int64_t kAddresses = (1 << 18) - 1, kUnit = 16;
  const uint64_t order = uint64_t(rowBytes == 64 ? 2 : 1) << 62;
  Value address = LLVM::PtrToIntOp::create(k.b, k.loc, k.b.getI64Type(), pointer);
  Value start = k.div(arith::AndIOp::create(k.b, k.loc, address, k.constant(kAddresses)), k.constant(kUnit));
  Value rest = k.constant(int64_t(order | uint64_t(groupBytes / kUnit) << 32 | uint64_t(panelBytes / kUnit) << 16));
  return arith::OrIOp::create(k.b, k.loc, start, rest);
}

SmallVector<Value> multiplyMatrices(KernelBuilder &k, ProductTypes types, ArrayRef<Value> left, Value right,
                                    RightRows rightRows, ArrayRef<Value> sums) {
  return startProduct(k, types, left, right, rightRows, sums.size(), sums);
}
SmallVector<Value> multiplyMatrices(KernelBuilder &k, ProductTypes types, ArrayRef<Value> left, Value right,
                                    RightRows rightRows, int64_t count) {
  return startProduct(k, types, left, right, rightRows, size_t(count), {});
}

void beginProducts(KernelBuilder &k) { call(k, "llvm.nvvm.wgmma.fence.sync.aligned", {}); }
void commitProducts(KernelBuilder &k) { call(k, "llvm.nvvm.wgmma.commit_group.sync.aligned", {}); }

void waitForProducts(KernelBuilder &k, int64_t groups) {
  Value most = arith::ConstantIntOp::create(k.b, k.loc, k.b.getI64Type(), groups);
  call(k, "llvm.nvvm.wgmma.wait_group.sync.aligned", most);
}

SmallVector<Value> finishProducts(KernelBuilder &k, ArrayRef<Value> sums, int64_t groups) {
  const std::string text = "wgmma.wait_group.sync.aligned " + std::to_string(groups) + ";";
  return changeRegisters(k, text, sums[0].getType(), sums.size(), sums, {}, ",~{memory}");
}

void storeSums(KernelBuilder &k, const Memory &memory, int64_t pitch, Value lane, ArrayRef<Value> sums) {
  Value sharedRow = k.div(lane, k.constant(4)), first = k.mul(k.rem(lane, k.constant(4)), k.constant(2));
  for (size_t i = 0; i < sums.size(); i += 2) {
    Value row = k.add(sharedRow, k.constant(int64_t(i / 2 % 2 * 8))),
          column = k.add(first, k.constant(int64_t(i / 4 * 8)));
    Value pair = vector::FromElementsOp::create(k.b, k.loc, VectorType::get({2}, sums[i].getType()),
                                                ValueRange{sums[i], sums[i + 1]});
    LLVM::StoreOp::create(k.b, k.loc, pair, k.elementPointer(memory, k.add(k.mul(row, k.constant(pitch)), column)),
                          /*alignment=*/2 * sizeof(float));
  }
}

void showToProducts(KernelBuilder &k) { call(k, "llvm.nvvm.fence.proxy.async.shared_cta", {}); }

void takeRegisters(KernelBuilder &k, int64_t count) {
  call(k, "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32", word(k, int32_t(count)));
}
void leaveRegisters(KernelBuilder &k, int64_t count) {
  call(k, "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32", word(k, int32_t(count)));
}

} // namespace burin::codegen
