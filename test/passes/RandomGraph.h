// Random graphs of ops on images with constant weights, on which the graph passes are tested.
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

/// Returns a graph of about `steps` ops, determined by the seed. Every other seed has a symbolic batch size.
RandomGraph randomGraph(mlir::MLIRContext &, unsigned seed, int steps);

} // namespace burin::test
