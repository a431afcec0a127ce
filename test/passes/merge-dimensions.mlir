// RUN: burin-opt --burin-merge-dimensions %s | FileCheck %s

// A concatenation joins whole images.
// CHECK-LABEL: func.func @join(
// CHECK: burin.concat %{{.*}} {axis = 1 : i64} : (tensor<2x60xf32>, tensor<2x120xf32>) -> tensor<2x180xf32>
// CHECK: burin.reshape %{{.*}} {shape = [2, 9, 4, 5]}
func.func @join(%x: tensor<2x3x4x5xf32>, %y: tensor<2x6x4x5xf32>) -> tensor<2x9x4x5xf32> {
  %0 = burin.kernel "concat"(%a = %x, %b = %y) : (tensor<2x3x4x5xf32>, tensor<2x6x4x5xf32>) -> tensor<2x9x4x5xf32> {
    %1 = burin.concat %a, %b {axis = 1 : i64} : (tensor<2x3x4x5xf32>, tensor<2x6x4x5xf32>) -> tensor<2x9x4x5xf32>
    burin.yield %1 : tensor<2x9x4x5xf32>
  }
  return %0 : tensor<2x9x4x5xf32>
}

// Positions along merged dimensions may be symbolic. Elementwise operands have the same dimensions.
// CHECK-LABEL: func.func @slice_and_add(
// CHECK: burin.slice %{{.*}} {starts = [0, "h*56"], steps = array<i64: 1, 1>, stops = ["n", "h*168"]}
// CHECK: burin.add %{{.*}} : (tensor<?x?xf32, ["n", "h*112"]>, tensor<?x?xf32, ["n", "h*112"]>)
func.func @slice_and_add(%x: tensor<?x64x?x7xf32, ["n", "h"]>, %y: tensor<?x16x?x7xf32, ["n", "h"]>) -> tensor<?x16x?x7xf32, ["n", "h"]> {
  %0 = burin.kernel "slice+add"(%a = %x, %b = %y) : (tensor<?x64x?x7xf32, ["n", "h"]>, tensor<?x16x?x7xf32, ["n", "h"]>) -> tensor<?x16x?x7xf32, ["n", "h"]> {
    %1 = burin.slice %a {starts = [0, 8, 0, 0], stops = ["n", 24, "h", 7], steps = array<i64: 1, 1, 1, 1>} : (tensor<?x64x?x7xf32, ["n", "h"]>) -> tensor<?x16x?x7xf32, ["n", "h"]>
    %2 = burin.add %1, %b : (tensor<?x16x?x7xf32, ["n", "h"]>, tensor<?x16x?x7xf32, ["n", "h"]>) -> tensor<?x16x?x7xf32, ["n", "h"]>
    burin.yield %2 : tensor<?x16x?x7xf32, ["n", "h"]>
  }
  return %0 : tensor<?x16x?x7xf32, ["n", "h"]>
}

// Zeros before rows are zeros before all elements of an image …
// CHECK-LABEL: func.func @pad_zeros(
// CHECK: burin.pad %{{.*}} {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 10>} : (tensor<6x20xf32>) -> tensor<6x30xf32>
func.func @pad_zeros(%x: tensor<2x3x4x5xf32>) -> tensor<2x3x6x5xf32> {
  %0 = burin.kernel "pad"(%a = %x) : (tensor<2x3x4x5xf32>) -> tensor<2x3x6x5xf32> {
    %1 = burin.pad %a {low = array<i64: 0, 0, 2, 0>, high = array<i64: 0, 0, 0, 0>, interior = array<i64: 0, 0, 0, 0>} : (tensor<2x3x4x5xf32>) -> tensor<2x3x6x5xf32>
    burin.yield %1 : tensor<2x3x6x5xf32>
  }
  return %0 : tensor<2x3x6x5xf32>
}

// … if their number is known …
// CHECK-LABEL: func.func @pad_symbolic_rows(
// CHECK: burin.pad %{{.*}} {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 12, 0>} : (tensor<12x?xf32, ["n"]>) -> tensor<24x?xf32, ["n"]>
func.func @pad_symbolic_rows(%x: tensor<1x4x3x?xf32, ["n"]>) -> tensor<2x4x3x?xf32, ["n"]> {
  %0 = burin.kernel "pad"(%a = %x) : (tensor<1x4x3x?xf32, ["n"]>) -> tensor<2x4x3x?xf32, ["n"]> {
    %1 = burin.pad %a {low = array<i64: 1, 0, 0, 0>, high = array<i64: 0, 0, 0, 0>, interior = array<i64: 0, 0, 0, 0>} : (tensor<1x4x3x?xf32, ["n"]>) -> tensor<2x4x3x?xf32, ["n"]>
    burin.yield %1 : tensor<2x4x3x?xf32, ["n"]>
  }
  return %0 : tensor<2x4x3x?xf32, ["n"]>
}

// … but copies of the first row are not.
// CHECK-LABEL: func.func @pad_edge(
// CHECK: burin.pad %{{.*}} : (tensor<6x4x5xf32>) -> tensor<6x6x5xf32>
func.func @pad_edge(%x: tensor<2x3x4x5xf32>) -> tensor<2x3x6x5xf32> {
  %0 = burin.kernel "pad"(%a = %x) : (tensor<2x3x4x5xf32>) -> tensor<2x3x6x5xf32> {
    %1 = burin.pad %a {low = array<i64: 0, 0, 2, 0>, high = array<i64: 0, 0, 0, 0>, interior = array<i64: 0, 0, 0, 0>, mode = "edge"} : (tensor<2x3x4x5xf32>) -> tensor<2x3x6x5xf32>
    burin.yield %1 : tensor<2x3x6x5xf32>
  }
  return %0 : tensor<2x3x6x5xf32>
}

// Dimensions that are both reversed, or stay neighbours.
// CHECK-LABEL: func.func @flip_and_transpose(
// CHECK: burin.flip %{{.*}} {axes = array<i64: 0, 1>} : (tensor<6x4x5xf32>)
// CHECK: burin.transpose %{{.*}} {perm = array<i64: 1, 2, 0>} : (tensor<6x4x5xf32>) -> tensor<4x5x6xf32>
func.func @flip_and_transpose(%x: tensor<2x3x4x5xf32>) -> tensor<4x5x2x3xf32> {
  %0 = burin.kernel "flip+transpose"(%a = %x) : (tensor<2x3x4x5xf32>) -> tensor<4x5x2x3xf32> {
    %1 = burin.flip %a {axes = array<i64: 0, 1, 2>} : (tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
    %2 = burin.transpose %1 {perm = array<i64: 2, 3, 0, 1>} : (tensor<2x3x4x5xf32>) -> tensor<4x5x2x3xf32>
    burin.yield %2 : tensor<4x5x2x3xf32>
  }
  return %0 : tensor<4x5x2x3xf32>
}

// Dimensions before and behind the axis, those of the indices, and those that a broadcast repeats.
// CHECK-LABEL: func.func @take_and_scale(
// CHECK: burin.take %{{.*}} {axis = 1 : i64} : (tensor<6x9x20xf32>, tensor<42xi64>) -> tensor<6x42x20xf32>
// CHECK: burin.broadcast_to %{{.*}} {shape = [6, 42, 20]} : (tensor<20xf32>)
func.func @take_and_scale(%x: tensor<2x3x9x4x5xf32>, %i: tensor<6x7xi64>, %s: tensor<4x5xf32>) -> tensor<2x3x6x7x4x5xf32> {
  %0 = burin.kernel "take+mul"(%a = %x, %b = %i, %c = %s) : (tensor<2x3x9x4x5xf32>, tensor<6x7xi64>, tensor<4x5xf32>) -> tensor<2x3x6x7x4x5xf32> {
    %1 = burin.take %a, %b {axis = 2 : i64} : (tensor<2x3x9x4x5xf32>, tensor<6x7xi64>) -> tensor<2x3x6x7x4x5xf32>
    %2 = burin.broadcast_to %c {shape = [2, 3, 6, 7, 4, 5]} : (tensor<4x5xf32>) -> tensor<2x3x6x7x4x5xf32>
    %3 = burin.mul %1, %2 : (tensor<2x3x6x7x4x5xf32>, tensor<2x3x6x7x4x5xf32>) -> tensor<2x3x6x7x4x5xf32>
    burin.yield %3 : tensor<2x3x6x7x4x5xf32>
  }
  return %0 : tensor<2x3x6x7x4x5xf32>
}

// A broadcast that repeats one of two dimensions keeps them apart. A view that adds sizes of 1 stays one.
// CHECK-LABEL: func.func @scale_of_channels(
// CHECK: burin.slice %{{.*}} {starts = [0, 4, 0], steps = array<i64: 1, 1, 1>, stops = [2, 8, 20]}
// CHECK: burin.reshape %{{.*}} {shape = [4, 1]} : (tensor<4xf32>) -> tensor<4x1xf32>
// CHECK: burin.broadcast_to %{{.*}} {shape = [2, 4, 20]}
func.func @scale_of_channels(%x: tensor<2x8x4x5xf32>, %s: tensor<4xf32>) -> tensor<2x4x4x5xf32> {
  %0 = burin.kernel "slice+mul"(%a = %x, %b = %s) : (tensor<2x8x4x5xf32>, tensor<4xf32>) -> tensor<2x4x4x5xf32> {
    %1 = burin.slice %a {starts = [0, 4, 0, 0], stops = [2, 8, 4, 5], steps = array<i64: 1, 1, 1, 1>} : (tensor<2x8x4x5xf32>) -> tensor<2x4x4x5xf32>
    %2 = burin.reshape %b {shape = [4, 1, 1]} : (tensor<4xf32>) -> tensor<4x1x1xf32>
    %3 = burin.broadcast_to %2 {shape = [2, 4, 4, 5]} : (tensor<4x1x1xf32>) -> tensor<2x4x4x5xf32>
    %4 = burin.mul %1, %3 : (tensor<2x4x4x5xf32>, tensor<2x4x4x5xf32>) -> tensor<2x4x4x5xf32>
    burin.yield %4 : tensor<2x4x4x5xf32>
  }
  return %0 : tensor<2x4x4x5xf32>
}

// Other ops keep all dimensions.
// CHECK-LABEL: func.func @triangle(
// CHECK: burin.slice %{{.*}} -> tensor<2x3x4x5xf32>
// CHECK: burin.tril %{{.*}} : (tensor<2x3x4x5xf32>)
func.func @triangle(%x: tensor<2x3x8x5xf32>) -> tensor<2x3x4x5xf32> {
  %0 = burin.kernel "slice+tril"(%a = %x) : (tensor<2x3x8x5xf32>) -> tensor<2x3x4x5xf32> {
    %1 = burin.slice %a {starts = [0, 0, 4, 0], stops = [2, 3, 8, 5], steps = array<i64: 1, 1, 1, 1>} : (tensor<2x3x8x5xf32>) -> tensor<2x3x4x5xf32>
    %2 = burin.tril %1 {diagonal = 0 : i64} : (tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
    burin.yield %2 : tensor<2x3x4x5xf32>
  }
  return %0 : tensor<2x3x4x5xf32>
}
