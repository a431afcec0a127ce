#include "codegen/kernels/contraction/microkernel/CompressedRow.h"
#include "codegen/scalar/Elementwise.h"

using namespace mlir;
using arith::CmpFPredicate;

namespace burin::codegen {

constexpr int64_t kAhead = 16;     // distance of the prefetched element; the list is padded by as many
constexpr int64_t kWorthwhile = 8; // the list pays off if one element in so many is zero
constexpr DType kPlace = DType::i32;

CompressedRow::CompressedRow(KernelBuilder &k, Memory row, Value start, Dim size, DType type)
    : k(k), row(std::move(row)), start(start), size(std::move(size)) {
  values = {k.scratch, type, {}};
  places = {k.elementPointer(values, k.dim(this->size)), kPlace, {}};
}

Dim CompressedRow::scratchBytes(const Dim &size, DType type) {
  return size * Dim(int64_t(byteWidth(type) + byteWidth(kPlace))) + Dim(kAhead * int64_t(byteWidth(kPlace)));
}

Value CompressedRow::paysOff() {
  int64_t lanes = k.target.lanes(4);
  Value whole = k.mul(k.div(k.dim(size), k.constant(lanes)), k.constant(lanes));
  auto counts = VectorType::get({lanes}, k.b.getI32Type());
  Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(counts));
  Value zeros = k.loop(k.constant(0), whole, k.constant(lanes), none, [&](Value i, ValueRange sum) {
    Value x = castLanes(k.b, k.loc, k.load(row, {k.add(start, i), 1}, lanes, {}), row.dtype, values.dtype);
    Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(x.getType()));
    Value isZero = arith::CmpFOp::create(k.b, k.loc, CmpFPredicate::OEQ, x, zero);
    Value one = arith::ExtUIOp::create(k.b, k.loc, counts, isZero);
    return SmallVector<Value>{arith::AddIOp::create(k.b, k.loc, sum[0], one)};
  })[0];
  zeros = vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::ADD, zeros);
  zeros = arith::ExtUIOp::create(k.b, k.loc, k.b.getI64Type(), zeros);
  return k.compare(arith::CmpIPredicate::sgt, k.mul(zeros, k.constant(kWorthwhile)), k.dim(size));
}

void CompressedRow::list(Value period) {
  auto note = [&](Value number, Value at) {
    at = arith::TruncIOp::create(k.b, k.loc, k.b.getI32Type(), at);
    k.store(places, {number}, at, 1, {});
  };
  // Every element is stored, and overwritten by the next one if it is zero: no branches to mispredict.
  count = k.loop(k.constant(0), k.dim(size), k.constant(1), k.constant(0), [&](Value i, ValueRange number) {
    Value x = castLanes(k.b, k.loc, k.load(row, {k.add(start, i)}, 1, {}), row.dtype, values.dtype);
    k.store(values, {number[0]}, x, 1, {});
    note(number[0], i);
    Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(x.getType()));
    Value counts = arith::CmpFOp::create(k.b, k.loc, CmpFPredicate::UNE, x, zero);
    return SmallVector<Value>{k.add(number[0], arith::ExtUIOp::create(k.b, k.loc, k.b.getI64Type(), counts))};
  })[0];
  k.loop(k.constant(0), k.constant(kAhead), k.constant(1), [&](Value i) {
    Value first = k.minimum(i, k.maximum(k.sub(count, k.constant(1)), k.constant(0)));
    note(k.add(count, i), k.add(place(first), period));
  });
}

Value CompressedRow::place(Value number) {
  return arith::ExtUIOp::create(k.b, k.loc, k.b.getI64Type(), k.load(places, {number}, 1, {}));
}
Value CompressedRow::placeAhead(Value number) { return place(k.add(number, k.constant(kAhead))); }

} // namespace burin::codegen
