#include "test/gpu/kernels/KernelCases.h"
#include "burin/runtime.h"
#include "test/gpu/driver/FakeCuda.h"
#include <deque>
#include <sstream>
#include <stdexcept>

namespace burin::test {
namespace {

constexpr const char *kTarget = "cuda-sm_80+ptx", *kHopper = "cuda-sm_90a+ptx", *kTf32 = "cuda-sm_80+ptx+tf32",
                     *kBf16x3 = "cuda-sm_80+ptx+bf16x3";

using Ints = std::vector<int64_t>;

Graph::Value apply(Graph &g, const char *op, const Graph::Values &v, const Attrs &attrs = {}) {
  return g.apply(op, v, attrs)[0];
}
Graph::Value applyTanh(Graph &g, const Graph::Values &x) { return apply(g, "tanh", x); }
Graph::Value softmaxOf(Graph &g, const Graph::Values &x) { return apply(g, "softmax", x, {{"axis", int64_t(1)}}); }
Graph::Value softmaxTwice(Graph &g, const Graph::Values &x) { return softmaxOf(g, {softmaxOf(g, x)}); }
Graph::Value rowSum(Graph &g, const Graph::Values &x) { return apply(g, "reduce_sum", x, {{"axes", Ints{1}}}); }
Graph::Value argmax(Graph &g, const Graph::Values &x) { return apply(g, "argmax", x, {{"axis", int64_t(1)}}); }
Graph::Value columnMax(Graph &g, const Graph::Values &x) { return apply(g, "reduce_max", x, {{"axes", Ints{0}}}); }
Graph::Value meanRemoved(Graph &g, const Graph::Values &x) {
  Graph::Value mean = apply(g, "reduce_mean", x, {{"axes", Ints{0}}, {"keepdims", true}});
  return apply(g, "sub", {x[0], apply(g, "broadcast_to", {mean}, {{"shape", g.spec(x[0]).shape}})});
}
Graph::Value product(Graph &g, const Graph::Values &x) { return apply(g, "relu", {apply(g, "matmul", x)}); }
/// With weights that the compiler knows, and packs.
Graph::Value timesConstant(Graph &g, const Graph::Values &x) {
  Random random(7);
  const Graph::Value weights = g.constant(randomTensor(g.spec(x[0]).dtype, {328, 264}, {}, Mood::Plain, random));
  return apply(g, "matmul", {x[0], weights});
}
Graph::Value wideProduct(Graph &g, const Graph::Values &x) { return apply(g, "matmul", x); }
Graph::Value convolution(Graph &g, const Graph::Values &x) {
  return apply(g, "conv", x, {{"padding", Ints{1}}, {"strides", Ints{2}}});
}

Graph::Value lastChannels(Graph &g, const Graph::Values &x) {
  return apply(g, "conv", x, {{"padding", Ints{1}}, {"strides", Ints{2}}, {"layout", std::string("nhwc")}});
}
Graph::Value attention(Graph &g, const Graph::Values &x) {
  return apply(g, "scaled_dot_product_attention", {x[0], x[1], x[2], Graph::none}, {{"is_causal", true}});
}
Graph::Value attendAll(Graph &g, const Graph::Values &x) {
  return apply(g, "scaled_dot_product_attention", {x[0], x[1], x[2], Graph::none});
}
Graph::Value attendMasked(Graph &g, const Graph::Values &x) {
  return apply(g, "scaled_dot_product_attention", {x[0], x[1], x[2], x[3]});
}
Graph::Value differentiated(Graph &g, const Graph::Values &x) {
  return apply(g, "attention_gradient", {x[0], x[1], x[2], x[3], Graph::none}, {{"scale", .25}});
}
Graph::Value runningSum(Graph &g, const Graph::Values &x) { return apply(g, "cumsum", x, {{"axis", int64_t(1)}}); }
Graph::Value runningProduct(Graph &g, const Graph::Values &x) { return apply(g, "cumprod", x, {{"axis", int64_t(1)}}); }
Graph::Value sorted(Graph &g, const Graph::Values &x) { return apply(g, "argsort", x, {{"axis", int64_t(1)}}); }
Graph::Value firstSorted(Graph &g, const Graph::Values &x) {
  return apply(g, "slice", {sorted(g, x)}, {{"starts", Shape{0, 0}}, {"stops", Shape{1, 30}}, {"steps", Ints{1, 1}}});
}
Graph::Value suppressed(Graph &g, const Graph::Values &x) {
  return apply(g, "non_max_suppression", x,
               {{"iou_threshold", .6}, {"score_threshold", -9.}, {"max_output", int64_t(70)}, {"centers", false}});
}
Graph::Value scatterFrom(Graph &g, const Graph::Values &x, int64_t first) {
  ir::RefTensor indices = ir::RefTensor::zeros(i64, {4, 33});
  for (size_t i = 0; i < indices.ints().size(); ++i)
    indices.ints()[i] = first + int64_t(i * 7 % 9) - int64_t(i % 3 == 0 ? 9 : 0); // some count from the end
  return apply(g, "scatter", {x[0], g.constant(indices), x[1]}, {{"reduction", std::string("add")}});
}

Graph::Value scattered(Graph &g, const Graph::Values &x) { return scatterFrom(g, x, 0); }
Graph::Value scatteredOutside(Graph &g, const Graph::Values &x) { return scatterFrom(g, x, 1); }
Graph::Value transposed(Graph &g, const Graph::Values &x) {
  return apply(g, "transpose", x, {{"perm", Ints{0, 2, 1}}});
}

Graph::Value addTransposed(Graph &g, const Graph::Values &x) { return apply(g, "add", {transposed(g, {x[0]}), x[1]}); }
Graph::Value pooled(Graph &g, const Graph::Values &x) {
  return apply(g, "max_pool", x, {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}});
}
Graph::Value pooledLastChannels(Graph &g, const Graph::Values &x) {
  return apply(g, "max_pool", x,
               {{"kernel", Ints{3, 3}},
                {"strides", Ints{2, 2}},
                {"padding", Ints{1, 1, 1, 1}},
                {"layout", std::string("nhwc")}});
}
Graph::Value meanOfWindows(Graph &g, const Graph::Values &x) {
  return apply(g, "avg_pool", x, {{"kernel", Ints{3, 3}}, {"padding", Ints{1, 1, 1, 1}}});
}

const KernelCase kCases[] = {
    {"map", applyTanh, {{3, 361}}},
    {"map", applyTanh, {{1100}}},
    {"map", applyTanh, {{4, 512}}},
    {"rows", softmaxOf, {{3, 300}}},
    {"rows", softmaxOf, {{2, 33}}},
    {"rows, one per warp", softmaxOf, {{4098, 24}}},
    {"rows, one per warp", softmaxOf, {{4098, 7}}},
    {"long rows", softmaxOf, {{2, 9004}}, f32, kTarget, KernelTrait::Open},
    {"very long rows", rowSum, {{2, 33000}}, f32, kTarget, KernelTrait::Open},
    {"softmax twice", softmaxTwice, {{3, 300}}},
    {"argmax", argmax, {{3, 300}}, f32, kTarget, KernelTrait::WideKeys},
    {"argmax", argmax, {{300, 7}}, f32, kTarget, KernelTrait::WideKeys},
    {"sums of rows", rowSum, {{5, 33}}},
    {"sums of rows", rowSum, {{3, 530}}},
    {"sums of rows in parts", rowSum, {{2, 8200}}},
    {"columns", columnMax, {{7, 130}}},
    {"columns in parts", columnMax, {{700, 5}}},
    {"columns in parts, which one block combines",
     meanRemoved,
     {{260, 33}},
     f32,
     kTarget,
     KernelTrait::Open,
     {1, 6700}},
    {"columns", columnMax, {{3, 5}}},
    {"columns", columnMax, {{40, 4096}}, f16},
    {"product", product, {{70, 33}, {33, 66}}},
    {"product", product, {{3, 16}, {16, 64}}},
    {"product", product, {{65, 17}, {17, 3}}},
    {"convolution", convolution, {{1, 3, 9, 8}, {5, 3, 3, 3}, {5}}},
    {"convolution", convolution, {{5, 8, 7, 7}, {16, 8, 3, 3}, {16}}},
    {"large product", product, {{130, 52}, {52, 136}}, f32, kTarget, KernelTrait::Open},
    {"large product", product, {{130, 51}, {51, 71}}, f32, kTarget, KernelTrait::Open},
    {"thin product", product, {{3, 2472}, {2472, 70}}, f32, kTarget, KernelTrait::PackedOperand},
    {"thin product", product, {{3, 2472}, {2472, 32}}},
    {"product on tensor cores", product, {{70, 264}, {264, 72}}, bf16},
    {"product on tensor cores", product, {{9, 20}, {20, 33}}, f16},
    {"products on tensor cores", product, {{3, 70, 264}, {3, 264, 40}}, bf16},
    {"product of 8-bit floats on tensor cores", wideProduct, {{70, 528}, {528, 80}}, f8e4m3fn},
    {"product of 8-bit floats on tensor cores", wideProduct, {{9, 37}, {37, 33}}, f8e5m2},
    {"thin product", product, {{3, 4904}, {4904, 72}}, bf16, kTarget, KernelTrait::PackedOperand},
    {"thin product", product, {{3, 4902}, {4902, 64}}, f16},
    {"products", product, {{3, 33, 20}, {3, 20, 70}}},
    {"product by warpgroups", product, {{70, 328}, {328, 264}}, bf16, kHopper, KernelTrait::Open},
    {"product by warpgroups", timesConstant, {{70, 328}}, bf16, kHopper, KernelTrait::Open},
    {"large product on tensor cores", product, {{70, 329}, {329, 265}}, f16, kHopper, KernelTrait::Open},
    {"product of 8-bit floats by warpgroups",
     wideProduct,
     {{70, 656}, {656, 272}},
     f8e4m3fn,
     kHopper,
     KernelTrait::Open},
    {"product of bytes by warpgroups", product, {{70, 656}, {656, 272}}, i8, kHopper, KernelTrait::Open},
    {"convolution by warpgroups",
     lastChannels,
     {{70, 1, 2, 144}, {3, 3, 144, 264}, {264}},
     f16,
     kHopper,
     KernelTrait::Open},
    {"attention by warpgroups", attendAll, {{70, 24}, {390, 24}, {390, 16}}, f16, kHopper},
    {"attention by warpgroups", attention, {{390, 24}, {390, 24}, {390, 16}}, f16, kHopper},
    {"attention by warpgroups", attendMasked, {{70, 24}, {130, 24}, {130, 16}, {70, 130}}, bf16, kHopper},
    {"product of bytes", product, {{70, 528}, {528, 80}}, i8},
    {"product of bytes", product, {{9, 37}, {37, 33}}, u8},
    {"product in tf32", product, {{70, 132}, {132, 72}}, f32, kTf32},
    {"product in tf32", product, {{9, 10}, {10, 33}}, f32, kTf32},
    {"product in bf16x3", product, {{70, 132}, {132, 72}}, f32, kBf16x3, KernelTrait::BranchesOnValues},
    {"convolution on tensor cores", lastChannels, {{2, 9, 8, 32}, {3, 3, 32, 32}, {32}}, f16},
    {"attention", attention, {{70, 20}, {70, 20}, {70, 12}}},
    {"attention", attendMasked, {{2, 70, 20}, {2, 67, 20}, {2, 67, 24}, {1, 1, 67}}},
    {"attention of wide rows", attention, {{70, 22}, {67, 22}, {67, 300}}},
    {"attention of few rows in parts", attendAll, {{1, 3, 64}, {1, 8195, 64}, {1, 8195, 64}}, f16},
    {"attention of few rows in parts",
     attendAll,
     {{1, 9, 36}, {1, 2051, 36}, {1, 2051, 20}},
     f32,
     kTarget,
     KernelTrait::Reordered},
    {"attention of few rows in parts", attendMasked, {{1, 3, 64}, {1, 8195, 64}, {1, 8195, 64}, {3, 8195}}, f16},
    {"attention of few rows in parts", attention, {{3, 40}, {100, 40}, {100, 20}}, bf16},
    {"attention on tensor cores", attendAll, {{33, 21}, {30, 21}, {30, 13}}, bf16},
    {"attention on tensor cores", attendMasked, {{130, 40}, {67, 40}, {67, 24}, {130, 67}}, bf16},
    {"attention on tensor cores", attention, {{130, 40}, {130, 40}, {130, 24}}, bf16},
    {"gradients of attention", differentiated, {{70, 20}, {67, 20}, {67, 20}, {70, 20}}},
    {"gradients of attention on tensor cores", differentiated, {{70, 24}, {67, 24}, {67, 24}, {70, 24}}, bf16},
    {"gradients of attention on tensor cores", differentiated, {{33, 21}, {30, 21}, {30, 21}, {33, 21}}, f16},
    {"transpose", transposed, {{1, 128, 70}}},
    {"transpose", transposed, {{1, 66, 130}}, bf16},
    {"transpose", transposed, {{1, 528, 80}}, i8},
    {"transpose", transposed, {{1, 656, 272}}, i8, kHopper},
    {"transpose of few rows", transposed, {{2, 3, 1040}}, f16},
    {"transpose of few columns", transposed, {{2, 1037, 5}}},
    {"transposed operand", addTransposed, {{1, 128, 70}, {1, 70, 128}}},
    {"windows, last channels", pooledLastChannels, {{1, 10, 13, 8}}},
    {"windows, last channels", pooledLastChannels, {{1, 10, 13, 5}}},
    {"mean of windows", meanOfWindows, {{1, 2, 10, 13}}},
    {"windows", pooled, {{1, 2, 10, 13}}},
    {"running sum", runningSum, {{2, 1500}}},
    {"running product", runningProduct, {{2, 1500}}},
    {"running sum of short rows", runningSum, {{70, 20}}},
    {"sort", sorted, {{2, 100}}},
    {"sort", sorted, {{1, 512}}},
    {"sort", sorted, {{1, 300}}, f64, kTarget, KernelTrait::WideKeys},
    {"sort", sorted, {{1, 700}}, i64, kTarget, KernelTrait::WideKeys},
    {"sort of a long line", sorted, {{1, 4096}}},
    {"first of a sorted line", firstSorted, {{1, 2500}}},
    {"suppression", suppressed, {{1, 70, 4}, {1, 2, 70}}},
    {"scatter", scattered, {{9, 33}, {4, 33}}},
    {"scatter of an index out of range", scatteredOutside, {{9, 33}, {4, 33}}},
};

const burin_runtime_api &api() { return *burin_runtime_get(BURIN_RUNTIME_VERSION); }

void check(burin_status *status) {
  const std::string message = status ? api().status_message(status) : "";
  api().status_release(status);
  if (!message.empty())
    throw std::runtime_error(message);
}

/// A tensor on the GPU, `shift` elements after an aligned address.
class OnGpu {
public:
  OnGpu(const ir::RefTensor &tensor, size_t shift) : shape(tensor.shape), dtype(tensor.dtype) {
    const std::vector<char> content = tensor.toBytes();
    bytes = content.size();
    check(api().device_alloc(kGpu, bytes + shift * byteWidth(dtype), nullptr, &allocated));
    data = static_cast<char *>(allocated) + shift * byteWidth(dtype);
    check(api().device_copy(kGpu, data, kCpu, content.data(), bytes, nullptr));
  }
  ~OnGpu() { api().status_release(api().device_free(kGpu, allocated, nullptr)); }
  OnGpu(const OnGpu &) = delete;

  rt::TensorView view() const { return {data, shape.data(), uint32_t(shape.size()), dtype, {1, 0, 0}}; }
  std::vector<std::byte> read() const {
    std::vector<std::byte> content(bytes);
    check(api().device_copy(kCpu, content.data(), kGpu, data, bytes, nullptr));
    return content;
  }

private:
  static constexpr burin_device kGpu = {BURIN_CUDA, 0, 0}, kCpu = {BURIN_CPU, 0, 0};
  void *allocated = nullptr, *data = nullptr;
  size_t bytes = 0;
  Ints shape;
  DType dtype;
};

} // namespace

std::span<const KernelCase> kernelCases() { return kCases; }

std::vector<RunKind> runKinds(const KernelCase &c) {
  std::vector<int64_t> sizes = {0};
  sizes.insert(sizes.end(), c.further.begin(), c.further.end());
  std::vector<RunKind> kinds;
  for (int64_t size : sizes) {
    kinds.push_back({.firstSize = size});
    kinds.push_back({.hasShiftedInputs = true, .firstSize = size, .multiprocessors = 132});
    kinds.push_back({.hasShiftedOutput = true, .firstSize = size});
    if (c.trait == KernelTrait::PackedOperand)
      kinds.push_back({.firstSize = size, .memoryShift = sizeof(float)});
    if (c.trait == KernelTrait::BranchesOnValues)
      for (bool isShifted : {false, true})
        kinds.push_back({isShifted, isShifted, Mood::Special, size});
  }
  return kinds;
}

KernelSubject::KernelSubject(const KernelCase &c) : kernel(c) {
  Graph g;
  Graph::Values values;
  for (const Ints &sizes : c.inputs) {
    Shape shape(sizes.begin(), sizes.end());
    if (c.trait == KernelTrait::Open && values.empty())
      shape[0] = Dim("rows");
    values.push_back(g.input({c.dtype, shape}));
  }
  g.output(c.build(g, values));
  schedules = g.schedule(c.target);
  rt::Status status = rt::Program::loadMemory(g.artifact({c.target}), nullptr, {}, program);
  if (!status.ok())
    throw std::runtime_error(status.message());
}

KernelSubject::Outcome KernelSubject::run(const RunKind &kind) const {
  fake::setMultiprocessors(kind.multiprocessors);
  fake::shiftMemory(kind.memoryShift);
  Outcome outcome;
  try {
    outcome.error = runOne(kind, outcome.results);
  } catch (const std::runtime_error &e) { // of copies
    outcome.error = e.what();
  }
  fake::shiftMemory(0);
  fake::setMultiprocessors(132);
  return outcome;
}

std::string KernelSubject::runOne(const RunKind &kind, std::vector<std::byte> &results) const {
  std::unique_ptr<rt::Session> session;
  rt::Status status = rt::Session::create(program, {.threads = 1, .device = "cuda:0"}, session);
  if (!status.ok())
    return status.message();
  Random random(3);
  std::deque<OnGpu> operands;
  std::vector<rt::TensorView> views, outputs(1);
  for (Ints shape : kernel.inputs) {
    if (views.empty() && kind.firstSize)
      shape[0] = kind.firstSize;
    const ir::RefTensor values = randomTensor(kernel.dtype, shape, {-kind.largest, kind.largest}, kind.mood, random);
    views.push_back(operands.emplace_back(values, kind.hasShiftedInputs).view());
  }
  status = session->run(views, outputs);
  if (!status.ok())
    return status.message();
  const auto *data = static_cast<const std::byte *>(outputs[0].data);
  results.assign(data, data + session->outputBytes(0));
  if (!kind.hasShiftedOutput)
    return "";
  const Ints shape(outputs[0].shape, outputs[0].shape + outputs[0].rank);
  OnGpu shifted(ir::RefTensor::zeros(outputs[0].dtype, shape), 1);
  outputs[0] = shifted.view();
  status = session->run(views, outputs);
  results = shifted.read();
  return status.ok() ? "" : status.message();
}

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

} // namespace burin::test
