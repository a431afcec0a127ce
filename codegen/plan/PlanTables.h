// What the plans of an artifact share: places in the source, weights, states, and the numbers of functions.
#pragma once
#include "codegen/plan/PlanBuilder.h"
#include <unordered_map>

namespace burin::codegen {

class PlanTables {
public:
  PlanTables(mlir::ModuleOp module, const UniqueKernels &kernels);

  const UniqueKernels &kernels;
  PlannedArtifact planned;
  /// In the order of their plans: public ones, then each of the others behind all that run it.
  std::vector<mlir::func::FuncOp> functions;

  uint32_t location(mlir::Location loc);
  uint32_t location(const std::string &text);
  uint32_t constant(ir::ConstantOp op);
  /// The state of the module with this symbol.
  uint32_t state(mlir::FlatSymbolRefAttr symbol) const { return states.lookup(symbol.getAttr()); }
  uint32_t planOf(mlir::Operation *function) const { return plans.lookup(function); }
  rt::Plan &plan(uint32_t index) { return planned.artifact.plans[index]; }

private:
  mlir::ModuleOp module;
  llvm::StringMap<uint32_t> locations;
  llvm::DenseMap<mlir::Attribute, uint32_t> constants, states;
  llvm::DenseMap<mlir::Operation *, uint32_t> plans;
  std::unordered_multimap<uint64_t, uint32_t> constantsByHash; // of the elements

  uint32_t constant(mlir::ElementsAttr value, llvm::StringRef name);
  uint32_t addConstant(mlir::ElementsAttr value, llvm::StringRef name);
  void addStates();
  void orderFunctions();
};

/// Whether a scan's body is run by steps of the plan around it; else, as it has steps that are no kernels, by a call in
/// each turn.
bool isInlined(ir::ScanOp scan);

} // namespace burin::codegen
