// The composite steps of random graphs: reductions, normalisation, movement, products, windows.
#include "test/ops/GraphMaker.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace burin::test {

/// A reduction, often broadcast back to the full shape.
GraphMaker::Known GraphMaker::reduce(Known x) {
  Ints axes;
  for (size_t d = 0; d < rank(x); ++d)
    if (oneIn(2))
      axes.push_back(int64_t(d));
  if (axes.empty())
    axes.push_back(int64_t(rank(x)) - 1);
  double n = 1;
  for (int64_t axis : axes)
    n *= count({shape(x)[size_t(axis)]});
  bool keepdims = oneIn(2), back = oneIn(2);
  Attrs attrs{{"axes", axes}, {"keepdims", keepdims || back}};
  Known y = x;
  if (isExact(x) && oneIn(5) && axes.size() == 1)
    return apply(oneIn(2) ? "argmax" : "argmin", {x}, {{"axis", axes[0]}, {"keepdims", keepdims}}, n, 0);
  if (isBool(dtype(x)) && oneIn(2))
    y = apply(oneIn(2) ? "reduce_any" : "reduce_all", {x}, attrs, 1, 0);
  else if (oneIn(3))
    y = apply(oneIn(2) ? "reduce_max" : "reduce_min", {x}, attrs, x.bound, x.error);
  else if (isFloat(dtype(x)) && (n * x.bound > 100 || oneIn(2)))
    y = apply("reduce_mean", {x}, attrs, x.bound, x.error + (n * 0x1p-24 + roundoff(x)) * x.bound);
  else
    y = apply("reduce_sum", {x}, attrs, n * x.bound, n * x.error + (n * 0x1p-24 + roundoff(x)) * n * x.bound);
  if (!back || dtype(y) != dtype(x))
    return y;
  if (oneIn(2))
    keep(y);
  return combine(x, broadcast(tame(y), shape(x)));
}

GraphMaker::Known GraphMaker::normalised(Known x) {
  if (!isFloat(dtype(x)))
    return x = castTo(x, f32);
  int64_t last = int64_t(rank(x)) - 1;
  double r = 16 * roundoff(x), n = count({shape(x).back()});
  switch (below(4)) {
  case 0:
    return apply("softmax", {x}, {{"axis", oneIn(3) ? int64_t(0) : last}}, 1, 2 * x.error + r);
  case 1:
    return apply("log_softmax", {x}, {{"axis", last}}, 2 * x.bound + 6, 2 * x.error + r * (2 * x.bound + 6));
  case 2: {
    auto parameter = [&]() -> Graph::Value {
      if (oneIn(3))
        return Graph::none;
      return (shape(x).back().isStatic() ? constant({dtype(x), {shape(x).back()}})
                                         : input({dtype(x), {shape(x).back()}}))
          .value;
    };
    auto value = graph.apply("layer_norm", {x.value, parameter(), parameter()}, {{"axis", last}, {"epsilon", 0.25}})[0];
    return {value, 2 * std::sqrt(n) + 2, 16 * x.error + r * (x.bound * 8 + 2 * std::sqrt(n) + 2)};
  }
  default:
    auto value = graph.apply("rms_norm", {x.value, Graph::none}, {{"axis", last}, {"epsilon", 0.25}})[0];
    return {value, std::sqrt(n), 8 * x.error + r * (x.bound + std::sqrt(n))};
  }
}

GraphMaker::Known GraphMaker::moved(Known x) {
  size_t n = rank(x), d = below(n);
  auto with = [&](const std::string &op, const Attrs &attrs) { return apply(op, {x}, attrs, x.bound, x.error); };
  Ints zeros(n, 0), ones(n, 1);
  switch (below(9)) {
  case 0:
  case 1: {
    Ints perm(n);
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    return with("transpose", {{"perm", perm}});
  }
  case 2: {
    if (!shape(x)[d].isStatic() && symbols == Symbols::Many)
      return sliced(x, d);
    if (!shape(x)[d].isStatic() || shape(x)[d].value() < 2)
      return with("flip", {{"axes", Ints{int64_t(d)}}});
    int64_t size = shape(x)[d].value(), from = int64_t(below(size_t(size) - 1));
    Shape starts(n, 0), stops = shape(x);
    Ints steps = ones;
    starts[d] = from;
    stops[d] = from + 1 + int64_t(below(size_t(size - from)));
    steps[d] = 1 + int64_t(below(3));
    return with("slice", {{"starts", starts}, {"stops", stops}, {"steps", steps}});
  }
  case 3: {
    Ints low = zeros, high = zeros;
    low[d] = int64_t(below(4));
    high[d] = int64_t(below(4));
    return with("pad", {{"low", low}, {"high", high}, {"value", oneIn(2) ? 0.0 : 1.0}});
  }
  case 4:
    return n >= 2 ? with(oneIn(2) ? "tril" : "triu", {{"diagonal", int64_t(below(3)) - 1}})
                  : with("flip", {{"axes", Ints{0}}});
  case 5: { // merges dimensions, and perhaps splits them again
    Dim total = elements(shape(x));
    if (n >= 2 && oneIn(2)) {
      Shape merged = shape(x);
      merged[n - 2] = merged[n - 2] * merged[n - 1];
      merged.pop_back();
      return with("reshape", {{"shape", merged}});
    }
    if (n >= 2 && symbols == Symbols::Many) {
      Shape turned = shape(x);
      std::swap(turned[n - 1], turned[below(n - 1)]);
      return with("reshape", {{"shape", turned}});
    }
    return with("reshape", {{"shape", oneIn(2) ? Shape{total} : Shape{1, total}}});
  }
  case 6: {
    if (n > 4)
      return with("flip", {{"axes", Ints{int64_t(d)}}});
    return with("unsqueeze", {{"axes", Ints{int64_t(below(n + 1))}}});
  }
  case 7: {
    Ints repeats = ones;
    repeats[d] = 1 + int64_t(below(3));
    return with("tile", {{"repeats", repeats}});
  }
  default: {
    Ints ones;
    for (size_t i = 0; i < n; ++i)
      if (shape(x)[i] == Dim(1))
        ones.push_back(int64_t(i));
    return symbols == Symbols::Many && ones.empty() ? with("flip", {{"axes", Ints{0}}})
                                                    : with("squeeze", {{"axes", ones}});
  }
  }
}

/// A slice of a symbolic size that is never empty.
GraphMaker::Known GraphMaker::sliced(Known x, size_t axis) {
  Shape starts(rank(x), 0), stops = shape(x);
  Ints steps(rank(x), 1);
  const Dim size = shape(x)[axis], half = floordiv(size, 2);
  switch (below(4)) {
  case 0:
    starts[axis] = half;
    break;
  case 1:
    stops[axis] = size - half;
    break;
  case 2:
    starts[axis] = -1;
    break;
  default:
    steps[axis] = 2 + int64_t(below(2));
  }
  return apply("slice", {x}, {{"starts", starts}, {"stops", stops}, {"steps", steps}}, x.bound, x.error);
}

/// concat, stack and split.
GraphMaker::Known GraphMaker::joined(Known x) {
  size_t d = below(rank(x));
  if (oneIn(3) && shape(x)[d].isStatic() && shape(x)[d].value() > 1) {
    int64_t size = shape(x)[d].value(), first = 1 + int64_t(below(size_t(size) - 1));
    auto parts = graph.apply("split", {x.value}, {{"sizes", Ints{first, size - first}}, {"axis", int64_t(d)}});
    keep({parts[0], x.bound, x.error});
    return {parts[1], x.bound, x.error};
  }
  Known y = unary(x);
  if (dtype(y) != dtype(x) || shape(y) != shape(x))
    y = x;
  double bound = std::max(x.bound, y.bound), error = std::max(x.error, y.error);
  if (oneIn(3))
    return apply("stack", {x, y}, {{"axis", int64_t(d)}}, bound, error);
  return apply("concat", oneIn(2) ? std::vector{x, y} : std::vector{y, x, x}, {{"axis", int64_t(d)}}, bound, error);
}

GraphMaker::Known GraphMaker::indexed(Known x) {
  int64_t axis = int64_t(below(rank(x)));
  // Elements of inputs are in [-2, 2].
  auto inRange = [&](Known indices) {
    auto all = [&](double value) {
      Known x{graph.apply("full", {}, {{"shape", shape(indices)}, {"value", value}, {"dtype", dtype(indices)}})[0], 1,
              0};
      return x;
    };
    return apply("clamp", {indices, all(-1), all(0)}, {}, 1, 0);
  };
  Known indices = inRange(input({i64, {newSize()}}));
  if (oneIn(2))
    return apply("take", {x, indices}, {{"axis", axis}}, x.bound, x.error);
  indices = inRange(input({i32, shape(x)}));
  if (oneIn(2) || isBool(dtype(x)))
    return apply("gather", {x, indices}, {{"axis", axis}}, x.bound, x.error);
  Known updates = unary(x);
  if (dtype(updates) != dtype(x) || shape(updates) != shape(x))
    updates = x;
  return apply("scatter", {x, indices, updates}, {{"axis", axis}}, std::max(x.bound, updates.bound),
               std::max(x.error, updates.error));
}

GraphMaker::Known GraphMaker::running(Known x) {
  size_t axis = below(rank(x));
  double n = count({shape(x)[axis]}), r = roundoff(x) + n * 0x1p-24;
  return apply("cumsum", {x}, {{"axis", int64_t(axis)}, {"reverse", oneIn(2)}}, n * x.bound,
               n * x.error + n * x.bound * r);
}

/// A loop along dimension 0. The state is half of the previous state plus a function of the element.
GraphMaker::Known GraphMaker::looped(Known x) {
  x = castTo(x, f32);
  if (dtype(x) != f32)
    return x;
  Shape row = shape(x);
  row[0] = 1;
  Known initial = input({f32, row}), output = x, state = x;
  auto values = graph.loop({initial.value}, {x.value}, oneIn(2), [&](const auto &states, const auto &elements) {
    Known before{states[0], 2, 0}, element{elements[0], x.bound, x.error};
    output = tame(oneIn(2) ? product(element) : unary(element));
    Known change = dtype(output) == f32 && shape(output) == row ? output : element;
    change = apply("tanh", {change}, {}, 1, change.error + 4 * roundoff(change));
    Known half{graph.constant(ir::RefTensor{f32, {}, std::vector<double>{0.5}}), 0.5, 0};
    state = apply("add", {apply("mul", {before, broadcast(half, row)}, {}, 1, 0), change}, {}, 2,
                  // The errors are halved each time, so their sum is at most twice the last one.
                  2 * change.error + 8 * roundoff(change));
    if (oneIn(3))
      output = before;
    bool fits = rank(output) > 0 && shape(output)[0] == Dim(1);
    return std::vector<Graph::Value>{state.value, fits ? output.value : state.value};
  });
  keep({values[0], 2, state.error});
  return {values[1], std::max(output.bound, 2.0), std::max(output.error, state.error)};
}

/// A product with bias, activation and residual.
GraphMaker::Known GraphMaker::product(Known x) {
  if (rank(x) < 2 || isBool(dtype(x)))
    return unary(x);
  Dim depth = shape(x).back(), columns = newSize();
  bool isStatic = depth.isStatic();
  TensorSpec weight{dtype(x), {depth, columns}};
  Known w = oneIn(2) && isStatic ? constant(weight) : input(weight);
  if (rank(x) > 2 && oneIn(2)) {
    Shape batched(shape(x).begin(), shape(x).end() - 2);
    batched.insert(batched.end(), {depth, columns});
    if (count(batched) < 6000)
      w = input({dtype(x), batched});
  }
  Shape full(shape(x).begin(), shape(x).end() - 2);
  full.insert(full.end(), {depth, columns});
  double n = count({depth}), bound = n * x.bound * w.bound;
  Known y = apply("matmul", {x, broadcast(w, full)}, {}, bound,
                  n * x.error * w.bound + (n * 0x1p-24 + 2 * roundoff(x)) * bound);
  if (isFloat(dtype(y))) {
    double scale = 1 / (n * w.bound); // keeps the magnitude of x
    Known factor{graph.constant(ir::RefTensor{dtype(y), {}, std::vector<double>{ir::roundTo(dtype(y), scale)}}), scale,
                 0};
    y = apply("mul", {y, broadcast(factor, shape(y))}, {}, x.bound, y.error * scale + 2 * roundoff(y) * x.bound);
  }
  if (oneIn(2))
    y = combine(y, broadcast(constant({dtype(y), {columns}}), shape(y)));
  if (oneIn(2))
    y = unary(tame(y));
  if (oneIn(3) && shape(y) == shape(x) && dtype(y) == dtype(x))
    y = combine(tame(y), x);
  return y;
}

/// A convolution or pooling over the last dimensions.
GraphMaker::Known GraphMaker::windowed(Known x) {
  if (rank(x) < 2 || isBool(dtype(x)))
    return unary(x);
  for (size_t i = 0; i < rank(x); ++i)
    if (i >= rank(x) - 2 && lowerBound(shape(x)[i]).value_or(0) < 3)
      return moved(x);
  if (rank(x) > 4)
    return moved(x);
  while (rank(x) < 4)
    x = apply("unsqueeze", {x}, {{"axes", Ints{int64_t(rank(x)) - 2}}}, x.bound, x.error);
  if (oneIn(2))
    return apply("max_pool", {x},
                 {{"kernel", Ints{2}}, {"strides", Ints{1 + int64_t(below(2))}}, {"padding", Ints{int64_t(below(2))}}},
                 x.bound, x.error);
  if (!isFloat(dtype(x)) || oneIn(3))
    x = isFloat(dtype(x)) ? x : castTo(x, f32);
  if (oneIn(2))
    return apply("avg_pool", {x}, {{"kernel", Ints{3}}, {"padding", Ints{int64_t(below(2))}}}, x.bound,
                 x.error + 9 * roundoff(x) * x.bound);
  Dim channels = shape(x)[1], outputs = oneIn(2) ? channels : newSize();
  if (!channels.isStatic())
    return unary(x);
  bool depthwise = outputs == channels && oneIn(2);
  if (!outputs.isStatic())
    outputs = 5;
  Known w = constant({dtype(x), {outputs, depthwise ? Dim(1) : channels, 3, 3}});
  double n = 9 * (depthwise ? 1 : double(channels.value())), bound = n * 2 * x.bound;
  Attrs attrs{{"padding", Ints{int64_t(below(2))}}, {"strides", Ints{1 + int64_t(below(2))}}};
  if (depthwise)
    attrs["groups"] = channels.value();
  Known bias = constant({dtype(x), {outputs}});
  std::vector<Graph::Value> operands{x.value, w.value, oneIn(2) ? bias.value : Graph::none};
  return {graph.apply("conv", operands, attrs)[0], bound + 2,
          n * 2 * x.error + (n * 0x1p-24 + 2 * roundoff(x)) * (bound + 2)};
}

} // namespace burin::test
