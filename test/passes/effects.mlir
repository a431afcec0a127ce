// RUN: burin-opt --canonicalize --cse --burin-constant-fold --burin-simplify --burin-batch-tiling=least-gain=1 --burin-fuse --burin-in-place-results %s | FileCheck %s

// Prints and host calls are kept, also repeated ones, in the order of recording, and between the kernels that compute
// their operands. A loop without used results is kept if its body prints.
// CHECK-LABEL: func.func @main
// CHECK: burin.debug_print "first"(%arg0)
// CHECK: %[[E:.*]] = burin.kernel "exp"
// CHECK: burin.debug_print "again"(%[[E]])
// CHECK: burin.debug_print "again"(%[[E]])
// CHECK: %[[H:.*]] = burin.host_call 0(%[[E]])
// CHECK: burin.kernel "cumsum"
// CHECK: burin.debug_print "sum"
// CHECK: burin.host_call 1()
// CHECK: burin.while @condition, @body
// CHECK-NOT: burin.while
// CHECK-DAG: burin.debug_print "last"
// CHECK-DAG: burin.kernel "add"(%{{.*}} = %[[H]]
// CHECK-NOT: burin.debug_print
// CHECK: return
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  burin.debug_print "first"(%x) : tensor<8x4xf32>
  %e = burin.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  burin.debug_print "again"(%e) : tensor<8x4xf32>
  burin.debug_print "again"(%e) : tensor<8x4xf32>
  %h = burin.host_call 0(%e) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %c = burin.cumsum %x {axis = 0 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  burin.debug_print "sum"(%c) : tensor<8x4xf32>
  burin.host_call 1() : () -> ()
  %unused = burin.while @condition, @body(%x) {carried = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %silent = burin.while @condition, @silent(%x) {carried = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %y = burin.add %h, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  burin.debug_print "last"(%x) : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
func.func private @condition(%x: tensor<8x4xf32>) -> tensor<i1> {
  %y = burin.constant dense<false> : tensor<i1>
  return %y : tensor<i1>
}
func.func private @body(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %e = burin.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  burin.debug_print "turn"(%e) : tensor<8x4xf32>
  return %e : tensor<8x4xf32>
}
func.func private @silent(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %e = burin.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %e : tensor<8x4xf32>
}
