// RUN: burin-opt --burin-lower-contractions %s | FileCheck %s
// RUN: burin-opt --burin-lower-contractions=short-tiles=true %s | FileCheck %s --check-prefix=SHORT

// A weight with one matrix is packed; the leading dimensions of the left operand become rows.
// CHECK-LABEL: func.func @linear(
// CHECK: %[[P:.*]] = burin.pack %arg1 {width = 32 : i64} : (tensor<8x50xf32>) -> tensor<2x8x32xf32>
// CHECK: burin.contract {{.*}}, %[[P]] : {{.*}} -> tensor<{{.*}}x50xf32>
func.func @linear(%x: tensor<2x3x8xf32>, %w: tensor<8x50xf32>) -> tensor<2x3x50xf32> {
  %b = burin.broadcast_to %w {shape = [2, 8, 50]} : (tensor<8x50xf32>) -> tensor<2x8x50xf32>
  %y = burin.matmul %x, %b : (tensor<2x3x8xf32>, tensor<2x8x50xf32>) -> tensor<2x3x50xf32>
  return %y : tensor<2x3x50xf32>
}

// One that fills a panel at most is read as it lies in memory, unless it is a constant, which is packed when the
// program is compiled.
// CHECK-LABEL: func.func @narrow(
// CHECK-NOT: burin.pack
// CHECK: %[[P:.*]] = burin.reshape %arg1 {shape = [1, 8, 5]} : (tensor<8x5xf32>) -> tensor<1x8x5xf32>
// CHECK: burin.contract {{.*}}, %[[P]] : {{.*}} -> tensor<3x5xf32>
// CHECK: burin.pack {{.*}} -> tensor<1x5x32xf32>
func.func @narrow(%x: tensor<3x8xf32>, %w: tensor<8x5xf32>) -> tensor<3x4xf32> {
  %y = burin.matmul %x, %w : (tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  %c = burin.constant dense<2.0> : tensor<5x4xf32>
  %z = burin.matmul %y, %c : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  return %z : tensor<3x4xf32>
}

// A few columns after the last whole vector are packed separately, as rows. Padding along a row, or many channels, keep
// them in panels.
// CHECK-LABEL: func.func @tail(
// CHECK: %[[L:.*]] = burin.transpose
// CHECK: %[[T:.*]] = burin.pack %[[L]] {width = 500 : i64} : (tensor<2x500xf32>) -> tensor<1x2x500xf32>
// CHECK: %[[P:.*]] = burin.pack {{.*}} : (tensor<500x48xf32>) -> tensor<2x500x32xf32>
// CHECK: burin.contract {{.*}}, %[[P]] tail %[[T]] kernel [1, 5, 5] : {{.*}}x50xf32>
func.func @tail(%x: tensor<1x12x12x20xf32>, %w: tensor<5x5x20x50xf32>) -> tensor<1x8x8x50xf32> {
  %y = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, layout = "nhwc"} : (tensor<1x12x12x20xf32>, tensor<5x5x20x50xf32>) -> tensor<1x8x8x50xf32>
  return %y : tensor<1x8x8x50xf32>
}
// CHECK-LABEL: func.func @padded_tail(
// CHECK-COUNT-1: burin.pack
// CHECK-NOT: burin.pack
// CHECK-LABEL: func.func @many_channels(
func.func @padded_tail(%x: tensor<1x12x12x20xf32>, %w: tensor<5x5x20x50xf32>) -> tensor<1x12x12x50xf32> {
  %y = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, layout = "nhwc"} : (tensor<1x12x12x20xf32>, tensor<5x5x20x50xf32>) -> tensor<1x12x12x50xf32>
  return %y : tensor<1x12x12x50xf32>
}
// CHECK-COUNT-1: burin.pack
// CHECK-NOT: burin.pack
// CHECK-LABEL: func.func @pixel(
func.func @many_channels(%x: tensor<1x1x4x64xf32>, %w: tensor<1x2x64x1025xf32>) -> tensor<1x1x3x1025xf32> {
  %y = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, layout = "nhwc"} : (tensor<1x1x4x64xf32>, tensor<1x2x64x1025xf32>) -> tensor<1x1x3x1025xf32>
  return %y : tensor<1x1x3x1025xf32>
}

// On an image of one pixel only the middle tap of a 3x3 filter is live; on 1x5 pixels only the middle row is.
// CHECK: burin.slice %arg1 {{{.*}}starts = [1, 1, 0, 0], steps = {{.*}}, stops = [2, 2, 8, 4]}
// CHECK-NOT: burin.pad
// CHECK: burin.contract %{{[0-9a-z]+}}, %{{[0-9a-z]+}}{{( padding \[[-0-9, ]+\])?}} : (
func.func @pixel(%x: tensor<1x1x1x8xf32>, %w: tensor<3x3x8x4xf32>) -> tensor<1x1x1x4xf32> {
  %y = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc"} : (tensor<1x1x1x8xf32>, tensor<3x3x8x4xf32>) -> tensor<1x1x1x4xf32>
  return %y : tensor<1x1x1x4xf32>
}
// CHECK-LABEL: func.func @line(
// CHECK: burin.slice %arg1 {{{.*}}starts = [1, 0, 0, 0], steps = {{.*}}, stops = [2, 3, 8, 4]}
// CHECK: burin.contract {{.*}}padding [0, 0, 1, 0, 0, 1]
func.func @line(%x: tensor<1x1x5x8xf32>, %w: tensor<3x3x8x4xf32>) -> tensor<1x1x5x4xf32> {
  %y = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc"} : (tensor<1x1x5x8xf32>, tensor<3x3x8x4xf32>) -> tensor<1x1x5x4xf32>
  return %y : tensor<1x1x5x4xf32>
}

// 2x2 pixels with stride 2: the stride skips the left neighbour of the only output pixel, and the last taps are live.
// CHECK-LABEL: func.func @corner(
// CHECK: burin.slice %arg1 {{{.*}}starts = [1, 1, 0, 0], steps = {{.*}}, stops = [3, 3, 8, 4]}
func.func @corner(%x: tensor<1x2x2x8xf32>, %w: tensor<3x3x8x4xf32>) -> tensor<1x1x1x4xf32> {
  %y = burin.conv %x, %w {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc"} : (tensor<1x2x2x8xf32>, tensor<3x3x8x4xf32>) -> tensor<1x1x1x4xf32>
  return %y : tensor<1x1x1x4xf32>
}

// Images of symbolic size keep every tap. The contraction pads their rows if it reads many adjacent channels; few are
// padded before, as are wide borders.
// CHECK-LABEL: func.func @unknown_rows(
// CHECK-NOT: burin.pad
// CHECK: padding [0, 1, 1, 0, 1, 1]
// CHECK: burin.pad {{.*}}high = array<i64: 0, 0, 3, 0>{{.*}}low = array<i64: 0, 0, 3, 0>
// CHECK-NOT: padding [
func.func @unknown_rows(%x: tensor<1x?x?x16xf32, ["h", "w"]>, %w: tensor<3x3x16x4xf32>, %v: tensor<1x7x16x4xf32>) -> (tensor<1x?x?x4xf32, ["h", "w"]>, tensor<1x?x?x4xf32, ["h", "w"]>) {
  %y = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc"} : (tensor<1x?x?x16xf32, ["h", "w"]>, tensor<3x3x16x4xf32>) -> tensor<1x?x?x4xf32, ["h", "w"]>
  %z = burin.conv %x, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 3, 0, 3>, dilations = array<i64: 1, 1>, layout = "nhwc"} : (tensor<1x?x?x16xf32, ["h", "w"]>, tensor<1x7x16x4xf32>) -> tensor<1x?x?x4xf32, ["h", "w"]>
  return %y, %z : tensor<1x?x?x4xf32, ["h", "w"]>, tensor<1x?x?x4xf32, ["h", "w"]>
}
// CHECK-LABEL: func.func @unknown(
// CHECK-NOT: burin.slice
// CHECK: burin.pad {{.*}}high = array<i64: 0, 1, 1, 0>{{.*}}low = array<i64: 0, 1, 1, 0>
// CHECK-NOT: padding [
func.func @unknown(%x: tensor<1x?x?x8xf32, ["h", "w"]>, %w: tensor<3x3x8x4xf32>) -> tensor<1x?x?x4xf32, ["h", "w"]> {
  %y = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc"} : (tensor<1x?x?x8xf32, ["h", "w"]>, tensor<3x3x8x4xf32>) -> tensor<1x?x?x4xf32, ["h", "w"]>
  return %y : tensor<1x?x?x4xf32, ["h", "w"]>
}

// A transposed left side whose rows are a multiple of 512 bytes is packed for CPUs with few rows in a tile of sums, but
// not others, and not for few columns.
// CHECK-LABEL: func.func @transposed_left(
// CHECK: %[[T:.*]] = burin.transpose %arg0
// CHECK: burin.contract %[[T]], {{.*}} -> tensor<256x130xf32>
// SHORT-LABEL: func.func @transposed_left(
// SHORT: %[[L:.*]] = burin.pack {{.*}} {width = 16 : i64} : (tensor<70x256xf32>) -> tensor<16x70x16xf32>
// SHORT: %[[T:.*]] = burin.transpose %[[L]] {perm = array<i64: 0, 2, 1>}
// SHORT: burin.contract %[[T]], {{.*}} -> tensor<16x16x130xf32>
// SHORT: burin.reshape {{.*}} -> tensor<256x130xf32>
// SHORT: burin.contract {{.*}} -> tensor<250x130xf32>
// SHORT: burin.contract {{.*}} -> tensor<256x100xf32>
func.func @transposed_left(%x: tensor<70x256xf32>, %z: tensor<70x250xf32>, %w: tensor<70x130xf32>, %n: tensor<70x100xf32>) -> (tensor<256x130xf32>, tensor<250x130xf32>, tensor<256x100xf32>) {
  %t = burin.transpose %x {perm = array<i64: 1, 0>} : (tensor<70x256xf32>) -> tensor<256x70xf32>
  %u = burin.transpose %z {perm = array<i64: 1, 0>} : (tensor<70x250xf32>) -> tensor<250x70xf32>
  %a = burin.matmul %t, %w : (tensor<256x70xf32>, tensor<70x130xf32>) -> tensor<256x130xf32>
  %b = burin.matmul %u, %w : (tensor<250x70xf32>, tensor<70x130xf32>) -> tensor<250x130xf32>
  %c = burin.matmul %t, %n : (tensor<256x70xf32>, tensor<70x100xf32>) -> tensor<256x100xf32>
  return %a, %b, %c : tensor<256x130xf32>, tensor<250x130xf32>, tensor<256x100xf32>
}

// The gradient of a convolution's weight: steps of the sum go through images, which are far apart in memory.
// CHECK-LABEL: func.func @weight_gradient(
// CHECK: burin.contract {{.*}} kernel [1, 9, 9] padding [0, 1, 1, 0, 1, 1] : {{.*}} -> tensor<32x3x3x130xf32>
// SHORT-LABEL: func.func @weight_gradient(
// SHORT: %[[L:.*]] = burin.pack {{.*}} {width = 16 : i64} : (tensor<324x32xf32>) -> tensor<2x324x16xf32>
// SHORT: %[[R:.*]] = burin.reshape %[[L]] {shape = [2, 9, 9, 4, 16]}
// SHORT: %[[T:.*]] = burin.transpose %[[R]] {perm = array<i64: 0, 4, 1, 2, 3>}
// SHORT: burin.contract %[[T]], {{.*}} kernel [1, 1, 9, 9] padding [0, 0, 1, 1, 0, 0, 1, 1] : {{.*}} -> tensor<2x16x3x3x130xf32>
func.func @weight_gradient(%x: tensor<4x9x9x32xf32>, %y: tensor<9x9x4x130xf32>) -> tensor<32x3x3x130xf32> {
  %t = burin.transpose %x {perm = array<i64: 3, 1, 2, 0>} : (tensor<4x9x9x32xf32>) -> tensor<32x9x9x4xf32>
  %g = burin.conv %t, %y {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc"} : (tensor<32x9x9x4xf32>, tensor<9x9x4x130xf32>) -> tensor<32x3x3x130xf32>
  return %g : tensor<32x3x3x130xf32>
}

// A transposed product of a transposed left side: the operands trade places, but not where that packs more than it saves.
// CHECK-LABEL: func.func @linear_gradient(
// CHECK: %[[T:.*]] = burin.transpose %arg1 {perm = array<i64: 1, 0>} : (tensor<70x130xf32>) -> tensor<130x70xf32>
// CHECK: %[[P:.*]] = burin.pack %arg0
// CHECK: %[[G:.*]] = burin.contract %[[T]], %[[P]] : {{.*}} -> tensor<130x200xf32>
// CHECK: burin.contract {{.*}} -> tensor<200x10xf32>
// CHECK: %[[N:.*]] = burin.transpose {{.*}} -> tensor<10x200xf32>
// CHECK: return %[[G]], %[[N]]
func.func @linear_gradient(%x: tensor<70x200xf32>, %w: tensor<70x130xf32>, %n: tensor<70x10xf32>) -> (tensor<130x200xf32>, tensor<10x200xf32>) {
  %t = burin.transpose %x {perm = array<i64: 1, 0>} : (tensor<70x200xf32>) -> tensor<200x70xf32>
  %a = burin.matmul %t, %w : (tensor<200x70xf32>, tensor<70x130xf32>) -> tensor<200x130xf32>
  %g = burin.transpose %a {perm = array<i64: 1, 0>} : (tensor<200x130xf32>) -> tensor<130x200xf32>
  %b = burin.matmul %t, %n : (tensor<200x70xf32>, tensor<70x10xf32>) -> tensor<200x10xf32>
  %h = burin.transpose %b {perm = array<i64: 1, 0>} : (tensor<200x10xf32>) -> tensor<10x200xf32>
  return %g, %h : tensor<130x200xf32>, tensor<10x200xf32>
}
