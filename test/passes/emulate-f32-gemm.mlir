// RUN: burin-opt --burin-emulate-f32-gemm --split-input-file %s | FileCheck %s

// Both operands are split into bf16 terms, a shared left operand once for all its products.
// CHECK-LABEL: func.func @two(
// CHECK-DAG: %[[W:.*]] = burin.constant {{.*}}tensor<8x16x3x2x16x32xbf16>
// CHECK-DAG: %[[R:.*]] = burin.reshape %arg0 {shape = [128, 512]}
// CHECK-DAG: %[[T:.*]] = burin.bf16_terms %[[R]] : {{.*}} -> tensor<8x16x3x16x32xbf16>
// CHECK: burin.contract %arg0, %[[W]] terms %[[T]] :
// CHECK: burin.contract %arg0, %[[W]] terms %[[T]] :
// CHECK-NOT: burin.bf16_terms
func.func @two(%x: tensor<2x64x512xf32>) -> (tensor<2x64x256xf32>, tensor<2x64x250xf32>) {
  %w = burin.constant dense<1.5> : tensor<8x512x32xf32>
  %y = burin.contract %x, %w : (tensor<2x64x512xf32>, tensor<8x512x32xf32>) -> tensor<2x64x256xf32>
  %z = burin.contract %x, %w : (tensor<2x64x512xf32>, tensor<8x512x32xf32>) -> tensor<2x64x250xf32>
  return %y, %z : tensor<2x64x256xf32>, tensor<2x64x250xf32>
}

// -----

// Not emulated: constants with subnormal products of terms or non-finite values, operands of unknown contents, products
// of few rows, windows, strides, or little work.
// CHECK-NOT: burin.bf16_terms
func.func @tiny(%x: tensor<128x512xf32>) -> tensor<128x256xf32> {
  %w = burin.constant dense<1.0e-20> : tensor<8x512x32xf32>
  %y = burin.contract %x, %w : (tensor<128x512xf32>, tensor<8x512x32xf32>) -> tensor<128x256xf32>
  return %y : tensor<128x256xf32>
}
func.func @infinity(%x: tensor<128x512xf32>) -> tensor<128x256xf32> {
  %w = burin.constant dense<0xFF800000> : tensor<8x512x32xf32>
  %y = burin.contract %x, %w : (tensor<128x512xf32>, tensor<8x512x32xf32>) -> tensor<128x256xf32>
  return %y : tensor<128x256xf32>
}
func.func @unknown(%x: tensor<128x512xf32>, %w: tensor<8x512x32xf32>) -> tensor<128x256xf32> {
  %y = burin.contract %x, %w : (tensor<128x512xf32>, tensor<8x512x32xf32>) -> tensor<128x256xf32>
  return %y : tensor<128x256xf32>
}
func.func @few(%x: tensor<47x512xf32>) -> tensor<47x1024xf32> {
  %w = burin.constant dense<1.5> : tensor<32x512x32xf32>
  %y = burin.contract %x, %w : (tensor<47x512xf32>, tensor<32x512x32xf32>) -> tensor<47x1024xf32>
  return %y : tensor<47x1024xf32>
}
func.func @some(%x: tensor<?x512xf32, ["n"]>) -> tensor<?x256xf32, ["n"]> {
  %w = burin.constant dense<1.5> : tensor<8x512x32xf32>
  %y = burin.contract %x, %w : (tensor<?x512xf32, ["n"]>, tensor<8x512x32xf32>) -> tensor<?x256xf32, ["n"]>
  return %y : tensor<?x256xf32, ["n"]>
}
func.func @window(%x: tensor<1x30x30x64xf32>) -> tensor<1x28x28x256xf32> {
  %w = burin.constant dense<1.5> : tensor<8x576x32xf32>
  %y = burin.contract %x, %w kernel [1, 3, 3] : (tensor<1x30x30x64xf32>, tensor<8x576x32xf32>) -> tensor<1x28x28x256xf32>
  return %y : tensor<1x28x28x256xf32>
}
func.func @strides(%x: tensor<1x56x56x512xf32>) -> tensor<1x28x28x256xf32> {
  %w = burin.constant dense<1.5> : tensor<8x512x32xf32>
  %y = burin.contract %x, %w strides [1, 2, 2] : (tensor<1x56x56x512xf32>, tensor<8x512x32xf32>) -> tensor<1x28x28x256xf32>
  return %y : tensor<1x28x28x256xf32>
}
func.func @little(%x: tensor<64x512xf32>) -> tensor<64x256xf32> {
  %w = burin.constant dense<1.5> : tensor<8x512x32xf32>
  %y = burin.contract %x, %w : (tensor<64x512xf32>, tensor<8x512x32xf32>) -> tensor<64x256xf32>
  return %y : tensor<64x256xf32>
}
