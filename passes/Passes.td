// All graph passes. Passes.h, the registration for burin-opt and the page docs/passes.md are generated from this file.
// The test passes-page runs the examples.
#ifndef BURIN_PASSES
#define BURIN_PASSES
include "passes/graph/Passes.td"
include "passes/lower/Passes.td"
include "passes/kernels/Passes.td"

// ---- checks between stages, in builds with assertions

def VerifyGraphPass : Pass<"burin-verify-graph", "::mlir::ModuleOp"> {
  let summary = "Fails if an op is left after decomposition that later passes do not support";
  let description = [{
    Runs after the graph passes: each op is one that kernels compute, a product for `burin-lower-contractions`, a constant,
    or a separate step of the launch plan. There are no kernels yet.
  }];
}
def VerifyLoweredPass : Pass<"burin-verify-lowered", "::mlir::ModuleOp"> {
  let summary = "Fails if an op is left that fusion cannot put into a kernel";
  let description = [{ Runs after the lowering passes: products are contractions, convolutions are depthwise and
    channels-last, and a composite is left only if a kernel computes it. }];
}
def VerifyKernelsPass : Pass<"burin-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "Fails if no kernel family accepts the body of a kernel";
  let description = [{ Runs after fusion: ops outside of kernels cost nothing or are executed by the runtime. }];
}
#endif
