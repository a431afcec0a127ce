// The op table on a GPU's kernels: their code runs on the emulator, one case per op, `gpu-tests "gpu: matmul"`.
#include "test/Features.h"
#include "test/gpu/emulator/Emulate.h"
#include "test/gpu/emulator/Simt.h"
#include "test/gpu/ptx/Ptx.h"
#include "test/ops/Row.h"
#include <catch2/catch.hpp>
#include <deque>
#include <stdexcept>

using namespace burin;
using namespace burin::test;

namespace {

constexpr uint64_t kSeed = 20240;
// Of the examples; ptx tests run others. Products and convolutions take long.
constexpr Share kThird{3, 1}, kQuarter{4, 1}, kSixth{6, 1};
constexpr const char *kAmpere = "cuda-sm_80+ptx", *kHopper = "cuda-sm_90a+ptx", *kTf32 = "cuda-sm_80+ptx+tf32",
                     *kBf16x3 = "cuda-sm_80+ptx+bf16x3";

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
  GpuRowCase(const Row &row, const char *target, Share share) : row(row), target(target), share(share) {}
  void invoke() const override {
    std::string different = tryRow(
        row, target, kSeed,
        [&](Graph &graph) -> Runner {
          std::shared_ptr<Compiled> compiled = graph.compile(target, [&](codegen::CompileOptions &options) {
            options.emulate = [&](llvm::Module &kernels, llvm::ArrayRef<std::string> symbols) {
              if (std::getenv("BURIN_PTXAS") || isLong())
                checkedPtx(kernels, target); // the same kernels as PTX, too
              return emulated(kernels, symbols);
            };
          });
          return [compiled](const Tensors &inputs) { return checked(*compiled, inputs); };
        },
        share);
    INFO(different);
    CHECK(different.empty());
  }

private:
  const Row &row;
  const char *target;
  Share share;
};

/// As many tiles of warpgroups as are too few if they have 256 columns.
std::vector<Example> manyTiles(const Row &, DType dtype) {
  auto operand = [&](Shape shape) { return Operand{TensorSpec{dtype, std::move(shape)}, kModest}; };
  return {{{operand({27, 130, 64}), operand({27, 64, 136})}, {}, {}}};
}

Row narrowTiles() {
  for (const Row &row : contractionRows())
    if (row.op == "matmul") {
      Row narrow = row;
      narrow.types = isLong() ? std::vector<DType>{bf16, i8} : std::vector<DType>{bf16};
      narrow.examples = manyTiles;
      return narrow;
    }
  throw std::runtime_error("no row of products");
}

struct Registered {
  Registered() {
    for (const Row *row : allRows())
      add(*row, row->op, kAmpere, isOfContraction(*row) ? kSixth : kThird);
    static const Row narrow = narrowTiles(), attention = attentionByWarpgroups();
    add(narrow, "matmul in narrow tiles on sm_90a", kHopper);
    add(attention, attention.op + " on sm_90a", kHopper);
    static std::deque<Row> hopper, tf32, bf16x3;
    for (const Row &row : contractionRows()) {
      add(tf32.emplace_back(roundedToTf32(row)), row.op + " in tf32", kTf32, kSixth);
      add(bf16x3.emplace_back(splitToBf16(row)), row.op + " in bf16x3", kBf16x3, kSixth);
    }
    for (const Row &row : rowsByWarpgroups())
      add(hopper.emplace_back(row), nameByWarpgroups(row), kHopper, kQuarter);
  }

private:
  /// Declares a test case.
  static void add(const Row &row, const std::string &name, const char *target, Share share = {}) {
    const Catch::AutoReg added(new GpuRowCase(row, target, share), CATCH_INTERNAL_LINEINFO, "",
                               Catch::NameAndTags("gpu: " + name, "[gpu]"));
  }
} registered;

} // namespace
