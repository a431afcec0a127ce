// RUN: burin-opt --burin-decompose %s | FileCheck %s
// A transposed convolution with strides becomes one convolution for all positions with the same number of taps: with a
// kernel of 3 and strides of 2, one of two taps for even positions and one of one tap for odd ones, before padding is
// cropped.

// CHECK-LABEL: func.func @taps_differ(
// CHECK: %[[X:.*]] = burin.transpose %arg0 {perm = array<i64: 0, 2, 1>}
// CHECK: %[[SPLIT:.*]] = burin.reshape {{.*}} {shape = [2, 2, 3, 2, 2]}
// CHECK: %[[TAPS:.*]] = burin.flip %[[SPLIT]] {axes = array<i64: 3>}
// CHECK: burin.slice %[[TAPS]] {starts = [0, 0, 0, 0, 0], {{.*}}stops = [2, 2, 3, 2, 1]}
// CHECK: burin.conv %[[X]], {{.*}}groups = 2 : i64, layout = "nhwc", padding = array<i64: 1, 1>, {{.*}} -> tensor<?x6x6xf32, ["n"]>
// CHECK: burin.add
// CHECK: burin.slice %[[TAPS]] {starts = [0, 0, 0, 1, 1], {{.*}}stops = [2, 2, 3, 2, 2]}
// CHECK: burin.conv %[[X]], {{.*}}groups = 2 : i64, layout = "nhwc", padding = array<i64: 0, 0>, {{.*}} -> tensor<?x5x6xf32, ["n"]>
// CHECK: burin.concat {{.*}} {axis = 2 : i64}
// CHECK: %[[ALL:.*]] = burin.reshape {{.*}} {shape = ["n", 12, 6]}
// CHECK: burin.pad %[[ALL]] {high = array<i64: 0, -1, 0>, {{.*}}low = array<i64: 0, -1, 0>}
func.func @taps_differ(%x: tensor<?x4x5xf32, ["n"]>, %w: tensor<4x3x3xf32>, %b: tensor<6xf32>) -> tensor<?x6x10xf32, ["n"]> {
  %r = burin.conv_transpose %x, %w, %b {strides = array<i64: 2>, padding = array<i64: 1, 1>, dilations = array<i64: 1>, output_padding = array<i64: 1>, groups = 2 : i64} : (tensor<?x4x5xf32, ["n"]>, tensor<4x3x3xf32>, tensor<6xf32>) -> tensor<?x6x10xf32, ["n"]>
  return %r : tensor<?x6x10xf32, ["n"]>
}

// CHECK-LABEL: func.func @one_convolution(
// CHECK: burin.conv {{.*}} -> tensor<1x4x5x12xf32>
// CHECK-NOT: burin.conv
// CHECK-NOT: burin.pad
// CHECK: return
func.func @one_convolution(%x: tensor<1x2x4x5xf32>, %w: tensor<2x3x2x2xf32>) -> tensor<1x3x8x10xf32> {
  %r = burin.conv_transpose %x, %w {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, output_padding = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x2x4x5xf32>, tensor<2x3x2x2xf32>) -> tensor<1x3x8x10xf32>
  return %r : tensor<1x3x8x10xf32>
}

// Positions that the kernel does not reach are zeros, to which the bias is added.
// CHECK-LABEL: func.func @gaps(
// CHECK: burin.conv {{.*}} -> tensor<1x4x6xf32>
// CHECK: burin.pad {{.*}}high = array<i64: 0, 0, 1, 0, 0>
// CHECK: %[[Y:.*]] = burin.reshape {{.*}} {shape = [1, 12, 3]}
// CHECK: burin.add %[[Y]]
func.func @gaps(%x: tensor<1x2x4xf32>, %w: tensor<2x3x2xf32>, %b: tensor<3xf32>) -> tensor<1x3x12xf32> {
  %r = burin.conv_transpose %x, %w, %b {strides = array<i64: 3>, padding = array<i64: 0, 0>, dilations = array<i64: 1>, output_padding = array<i64: 1>, groups = 1 : i64} : (tensor<1x2x4xf32>, tensor<2x3x2xf32>, tensor<3xf32>) -> tensor<1x3x12xf32>
  return %r : tensor<1x3x12xf32>
}

// Dilated kernels read x with zeros inserted.
// CHECK-LABEL: func.func @dilated(
// CHECK: %[[X:.*]] = burin.pad %arg0 {high = array<i64: 0, 0, 3>, interior = array<i64: 0, 0, 1>, low = array<i64: 0, 0, 3>}
// CHECK: %[[F:.*]] = burin.flip %arg1 {axes = array<i64: 2>}
// CHECK: %[[G:.*]] = burin.reshape %[[F]] {shape = [2, 2, 3, 3]}
// CHECK: %[[T:.*]] = burin.transpose %[[G]] {perm = array<i64: 0, 2, 1, 3>}
// CHECK: %[[W:.*]] = burin.reshape %[[T]] {shape = [6, 2, 3]}
// CHECK: burin.conv %[[X]], %[[W]] {{.*}}groups = 2
func.func @dilated(%x: tensor<?x4x5xf32, ["n"]>, %w: tensor<4x3x3xf32>) -> tensor<?x6x11xf32, ["n"]> {
  %r = burin.conv_transpose %x, %w {strides = array<i64: 2>, padding = array<i64: 1, 1>, dilations = array<i64: 2>, output_padding = array<i64: 0>, groups = 2 : i64} : (tensor<?x4x5xf32, ["n"]>, tensor<4x3x3xf32>) -> tensor<?x6x11xf32, ["n"]>
  return %r : tensor<?x6x11xf32, ["n"]>
}
