// RUN: burin-opt --burin-fuse --burin-verify-kernels %s | FileCheck %s

// Sizes that a run checks to be equal are one size for fusion: a reshape between them keeps the place of each element.

// The halves of a slice with steps of 2 have as many elements if n is even.
// CHECK-LABEL: func.func @halves(
// CHECK: burin.kernel "slice+slice+concat"(%{{[a-z0-9]+}} = %arg0) :
// CHECK-NOT: burin.kernel
func.func @halves(%x: tensor<3x?xf32, ["n"]>) -> tensor<6x?xf32, ["floordiv(n + 1, 2)"]>
    attributes {burin.checks = [["floordiv(n + 1, 2)", "floordiv(min(1, n) + n + 1, 2) - min(1, n)", "halves.cpp:3"]]} {
  %even = burin.slice %x {starts = [0, 0], steps = array<i64: 1, 2>, stops = [3, "n"]}
    : (tensor<3x?xf32, ["n"]>) -> tensor<3x?xf32, ["floordiv(n + 1, 2)"]>
  %odd = burin.slice %x {starts = [0, "min(1, n)"], steps = array<i64: 1, 2>, stops = [3, "n"]}
    : (tensor<3x?xf32, ["n"]>) -> tensor<3x?xf32, ["floordiv(min(1, n) + n + 1, 2) - min(1, n)"]>
  %same = burin.reshape %odd {shape = [3, "floordiv(n + 1, 2)"]}
    : (tensor<3x?xf32, ["floordiv(min(1, n) + n + 1, 2) - min(1, n)"]>) -> tensor<3x?xf32, ["floordiv(n + 1, 2)"]>
  %y = burin.concat %even, %same {axis = 0 : i64}
    : (tensor<3x?xf32, ["floordiv(n + 1, 2)"]>, tensor<3x?xf32, ["floordiv(n + 1, 2)"]>) -> tensor<6x?xf32, ["floordiv(n + 1, 2)"]>
  return %y : tensor<6x?xf32, ["floordiv(n + 1, 2)"]>
}

// Pointwise work and sums on both sides of such a reshape are one kernel, too.
// CHECK-LABEL: func.func @sums(
// CHECK: burin.kernel "exp+add+reduce_sum"
// CHECK-NOT: burin.kernel
func.func @sums(%x: tensor<?x4xf32, ["a"]>, %y: tensor<?x4xf32, ["b"]>) -> tensor<?xf32, ["b"]>
    attributes {burin.checks = [["a", "b", "sums.cpp:3"]]} {
  %e = burin.exp %x : (tensor<?x4xf32, ["a"]>) -> tensor<?x4xf32, ["a"]>
  %r = burin.reshape %e {shape = ["b", 4]} : (tensor<?x4xf32, ["a"]>) -> tensor<?x4xf32, ["b"]>
  %z = burin.add %r, %y : (tensor<?x4xf32, ["b"]>, tensor<?x4xf32, ["b"]>) -> tensor<?x4xf32, ["b"]>
  %s = burin.reduce_sum %z {axes = array<i64: 1>, keepdims = false} : (tensor<?x4xf32, ["b"]>) -> tensor<?xf32, ["b"]>
  return %s : tensor<?xf32, ["b"]>
}

// So are those on both sides of one that also adds a dimension of size 1.
// CHECK-LABEL: func.func @means(
// CHECK: burin.kernel "reduce_mean+sub"
// CHECK-NOT: burin.kernel
func.func @means(%x: tensor<?x4xf32, ["a"]>) -> tensor<?x4xf32, ["b"]>
    attributes {burin.checks = [["a", "b", "means.cpp:3"]]} {
  %mean = burin.reduce_mean %x {axes = array<i64: 1>, keepdims = false} : (tensor<?x4xf32, ["a"]>) -> tensor<?xf32, ["a"]>
  %column = burin.reshape %mean {shape = ["b", 1]} : (tensor<?xf32, ["a"]>) -> tensor<?x1xf32, ["b"]>
  %columns = burin.broadcast_to %column {shape = ["b", 4]} : (tensor<?x1xf32, ["b"]>) -> tensor<?x4xf32, ["b"]>
  %y = burin.reshape %x {shape = ["b", 4]} : (tensor<?x4xf32, ["a"]>) -> tensor<?x4xf32, ["b"]>
  %left = burin.sub %y, %columns : (tensor<?x4xf32, ["b"]>, tensor<?x4xf32, ["b"]>) -> tensor<?x4xf32, ["b"]>
  return %left : tensor<?x4xf32, ["b"]>
}

// Without the check they are not.
// CHECK-LABEL: func.func @unchecked(
// CHECK: burin.kernel "exp"
// CHECK: burin.kernel "add+reduce_sum"
func.func @unchecked(%x: tensor<?x4xf32, ["a"]>, %y: tensor<?x4xf32, ["b"]>) -> tensor<?xf32, ["b"]> {
  %e = burin.exp %x : (tensor<?x4xf32, ["a"]>) -> tensor<?x4xf32, ["a"]>
  %r = burin.reshape %e {shape = ["b", 4]} : (tensor<?x4xf32, ["a"]>) -> tensor<?x4xf32, ["b"]>
  %z = burin.add %r, %y : (tensor<?x4xf32, ["b"]>, tensor<?x4xf32, ["b"]>) -> tensor<?x4xf32, ["b"]>
  %s = burin.reduce_sum %z {axes = array<i64: 1>, keepdims = false} : (tensor<?x4xf32, ["b"]>) -> tensor<?xf32, ["b"]>
  return %s : tensor<?xf32, ["b"]>
}
