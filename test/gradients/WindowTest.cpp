// Gradients of windows over images of any size: the same as over images of known size.
#include "frontend/trace/GraphData.h"
#include "ir/reference/Reference.h"
#include "test/frontend/Check.h"

namespace {

using Layer = std::function<Tensor(const Tensor &)>;

Graph gradientOf(const Layer &layer, const TensorSpec &spec) {
  return trace(
      [&](const Tensor &x) {
        Tensor y = layer(x);
        return grad((y * y).sum(), {x})[0];
      },
      {spec});
}

std::vector<double> interpret(const Graph &graph, const Tensor &x) {
  ir::RefTensor input{f64, {}, x.to_vector<double>()};
  for (const Dim &size : x.shape())
    input.shape.push_back(size.value());
  auto results = ir::interpret(*graph.shared()->module, {input});
  REQUIRE(mlir::succeeded(results));
  return (*results)[0].reals();
}

const Dim h("h"), w("w");

/// Compares the interpreter's results.
void check(const std::string &name, const Layer &layer) {
  INFO(name);
  Graph any = gradientOf(layer, {f64, {2, 3, h, w}});
  CHECK(str(any.outputs()[0].spec) == "f64[2, 3, h, w]");
  for (const auto &[height, width] : {std::pair{10, 11}, {12, 13}, {16, 10}, {15, 14}}) {
    Tensor x = randn({2, 3, height, width}, f64);
    std::vector<double> got = interpret(any, x), wanted = interpret(gradientOf(layer, x.spec()), x);
    REQUIRE(got.size() == wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      REQUIRE(got[i] == Approx(wanted[i]).margin(1e-12));
  }
}

} // namespace

TEST_CASE("gradients of pools over images of any size") {
  check("2 by 2", [](const Tensor &x) { return max_pool(x, {2, 2}, {2, 2}); });
  check("3 by 2", nn::MaxPool2d(3, {.stride = 2}));
  check("overlap", nn::MaxPool2d(3, {.stride = 1}));
  check("gaps", nn::MaxPool2d(2, {.stride = 3}));
  check("padding", nn::MaxPool2d(3, {.stride = 2, .padding = 1}));
  check("dilation", nn::MaxPool2d(2, {.stride = 2, .dilation = 2}));
  check("ceil", nn::MaxPool2d(3, {.stride = 2, .ceil_mode = true}));
  check("padding, ceil", nn::MaxPool2d(3, {.stride = 2, .padding = 1, .ceil_mode = true}));
  check("mean", nn::AvgPool2d(2));
  check("mean, ceil", nn::AvgPool2d(2, {.ceil_mode = true}));
  check("mean, padding, ceil",
        nn::AvgPool2d(3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false}));
}

TEST_CASE("gradients of chains of windows over images of any size") {
  manual_seed(6);
  nn::Conv2d conv(3, 3, 3), strided(3, 3, 3, {.stride = 2, .padding = 1}), bare(3, 3, 3, {.stride = 2});
  nn::ConvTranspose2d transposed(3, 2, 3, {.stride = 2});
  nn::MaxPool2d two(2), three(3, {.stride = 2});
  for (nn::Module module : {nn::Module(conv), nn::Module(strided), nn::Module(bare), nn::Module(transposed)})
    module.to(f64);
  check("conv, pool", [=](const Tensor &x) { return two(conv(x)); });
  check("conv, pool of 3", [=](const Tensor &x) { return three(conv(x)); });
  check("conv, mean", [=](const Tensor &x) { return nn::AvgPool2d(2, {.ceil_mode = true})(conv(x)); });
  check("strided conv, pool", [=](const Tensor &x) { return three(strided(x)); });
  check("pool, strided conv", [=](const Tensor &x) { return strided(three(x)); });
  check("conv, strided conv", [=](const Tensor &x) { return bare(conv(x)); });
  check("pool, transposed conv", [=](const Tensor &x) { return transposed(three(x)); });
  check("pool, pool", [=](const Tensor &x) { return two(two(x)); });
  check("conv, pool, conv, pool", [=](const Tensor &x) { return two(conv(two(conv(x)))); });
}

TEST_CASE("compiled gradients of pools over images of any size") {
  const nn::MaxPool2d pool(3, {.stride = 2});
  Graph any = gradientOf(pool, {f64, {1, 1, h, 8}});
  for (int height : {3, 4, 9}) {
    Tensor x = randn({1, 1, height, 8}, f64);
    CHECK(any.run({x})[0].to_vector<double>() == interpret(gradientOf(pool, x.spec()), x));
  }
  // Images without any window have gradients of zeros, smaller ones are refused.
  for (int height : {1, 2})
    CHECK(equal(any.run({ones({1, 1, height, 8}, f64)})[0], zeros({1, 1, height, 8}, f64)));
  CHECK_ERROR(any.run({ones({1, 1, 0, 8}, f64)}), "for h = 0");
}
