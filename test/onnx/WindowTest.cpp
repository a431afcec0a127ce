// Networks that cut images of any size into windows, as PyTorch's exporters write them: padding to whole windows,
// rolling, and merging of neighbours. The expressions of sizes stay short for any number of layers.
#include "test/Features.h"
#include "test/onnx/Load.h"
#include <cmath>

using namespace burin::test;

namespace {

/// Builds the nodes of layers on images [b, h, w, 2].
class Network {
public:
  std::vector<NodeText> nodes;
  std::vector<Bytes> initializers;

  Bytes add(const Bytes &op, std::vector<Bytes> inputs, std::vector<Bytes> attributes = {}) {
    Bytes name = "v" + std::to_string(nodes.size());
    nodes.push_back({op, std::move(inputs), {name}, std::move(attributes)});
    return name;
  }
  Bytes list(const std::vector<int64_t> &values) {
    Bytes name = "c" + std::to_string(initializers.size());
    initializers.push_back(ints(name, values));
    return name;
  }
  Bytes sizeOf(const Bytes &x, int64_t axis) { return add("Gather", {add("Shape", {x}), list({axis})}); }
  Bytes joined(std::vector<Bytes> parts) { return add("Concat", std::move(parts), {attribute("axis", int64_t(0))}); }
  Bytes sliced(const Bytes &x, int64_t axis, const Bytes &from, const Bytes &to, int64_t step = 1) {
    return add("Slice", {x, from, to, list({axis}), list({step})});
  }
  Bytes transposed(const Bytes &x, std::initializer_list<int64_t> order) {
    return add("Transpose", {x}, {attribute("perm", order)});
  }

  /// Pads by (n - size % n) % n rows and columns.
  Bytes padded(const Bytes &x, int64_t n) {
    auto missing = [&](int64_t axis) {
      return add("Mod", {add("Sub", {list({n}), add("Mod", {sizeOf(x, axis), list({n})})}), list({n})});
    };
    return add("Pad", {x, joined({list({0, 0, 0, 0, 0}), missing(1), missing(2), list({0})})});
  }
  /// Rolls by the remainder of a number, which is less than the size of every image with windows.
  Bytes rolled(const Bytes &x, int64_t axis, int64_t by) {
    Bytes end = list({INT64_MAX}), begin = list({0});
    Bytes at = add("Mod", {list({by}), sizeOf(x, axis)});
    return add("Concat", {sliced(x, axis, at, end), sliced(x, axis, begin, at)}, {attribute("axis", axis)});
  }
  /// Softmax within each window of n rows and columns, rolled by `shift`.
  Bytes windows(const Bytes &x, int64_t n, int64_t shift) {
    Bytes whole = padded(x, n), batch = sizeOf(x, 0), height = sizeOf(whole, 1), width = sizeOf(whole, 2);
    Bytes rows = add("Div", {height, list({n})}), columns = add("Div", {width, list({n})}), side = list({n});
    Bytes depth = list({2}), place = whole;
    for (int64_t axis : {1, 2})
      place = shift ? rolled(place, axis, shift) : place;
    Bytes cut = add("Reshape", {place, joined({batch, rows, side, columns, side, depth})});
    Bytes count = add("Mul", {batch, add("Mul", {rows, columns})});
    Bytes flat = add("Reshape", {transposed(cut, {0, 1, 3, 2, 4, 5}), joined({count, list({n * n}), depth})});
    Bytes scores = add("MatMul", {flat, transposed(flat, {0, 2, 1})});
    Bytes mixed = add("MatMul", {add("Softmax", {scores}), flat});
    Bytes back = add("Reshape", {mixed, joined({batch, rows, columns, side, side, depth})});
    Bytes image = add("Reshape", {transposed(back, {0, 1, 3, 2, 4, 5}), joined({batch, height, width, depth})});
    for (int64_t axis : {1, 2})
      image = shift ? rolled(image, axis, -shift) : image; // rolls back
    for (int64_t axis : {1, 2})
      image = sliced(image, axis, list({0}), sizeOf(x, axis));
    return add("Add", {x, image});
  }
  /// The mean of each 2×2 block, after padding to even sizes.
  Bytes merged(const Bytes &x) {
    Bytes even = padded(x, 2), sum;
    for (int64_t row : {0, 1})
      for (int64_t column : {0, 1}) {
        Bytes rows = sliced(even, 1, list({row}), list({INT64_MAX}), 2);
        Bytes part = sliced(rows, 2, list({column}), list({INT64_MAX}), 2);
        sum = sum.empty() ? part : add("Add", {sum, part});
      }
    return sum;
  }
};

} // namespace

TEST_CASE("Windows of images of any size") {
  Network network;
  Bytes x = "x";
  for (int layer = 0; layer < 4; ++layer) {
    if (layer)
      x = network.merged(x);
    x = network.windows(network.windows(x, 3, 0), 3, 1);
  }
  network.nodes.push_back({"Identity", {x}, {"y"}});
  ModelText model = graphOf(network.nodes, {floatInput("x", {"b", "h", "w", "2"})}, network.initializers);
  Graph open = loadModel(model).graph;
  CHECK(str(open.outputs()[0]) == "y: f32[b, floordiv(h + 7, 8), floordiv(w + 7, 8), 2]");
  Artifact compiled = compile(open);
  for (auto [b, h, w] : {std::array<int64_t, 3>{1, 24, 24}, {2, 17, 30}, {1, 5, 41}}) {
    CAPTURE(b, h, w);
    Tensor image =
        sin(iota({b, h, w, 2}, f32, 1) * 0.9 + iota({b, h, w, 2}, f32, 2) * 1.7 + iota({b, h, w, 2}, f32, 3));
    Tensor known = loadModel(model, {{"b", b, b}, {"h", h, h}, {"w", w, w}}).graph.run({image})[0];
    CHECK(largestDifference(compiled.run({image})[0], known) < 1e-5);
  }
}

TEST_CASE("auto_pad of sizes that only a run knows pads as that of known sizes") {
  const bool isUpper = GENERATE(true, false);
  const int64_t kernel = GENERATE(1, 2, 3, 5), stride = GENERATE(2, 3);
  const Bytes op = GENERATE("Conv", "MaxPool", "AveragePool", "LpPool");
  static size_t number = 0;
  if (!isSampled(number++, 3))
    return;
  auto load = [&](const Bytes &height, const Bytes &width) {
    std::vector<Bytes> attributes{attribute("auto_pad", isUpper ? "SAME_UPPER" : "SAME_LOWER"),
                                  attribute("strides", {stride, stride})},
        inputs{"x"}, weights;
    if (op == "Conv") {
      inputs.push_back("w");
      std::vector<float> values(size_t(2 * 3 * kernel * kernel));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = float(int(i % 7) - 3);
      weights.push_back(floatTensor("w", {2, 3, kernel, kernel}, values));
    } else {
      attributes.push_back(attribute("kernel_shape", {kernel, kernel}));
    }
    return loadModel(graphOf({{op, inputs, {"y"}, attributes}}, {floatInput("x", {"1", "3", height, width})}, weights))
        .graph;
  };
  const Graph any = load("h", "w_");
  for (auto [height, width] : {std::pair(8, 9), {7, 6}, {5, 5}, {6, 12}}) {
    INFO(op << " " << kernel << " " << stride << " " << isUpper << " " << height << "x" << width);
    const Tensor x = randn({1, 3, height, width});
    const Tensor got = any.run({x})[0], want = load(std::to_string(height), std::to_string(width)).run({x})[0];
    REQUIRE(got.shape() == want.shape());
    CHECK(largestDifference(got, want) < 1e-5);
  }
}

TEST_CASE("Sizes are divided with another sign, halved to even, and subtracted in any order") {
  // -(-n / 2), round(n / 2) and |n - m|, in integers and floats.
  std::vector<NodeText> nodes{{"Shape", {"x"}, {"s"}},
                              {"Neg", {"s"}, {"below"}},
                              {"Div", {"below", "two"}, {"quotient"}},
                              {"Neg", {"quotient"}, {"up"}},
                              {"Cast", {"s"}, {"floats"}, {attribute("to", int64_t(1))}},
                              {"Mul", {"floats", "half"}, {"halves"}},
                              {"Round", {"halves"}, {"even"}},
                              {"Cast", {"even"}, {"rounded"}, {attribute("to", int64_t(7))}},
                              {"Sub", {"s", "seven"}, {"difference"}},
                              {"Abs", {"difference"}, {"distance"}},
                              {"Concat", {"up", "rounded", "distance"}, {"all"}, {attribute("axis", int64_t(0))}},
                              {"ConstantOfShape", {"all"}, {"y"}}};
  Graph graph = loadModel(graphOf(nodes, {floatInput("x", {"n", "m"})},
                                  {ints("two", {2}), ints("seven", {7}), floatTensor("half", {1}, {0.5})}))
                    .graph;
  for (auto [n, m] : {std::pair(3, 8), {5, 10}, {1, 9}, {7, 2}}) {
    auto evenHalf = [](int64_t size) { return int64_t(std::nearbyint(double(size) / 2)); };
    CHECK(graph.run({ones({n, m})})[0].shape() ==
          Shape{n / 2, m / 2, evenHalf(n), evenHalf(m), std::abs(n - 7), std::abs(m - 7)});
  }
}
