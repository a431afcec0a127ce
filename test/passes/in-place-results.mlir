// RUN: burin-opt %s --burin-fuse --burin-in-place-results | FileCheck %s

// The new value of a state overwrites the old one if nothing reads the old one later and no later step can fail.

burin.state @weight : tensor<4xf32> = dense<0.0> : tensor<4xf32>
burin.state @cache : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>

// The update is moved after the readers of the old value.
// CHECK-LABEL: func.func @reader(
// CHECK: burin.kernel "cumsum"
// CHECK: burin.kernel "sub"{{.*}}in_place = array<i64: {{[01]}}>
func.func @reader(%g: tensor<4xf32>, %w: tensor<4xf32> {burin.state = @weight})
    -> (tensor<4xf32>, tensor<4xf32> {burin.state = @weight}) {
  %new = burin.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = burin.cumsum %w {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %y, %new : tensor<4xf32>, tensor<4xf32>
}

// The update is moved after steps that can fail: a failed run must leave the state unchanged.
// CHECK-LABEL: func.func @failing(
// CHECK: burin.kernel "take"
// CHECK: burin.kernel "sub"{{.*}}in_place
func.func @failing(%g: tensor<4xf32>, %x: tensor<3xf32>, %i: tensor<2xi64>, %w: tensor<4xf32> {burin.state = @weight})
    -> (tensor<2xf32>, tensor<4xf32> {burin.state = @weight}) {
  %new = burin.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = burin.take %x, %i : (tensor<3xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %y, %new : tensor<2xf32>, tensor<4xf32>
}

// The step that can fail needs the new value, so that the update cannot be moved.
// CHECK-LABEL: func.func @needed(
// CHECK-NOT: in_place
func.func @needed(%g: tensor<4xf32>, %i: tensor<2xi64>, %w: tensor<4xf32> {burin.state = @weight})
    -> (tensor<2xf32>, tensor<4xf32> {burin.state = @weight}) {
  %new = burin.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = burin.take %new, %i : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %y, %new : tensor<2xf32>, tensor<4xf32>
}

// A result that is the old value is copied first.
// CHECK-LABEL: func.func @kept(
// CHECK: burin.kernel "copy"
// CHECK: burin.kernel "sub"{{.*}}in_place
func.func @kept(%g: tensor<4xf32>, %w: tensor<4xf32> {burin.state = @weight})
    -> (tensor<4xf32>, tensor<4xf32> {burin.state = @weight}) {
  %new = burin.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %w, %new : tensor<4xf32>, tensor<4xf32>
}

// Rows of a cache are written in place if their indices cannot be out of range.
// CHECK-LABEL: func.func @rows(
// CHECK: burin.kernel "scatter"{{.*}}in_place = array<i64: 0>
func.func @rows(%i: tensor<2x4xi64>, %x: tensor<2x4xf32>, %c: tensor<8x4xf32> {burin.state = @cache})
    -> (tensor<8xf32>, tensor<8x4xf32> {burin.state = @cache}) {
  %new = burin.scatter %c, %i, %x {drop = true} : (tensor<8x4xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %y = burin.reduce_sum %new {axes = array<i64: 1>, keepdims = false} : (tensor<8x4xf32>) -> tensor<8xf32>
  return %y, %new : tensor<8xf32>, tensor<8x4xf32>
}
// CHECK-LABEL: func.func @wrong_rows(
// CHECK-NOT: in_place
func.func @wrong_rows(%i: tensor<2x4xi64>, %x: tensor<2x4xf32>, %c: tensor<8x4xf32> {burin.state = @cache})
    -> (tensor<8xf32>, tensor<8x4xf32> {burin.state = @cache}) {
  %new = burin.scatter %c, %i, %x : (tensor<8x4xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %y = burin.reduce_sum %new {axes = array<i64: 1>, keepdims = false} : (tensor<8x4xf32>) -> tensor<8xf32>
  return %y, %new : tensor<8xf32>, tensor<8x4xf32>
}

// A result does not overwrite what the kernel reads again at another place: here in reverse, by way of a pointwise op.
// CHECK-LABEL: func.func @moved(
// CHECK: burin.kernel "relu+flip+add"
// CHECK-NOT: in_place
// CHECK: burin.kernel "cumsum"
func.func @moved(%x: tensor<40xf32>) -> tensor<40xf32> {
  %w = burin.cumsum %x {axis = 0 : i64} : (tensor<40xf32>) -> tensor<40xf32>
  %r = burin.relu %w : (tensor<40xf32>) -> tensor<40xf32>
  %f = burin.flip %r {axes = array<i64: 0>} : (tensor<40xf32>) -> tensor<40xf32>
  %z = burin.add %f, %r : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %y = burin.cumsum %z {axis = 0 : i64} : (tensor<40xf32>) -> tensor<40xf32>
  return %y : tensor<40xf32>
}
