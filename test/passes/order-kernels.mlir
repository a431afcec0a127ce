// RUN: burin-opt %s --burin-fuse --burin-in-place-results --burin-order-kernels --burin-in-place-results | FileCheck %s

burin.state @a : tensor<1024xf32> = dense<0.0> : tensor<1024xf32>
burin.state @b : tensor<1024xf32> = dense<0.0> : tensor<1024xf32>

// The first state is updated before the next gradient is computed, so that only one gradient is live.
// CHECK-LABEL: func.func @updates(
// CHECK: burin.kernel "cumsum"
// CHECK: burin.kernel "cumsum"
// CHECK: burin.kernel "sub"{{.*}}in_place
// CHECK: burin.kernel "cumsum"
// CHECK: burin.kernel "sub"{{.*}}in_place
func.func @updates(%x: tensor<1024xf32>, %a: tensor<1024xf32> {burin.state = @a}, %b: tensor<1024xf32> {burin.state = @b})
    -> (tensor<1024xf32> {burin.state = @a}, tensor<1024xf32> {burin.state = @b}) {
  %0 = burin.cumsum %x {axis = 0 : i64} : (tensor<1024xf32>) -> tensor<1024xf32>
  %1 = burin.cumsum %0 {axis = 0 : i64} : (tensor<1024xf32>) -> tensor<1024xf32>
  %2 = burin.cumsum %0 {axis = 0 : i64, reverse = true} : (tensor<1024xf32>) -> tensor<1024xf32>
  %3 = burin.sub %a, %1 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %4 = burin.sub %b, %2 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %3, %4 : tensor<1024xf32>, tensor<1024xf32>
}

// States are written after all steps that can fail.
// CHECK-LABEL: func.func @failing(
// CHECK: burin.kernel "take"
// CHECK: burin.kernel "sub"{{.*}}in_place
func.func @failing(%x: tensor<1024xf32>, %i: tensor<1024xi64>, %a: tensor<1024xf32> {burin.state = @a})
    -> (tensor<1024xf32>, tensor<1024xf32> {burin.state = @a}) {
  %0 = burin.cumsum %x {axis = 0 : i64} : (tensor<1024xf32>) -> tensor<1024xf32>
  %1 = burin.cumsum %0 {axis = 0 : i64} : (tensor<1024xf32>) -> tensor<1024xf32>
  %2 = burin.sub %a, %1 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %3 = burin.take %0, %i : (tensor<1024xf32>, tensor<1024xi64>) -> tensor<1024xf32>
  return %3, %2 : tensor<1024xf32>, tensor<1024xf32>
}

// A value is computed just before its first use.
// CHECK-LABEL: func.func @late(
// CHECK-COUNT-3: burin.kernel "cumsum"
// CHECK: burin.kernel "add"
// CHECK: burin.kernel "transpose"
// CHECK: burin.kernel "cumsum"
func.func @late(%x: tensor<1024xf32>, %y: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = burin.transpose %y {perm = array<i64: 1, 0>} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = burin.cumsum %x {axis = 0 : i64} : (tensor<1024xf32>) -> tensor<1024xf32>
  %2 = burin.cumsum %1 {axis = 0 : i64} : (tensor<1024xf32>) -> tensor<1024xf32>
  %3 = burin.cumsum %1 {axis = 0 : i64, reverse = true} : (tensor<1024xf32>) -> tensor<1024xf32>
  %4 = burin.add %2, %3 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %5 = burin.reshape %4 {shape = [32, 32]} : (tensor<1024xf32>) -> tensor<32x32xf32>
  %6 = burin.cumsum %0 {axis = 0 : i64} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %7 = burin.sub %6, %5 : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %7 : tensor<32x32xf32>
}
