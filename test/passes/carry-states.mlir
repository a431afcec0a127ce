// RUN: burin-opt --burin-carry-states %s | FileCheck %s
// RUN: burin-opt --burin-carry-states --burin-fuse --burin-in-place-results %s | FileCheck %s --check-prefix=KERNELS

// All states %h are read; of the others only the last one.
// CHECK-LABEL: func.func @main
// CHECK: %[[LOOP:.*]]:4 = burin.scan @body({{.*}}) {burin.carried = array<i64: 1, 2, 3>, {{.*}}} : {{.*}} -> (tensor<6x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
// CHECK-NOT: burin.slice
// CHECK: return %[[LOOP]]#0, %[[LOOP]]#1, %[[LOOP]]#2, %[[LOOP]]#3 :

// The kernels of the sum and of the product overwrite the states. %h is kept, so that it is not overwritten.
// KERNELS-LABEL: func.func private @body
// KERNELS-SAME: %[[H:[^:]*]]: tensor<1x4xf32>, %[[SUM:[^:]*]]: tensor<1x4xf32>, %[[PRODUCT:[^:]*]]: tensor<1x4xf32>
// KERNELS: burin.kernel "exp+sub+add+mul"({{[^=]*}} = {{[^=]*}} = %[[H]], {{[^=]*}} = %[[SUM]], {{[^=]*}} = %[[PRODUCT]]){{.*}}in_place = array<i64: -1, 2, 3>
// KERNELS: burin.kernel "add"{{.*}}in_place = array<i64: 0>
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

// Both kernels run over the state %x: the second one overwrites what the first one has written over it. %y is read at
// other places, so that it has a second buffer. The reader of the old %z runs before it is overwritten.
// KERNELS-LABEL: func.func private @steps
// KERNELS-SAME: %[[X:[^:]*]]: tensor<1x4xf32>, %[[Y:[^:]*]]: tensor<1x4xf32>, %[[Z:[^:]*]]: tensor<1x4xf32>
// KERNELS: %[[SET:.*]] = burin.kernel "scatter"({{[^=]*}} = %[[X]], {{.*}}in_place = array<i64: 0>
// KERNELS: burin.kernel "exp"({{[^=]*}} = %[[SET]]){{.*}}in_place = array<i64: 0>
// KERNELS: burin.kernel "flip"({{[^=]*}} = %[[Y]]) : (tensor<1x4xf32>) -> tensor<1x4xf32> {
// KERNELS: burin.kernel "cumsum"({{[^=]*}} = %[[Z]]) : (tensor<1x4xf32>) -> tensor<1x4xf32> {
// KERNELS: burin.kernel "exp"({{[^=]*}} = %[[Z]]){{.*}}in_place = array<i64: 0>
func.func @chain(%a: tensor<1x4xf32>, %x: tensor<5x4xf32>, %i: tensor<1x4xi64>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<5x4xf32>) {
  %all:4 = burin.scan @steps(%a, %a, %a, %x, %i) {sliced = 1 : i64, parts = [5], states = 3 : i64} : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<5x4xf32>, tensor<1x4xi64>) -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<5x4xf32>)
  %0 = burin.slice %all#0 {starts = [5, 0], stops = [6, 4], steps = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<1x4xf32>
  %1 = burin.slice %all#1 {starts = [5, 0], stops = [6, 4], steps = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<1x4xf32>
  %2 = burin.slice %all#2 {starts = [5, 0], stops = [6, 4], steps = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<1x4xf32>
  return %0, %1, %2, %all#3 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<5x4xf32>
}
func.func private @steps(%x: tensor<1x4xf32>, %y: tensor<1x4xf32>, %z: tensor<1x4xf32>, %e: tensor<1x4xf32>, %i: tensor<1x4xi64>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {
  %0 = burin.scatter %x, %i, %e {axis = 1 : i64} : (tensor<1x4xf32>, tensor<1x4xi64>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %1 = burin.exp %0 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %2 = burin.flip %y {axes = array<i64: 1>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %3 = burin.exp %z : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %4 = burin.cumsum %z {axis = 1 : i64} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %1, %2, %3, %4 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
}
