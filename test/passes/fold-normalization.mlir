// RUN: burin-opt --burin-fold-normalization %s | FileCheck %s

// CHECK-LABEL: func.func @conv_batch_norm(
// CHECK-DAG: %[[S:.*]] = burin.mul %{{.*}} : (tensor<2xf32>, tensor<2xf32>)
// CHECK: %[[W:.*]] = burin.mul %{{.*}} : (tensor<1x2x1x1x1xf32>, tensor<1x2x1x1x1xf32>)
// CHECK: %[[V:.*]] = burin.reshape %[[W]] {shape = [2, 1, 1, 1]}
// CHECK: %[[Y:.*]] = burin.conv %arg0, %[[V]], %{{.*}} : (tensor<?x1x4x4xf32, ["n"]>, tensor<2x1x1x1xf32>, tensor<2xf32>)
// CHECK-NEXT: return %[[Y]]
func.func @conv_batch_norm(%x: tensor<?x1x4x4xf32, ["n"]>) -> tensor<?x2x4x4xf32, ["n"]> {
  %w = burin.constant dense<[[[[2.0]]], [[[3.0]]]]> : tensor<2x1x1x1xf32>
  %c = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x1x4x4xf32, ["n"]>, tensor<2x1x1x1xf32>) -> tensor<?x2x4x4xf32, ["n"]>
  %p = burin.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = burin.batch_norm %c, %p, %p, %p, %p : (tensor<?x2x4x4xf32, ["n"]>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<?x2x4x4xf32, ["n"]>
  return %y : tensor<?x2x4x4xf32, ["n"]>
}

// The unscaled product has another user.
// CHECK-LABEL: func.func @two_uses(
// CHECK: burin.batch_norm
func.func @two_uses(%x: tensor<?x1x4x4xf32, ["n"]>) -> (tensor<?x2x4x4xf32, ["n"]>, tensor<?x2x4x4xf32, ["n"]>) {
  %w = burin.constant dense<[[[[2.0]]], [[[3.0]]]]> : tensor<2x1x1x1xf32>
  %c = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x1x4x4xf32, ["n"]>, tensor<2x1x1x1xf32>) -> tensor<?x2x4x4xf32, ["n"]>
  %p = burin.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = burin.batch_norm %c, %p, %p, %p, %p : (tensor<?x2x4x4xf32, ["n"]>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<?x2x4x4xf32, ["n"]>
  return %y, %c : tensor<?x2x4x4xf32, ["n"]>, tensor<?x2x4x4xf32, ["n"]>
}

// CHECK-LABEL: func.func @scale_before_padded(
// CHECK: burin.conv %arg0
func.func @scale_before_padded(%x: tensor<?x1x4x4xf32, ["n"]>) -> tensor<?x2x4x4xf32, ["n"]> {
  %w = burin.constant dense<[[[[2.0]]], [[[3.0]]]]> : tensor<2x1x1x1xf32>
  %s = burin.full {shape = ["n", 1, 4, 4], value = 0.5, dtype = f32} : () -> tensor<?x1x4x4xf32, ["n"]>
  %0 = burin.mul %x, %s : (tensor<?x1x4x4xf32, ["n"]>, tensor<?x1x4x4xf32, ["n"]>) -> tensor<?x1x4x4xf32, ["n"]>
  %c = burin.conv %0, %w {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 2, 2>, dilations = array<i64: 1, 1>} : (tensor<?x1x4x4xf32, ["n"]>, tensor<2x1x1x1xf32>) -> tensor<?x2x4x4xf32, ["n"]>
  return %c : tensor<?x2x4x4xf32, ["n"]>
}

// Padding inserts zeros after the shift.
// CHECK-LABEL: func.func @shift_before_padded(
// CHECK: burin.add %arg0
func.func @shift_before_padded(%x: tensor<?x1x4x4xf32, ["n"]>) -> tensor<?x2x4x4xf32, ["n"]> {
  %w = burin.constant dense<[[[[2.0]]], [[[3.0]]]]> : tensor<2x1x1x1xf32>
  %s = burin.full {shape = ["n", 1, 4, 4], value = 0.5, dtype = f32} : () -> tensor<?x1x4x4xf32, ["n"]>
  %0 = burin.add %x, %s : (tensor<?x1x4x4xf32, ["n"]>, tensor<?x1x4x4xf32, ["n"]>) -> tensor<?x1x4x4xf32, ["n"]>
  %c = burin.conv %0, %w {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 2, 2>, dilations = array<i64: 1, 1>} : (tensor<?x1x4x4xf32, ["n"]>, tensor<2x1x1x1xf32>) -> tensor<?x2x4x4xf32, ["n"]>
  return %c : tensor<?x2x4x4xf32, ["n"]>
}

// CHECK-LABEL: func.func @matmul_bias_scale(
// CHECK: %[[W:.*]] = burin.mul %{{.*}} : (tensor<2x3xf32>, tensor<2x3xf32>)
// CHECK: %[[P:.*]] = burin.matmul %arg0, %[[W]]
// CHECK: %[[Y:.*]] = burin.add %[[P]]
// CHECK-NEXT: return %[[Y]]
func.func @matmul_bias_scale(%x: tensor<?x2xf32, ["n"]>) -> tensor<?x3xf32, ["n"]> {
  %w = burin.constant dense<[[2.0, 1.0, 4.0], [3.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %b = burin.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %0 = burin.matmul %x, %w : (tensor<?x2xf32, ["n"]>, tensor<2x3xf32>) -> tensor<?x3xf32, ["n"]>
  %1 = burin.broadcast_to %b {shape = ["n", 3]} : (tensor<3xf32>) -> tensor<?x3xf32, ["n"]>
  %2 = burin.add %0, %1 : (tensor<?x3xf32, ["n"]>, tensor<?x3xf32, ["n"]>) -> tensor<?x3xf32, ["n"]>
  %y = burin.mul %1, %2 : (tensor<?x3xf32, ["n"]>, tensor<?x3xf32, ["n"]>) -> tensor<?x3xf32, ["n"]>
  return %y : tensor<?x3xf32, ["n"]>
}
