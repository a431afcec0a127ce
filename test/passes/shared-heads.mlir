// RUN: burin-opt %s --burin-simplify | FileCheck %s

// Keys and values that are repeated for groups of heads: attention gets a dimension for the groups.
// CHECK-LABEL: @grouped
// CHECK-DAG: %[[Q:.*]] = burin.reshape %arg0 {shape = [2, 2, 3, 1, 8]}
// CHECK-DAG: %[[M:.*]] = burin.reshape %arg3 {shape = [2, 1, 1, 1, "n"]}
// CHECK-DAG: %[[K:.*]] = burin.broadcast_to {{.*}} {shape = [2, 2, 3, "n", 8]}
// CHECK: %[[R:.*]] = burin.scaled_dot_product_attention %[[Q]], %[[K]], {{.*}}, %[[M]] {scale = 5.000000e-01 : f64}
// CHECK: burin.reshape %[[R]] {shape = [2, 6, 1, 8]}
func.func @grouped(%q: tensor<2x6x1x8xf32>, %k: tensor<2x2x?x8xf32, ["n"]>, %v: tensor<2x2x?x8xf32, ["n"]>, %m: tensor<2x1x1x?xf32, ["n"]>) -> tensor<2x6x1x8xf32> {
  %0 = burin.reshape %k {shape = [2, 2, 1, "n", 8]} : (tensor<2x2x?x8xf32, ["n"]>) -> tensor<2x2x1x?x8xf32, ["n"]>
  %1 = burin.broadcast_to %0 {shape = [2, 2, 3, "n", 8]} : (tensor<2x2x1x?x8xf32, ["n"]>) -> tensor<2x2x3x?x8xf32, ["n"]>
  %2 = burin.reshape %1 {shape = [2, 6, "n", 8]} : (tensor<2x2x3x?x8xf32, ["n"]>) -> tensor<2x6x?x8xf32, ["n"]>
  %3 = burin.reshape %v {shape = [2, 2, 1, "n", 8]} : (tensor<2x2x?x8xf32, ["n"]>) -> tensor<2x2x1x?x8xf32, ["n"]>
  %4 = burin.broadcast_to %3 {shape = [2, 2, 3, "n", 8]} : (tensor<2x2x1x?x8xf32, ["n"]>) -> tensor<2x2x3x?x8xf32, ["n"]>
  %5 = burin.reshape %4 {shape = [2, 6, "n", 8]} : (tensor<2x2x3x?x8xf32, ["n"]>) -> tensor<2x6x?x8xf32, ["n"]>
  %6 = burin.scaled_dot_product_attention %q, %2, %5, %m {scale = 0.5 : f64} : (tensor<2x6x1x8xf32>, tensor<2x6x?x8xf32, ["n"]>, tensor<2x6x?x8xf32, ["n"]>, tensor<2x1x1x?xf32, ["n"]>) -> tensor<2x6x1x8xf32>
  return %6 : tensor<2x6x1x8xf32>
}

// Of other heads: they stay.
// CHECK-LABEL: @other
// CHECK: burin.scaled_dot_product_attention %arg0,
func.func @other(%q: tensor<2x6x1x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x6x5x8xf32>) -> tensor<2x6x1x8xf32> {
  %0 = burin.reshape %k {shape = [2, 2, 1, 5, 8]} : (tensor<2x2x5x8xf32>) -> tensor<2x2x1x5x8xf32>
  %1 = burin.broadcast_to %0 {shape = [2, 2, 3, 5, 8]} : (tensor<2x2x1x5x8xf32>) -> tensor<2x2x3x5x8xf32>
  %2 = burin.reshape %1 {shape = [2, 6, 5, 8]} : (tensor<2x2x3x5x8xf32>) -> tensor<2x6x5x8xf32>
  %3 = burin.scaled_dot_product_attention %q, %2, %v : (tensor<2x6x1x8xf32>, tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>) -> tensor<2x6x1x8xf32>
  return %3 : tensor<2x6x1x8xf32>
}
