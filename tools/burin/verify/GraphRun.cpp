#include "tools/burin/verify/GraphRun.h"
#include "ir/dialect/Burin.h"
#include "tools/burin/model/Execute.h"
#include "tools/burin/verify/Compare.h"
#include "tools/burin/verify/GraphCut.h"
#include "tools/common/Runner.h"

using namespace mlir;

namespace burin::cli {

std::optional<std::vector<rt::NpyArray>> compileAndRun(ModuleOp module, const codegen::CompileOptions &options,
                                                       const std::vector<rt::NpyArray> &inputs, int threads) {
  run::Options run;
  run.program = "burin";
  func::FuncOp main = mainOf(module);
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto name = main.getArgAttrOfType<StringAttr>(i, "burin.name");
    run.inputs.emplace_back(name ? name.str() : "input" + std::to_string(i), "@" + std::to_string(i));
  }
  run.readArray = [&](const std::string &index, std::string &) { return inputs[std::stoul(index)]; };
  auto artifact = codegen::compile(module, options);
  if (failed(artifact))
    return std::nullopt;
  run::Runner runner(run);
  if (!runner.load(*artifact) || !runner.prepareInputs() || !runner.openSession(threads) || !runner.runOnce())
    return std::nullopt;
  std::vector<rt::NpyArray> outputs;
  for (const run::NamedTensor &output : runner.report.outputs)
    outputs.push_back(copyOf(output.values()));
  return outputs;
}

std::vector<rt::NpyArray> randomInputs(ModuleOp module, uint64_t seed, Sizes &sizes,
                                       const std::map<std::string, rt::NpyArray> &given) {
  std::vector<rt::NpyArray> inputs;
  for (BlockArgument argument : mainOf(module).getArguments()) {
    TensorSpec spec = ir::specOf(argument);
    std::vector<int64_t> shape;
    for (const Dim &dim : spec.shape) {
      for (const Dim::Symbol &symbol : dim.symbols())
        sizes.try_emplace(symbol.name, smallSize(symbol));
      auto size = dim.evaluate([&](std::string_view name) { return std::optional(sizes.at(std::string(name))); });
      shape.push_back(size.value_or(1));
    }
    auto name = mainOf(module).getArgAttrOfType<StringAttr>(argument.getArgNumber(), "burin.name");
    auto known = name ? given.find(name.str()) : given.end();
    bool fits = known != given.end() && known->second.dtype == spec.dtype && known->second.shape == shape;
    inputs.push_back(fits ? known->second : run::randomInput(spec.dtype, shape, seed, inputs.size()));
  }
  return inputs;
}

Sizes sizesOf(ModuleOp module, const std::vector<std::vector<int64_t>> &shapes) {
  Sizes sizes;
  for (auto [argument, shape] : llvm::zip(mainOf(module).getArguments(), shapes))
    for (auto [dim, size] : llvm::zip(ir::shapeOf(argument), shape))
      if (auto linear = dim.linear())
        sizes.try_emplace(linear->symbol.name, (size - linear->offset) / linear->scale);
  return sizes;
}

} // namespace burin::cli
