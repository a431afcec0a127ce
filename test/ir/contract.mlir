// RUN: burin-opt %s | FileCheck %s
// RUN: burin-opt %s | burin-opt | FileCheck %s
// RUN: burin-opt --mlir-print-op-generic %s | burin-opt | FileCheck %s

// CHECK-LABEL: func.func @product(
// CHECK-NEXT: burin.contract %arg0, %arg1 : (tensor<4x8xf32>, tensor<1x8x32xf32>) -> tensor<4x5xf32>
func.func @product(%x: tensor<4x8xf32>, %w: tensor<1x8x32xf32>) -> tensor<4x5xf32> {
  %0 = burin.contract %x, %w : (tensor<4x8xf32>, tensor<1x8x32xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// CHECK-LABEL: func.func @window(
// CHECK-NEXT: burin.contract %arg0, %arg1 kernel [3, 3] strides [2, 2] dilations [2, 1] padding [2, 1, 2, 1] wide : (
func.func @window(%x: tensor<9x9x4xbf16>, %w: tensor<1x36x64xbf16>) -> tensor<5x5x7xf32> {
  %0 = burin.contract %x, %w kernel [3, 3] strides [2, 2] dilations [2, 1] padding [2, 1, 2, 1] wide : (tensor<9x9x4xbf16>, tensor<1x36x64xbf16>) -> tensor<5x5x7xf32>
  return %0 : tensor<5x5x7xf32>
}

// CHECK-LABEL: func.func @batch(
// CHECK-NEXT: burin.contract %arg0, %arg1 tail %arg2 batch 1 finite : ({{.*}} {burin.note}
func.func @batch(%x: tensor<?x4x8xf32, ["b"]>, %w: tensor<?x1x8x32xf32, ["b"]>, %t: tensor<?x1x2x8xf32, ["b"]>) -> tensor<?x4x34xf32, ["b"]> {
  %0 = burin.contract %x, %w tail %t batch 1 finite : (tensor<?x4x8xf32, ["b"]>, tensor<?x1x8x32xf32, ["b"]>, tensor<?x1x2x8xf32, ["b"]>) -> tensor<?x4x34xf32, ["b"]> {burin.note}
  return %0 : tensor<?x4x34xf32, ["b"]>
}

// CHECK-LABEL: func.func @symbolic(
// CHECK-NEXT: burin.contract %arg0, %arg1 : (
func.func @symbolic(%x: tensor<4x8xf32>, %w: tensor<?x8x32xf32, ["floordiv(n + 31, 32)"]>) -> tensor<4x?xf32, ["n"]> {
  %0 = burin.contract %x, %w : (tensor<4x8xf32>, tensor<?x8x32xf32, ["floordiv(n + 31, 32)"]>) -> tensor<4x?xf32, ["n"]>
  return %0 : tensor<4x?xf32, ["n"]>
}
