// All graph passes. Passes.h, the registration for burin-opt and the page docs/passes.md are generated from this file.
// The examples are run by the test passes-page.
#ifndef BURIN_PASSES
#define BURIN_PASSES
include "passes/graph/Passes.td"
include "passes/lower/Passes.td"
include "passes/kernels/Passes.td"

// ---- checks between stages, in builds with assertions

def VerifyGraphPass : Pass<"burin-verify-graph", "::mlir::ModuleOp"> {
  let summary = "Fails if decomposition has left an op that no later pass takes";
  let description = [{
    Behind the graph passes: each op is one that kernels compute, a product that `burin-lower-contractions` takes, a
    constant, or a step of its own. There are no kernels yet.
  }];
}
def VerifyLoweredPass : Pass<"burin-verify-lowered", "::mlir::ModuleOp"> {
  let summary = "Fails if an op is left that fusion cannot put into a kernel";
  let description = [{ Behind the passes that lower: products are contractions, convolutions are depthwise and
    channels-last, and a composite is left only if a kernel computes it. }];
}
def VerifyKernelsPass : Pass<"burin-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "Fails if no kernel family accepts the body of a kernel";
  let description = [{ Behind fusion: what lies outside of kernels costs nothing or is run by the runtime. }];
}
#endif
