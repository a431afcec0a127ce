// The module behind a Graph.
#pragma once
#include "burin/graph.h"
#include "frontend/tensor/HostFunctions.h"
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"
#include <mutex>

namespace burin {

/// Each graph has a context of its own, single-threaded and used under `mutex`: what a graph holds, weights included,
/// goes with it, which a shared context would keep forever.
struct Graph::Data {
  Data();
  ~Data();

  std::mutex mutex;
  std::string diagnostics; // errors reported by the context since they were last taken
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module; // the functions, and those that their branches and loops run
  /// What callers see of a public function: states are not part of it.
  struct Signature {
    std::string name;
    std::vector<NamedSpec> inputs, outputs;
  };
  std::vector<Signature> functions;       // at least one
  std::shared_ptr<const Artifact> native; // made by run()
  detail::HostFunctions hostFunctions;
  bool statesAreGiven = false; // to each run, by a jitted function

  /// While it is traced: what its states are called, by the cell, and how many functions branches and loops have.
  llvm::DenseMap<const void *, mlir::FlatSymbolRefAttr> states;
  size_t privateFunctions = 0;

  std::string takeDiagnostics() { return std::exchange(diagnostics, {}); }
};

} // namespace burin
