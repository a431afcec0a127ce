// RUN: burin-opt --burin-fuse --burin-decompose-in-kernels --burin-verify-kernels %s | FileCheck %s

// Reductions of two tensors over the same rows, one of them composite, become one kernel.
// CHECK-LABEL: func.func @two_tensors(
// CHECK: burin.kernel "softmax+reduce_sum+mul"
// CHECK-NOT: burin.kernel
func.func @two_tensors(%x: tensor<4x5xf32>, %y: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %s = burin.softmax %x {axis = 0} : (tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = burin.reduce_sum %y {axes = array<i64: 0>, keepdims = true} : (tensor<4x5xf32>) -> tensor<1x5xf32>
  %b = burin.broadcast_to %r {shape = [4, 5]} : (tensor<1x5xf32>) -> tensor<4x5xf32>
  %z = burin.mul %s, %b : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  return %z : tensor<4x5xf32>
}

// CHECK-LABEL: func.func @one_element(
// CHECK: burin.kernel "softmax+reduce_sum+mul"
// CHECK-NOT: burin.kernel
func.func @one_element(%x: tensor<1x1xf32>, %y: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %s = burin.softmax %x {axis = 0} : (tensor<1x1xf32>) -> tensor<1x1xf32>
  %r = burin.reduce_sum %y {axes = array<i64: 0>, keepdims = true} : (tensor<1x1xf32>) -> tensor<1x1xf32>
  %z = burin.mul %s, %r : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  return %z : tensor<1x1xf32>
}

// Relative positions: an iota that is indexed by two dimensions is repeated for each.
// CHECK-LABEL: func.func @relative_positions(
// CHECK: burin.kernel "sub"
// CHECK-COUNT-2: burin.iota
// CHECK-NOT: burin.kernel
func.func @relative_positions(%x: tensor<?xf32, ["n"]>) -> tensor<?x?xi64, ["n", "n"]> {
  %i = burin.iota {shape = ["n"], dtype = i64} : () -> tensor<?xi64, ["n"]>
  %column = burin.unsqueeze %i {axes = array<i64: 1>} : (tensor<?xi64, ["n"]>) -> tensor<?x1xi64, ["n"]>
  %row = burin.unsqueeze %i {axes = array<i64: 0>} : (tensor<?xi64, ["n"]>) -> tensor<1x?xi64, ["n"]>
  %a = burin.broadcast_to %column {shape = ["n", "n"]} : (tensor<?x1xi64, ["n"]>) -> tensor<?x?xi64, ["n", "n"]>
  %b = burin.broadcast_to %row {shape = ["n", "n"]} : (tensor<1x?xi64, ["n"]>) -> tensor<?x?xi64, ["n", "n"]>
  %z = burin.sub %a, %b : (tensor<?x?xi64, ["n", "n"]>, tensor<?x?xi64, ["n", "n"]>) -> tensor<?x?xi64, ["n", "n"]>
  return %z : tensor<?x?xi64, ["n", "n"]>
}

// A slice reads elements of %d, which is computed from the result of a reduction: that needs memory between them.
// CHECK-LABEL: func.func @slice_of_sums(
// CHECK: burin.kernel "reduce_sum+add"
// CHECK: burin.kernel "sub+slice+mul"
// CHECK-NOT: burin.kernel
func.func @slice_of_sums(%x: tensor<1x40xf32>, %y: tensor<2x40xf32>) -> tensor<1x40xf32> {
  %s = burin.reduce_sum %x {axes = array<i64: 1>, keepdims = true} : (tensor<1x40xf32>) -> tensor<1x1xf32>
  %b = burin.broadcast_to %s {shape = [1, 40]} : (tensor<1x1xf32>) -> tensor<1x40xf32>
  %a = burin.add %x, %b : (tensor<1x40xf32>, tensor<1x40xf32>) -> tensor<1x40xf32>
  %rows = burin.broadcast_to %a {shape = [2, 40]} : (tensor<1x40xf32>) -> tensor<2x40xf32>
  %d = burin.sub %rows, %y : (tensor<2x40xf32>, tensor<2x40xf32>) -> tensor<2x40xf32>
  %p = burin.slice %d {starts = [1, 0], steps = array<i64: 1, 1>, stops = [2, 40]} : (tensor<2x40xf32>) -> tensor<1x40xf32>
  %z = burin.mul %p, %a : (tensor<1x40xf32>, tensor<1x40xf32>) -> tensor<1x40xf32>
  return %z : tensor<1x40xf32>
}
