// RUN: burin-opt --burin-constant-fold="max-bytes=4096 max-cheap-bytes=64" %s | FileCheck %s

// Only the last constant of a chain is kept.
// CHECK-LABEL: func.func @chain(
// CHECK-NEXT: %[[W:.*]] = burin.constant dense<{{\[\[}}2.000000e+00, 8.000000e+00], [4.000000e+00, 1.000000e+01], [6.000000e+00, 1.200000e+01]]> : tensor<3x2xf32>
// CHECK-NEXT: %[[Y:.*]] = burin.matmul %arg0, %[[W]]
// CHECK-NEXT: return %[[Y]]
func.func @chain(%x: tensor<?x3xf32, ["n"]>) -> tensor<?x2xf32, ["n"]> {
  %w = burin.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %t = burin.transpose %w {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %two = burin.full {shape = [3, 2], value = 2.0, dtype = f32} : () -> tensor<3x2xf32>
  %s = burin.mul %t, %two : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %y = burin.matmul %x, %s : (tensor<?x3xf32, ["n"]>, tensor<3x2xf32>) -> tensor<?x2xf32, ["n"]>
  return %y : tensor<?x2xf32, ["n"]>
}

// A folded constant is named after the weights that it is computed from.
// CHECK-LABEL: func.func @names(
// CHECK-DAG: burin.constant {name = "fc.weight (packed)"} dense<
// CHECK-DAG: burin.constant {name = "conv.weight+norm.weight"} dense<[3.000000e+00, 8.000000e+00]>
// CHECK-DAG: burin.constant dense<[8.000000e+00, 1.000000e+01]>
// CHECK-DAG: burin.constant {name = "a+b+c+d+..."} dense<3.500000e+01>
func.func @names() -> (tensor<1x2x32xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>) {
  %fc = burin.constant {name = "fc.weight"} dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %t = burin.transpose %fc {perm = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %p = burin.pack %t {width = 32 : i64} : (tensor<2x3xf32>) -> tensor<1x2x32xf32>
  %conv = burin.constant {name = "conv.weight"} dense<[1.0, 2.0]> : tensor<2xf32>
  %norm = burin.constant {name = "norm.weight"} dense<[1.5, 2.0]> : tensor<2xf32>
  %c1 = burin.mul %conv, %norm : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %two = burin.constant dense<[2.0, 2.0]> : tensor<2xf32>
  %c2 = burin.mul %c1, %two : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %four = burin.constant dense<[4.0, 5.0]> : tensor<2xf32>
  %u = burin.mul %four, %two : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %n1 = burin.constant {name = "a"} dense<5.0> : tensor<1xf32>
  %n2 = burin.constant {name = "b"} dense<6.0> : tensor<1xf32>
  %n3 = burin.constant {name = "c"} dense<7.0> : tensor<1xf32>
  %n4 = burin.constant {name = "d"} dense<8.0> : tensor<1xf32>
  %n5 = burin.constant {name = "e"} dense<9.0> : tensor<1xf32>
  %s1 = burin.add %n1, %n2 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %s2 = burin.add %s1, %n3 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %s3 = burin.add %s2, %n4 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %s4 = burin.add %s3, %n5 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  return %p, %c2, %u, %s4 : tensor<1x2x32xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>
}

// A broadcast is free where it is used, so only its operand is folded.
// CHECK-LABEL: func.func @broadcast(
// CHECK-NEXT: %[[B:.*]] = burin.constant dense<[3.000000e+00, 4.000000e+00]> : tensor<2xf32>
// CHECK-NEXT: burin.broadcast_to %[[B]]
func.func @broadcast(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %c = burin.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %two = burin.full {shape = [2], value = 2.0, dtype = f32} : () -> tensor<2xf32>
  %b = burin.add %c, %two : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r = burin.broadcast_to %b {shape = [2, 2]} : (tensor<2xf32>) -> tensor<2x2xf32>
  %y = burin.add %x, %r : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// A cheap op whose result is larger than its operands is not folded; the exponentials are.
// CHECK-LABEL: func.func @cheap(
// CHECK: burin.ge
// CHECK: %[[C:.*]] = burin.constant
// CHECK-NEXT: return %{{.*}}, %[[C]]
func.func @cheap() -> (tensor<16x16xi1>, tensor<16x16xf32>) {
  %i = burin.iota {shape = [16, 16], dtype = i32} : () -> tensor<16x16xi32>
  %j = burin.iota {shape = [16, 16], dtype = i32, axis = 1 : i64} : () -> tensor<16x16xi32>
  %m = burin.ge %i, %j : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
  %f = burin.cast %j {dtype = f32} : (tensor<16x16xi32>) -> tensor<16x16xf32>
  %e = burin.exp %f : (tensor<16x16xf32>) -> tensor<16x16xf32>
  return %m, %e : tensor<16x16xi1>, tensor<16x16xf32>
}

// A result above max-bytes is not folded.
// CHECK-LABEL: func.func @large(
// CHECK: burin.exp
func.func @large() -> tensor<64x64xf32> {
  %f = burin.iota {shape = [64, 64], dtype = f32} : () -> tensor<64x64xf32>
  %e = burin.exp %f : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// Products of f32 are rounded to f32, which cannot represent 16777217.
// CHECK-LABEL: func.func @rounds(
// CHECK: burin.constant dense<0.000000e+00>
func.func @rounds() -> tensor<f32> {
  %a = burin.constant dense<16777216.0> : tensor<f32>
  %b = burin.constant dense<1.0> : tensor<f32>
  %s = burin.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %d = burin.sub %s, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %d : tensor<f32>
}

// Random numbers are drawn when the graph runs.
// CHECK-LABEL: func.func @random(
// CHECK: burin.random_uniform
func.func @random() -> tensor<2xf32> {
  %x = burin.random_uniform {shape = [2], seed = 1 : i64, dtype = f32} : () -> tensor<2xf32>
  return %x : tensor<2xf32>
}
