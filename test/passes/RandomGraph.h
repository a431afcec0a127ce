// Random graphs of ops on images, with constant weights: what the graph passes are tested on.
#pragma once
#include "ir/dialect/Burin.h"
#include "ir/reference/ReferenceTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <random>

namespace burin::test {

struct RandomGraph {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<ir::RefTensor> inputs;
};

/// A graph of about `steps` ops; the same seed gives the same one. Its batch size is symbolic for every other seed.
RandomGraph randomGraph(mlir::MLIRContext &, unsigned seed, int steps);

} // namespace burin::test
