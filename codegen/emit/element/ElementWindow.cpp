// Element rules of window ops: pooling and depthwise convolution share one loop nest over the window.
#include "codegen/emit/element/Window.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

/// Loops over the elements of x in the window at a position.
class WindowWalk {
public:
  using Step = llvm::function_ref<Value(Value accumulator, Value x, ArrayRef<Value> kernelPosition, Value inside)>;

  /// `areInside`: the windows of all lanes lie inside x in the dimensions in which lanes have different windows.
  WindowWalk(ElementEmitter &e, const Window &w, ArrayRef<Index> at, bool areInside)
      : e(e), k(e.k), w(w), shape(shapeOf(w.x)), position(at), areInside(areInside), unrolls(mayUnroll(e, w)) {}

  Value fold(Value init, Step step) { return dimension(0, init, {}, {}, step); }

private:
  Value dimension(size_t d, Value accumulator, SmallVector<Value> kernelAt, Value inside, Step step) {
    if (d == w.spatial) {
      auto read = [&] { return e.element(w.x, position); };
      Value x = inside ? e.masked(inside, [&] { return k.broadcast(read(), k.width); }) : read();
      return step(accumulator, x, kernelAt, inside);
    }
    size_t axis = w.firstSpatial + d;
    Index origin = originOf(k, w, d, position[axis]);
    Index saved = position[axis];
    Value size = k.dim(shape[axis]), from = k.constant(0), to = k.constant(w.kernel[d]);
    bool open = w.isOpen(d) && (origin.uniform() || !areInside);
    if (open && origin.uniform())
      std::tie(from, to) = codegen::tapsInside(k, w, d, origin.base);
    auto tap = [&](Value i, Value sum) {
      return e.scoped([&] {
        position[axis] = k.shift(origin, k.mul(i, k.constant(w.dilations[d])));
        Value here = inside;
        if (open && !origin.uniform()) {
          Value in = e.inRange(position[axis], k.constant(0), size);
          here = here ? Value(arith::AndIOp::create(k.b, k.loc, here, in)) : in;
        }
        SmallVector<Value> next(kernelAt);
        next.push_back(i);
        return dimension(d + 1, sum, next, here, step);
      });
    };
    Value result = accumulator;
    if (auto first = k.constantOf(from), last = k.constantOf(to); unrolls && first && last)
      for (int64_t i = *first; i < *last; ++i)
        result = tap(k.constant(i), result);
    else
      result = k.loop(from, to, k.constant(1), accumulator,
                      [&](Value i, ValueRange carried) { return SmallVector<Value>{tap(i, carried[0])}; })[0];
    position[axis] = saved;
    return result;
  }

  static bool mayUnroll(ElementEmitter &e, const Window &w) {
    constexpr int64_t kMostTaps = 9; // of all dimensions
    int64_t taps = 1;
    for (int64_t size : w.kernel)
      taps = std::min(taps * size, kMostTaps + 1);
    return taps <= kMostTaps && e.mayRepeat(w.x, taps);
  }

  ElementEmitter &e;
  KernelBuilder &k;
  const Window &w;
  Shape shape;
  SmallVector<Index> position;
  bool areInside, unrolls;
};

} // namespace

/// Scalar i1: whether the windows of all lanes lie inside x in the dimensions in which lanes have different windows.
/// Null if they always do, or if a branch would be too large.
Value ElementEmitter::windowsInside(const Window &w, ArrayRef<Index> at) {
  Value inside;
  for (size_t d = 0; d < w.spatial && !mask && mayBranch(w.x); ++d) {
    size_t axis = w.firstSpatial + d;
    if (!w.isOpen(d) || at[axis].uniform())
      continue;
    Value end = k.add(k.dim(shapeOf(w.x)[axis]), k.constant(-(w.kernel[d] - 1) * w.dilations[d]));
    Value here = allInRange(originOf(k, w, d, at[axis]), k.constant(0), end);
    if (!here)
      return {};
    inside = inside ? Value(arith::AndIOp::create(k.b, k.loc, inside, here)) : here;
  }
  return inside;
}

/// Element rule of avg_pool and adaptive_avg_pool.
Value ElementEmitter::averaged(Operation *op, ArrayRef<Index> at) {
  if (!isa<AvgPoolOp>(op))
    return averagedAnywhere(op, at, false);
  return either(
      windowsInside(*windowOf(op), at), dtypeOf(op->getResult(0)), [&] { return averagedAnywhere(op, at, true); },
      [&] { return averagedAnywhere(op, at, false); });
}

namespace {

/// Means over windows: a sum of elements divided by the number of taps.
class Averaging {
public:
  Averaging(ElementEmitter &e, Operation *op)
      : e(e), k(e.k), type(WindowRule(e, op).type), sumType(WindowRule(e, op).sumType), zero(lanes(e.zeroOf(sumType))) {
  }

  Value ofWindow(AvgPoolOp pool, ArrayRef<Index> at, bool areInside) {
    Window w = *windowOf(pool);
    auto add = [&](Value sum, Value x, ArrayRef<Value>, Value inside) { return addUp(sum, x, inside); };
    Value sum = WindowWalk(e, w, at, areInside).fold(zero, add), count;
    for (size_t d = 0; d < w.spatial; ++d) {
      const Index &here = at[w.firstSpatial + d];
      bool sees = !w.isOpen(d) || (areInside && !here.uniform());
      count = product(count, sees ? k.constant(w.kernel[d]) : tapsSeen(w, d, here, pool.getCountIncludePad()));
    }
    return mean(sum, count);
  }

  /// Window o of a dimension covers [floor(o * in / out), ceil((o + 1) * in / out)).
  Value adaptive(AdaptiveAvgPoolOp pool, ArrayRef<Index> at) {
    size_t first = pool.getLayout() == "nhwc" ? 1 : 2;
    SmallVector<Index> position(at);
    Value sum = walk(pool, 0, first, at, position, zero, {}), count;
    for (size_t d = 0; d < pool.getOutputSize().size(); ++d) {
      auto [start, end] = range(pool, d, first, at);
      count = product(count, value(k.add(end, k.scale(start, k.constant(-1)))));
    }
    return mean(sum, count);
  }

private:
  Value lanes(Value scalar) { return k.broadcast(scalar, k.width); }
  Value value(const Index &i) { return i.uniform() ? i.base : k.lanesOf(i, k.width); }

  Value addUp(Value sum, Value x, Value inside) {
    x = castLanes(k.b, k.loc, lanes(x), type, sumType);
    if (inside)
      x = arith::SelectOp::create(k.b, k.loc, inside, x, zero);
    return arith::AddFOp::create(k.b, k.loc, sum, x);
  }
  Value mean(Value sum, Value count) {
    count = castLanes(k.b, k.loc, count, DType::i64, sumType);
    return castLanes(k.b, k.loc, Value(arith::DivFOp::create(k.b, k.loc, sum, lanes(count))), sumType, type);
  }
  Value product(Value x, Value y) {
    if (!x)
      return y;
    if (isa<VectorType>(x.getType()) || isa<VectorType>(y.getType()))
      return arith::MulIOp::create(k.b, k.loc, lanes(x), lanes(y));
    return k.mul(x, y);
  }

  /// Number of counted taps of the window at a position, in dimension d.
  Value tapsSeen(const Window &w, size_t d, const Index &at, bool countsPadding) {
    Index from = k.shift(k.scale(at, k.constant(w.strides[d])), k.constant(-w.low[d]));
    Value size = k.dim(shapeOf(w.x)[w.firstSpatial + d]);
    if (countsPadding)
      return tapsBelow(w, d, from, k.add(size, k.constant(w.high[d])));
    Value end = tapsBelow(w, d, from, size), first = tapsBelow(w, d, from, k.constant(0));
    Value inside = arith::SubIOp::create(k.b, k.loc, end, first);
    // A window without taps inside x has the mean 0.
    Value one = from.uniform() ? k.constant(1) : lanes(k.constant(1));
    return arith::MaxSIOp::create(k.b, k.loc, inside, one);
  }

  /// Number of taps of a window that starts at `from` and lie below `bound`.
  Value tapsBelow(const Window &w, size_t d, const Index &from, Value bound) {
    Index distance = k.add({bound}, k.scale(from, k.constant(-1)));
    auto number = [&](int64_t c) { return distance.uniform() ? k.constant(c) : lanes(k.constant(c)); };
    Value n = value(distance);
    if (w.dilations[d] > 1)
      n = arith::CeilDivSIOp::create(k.b, k.loc, n, number(w.dilations[d]));
    n = arith::MaxSIOp::create(k.b, k.loc, n, number(0));
    return arith::MinSIOp::create(k.b, k.loc, n, number(w.kernel[d]));
  }

  /// Begin and end of an adaptive window.
  std::pair<Index, Index> range(AdaptiveAvgPoolOp pool, size_t d, size_t first, ArrayRef<Index> at) {
    Value in = k.dim(shapeOf(pool.getX())[first + d]), out = k.constant(pool.getOutputSize()[d]);
    auto divided = [&](const Index &i) -> Index {
      if (i.uniform())
        return {k.div(i.base, out)};
      return {{}, 0, arith::DivUIOp::create(k.b, k.loc, k.lanesOf(i, k.width), lanes(out))};
    };
    Index start = divided(k.scale(at[first + d], in));
    Index end = divided(k.shift(k.scale(k.shift(at[first + d], k.constant(1)), in), k.sub(out, k.constant(1))));
    return {start, end};
  }

  /// Sums an adaptive window from dimension d on; `position` is the position of the element in x.
  Value walk(AdaptiveAvgPoolOp pool, size_t d, size_t first, ArrayRef<Index> at, SmallVector<Index> &position,
             Value sum, Value inside) {
    if (d == pool.getOutputSize().size()) {
      auto read = [&] { return e.element(pool.getX(), position); };
      Value x = inside ? e.masked(inside, [&] { return lanes(read()); }) : read();
      return addUp(sum, x, inside);
    }
    size_t axis = first + d;
    Value in = k.dim(shapeOf(pool.getX())[axis]), out = k.constant(pool.getOutputSize()[d]);
    auto [start, end] = range(pool, d, first, at);
    Index length = k.add(end, k.scale(start, k.constant(-1))), begin = start;
    bool perLane = !length.uniform();
    Value longest = perLane ? k.add(k.div(k.add(in, k.sub(out, k.constant(1))), out), k.constant(1)) : length.base;
    Index saved = position[axis];
    Value result = k.loop(k.constant(0), longest, k.constant(1), sum, [&](Value i, ValueRange carried) {
      return e.scoped([&] {
        position[axis] = k.shift(begin, i);
        Value here = inside;
        if (perLane) {
          Value in = k.compare(arith::CmpIPredicate::slt, lanes(i), k.lanesOf(length, k.width));
          here = here ? Value(arith::AndIOp::create(k.b, k.loc, here, in)) : in;
        }
        return SmallVector<Value>{walk(pool, d + 1, first, at, position, carried[0], here)};
      });
    })[0];
    position[axis] = saved;
    return result;
  }

  ElementEmitter &e;
  KernelBuilder &k;
  DType type, sumType;
  Value zero;
};

} // namespace

Value ElementEmitter::averagedAnywhere(Operation *op, ArrayRef<Index> at, bool areInside) {
  Averaging averaging(*this, op);
  if (auto pool = dyn_cast<AvgPoolOp>(op))
    return averaging.ofWindow(pool, at, areInside);
  return averaging.adaptive(cast<AdaptiveAvgPoolOp>(op), at);
}

/// Element rule of max_pool and channels-last depthwise conv.
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
