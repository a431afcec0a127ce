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

    Accepted:
    ```mlir
    func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x5xf32>) -> tensor<4x5xf32> {
      %0 = burin.matmul %x, %w : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
      return %0 : tensor<4x5xf32>
    }
    ```
    Refused, as `burin-decompose` replaces transposed convolutions by convolutions:
    ```mlir
    func.func @main(%x: tensor<1x2x4xf32>, %w: tensor<2x3x2xf32>) -> tensor<1x3x8xf32> {
      %0 = burin.conv_transpose %x, %w {strides = array<i64: 2>, padding = array<i64: 0, 0>, dilations = array<i64: 1>, output_padding = array<i64: 0>, groups = 1 : i64} : (tensor<1x2x4xf32>, tensor<2x3x2xf32>) -> tensor<1x3x8xf32>
      return %0 : tensor<1x3x8xf32>
    }
    ```
    Error:
    ```
    error: 'burin.conv_transpose' op is left by the graph passes, but no later pass supports it
    ```
  }];
}
def VerifyLoweredPass : Pass<"burin-verify-lowered", "::mlir::ModuleOp"> {
  let summary = "Fails if an op is left that fusion cannot put into a kernel";
  let description = [{
    Runs after the lowering passes: products are contractions, convolutions are depthwise and channels-last, and a
    composite is left only if a kernel computes it.

    Accepted:
    ```mlir
    func.func @main(%x: tensor<4x8xf32>, %w: tensor<1x8x32xf32>) -> tensor<4x5xf32> {
      %0 = burin.contract %x, %w : (tensor<4x8xf32>, tensor<1x8x32xf32>) -> tensor<4x5xf32>
      return %0 : tensor<4x5xf32>
    }
    ```
    Refused, as `burin-lower-contractions` replaces products by contractions with packed operands:
    ```mlir
    func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x5xf32>) -> tensor<4x5xf32> {
      %0 = burin.matmul %x, %w : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
      return %0 : tensor<4x5xf32>
    }
    ```
    Error:
    ```
    error: 'burin.matmul' op is left by the lowering passes, but no kernel computes it
    ```
  }];
}
def VerifyKernelsPass : Pass<"burin-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "Fails if no kernel family accepts the body of a kernel";
  let description = [{
    Runs after fusion: ops outside of kernels cost nothing, as views do, or are executed by the runtime, and the ops of a
    kernel can be computed in one loop nest.

    Accepted:
    ```mlir
    func.func @main(%x: tensor<4x5xf32>) -> tensor<4xf32> {
      %0 = burin.kernel "exp+sum"(%y = %x) : (tensor<4x5xf32>) -> tensor<4xf32> {
        %1 = burin.exp %y : (tensor<4x5xf32>) -> tensor<4x5xf32>
        %2 = burin.reduce_sum %1 {axes = array<i64: 1>, keepdims = false} : (tensor<4x5xf32>) -> tensor<4xf32>
        burin.yield %2 : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }
    ```
    Refused, as one loop nest cannot reduce over both axes:
    ```mlir
    func.func @main(%x: tensor<4x5xf32>) -> (tensor<5xf32>, tensor<4xf32>) {
      %0:2 = burin.kernel "sums"(%y = %x) : (tensor<4x5xf32>) -> (tensor<5xf32>, tensor<4xf32>) {
        %1 = burin.reduce_sum %y {axes = array<i64: 0>, keepdims = false} : (tensor<4x5xf32>) -> tensor<5xf32>
        %2 = burin.reduce_sum %y {axes = array<i64: 1>, keepdims = false} : (tensor<4x5xf32>) -> tensor<4xf32>
        burin.yield %1, %2 : tensor<5xf32>, tensor<4xf32>
      }
      return %0#0, %0#1 : tensor<5xf32>, tensor<4xf32>
    }
    ```
    Error:
    ```
    error: 'burin.kernel' op has ops that do not share an iteration space
    ```
  }];
}
#endif
