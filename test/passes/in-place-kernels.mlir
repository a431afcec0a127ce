// RUN: burin-opt %s --burin-in-place-results | FileCheck %s

// The buffer of %k is free after the second kernel, whose result has as many elements.

// Pointwise: each element is read where the result is written.
// CHECK-LABEL: func.func @at_its_point(
// CHECK: burin.kernel "second"{{.*}}in_place = array<i64: 0>
func.func @at_its_point(%x: tensor<40xf32>) -> tensor<f32> {
  %k = burin.kernel "first"(%a = %x) : (tensor<40xf32>) -> tensor<40xf32> {
    %0 = burin.exp %a : (tensor<40xf32>) -> tensor<40xf32>
    burin.yield %0 : tensor<40xf32>
  }
  %l = burin.kernel "second"(%a = %k) : (tensor<40xf32>) -> tensor<40xf32> {
    %0 = burin.relu %a : (tensor<40xf32>) -> tensor<40xf32>
    %1 = burin.mul %0, %a : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
    burin.yield %1 : tensor<40xf32>
  }
  %m = burin.kernel "last"(%a = %l) : (tensor<40xf32>) -> tensor<f32> {
    %0 = burin.reduce_sum %a {axes = array<i64: 0>, keepdims = false} : (tensor<40xf32>) -> tensor<f32>
    burin.yield %0 : tensor<f32>
  }
  return %m : tensor<f32>
}

// Each row reads the elements again, by way of a pointwise op.
// CHECK-LABEL: func.func @in_each_row(
// CHECK-NOT: in_place
// CHECK: burin.kernel "last"
func.func @in_each_row(%x: tensor<40xf32>, %y: tensor<8x40xf32>) -> tensor<f32> {
  %k = burin.kernel "first"(%a = %x) : (tensor<40xf32>) -> tensor<40xf32> {
    %0 = burin.exp %a : (tensor<40xf32>) -> tensor<40xf32>
    burin.yield %0 : tensor<40xf32>
  }
  %l:2 = burin.kernel "second"(%a = %k, %b = %y) : (tensor<40xf32>, tensor<8x40xf32>) -> (tensor<40xf32>, tensor<8x40xf32>) {
    %0 = burin.relu %a : (tensor<40xf32>) -> tensor<40xf32>
    %1 = burin.broadcast_to %0 {shape = [8, 40]} : (tensor<40xf32>) -> tensor<8x40xf32>
    %2 = burin.mul %1, %b : (tensor<8x40xf32>, tensor<8x40xf32>) -> tensor<8x40xf32>
    %3 = burin.reduce_sum %2 {axes = array<i64: 0>, keepdims = false} : (tensor<8x40xf32>) -> tensor<40xf32>
    burin.yield %3, %2 : tensor<40xf32>, tensor<8x40xf32>
  }
  %m = burin.kernel "last"(%a = %l#0, %b = %l#1) : (tensor<40xf32>, tensor<8x40xf32>) -> tensor<f32> {
    %0 = burin.broadcast_to %a {shape = [8, 40]} : (tensor<40xf32>) -> tensor<8x40xf32>
    %1 = burin.add %0, %b : (tensor<8x40xf32>, tensor<8x40xf32>) -> tensor<8x40xf32>
    %2 = burin.reduce_sum %1 {axes = array<i64: 0, 1>, keepdims = false} : (tensor<8x40xf32>) -> tensor<f32>
    burin.yield %2 : tensor<f32>
  }
  return %m : tensor<f32>
}
