// RUN: burin-opt --burin-lower-contractions --burin-loop-invariant-code-motion %s | FileCheck %s

// A weight that is an input is packed once, outside of the loop, which reads only the packed form.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x1x40xf32{{[^%]*}}%[[W:[^:]*]]: tensor<40x40xf32>
// CHECK: %[[PACKED:.*]] = burin.pack %[[W]]
// CHECK: burin.scan @loop0(%{{[^,]*}}, %[[X]], %[[PACKED]])
// CHECK-LABEL: func.func private @loop0
// CHECK-SAME: tensor<1x1x40xf32>, %{{[^:]*}}: tensor<1x1x40xf32>, %[[P:[^:]*]]: tensor<2x40x32xf32>
// CHECK-NOT: burin.pack
// CHECK: burin.contract
func.func @main(%x: tensor<?x1x40xf32, ["n"]>, %w: tensor<40x40xf32>, %s: tensor<1x1x40xf32>) -> tensor<?x1x40xf32, ["n + 1"]> {
  %h = burin.scan @loop0(%s, %x, %w) {sliced = 1 : i64, parts = ["n"], states = 1 : i64} : (tensor<1x1x40xf32>, tensor<?x1x40xf32, ["n"]>, tensor<40x40xf32>) -> tensor<?x1x40xf32, ["n + 1"]>
  return %h : tensor<?x1x40xf32, ["n + 1"]>
}
func.func private @loop0(%s: tensor<1x1x40xf32>, %x: tensor<1x1x40xf32>, %w: tensor<40x40xf32>) -> tensor<1x1x40xf32> {
  %row = burin.reshape %s {shape = [1, 40]} : (tensor<1x1x40xf32>) -> tensor<1x40xf32>
  %m = burin.matmul %row, %w : (tensor<1x40xf32>, tensor<40x40xf32>) -> tensor<1x40xf32>
  %y = burin.reshape %m {shape = [1, 1, 40]} : (tensor<1x40xf32>) -> tensor<1x1x40xf32>
  %z = burin.add %y, %x : (tensor<1x1x40xf32>, tensor<1x1x40xf32>) -> tensor<1x1x40xf32>
  return %z : tensor<1x1x40xf32>
}
