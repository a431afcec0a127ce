#include "codegen/kernels/contraction/ZeroRow.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

Dim ZeroRow::elements(const ContractionSchedule &s) {
  ContractOp op = s.op;
  return max((shapeOf(op.getLhs()).back() - 1) * s.left.strides.back() + 1, 1);
}

ZeroRow::ZeroRow(KernelBuilder &k, ContractionSchedule &s) : k(k), s(s) {
  const Memory zeros{k.scratch, s.left.memory.dtype, {}};
  Type element = k.storageType(zeros.dtype);
  const int64_t lanes = k.target.lanes(byteWidth(zeros.dtype));
  Value count = k.dim(elements(s)), whole = k.mul(k.div(count, k.constant(lanes)), k.constant(lanes));
  Value one = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(element));
  Value many = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(VectorType::get({lanes}, element)));
  k.loop(k.constant(0), whole, k.constant(lanes), [&](Value at) { k.store(zeros, {at, 1}, many, lanes, {}); });
  k.loop(whole, count, k.constant(1), [&](Value at) { k.store(zeros, {at}, one, 1, {}); });
}

SmallVector<Value> ZeroRow::redirected(SmallVector<Value> offsets, ArrayRef<Value> rows, Value lhsAt, Value tap,
                                       Value row, int64_t sureRows) {
  using enum arith::CmpIPredicate;
  const Memory &lhs = s.left.memory;
  const size_t last = s.op.getKernel().size() - 1;
  const int64_t stride = s.op.getStrides()[last], dilation = s.op.getDilations()[last], low = s.op.getPadding()[last],
                high = s.op.getPadding().back();
  auto address = [&](Value pointer) -> Value {
    return LLVM::PtrToIntOp::create(k.b, k.loc, k.b.getI64Type(), pointer);
  };
  Value bytes = k.sub(address(k.scratch), address(k.elementPointer(lhs, lhsAt)));
  Value toZeros = arith::DivSIOp::create(k.b, k.loc, bytes, k.constant(byteWidth(lhs.dtype)));
  Value first = k.sub(k.add(k.mul(row, k.constant(stride)), k.mul(tap, k.constant(dilation))), k.constant(low));
  Value size = k.dim(shapeOf(s.op.getLhs())[s.along.dim]);
  for (int64_t r = 0; r < int64_t(offsets.size()); ++r) {
    Value position = k.add(first, k.mul(rows[r], k.constant(stride))), isOutside;
    auto note = [&](Value condition) {
      isOutside = isOutside ? arith::OrIOp::create(k.b, k.loc, isOutside, condition) : condition;
    };
    if (low > std::min(r, sureRows - 1) * stride)
      note(k.compare(slt, position, k.constant(0)));
    if (high > (sureRows - 1 - r) * stride)
      note(k.compare(sge, position, size));
    if (isOutside)
      offsets[r] = arith::SelectOp::create(k.b, k.loc, isOutside, toZeros, offsets[r]);
  }
  return offsets;
}

} // namespace burin::codegen
