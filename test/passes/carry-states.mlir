// RUN: burin-opt --burin-carry-states %s | FileCheck %s
// RUN: burin-opt --burin-carry-states --burin-fuse --burin-in-place-results %s | FileCheck %s --check-prefix=KERNELS

// Only the last %sum is read, and iterations do nothing with it but add. All states %h are read; %product is not a sum,
// and %twice is read by another op of the body.
// CHECK-LABEL: func.func @main
// CHECK: %[[LOOP:.*]]:4 = burin.scan @body({{.*}}) {burin.carried = array<i64: 1>, {{.*}}} : {{.*}} -> (tensor<6x4xf32>, tensor<1x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>)
// CHECK-NOT: burin.slice %[[LOOP]]#1
// CHECK: return %[[LOOP]]#0, %[[LOOP]]#1,

// The kernel of the sum overwrites the state.
// KERNELS-LABEL: func.func private @body
// KERNELS-SAME: %[[H:[^:]*]]: tensor<1x4xf32>, %[[SUM:[^:]*]]: tensor<1x4xf32>
// KERNELS: burin.kernel {{.*}} = %[[SUM]]{{.*}}in_place = array<i64: {{.*}}[[#]]
func.func @main(%a: tensor<1x4xf32>, %b: tensor<1x4xf32>, %c: tensor<1x4xf32>, %d: tensor<1x4xf32>, %x: tensor<5x4xf32>) -> (tensor<6x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {
  %all:4 = burin.scan @body(%a, %b, %c, %d, %x) {sliced = 1 : i64, parts = [5], states = 4 : i64} : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<5x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>)
  %sum = burin.slice %all#1 {starts = [5, 0], stops = [6, 4], steps = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<1x4xf32>
  %product = burin.slice %all#2 {starts = [5, 0], stops = [6, 4], steps = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<1x4xf32>
  %twice = burin.slice %all#3 {starts = [5, 0], stops = [6, 4], steps = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<1x4xf32>
  return %all#0, %sum, %product, %twice : tensor<6x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
}
func.func private @body(%h: tensor<1x4xf32>, %sum: tensor<1x4xf32>, %product: tensor<1x4xf32>, %twice: tensor<1x4xf32>, %x: tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {
  %0 = burin.exp %x : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %1 = burin.sub %h, %0 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %2 = burin.add %sum, %1 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %3 = burin.mul %product, %0 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %4 = burin.add %twice, %twice : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  return %1, %2, %3, %4 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
}
