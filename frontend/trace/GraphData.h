// The module behind a Graph.
#pragma once
#include "burin/graph.h"
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
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
  mlir::OwningOpRef<mlir::ModuleOp> module; // @main, and the steps of its loops
  std::vector<NamedSpec> inputs, outputs;
  std::shared_ptr<const Artifact> native; // made by run()

  std::string takeDiagnostics() { return std::exchange(diagnostics, {}); }
};

} // namespace burin
