// Compiles and runs a graph in a process of its own, and says what goes wrong and where.
#pragma once
#include "tools/burin/Compare.h"
#include "tools/burin/GraphRun.h"

namespace burin::cli {

/// How a graph fails.
struct Failure {
  enum Kind { None, Differs, Refused, Crashes, Hangs } kind = None;
  std::string stage; // a pass by its name, or one of those below
  std::string what;  // one line
  double margin = 1; // it differs by so many tolerances: 1, 10 or 100

  bool isLike(const Failure &other) const { return kind == other.kind && stage == other.stage; }
};

/// Stages that are no passes: the reference interpreter; and the code of kernels, the launch plan and the run.
extern const char *const kReference, *const kCodeGeneration;

struct Probe {
  codegen::CompileOptions compile;
  ToleranceArguments tolerance;
  Sizes sizes;
  std::map<std::string, rt::NpyArray> inputs; // by name; the others are random
  uint64_t seed = 0;
  int threads = 0, seconds = 60;
  double margin = 1; // what differs by less is no failure

  /// The module stays as it is.
  Failure run(mlir::ModuleOp module) const;
};

} // namespace burin::cli
