#include "codegen/gpu/attention/AttentionOperands.h"
#include "codegen/scalar/Elementwise.h"
#include "codegen/scalar/math/Math.h"
#include "llvm/Support/SaveAndRestore.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

/// The memory of an operand, or of its first rows if it joins several tensors: SplitAttention.cpp reads the others.
static StridedMemory firstRowsOf(ElementEmitter &e, Value v) {
  return e.stridedMemoryOf(passes::rowsViewsOf(v)[0].view);
}

template <class Op>
AttentionOperands::AttentionOperands(ElementEmitter &e, Op op, Shape of)
    : e(e), k(e.k), result(op.getResult()), mask(op.getMask()), isCausal(op.getIsCausal()),
      givenScale(op.getScale().convertToDouble()), type(dtypeOf(op.getResult())), shape(std::move(of)),
      leading(shape.size() - 2), rows(shape[leading]), width(shape.back()), keys(shapeOf(op.getKey())[leading]),
      depth(shapeOf(op.getKey()).back()), query(e.stridedMemoryOf(op.getQuery())), key(firstRowsOf(e, op.getKey())),
      value(firstRowsOf(e, op.getValue())), at(shape.size()) {
  for (size_t d = 0; d < leading; ++d)
    heads = heads * shape[d];
}

AttentionOperands::AttentionOperands(ElementEmitter &e, ScaledDotProductAttentionOp op)
    : AttentionOperands(e, op, shapeOf(op.getResult())) {}

AttentionOperands::AttentionOperands(ElementEmitter &e, AttentionGradientOp op)
    : AttentionOperands(e, op, shapeOf(op.getQuery())) {}

void AttentionOperands::goToHead(Value head) { placeHead(k, ArrayRef(shape).take_front(leading), head, at); }

Value AttentionOperands::rowStart(const StridedMemory &s, Value row) {
  return rowStartOf(k, s, ArrayRef(at).take_front(leading), row);
}

Value AttentionOperands::scale() {
  if (givenScale != 0)
    return number(givenScale);
  if (depth.isStatic())
    return number(1 / std::sqrt(double(depth.value())));
  Value size = castLanes(k.b, k.loc, k.dim(depth), DType::i64, DType::f32);
  return (1 / sqrt(scalar(size))).value();
}

Value AttentionOperands::keysBefore(Value end) { return isCausal ? k.minimum(k.dim(keys), end) : k.dim(keys); }

SmallVector<Index> AttentionOperands::maskPlace(Value row, Value firstKey, int64_t lanes) {
  Shape sizes = shapeOf(mask);
  SmallVector<Index> place(at);
  place[leading] = {row};
  place[leading + 1] = {firstKey, lanes > 1 ? 1 : 0};
  place.erase(place.begin(), place.end() - sizes.size()); // the mask broadcasts from the right
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == Dim(1))
      place[d] = {k.constant(0)};
  return place;
}

Value AttentionOperands::maskAt(Value row, Value keyIndex) {
  return e.scoped([&] { return e.element(mask, maskPlace(row, keyIndex, 1)); });
}

Value AttentionOperands::applyMask(Value score, Value element, Value sees) {
  if (element && isFloat(dtypeOf(mask)))
    score = arith::AddFOp::create(k.b, k.loc, score, castLanes(k.b, k.loc, element, dtypeOf(mask), DType::f32));
  else if (element)
    sees = sees ? arith::AndIOp::create(k.b, k.loc, sees, element).getResult() : element;
  Value hidden = k.broadcast(number(-INFINITY), k.laneCount(score));
  return sees ? arith::SelectOp::create(k.b, k.loc, sees, score, hidden).getResult() : score;
}

Value AttentionOperands::masked(Value score, Value row, Value firstKey, int64_t lanes) {
  auto below = [&](Value end) { return lanes == 1 ? isBelow(firstKey, end) : k.below(firstKey, end, lanes); };
  Value isThere = below(k.dim(keys)), sees = isThere, element;
  if (isCausal)
    sees = arith::AndIOp::create(k.b, k.loc, sees, below(k.add(row, k.constant(1))));
  if (mask) {
    SmallVector<Index> place = maskPlace(row, firstKey, lanes);
    element = e.zeroOf(dtypeOf(mask));
    // Two branches: a tile may have rows beyond the last one, and an element that all lanes share is loaded regardless
    // of e.mask.
    element = k.when(isBelow(row, k.dim(rows)), {k.broadcast(element, lanes)}, [&]() -> SmallVector<Value> {
      llvm::SaveAndRestore inLanes(k.width, lanes);
      llvm::SaveAndRestore existing(e.mask, lanes > 1 ? isThere : Value());
      Value found = e.scoped([&] {
        return lanes > 1 ? e.element(mask, place)
                         : k.when(isThere, {e.zeroOf(dtypeOf(mask))}, [&]() -> SmallVector<Value> {
                             return {e.scoped([&] { return e.element(mask, place); })};
                           })[0];
      });
      return {k.broadcast(found, lanes)};
    })[0];
  }
  return applyMask(score, element, sees);
}

Value largerOf(KernelBuilder &k, Value x, Value y) { return LLVM::MaxNumOp::create(k.b, k.loc, x, y); }

} // namespace burin::codegen
