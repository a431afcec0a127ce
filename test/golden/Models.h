// Five small models, of which each version stores graphs for later versions to read.
#pragma once
#include <burin/burin.h>
#include <utility>
#include <vector>

namespace burin::test {

struct GoldenModel {
  std::string name;
  Graph graph;
  std::vector<Tensor> inputs;
};

inline std::vector<GoldenModel> goldenModels() {
  manual_seed(7);
  std::vector<GoldenModel> models;
  Dim n("n");

  auto mlp = nn::Sequential(nn::Linear(6, 8), nn::ReLU(), nn::Linear(8, 3));
  models.push_back({"mlp", trace(mlp, {{f32, {n, 6}}}, {"x"}, {"y"}), {randn({3, 6})}});

  auto cnn = nn::Sequential(nn::Conv2d(1, 4, 3), nn::GELU(), nn::MaxPool2d({2}), nn::Flatten(), nn::Linear(36, 5));
  models.push_back({"cnn", trace(cnn, {{f32, {n, 1, 8, 8}}}, {"image"}, {"scores"}), {randn({2, 1, 8, 8})}});

  Tensor weight = randn({4, 4}) * 0.3;
  auto recurrence = [weight](const Tensor &first, const Tensor &xs) {
    ScanResult r = scan(
        [&](const std::vector<Tensor> &h, const std::vector<Tensor> &x) {
          Tensor next = tanh(matmul(h[0], weight) + x[0]);
          return ScanResult{{next}, {next * 2}};
        },
        {first}, {xs});
    return std::vector<Tensor>{r.states[0], r.outputs[0]};
  };
  models.push_back({"recurrence",
                    trace(recurrence, {{f32, {2, 4}}, {f32, {n, 2, 4}}}, {"first", "xs"}, {"last", "all"}),
                    {randn({2, 4}), randn({5, 2, 4})}});

  auto attention = [](const Tensor &q, const Tensor &k, const Tensor &v) {
    return scaled_dot_product_attention(q, k, v);
  };
  TensorSpec heads{f32, {1, 2, n, 8}};
  models.push_back({"attention",
                    trace(attention, {heads, heads, heads}, {"q", "k", "v"}, {"out"}),
                    {randn({1, 2, 5, 8}), randn({1, 2, 5, 8}), randn({1, 2, 5, 8})}});

  Tensor table = randn({10, 4});
  auto lookup = [table](const Tensor &ids) {
    Tensor rows = softmax(table[ids], -1);
    return std::vector<Tensor>{rows, argmax(rows, -1)};
  };
  models.push_back({"lookup", trace(lookup, {{i64, {n}}}, {"ids"}, {"rows", "best"}), {randint(0, 10, {7})}});
  return models;
}

} // namespace burin::test
