// Single-kernel workloads: one library call of a peer. Images are channels-last, so that no layout is converted.
#include "tools/bench/models/Workloads.h"
#include <cmath>

namespace burin::bench {
namespace {

std::string joined(std::initializer_list<int64_t> sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

/// Traces a kernel that is written as a function of its input and of its weights by name.
template <class Kernel> Model kernelModel(Shape input, StateDict weights, Kernel kernel) {
  Tensor x = randn(input);
  Graph graph = trace([=](const Tensor &x) { return kernel(x, weights); }, {x.spec()}, {"x"}, {"y"});
  return {std::move(graph), weights, {{"x", x}}};
}

Tensor weight(const Shape &shape, int64_t fanIn) { return randn(shape) * (1 / std::sqrt(double(fanIn))); }

// ---- products

struct Gemm {
  int64_t m, k, n;
};

Model gemm(const Gemm &s) {
  manual_seed(1);
  return kernelModel({s.m, s.k}, {{"weight", weight({s.k, s.n}, s.k)}},
                     [](const Tensor &x, const StateDict &w) { return matmul(x, w.at("weight")); });
}

/// A product of two inputs: neither operand can be packed ahead of time.
Model gemmOfInputs(const Gemm &s) {
  manual_seed(1);
  StateDict inputs{{"x", randn({s.m, s.k})}, {"weight", weight({s.k, s.n}, s.k)}};
  Graph graph = trace([](const Tensor &x, const Tensor &y) { return matmul(x, y); },
                      {inputs[0].second.spec(), inputs[1].second.spec()}, {"x", "weight"}, {"y"});
  return {std::move(graph), {}, std::move(inputs)};
}

std::string addGemm(std::vector<Workload> &list, const Gemm &s, bool isWeightConstant, std::string neighbourOf = "") {
  std::string kind = isWeightConstant ? "gemm" : "gemm-inputs", name = kind + "-" + joined({s.m, s.k, s.n});
  list.push_back({name, kind, {{"m", s.m}, {"k", s.k}, {"n", s.n}}, "kernel", std::move(neighbourOf), [=] {
                    return isWeightConstant ? gemm(s) : gemmOfInputs(s);
                  }});
  return name;
}

// ---- convolutions

struct Conv {
  int64_t in, out, size, kernel, stride, groups = 1;
};

Model convolution(const Conv &s) {
  manual_seed(1);
  Shape shape{s.out, s.in / s.groups, s.kernel, s.kernel};
  StateDict weights{{"weight", weight(shape, nn::init::fans(shape).first)}, {"bias", randn({s.out})}};
  auto kernel = [=](const Tensor &x, const StateDict &w) {
    // From PyTorch's [out, in, kernel, kernel] to [kernel, kernel, in, out].
    Tensor channelsLast = w.at("weight").transpose({2, 3, 1, 0});
    return conv(x, channelsLast, w.at("bias"), {s.stride}, {s.kernel / 2}, {1}, s.groups, "nhwc");
  };
  return kernelModel({1, s.size, s.size, s.in}, weights, kernel);
}

std::string addConv(std::vector<Workload> &list, const Conv &s, std::string neighbourOf = "") {
  bool isDepthwise = s.groups > 1;
  std::string name = (isDepthwise ? "depthwise-" + joined({s.in}) : "conv-" + joined({s.in, s.out})) + "-" +
                     joined({s.size, s.size}) + "-k" + std::to_string(s.kernel) + "s" + std::to_string(s.stride);
  list.push_back({name,
                  "conv",
                  {{"in", s.in},
                   {"out", s.out},
                   {"size", s.size},
                   {"kernel", s.kernel},
                   {"stride", s.stride},
                   {"groups", s.groups}},
                  "kernel",
                  std::move(neighbourOf),
                  [=] { return convolution(s); }});
  return name;
}

// ---- rows

struct Rows {
  int64_t rows, columns;
};

Model rowKernel(const std::string &kind, const Rows &s) {
  manual_seed(1);
  StateDict weights;
  if (kind == "layer_norm")
    weights.emplace_back("weight", uniform({s.columns}, 0.5, 1.5));
  if (kind == "layer_norm" || kind == "bias_gelu")
    weights.emplace_back("bias", randn({s.columns}));
  return kernelModel({s.rows, s.columns}, weights, [=](const Tensor &x, const StateDict &w) -> Tensor {
    if (kind == "softmax")
      return softmax(x);
    if (kind == "layer_norm")
      return layer_norm(x, w.at("weight"), w.at("bias"));
    return gelu(kind == "gelu" ? x : x + w.at("bias"));
  });
}

std::string addRows(std::vector<Workload> &list, const std::string &kind, const Rows &s, std::string neighbourOf = "") {
  std::string name = kind + "-" + joined({s.rows, s.columns});
  list.push_back({name, kind, {{"rows", s.rows}, {"columns", s.columns}}, "kernel", std::move(neighbourOf), [=] {
                    return rowKernel(kind, s);
                  }});
  return name;
}

// ---- steps that do next to nothing

Model steps(int64_t count) {
  manual_seed(1);
  StateDict weights;
  for (int64_t i = 0; i < count; ++i)
    weights.emplace_back("weight" + std::to_string(i), weight({8, 8}, 8));
  return kernelModel({1, 8}, weights, [](Tensor x, const StateDict &w) {
    for (const auto &[name, matrix] : w)
      x = matmul(x, matrix);
    return x;
  });
}

/// The distinct convolutions of ResNet-50.
constexpr Conv kResNetConvs[] = {
    {3, 64, 224, 7, 2},     {64, 64, 56, 1, 1},   {64, 64, 56, 3, 1},    {64, 256, 56, 1, 1},   {256, 64, 56, 1, 1},
    {256, 128, 56, 1, 1},   {128, 128, 56, 3, 2}, {128, 512, 28, 1, 1},  {256, 512, 56, 1, 2},  {512, 128, 28, 1, 1},
    {128, 128, 28, 3, 1},   {512, 256, 28, 1, 1}, {256, 256, 28, 3, 2},  {256, 1024, 14, 1, 1}, {512, 1024, 28, 1, 2},
    {1024, 256, 14, 1, 1},  {256, 256, 14, 3, 1}, {1024, 512, 14, 1, 1}, {512, 512, 14, 3, 2},  {512, 2048, 7, 1, 1},
    {1024, 2048, 14, 1, 2}, {2048, 512, 7, 1, 1}, {512, 512, 7, 3, 1}};

/// The distinct depthwise convolutions of MobileNetV2: channels, size, stride.
constexpr int64_t kDepthwise[][3] = {{32, 112, 1}, {96, 112, 2}, {144, 56, 1}, {144, 56, 2}, {192, 28, 1},
                                     {192, 28, 2}, {384, 14, 1}, {576, 14, 1}, {576, 14, 2}, {960, 7, 1}};

} // namespace

void addKernels(std::vector<Workload> &list) {
  for (int64_t n : {256, 512, 1024})
    addGemm(list, {n, n, n}, true);
  addGemm(list, {511, 513, 255}, true, addGemm(list, {512, 512, 256}, true));
  addGemm(list, {127, 769, 3073}, true, addGemm(list, {128, 768, 3072}, true));
  addGemm(list, {1, 4096, 4096}, true);
  addGemm(list, {511, 513, 255}, false, addGemm(list, {512, 512, 256}, false));

  for (const Conv &conv : kResNetConvs)
    addConv(list, conv);
  addConv(list, {64, 64, 57, 3, 1}, "conv-64x64-56x56-k3s1");
  addConv(list, {65, 257, 57, 1, 1}, "conv-64x256-56x56-k1s1");
  addConv(list, {257, 255, 15, 3, 1}, "conv-256x256-14x14-k3s1");
  for (auto [channels, size, stride] : kDepthwise)
    addConv(list, {channels, channels, size, 3, stride, channels});
  addConv(list, {145, 145, 57, 3, 1, 145}, "depthwise-144-56x56-k3s1");

  for (const char *kind : {"softmax", "layer_norm", "gelu", "bias_gelu"}) {
    addRows(list, kind, {65, 770}, addRows(list, kind, {64, 768}));
    addRows(list, kind, {131072, 768});
  }
  for (int64_t count : {16, 144})
    list.push_back(
        {"steps-" + std::to_string(count), "steps", {{"count", count}}, "overhead", "", [=] { return steps(count); }});
}

} // namespace burin::bench
