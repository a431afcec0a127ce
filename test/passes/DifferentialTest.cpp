// Random graphs give the same results before and after each pass.
#include "ir/reference/Reference.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "test/passes/RandomGraph.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::ir;

namespace {

std::string text(mlir::ModuleOp module) {
  std::string result;
  llvm::raw_string_ostream os(result);
  module.print(os, mlir::OpPrintingFlags().elideLargeElementsAttrs(8).elideLargeResourceString(8));
  return result;
}

/// Returns the first difference of two runs, or "".
std::string difference(const std::vector<RefTensor> &got, const std::vector<RefTensor> &expected) {
  if (got.size() != expected.size())
    return "different numbers of results";
  for (size_t r = 0; r < got.size(); ++r) {
    if (got[r].shape != expected[r].shape || got[r].dtype != expected[r].dtype)
      return "result " + std::to_string(r) + " has another type";
    for (size_t i = 0; i < size_t(got[r].size()); ++i) {
      double x = got[r][i], y = expected[r][i];
      bool same = x == y || (x != x && y != y) || std::abs(x - y) <= 2e-4 * (1 + std::abs(y));
      if (!same)
        return "result " + std::to_string(r) + "[" + std::to_string(i) + "]: " + std::to_string(x) + " instead of " +
               std::to_string(y);
    }
  }
  return "";
}

/// Checks that the passes do not change the results of the graph of `seed`.
void check(unsigned seed, const std::function<void(mlir::PassManager &)> &addPasses) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  loadDialects(context);
  test::RandomGraph graph = test::randomGraph(context, seed, 4 + int(seed % 20));
  std::string before = text(*graph.module);
  INFO("seed " << seed << "\n" << before);
  REQUIRE(mlir::succeeded(mlir::verify(*graph.module)));
  auto expected = interpret(*graph.module, graph.inputs);
  REQUIRE(mlir::succeeded(expected));
  mlir::PassManager manager(&context);
  addPasses(manager);
  REQUIRE(mlir::succeeded(manager.run(*graph.module)));
  INFO("after\n" << text(*graph.module));
  auto got = interpret(*graph.module, graph.inputs);
  REQUIRE(mlir::succeeded(got));
  REQUIRE(difference(*got, *expected) == "");
}

void checkAll(unsigned count, const std::function<void(mlir::PassManager &)> &addPasses) {
  for (unsigned seed = 0; seed < count; ++seed)
    check(seed, addPasses);
}

using PM = mlir::PassManager;

/// Counts the loops over images that batch tiling makes.
struct CountMaps : mlir::PassInstrumentation {
  explicit CountMaps(unsigned &count) : count(count) {}
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override {
    if (pass->getArgument() == "burin-batch-tiling")
      op->walk([&](ScanOp) { ++count; });
  }
  unsigned &count;
};

} // namespace

TEST_CASE("Decomposition keeps what graphs mean") {
  checkAll(150, [](PM &m) { m.addPass(passes::createDecomposePass()); });
}

TEST_CASE("Constant folding keeps what graphs mean") {
  checkAll(150, [](PM &m) { m.addPass(passes::createConstantFoldPass()); });
}

TEST_CASE("Folding normalisation into weights keeps what graphs mean") {
  checkAll(300, [](PM &m) { m.addPass(passes::createFoldNormalizationPass()); });
}

TEST_CASE("Layouts keep what graphs mean") {
  checkAll(300, [](PM &m) { m.addPass(passes::createLayoutAssignmentPass()); });
}

TEST_CASE("Layouts of decomposed graphs keep what they mean") {
  checkAll(300, [](PM &m) {
    m.addPass(passes::createDecomposePass());
    m.addPass(passes::createLayoutAssignmentPass());
    m.addPass(mlir::createCanonicalizerPass());
  });
}

TEST_CASE("Work in parts of the batch keeps what graphs mean") {
  unsigned split = 0;
  for (unsigned seed = 0; seed < 300; ++seed)
    check(seed, [&](PM &m) {
      m.addPass(passes::createDecomposePass());
      m.addPass(passes::createLowerContractionsPass());
      m.addPass(mlir::createCanonicalizerPass());
      m.addPass(passes::createBatchTilingPass({.leastGain = 0}));
      m.addInstrumentation(std::make_unique<CountMaps>(split));
      m.addPass(passes::createFusePass());
    });
  CHECK(split > 100);
}

TEST_CASE("All graph passes and fusion keep what graphs mean") {
  checkAll(150, [](PM &m) {
    m.addPass(mlir::createCanonicalizerPass());
    m.addPass(passes::createFoldNormalizationPass());
    m.addPass(passes::createDecomposePass());
    m.addPass(passes::createConstantFoldPass());
    m.addPass(passes::createLayoutAssignmentPass());
    m.addPass(passes::createConstantFoldPass());
    m.addPass(passes::createLowerContractionsPass());
    m.addPass(mlir::createCanonicalizerPass());
    m.addPass(passes::createFusePass());
    m.addPass(passes::createDecomposeInKernelsPass());
    m.addPass(mlir::createCSEPass());
  });
}

TEST_CASE("Each stage keeps what it promises the next one") {
  checkAll(150, [](PM &m) {
    buildPipeline(m, passes::Stage::Graph, passes::Stage::Kernels, {.disabled = {}, .verify = true, .memory = {}});
  });
}
