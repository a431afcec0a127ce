// RUN: not burin-opt --burin-verify-kernels %s 2>&1 | FileCheck %s

// A kernel computes its sum in a loop, and so has no rule for one element of it that movement reads.
// CHECK: error: 'burin.kernel' op has ops that do not share an iteration space
func.func @main(%x: tensor<1x5xf32>) -> tensor<1x5xf32> {
  %0 = burin.kernel "sum"(%y = %x) : (tensor<1x5xf32>) -> tensor<1x5xf32> {
    %1 = burin.reduce_sum %y {axes = array<i64: 1>, keepdims = true} : (tensor<1x5xf32>) -> tensor<1x1xf32>
    %2 = burin.broadcast_to %1 {shape = [2, 5]} : (tensor<1x1xf32>) -> tensor<2x5xf32>
    %3 = burin.slice %2 {starts = [1, 0], steps = array<i64: 1, 1>, stops = [2, 5]} : (tensor<2x5xf32>) -> tensor<1x5xf32>
    %4 = burin.add %y, %3 : (tensor<1x5xf32>, tensor<1x5xf32>) -> tensor<1x5xf32>
    burin.yield %4 : tensor<1x5xf32>
  }
  return %0 : tensor<1x5xf32>
}
