// Chains of ops that only move elements give the same bits as the interpreter, for sizes around the length of a vector:
// repeated, strided, reversed, joined and padded elements, and dimensions that are split and joined.
#include "test/Features.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using Ints = std::vector<int64_t>;

namespace {

constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 31, 33, 48, 50};
constexpr int64_t kMostElements = 200000;

/// Makes a graph with one input, step by step.
class Chain {
public:
  Chain(uint64_t seed, DType type) : random(seed) {
    Shape shape;
    for (int64_t rank = pick(1, 4); rank > 0; --rank) {
      shape.push_back(kSizes[pick(0, std::size(kSizes) - 1)]);
      if (shape.size() == 1 && pick(0, 2) == 0)
        known = shape[0].value(), shape[0] = Dim("n");
    }
    sizes = shape;
    value = graph.input({type, shape});
    for (int64_t steps = pick(1, 4); steps > 0; --steps)
      step();
    if (pick(0, 3) == 0 && isFloat(type) && !isFloat8(type))
      apply("neg");
    graph.output(value);
  }

  ir::RefTensor input() {
    std::vector<int64_t> shape;
    for (const Dim &size : sizes)
      shape.push_back(size.isStatic() ? size.value() : known);
    return randomTensor(graph.spec(graph.inputs()[0]).dtype, shape, {}, Mood::Special, random);
  }

  Graph graph;

private:
  int64_t pick(int64_t from, int64_t to) { return from + int64_t(random() % uint64_t(to - from + 1)); }
  const Shape &shape() { return graph.spec(value).shape; }
  size_t rank() { return shape().size(); }
  void apply(const char *op, const Attrs &attrs = {}) { value = graph.apply(op, {value}, attrs)[0]; }
  /// What is known to be so large; symbols count as they are here.
  int64_t count() {
    return elements(shape()).evaluate([&](std::string_view) { return std::optional(known); }).value();
  }

  void step() {
    size_t axis = pick(0, 3) ? rank() - 1 : size_t(pick(0, int64_t(rank()) - 1)); // mostly the last one
    switch (pick(0, 8)) {
    case 0:
      return repeat(axis, pick(2, 5));
    case 1:
      return slice(axis);
    case 2:
      return apply("flip", {{"axes", Ints{int64_t(axis)}}});
    case 3:
      return pad(axis);
    case 4:
      return join(axis);
    case 5:
      return transpose();
    case 6:
      return split(axis);
    case 7:
      return stack(axis);
    case 8:
      return apply("reshape", {{"shape", Shape{elements(shape())}}});
    }
  }
  void repeat(size_t axis, int64_t times) {
    if (count() * times > kMostElements)
      return;
    Shape wide = shape(), all = shape();
    wide.insert(wide.begin() + axis + 1, Dim(times));
    all[axis] = all[axis] * Dim(times);
    apply("unsqueeze", {{"axes", Ints{int64_t(axis) + 1}}});
    apply("broadcast_to", {{"shape", wide}});
    apply("reshape", {{"shape", all}});
  }
  void slice(size_t axis) {
    if (!shape()[axis].isStatic())
      return;
    int64_t size = shape()[axis].value(), start = pick(0, std::min<int64_t>(size, 6) - 1), step = pick(1, 4);
    Ints steps(rank(), 1);
    Shape starts(rank(), Dim(0));
    starts[axis] = start;
    steps[axis] = step;
    apply("slice", {{"starts", starts}, {"stops", shape()}, {"steps", steps}});
  }
  void pad(size_t axis) {
    Ints low(rank(), 0), high(rank(), 0);
    low[axis] = pick(-1, 3), high[axis] = pick(-1, 3);
    if (!shape()[axis].isStatic() || shape()[axis].value() < 4)
      low[axis] = std::max<int64_t>(low[axis], 0), high[axis] = std::max<int64_t>(high[axis], 0);
    const char *modes[] = {"constant", "constant", "edge", "reflect"};
    std::string mode = modes[pick(0, 3)];
    bool fits = mode != "reflect" || (shape()[axis].isStatic() && shape()[axis].value() > 3);
    apply("pad", {{"low", low}, {"high", high}, {"mode", fits ? mode : "constant"}, {"value", 1.0}});
  }
  void join(size_t axis) {
    if (count() * 3 > kMostElements)
      return;
    Graph::Value first = value;
    std::vector<Graph::Value> parts{first};
    for (int64_t more = pick(1, 3); more > 0; --more) {
      value = first;
      slice(axis);
      parts.insert(parts.begin() + pick(0, int64_t(parts.size())), value);
    }
    value = graph.apply("concat", parts, {{"axis", int64_t(axis)}})[0];
  }
  void stack(size_t axis) {
    if (count() * 2 > kMostElements)
      return;
    Graph::Value first = value;
    apply("flip", {{"axes", Ints{int64_t(axis)}}});
    Graph::Value other = value;
    value = first;
    apply("unsqueeze", {{"axes", Ints{int64_t(rank())}}});
    first = value;
    value = other;
    apply("unsqueeze", {{"axes", Ints{int64_t(rank())}}});
    value = graph.apply("concat", {first, value}, {{"axis", int64_t(rank()) - 1}})[0];
  }
  void transpose() {
    Ints perm(rank());
    for (size_t i = 0; i < perm.size(); ++i)
      perm[i] = int64_t(i);
    std::shuffle(perm.begin(), perm.end(), random);
    apply("transpose", {{"perm", perm}});
  }
  void split(size_t axis) {
    if (!shape()[axis].isStatic())
      return;
    for (int64_t parts : {2, 3, 5, 7})
      if (shape()[axis].value() % parts == 0 && shape()[axis].value() > parts) {
        Shape all = shape();
        all.insert(all.begin() + axis, Dim(parts));
        all[axis + 1] = shape()[axis].value() / parts;
        return apply("reshape", {{"shape", all}});
      }
  }

  Random random;
  Shape sizes;
  int64_t known = 1; // the symbol
  Graph::Value value;
};

/// Compiled code gives the bits of the interpreter.
void checkBits(Graph &g, const Tensors &inputs) {
  const Tensors want = g.interpret(inputs);
  for (const std::string &target : cpuTargets()) {
    INFO(target << "\n" << g.text());
    Tensors got = g.compile(target)->run(inputs);
    for (size_t i = 0; i < want.size(); ++i)
      CHECK(difference(got[i], want[i], {}) == "");
  }
}

} // namespace

TEST_CASE("Chains of movement give the bits of the interpreter") {
  constexpr DType types[] = {DType::f32,     DType::f16, DType::u8,   DType::i64,
                             DType::boolean, DType::f32, DType::bf16, DType::f8e4m3fn};
  const uint64_t first = 1, count = isLong() ? 20000 : 60;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Chain chain(seed, types[seed % std::size(types)]);
    Tensors inputs{chain.input()};
    Tensors want = chain.graph.interpret(inputs);
    for (const std::string &target : cpuTargets()) {
      INFO("seed " << seed << " for " << target << "\n" << chain.graph.text());
      std::string different = difference(chain.graph.compile(target)->run(inputs)[0], want[0], {});
      CHECK(different == "");
    }
  }
}

TEST_CASE("Elementwise work on transposed operands gives the bits of the interpreter") {
  const DType type = GENERATE(DType::f32, DType::f16, DType::i64, DType::u8);
  const std::vector<int64_t> sizes =
      GENERATE(Ints{2, 16, 48, 32}, Ints{1, 33, 7, 65}, Ints{3, 8, 9, 17}, Ints{2, 130, 1, 70}, Ints{1, 1, 3, 5});
  const Ints perm = GENERATE(Ints{0, 3, 1, 2}, Ints{0, 2, 3, 1}, Ints{3, 2, 1, 0}, Ints{1, 0, 3, 2});
  static size_t number = 0;
  if (!isSampled(number++, 3))
    return;
  const bool isSymbolic = sizes[1] % 3 == 0;
  Shape from, to(4);
  Ints toSizes(4);
  for (size_t i = 0; i < 4; ++i)
    from.push_back(isSymbolic ? Dim("n" + std::to_string(i)) : Dim(sizes[i]));
  for (size_t i = 0; i < 4; ++i)
    to[i] = from[size_t(perm[i])], toSizes[i] = sizes[size_t(perm[i])];
  Graph g;
  Graph::Value x = g.input({type, from}), y = g.input({type, to}), z = g.input({type, from});
  // One operand as it lies, one that is computed before it is transposed, and a result used twice.
  Graph::Value sum = g.apply("add", {g.apply("transpose", {x}, {{"perm", perm}})[0], y})[0];
  Graph::Value turned = g.apply("transpose", {g.apply("maximum", {z, x})[0]}, {{"perm", perm}})[0];
  g.output(sum);
  g.output(g.apply("maximum", {sum, turned})[0]);
  Random random{uint64_t(sizes[1])};
  Draw small{-3, 3, Specials::None}; // sums are exact
  Tensors inputs{randomTensor(type, sizes, small, Mood::Plain, random),
                 randomTensor(type, toSizes, small, Mood::Plain, random),
                 randomTensor(type, sizes, small, Mood::Plain, random)};
  Tensors want = g.interpret(inputs);
  for (const std::string &target : cpuTargets()) {
    INFO(target << "\n" << g.text());
    Tensors got = g.compile(target)->run(inputs);
    for (size_t i = 0; i < want.size(); ++i)
      CHECK(difference(got[i], want[i], {.ulps = 0.5}) == "");
  }
}

TEST_CASE("Deinterleaved operands give the bits of the interpreter") {
  const DType type = GENERATE(DType::f32, DType::f16, DType::u8);
  const bool isSymbolic = GENERATE(false, true);
  const Ints sizes = GENERATE(Ints{1, 2500, 3}, Ints{3, 1100, 2}, Ints{2, 5, 4}, Ints{2, 70, 1});
  const Dim images = isSymbolic ? Dim("i") : Dim(sizes[0]), pixels = isSymbolic ? Dim("p") : Dim(sizes[1]);
  Random random{uint64_t(sizes[1])};
  { // channels first, with another operand; rows of several tasks
    Graph g;
    Graph::Value x = g.input({type, {images, pixels, sizes[2]}}), y = g.input({type, {images, sizes[2], pixels}});
    g.output(g.apply("maximum", {g.apply("transpose", {x}, {{"perm", Ints{0, 2, 1}}})[0], y})[0]);
    checkBits(g, {randomTensor(type, sizes, {-3, 3}, Mood::Plain, random),
                  randomTensor(type, {sizes[0], sizes[2], sizes[1]}, {-3, 3}, Mood::Plain, random)});
  }
  Graph g; // space to depth
  Graph::Value x = g.input({type, {images, 2, pixels, sizes[2]}});
  g.output(g.apply("transpose", {x}, {{"perm", Ints{1, 3, 0, 2}}})[0]);
  checkBits(g, {randomTensor(type, {sizes[0], 2, sizes[1], sizes[2]}, {-3, 3}, Mood::Plain, random)});
}

TEST_CASE("Windows give the bits of the interpreter wherever vectors lie") {
  // Rows of the result of 1 to 50 elements, inside, at both ends and across.
  const DType type = GENERATE(DType::f32, DType::f16, DType::u8, DType::f64);
  const int64_t kernel = GENERATE(1, 2, 3, 5), stride = GENERATE(1, 2, 3), size = GENERATE(7, 16, 34, 50, 100);
  static size_t number = 0;
  if (!isSampled(number++, 13))
    return;
  const int64_t padding = std::min<int64_t>(kernel / 2, 2);
  const bool isSymbolic = (size + kernel + stride) % 2;
  for (const char *op : {"max_pool", "avg_pool"}) {
    if (type == DType::u8 && op == std::string("avg_pool"))
      continue;
    Graph g;
    Shape shape{2, isSymbolic ? Dim("c") : Dim(3), isSymbolic ? Dim("h") : Dim(9), isSymbolic ? Dim("w") : Dim(size)};
    Attrs attrs{{"kernel", Ints{kernel, kernel}},
                {"strides", Ints{stride, stride}},
                {"padding", Ints{padding, padding, padding, padding}},
                {"dilations", Ints{1, kernel == 3 && stride == 1 ? 2 : 1}}};
    if (op == std::string("avg_pool"))
      attrs["count_include_pad"] = kernel == 3;
    g.output(g.apply(op, {g.input({type, shape})}, attrs)[0]);
    Random random(uint64_t(kernel * 1000 + size));
    const Mood mood = op == std::string("max_pool") ? Mood::Special : Mood::Plain;
    Tensors inputs{randomTensor(type, {2, 3, 9, size}, {}, mood, random)};
    for (const std::string &target : cpuTargets()) {
      INFO(target << "\n" << g.text());
      Tolerance tolerance{.ulps = op == std::string("avg_pool") ? 4. : 0.};
      tolerance.epsilons = op == std::string("avg_pool") ? 16 : 0;
      tolerance.zeroSigns = false;
      CHECK(difference(g.compile(target)->run(inputs)[0], g.interpret(inputs)[0], tolerance) == "");
    }
  }
}

TEST_CASE("Elements at multiples of sizes that only a run knows give the bits of the interpreter") {
  // Channels between or behind columns, so that the lanes of a vector lie in several planes; rows that end anywhere.
  const DType type = GENERATE(DType::f32, DType::f16, DType::u8);
  const int64_t channels = GENERATE(2, 3, 4, 5), columns = GENERATE(1, 7, 16, 33, 50);
  const Ints perm = GENERATE(Ints{1, 2, 0}, Ints{1, 0, 2}, Ints{2, 1, 0});
  static size_t number = 0;
  if (!isSampled(number++, 13))
    return;
  Graph g;
  Graph::Value x = g.input({type, {channels, Dim("h"), Dim("w")}});
  Graph::Value turned = g.apply("transpose", {x}, {{"perm", perm}})[0];
  g.output(g.apply("reshape", {turned}, {{"shape", Shape{elements(g.spec(x).shape)}}})[0]);
  Graph::Value both = g.apply("concat", {x, g.apply("flip", {x}, {{"axes", Ints{2}}})[0]}, {{"axis", int64_t(1)}})[0];
  g.output(g.apply("pad", {both}, {{"low", Ints{0, 0, 1}}, {"high", Ints{0, 1, 2}}, {"value", 1.0}})[0]);
  Random random{uint64_t(channels * 100 + columns)};
  Tensors inputs{randomTensor(type, {channels, 9, columns}, {}, Mood::Special, random)};
  checkBits(g, inputs);
}

TEST_CASE("The last vector of repeated rows reads nothing behind them") {
  const DType type = GENERATE(DType::bf16, DType::f32, DType::u8);
  const int64_t rows = GENERATE(1, 3, 5), columns = GENERATE(4, 8, 16), repeats = GENERATE(2, 3, 5);
  Graph g;
  Graph::Value tiled = g.apply("tile", {g.input({type, {rows, columns}})}, {{"repeats", Ints{1, repeats}}})[0];
  g.output(g.apply("sub", {tiled, tiled})[0]);
  Random random(1);
  Tensors inputs{randomTensor(type, {rows, columns}, {}, Mood::Plain, random)};
  for (const std::string &target : cpuTargets())
    CHECK(difference(g.compile(target)->run(inputs)[0], g.interpret(inputs)[0], {}) == "");
}

TEST_CASE("A transposed operand is reduced over a dimension of size 1") {
  for (const char *op : {"argmax", "reduce_sum", "reduce_max"}) {
    Graph g;
    Graph::Value turned = g.apply("transpose", {g.input({DType::f32, {1, 34, 20}})}, {{"perm", Ints{0, 2, 1}}})[0];
    Attrs attrs = op == std::string("argmax") ? Attrs{{"axis", int64_t(0)}} : Attrs{{"axes", Ints{0}}};
    g.output(g.apply("add", {turned, turned})[0]);
    g.output(g.apply(op, {turned}, attrs)[0]);
    Random random(1);
    Tensors inputs{randomTensor(DType::f32, {1, 34, 20}, {}, Mood::Plain, random)}, want = g.interpret(inputs);
    Tensors got = g.compile("native")->run(inputs);
    for (size_t i = 0; i < want.size(); ++i)
      CHECK(difference(got[i], want[i], {}) == "");
  }
}

TEST_CASE("Columns read at computed positions give the bits of the interpreter") {
  // As a resize reads them, so that lanes lie near each other, and anywhere, also from the end.
  const DType type = GENERATE(DType::f32, DType::f16, DType::u8, DType::i64);
  const int64_t from = GENERATE(1, 20, 33, 70), to = GENERATE(9, 40);
  const bool isSymbolic = (from + to) % 2, isNear = GENERATE(true, false);
  static size_t number = 0;
  if (!isSampled(number++, 3))
    return;
  Graph g;
  Graph::Value x = g.input({type, {Dim(2), isSymbolic ? Dim("h") : Dim(11), isSymbolic ? Dim("w") : Dim(from)}});
  Graph::Value first = g.input({DType::i64, {Dim(to)}}), second = g.input({DType::i32, {Dim(to)}});
  auto taken = [&](Graph::Value v, Graph::Value at) { return g.apply("take", {v, at}, {{"axis", int64_t(2)}})[0]; };
  g.output(g.apply("maximum", {taken(x, first), taken(x, second)})[0]);
  g.output(taken(g.apply("maximum", {x, g.apply("flip", {x}, {{"axes", Ints{2}}})[0]})[0], second));
  Random random{uint64_t(from * 1000 + to)};
  Tensors inputs{randomTensor(type, {2, 11, from}, {}, Mood::Plain, random)};
  for (DType index : {DType::i64, DType::i32}) {
    ir::RefTensor at = ir::RefTensor::zeros(index, {to});
    for (int64_t i = 0; i < to; ++i)
      at.ints()[size_t(i)] = isNear ? std::min(i * from / to + int64_t(index == DType::i32), from - 1)
                                    : int64_t(random() % uint64_t(2 * from)) - from;
    inputs.push_back(at);
  }
  checkBits(g, inputs);
  inputs[1].ints()[size_t(to - 1)] = from;
  CHECK_THROWS(g.compile("native")->run(inputs));
}

TEST_CASE("Concats and pads give the bits of the interpreter wherever their pieces end") {
  const DType type = GENERATE(DType::f32, DType::u8);
  const int64_t rows = 5, columns = GENERATE(1, 16, 40, 77);
  const bool isSymbolic = GENERATE(true, false);
  const char *mode = GENERATE("constant", "edge", "reflect");
  static size_t number = 0; // of 48 combinations
  if (!isSampled(number++, 5))
    return;
  auto size = [&](const char *name, int64_t known) { return isSymbolic ? Dim(name) : Dim(known); };
  Graph g;
  Graph::Value x = g.input({type, {Dim(3), size("h", rows), size("w", columns)}});
  Graph::Value y = g.input({type, {Dim(3), size("h", rows), size("v", 21)}});
  Graph::Value z = g.input({type, {Dim(3), size("k", 2), size("w", columns)}});
  auto padded = [&](Graph::Value v, Ints low, Ints high) {
    return g.apply("pad", {v}, {{"low", low}, {"high", high}, {"mode", mode}, {"value", 2.0}})[0];
  };
  auto joined = [&](std::vector<Graph::Value> parts, int64_t axis) {
    return g.apply("concat", parts, {{"axis", axis}})[0];
  };
  const int64_t most = isSymbolic || std::string(mode) != "reflect" ? 2 : std::min<int64_t>(2, columns - 1);
  const int64_t high = isSymbolic && std::string(mode) == "reflect" ? 0 : most;
  g.output(joined({x, y, x}, 2));
  g.output(joined({z, x, z}, 1));
  g.output(padded(y, {0, 0, 1}, {0, 0, 2}));
  g.output(padded(joined({x, z}, 1), {0, 1, 0}, {0, 1, high && columns > 2 ? high : 0}));
  Random random{uint64_t(rows * 100 + columns)};
  Tensors inputs{randomTensor(type, {3, rows, columns}, {}, Mood::Special, random),
                 randomTensor(type, {3, rows, 21}, {}, Mood::Special, random),
                 randomTensor(type, {3, 2, columns}, {}, Mood::Special, random)};
  checkBits(g, inputs);
}

TEST_CASE("Pads of empty tensors read nothing") {
  const Ints sizes = GENERATE(Ints{0, 5}, Ints{3, 0}, Ints{0, 0}, Ints{0, 40});
  Graph g;
  Graph::Value x = g.input({DType::f32, {Dim("h"), Dim("w")}});
  g.output(g.apply("pad", {x}, {{"low", Ints{1, 2}}, {"high", Ints{0, 3}}, {"value", 1.0}})[0]);
  g.output(g.apply("pad", {x}, {{"low", Ints{1, 0}}, {"high", Ints{2, 0}}, {"value", 1.0}})[0]);
  Tensors inputs{ir::RefTensor::zeros(DType::f32, sizes)};
  checkBits(g, inputs);
}

TEST_CASE("Concats of short pieces under a mask read nothing outside of an operand") {
  // With AVX2, LLVM loads the lower register of such a vector without its mask if it knows that no lane is active.
  const int64_t length = GENERATE(3, 5, 6, 7, 13);
  Graph g;
  Graph::Value x = g.input({DType::bf16, {10}}), at = g.input({DType::i64, {length}});
  auto number = [&](double value) {
    return g.apply("full", {}, {{"dtype", DType::i64}, {"shape", Shape{Dim(length)}}, {"value", value}})[0];
  };
  Graph::Value inside = g.apply("clamp", {at, number(-1), number(0)})[0];
  Graph::Value taken = g.apply("neg", {g.apply("take", {x, inside}, {{"axis", int64_t(0)}})[0]})[0];
  Graph::Value joined = g.apply("concat", {g.apply("relu", {taken})[0], taken, taken}, {{"axis", int64_t(0)}})[0];
  g.output(g.apply("relu", {joined})[0]);
  Random random(5);
  Tensors inputs{randomTensor(DType::bf16, {10}, {}, Mood::Plain, random),
                 randomTensor(DType::i64, {length}, {}, Mood::Plain, random)};
  checkBits(g, inputs);
}

TEST_CASE("Reductions of concats of concats under a mask read nothing outside of an operand") {
  const int64_t length = GENERATE(2, 3, 4, 6, 7, 10, 14);
  Graph g;
  Graph::Value x = g.input({DType::i64, {3, length}}), divided = g.input({DType::i64, {3, 1}});
  Graph::Value mask = g.input({DType::i64, {}});
  Attrs last{{"axis", int64_t(1)}};
  Graph::Value inner = g.apply("concat", {g.apply("relu", {x})[0], x, x}, last)[0];
  auto wide = [&](Graph::Value v) { return g.apply("broadcast_to", {v}, {{"shape", g.spec(inner).shape}})[0]; };
  Graph::Value changed = g.apply("bitwise_xor", {inner, wide(mask)})[0];
  Graph::Value quotient = g.apply("floor_divide", {wide(divided), changed})[0];
  Graph::Value outer = g.apply("concat", {quotient, g.apply("sign", {quotient})[0]}, last)[0];
  g.output(g.apply("argmin", {g.apply("relu", {outer})[0]}, last)[0]);
  Random random(5);
  checkBits(g, {randomTensor(DType::i64, {3, length}, {}, Mood::Plain, random),
                randomTensor(DType::i64, {3, 1}, {}, Mood::Plain, random),
                randomTensor(DType::i64, {}, {}, Mood::Plain, random)});
}
