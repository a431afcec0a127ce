#include "codegen/gpu/contraction/TensorCore.h"
#include "codegen/gpu/Block.h"

using namespace mlir;

namespace burin::codegen {
namespace {

constexpr int64_t kCopied = 16;                        // bytes of an asynchronous copy
constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3; // address spaces

Value word(KernelBuilder &k, int32_t n) { return arith::ConstantIntOp::create(k.b, k.loc, k.b.getI32Type(), n); }

Value inSpace(KernelBuilder &k, Value pointer, unsigned space) {
  auto type = LLVM::LLVMPointerType::get(k.b.getContext(), space);
  return pointer.getType() == type ? pointer : LLVM::AddrSpaceCastOp::create(k.b, k.loc, type, pointer).getResult();
}

void call(KernelBuilder &k, llvm::StringRef name, ValueRange operands) {
  LLVM::CallIntrinsicOp::create(k.b, k.loc, k.b.getStringAttr(name), operands);
}

/// Calls an intrinsic that returns a struct; returns its fields.
SmallVector<Value> callForMany(KernelBuilder &k, llvm::StringRef name, Type field, int64_t count, ValueRange operands) {
  auto type = LLVM::LLVMStructType::getLiteral(k.b.getContext(), SmallVector<Type>(size_t(count), field));
  Value all = LLVM::CallIntrinsicOp::create(k.b, k.loc, type, k.b.getStringAttr(name), operands).getResult(0);
  SmallVector<Value> fields;
  for (int64_t i = 0; i < count; ++i)
    fields.push_back(LLVM::ExtractValueOp::create(k.b, k.loc, all, i));
  return fields;
}

} // namespace

SwizzledTile SwizzledTile::make(KernelBuilder &k, DType dtype, int64_t rows) {
  return {sharedArray(k, k.storageType(dtype), rows * kRow * 2 / int64_t(byteWidth(dtype))), dtype};
}

// Two rows of 64 bytes fill the 32 banks, so the swizzle changes every two rows.
Value SwizzledTile::pieceAt(KernelBuilder &k, Value row, Value piece, int64_t elementsOfPiece) {
  Value rotation = k.rem(k.div(row, k.constant(2)), k.constant(kPieces));
  Value place = arith::XOrIOp::create(k.b, k.loc, piece, rotation);
  return k.add(k.mul(row, k.constant(kPieces * elementsOfPiece)), k.mul(place, k.constant(elementsOfPiece)));
}

SmallVector<Value> SwizzledTile::load(KernelBuilder &k, Value row, Value piece, bool transposed) const {
  Value address =
      inSpace(k, k.elementPointer(memory(), pieceAt(k, row, piece, kCopied / int64_t(byteWidth(dtype)))), kSharedSpace);
  return callForMany(k,
                     transposed ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16"
                                : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
                     k.b.getI32Type(), 4, address);
}

SmallVector<Value> multiplyMatrices(KernelBuilder &k, DType dtype, ArrayRef<Value> a, ArrayRef<Value> b,
                                    ArrayRef<Value> c) {
  const bool isHalf = dtype == DType::f16;
  SmallVector<Value> operands;
  for (Value v : llvm::concat<const Value>(a, b))
    operands.push_back(
        isHalf ? LLVM::BitcastOp::create(k.b, k.loc, VectorType::get({2}, k.b.getF16Type()), v).getResult() : v);
  llvm::append_range(operands, c);
  return callForMany(k, isHalf ? "llvm.nvvm.mma.m16n8k16.row.col.f32.f32" : "llvm.nvvm.mma.m16n8k16.row.col.bf16",
                     k.b.getF32Type(), 4, operands);
}

// Eight columns are 32 bytes, so each of four steps has another quarter of the banks.
Value SwizzledSteps::pieceAt(KernelBuilder &k, Value sharedRow, Value piece) {
  Value rotation = k.mul(k.rem(sharedRow, k.constant(4)), k.constant(2));
  Value place = arith::XOrIOp::create(k.b, k.loc, piece, rotation);
  return k.add(k.mul(sharedRow, k.constant(kSharedRow)), k.mul(place, k.constant(kPiece)));
}

/// Byte i of the result is byte number (selector >> 4 * i) % 8 of both words.
static Value pickBytes(KernelBuilder &k, Value low, Value high, int32_t selector) {
  return LLVM::CallIntrinsicOp::create(k.b, k.loc, k.b.getI32Type(), k.b.getStringAttr("llvm.nvvm.prmt"),
                                       ValueRange{low, high, word(k, selector)})
      .getResult(0);
}

SmallVector<Value> multiplyBytes(KernelBuilder &k, DType left, DType right, ArrayRef<Value> a, ArrayRef<Value> b,
                                 ArrayRef<Value> c) {
  SmallVector<Value> operands(a);
  llvm::append_range(operands, b);
  llvm::append_range(operands, c);
  auto letters = [](DType type) { return std::string(type == DType::u8 ? ".u8" : ".s8"); };
  std::string types = left == right ? letters(left) : letters(left) + letters(right);
  return callForMany(k, "llvm.nvvm.mma.m16n8k32.row.col" + types, k.b.getI32Type(), 4, operands);
}

// f8e5m2 is the upper half of an f16. The exponent and mantissa of an f8e4m3fn move down by one bit, whereby the
// exponent counts 8 less; NaN is the only number that gets to bit 14 when its last bit is added there.
std::array<Value, 2> widenFloat8(KernelBuilder &k, DType type, Value bytes) {
  constexpr int32_t kFirstBytes = 0x1404, kLastBytes = 0x3424; // each as the upper half of 16 bits
  auto masked = [&](Value x, uint32_t mask) {
    return arith::AndIOp::create(k.b, k.loc, x, word(k, int32_t(mask))).getResult();
  };
  auto either = [&](Value x, Value y) { return arith::OrIOp::create(k.b, k.loc, x, y).getResult(); };
  auto widen = [&](int32_t selector) {
    Value upper = pickBytes(k, bytes, word(k, 0), selector);
    if (type == DType::f8e5m2)
      return upper;
    Value half = masked(arith::ShRUIOp::create(k.b, k.loc, upper, word(k, 1)), 0x3f803f80);
    Value isNan = masked(arith::AddIOp::create(k.b, k.loc, half, word(k, 0x00800080)), 0x40004000);
    return either(either(masked(upper, 0x80008000), half), isNan);
  };
  return {widen(kFirstBytes), widen(kLastBytes)};
}

Value roundToTf32(KernelBuilder &k, Value x) {
  return LLVM::CallIntrinsicOp::create(k.b, k.loc, k.b.getI32Type(), k.b.getStringAttr("llvm.nvvm.f2tf32.rna"), x)
      .getResult(0);
}

SmallVector<Value> multiplyTf32(KernelBuilder &k, ArrayRef<Value> a, ArrayRef<Value> b, ArrayRef<Value> c) {
  SmallVector<Value> operands(a);
  llvm::append_range(operands, b);
  llvm::append_range(operands, c);
  return callForMany(k, "llvm.nvvm.mma.m16n8k8.row.col.tf32", k.b.getF32Type(), 4, operands);
}

Value exp2Approximately(KernelBuilder &k, Value x) {
  return LLVM::CallIntrinsicOp::create(k.b, k.loc, k.b.getF32Type(), k.b.getStringAttr("llvm.nvvm.ex2.approx.ftz"), x)
      .getResult(0);
}

Value packPair(KernelBuilder &k, DType dtype, Value low, Value high) {
  const bool isHalf = dtype == DType::f16;
  Type type = VectorType::get({2}, isHalf ? Type(k.b.getF16Type()) : Type(k.b.getBF16Type()));
  llvm::StringRef name = isHalf ? "llvm.nvvm.ff2f16x2.rn" : "llvm.nvvm.ff2bf16x2.rn";
  Value pair = LLVM::CallIntrinsicOp::create(k.b, k.loc, type, k.b.getStringAttr(name), {high, low}).getResult(0);
  return LLVM::BitcastOp::create(k.b, k.loc, k.b.getI32Type(), pair);
}

// The difference of an f32 and its rounded form is exact: it has at most 17 bits, the last one that of the f32.
Bf16Terms splitPair(KernelBuilder &k, Value first, Value second) {
  auto number = [&](Value bits) { return arith::BitcastOp::create(k.b, k.loc, k.b.getF32Type(), bits).getResult(); };
  Value high = packPair(k, DType::bf16, first, second);
  Value firstHigh = number(arith::ShLIOp::create(k.b, k.loc, high, word(k, 16)));
  Value secondHigh = number(arith::AndIOp::create(k.b, k.loc, high, word(k, int32_t(0xffff0000))));
  Value low = packPair(k, DType::bf16, arith::SubFOp::create(k.b, k.loc, first, firstHigh),
                       arith::SubFOp::create(k.b, k.loc, second, secondHigh));
  return {high, low};
}

void copyAsync(KernelBuilder &k, Value shared, Value global, Value isThere) {
  Value bytes = arith::SelectOp::create(k.b, k.loc, isThere, word(k, kCopied), word(k, 0));
  call(k, "llvm.nvvm.cp.async.cg.shared.global.16.s",
       {inSpace(k, shared, kSharedSpace), inSpace(k, global, kGlobalSpace), bytes});
}

void commitCopies(KernelBuilder &k) { call(k, "llvm.nvvm.cp.async.commit.group", {}); }

void waitForCopies(KernelBuilder &k, int64_t groups) {
  call(k, "llvm.nvvm.cp.async.wait.group", word(k, int32_t(groups)));
}

} // namespace burin::codegen
