#include "codegen/emit/Window.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

Index Window::origin(KernelBuilder &k, size_t d, const Index &at) const {
  return k.shift(k.scale(at, k.constant(strides[d])), k.constant(-low[d]));
}

std::pair<Value, Value> tapsInside(KernelBuilder &k, Value origin, Value size, int64_t kernel, int64_t dilation) {
  Value none = k.constant(0), all = k.constant(kernel);
  auto stepsTo = [&](Value distance) {
    Value reach = k.add(k.maximum(distance, none), k.constant(dilation - 1));
    return k.minimum(k.div(reach, k.constant(dilation)), all);
  };
  return {stepsTo(k.sub(none, origin)), stepsTo(k.sub(size, origin))};
}

std::pair<Value, Value> Window::tapsInside(KernelBuilder &k, size_t d, Value origin) const {
  if (!isOpen(d))
    return {k.constant(0), k.constant(kernel[d])};
  return codegen::tapsInside(k, origin, k.dim(shapeOf(x)[firstSpatial + d]), kernel[d], dilations[d]);
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

template <class Op> static Window windowOf(Op op, ArrayRef<int64_t> kernel) {
  Window w;
  w.x = op.getX();
  w.spatial = kernel.size();
  w.firstSpatial = op.getLayout() == "nhwc" ? 1 : 2;
  w.kernel.assign(kernel.begin(), kernel.end());
  w.strides.assign(op.getStrides().begin(), op.getStrides().end());
  w.dilations.assign(op.getDilations().begin(), op.getDilations().end());
  auto padding = op.getPadding();
  w.low.assign(padding.begin(), padding.begin() + w.spatial);
  w.high.assign(padding.begin() + w.spatial, padding.end());
  if constexpr (!std::is_same_v<Op, ConvOp>)
    w.ceilMode = op.getCeilMode();
  return w;
}

std::optional<Window> windowOf(Operation *op) {
  if (auto pool = dyn_cast<MaxPoolOp>(op))
    return windowOf(pool, pool.getKernel());
  if (auto pool = dyn_cast<AvgPoolOp>(op))
    return windowOf(pool, pool.getKernel());
  auto conv = dyn_cast<ConvOp>(op);
  if (!conv)
    return std::nullopt;
  Shape weight = shapeOf(conv.getWeight()); // [kernel…, 1, C]
  SmallVector<int64_t> kernel;
  for (size_t d = 0; d + 2 < weight.size(); ++d)
    kernel.push_back(weight[d].value());
  return windowOf(conv, kernel);
}

WindowRule::WindowRule(ElementEmitter &e, Operation *op)
    : type(dtypeOf(op->getResult(0))), sumType(type == DType::f16 || type == DType::bf16 ? DType::f32 : type), e(e),
      k(e.k), op(op) {}

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
  weight = k.sideBySide(SmallVector<Value>(k.laneCount(x) / k.width, weight));
  if (isFloat(sumType))
    return math::FmaOp::create(k.b, k.loc, x, weight, accumulator);
  return arith::AddIOp::create(k.b, k.loc, accumulator, arith::MulIOp::create(k.b, k.loc, x, weight));
}

} // namespace burin::codegen
