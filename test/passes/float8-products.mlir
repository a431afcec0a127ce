// RUN: burin-opt --burin-lower-contractions %s | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: burin-opt --burin-lower-contractions=on-gpus=true %s | FileCheck %s --check-prefixes=CHECK,GPU

// CPUs convert the left side once, and the right side where they read it; tensor cores take both as they are, the right
// side column by column.
// CHECK-LABEL: func.func @both(
// CPU: %[[X:.*]] = burin.cast %arg0 {dtype = f32}
// CPU: %[[W:.*]] = burin.pack %arg1 {{.*}} -> tensor<3x64x32xf8E5M2>
// GPU: %[[T:.*]] = burin.transpose %arg1 {{.*}} -> tensor<70x64xf8E5M2>
// GPU: %[[W:.*]] = burin.reshape %[[T]] {{.*}} -> tensor<70x64x1xf8E5M2>
// CPU: burin.contract %[[X]], %[[W]]{{.*}} : (tensor<7x64xf32>, tensor<3x64x32xf8E5M2>) -> tensor<7x70xf32>
// GPU: burin.contract %arg0, %[[W]] {{.*}}wide{{.*}} : (tensor<7x64xf8E4M3FN>, tensor<70x64x1xf8E5M2>) -> tensor<7x70xf32>
func.func @both(%x: tensor<7x64xf8E4M3FN>, %w: tensor<64x70xf8E5M2>) -> tensor<7x70xf32> {
  %y = burin.matmul %x, %w : (tensor<7x64xf8E4M3FN>, tensor<64x70xf8E5M2>) -> tensor<7x70xf32>
  return %y : tensor<7x70xf32>
}

// Few rows are multiplied by panels.
// CHECK-LABEL: func.func @thin(
// CHECK: burin.pack %arg1 {{.*}} -> tensor<3x64x32xf8E5M2>
func.func @thin(%x: tensor<4x64xf8E4M3FN>, %w: tensor<64x70xf8E5M2>) -> tensor<4x70xf32> {
  %y = burin.matmul %x, %w : (tensor<4x64xf8E4M3FN>, tensor<64x70xf8E5M2>) -> tensor<4x70xf32>
  return %y : tensor<4x70xf32>
}

// A converted right side is packed as it is stored.
// CHECK-LABEL: func.func @weight(
// CHECK: %[[T:.*]] = burin.transpose %arg1 {{.*}} -> tensor<64x70xf8E4M3FN>
// CHECK: %[[W:.*]] = burin.pack %[[T]] {{.*}} -> tensor<3x64x32xf8E4M3FN>
// CHECK: burin.contract %arg0, %[[W]]{{.*}} : (tensor<7x64xf32>, tensor<3x64x32xf8E4M3FN>) -> tensor<7x70xf32>
func.func @weight(%x: tensor<7x64xf32>, %w: tensor<70x64xf8E4M3FN>) -> tensor<7x70xf32> {
  %0 = burin.cast %w {dtype = f32} : (tensor<70x64xf8E4M3FN>) -> tensor<70x64xf32>
  %1 = burin.transpose %0 {perm = array<i64: 1, 0>} : (tensor<70x64xf32>) -> tensor<64x70xf32>
  %y = burin.matmul %x, %1 : (tensor<7x64xf32>, tensor<64x70xf32>) -> tensor<7x70xf32>
  return %y : tensor<7x70xf32>
}
