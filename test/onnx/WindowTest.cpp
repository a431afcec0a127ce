// Networks that cut images of any size into windows, as PyTorch's exporters write them: padding to whole windows,
// rolling, and merging of neighbours. The expressions of sizes stay short for any number of layers.
#include "test/onnx/Load.h"

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
