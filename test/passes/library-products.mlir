// RUN: burin-opt --burin-lower-contractions="on-gpus=true for-libraries=true" %s | FileCheck %s
// Right sides that a library may read lie as matrices, constants, too.

// CHECK-LABEL: @constant
// CHECK-NOT: burin.pack
// CHECK: burin.contract %arg0, %{{.*}} : (tensor<4x8xf32>, tensor<1x8x12xf32>)
func.func @constant(%x: tensor<4x8xf32>) -> tensor<4x12xf32> {
  %w = burin.constant dense<1.0> : tensor<8x12xf32>
  %y = burin.matmul %x, %w : (tensor<4x8xf32>, tensor<8x12xf32>) -> tensor<4x12xf32>
  return %y : tensor<4x12xf32>
}

// Rows of 5 elements cannot be copied 16 bytes at once.
// CHECK-LABEL: @odd
// CHECK: burin.pack
func.func @odd(%x: tensor<4x8xf32>) -> tensor<4x5xf32> {
  %w = burin.constant dense<1.0> : tensor<8x5xf32>
  %y = burin.matmul %x, %w : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// CHECK-LABEL: @transposed
// CHECK-NOT: burin.pack
func.func @transposed(%x: tensor<4x8xf32>) -> tensor<4x12xf32> {
  %w = burin.constant dense<1.0> : tensor<12x8xf32>
  %t = burin.transpose %w {perm = array<i64: 1, 0>} : (tensor<12x8xf32>) -> tensor<8x12xf32>
  %y = burin.matmul %x, %t : (tensor<4x8xf32>, tensor<8x12xf32>) -> tensor<4x12xf32>
  return %y : tensor<4x12xf32>
}

// The constant is kept for the other use: it is not stored twice as a matrix.
// CHECK-LABEL: @tied
// CHECK: burin.pack
func.func @tied(%x: tensor<4x8xf32>) -> (tensor<4x12xf32>, tensor<12x8xf32>) {
  %w = burin.constant dense<1.0> : tensor<12x8xf32>
  %t = burin.transpose %w {perm = array<i64: 1, 0>} : (tensor<12x8xf32>) -> tensor<8x12xf32>
  %y = burin.matmul %x, %t : (tensor<4x8xf32>, tensor<8x12xf32>) -> tensor<4x12xf32>
  return %y, %w : tensor<4x12xf32>, tensor<12x8xf32>
}

// Windows of one element are a product, larger ones are not.
// CHECK-LABEL: @convolutions
// CHECK-NOT: burin.pack
// CHECK: burin.contract {{.*}} tensor<1x8x16xf32>
// CHECK: burin.pack
func.func @convolutions(%x: tensor<1x6x6x8xf32>) -> tensor<1x4x4x16xf32> {
  %w = burin.constant dense<1.0> : tensor<1x1x8x16xf32>
  %y = burin.conv %x, %w {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x6x6x8xf32>, tensor<1x1x8x16xf32>) -> tensor<1x6x6x16xf32>
  %v = burin.constant dense<1.0> : tensor<3x3x16x16xf32>
  %z = burin.conv %y, %v {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x6x6x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x4x4x16xf32>
  return %z : tensor<1x4x4x16xf32>
}
