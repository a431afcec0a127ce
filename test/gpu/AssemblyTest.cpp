// What the assembler of a CUDA toolkit says about kernels: no spills, no warnings, registers and shared memory within
// bounds. Skipped where there is no ptxas in $BURIN_PTXAS, in $PATH or in /usr/local/cuda/bin.
#include "codegen/Compiler.h"
#include "frontend/trace/GraphData.h"
#include "runtime/code/Loader.h"
#include "test/Features.h"
#include "test/gpu/Models.h"
#include "test/gpu/Ptx.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using namespace burin::test::models;

namespace {

/// A block of 256 threads and half another one fit into the 65,536 registers of a multiprocessor.
constexpr int kMostRegisters = 168, kMostShared = 48 << 10;

/// Every kernel of a graph, for both architectures.
void checkKernels(const Graph &graph, int fewest) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    return skipWithout("ptxas");
  mlir::OwningOpRef<mlir::ModuleOp> module = graph.shared()->module->clone();
  codegen::CompileOptions options;
  options.targets = {"x86-64-v3", "cuda-sm_80+ptx", "cuda-sm_90a+ptx"};
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
      INFO(code.target << ": " << kernel.entry << " (" << program->artifact().kernels.at(index).name
                       << "): " << kernel.registers << " registers");
      CHECK(kernel.spilledBytes == 0);
      CHECK(kernel.registers <= kMostRegisters);
      CHECK(kernel.sharedBytes <= kMostShared);
    }
  }
}

} // namespace

TEST_CASE("assembly: an MLP", "[gpu]") { checkKernels(trace(mlp(), {TensorSpec{f32, {Dim("batch"), 37}}}), 3); }

TEST_CASE("assembly: ResNet-18", "[gpu]") {
  auto net = resnet18(64);
  net.eval();
  checkKernels(trace(net, {TensorSpec{f32, {Dim("batch"), 3, 32, 32}}}), 10);
}

TEST_CASE("assembly: a GPT", "[gpu]") { checkKernels(Gpt().graph(), 15); }

TEST_CASE("assembly: a training step", "[gpu]") { checkKernels(Learner().graph(), 20); }

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
