// Runs passes on a module of the burin dialect: the compiler developer's tool.
#include "ir/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Pipelines.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<burin::ir::BurinDialect, mlir::func::FuncDialect>();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  burin::passes::registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "burin optimiser driver\n", registry));
}
