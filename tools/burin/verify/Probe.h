// Compiles and runs a graph in a child process, and reports how and at which stage it fails.
#pragma once
#include "tools/burin/verify/Compare.h"
#include "tools/burin/verify/GraphRun.h"

namespace burin::cli {

/// How a graph fails.
struct Failure {
  enum Kind { None, Differs, Refused, Crashes, Hangs } kind = None;
  std::string stage; // the name of a pass, or kReference or kCodeGeneration
  std::string what;  // message of one line
  double margin = 1; // the results differ by more than this many tolerances: 1, 10 or 100

  bool isLike(const Failure &other) const { return kind == other.kind && stage == other.stage; }
};

/// Names of stages that are not passes: the reference interpreter, and everything after the passes (kernel code, launch
/// plan, run).
extern const char *const kReference, *const kCodeGeneration;

struct Probe {
  codegen::CompileOptions compile;
  ToleranceArguments tolerance;
  Sizes sizes;
  std::map<std::string, rt::NpyArray> inputs; // by name; the others are random
  uint64_t seed = 0;
  int threads = 0, seconds = 60;
  double margin = 1; // smaller differences, in tolerances, are no failure

  /// Does not change the module.
  Failure run(mlir::ModuleOp module) const;
};

} // namespace burin::cli
