// RUN: burin-opt --burin-share-tied-weights %s | FileCheck %s

// Rows are read from the packed panels of the product if both constants have equal elements.
// CHECK-LABEL: func.func @tied(
// CHECK-COUNT-1: burin.constant
// CHECK-NOT: burin.constant
// CHECK: %[[FLAT:.*]] = burin.reshape {{.*}} {shape = [262144]}
// CHECK: burin.take %[[FLAT]]
func.func @tied(%t: tensor<3xi64>, %x: tensor<2x64xf32>) -> (tensor<3x64xf32>, tensor<2x4096xf32>) {
  %w = burin.constant dense<0.5> : tensor<4096x64xf32>
  %p = burin.constant dense<0.5> : tensor<128x64x32xf32>
  %e = burin.take %w, %t {axis = 0 : i64} : (tensor<4096x64xf32>, tensor<3xi64>) -> tensor<3x64xf32>
  %y = burin.contract %x, %p : (tensor<2x64xf32>, tensor<128x64x32xf32>) -> tensor<2x4096xf32>
  return %e, %y : tensor<3x64xf32>, tensor<2x4096xf32>
}

// Panels of pairs of bf16: 0.5 and 0.5 are 0x3f003f00. The same bytes as bf16 are read.
// CHECK-LABEL: func.func @pairs(
// CHECK-DAG: burin.constant dense<1056980736> : tensor<256x32x32xi32>
// CHECK-DAG: %[[SAME:.*]] = burin.constant dense_resource<{{.*}}> : tensor<524288xbf16>
// CHECK-NOT: burin.constant
// CHECK: burin.take %[[SAME]]
func.func @pairs(%t: tensor<3xi64>, %x: tensor<2x64xbf16>) -> (tensor<3x64xbf16>, tensor<2x8192xbf16>) {
  %w = burin.constant dense<0.5> : tensor<8192x64xbf16>
  %p = burin.constant dense<1056980736> : tensor<256x32x32xi32>
  %e = burin.take %w, %t {axis = 0 : i64} : (tensor<8192x64xbf16>, tensor<3xi64>) -> tensor<3x64xbf16>
  %y = burin.contract %x, %p : (tensor<2x64xbf16>, tensor<256x32x32xi32>) -> tensor<2x8192xbf16>
  return %e, %y : tensor<3x64xbf16>, tensor<2x8192xbf16>
}

// Different elements.
// CHECK-LABEL: func.func @different(
// CHECK-COUNT-2: burin.constant
// CHECK: burin.take %{{.*}}, %arg0
func.func @different(%t: tensor<3xi64>, %x: tensor<2x64xf32>) -> (tensor<3x64xf32>, tensor<2x4096xf32>) {
  %w = burin.constant dense<0.5> : tensor<4096x64xf32>
  %p = burin.constant dense<0.25> : tensor<128x64x32xf32>
  %e = burin.take %w, %t {axis = 0 : i64} : (tensor<4096x64xf32>, tensor<3xi64>) -> tensor<3x64xf32>
  %y = burin.contract %x, %p : (tensor<2x64xf32>, tensor<128x64x32xf32>) -> tensor<2x4096xf32>
  return %e, %y : tensor<3x64xf32>, tensor<2x4096xf32>
}

// Another op reads the whole table, so it must be stored anyway.
// CHECK-LABEL: func.func @read_whole(
// CHECK-COUNT-2: burin.constant
// CHECK: burin.take %{{.*}}, %arg0
func.func @read_whole(%t: tensor<3xi64>, %x: tensor<2x64xf32>) -> (tensor<3x64xf32>, tensor<2x4096xf32>, tensor<4096x64xf32>) {
  %w = burin.constant dense<0.5> : tensor<4096x64xf32>
  %p = burin.constant dense<0.5> : tensor<128x64x32xf32>
  %e = burin.take %w, %t {axis = 0 : i64} : (tensor<4096x64xf32>, tensor<3xi64>) -> tensor<3x64xf32>
  %y = burin.contract %x, %p : (tensor<2x64xf32>, tensor<128x64x32xf32>) -> tensor<2x4096xf32>
  return %e, %y, %w : tensor<3x64xf32>, tensor<2x4096xf32>, tensor<4096x64xf32>
}
