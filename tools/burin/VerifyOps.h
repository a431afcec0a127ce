// burin verify --per-op: each op's compiled code against the reference interpreter.
#pragma once
#include "ir/reference/ReferenceTensor.h"
#include "tools/burin/Compare.h"
#include "tools/burin/GraphRun.h"

namespace burin::cli {

/// One result of one op. Errors are the largest difference, in units of the largest value, or of 1 if all are smaller.
struct OpOutcome {
  std::string op, source, type;
  double local = 0;       // the op alone: the reference computes it from the operands that the compiled code had
  double accumulated = 0; // since the inputs: the reference computes everything
  Tolerance tolerance;
  run::Difference difference; // the local one
};

struct OpCheck {
  codegen::CompileOptions compile;
  ToleranceArguments tolerance;
  int threads = 0;
  std::vector<OpOutcome> outcomes;
  std::vector<ir::RefTensor> expected; // the outputs of the graph by the reference interpreter

  /// Compiles and runs the graph some ops at a time, with all their results as outputs. False after a diagnostic.
  bool run(mlir::ModuleOp module, const std::vector<rt::NpyArray> &inputs);
};

void printOps(const std::vector<OpOutcome> &outcomes);

} // namespace burin::cli
