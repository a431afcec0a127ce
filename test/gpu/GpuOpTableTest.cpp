// The op table on a GPU's kernels: their code runs on the emulator, one case per op, `gpu-tests "gpu: matmul"`.
#include "test/gpu/Emulate.h"
#include "test/gpu/Ptx.h"
#include "test/gpu/Simt.h"
#include "test/ops/Row.h"
#include <catch2/catch.hpp>
#include <stdexcept>

using namespace burin;
using namespace burin::test;

namespace {

constexpr uint64_t kSeed = 20240;
constexpr const char *kTarget = "cuda-sm_80+ptx";

/// The same kernels as PTX, too.
codegen::CompileOptions::GpuImage emulatedAndPtx(llvm::Module &kernels, llvm::ArrayRef<std::string> symbols) {
  checkedPtx(kernels, kTarget);
  return emulated(kernels, symbols);
}

Tensors checked(Compiled &compiled, const Tensors &inputs) {
  Tensors results = compiled.run(inputs);
  std::string text;
  for (const std::string &error : simt::takeErrors())
    text += error + "\n";
  if (!text.empty())
    throw std::runtime_error(text);
  return results;
}

class GpuRowCase : public Catch::ITestInvoker {
public:
  explicit GpuRowCase(const Row &row) : row(row) {}
  void invoke() const override {
    std::string different = tryRow(row, kTarget, kSeed, [&](Graph &graph) -> Runner {
      std::shared_ptr<Compiled> compiled =
          graph.compile(kTarget, [](codegen::CompileOptions &options) { options.emulate = emulatedAndPtx; });
      return [compiled](const Tensors &inputs) { return checked(*compiled, inputs); };
    });
    INFO(different);
    CHECK(different.empty());
  }

private:
  const Row &row;
};

struct Registered {
  Registered() {
    for (const Row *row : allRows())
      Catch::AutoReg(new GpuRowCase(*row), CATCH_INTERNAL_LINEINFO, "", Catch::NameAndTags("gpu: " + row->op, "[gpu]"));
  }
} registered;

} // namespace
