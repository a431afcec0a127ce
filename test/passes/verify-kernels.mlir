// RUN: not burin-opt --burin-verify-kernels %s 2>&1 | FileCheck %s

// Two reductions over different axes cannot be one kernel.
// CHECK: error: 'burin.kernel' op has ops that do not share an iteration space
func.func @main(%x: tensor<4x5xf32>) -> (tensor<5xf32>, tensor<4xf32>) {
  %0:2 = burin.kernel "sums"(%y = %x) : (tensor<4x5xf32>) -> (tensor<5xf32>, tensor<4xf32>) {
    %1 = burin.reduce_sum %y {axes = array<i64: 0>, keepdims = false} : (tensor<4x5xf32>) -> tensor<5xf32>
    %2 = burin.reduce_sum %y {axes = array<i64: 1>, keepdims = false} : (tensor<4x5xf32>) -> tensor<4xf32>
    burin.yield %1, %2 : tensor<5xf32>, tensor<4xf32>
  }
  return %0#0, %0#1 : tensor<5xf32>, tensor<4xf32>
}
