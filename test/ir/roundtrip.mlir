// The printed form parses back: types with symbolic sizes, every kind of attribute, constants, optional operands.
// RUN: burin-opt %s | burin-opt | FileCheck %s
// RUN: burin-opt %s --mlir-print-op-generic | burin-opt | FileCheck %s
// RUN: burin-opt %s --emit-bytecode | burin-opt | FileCheck %s

// CHECK-LABEL: func @symbolic(%arg0: tensor<?x4x?xf32, ["batch", "floordiv(h + 1, 2) - 1"]>)
func.func @symbolic(%x: tensor<?x4x?xf32, ["batch", "floordiv(h + 1, 2) - 1"]>) -> tensor<?x?xf32, ["batch", "floordiv(h + 1, 2)*4 - 4"]> {
  // CHECK: burin.reshape %arg0 {shape = ["batch", "floordiv(h + 1, 2)*4 - 4"]}
  %0 = burin.reshape %x {shape = ["batch", "floordiv(h + 1, 2)*4 - 4"]} : (tensor<?x4x?xf32, ["batch", "floordiv(h + 1, 2) - 1"]>) -> tensor<?x?xf32, ["batch", "floordiv(h + 1, 2)*4 - 4"]>
  return %0 : tensor<?x?xf32, ["batch", "floordiv(h + 1, 2)*4 - 4"]>
}

// CHECK-LABEL: func @attributes
func.func @attributes(%x: tensor<2x3x8x8xf16>, %w: tensor<4x3x3x3xf16>) -> tensor<2x4x4x1xi64> {
  // CHECK: burin.conv %arg0, %arg1 {dilations = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>}
  %0 = burin.conv %x, %w {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x8x8xf16>, tensor<4x3x3x3xf16>) -> tensor<2x4x4x4xf16>
  // CHECK: burin.leaky_relu {{.*}} {negative_slope = 2.000000e-01 : f64}
  %1 = burin.leaky_relu %0 {negative_slope = 0.2} : (tensor<2x4x4x4xf16>) -> tensor<2x4x4x4xf16>
  // CHECK: burin.cast {{.*}} {dtype = f32}
  %2 = burin.cast %1 {dtype = f32} : (tensor<2x4x4x4xf16>) -> tensor<2x4x4x4xf32>
  // CHECK: burin.argmax {{.*}} {axis = 3 : i64, keepdims = true}
  %3 = burin.argmax %2 {axis = 3, keepdims = true} : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x1xi64>
  return %3 : tensor<2x4x4x1xi64>
}

// CHECK-LABEL: func @constants
func.func @constants() -> (tensor<2xf32>, tensor<3xi1>, tensor<2xui8>, tensor<2xi64>) {
  // CHECK: burin.constant {name = "bias"} dense<[1.000000e+00, -2.000000e+00]> : tensor<2xf32>
  %0 = burin.constant {name = "bias"} dense<[1.0, -2.0]> : tensor<2xf32>
  // CHECK: burin.constant dense<[true, false, true]> : tensor<3xi1>
  %1 = burin.constant dense<[true, false, true]> : tensor<3xi1>
  %2 = burin.constant dense<255> : tensor<2xui8>
  // CHECK: burin.constant dense_resource<weight> : tensor<2xi64>
  %3 = burin.constant dense_resource<weight> : tensor<2xi64>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<3xi1>, tensor<2xui8>, tensor<2xi64>
}

// CHECK-LABEL: func @optional
func.func @optional(%x: tensor<2x8xf32>, %w: tensor<8xf32>) -> tensor<2x8xf32> {
  // CHECK: burin.layer_norm %arg0, %arg1 {axis = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 1>}
  %0 = "burin.layer_norm"(%x, %w) <{axis = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 1>}> : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// CHECK-LABEL: func @kernels
func.func @kernels(%x: tensor<?xf32, ["n"]>) -> (tensor<?xf32, ["n"]>, tensor<f32>) {
  // CHECK: %[[R:.*]]:2 = burin.kernel "norm"(%[[A:.*]] = %arg0, %[[B:.*]] = %arg0) : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> (tensor<?xf32, ["n"]>, tensor<f32>) attributes {in_place = array<i64: 1, -1>, note = 1 : i64} {
  %0:2 = burin.kernel "norm"(%a = %x, %b = %x) : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> (tensor<?xf32, ["n"]>, tensor<f32>) attributes {in_place = array<i64: 1, -1>, note = 1} {
    // CHECK: burin.mul %[[A]], %[[B]]
    %1 = burin.mul %a, %b : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
    %2 = burin.reduce_sum %1 {axes = array<i64: 0>} : (tensor<?xf32, ["n"]>) -> tensor<f32>
    // CHECK: burin.yield {{.*}} : tensor<?xf32, ["n"]>, tensor<f32>
    burin.yield %1, %2 : tensor<?xf32, ["n"]>, tensor<f32>
  }
  // CHECK: burin.kernel() : () -> tensor<2xf32> {
  %3 = burin.kernel() : () -> tensor<2xf32> {
    %4 = burin.full {shape = [2], value = 1.0, dtype = f32} : () -> tensor<2xf32>
    burin.yield %4 : tensor<2xf32>
  }
  // CHECK: return %[[R]]#0, %[[R]]#1
  return %0#0, %0#1 : tensor<?xf32, ["n"]>, tensor<f32>
}


// CHECK: burin.state @bn.mean : tensor<2xf32> = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
burin.state @bn.mean : tensor<2xf32> = dense<[1.0, 2.0]> : tensor<2xf32>
// CHECK: burin.state @cache : tensor<4x2xf16>
burin.state @cache : tensor<4x2xf16>

// CHECK: func @states(%arg0: tensor<2xf32>, %arg1: tensor<2xf32> {burin.state = @bn.mean}) -> (tensor<2xf32>, tensor<2xf32> {burin.state = @bn.mean})
func.func @states(%x: tensor<2xf32>, %mean: tensor<2xf32> {burin.state = @bn.mean}) -> (tensor<2xf32>, tensor<2xf32> {burin.state = @bn.mean}) {
  return %mean, %x : tensor<2xf32>, tensor<2xf32>
}

func.func private @less(%i: tensor<i64>, %n: tensor<i64>) -> tensor<i1> {
  %0 = burin.lt %i, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func private @double(%i: tensor<i64>, %n: tensor<i64>) -> tensor<i64> {
  %0 = burin.add %i, %i : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %0 : tensor<i64>
}
func.func private @sum(%i: tensor<i64>, %n: tensor<i64>) -> tensor<i64> {
  %0 = burin.add %i, %n : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %0 : tensor<i64>
}
// CHECK-LABEL: func @control
func.func @control(%p: tensor<i1>, %i: tensor<i64>, %n: tensor<i64>) -> tensor<i64> {
  // CHECK: burin.if %arg0, @double, @sum(%arg1, %arg2) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
  %0 = burin.if %p, @double, @sum(%i, %n) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
  // CHECK: burin.while @less, @double(%{{.*}}, %arg2) {carried = 1 : i64} : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %1 = burin.while @less, @double(%0, %n) {carried = 1 : i64} : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %1 : tensor<i64>
}

{-#
  dialect_resources: {
    builtin: {
      weight: "0x0800000001000000000000000200000000000000"
    }
  }
#-}
