// RUN: burin-opt --burin-hoist-loop-sums %s | FileCheck %s

// The sums that the iterations accumulate into %w and %b become one product and one reduction after the loop. Their
// operand %x exists already; the state %h of each iteration becomes a result of the loop.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x2x4xf32, ["t"]>
// CHECK: %[[LOOP:.*]]:2 = burin.scan @loop0(%{{[^,]*}}, %[[X]]) {parts = ["t"], {{.*}}states = 1 : i64} : (tensor<1x2x3xf32>, tensor<?x2x4xf32, ["t"]>) -> (tensor<?x2x3xf32, ["t + 1"]>, tensor<?x1x2x3xf32, ["t"]>)
// CHECK: burin.reshape %[[LOOP]]#1
// CHECK: %[[H:.*]] = burin.reshape %{{.*}} {shape = ["t*2", 3]}
// CHECK: %[[HT:.*]] = burin.transpose %[[H]] {perm = array<i64: 1, 0>}
// CHECK: %[[XS:.*]] = burin.reshape %[[X]] {shape = ["t*2", 4]}
// CHECK: burin.matmul %[[HT]], %[[XS]] {{.*}} -> tensor<3x4xf32>
// CHECK: burin.reduce_sum %[[X]] {axes = array<i64: 0, 1>, keepdims = true}
// CHECK-LABEL: func.func private @loop0
// CHECK-NOT: burin.matmul
// CHECK-NOT: burin.reduce_sum
func.func @main(%x: tensor<?x2x4xf32, ["t"]>, %h: tensor<1x2x3xf32>, %b: tensor<1x1x4xf32>) -> (tensor<?x2x3xf32, ["t + 1"]>, tensor<1x3x4xf32>, tensor<1x1x4xf32>) {
  %w = burin.full {shape = [1, 3, 4], value = 0.0 : f64, dtype = f32} : () -> tensor<1x3x4xf32>
  %all:3 = burin.scan @loop0(%h, %w, %b, %x) {sliced = 1 : i64, parts = ["t"], states = 3 : i64} : (tensor<1x2x3xf32>, tensor<1x3x4xf32>, tensor<1x1x4xf32>, tensor<?x2x4xf32, ["t"]>) -> (tensor<?x2x3xf32, ["t + 1"]>, tensor<?x3x4xf32, ["t + 1"]>, tensor<?x1x4xf32, ["t + 1"]>)
  %lastW = burin.slice %all#1 {starts = ["t", 0, 0], stops = ["t + 1", 3, 4], steps = array<i64: 1, 1, 1>} : (tensor<?x3x4xf32, ["t + 1"]>) -> tensor<1x3x4xf32>
  %lastB = burin.slice %all#2 {starts = ["t", 0, 0], stops = ["t + 1", 1, 4], steps = array<i64: 1, 1, 1>} : (tensor<?x1x4xf32, ["t + 1"]>) -> tensor<1x1x4xf32>
  return %all#0, %lastW, %lastB : tensor<?x2x3xf32, ["t + 1"]>, tensor<1x3x4xf32>, tensor<1x1x4xf32>
}
func.func private @loop0(%h: tensor<1x2x3xf32>, %w: tensor<1x3x4xf32>, %b: tensor<1x1x4xf32>, %x: tensor<1x2x4xf32>) -> (tensor<1x2x3xf32>, tensor<1x3x4xf32>, tensor<1x1x4xf32>) {
  %row = burin.reshape %h {shape = [2, 3]} : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
  %part = burin.reshape %x {shape = [2, 4]} : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %turned = burin.transpose %row {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %product = burin.matmul %turned, %part : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %weight = burin.reshape %w {shape = [3, 4]} : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
  %sum = burin.add %weight, %product : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %nextW = burin.reshape %sum {shape = [1, 3, 4]} : (tensor<3x4xf32>) -> tensor<1x3x4xf32>
  %column = burin.reduce_sum %part {axes = array<i64: 0>, keepdims = true} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %flat = burin.reshape %b {shape = [1, 4]} : (tensor<1x1x4xf32>) -> tensor<1x4xf32>
  %more = burin.add %flat, %column : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %nextB = burin.reshape %more {shape = [1, 1, 4]} : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
  %next = burin.tanh %h : (tensor<1x2x3xf32>) -> tensor<1x2x3xf32>
  return %next, %nextW, %nextB : tensor<1x2x3xf32>, tensor<1x3x4xf32>, tensor<1x1x4xf32>
}

// A state that an iteration reads is kept, and so is one of which earlier values are read.
// CHECK-LABEL: func.func @stays
// CHECK: burin.scan @loop1({{.*}}states = 2
func.func @stays(%x: tensor<5x2x4xf32>, %s: tensor<1x4x4xf32>, %w: tensor<1x4x4xf32>) -> (tensor<1x4x4xf32>, tensor<6x4x4xf32>) {
  %all:2 = burin.scan @loop1(%s, %w, %x) {sliced = 1 : i64, parts = [5], states = 2 : i64} : (tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<5x2x4xf32>) -> (tensor<6x4x4xf32>, tensor<6x4x4xf32>)
  %last = burin.slice %all#0 {starts = [5, 0, 0], stops = [6, 4, 4], steps = array<i64: 1, 1, 1>} : (tensor<6x4x4xf32>) -> tensor<1x4x4xf32>
  return %last, %all#1 : tensor<1x4x4xf32>, tensor<6x4x4xf32>
}
func.func private @loop1(%s: tensor<1x4x4xf32>, %w: tensor<1x4x4xf32>, %x: tensor<1x2x4xf32>) -> (tensor<1x4x4xf32>, tensor<1x4x4xf32>) {
  %part = burin.reshape %x {shape = [2, 4]} : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %turned = burin.transpose %part {perm = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %product = burin.matmul %turned, %part : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %flat = burin.reshape %product {shape = [1, 4, 4]} : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
  %next = burin.add %s, %flat : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %read = burin.mul %s, %w : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %nextW = burin.add %read, %flat : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  return %next, %nextW : tensor<1x4x4xf32>, tensor<1x4x4xf32>
}

// A loop that only accumulates products of its operands is removed.
// CHECK-LABEL: func.func @onlySums
// CHECK-NOT: burin.scan
// CHECK: %[[X:.*]] = burin.reshape %arg0 {shape = [10, 4]}
// CHECK: %[[T:.*]] = burin.transpose %[[X]]
// CHECK: %[[Y:.*]] = burin.reshape %arg1 {shape = [10, 3]}
// CHECK: burin.matmul %[[T]], %[[Y]] : (tensor<4x10xf32>, tensor<10x3xf32>)
// CHECK-NOT: @loop2
func.func @onlySums(%x: tensor<5x2x4xf32>, %y: tensor<5x2x3xf32>) -> tensor<1x4x3xf32> {
  %zero = burin.full {shape = [1, 4, 3], value = 0.0 : f64, dtype = f32} : () -> tensor<1x4x3xf32>
  %all = burin.scan @loop2(%zero, %x, %y) {sliced = 2 : i64, parts = [5], states = 1 : i64} : (tensor<1x4x3xf32>, tensor<5x2x4xf32>, tensor<5x2x3xf32>) -> tensor<6x4x3xf32>
  %last = burin.slice %all {starts = [5, 0, 0], stops = [6, 4, 3], steps = array<i64: 1, 1, 1>} : (tensor<6x4x3xf32>) -> tensor<1x4x3xf32>
  return %last : tensor<1x4x3xf32>
}
func.func private @loop2(%s: tensor<1x4x3xf32>, %x: tensor<1x2x4xf32>, %y: tensor<1x2x3xf32>) -> tensor<1x4x3xf32> {
  %left = burin.reshape %x {shape = [2, 4]} : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %right = burin.reshape %y {shape = [2, 3]} : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
  %turned = burin.transpose %left {perm = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %product = burin.matmul %turned, %right : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %flat = burin.reshape %product {shape = [1, 4, 3]} : (tensor<4x3xf32>) -> tensor<1x4x3xf32>
  %next = burin.add %s, %flat : (tensor<1x4x3xf32>, tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  return %next : tensor<1x4x3xf32>
}
