#include "codegen/gpu/Block.h"

using namespace mlir;

namespace burin::codegen {
namespace {

constexpr unsigned kSharedSpace = 3;
constexpr int32_t kWholeWarp = -1, kLastLane = 31, kFirstLane = 0; // shuffles: mask of lanes, bounds of source lanes

Value word(KernelBuilder &k, int32_t n) { return arith::ConstantIntOp::create(k.b, k.loc, k.b.getI32Type(), n); }

Value callIntrinsic(KernelBuilder &k, llvm::StringRef name, Type result, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(k.b, k.loc, result, k.b.getStringAttr(name), operands).getResult(0);
}

/// Shuffles an integer or float of 8 to 64 bits, as 32-bit words. `how` is the mode of shfl.sync, `lane` an i32.
Value shuffled(KernelBuilder &k, Value v, llvm::StringRef how, Value lane) {
  auto move = [&](Value x) {
    return callIntrinsic(k, ("llvm.nvvm.shfl.sync." + how + ".i32").str(), k.b.getI32Type(),
                         {word(k, kWholeWarp), x, lane, word(k, how == "up" ? kFirstLane : kLastLane)});
  };
  Type type = v.getType(), i32 = k.b.getI32Type();
  unsigned bits = type.getIntOrFloatBitWidth();
  Type integer = k.b.getIntegerType(bits);
  Value x = type == integer ? v : arith::BitcastOp::create(k.b, k.loc, integer, v).getResult();
  if (bits < 32) {
    x = arith::TruncIOp::create(k.b, k.loc, integer, move(arith::ExtUIOp::create(k.b, k.loc, i32, x)));
  } else if (bits == 32) {
    x = move(x);
  } else {
    Value half = arith::ConstantIntOp::create(k.b, k.loc, integer, 32);
    Value low = move(arith::TruncIOp::create(k.b, k.loc, i32, x));
    Value high = move(arith::TruncIOp::create(k.b, k.loc, i32, arith::ShRUIOp::create(k.b, k.loc, x, half)));
    high = arith::ShLIOp::create(k.b, k.loc, arith::ExtUIOp::create(k.b, k.loc, integer, high), half);
    x = arith::OrIOp::create(k.b, k.loc, high, arith::ExtUIOp::create(k.b, k.loc, integer, low));
  }
  return type == integer ? x : arith::BitcastOp::create(k.b, k.loc, type, x).getResult();
}

} // namespace

Value threadIndex(KernelBuilder &k) { return k.special("tid.x"); }
Value blockCount(KernelBuilder &k) { return k.special("nctaid.x"); }

void warpBarrier(KernelBuilder &k) {
  LLVM::CallIntrinsicOp::create(k.b, k.loc, k.b.getStringAttr("llvm.nvvm.bar.warp.sync"),
                                ValueRange{word(k, kWholeWarp)});
}

void barrier(KernelBuilder &k) {
  LLVM::CallIntrinsicOp::create(k.b, k.loc, k.b.getStringAttr("llvm.nvvm.barrier.cta.sync.aligned.all"),
                                ValueRange{word(k, 0)});
}

Value shuffleDown(KernelBuilder &k, Value v, int64_t distance) {
  return shuffled(k, v, "down", word(k, int32_t(distance)));
}
Value shuffleUp(KernelBuilder &k, Value v, int64_t distance) {
  return shuffled(k, v, "up", word(k, int32_t(distance)));
}
Value shuffleAcross(KernelBuilder &k, Value v, int64_t mask) { return shuffled(k, v, "bfly", word(k, int32_t(mask))); }
Value shuffleAcross(KernelBuilder &k, Value v, Value mask) {
  return shuffled(k, v, "bfly", arith::TruncIOp::create(k.b, k.loc, k.b.getI32Type(), mask));
}
Value shuffleFirst(KernelBuilder &k, Value v) { return shuffled(k, v, "idx", word(k, 0)); }

Value sharedArray(KernelBuilder &k, Type element, int64_t count) {
  auto module = k.b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto globals = module.getOps<LLVM::GlobalOp>();
  std::string name = "shared" + std::to_string(std::distance(globals.begin(), globals.end()));
  constexpr unsigned alignment = 16;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto global =
      LLVM::GlobalOp::create(b, k.loc, LLVM::LLVMArrayType::get(element, uint64_t(count)),
                             /*isConstant=*/false, LLVM::Linkage::Internal, name, Attribute(), alignment, kSharedSpace);
  return LLVM::AddressOfOp::create(k.b, k.loc, global);
}

Value sharedPool(KernelBuilder &k) {
  constexpr llvm::StringLiteral name = "sharedPool";
  constexpr unsigned alignment = 1024;
  auto module = k.b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto pool = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!pool) {
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    pool = LLVM::GlobalOp::create(b, k.loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0), /*isConstant=*/false,
                                  LLVM::Linkage::External, name, Attribute(), alignment, kSharedSpace);
  }
  return LLVM::AddressOfOp::create(k.b, k.loc, pool);
}

void assumeAligned(KernelBuilder &k, Value pointer, int64_t bytes) {
  Value isTrue = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
  LLVM::AssumeOp::create(k.b, k.loc, isTrue, LLVM::AssumeAlignTag(), pointer, k.constant(bytes));
}

static constexpr int64_t kMovedBytes = 16; // of one load or store

static SmallVector<Value> pointersOf(ElementEmitter &e, Block &body, ArrayRef<Value> results) {
  SmallVector<Value> all;
  for (BlockArgument v : body.getArguments())
    all.push_back(e.memoryOf(v)->pointer);
  llvm::append_range(all, results);
  return all;
}

Value operandsAligned(ElementEmitter &e, Block &body, ArrayRef<Value> results) {
  KernelBuilder &k = e.k;
  Value any = k.constant(0); // bitwise or of all addresses
  for (Value pointer : pointersOf(e, body, results))
    any = arith::OrIOp::create(k.b, k.loc, any, LLVM::PtrToIntOp::create(k.b, k.loc, k.b.getI64Type(), pointer));
  Value rest = arith::AndIOp::create(k.b, k.loc, any, k.constant(kMovedBytes - 1));
  return k.compare(arith::CmpIPredicate::eq, rest, k.constant(0));
}

void assumeOperandsAligned(ElementEmitter &e, Block &body, ArrayRef<Value> results) {
  for (Value pointer : pointersOf(e, body, results))
    assumeAligned(e.k, pointer, kMovedBytes);
}

} // namespace burin::codegen
