// burin verify --per-op: each op's compiled code against the reference interpreter.
#pragma once
#include "ir/reference/ReferenceTensor.h"
#include "tools/burin/verify/Compare.h"
#include "tools/burin/verify/GraphRun.h"

namespace burin::cli {

/// The comparison of one result of one op. Errors are largest differences, relative to the largest value, or absolute
/// if all values are smaller than 1.
struct OpOutcome {
  std::string op, source, type;
  // Error of this op alone: the reference computes it from the operands that the compiled code had.
  double local = 0;
  double accumulated = 0; // error since the graph's inputs: the reference computes everything
  Tolerance tolerance;
  run::Difference difference; // of the local comparison
};

struct OpCheck {
  codegen::CompileOptions compile;
  ToleranceArguments tolerance;
  int threads = 0;
  std::vector<OpOutcome> outcomes;
  std::vector<ir::RefTensor> expected; // outputs of the graph, computed by the reference interpreter

  /// Compiles and runs the graph in groups of ops whose results are all outputs. Returns false after a diagnostic.
  bool run(mlir::ModuleOp module, const std::vector<rt::NpyArray> &inputs);
};

void printOps(const std::vector<OpOutcome> &outcomes);

} // namespace burin::cli
