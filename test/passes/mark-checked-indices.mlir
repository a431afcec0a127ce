// RUN: burin-opt %s --burin-mark-checked-indices | FileCheck %s

// CHECK-LABEL: func.func @checked(
// CHECK: burin.scatter {{.*}}drop = true
func.func @checked(%x: tensor<8x4xf32>, %i: tensor<2x3xi64>, %g: tensor<6x4xf32>) -> (tensor<2x3x4xf32>, tensor<8x4xf32>) {
  %y = burin.take %x, %i : (tensor<8x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %j = burin.reshape %i {shape = [6, 1]} : (tensor<2x3xi64>) -> tensor<6x1xi64>
  %k = burin.broadcast_to %j {shape = [6, 4]} : (tensor<6x1xi64>) -> tensor<6x4xi64>
  %z = burin.scatter %x, %k, %g {reduction = "add"} : (tensor<8x4xf32>, tensor<6x4xi64>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %y, %z : tensor<2x3x4xf32>, tensor<8x4xf32>
}

// The take has a larger table, so its check does not cover the scatter.
// CHECK-LABEL: func.func @another_size(
// CHECK: burin.scatter
// CHECK-NOT: drop = true
func.func @another_size(%w: tensor<9x4xf32>, %x: tensor<8x4xf32>, %i: tensor<6xi64>, %g: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<8x4xf32>) {
  %y = burin.take %w, %i : (tensor<9x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
  %j = burin.reshape %i {shape = [6, 1]} : (tensor<6xi64>) -> tensor<6x1xi64>
  %k = burin.broadcast_to %j {shape = [6, 4]} : (tensor<6x1xi64>) -> tensor<6x4xi64>
  %z = burin.scatter %x, %k, %g {reduction = "add"} : (tensor<8x4xf32>, tensor<6x4xi64>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %y, %z : tensor<6x4xf32>, tensor<8x4xf32>
}

// Positions that are chosen from those of all elements are in range: a take ends the run if its own index is not.
// CHECK-LABEL: func.func @chosen(
// CHECK-COUNT-2: burin.scatter {{.*}}drop = true
func.func @chosen(%x: tensor<12xf32>, %i: tensor<i64>, %g: tensor<4xf32>) -> tensor<12xf32> {
  %p = burin.iota {dtype = i64, shape = [12]} : () -> tensor<12xi64>
  %q = burin.reshape %p {shape = [3, 4]} : (tensor<12xi64>) -> tensor<3x4xi64>
  %r = burin.slice %q {starts = [1, 0], stops = [2, 4], steps = array<i64: 1, 1>} : (tensor<3x4xi64>) -> tensor<1x4xi64>
  %s = burin.reshape %r {shape = [4]} : (tensor<1x4xi64>) -> tensor<4xi64>
  %y = burin.scatter %x, %s, %g : (tensor<12xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<12xf32>
  %t = burin.take %q, %i : (tensor<3x4xi64>, tensor<i64>) -> tensor<4xi64>
  %z = burin.scatter %y, %t, %g : (tensor<12xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<12xf32>
  return %z : tensor<12xf32>
}

// So are constants, if they are.
// CHECK-LABEL: func.func @constant(
// CHECK: burin.scatter {{.*}}drop = true
// CHECK: burin.scatter
// CHECK-NOT: drop = true
// CHECK: burin.scatter
// CHECK-NOT: drop = true
// CHECK: return
func.func @constant(%x: tensor<8xf32>, %g: tensor<2xf32>) -> tensor<8xf32> {
  %i = burin.constant dense<[0, 7]> : tensor<2xi64>
  %j = burin.constant dense<[0, 8]> : tensor<2xi64>
  %k = burin.constant dense<-1> : tensor<2xi64>
  %0 = burin.scatter %x, %i, %g : (tensor<8xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<8xf32>
  %1 = burin.scatter %0, %j, %g : (tensor<8xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<8xf32>
  %2 = burin.scatter %1, %k, %g : (tensor<8xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// There are more positions than elements, or they are computed.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: drop = true
func.func @others(%x: tensor<8xf32>, %g: tensor<9xf32>, %h: tensor<8xf32>) -> tensor<8xf32> {
  %i = burin.iota {dtype = i64, shape = [9]} : () -> tensor<9xi64>
  %j = burin.iota {dtype = i64, shape = [8]} : () -> tensor<8xi64>
  %k = burin.add %j, %j : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi64>
  %0 = burin.scatter %x, %i, %g : (tensor<8xf32>, tensor<9xi64>, tensor<9xf32>) -> tensor<8xf32>
  %1 = burin.scatter %0, %k, %h : (tensor<8xf32>, tensor<8xi64>, tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
