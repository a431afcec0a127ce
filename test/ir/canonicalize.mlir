// RUN: burin-opt %s --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func @neutral
// CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0
func.func @neutral(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %one = burin.constant dense<1.0> : tensor<2xf32>
  %zero = burin.constant dense<0.0> : tensor<2xf32>
  %negative = burin.constant dense<-0.0> : tensor<2xf32>
  %0 = burin.mul %x, %one : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = burin.div %x, %one : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = burin.sub %x, %zero : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = burin.add %negative, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// Not identities: x + 0 and x - (-0) turn -0 into 0; x * 0 keeps NaN.
// CHECK-LABEL: func @notNeutral
// CHECK: burin.add
// CHECK: burin.sub
// CHECK: burin.mul
func.func @notNeutral(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %zero = burin.constant dense<0.0> : tensor<2xf32>
  %negative = burin.constant dense<-0.0> : tensor<2xf32>
  %0 = burin.add %x, %zero : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = burin.sub %x, %negative : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = burin.mul %x, %zero : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// CHECK-LABEL: func @integers
// CHECK: %[[Z:.*]] = burin.constant dense<0>
// CHECK-NEXT: return %arg0, %[[Z]], %arg0
func.func @integers(%x: tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) {
  %zero = burin.constant dense<0> : tensor<2xi32>
  %0 = burin.add %x, %zero : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %1 = burin.mul %x, %zero : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %2 = burin.floor %x : (tensor<2xi32>) -> tensor<2xi32>
  return %0, %1, %2 : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>
}

// -----

// CHECK-LABEL: func @casts
// CHECK-NEXT: %[[A:.*]] = burin.cast %arg0 {dtype = f64}
// CHECK-NEXT: %[[B:.*]] = burin.cast %arg1 {dtype = f64}
// CHECK-NEXT: %[[C:.*]] = burin.cast %[[B]] {dtype = i8}
// CHECK-NEXT: return %arg0, %[[A]], %[[C]]
func.func @casts(%x: tensor<2xf16>, %y: tensor<2xi32>) -> (tensor<2xf16>, tensor<2xf64>, tensor<2xi8>) {
  %0 = burin.cast %x {dtype = f32} : (tensor<2xf16>) -> tensor<2xf32>
  %1 = burin.cast %0 {dtype = f16} : (tensor<2xf32>) -> tensor<2xf16>
  %2 = burin.cast %0 {dtype = f64} : (tensor<2xf32>) -> tensor<2xf64>
  // The cast saturates by way of f64; a direct cast would wrap.
  %3 = burin.cast %y {dtype = f64} : (tensor<2xi32>) -> tensor<2xf64>
  %4 = burin.cast %3 {dtype = i8} : (tensor<2xf64>) -> tensor<2xi8>
  return %1, %2, %4 : tensor<2xf16>, tensor<2xf64>, tensor<2xi8>
}

// -----

// CHECK-LABEL: func @moves
// CHECK-NEXT: %[[R:.*]] = burin.reshape %arg0 {shape = [4, 3, 2]}
// CHECK-NEXT: %[[T:.*]] = burin.transpose %arg0 {perm = array<i64: 2, 0, 1>}
// CHECK-NEXT: %[[S:.*]] = burin.slice %arg0 {starts = [0, 1, 3], steps = array<i64: 1, 1, 2>, stops = [2, 2, 4]}
// CHECK-NEXT: return %arg0, %[[R]], %[[T]], %arg0, %[[S]], %arg0
func.func @moves(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4x3x2xf32>, tensor<4x2x3xf32>, tensor<2x3x4xf32>, tensor<2x1x1xf32>, tensor<2x3x4xf32>) {
  %0 = burin.reshape %x {shape = [6, 4]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = burin.reshape %0 {shape = [2, 3, 4]} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %2 = burin.reshape %0 {shape = [4, 3, 2]} : (tensor<6x4xf32>) -> tensor<4x3x2xf32>
  %3 = burin.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %4 = burin.transpose %3 {perm = array<i64: 1, 2, 0>} : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  %5 = burin.flip %x {axes = array<i64: 0>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %6 = burin.flip %5 {axes = array<i64: 0>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %7 = burin.slice %x {starts = [0, 1, 1], stops = [2, 3, 4], steps = array<i64: 1, 1, 2>} : (tensor<2x3x4xf32>) -> tensor<2x2x2xf32>
  %8 = burin.slice %7 {starts = [0, 0, 1], stops = [2, 1, 2], steps = array<i64: 1, 1, 1>} : (tensor<2x2x2xf32>) -> tensor<2x1x1xf32>
  %9 = burin.slice %x {starts = [0, 0, 0], stops = [2, 3, 4], steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %1, %2, %4, %6, %8, %9 : tensor<2x3x4xf32>, tensor<4x3x2xf32>, tensor<4x2x3xf32>, tensor<2x3x4xf32>, tensor<2x1x1xf32>, tensor<2x3x4xf32>
}

// -----

// Slices along different axes, with steps over sizes that are not known.
// CHECK-LABEL: func @slices
// CHECK-NEXT: %[[S:.*]] = burin.slice %arg0 {starts = [1, 0], steps = array<i64: 2, 3>, stops = ["n + 1", "m"]}
// CHECK-NEXT: return %[[S]]
func.func @slices(%x: tensor<?x?xf32, ["n + 1", "m"]>) -> tensor<?x?xf32, ["floordiv(n + 1, 2)", "floordiv(m + 2, 3)"]> {
  %0 = burin.slice %x {starts = [1, 0], stops = ["n + 1", "m"], steps = array<i64: 2, 1>} : (tensor<?x?xf32, ["n + 1", "m"]>) -> tensor<?x?xf32, ["floordiv(n + 1, 2)", "m"]>
  %1 = burin.slice %0 {starts = [0, 0], stops = ["floordiv(n + 1, 2)", "m"], steps = array<i64: 1, 3>} : (tensor<?x?xf32, ["floordiv(n + 1, 2)", "m"]>) -> tensor<?x?xf32, ["floordiv(n + 1, 2)", "floordiv(m + 2, 3)"]>
  return %1 : tensor<?x?xf32, ["floordiv(n + 1, 2)", "floordiv(m + 2, 3)"]>
}

// -----

// CHECK-LABEL: func @primitives
// CHECK-NOT: squeeze
// CHECK-NOT: stack
// CHECK-NOT: split
// CHECK-NOT: tile
// CHECK: burin.reshape %arg0 {shape = ["b", 1, 3]}
// CHECK: burin.concat {{.*}} {axis = 1 : i64}
// CHECK: burin.slice {{.*}} {starts = [0, 0], steps = array<i64: 1, 1>, stops = ["b", 1]}
// CHECK: burin.broadcast_to {{.*}} {shape = ["b", 2, 3]}
// CHECK: burin.reshape {{.*}} {shape = ["b", 6]}
func.func @primitives(%x: tensor<?x3xf32, ["b"]>) -> (tensor<?x2x3xf32, ["b"]>, tensor<?xf32, ["b"]>, tensor<?x6xf32, ["b"]>) {
  %0 = burin.stack %x, %x {axis = 1} : (tensor<?x3xf32, ["b"]>, tensor<?x3xf32, ["b"]>) -> tensor<?x2x3xf32, ["b"]>
  %1:2 = burin.split %x {sizes = array<i64: 1, 2>, axis = 1} : (tensor<?x3xf32, ["b"]>) -> (tensor<?x1xf32, ["b"]>, tensor<?x2xf32, ["b"]>)
  %2 = burin.squeeze %1#0 {axes = array<i64: 1>} : (tensor<?x1xf32, ["b"]>) -> tensor<?xf32, ["b"]>
  %3 = burin.tile %x {repeats = array<i64: 1, 2>} : (tensor<?x3xf32, ["b"]>) -> tensor<?x6xf32, ["b"]>
  return %0, %2, %3 : tensor<?x2x3xf32, ["b"]>, tensor<?xf32, ["b"]>, tensor<?x6xf32, ["b"]>
}

// -----

// CHECK-LABEL: func @transposeOfOnes
// CHECK-NEXT: burin.reshape %arg0 {shape = ["b", 1, 4]}
func.func @transposeOfOnes(%x: tensor<1x?x4xf32, ["b"]>) -> tensor<?x1x4xf32, ["b"]> {
  %0 = burin.transpose %x {perm = array<i64: 1, 0, 2>} : (tensor<1x?x4xf32, ["b"]>) -> tensor<?x1x4xf32, ["b"]>
  return %0 : tensor<?x1x4xf32, ["b"]>
}

// -----

// CHECK-LABEL: func @uniform
// CHECK-NEXT: %[[F:.*]] = burin.full {dtype = f32, shape = ["b", 4], value = 2.000000e+00 : f64}
// CHECK-NEXT: return %[[F]]
func.func @uniform() -> tensor<?x4xf32, ["b"]> {
  %0 = burin.full {shape = [], value = 2.0, dtype = f32} : () -> tensor<f32>
  %1 = burin.broadcast_to %0 {shape = ["b", 1, 4]} : (tensor<f32>) -> tensor<?x1x4xf32, ["b"]>
  %2 = burin.reshape %1 {shape = ["b", 4]} : (tensor<?x1x4xf32, ["b"]>) -> tensor<?x4xf32, ["b"]>
  return %2 : tensor<?x4xf32, ["b"]>
}

// -----

// CHECK-LABEL: func @joins
// CHECK-NEXT: burin.concat %arg0, %arg1, %arg0
func.func @joins(%x: tensor<2xf32>, %y: tensor<?xf32, ["n"]>, %empty: tensor<0xf32>) -> tensor<?xf32, ["n + 4"]> {
  %0 = burin.concat %x, %empty, %y {axis = 0} : (tensor<2xf32>, tensor<0xf32>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n + 2"]>
  %1 = burin.concat %0, %x {axis = 0} : (tensor<?xf32, ["n + 2"]>, tensor<2xf32>) -> tensor<?xf32, ["n + 4"]>
  return %1 : tensor<?xf32, ["n + 4"]>
}

// -----

// CHECK-LABEL: func @selection
// CHECK-NEXT: %[[R:.*]] = burin.relu %arg0
// CHECK-NEXT: return %arg1, %arg0, %[[R]], %arg0
func.func @selection(%x: tensor<2xf32>, %y: tensor<2xf32>, %c: tensor<2xi1>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %false = burin.constant dense<false> : tensor<2xi1>
  %0 = burin.where %false, %x, %y : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = burin.where %c, %x, %x : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = burin.relu %x : (tensor<2xf32>) -> tensor<2xf32>
  %3 = burin.relu %2 : (tensor<2xf32>) -> tensor<2xf32>
  %4 = burin.neg %x : (tensor<2xf32>) -> tensor<2xf32>
  %5 = burin.neg %4 : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %3, %5 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// CHECK-LABEL: func @cutAndJoined
// CHECK-NEXT: return %arg0
func.func @cutAndJoined(%x: tensor<?x6xf32, ["n"]>) -> tensor<?x6xf32, ["n"]> {
  %0, %1, %2 = burin.split %x {axis = 1 : i64, sizes = array<i64: 1, 2, 3>} : (tensor<?x6xf32, ["n"]>) -> (tensor<?x1xf32, ["n"]>, tensor<?x2xf32, ["n"]>, tensor<?x3xf32, ["n"]>)
  %3 = burin.concat %0, %1, %2 {axis = 1 : i64} : (tensor<?x1xf32, ["n"]>, tensor<?x2xf32, ["n"]>, tensor<?x3xf32, ["n"]>) -> tensor<?x6xf32, ["n"]>
  return %3 : tensor<?x6xf32, ["n"]>
}

// -----

// CHECK-LABEL: func @cutAndExchanged
// CHECK: %[[A:.*]] = burin.slice
// CHECK-NEXT: %[[B:.*]] = burin.slice
// CHECK-NEXT: burin.concat %[[B]], %[[A]]
func.func @cutAndExchanged(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  %0, %1 = burin.split %x {axis = 1 : i64, sizes = array<i64: 3, 3>} : (tensor<2x6xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %2 = burin.concat %1, %0 {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  return %2 : tensor<2x6xf32>
}

// -----

// The halves are side by side in x, but one below the other in the result.
// CHECK-LABEL: func @joinedAlongAnotherAxis
// CHECK: burin.concat
func.func @joinedAlongAnotherAxis(%x: tensor<2x6xf32>) -> tensor<4x3xf32> {
  %0, %1 = burin.split %x {axis = 1 : i64, sizes = array<i64: 3, 3>} : (tensor<2x6xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %2 = burin.concat %0, %1 {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}

// -----

// The taken branch replaces an if whose condition is constant.
func.func private @double(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = burin.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @second(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %y : tensor<2xf32>
}
// CHECK-LABEL: func @knownBranch
// CHECK-NEXT: %[[SUM:.*]] = burin.add %arg0, %arg0
// CHECK-NEXT: return %[[SUM]], %arg1
func.func @knownBranch(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %true = burin.constant dense<true> : tensor<i1>
  %false = burin.constant dense<false> : tensor<i1>
  %0 = burin.if %true, @double, @second(%x, %y) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = burin.if %false, @double, @second(%x, %y) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
// An unused if is removed.
// CHECK-LABEL: func @unusedBranch
// CHECK-NEXT: return %arg1
func.func @unusedBranch(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = burin.if %p, @double, @second(%x, %x) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %x : tensor<2xf32>
}
