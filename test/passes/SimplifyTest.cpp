// Simplification does not change the results of the functions of recover-*.mlir, neither of those that it rewrites nor
// of the others.
#include "ir/reference/Reference.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include <catch2/catch.hpp>
#include <random>

using namespace burin;
using namespace burin::ir;

namespace {

RefTensor randomTensor(const TensorSpec &spec, std::mt19937 &random) {
  constexpr int64_t kSymbolic = 5;
  std::vector<int64_t> shape;
  for (const Dim &d : spec.shape)
    shape.push_back(d.isStatic() ? d.value() : kSymbolic);
  RefTensor t = RefTensor::zeros(spec.dtype, shape);
  std::normal_distribution<double> normal(0, 2);
  for (size_t i = 0; i < size_t(t.size()); ++i)
    if (isFloat(spec.dtype))
      t.reals()[i] = roundTo(spec.dtype, normal(random));
    else
      t.ints()[i] = int64_t(normal(random));
  return t;
}

mlir::OwningOpRef<mlir::ModuleOp> moduleOf(mlir::func::FuncOp function) {
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(function.getLoc());
  mlir::func::FuncOp copy = function.clone();
  copy.setName("main");
  module->push_back(copy);
  return module;
}

std::vector<RefTensor> resultsOf(mlir::ModuleOp module, const std::vector<RefTensor> &inputs) {
  auto results = interpret(module, inputs);
  REQUIRE(mlir::succeeded(results));
  return *results;
}

} // namespace

TEST_CASE("Formulas and the ops they spell compute the same") {
  auto path = GENERATE(as<std::string>(), "recover-activations.mlir", "recover-row-ops.mlir");
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  loadDialects(context);
  auto file = mlir::parseSourceFile<mlir::ModuleOp>(BURIN_TEST_PASSES "/" + path, &context);
  REQUIRE(file);
  std::mt19937 random(5);
  for (auto function : file->getOps<mlir::func::FuncOp>()) {
    INFO(function.getName().str());
    std::vector<RefTensor> inputs;
    for (mlir::Type type : function.getArgumentTypes())
      inputs.push_back(randomTensor(specOf(type), random));
    auto module = moduleOf(function);
    std::vector<RefTensor> expected = resultsOf(*module, inputs);
    mlir::PassManager manager(&context);
    manager.addPass(passes::createSimplifyPass());
    REQUIRE(mlir::succeeded(manager.run(*module)));
    std::vector<RefTensor> got = resultsOf(*module, inputs);
    REQUIRE(got.size() == expected.size());
    for (size_t r = 0; r < got.size(); ++r) {
      REQUIRE(got[r].shape == expected[r].shape);
      double tolerance = got[r].dtype == DType::bf16 ? 0x1p-6 : 1e-5;
      for (size_t i = 0; i < size_t(got[r].size()); ++i)
        REQUIRE(got[r][i] == Approx(expected[r][i]).epsilon(tolerance).margin(tolerance));
    }
  }
}
