// RUN: burin-opt --burin-layout-assignment %s | FileCheck %s

// Only the weights and the inputs and outputs of the graph are transposed, not the residual addition.
// CHECK-LABEL: func.func @resblock(
// CHECK: %[[W1:.*]] = burin.transpose %arg1 {perm = array<i64: 2, 3, 1, 0>}
// CHECK: %[[X:.*]] = burin.transpose %arg0 {perm = array<i64: 0, 2, 3, 1>}
// CHECK: %[[C1:.*]] = burin.conv %[[X]], %[[W1]] {{.*}}layout = "nhwc"
// CHECK: burin.broadcast_to %{{.*}} {shape = ["n", 8, 8, 4]} : (tensor<1x1x1x4xf32>)
// CHECK: %[[R:.*]] = burin.relu
// CHECK: %[[W2:.*]] = burin.transpose %arg2 {perm = array<i64: 2, 3, 1, 0>}
// CHECK: %[[C2:.*]] = burin.conv %[[R]], %[[W2]] {{.*}}layout = "nhwc"
// CHECK: %[[S:.*]] = burin.add %[[C2]], %[[R]]
// CHECK: %[[Y:.*]] = burin.relu %[[S]]
// CHECK: %[[Z:.*]] = burin.transpose %[[Y]] {perm = array<i64: 0, 3, 1, 2>}
// CHECK: return %[[Z]]
func.func @resblock(%x: tensor<?x3x8x8xf32, ["n"]>, %w1: tensor<4x3x3x3xf32>, %w2: tensor<4x4x3x3xf32>, %b: tensor<4xf32>) -> tensor<?x4x8x8xf32, ["n"]> {
  %c1 = burin.conv %x, %w1 {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<?x3x8x8xf32, ["n"]>, tensor<4x3x3x3xf32>) -> tensor<?x4x8x8xf32, ["n"]>
  %b1 = burin.reshape %b {shape = [4, 1, 1]} : (tensor<4xf32>) -> tensor<4x1x1xf32>
  %bb = burin.broadcast_to %b1 {shape = ["n", 4, 8, 8]} : (tensor<4x1x1xf32>) -> tensor<?x4x8x8xf32, ["n"]>
  %a1 = burin.add %c1, %bb : (tensor<?x4x8x8xf32, ["n"]>, tensor<?x4x8x8xf32, ["n"]>) -> tensor<?x4x8x8xf32, ["n"]>
  %r1 = burin.relu %a1 : (tensor<?x4x8x8xf32, ["n"]>) -> tensor<?x4x8x8xf32, ["n"]>
  %c2 = burin.conv %r1, %w2 {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<?x4x8x8xf32, ["n"]>, tensor<4x4x3x3xf32>) -> tensor<?x4x8x8xf32, ["n"]>
  %a2 = burin.add %c2, %r1 : (tensor<?x4x8x8xf32, ["n"]>, tensor<?x4x8x8xf32, ["n"]>) -> tensor<?x4x8x8xf32, ["n"]>
  %r2 = burin.relu %a2 : (tensor<?x4x8x8xf32, ["n"]>) -> tensor<?x4x8x8xf32, ["n"]>
  return %r2 : tensor<?x4x8x8xf32, ["n"]>
}

// The rows of constant weights are permuted to the order in which elements are flattened.
// CHECK-LABEL: func.func @head(
// CHECK: %[[R:.*]] = burin.relu
// CHECK: %[[F:.*]] = burin.reshape %[[R]] {shape = ["n", 64]} : (tensor<?x4x4x4xf32, ["n"]>)
// CHECK: %[[W:.*]] = burin.reshape %{{.*}} {shape = [4, 4, 4, 5]}
// CHECK: %[[T:.*]] = burin.transpose %[[W]] {perm = array<i64: 1, 2, 0, 3>}
// CHECK: %[[M:.*]] = burin.reshape %[[T]] {shape = [64, 5]}
// CHECK: burin.matmul %[[F]], %[[M]]
func.func @head(%x: tensor<?x4x4x4xf32, ["n"]>, %w2: tensor<4x4x3x3xf32>) -> tensor<?x5xf32, ["n"]> {
  %c1 = burin.conv %x, %w2 {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<?x4x4x4xf32, ["n"]>, tensor<4x4x3x3xf32>) -> tensor<?x4x4x4xf32, ["n"]>
  %r1 = burin.relu %c1 : (tensor<?x4x4x4xf32, ["n"]>) -> tensor<?x4x4x4xf32, ["n"]>
  %f = burin.reshape %r1 {shape = ["n", 64]} : (tensor<?x4x4x4xf32, ["n"]>) -> tensor<?x64xf32, ["n"]>
  %w = burin.constant dense<1.0> : tensor<64x5xf32>
  %y = burin.matmul %f, %w : (tensor<?x64xf32, ["n"]>, tensor<64x5xf32>) -> tensor<?x5xf32, ["n"]>
  return %y : tensor<?x5xf32, ["n"]>
}

// A transpose to channels-last in the graph is removed.
// CHECK-LABEL: func.func @vit(
// CHECK: %[[C:.*]] = burin.conv
// CHECK: %[[T:.*]] = burin.reshape %[[C]] {shape = ["n", 16, 4]}
// CHECK: burin.exp %[[T]]
func.func @vit(%x: tensor<?x4x4x4xf32, ["n"]>, %w2: tensor<4x4x3x3xf32>) -> tensor<?x16x4xf32, ["n"]> {
  %c1 = burin.conv %x, %w2 {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<?x4x4x4xf32, ["n"]>, tensor<4x4x3x3xf32>) -> tensor<?x4x4x4xf32, ["n"]>
  %f = burin.reshape %c1 {shape = ["n", 4, 16]} : (tensor<?x4x4x4xf32, ["n"]>) -> tensor<?x4x16xf32, ["n"]>
  %y = burin.transpose %f {perm = array<i64: 0, 2, 1>} : (tensor<?x4x16xf32, ["n"]>) -> tensor<?x16x4xf32, ["n"]>
  %e = burin.exp %y : (tensor<?x16x4xf32, ["n"]>) -> tensor<?x16x4xf32, ["n"]>
  return %e : tensor<?x16x4xf32, ["n"]>
}

// A single pooling does not justify two transposes.
// CHECK-LABEL: func.func @pool_alone(
// CHECK: burin.max_pool %arg0
func.func @pool_alone(%x: tensor<?x4x4x4xf32, ["n"]>) -> tensor<?x4x2x2xf32, ["n"]> {
  %c1 = burin.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x4x4x4xf32, ["n"]>) -> tensor<?x4x2x2xf32, ["n"]>
  return %c1 : tensor<?x4x2x2xf32, ["n"]>
}

// Means over spatial dimensions, gates and broadcasts accept channels-last values.
// CHECK-LABEL: func.func @se(
// CHECK: %[[C:.*]] = burin.conv
// CHECK: %[[M:.*]] = burin.reduce_mean %[[C]] {axes = array<i64: 1, 2>, keepdims = true}
// CHECK: %[[G:.*]] = burin.sigmoid %[[M]]
// CHECK: %[[B:.*]] = burin.broadcast_to %[[G]] {shape = ["n", 8, 8, 4]}
// CHECK: %[[S:.*]] = burin.mul %[[C]], %[[B]]
// CHECK: %[[Y:.*]] = burin.reduce_mean %[[S]] {axes = array<i64: 1, 2>}
// CHECK: return %[[Y]]
func.func @se(%x: tensor<?x4x8x8xf32, ["n"]>, %w2: tensor<4x4x3x3xf32>) -> tensor<?x4xf32, ["n"]> {
  %c1 = burin.conv %x, %w2 {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<?x4x8x8xf32, ["n"]>, tensor<4x4x3x3xf32>) -> tensor<?x4x8x8xf32, ["n"]>
  %m = burin.reduce_mean %c1 {axes = array<i64: 2, 3>, keepdims = true} : (tensor<?x4x8x8xf32, ["n"]>) -> tensor<?x4x1x1xf32, ["n"]>
  %g = burin.sigmoid %m : (tensor<?x4x1x1xf32, ["n"]>) -> tensor<?x4x1x1xf32, ["n"]>
  %gb = burin.broadcast_to %g {shape = ["n", 4, 8, 8]} : (tensor<?x4x1x1xf32, ["n"]>) -> tensor<?x4x8x8xf32, ["n"]>
  %s = burin.mul %c1, %gb : (tensor<?x4x8x8xf32, ["n"]>, tensor<?x4x8x8xf32, ["n"]>) -> tensor<?x4x8x8xf32, ["n"]>
  %y = burin.reduce_mean %s {axes = array<i64: 2, 3>} : (tensor<?x4x8x8xf32, ["n"]>) -> tensor<?x4xf32, ["n"]>
  return %y : tensor<?x4xf32, ["n"]>
}

// Groups of channels become separate dimensions: group normalisation and channel shuffles stay channels-last.
// CHECK-LABEL: func.func @shuffle(
// CHECK: %[[C:.*]] = burin.conv
// CHECK: %[[S:.*]] = burin.reshape %[[C]] {shape = ["n", 8, 8, 2, 3]}
// CHECK: %[[T:.*]] = burin.transpose %[[S]] {perm = array<i64: 0, 1, 2, 4, 3>}
// CHECK: %[[J:.*]] = burin.reshape %[[T]] {shape = ["n", 8, 8, 6]}
// CHECK: burin.conv %[[J]]
func.func @shuffle(%x: tensor<?x6x8x8xf32, ["n"]>, %w: tensor<6x6x1x1xf32>) -> tensor<?x6x8x8xf32, ["n"]> {
  %c = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x6x8x8xf32, ["n"]>, tensor<6x6x1x1xf32>) -> tensor<?x6x8x8xf32, ["n"]>
  %0 = burin.reshape %c {shape = ["n", 2, 3, 8, 8]} : (tensor<?x6x8x8xf32, ["n"]>) -> tensor<?x2x3x8x8xf32, ["n"]>
  %1 = burin.transpose %0 {perm = array<i64: 0, 2, 1, 3, 4>} : (tensor<?x2x3x8x8xf32, ["n"]>) -> tensor<?x3x2x8x8xf32, ["n"]>
  %2 = burin.reshape %1 {shape = ["n", 6, 8, 8]} : (tensor<?x3x2x8x8xf32, ["n"]>) -> tensor<?x6x8x8xf32, ["n"]>
  %y = burin.conv %2, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x6x8x8xf32, ["n"]>, tensor<6x6x1x1xf32>) -> tensor<?x6x8x8xf32, ["n"]>
  return %y : tensor<?x6x8x8xf32, ["n"]>
}

// Symbolic sizes that are checked to be equal may be renamed between two convolutions.
// CHECK-LABEL: func.func @renamed(
// CHECK: burin.transpose %arg0
// CHECK: %[[C:.*]] = burin.conv
// CHECK: %[[R:.*]] = burin.reshape %[[C]] {shape = [1, "h", "w", 4]}
// CHECK: burin.conv %[[R]]
// CHECK: burin.transpose
// CHECK-NOT: burin.transpose
// CHECK: return
func.func @renamed(%x: tensor<1x4x?x?xf32, ["g", "w"]>, %w2: tensor<4x4x1x1xf32>) -> tensor<1x4x?x?xf32, ["h", "w"]>
    attributes {burin.checks = [["h", "g", "here"]]} {
  %c1 = burin.conv %x, %w2 {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x4x?x?xf32, ["g", "w"]>, tensor<4x4x1x1xf32>) -> tensor<1x4x?x?xf32, ["g", "w"]>
  %r = burin.reshape %c1 {shape = [1, 4, "h", "w"]} : (tensor<1x4x?x?xf32, ["g", "w"]>) -> tensor<1x4x?x?xf32, ["h", "w"]>
  %c2 = burin.conv %r, %w2 {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x4x?x?xf32, ["h", "w"]>, tensor<4x4x1x1xf32>) -> tensor<1x4x?x?xf32, ["h", "w"]>
  return %c2 : tensor<1x4x?x?xf32, ["h", "w"]>
}
