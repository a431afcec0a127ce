#include "test/ops/GraphMaker.h"
#include <algorithm>
#include <cmath>

namespace burin::test {

namespace {
constexpr double kLargest = 60;      // larger values are squashed
constexpr double kWorstError = 0.02; // values with a larger error bound are discarded
constexpr double kMostElements = 6000;
constexpr int64_t kRuns[] = {5, 1, 33};
const std::map<std::string, int64_t> kLargestRun{{"n", 33}};
/// For Symbols::Many; h has a range, so that windows fit.
const std::vector<std::map<std::string, int64_t>> kManyRuns{{{"n", 5}, {"m", 3}, {"k", 8}, {"h", 7}},
                                                            {{"n", 1}, {"m", 17}, {"k", 1}, {"h", 20}},
                                                            {{"n", 33}, {"m", 2}, {"k", 5}, {"h", 3}}};
} // namespace

GraphMaker::GraphMaker(Graph &graph, Random &random, Symbols symbols) : graph(graph), random(random), symbols(symbols) {
  static const std::vector<DType> types{f32, f32, f32, f32, f32, i32, i32, i64, f64, f16, bf16};
  type = pick(types);
  bool symbolic = symbols == Symbols::One && oneIn(2);
  for (int64_t n : kRuns)
    if (symbolic || sizes.empty())
      sizes.push_back({{"n", n}});
  if (symbols == Symbols::Many) {
    sizes = kManyRuns;
    // An input that shows the symbols where others only show sums.
    input({DType::u8, {Dim("n"), Dim("m"), Dim("k"), Dim("h", 3, 64)}});
  }
  Dim a = symbolic ? Dim("n") : newSize(), b = newSize(), c = newSize();
  const std::vector<Shape> shapes{{a, b}, {a, b}, {b}, {a, 1}, {1, b}, {a, b, c}, {c}, {b, c}, {}, {a, 1, c}};
  keep(input({type, {a, b}}));
  for (size_t more = below(4); more > 0; --more)
    keep(oneIn(4) ? constant({type, {b}}) : input({type, pick(shapes)}));
  if (known.empty()) // all of them are too large for keep()
    keep(input({type, {b}}));
}

Dim GraphMaker::newSize() {
  if (symbols == Symbols::Many && !oneIn(3))
    return newSymbol();
  return pick<int64_t>({1, 2, 3, 5, 8, 16, 17, 33, 40});
}

Dim GraphMaker::newSymbol() {
  const std::vector<Dim> all{Dim("n"), Dim("m"), Dim("k"), Dim("h", 3, 64)};
  switch (below(6)) {
  case 0:
    return pick(all) + int64_t(1 + below(3));
  case 1:
    return pick(all) * int64_t(2 + below(2));
  case 2:
    return pick(all) + pick(all);
  default:
    return pick(all);
  }
}

GraphMaker::Known GraphMaker::any() {
  // Recent values are twice as likely, so that chains grow.
  return oneIn(2) ? known[known.size() - 1 - below(std::min<size_t>(known.size(), 3))] : pick(known);
}
GraphMaker::Known GraphMaker::anyFloat() {
  for (int attempt = 0; attempt < 8; ++attempt)
    if (Known x = any(); isFloat(dtype(x)))
      return x;
  Known x = any();
  return isFloat(dtype(x)) ? x : castTo(x, f32);
}
GraphMaker::Known GraphMaker::anyShaped() {
  for (int attempt = 0; attempt < 8; ++attempt)
    if (Known x = any(); rank(x) > 0)
      return x;
  auto shaped = std::find_if(known.begin(), known.end(), [&](const Known &x) { return rank(x) > 0; });
  return shaped != known.end() ? *shaped : input({f32, {newSize()}});
}

double GraphMaker::roundoff(const Known &x) {
  switch (dtype(x)) {
  case f64:
    return 0x1p-52;
  case f16:
    return 0x1p-10;
  case bf16:
    return 0x1p-7;
  case f32:
    return 0x1p-23;
  default:
    return 0;
  }
}

double GraphMaker::count(const Shape &shape) {
  double most = 1;
  for (const auto &run : symbols == Symbols::Many ? kManyRuns : std::vector(1, std::map(kLargestRun))) {
    double count = 1;
    for (const Dim &d : shape)
      count *= double(*d.evaluate([&](std::string_view symbol) { return run.at(std::string(symbol)); }));
    most = std::max(most, count);
  }
  return most;
}

GraphMaker::Known GraphMaker::apply(const std::string &op, const std::vector<Known> &operands, const Attrs &attrs,
                                    double bound, double error) {
  std::vector<Graph::Value> values;
  for (const Known &x : operands)
    values.push_back(x.value);
  Known result{graph.apply(op, values, attrs)[0], bound, error};
  return isFloat(dtype(result)) ? result : Known{result.value, bound, 0};
}

GraphMaker::Known GraphMaker::input(const TensorSpec &spec) { return {graph.input(spec), 2, 0}; }

/// Returns an input if the shape is symbolic.
GraphMaker::Known GraphMaker::constant(const TensorSpec &spec) {
  if (!std::ranges::all_of(spec.shape, &Dim::isStatic))
    return input(spec);
  std::vector<int64_t> sizes;
  for (const Dim &d : spec.shape)
    sizes.push_back(d.value());
  Draw draw{-2, 2};
  if (oneIn(3)) // one value for all elements
    draw.low = draw.high = 1 + double(below(2));
  return {graph.constant(randomTensor(spec.dtype, sizes, draw, Mood::Plain, random)), 2, 0};
}

GraphMaker::Known GraphMaker::keep(Known x) {
  x = tame(x);
  if (x.error <= kWorstError * std::max(1.0, roundoff(x) * 0x1p14) && count(shape(x)) <= kMostElements)
    known.push_back(x);
  return x;
}

/// Limits the magnitude of a value. Integers wrap, in the same way everywhere.
GraphMaker::Known GraphMaker::tame(Known x) {
  if (!isFloat(dtype(x)) || x.bound <= kLargest)
    return x;
  return oneIn(2) ? apply("tanh", {x}, {}, 1, x.error + 4 * roundoff(x))
                  : apply("clamp",
                          {x, broadcast(castTo(constant({f32, {}}), dtype(x)), shape(x)),
                           broadcast(castTo(constant({f32, {}}), dtype(x)), shape(x))},
                          {}, 2, x.error);
}

GraphMaker::Known GraphMaker::castTo(Known x, DType to) {
  if (dtype(x) == to)
    return x;
  if (!isFloat(to) && !isExact(x))
    return x; // the rounding could differ
  Known result = apply("cast", {x}, {{"dtype", to}}, isFloat(dtype(x)) ? x.bound : 4000, 0);
  if (isFloat(to))
    result.error = x.error + result.bound * roundoff(result);
  return isFloat(to) && result.bound > kLargest ? tame(result) : result;
}

GraphMaker::Known GraphMaker::broadcast(Known x, const Shape &to) {
  return shape(x) == to ? x : apply("broadcast_to", {x}, {{"shape", to}}, x.bound, x.error);
}

GraphMaker::Known GraphMaker::unary(Known x) {
  double e = x.error, r = 4 * roundoff(x);
  if (!isFloat(dtype(x))) {
    if (isBool(dtype(x)))
      return apply("logical_not", {x}, {}, 1, 0);
    return apply(pick<std::string>({"neg", "abs", "sign", "relu", "bitwise_not"}), {x}, {}, x.bound, 0);
  }
  switch (below(12)) {
  case 0:
    return apply("neg", {x}, {}, x.bound, e);
  case 1:
    return apply("abs", {x}, {}, x.bound, e);
  case 2:
  case 3:
    return apply("relu", {x}, {}, x.bound, e);
  case 4:
    return apply("tanh", {x}, {}, 1, e + r);
  case 5:
    return apply("sigmoid", {x}, {}, 1, e + r);
  case 6:
    return apply("gelu", {x}, {{"approximate", std::string(oneIn(2) ? "tanh" : "none")}}, x.bound,
                 1.2 * e + r * x.bound);
  case 7:
    return apply("silu", {x}, {}, x.bound, 1.2 * e + r * x.bound);
  case 8:
    if (x.bound < 4)
      return apply("exp", {x}, {}, std::exp(x.bound), (e + r) * std::exp(x.bound));
    return apply("sin", {x}, {}, 1, e + r);
  case 9:
    return isExact(x) ? apply(pick<std::string>({"floor", "round", "trunc", "sign"}), {x}, {}, x.bound + 1, 0)
                      : apply("leaky_relu", {x}, {}, x.bound, e + r * x.bound);
  case 10: {
    Known squared = apply("mul", {x, x}, {}, x.bound * x.bound, 2 * e * x.bound + r * x.bound * x.bound);
    if (squared.bound > 1e4)
      return squared;
    Known one = broadcast(castTo(constant({f32, {}}), dtype(x)), shape(x));
    Known positive = apply("maximum", {squared, one}, {}, squared.bound + 2, squared.error);
    return apply(oneIn(2) ? "sqrt" : "log", {apply("abs", {positive}, {}, positive.bound, positive.error)}, {},
                 positive.bound, 8 * positive.error + r * 10);
  }
  default:
    return castTo(castTo(x, pick<DType>({f16, bf16, f64, f32})), dtype(x));
  }
}

GraphMaker::Known GraphMaker::combine(Known x, Known y) {
  double r = 2 * roundoff(x), b = x.bound + y.bound, e = x.error + y.error;
  if (isBool(dtype(x)))
    return apply(pick<std::string>({"logical_and", "logical_or", "ne"}), {x, y}, {}, 1, 0);
  if (!isFloat(dtype(x)))
    return apply(pick<std::string>({"add", "sub", "mul", "maximum", "minimum", "bitwise_xor", "bitwise_and",
                                    "floor_divide", "remainder", "lt", "eq"}),
                 {x, y}, {}, b, 0);
  switch (below(7)) {
  case 0:
  case 1:
    return apply("add", {x, y}, {}, b, e + r * b);
  case 2:
    return apply("sub", {x, y}, {}, b, e + r * b);
  case 3:
  case 4:
    return apply("mul", {x, y}, {}, x.bound * y.bound, x.error * y.bound + y.error * x.bound + r * x.bound * y.bound);
  case 5:
    return apply("maximum", {x, y}, {}, std::max(x.bound, y.bound), std::max(x.error, y.error));
  default:
    if (isExact(x) && isExact(y))
      return apply(pick<std::string>({"lt", "ge", "ne"}), {x, y}, {}, 1, 0);
    return apply("minimum", {x, y}, {}, std::max(x.bound, y.bound), std::max(x.error, y.error));
  }
}

/// Returns the broadcast shape of two shapes, if they have one.
static std::optional<Shape> common(const Shape &a, const Shape &b) {
  const Shape &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim &size = result[longer.size() - shorter.size() + i];
    if (size == Dim(1))
      size = shorter[i];
    else if (shorter[i] != Dim(1) && shorter[i] != size)
      return std::nullopt;
  }
  return result;
}

GraphMaker::Known GraphMaker::binary() {
  Known x = any();
  for (int attempt = 0; attempt < 6; ++attempt) {
    Known y = any();
    auto to = common(shape(x), shape(y));
    if (!to || count(*to) > kMostElements)
      continue;
    if (dtype(y) != dtype(x))
      y = castTo(y, dtype(x));
    if (dtype(y) == dtype(x))
      return combine(broadcast(x, *to), broadcast(y, *to));
  }
  Known y = rank(x) && shape(x).back().isStatic() && oneIn(2) ? constant({dtype(x), {shape(x).back()}})
                                                              : constant({dtype(x), {}});
  return combine(x, broadcast(y, shape(x)));
}

GraphMaker::Known GraphMaker::selected() {
  Known x = any();
  if (isBool(dtype(x)))
    return unary(x);
  Known condition = isExact(x) ? apply("gt", {x, broadcast(castTo(constant({f32, {}}), dtype(x)), shape(x))}, {}, 1, 0)
                               : input({boolean, shape(x)});
  Known y = unary(x);
  return shape(y) == shape(x) && dtype(y) == dtype(x)
             ? apply("where", {condition, x, y}, {}, std::max(x.bound, y.bound), std::max(x.error, y.error))
             : y;
}

void GraphMaker::step() {
  switch (below(17)) {
  case 0:
  case 1:
  case 2:
    keep(unary(any()));
    break;
  case 3:
  case 4:
  case 5:
    keep(binary());
    break;
  case 6:
  case 7:
    keep(reduce(anyShaped()));
    break;
  case 8:
    keep(normalised(anyShaped()));
    break;
  case 9:
  case 10:
    keep(moved(anyShaped()));
    break;
  case 11:
    keep(joined(anyShaped()));
    break;
  case 12:
    keep(oneIn(2) ? indexed(anyShaped()) : running(anyShaped()));
    break;
  case 13:
    keep(product(anyShaped()));
    break;
  case 14:
    keep(windowed(anyShaped()));
    break;
  case 15:
    keep(looped(anyShaped()));
    break;
  default:
    keep(selected());
  }
}

void GraphMaker::finish() {
  std::vector<Known> results{known.back()};
  for (size_t more = below(4); more > 0; --more)
    results.push_back(pick(known)); // inputs, constants and repeated results too
  for (const Known &x : results) {
    graph.output(x.value);
    errors.push_back(x.error);
  }
}

} // namespace burin::test
