#include "codegen/plan/PlanTables.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

static constexpr uint64_t kWeightAlign = 64;

bool isInlined(ScanOp scan) {
  return !scan.body()
              ->walk([](Operation *op) {
                return appliedFunctions(op).empty() ? WalkResult::advance() : WalkResult::interrupt();
              })
              .wasInterrupted();
}

std::vector<func::FuncOp> publicFunctions(ModuleOp module) {
  std::vector<func::FuncOp> functions;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic())
      functions.insert(function.getName() == "main" ? functions.begin() : functions.end(), function);
  return functions;
}

PlanTables::PlanTables(ModuleOp module, const UniqueKernels &kernels) : kernels(kernels), module(module) {
  rt::Artifact &artifact = planned.artifact;
  artifact.producer = "burin " BURIN_VERSION;
  artifact.locations.push_back("");
  for (const UniqueKernels::Entry &kernel : kernels.kernels) {
    KernelOp op = kernel.op;
    artifact.kernels.push_back(
        {op.getName().value_or("kernel").str(), location(op.getLoc()), kernel.interface.message});
  }
  addStates();
  orderFunctions();
  artifact.plans.resize(functions.size());
}

uint32_t PlanTables::location(mlir::Location loc) { return location(fileLine(loc)); }

uint32_t PlanTables::location(const std::string &text) {
  if (text.empty())
    return 0;
  std::vector<std::string> &all = planned.artifact.locations;
  auto [it, inserted] = locations.try_emplace(text, all.size());
  if (inserted)
    all.push_back(text);
  return it->second;
}

uint32_t PlanTables::constant(ConstantOp op) { return constant(op.getValue(), op.getName().value_or("")); }

uint32_t PlanTables::constant(ElementsAttr value, llvm::StringRef name) {
  std::vector<rt::Constant> &all = planned.artifact.constants;
  auto [it, inserted] = constants.try_emplace(value, all.size());
  if (inserted) {
    auto type = cast<RankedTensorType>(value.getType());
    rt::Constant constant;
    constant.name = name.str();
    constant.dtype = *dtypeOf(type.getElementType());
    constant.shape = type.getShape().vec();
    planned.weights.push_back(value);
    constant.offset = llvm::alignTo(planned.weightBytes, kWeightAlign);
    constant.bytes = uint64_t(type.getNumElements()) * byteWidth(constant.dtype);
    planned.weightBytes = constant.offset + constant.bytes;
    all.push_back(std::move(constant));
  }
  return it->second;
}

void PlanTables::addStates() {
  for (auto op : module.getOps<StateOp>()) {
    auto type = cast<RankedTensorType>(op.getType());
    rt::State state{op.getSymName().str(), *dtypeOf(type.getElementType()), type.getShape().vec(), UINT32_MAX};
    if (auto initial = op.getInitial())
      state.initial = constant(*initial, op.getSymName());
    states[op.getSymNameAttr()] = uint32_t(planned.artifact.states.size());
    planned.artifact.states.push_back(std::move(state));
  }
}

void PlanTables::orderFunctions() {
  std::vector<func::FuncOp> postorder;
  llvm::DenseSet<Operation *> seen;
  std::function<void(func::FuncOp)> visit = [&](func::FuncOp function) {
    function.walk([&](Operation *op) {
      auto scan = dyn_cast<ScanOp>(op);
      if (scan && isInlined(scan))
        return;
      for (Operation *applied : appliedFunctions(op))
        if (seen.insert(applied).second)
          visit(cast<func::FuncOp>(applied));
    });
    postorder.push_back(function);
  };
  functions = publicFunctions(module);
  for (func::FuncOp function : functions) {
    visit(function);
    postorder.pop_back(); // itself
  }
  functions.insert(functions.end(), postorder.rbegin(), postorder.rend());
  for (auto [i, function] : llvm::enumerate(functions))
    plans[function] = uint32_t(i);
}

} // namespace burin::codegen
