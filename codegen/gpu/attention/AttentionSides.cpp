#include "codegen/gpu/attention/AttentionSides.h"
#include "codegen/scalar/Elementwise.h"
#include "codegen/scalar/math/Math.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

AttentionSides::AttentionSides(ElementEmitter &e, ScaledDotProductAttentionOp op)
    : e(e), k(e.k), op(op), type(dtypeOf(op.getResult())), shape(shapeOf(op.getResult())), leading(shape.size() - 2),
      rows(shape[leading]), width(shape.back()), keys(shapeOf(op.getKey())[leading]),
      depth(shapeOf(op.getKey()).back()), query(e.stridedMemoryOf(op.getQuery())), key(e.stridedMemoryOf(op.getKey())),
      value(e.stridedMemoryOf(op.getValue())), at(shape.size()) {
  for (size_t d = 0; d < leading; ++d)
    heads = heads * shape[d];
}

void AttentionSides::goToHead(Value head) {
  for (size_t d = leading; d-- > 0;) {
    at[d] = {d ? k.rem(head, k.dim(shape[d])) : head};
    head = d ? k.div(head, k.dim(shape[d])) : head;
  }
}

Value AttentionSides::rowStart(const StridedMemory &s, Value row) {
  Value start = k.mul(row, k.dim(s.strides[leading]));
  for (size_t d = 0; d < leading; ++d)
    start = k.add(start, k.mul(at[d].base, k.dim(s.strides[d])));
  return start;
}

Value AttentionSides::scale() {
  if (double given = op.getScale().convertToDouble(); given != 0)
    return number(given);
  if (depth.isStatic())
    return number(1 / std::sqrt(double(depth.value())));
  Value size = castLanes(k.b, k.loc, k.dim(depth), DType::i64, DType::f32);
  return (1 / sqrt(scalar(size))).value();
}

Value AttentionSides::keysBefore(Value end) { return op.getIsCausal() ? k.minimum(k.dim(keys), end) : k.dim(keys); }

Value AttentionSides::masked(Value score, Value row, Value key, int64_t lanes) {
  auto below = [&](Value end) { return lanes == 1 ? isBelow(key, end) : k.below(key, end, lanes); };
  Value isThere = below(k.dim(keys)), sees = isThere;
  if (op.getIsCausal())
    sees = arith::AndIOp::create(k.b, k.loc, sees, below(k.add(row, k.constant(1))));
  if (Value mask = op.getMask()) {
    Shape sizes = shapeOf(mask);
    SmallVector<Index> place(at);
    place[leading] = {row};
    place[leading + 1] = {key, lanes > 1 ? 1 : 0};
    place.erase(place.begin(), place.end() - sizes.size());
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] == Dim(1))
        place[d] = {k.constant(0)};
    Value element = e.zeroOf(dtypeOf(mask));
    // One element is read whatever the mask of lanes says, and rows of the tile may lie beyond the last one.
    element = k.when(isBelow(row, k.dim(rows)), {k.broadcast(element, lanes)}, [&]() -> SmallVector<Value> {
      k.width = lanes;
      e.mask = lanes > 1 ? isThere : Value();
      Value found = e.scoped([&] {
        return lanes > 1 ? e.element(mask, place)
                         : k.when(isThere, {e.zeroOf(dtypeOf(mask))}, [&]() -> SmallVector<Value> {
                             return {e.scoped([&] { return e.element(mask, place); })};
                           })[0];
      });
      e.mask = {};
      k.width = 1;
      return {k.broadcast(found, lanes)};
    })[0];
    if (isFloat(dtypeOf(mask)))
      score = arith::AddFOp::create(k.b, k.loc, score, castLanes(k.b, k.loc, element, dtypeOf(mask), DType::f32));
    else
      sees = arith::AndIOp::create(k.b, k.loc, sees, element);
  }
  return arith::SelectOp::create(k.b, k.loc, sees, score, k.broadcast(number(-INFINITY), lanes));
}

Value largerOf(KernelBuilder &k, Value x, Value y) {
  Value above = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OGT, x, y);
  return arith::SelectOp::create(k.b, k.loc, above, x, y);
}

} // namespace burin::codegen
