// RUN: burin-opt --burin-lower-contractions=on-gpus=true %s | FileCheck %s --check-prefixes=CHECK,GPU
// RUN: burin-opt --burin-lower-contractions %s | FileCheck %s --check-prefixes=CHECK,CPU

// Three channels of 16-bit floats are padded to eight, 16 bytes, on both sides.
// CHECK-LABEL: func.func @image(
// CPU-NOT: burin.pad
// GPU: %[[T:.*]] = burin.transpose %arg0 {{.*}} -> tensor<2x32x32x3xf16>
// GPU: %[[X:.*]] = burin.pad %[[T]] {high = array<i64: 0, 0, 0, 5>{{.*}} -> tensor<2x32x32x8xf16>
// GPU: %[[W:.*]] = burin.pad {{.*}} {high = array<i64: 0, 0, 5, 0>{{.*}} -> tensor<7x7x8x64xf16>
// GPU: burin.reshape %[[W]] {shape = [392, 64]}
// GPU: burin.contract %[[X]], {{.*}} kernel [1, 7, 7] {{.*}} -> tensor<2x16x16x64xf16>
func.func @image(%x: tensor<2x3x32x32xf16>, %w: tensor<64x3x7x7xf16>) -> tensor<2x64x16x16xf16> {
  %y = burin.conv %x, %w {layout = "nchw", dilations = array<i64: 1, 1>, padding = array<i64: 3, 3, 3, 3>, strides = array<i64: 2, 2>} : (tensor<2x3x32x32xf16>, tensor<64x3x7x7xf16>) -> tensor<2x64x16x16xf16>
  return %y : tensor<2x64x16x16xf16>
}

// Other types are not copied in pieces; windows of one element read each channel once.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: burin.pad
func.func @others(%x: tensor<2x32x32x3xf32>, %w: tensor<3x3x3x64xf32>, %y: tensor<2x32x32x3xbf16>, %v: tensor<1x1x3x64xbf16>) -> (tensor<2x30x30x64xf32>, tensor<2x32x32x64xbf16>) {
  %a = burin.conv %x, %w {layout = "nhwc", dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x32x32x3xf32>, tensor<3x3x3x64xf32>) -> tensor<2x30x30x64xf32>
  %b = burin.conv %y, %v {layout = "nhwc", dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x32x32x3xbf16>, tensor<1x1x3x64xbf16>) -> tensor<2x32x32x64xbf16>
  return %a, %b : tensor<2x30x30x64xf32>, tensor<2x32x32x64xbf16>
}
