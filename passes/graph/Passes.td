// Passes of the directory passes/graph, see passes/Passes.td.
#ifndef BURIN_GRAPH_PASSES
#define BURIN_GRAPH_PASSES
include "mlir/Pass/PassBase.td"

def SimplifyPass : Pass<"burin-simplify", "::mlir::ModuleOp"> {
  let summary = "Replaces formulas by the op that they compute";
  let description = [{
    Recovers sigmoid, silu, hardswish, gelu, softmax, layer_norm, rms_norm and attention from the ops that programs and
    exporters write for them. Formulas are matched as formulas of real numbers: factors in any order, constants up to the
    precision of their type. Intermediate values of a formula must not have other uses. Attention whose keys and values
    are repeated for groups of heads becomes one with a dimension for the groups.

    Before:
    ```mlir
    func.func @silu(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = burin.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
      %1 = burin.mul %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    func.func @silu(%arg0: tensor<4xf32>) -> tensor<4xf32> {
      %0 = burin.silu %arg0 : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
}

def AttentionGradientsPass : Pass<"burin-attention-gradients", "::mlir::ModuleOp"> {
  let summary = "Computes the gradients of attention without a matrix of weights in memory";
  let description = [{
    The gradients of queries, keys and values, which programs and `grad` write as products with the weights and with the
    gradient of the scores, become one op. Its kernel computes the weights again, block by block. Nothing else may read
    the weights: they stay for dropout, and for a mask that needs a gradient.

    Before:
    ```mlir
    func.func @gradients(%q: tensor<16x64x16xf32>, %k: tensor<16x64x16xf32>, %v: tensor<16x64x16xf32>, %g: tensor<16x64x16xf32>) -> (tensor<16x64x16xf32>, tensor<16x64x16xf32>, tensor<16x64x16xf32>) {
      %kt = burin.transpose %k {perm = array<i64: 0, 2, 1>} : (tensor<16x64x16xf32>) -> tensor<16x16x64xf32>
      %s = burin.matmul %q, %kt : (tensor<16x64x16xf32>, tensor<16x16x64xf32>) -> tensor<16x64x64xf32>
      %p = burin.softmax %s {axis = 2 : i64} : (tensor<16x64x64xf32>) -> tensor<16x64x64xf32>
      %vt = burin.transpose %v {perm = array<i64: 0, 2, 1>} : (tensor<16x64x16xf32>) -> tensor<16x16x64xf32>
      %dp = burin.matmul %g, %vt : (tensor<16x64x16xf32>, tensor<16x16x64xf32>) -> tensor<16x64x64xf32>
      %pdp = burin.mul %dp, %p : (tensor<16x64x64xf32>, tensor<16x64x64xf32>) -> tensor<16x64x64xf32>
      %sum = burin.reduce_sum %pdp {axes = array<i64: 2>, keepdims = true} : (tensor<16x64x64xf32>) -> tensor<16x64x1xf32>
      %sums = burin.broadcast_to %sum {shape = [16, 64, 64]} : (tensor<16x64x1xf32>) -> tensor<16x64x64xf32>
      %d = burin.sub %dp, %sums : (tensor<16x64x64xf32>, tensor<16x64x64xf32>) -> tensor<16x64x64xf32>
      %ds = burin.mul %p, %d : (tensor<16x64x64xf32>, tensor<16x64x64xf32>) -> tensor<16x64x64xf32>
      %dst = burin.transpose %ds {perm = array<i64: 0, 2, 1>} : (tensor<16x64x64xf32>) -> tensor<16x64x64xf32>
      %pt = burin.transpose %p {perm = array<i64: 0, 2, 1>} : (tensor<16x64x64xf32>) -> tensor<16x64x64xf32>
      %dq = burin.matmul %ds, %k : (tensor<16x64x64xf32>, tensor<16x64x16xf32>) -> tensor<16x64x16xf32>
      %dk = burin.matmul %dst, %q : (tensor<16x64x64xf32>, tensor<16x64x16xf32>) -> tensor<16x64x16xf32>
      %dv = burin.matmul %pt, %g : (tensor<16x64x64xf32>, tensor<16x64x16xf32>) -> tensor<16x64x16xf32>
      return %dq, %dk, %dv : tensor<16x64x16xf32>, tensor<16x64x16xf32>, tensor<16x64x16xf32>
    }
    ```
    After:
    ```mlir
    func.func @gradients(%arg0: tensor<16x64x16xf32>, %arg1: tensor<16x64x16xf32>, %arg2: tensor<16x64x16xf32>, %arg3: tensor<16x64x16xf32>) -> (tensor<16x64x16xf32>, tensor<16x64x16xf32>, tensor<16x64x16xf32>) {
      %0 = burin.attention_gradient %arg0, %arg1, %arg2, %arg3 {scale = 1.000000e+00 : f64} : (tensor<16x64x16xf32>, tensor<16x64x16xf32>, tensor<16x64x16xf32>, tensor<16x64x16xf32>) -> tensor<16x192x16xf32>
      %1 = burin.slice %0 {starts = [0, 0, 0], steps = array<i64: 1, 1, 1>, stops = [16, 64, 16]} : (tensor<16x192x16xf32>) -> tensor<16x64x16xf32>
      %2 = burin.slice %0 {starts = [0, 64, 0], steps = array<i64: 1, 1, 1>, stops = [16, 128, 16]} : (tensor<16x192x16xf32>) -> tensor<16x64x16xf32>
      %3 = burin.slice %0 {starts = [0, 128, 0], steps = array<i64: 1, 1, 1>, stops = [16, 192, 16]} : (tensor<16x192x16xf32>) -> tensor<16x64x16xf32>
      return %1, %2, %3 : tensor<16x64x16xf32>, tensor<16x64x16xf32>, tensor<16x64x16xf32>
    }
    ```
  }];
  let options = [
    Option<"onGpus", "on-gpus", "bool", "false",
           "Whether a target is a GPU: gradients of few heads become one op, too, but not those of very long rows">,
    Option<"roundsF32", "rounds-f32", "bool", "false",
           "Whether a GPU multiplies f32 on tensor cores; if so, gradients of f32 keep their products">,
  ];
}

def FoldNormalizationPass : Pass<"burin-fold-normalization", "::mlir::ModuleOp"> {
  let summary = "Moves scales and shifts per channel into adjacent weights";
  let description = [{
    A constant scale or shift per channel before or after a convolution or product with constant weights (batch_norm,
    mul, add, sub, div) becomes part of the weights and bias. The new weights are ops on the old ones, which
    `burin-constant-fold` computes.

    Before:
    ```mlir
    func.func @scaled(%x: tensor<4x2xf32>) -> tensor<4x3xf32> {
      %w = burin.constant dense<2.0> : tensor<2x3xf32>
      %s = burin.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
      %0 = burin.matmul %x, %w : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      %1 = burin.broadcast_to %s {shape = [4, 3]} : (tensor<3xf32>) -> tensor<4x3xf32>
      %2 = burin.mul %0, %1 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
      return %2 : tensor<4x3xf32>
    }
    ```
    After:
    ```mlir
    func.func @scaled(%arg0: tensor<4x2xf32>) -> tensor<4x3xf32> {
      %0 = burin.constant dense<2.000000e+00> : tensor<2x3xf32>
      %1 = burin.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>
      %2 = burin.broadcast_to %1 {shape = [2, 3]} : (tensor<3xf32>) -> tensor<2x3xf32>
      %3 = burin.mul %0, %2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
      %4 = burin.matmul %arg0, %3 : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      return %4 : tensor<4x3xf32>
    }
    ```
  }];
}

def DecomposePass : Pass<"burin-decompose", "::mlir::ModuleOp"> {
  let summary = "Replaces ops that have no kernel by simpler ops";
  let description = [{
    Attention in f64, dot_general, transposed convolution, biases of convolutions, batch, group and instance
    normalisation, nonzero, and shape ops that are special cases of others become ops that kernels compute. Softmax,
    layer_norm and rms_norm stay single ops until fusion.

    Before:
    ```mlir
    func.func @norm(%x: tensor<2x3x4x4xf32>, %p: tensor<3xf32>) -> tensor<2x3x4x4xf32> {
      %0 = burin.batch_norm %x, %p, %p, %p, %p : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32>
      return %0 : tensor<2x3x4x4xf32>
    }
    ```
    After:
    ```mlir
    func.func @norm(%arg0: tensor<2x3x4x4xf32>, %arg1: tensor<3xf32>) -> tensor<2x3x4x4xf32> {
      %0 = burin.full  {dtype = f32, shape = [3], value = 1.000000e-05 : f64} : () -> tensor<3xf32>
      %1 = burin.add %arg1, %0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %2 = burin.rsqrt %1 : (tensor<3xf32>) -> tensor<3xf32>
      %3 = burin.mul %arg1, %2 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %4 = burin.mul %arg1, %3 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %5 = burin.sub %arg1, %4 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %6 = burin.reshape %3 {shape = [3, 1, 1]} : (tensor<3xf32>) -> tensor<3x1x1xf32>
      %7 = burin.broadcast_to %6 {shape = [2, 3, 4, 4]} : (tensor<3x1x1xf32>) -> tensor<2x3x4x4xf32>
      %8 = burin.mul %arg0, %7 : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
      %9 = burin.reshape %5 {shape = [3, 1, 1]} : (tensor<3xf32>) -> tensor<3x1x1xf32>
      %10 = burin.broadcast_to %9 {shape = [2, 3, 4, 4]} : (tensor<3x1x1xf32>) -> tensor<2x3x4x4xf32>
      %11 = burin.add %8, %10 : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
      return %11 : tensor<2x3x4x4xf32>
    }
    ```
  }];
}

def ConstantFoldPass : Pass<"burin-constant-fold", "::mlir::ModuleOp"> {
  let summary = "Computes values that depend on constants only";
  let description = [{
    Constant subgraphs are computed as a whole, and only values that the rest of the graph uses become constants, so that
    a chain of transposes of a weight leaves one copy. Large values that are cheap to compute in their users are not
    folded. A computed constant is named after the weights that it depends on.

    Before:
    ```mlir
    func.func @folded(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %w = burin.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
      %t = burin.transpose %w {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
      %0 = burin.matmul %x, %t : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      return %0 : tensor<1x2xf32>
    }
    ```
    After:
    ```mlir
    func.func @folded(%arg0: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %0 = burin.constant dense<[[1.000000e+00, 3.000000e+00], [2.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>
      %1 = burin.matmul %arg0, %0 : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      return %1 : tensor<1x2xf32>
    }
    ```
  }];
  let options = [
    Option<"maxBytes", "max-bytes", "uint64_t", "uint64_t(64) << 20",
           "Largest folded value in bytes, unless the constants that it is computed from are larger">,
    Option<"maxCheapBytes", "max-cheap-bytes", "uint64_t", "uint64_t(16) << 10",
           "Largest folded value that is cheap to compute in its users, in bytes">,
  ];
}

def ShareLoopProductsPass : Pass<"burin-share-loop-products", "::mlir::ModuleOp"> {
  let summary = "Passes products of a loop to its gradient loop";
  let description = [{
    The gradient of a loop recomputes each step from the states that the loop returns. For elementwise ops recomputation is
    cheaper than storing results, for matrix products it is not. If two loops multiply the same values in the same
    iterations, the product becomes a result of the first loop and a sliced operand of the second.

    Before:
    ```mlir
    func.func @main(%h: tensor<1x4xf32>, %x: tensor<5x4xf32>, %w: tensor<4x4xf32>) -> tensor<6x4xf32> {
      %0 = burin.scan @forward(%h, %x, %w) {sliced = 1 : i64, parts = [5], states = 1 : i64} : (tensor<1x4xf32>, tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
      %1 = burin.slice %0 {starts = [0, 0], stops = [5, 4], steps = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<5x4xf32>
      %2 = burin.scan @gradient(%h, %1, %w) {sliced = 1 : i64, parts = [5], states = 1 : i64, reverse = true} : (tensor<1x4xf32>, tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
      return %2 : tensor<6x4xf32>
    }
    func.func private @forward(%h: tensor<1x4xf32>, %x: tensor<1x4xf32>, %w: tensor<4x4xf32>) -> tensor<1x4xf32> {
      %0 = burin.matmul %h, %w : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
      %1 = burin.add %0, %x : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      return %1 : tensor<1x4xf32>
    }
    func.func private @gradient(%g: tensor<1x4xf32>, %h: tensor<1x4xf32>, %w: tensor<4x4xf32>) -> tensor<1x4xf32> {
      %0 = burin.matmul %h, %w : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
      %1 = burin.mul %0, %g : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      return %1 : tensor<1x4xf32>
    }
    ```
    After:
    ```mlir
    func.func @main(%arg0: tensor<1x4xf32>, %arg1: tensor<5x4xf32>, %arg2: tensor<4x4xf32>) -> tensor<6x4xf32> {
      %0:2 = burin.scan @forward(%arg0, %arg1, %arg2) {parts = [5], sliced = 1 : i64, states = 1 : i64} : (tensor<1x4xf32>, tensor<5x4xf32>, tensor<4x4xf32>) -> (tensor<6x4xf32>, tensor<5x1x4xf32>)
      %1 = burin.slice %0#0 {starts = [0, 0], steps = array<i64: 1, 1>, stops = [5, 4]} : (tensor<6x4xf32>) -> tensor<5x4xf32>
      %2 = burin.scan @gradient(%arg0, %1, %0#1, %arg2) {parts = [5], reverse = true, sliced = 2 : i64, states = 1 : i64} : (tensor<1x4xf32>, tensor<5x4xf32>, tensor<5x1x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
      return %2 : tensor<6x4xf32>
    }
    func.func private @forward(%arg0: tensor<1x4xf32>, %arg1: tensor<1x4xf32>, %arg2: tensor<4x4xf32>) -> (tensor<1x4xf32>, tensor<1x1x4xf32>) {
      %0 = burin.matmul %arg0, %arg2 : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
      %1 = burin.add %0, %arg1 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      %2 = burin.reshape %0 {shape = [1, 1, 4]} : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
      return %1, %2 : tensor<1x4xf32>, tensor<1x1x4xf32>
    }
    func.func private @gradient(%arg0: tensor<1x4xf32>, %arg1: tensor<1x4xf32>, %arg2: tensor<1x1x4xf32>, %arg3: tensor<4x4xf32>) -> tensor<1x4xf32> {
      %0 = burin.reshape %arg2 {shape = [1, 4]} : (tensor<1x1x4xf32>) -> tensor<1x4xf32>
      %1 = burin.mul %0, %arg0 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      return %1 : tensor<1x4xf32>
    }
    ```
  }];
}

def HoistLoopSumsPass : Pass<"burin-hoist-loop-sums", "::mlir::ModuleOp"> {
  let summary = "Replaces sums that a loop only accumulates by one sum after the loop";
  let description = [{
    A gradient loop adds a product per iteration to the gradient of a weight, of which only the final value is read. After
    the loop this is one product, which also sums over the iterations: it reads and writes the gradient once, and no
    iteration stores its own. The summand of an iteration is a matrix product or a sum over some dimensions.

    Before:
    ```mlir
    func.func @main(%b: tensor<1x4xf32>, %x: tensor<10x4xf32>) -> tensor<1x4xf32> {
      %0 = burin.scan @body(%b, %x) {sliced = 1 : i64, parts = [5], states = 1 : i64} : (tensor<1x4xf32>, tensor<10x4xf32>) -> tensor<6x4xf32>
      %1 = burin.slice %0 {starts = [5, 0], stops = [6, 4], steps = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<1x4xf32>
      return %1 : tensor<1x4xf32>
    }
    func.func private @body(%b: tensor<1x4xf32>, %x: tensor<2x4xf32>) -> tensor<1x4xf32> {
      %0 = burin.reduce_sum %x {axes = array<i64: 0>, keepdims = true} : (tensor<2x4xf32>) -> tensor<1x4xf32>
      %1 = burin.add %b, %0 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      return %1 : tensor<1x4xf32>
    }
    ```
    After:
    ```mlir
    func.func @main(%arg0: tensor<1x4xf32>, %arg1: tensor<10x4xf32>) -> tensor<1x4xf32> {
      %0 = burin.reshape %arg1 {shape = [5, 2, 4]} : (tensor<10x4xf32>) -> tensor<5x2x4xf32>
      %1 = burin.reduce_sum %0 {axes = array<i64: 0, 1>, keepdims = true} : (tensor<5x2x4xf32>) -> tensor<1x1x4xf32>
      %2 = burin.reshape %1 {shape = [1, 4]} : (tensor<1x1x4xf32>) -> tensor<1x4xf32>
      %3 = burin.add %arg0, %2 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      return %3 : tensor<1x4xf32>
    }
    ```
  }];
}
#endif
