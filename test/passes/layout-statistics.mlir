// Statistics of channels (batch norm in training) are computed on the channels-last values of convolutions.
// RUN: burin-opt %s --burin-layout-assignment --canonicalize | FileCheck %s
func.func @main(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<4xf32> {
  %0 = burin.conv %x, %w {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw", operandSegmentSizes = array<i32: 1, 1, 0>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  %1 = burin.relu %0 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = burin.reduce_mean %1 {axes = array<i64: 0, 2, 3>} : (tensor<2x4x6x6xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
// CHECK: %[[C:.*]] = burin.conv {{.*}}nhwc
// CHECK: %[[R:.*]] = burin.relu %[[C]] {{.*}} -> tensor<2x6x6x4xf32>
// CHECK: burin.reduce_mean %[[R]] {axes = array<i64: 0, 1, 2>{{.*}}-> tensor<4xf32>
