// RUN: burin-opt --burin-share-loop-products %s | FileCheck %s

// The second loop runs in the opposite direction and multiplies the same states again: it reuses the products.
// CHECK-LABEL: func.func @main
// CHECK: %[[LOOP:.*]]:2 = burin.scan @loop0
// CHECK-SAME: -> (tensor<?x2x4xf32, ["t + 1"]>, tensor<?x2x4xf32, ["t"]>)
// CHECK: burin.scan @loop1(%{{[^,]*}}, %{{[^,]*}}, %[[LOOP]]#1, %{{[^,]*}}) {{.*}}reverse = true, sliced = 2 : i64
// CHECK-LABEL: func.func private @loop0
// CHECK: %[[PRODUCT:.*]] = burin.matmul
// CHECK: burin.add
// CHECK: %[[ALONE:.*]] = burin.reshape %[[PRODUCT]] {shape = [1, 2, 4]}
// CHECK: return %{{.*}}, %[[ALONE]]
// CHECK-LABEL: func.func private @loop1
// CHECK-NOT: burin.matmul
// CHECK-LABEL: func.func @other
func.func @main(%h: tensor<1x2x4xf32>, %x: tensor<?x2x4xf32, ["t"]>, %w: tensor<4x4xf32>) -> tensor<?x2x4xf32, ["t + 1"]> {
  %all = burin.scan @loop0(%h, %x, %w) {sliced = 1 : i64, parts = ["t"], states = 1 : i64} : (tensor<1x2x4xf32>, tensor<?x2x4xf32, ["t"]>, tensor<4x4xf32>) -> tensor<?x2x4xf32, ["t + 1"]>
  %before = burin.slice %all {starts = [0, 0, 0], stops = ["t", 2, 4], steps = array<i64: 1, 1, 1>} : (tensor<?x2x4xf32, ["t + 1"]>) -> tensor<?x2x4xf32, ["t"]>
  %back = burin.scan @loop1(%h, %before, %w) {sliced = 1 : i64, parts = ["t"], states = 1 : i64, reverse = true} : (tensor<1x2x4xf32>, tensor<?x2x4xf32, ["t"]>, tensor<4x4xf32>) -> tensor<?x2x4xf32, ["t + 1"]>
  return %back : tensor<?x2x4xf32, ["t + 1"]>
}
func.func private @loop0(%h: tensor<1x2x4xf32>, %x: tensor<1x2x4xf32>, %w: tensor<4x4xf32>) -> tensor<1x2x4xf32> {
  %row = burin.reshape %h {shape = [2, 4]} : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %m = burin.matmul %row, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %y = burin.reshape %m {shape = [1, 2, 4]} : (tensor<2x4xf32>) -> tensor<1x2x4xf32>
  %z = burin.add %y, %x : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  return %z : tensor<1x2x4xf32>
}
func.func private @loop1(%g: tensor<1x2x4xf32>, %h: tensor<1x2x4xf32>, %w: tensor<4x4xf32>) -> tensor<1x2x4xf32> {
  %row = burin.reshape %h {shape = [2, 4]} : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %m = burin.matmul %row, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %y = burin.reshape %m {shape = [1, 2, 4]} : (tensor<2x4xf32>) -> tensor<1x2x4xf32>
  %z = burin.mul %y, %g : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  return %z : tensor<1x2x4xf32>
}

// The states after the iterations are different values, and so is another weight.
// CHECK: burin.scan @loop3
// CHECK-SAME: sliced = 1
// CHECK-LABEL: func.func private @loop3
// CHECK: burin.matmul
func.func @other(%h: tensor<1x2x4xf32>, %x: tensor<5x2x4xf32>, %w: tensor<4x4xf32>) -> tensor<6x2x4xf32> {
  %all = burin.scan @loop2(%h, %x, %w) {sliced = 1 : i64, parts = [5], states = 1 : i64} : (tensor<1x2x4xf32>, tensor<5x2x4xf32>, tensor<4x4xf32>) -> tensor<6x2x4xf32>
  %after = burin.slice %all {starts = [1, 0, 0], stops = [6, 2, 4], steps = array<i64: 1, 1, 1>} : (tensor<6x2x4xf32>) -> tensor<5x2x4xf32>
  %back = burin.scan @loop3(%h, %after, %w) {sliced = 1 : i64, parts = [5], states = 1 : i64, reverse = true} : (tensor<1x2x4xf32>, tensor<5x2x4xf32>, tensor<4x4xf32>) -> tensor<6x2x4xf32>
  return %back : tensor<6x2x4xf32>
}
func.func private @loop2(%h: tensor<1x2x4xf32>, %x: tensor<1x2x4xf32>, %w: tensor<4x4xf32>) -> tensor<1x2x4xf32> {
  %row = burin.reshape %h {shape = [2, 4]} : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %m = burin.matmul %row, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %y = burin.reshape %m {shape = [1, 2, 4]} : (tensor<2x4xf32>) -> tensor<1x2x4xf32>
  %z = burin.add %y, %x : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  return %z : tensor<1x2x4xf32>
}
func.func private @loop3(%g: tensor<1x2x4xf32>, %h: tensor<1x2x4xf32>, %w: tensor<4x4xf32>) -> tensor<1x2x4xf32> {
  %row = burin.reshape %h {shape = [2, 4]} : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %m = burin.matmul %row, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %y = burin.reshape %m {shape = [1, 2, 4]} : (tensor<2x4xf32>) -> tensor<1x2x4xf32>
  %z = burin.mul %y, %g : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  return %z : tensor<1x2x4xf32>
}
