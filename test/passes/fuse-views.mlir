// RUN: burin-opt --burin-fuse %s | FileCheck %s

// A product reads its left operand through a transpose; a transpose with other users is materialised.
// CHECK-LABEL: func.func @lhs(
// CHECK-NOT: burin.kernel "transpose"
// CHECK: burin.kernel "contract"(%[[A:.*]] = %arg0
// CHECK-NEXT: %[[T:.*]] = burin.transpose %[[A]]
// CHECK-NEXT: burin.contract %[[T]]
func.func @lhs(%x: tensor<8x6xf32>, %w: tensor<1x8x32xf32>) -> tensor<6x5xf32> {
  %t = burin.transpose %x {perm = array<i64: 1, 0>} : (tensor<8x6xf32>) -> tensor<6x8xf32>
  %y = burin.contract %t, %w : (tensor<6x8xf32>, tensor<1x8x32xf32>) -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}
// CHECK-LABEL: func.func @shared(
// CHECK: %[[T:.*]] = burin.kernel "transpose"
// CHECK: burin.kernel "contract"(%{{.*}} = %[[T]]
func.func @shared(%x: tensor<8x6xf32>, %w: tensor<1x8x32xf32>) -> (tensor<6x5xf32>, tensor<6x8xf32>) {
  %t = burin.transpose %x {perm = array<i64: 1, 0>} : (tensor<8x6xf32>) -> tensor<6x8xf32>
  %y = burin.contract %t, %w : (tensor<6x8xf32>, tensor<1x8x32xf32>) -> tensor<6x5xf32>
  return %y, %t : tensor<6x5xf32>, tensor<6x8xf32>
}

// A convolution reads an image of few channels through the transpose; one of many channels is materialised, as each tap
// reads it again.
// CHECK-LABEL: func.func @few_channels(
// CHECK-NOT: burin.kernel "transpose"
func.func @few_channels(%x: tensor<1x32x5x5xf32>, %w: tensor<1x288x32xf32>) -> tensor<1x3x3x8xf32> {
  %t = burin.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x32x5x5xf32>) -> tensor<1x5x5x32xf32>
  %y = burin.contract %t, %w kernel [1, 3, 3] : (tensor<1x5x5x32xf32>, tensor<1x288x32xf32>) -> tensor<1x3x3x8xf32>
  return %y : tensor<1x3x3x8xf32>
}
// CHECK-LABEL: func.func @many_channels(
// CHECK: %[[T:.*]] = burin.kernel "transpose"
// CHECK: burin.kernel "contract"(%{{.*}} = %[[T]]
func.func @many_channels(%x: tensor<1x64x5x5xf32>, %w: tensor<1x576x32xf32>) -> tensor<1x3x3x8xf32> {
  %t = burin.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x64x5x5xf32>) -> tensor<1x5x5x64xf32>
  %y = burin.contract %t, %w kernel [1, 3, 3] : (tensor<1x5x5x64xf32>, tensor<1x576x32xf32>) -> tensor<1x3x3x8xf32>
  return %y : tensor<1x3x3x8xf32>
}

// CHECK-LABEL: func.func @heads(
// CHECK-NOT: burin.kernel "transpose"
// CHECK: burin.kernel "scaled_dot_product_attention"(%[[Q:.*]] = %{{.*}}, %[[K:.*]] = %{{.*}}, %[[V:.*]] = %{{.*}}) :
// CHECK-COUNT-3: burin.transpose
// CHECK: burin.scaled_dot_product_attention
func.func @heads(%q: tensor<2x7x6xf32>, %k: tensor<2x9x6xf32>, %v: tensor<2x9x6xf32>) -> tensor<2x3x7x2xf32> {
  %q4 = burin.reshape %q {shape = [2, 7, 3, 2]} : (tensor<2x7x6xf32>) -> tensor<2x7x3x2xf32>
  %k4 = burin.reshape %k {shape = [2, 9, 3, 2]} : (tensor<2x9x6xf32>) -> tensor<2x9x3x2xf32>
  %v4 = burin.reshape %v {shape = [2, 9, 3, 2]} : (tensor<2x9x6xf32>) -> tensor<2x9x3x2xf32>
  %qh = burin.transpose %q4 {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x7x3x2xf32>) -> tensor<2x3x7x2xf32>
  %kh = burin.transpose %k4 {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x9x3x2xf32>) -> tensor<2x3x9x2xf32>
  %vh = burin.transpose %v4 {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x9x3x2xf32>) -> tensor<2x3x9x2xf32>
  %y = burin.scaled_dot_product_attention %qh, %kh, %vh : (tensor<2x3x7x2xf32>, tensor<2x3x9x2xf32>, tensor<2x3x9x2xf32>) -> tensor<2x3x7x2xf32>
  return %y : tensor<2x3x7x2xf32>
}

// Slices of caches that begin at 0 are read in place; a slice that begins later is materialised.
// CHECK-LABEL: func.func @prefix
// CHECK: %[[LATE:.*]] = burin.kernel "slice"
// CHECK: burin.kernel "scaled_dot_product_attention"(%[[Q:.*]] = %{{.*}}, %[[K:.*]] = %{{.*}}, %{{.*}} = %[[LATE]]) :
// CHECK-NEXT: %[[FIRST:.*]] = burin.slice %[[K]]
// CHECK-NEXT: burin.scaled_dot_product_attention %[[Q]], %[[FIRST]]
func.func @prefix(%q: tensor<2x3x7x2xf32>, %k: tensor<8x3x9x2xf32>, %v: tensor<8x3x9x2xf32>) -> tensor<2x3x7x2xf32> {
  %kn = burin.slice %k {starts = [0, 0, 0, 0], stops = [2, 3, 9, 2], steps = array<i64: 1, 1, 1, 1>} : (tensor<8x3x9x2xf32>) -> tensor<2x3x9x2xf32>
  %vn = burin.slice %v {starts = [1, 0, 0, 0], stops = [3, 3, 9, 2], steps = array<i64: 1, 1, 1, 1>} : (tensor<8x3x9x2xf32>) -> tensor<2x3x9x2xf32>
  %r = burin.scaled_dot_product_attention %q, %kn, %vn : (tensor<2x3x7x2xf32>, tensor<2x3x9x2xf32>, tensor<2x3x9x2xf32>) -> tensor<2x3x7x2xf32>
  return %r : tensor<2x3x7x2xf32>
}
