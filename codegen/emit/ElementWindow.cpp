// Element rules of window ops: pooling and depthwise convolution. One walk over the window serves all.
#include "codegen/emit/Window.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

/// Visits the elements of x in the window at a position.
class WindowWalk {
public:
  using Step = llvm::function_ref<Value(Value accumulator, Value x, ArrayRef<Value> kernelPosition, Value inside)>;

  /// `areInside`: the windows of all lanes lie inside x, in those dimensions in which the lanes have different windows.
  WindowWalk(ElementEmitter &e, const Window &w, ArrayRef<Index> at, bool areInside)
      : e(e), k(e.k), w(w), shape(shapeOf(w.x)), position(at), areInside(areInside) {}

  Value fold(Value init, Step step) { return dimension(0, init, {}, {}, step); }

private:
  Value dimension(size_t d, Value accumulator, SmallVector<Value> kernelAt, Value inside, Step step) {
    if (d == w.spatial) {
      auto read = [&] { return e.element(w.x, position); };
      Value x = inside ? e.masked(inside, [&] { return k.broadcast(read(), k.width); }) : read();
      return step(accumulator, x, kernelAt, inside);
    }
    size_t axis = w.firstSpatial + d;
    Index origin = w.origin(k, d, position[axis]);
    Index saved = position[axis];
    Value size = k.dim(shape[axis]), from = k.constant(0), to = k.constant(w.kernel[d]);
    bool open = w.isOpen(d) && (origin.uniform() || !areInside);
    if (open && origin.uniform())
      std::tie(from, to) = w.tapsInside(k, d, origin.base);
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
  bool areInside;
};

} // namespace

/// Scalar i1: whether the windows of all lanes lie inside x, in those dimensions in which the lanes have different
/// windows. Null if all do, or if that is not asked for.
Value ElementEmitter::windowsInside(const Window &w, ArrayRef<Index> at) {
  Value inside;
  for (size_t d = 0; d < w.spatial && !mask && mayBranch(w.x); ++d) {
    size_t axis = w.firstSpatial + d;
    if (!w.isOpen(d) || at[axis].uniform())
      continue;
    Value end = k.add(k.dim(shapeOf(w.x)[axis]), k.constant(-(w.kernel[d] - 1) * w.dilations[d]));
    Value here = allInRange(w.origin(k, d, at[axis]), k.constant(0), end);
    if (!here)
      return {};
    inside = inside ? Value(arith::AndIOp::create(k.b, k.loc, inside, here)) : here;
  }
  return inside;
}

/// avg_pool and adaptive_avg_pool.
Value ElementEmitter::averaged(Operation *op, ArrayRef<Index> at) {
  if (!isa<AvgPoolOp>(op))
    return averagedAnywhere(op, at, false);
  return either(
      windowsInside(*windowOf(op), at), dtypeOf(op->getResult(0)), [&] { return averagedAnywhere(op, at, true); },
      [&] { return averagedAnywhere(op, at, false); });
}

Value ElementEmitter::averagedAnywhere(Operation *op, ArrayRef<Index> at, bool areInside) {
  DType type = WindowRule(*this, op).type, sumType = WindowRule(*this, op).sumType;
  auto lanes = [&](Value scalar) { return k.broadcast(scalar, k.width); };
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
    Window w = *windowOf(op);
    Shape shape = shapeOf(w.x);
    Value sum = WindowWalk(*this, w, at, areInside).fold(zero, addUp), count;
    for (size_t d = 0; d < w.spatial; ++d) {
      size_t axis = w.firstSpatial + d;
      if (!w.isOpen(d) || (areInside && !at[axis].uniform())) {
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

/// max_pool and channels-last conv with one filter per channel.
Value ElementEmitter::windowed(Operation *op, ArrayRef<Index> at) {
  Window w = *windowOf(op);
  WindowRule rule(*this, op);
  auto walk = [&](bool areInside) {
    Value identity = rule.identity(k.width);
    auto step = [&](Value accumulator, Value x, ArrayRef<Value> tap, Value inside) {
      x = castLanes(k.b, k.loc, k.broadcast(x, k.width), rule.type, rule.sumType);
      if (inside)
        x = arith::SelectOp::create(k.b, k.loc, inside, x, identity);
      return rule.step(accumulator, x, tap, at.back());
    };
    Value result = WindowWalk(*this, w, at, areInside).fold(identity, step);
    return castLanes(k.b, k.loc, result, rule.sumType, rule.type);
  };
  return either(windowsInside(w, at), rule.type, [&] { return walk(true); }, [&] { return walk(false); });
}

} // namespace burin::codegen
