// Passes of the directory passes/kernels, see passes/Passes.td.
#ifndef BURIN_KERNELS_PASSES
#define BURIN_KERNELS_PASSES
include "mlir/Pass/PassBase.td"

def MarkReorderedSumsPass : Pass<"burin-mark-reordered-sums", "::mlir::ModuleOp"> {
  let summary = "Lets sums over several dimensions add in the order of memory";
  let description = [{
    A reduction over several dimensions may be in one kernel with transposes. The kernel reads the values where they are
    and reduces them in the order of memory, which may change the last bits of a sum. Without this pass the transposed
    value is stored first, as in eager code.

    Before:
    ```mlir
    func.func @statistics(%x: tensor<2x5x4xf32>) -> tensor<4xf32> {
      %0 = burin.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x5x4xf32>) -> tensor<2x4x5xf32>
      %1 = burin.reduce_sum %0 {axes = array<i64: 0, 2>} : (tensor<2x4x5xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    func.func @statistics(%arg0: tensor<2x5x4xf32>) -> tensor<4xf32> {
      %0 = burin.transpose %arg0 {perm = array<i64: 0, 2, 1>} : (tensor<2x5x4xf32>) -> tensor<2x4x5xf32>
      %1 = burin.reduce_sum %0 {axes = array<i64: 0, 2>, burin.memory_order} : (tensor<2x4x5xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
  }];
}

def FusePass : Pass<"burin-fuse", "::mlir::ModuleOp"> {
  let summary = "Groups ops into kernels";
  let description = [{
    An op joins the groups that compute its operands as long as a group remains one loop nest over one iteration space;
    MergeRules.cpp has the table. Broadcasts, fills and reshapes cost nothing: they are copied into every kernel that uses
    them, or stay views between kernels. Ops of one instruction per element are copied, too, if a kernel then reads no more
    bytes and their result need not be stored.

    Before:
    ```mlir
    func.func @chain(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = burin.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %1 = burin.softmax %0 {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      return %1 : tensor<4x8xf32>
    }
    ```
    After:
    ```mlir
    func.func @chain(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = burin.kernel "exp+softmax"(%arg1 = %arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
        %1 = burin.exp %arg1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
        %2 = burin.softmax %1 {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
        burin.yield %2 : tensor<4x8xf32>
      }
      return %0 : tensor<4x8xf32>
    }
    ```
  }];
  let options = [
    Option<"onGpus", "on-gpus", "bool", "false",
           "Whether a target is a GPU: products and attention read no operand whose last dimension a transpose moves">,
    Option<"gpusAlone", "gpus-alone", "bool", "false",
           "Whether all targets are GPUs: attention with few rows joins keys and values while it reads them">,
  ];
}

def ReadSlicesPass : Pass<"burin-read-slices", "::mlir::ModuleOp"> {
  let summary = "Lets attention read slices in place";
  let description = [{
    For GPUs alone. Where queries, keys or values are copied from a slice of another value, as of the product that
    computes all of them, the kernel of the attention reads that value. Copies remain if something else reads them.

    Before:
    ```mlir
    func.func @attend(%x: tensor<1x2x1x24xf32>, %k: tensor<1x2x7x8xf32>) -> tensor<1x2x1x8xf32> {
      %0 = burin.kernel "slice"(%a = %x) : (tensor<1x2x1x24xf32>) -> tensor<1x2x1x8xf32> {
        %2 = burin.slice %a {starts = [0, 0, 0, 8], steps = array<i64: 1, 1, 1, 1>, stops = [1, 2, 1, 16]} : (tensor<1x2x1x24xf32>) -> tensor<1x2x1x8xf32>
        burin.yield %2 : tensor<1x2x1x8xf32>
      }
      %1 = burin.kernel "scaled_dot_product_attention"(%a = %0, %b = %k) : (tensor<1x2x1x8xf32>, tensor<1x2x7x8xf32>) -> tensor<1x2x1x8xf32> {
        %2 = burin.scaled_dot_product_attention %a, %b, %b : (tensor<1x2x1x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>) -> tensor<1x2x1x8xf32>
        burin.yield %2 : tensor<1x2x1x8xf32>
      }
      return %1 : tensor<1x2x1x8xf32>
    }
    ```
    After:
    ```mlir
    func.func @attend(%arg0: tensor<1x2x1x24xf32>, %arg1: tensor<1x2x7x8xf32>) -> tensor<1x2x1x8xf32> {
      %0 = burin.kernel "scaled_dot_product_attention"(%arg2 = %arg1, %arg3 = %arg0) : (tensor<1x2x7x8xf32>, tensor<1x2x1x24xf32>) -> tensor<1x2x1x8xf32> {
        %1 = burin.slice %arg3 {starts = [0, 0, 0, 8], steps = array<i64: 1, 1, 1, 1>, stops = [1, 2, 1, 16]} : (tensor<1x2x1x24xf32>) -> tensor<1x2x1x8xf32>
        %2 = burin.scaled_dot_product_attention %1, %arg2, %arg2 : (tensor<1x2x1x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>) -> tensor<1x2x1x8xf32>
        burin.yield %2 : tensor<1x2x1x8xf32>
      }
      return %0 : tensor<1x2x1x8xf32>
    }
    ```
  }];
}

def MergeDimensionsPass : Pass<"burin-merge-dimensions", "::mlir::ModuleOp"> {
  let summary = "Merges neighbouring dimensions in kernels that move elements";
  let description = [{
    Dimensions that follow one another in all values of a kernel's body, and that no op treats apart, become one: a
    concatenation of channels moves runs of whole images then, instead of rows. Elementwise kernels need no such pass,
    as the loops over their iteration space are merged anyway.

    Before:
    ```mlir
    func.func @join(%x: tensor<2x3x4x5xf32>, %y: tensor<2x6x4x5xf32>) -> tensor<2x9x4x5xf32> {
      %0 = burin.kernel "concat"(%arg2 = %x, %arg3 = %y) : (tensor<2x3x4x5xf32>, tensor<2x6x4x5xf32>) -> tensor<2x9x4x5xf32> {
        %1 = burin.concat %arg2, %arg3 {axis = 1 : i64} : (tensor<2x3x4x5xf32>, tensor<2x6x4x5xf32>) -> tensor<2x9x4x5xf32>
        burin.yield %1 : tensor<2x9x4x5xf32>
      }
      return %0 : tensor<2x9x4x5xf32>
    }
    ```
    After:
    ```mlir
    func.func @join(%arg0: tensor<2x3x4x5xf32>, %arg1: tensor<2x6x4x5xf32>) -> tensor<2x9x4x5xf32> {
      %0 = burin.kernel "concat"(%arg2 = %arg0, %arg3 = %arg1) : (tensor<2x3x4x5xf32>, tensor<2x6x4x5xf32>) -> tensor<2x9x4x5xf32> {
        %1 = burin.reshape %arg2 {shape = [2, 60]} : (tensor<2x3x4x5xf32>) -> tensor<2x60xf32>
        %2 = burin.reshape %arg3 {shape = [2, 120]} : (tensor<2x6x4x5xf32>) -> tensor<2x120xf32>
        %3 = burin.concat %1, %2 {axis = 1 : i64} : (tensor<2x60xf32>, tensor<2x120xf32>) -> tensor<2x180xf32>
        %4 = burin.reshape %3 {shape = [2, 9, 4, 5]} : (tensor<2x180xf32>) -> tensor<2x9x4x5xf32>
        burin.yield %4 : tensor<2x9x4x5xf32>
      }
      return %0 : tensor<2x9x4x5xf32>
    }
    ```
  }];
}

def DecomposeInKernelsPass : Pass<"burin-decompose-in-kernels", "::mlir::ModuleOp"> {
  let summary = "Replaces composites in kernels by reductions and elementwise ops";
  let description = [{
    Softmax, norms, means, variances and logsumexp become ops from which loops are emitted. Between the ops of one
    composite, 16-bit floats are widened to f32.

    Before:
    ```mlir
    func.func @mean(%x: tensor<4x8xf32>) -> tensor<4xf32> {
      %0 = burin.kernel "logsumexp"(%a = %x) : (tensor<4x8xf32>) -> tensor<4xf32> {
        %1 = burin.reduce_mean %a {axes = array<i64: 1>, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
        burin.yield %1 : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    func.func @mean(%arg0: tensor<4x8xf32>) -> tensor<4xf32> {
      %0 = burin.kernel "logsumexp"(%arg1 = %arg0) : (tensor<4x8xf32>) -> tensor<4xf32> {
        %1 = burin.reduce_average %arg1 {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
        burin.yield %1 : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }
    ```
  }];
}

def CarryStatesPass : Pass<"burin-carry-states", "::mlir::ModuleOp"> {
  let summary = "Lets a loop overwrite states of which only the last value is read";
  let description = [{
    A loop keeps the states of all iterations; of a carried one it has a single buffer, which the iterations overwrite, or
    two in turn. Gradients of a tensor that all iterations of a loop use are such states of the gradient's loop.

    Before:
    ```mlir
    func.func @main(%b: tensor<1x4xf32>, %x: tensor<10x4xf32>) -> tensor<1x4xf32> {
      %0 = burin.scan @body(%b, %x) {sliced = 1 : i64, parts = [10], states = 1 : i64} : (tensor<1x4xf32>, tensor<10x4xf32>) -> tensor<11x4xf32>
      %1 = burin.slice %0 {starts = [10, 0], stops = [11, 4], steps = array<i64: 1, 1>} : (tensor<11x4xf32>) -> tensor<1x4xf32>
      return %1 : tensor<1x4xf32>
    }
    func.func private @body(%b: tensor<1x4xf32>, %x: tensor<1x4xf32>) -> tensor<1x4xf32> {
      %0 = burin.exp %x : (tensor<1x4xf32>) -> tensor<1x4xf32>
      %1 = burin.add %b, %0 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      return %1 : tensor<1x4xf32>
    }
    ```
    After:
    ```mlir
    func.func @main(%arg0: tensor<1x4xf32>, %arg1: tensor<10x4xf32>) -> tensor<1x4xf32> {
      %0 = burin.scan @body(%arg0, %arg1) {burin.carried = array<i64: 0>, parts = [10], sliced = 1 : i64, states = 1 : i64} : (tensor<1x4xf32>, tensor<10x4xf32>) -> tensor<1x4xf32>
      return %0 : tensor<1x4xf32>
    }
    func.func private @body(%arg0: tensor<1x4xf32>, %arg1: tensor<1x4xf32>) -> tensor<1x4xf32> {
      %0 = burin.exp %arg1 : (tensor<1x4xf32>) -> tensor<1x4xf32>
      %1 = burin.add %arg0, %0 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      return %1 : tensor<1x4xf32>
    }
    ```
  }];
}

def InPlaceResultsPass : Pass<"burin-in-place-results", "::mlir::ModuleOp"> {
  let summary = "Lets results of kernels overwrite inputs that have no later use";
  let description = [{
    The kernel must read each element of that input only where it writes the same element of the result. The new value of
    a state overwrites the old one only if, in addition, no later step can fail: a failed run leaves states unchanged.
    Values that loops carry are overwritten by the body if all other readers of the old value can run before; so are
    values that both branches of an `if` return, overwritten or as they are.

    Before:
    ```mlir
    func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = burin.kernel "exp"(%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
        %1 = burin.exp %a : (tensor<4xf32>) -> tensor<4xf32>
        burin.yield %1 : tensor<4xf32>
      }
      %2 = burin.kernel "neg"(%a = %0) : (tensor<4xf32>) -> tensor<4xf32> {
        %1 = burin.neg %a : (tensor<4xf32>) -> tensor<4xf32>
        burin.yield %1 : tensor<4xf32>
      }
      %3 = burin.kernel "abs"(%a = %2) : (tensor<4xf32>) -> tensor<4xf32> {
        %1 = burin.abs %a : (tensor<4xf32>) -> tensor<4xf32>
        burin.yield %1 : tensor<4xf32>
      }
      return %3 : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    func.func @twice(%arg0: tensor<4xf32>) -> tensor<4xf32> {
      %0 = burin.kernel "exp"(%arg1 = %arg0) : (tensor<4xf32>) -> tensor<4xf32> {
        %3 = burin.exp %arg1 : (tensor<4xf32>) -> tensor<4xf32>
        burin.yield %3 : tensor<4xf32>
      }
      %1 = burin.kernel "neg"(%arg1 = %0) : (tensor<4xf32>) -> tensor<4xf32> attributes {in_place = array<i64: 0>} {
        %3 = burin.neg %arg1 : (tensor<4xf32>) -> tensor<4xf32>
        burin.yield %3 : tensor<4xf32>
      }
      %2 = burin.kernel "abs"(%arg1 = %1) : (tensor<4xf32>) -> tensor<4xf32> {
        %3 = burin.abs %arg1 : (tensor<4xf32>) -> tensor<4xf32>
        burin.yield %3 : tensor<4xf32>
      }
      return %2 : tensor<4xf32>
    }
    ```
  }];
}

def OrderKernelsPass : Pass<"burin-order-kernels", "::mlir::ModuleOp"> {
  let summary = "Reorders kernels to need less memory";
  let description = [{
    Values of the forward pass are freed as soon as the gradients that need them are computed, and parameters are updated
    before the next gradient is computed, if dependences allow it. Steps whose results only one step reads move with that
    step. The original order is kept unless another one needs less memory. Runs after `burin-in-place-results`, which
    selects the states that are updated in place; that pass runs once more afterwards, because other values die then.

    Before:
    ```mlir
    func.func @main(%x: tensor<64xf32>) -> (tensor<f32>, tensor<f32>) {
      %0 = burin.kernel "exp"(%a = %x) : (tensor<64xf32>) -> tensor<64xf32> {
        %r = burin.exp %a : (tensor<64xf32>) -> tensor<64xf32>
        burin.yield %r : tensor<64xf32>
      }
      %1 = burin.kernel "neg"(%a = %x) : (tensor<64xf32>) -> tensor<64xf32> {
        %r = burin.neg %a : (tensor<64xf32>) -> tensor<64xf32>
        burin.yield %r : tensor<64xf32>
      }
      %2 = burin.kernel "reduce_sum"(%a = %0) : (tensor<64xf32>) -> tensor<f32> {
        %r = burin.reduce_sum %a {axes = array<i64: 0>, keepdims = false} : (tensor<64xf32>) -> tensor<f32>
        burin.yield %r : tensor<f32>
      }
      %3 = burin.kernel "reduce_sum"(%a = %1) : (tensor<64xf32>) -> tensor<f32> {
        %r = burin.reduce_sum %a {axes = array<i64: 0>, keepdims = false} : (tensor<64xf32>) -> tensor<f32>
        burin.yield %r : tensor<f32>
      }
      return %2, %3 : tensor<f32>, tensor<f32>
    }
    ```
    After:
    ```mlir
    func.func @main(%arg0: tensor<64xf32>) -> (tensor<f32>, tensor<f32>) {
      %0 = burin.kernel "exp"(%arg1 = %arg0) : (tensor<64xf32>) -> tensor<64xf32> {
        %4 = burin.exp %arg1 : (tensor<64xf32>) -> tensor<64xf32>
        burin.yield %4 : tensor<64xf32>
      }
      %1 = burin.kernel "reduce_sum"(%arg1 = %0) : (tensor<64xf32>) -> tensor<f32> {
        %4 = burin.reduce_sum %arg1 {axes = array<i64: 0>} : (tensor<64xf32>) -> tensor<f32>
        burin.yield %4 : tensor<f32>
      }
      %2 = burin.kernel "neg"(%arg1 = %arg0) : (tensor<64xf32>) -> tensor<64xf32> {
        %4 = burin.neg %arg1 : (tensor<64xf32>) -> tensor<64xf32>
        burin.yield %4 : tensor<64xf32>
      }
      %3 = burin.kernel "reduce_sum"(%arg1 = %2) : (tensor<64xf32>) -> tensor<f32> {
        %4 = burin.reduce_sum %arg1 {axes = array<i64: 0>} : (tensor<64xf32>) -> tensor<f32>
        burin.yield %4 : tensor<f32>
      }
      return %1, %3 : tensor<f32>, tensor<f32>
    }
    ```
  }];
}

def LimitMemoryPass : Pass<"burin-limit-memory", "::mlir::ModuleOp"> {
  let summary = "Recomputes values so that a run fits a memory limit";
  let description = [{
    Long-lived values, such as activations that a gradient needs, are recomputed by the same kernels, so that results keep
    their bits. Fails if the limit cannot be met.

    Before, with `bytes=1100`:
    ```mlir
    func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
      %0 = burin.kernel "exp"(%a = %x) : (tensor<64xf32>) -> tensor<64xf32> {
        %r = burin.exp %a : (tensor<64xf32>) -> tensor<64xf32>
        burin.yield %r : tensor<64xf32>
      }
      %1 = burin.kernel "cumsum"(%a = %0) : (tensor<64xf32>) -> tensor<64xf32> {
        %r = burin.cumsum %a {axis = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
        burin.yield %r : tensor<64xf32>
      }
      %2 = burin.kernel "cumsum"(%a = %1) : (tensor<64xf32>) -> tensor<64xf32> {
        %r = burin.cumsum %a {axis = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
        burin.yield %r : tensor<64xf32>
      }
      %3 = burin.kernel "mul"(%a = %0, %b = %2) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> {
        %r = burin.mul %a, %b : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
        burin.yield %r : tensor<64xf32>
      }
      return %3 : tensor<64xf32>
    }
    ```
    After:
    ```mlir
    module attributes {burin.memory_report = "main: limit 0.001 MB: 0.001 MB for weights, states, inputs and outputs, and 0.001 MB for intermediate values, which were 0.001 MB; 1 are not kept, 0.000 MFLOP are added\0Aagain: exp f32[64], <stdin>:2: saves 0.000 MB, adds 0.000 MFLOP, for mul f32[64], <stdin>:14"} {
      func.func @main(%arg0: tensor<64xf32>) -> tensor<64xf32> {
        %0 = burin.kernel "exp"(%arg1 = %arg0) : (tensor<64xf32>) -> tensor<64xf32> {
          %5 = burin.exp %arg1 : (tensor<64xf32>) -> tensor<64xf32>
          burin.yield %5 : tensor<64xf32>
        }
        %1 = burin.kernel "cumsum"(%arg1 = %0) : (tensor<64xf32>) -> tensor<64xf32> {
          %5 = burin.cumsum %arg1 {axis = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
          burin.yield %5 : tensor<64xf32>
        }
        %2 = burin.kernel "cumsum"(%arg1 = %1) : (tensor<64xf32>) -> tensor<64xf32> {
          %5 = burin.cumsum %arg1 {axis = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
          burin.yield %5 : tensor<64xf32>
        }
        %3 = burin.kernel "exp"(%arg1 = %arg0) : (tensor<64xf32>) -> tensor<64xf32> {
          %5 = burin.exp %arg1 : (tensor<64xf32>) -> tensor<64xf32>
          burin.yield %5 : tensor<64xf32>
        }
        %4 = burin.kernel "mul"(%arg1 = %3, %arg2 = %2) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> {
          %5 = burin.mul %arg1, %arg2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
          burin.yield %5 : tensor<64xf32>
        }
        return %4 : tensor<64xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"bytes", "bytes", "uint64_t", "0", "Limit for weights, states, inputs, outputs and intermediate values of a run">,
    Option<"allowBf16", "allow-bf16", "bool", "false", "Whether f32 values may be stored as bf16 between two uses">,
  ];
}
#endif
