#include "codegen/emit/element/Window.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

Index originOf(KernelBuilder &k, const Window &w, size_t d, const Index &at) {
  return k.shift(k.scale(at, k.constant(w.strides[d])), k.constant(-w.low[d]));
}

std::pair<Value, Value> tapsInside(KernelBuilder &k, Value origin, Value size, int64_t kernel, int64_t dilation) {
  Value none = k.constant(0), all = k.constant(kernel);
  auto stepsTo = [&](Value distance) {
    Value reach = k.add(k.maximum(distance, none), k.constant(dilation - 1));
    return k.minimum(k.div(reach, k.constant(dilation)), all);
  };
  return {stepsTo(k.sub(none, origin)), stepsTo(k.sub(size, origin))};
}

std::pair<Value, Value> tapsInside(KernelBuilder &k, const Window &w, size_t d, Value origin) {
  if (!w.isOpen(d))
    return {k.constant(0), k.constant(w.kernel[d])};
  return tapsInside(k, origin, k.dim(shapeOf(w.x)[w.firstSpatial + d]), w.kernel[d], w.dilations[d]);
}

SmallVector<TileRun> tilesOf(int64_t positions, int64_t tiles,
                             llvm::function_ref<bool(int64_t from, int64_t size)> isInside) {
  SmallVector<TileRun> runs;
  for (int64_t t = 0, from = 0; t < tiles; ++t) {
    int64_t size = positions / tiles + (t < positions % tiles);
    bool inside = isInside(from, size);
    if (inside && !runs.empty() && runs.back().inside && runs.back().size == size)
      ++runs.back().tiles;
    else
      runs.push_back({from, size, 1, t, inside});
    from += size;
  }
  return runs;
}

WindowRule::WindowRule(ElementEmitter &e, Operation *op)
    : type(dtypeOf(op->getResult(0))), sumType(passes::sumTypeOf(type)), e(e), k(e.k), op(op) {}

Value WindowRule::identity(int64_t lanes) {
  if (!isa<MaxPoolOp>(op))
    return k.broadcast(e.zeroOf(sumType), lanes);
  Type element = k.storageType(sumType);
  unsigned bits = 8 * byteWidth(type);
  TypedAttr lowest;
  if (isFloat(type))
    lowest = k.b.getFloatAttr(element, -INFINITY);
  else
    lowest = k.b.getIntegerAttr(element, type == DType::u8 ? APInt::getMinValue(bits) : APInt::getSignedMinValue(bits));
  return k.broadcast(arith::ConstantOp::create(k.b, k.loc, lowest), lanes);
}

Value WindowRule::step(Value accumulator, Value x, ArrayRef<Value> tap, const Index &channel) {
  if (isa<MaxPoolOp>(op)) {
    if (isFloat(type))
      return arith::MaximumFOp::create(k.b, k.loc, accumulator, x);
    return type == DType::u8 ? Value(arith::MaxUIOp::create(k.b, k.loc, accumulator, x))
                             : Value(arith::MaxSIOp::create(k.b, k.loc, accumulator, x));
  }
  SmallVector<Index> weightAt;
  for (Value i : tap)
    weightAt.push_back({i});
  weightAt.push_back({k.constant(0)});
  weightAt.push_back(channel);
  Value weight = e.element(cast<ConvOp>(op).getWeight(), weightAt);
  weight = castLanes(k.b, k.loc, k.broadcast(weight, k.width), type, sumType);
  weight = k.concat(SmallVector<Value>(k.laneCount(x) / k.width, weight));
  if (isFloat(sumType))
    return math::FmaOp::create(k.b, k.loc, x, weight, accumulator);
  return arith::AddIOp::create(k.b, k.loc, accumulator, arith::MulIOp::create(k.b, k.loc, x, weight));
}

} // namespace burin::codegen
