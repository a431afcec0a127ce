// RUN: burin-opt --burin-lower-contractions --burin-fuse %s | FileCheck %s

// The producer of a product's operand is not fused into its kernel, even if the epilogue reads the same value.
// CHECK-LABEL: func.func @gate(
// CHECK: %[[H:.*]] = burin.kernel "relu"
// CHECK: burin.kernel "contract+mul"(%{{.*}} = %[[H]]
func.func @gate(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %h = burin.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = burin.matmul %h, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = burin.mul %y, %h : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// The operands the other way round.
// CHECK-LABEL: func.func @reversed(
// CHECK: %[[H:.*]] = burin.kernel "relu"
// CHECK: burin.kernel "contract+mul"(%{{.*}} = %[[H]]
func.func @reversed(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %h = burin.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = burin.matmul %h, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = burin.mul %h, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// Movement of a mean's result reads it from memory, too.
// CHECK-LABEL: func.func @moved(
// CHECK: %[[M:.*]] = burin.kernel "reduce_mean"
// CHECK: burin.kernel "triu+sub"(%{{.*}} = %[[M]])
func.func @moved(%x: tensor<7x33xf32>) -> tensor<7x1xf32> {
  %m = burin.reduce_mean %x {axes = array<i64: 1>, keepdims = true} : (tensor<7x33xf32>) -> tensor<7x1xf32>
  %t = burin.triu %m : (tensor<7x1xf32>) -> tensor<7x1xf32>
  %s = burin.sub %t, %m : (tensor<7x1xf32>, tensor<7x1xf32>) -> tensor<7x1xf32>
  return %s : tensor<7x1xf32>
}
