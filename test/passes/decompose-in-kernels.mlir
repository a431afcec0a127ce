// RUN: burin-opt --burin-decompose-in-kernels %s | FileCheck %s

// CHECK-LABEL: func.func @softmax(
// CHECK: %[[M:.*]] = burin.reduce_max_num %[[X:.*]] {axes = array<i64: 1>, keepdims = true}
// CHECK: %[[MB:.*]] = burin.broadcast_to %[[M]] {shape = ["n", 8]}
// CHECK: %[[D:.*]] = burin.sub %[[X]], %[[MB]]
// CHECK: %[[E:.*]] = burin.exp %[[D]]
// CHECK: %[[S:.*]] = burin.reduce_sum %[[E]] {axes = array<i64: 1>, keepdims = true}
// CHECK: %[[I:.*]] = burin.reciprocal %[[S]]
// CHECK: %[[IB:.*]] = burin.broadcast_to %[[I]]
// CHECK: %[[Y:.*]] = burin.mul %[[E]], %[[IB]]
// CHECK: burin.yield %[[Y]]
func.func @softmax(%x: tensor<?x8xf32, ["n"]>) -> tensor<?x8xf32, ["n"]> {
  %y = burin.kernel(%a = %x) : (tensor<?x8xf32, ["n"]>) -> tensor<?x8xf32, ["n"]> {
    %r = burin.softmax %a {axis = 1 : i64} : (tensor<?x8xf32, ["n"]>) -> tensor<?x8xf32, ["n"]>
    burin.yield %r : tensor<?x8xf32, ["n"]>
  }
  return %y : tensor<?x8xf32, ["n"]>
}

// CHECK-LABEL: func.func @softmax_f16(
// CHECK: burin.cast %{{.*}} {dtype = f32}
// CHECK: burin.reduce_max_num
// CHECK: burin.exp
// CHECK: burin.reduce_sum
// CHECK: burin.reciprocal
// CHECK: %[[Y:.*]] = burin.mul
// CHECK: %[[Z:.*]] = burin.cast %[[Y]] {dtype = f16}
// CHECK: burin.yield %[[Z]]
func.func @softmax_f16(%x: tensor<?x8xf16, ["n"]>) -> tensor<?x8xf16, ["n"]> {
  %y = burin.kernel(%a = %x) : (tensor<?x8xf16, ["n"]>) -> tensor<?x8xf16, ["n"]> {
    %r = burin.softmax %a {axis = 1 : i64} : (tensor<?x8xf16, ["n"]>) -> tensor<?x8xf16, ["n"]>
    burin.yield %r : tensor<?x8xf16, ["n"]>
  }
  return %y : tensor<?x8xf16, ["n"]>
}

// CHECK-LABEL: func.func @log_softmax(
// CHECK: %[[D:.*]] = burin.sub
// CHECK: %[[E:.*]] = burin.exp %[[D]]
// CHECK: %[[S:.*]] = burin.reduce_sum %[[E]]
// CHECK: %[[L:.*]] = burin.log %[[S]]
// CHECK: %[[LB:.*]] = burin.broadcast_to %[[L]]
// CHECK: burin.sub %[[D]], %[[LB]]
func.func @log_softmax(%x: tensor<?x8xf32, ["n"]>) -> tensor<?x8xf32, ["n"]> {
  %y = burin.kernel(%a = %x) : (tensor<?x8xf32, ["n"]>) -> tensor<?x8xf32, ["n"]> {
    %r = burin.log_softmax %a {axis = 1 : i64} : (tensor<?x8xf32, ["n"]>) -> tensor<?x8xf32, ["n"]>
    burin.yield %r : tensor<?x8xf32, ["n"]>
  }
  return %y : tensor<?x8xf32, ["n"]>
}

// CHECK-LABEL: func.func @layer_norm(
// CHECK: %[[M:.*]] = burin.reduce_average %[[X:.*]] {axes = array<i64: 1>, keepdims = true}
// CHECK: %[[MB:.*]] = burin.broadcast_to %[[M]]
// CHECK: %[[C:.*]] = burin.sub %[[X]], %[[MB]]
// CHECK: %[[V:.*]] = burin.reduce_average %[[C]] {axes = array<i64: 1>, keepdims = true, squared = true}
// CHECK: %[[EPS:.*]] = burin.full {{.*}}value = 1.000000e-05
// CHECK: %[[VE:.*]] = burin.add %[[V]], %[[EPS]]
// CHECK: %[[R:.*]] = burin.rsqrt %[[VE]]
// CHECK: %[[RB:.*]] = burin.broadcast_to %[[R]]
// CHECK: %[[N:.*]] = burin.mul %[[C]], %[[RB]]
// CHECK: %[[WB:.*]] = burin.broadcast_to %[[W:.*]] {shape = ["n", 8]} : (tensor<8xf32>)
// CHECK: burin.mul %[[N]], %[[WB]]
func.func @layer_norm(%x: tensor<?x8xf32, ["n"]>, %w: tensor<8xf32>) -> tensor<?x8xf32, ["n"]> {
  %y = burin.kernel(%a = %x, %b = %w) : (tensor<?x8xf32, ["n"]>, tensor<8xf32>) -> tensor<?x8xf32, ["n"]> {
    %r = burin.layer_norm %a, %b {axis = 1 : i64, epsilon = 1.0e-5, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x8xf32, ["n"]>, tensor<8xf32>) -> tensor<?x8xf32, ["n"]>
    burin.yield %r : tensor<?x8xf32, ["n"]>
  }
  return %y : tensor<?x8xf32, ["n"]>
}

// CHECK-LABEL: func.func @layer_norm_bias(
// CHECK: %[[N:.*]] = burin.mul
// CHECK: %[[WB:.*]] = burin.broadcast_to
// CHECK: %[[BB:.*]] = burin.broadcast_to
// CHECK: %[[Y:.*]] = burin.fma %[[N]], %[[WB]], %[[BB]]
// CHECK: burin.yield %[[Y]]
func.func @layer_norm_bias(%x: tensor<?x8xf32, ["n"]>, %w: tensor<8xf32>) -> tensor<?x8xf32, ["n"]> {
  %y = burin.kernel(%a = %x, %b = %w) : (tensor<?x8xf32, ["n"]>, tensor<8xf32>) -> tensor<?x8xf32, ["n"]> {
    %r = burin.layer_norm %a, %b, %b {axis = 1 : i64, epsilon = 1.0e-5, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<?x8xf32, ["n"]>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32, ["n"]>
    burin.yield %r : tensor<?x8xf32, ["n"]>
  }
  return %y : tensor<?x8xf32, ["n"]>
}

// CHECK-LABEL: func.func @rms_norm_f16(
// CHECK: %[[X:.*]] = burin.cast %{{.*}} {dtype = f32}
// CHECK: burin.reduce_average %[[X]] {axes = array<i64: 1>, keepdims = true, squared = true}
// CHECK: %[[N:.*]] = burin.mul %[[X]]
// CHECK: burin.cast %{{.*}} {dtype = f32} : (tensor<8xf16>)
// CHECK: %[[Y:.*]] = burin.mul %[[N]]
// CHECK: burin.cast %[[Y]] {dtype = f16}
func.func @rms_norm_f16(%x: tensor<?x8xf16, ["n"]>, %w: tensor<8xf16>) -> tensor<?x8xf16, ["n"]> {
  %y = burin.kernel(%a = %x, %b = %w) : (tensor<?x8xf16, ["n"]>, tensor<8xf16>) -> tensor<?x8xf16, ["n"]> {
    %r = burin.rms_norm %a, %b {axis = 1 : i64, epsilon = 1.0e-6} : (tensor<?x8xf16, ["n"]>, tensor<8xf16>) -> tensor<?x8xf16, ["n"]>
    burin.yield %r : tensor<?x8xf16, ["n"]>
  }
  return %y : tensor<?x8xf16, ["n"]>
}

// CHECK-LABEL: func.func @reduce_mean(
// CHECK: %[[Y:.*]] = burin.reduce_average %{{.*}} {axes = array<i64: 1>}
// CHECK: burin.yield %[[Y]]
func.func @reduce_mean(%x: tensor<?x8xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  %y = burin.kernel(%a = %x) : (tensor<?x8xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
    %r = burin.reduce_mean %a {axes = array<i64: 1>} : (tensor<?x8xf32, ["n"]>) -> tensor<?xf32, ["n"]>
    burin.yield %r : tensor<?xf32, ["n"]>
  }
  return %y : tensor<?xf32, ["n"]>
}

// CHECK-LABEL: func.func @reduce_var(
// CHECK: %[[C:.*]] = burin.sub
// CHECK: burin.reduce_average %[[C]] {axes = array<i64: 1>, correction = 1 : i64, squared = true}
func.func @reduce_var(%x: tensor<?x8xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  %y = burin.kernel(%a = %x) : (tensor<?x8xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
    %r = burin.reduce_var %a {axes = array<i64: 1>, correction = 1 : i64} : (tensor<?x8xf32, ["n"]>) -> tensor<?xf32, ["n"]>
    burin.yield %r : tensor<?xf32, ["n"]>
  }
  return %y : tensor<?xf32, ["n"]>
}

// CHECK-LABEL: func.func @logsumexp(
// CHECK: %[[M:.*]] = burin.reduce_max_num
// CHECK: %[[I:.*]] = burin.is_inf %[[M]]
// CHECK: %[[Z:.*]] = burin.full {{.*}}value = 0.0
// CHECK: %[[T:.*]] = burin.where %[[I]], %[[Z]], %[[M]]
// CHECK: %[[S:.*]] = burin.reduce_sum
// CHECK: %[[L:.*]] = burin.log %[[S]]
// CHECK: %[[A:.*]] = burin.add %[[L]], %[[T]]
// CHECK: burin.reshape %[[A]] {shape = ["n"]}
func.func @logsumexp(%x: tensor<?x8xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  %y = burin.kernel(%a = %x) : (tensor<?x8xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
    %r = burin.logsumexp %a {axes = array<i64: 1>} : (tensor<?x8xf32, ["n"]>) -> tensor<?xf32, ["n"]>
    burin.yield %r : tensor<?xf32, ["n"]>
  }
  return %y : tensor<?xf32, ["n"]>
}

// Composite ops outside of kernels are kept.
// CHECK-LABEL: func.func @outside(
// CHECK: burin.softmax
func.func @outside(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = burin.softmax %x {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
