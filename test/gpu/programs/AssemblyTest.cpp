// What the assembler of a CUDA toolkit says about kernels: no spills but those named below, no warnings, registers and
// shared memory within bounds. Skipped where there is no ptxas in $BURIN_PTXAS, in $PATH or in /usr/local/cuda/bin.
#include "codegen/Compiler.h"
#include "frontend/trace/GraphData.h"
#include "runtime/code/Loader.h"
#include "test/Features.h"
#include "test/gpu/programs/Models.h"
#include "test/gpu/ptx/Ptx.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using namespace burin::test::models;

namespace {

/// A block of 256 threads and half another one fit into the 65,536 registers of a multiprocessor.
constexpr int kMostRegisters = 168, kMostShared = 48 << 10;
/// Kernels on tensor cores keep their sums in registers: a block of 256 threads has all of them.
constexpr int kAllRegisters = 255;
/// No kernel spills but some contractions, in bytes of a thread's memory. Products by tiles of 128 by 128 f32 results,
/// two blocks of which fit on a multiprocessor with 128 registers for each thread, keep addresses of the next slice
/// there; a convolution in tf32 keeps 8 bytes on sm_90a, where ptxas chooses 80 registers.
constexpr int kSpilledByTiles = 40;
/// The epilogue of a product of bytes by warpgroups, outside of the loop that multiplies: its sums need 128 registers.
constexpr int kSpilledByEpilogue = 36;
/// Attention with 256 columns by warpgroups, between the loops over tiles with and without a mask.
constexpr int kSpilledByAttention = 52;

const std::vector<std::string> kTargets{"x86-64-v3", "cuda-sm_80+ptx", "cuda-sm_90a+ptx"};

/// Every kernel of a graph, for both architectures if no targets are given.
void checkKernels(const Graph &graph, int fewest, int mostRegisters = kMostRegisters,
                  std::vector<std::string> targets = kTargets, int spilled = 0) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    return skipWithout("ptxas");
  mlir::OwningOpRef<mlir::ModuleOp> module = graph.shared()->module->clone();
  codegen::CompileOptions options;
  options.targets = std::move(targets);
  auto artifact = codegen::compile(*module, options);
  REQUIRE(mlir::succeeded(artifact));
  rt::Program::Ptr program;
  REQUIRE(rt::Program::loadMemory(*artifact, nullptr, {}, program).ok());
  for (const rt::Code &code : program->artifact().codes) {
    if (!code.isForGpu())
      continue;
    std::vector<AssembledKernel> kernels = assembled(program->gpuCode(code), code.target, ptxas);
    CHECK(kernels.size() >= size_t(fewest));
    for (const AssembledKernel &kernel : kernels) {
      const size_t index = std::stoul(kernel.entry.substr(std::string("kernel").size()));
      const std::string name(program->artifact().kernels.at(index).name);
      INFO(code.target << ": " << kernel.entry << " (" << name << "): " << kernel.registers << " registers");
      const bool maySpill = name.starts_with("contract") || name.starts_with("scaled_dot_product_attention");
      CHECK(kernel.spilledBytes <= (maySpill ? spilled : 0));
      CHECK(kernel.registers <= mostRegisters);
      CHECK(kernel.sharedBytes <= kMostShared);
    }
  }
}

} // namespace

TEST_CASE("assembly: an MLP", "[gpu]") {
  checkKernels(trace(mlp(), {TensorSpec{f32, {Dim("batch"), 37}}}), 3, kMostRegisters, kTargets, kSpilledByTiles);
}

TEST_CASE("assembly: ResNet-18", "[gpu]") {
  auto net = resnet18(64);
  net.eval();
  checkKernels(trace(net, {TensorSpec{f32, {Dim("batch"), 3, 32, 32}}}), 10, kMostRegisters, kTargets, kSpilledByTiles);
}

TEST_CASE("assembly: a GPT", "[gpu]") { checkKernels(Gpt().graph(), 15, kMostRegisters, kTargets, kSpilledByTiles); }

TEST_CASE("assembly: a training step", "[gpu]") {
  checkKernels(Learner().graph(), 20, kMostRegisters, kTargets, kSpilledByTiles);
}

TEST_CASE("assembly: softmax, norms and sums of many sizes", "[gpu]") {
  std::vector<TensorSpec> specs{{f32, {64, 1024}}, {f32, {Dim("n"), Dim("m")}}, {f16, {8, 130}}, {bf16, {7, 33}}};
  auto rows = [](const std::vector<Tensor> &xs) {
    std::vector<Tensor> results;
    for (const Tensor &x : xs) {
      results.push_back(softmax(x, 1));
      results.push_back(x.sum({0}));
      results.push_back(argmax(x, 1));
      results.push_back(gelu(x) * x.mean({1}, /*keepdims=*/true));
    }
    return results;
  };
  checkKernels(trace(rows, specs), 12);
}

TEST_CASE("assembly: products and attention on tensor cores, thin products", "[gpu]") {
  std::vector<TensorSpec> specs{{bf16, {Dim("rows"), 512}}, {bf16, {512, 256}},    {f16, {1, 512}},
                                {f16, {512, 256}},          {bf16, {8, 200, 128}}, {bf16, {8, Dim("keys"), 128}},
                                {f16, {27, 130, 64}},       {f16, {27, 64, 136}}};
  auto products = [](const std::vector<Tensor> &x) {
    return std::vector<Tensor>{gelu(matmul(x[0], x[1])), matmul(x[2], x[3]), matmul(x[6], x[7]),
                               scaled_dot_product_attention(x[4], x[5], x[5], std::nullopt, /*is_causal=*/true)};
  };
  checkKernels(trace(products, specs), 4, kAllRegisters);
}

TEST_CASE("assembly: products and convolutions by warpgroups", "[gpu]") {
  std::vector<TensorSpec> specs{
      {bf16, {Dim("rows"), 512}}, {bf16, {512, 256}},   {bf16, {Dim("rows"), 256}}, {f16, {Dim("m"), Dim("k")}},
      {f16, {Dim("k"), 256}},     {f16, {27, 130, 64}}, {f16, {27, 64, 136}},       {f16, {Dim("n"), 64, 30, 30}},
      {f16, {128, 64, 3, 3}}};
  auto products = [](const std::vector<Tensor> &x) {
    return std::vector<Tensor>{gelu(matmul(x[0], x[1]) + x[2]), matmul(x[3], x[4]), matmul(x[5], x[6]),
                               relu(conv(x[7], x[8]))};
  };
  checkKernels(trace(products, specs), 4, kAllRegisters, {"cuda-sm_90a+ptx"});
}

TEST_CASE("assembly: products of bytes by warpgroups", "[gpu]") {
  std::vector<TensorSpec> specs;
  for (DType left : {f8e4m3fn, f8e5m2, i8, u8})
    for (DType right : isFloat8(left) ? std::vector{f8e4m3fn, f8e5m2} : std::vector{i8, u8}) {
      specs.push_back({left, {Dim("rows"), 512}}), specs.push_back({right, {512, 256}});
      specs.push_back({left, {27, 130, 64}}), specs.push_back({right, {27, 64, 136}});
    }
  auto products = [](const std::vector<Tensor> &x) {
    std::vector<Tensor> results;
    for (size_t i = 0; i < x.size(); i += 2) {
      auto wide = [](const Tensor &bytes) { return isFloat8(bytes.dtype()) ? bytes : cast(bytes, i32); };
      results.push_back(cast(cast(matmul(wide(x[i]), wide(x[i + 1])), f32) * 0.1, bf16));
    }
    return results;
  };
  checkKernels(trace(products, specs), 16, kAllRegisters, {"cuda-sm_90a+ptx"}, kSpilledByEpilogue);
}

TEST_CASE("assembly: attention by warpgroups", "[gpu]") {
  std::vector<TensorSpec> specs;
  for (int64_t columns : {64, 128, 256})
    for (int64_t length : {600, 700})
      specs.push_back({bf16, {8, length, columns}});
  specs.push_back({boolean, {600, 700}});
  auto heads = [](const std::vector<Tensor> &x) {
    std::vector<Tensor> results;
    for (size_t i = 0; i < 6; i += 2)
      for (bool isCausal : {false, true})
        results.push_back(scaled_dot_product_attention(x[i], x[i + 1], x[i + 1], std::nullopt, isCausal));
    results.push_back(scaled_dot_product_attention(x[2], x[3], x[3], x[6]));
    return results;
  };
  checkKernels(trace(heads, specs), 7, kAllRegisters, {"cuda-sm_90a+ptx"}, kSpilledByAttention);
}

TEST_CASE("assembly: gradients of attention", "[gpu]") {
  std::vector<TensorSpec> specs;
  for (DType dtype : {bf16, f32})
    for (int64_t columns : {64, 128})
      specs.insert(specs.end(), 4, TensorSpec{dtype, {8, 600, columns}});
  auto gradients = [](const std::vector<Tensor> &x) {
    std::vector<Tensor> results;
    for (size_t i = 0; i < x.size(); i += 4) {
      Tensor y = scaled_dot_product_attention(x[i], x[i + 1], x[i + 2], std::nullopt, /*is_causal=*/true);
      for (const Tensor &gradient : grad(y, {x[i], x[i + 1], x[i + 2]}, x[i + 3]))
        results.push_back(gradient);
    }
    return results;
  };
  checkKernels(trace(gradients, specs), 4, kAllRegisters, {"cuda-sm_80+ptx", "cuda-sm_90a+ptx"});
}

TEST_CASE("assembly: attention of few rows", "[gpu]") {
  std::vector<TensorSpec> specs;
  for (DType dtype : {bf16, f32})
    for (int64_t columns : {64, 80, 128, 256})
      for (int64_t rows : {1, 4, 16}) {
        if (dtype == f32 && columns < 256 && !isLong())
          continue;
        specs.push_back({dtype, {8, rows, columns}});
        specs.push_back({dtype, {8, columns == 80 ? Dim(600) : Dim("keys"), columns}});
      }
  specs.push_back({f16, {8, 3, 33}});
  specs.push_back({f16, {8, 300, 33}});
  auto rows = [](const std::vector<Tensor> &x) {
    std::vector<Tensor> results;
    for (size_t i = 0; i < x.size(); i += 2)
      results.push_back(scaled_dot_product_attention(x[i], x[i + 1], x[i + 1]));
    return results;
  };
  checkKernels(trace(rows, specs), isLong() ? 25 : 16, kMostRegisters, {"cuda-sm_80+ptx", "cuda-sm_90a+ptx"});
}

TEST_CASE("assembly: products and convolutions in tf32 and bf16x3", "[gpu]") {
  std::vector<TensorSpec> specs{{f32, {Dim("rows"), 512}}, {f32, {512, 256}},      {f32, {70, 33}},
                                {f32, {33, 66}},           {f32, {2, 64, 30, 30}}, {f32, {64, 64, 3, 3}}};
  auto products = [](const std::vector<Tensor> &x) {
    return std::vector<Tensor>{gelu(matmul(x[0], x[1])), matmul(x[2], x[3]), relu(conv(x[4], x[5]))};
  };
  for (const char *capability : {"cuda-sm_80+ptx", "cuda-sm_90a+ptx"})
    for (const char *precision : {"+tf32", "+bf16x3"})
      checkKernels(trace(products, specs), 3, kAllRegisters, {std::string(capability) + precision}, kSpilledByTiles);
}

TEST_CASE("assembly: products and convolutions of bytes", "[gpu]") {
  std::vector<TensorSpec> specs{{u8, {Dim("rows"), 512}}, {i8, {512, 256}},      {i8, {70, 33}},
                                {i8, {33, 66}},           {u8, {2, 64, 30, 30}}, {i8, {64, 64, 3, 3}}};
  auto products = [](const std::vector<Tensor> &x) {
    auto wide = [](const Tensor &bytes) { return cast(bytes, i32); };
    return std::vector<Tensor>{cast(matmul(wide(x[0]) - 3, wide(x[1])), f32) * 0.1, matmul(x[2], x[3]),
                               conv(wide(x[4]), wide(x[5]))};
  };
  checkKernels(trace(products, specs), 3, kAllRegisters, {"cuda-sm_80+ptx", "cuda-sm_90a+ptx"});
}

// Sorts with two words per item, of f64 or of lines of unknown length, need more than 80 registers, to which ptxas
// would keep for the sake of a third block.
TEST_CASE("assembly: orders, running sums and scatter", "[gpu]") {
  std::vector<TensorSpec> specs{{f32, {16, 1000}}, {f32, {3, Dim("n")}}, {i64, {7, 1000}},
                                {f16, {7, 1000}},  {f64, {3, 5000}},     {f64, {3, Dim("m")}}};
  auto lines = [](const std::vector<Tensor> &x) {
    return std::vector<Tensor>{argsort(x[0], 1), argsort(x[1], 1), argsort(x[2], 0),
                               argsort(x[4], 1), argsort(x[5], 1), topk(x[4], 20).indices,
                               cumsum(x[0], 1),  cumsum(x[3], 1),  scatter(x[0], x[2], cast(x[3], f32), 0, "add")};
  };
  checkKernels(trace(lines, specs), 8);
}
