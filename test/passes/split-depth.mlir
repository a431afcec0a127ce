// RUN: burin-opt --burin-lower-contractions=on-gpus=true %s | FileCheck %s

// A product of one 64x64 tile: split into 32 parts of depth 128, whose f32 results are added in order.
// CHECK-LABEL: func.func @long(
// CHECK: %[[L:.*]] = burin.reshape %arg0 {shape = [64, 32, 128]}
// CHECK: %[[X:.*]] = burin.transpose %[[L]] {perm = array<i64: 1, 0, 2>} : {{.*}} -> tensor<32x64x128xbf16>
// CHECK: %[[W:.*]] = burin.reshape %arg1 {shape = [32, 128, 64]}
// CHECK: %[[P:.*]] = burin.reshape %[[W]] {shape = [32, 1, 128, 64]}
// CHECK: %[[S:.*]] = burin.contract %[[X]], %[[P]] {{.*}} -> tensor<32x64x64xf32>
// CHECK: %[[R:.*]] = burin.reduce_sum %[[S]] {axes = array<i64: 0>{{.*}} -> tensor<64x64xf32>
// CHECK: burin.cast %[[R]] {{.*}} -> tensor<64x64xbf16>
func.func @long(%x: tensor<64x4096xbf16>, %w: tensor<4096x64xbf16>) -> tensor<64x64xbf16> {
  %y = burin.matmul %x, %w : (tensor<64x4096xbf16>, tensor<4096x64xbf16>) -> tensor<64x64xbf16>
  return %y : tensor<64x64xbf16>
}

// The sum kernel would cost as much as two parts save.
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

// Parts of the channels, each with all taps of the window.
// CHECK-LABEL: func.func @window(
// CHECK: %[[L:.*]] = burin.reshape %arg0 {shape = [1, 7, 7, 16, 32]}
// CHECK: %[[X:.*]] = burin.transpose %[[L]] {perm = array<i64: 3, 0, 1, 2, 4>} : {{.*}} -> tensor<16x1x7x7x32xf16>
// CHECK: %[[R:.*]] = burin.reshape {{.*}} {shape = [9, 16, 32, 512]}
// CHECK: %[[T:.*]] = burin.transpose %[[R]] {perm = array<i64: 1, 0, 2, 3>}
// CHECK: %[[W:.*]] = burin.reshape %[[T]] {shape = [16, 288, 512]}
// CHECK: %[[P:.*]] = burin.pack %[[W]]
// CHECK: %[[S:.*]] = burin.contract %[[X]], %[[P]] batch 1 kernel [1, 3, 3] padding [0, 1, 1, 0, 1, 1] wide {{.*}} -> tensor<16x1x7x7x512xf32>
// CHECK: %[[SUM:.*]] = burin.reduce_sum %[[S]] {axes = array<i64: 0>
// CHECK: burin.add %[[SUM]], {{.*}} -> tensor<1x7x7x512xf32>
func.func @window(%x: tensor<1x7x7x512xf16>, %w: tensor<3x3x512x512xf16>, %b: tensor<512xf16>) -> tensor<1x7x7x512xf16> {
  %y = burin.conv %x, %w, %b {layout = "nhwc", dilations = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x7x7x512xf16>, tensor<3x3x512x512xf16>, tensor<512xf16>) -> tensor<1x7x7x512xf16>
  return %y : tensor<1x7x7x512xf16>
}

// Windows as large as the image: a product of 64 by 65536 elements.
// CHECK-LABEL: func.func @image(
// CHECK: burin.reshape %arg0 {shape = [64, 65536]}
// CHECK: burin.contract {{.*}} batch 1 wide : {{.*}} -> tensor<64x64x64xf32>
// CHECK: burin.reduce_sum {{.*}} -> tensor<64x64xf32>
func.func @image(%x: tensor<64x64x64x16xf16>, %w: tensor<64x64x16x64xf16>) -> tensor<64x1x1x64xf16> {
  %y = burin.conv %x, %w {layout = "nhwc", dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<64x64x64x16xf16>, tensor<64x64x16x64xf16>) -> tensor<64x1x1x64xf16>
  return %y : tensor<64x1x1x64xf16>
}

// The gradient of a 3x3 convolution's weight of 64 by 64 channels, with 4 images of 56x56: windows of 56 rows, of which
// each part sees its own rows and the first two of the next part.
// CHECK-LABEL: func.func @gradient(
// CHECK: burin.concat {{.*}} {axis = 2 : i64}
// CHECK: burin.contract {{.*}} kernel [1, 4, 56] padding [0, 0, 1, 0, 0, 1] {{.*}} -> tensor<14x64x3x3x64xf32>
// CHECK: burin.reduce_sum {{.*}}axes = array<i64: 0>
func.func @gradient(%x: tensor<64x56x56x4xf32>, %g: tensor<56x56x4x64xf32>) -> tensor<64x3x3x64xf32> {
  %y = burin.conv %x, %g {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<64x56x56x4xf32>, tensor<56x56x4x64xf32>) -> tensor<64x3x3x64xf32>
  return %y : tensor<64x3x3x64xf32>
}
