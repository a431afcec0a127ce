// Element rules of window ops: pooling and depthwise convolution. One walk over the window serves all.
#include "codegen/ElementEmitter.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

/// Geometry of a window op. The spatial dimensions of x start at `firstSpatial`; channels are last or second.
struct Window {
  Value x;
  size_t spatial, firstSpatial;
  SmallVector<int64_t> kernel, strides, low, high, dilations;
  bool ceilMode = false;
  /// Whether windows may reach beyond x.
  bool isOpen(size_t d) const { return low[d] > 0 || high[d] > 0 || ceilMode; }
};

/// Visits the elements of x in the window at a position.
class WindowWalk {
public:
  using Step = llvm::function_ref<Value(Value accumulator, Value x, ArrayRef<Value> kernelPosition, Value inside)>;

  WindowWalk(ElementEmitter &e, const Window &w, ArrayRef<Index> at)
      : e(e), k(e.k), w(w), shape(shapeOf(w.x)), position(at) {}

  Value fold(Value init, Step step) { return dimension(0, init, {}, {}, step); }

private:
  Value dimension(size_t d, Value accumulator, SmallVector<Value> kernelAt, Value inside, Step step) {
    if (d == w.spatial) {
      auto read = [&] { return e.element(w.x, position); };
      Value x = inside ? e.masked(inside, [&] { return k.broadcast(read(), k.width); }) : read();
      return step(accumulator, x, kernelAt, inside);
    }
    size_t axis = w.firstSpatial + d;
    Index origin = k.shift(k.scale(position[axis], k.constant(w.strides[d])), k.constant(-w.low[d]));
    Index saved = position[axis];
    Value size = k.dim(shape[axis]), from = k.constant(0), to = k.constant(w.kernel[d]);
    bool open = w.isOpen(d);
    if (open && origin.uniform()) {
      // Only the part of the window inside x is walked.
      Value dilation = k.constant(w.dilations[d]);
      auto stepsTo = [&](Value distance) {
        return k.div(k.add(k.maximum(distance, k.constant(0)), k.sub(dilation, k.constant(1))), dilation);
      };
      from = k.minimum(stepsTo(k.sub(k.constant(0), origin.base)), to);
      to = k.minimum(stepsTo(k.sub(size, origin.base)), to);
    }
    SmallVector<Value> result = k.loop(from, to, k.constant(1), accumulator, [&](Value i, ValueRange carried) {
      return e.scoped([&] {
        position[axis] = k.shift(origin, k.mul(i, k.constant(w.dilations[d])));
        Value here = inside;
        if (open && !origin.uniform()) {
          Value in = e.inRange(position[axis], k.constant(0), size);
          here = here ? Value(arith::AndIOp::create(k.b, k.loc, here, in)) : in;
        }
        SmallVector<Value> next(kernelAt);
        next.push_back(i);
        return SmallVector<Value>{dimension(d + 1, carried[0], next, here, step)};
      });
    });
    position[axis] = saved;
    return result[0];
  }

  ElementEmitter &e;
  KernelBuilder &k;
  const Window &w;
  Shape shape;
  SmallVector<Index> position;
};

template <class Op> Window windowOf(Op op, ArrayRef<int64_t> kernel) {
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

} // namespace

static DType accumulatorType(DType type) { return type == DType::f16 || type == DType::bf16 ? DType::f32 : type; }

Value ElementEmitter::pooled(Operation *op, ArrayRef<Index> at) {
  DType type = dtypeOf(op->getResult(0)), sumType = accumulatorType(type); // 16-bit floats are computed in f32
  auto lanes = [&](Value scalar) { return k.broadcast(scalar, k.width); };
  if (auto pool = dyn_cast<MaxPoolOp>(op)) {
    Window w = windowOf(pool, pool.getKernel());
    Type element = k.storageType(sumType);
    TypedAttr lowest;
    if (isFloat(type))
      lowest = k.b.getFloatAttr(element, -INFINITY);
    else
      lowest = k.b.getIntegerAttr(element, type == DType::u8 ? APInt::getMinValue(8)
                                                             : APInt::getSignedMinValue(8 * byteWidth(type)));
    Value init = lanes(arith::ConstantOp::create(k.b, k.loc, lowest));
    Value result =
        WindowWalk(*this, w, at).fold(init, [&](Value best, Value x, ArrayRef<Value>, Value inside) -> Value {
          x = castLanes(k.b, k.loc, lanes(x), type, sumType);
          if (inside)
            x = arith::SelectOp::create(k.b, k.loc, inside, x, init);
          if (isFloat(type))
            return arith::MaximumFOp::create(k.b, k.loc, best, x);
          return type == DType::u8 ? Value(arith::MaxUIOp::create(k.b, k.loc, best, x))
                                   : Value(arith::MaxSIOp::create(k.b, k.loc, best, x));
        });
    return castLanes(k.b, k.loc, result, sumType, type);
  }

  Value zero = lanes(zeroOf(sumType));
  auto addUp = [&](Value sum, Value x, ArrayRef<Value>, Value inside) -> Value {
    x = castLanes(k.b, k.loc, lanes(x), type, sumType);
    if (inside)
      x = arith::SelectOp::create(k.b, k.loc, inside, x, zero);
    return arith::AddFOp::create(k.b, k.loc, sum, x);
  };
  auto mean = [&](Value sum, Value count) {
    count = castLanes(k.b, k.loc, count, DType::i64, sumType);
    return castLanes(k.b, k.loc, Value(arith::DivFOp::create(k.b, k.loc, sum, lanes(count))), sumType, type);
  };
  auto product = [&](Value x, Value y) -> Value {
    if (!x)
      return y;
    if (isa<VectorType>(x.getType()) || isa<VectorType>(y.getType()))
      return arith::MulIOp::create(k.b, k.loc, lanes(x), lanes(y));
    return k.mul(x, y);
  };
  auto value = [&](const Index &i) { return i.uniform() ? i.base : k.lanesOf(i, k.width); };

  if (auto pool = dyn_cast<AvgPoolOp>(op)) {
    Window w = windowOf(pool, pool.getKernel());
    Shape shape = shapeOf(w.x);
    Value sum = WindowWalk(*this, w, at).fold(zero, addUp), count;
    for (size_t d = 0; d < w.spatial; ++d) {
      size_t axis = w.firstSpatial + d;
      if (!w.isOpen(d)) {
        count = product(count, k.constant(w.kernel[d]));
        continue;
      }
      Index from = k.shift(k.scale(at[axis], k.constant(w.strides[d])), k.constant(-w.low[d]));
      // Taps of the window that lie below a bound.
      auto tapsBelow = [&](Value bound) -> Value {
        Index distance = k.add({bound}, k.scale(from, k.constant(-1)));
        auto number = [&](int64_t c) { return distance.uniform() ? k.constant(c) : lanes(k.constant(c)); };
        Value n = value(distance);
        if (w.dilations[d] > 1)
          n = arith::CeilDivSIOp::create(k.b, k.loc, n, number(w.dilations[d]));
        n = arith::MaxSIOp::create(k.b, k.loc, n, number(0));
        return arith::MinSIOp::create(k.b, k.loc, n, number(w.kernel[d]));
      };
      Value size = k.dim(shape[axis]);
      if (pool.getCountIncludePad()) {
        count = product(count, tapsBelow(k.add(size, k.constant(w.high[d]))));
        continue;
      }
      Value inside = arith::SubIOp::create(k.b, k.loc, tapsBelow(size), tapsBelow(k.constant(0)));
      // A window that sees nothing has the mean 0.
      Value one = from.uniform() ? k.constant(1) : lanes(k.constant(1));
      count = product(count, arith::MaxSIOp::create(k.b, k.loc, inside, one));
    }
    return mean(sum, count);
  }

  // Adaptive: window o of a dimension is [floor(o * in / out), ceil((o + 1) * in / out)).
  auto pool = cast<AdaptiveAvgPoolOp>(op);
  Shape shape = shapeOf(pool.getX());
  size_t spatial = pool.getOutputSize().size(), first = pool.getLayout() == "nhwc" ? 1 : 2;
  SmallVector<Index> position(at);
  Value count;
  std::function<Value(size_t, Value, Value)> walk = [&](size_t d, Value sum, Value inside) -> Value {
    if (d == spatial) {
      auto read = [&] { return element(pool.getX(), position); };
      Value x = inside ? masked(inside, [&] { return lanes(read()); }) : read();
      return addUp(sum, x, {}, inside);
    }
    size_t axis = first + d;
    Value in = k.dim(shape[axis]), out = k.constant(pool.getOutputSize()[d]);
    auto divided = [&](const Index &i) -> Index {
      if (i.uniform())
        return {k.div(i.base, out)};
      return {{}, 0, arith::DivUIOp::create(k.b, k.loc, k.lanesOf(i, k.width), lanes(out))};
    };
    Index start = divided(k.scale(at[axis], in));
    Index end = divided(k.shift(k.scale(k.shift(at[axis], k.constant(1)), in), k.sub(out, k.constant(1))));
    Index length = k.add(end, k.scale(start, k.constant(-1)));
    bool perLane = !length.uniform();
    Value longest = perLane ? k.add(k.div(k.add(in, k.sub(out, k.constant(1))), out), k.constant(1)) : length.base;
    Index saved = position[axis];
    Value result = k.loop(k.constant(0), longest, k.constant(1), sum, [&](Value i, ValueRange carried) {
      return scoped([&] {
        position[axis] = k.shift(start, i);
        Value here = inside;
        if (perLane) {
          Value in = k.compare(arith::CmpIPredicate::slt, lanes(i), k.lanesOf(length, k.width));
          here = here ? Value(arith::AndIOp::create(k.b, k.loc, here, in)) : in;
        }
        return SmallVector<Value>{walk(d + 1, carried[0], here)};
      });
    })[0];
    position[axis] = saved;
    return result;
  };
  Value sum = walk(0, zero, {});
  for (size_t d = 0; d < spatial; ++d) {
    Value in = k.dim(shape[first + d]), out = k.constant(pool.getOutputSize()[d]);
    auto divided = [&](const Index &i) -> Index {
      if (i.uniform())
        return {k.div(i.base, out)};
      return {{}, 0, arith::DivUIOp::create(k.b, k.loc, k.lanesOf(i, k.width), lanes(out))};
    };
    Index start = divided(k.scale(at[first + d], in));
    Index end = divided(k.shift(k.scale(k.shift(at[first + d], k.constant(1)), in), k.sub(out, k.constant(1))));
    count = product(count, value(k.add(end, k.scale(start, k.constant(-1)))));
  }
  return mean(sum, count);
}

/// A channels-last convolution with one filter per channel: weight [kernel…, 1, C].
Value ElementEmitter::depthwise(Operation *op, ArrayRef<Index> at) {
  auto conv = cast<ConvOp>(op);
  Shape weightShape = shapeOf(conv.getWeight());
  SmallVector<int64_t> kernel;
  for (size_t d = 0; d + 2 < weightShape.size(); ++d)
    kernel.push_back(weightShape[d].value());
  Window w = windowOf(conv, kernel);
  DType type = dtypeOf(conv.getResult()), sumType = accumulatorType(type);
  Value zero = k.broadcast(zeroOf(sumType), k.width);
  Value sum =
      WindowWalk(*this, w, at).fold(zero, [&](Value sum, Value x, ArrayRef<Value> kernelAt, Value inside) -> Value {
        SmallVector<Index> weightAt;
        for (Value i : kernelAt)
          weightAt.push_back({i});
        weightAt.push_back({k.constant(0)});
        weightAt.push_back(at.back());
        x = castLanes(k.b, k.loc, k.broadcast(x, k.width), type, sumType);
        if (inside)
          x = arith::SelectOp::create(k.b, k.loc, inside, x, zero);
        Value weight = castLanes(k.b, k.loc, k.broadcast(element(conv.getWeight(), weightAt), k.width), type, sumType);
        if (isFloat(sumType))
          return math::FmaOp::create(k.b, k.loc, x, weight, sum);
        return arith::AddIOp::create(k.b, k.loc, sum, arith::MulIOp::create(k.b, k.loc, x, weight));
      });
  sum = castLanes(k.b, k.loc, sum, sumType, type);
  if (conv.getBias())
    llvm::report_fatal_error("depthwise bias is an addition of its own by now");
  return sum;
}

} // namespace burin::codegen
