#include "test/gpu/bundle/Artifacts.h"
#include "codegen/Compiler.h"
#include "frontend/trace/GraphData.h"
#include "runtime/npy/Npy.h"
#include "test/gpu/bundle/Speed.h"
#include <burin/functional.h>
#include <burin/nn/losses.h>
#include <filesystem>
#include <fstream>
#include <functional>

namespace burin::test::bundle {

void write(const std::string &path, std::span<const std::byte> bytes) {
  std::string error;
  if (!rt::writeWholeFile(path, bytes, error))
    throw std::runtime_error(error);
}

void writeArtifact(const std::string &path, const Graph &graph, const std::vector<std::string> &targets,
                   bool isProvided) {
  mlir::OwningOpRef<mlir::ModuleOp> module = graph.shared()->module->clone();
  codegen::CompileOptions options;
  options.targets = targets;
  if (isProvided)
    options.pipeline.provider = passes::Provider::CublasLt;
  auto bytes = codegen::compile(*module, options);
  if (mlir::failed(bytes))
    throw std::runtime_error(graph.shared()->takeDiagnostics());
  write(path, *bytes);
}

namespace {

using Shapes = std::vector<std::vector<int64_t>>;

/// A kernel that is timed at two sizes: a large one, and a small one for devices that are too slow for it.
struct Timed {
  std::string name;
  DType dtype;
  std::function<Tensor(const std::vector<Tensor> &)> function;
  Shapes large, small;
  std::function<double(const Shapes &)> operations = {}; // floating-point operations; none: bound by memory
  bool hasRival = false;
  bool isProvided = false;    // by cuBLASLt, where it is installed
  std::string precision = {}; // of f32 products, as in targetsOf()
};

double productOperations(const Shapes &s) { return 2.0 * double(s[0][0]) * double(s[0][1]) * double(s[1][1]); }
double attentionOperations(const Shapes &s) {
  return 4.0 * double(s[0][1]) * double(s[0][2]) * double(s[0][2]) * double(s[0][3]);
}
double convolutionOperations(const Shapes &s) {
  double perResult = 2;
  for (size_t i = 1; i < 4; ++i)
    perResult *= double(s[1][i]);
  return perResult * double(s[0][0] * s[0][2] * s[0][3] * s[1][0]);
}

std::vector<Timed> timed() {
  const Shapes matrix{{32768, 1024}}, smallMatrix{{33, 64}}, square{{4096, 4096}, {4096, 4096}},
      smallSquare{{64, 64}, {64, 64}}, heads(3, {1, 16, 8192, 128}), smallHeads(3, {1, 2, 64, 64}),
      fourHeads(4, {1, 16, 8192, 128}), fourSmallHeads(4, {1, 2, 64, 64});
  using Inputs = const std::vector<Tensor> &;
  auto product = [](Inputs in) { return matmul(in[0], in[1]); };
  // By the columns of the right side, as weights are stored.
  auto columns = [](Inputs in) { return cast(matmul(in[0], in[1].transpose(0, 1)), bf16); };
  auto wide = [](Inputs in) { return matmul(cast(in[0], i32), cast(in[1].transpose(0, 1), i32)); };
  auto attention = [](bool isCausal) {
    return [=](Inputs in) { return scaled_dot_product_attention(in[0], in[1], in[2], std::nullopt, isCausal); };
  };
  auto gradients = [=](bool isCausal) {
    return [=](Inputs in) {
      Tensor y = attention(isCausal)(in);
      std::vector<Tensor> of = grad(y, {in[0], in[1], in[2]}, in[3]);
      return y + of[0] + of[1] + of[2];
    };
  };
  return {
      {"elementwise", f32, [](Inputs in) { return relu(in[0] * 2.0 + 1.0); }, {{16384, 4096}}, {{512, 64}}},
      {"softmax", f32, [](Inputs in) { return softmax(in[0], -1); }, matrix, smallMatrix},
      {"layer-norm", f32,
       [](Inputs in) {
         Tensor centred = in[0] - in[0].mean(-1, true);
         return centred * rsqrt((centred * centred).mean(-1, true) + 1e-5);
       },
       matrix, smallMatrix},
      {"sum-over-rows", f32, [](Inputs in) { return in[0].sum(-1); }, matrix, smallMatrix},
      {"transpose", f32, [](Inputs in) { return in[0].transpose(0, 1); }, {{8192, 8192}}, smallMatrix},
      {"product", bf16, product, square, smallSquare, productOperations, true},
      {"product", bf16, product, {{8192, 8192}, {8192, 8192}}, smallSquare, productOperations, true},
      {"product", f16, product, square, smallSquare, productOperations, true},
      {"product", f32, product, square, smallSquare, productOperations, true},
      {"product-provided", bf16, product, square, smallSquare, productOperations, true, true},
      {"product-provided", f32, product, square, smallSquare, productOperations, true, true},
      {"product-in-tf32", f32, product, square, smallSquare, productOperations, false, false, "+tf32"},
      {"product-in-bf16x3", f32, product, square, smallSquare, productOperations, false, false, "+bf16x3"},
      {"product", f8e4m3fn, columns, square, smallSquare, productOperations},
      {"product", f8e4m3fn, columns, {{8192, 8192}, {8192, 8192}}, smallSquare, productOperations},
      {"product", i8, wide, square, smallSquare, productOperations},
      {"product", bf16, product, {{1, 8192}, {8192, 8192}}, {{1, 64}, {64, 64}}, {}, true},
      {"product+bias+relu",
       bf16,
       [](Inputs in) { return relu(matmul(in[0], in[1]) + in[2]); },
       {{4096, 4096}, {4096, 4096}, {4096}},
       {{64, 64}, {64, 64}, {64}},
       productOperations},
      {"attention", bf16, attention(false), heads, smallHeads, attentionOperations},
      {"attention-causal", bf16, attention(true), heads, smallHeads,
       [](const Shapes &s) { return attentionOperations(s) / 2; }},
      {"attention+gradients", bf16, gradients(false), fourHeads, fourSmallHeads,
       [](const Shapes &s) { return 3.5 * attentionOperations(s); }},
      {"attention-causal+gradients", bf16, gradients(true), fourHeads, fourSmallHeads,
       [](const Shapes &s) { return 1.75 * attentionOperations(s); }},
      {"convolution",
       bf16,
       [](Inputs in) { return conv(in[0], in[1], std::nullopt, {1, 1}, {1, 1}); },
       {{64, 256, 56, 56}, {256, 256, 3, 3}},
       {{1, 16, 6, 6}, {16, 16, 3, 3}},
       convolutionOperations},
      {"convolution-1x1",
       bf16,
       [](Inputs in) { return conv(in[0], in[1]); },
       {{64, 256, 56, 56}, {512, 256, 1, 1}},
       {{1, 16, 6, 6}, {16, 16, 1, 1}},
       convolutionOperations},
      {"convolution-depthwise",
       f32,
       [](Inputs in) { return conv2d(in[0], in[1], std::nullopt, 1, 1, 1, in[1].spec().shape[0].value()); },
       {{64, 128, 56, 56}, {128, 1, 3, 3}},
       {{1, 16, 6, 6}, {16, 1, 3, 3}}},
      {"max-pool", f32, [](Inputs in) { return max_pool2d(in[0], 3, 2, 1); }, {{64, 64, 112, 112}}, {{1, 8, 8, 8}}},
      {"gelu", bf16, [](Inputs in) { return gelu(in[0]); }, {{16384, 4096}}, smallMatrix},
      {"sum-of-columns", f32, [](Inputs in) { return in[0].sum(0); }, {{16384, 4096}}, smallMatrix},
      {"sum-of-all", f32, [](Inputs in) { return in[0].sum(); }, {{16384, 4096}}, smallMatrix},
      {"cumsum", f32, [](Inputs in) { return cumsum(in[0], 1); }, {{8192, 4096}}, smallMatrix},
      {"sort", f32, [](Inputs in) { return sort(in[0], 1).values; }, {{8192, 2048}}, smallMatrix},
      {"topk", f32, [](Inputs in) { return topk(in[0], 50, 1).values; }, {{64, 50257}}, smallMatrix},
      {"argmax", f32, [](Inputs in) { return argmax(in[0], 1); }, {{64, 50257}}, smallMatrix},
  };
}

} // namespace

void packSpeed(const std::string &folder) {
  std::filesystem::create_directories(folder + "/speed");
  std::ofstream list(folder + "/" + kSpeedList);
  size_t number = 0;
  for (const Timed &timed : timed())
    for (bool isLarge : {false, true}) {
      const Shapes &shapes = isLarge ? timed.large : timed.small;
      std::vector<TensorSpec> specs;
      for (const std::vector<int64_t> &shape : shapes)
        specs.push_back({timed.dtype, {shape.begin(), shape.end()}});
      SpeedRow row{timed.name,
                   isLarge,
                   timed.hasRival,
                   "speed/" + std::to_string(number++) + ".plate",
                   timed.operations ? timed.operations(shapes) : 0,
                   timed.dtype,
                   shapes};
      writeArtifact(folder + "/" + row.artifact, trace(timed.function, {specs}), targetsOf(timed.precision),
                    timed.isProvided);
      list << row.text() << '\n';
    }
}

} // namespace burin::test::bundle
