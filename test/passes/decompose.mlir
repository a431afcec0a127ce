// RUN: burin-opt --burin-decompose %s | FileCheck %s

// Only in f64: other types have an attention kernel.
// CHECK-LABEL: func.func @attention(
// CHECK: %[[Q:.*]] = burin.mul %arg0
// CHECK: %[[KT:.*]] = burin.transpose %arg1 {perm = array<i64: 0, 2, 1>}
// CHECK: %[[S:.*]] = burin.matmul %[[Q]], %[[KT]]
// CHECK: %[[LOW:.*]] = burin.full {{.*}}value = 0xFFF0000000000000
// CHECK: %[[SEEN:.*]] = burin.ge
// CHECK: %[[SEENB:.*]] = burin.broadcast_to %[[SEEN]]
// CHECK: %[[C:.*]] = burin.where %[[SEENB]], %[[S]], %[[LOW]]
// CHECK: %[[MASK:.*]] = burin.broadcast_to %arg3
// CHECK: %[[M:.*]] = burin.where %[[MASK]], %[[C]], %[[LOW]]
// CHECK: %[[P:.*]] = burin.softmax %[[M]] {axis = 2 : i64}
// CHECK: %[[TOP:.*]] = burin.reduce_max %[[M]]
// CHECK: %[[BLIND:.*]] = burin.eq %[[TOP]]
// CHECK: %[[B:.*]] = burin.broadcast_to %[[BLIND]]
// CHECK: %[[W:.*]] = burin.where %[[B]], %{{.*}}, %[[P]]
// CHECK: %[[Y:.*]] = burin.matmul %[[W]], %arg2
// CHECK: return %[[Y]]
func.func @attention(%q: tensor<2x?x4xf64, ["l"]>, %k: tensor<2x?x4xf64, ["s"]>, %v: tensor<2x?x6xf64, ["s"]>, %m: tensor<?x?xi1, ["l", "s"]>) -> tensor<2x?x6xf64, ["l"]> {
  %y = burin.scaled_dot_product_attention %q, %k, %v, %m {is_causal = true} : (tensor<2x?x4xf64, ["l"]>, tensor<2x?x4xf64, ["s"]>, tensor<2x?x6xf64, ["s"]>, tensor<?x?xi1, ["l", "s"]>) -> tensor<2x?x6xf64, ["l"]>
  return %y : tensor<2x?x6xf64, ["l"]>
}

// CHECK-LABEL: func.func @dot(
// CHECK: %[[L:.*]] = burin.transpose %arg0 {perm = array<i64: 1, 0, 2>}
// CHECK: %[[R:.*]] = burin.transpose %arg1 {perm = array<i64: 2, 0, 1>}
// CHECK: burin.matmul %[[L]], %[[R]]
func.func @dot(%x: tensor<3x2x5xf32>, %y: tensor<5x7x2xf32>) -> tensor<2x3x7xf32> {
  %r = burin.dot_general %x, %y {lhs_batch = array<i64: 1>, rhs_batch = array<i64: 2>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<3x2x5xf32>, tensor<5x7x2xf32>) -> tensor<2x3x7xf32>
  return %r : tensor<2x3x7xf32>
}

// CHECK-LABEL: func.func @bn(
// CHECK: burin.rsqrt
// CHECK: %[[X:.*]] = burin.cast %arg0 {dtype = f32}
// CHECK: %[[SX:.*]] = burin.mul %[[X]]
// CHECK: %[[Y:.*]] = burin.add %[[SX]]
// CHECK: burin.cast %[[Y]] {dtype = f16}
func.func @bn(%x: tensor<?x4x5xf16, ["n"]>, %w: tensor<4xf16>) -> tensor<?x4x5xf16, ["n"]> {
  %r = burin.batch_norm %x, %w, %w, %w, %w {epsilon = 1.0e-5} : (tensor<?x4x5xf16, ["n"]>, tensor<4xf16>, tensor<4xf16>, tensor<4xf16>, tensor<4xf16>) -> tensor<?x4x5xf16, ["n"]>
  return %r : tensor<?x4x5xf16, ["n"]>
}

// CHECK-LABEL: func.func @gn(
// CHECK: %[[X:.*]] = burin.reshape %arg0 {shape = ["n", 2, 2, "l"]}
// CHECK: burin.reduce_mean %[[X]] {axes = array<i64: 2, 3>, keepdims = true}
// CHECK: %[[C:.*]] = burin.sub %[[X]]
// CHECK: %[[Q:.*]] = burin.mul %[[C]], %[[C]]
// CHECK: burin.reduce_mean %[[Q]]
// CHECK: burin.rsqrt
// CHECK: burin.reshape %{{.*}} {shape = ["n", 4, "l"]}
func.func @gn(%x: tensor<?x4x?xf32, ["n", "l"]>, %w: tensor<4xf32>) -> tensor<?x4x?xf32, ["n", "l"]> {
  %r = burin.group_norm %x, %w, %w {epsilon = 1.0e-5, groups = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<?x4x?xf32, ["n", "l"]>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4x?xf32, ["n", "l"]>
  return %r : tensor<?x4x?xf32, ["n", "l"]>
}

// CHECK-LABEL: func.func @in(
// CHECK: burin.reduce_mean %arg0 {axes = array<i64: 2>, keepdims = true}
// CHECK: burin.rsqrt
func.func @in(%x: tensor<?x4x?xf32, ["n", "l"]>, %w: tensor<4xf32>) -> tensor<?x4x?xf32, ["n", "l"]> {
  %r = burin.instance_norm %x, %w {epsilon = 1.0e-5, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x4x?xf32, ["n", "l"]>, tensor<4xf32>) -> tensor<?x4x?xf32, ["n", "l"]>
  return %r : tensor<?x4x?xf32, ["n", "l"]>
}

// CHECK-LABEL: func.func @scalar(
// CHECK: %[[X:.*]] = burin.reshape %arg0 {shape = [1]}
// CHECK: burin.reduce_sum %[[X]] {axes = array<i64: 0>}
func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  %r = burin.reduce_sum %x : (tensor<f32>) -> tensor<f32>
  %s = burin.squeeze %r : (tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}

// A take at regularly spaced indices becomes a slice, with a broadcast for repeated elements.
// CHECK-LABEL: func.func @regular_take(
// CHECK-NOT: burin.take
// CHECK: burin.broadcast_to {{.*}} -> tensor<2x3x2xf32>
// CHECK: burin.slice {{.*}}stops = [2, 5]
// CHECK: burin.slice {{.*}}starts = [0, 1]
// CHECK-NOT: burin.take
func.func @regular_take(%x: tensor<2x3xf32>, %y: tensor<2x9xf32>) -> (tensor<2x5xf32>, tensor<2x3xf32>) {
  %i = burin.constant dense<[0, 0, 1, 1, 2]> : tensor<5xi64>
  %0 = burin.take %x, %i {axis = 1 : i64} : (tensor<2x3xf32>, tensor<5xi64>) -> tensor<2x5xf32>
  %j = burin.constant dense<[1, 4, 7]> : tensor<3xi64>
  %1 = burin.take %y, %j {axis = 1 : i64} : (tensor<2x9xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  return %0, %1 : tensor<2x5xf32>, tensor<2x3xf32>
}

// A take at irregular or out-of-range indices is kept.
// CHECK-LABEL: func.func @other_takes(
// CHECK-COUNT-2: burin.take
func.func @other_takes(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x4xf32>) {
  %i = burin.constant dense<[0, 1, 1]> : tensor<3xi64>
  %0 = burin.take %x, %i {axis = 1 : i64} : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  %j = burin.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %1 = burin.take %x, %j {axis = 1 : i64} : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<2x4xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x4xf32>
}
