// RUN: burin-opt --burin-lower-contractions --burin-sink-reshapes --canonicalize %s | FileCheck %s

// Bias, activation and residual of a batch of sequences are computed on the rows of one product.
// CHECK-LABEL: func.func @linear(
// CHECK: %[[C:.*]] = burin.contract
// CHECK: %[[B:.*]] = burin.broadcast_to %{{.*}} {shape = ["n*6", 5]}
// CHECK: %[[S:.*]] = burin.add %[[C]], %[[B]] : (tensor<?x5xf32, ["n*6"]>
// CHECK: %[[G:.*]] = burin.gelu %[[S]]
// CHECK: %[[R:.*]] = burin.reshape %arg3 {shape = ["n*6", 5]}
// CHECK: %[[Y:.*]] = burin.add %[[G]], %[[R]]
// CHECK: %[[Z:.*]] = burin.reshape %[[Y]] {shape = ["n", 2, 3, 5]}
// CHECK: return %[[Z]]
func.func @linear(%x: tensor<?x2x3x8xf32, ["n"]>, %w: tensor<8x5xf32>, %b: tensor<5xf32>, %r: tensor<?x2x3x5xf32, ["n"]>) -> tensor<?x2x3x5xf32, ["n"]> {
  %m = burin.broadcast_to %w {shape = ["n", 2, 8, 5]} : (tensor<8x5xf32>) -> tensor<?x2x8x5xf32, ["n"]>
  %y = burin.matmul %x, %m : (tensor<?x2x3x8xf32, ["n"]>, tensor<?x2x8x5xf32, ["n"]>) -> tensor<?x2x3x5xf32, ["n"]>
  %bb = burin.broadcast_to %b {shape = ["n", 2, 3, 5]} : (tensor<5xf32>) -> tensor<?x2x3x5xf32, ["n"]>
  %s = burin.add %y, %bb : (tensor<?x2x3x5xf32, ["n"]>, tensor<?x2x3x5xf32, ["n"]>) -> tensor<?x2x3x5xf32, ["n"]>
  %g = burin.gelu %s : (tensor<?x2x3x5xf32, ["n"]>) -> tensor<?x2x3x5xf32, ["n"]>
  %z = burin.add %g, %r : (tensor<?x2x3x5xf32, ["n"]>, tensor<?x2x3x5xf32, ["n"]>) -> tensor<?x2x3x5xf32, ["n"]>
  return %z : tensor<?x2x3x5xf32, ["n"]>
}

// A broadcast of a value per row is kept; one along some leading dimensions has no such form and stops the reshape.
// CHECK-LABEL: func.func @partly(
// CHECK: %[[M:.*]] = burin.broadcast_to %{{.*}} {shape = [6, 5]} : (tensor<6x1xf32>)
// CHECK: %[[P:.*]] = burin.mul %{{.*}}, %[[M]] : (tensor<6x5xf32>
// CHECK: burin.reshape %[[P]] {shape = [2, 3, 5]}
// CHECK: burin.add {{.*}} (tensor<2x3x5xf32>
func.func @partly(%x: tensor<2x3x8xf32>, %w: tensor<8x5xf32>, %row: tensor<2x3x1xf32>, %p: tensor<3x5xf32>) -> tensor<2x3x5xf32> {
  %m = burin.broadcast_to %w {shape = [2, 8, 5]} : (tensor<8x5xf32>) -> tensor<2x8x5xf32>
  %y = burin.matmul %x, %m : (tensor<2x3x8xf32>, tensor<2x8x5xf32>) -> tensor<2x3x5xf32>
  %r = burin.broadcast_to %row {shape = [2, 3, 5]} : (tensor<2x3x1xf32>) -> tensor<2x3x5xf32>
  %s = burin.mul %y, %r : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %pp = burin.broadcast_to %p {shape = [2, 3, 5]} : (tensor<3x5xf32>) -> tensor<2x3x5xf32>
  %z = burin.add %s, %pp : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %z : tensor<2x3x5xf32>
}

// The square uses its operand twice.
// CHECK-LABEL: func.func @square(
// CHECK: %[[C:.*]] = burin.contract
// CHECK: %[[S:.*]] = burin.mul %[[C]], %[[C]] : (tensor<6x5xf32>
// CHECK: burin.reshape %[[S]] {shape = [2, 3, 5]}
func.func @square(%x: tensor<2x3x8xf32>, %w: tensor<8x5xf32>) -> tensor<2x3x5xf32> {
  %m = burin.broadcast_to %w {shape = [2, 8, 5]} : (tensor<8x5xf32>) -> tensor<2x8x5xf32>
  %y = burin.matmul %x, %m : (tensor<2x3x8xf32>, tensor<2x8x5xf32>) -> tensor<2x3x5xf32>
  %z = burin.mul %y, %y : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %z : tensor<2x3x5xf32>
}
