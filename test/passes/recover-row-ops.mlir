// RUN: burin-opt --burin-simplify --canonicalize %s | FileCheck %s
// SimplifyTest.cpp also runs these functions before and after the pass.

!t = tensor<2x3x8xf32>
!r = tensor<2x3x1xf32>
!v = tensor<8xf32>
!s = tensor<?x8xf32, ["n"]>

// CHECK-LABEL: func.func @softmax(
// CHECK-NEXT: %[[Y:.*]] = burin.softmax %arg0 {axis = 2 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @softmax(%x: !t) -> !t {
  %0 = burin.reduce_max %x {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (!r) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.exp %2 : (!t) -> !t
  %4 = burin.reduce_sum %3 {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %5 = burin.broadcast_to %4 {shape = [2, 3, 8]} : (!r) -> !t
  %6 = burin.div %3, %5 : (!t, !t) -> !t
  return %6 : !t
}

// CHECK-LABEL: func.func @softmax_inner_axis(
// CHECK-NEXT: %[[Y:.*]] = burin.softmax %arg0 {axis = 1 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @softmax_inner_axis(%x: !t) -> !t {
  %0 = burin.reduce_max %x {axes = array<i64: 1>, keepdims = true} : (!t) -> tensor<2x1x8xf32>
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (tensor<2x1x8xf32>) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.exp %2 : (!t) -> !t
  %4 = burin.reduce_sum %3 {axes = array<i64: 1>, keepdims = true} : (!t) -> tensor<2x1x8xf32>
  %5 = burin.broadcast_to %4 {shape = [2, 3, 8]} : (tensor<2x1x8xf32>) -> !t
  %6 = burin.div %3, %5 : (!t, !t) -> !t
  return %6 : !t
}

// CHECK-LABEL: func.func @softmax_dropped_dimension(
// CHECK-NEXT: %[[Y:.*]] = burin.softmax %arg0 {axis = 2 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @softmax_dropped_dimension(%x: !t) -> !t {
  %0 = burin.reduce_max %x {axes = array<i64: 2>} : (!t) -> tensor<2x3xf32>
  %1 = burin.reshape %0 {shape = [2, 3, 1]} : (tensor<2x3xf32>) -> !r
  %2 = burin.broadcast_to %1 {shape = [2, 3, 8]} : (!r) -> !t
  %3 = burin.sub %x, %2 : (!t, !t) -> !t
  %4 = burin.exp %3 : (!t) -> !t
  %5 = burin.reduce_sum %4 {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %6 = burin.broadcast_to %5 {shape = [2, 3, 8]} : (!r) -> !t
  %7 = burin.div %4, %6 : (!t, !t) -> !t
  return %7 : !t
}

// CHECK-LABEL: func.func @softmax_sum_over_other_axis(
// CHECK-NOT: burin.softmax
// CHECK: burin.div
func.func @softmax_sum_over_other_axis(%x: !t) -> !t {
  %0 = burin.reduce_max %x {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (!r) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.exp %2 : (!t) -> !t
  %4 = burin.reduce_sum %3 {axes = array<i64: 1>, keepdims = true} : (!t) -> tensor<2x1x8xf32>
  %5 = burin.broadcast_to %4 {shape = [2, 3, 8]} : (tensor<2x1x8xf32>) -> !t
  %6 = burin.div %3, %5 : (!t, !t) -> !t
  return %6 : !t
}

// CHECK-LABEL: func.func @softmax_two_axes(
// CHECK-NOT: burin.softmax
// CHECK: burin.div
func.func @softmax_two_axes(%x: !t) -> !t {
  %0 = burin.reduce_max %x {axes = array<i64: 1, 2>, keepdims = true} : (!t) -> tensor<2x1x1xf32>
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (tensor<2x1x1xf32>) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.exp %2 : (!t) -> !t
  %4 = burin.reduce_sum %3 {axes = array<i64: 1, 2>, keepdims = true} : (!t) -> tensor<2x1x1xf32>
  %5 = burin.broadcast_to %4 {shape = [2, 3, 8]} : (tensor<2x1x1xf32>) -> !t
  %6 = burin.div %3, %5 : (!t, !t) -> !t
  return %6 : !t
}

// CHECK-LABEL: func.func @softmax_numerator_used_elsewhere(
// CHECK-NOT: burin.softmax
// CHECK: burin.div
func.func @softmax_numerator_used_elsewhere(%x: !t) -> (!t, !t) {
  %0 = burin.reduce_max %x {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (!r) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.exp %2 : (!t) -> !t
  %4 = burin.reduce_sum %3 {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %5 = burin.broadcast_to %4 {shape = [2, 3, 8]} : (!r) -> !t
  %6 = burin.div %3, %5 : (!t, !t) -> !t
  return %6, %3 : !t, !t
}

// The maximum of each row, broadcast along the columns.
// CHECK-LABEL: func.func @softmax_maxima_along_the_wrong_axis(
// CHECK-NOT: burin.softmax
// CHECK: burin.div
func.func @softmax_maxima_along_the_wrong_axis(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = burin.reduce_max %x {axes = array<i64: 1>} : (tensor<3x3xf32>) -> tensor<3xf32>
  %1 = burin.broadcast_to %0 {shape = [3, 3]} : (tensor<3xf32>) -> tensor<3x3xf32>
  %2 = burin.sub %x, %1 : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %3 = burin.exp %2 : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %4 = burin.reduce_sum %3 {axes = array<i64: 1>, keepdims = true} : (tensor<3x3xf32>) -> tensor<3x1xf32>
  %5 = burin.broadcast_to %4 {shape = [3, 3]} : (tensor<3x1xf32>) -> tensor<3x3xf32>
  %6 = burin.div %3, %5 : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %6 : tensor<3x3xf32>
}

// PyTorch's export.
// CHECK-LABEL: func.func @layer_norm_onnx(
// CHECK-NEXT: %[[Y:.*]] = burin.layer_norm %arg0, %arg1, %arg2 {axis = 2 : i64, epsilon = 9.99{{[0-9]+}}E-6 : f64
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm_onnx(%x: !t, %w: !v, %b: !v) -> !t {
  %0 = burin.reduce_mean %x {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (!r) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.constant dense<2.0> : tensor<2x3x8xf32>
  %4 = burin.pow %2, %3 : (!t, !t) -> !t
  %5 = burin.reduce_mean %4 {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %6 = burin.full {shape = [2, 3, 1], value = 1.0e-5, dtype = f32} : () -> !r
  %7 = burin.add %5, %6 : (!r, !r) -> !r
  %8 = burin.sqrt %7 : (!r) -> !r
  %9 = burin.broadcast_to %8 {shape = [2, 3, 8]} : (!r) -> !t
  %10 = burin.div %2, %9 : (!t, !t) -> !t
  %11 = burin.broadcast_to %w {shape = [2, 3, 8]} : (!v) -> !t
  %12 = burin.mul %11, %10 : (!t, !t) -> !t
  %13 = burin.broadcast_to %b {shape = [2, 3, 8]} : (!v) -> !t
  %14 = burin.add %12, %13 : (!t, !t) -> !t
  return %14 : !t
}

// CHECK-LABEL: func.func @layer_norm_rsqrt(
// CHECK-NEXT: %[[Y:.*]] = burin.layer_norm %arg0, %arg1, %arg2 
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm_rsqrt(%x: !t, %w: !v, %b: !v) -> !t {
  %0 = burin.reduce_mean %x {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (!r) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.mul %2, %2 : (!t, !t) -> !t
  %4 = burin.reduce_mean %3 {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %5 = burin.full {shape = [2, 3, 1], value = 1.0e-5, dtype = f32} : () -> !r
  %6 = burin.add %5, %4 : (!r, !r) -> !r
  %7 = burin.rsqrt %6 : (!r) -> !r
  %8 = burin.broadcast_to %7 {shape = [2, 3, 8]} : (!r) -> !t
  %9 = burin.mul %2, %8 : (!t, !t) -> !t
  %10 = burin.broadcast_to %w {shape = [2, 3, 8]} : (!v) -> !t
  %11 = burin.mul %10, %9 : (!t, !t) -> !t
  %12 = burin.broadcast_to %b {shape = [2, 3, 8]} : (!v) -> !t
  %13 = burin.add %11, %12 : (!t, !t) -> !t
  return %13 : !t
}

// CHECK-LABEL: func.func @layer_norm_var_pow(
// CHECK-NEXT: %[[Y:.*]] = burin.layer_norm %arg0, %arg1, %arg2 
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm_var_pow(%x: !t, %w: !v, %b: !v) -> !t {
  %0 = burin.reduce_mean %x {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (!r) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.reduce_var %x {axes = array<i64: 2>, keepdims = true, correction = 0 : i64} : (!t) -> !r
  %4 = burin.full {shape = [2, 3, 1], value = 1.0e-5, dtype = f32} : () -> !r
  %5 = burin.full {shape = [2, 3, 1], value = -0.5, dtype = f32} : () -> !r
  %6 = burin.add %3, %4 : (!r, !r) -> !r
  %7 = burin.pow %6, %5 : (!r, !r) -> !r
  %8 = burin.broadcast_to %7 {shape = [2, 3, 8]} : (!r) -> !t
  %9 = burin.mul %8, %2 : (!t, !t) -> !t
  %10 = burin.broadcast_to %w {shape = [2, 3, 8]} : (!v) -> !t
  %11 = burin.mul %10, %9 : (!t, !t) -> !t
  %12 = burin.broadcast_to %b {shape = [2, 3, 8]} : (!v) -> !t
  %13 = burin.add %11, %12 : (!t, !t) -> !t
  return %13 : !t
}

// CHECK-LABEL: func.func @layer_norm_two_axes(
// CHECK-NEXT: %[[Y:.*]] = burin.layer_norm %arg0 {axis = 1 : i64
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm_two_axes(%x: !t) -> !t {
  %0 = burin.reduce_mean %x {axes = array<i64: 1, 2>, keepdims = true} : (!t) -> tensor<2x1x1xf32>
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (tensor<2x1x1xf32>) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.constant dense<2.0> : tensor<2x3x8xf32>
  %4 = burin.pow %2, %3 : (!t, !t) -> !t
  %5 = burin.reduce_mean %4 {axes = array<i64: 1, 2>, keepdims = true} : (!t) -> tensor<2x1x1xf32>
  %6 = burin.full {shape = [2, 1, 1], value = 1.0e-5, dtype = f32} : () -> tensor<2x1x1xf32>
  %7 = burin.add %5, %6 : (tensor<2x1x1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %8 = burin.sqrt %7 : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %9 = burin.broadcast_to %8 {shape = [2, 3, 8]} : (tensor<2x1x1xf32>) -> !t
  %10 = burin.div %2, %9 : (!t, !t) -> !t
  return %10 : !t
}

// CHECK-LABEL: func.func @norm_over_inner_axis(
// CHECK-NOT: layer_norm
// CHECK-NOT: rms_norm
// CHECK: return
func.func @norm_over_inner_axis(%x: !t) -> !t {
  %0 = burin.reduce_mean %x {axes = array<i64: 1>, keepdims = true} : (!t) -> tensor<2x1x8xf32>
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (tensor<2x1x8xf32>) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.constant dense<2.0> : tensor<2x3x8xf32>
  %4 = burin.pow %2, %3 : (!t, !t) -> !t
  %5 = burin.reduce_mean %4 {axes = array<i64: 1>, keepdims = true} : (!t) -> tensor<2x1x8xf32>
  %6 = burin.full {shape = [2, 1, 8], value = 1.0e-5, dtype = f32} : () -> tensor<2x1x8xf32>
  %7 = burin.add %5, %6 : (tensor<2x1x8xf32>, tensor<2x1x8xf32>) -> tensor<2x1x8xf32>
  %8 = burin.sqrt %7 : (tensor<2x1x8xf32>) -> tensor<2x1x8xf32>
  %9 = burin.broadcast_to %8 {shape = [2, 3, 8]} : (tensor<2x1x8xf32>) -> !t
  %10 = burin.div %2, %9 : (!t, !t) -> !t
  return %10 : !t
}

// CHECK-LABEL: func.func @norm_epsilon_outside(
// CHECK-NOT: layer_norm
// CHECK-NOT: rms_norm
// CHECK: return
func.func @norm_epsilon_outside(%x: !t) -> !t {
  %0 = burin.reduce_mean %x {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (!r) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.constant dense<2.0> : tensor<2x3x8xf32>
  %4 = burin.pow %2, %3 : (!t, !t) -> !t
  %5 = burin.reduce_mean %4 {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %6 = burin.full {shape = [2, 3, 1], value = 1.0e-5, dtype = f32} : () -> !r
  %7 = burin.sqrt %5 : (!r) -> !r
  %8 = burin.add %7, %6 : (!r, !r) -> !r
  %9 = burin.broadcast_to %8 {shape = [2, 3, 8]} : (!r) -> !t
  %10 = burin.div %2, %9 : (!t, !t) -> !t
  return %10 : !t
}

// CHECK-LABEL: func.func @norm_unbiased_variance(
// CHECK-NOT: layer_norm
// CHECK-NOT: rms_norm
// CHECK: return
func.func @norm_unbiased_variance(%x: !t) -> !t {
  %0 = burin.reduce_mean %x {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (!r) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.reduce_var %x {axes = array<i64: 2>, keepdims = true, correction = 1 : i64} : (!t) -> !r
  %4 = burin.full {shape = [2, 3, 1], value = 1.0e-5, dtype = f32} : () -> !r
  %5 = burin.add %3, %4 : (!r, !r) -> !r
  %6 = burin.sqrt %5 : (!r) -> !r
  %7 = burin.broadcast_to %6 {shape = [2, 3, 8]} : (!r) -> !t
  %8 = burin.div %2, %7 : (!t, !t) -> !t
  return %8 : !t
}

// CHECK-LABEL: func.func @norm_centered_used_elsewhere(
// CHECK-NOT: layer_norm
// CHECK-NOT: rms_norm
// CHECK: return
func.func @norm_centered_used_elsewhere(%x: !t) -> (!t, !t) {
  %0 = burin.reduce_mean %x {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (!r) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.constant dense<2.0> : tensor<2x3x8xf32>
  %4 = burin.pow %2, %3 : (!t, !t) -> !t
  %5 = burin.reduce_mean %4 {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %6 = burin.full {shape = [2, 3, 1], value = 1.0e-5, dtype = f32} : () -> !r
  %7 = burin.add %5, %6 : (!r, !r) -> !r
  %8 = burin.sqrt %7 : (!r) -> !r
  %9 = burin.broadcast_to %8 {shape = [2, 3, 8]} : (!r) -> !t
  %10 = burin.div %2, %9 : (!t, !t) -> !t
  return %10, %2 : !t, !t
}

// Another mean is subtracted, so that only an rms_norm of the difference is recovered.
// CHECK-LABEL: func.func @norm_centered_over_other_axes(
// CHECK-NOT: layer_norm
// CHECK: %[[C:.*]] = burin.sub %arg0
// CHECK-NEXT: burin.rms_norm %[[C]]
func.func @norm_centered_over_other_axes(%x: !t) -> !t {
  %0 = burin.reduce_mean %x {axes = array<i64: 1, 2>, keepdims = true} : (!t) -> tensor<2x1x1xf32>
  %1 = burin.broadcast_to %0 {shape = [2, 3, 8]} : (tensor<2x1x1xf32>) -> !t
  %2 = burin.sub %x, %1 : (!t, !t) -> !t
  %3 = burin.constant dense<2.0> : tensor<2x3x8xf32>
  %4 = burin.pow %2, %3 : (!t, !t) -> !t
  %5 = burin.reduce_mean %4 {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %6 = burin.full {shape = [2, 3, 1], value = 1.0e-5, dtype = f32} : () -> !r
  %7 = burin.add %5, %6 : (!r, !r) -> !r
  %8 = burin.sqrt %7 : (!r) -> !r
  %9 = burin.broadcast_to %8 {shape = [2, 3, 8]} : (!r) -> !t
  %10 = burin.div %2, %9 : (!t, !t) -> !t
  return %10 : !t
}

// CHECK-LABEL: func.func @rms_norm(
// CHECK-NEXT: %[[Y:.*]] = burin.rms_norm %arg0, %arg1 {axis = 2 : i64, epsilon = 9.99{{[0-9]+}}E-7
// CHECK-NEXT: return %[[Y]]
func.func @rms_norm(%x: !t, %w: !v) -> !t {
  %0 = burin.full {shape = [2, 3, 1], value = 1.0e-6, dtype = f32} : () -> !r
  %1 = burin.mul %x, %x : (!t, !t) -> !t
  %2 = burin.reduce_mean %1 {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %3 = burin.broadcast_to %w {shape = [2, 3, 8]} : (!v) -> !t
  %4 = burin.add %2, %0 : (!r, !r) -> !r
  %5 = burin.rsqrt %4 : (!r) -> !r
  %6 = burin.broadcast_to %5 {shape = [2, 3, 8]} : (!r) -> !t
  %7 = burin.mul %x, %6 : (!t, !t) -> !t
  %8 = burin.mul %3, %7 : (!t, !t) -> !t
  return %8 : !t
}

// CHECK-LABEL: func.func @rms_norm_repeated_early(
// CHECK-NEXT: %[[Y:.*]] = burin.rms_norm %arg0 {axis = 2
// CHECK-NEXT: return %[[Y]]
func.func @rms_norm_repeated_early(%x: !t) -> !t {
  %0 = burin.constant dense<1.0e-6> : tensor<2x3x8xf32>
  %1 = burin.mul %x, %x : (!t, !t) -> !t
  %2 = burin.reduce_mean %1 {axes = array<i64: 2>, keepdims = true} : (!t) -> !r
  %3 = burin.broadcast_to %2 {shape = [2, 3, 8]} : (!r) -> !t
  %4 = burin.add %3, %0 : (!t, !t) -> !t
  %5 = burin.sqrt %4 : (!t) -> !t
  %6 = burin.div %x, %5 : (!t, !t) -> !t
  return %6 : !t
}

// A weight must have one element per element of a row, not per row.
// CHECK-LABEL: func.func @parameter_per_row(
// CHECK: burin.rms_norm %arg0 {
// CHECK: burin.mul
func.func @parameter_per_row(%x: !t, %w: !r) -> !t {
  %0 = burin.rms_norm %x {axis = 2 : i64, epsilon = 1.0e-6} : (!t) -> !t
  %1 = burin.broadcast_to %w {shape = [2, 3, 8]} : (!r) -> !t
  %2 = burin.mul %0, %1 : (!t, !t) -> !t
  return %2 : !t
}

// With a batch of one every value of the same shape could be a weight; in 16 bits the product would round once, not twice.
// CHECK-LABEL: func.func @product_in_batch_of_one(
// CHECK-NEXT: %[[N:.*]] = burin.rms_norm %arg0 {axis = 1 : i64, epsilon = 2.500000e-01 : f64}
// CHECK: burin.mul %[[N]], %arg1
func.func @product_in_batch_of_one(%x: tensor<1x8xf16>, %y: tensor<1x8xf16>) -> tensor<1x8xf16> {
  %0 = burin.rms_norm %x {axis = 1 : i64, epsilon = 0.25 : f64} : (tensor<1x8xf16>) -> tensor<1x8xf16>
  %1 = burin.mul %0, %y : (tensor<1x8xf16>, tensor<1x8xf16>) -> tensor<1x8xf16>
  return %1 : tensor<1x8xf16>
}

// A weight, in a batch of one.
// CHECK-LABEL: func.func @weight_in_batch_of_one(
// CHECK-NEXT: %[[Y:.*]] = burin.rms_norm %arg0, %arg1 {axis = 1 : i64, epsilon = 2.500000e-01 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @weight_in_batch_of_one(%x: tensor<1x8xf32>, %w: tensor<8xf32>) -> tensor<1x8xf32> {
  %0 = burin.rms_norm %x {axis = 1 : i64, epsilon = 0.25 : f64} : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %1 = burin.broadcast_to %w {shape = [1, 8]} : (tensor<8xf32>) -> tensor<1x8xf32>
  %2 = burin.mul %0, %1 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  return %2 : tensor<1x8xf32>
}

// CHECK-LABEL: func.func @bias_before_weight(
// CHECK: burin.layer_norm %arg0, %arg1 {
// CHECK: burin.mul
func.func @bias_before_weight(%x: !t, %w: !v) -> !t {
  %0 = burin.layer_norm %x, %w {axis = 2 : i64, epsilon = 1.0e-6, operandSegmentSizes = array<i32: 1, 0, 1>} : (!t, !v) -> !t
  %1 = burin.broadcast_to %w {shape = [2, 3, 8]} : (!v) -> !t
  %2 = burin.mul %0, %1 : (!t, !t) -> !t
  return %2 : !t
}

// CHECK-LABEL: func.func @softmax_symbolic(
// CHECK-NEXT: %[[Y:.*]] = burin.softmax %arg0 {axis = 1 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @softmax_symbolic(%x: !s) -> !s {
  %0 = burin.reduce_max %x {axes = array<i64: 1>, keepdims = true} : (!s) -> tensor<?x1xf32, ["n"]>
  %1 = burin.broadcast_to %0 {shape = ["n", 8]} : (tensor<?x1xf32, ["n"]>) -> !s
  %2 = burin.sub %x, %1 : (!s, !s) -> !s
  %3 = burin.exp %2 : (!s) -> !s
  %4 = burin.reduce_sum %3 {axes = array<i64: 1>, keepdims = true} : (!s) -> tensor<?x1xf32, ["n"]>
  %5 = burin.broadcast_to %4 {shape = ["n", 8]} : (tensor<?x1xf32, ["n"]>) -> !s
  %6 = burin.div %3, %5 : (!s, !s) -> !s
  return %6 : !s
}

// CHECK-LABEL: func.func @attention(
// CHECK-NEXT: %[[Y:.*]] = burin.scaled_dot_product_attention %arg0, %arg1, %arg2 {scale = 2.500000e-01 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @attention(%q: !t, %k: !t, %v: !t) -> !t {
  %0 = burin.transpose %k {perm = array<i64: 0, 2, 1>} : (!t) -> tensor<2x8x3xf32>
  %1 = burin.matmul %q, %0 : (!t, tensor<2x8x3xf32>) -> tensor<2x3x3xf32>
  %2 = burin.constant dense<4.0> : tensor<2x3x3xf32>
  %3 = burin.div %1, %2 : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %4 = burin.softmax %3 {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %5 = burin.matmul %4, %v : (tensor<2x3x3xf32>, !t) -> !t
  return %5 : !t
}

// CHECK-LABEL: func.func @attention_scaled_query(
// CHECK-NEXT: %[[Y:.*]] = burin.scaled_dot_product_attention %arg0, %arg1, %arg2 {scale = 2.500000e-01 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @attention_scaled_query(%q: !t, %k: !t, %v: !t) -> !t {
  %0 = burin.transpose %k {perm = array<i64: 0, 2, 1>} : (!t) -> tensor<2x8x3xf32>
  %1 = burin.constant dense<0.25> : tensor<2x3x8xf32>
  %2 = burin.mul %q, %1 : (!t, !t) -> !t
  %3 = burin.matmul %2, %0 : (!t, tensor<2x8x3xf32>) -> tensor<2x3x3xf32>
  %4 = burin.softmax %3 {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %5 = burin.matmul %4, %v : (tensor<2x3x3xf32>, !t) -> !t
  return %5 : !t
}

// Fully masked rows differ: 0 for the op, NaN for the formula.
// CHECK-LABEL: func.func @attention_masked(
// CHECK-NOT: scaled_dot_product
// CHECK: return
func.func @attention_masked(%q: !t, %k: !t, %v: !t, %m: tensor<2x3x3xf32>) -> !t {
  %0 = burin.transpose %k {perm = array<i64: 0, 2, 1>} : (!t) -> tensor<2x8x3xf32>
  %1 = burin.matmul %q, %0 : (!t, tensor<2x8x3xf32>) -> tensor<2x3x3xf32>
  %2 = burin.constant dense<4.0> : tensor<2x3x3xf32>
  %3 = burin.div %1, %2 : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %4 = burin.add %3, %m : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %5 = burin.softmax %4 {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %6 = burin.matmul %5, %v : (tensor<2x3x3xf32>, !t) -> !t
  return %6 : !t
}

// CHECK-LABEL: func.func @attention_over_other_axis(
// CHECK-NOT: scaled_dot_product
// CHECK: return
func.func @attention_over_other_axis(%q: !t, %k: !t, %v: !t) -> !t {
  %0 = burin.transpose %k {perm = array<i64: 0, 2, 1>} : (!t) -> tensor<2x8x3xf32>
  %1 = burin.matmul %q, %0 : (!t, tensor<2x8x3xf32>) -> tensor<2x3x3xf32>
  %2 = burin.constant dense<4.0> : tensor<2x3x3xf32>
  %3 = burin.div %1, %2 : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %4 = burin.softmax %3 {axis = 1 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %5 = burin.matmul %4, %v : (tensor<2x3x3xf32>, !t) -> !t
  return %5 : !t
}
