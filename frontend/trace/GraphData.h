// The module behind a Graph.
#pragma once
#include "burin/graph/graph.h"
#include "frontend/tensor/functions/HostFunctions.h"
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <mutex>

namespace burin {

/// Each graph has its own context, single-threaded and used under `mutex`: the memory of a graph, including weights, is
/// freed with it, while a shared context would keep it forever.
struct Graph::Data {
  Data();
  ~Data();

  std::mutex mutex;
  std::string diagnostics; // errors reported by the context, until they are taken
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module; // the functions, and those that their branches and loops call
  /// A public function as callers see it, without states.
  struct Signature {
    std::string name;
    std::vector<NamedSpec> inputs, outputs;
  };
  std::vector<Signature> functions;                      // at least one
  std::optional<Device> device;                          // where it runs, as far as a trace has told
  std::map<int, std::shared_ptr<const Artifact>> native; // made by run(), by the number of the GPU; -1: the processor
  detail::HostFunctions hostFunctions;
  bool statesAreGiven = false; // to each run, by a jitted function

  /// During tracing: symbols of states by cell, and the number of functions of branches and loops.
  llvm::DenseMap<const void *, mlir::FlatSymbolRefAttr> states;
  size_t privateFunctions = 0;

  std::string takeDiagnostics() { return std::exchange(diagnostics, {}); }
};

} // namespace burin
