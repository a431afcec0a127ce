// RUN: burin-opt --burin-mark-partial-sorts %s | FileCheck %s

// CHECK-LABEL: func.func @first(
// CHECK: burin.argsort {{.*}}burin.first = 10
func.func @first(%x: tensor<?x1000xf32, ["n"]>) -> (tensor<?x10xi64, ["n"]>, tensor<?x3xi64, ["n"]>) {
  %i = burin.argsort %x {axis = 1 : i64} : (tensor<?x1000xf32, ["n"]>) -> tensor<?x1000xi64, ["n"]>
  %j = burin.slice %i {starts = [0, 0], stops = ["n", 10], steps = array<i64: 1, 1>} : (tensor<?x1000xi64, ["n"]>) -> tensor<?x10xi64, ["n"]>
  %k = burin.slice %i {starts = [0, 0], stops = ["n", 3], steps = array<i64: 1, 1>} : (tensor<?x1000xi64, ["n"]>) -> tensor<?x3xi64, ["n"]>
  return %j, %k : tensor<?x10xi64, ["n"]>, tensor<?x3xi64, ["n"]>
}

// Not partial: all elements are read, or the last ones, or most of them.
// CHECK-LABEL: func.func @all(
// CHECK-NOT: burin.first
func.func @all(%x: tensor<1000xf32>) -> (tensor<10xi64>, tensor<1000xi64>, tensor<10xi64>, tensor<500xi64>) {
  %i = burin.argsort %x {axis = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xi64>
  %j = burin.slice %i {starts = [0], stops = [10], steps = array<i64: 1>} : (tensor<1000xi64>) -> tensor<10xi64>
  %y = burin.neg %x : (tensor<1000xf32>) -> tensor<1000xf32>
  %l = burin.argsort %y {axis = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xi64>
  %m = burin.slice %l {starts = [990], stops = [1000], steps = array<i64: 1>} : (tensor<1000xi64>) -> tensor<10xi64>
  %z = burin.abs %x : (tensor<1000xf32>) -> tensor<1000xf32>
  %n = burin.argsort %z {axis = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xi64>
  %o = burin.slice %n {starts = [0], stops = [500], steps = array<i64: 1>} : (tensor<1000xi64>) -> tensor<500xi64>
  return %j, %i, %m, %o : tensor<10xi64>, tensor<1000xi64>, tensor<10xi64>, tensor<500xi64>
}
