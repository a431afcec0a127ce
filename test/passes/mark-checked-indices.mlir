// RUN: burin-opt %s --burin-mark-checked-indices | FileCheck %s

// CHECK-LABEL: func.func @checked(
// CHECK: burin.scatter {{.*}}drop = true
func.func @checked(%x: tensor<8x4xf32>, %i: tensor<2x3xi64>, %g: tensor<6x4xf32>) -> (tensor<2x3x4xf32>, tensor<8x4xf32>) {
  %y = burin.take %x, %i : (tensor<8x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %j = burin.reshape %i {shape = [6, 1]} : (tensor<2x3xi64>) -> tensor<6x1xi64>
  %k = burin.broadcast_to %j {shape = [6, 4]} : (tensor<6x1xi64>) -> tensor<6x4xi64>
  %z = burin.scatter %x, %k, %g {reduction = "add"} : (tensor<8x4xf32>, tensor<6x4xi64>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %y, %z : tensor<2x3x4xf32>, tensor<8x4xf32>
}

// The take has a larger table, so its check does not cover the scatter.
// CHECK-LABEL: func.func @another_size(
// CHECK: burin.scatter
// CHECK-NOT: drop = true
func.func @another_size(%w: tensor<9x4xf32>, %x: tensor<8x4xf32>, %i: tensor<6xi64>, %g: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<8x4xf32>) {
  %y = burin.take %w, %i : (tensor<9x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
  %j = burin.reshape %i {shape = [6, 1]} : (tensor<6xi64>) -> tensor<6x1xi64>
  %k = burin.broadcast_to %j {shape = [6, 4]} : (tensor<6x1xi64>) -> tensor<6x4xi64>
  %z = burin.scatter %x, %k, %g {reduction = "add"} : (tensor<8x4xf32>, tensor<6x4xi64>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %y, %z : tensor<6x4xf32>, tensor<8x4xf32>
}
