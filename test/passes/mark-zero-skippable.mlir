// RUN: burin-opt --burin-mark-zero-skippable --split-input-file %s | FileCheck %s

// One row, or a symbolic number of rows, times 1 MB of finite constants.
// CHECK-LABEL: func.func @one(
// CHECK: burin.contract {{.*}} finite :
func.func @one(%x: tensor<1x1024xf32>) -> tensor<1x256xf32> {
  %w = burin.constant dense<1.5> : tensor<8x1024x32xf32>
  %y = burin.contract %x, %w : (tensor<1x1024xf32>, tensor<8x1024x32xf32>) -> tensor<1x256xf32>
  return %y : tensor<1x256xf32>
}
// CHECK-LABEL: func.func @any(
// CHECK: burin.contract {{.*}} finite :
func.func @any(%x: tensor<?x1024xf32, ["n"]>) -> tensor<?x256xf32, ["n"]> {
  %w = burin.constant dense<1.5> : tensor<8x1024x32xf32>
  %y = burin.contract %x, %w : (tensor<?x1024xf32, ["n"]>, tensor<8x1024x32xf32>) -> tensor<?x256xf32, ["n"]>
  return %y : tensor<?x256xf32, ["n"]>
}

// -----

// Not marked: matrices with infinities or NaN (0 times these is NaN), two rows, smaller matrices, and matrices of
// unknown contents.
// CHECK-NOT:  finite :
func.func @infinity(%x: tensor<1x1024xf32>) -> tensor<1x256xf32> {
  %w = burin.constant dense<0xFF800000> : tensor<8x1024x32xf32>
  %y = burin.contract %x, %w : (tensor<1x1024xf32>, tensor<8x1024x32xf32>) -> tensor<1x256xf32>
  return %y : tensor<1x256xf32>
}
func.func @nan(%x: tensor<1x1024xf32>) -> tensor<1x256xf32> {
  %w = burin.constant dense<0x7FC00000> : tensor<8x1024x32xf32>
  %y = burin.contract %x, %w : (tensor<1x1024xf32>, tensor<8x1024x32xf32>) -> tensor<1x256xf32>
  return %y : tensor<1x256xf32>
}
func.func @two(%x: tensor<2x1024xf32>) -> tensor<2x256xf32> {
  %w = burin.constant dense<1.5> : tensor<8x1024x32xf32>
  %y = burin.contract %x, %w : (tensor<2x1024xf32>, tensor<8x1024x32xf32>) -> tensor<2x256xf32>
  return %y : tensor<2x256xf32>
}
func.func @small(%x: tensor<1x1023xf32>) -> tensor<1x256xf32> {
  %w = burin.constant dense<1.5> : tensor<8x1023x32xf32>
  %y = burin.contract %x, %w : (tensor<1x1023xf32>, tensor<8x1023x32xf32>) -> tensor<1x256xf32>
  return %y : tensor<1x256xf32>
}
func.func @unknown(%x: tensor<1x1024xf32>, %w: tensor<8x1024x32xf32>) -> tensor<1x256xf32> {
  %y = burin.contract %x, %w : (tensor<1x1024xf32>, tensor<8x1024x32xf32>) -> tensor<1x256xf32>
  return %y : tensor<1x256xf32>
}
