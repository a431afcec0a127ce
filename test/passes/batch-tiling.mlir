// RUN: burin-opt --burin-batch-tiling=least-gain=1 --split-input-file %s | FileCheck %s

// Consecutive layers become one function, which is applied to one image at a time. Weights and broadcasts move into it,
// an input without a batch dimension is passed whole, and an op that reads all images stays outside.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<?x8x8x4xf32, ["batch"]>, %[[BIAS:.*]]: tensor<6xf32>
// CHECK: %[[Y:.*]] = burin.scan @main_part0(%[[X]], %[[BIAS]]) {parts = ["batch"], sliced = 1 : i64} : (tensor<?x8x8x4xf32, ["batch"]>, tensor<6xf32>) -> tensor<?x4x4x6xf32, ["batch"]>
// CHECK: burin.reduce_sum %[[Y]] {axes = array<i64: 0>
// CHECK: func.func private @main_part0(%[[P:.*]]: tensor<1x8x8x4xf32>, %[[B:.*]]: tensor<6xf32>) -> tensor<1x4x4x6xf32>
// CHECK: burin.contract %[[P]], %{{.*}} -> tensor<1x8x8x6xf32>
// CHECK: burin.broadcast_to %[[B]] {shape = [1, 8, 8, 6]}
// CHECK: burin.add
// CHECK: %[[R:.*]] = burin.relu
// CHECK: %[[M:.*]] = burin.max_pool %[[R]] {{.*}} -> tensor<1x4x4x6xf32>
// CHECK: return %[[M]]
func.func @main(%x: tensor<?x8x8x4xf32, ["batch"]>, %b: tensor<6xf32>) -> tensor<4x4x6xf32> {
  %w = burin.constant dense<0.5> : tensor<1x36x32xf32>
  %c = burin.contract %x, %w kernel [1, 3, 3] padding [0, 1, 1, 0, 1, 1] : (tensor<?x8x8x4xf32, ["batch"]>, tensor<1x36x32xf32>) -> tensor<?x8x8x6xf32, ["batch"]>
  %bb = burin.broadcast_to %b {shape = ["batch", 8, 8, 6]} : (tensor<6xf32>) -> tensor<?x8x8x6xf32, ["batch"]>
  %s = burin.add %c, %bb : (tensor<?x8x8x6xf32, ["batch"]>, tensor<?x8x8x6xf32, ["batch"]>) -> tensor<?x8x8x6xf32, ["batch"]>
  %r = burin.relu %s : (tensor<?x8x8x6xf32, ["batch"]>) -> tensor<?x8x8x6xf32, ["batch"]>
  %m = burin.max_pool %r {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<?x8x8x6xf32, ["batch"]>) -> tensor<?x4x4x6xf32, ["batch"]>
  %y = burin.reduce_sum %m {axes = array<i64: 0>, keepdims = false} : (tensor<?x4x4x6xf32, ["batch"]>) -> tensor<4x4x6xf32>
  return %y : tensor<4x4x6xf32>
}

// -----

// A window along dimension 0 spans several images: nothing is split.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: burin.scan
func.func @main(%x: tensor<16x8x4xf32>) -> tensor<7x4x6xf32> {
  %w = burin.constant dense<0.5> : tensor<1x36x32xf32>
  %c = burin.contract %x, %w kernel [3, 3] padding [0, 0, 0, 0] : (tensor<16x8x4xf32>, tensor<1x36x32xf32>) -> tensor<14x6x6xf32>
  %r = burin.relu %c : (tensor<14x6x6xf32>) -> tensor<14x6x6xf32>
  %p = burin.slice %r {starts = [0, 1, 0], stops = [7, 5, 6], steps = array<i64: 1, 1, 1>} : (tensor<14x6x6xf32>) -> tensor<7x4x6xf32>
  return %p : tensor<7x4x6xf32>
}

// -----

// Weights that are larger than the activations of an image should be read once for the whole batch.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: burin.scan
func.func @main(%x: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %w = burin.constant dense<0.5> : tensor<2x64x32xf32>
  %c = burin.contract %x, %w : (tensor<16x64xf32>, tensor<2x64x32xf32>) -> tensor<16x64xf32>
  %d = burin.contract %c, %w : (tensor<16x64xf32>, tensor<2x64x32xf32>) -> tensor<16x64xf32>
  return %d : tensor<16x64xf32>
}
