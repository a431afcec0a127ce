// Passes of the directory passes/kernels, see passes/Passes.td.
#ifndef BURIN_KERNELS_PASSES
#define BURIN_KERNELS_PASSES
include "mlir/Pass/PassBase.td"

def FusePass : Pass<"burin-fuse", "::mlir::ModuleOp"> {
  let summary = "Groups ops into kernels";
  let description = [{
    An op joins the groups that compute its operands while the work of a group stays one walk over one iteration space;
    MergeRules.cpp has the table. Broadcasts, fills and reshapes cost nothing: they are repeated in every kernel that needs
    them, or stay views between kernels.

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
}

def DecomposeInKernelsPass : Pass<"burin-decompose-in-kernels", "::mlir::ModuleOp"> {
  let summary = "Replaces composites in kernels by reductions and elementwise ops";
  let description = [{
    Softmax, norms, means, variances and logsumexp become what loops are made from. 16-bit floats are widened to f32
    between the ops that one composite becomes.

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

def InPlaceResultsPass : Pass<"burin-in-place-results", "::mlir::ModuleOp"> {
  let summary = "Lets results of kernels take over the memory of inputs that are not read later";
  let description = [{
    The kernel must read each element of that input only where it writes the same element of the result. The new value of
    a state takes over the memory of the old one if, besides, nothing can fail once it is being written: a run that fails
    leaves states as they were.

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
  let summary = "Puts kernels into an order that needs less memory";
  let description = [{
    What a gradient needs of the forward pass is let go as soon as the gradient is there, and parameters are updated before
    the next gradient is computed, where nothing forbids it. Steps whose results one step alone reads move with it. The
    order of the program stays if no other one needs less. Behind `burin-in-place-results`, which tells the states that are
    updated in place, and before it, as other values die then.

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
  let summary = "Has values computed again so that a run fits a limit of memory";
  let description = [{
    Values that are kept for long, as those that a gradient needs of the forward pass, are computed again by the same
    kernels, so that results keep their bits. Fails if there is no way to stay below the limit.

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
    Option<"bytes", "bytes", "uint64_t", "0", "For weights, states, inputs, outputs and intermediate values of a run">,
    Option<"allowBf16", "allow-bf16", "bool", "false", "Whether values may be kept in bf16 between two uses">,
  ];
}
#endif
