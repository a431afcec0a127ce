// RUN: burin-opt --burin-pair-bf16-products --split-input-file %s | FileCheck %s

// A depth of odd or unknown size is paired, too: the order of the sum does not depend on what is known.
// CHECK-LABEL: func.func @matrix(
// CHECK: %[[P:.*]] = burin.bf16_pairs %arg1 {axis = 2 : i64} : (tensor<?x33xbf16, ["k"]>) -> tensor<{{.*}}xi32
// CHECK: %[[R:.*]] = burin.pack %[[P]] {width = 32 : i64}
// CHECK: burin.contract %arg0, %[[R]] : {{.*}}xi32{{.*}} -> tensor<8x33xbf16>
func.func @matrix(%x: tensor<8x?xbf16, ["k"]>, %w: tensor<?x33xbf16, ["k"]>) -> tensor<8x33xbf16> {
  %0 = burin.pack %w {width = 32 : i64} : (tensor<?x33xbf16, ["k"]>) -> tensor<2x?x32xbf16, ["k"]>
  %1 = burin.contract %x, %0 : (tensor<8x?xbf16, ["k"]>, tensor<2x?x32xbf16, ["k"]>) -> tensor<8x33xbf16>
  return %1 : tensor<8x33xbf16>
}

// -----

// Pairs of a transposed matrix are neighbours in memory before it is transposed.
// CHECK-LABEL: func.func @turned(
// CHECK: %[[P:.*]] = burin.bf16_pairs %arg1 {axis = 1 : i64} : (tensor<32x63xbf16>) -> tensor<32x32xi32>
// CHECK: %[[T:.*]] = burin.transpose %[[P]]
// CHECK: burin.pack %[[T]] {width = 32 : i64} : (tensor<32x32xi32>) -> tensor<1x32x32xi32>
func.func @turned(%x: tensor<8x63xbf16>, %w: tensor<32x63xbf16>) -> tensor<8x32xbf16> {
  %t = burin.transpose %w {perm = array<i64: 1, 0>} : (tensor<32x63xbf16>) -> tensor<63x32xbf16>
  %0 = burin.pack %t {width = 32 : i64} : (tensor<63x32xbf16>) -> tensor<1x63x32xbf16>
  %1 = burin.contract %x, %0 : (tensor<8x63xbf16>, tensor<1x63x32xbf16>) -> tensor<8x32xbf16>
  return %1 : tensor<8x32xbf16>
}

// -----

// Three channels at each of nine positions of a window are two pairs.
// CHECK-LABEL: func.func @window(
// CHECK: burin.reshape %arg1 {shape = [9, 3, 32]}
// CHECK: burin.bf16_pairs {{.*}} {axis = 2 : i64} : (tensor<9x3x32xbf16>) -> tensor<9x2x32xi32>
// CHECK: burin.pack {{.*}} : (tensor<18x32xi32>) -> tensor<1x18x32xi32>
func.func @window(%x: tensor<1x10x10x3xbf16>, %w: tensor<27x32xbf16>) -> tensor<1x8x8x32xbf16> {
  %0 = burin.pack %w {width = 32 : i64} : (tensor<27x32xbf16>) -> tensor<1x27x32xbf16>
  %1 = burin.contract %x, %0 kernel [1, 3, 3] : (tensor<1x10x10x3xbf16>, tensor<1x27x32xbf16>) -> tensor<1x8x8x32xbf16>
  return %1 : tensor<1x8x8x32xbf16>
}

// -----

// CHECK-LABEL: func.func @other(
// CHECK-NOT: burin.bf16_pairs
func.func @other(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>, %h: tensor<8x64xf16>, %v: tensor<64x32xf16>) -> (tensor<8x32xf32>, tensor<8x32xf16>) {
  %0 = burin.pack %w {width = 32 : i64} : (tensor<64x32xf32>) -> tensor<1x64x32xf32>
  %1 = burin.contract %x, %0 : (tensor<8x64xf32>, tensor<1x64x32xf32>) -> tensor<8x32xf32>
  %2 = burin.pack %v {width = 32 : i64} : (tensor<64x32xf16>) -> tensor<1x64x32xf16>
  %3 = burin.contract %h, %2 : (tensor<8x64xf16>, tensor<1x64x32xf16>) -> tensor<8x32xf16>
  return %1, %3 : tensor<8x32xf32>, tensor<8x32xf16>
}
