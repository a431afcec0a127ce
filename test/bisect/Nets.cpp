// The graphs in which the planted bugs show. #line gives them fixed source lines, which the tests name.
#include "test/bisect/Nets.h"
#include "burin/burin.h"

namespace burin::test {
namespace {

struct Weights {
  Tensor conv1 = randn({8, 3, 3, 3}), bias1 = randn({8}), mean = randn({8}), variance = rand({8}) + 0.5,
         scale = randn({8}), shift = randn({8}), conv2 = randn({6, 8, 2, 2}) * 0.1, group1 = randn({14}),
         group2 = randn({14}), head = randn({96, 10}) * 0.1;
  Tensor wide = randn({21, 12}) * 0.3, row = randn({12}), square = randn({12, 12}) * 0.3;
  Tensor deep = randn({16, 3, 3, 3}), narrow = randn({4, 16, 2, 2});
  Tensor edge = randn({21, 8}) * 0.3, offset = randn({8});
};

// clang-format off
#line 1 "image.cpp"
std::vector<Tensor> image(const Weights &w, const Tensor &x) {
  Tensor a = conv(x, w.conv1, w.bias1, {1, 1}, {1, 1, 1, 1});
  Tensor b = batch_norm(a, w.mean, w.variance, w.scale, w.shift);
  Tensor c = max_pool(b, {2, 2}, {2, 2});
  Tensor d = conv(c, w.conv2, std::nullopt, {1, 1}, {1, 0, 0, 1});
  Tensor e = relu(d);
  Tensor f = sigmoid(e);
  Tensor g = e * f;
  Tensor h = concat({g, c}, 1);
  Tensor i = group_norm(h, 2, w.group1, w.group2);
  Tensor j = reshape(g, {x.shape()[0], 96});
  Tensor k = matmul(j, w.head);
  return {softmax(k), i};
}
#line 1 "text.cpp"
std::vector<Tensor> text(const Weights &w, const Tensor &x) {
  Tensor a = matmul(x, w.wide);
  Tensor b = tanh(a) - a;
  Tensor c = b * exp(w.row);
  Tensor d = transpose(reshape(c, {3, 4, 4, 4})[0], {1, 2, 0});
  Tensor e = transpose(d, {1, 2, 0});
  Tensor f = max(e, {1});
  Tensor g = max(e, {2});
  return {c, f - g};
}
#line 1 "memory.cpp"
Tensor memory(const Weights &w, const Tensor &x) {
  Tensor a = matmul(x, w.square);
  Tensor b = softmax(a);
  Tensor c = matmul(a, w.square);
  return c * b;
}
#line 1 "rows.cpp"
Tensor rows(const Weights &w, const Tensor &x) {
  Tensor a = sin(x);
  Tensor b = exp(a);
  Tensor c = sum(b, {1}, true);
  Tensor d = b / c;
  return matmul(d, w.edge) + w.offset;
}
#line 1 "batch.cpp"
Tensor batch(const Weights &w, const Tensor &x) {
  Tensor a = conv(x, w.deep);
  Tensor b = sigmoid(a);
  return conv(b, w.narrow, std::nullopt, {1, 1}, {1, 0, 0, 1});
}
// clang-format on

} // namespace

void writeNets(const std::string &folder) {
  manual_seed(1);
  Weights w;
  auto save = [&](auto net, TensorSpec input, const std::string &name) {
    trace([&](const Tensor &x) { return net(w, x); }, {input}).save(folder + "/" + name + ".burin");
  };
  save(image, {f32, {Dim("n"), 3, 9, 9}}, "image");
  save(text, {f32, {2, 8, 21}}, "text");
  save(memory, {f32, {6, 12}}, "memory");
  save(rows, {f32, {3, 21}}, "rows");
  save(batch, {f32, {2, 3, 26, 26}}, "batch");
}

} // namespace burin::test
