// RUN: burin-opt %s --burin-check-indices-early | FileCheck %s
// RUN: burin-opt %s --burin-check-indices-early --burin-fuse --burin-in-place-results | FileCheck %s --check-prefix=KERNELS
// RUN: burin-opt %s --burin-fuse --burin-in-place-results | FileCheck %s --check-prefix=LATE

burin.state @sum : tensor<4xf32> = dense<0.0> : tensor<4xf32>

// An element is picked from what is computed from the new state. Its index is checked first, so the state is set in
// place.
// CHECK-LABEL: func.func @picked(
// CHECK-NEXT: %[[ONE:.*]] = burin.constant
// CHECK-NEXT: %[[I:.*]] = burin.sub
// CHECK-NEXT: %[[ALL:.*]] = burin.iota {{.*}}dtype = i64, shape = [4]
// CHECK-NEXT: %[[T:.*]] = burin.take %[[ALL]], %[[I]] {burin.error = "an index of take is out of range along axis 0"}
// CHECK: burin.take %{{.*}}, %[[T]] {burin.checked}
// KERNELS-LABEL: func.func @picked(
// KERNELS: burin.kernel "sub+take"
// KERNELS: burin.kernel "add"{{.*}}in_place = array<i64: 1>
// KERNELS: burin.kernel "take"
// LATE-LABEL: func.func @picked(
// LATE: burin.kernel "add"
// LATE-NOT: in_place
// LATE: return
func.func @picked(%y: tensor<4xf32>, %n: tensor<2xi64>, %sum: tensor<4xf32> {burin.state = @sum}) -> (tensor<2xf32>, tensor<4xf32> {burin.state = @sum}) {
  %0 = burin.add %y, %sum : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = burin.cumsum %0 {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %one = burin.constant dense<1> : tensor<2xi64>
  %i = burin.sub %n, %one : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %2 = burin.take %1, %i : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %2, %0 : tensor<2xf32>, tensor<4xf32>
}

// The elements that are checked are those before they are repeated; a scatter writes only what is in range.
// CHECK-LABEL: func.func @repeated(
// CHECK: %[[I:.*]] = burin.sub
// CHECK: %[[ALL:.*]] = burin.iota {{.*}}dtype = i32, shape = [8]
// CHECK: %[[T:.*]] = burin.take %[[ALL]], %[[I]] {burin.error = "an index of gather is out of range along axis 0"}
// CHECK: burin.reshape %[[T]]
// CHECK: burin.error = "an index of scatter is out of range along axis 0"
// CHECK: burin.softmax
// CHECK: burin.gather {{.*}}burin.checked
// CHECK: burin.scatter {{.*}}drop = true
func.func @repeated(%x: tensor<8x4xf32>, %n: tensor<2xi32>, %one: tensor<2xi32>, %g: tensor<2x4xf32>, %sum: tensor<4xf32> {burin.state = @sum}) -> (tensor<2x4xf32>, tensor<8x4xf32>, tensor<4xf32> {burin.state = @sum}) {
  %0 = burin.softmax %x {axis = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = burin.sub %n, %one : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %2 = burin.reshape %1 {shape = [2, 1]} : (tensor<2xi32>) -> tensor<2x1xi32>
  %3 = burin.broadcast_to %2 {shape = [2, 4]} : (tensor<2x1xi32>) -> tensor<2x4xi32>
  %4 = burin.gather %0, %3 : (tensor<8x4xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %5 = burin.scatter %0, %3, %g : (tensor<8x4xf32>, tensor<2x4xi32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %6 = burin.exp %sum : (tensor<4xf32>) -> tensor<4xf32>
  return %4, %5, %6 : tensor<2x4xf32>, tensor<8x4xf32>, tensor<4xf32>
}

// Computed late; of an argument, so that the check is early anyway; in a function that sets no state.
// CHECK-LABEL: func.func @late(
// CHECK-NOT: burin.error
func.func @late(%x: tensor<8x4xf32>, %sum: tensor<4xf32> {burin.state = @sum}) -> (tensor<8xf32>, tensor<4xf32> {burin.state = @sum}) {
  %0 = burin.softmax %x {axis = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = burin.argmax %0 {axis = 1 : i64} : (tensor<8x4xf32>) -> tensor<8xi64>
  %2 = burin.take %sum, %1 : (tensor<4xf32>, tensor<8xi64>) -> tensor<8xf32>
  %3 = burin.exp %sum : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %3 : tensor<8xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @argument(
// CHECK-NOT: burin.error
func.func @argument(%x: tensor<8x4xf32>, %i: tensor<2xi64>, %sum: tensor<4xf32> {burin.state = @sum}) -> (tensor<2x4xf32>, tensor<4xf32> {burin.state = @sum}) {
  %0 = burin.take %x, %i : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %1 = burin.exp %sum : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @stateless(
// CHECK-NOT: burin.error
func.func @stateless(%x: tensor<8x4xf32>, %i: tensor<2xi64>) -> tensor<2x4xf32> {
  %0 = burin.softmax %x {axis = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = burin.take %0, %i : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
