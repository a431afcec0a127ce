#include "codegen/plan/PlanTables.h"
#include "passes/analysis/ValueChecks.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

static constexpr uint64_t kWeightAlign = 64;

bool isInlined(ScanOp scan) {
  return !scan.body()
              ->walk([](Operation *op) { return isOwnStep(op) ? WalkResult::interrupt() : WalkResult::advance(); })
              .wasInterrupted();
}

bool takesCopies(ScanOp loop) { return loop && loop.getStates() == 0 && isInlined(loop); }

PlanTables::PlanTables(ModuleOp module, const UniqueKernels &kernels) : kernels(kernels), module(module) {
  rt::Artifact &artifact = planned.artifact;
  artifact.producer = "burin " BURIN_VERSION;
  artifact.locations.push_back("");
  for (const UniqueKernels::Entry &kernel : kernels.kernels) {
    KernelOp op = kernel.op;
    std::vector<std::string> errors;
    for (Operation *check : passes::checksOf(op))
      errors.push_back(passes::errorOf(check));
    artifact.kernels.push_back({op.getName().value_or("kernel").str(), location(op.getLoc()), std::move(errors)});
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
  auto known = constants.find(value);
  if (known == constants.end())
    known = constants.try_emplace(value, addConstant(value, name)).first;
  return known->second;
}

/// Adds a constant unless one with the same elements exists: functions that share a weight have a copy each. Constants
/// of different types with the same bytes are stored once.
uint32_t PlanTables::addConstant(ElementsAttr value, llvm::StringRef name) {
  std::vector<rt::Constant> &all = planned.artifact.constants;
  std::vector<char> storage, otherStorage;
  ArrayRef<char> bytes = constantBytes(value, storage);
  uint64_t hash = llvm::xxh3_64bits(ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  auto [begin, end] = constantsByHash.equal_range(hash);
  std::optional<uint64_t> offset;
  for (auto at = begin; at != end; ++at) {
    ElementsAttr other = planned.weights[at->second];
    if (constantBytes(other, otherStorage) != bytes)
      continue;
    if (other.getType() == value.getType())
      return at->second;
    offset = all[at->second].offset;
  }
  auto type = cast<RankedTensorType>(value.getType());
  rt::Constant constant;
  constant.name = name.str();
  constant.dtype = *dtypeOf(type.getElementType());
  constant.shape = type.getShape().vec();
  planned.weights.push_back(value);
  constant.offset = offset.value_or(llvm::alignTo(planned.weightBytes, kWeightAlign));
  constant.bytes = uint64_t(type.getNumElements()) * byteWidth(constant.dtype);
  planned.weightBytes = std::max(planned.weightBytes, constant.offset + constant.bytes);
  all.push_back(std::move(constant));
  constantsByHash.emplace(hash, uint32_t(all.size() - 1));
  return uint32_t(all.size() - 1);
}

void PlanTables::addStates() {
  for (auto op : module.getOps<StateOp>()) {
    auto type = cast<RankedTensorType>(op.getType());
    rt::State state{op.getSymName().str(), *dtypeOf(type.getElementType()), type.getShape().vec(), UINT32_MAX};
    std::vector<char> storage;
    auto isZero = [](char byte) { return byte == 0; };
    if (auto initial = op.getInitial(); initial && !llvm::all_of(constantBytes(*initial, storage), isZero))
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
    postorder.pop_back(); // the public function itself
  }
  functions.insert(functions.end(), postorder.rbegin(), postorder.rend());
  for (auto [i, function] : llvm::enumerate(functions))
    plans[function] = uint32_t(i);
}

void PlannedArtifact::writeWeights(std::span<std::byte> to) const {
  for (auto [constant, value] : llvm::zip_equal(artifact.constants, weights)) {
    std::vector<char> storage;
    ArrayRef<char> bytes = constantBytes(value, storage);
    assert(bytes.size() == constant.bytes);
    std::memcpy(to.data() + constant.offset, bytes.data(), bytes.size());
  }
}

} // namespace burin::codegen
