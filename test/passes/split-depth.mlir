// RUN: burin-opt --burin-lower-contractions=on-gpus=true %s | FileCheck %s

// A product of one 64x64 tile: split into eight parts of depth 512, whose f32 results are added in order.
// CHECK-LABEL: func.func @long(
// CHECK: %[[L:.*]] = burin.reshape %arg0 {shape = [64, 8, 512]}
// CHECK: %[[X:.*]] = burin.transpose %[[L]] {perm = array<i64: 1, 0, 2>} : {{.*}} -> tensor<8x64x512xbf16>
// CHECK: %[[W:.*]] = burin.reshape %arg1 {shape = [8, 512, 64]}
// CHECK: %[[P:.*]] = burin.pack %[[W]]
// CHECK: %[[S:.*]] = burin.contract %[[X]], %[[P]] {{.*}} -> tensor<8x64x64xf32>
// CHECK: %[[R:.*]] = burin.reduce_sum %[[S]] {axes = array<i64: 0>{{.*}} -> tensor<64x64xf32>
// CHECK: burin.cast %[[R]] {{.*}} -> tensor<64x64xbf16>
func.func @long(%x: tensor<64x4096xbf16>, %w: tensor<4096x64xbf16>) -> tensor<64x64xbf16> {
  %y = burin.matmul %x, %w : (tensor<64x4096xbf16>, tensor<4096x64xbf16>) -> tensor<64x64xbf16>
  return %y : tensor<64x64xbf16>
}

// The parts would be less than 512 deep.
// CHECK-LABEL: func.func @short(
// CHECK-NOT: burin.reduce_sum
func.func @short(%x: tensor<64x1016xf32>, %w: tensor<1016x64xf32>) -> tensor<64x64xf32> {
  %y = burin.matmul %x, %w : (tensor<64x1016xf32>, tensor<1016x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// 256 tiles are enough tasks.
// CHECK-LABEL: func.func @large(
// CHECK-NOT: burin.reduce_sum
func.func @large(%x: tensor<1024x4096xbf16>, %w: tensor<4096x1024xbf16>) -> tensor<1024x1024xbf16> {
  %y = burin.matmul %x, %w : (tensor<1024x4096xbf16>, tensor<4096x1024xbf16>) -> tensor<1024x1024xbf16>
  return %y : tensor<1024x1024xbf16>
}

// Kernels for few rows read the right operand once in any case. Symbolic sizes are not split.
// CHECK-LABEL: func.func @thin(
// CHECK-NOT: burin.reduce_sum
func.func @thin(%x: tensor<4x4096xf32>, %y: tensor<?x4096xf32, ["n"]>, %w: tensor<4096x64xf32>) -> (tensor<4x64xf32>, tensor<?x64xf32, ["n"]>) {
  %a = burin.matmul %x, %w : (tensor<4x4096xf32>, tensor<4096x64xf32>) -> tensor<4x64xf32>
  %b = burin.matmul %y, %w : (tensor<?x4096xf32, ["n"]>, tensor<4096x64xf32>) -> tensor<?x64xf32, ["n"]>
  return %a, %b : tensor<4x64xf32>, tensor<?x64xf32, ["n"]>
}
