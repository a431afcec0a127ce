// RUN: burin-opt --burin-lower-contractions --burin-fuse %s | FileCheck %s

// What a product reads from memory is no part of its kernel, even if it is also what the product is multiplied by.
// CHECK-LABEL: func.func @gate(
// CHECK: %[[H:.*]] = burin.kernel "relu"
// CHECK: burin.kernel "contract+mul"(%{{.*}} = %[[H]]
func.func @gate(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %h = burin.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = burin.matmul %h, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = burin.mul %y, %h : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// The other way round.
// CHECK-LABEL: func.func @reversed(
// CHECK: %[[H:.*]] = burin.kernel "relu"
// CHECK: burin.kernel "contract+mul"(%{{.*}} = %[[H]]
func.func @reversed(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %h = burin.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = burin.matmul %h, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = burin.mul %h, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}
