#include "codegen/emit/Reducer.h"
#include "codegen/emit/element/ElementEmitter.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace burin::ir;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

namespace burin::codegen {

Reducer::Reducer(KernelBuilder &k, Operation *op) : op(op), k(k), operandType(dtypeOf(op->getOperand(0))) {
  kind = llvm::TypeSwitch<Operation *, Kind>(op)
             .Case<ReduceSumOp, ReduceAverageOp>([](auto) { return Kind::Sum; })
             .Case([](ReduceProdOp) { return Kind::Product; })
             .Case<ReduceMaxOp, ReduceMaxNumOp, ArgmaxOp>([](auto) { return Kind::Max; })
             .Case<ReduceMinOp, ArgminOp>([](auto) { return Kind::Min; })
             .Case([](ReduceAnyOp) { return Kind::Any; })
             .Case([](ReduceAllOp) { return Kind::All; });
  isArg = isa<ArgmaxOp, ArgminOp>(op);
  ignoresNaN = isa<ReduceMaxNumOp>(op);
  if (auto average = dyn_cast<ReduceAverageOp>(op))
    squares = average.getSquared();
  type = isArg ? operandType : dtypeOf(op->getResult(0));
  if (type == DType::f16 || type == DType::bf16)
    type = DType::f32;
}

Value Reducer::identityElement() {
  Type element = k.storageType(type);
  unsigned bits = element.getIntOrFloatBitWidth();
  bool isUnsigned = type == DType::u8 || type == DType::boolean;
  auto constant = [&](TypedAttr value) -> Value { return arith::ConstantOp::create(k.b, k.loc, value); };
  auto number = [&](double value) {
    if (isFloat(type))
      return constant(k.b.getFloatAttr(element, value));
    return constant(k.b.getIntegerAttr(element, int64_t(value)));
  };
  switch (kind) {
  case Kind::Sum:
  case Kind::Any:
    return number(0);
  case Kind::Product:
  case Kind::All:
    return number(1);
  case Kind::Max:
    if (isFloat(type))
      return number(-INFINITY);
    return constant(
        k.b.getIntegerAttr(element, isUnsigned ? APInt::getMinValue(bits) : APInt::getSignedMinValue(bits)));
  case Kind::Min:
    if (isFloat(type))
      return number(INFINITY);
    return constant(
        k.b.getIntegerAttr(element, isUnsigned ? APInt::getMaxValue(bits) : APInt::getSignedMaxValue(bits)));
  }
  llvm_unreachable("kind");
}

SmallVector<Value> Reducer::identity(int64_t width) {
  SmallVector<Value> accumulator{k.broadcast(identityElement(), width)};
  if (isArg) // no position yet
    accumulator.push_back(k.broadcast(k.constant(INT64_MAX), width));
  return accumulator;
}

Value Reducer::apply(Value x, Value y) {
  auto &b = k.b;
  mlir::Location loc = k.loc;
  bool isUnsigned = type == DType::u8 || type == DType::boolean;
  // Of LLVM's functions; arith's ops become a comparison and a select.
  const bool isOneInstruction = type == DType::f32 && k.target.isGpu();
  switch (kind) {
  case Kind::Sum:
    return isFloat(type) ? Value(arith::AddFOp::create(b, loc, x, y)) : Value(arith::AddIOp::create(b, loc, x, y));
  case Kind::Product:
    return isFloat(type) ? Value(arith::MulFOp::create(b, loc, x, y)) : Value(arith::MulIOp::create(b, loc, x, y));
  case Kind::Max:
    if (isOneInstruction && ignoresNaN)
      return LLVM::MaxNumOp::create(b, loc, x, y);
    if (ignoresNaN) // keeps x if y is NaN; LLVM makes one instruction of compare and select
      return arith::SelectOp::create(b, loc, arith::CmpFOp::create(b, loc, CmpFPredicate::OGT, y, x), y, x);
    if (isOneInstruction)
      return LLVM::MaximumOp::create(b, loc, x, y);
    if (isFloat(type))
      return arith::MaximumFOp::create(b, loc, x, y);
    return isUnsigned ? Value(arith::MaxUIOp::create(b, loc, x, y)) : Value(arith::MaxSIOp::create(b, loc, x, y));
  case Kind::Min:
    if (isOneInstruction)
      return LLVM::MinimumOp::create(b, loc, x, y);
    if (isFloat(type))
      return arith::MinimumFOp::create(b, loc, x, y);
    return isUnsigned ? Value(arith::MinUIOp::create(b, loc, x, y)) : Value(arith::MinSIOp::create(b, loc, x, y));
  case Kind::Any:
    return arith::OrIOp::create(b, loc, x, y);
  case Kind::All:
    return arith::AndIOp::create(b, loc, x, y);
  }
  llvm_unreachable("kind");
}

Value Reducer::takeIn(Value accumulator, Value x) {
  return squares ? Value(math::FmaOp::create(k.b, k.loc, x, x, accumulator)) : apply(accumulator, x);
}

SmallVector<Value> Reducer::step(ArrayRef<Value> accumulator, Value x, const Index &position, Value mask) {
  auto select = [&](Value on, Value off) -> Value { return arith::SelectOp::create(k.b, k.loc, mask, on, off); };
  x = castLanes(k.b, k.loc, x, operandType, type);
  if (!isArg) {
    Value next = takeIn(accumulator[0], x);
    return {mask ? select(next, accumulator[0]) : next};
  }
  int64_t width = k.laneCount(x);
  Value at = width == 1 ? position.base : k.lanesOf(position, width);
  SmallVector<Value> next = combine(accumulator, {x, at});
  if (mask)
    next = {select(next[0], accumulator[0]), select(next[1], accumulator[1])};
  return next;
}

// For argmax and argmin, the better of two (value, position) pairs: NaN first, then the better value, then the lower
// position.
SmallVector<Value> Reducer::combine(ArrayRef<Value> x, ArrayRef<Value> y) {
  if (!isArg)
    return {apply(x[0], y[0])};
  auto &b = k.b;
  mlir::Location loc = k.loc;
  auto both = [&](Value p, Value q) -> Value { return arith::AndIOp::create(b, loc, p, q); };
  auto either = [&](Value p, Value q) -> Value { return arith::OrIOp::create(b, loc, p, q); };
  Value better, equal;
  bool max = kind == Kind::Max;
  if (isFloat(type)) {
    Value xNan = arith::CmpFOp::create(b, loc, CmpFPredicate::UNO, x[0], x[0]);
    Value yNan = arith::CmpFOp::create(b, loc, CmpFPredicate::UNO, y[0], y[0]);
    Value beats = arith::CmpFOp::create(b, loc, max ? CmpFPredicate::OGT : CmpFPredicate::OLT, y[0], x[0]);
    Value isTrue = arith::ConstantOp::create(b, loc, b.getOneAttr(xNan.getType()));
    Value xNumber = arith::XOrIOp::create(b, loc, xNan, isTrue);
    better = either(beats, both(yNan, xNumber));
    equal = either(arith::CmpFOp::create(b, loc, CmpFPredicate::OEQ, x[0], y[0]), both(xNan, yNan));
  } else {
    bool isUnsigned = type == DType::u8 || type == DType::boolean;
    CmpIPredicate predicate = max ? (isUnsigned ? CmpIPredicate::ugt : CmpIPredicate::sgt)
                                  : (isUnsigned ? CmpIPredicate::ult : CmpIPredicate::slt);
    better = arith::CmpIOp::create(b, loc, predicate, y[0], x[0]);
    equal = arith::CmpIOp::create(b, loc, CmpIPredicate::eq, x[0], y[0]);
  }
  Value earlier = arith::CmpIOp::create(b, loc, CmpIPredicate::slt, y[1], x[1]);
  Value take = either(better, both(equal, earlier));
  return {arith::SelectOp::create(b, loc, take, y[0], x[0]), arith::SelectOp::create(b, loc, take, y[1], x[1])};
}

SmallVector<Value> Reducer::acrossLanes(ArrayRef<Value> accumulator) {
  SmallVector<Value> lanes(accumulator);
  while (k.laneCount(lanes[0]) > 1) {
    SmallVector<Value> low, high;
    for (Value v : lanes) {
      auto [lower, upper] = k.halves(v);
      low.push_back(lower);
      high.push_back(upper);
    }
    lanes = combine(low, high);
  }
  for (Value &v : lanes)
    v = vector::ExtractOp::create(k.b, k.loc, v, ArrayRef<int64_t>{0});
  return lanes;
}

Value Reducer::finish(ArrayRef<Value> accumulator, Value count) {
  DType resultType = dtypeOf(op->getResult(0));
  if (isArg)
    return accumulator[1];
  Value result = accumulator[0];
  if (auto average = dyn_cast<ReduceAverageOp>(op)) {
    Value n = k.sub(count, k.constant(average.getCorrection()));
    n = k.maximum(n, k.constant(0)); // as in PyTorch: too few elements give inf or NaN
    n = castLanes(k.b, k.loc, n, DType::i64, type);
    result = arith::DivFOp::create(k.b, k.loc, result, k.broadcast(n, k.laneCount(result)));
  }
  return castLanes(k.b, k.loc, result, type, resultType);
}

} // namespace burin::codegen
