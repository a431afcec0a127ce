// Tables that the plans of an artifact share: source locations, weights, states, and indices of functions.
#pragma once
#include "codegen/plan/PlanBuilder.h"
#include <unordered_map>

namespace burin::codegen {

class PlanTables {
public:
  PlanTables(mlir::ModuleOp module, const UniqueKernels &kernels);

  const UniqueKernels &kernels;
  PlannedArtifact planned;
  /// In the order of their plans: public functions, then the others, each after all its callers.
  std::vector<mlir::func::FuncOp> functions;

  uint32_t location(mlir::Location loc);
  uint32_t location(const std::string &text);
  uint32_t constant(ir::ConstantOp op);
  /// Index of the state with this symbol.
  uint32_t state(mlir::FlatSymbolRefAttr symbol) const { return states.lookup(symbol.getAttr()); }
  uint32_t planOf(mlir::Operation *function) const { return plans.lookup(function); }
  rt::Plan &plan(uint32_t index) { return planned.artifact.plans[index]; }

private:
  mlir::ModuleOp module;
  llvm::StringMap<uint32_t> locations;
  llvm::DenseMap<mlir::Attribute, uint32_t> constants, states;
  llvm::DenseMap<mlir::Operation *, uint32_t> plans;
  std::unordered_multimap<uint64_t, uint32_t> constantsByHash; // by hash of the elements

  uint32_t constant(mlir::ElementsAttr value, llvm::StringRef name);
  uint32_t addConstant(mlir::ElementsAttr value, llvm::StringRef name);
  void addStates();
  void orderFunctions();
};

/// Whether the steps of a scan's body are part of the surrounding plan. Otherwise, if some of them are no kernels, each
/// iteration calls the body.
bool isInlined(ir::ScanOp scan);

/// Whether each worker that runs iterations of the loop has its own copy of a buffer within; there is one copy if
/// iterations are sequential, or if there is no loop.
bool takesCopies(ir::ScanOp loop);

} // namespace burin::codegen
