// RUN: burin-opt %s --burin-fuse --burin-in-place-results | FileCheck %s

// Values that loops carry and that branches return, overwritten or as they are.

burin.state @p : tensor<8xf32> = dense<0.0> : tensor<8xf32>

// The initial %x, an input, is copied to where the body overwrites it; %y alternates, so that it is not.
// CHECK-LABEL: func.func @loop(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8xf32>
// CHECK: %[[COPY:.*]] = burin.kernel "copy"({{.*}} = %[[X]])
// CHECK: burin.while @condition, @body(%[[COPY]], %[[X]])
func.func @loop(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = burin.while @condition, @body(%x, %x) {carried = 2 : i64} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}
func.func private @condition(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<i1> {
  %0 = burin.reduce_sum %x {axes = array<i64: 0>, keepdims = false} : (tensor<8xf32>) -> tensor<f32>
  %1 = burin.full {dtype = f32, shape = [], value = 1.0 : f64} : () -> tensor<f32>
  %2 = burin.lt %0, %1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %2 : tensor<i1>
}
// CHECK-LABEL: func.func private @body(
// CHECK: burin.kernel "exp"{{.*}}in_place = array<i64: 0>
// CHECK: burin.kernel "flip"
// CHECK-NOT: in_place
func.func private @body(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = burin.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = burin.flip %y {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// One branch overwrites the state after the step that can fail, the other one returns it as it is.
// CHECK-LABEL: func.func @branch(
// CHECK: burin.kernel "cumsum"
// CHECK: burin.if {{.*}} @set, @keep({{.*}}burin.in_place = array<i64: 2>
func.func @branch(%c: tensor<i1>, %i: tensor<2xi64>, %p: tensor<8xf32> {burin.state = @p}) -> (tensor<8xf32>, tensor<8xf32> {burin.state = @p}) {
  %0 = burin.if %c, @set, @keep(%i, %p) : (tensor<i1>, tensor<2xi64>, tensor<8xf32>) -> tensor<8xf32>
  %1 = burin.cumsum %p {axis = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %0 : tensor<8xf32>, tensor<8xf32>
}
// CHECK-LABEL: func.func private @set(
// CHECK: burin.kernel "take
// CHECK: burin.kernel {{.*}}in_place = array<i64: {{[01]}}>
func.func private @set(%i: tensor<2xi64>, %p: tensor<8xf32>) -> tensor<8xf32> {
  %0 = burin.take %p, %i : (tensor<8xf32>, tensor<2xi64>) -> tensor<2xf32>
  %1 = burin.cumsum %0 {axis = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  %2 = burin.reduce_sum %1 {axes = array<i64: 0>, keepdims = true} : (tensor<2xf32>) -> tensor<1xf32>
  %3 = burin.broadcast_to %2 {shape = [8]} : (tensor<1xf32>) -> tensor<8xf32>
  %4 = burin.add %p, %3 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}
// CHECK-LABEL: func.func private @keep(
// CHECK: burin.kernel "copy"{{.*}}in_place = array<i64: 0>
func.func private @keep(%i: tensor<2xi64>, %p: tensor<8xf32>) -> tensor<8xf32> {
  return %p : tensor<8xf32>
}

// A branch that reads the state elsewhere needs a second buffer, and so does the other one.
// CHECK-LABEL: func.func @moved(
// CHECK: burin.if
// CHECK-NOT: in_place
// CHECK-LABEL: func.func private @cleared(
// CHECK-NOT: in_place
// CHECK-LABEL: func.func private @flipped(
// CHECK-NOT: in_place
func.func @moved(%c: tensor<i1>, %p: tensor<8xf32> {burin.state = @p}) -> (tensor<8xf32> {burin.state = @p}) {
  %0 = burin.if %c, @cleared, @flipped(%p) : (tensor<i1>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @cleared(%p: tensor<8xf32>) -> tensor<8xf32> {
  %0 = burin.relu %p : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @flipped(%p: tensor<8xf32>) -> tensor<8xf32> {
  %0 = burin.flip %p {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
